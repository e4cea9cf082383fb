"""Items in containers of any kind: take, join and count them; read texts."""

import re
from collections.abc import Mapping, Set
from contextlib import contextmanager
from traceback import walk_tb

import numpy as np
from scipy import sparse

from ._checks import refuse_surrogates as refuse_surrogates
from ._format import brief, list_some
from ._sklearn import explain_unreadable, num_samples, safe_indexing

FEW_OF_BLOCK = 16  # rows of a block, below which the rest of it is not computed
_HINT = "Pass a sequence of str, or of (str, str) pairs."
_ALL_LABELED = (
    "nothing is left to ask about: every candidate is a text with a label. Stop the "
    "loop, or pass more texts."
)


class NothingToAskError(ValueError):
    """No candidate is left."""


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
    rows = take_rows(X, np.arange(num_samples(X)))
    return protect(rows) if isinstance(rows, list) else rows


def protect(X):
    """Return `X`, or a copy of a container that could be changed, such as a list."""
    if isinstance(X, list):
        return [row.copy() if type(row) is list else row for row in X]
    copy = getattr(X, "copy", getattr(X, "clone", None))  # pandas, scipy; polars
    return X if copy is None else copy()


def concatenate(first, second, *, name="X"):
    """Return the rows of `first` and `second` in a container of the kind of `first`.

    Two different one-dimensional containers of texts become a list. `name` is the
    argument in error messages. Raise a ValueError for different columns, and a
    TypeError for kinds that cannot be joined.
    """
    second = np.asarray(second) if is_dask(second) else second
    if (joined := _join_rows(first, second)) is not None:
        return joined
    check_alike(first, second, name)
    if sparse.issparse(first) and sparse.issparse(second):
        return sparse.vstack([first, second], format="csr")
    if type(first) is type(second) and hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second])
    if type(first) is type(second) and type(first).__module__.startswith("polars"):
        return _concat_polars(first, second)
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
        check_alike(first, second, name)  # a list is an array now
        return np.concatenate([first, second])
    if isinstance(first, list | tuple) and isinstance(second, np.ndarray):
        second = second.tolist()
    if _dimensions(first) == _dimensions(second) == 1:
        return [*_rows(first), *_rows(second)]
    _refuse(first, second, name)


def _join_rows(first, second):
    """Return the rows of two TextPools of one file in a TextPool, else None."""
    return first.join_rows(second) if hasattr(first, "join_rows") else None


def _concat_polars(first, second):
    import polars as pl

    if isinstance(first, pl.Series):  # joined whatever they are called
        return pl.concat([first, second.alias(first.name)])
    return pl.concat([first, second], how="vertical_relaxed")


def list_columns(X):
    """Return the names of the columns of a data frame in a list, else an empty one."""
    return list(getattr(X, "column_names", getattr(X, "columns", ())))  # of pyarrow


def check_columns(expected, columns, name):
    """Raise a ValueError unless the names of columns are as before, in order."""
    if columns != expected:
        raise ValueError(
            f"the columns of {name!r} differ from those seen before: expected "
            f"{expected}, got {columns}. Pass the same columns in the same order."
        )


def check_alike(expected, X, name="X"):
    """Raise a ValueError for other columns in two tables, or in two arrays."""
    columns = list_columns(expected), list_columns(X)
    widths = [getattr(rows, "shape", ())[1:] for rows in (expected, X)]
    if all(columns):
        check_columns(*columns, name)
    elif all(widths) and not any(columns) and widths[0] != widths[1]:
        raise ValueError(
            f"{name!r} has another number of columns than before: expected "
            f"{widths[0]}, got {widths[1]}."
        )


def _dimensions(X):
    """Return the number of dimensions; 1 for a list of lists."""
    return getattr(X, "ndim", None) or len(getattr(X, "shape", (0,)))


def _rows(X):
    return X.to_list() if hasattr(X, "to_list") else list(X)


def _refuse(first, second, name):
    raise TypeError(
        f"{name!r} came as {_describe(first)} before and comes as {_describe(second)} "
        "now. Pass the same kind of container each time."
    )


def _describe(X):
    shape = getattr(X, "shape", None)
    kind = f"{type(X).__module__.split('.')[0]}.{type(X).__name__}"
    return kind if shape is None else f"{kind} of shape {tuple(shape)}"


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
    _check_known_size(X, name)
    if not getattr(getattr(X, "columns", None), "is_unique", True):
        raise ValueError(
            f"{name!r} must have columns of different names, got "
            f"{brief(list(X.columns))}. Rename them."
        )
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


def is_dask(X):
    """Whether `X` is a dask array (n, d) of numbers. dask is not imported."""
    if not hasattr(X, "__dask_graph__") or not hasattr(X, "rechunk"):
        return False
    return X.ndim == 2 and X.dtype.kind in "fiub"


def _check_known_size(X, name):
    """Raise a ValueError for a dask array of unknown shape."""
    shape = getattr(X, "shape", None) if hasattr(X, "__dask_graph__") else None
    if isinstance(shape, tuple) and any(isinstance(size, float) for size in shape):
        raise ValueError(
            f"{name!r} must be a dask array of known size, got the shape {shape}. Call "
            f"{name}.compute_chunk_sizes() first."
        )


def as_texts(X, *, name="X"):
    """Return texts, or pairs of texts, of any container as a list of str or tuples.

    Pairs are two-element tuples or lists, or the two columns of an array or data frame.
    `name` is the argument in error messages. Raise a TypeError for a `str`, for
    containers without an order and for items that are not texts, with their positions;
    a ValueError for an empty container or another shape.
    """
    items = _items(X, name)
    if not items:
        raise ValueError(
            f"{name!r} holds no texts: found 0 sample(s) while a minimum of 1 is "
            f"required. {_HINT}"
        )
    # Types are compared as a set: one pass in C, which is what makes a second
    # look at a large, already encoded pool cheap.
    types = set(map(type, items))
    if types == {str}:
        return items
    if all(issubclass(t, str) for t in types):  # numpy.str_
        return [str(item) for item in items]
    if all(map(_is_pair, items)):
        return [(str(first), str(second)) for first, second in items]
    _refuse_items(items, name)


def refuse_lone_texts(X, *, name="X"):
    """Raise a TypeError for a sequence of which only some items are texts, or pairs."""
    if hasattr(X, "hashes"):  # a pool in a file holds texts, and is not read
        return
    if isinstance(X, list | tuple) or len(getattr(X, "shape", ())) == 1:
        for item in (items := _items(X, name)):
            if isinstance(item, str) or (isinstance(item, tuple) and _is_pair(item)):
                as_texts(items, name=name)
                break


def drop_known_texts(X, candidates, X_labeled=None):
    """Return the candidates without labeled texts and without repeated texts.

    `candidates` (c,) are positions in `X`; None means all. They are returned unchanged
    if nothing is dropped, or if `X` holds no texts. Raise NothingToAskError if none is
    left.
    """
    if hasattr(X, "drop_known"):  # a TextPool, which compares hashes
        kept = X.drop_known(candidates, X_labeled)
        if kept is not None and len(kept) == 0:
            raise NothingToAskError(_ALL_LABELED)
        return kept
    texts = _find_texts(X, candidates)
    if texts is None:
        return candidates
    known = _find_texts(X_labeled) or []
    distinct = set(texts)
    if len(distinct) == len(texts) and distinct.isdisjoint(known):
        return candidates
    # The first of equal texts is the last to be written.
    first = dict(zip(reversed(texts), range(len(texts) - 1, -1, -1), strict=True))
    for text in known:
        first.pop(text, None)
    if not first:
        raise NothingToAskError(_ALL_LABELED)
    kept = np.sort(np.fromiter(first.values(), np.intp, len(first)))
    return kept if candidates is None else candidates[kept]


def read_unlabeled(X_unlabeled, X):
    """Return unlabeled items without the texts that are in `X`, or None for no items.

    Raise a TypeError or ValueError for items of another kind than those of `X`.
    """
    if X_unlabeled is None:
        return None
    pool = as_container(X_unlabeled)
    refuse_unordered(pool, "X_unlabeled")
    if hasattr(pool, "__len__") and num_samples(pool) == 0:
        return None
    n = count_items(pool, name="X_unlabeled")
    first = take_rows(pool, np.arange(1))
    if (_find_texts(X) is None) != (_find_texts(first) is None):
        raise TypeError(
            "'X_unlabeled' must hold items of the kind of 'X', got texts for one of "
            "them only. Pass the pool as it is passed to query."
        )
    concatenate(X, first, name="X_unlabeled")
    try:
        rows = drop_known_texts(pool, np.arange(n), X)
    except NothingToAskError:
        return None
    return pool if len(rows) == n else take_rows(pool, rows)


def _find_texts(X, positions=None):
    """Return the items at some positions, or None unless all are texts or pairs."""
    is_numeric = getattr(getattr(X, "dtype", None), "kind", "O") in "fiubc"
    if X is None or is_numeric:
        return None
    try:
        as_texts(take_rows(X, np.arange(1)))  # a look at one is cheap
        return as_texts(X if positions is None else take_rows(X, positions))
    except (TypeError, ValueError):
        return None


@contextmanager
def name_bad_texts(X, *, in_strategy=None):
    """Name `X`, and its items that are not texts, in an error of an estimator.

    In a strategy, whose name is given, only errors raised in scikit-learn count as
    errors of the estimator, and one that changes its view is named.
    """
    try:
        yield
    except (AttributeError, TypeError, ValueError) as exc:
        if in_strategy and (fault := describe_write(exc)):
            raise ValueError(f"strategy {in_strategy!r} {fault}") from exc
        try:
            refuse_lone_texts(X)
        except TypeError as cause:
            raise cause from exc
        explain_unreadable(exc, "X")
        if in_strategy and not _modules(exc)[-1].startswith("sklearn."):
            raise
        if isinstance(exc, AttributeError) and not isinstance(exc, ValueError):
            raise TypeError(
                "'X' must hold items that the estimator takes; with these, it raised "
                f"AttributeError: {exc}."
            ) from exc
        if "'X'" not in str(exc):
            exc.add_note("This was raised while an estimator worked on 'X'.")
        raise


def _modules(exc):
    """Return the name of the module of each frame of an error."""
    frames = walk_tb(exc.__traceback__)
    return [frame.f_globals.get("__name__", "") for frame, _ in frames]


def describe_write(exc):
    """Return how a strategy changed its view, which raised an error, or "".

    "" also for an error of the model while the view computes a quantity.
    """
    is_write = re.search(r"(is read-only|View' object has no setter)$", str(exc))
    if not is_write or any(m.startswith("skactive.view") for m in _modules(exc)):
        return ""
    remedy = "Work on a copy, such as np.array(view.proba)."
    return f"changes its view, which others share ({exc}). {remedy}"


def _items(X, name):
    """Return the rows of `X` as a list of strings or of sequences of two strings."""
    if isinstance(X, str | bytes):
        raise TypeError(
            f"{name!r} must be a sequence of texts, got a single {type(X).__name__}. "
            f"Wrap it in a list: [{name}]."
        )
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2:
        if shape[1] != 2:
            raise ValueError(
                f"{name!r} must be one-dimensional texts or two columns of text "
                f"pairs, got {type(X).__name__} of shape {tuple(shape)}. Pass one "
                f"column, such as {_column_hint(X, name)}."
            )
        if hasattr(X, "columns"):  # pandas or polars: a frame iterates its columns
            first, second = (X[column].to_numpy() for column in X.columns)
            return list(zip(first.tolist(), second.tolist(), strict=True))
        return [tuple(row) for row in np.asarray(X).tolist()]
    if shape is not None and len(shape) != 1:
        raise ValueError(
            f"{name!r} must be one-dimensional texts or two columns of text pairs, "
            f"got {type(X).__name__} of shape {tuple(shape)}. {_HINT}"
        )
    if isinstance(X, list | tuple):
        return list(X)
    # Of pandas and polars, pyarrow and NumPy.
    for name_of_list in ("to_list", "to_pylist", "tolist"):
        if hasattr(X, name_of_list):
            return getattr(X, name_of_list)()
    if hasattr(X, "batches"):  # a TextPool
        return [text for texts in X.batches() for text in texts]
    if hasattr(X, "__len__") and hasattr(X, "__getitem__") and not isinstance(X, dict):
        return [X[i] for i in range(len(X))]
    raise TypeError(
        f"{name!r} must be a sequence of texts, got {type(X).__name__}. {_HINT}"
    )


def _column_hint(X, name):
    if not hasattr(X, "columns"):
        return f"{name}[:, 0]"
    columns = list_columns(X)
    return f"{name}[{brief(columns[0])}]" if len(columns) else f"{name}['text']"


def _is_pair(item):
    is_sequence = isinstance(item, tuple | list | np.ndarray) and len(item) == 2
    return is_sequence and isinstance(item[0], str) and isinstance(item[1], str)


def _refuse_items(items, name):
    """Raise a TypeError that names the first positions of wrong items.

    These are the items that are no texts, or no pairs where most texts are in pairs.
    """
    texts = [isinstance(item, str) for item in items]
    pairs = list(map(_is_pair, items))
    good, expected, other = texts, "a str", "a pair of str"
    if sum(pairs) > sum(texts):
        good, expected, other = pairs, other, expected
    bad = [i for i, is_good in enumerate(good) if not is_good]
    shown = list_some(bad, show=lambda i: f"{i} ({type(items[i]).__name__})")
    raise TypeError(
        f"every item of {name!r} must be {expected}, or every item {other}; got "
        f"something else at {len(bad)} of {len(items)} positions: {shown}. "
        "Drop or fill missing texts; an empty string is allowed."
    )


class BlockRows:
    """Rows of a dask array as ndarrays. The block that was read last is kept.

    So a block is computed once, though slices of it are read one after the other.
    """

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype
        self._stops = np.cumsum(X.chunks[0])
        self._last = None, None  # a block's number and rows

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._read_slice(start, stop)
            key = range(start, stop, step)
        key = np.asarray(key)
        if key.ndim == 0:
            return self[key[None]][0]
        positions = np.flatnonzero(key) if key.dtype == bool else key.astype(np.intp)
        rows, places = np.unique(positions % len(self), return_inverse=True)
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            return self._read_slice(rows[0], rows[-1] + 1)[places]
        return self._read_rows(rows)[places]

    def _read_slice(self, start, stop):
        if start >= stop:
            return np.empty((0, self.shape[1]), self.dtype)
        first, last = np.searchsorted(self._stops, [start, stop - 1], side="right")
        if first == last != self._last[0] and stop - start < FEW_OF_BLOCK:
            return self._compute(slice(start, stop))
        parts = []
        for number in range(first, last + 1):
            begin, block = self._read_block(number)
            parts.append(block[max(start - begin, 0) : stop - begin])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _read_rows(self, rows):
        """Return rows at ascending positions (p,)."""
        numbers = np.searchsorted(self._stops, rows, side="right")
        touched = np.unique(numbers)
        if len(rows) < FEW_OF_BLOCK * len(touched):
            return self._compute(rows)
        found = np.empty((len(rows), self.shape[1]), self.dtype)
        for number in touched:
            begin, block = self._read_block(number)
            mine = numbers == number
            found[mine] = block[rows[mine] - begin]
        return found

    def _read_block(self, number):
        """Return the position of a block's first row, and its rows."""
        stop = self._stops[number]
        start = stop - self.X.chunks[0][number]
        known, rows = self._last  # one reference, as threads replace it
        if known != number:
            rows = self._compute(slice(start, stop))
            self._last = number, rows
        return start, rows

    def _compute(self, key):
        rows = np.asarray(np.asarray(self.X[key]), self.dtype, order="C").view()
        rows.flags.writeable = False  # it may be the array that the user has
        return rows
