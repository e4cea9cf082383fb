"""Positions in a pool: candidates, numbers of queries, what a strategy picks."""

from numbers import Integral

import numpy as np

from ._containers import NothingToAskError, refuse_unordered


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
