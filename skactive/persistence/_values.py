"""Values as JSON, and as files of arrays and texts."""

import math
import os
from pathlib import Path, PurePath

import numpy as np
from scipy import sparse

from .._utils._sealed import read_json
from ._folder import TAG, LoadError, quote

_SEQUENCES = {tuple: "tuple", set: "set", frozenset: "frozenset"}
_SPARSE = {
    name: getattr(sparse, name)
    for name in ("csr_matrix", "csc_matrix", "csr_array", "csc_array")
}


# Values -------------------------------------------------------------------------------


def encode_value(value, where, writer):
    """Return a plain value as JSON that keeps its type, or NotImplemented."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        return {TAG: "float", "value": str(value)}
    if kind is list:
        return [writer.encode(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if kind in _SEQUENCES:
        items = list(value) if kind is tuple else sorted(value, key=repr)
        return {TAG: _SEQUENCES[kind], "items": encode_value(items, where, writer)}
    if kind is dict:
        return _encode_dict(value, where, writer)
    if isinstance(value, PurePath):
        return {TAG: "path", "value": os.fspath(value)}
    if isinstance(value, np.generic):
        return _encode_scalar(value, where, writer)
    if kind is np.random.RandomState:
        state = value.get_state(legacy=False)
        return {TAG: "random_state", "state": writer.encode(state, where)}
    return NotImplemented


def _encode_dict(value, where, writer):
    if TAG not in value and all(type(key) is str for key in value):
        return {k: writer.encode(v, f"{where}.{k}") for k, v in value.items()}
    items = [
        [writer.encode(k, f"{where} key"), writer.encode(v, f"{where}[{k!r}]")]
        for k, v in value.items()
    ]
    return {TAG: "dict", "items": items}


def _encode_scalar(value, where, writer):
    # JSON has no longdouble, complex or time.
    too_wide = value.dtype.kind == "f" and value.dtype.itemsize > 8
    if too_wide or value.dtype.kind not in "biufU":
        return NotImplemented
    node = encode_value(value.item(), where, writer)
    return {TAG: "scalar", "dtype": value.dtype.str, "value": node}


def _decode_scalar(node, where, reader):
    dtype = np.dtype(node["dtype"])
    if dtype.kind not in "biufU":
        raise TypeError(f"no scalar has the dtype {dtype}")
    return dtype.type(reader.decode(node["value"], where))


def _decode_dict(node, where, reader):
    decode = reader.decode
    return {decode(k, where): decode(v, f"{where}[{k!r}]") for k, v in node["items"]}


def _decode_random_state(node, where, reader):
    state = np.random.RandomState()
    state.set_state(reader.decode(node["state"], where))
    return state


def _sequence(kind):
    return lambda node, where, reader: kind(reader.decode(node["items"], where))


VALUE_DECODERS = {
    "float": lambda node, where, reader: float(node["value"]),
    "path": lambda node, where, reader: Path(node["value"]),
    "scalar": _decode_scalar,
    "dict": _decode_dict,
    "random_state": _decode_random_state,
    **{name: _sequence(kind) for kind, name in _SEQUENCES.items()},
}


# Arrays -------------------------------------------------------------------------------


def encode_array(value, where, writer):
    """Return an array or sparse matrix as a node with files, or NotImplemented."""
    if type(value) in (np.ndarray, np.memmap):
        return _encode_dense(np.asarray(value), where, writer)
    kind = type(value).__name__
    if _SPARSE.get(kind) is type(value):
        parts = {
            name: _encode_dense(getattr(value, name), f"{where}.{name}", writer)
            for name in ("data", "indices", "indptr")
        }
        return {TAG: "sparse", "kind": kind, "shape": list(value.shape), **parts}
    if sparse.issparse(value):
        raise TypeError(
            f"{quote(where)} must be CSR or CSC to be saved, got {kind}. Convert it "
            "with tocsr()."
        )
    if type(value).__module__.split(".")[0] in ("pandas", "polars"):
        return _encode_series(value, where)
    return NotImplemented


def _encode_series(value, where):
    """Return the texts of a series as a list; raise a TypeError for anything else."""
    texts = value.to_list() if hasattr(value, "to_list") else [None]
    if all(type(text) is str for text in texts):
        return texts
    raise TypeError(
        f"{quote(where)} must be texts or an array to be saved, got a "
        f"{type(value).__name__} of {type(value).__module__.split('.')[0]}. Convert it "
        "with to_numpy() before fit, or leave labeled data out with data=False."
    )


def _encode_dense(array, where, writer):
    if array.dtype.kind == "T":  # numpy.dtypes.StringDType
        return writer.encode(array.tolist(), where)
    if array.dtype == object:
        items = writer.encode(array.ravel().tolist(), where)
        return {TAG: "objects", "shape": list(array.shape), "items": items}
    if array.dtype.hasobject or array.dtype.kind not in "biufcUSmM":
        raise TypeError(
            f"{quote(where)} must be an array of numbers or texts to be saved without "
            f"pickle, got the dtype {array.dtype}. Pass a data frame or plain arrays."
        )
    name, path = writer.new_file("arrays", where, ".npy")
    np.save(path, array, allow_pickle=False)
    return {TAG: "array", "file": name}


def encode_items(value, where, writer):
    """Return labeled items as a node; texts are written to a JSON file of their own.

    The texts of a TextPool are written as a list, as its file may be temporary.
    """
    value = list(value) if hasattr(value, "take_rows") else value
    node = writer.encode(value, where)
    if not isinstance(node, list) and node.get(TAG) not in ("tuple", "objects"):
        return node
    name, _ = writer.new_file("items", where, ".json")
    writer.write_json(name, node)
    return {TAG: "json", "file": name}


def _decode_array(node, where, reader):
    path = reader.path(node["file"])
    try:
        return np.load(path, allow_pickle=False)
    except Exception as exc:  # also MemoryError, and TokenError for the header
        raise LoadError(
            f"{node['file']!r} must be an array of numbers or texts that numpy loads "
            f"without pickle, and is not ({type(exc).__name__}: {exc}). Save again."
        ) from exc


def _decode_objects(node, where, reader):
    items = reader.decode(node["items"], where)
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # an item may itself be a sequence
        array[i] = item
    return array.reshape(node["shape"])


def _decode_sparse(node, where, reader):
    parts = [reader.decode(node[k], where) for k in ("data", "indices", "indptr")]
    matrix = _SPARSE[node["kind"]](tuple(parts), shape=tuple(node["shape"]))
    try:
        matrix.check_format(full_check=True)  # indices out of range read foreign memory
    except ValueError as exc:
        raise LoadError(
            f"{node['indices']['file']!r} does not fit the sparse matrix at "
            f"{quote(where)} ({exc}). Save again."
        ) from exc
    return matrix


ARRAY_DECODERS = {
    "array": _decode_array,
    "objects": _decode_objects,
    "sparse": _decode_sparse,
    "json": lambda node, where, reader: reader.decode(
        read_json(reader.path(node["file"])), where
    ),
}
