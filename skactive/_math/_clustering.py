"""k-means of many rows in bounded memory, and the rows that stand for its centres.

Rows are dense or CSR, float32 or float64, in memory or in a memory map. scikit-learn's
k-means runs on a sample of them; everything else reads them a chunk at a time.
"""

import warnings

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize as unit_rows
from sklearn.utils.extmath import safe_sparse_dot
from threadpoolctl import threadpool_limits

from .._utils._chunks import chunk_size, chunks, float_rows, map_chunks
from ._distances import (
    middle,
    paired_distances,
    rounding,
    squared_distances,
    squared_norms,
)

ROWS_PER_CLUSTER = 256  # that Lloyd's algorithm sees; more move a centre but little
SAMPLE_BYTES = 2**28  # and no more than this in all
SEEDS_PER_CLUSTER = 5  # rows among which k-means++ looks for the first centres
CAREFUL = 100  # clusters up to which k-means++ compares several rows per centre
TOGETHER = 256  # centres that share a pass over the rows for what was taken


def k_means(X, n_clusters, rng, *, also=None, normalize=False, max_iter=8):
    """Cluster rows by k-means.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
    n_clusters : int
        How many clusters; as many as rows where there are fewer of these.
    rng : numpy.random.Generator
    also : ndarray or sparse matrix of shape (m, d) or None, default=None
        More rows to cluster along with the others, without joining the two.
    normalize : bool, default=False
        Whether rows are scaled to unit length, chunk by chunk. Zero rows stay.
    max_iter : int, default=8
        Rounds of Lloyd's algorithm; the last ones change next to nothing.

    Returns
    -------
    centers : ndarray of shape (k, d)
        With fewer different rows than clusters some are equal.
    labels : ndarray of int, shape (n + m,)
        The nearest centre of each row of `X`, then of `also`; not every centre needs
        to have a row.

    Notes
    -----
    O(n k d) for the labels, and `max_iter` times that for the centres on a random
    sample of at most 256 rows per cluster and 256 MB. k-means++ starts from a part of
    the sample. All of it in one thread, for the order in which threads add up would
    show in the result.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._clustering import k_means
    >>> X = np.array([[0.0], [1.0], [10.0], [12.0]])
    >>> centers, labels = k_means(X, 2, np.random.default_rng(0))
    >>> sorted(centers.ravel().tolist())
    [0.5, 11.0]
    """
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
        copy_x=False,  # the sample is our own
        algorithm="lloyd",
    )
    with warnings.catch_warnings(), threadpool_limits(1, user_api="openmp"):
        # Fewer different rows than clusters are no fault of the caller's.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(sample)
    centers = model.cluster_centers_
    # Where clusters ran empty, scikit-learn may move centres and not look again.
    if size == n and len(np.unique(model.labels_)) == k:
        return centers, model.labels_.astype(np.intp)
    labels = [assign(part, centers, normalize=normalize)[0] for part in parts]
    return centers, np.concatenate(labels)


def assign(X, centers, *, normalize=False, n_jobs=1):
    """Find the nearest centre of each row.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
    centers : ndarray of shape (k, d)
    normalize : bool, default=False
        Whether rows (not centres) are scaled to unit length.
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    labels : ndarray of int, shape (n,)
        Of equal centres the first.
    distances : ndarray of shape (n,)
        Euclidean, exact but for the rounding of a matrix product.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._clustering import assign
    >>> assign(np.array([[0.0], [3.0], [4.0]]), np.array([[1.0], [4.0]]))
    (array([0, 1, 1]), array([1., 1., 0.]))
    """
    blocks = _Blocks(X, centers, normalize)

    def look(rows):
        block, lengths = blocks(rows)
        labels = block.argmin(axis=1)
        shortest = block[np.arange(len(labels)), labels] + lengths
        return labels, np.sqrt(np.maximum(shortest, 0))

    # Without rows there is still a chunk, an empty one.
    parts = map_chunks(look, blocks.n, blocks.size, n_jobs) or [look(slice(0, 0))]
    labels, distances = map(np.concatenate, zip(*parts, strict=True))
    return labels, distances


def nearest_rows(X, centers, rng, *, normalize=False):
    """Find the row nearest each centre, another one for every centre.

    A row nearest to several centres goes to the one it is nearest to; the others get
    the nearest of what is left.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
    centers : ndarray of shape (k, d), k <= n
    rng : numpy.random.Generator
        Decides between rows that are equally near, as far as rounding can tell.
    normalize : bool, default=False
        Whether rows (not centres) are scaled to unit length.

    Returns
    -------
    rows : ndarray of int, shape (k,)
        Without repeats.

    Notes
    -----
    O(n k d). Rows that several centres want cost one pass more, or one for each 256
    centres that are left with nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._clustering import nearest_rows
    >>> X = np.array([[0.0], [4.0], [7.0]])
    >>> nearest_rows(X, np.array([[3.0], [5.5], [4.1]]), np.random.default_rng(0))
    array([0, 2, 1])
    """
    k = len(centers)
    if k > X.shape[0]:
        raise ValueError(f"{k} centres need as many rows; got {X.shape[0]}.")
    keys = rng.random(X.shape[0], dtype=np.float32)
    taken = np.zeros(X.shape[0], dtype=bool)
    found = np.full(k, -1, dtype=np.intp)
    wanting, wanted = np.arange(k), 1
    while wanting.size:
        blocks = _Blocks(X, centers[wanting], normalize)
        distances, rows = _closest(blocks, wanted, keys, taken)
        if not np.isfinite(distances[0]).all():
            raise ValueError(
                "distances between rows and centres are not finite; the features hold "
                "NaN or numbers too large to be squared."
            )
        for i in np.argsort(distances[0], kind="stable"):
            free = rows[~taken[rows[:, i]], i]
            if free.size:
                found[wanting[i]] = free[0]
                taken[free[0]] = True
        # As many candidates as centres: whatever the others take, one is left.
        wanting = np.flatnonzero(found < 0)[:TOGETHER]
        wanted = wanting.size
    return found


def _closest(blocks, wanted, keys, taken):
    """Find the nearest rows not taken of each centre, ascending: (wanted, k) each."""
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
            block = np.take_along_axis(block, best, axis=0)
            nearest = np.take_along_axis(nearest, best, axis=0)
        distances, rows = block, nearest
    order = np.argsort(distances, axis=0, kind="stable")
    return (
        np.take_along_axis(distances, order, axis=0),
        np.take_along_axis(rows, order, axis=0),
    )


def _lowest(block, wanted):
    """Find the lowest values of each column, in any order."""
    if wanted == 1:
        return block.argmin(axis=0)[None]
    if len(block) <= wanted:
        return np.broadcast_to(np.arange(len(block))[:, None], block.shape)
    return np.argpartition(block, wanted - 1, axis=0)[:wanted]


class _Blocks:
    """Squared distances of a slice of the rows to all centres, in two parts."""

    def __init__(self, X, centers, normalize):
        self.X, self.normalize = float_rows(X), normalize
        self.n = self.X.shape[0]
        # Distances from a point amidst the centres have the smaller rounding errors;
        # sparse rows stay as they are, or they would be filled.
        self.origin = None if sparse.issparse(X) else middle(centers)
        if self.origin is not None:
            centers = centers - self.origin
        self.lengths = squared_norms(centers)
        self.minus_two_centers = centers.T * -2
        self.unit = np.finfo(np.result_type(self.X.dtype, centers.dtype)).eps
        working = row_bytes(self.X) + len(centers) * centers.itemsize
        self.size = chunk_size(2 * working)

    def __call__(self, rows):
        """Squared distances (c, k) less the squared lengths (c,), and these."""
        X = _read(self.X, rows, self.normalize)
        if self.origin is not None:
            X = X - self.origin
        block = safe_sparse_dot(X, self.minus_two_centers, dense_output=True)
        block += self.lengths
        return block, squared_norms(X)

    def slack(self, lengths):
        """How far rounding may move a squared distance; above 0, as it breaks ties."""
        slack = 16 * self.unit * (lengths + self.lengths.max())
        return np.maximum(slack, np.finfo(slack.dtype).tiny)


def _sample(parts, n, size, normalize, rng):
    """Copy some of the rows of all parts."""
    # Sorted, as a memory map is read faster in order.
    rows = np.arange(n) if size == n else np.sort(rng.choice(n, size, replace=False))
    copies, start = [], 0
    for part in parts:
        stop = start + part.shape[0]
        own = rows[(rows >= start) & (rows < stop)] - start
        copies.append(_read(part, own, normalize))
        start = stop
    if len(copies) == 1:
        return copies[0]
    stack = sparse.vstack if sparse.issparse(copies[0]) else np.concatenate
    return stack(copies)


def _first_centers(sample, k, rng):
    """Choose centres by k-means++ from some of the rows."""
    n = sample.shape[0]
    size = min(n, SEEDS_PER_CLUSTER * max(k, 100))
    rows = rng.choice(n, size, replace=False)
    # In double precision, for which scikit-learn needs no conversion at each step.
    return kmeans_plusplus(
        sample[rows].astype(np.float64),
        k,
        random_state=int(rng.integers(2**31)),
        n_local_trials=None if k <= CAREFUL else 1,
    )[0].astype(sample.dtype)


def _read(X, rows, normalize):
    """Read some rows, scaled to unit length if wanted."""
    part = X[rows]
    # A slice is a view of somebody else's rows.
    return unit_rows(part, copy=isinstance(rows, slice)) if normalize else part


def row_bytes(X):
    """Tell the memory of a row, of a mean one if they are sparse.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)

    Returns
    -------
    size : int
        At least 1.
    """
    if sparse.issparse(X):
        return 1 + (X.data.nbytes + X.indices.nbytes) // max(1, X.shape[0])
    return max(1, X.shape[1] * X.itemsize)


def k_medoids(X, n_clusters, rng, *, max_iter=20, max_rows=10_000, n_jobs=1):
    """Cluster rows around some of them.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Neither copied nor read into memory as a whole.
    n_clusters : int
        How many medoids, at least 1. There are fewer where `X` has fewer different
        rows.
    rng : numpy.random.Generator
        Draws the rows to start from.
    max_iter : int, default=20
        Rounds of assigning rows and moving medoids, at most.
    max_rows : int, default=10_000
        Medoids are sought in a sample of so many rows, or 20 per cluster if that is
        more; one last round then moves them to the medoids of all rows.
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    medoids : ndarray of int, shape (k,)
        Positions of k different rows, k at most `n_clusters`.
    labels : ndarray of int, shape (n,)
        The medoid that each row is nearest to, as a place in `medoids`.
    distances : ndarray of shape (n,)
        Squared distance of each row to it.

    References
    ----------
    L. Kaufman, P. J. Rousseeuw, "Clustering by means of medoids", 1987; and "Finding
    groups in data", 1990, chapter 3, for working on a sample.

    D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA
    2007, for the rows to start from.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._clustering import k_medoids
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [15.0]])
    >>> medoids, labels, distances = k_medoids(X, 2, np.random.default_rng(0))
    >>> sorted(medoids.tolist())
    [1, 4]
    >>> distances
    array([ 1.,  0.,  1.,  1.,  0., 16.])
    """
    X = float_rows(X)
    n = X.shape[0]
    n_clusters = min(n_clusters, n)
    # In random order, so that of equally good rows the first is a random one.
    sample = rng.permutation(n)[: max(max_rows, 20 * n_clusters)]
    part = X[sample]
    if (origin := middle(part)) is not None:
        part -= origin
    medoids = _spread(part, n_clusters, rng)
    for _ in range(max_iter):
        moved = _move(part, _assign(part, medoids, n_jobs), n_jobs)
        if np.array_equal(moved, medoids):
            break
        medoids = moved
    medoids = sample[medoids]
    if len(sample) < n:
        medoids = _move(X, _assign(X, medoids, n_jobs), n_jobs)
    labels = _assign(X, medoids, n_jobs)
    # Rounding may have put a row nearer to a medoid's copy: drop what has no rows.
    used, labels = np.unique(labels, return_inverse=True)
    medoids = medoids[used]
    return medoids, labels, paired_distances(X, X, np.arange(n), medoids[labels])


def _assign(X, medoids, n_jobs):
    """Place in `medoids` of the one nearest to each row."""
    centers = X[medoids]
    centers = centers.toarray() if sparse.issparse(centers) else centers
    return assign(X, centers, n_jobs=n_jobs)[0]


def _spread(X, n_clusters, rng):
    """Draw rows by their squared distance to those drawn so far (k-means++)."""
    lengths = squared_norms(X)
    # A row is a copy of a drawn one if no more than rounding lies between them.
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
        place = np.searchsorted(total, target, side="right")
        drawn.append(int(min(place, gap.nonzero()[0][-1])))


def _move(X, labels, n_jobs):
    """Position of the medoid of each cluster that has rows."""
    n, d = X.shape
    k = labels.max() + 1
    is_sparse = sparse.issparse(X)
    filled = 3 * X.nnz // n if is_sparse else d
    size = chunk_size(X.dtype.itemsize * (k + 2 * filled))
    sums = np.zeros((k, d))
    for rows in chunks(n, size):
        own = labels[rows]
        places = (own, np.arange(len(own)))
        indicator = sparse.csr_array((np.ones(len(own), X.dtype), places))
        part = indicator @ X[rows]
        sums[: part.shape[0]] += part.toarray() if is_sparse else part
    counts = np.bincount(labels)
    means = (sums / np.maximum(counts, 1)[:, None]).astype(X.dtype)

    def measure(rows):
        part, own = X[rows], labels[rows]
        if is_sparse:  # differences would fill the rows
            return squared_distances(part, means)[np.arange(len(own)), own]
        return paired_distances(part, means, np.arange(len(own)), own)

    distances = np.concatenate(map_chunks(measure, n, size, n_jobs))
    best = np.full(k, np.inf, dtype=distances.dtype)
    np.minimum.at(best, labels, distances)
    reached = np.flatnonzero(distances == best[labels])
    return reached[np.unique(labels[reached], return_index=True)[1]]
