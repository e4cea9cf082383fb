"""Work through many rows a chunk at a time, so that memory stays bounded."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

__all__ = ["as_floats", "chunk_size", "chunks", "map_chunks"]


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
    >>> from skactive._chunks import chunks
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


def as_floats(X):
    """Make floating-point numbers of features, without a copy where they are.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
        A memory map stays one.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n, d)
        float32 and float64 as they came, other numbers as float64.
    """
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
