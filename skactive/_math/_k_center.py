"""Greedy k-center, and nearest distances that are kept from query to query."""

from functools import cached_property, partial
from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import safe_sparse_dot

from .._utils._chunks import (
    LazyRows,
    chunk_size,
    chunks,
    float_rows,
    lazy_rows,
    map_chunks,
)
from ._neighbors import middle, nearest, paired_distances, rounding, squared_norms

ROWS = 1024  # rows of a block of the distance matrix
CENTERS = 1024  # its columns
Metric = Literal["euclidean", "cosine"]
METRICS = ("euclidean", "cosine")
TIE = 2.0**-32  # of a squared distance: smaller differences are ties
NOTHING = 2.0**-1000  # orders copies at random, below every distance


def k_center(
    X, n_queries, rng, *, labeled=None, distances=None, metric="euclidean", n_jobs=1
):
    """Choose n positions, again and again the row farthest from all chosen rows.

    `labeled` (m, d) are chosen at the start, or `distances` (n_candidates,) are the
    known squared distances to them. Without either, the first row is drawn. "cosine"
    scales rows to length 1 in chunks.

    The picks are those of the plain loop that lowers every row's float64 distance after
    each pick. Distances only shrink, so old ones are upper bounds: only a block of the
    farthest rows is kept up to date, and the others are lowered by one product with
    several new centers. Squared distances are equal if they differ by less than 2^-32
    of themselves, or by less than the rounding error of a float64 product with the row.
    """
    start = {"labeled": labeled, "distances": distances}
    search = _FarthestFirst(X, rng, n_queries, metric, n_jobs, **start)
    while len(search.picks) < n_queries:
        search.pick()
    return np.array(search.picks, dtype=np.intp)


class _FarthestFirst:
    """State of the search: bounds for all rows, distances for a block of them."""

    def __init__(self, X, rng, n_picks, metric, n_jobs, *, labeled, distances):
        self.X, self.n_jobs = float_rows(X), n_jobs
        self.labeled = self.X[:0] if labeled is None else float_rows(labeled)
        self.distances = distances  # to centers that are not in `labeled`, or None
        self.ready = ReadyRows(self.X, metric)
        n, d = self.X.shape
        # The row with the highest key is next. Ties are broken by a number drawn
        # in advance, so that they do not depend on the blocks.
        self.priority = (rng.permutation(n) + 1) / (n + 1)
        self.picks, self.pending, self.block = [], [], None
        self.size = min(n, ROWS, chunk_size(8 * d))
        if distances is not None:
            # For a single pick, no row has to be read.
            self.noise = np.zeros(n) if n_picks == 1 else self._bound_noise()
            self.size = min(self.size, max(32, 16 * n_picks))
            self.bounds = distances.copy()
        else:
            if not self.labeled.shape[0]:
                self.picks.append(int(self.priority.argmax()))
            self.noise = self._bound_noise()
            self.bounds = np.full(n, np.inf)
            self.bounds[self.picks] = -np.inf
            for centers in self._centers() if self.size < n else ():
                self._lower(centers)
        self._open_block()

    @cached_property
    def norms(self):
        """Squared lengths of all rows."""
        norms = np.empty(self.X.shape[0])
        for rows in chunks(len(norms), ROWS):
            norms[rows] = squared_norms(self.ready(self.X[rows]))
        return norms

    def _bound_noise(self):
        """Bound the rounding errors of each row's squared distances in float64."""
        return 2 * rounding(self.X, self.X, np.float64) * self.norms

    def _keys(self, distances, rows=slice(None)):
        """Return distances of some rows, with equal ones separated by priority."""
        noise, priority = self.noise[rows], self.priority[rows]
        return np.where(
            distances > noise,
            distances + priority * np.maximum(TIE * distances, noise),
            np.minimum(distances, 0) + priority * NOTHING,  # copies, and picks
        )

    def pick(self):
        """Choose the next row."""
        best, key = self._best()
        if key < self.best_outside and self.pending:
            self._lower(self.X[self.pending])
            self._open_block()
            best, key = self._best()
        if key < self.best_outside:
            # Rounding hides which row is farthest: measure all candidates.
            self._measure(np.flatnonzero(self._keys(self.bounds) >= key))
            self._open_block()
            best, key = self._best()
        row = int(self.block[best])
        center = self.ready(self.X[[row]], np.float64)
        np.minimum(self.exact, _to_nearest(self.rows, center), out=self.exact)
        self.exact[best] = -np.inf
        self.picks.append(row)
        self.pending.append(row)

    def _best(self):
        """Return the row of the block with the highest key."""
        keys = self._keys(self.exact, self.block)
        best = int(keys.argmax())
        return best, keys[best]

    def _open_block(self):
        """Start keeping the rows with the highest bounds up to date."""
        n = len(self.bounds)
        keys = self._keys(self.bounds)
        order = np.argpartition(keys, n - self.size)
        self.best_outside = keys[order[: n - self.size]].max(initial=-np.inf)
        self.block = np.sort(order[n - self.size :])
        self.rows = self.ready(self.X[self.block], np.float64)
        self.exact = self._distances(self.rows, self.block)
        self.exact[self.bounds[self.block] == -np.inf] = -np.inf
        self.pending = []

    def _lower(self, centers):
        """Lower the bounds of all rows to the distances to some centers."""
        if self.block is not None:
            self.bounds[self.block] = self.exact
        centers = self.ready(centers)
        # The rounding error of the product is added, so that bounds hold.
        error = rounding(self.X, centers)
        longest = squared_norms(centers).max()

        def lower(rows):
            distances = _to_nearest(self.ready(self.X[rows]), centers)
            distances = distances + error * (self.norms[rows] + longest)
            np.minimum(self.bounds[rows], distances, out=self.bounds[rows])

        map_chunks(lower, len(self.bounds), ROWS, self.n_jobs)

    def _measure(self, positions):
        """Replace bounds by distances."""
        for part in chunks(len(positions), self.size):
            rows = self.ready(self.X[positions[part]], np.float64)
            distances = self._distances(rows, positions[part])
            self.bounds[positions[part]] = distances

    def _distances(self, rows, positions):
        """Return squared distances in float64 of some rows to their nearest centers."""
        distances = np.full(len(positions), np.inf)
        if self.distances is not None:
            distances = self.distances[positions]
        for centers in self._centers():
            centers = self.ready(centers, np.float64)
            np.minimum(distances, _to_nearest(rows, centers), out=distances)
        return distances

    def _centers(self):
        for part in chunks(self.labeled.shape[0], CENTERS):
            yield self.labeled[part]
        for part in chunks(len(self.picks), CENTERS):
            yield self.X[self.picks[part]]


class ReadyRows:
    """Rows that are scaled and shifted in chunks, without a copy of all."""

    def __init__(self, X, metric):
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {METRICS}; got {metric!r}.")
        self.cosine = metric == "cosine"
        self.origin = None if self.cosine else middle(X)

    def __call__(self, rows, dtype=None):
        """Scale rows if the metric requires it, and subtract the middle."""
        rows = self.scale(rows, dtype)
        return rows if self.origin is None else rows - self.origin

    def scale(self, rows, dtype=None):
        """Scale rows to length 1 if the metric requires it."""
        if dtype is not None:
            rows = rows.astype(dtype)
        if not self.cosine:
            return rows
        if sparse.issparse(rows):
            return normalize(rows)
        lengths = np.sqrt(squared_norms(rows))
        lengths[lengths == 0] = 1
        return rows / lengths[:, None]


def _to_nearest(X, centers):
    """Return the squared distance of each row to the nearest center."""
    block = safe_sparse_dot(X, (-2 * centers).T, dense_output=True)
    block += squared_norms(centers)
    return np.maximum(block.min(axis=1) + squared_norms(X), 0)


FEW = 16  # columns for which reading takes longer than multiplying


class NearestDistances:
    """Squared distance of each row to its nearest center, for centers that are added.

    `update` reuses what was computed for the same rows and the first of the same
    centers. Rows are compared by fingerprints, which cost O(n d); b new centers cost
    O(n b d). An update returns another object, so an object may be shared by threads.
    """

    def __init__(self, metric="euclidean"):
        self.metric = metric
        self.positions = np.empty(0, dtype=np.intp)
        self.kind = self.prints = self.center_prints = None
        self.distances = np.empty(0)

    def update(self, X, positions, centers, n_jobs=1):
        """Return an object with `distances` (n,) of `X` (n, d) to `centers` (m, d).

        `positions` (n,) identify the rows at the next update; other rows are forgotten.
        """
        new = type(self)(self.metric)
        new.kind = X.shape[1], X.dtype, centers.dtype
        new.positions, n = positions, len(positions)
        new.prints, new.center_prints = fingerprints(X), fingerprints(centers)
        new.distances = np.full(n, np.inf)
        n_known = self._count_known(new)
        fresh = np.ones(n, dtype=bool)
        if n_known:
            matches = known_rows(self.positions, self.prints, positions, new.prints)
            fresh = matches < 0
            new.distances[~fresh] = self.distances[matches[~fresh]]
        X, centers = float_rows(X), float_rows(centers)
        ready = ReadyRows(centers, self.metric)
        if fresh.any():
            _lower(new.distances, X, np.flatnonzero(fresh), centers, ready, n_jobs)
        if n_known < len(centers) and not fresh.all():
            added = centers[n_known:]
            _lower(new.distances, X, np.flatnonzero(~fresh), added, ready, n_jobs)
        return new

    def _count_known(self, new):
        """Count the centers that the kept distances include: all or none."""
        if self.kind != new.kind:
            return 0
        n = len(self.center_prints)
        return n if np.array_equal(self.center_prints, new.center_prints[:n]) else 0


def known_rows(keys, prints, new_keys, new_prints):
    """Return where each new row was among the old ones, (m,); -1 if new or changed.

    Rows are identified by unique keys (n,), (m,), and compared by prints (n, 2), (m,
    2).
    """
    if not len(keys):
        return np.full(len(new_keys), -1)
    first = min(keys.min(), new_keys.min(initial=keys[0]))
    stop = 1 + max(keys.max(), new_keys.max(initial=keys[0]))
    indices = np.full(stop - first, -1)
    indices[keys - first] = np.arange(len(keys))
    indices = indices[new_keys - first]
    is_known = indices >= 0
    is_known[is_known] = (prints[indices[is_known]] == new_prints[is_known]).all(axis=1)
    return np.where(is_known, indices, -1)


def fingerprints(X):
    """Return two numbers for each row, uint64 (n, 2), that reveal a changed row.

    The first is the sum of the numbers' bits, which any change of one number changes.
    The second is the product with a random vector, which detects changes of several.
    """
    n, d = X.shape
    vector = np.random.default_rng(0).standard_normal(d)
    prints = np.empty((n, 2), dtype=np.uint64)

    def fill(rows):
        part, selected = _read(X, rows)
        bits = part.view(f"u{part.itemsize}").sum(axis=1, dtype=f"u{part.itemsize}")
        floats = float_rows(part)
        # Unlike a BLAS product, it does not depend on the other rows.
        product = np.einsum("ij,j->i", floats, vector.astype(floats.dtype))
        prints[rows, 0] = bits[selected]
        prints[rows, 1] = product[selected].astype(np.float64).view(np.uint64)

    map_chunks(fill, n, chunk_size(16 * d, 2**24))
    return prints


def _lower(distances, X, positions, centers, ready, n_jobs):
    """Lower the distances of some rows to those to some centers, in place."""
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
    # Rows in between are read as well, but not multiplied with many centers.
    left, selected = _read(X, rows) if len(near) <= FEW else (X[rows], slice(None))
    shifted = ready(left)
    lengths = squared_norms(shifted)[:, None]
    norms = squared_norms(near)
    block = shifted @ (-2 * near).T
    block += norms
    block += lengths
    block, wrong = (
        block[selected],
        rounding(shifted, near) * (lengths + norms.max())[selected],
    )
    mine = distances[positions[rows]]
    # Upper bounds; pairs that are surely above are not computed.
    limit = np.minimum(mine[:, None], block.min(axis=1, keepdims=True) + wrong)
    i, j = np.nonzero(block <= limit + wrong)
    exact = paired_distances(
        left,
        centers,
        np.arange(len(left))[selected][i],
        j,
        prepare=lambda rows: ready.scale(rows, np.float64),
    )
    np.minimum.at(mine, i, exact)
    distances[positions[rows]] = mine


def _read(X, rows):
    return X.around(rows) if isinstance(X, LazyRows) else (X[rows], slice(None))


class NearestCandidates:
    """The k candidates nearest to each of some rows, for candidates that are removed.

    A few more than `k` are kept for each row. While k of them remain, they are the
    nearest; only new rows and rows with too few are searched for again. A new or
    changed candidate starts everything anew. An update returns another object, so an
    object may be shared by threads. Memory: O(m k).
    """

    def __init__(self, k):
        self.k = k
        self.positions = np.empty(0, dtype=np.intp)
        self.kind = self.prints = self.row_keys = self.row_prints = None
        self.distances = self.indices = None
        self._far = self._near = None  # (m, k + spare): distances, pool positions

    def update(self, X, positions, rows=None, n_jobs=1):
        """Return an object with `distances` and `indices` (m, k) of the candidates.

        `positions` (n,) identify the candidates at the next update. `rows` are (m, d),
        or None for the candidates themselves, each without itself.
        """
        new = type(self)(self.k)
        itself = rows is None
        new.kind = itself, X.shape[1], X.dtype, None if itself else rows.dtype
        new.positions, new.prints = positions, fingerprints(X)
        if itself:
            rows, new.row_keys, new.row_prints = X, positions, new.prints
        else:
            new.row_keys, new.row_prints = np.arange(len(rows)), fingerprints(rows)
        m, n = len(rows), len(X) - itself
        size = 1 + max(positions.max(initial=0), self.positions.max(initial=0))
        index_of = np.full(size, -1)
        index_of[positions] = np.arange(len(positions))

        width = min(self.k + 8 + self.k // 2, n)
        new._far, new._near = np.empty((m, width)), np.full((m, width), -1)
        short = self._reuse(new, index_of, min(self.k, n))
        if short.size:
            far, near = _search(rows, short, X, width, positions, itself, n_jobs)
            new._far[short], new._near[short] = far, near
        new._answer(index_of, min(self.k, n))
        return new

    def _reuse(self, new, index_of, k):
        """Copy the lists that are still long enough; return the rows without one."""
        everything = np.arange(len(new.row_keys))
        if self.kind != new.kind:
            return everything
        old = known_rows(self.positions, self.prints, new.positions, new.prints)
        if (old < 0).any():
            return everything
        old = known_rows(self.row_keys, self.row_prints, new.row_keys, new.row_prints)
        mine = np.flatnonzero(old >= 0)
        near, far = self._near[old[mine]], self._far[old[mine]]
        near[index_of[near] < 0] = -1
        enough = (near >= 0).sum(axis=1) >= k
        mine, near, far = mine[enough], near[enough], far[enough]
        if new._near.shape[1] < near.shape[1]:  # fewer candidates than were kept
            near, far = _first(near >= 0, k, near, far)
        new._near[mine, : near.shape[1]] = near
        new._far[mine, : far.shape[1]] = far
        return np.setdiff1d(everything, mine, assume_unique=True)

    def _answer(self, index_of, k):
        near, self.distances = _first(self._near >= 0, k, self._near, self._far)
        self.indices = index_of[near]


def _first(chosen, k, *arrays):
    """Return the first k chosen numbers of each row."""
    chosen &= chosen.cumsum(axis=1) <= k
    return tuple(array[chosen].reshape(len(array), k) for array in arrays)


def _search(rows, wanted, X, width, positions, itself, n_jobs):
    """Return distances and pool positions of candidates nearest to wanted rows."""
    far, near = nearest(rows[wanted], X, width + itself, n_jobs=n_jobs)
    if itself:  # missing if many equal rows come before it
        other = near != wanted[:, None]
        other[other.all(axis=1), -1] = False
        near, far = _first(other, width, near, far)
    return far, positions[near]
