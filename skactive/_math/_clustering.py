"""k-means and k-medoids in bounded memory, and the rows nearest the centers.

Rows are dense or CSR, float32 or float64, in memory or in a memory map. scikit-learn's
k-means runs on a sample of them; all other steps read them in chunks.
"""

import warnings

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize as unit_rows
from sklearn.utils.extmath import safe_sparse_dot
from threadpoolctl import threadpool_limits

from .._utils._chunks import chunk_size, chunks, concatenate_chunks, float_rows
from ._neighbors import (
    middle,
    paired_distances,
    rounding,
    squared_distances,
    squared_norms,
    stack_rows,
    take_both,
)

ROWS_PER_CLUSTER = 256  # in Lloyd's algorithm; more hardly move a center
SAMPLE_BYTES = 2**28  # of the sample at most
SEEDS_PER_CLUSTER = 5  # rows from which k-means++ draws the first centers
CAREFUL = 100  # clusters up to which k-means++ compares several rows per center
TOGETHER = 256  # centers that share a pass over the rows


def k_means(X, n_clusters, rng, *, also=None, normalize=False, max_iter=8):
    """Return k-means centers (k, d) and labels (n + m,) of `X` (n, d), `also` (m, d).

    `normalize` scales rows to unit length, chunk by chunk. The labels cost O(n k d).
    The centers are computed on a random sample of at most 256 rows per cluster and 256
    MB, in one thread, because the order of sums across threads would change the result.
    """
    from sklearn.cluster import KMeans  # here, as importing it takes 50 ms

    parts = [float_rows(part) for part in (X, also) if part is not None]
    n = sum(part.shape[0] for part in parts)
    k = min(n_clusters, n)
    bounded = SAMPLE_BYTES // max(map(row_bytes, parts))
    size = max(k, min(n, ROWS_PER_CLUSTER * k, bounded))
    sample = _sample(parts, n, size, normalize, rng)
    model = KMeans(
        k,
        init=_first_centers(sample, k, rng),
        n_init=1,
        max_iter=max_iter,
        copy_x=False,  # the sample is a copy
        algorithm="lloyd",
    )
    with warnings.catch_warnings(), threadpool_limits(1, user_api="openmp"):
        # Fewer distinct rows than clusters are valid.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(sample)
    centers = model.cluster_centers_
    # If clusters became empty, scikit-learn may not update the labels.
    if size == n and len(np.unique(model.labels_)) == k:
        return centers, model.labels_.astype(np.intp)
    labels = [assign(part, centers, normalize=normalize)[0] for part in parts]
    return centers, np.concatenate(labels)


def assign(X, centers, *, normalize=False, n_jobs=1):
    """Return the nearest center of each row, labels (n,), and its distance (n,).

    `normalize` scales rows (not centers) to unit length. Ties go to the first center.
    """
    blocks = _Blocks(X, centers, normalize)

    def look(rows):
        block, lengths = blocks(rows)
        labels = block.argmin(axis=1)
        shortest = block[np.arange(len(labels)), labels] + lengths
        return [labels, np.sqrt(np.maximum(shortest, 0))]

    return concatenate_chunks(look, blocks.n, blocks.size, n_jobs)


def nearest_rows(X, centers, rng, *, normalize=False):
    """Return the row nearest each center, (k,), without repeats.

    A row that is nearest to several centers goes to the one it is nearest to; the
    others get the nearest remaining row. `rng` breaks ties within rounding.
    """
    k = len(centers)
    if k > X.shape[0]:
        raise ValueError(f"{k} centers need as many rows; got {X.shape[0]}.")
    keys = rng.random(X.shape[0], dtype=np.float32)
    taken = np.zeros(X.shape[0], dtype=bool)
    assigned = np.full(k, -1, dtype=np.intp)
    wanting, wanted = np.arange(k), 1
    while wanting.size:
        blocks = _Blocks(X, centers[wanting], normalize)
        distances, rows = _closest(blocks, wanted, keys, taken)
        if not np.isfinite(distances[0]).all():
            raise ValueError(
                "distances between rows and centers are not finite; the features hold "
                "NaN or numbers too large to be squared."
            )
        for i in np.argsort(distances[0], kind="stable"):
            free = rows[~taken[rows[:, i]], i]
            if free.size:
                assigned[wanting[i]] = free[0]
                taken[free[0]] = True
        # With as many candidates as centers, one is always left.
        wanting = np.flatnonzero(assigned < 0)[:TOGETHER]
        wanted = wanting.size
    return assigned


def nearest_to_centers(X, centers, wanted, keys):
    """Return the rows of highest cosine with each center, best first.

    Squared distances (w, k) of unit-length rows to `centers` (k, d), of length 1, and
    positions (w, k), w = min(wanted, n). `keys` (n,) break ties within rounding.
    """
    blocks = _Blocks(X, centers, normalize=True)
    wanted, taken = min(wanted, blocks.n), np.zeros(blocks.n, dtype=bool)
    return _closest(blocks, wanted, keys, taken)


def _closest(blocks, wanted, keys, taken):
    """Return the nearest rows not taken of each center, ascending: (wanted, k) each."""
    distances = rows = None
    for part in chunks(blocks.n, blocks.size):
        block, lengths = blocks(part)
        block += (lengths + blocks.slack(lengths) * keys[part])[:, None]
        block[taken[part]] = np.inf
        nearest = _lowest(block, wanted)
        block = np.take_along_axis(block, nearest, axis=0)
        nearest = nearest + part.start
        if rows is not None:
            block = np.concatenate([distances, block])
            nearest = np.concatenate([rows, nearest])
            best = _lowest(block, wanted)
            block, nearest = take_both(block, nearest, best, axis=0)
        distances, rows = block, nearest
    order = np.argsort(distances, axis=0, kind="stable")
    return take_both(distances, rows, order, axis=0)


def _lowest(block, wanted):
    """Return the lowest values of each column, in any order."""
    if wanted == 1:
        return block.argmin(axis=0)[None]
    if len(block) <= wanted:
        return np.broadcast_to(np.arange(len(block))[:, None], block.shape)
    return np.argpartition(block, wanted - 1, axis=0)[:wanted]


class _Blocks:
    """Squared distances of a slice of the rows to all centers, in two parts."""

    def __init__(self, X, centers, normalize):
        self.X, self.normalize = float_rows(X), normalize
        self.n = self.X.shape[0]
        # Distances from a point amid the centers have smaller rounding errors;
        # sparse rows are not shifted, because they would become dense.
        self.origin = None if sparse.issparse(X) else middle(centers)
        if self.origin is not None:
            centers = centers - self.origin
        self.lengths = squared_norms(centers)
        self.minus_two_centers = centers.T * -2
        self.unit = np.finfo(np.result_type(self.X.dtype, centers.dtype)).eps
        working = row_bytes(self.X) + len(centers) * centers.itemsize
        self.size = chunk_size(2 * working)

    def __call__(self, rows):
        """Return squared distances (c, k) minus squared lengths (c,), and these."""
        X = _read(self.X, rows, self.normalize)
        if self.origin is not None:
            X = X - self.origin
        block = safe_sparse_dot(X, self.minus_two_centers, dense_output=True)
        block += self.lengths
        return block, squared_norms(X)

    def slack(self, lengths):
        """Bound the rounding error of a squared distance, above 0 to break ties."""
        slack = 16 * self.unit * (lengths + self.lengths.max())
        return np.maximum(slack, np.finfo(slack.dtype).tiny)


def _sample(parts, n, size, normalize, rng):
    """Copy some of the rows of all parts."""
    # Sorted, because a memory map is read faster in order.
    rows = np.arange(n) if size == n else np.sort(rng.choice(n, size, replace=False))
    copies, start = [], 0
    for part in parts:
        stop = start + part.shape[0]
        own = rows[(rows >= start) & (rows < stop)] - start
        copies.append(_read(part, own, normalize))
        start = stop
    if len(copies) == 1:
        return copies[0]
    return stack_rows(copies)


def _first_centers(sample, k, rng):
    """Choose centers by k-means++ from some of the rows."""
    from sklearn.cluster import kmeans_plusplus  # here, as in `k_means`

    n = sample.shape[0]
    size = min(n, SEEDS_PER_CLUSTER * max(k, 100))
    rows = rng.choice(n, size, replace=False)
    # In float64, which scikit-learn does not convert at each step.
    return kmeans_plusplus(
        sample[rows].astype(np.float64),
        k,
        random_state=int(rng.integers(2**31)),
        n_local_trials=None if k <= CAREFUL else 1,
    )[0].astype(sample.dtype)


def _read(X, rows, normalize):
    """Read some rows, scaled to unit length if `normalize`."""
    part = X[rows]
    # A slice is a view of the caller's rows.
    return unit_rows(part, copy=isinstance(rows, slice)) if normalize else part


def row_bytes(X):
    """Return the memory of a row; of a mean row if they are sparse."""
    if sparse.issparse(X):
        return 1 + (X.data.nbytes + X.indices.nbytes) // max(1, X.shape[0])
    return max(1, X.shape[1] * X.itemsize)


def k_medoids(X, n_clusters, rng, *, max_iter=20, max_rows=10_000, n_jobs=1):
    """Return medoids (k,), labels (n,) and squared distances (n,) of rows (n, d).

    Medoids are searched for in a sample of `max_rows` rows, or 20 per cluster if that
    is more; a last round moves them to the medoids of all rows. There are fewer medoids
    than `n_clusters` if `X` has fewer distinct rows.
    """
    X = float_rows(X)
    n = X.shape[0]
    n_clusters = min(n_clusters, n)
    # In random order, so that ties are broken at random.
    sample = rng.permutation(n)[: max(max_rows, 20 * n_clusters)]
    part = X[sample]
    if (origin := middle(part)) is not None:
        part -= origin
    medoids = draw_spread(part, n_clusters, rng)
    for _ in range(max_iter):
        moved = _move(part, _assign(part, medoids, n_jobs), n_jobs)
        if np.array_equal(moved, medoids):
            break
        medoids = moved
    medoids = sample[medoids]
    if len(sample) < n:
        medoids = _move(X, _assign(X, medoids, n_jobs), n_jobs)
    labels = _assign(X, medoids, n_jobs)
    # Rounding may assign a row to a copy of its medoid: drop empty clusters.
    used, labels = np.unique(labels, return_inverse=True)
    medoids = medoids[used]
    return medoids, labels, paired_distances(X, X, np.arange(n), medoids[labels])


def _assign(X, medoids, n_jobs):
    """Return the place in `medoids` of the medoid nearest to each row."""
    centers = X[medoids]
    centers = centers.toarray() if sparse.issparse(centers) else centers
    return assign(X, centers, n_jobs=n_jobs)[0]


def draw_spread(X, n_clusters, rng):
    """Draw rows by their squared distance to those drawn so far (k-means++)."""
    lengths = squared_norms(X)
    # A row is a copy of a drawn one if they differ within rounding.
    slack = rounding(X, X) * lengths
    drawn = [int(rng.integers(X.shape[0]))]
    gap = np.full(X.shape[0], np.inf)
    while True:
        last = X[drawn[-1] : drawn[-1] + 1]
        away = squared_distances(X, last, norms=lengths[drawn[-1:]])[:, 0]
        gap = np.minimum(gap, np.where(away <= slack + slack[drawn[-1]], 0, away))
        total = np.cumsum(gap, dtype=np.float64)
        if len(drawn) == n_clusters or not total[-1] > 0:
            return np.array(drawn)
        target = rng.random() * total[-1]
        index = np.searchsorted(total, target, side="right")
        drawn.append(int(min(index, gap.nonzero()[0][-1])))


def _move(X, labels, n_jobs):
    """Return the position of the medoid of each cluster that has rows."""
    n, d = X.shape
    k = labels.max() + 1
    is_sparse = sparse.issparse(X)
    filled = 3 * X.nnz // n if is_sparse else d
    size = chunk_size(X.dtype.itemsize * (k + 2 * filled))
    sums = np.zeros((k, d))
    for rows in chunks(n, size):
        own = labels[rows]
        indices = (own, np.arange(len(own)))
        indicator = sparse.csr_array((np.ones(len(own), X.dtype), indices))
        part = indicator @ X[rows]
        sums[: part.shape[0]] += part.toarray() if is_sparse else part
    counts = np.bincount(labels)
    means = (sums / np.maximum(counts, 1)[:, None]).astype(X.dtype)

    def measure(rows):
        part, own = X[rows], labels[rows]
        if is_sparse:  # differences would be dense
            return squared_distances(part, means)[np.arange(len(own)), own]
        return paired_distances(part, means, np.arange(len(own)), own)

    distances = concatenate_chunks(measure, n, size, n_jobs)
    best = np.full(k, np.inf, dtype=distances.dtype)
    np.minimum.at(best, labels, distances)
    reached = np.flatnonzero(distances == best[labels])
    return reached[np.unique(labels[reached], return_index=True)[1]]
