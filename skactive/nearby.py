"""Nearest candidates of some rows, kept up to date from one query to the next."""

from __future__ import annotations

import numpy as np

from .neighbors import nearest
from .tracking import fingerprints, known_rows

__all__ = ["NearestCandidates"]


class NearestCandidates:
    """The k candidates nearest to each of some rows, as candidates are taken away.

    For each row a few more than `k` are kept. While `k` of them are left, they are
    the nearest still; only rows that ran short, and new ones, are searched for again.
    A candidate that is new, or whose numbers changed, begins everything anew: it might
    be near to any row. Nothing is changed in place, so an object may be shared by
    threads.

    Parameters
    ----------
    k : int
        At least 1.
    method : {"exact", "faiss", "auto"}, default="exact"
        See :func:`skactive.neighbors.nearest`.

    Attributes
    ----------
    distances : ndarray of shape (m, min(k, n))
        Of the last `update`; Euclidean, ascending.
    indices : ndarray of int, shape (m, min(k, n))
        Rows of the candidates then given.

    Notes
    -----
    An update costs O(n d) for the fingerprints by which rows are known again (see
    :class:`skactive.tracking.NearestDistances`), O(m k) to look up who is left, and
    O(n d) for each row that is searched for. Memory: O(m k).

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.nearby import NearestCandidates
    >>> X, positions = np.array([[0.0], [2.0], [5.0], [9.0]]), np.arange(4)
    >>> kept = NearestCandidates(2).update(X, positions, np.array([[1.5]]))
    >>> kept.indices
    array([[1, 0]])
    >>> kept.update(X[1:], positions[1:], np.array([[1.5]])).indices
    array([[0, 1]])
    """

    def __init__(self, k, method="exact"):
        self.k, self.method = k, method
        self.positions = np.empty(0, dtype=np.intp)
        self.kind = self.prints = self.row_keys = self.row_prints = None
        self.distances = self.indices = None
        self._far = self._near = None  # (m, k + spare): distances, pool positions

    def update(self, X, positions, rows=None, n_jobs=1):
        """Find the candidates nearest to some rows.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            The candidates, at least one.
        positions : ndarray of int, shape (n,)
            What to know them by at the next update, such as their positions in a pool.
        rows : ndarray of shape (m, d) or None, default=None
            Whose neighbours are wanted. None takes the candidates themselves, each
            without itself; other rows equal to it are neighbours.
        n_jobs : int, default=1
            Threads.

        Returns
        -------
        updated : NearestCandidates
            Another object.
        """
        new = type(self)(self.k, self.method)
        itself = rows is None
        new.kind = itself, X.shape[1], X.dtype, None if itself else rows.dtype
        new.positions, new.prints = positions, fingerprints(X)
        if itself:
            rows, new.row_keys, new.row_prints = X, positions, new.prints
        else:
            new.row_keys, new.row_prints = np.arange(len(rows)), fingerprints(rows)
        m, n = len(rows), len(X) - itself
        size = 1 + max(positions.max(initial=0), self.positions.max(initial=0))
        place = np.full(size, -1)
        place[positions] = np.arange(len(positions))

        width = min(self.k + 8 + self.k // 2, n)
        new._far, new._near = np.empty((m, width)), np.full((m, width), -1)
        short = self._reuse(new, place, min(self.k, n))
        if short.size:
            far, near = _search(
                rows, short, X, width, positions, itself, self.method, n_jobs
            )
            new._far[short], new._near[short] = far, near
        new._answer(place, min(self.k, n))
        return new

    def _reuse(self, new, place, k):
        """Copy the lists that are long enough still; say which rows have none."""
        everything = np.arange(len(new.row_keys))
        if self.kind != new.kind:
            return everything
        old = known_rows(self.positions, self.prints, new.positions, new.prints)
        if (old < 0).any():
            return everything
        old = known_rows(self.row_keys, self.row_prints, new.row_keys, new.row_prints)
        mine = np.flatnonzero(old >= 0)
        near, far = self._near[old[mine]], self._far[old[mine]]
        near[place[near] < 0] = -1
        enough = (near >= 0).sum(axis=1) >= k
        mine, near, far = mine[enough], near[enough], far[enough]
        if new._near.shape[1] < near.shape[1]:  # fewer candidates than were kept
            near, far = _first(near >= 0, k, near, far)
        new._near[mine, : near.shape[1]] = near
        new._far[mine, : far.shape[1]] = far
        return np.setdiff1d(everything, mine, assume_unique=True)

    def _answer(self, place, k):
        near, self.distances = _first(self._near >= 0, k, self._near, self._far)
        self.indices = place[near]


def _first(chosen, k, *arrays):
    """Take the first k chosen numbers of each row."""
    chosen &= chosen.cumsum(axis=1) <= k
    return tuple(array[chosen].reshape(len(array), k) for array in arrays)


def _search(rows, wanted, X, width, positions, itself, method, n_jobs):
    """Distances and pool positions of the candidates nearest to the wanted rows."""
    far, near = nearest(rows[wanted], X, width + itself, method=method, n_jobs=n_jobs)
    if itself:  # not among them where many equal rows come before it
        other = near != wanted[:, None]
        other[other.all(axis=1), -1] = False
        near, far = _first(other, width, near, far)
    return far, positions[near]
