"""The command `encode`: features of tables larger than memory, for `label`."""

import json
from pathlib import Path

from .._encoders._pretrained import open_checkpoint
from .._storage._outputs import write_own
from ..datasets import open_pool
from ..project import find_about, make_encoder, make_folder, plain_folder
from ..semi_supervised import packaged_model
from ._parser import one_or_several, say


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
    encoder = make_encoder(about)
    if path.exists():  # else opening says so
        make_folder(project, path)
    pool = open_pool(path, one_or_several(text), cache=project / "pool")
    make_folder(folder, path)
    try:
        features = encoder.transform_to(pool, folder, dtype=dtype)
    except KeyboardInterrupt as exc:
        raise KeyboardInterrupt("the same command goes on where it stopped") from exc
    content, file = json.dumps(about).encode(), find_about(folder)
    _, kept = write_own(file, lambda path: path.write_bytes(content))
    if kept is not None:
        say(f"{file} was of another program: it is kept as {kept}")
    width = features.find_rows(pool[:1])[0].shape[1]
    print(f"{folder}: {width} features of {len(pool):,} texts")
    return 0
