"""Rows of containers of any kind: take, join and count them; check positions."""

from collections.abc import Mapping, Set
from numbers import Integral

import numpy as np
from scipy import sparse

from ._chunks import BlockRows, check_known_size, is_dask
from ._format import brief
from ._sklearn import num_samples, safe_indexing


def as_container(X):
    """Return `X`; a pyarrow array, which scikit-learn cannot index, as a list."""
    is_arrow_array = hasattr(X, "to_pylist") and not hasattr(X, "schema")
    return X.to_pylist() if is_arrow_array else X


def refuse_unordered(values, name):
    """Raise a TypeError if `values` is a mapping or a set, which have no order."""
    if isinstance(values, Mapping | Set) and not sparse.issparse(values):  # DOK
        what = "list(...)" if isinstance(values, Set) else "list(....values())"
        raise TypeError(
            f"{name!r} must be a sequence with one entry per item, got a "
            f"{type(values).__name__}. Pass a list in the order of the items, such as "
            f"{what.replace('...', name, 1)}."
        )


def as_list(values):
    """Return the values of any container as a list, of Python types where possible."""
    if sparse.issparse(values):
        values = values.toarray()
    elif len(getattr(values, "shape", ())) == 2 and hasattr(values, "to_numpy"):
        values = values.to_numpy()  # a data frame iterates over its columns
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(values, name):
            values = getattr(values, name)()
            return values if isinstance(values, list) else [values]
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def take_rows(X, positions):
    """Return the rows of any container at positions (p,), in a container of its kind.

    A tuple becomes a list, a sparse matrix becomes CSR, a dask array an ndarray. A
    container with a method of this name, such as a TextPool, takes its rows itself.
    """
    if type(X) is type(positions) is np.ndarray:
        return X[positions]
    if hasattr(X, "take_rows"):
        return X.take_rows(positions)
    if sparse.issparse(X):
        return X.tocsr()[positions]  # not every format can be indexed
    if is_dask(X):
        return BlockRows(X)[positions]
    if not hasattr(X, "__getitem__"):
        X = np.asarray(X)
    return safe_indexing(X, positions)


def take_row(X, position):
    """Return one row of any container: a series for pandas, a tuple for polars."""
    if hasattr(X, "iloc"):
        return X.iloc[position]
    if hasattr(X, "row"):  # polars
        return X.row(position)
    return X.tocsr()[[position]] if sparse.issparse(X) else X[position]


def snapshot(X):
    """Return a copy of `X` that later changes by the caller do not affect."""
    if hasattr(X, "take_rows"):  # immutable
        return X
    return take_rows(X, np.arange(num_samples(X)))


def concatenate(first, second, *, name="X"):
    """Return the rows of `first` and `second` in a container of the kind of `first`.

    Two different one-dimensional containers of texts become a list. `name` is the
    argument in error messages. Raise a ValueError for different columns, and a
    TypeError for kinds that cannot be joined.
    """
    second = np.asarray(second) if is_dask(second) else second
    if (joined := _join_rows(first, second)) is not None:
        return joined
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


def _join_rows(first, second):
    """Return the rows of two TextPools of one file in a TextPool, else None."""
    return first.join_rows(second) if hasattr(first, "join_rows") else None


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
    """Return the number of dimensions; 1 for a list of lists."""
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


class NothingToAskError(ValueError):
    """No candidate is left."""


def count_items(X, *, name="X"):
    """Return the number of items of a pool.

    Raise a TypeError for a single text or no container, and a ValueError if it is
    empty.
    """
    if isinstance(X, str | bytes):
        raise TypeError(
            f"{name!r} must be a sequence of items, got a single {type(X).__name__}. "
            f"Wrap it in a list: [{name}]."
        )
    refuse_unordered(X, name)
    check_known_size(X, name)
    try:
        n = num_samples(X)
    except TypeError as exc:
        raise TypeError(
            f"{name!r} must be a sequence of items, got {brief(X)}. {exc}."
        ) from exc
    if n == 0:
        raise ValueError(
            f"{name!r} holds no items: found array with 0 sample(s) while a minimum of "
            "1 is required."
        )
    return n


def read_items(X):
    """Return a container of items that can be indexed, and their number."""
    X = as_container(X)
    return X, count_items(X)


def check_n_queries(n_queries, default, *, name="n_queries"):
    """Return a checked number of queries; `default` for None."""
    if n_queries is None:
        return default
    if not isinstance(n_queries, Integral) or isinstance(n_queries, bool):
        raise TypeError(f"{name!r} must be an int, got {n_queries!r}.")
    if n_queries <= 0:
        raise ValueError(f"{name!r} must be at least 1, got {n_queries}.")
    return int(n_queries)


def as_positions(candidates, n_pool, *, name="candidates", X=None):
    """Return candidates, given as indices or a boolean mask, as positions, (c,) of int.

    A pandas index is accepted only if its labels are the positions in `X`, the pool of
    `n_pool` items. Raise a TypeError for other types, and a ValueError for a mask of
    wrong length, indices out of range or repeated, or no candidate.
    """
    _refuse_labels(candidates, n_pool, name, X)
    refuse_unordered(candidates, name)
    try:
        given = np.asarray(candidates)
    except ValueError as exc:  # a ragged list
        raise TypeError(
            f"{name!r} must be positions in X or a boolean mask over it, got "
            f"{type(candidates).__name__}: {exc}"
        ) from exc
    if given.size == 0 and given.ndim == 1:
        given = given.astype(np.intp)
    if given.ndim != 1 or given.dtype.kind not in "iub":
        raise TypeError(
            f"{name!r} must be positions in X or a boolean mask over it, got an "
            f"array of shape {given.shape} and dtype {given.dtype}."
        )
    if given.dtype.kind == "b":
        if given.shape[0] != n_pool:
            raise ValueError(
                f"{name!r} is a mask over {given.shape[0]} items, and X holds "
                f"{n_pool}. Make the mask as long as X."
            )
        positions = np.flatnonzero(given)
    else:
        outside = given[(given < 0) | (given >= n_pool)]
        positions = given.astype(np.intp)
        if outside.size:
            raise ValueError(
                f"{name!r} must lie in [0, {n_pool}), the positions in X; got "
                f"{outside[0]}" + (f" and {outside.size - 1} more" * (outside.size > 1))
            )
        if np.bincount(positions, minlength=1).max() > 1:
            twice = np.flatnonzero(np.bincount(positions) > 1)
            raise ValueError(
                f"{name!r} names {twice.size} positions more than once, the first "
                f"{twice[0]}. Name each once."
            )
    if positions.size == 0:
        raise NothingToAskError(
            f"{name!r} is empty: nothing is left to ask about. Stop the loop, or pass "
            "more items."
        )
    return positions


def _refuse_labels(candidates, n_pool, name, X):
    """Refuse a pandas index whose labels are not positions."""
    if not hasattr(candidates, "get_indexer"):
        return
    index = getattr(X, "index", None)
    if hasattr(index, "equals") and index.equals(type(index)(range(n_pool))):
        return
    raise TypeError(
        f"{name!r} must be positions in X or a boolean mask over it, got a pandas "
        f"{type(candidates).__name__}, which holds labels of rows. Pass "
        f"X.index.get_indexer({name}), or {name}.to_numpy() if these are positions."
    )


def check_picks(picks, n_queries, n_candidates, name):
    """Return the output of a strategy as positions, (n,) of int.

    Raise a ValueError, with the name of the strategy, unless these are `n` different
    positions below `n_candidates`.
    """
    picks = np.asarray(picks if hasattr(picks, "__len__") else list(picks))
    fault = None
    if picks.ndim != 1 or picks.dtype.kind not in "iu":
        fault = f"an array of shape {picks.shape} and dtype {picks.dtype}"
    elif picks.shape[0] != n_queries:
        fault = f"{picks.shape[0]} of them"
    elif ((picks < 0) | (picks >= n_candidates)).any():
        fault = f"{picks[(picks < 0) | (picks >= n_candidates)][0]}"
    elif np.unique(picks).shape[0] != n_queries:
        fault = "a position more than once"
    if fault:
        raise ValueError(
            f"strategy {name!r} must select {n_queries} different positions in "
            f"[0, {n_candidates}), got {fault}. Repair its select(view, n_queries)."
        )
    return picks.astype(np.intp)
