"""Data frames and series of pandas and polars, as parquet that was read back."""

import sys

from ._codec import TAG, Refusal, at

_COLUMN = "values"  # of a series, which parquet lacks


def encode_frame(value, where, writer):
    """Encode a data frame or series; refuse one that parquet would change.

    Parameters
    ----------
    value : object
    where : str
    writer : Writer

    Returns
    -------
    node : dict or NotImplemented
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
                raise ImportError(_NO_PYARROW.format(at(where))) from exc
            except Exception as exc:  # each library raises errors of its own
                raise TypeError(
                    f"{at(where)} cannot be saved as parquet, got a {library} "
                    f"{type(value).__name__} ({type(exc).__name__}: {exc}). Use "
                    "columns of numbers, texts, dates or categories, named by str."
                ) from exc
            return node
    return NotImplemented


_NO_PYARROW = (
    "{} is a data frame of pandas, which needs pyarrow 15 or newer as a file. Install "
    "it with `pip install 'pyarrow>=15'`."
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
    """Name a dtype so that :func:`_dtype` makes the same one."""
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
        raise Refusal(f"{path.name!r} must hold {len(wanted)} columns. Save again.")
    for name, description in zip(frame.columns, wanted, strict=True):
        # A category's own description is in the file.
        if _describe(frame[name].dtype) != description:
            frame[name] = frame[name].astype(_dtype(description))
    index = node["index"]
    if index is not None and _describe(frame.index.dtype) != index:
        frame.index = frame.index.astype(_dtype(index))
    return frame


def _decode_pandas(node, where, reader):
    path = reader.path(node["file"])
    try:
        _require_pyarrow()
        frame = _read_pandas(path, node)
    except ImportError as exc:
        raise ImportError(_NO_PYARROW.format(at(where))) from exc
    except Refusal:
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
        raise ValueError("it comes back changed")
    return {"name": value.name if is_series else None}


def _read_polars(path):
    import polars as pl

    with open(path, "rb") as stream:
        return pl.read_parquet(stream)


def _decode_polars(node, where, reader):
    try:
        frame = _read_polars(reader.path(node["file"]))
    except ImportError as exc:
        raise ImportError(
            f"{at(where)} is a data frame of polars, which is not installed. Install "
            "it with `pip install polars`."
        ) from exc
    except Refusal:
        raise
    except Exception as exc:  # polars has errors of its own
        raise _damaged(node, exc) from exc
    return frame[_COLUMN].alias(node["name"]) if node["series"] else frame


def _damaged(node, exc):
    return Refusal(
        f"{node['file']!r} must be a parquet file that skactive.save wrote, and is not "
        f"({type(exc).__name__}: {exc}). Save again."
    )


def _require_pyarrow():
    import pyarrow

    # Before 14.0.1 reading a file could run code that it holds.
    if int(pyarrow.__version__.split(".")[0]) < 15:
        raise ImportError(f"pyarrow {pyarrow.__version__} is too old")


FRAME_DECODERS = {"pandas": _decode_pandas, "polars": _decode_polars}
