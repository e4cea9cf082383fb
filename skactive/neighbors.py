"""What the nearest rows have on average, a block of the distance matrix at a time."""

from __future__ import annotations

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from ._chunks import chunk_size, float_rows, map_chunks
from .distances import middle, nearest, rounding, squared_norms

__all__ = ["neighbor_means"]


def neighbor_means(X, Y, values, k, *, n_jobs=1):
    """Mean of some values over the k nearest rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Whose neighbours.
    Y : ndarray or CSR matrix of shape (m, d)
        Where neighbours are looked for; m is moderate, as n m distances are computed.
    values : ndarray of shape (m, v)
        What each row of `Y` has.
    k : int
        How many neighbours; all rows of `Y` where there are fewer. Of equally near
        ones, the first in `Y` are taken.
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    means : ndarray of shape (n, v)

    Notes
    -----
    O(n m d) by matrix products. Which rows are nearest is exact: where the products'
    rounding could matter, :func:`skactive.distances.nearest` decides.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.neighbors import neighbor_means
    >>> X, Y = np.array([[0.0], [9.0]]), np.array([[1.0], [2.0], [3.0]])
    >>> neighbor_means(X, Y, np.array([[1.0], [2.0], [6.0]]), 2)
    array([[1.5],
           [4. ]])
    """
    X, Y, values = float_rows(X), float_rows(Y), np.asarray(values)
    n, m = X.shape[0], Y.shape[0]
    if k >= m:
        return np.repeat(values.mean(axis=0, keepdims=True), n, axis=0)
    origin = middle(Y)
    Y_near = Y if origin is None else Y - origin
    norms = squared_norms(Y_near)
    relative = rounding(X, Y)

    def average(rows):
        part = X[rows] if origin is None else X[rows] - origin
        # Without the norm of the own row: it does not change which are nearest.
        block = safe_sparse_dot(part, Y_near.T, dense_output=True)
        block *= -2
        block += norms
        # One pivot, which NumPy vectorises; the k before it are in no order.
        lowest = np.partition(block, k, axis=1)[:, : k + 1]
        last, next_one = lowest[:, :k].max(axis=1), lowest[:, k]
        error = relative * (squared_norms(part) + norms.max())
        doubtful = np.flatnonzero(next_one - last <= error)
        # Exactly k in a row but for the doubtful ones, which get any k for now.
        near = block <= last[:, None]
        near[doubtful] = np.arange(m) < k
        indices = np.flatnonzero(near).reshape(-1, k) % m
        if doubtful.size:
            found = nearest(X[rows][doubtful], Y, k)[1]
            indices[doubtful] = np.sort(found, axis=1)
        means = values[indices[:, 0]].astype(np.float64)
        for j in range(1, k):
            means += values[indices[:, j]]
        return means / k

    size = chunk_size(3 * m * norms.itemsize, 2**24)
    parts = map_chunks(average, n, size, n_jobs)
    return np.concatenate(parts) if parts else np.empty((0, values.shape[1]))
