"""Arrays and sparse matrices: npy files without pickle; arrays of objects as JSON."""

import numpy as np
from scipy import sparse

from ._codec import TAG, Refusal, at, read_json

_SPARSE = {
    name: getattr(sparse, name)
    for name in ("csr_matrix", "csc_matrix", "csr_array", "csc_array")
}


def encode_array(value, where, writer):
    """Encode an array or a sparse matrix.

    Parameters
    ----------
    value : object
    where : str
    writer : Writer

    Returns
    -------
    node : dict or NotImplemented
    """
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
            f"{at(where)} must be CSR or CSC to be saved, got {kind}. Convert it with "
            "tocsr()."
        )
    return NotImplemented


def _encode_dense(array, where, writer):
    if array.dtype.kind == "T":
        if hasattr(array.dtype, "na_object"):
            raise TypeError(
                f"{at(where)} must be an array of strings without a missing value to "
                f"be saved, got {array.dtype!r}. Convert it with astype(object)."
            )
        return _encode_objects(array.astype(object), "strings", where, writer)
    if array.dtype == object:
        return _encode_objects(array, "objects", where, writer)
    if array.dtype.hasobject or array.dtype.kind not in "biufcUSmM":
        raise TypeError(
            f"{at(where)} must be an array of numbers or texts to be saved without "
            f"pickle, got the dtype {array.dtype}. Pass a data frame or plain arrays."
        )
    name, path = writer.new_file("arrays", where, ".npy")
    np.save(path, array, allow_pickle=False)
    return {TAG: "array", "file": name}


def _encode_objects(array, tag, where, writer):
    items = writer.encode(array.ravel().tolist(), where)
    return {TAG: tag, "shape": list(array.shape), "items": items}


def encode_items(value, where, writer):
    """Encode labelled items: texts into a JSON file of their own.

    Parameters
    ----------
    value : container
    where : str
    writer : Writer

    Returns
    -------
    node : what JSON takes
    """
    node = writer.encode(value, where)
    if not isinstance(node, list) and node.get(TAG) not in (
        "tuple",
        "objects",
        "strings",
    ):
        return node
    name, _ = writer.new_file("items", where, ".json")
    writer.write_json(name, node)
    return {TAG: "json", "file": name}


def _decode_array(node, where, reader):
    path = reader.path(node["file"])
    try:
        return np.load(path, allow_pickle=False)
    except Exception as exc:  # also MemoryError, and TokenError for the header
        raise Refusal(
            f"{node['file']!r} must be an array of numbers or texts that numpy loads "
            f"without pickle, and is not ({type(exc).__name__}: {exc}). Save again."
        ) from exc


def _decode_objects(node, where, reader):
    items = reader.decode(node["items"], where)
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # an item may itself be a sequence
        array[i] = item
    return array.reshape(node["shape"])


def _decode_strings(node, where, reader):
    return _decode_objects(node, where, reader).astype(np.dtypes.StringDType())


def _decode_sparse(node, where, reader):
    parts = [reader.decode(node[k], where) for k in ("data", "indices", "indptr")]
    matrix = _SPARSE[node["kind"]](tuple(parts), shape=tuple(node["shape"]))
    try:
        matrix.check_format(full_check=True)  # indices out of range read foreign memory
    except ValueError as exc:
        raise Refusal(
            f"{node['indices']['file']!r} does not fit the sparse matrix at "
            f"{at(where)} ({exc}). Save again."
        ) from exc
    return matrix


ARRAY_DECODERS = {
    "array": _decode_array,
    "objects": _decode_objects,
    "strings": _decode_strings,
    "sparse": _decode_sparse,
    "json": lambda node, where, reader: reader.decode(
        read_json(reader.path(node["file"])), where
    ),
}
