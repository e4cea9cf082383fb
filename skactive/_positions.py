"""Check positions: those a user passes in and those a strategy gives back."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from ._containers import as_container, refuse_unordered
from ._sklearn import num_samples

__all__ = [
    "NothingToAskError",
    "as_positions",
    "check_n_queries",
    "check_picks",
    "count_items",
    "read_items",
]


class NothingToAskError(ValueError):
    """No candidate is left."""


def count_items(X, *, name="X"):
    """Count the items of a pool.

    Parameters
    ----------
    X : container of n items
    name : str, default="X"
        Name of the argument in error messages.

    Returns
    -------
    n : int

    Raises
    ------
    TypeError
        If `X` is a single text or no container.
    ValueError
        If it is empty.
    """
    if isinstance(X, str | bytes):
        raise TypeError(
            f"{name!r} must be a sequence of items, got a single {type(X).__name__}. "
            f"Wrap it in a list: [{name}]."
        )
    refuse_unordered(X, name)
    try:
        n = num_samples(X)
    except TypeError as exc:
        raise TypeError(
            f"{name!r} must be a sequence of items, got {X!r}. {exc}."
        ) from exc
    if n == 0:
        raise ValueError(
            f"{name!r} holds no items: found array with 0 sample(s) while a minimum of "
            "1 is required."
        )
    return n


def read_items(X):
    """Return a container of items that can be indexed, and how many it holds."""
    X = as_container(X)
    return X, count_items(X)


def check_n_queries(n_queries, default):
    """Check how many items are asked for; None means `default`."""
    if n_queries is None:
        return default
    if not isinstance(n_queries, Integral) or isinstance(n_queries, bool):
        raise TypeError(f"'n_queries' must be an int, got {n_queries!r}.")
    if n_queries <= 0:
        raise ValueError(f"'n_queries' must be at least 1, got {n_queries}.")
    return int(n_queries)


def as_positions(candidates, n_pool, *, name="candidates", X=None):
    """Read positions from indices or a boolean mask.

    Parameters
    ----------
    candidates : array-like of int or of bool
        Positions in the pool, or a mask over it.
    n_pool : int
        Size of the pool.
    name : str, default="candidates"
        What to call the argument in error messages.
    X : container of n_pool items or None, default=None
        The pool. A pandas index is accepted only where its labels are the positions.

    Returns
    -------
    positions : ndarray of int

    Raises
    ------
    TypeError
        If they are neither.
    ValueError
        If a mask has another length, an index is out of range or stands twice, or
        nothing is left.

    Examples
    --------
    >>> from skactive._positions import as_positions
    >>> as_positions([False, True, True], 3)
    array([1, 2])
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


def check_picks(picks, n, n_candidates, name):
    """Check what a strategy chose, before a user sees it.

    Parameters
    ----------
    picks : array-like of int
        What `select` returned.
    n : int
        How many were asked for.
    n_candidates : int
        Out of how many.
    name : str
        The strategy's name, for the errors.

    Returns
    -------
    picks : ndarray of int, shape (n,)

    Raises
    ------
    ValueError
        If they are not n different positions in the view.
    """
    picks = np.asarray(picks if hasattr(picks, "__len__") else list(picks))
    fault = None
    if picks.ndim != 1 or picks.dtype.kind not in "iu":
        fault = f"an array of shape {picks.shape} and dtype {picks.dtype}"
    elif picks.shape[0] != n:
        fault = f"{picks.shape[0]} of them"
    elif ((picks < 0) | (picks >= n_candidates)).any():
        fault = f"{picks[(picks < 0) | (picks >= n_candidates)][0]}"
    elif np.unique(picks).shape[0] != n:
        fault = "a position more than once"
    if fault:
        raise ValueError(
            f"strategy {name!r} must select {n} different positions in "
            f"[0, {n_candidates}), got {fault}. Repair its select(view, n)."
        )
    return picks.astype(np.intp)
