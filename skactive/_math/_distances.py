"""Euclidean distances: by one product for a block, by differences for pairs.

Rows are dense or CSR, float32 or float64, in memory or in a memory map. A product is
quick and rounds, by at most what `rounding` says; differences put equal rows at
distance 0 exactly.
"""

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from .._utils._chunks import chunk_size, chunks


def squared_norms(X):
    """Squared Euclidean length of each row.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)

    Returns
    -------
    norms : ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._distances import squared_norms
    >>> squared_norms(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([25.,  0.])
    """
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def middle(X):
    """Mean of some rows, evenly spread: a point to measure from.

    Distances do not change when it is taken off all rows, and their rounding errors
    shrink with the length of what remains.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)

    Returns
    -------
    middle : ndarray of shape (d,), or None
        None where it would help little, as the rows lie around the origin, and for a
        CSR matrix, which it would fill.
    """
    if sparse.issparse(X) or X.shape[0] == 0:
        return None
    sample = X[:: -(-X.shape[0] // 1024)].astype(np.float64)
    mean = sample.mean(axis=0)
    spread = sample.var(axis=0).sum()
    return mean.astype(X.dtype) if mean @ mean > spread else None


def shift(X, origin):
    """Take a point off all rows, unless it is None."""
    return X if origin is None else X - origin


def rounding(X, Y, dtype=None):
    """Bound the rounding error of squared distances that come from a product.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    Y : ndarray or CSR matrix of shape (m, d)
    dtype : dtype or None, default=None
        In which the product is computed; None is that of the rows.

    Returns
    -------
    bound : float
        To be multiplied by the sum of both rows' squared lengths.
    """
    filled = [
        np.diff(Z.indptr).max(initial=0) if sparse.issparse(Z) else Z.shape[1]
        for Z in (X, Y)
    ]
    # A sum errs by at most as many roundings as it has terms.
    unit = np.finfo(np.result_type(X.dtype, Y.dtype) if dtype is None else dtype).eps
    return 2 * (int(min(filled)) + 4) * unit


def squared_distances(X, Y, *, norms=None, origin=None):
    """All squared distances between two sets of rows, by one matrix product.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    Y : ndarray or CSR matrix of shape (m, d)
        The result is held as a whole, so pass chunks.
    norms : ndarray of shape (m,) or None, default=None
        Squared lengths of the rows of `Y` (less `origin`), where they are known.
    origin : ndarray of shape (d,) or None, default=None
        A point near the rows, as `middle` gives it, to keep rounding small.

    Returns
    -------
    distances : ndarray of shape (n, m)
        Never negative. Equal rows are at 0 but for rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._distances import squared_distances
    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [1.0, 0.0]]))
    array([[25.,  1.]])
    """
    X, Y = shift(X, origin), shift(Y, origin)
    block = safe_sparse_dot(X, Y.T, dense_output=True)
    block *= -2
    block += squared_norms(X)[:, None]
    block += squared_norms(Y) if norms is None else norms
    return np.maximum(block, 0, out=block)


def paired_distances(X, Y, rows, columns, *, prepare=None):
    """Squared distances of given pairs, from the differences themselves.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    Y : ndarray or CSR matrix of shape (m, d)
    rows, columns : ndarray of int, shape (p,)
        Positions in `X` and `Y`.
    prepare : callable or None, default=None
        Applied to chunks of the rows, to scale them or change their type.

    Returns
    -------
    distances : ndarray of shape (p,)
        Exactly 0 for equal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._distances import paired_distances
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> paired_distances(X, X, [0, 1], [1, 1])
    array([25.,  0.])
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
