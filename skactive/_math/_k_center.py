"""Greedy k-center: choose rows that are far from all others."""

from functools import cached_property

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import safe_sparse_dot

from .._utils._chunks import chunk_size, chunks, float_rows, map_chunks
from ._distances import middle, rounding, squared_norms

ROWS = 1024  # rows of a block of the distance matrix
CENTERS = 1024  # its columns
METRICS = ("euclidean", "cosine")
TIE = 2.0**-32  # of a squared distance: smaller differences are ties
NOTHING = 2.0**-1000  # orders copies at random, below every distance


def k_center(X, n, rng, *, labeled=None, distances=None, metric="euclidean", n_jobs=1):
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
    if distances is None:
        return _FarthestFirst(X, rng, labeled, metric, n_jobs).choose(n)
    return _FromDistances(X, rng, distances, n, metric, n_jobs).choose(n)


class _FarthestFirst:
    """State of the search: bounds for all rows, distances for a block of them."""

    def __init__(self, X, rng, labeled, metric, n_jobs):
        self.X, self.n_jobs = float_rows(X), n_jobs
        self.labeled = self.X[:0] if labeled is None else float_rows(labeled)
        self.ready = ReadyRows(self.X, metric)
        n, d = self.X.shape
        # The row with the highest key is next. Ties are broken by a number drawn
        # in advance, so that they do not depend on the blocks.
        self.priority = _draw_priority(n, rng)
        start = [] if self.labeled.shape[0] else [int(self.priority.argmax())]
        self.picks, self.pending, self.block = start, [], None
        self.noise = self._bound_noise()
        self.size = min(n, ROWS, chunk_size(8 * d))
        self.bounds = np.full(n, np.inf)
        self.bounds[start] = -np.inf
        if self.size < n:
            for centers in self._centers():
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

    def choose(self, n):
        """Continue until there are n picks."""
        while len(self.picks) < n:
            self._pick()
        return np.array(self.picks, dtype=np.intp)

    def _pick(self):
        best, key = self._best()
        if key < self.rest and self.pending:
            self._lower(self.X[self.pending])
            self._open_block()
            best, key = self._best()
        if key < self.rest:
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
        self.rest = keys[order[: n - self.size]].max(initial=-np.inf)
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
            found = _to_nearest(self.ready(self.X[rows]), centers)
            found = found + error * (self.norms[rows] + longest)
            np.minimum(self.bounds[rows], found, out=self.bounds[rows])

        map_chunks(lower, len(self.bounds), ROWS, self.n_jobs)

    def _measure(self, positions):
        """Replace bounds by distances."""
        for part in chunks(len(positions), self.size):
            rows = self.ready(self.X[positions[part]], np.float64)
            found = self._distances(rows, positions[part])
            self.bounds[positions[part]] = found

    def _distances(self, rows, positions):
        """Return squared distances in float64 of some rows to their nearest centers."""
        distances = self._known(positions)
        for centers in self._centers():
            centers = self.ready(centers, np.float64)
            np.minimum(distances, _to_nearest(rows, centers), out=distances)
        return distances

    def _known(self, positions):
        """Return squared distances to centers that are not in `_centers`."""
        return np.full(len(positions), np.inf)

    def _centers(self):
        for part in chunks(self.labeled.shape[0], CENTERS):
            yield self.labeled[part]
        for part in chunks(len(self.picks), CENTERS):
            yield self.X[self.picks[part]]


class _FromDistances(_FarthestFirst):
    """The same search, from known distances instead of labeled rows."""

    def __init__(self, X, rng, distances, n_picks, metric, n_jobs):
        self.X, self.n_jobs = float_rows(X), n_jobs
        self.labeled = self.X[:0]
        self.ready = ReadyRows(self.X, metric)
        n, d = self.X.shape
        self.priority = _draw_priority(n, rng)
        self.picks, self.pending, self.block = [], [], None
        # For a single pick, no row has to be read.
        self.noise = np.zeros(n) if n_picks == 1 else self._bound_noise()
        self.size = min(n, ROWS, chunk_size(8 * d), max(32, 16 * n_picks))
        self.distances = distances
        self.bounds = distances.copy()
        self._open_block()

    def _known(self, positions):
        return self.distances[positions]


def _draw_priority(n, rng):
    """Draw a random order of n rows, as distinct numbers between 0 and 1."""
    return (rng.permutation(n) + 1) / (n + 1)


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
