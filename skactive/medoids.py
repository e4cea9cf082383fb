"""K-medoids under squared Euclidean distance, without a matrix of distances.

The medoid of a cluster is the row with the smallest sum of squared distances to the
cluster's rows. With c their mean, that sum is for a row m

    sum_i |x_i - m|² = sum_i |x_i - c|² + n |c - m|²,

so the row nearest the mean is the exact medoid, at a cost that is linear in the rows.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ._chunks import chunk_size, chunks, float_rows, map_chunks
from .clustering import assign
from .distances import (
    middle,
    paired_distances,
    rounding,
    squared_distances,
    squared_norms,
)

__all__ = ["k_medoids"]


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
    >>> from skactive.medoids import k_medoids
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
