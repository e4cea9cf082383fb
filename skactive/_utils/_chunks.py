"""Process many rows in chunks, which bounds the memory."""

import math

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

LARGE = 2**26  # bytes of an array, from which on a copy of it is one too many
CLOSE = 2  # rows that may be read for each that is wanted: a copy costs as much


def chunks(n, size):
    """Yield slices of at most `size` rows, from 0 to `n`."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def chunk_size(row_bytes, limit=2**25):
    """Return the number of rows, at least 1, that fit into `limit` bytes."""
    return max(1, int(limit // max(1, row_bytes)))


def map_chunks(function, n, size, n_jobs=1):
    """Return the results of `function(rows)` for slices of at most `size` rows, a list.

    The size does not depend on `n_jobs`, the number of threads, so neither do results.
    """
    if n_jobs == 1 or n <= size:
        return [function(rows) for rows in chunks(n, size)]
    # Threads, as processes would each get a copy of the features.
    workers = Parallel(n_jobs=n_jobs, backend="threading")
    return workers(delayed(function)(rows) for rows in chunks(n, size))


class LazyRows:
    """Rows of a large array, copied and converted when they are read.

    `rows[key]` is an ndarray. `positions` (p,) selects rows of `X` (n, d), by default
    all; `dtype` converts them. NumPy functions convert the whole object to an array.
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
        """Size of a number in bytes."""
        return self.dtype.itemsize

    def __getitem__(self, key):
        rows = self.X[key if self.positions is None else self.positions[key]]
        return np.asarray(rows).astype(self.dtype, copy=False)

    def around(self, key):
        """Return rows that include `self[key]`, and their places: `rows[places]`.

        Rows that are close together are not copied.
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
    """Return LazyRows of `X`, or None if `X` is not dense or too small to matter.

    `least` is the number of bytes of a large array, by default 2**26.
    """
    if isinstance(X, LazyRows):
        own = positions if X.positions is None else X.positions[positions]
        return LazyRows(X.X, own, X.dtype)
    dense = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"
    is_large = dense and X.nbytes >= (LARGE if least is None else least)
    return LazyRows(X, positions) if is_large else None


def as_floats(X):
    """Return features (n, d) as floating-point numbers, without a copy if possible.

    float16 becomes float32, and all other types except float32 become float64. A memory
    map is kept; a sparse matrix becomes CSR.
    """
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    return X.astype(_float_type(X.dtype), copy=False)


def float_rows(X):
    """Return features like `as_floats`; large arrays are converted when read."""
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
