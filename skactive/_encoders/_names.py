"""What an estimator and its encoders are called, for people."""

import os
import re
from pathlib import Path

_CARD = "README.md"


def describe_estimator(estimator):
    """Return the class of an estimator, with the steps or the estimator in it."""
    name = type(estimator).__name__
    if hasattr(estimator, "estimator"):
        return f"{name} of {describe_estimator(estimator.estimator)}"
    steps = [type(step).__name__ for _, step in getattr(estimator, "steps", ())]
    return f"{name} of {', '.join(steps)}" if steps else name


def find_encoders(estimator):
    """Return the names and licenses of the pretrained encoders of an estimator."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    models = [
        os.fspath(part.model)
        for part in parts
        if isinstance(getattr(part, "model", None), str | os.PathLike)
    ]
    return list(dict.fromkeys(map(_read_encoder, dict.fromkeys(models))))


def _read_encoder(model):
    """Return the name and the license of an encoder, str; "" if it is unknown."""
    from huggingface_hub import metadata_load, try_to_load_from_cache

    folder = Path(model).expanduser()
    path = folder / _CARD if folder.is_dir() else try_to_load_from_cache(model, _CARD)
    name, metadata = folder.name if folder.is_dir() else model, {}
    try:
        metadata = metadata_load(path) or {}
        title = re.search(r"^# +(.+?) *$", Path(path).read_text("utf-8"), re.MULTILINE)
    except Exception:  # no card, or one of another form
        title = None
    name = title[1] if title and folder.is_dir() else name
    return name, str(metadata.get("license", ""))
