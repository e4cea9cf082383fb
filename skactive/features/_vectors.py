"""Open vectors: feature folders, `.npy` files, and datasets of pyarrow."""

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._storage._files import BLOCK_ROWS
from .._storage._fingerprint import hash_ids
from .._storage._hash_index import HashIndex
from .._storage._mapped import Blocks, FileRows, map_file, open_array
from ._folder import JOURNAL, KEYS, MANIFEST, ROWS, is_folder, open_folder

_MOST_OPEN = 4

_opened: OrderedDict = OrderedDict()  # the sources used last in this process
_lock = threading.RLock()


@dataclass(frozen=True)
class Vectors:
    """Features (r, d), how to find rows, and what the features depend on.

    The features are FileRows, or an array in a file without a name. `keys` (r,) are
    None where rows are found by number. `recipe` is None unless `transform_to` wrote
    the features.
    """

    features: Any
    keys: Any
    recipe: dict | None

    @cached_property
    def index(self):
        """The rows by key, which are sorted at the first search."""
        return HashIndex(self.keys)

    def find_run(self, keys):
        """Return the first of consecutive rows with these keys (n,), or None."""
        n = len(keys)
        if n == len(self.keys) and np.array_equal(keys, self.keys):
            return 0
        start = int(self.index.find(keys[:1])[0]) if n else -1
        is_run = start >= 0 and np.array_equal(keys, self.keys[start : start + n])
        return start if is_run else None


def open_vectors(source, key, column):
    """Return the `Vectors` of a source, which is opened once per process."""
    stamp = (_stamp(source), key, column)
    with _lock:
        if stamp not in _opened:
            _opened[stamp] = _open(source, key, column)
        _opened.move_to_end(stamp)
        while len(_opened) > _MOST_OPEN:
            _opened.popitem(last=False)
        return _opened[stamp]


def _open(source, key, column):
    if not isinstance(source, str | os.PathLike):
        return _import(source, key, column, f"{type(source).__name__}")
    path = Path(os.path.expanduser(source))
    if is_folder(path):
        features, keys, manifest = open_folder(path)
        return Vectors(features, keys, manifest["encoder"])
    if not path.exists():
        raise ValueError(
            f"'source' must be a folder that transform_to wrote, a .npy file or files "
            f"of vectors, got {str(source)!r}, which does not exist."
        )
    if path.suffix == ".npy":
        return Vectors(_open_npy(path, key), None, None)
    return _import(_open_dataset(path), key, column, str(path))


def _open_npy(path, key):
    if key is not None:
        raise ValueError(
            f"'id' must be None for a .npy file, which has no columns, got {key!r}. "
            "Pass row numbers to transform."
        )
    features = open_array(path)
    if features.ndim != 2 or features.dtype.kind != "f":
        raise ValueError(
            f"'source' must hold floating-point vectors of shape (n, d), got "
            f"{features.dtype} of shape {features.shape} in {str(path)!r}."
        )
    return FileRows(features, Blocks(path, features._mmap), 1)


def _stamp(source):
    """Return what changes if the content of a source changes."""
    if isinstance(source, str | os.PathLike):
        path = os.path.realpath(os.path.expanduser(source))
        names = [MANIFEST, KEYS, ROWS, JOURNAL]
        if not is_folder(path):
            names = sorted(os.listdir(path)) if os.path.isdir(path) else [""]
        return tuple(_stamp_file(os.path.join(path, name)) for name in names)
    if hasattr(source, "files"):
        return tuple(map(_stamp_file, source.files))
    if hasattr(source, "uri") and hasattr(source, "version"):  # Lance
        return source.uri, source.version
    return source  # itself: equal to no other


def _stamp_file(path):
    try:
        status = os.stat(path)
    except OSError:
        return path, None
    return path, status.st_ino, status.st_size, status.st_mtime_ns


# Datasets of pyarrow -----------------------------------------------------------------


def _open_dataset(path):
    import pyarrow.dataset as ds

    suffixes = {path.suffix} if path.is_file() else {p.suffix for p in path.iterdir()}
    is_arrow = suffixes & {".arrow", ".feather", ".ipc"}
    return ds.dataset(path, format="ipc" if is_arrow else "parquet")


def _import(dataset, key, column, name):
    """Copy the vectors of a dataset into a temporary file, a batch at a time."""
    for what, wanted in (("vectors", column), ("id", key)):
        if wanted is not None and wanted not in dataset.schema.names:
            raise ValueError(
                f"{what!r} must be a column of {name!r}, got {wanted!r}. The columns "
                f"are {', '.join(map(repr, dataset.schema.names))}."
            )
    n_rows, features, keys, start = dataset.count_rows(), None, [], 0
    columns = [column] if key is None else [column, key]
    options = {} if hasattr(dataset, "uri") else {"batch_readahead": 2}
    batches = dataset.to_batches(columns=columns, batch_size=BLOCK_ROWS, **options)
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = _read_vectors(batch.column(column), name, column, start)
        if features is None:
            features = map_file(n_rows, rows.shape[1], rows.dtype)
        if rows.shape[1] != features.shape[1]:
            raise _unequal(name, column, start)
        features[start : start + len(rows)] = rows
        start += len(rows)
        if key is not None:
            keys.append(hash_ids(batch.column(key).to_pylist()))
    if features is None:
        raise ValueError(f"{name!r} must hold vectors, got no rows.")
    features.flags.writeable = False
    if key is None:
        return Vectors(features, None, None)
    vectors = Vectors(features, np.concatenate(keys), None)
    first = vectors.index.find_first()
    if first is not None:
        repeated = np.argmax(first != np.arange(len(first)))
        raise ValueError(
            f"the ids in the column {key!r} of {name!r} must differ, got the id of an "
            f"earlier row again in row {repeated}."
        )
    return vectors


def _read_vectors(values, name, column, start):
    """Return the vectors of an Arrow array, (b, d)."""
    import pyarrow as pa

    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    is_list = isinstance(
        values, pa.FixedSizeListArray | pa.ListArray | pa.LargeListArray
    )
    if not is_list or not pa.types.is_floating(values.type.value_type):
        raise TypeError(
            f"'vectors' must be a column of lists of floating-point numbers, got "
            f"{values.type} in the column {column!r} of {name!r}."
        )
    if values.null_count:
        raise ValueError(
            f"the vectors in the column {column!r} of {name!r} must not be null, got "
            f"{values.null_count} nulls in the {len(values)} rows from {start} on."
        )
    flat = values.flatten()
    lengths = np.unique(np.asarray(values.value_lengths()))
    if flat.null_count or len(lengths) != 1:
        raise _unequal(name, column, start)
    return flat.to_numpy(zero_copy_only=False).reshape(len(values), int(lengths[0]))


def _unequal(name, column, start):
    return ValueError(
        f"the vectors in the column {column!r} of {name!r} must have one length and no "
        f"nulls, which is not so in the rows from {start} on. Repair the table."
    )
