"""Euclidean distances: by one matrix product per block, by differences for pairs.

Rows are dense or CSR, float32 or float64, in memory or in a memory map. A product is
fast and rounds, by at most `rounding`; differences of equal rows are exactly 0.
"""

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from .._utils._chunks import chunk_size, chunks


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
