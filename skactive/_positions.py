"""Check positions: those a user passes in and those a strategy gives back."""

from __future__ import annotations

import numpy as np

from ._sklearn import num_samples

__all__ = ["as_positions", "check_picks", "count_items"]


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


def as_positions(candidates, n_pool, *, name="candidates"):
    """Read positions from indices or a boolean mask.

    Parameters
    ----------
    candidates : array-like of int or of bool
        Positions in the pool, or a mask over it.
    n_pool : int
        Size of the pool.
    name : str, default="candidates"
        What to call the argument in error messages.

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
    given = np.asarray(candidates)
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
        positions = given.astype(np.intp)
        outside = positions[(positions < 0) | (positions >= n_pool)]
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
        raise ValueError(
            f"{name!r} is empty: nothing is left to ask about. Stop the loop, or bring "
            "more items."
        )
    return positions


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
