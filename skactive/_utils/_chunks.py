"""Work through many rows a chunk at a time, so that memory stays bounded."""

import math

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

LARGE = 2**26  # bytes of an array, from which on a copy of it is one too many
CLOSE = 2  # rows that may be read for each that is wanted: a copy costs as much


def chunks(n, size):
    """Cut the rows from 0 to n into slices.

    Parameters
    ----------
    n : int
        Number of rows.
    size : int
        Rows of a slice; the last may be shorter.

    Yields
    ------
    rows : slice

    Examples
    --------
    >>> from skactive._utils._chunks import chunks
    >>> list(chunks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def chunk_size(row_bytes, limit=2**25):
    """How many rows to work on at once.

    Parameters
    ----------
    row_bytes : int
        Working memory of one row.
    limit : int, default=2**25
        Working memory of a chunk in bytes; 32 MiB unless told.

    Returns
    -------
    size : int
        At least 1.
    """
    return max(1, int(limit // max(1, row_bytes)))


def map_chunks(function, n, size, n_jobs=1):
    """Call a function on each slice of the rows.

    Parameters
    ----------
    function : callable
        Takes a slice.
    n : int
        Number of rows.
    size : int
        Rows of a slice. It does not depend on `n_jobs`, so neither does an answer.
    n_jobs : int, default=1
        Threads; NumPy works without Python's lock.

    Returns
    -------
    results : list
        In the order of the rows.
    """
    if n_jobs == 1 or n <= size:
        return [function(rows) for rows in chunks(n, size)]
    # Threads, as processes would each get a copy of the features.
    workers = Parallel(n_jobs=n_jobs, backend="threading")
    return workers(delayed(function)(rows) for rows in chunks(n, size))


class LazyRows:
    """Some rows of a large array, copied and converted only where they are looked at.

    It stands for an array where rows are taken a chunk at a time: `rows[key]` is an
    ndarray. Anything else that NumPy can do with it makes an array of it first.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        In memory or in a memory map.
    positions : ndarray of int of shape (p,), or None, default=None
        Which rows; None is all of them.
    dtype : dtype or None, default=None
        What to convert to; None leaves it.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._utils._chunks import LazyRows
    >>> rows = LazyRows(np.arange(6, dtype=np.float16).reshape(3, 2), dtype=np.float32)
    >>> rows.shape, rows[1:]
    ((3, 2), array([[2., 3.],
           [4., 5.]], dtype=float32))
    """

    ndim = 2

    def __init__(self, X, positions=None, dtype=None):
        self.X, self.positions = X, positions
        self.dtype = X.dtype if dtype is None else np.dtype(dtype)
        self.shape = (len(X) if positions is None else len(positions), X.shape[1])

    def __len__(self):
        return self.shape[0]

    @property
    def itemsize(self):
        """Bytes of a number."""
        return self.dtype.itemsize

    def __getitem__(self, key):
        rows = self.X[key if self.positions is None else self.positions[key]]
        return np.asarray(rows).astype(self.dtype, copy=False)

    def around(self, key):
        """Take rows without a copy where they are close together.

        Parameters
        ----------
        key : slice

        Returns
        -------
        rows : ndarray
            Rows of the array among which are those of `self[key]`.
        places : ndarray of int or slice
            Where they are: `rows[places]` is `self[key]`.
        """
        if self.positions is None:
            return self[key], slice(None)
        positions = self.positions[key]
        first, stop = positions.min(), positions.max() + 1
        if stop - first > CLOSE * len(positions):
            return self[key], slice(None)
        rows = np.asarray(self.X[first:stop]).astype(self.dtype, copy=False)
        return rows, positions - first

    def __array__(self, dtype=None, copy=None):
        return self[:].astype(dtype or self.dtype, copy=bool(copy))


def lazy_rows(X, positions, least=None):
    """Take rows of a large array when they are looked at, not now.

    Parameters
    ----------
    X : ndarray, LazyRows or anything else
    positions : ndarray of int of shape (p,)
    least : int or None, default=None
        Bytes that make an array large; None is 2**26.

    Returns
    -------
    rows : LazyRows or None
        None where `X` is not dense, or so small that a copy is no matter.
    """
    if isinstance(X, LazyRows):
        own = positions if X.positions is None else X.positions[positions]
        return LazyRows(X.X, own, X.dtype)
    dense = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"
    is_large = dense and X.nbytes >= (LARGE if least is None else least)
    return LazyRows(X, positions) if is_large else None


def as_floats(X):
    """Make floating-point numbers of features, without a copy where they are.

    Parameters
    ----------
    X : ndarray, LazyRows or sparse matrix of shape (n, d)
        A memory map stays one.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
        float32 and float64 as they came, float16 as float32, other numbers as float64.
    """
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    return X.astype(_float_type(X.dtype), copy=False)


def float_rows(X):
    """Make floating-point numbers of features where they are looked at.

    Parameters
    ----------
    X : ndarray, LazyRows or sparse matrix of shape (n, d)

    Returns
    -------
    X : ndarray, LazyRows or CSR matrix of shape (n, d)
        The numbers of `as_floats`. Of an array of another type, so large that a copy
        would matter, rows are converted when they are taken.
    """
    if not isinstance(X, LazyRows):
        X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        dtype = _float_type(X.dtype)
        large = math.prod(X.shape) * dtype.itemsize >= LARGE
        if X.dtype == dtype or sparse.issparse(X) or X.ndim != 2 or not large:
            return X.astype(dtype, copy=False)
        X = LazyRows(X)
    return LazyRows(X.X, X.positions, _float_type(X.dtype))


def _float_type(dtype):
    if dtype in (np.float32, np.float64):
        return dtype
    return np.dtype(np.float32 if dtype == np.float16 else np.float64)
