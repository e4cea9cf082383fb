"""Greedy coverage: herding under a kernel, and balls that hold most rows."""

from threading import Lock

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import safe_sparse_dot

from .._utils._chunks import (
    chunk_size,
    chunks,
    float_rows,
    map_chunks,
)
from ._k_center import ReadyRows
from ._neighbors import paired_distances, rounding, squared_distances, squared_norms

ROWS = 1024  # rows and columns of a block of the distance matrix


def closest_pair(X):
    """Return the smallest distance of different unit-length rows (m, d), or inf."""
    X = normalize(float_rows(X)[:].astype(np.float64))
    slack, closest = 2 * rounding(X, X), np.inf  # copies differ by rounding
    for part in chunks(X.shape[0], ROWS):
        block = squared_distances(X[part], X)
        closest = min(closest, block.min(where=block > slack, initial=np.inf))
    return np.sqrt(closest)


TIE_OF_SUMS = 2.0**-16  # of the first best sum: smaller differences are ties


def herd(X, n_queries, radius, rng, *, weights, covered):
    """Choose n positions, again and again the row that adds most cover.

    A row covers others by a Gaussian kernel of width `radius` between rows scaled to
    length 1. `weights` (n_rows,) are what there is to cover, `covered` (n_rows,) is the
    cover at the start. The kernel of all pairs of rows is held in memory.
    """
    rows = normalize(float_rows(X)[:])
    squares = squared_norms(rows).astype(rows.dtype)  # 1, or 0 for an empty row
    kernel = safe_sparse_dot(rows, -2 * rows.T, dense_output=True)
    kernel += squares[:, None] + squares
    np.exp(np.maximum(kernel, 0, out=kernel) / -(radius**2), out=kernel)
    np.fill_diagonal(kernel, 1)  # without rounding
    weights, covered = weights.astype(rows.dtype), covered.astype(rows.dtype)
    gain = np.maximum(kernel - covered, 0) @ weights
    keys, slack, picks = rng.random(len(gain)), TIE_OF_SUMS * gain.max(), []
    for _ in range(n_queries):
        ties = np.flatnonzero(gain >= gain.max() - slack)
        picks.append(ties[keys[ties].argmax()])
        grown = np.flatnonzero(kernel[picks[-1]] > covered)
        part = kernel[:, grown]
        lost = np.maximum(part - covered[grown], 0)
        covered[grown] = kernel[picks[-1], grown]
        lost -= np.maximum(part - covered[grown], 0)
        gain -= lost @ weights[grown]
        gain[picks] = -np.inf
    return np.array(picks, dtype=np.intp)


# Greedy maximum coverage: choose rows whose balls cover most others -------------------

BLOCK = 256  # candidates whose balls are kept up to date
SAMPLED = 2048  # rows whose balls determine the radius


def ball_cover(
    X, n_queries, radius, rng, *, labeled=None, metric="euclidean", n_jobs=1
):
    """Choose n positions, again and again the row whose ball holds most uncovered rows.

    The balls of `labeled` (m, d) cover from the start. When nothing is left to cover,
    the rest is random. The picks are those of the greedy algorithm on the whole graph,
    of which only a few rows are held: the number of newly covered rows only shrinks, so
    old counts are upper bounds, and only balls that may be the best are counted again.
    """
    search = _MostCovering(X, radius, rng, labeled, metric, n_jobs)
    return np.array([search.pick() for _ in range(n_queries)], dtype=np.intp)


class _MostCovering:
    """State of the search.

    `counts` are upper bounds of the uncovered rows in each ball, exact for the block.
    """

    def __init__(self, X, radius, rng, labeled, metric, n_jobs):
        self.X, self.n_jobs = float_rows(X), n_jobs
        self.radius = min(radius, 1e18)  # whose square is finite in float32 too
        self.ready = ReadyRows(self.X, metric)
        n = self.X.shape[0]
        # Below 1, so it only breaks ties of counts.
        self.priority = rng.permutation(n) / n
        self.uncovered = np.ones(n, dtype=bool)
        if labeled is not None and labeled.shape[0]:
            self._cover_by(float_rows(labeled))
        self.counts = self._count()
        self.size = min(n, BLOCK, max(16, chunk_size(n)))
        self.block, self.best_outside = None, np.inf

    def pick(self):
        """Choose the next row."""
        if not self.uncovered.any():
            self.counts[self.counts >= 0] = 0
            best = int((self.counts + self.priority).argmax())
            self.counts[best] = -1
            return best
        best, key = (0, -1) if self.block is None else self._best()
        while key < self.best_outside:
            self._open_block()
            best, key = self._best()
        row = int(self.block[best])
        new = np.flatnonzero(self.balls[best])
        self.exact -= self.balls[:, new].sum(axis=1)
        self.balls[:, new] = False
        self.uncovered[self.columns[new]] = False
        self.exact[best] = self.counts[row] = -1
        return row

    def _best(self):
        keys = self.exact + self.priority[self.block]
        best = int(keys.argmax())
        return best, keys[best]

    def _open_block(self):
        """Start keeping the balls that may cover most up to date."""
        n = len(self.counts)
        keys = self.counts + self.priority
        order = np.argpartition(keys, n - self.size)
        self.best_outside = keys[order[: n - self.size]].max(initial=-1)
        self.block = np.sort(order[n - self.size :])
        self.columns = np.flatnonzero(self.uncovered)
        parts = map_chunks(
            lambda part: self._near(self.X, self.block, self.X, self.columns[part]),
            len(self.columns),
            ROWS,
            self.n_jobs,
        )
        self.balls = np.concatenate(parts, axis=1)
        self.exact = self.balls.sum(axis=1)
        self.exact[self.counts[self.block] < 0] = -1
        self.counts[self.block] = self.exact

    def _cover_by(self, labeled):
        def cover(rows):
            rows = np.arange(rows.start, rows.stop)
            for part in chunks(labeled.shape[0], ROWS):
                centers = np.arange(part.start, part.stop)
                near = self._near(self.X, rows, labeled, centers).any(axis=1)
                self.uncovered[rows[near]] = False
                rows = rows[~near]

        map_chunks(cover, len(self.uncovered), ROWS, self.n_jobs)

    def _count(self):
        """Count the uncovered rows in each ball, each pair once."""
        n, left_over = len(self.uncovered), np.flatnonzero(self.uncovered)
        counts, lock = np.zeros(n, dtype=np.int64), Lock()

        def count_few(rows):
            for part in chunks(len(left_over), ROWS):
                near = self._near(self.X, rows, self.X, left_over[part])
                counts[rows] += np.count_nonzero(near, axis=1)

        if 2 * len(left_over) < n:
            map_chunks(count_few, n, ROWS, self.n_jobs)
            return counts
        weights = self.uncovered.astype(np.float32)

        def count(left):
            own = np.zeros(left.stop - left.start, dtype=np.int64)
            for right in chunks(n, ROWS):
                if right.start < left.start:
                    continue
                near = self._near(self.X, left, self.X, right).astype(np.float32)
                own += (near @ weights[right]).astype(np.int64)
                if right.start > left.start:
                    others = (weights[left] @ near).astype(np.int64)
                    with lock:
                        counts[right] += others
            with lock:
                counts[left] += own

        map_chunks(count, n, ROWS, self.n_jobs)
        return counts

    def _near(self, X, rows, Y, columns):
        """Return which rows lie within the radius of which others."""
        left, right = self.ready(X[rows]), self.ready(Y[columns])
        block = safe_sparse_dot(left, (-2 * right).T, dense_output=True)
        lengths = squared_norms(right)
        block += lengths
        own = squared_norms(left)
        # Pairs within the radius for certain, and pairs within rounding.
        error = rounding(left, right) * (own + lengths.max() + self.radius**2)
        near = block <= (self.radius**2 - own - error)[:, None]
        perhaps = block <= (self.radius**2 - own + error)[:, None]
        if np.count_nonzero(near) < np.count_nonzero(perhaps):
            i, j = np.nonzero(perhaps & ~near)
            near[i, j] = self._within(X, _indices(rows)[i], Y, _indices(columns)[j])
        return near

    def _within(self, X, i, Y, j):
        scale = self.ready.scale
        distances = paired_distances(
            X, Y, i, j, prepare=lambda rows: scale(rows, np.float64)
        )
        return np.sqrt(distances) <= self.radius


def _indices(rows):
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def pure_radius(X, clusters, rng, *, purity=0.95, metric="euclidean", n_jobs=1):
    """Return the largest radius at which the part `purity` of the balls is pure.

    A ball is pure, holding rows of one cluster, until it reaches the nearest row of
    another cluster, so the radius is a quantile of those distances. `rng` draws 2,048
    of the rows (n, d) if there are more.
    """
    X = float_rows(X)
    n = X.shape[0]
    ready = ReadyRows(X, metric)
    some = rng.permutation(n)[:SAMPLED]
    sample = ready(X[some])

    def look(rows):
        block = squared_distances(sample, ready(X[rows]))
        block[clusters[some][:, None] == clusters[rows]] = np.inf
        best = block.argmin(axis=1)
        return block[np.arange(len(some)), best], best + rows.start

    parts = map_chunks(look, n, ROWS, n_jobs)
    values, indices = (np.stack(part) for part in zip(*parts, strict=True))
    first = values.argmin(axis=0), np.arange(len(some))
    distances = paired_distances(
        X, X, some, indices[first], prepare=lambda rows: ready.scale(rows, np.float64)
    )
    distances[np.isinf(values[first])] = np.inf
    # This number of balls may be impure; the next one must stay pure.
    impure = min(int((1 - purity) * len(some) + 1e-9), len(some) - 1)
    reach = np.sqrt(np.partition(distances, impure)[impure])
    # Reduced by a few roundings, because comparisons may round differently.
    return float(reach * (1 - 8 * np.finfo(reach.dtype).eps))
