"""The command `encode`: features of tables larger than memory, for `label`."""

import json
from pathlib import Path

from sklearn.pipeline import make_pipeline

from .._encoders._pretrained import open_checkpoint
from .._storage._outputs import write_own
from ..bert import BertFeatures
from ..datasets import open_pool
from ..features import StaticFeatures
from ..project import make_folder, plain_folder
from ..project._settings import one_or_several, say
from ..semi_supervised import packaged_model

_ABOUT = "encoder.json"


def run_encode(file, text, folder, model, static, dtype, **options):
    """Run the command `encode`."""
    path, folder = Path(file).expanduser(), folder.expanduser()
    about = {"model": model, "static": static, **options}
    for name in ("prompt", "dimensions"):
        if static and options[name] is not None:
            raise ValueError(f"argument --{name}: is for encoders, not for --static.")
    if model is None and not static:
        about["model"] = packaged_model()
    elif not static:
        open_checkpoint(model)
    project = plain_folder(path)
    encoder = _make_encoder(about)
    if path.exists():  # else opening says so
        make_folder(project, path)
    pool = open_pool(path, one_or_several(text), cache=project / "pool")
    make_folder(folder, path)
    try:
        features = encoder.transform_to(pool, folder, dtype=dtype)
    except KeyboardInterrupt as exc:
        raise KeyboardInterrupt("the same command goes on where it stopped") from exc
    content, file = json.dumps(about).encode(), _about_file(folder)
    _, kept = write_own(file, lambda path: path.write_bytes(content))
    if kept is not None:
        say(f"{file} was of another program: it is kept as {kept}")
    width = features.find_rows(pool[:1])[0].shape[1]
    print(f"{folder}: {width} features of {len(pool):,} texts")
    return 0


def _about_file(folder):
    """Return the file next to a folder of features that says who wrote them."""
    return folder.with_name(f"{folder.name}.{_ABOUT}")


def _make_encoder(about):
    """Return the transformer of the options of `encode`."""
    options = {name: value for name, value in about.items() if value is not None}
    if options.pop("static"):
        return StaticFeatures(**options)
    return BertFeatures(**options)


def add_encoder(model, features):
    """Return a trained model with the encoder of its features, None if it is unknown.

    `features` is the folder that `encode` wrote.
    """
    path = _about_file(Path(features))
    if not path.is_file():
        return None
    try:
        encoder = _make_encoder(json.loads(path.read_bytes()))
    except (ValueError, LookupError, TypeError) as exc:
        raise ValueError(
            f"{str(path)!r} must be what `skactive encode` wrote, got a damaged file "
            f"({exc}). Restore it, or run the same `skactive encode` again."
        ) from exc
    return make_pipeline(encoder, model.steps[-1][1])
