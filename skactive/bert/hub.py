"""Find a pretrained encoder by hub name or folder, and open it once."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

from skactive.bert.checkpoint import Checkpoint

__all__ = ["open_checkpoint"]

_KEPT = 4

_lock = threading.Lock()
_checkpoints = OrderedDict()  # (model, revision, signature) -> Checkpoint


def open_checkpoint(model, revision=None):
    """Open a pretrained encoder, reading its tokenizer and configuration only.

    The last few checkpoints are kept, so copies of an estimator open one once. A
    local folder whose files changed is read anew.

    Parameters
    ----------
    model : str or path-like
        A local folder, or a name on the hub.
    revision : str or None, default=None
        Branch, tag or commit on the hub.

    Returns
    -------
    checkpoint : Checkpoint

    Raises
    ------
    ValueError
        Where there is no such folder, no model or no tokenizer in it, or where the
        hub cannot be reached.
    """
    name = os.fsdecode(model)
    folder = os.path.expanduser(name)
    signature = None
    if os.path.isdir(folder):
        name = os.path.abspath(folder)
        signature = tuple(sorted(_stat(entry) for entry in os.scandir(name)))
    elif _looks_like_a_path(name):
        what = "is a file" if os.path.exists(folder) else "does not exist"
        raise ValueError(
            f"'model' must be a local folder or a name on the hub, got {name!r}, which "
            f"{what}. Pass the folder that holds config.json, model.safetensors and "
            "the tokenizer's files."
        )
    key = (name, revision, signature)
    with _lock:
        if key not in _checkpoints:
            _checkpoints[key] = Checkpoint(name, revision, local=signature is not None)
            while len(_checkpoints) > _KEPT:
                _checkpoints.popitem(last=False)
        _checkpoints.move_to_end(key)
        return _checkpoints[key]


def _stat(entry):
    found = entry.stat()
    return entry.name, found.st_size, found.st_mtime_ns


def _looks_like_a_path(name):
    # A name on the hub is `name` or `owner/name`.
    return (
        not name
        or name[0] in "./~"
        or name.endswith(("/", "\\"))
        or "\\" in name
        or name.count("/") > 1
        or os.path.exists(name)
    )
