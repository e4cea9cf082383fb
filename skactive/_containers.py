"""Join the rows of two containers of any kind; scikit-learn only takes them apart."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np
from scipy import sparse

from ._sklearn import num_samples, safe_indexing

__all__ = [
    "as_container",
    "concatenate",
    "refuse_unordered",
    "snapshot",
    "take_row",
    "take_rows",
]


def as_container(X):
    """Return `X`; a pyarrow array, which scikit-learn cannot index, as a list."""
    is_arrow_array = hasattr(X, "to_pylist") and not hasattr(X, "schema")
    return X.to_pylist() if is_arrow_array else X


def refuse_unordered(values, name):
    """Raise if `values` is a mapping or a set, whose items are in no order.

    Parameters
    ----------
    values : object
    name : str
        What to call the argument in the error message.

    Raises
    ------
    TypeError
    """
    if isinstance(values, Mapping | Set) and not sparse.issparse(values):  # DOK
        what = "list(...)" if isinstance(values, Set) else "list(....values())"
        raise TypeError(
            f"{name!r} must be a sequence with one entry per item, got a "
            f"{type(values).__name__}. Pass a list in the order of the items, such as "
            f"{what.replace('...', name, 1)}."
        )


def take_rows(X, positions):
    """Take some rows of any container.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, series or sequence of n rows
    positions : ndarray of int, shape (p,)

    Returns
    -------
    rows : same kind
        A tuple becomes a list, a sparse matrix CSR.
    """
    if sparse.issparse(X):
        return X.tocsr()[positions]  # not every format can be indexed
    if not hasattr(X, "__getitem__"):
        X = np.asarray(X)
    return safe_indexing(X, positions)


def take_row(X, position):
    """Take one row of any container: an item of a sequence, a row of a data frame.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, series or sequence of n rows
    position : int

    Returns
    -------
    row : object
        Of a pandas frame a series, of a polars frame a tuple.

    Examples
    --------
    >>> from skactive._containers import take_row
    >>> take_row(["a", "b"], 1)
    'b'
    """
    if hasattr(X, "iloc"):
        return X.iloc[position]
    if hasattr(X, "row"):  # polars
        return X.row(position)
    return X.tocsr()[[position]] if sparse.issparse(X) else X[position]


def snapshot(X):
    """Copy the rows of `X`, so that what the caller does to it later is no matter.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, series or sequence of n rows

    Returns
    -------
    X : same kind
    """
    return take_rows(X, np.arange(num_samples(X)))


def concatenate(first, second, *, name="X"):
    """Append the rows of `second` to those of `first`.

    Parameters
    ----------
    first, second : array-like, sparse matrix, data frame, series or sequence
        Two containers of one kind. Texts may come in two kinds of one-dimensional
        container; they end in a list.
    name : str, default="X"
        What to call the argument in error messages.

    Returns
    -------
    rows : container of the kind of `first`

    Raises
    ------
    ValueError
        If the numbers or names of the columns differ.
    TypeError
        If the kinds cannot be joined, such as a data frame and an array.

    Examples
    --------
    >>> from skactive._containers import concatenate
    >>> concatenate(["a", "b"], ("c",))
    ['a', 'b', 'c']
    """
    if sparse.issparse(first) and sparse.issparse(second):
        _check_width(first.shape[1], second.shape[1], name)
        return sparse.vstack([first, second], format="csr")
    if type(first) is type(second) and hasattr(first, "iloc"):
        return _concat_pandas(first, second, name)
    if type(first) is type(second) and type(first).__module__.startswith("polars"):
        return _concat_polars(first, second, name)
    if isinstance(first, np.ndarray) and isinstance(second, list | tuple):
        dtype = None if first.dtype.kind in "fiub" else object
        try:
            second = np.asarray(second, dtype=dtype)
        except ValueError as exc:
            raise ValueError(
                f"{name!r} must hold rows of numbers of one length, as before. {exc}"
            ) from exc
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        if first.ndim != second.ndim:
            _refuse(first, second, name)
        if first.ndim > 1:
            _check_width(first.shape[1:], second.shape[1:], name)
        return np.concatenate([first, second])
    if isinstance(first, list | tuple) and isinstance(second, np.ndarray):
        second = second.tolist()
    if _dimensions(first) == _dimensions(second) == 1:
        return [*_rows(first), *_rows(second)]
    _refuse(first, second, name)


def _concat_pandas(first, second, name):
    import pandas as pd

    if first.ndim == 2 and list(first.columns) != list(second.columns):
        raise ValueError(
            f"the columns of {name!r} differ from those seen before: expected "
            f"{list(first.columns)}, got {list(second.columns)}."
        )
    return pd.concat([first, second])


def _concat_polars(first, second, name):
    import polars as pl

    if isinstance(first, pl.Series):  # joined whatever they are called
        return pl.concat([first, second.alias(first.name)])
    if first.columns != second.columns:
        raise ValueError(
            f"the columns of {name!r} differ from those seen before: expected "
            f"{first.columns}, got {second.columns}."
        )
    return pl.concat([first, second], how="vertical_relaxed")


def _dimensions(X):
    """Count dimensions; a list of lists of numbers, or of pairs, has one of rows."""
    return getattr(X, "ndim", None) or len(getattr(X, "shape", (0,)))


def _rows(X):
    return X.to_list() if hasattr(X, "to_list") else list(X)


def _check_width(expected, got, name):
    if expected != got:
        raise ValueError(
            f"{name!r} has another number of columns than before: expected "
            f"{expected}, got {got}."
        )


def _refuse(first, second, name):
    raise TypeError(
        f"{name!r} came as {_describe(first)} before and comes as {_describe(second)} "
        "now. Pass the same kind of container each time."
    )


def _describe(X):
    shape = getattr(X, "shape", None)
    kind = f"{type(X).__module__.split('.')[0]}.{type(X).__name__}"
    return kind if shape is None else f"{kind} of shape {tuple(shape)}"
