"""Read texts and pairs of texts from every usual container; refuse other items."""

from contextlib import contextmanager
from traceback import walk_tb

import numpy as np

from ._checks import refuse_surrogates as refuse_surrogates
from ._containers import (
    NothingToAskError,
    as_container,
    concatenate,
    count_items,
    refuse_unordered,
    take_rows,
)
from ._format import brief, list_some
from ._sklearn import explain_unreadable, num_samples

_HINT = "Pass a sequence of str, or of (str, str) pairs."
_ALL_LABELED = (
    "nothing is left to ask about: every candidate is a text with a label. Stop the "
    "loop, or pass more texts."
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
    _refuse(items, name)


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
def name_bad_texts(X, *, in_strategy=False):
    """Name `X`, and its items that are not texts, in an error of an estimator.

    In a strategy, only errors raised in scikit-learn count as errors of the estimator.
    """
    try:
        yield
    except (AttributeError, TypeError, ValueError) as exc:
        is_sequence = isinstance(X, list | tuple) or getattr(X, "ndim", 0) == 1
        items = _items(X, "X") if is_sequence else []
        n_texts = sum(isinstance(item, str) for item in items)
        if 0 < n_texts < len(items):
            try:
                as_texts(X)
            except TypeError as cause:
                raise cause from exc
        explain_unreadable(exc, "X")
        if in_strategy and not _raised_in_sklearn(exc):
            raise
        if isinstance(exc, AttributeError) and not isinstance(exc, ValueError):
            raise TypeError(
                "'X' must hold items that the estimator takes; with these, it raised "
                f"AttributeError: {exc}."
            ) from exc
        if "'X'" not in str(exc):
            exc.add_note("This was raised while an estimator worked on 'X'.")
        raise


def _raised_in_sklearn(exc):
    """Whether the innermost frame of an error is in scikit-learn."""
    frames = [frame for frame, _ in walk_tb(exc.__traceback__)]
    return frames[-1].f_globals.get("__name__", "").startswith("sklearn.")


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
    columns = getattr(X, "column_names", getattr(X, "columns", None))  # of pyarrow
    if columns is None:
        return f"{name}[:, 0]"
    return f"{name}[{brief(columns[0])}]" if len(columns) else f"{name}['text']"


def _is_pair(item):
    is_sequence = isinstance(item, tuple | list | np.ndarray) and len(item) == 2
    return is_sequence and isinstance(item[0], str) and isinstance(item[1], str)


def _refuse(items, name):
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
