"""Distances to a set that grows, kept up to date from one query to the next."""

from functools import partial

import numpy as np

from .._utils._chunks import (
    LazyRows,
    chunk_size,
    chunks,
    float_rows,
    lazy_rows,
    map_chunks,
)
from ._distances import paired_distances, rounding, squared_norms
from ._k_center import ReadyRows
from ._neighbors import nearest

CENTERS = 1024  # columns of a block of the distance matrix
FEW = 16  # of them, for which reading takes longer than multiplying


class NearestDistances:
    """Squared distance of each row to the nearest of some centres.

    What was computed for the same rows and the first of the same centres is used
    again. Whether they are the same is seen from their numbers, not from where they
    are stored: each row has a fingerprint. Nothing is changed in place, so an object
    may be shared by threads.

    Parameters
    ----------
    metric : {"euclidean", "cosine"}, default="euclidean"

    Attributes
    ----------
    distances : ndarray of float64, shape (n,)
        For the rows of the last `update`, from the differences themselves.

    Notes
    -----
    An update costs O(n d) for the fingerprints and O(n b d) for b new centres, by
    matrix products that tell which distances have to be computed exactly.

    The fingerprint of a row is the sum of its numbers' bits, which any change of one
    number changes, and its product with a random vector, which a change of several
    changes unless it is within rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._incremental import NearestDistances
    >>> X, centers = np.array([[0.0], [2.0], [9.0]]), np.array([[1.0], [8.0]])
    >>> kept = NearestDistances().update(X, np.arange(3), centers[:1])
    >>> kept.distances
    array([ 1.,  1., 64.])
    >>> kept.update(X[1:], np.array([1, 2]), centers).distances
    array([1., 1.])
    """

    def __init__(self, metric="euclidean"):
        self.metric = metric
        self.positions = np.empty(0, dtype=np.intp)
        self.kind = self.prints = self.center_prints = None
        self.distances = np.empty(0)

    def update(self, X, positions, centers, n_jobs=1):
        """Give the distances of some rows to all centres.

        Parameters
        ----------
        X : ndarray or LazyRows of shape (n, d)
        positions : ndarray of int, shape (n,)
            What to know the rows by at the next update, such as their positions in a
            pool. Rows that are not named now are forgotten.
        centers : ndarray or LazyRows of shape (m, d), m at least 1
        n_jobs : int, default=1
            Threads.

        Returns
        -------
        updated : NearestDistances
            Another object.
        """
        new = type(self)(self.metric)
        new.kind = X.shape[1], X.dtype, centers.dtype
        new.positions, n = positions, len(positions)
        new.prints, new.center_prints = fingerprints(X), fingerprints(centers)
        new.distances = np.full(n, np.inf)
        n_known = self._count_known(new)
        fresh = np.ones(n, dtype=bool)
        if n_known:
            place = known_rows(self.positions, self.prints, positions, new.prints)
            fresh = place < 0
            new.distances[~fresh] = self.distances[place[~fresh]]
        X, centers = float_rows(X), float_rows(centers)
        ready = ReadyRows(centers, self.metric)
        if fresh.any():
            _lower(new.distances, X, np.flatnonzero(fresh), centers, ready, n_jobs)
        if n_known < len(centers) and not fresh.all():
            added = centers[n_known:]
            _lower(new.distances, X, np.flatnonzero(~fresh), added, ready, n_jobs)
        return new

    def _count_known(self, new):
        """Count the centres that the kept distances know: all of the last, or none."""
        if self.kind != new.kind:
            return 0
        n = len(self.center_prints)
        return n if np.array_equal(self.center_prints, new.center_prints[:n]) else 0


def known_rows(keys, prints, new_keys, new_prints):
    """Find rows again.

    Parameters
    ----------
    keys, new_keys : ndarray of int, shapes (n,) and (m,)
        What rows are known by; each once.
    prints, new_prints : ndarray, shapes (n, 2) and (m, 2)
        Their `fingerprints`.

    Returns
    -------
    places : ndarray of int, shape (m,)
        Where each new row was among the old ones; -1 where it was not, or changed.
    """
    size = 1 + max(keys.max(initial=0), new_keys.max(initial=0))
    places = np.full(size, -1)
    places[keys] = np.arange(len(keys))
    places = places[new_keys]
    known = places >= 0
    known[known] = (prints[places[known]] == new_prints[known]).all(axis=1)
    return np.where(known, places, -1)


def fingerprints(X):
    """Make two numbers for each row that tell a changed one.

    Parameters
    ----------
    X : ndarray or LazyRows of shape (n, d)

    Returns
    -------
    prints : ndarray of uint64, shape (n, 2)
    """
    n, d = X.shape
    vector = np.random.default_rng(0).standard_normal(d)
    prints = np.empty((n, 2), dtype=np.uint64)

    def fill(rows):
        part, places = _read(X, rows)
        bits = part.view(f"u{part.itemsize}").sum(axis=1, dtype=f"u{part.itemsize}")
        floats = part if part.dtype in (np.float32, np.float64) else part.astype(float)
        # Unlike a product by BLAS, it does not depend on what other rows there are.
        product = np.einsum("ij,j->i", floats, vector.astype(floats.dtype))
        prints[rows, 0] = bits[places]
        prints[rows, 1] = product[places].astype(np.float64).view(np.uint64)

    map_chunks(fill, n, chunk_size(16 * d, 2**24))
    return prints


def _lower(distances, X, positions, centers, ready, n_jobs):
    """Lower the distances of some rows by those to some centres, in place."""
    if len(positions) < len(X):
        X = lazy_rows(X, positions, least=0)
    for part in chunks(len(centers), CENTERS):
        near = ready(centers[part])
        task = partial(
            _lower_block, distances, X, positions, centers[part], near, ready
        )
        size = chunk_size(X.itemsize * X.shape[1] + 16 * len(near), 2**22)
        map_chunks(task, len(positions), size, n_jobs)


def _lower_block(distances, X, positions, centers, near, ready, rows):
    # Rows between are read as well, but not multiplied with many centres.
    left, places = _read(X, rows) if len(near) <= FEW else (X[rows], slice(None))
    shifted = ready(left)
    lengths = squared_norms(shifted)[:, None]
    norms = squared_norms(near)
    block = shifted @ (-2 * near).T
    block += norms
    block += lengths
    block, wrong = (
        block[places],
        rounding(shifted, near) * (lengths + norms.max())[places],
    )
    mine = distances[positions[rows]]
    # It is no more than this; what is surely above need not be computed.
    limit = np.minimum(mine[:, None], block.min(axis=1, keepdims=True) + wrong)
    i, j = np.nonzero(block <= limit + wrong)
    exact = paired_distances(
        left,
        centers,
        np.arange(len(left))[places][i],
        j,
        prepare=lambda rows: ready.scale(rows, np.float64),
    )
    np.minimum.at(mine, i, exact)
    distances[positions[rows]] = mine


def _read(X, rows):
    return X.around(rows) if isinstance(X, LazyRows) else (X[rows], slice(None))


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
        See `nearest`.

    Attributes
    ----------
    distances : ndarray of shape (m, min(k, n))
        Of the last `update`; Euclidean, ascending.
    indices : ndarray of int, shape (m, min(k, n))
        Rows of the candidates then given.

    Notes
    -----
    An update costs O(n d) for the fingerprints by which rows are known again (see
    `NearestDistances`), O(m k) to look up who is left, and
    O(n d) for each row that is searched for. Memory: O(m k).

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._incremental import NearestCandidates
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
