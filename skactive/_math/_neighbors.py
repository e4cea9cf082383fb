"""Euclidean distances, nearest neighbors, and means over them.

Rows are dense or CSR, float32 or float64, in memory or in a memory map. A matrix
product per block is fast and rounds, by at most `rounding`; differences of pairs are
exactly 0 for equal rows. A product finds likely neighbors and differences decide, so
no result depends on the blocks.
"""

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from .._utils._chunks import chunk_size, chunks, concatenate_chunks, float_rows


def squared_norms(X):
    """Return the squared Euclidean length of each row, (n,)."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def middle(X):
    """Return the mean (d,) of some evenly spread rows, or None.

    Subtracting it from all rows keeps distances and reduces their rounding errors. It
    is None for rows around the origin and for a CSR matrix, which would become dense.
    """
    if sparse.issparse(X) or X.shape[0] == 0:
        return None
    sample = X[:: -(-X.shape[0] // 1024)].astype(np.float64)
    mean = sample.mean(axis=0)
    spread = sample.var(axis=0).sum()
    return mean.astype(X.dtype) if mean @ mean > spread else None


def shift(X, origin):
    """Subtract a point from all rows, unless it is None."""
    return X if origin is None else X - origin


def rounding(X, Y, dtype=None):
    """Bound the relative rounding error of squared distances computed by a product.

    Multiply it by the sum of both rows' squared lengths.
    """
    filled = [
        np.diff(Z.indptr).max(initial=0) if sparse.issparse(Z) else Z.shape[1]
        for Z in (X, Y)
    ]
    # The error of a sum is at most one rounding per term.
    unit = np.finfo(np.result_type(X.dtype, Y.dtype) if dtype is None else dtype).eps
    return 2 * (int(min(filled)) + 4) * unit


def squared_distances(X, Y, *, norms=None, origin=None):
    """Return all squared distances (n, m), never negative, by one matrix product.

    `norms` are the squared lengths of the rows of `Y` minus `origin`, a point near the
    rows.
    """
    X, Y = shift(X, origin), shift(Y, origin)
    block = safe_sparse_dot(X, Y.T, dense_output=True)
    block *= -2
    block += squared_norms(X)[:, None]
    block += squared_norms(Y) if norms is None else norms
    return np.maximum(block, 0, out=block)


def paired_distances(X, Y, rows, columns, *, prepare=None):
    """Return squared distances (p,) of `X[rows]` and `Y[columns]`, from differences.

    `prepare` is applied to chunks of the rows, to scale or convert them.
    """
    rows, columns = np.asarray(rows), np.asarray(columns)
    dtype = np.result_type(X.dtype, Y.dtype) if prepare is None else np.float64
    distances = np.empty(len(rows), dtype=dtype)
    for part in chunks(len(rows), chunk_size(16 * X.shape[1], 2**22)):
        left, right = X[rows[part]], Y[columns[part]]
        if prepare is not None:
            left, right = prepare(left), prepare(right)
        if sparse.issparse(left) != sparse.issparse(right):
            left, right = map(_dense, (left, right))
        distances[part] = squared_norms(left - right)
    return distances


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X


QUERIES = 1024  # rows of a block of the distance matrix
TARGETS = 2048  # its columns
SPARE = 8  # candidates kept beyond the k nearest, which rounding may swap


def nearest(X, Y, k, *, exclude_self=False, n_jobs=1):
    """Return distances and indices (n, k) of the k nearest rows of Y to each row of X.

    Distances are Euclidean, ascending; ties are ordered by index. With `exclude_self`,
    row i of `Y` is not a neighbor of row i of `X`.
    """
    X, Y = float_rows(X), float_rows(Y)
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}.")
    k = min(k, Y.shape[0] - exclude_self)
    if k < 1:
        raise ValueError("'Y' must hold a row that can be a neighbor.")
    search = _Search(X, Y, k, exclude_self)
    return concatenate_chunks(search, X.shape[0], QUERIES, n_jobs)


def neighbor_means(X, Y, values, k, *, n_jobs=1):
    """Return means (n, v) of `values` (m, v) over the k nearest rows of Y.

    Neighbors are exact: where rounding could matter, `nearest` decides. Ties are
    ordered by index.
    """
    X, Y, values = float_rows(X), float_rows(Y), np.asarray(values)
    n, m = X.shape[0], Y.shape[0]
    if k >= m:
        return np.repeat(values.mean(axis=0, keepdims=True), n, axis=0)
    origin = middle(Y)
    Y_near = shift(Y, origin)
    norms = squared_norms(Y_near)
    relative = rounding(X, Y)

    def average(rows):
        part = shift(X[rows], origin)
        # Without the norm of the own row: it does not change which are nearest.
        block = safe_sparse_dot(part, Y_near.T, dense_output=True)
        block *= -2
        block += norms
        # One pivot, which NumPy vectorizes; the k before it are unordered.
        lowest = np.partition(block, k, axis=1)[:, : k + 1]
        last, next_one = lowest[:, :k].max(axis=1), lowest[:, k]
        error = relative * (squared_norms(part) + norms.max())
        doubtful = np.flatnonzero(next_one - last <= error)
        # Exactly k per row; the doubtful rows get any k for now.
        near = block <= last[:, None]
        near[doubtful] = np.arange(m) < k
        indices = np.flatnonzero(near).reshape(-1, k) % m
        if doubtful.size:
            exact = nearest(X[rows][doubtful], Y, k)[1]
            indices[doubtful] = np.sort(exact, axis=1)
        means = values[indices[:, 0]].astype(np.float64)
        for j in range(1, k):
            means += values[indices[:, j]]
        return means / k

    size = chunk_size(3 * m * norms.itemsize, 2**24)
    return concatenate_chunks(average, n, size, n_jobs)


class _Search:
    """The exact search, called on a slice of the queries."""

    def __init__(self, X, Y, k, exclude_self):
        self.X, self.Y, self.k, self.exclude_self = X, Y, k, exclude_self
        mixed = sparse.issparse(X) or sparse.issparse(Y)
        self.origin = None if mixed else middle(Y)
        self.norms = np.concatenate(
            [
                squared_norms(shift(Y[part], self.origin))
                for part in chunks(Y.shape[0], TARGETS)
            ]
        )
        self.relative = rounding(X, Y)

    def __call__(self, rows):
        X = self.X[rows]
        own = np.arange(rows.start, rows.stop) if self.exclude_self else None
        reached, indices = self._candidates(X, own)
        distances, indices = self._sort(X, indices, own)
        if indices.shape[1] < self.Y.shape[0] - self.exclude_self:
            lengths = squared_norms(shift(X, self.origin))
            error = self.relative * (lengths + self.norms.max())
            limits = distances[:, self.k - 1] + error
            # Decided unless an omitted row may be as near as the k-th.
            doubtful = np.flatnonzero(reached <= limits)
            if doubtful.size:
                left = None if own is None else own[doubtful]
                decided = self._decide(X[doubtful], limits[doubtful], left)
                distances[doubtful, : self.k], indices[doubtful, : self.k] = decided
        return [np.sqrt(distances[:, : self.k]), indices[:, : self.k]]

    def _blocks(self, X, own):
        """Yield distances from X to the rows of Y by products, in column blocks."""
        X = shift(X, self.origin)
        for columns in chunks(self.Y.shape[0], TARGETS):
            Y = shift(self.Y[columns], self.origin)
            block = squared_distances(X, Y, norms=self.norms[columns])
            if own is not None:
                here = np.flatnonzero((own >= columns.start) & (own < columns.stop))
                block[here, own[here] - columns.start] = np.inf
            yield columns, block

    def _candidates(self, X, own):
        """Return a few more than k likely neighbors and the farthest distance."""
        keep = min(self.k + SPARE, self.Y.shape[0] - self.exclude_self)
        values = indices = None
        for columns, block in self._blocks(X, own):
            index = np.broadcast_to(np.arange(columns.start, columns.stop), block.shape)
            block, index = _smallest(block, index, keep)
            if values is not None:
                block = np.concatenate([values, block], axis=1)
                index = np.concatenate([indices, index], axis=1)
                block, index = _smallest(block, index, keep)
            values, indices = block, index
        return values.max(axis=1), np.array(indices)

    def _sort(self, X, indices, own):
        """Order candidates by their exact distances, ties by index."""
        indices = np.sort(indices, axis=1)
        rows = np.repeat(np.arange(len(indices)), indices.shape[1])
        distances = paired_distances(X, self.Y, rows, indices.ravel())
        distances = distances.reshape(indices.shape)
        if own is not None:
            distances[indices == own[:, None]] = np.inf
        order = np.argsort(distances, axis=1, kind="stable")
        return take_both(distances, indices, order, axis=1)

    def _decide(self, X, limits, own):
        """Find the k nearest by the differences of all that may be among them."""
        distances = np.empty((X.shape[0], 0))
        indices = np.empty((X.shape[0], 0), dtype=np.intp)
        for columns, block in self._blocks(X, own):
            rows, near = np.nonzero(block <= limits[:, None])
            true = np.full_like(block, np.inf)
            true[rows, near] = paired_distances(X, self.Y, rows, near + columns.start)
            index = np.arange(columns.start, columns.stop)
            index = np.broadcast_to(index, block.shape)
            distances = np.concatenate([distances, true], axis=1)
            indices = np.concatenate([indices, index], axis=1)
            # The order is stable: ties go to the first in Y.
            order = np.argsort(distances, axis=1, kind="stable")[:, : self.k]
            distances, indices = take_both(distances, indices, order, axis=1)
        return distances, indices


def _smallest(values, indices, keep):
    if values.shape[1] <= keep:
        return values, indices
    order = np.argpartition(values, keep - 1, axis=1)[:, :keep]
    return take_both(values, indices, order, axis=1)


def stack_rows(parts):
    """Return the rows of several arrays; a CSR matrix if one of them is sparse."""
    if any(map(sparse.issparse, parts)):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def take_both(first, second, order, axis):
    """Return two arrays in the order of the same indices along an axis."""
    return (
        np.take_along_axis(first, order, axis),
        np.take_along_axis(second, order, axis),
    )
