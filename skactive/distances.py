"""Euclidean distances and nearest neighbours, a block of the matrix at a time.

Rows are dense or CSR, float32 or float64, in memory or in a memory map. A matrix
product finds what is near; direct differences then decide, so equal rows are at
distance 0 exactly and no answer depends on how the work was cut.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from ._chunks import chunk_size, chunks, float_rows, map_chunks
from ._faiss import InvertedFile

__all__ = [
    "middle",
    "nearest",
    "paired_distances",
    "squared_distances",
    "squared_norms",
]

QUERIES = 1024  # rows of a block of the distance matrix
TARGETS = 2048  # its columns
SPARE = 8  # candidates kept beyond the k nearest, for what rounding may swap
METHODS = ("auto", "exact", "faiss")
MANY = 10**11  # pairs, from which on "auto" takes an approximate index


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
    >>> from skactive.distances import squared_norms
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


def rounding(X, Y):
    """Bound the rounding error of squared distances that come from a product.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    Y : ndarray or CSR matrix of shape (m, d)

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
    unit = np.finfo(np.result_type(X.dtype, Y.dtype)).eps
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
    >>> from skactive.distances import squared_distances
    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [1.0, 0.0]]))
    array([[25.,  1.]])
    """
    X, Y = _shift(X, origin), _shift(Y, origin)
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
    >>> from skactive.distances import paired_distances
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


def nearest(X, Y, k, *, exclude_self=False, n_jobs=1, method="exact"):
    """Find the k nearest rows of Y to each row of X.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
        The queries.
    Y : ndarray or sparse matrix of shape (m, d)
        Where neighbours are looked for.
    k : int
        How many, at least 1; all of them if `Y` has fewer.
    exclude_self : bool, default=False
        Whether row i of `Y` is no neighbour of row i of `X`; for `X` and `Y` the
        same. Other rows equal to it are.
    n_jobs : int, default=1
        Threads.
    method : {"exact", "faiss", "auto"}, default="exact"
        "faiss" searches an inverted file of the package `faiss` (the extra
        `skactive[ann]`), which is approximate and copies `Y` as float32. "auto"
        does so where it is installed, rows are dense and n m exceeds 10^11.

    Returns
    -------
    distances : ndarray of shape (n, k)
        Euclidean, ascending.
    indices : ndarray of int, shape (n, k)
        Rows of `Y`; of equally near ones the first in `Y` come first.

    Notes
    -----
    O(n m d) by matrix products in blocks of fixed size, then O(n k d) for the
    differences. Rows whose order is within rounding are compared by differences.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.distances import nearest
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> nearest(X, X, 1, exclude_self=True)
    (array([[1.],
           [1.],
           [2.]]), array([[1],
           [0],
           [1]]))
    """
    X, Y = float_rows(X), float_rows(Y)
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}; got {method!r}.")
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}.")
    k = min(k, Y.shape[0] - exclude_self)
    if k < 1:
        raise ValueError("Y holds no row that could be a neighbour.")
    if method == "auto":
        dense = not (sparse.issparse(X) or sparse.issparse(Y))
        many = X.shape[0] * Y.shape[0] > MANY
        method = "faiss" if many and dense and find_spec("faiss") else "exact"
    if method == "faiss":
        parts = _search_index(X, Y, k, exclude_self)
    else:
        search = _Search(X, Y, k, exclude_self)
        parts = map_chunks(search, X.shape[0], QUERIES, n_jobs)
    if not parts:
        return np.empty((0, k), dtype=X.dtype), np.empty((0, k), dtype=np.intp)
    distances, indices = map(np.concatenate, zip(*parts, strict=True))
    return distances, indices


class _Search:
    """The exact search, called on a slice of the queries."""

    def __init__(self, X, Y, k, exclude_self):
        self.X, self.Y, self.k, self.exclude_self = X, Y, k, exclude_self
        mixed = sparse.issparse(X) or sparse.issparse(Y)
        self.origin = None if mixed else middle(Y)
        self.norms = np.concatenate(
            [
                squared_norms(_shift(Y[part], self.origin))
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
            lengths = squared_norms(_shift(X, self.origin))
            error = self.relative * (lengths + self.norms.max())
            limits = distances[:, self.k - 1] + error
            # Settled unless something left out may be as near as the k-th.
            doubtful = np.flatnonzero(reached <= limits)
            if doubtful.size:
                left = None if own is None else own[doubtful]
                found = self._decide(X[doubtful], limits[doubtful], left)
                distances[doubtful, : self.k], indices[doubtful, : self.k] = found
        return np.sqrt(distances[:, : self.k]), indices[:, : self.k]

    def _blocks(self, X, own):
        """Distances from X to the rows of Y by products, some columns at a time."""
        X = _shift(X, self.origin)
        for columns in chunks(self.Y.shape[0], TARGETS):
            Y = _shift(self.Y[columns], self.origin)
            block = squared_distances(X, Y, norms=self.norms[columns])
            if own is not None:
                here = np.flatnonzero((own >= columns.start) & (own < columns.stop))
                block[here, own[here] - columns.start] = np.inf
            yield columns, block

    def _candidates(self, X, own):
        """Take a few more than k likely neighbours; say how far the furthest is."""
        keep = min(self.k + SPARE, self.Y.shape[0] - self.exclude_self)
        values = indices = None
        for columns, block in self._blocks(X, own):
            place = np.broadcast_to(np.arange(columns.start, columns.stop), block.shape)
            block, place = _smallest(block, place, keep)
            if values is not None:
                block = np.concatenate([values, block], axis=1)
                place = np.concatenate([indices, place], axis=1)
                block, place = _smallest(block, place, keep)
            values, indices = block, place
        return values.max(axis=1), np.array(indices)

    def _sort(self, X, indices, own):
        """Order candidates by their true distances, ties by index."""
        indices = np.sort(indices, axis=1)
        rows = np.repeat(np.arange(len(indices)), indices.shape[1])
        distances = paired_distances(X, self.Y, rows, indices.ravel())
        distances = distances.reshape(indices.shape)
        if own is not None:
            distances[indices == own[:, None]] = np.inf
        order = np.argsort(distances, axis=1, kind="stable")
        return (
            np.take_along_axis(distances, order, axis=1),
            np.take_along_axis(indices, order, axis=1),
        )

    def _decide(self, X, limits, own):
        """Find the k nearest by the differences of all that may be among them."""
        distances = np.empty((X.shape[0], 0))
        indices = np.empty((X.shape[0], 0), dtype=np.intp)
        for columns, block in self._blocks(X, own):
            rows, near = np.nonzero(block <= limits[:, None])
            true = np.full_like(block, np.inf)
            true[rows, near] = paired_distances(X, self.Y, rows, near + columns.start)
            place = np.arange(columns.start, columns.stop)
            place = np.broadcast_to(place, block.shape)
            distances = np.concatenate([distances, true], axis=1)
            indices = np.concatenate([indices, place], axis=1)
            # What came before stays before: ties fall to the first in Y.
            order = np.argsort(distances, axis=1, kind="stable")[:, : self.k]
            distances = np.take_along_axis(distances, order, axis=1)
            indices = np.take_along_axis(indices, order, axis=1)
        return distances, indices


def _smallest(values, indices, keep):
    if values.shape[1] <= keep:
        return values, indices
    order = np.argpartition(values, keep - 1, axis=1)[:, :keep]
    return (
        np.take_along_axis(values, order, axis=1),
        np.take_along_axis(indices, order, axis=1),
    )


def _shift(X, origin):
    return X if origin is None else X - origin


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X


def _search_index(X, Y, k, exclude_self):
    """Let an index propose neighbours, and order them by their true distances."""
    if sparse.issparse(X) or sparse.issparse(Y):
        raise TypeError(
            "method 'faiss' takes dense rows and got sparse ones. Use method='exact'."
        )
    index = InvertedFile(Y, TARGETS)
    search = _Search(X, Y, k, exclude_self)

    def look_up(rows):
        indices = index.search(X[rows], k + exclude_self)
        if (indices < 0).any():  # too few rows in the cells: look everywhere
            return search(rows)
        own = np.arange(rows.start, rows.stop) if exclude_self else None
        distances, indices = search._sort(X[rows], indices, own)
        return np.sqrt(distances[:, :k]), indices[:, :k]

    return [look_up(rows) for rows in chunks(X.shape[0], QUERIES)]
