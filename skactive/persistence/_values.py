"""Values as JSON, and as files of arrays, texts and data frames."""

import math
import os
import sys
from pathlib import Path, PurePath

import numpy as np
from scipy import sparse

from ._folder import TAG, LoadError, check_size, quote, read_json

_SEQUENCES = {tuple: "tuple", set: "set", frozenset: "frozenset"}
_SPARSE = {
    name: getattr(sparse, name)
    for name in ("csr_matrix", "csc_matrix", "csr_array", "csc_array")
}
_COLUMN = "values"  # of a series, which parquet lacks


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
    return NotImplemented


def _encode_dense(array, where, writer):
    if array.dtype.kind == "T":
        if hasattr(array.dtype, "na_object"):
            raise TypeError(
                f"{quote(where)} must be an array of strings without a missing value "
                f"to be saved, got {array.dtype!r}. Convert it with astype(object)."
            )
        return _encode_objects(array.astype(object), "strings", where, writer)
    if array.dtype == object:
        return _encode_objects(array, "objects", where, writer)
    if array.dtype.hasobject or array.dtype.kind not in "biufcUSmM":
        raise TypeError(
            f"{quote(where)} must be an array of numbers or texts to be saved without "
            f"pickle, got the dtype {array.dtype}. Pass a data frame or plain arrays."
        )
    name, path = writer.new_file("arrays", where, ".npy")
    np.save(path, array, allow_pickle=False)
    return {TAG: "array", "file": name}


def _encode_objects(array, tag, where, writer):
    items = writer.encode(array.ravel().tolist(), where)
    return {TAG: tag, "shape": list(array.shape), "items": items}


def encode_items(value, where, writer):
    """Return labeled items as a node; texts are written to a JSON file of their own.

    The texts of a TextPool are written as a list, as its file may be temporary.
    """
    value = list(value) if hasattr(value, "take_rows") else value
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


def _decode_strings(node, where, reader):
    return _decode_objects(node, where, reader).astype(np.dtypes.StringDType())


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
    "strings": _decode_strings,
    "sparse": _decode_sparse,
    "json": lambda node, where, reader: reader.decode(
        read_json(reader.path(node["file"])), where
    ),
}


# Data frames --------------------------------------------------------------------------


def encode_frame(value, where, writer):
    """Return a data frame or series as a node with a file, or NotImplemented.

    Raise a TypeError for a frame that parquet would change.
    """
    for library, encode in (("pandas", _encode_pandas), ("polars", _encode_polars)):
        module = sys.modules.get(library)  # its objects exist only once it is loaded
        if module is None:
            continue
        if type(value) in (module.DataFrame, module.Series):
            is_series = type(value) is module.Series
            name, path = writer.new_file("frames", where, ".parquet")
            node = {TAG: library, "file": name, "series": is_series}
            try:
                node |= encode(value, is_series, where, writer, path)
            except ImportError as exc:
                raise ImportError(_NO_PYARROW.format(quote(where))) from exc
            except Exception as exc:  # each library raises errors of its own
                raise TypeError(
                    f"{quote(where)} cannot be saved as parquet, got a {library} "
                    f"{type(value).__name__} ({type(exc).__name__}: {exc}). Use "
                    "columns of numbers, texts, dates or categories, named by str."
                ) from exc
            return node
    return NotImplemented


_NO_PYARROW = (
    "{} is a data frame of pandas, which needs pyarrow 15 or newer as a file. "
    "Install it with `pip install 'pyarrow>=15'`."
)


def _encode_pandas(value, is_series, where, writer, path):
    import pandas as pd

    _require_pyarrow()
    frame = value.to_frame(_COLUMN) if is_series else value
    with open(path, "wb") as stream:
        frame.to_parquet(stream, engine="pyarrow", index=True)
    node = {
        "name": writer.encode(value.name, f"{where}.name") if is_series else None,
        "dtypes": [_describe(dtype) for dtype in frame.dtypes],
        "index": _describe(frame.index.dtype) if frame.index.nlevels == 1 else None,
    }
    back = _read_pandas(path, node)
    pd.testing.assert_frame_equal(back, frame, check_exact=True, check_freq=False)
    return node


def _describe(dtype):
    """Return a dtype in a form from which :func:`_dtype` restores it."""
    import pandas as pd

    if isinstance(dtype, pd.StringDtype):
        return {"storage": dtype.storage, "has_na": dtype.na_value is pd.NA}
    return str(dtype)


def _dtype(description):
    import pandas as pd

    if not isinstance(description, dict):
        return pd.api.types.pandas_dtype(description)
    if description["has_na"]:
        return pd.StringDtype(description["storage"])
    return pd.StringDtype(description["storage"], na_value=float("nan"))


def _read_pandas(path, node):
    import pandas as pd

    with open(path, "rb") as stream:
        frame = pd.read_parquet(stream, engine="pyarrow")
    wanted = node["dtypes"]
    if len(wanted) != frame.shape[1]:
        raise LoadError(f"{path.name!r} must hold {len(wanted)} columns. Save again.")
    for name, description in zip(frame.columns, wanted, strict=True):
        # A category's own description is in the file.
        if _describe(frame[name].dtype) != description:
            frame[name] = frame[name].astype(_dtype(description))
    index = node["index"]
    if index is not None and _describe(frame.index.dtype) != index:
        frame.index = frame.index.astype(_dtype(index))
    return frame


def _count_pandas(path):
    """Return the number of cells of a parquet file, which take little on the disk."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return file.metadata.num_rows * file.metadata.num_columns


def _decode_pandas(node, where, reader):
    path = reader.path(node["file"])
    try:
        _require_pyarrow()
        check_size(node["file"], path, 8 * _count_pandas(path))
        frame = _read_pandas(path, node)
    except ImportError as exc:
        raise ImportError(_NO_PYARROW.format(quote(where))) from exc
    except LoadError:
        raise
    except Exception as exc:  # pyarrow and pandas have errors of their own
        raise _damaged(node, exc) from exc
    if not node["series"]:
        return frame
    return frame[_COLUMN].rename(reader.decode(node["name"], where))


def _encode_polars(value, is_series, where, writer, path):
    frame = value.to_frame(_COLUMN) if is_series else value
    with open(path, "wb") as stream:
        frame.write_parquet(stream)
    back = _read_polars(path)
    if back.schema != frame.schema or not back.equals(frame, null_equal=True):
        raise ValueError("parquet changes it")
    return {"name": value.name if is_series else None}


def _read_polars(path):
    import polars as pl

    with open(path, "rb") as stream:
        return pl.read_parquet(stream)


def _count_polars(path):
    """Return the number of cells of a parquet file."""
    import polars as pl

    rows = pl.scan_parquet(path)
    n_rows = rows.select(pl.len()).collect().item()
    return n_rows * len(rows.collect_schema())


def _decode_polars(node, where, reader):
    path = reader.path(node["file"])
    try:
        check_size(node["file"], path, 8 * _count_polars(path))
        frame = _read_polars(path)
    except ImportError as exc:
        raise ImportError(
            f"{quote(where)} is a data frame of polars, which is not installed. "
            "Install it with `pip install polars`."
        ) from exc
    except LoadError:
        raise
    except Exception as exc:  # polars has errors of its own
        raise _damaged(node, exc) from exc
    return frame[_COLUMN].alias(node["name"]) if node["series"] else frame


def _damaged(node, exc):
    return LoadError(
        f"{node['file']!r} must be a parquet file that skactive.save wrote, and is not "
        f"({type(exc).__name__}: {exc}). Save again."
    )


def _require_pyarrow():
    import pyarrow

    # Before 14.0.1 reading a file could run code that it holds.
    if int(pyarrow.__version__.split(".")[0]) < 15:
        raise ImportError(f"pyarrow {pyarrow.__version__} is too old")


FRAME_DECODERS = {"pandas": _decode_pandas, "polars": _decode_polars}
