"""Read and process many rows in chunks, which bounds the memory."""

import math
import mmap

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from ._containers import BlockRows, is_dask
from ._sklearn import num_samples
from ._system import release_pages

LARGE = 2**26  # arrays of at least this many bytes are not copied
HALF_BLOCK = 2**15  # numbers of type float16 that are converted at once, in the cache
FEW = 1024  # rows of a mapped file that are read before their pages are released
_UNCOPIED = 400_000  # multiplications of a small product
_FEWEST = 64  # rows of a part that are worth a call
CLOSE = 2  # a span of rows is read if it holds at most this many per wanted row


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


def concatenate_chunks(function, n, size, n_jobs=1):
    """Return the rows of `function(rows)` for slices of at most `size` rows, an array.

    The results are not held twice. A list of arrays is concatenated array by array.
    """
    first = function(slice(0, min(size, n)))
    if n <= size:
        return first
    several = isinstance(first, list)
    found = [
        np.empty((n, *part.shape[1:]), part.dtype)
        for part in (first if several else [first])
    ]

    def fill(rows):
        parts = first if rows.start == 0 else function(rows)
        for whole, part in zip(found, parts if several else [parts], strict=True):
            whole[rows] = part

    map_chunks(fill, n, size, n_jobs)
    return found if several else found[0]


def multiply_rows(X, W):
    """Return `X @ W`, for few columns in parts that OpenBLAS multiplies uncopied."""
    size = _UNCOPIED // W.size
    if size < _FEWEST or not isinstance(X, np.ndarray):
        return X @ W
    found = np.empty((len(X), *W.shape[1:]), np.result_type(X, W))
    for rows in chunks(len(X), size):
        np.matmul(X[rows], W, out=found[rows])
    return found


def to_type(X, dtype):
    """Return an array as numbers of another type, without a copy if possible.

    float16 becomes float32 or float64 by a few operations on its bits, which is faster
    than NumPy's conversion of one number after another. The result is the same.
    """
    if X.dtype != np.float16 or dtype not in (np.float32, np.float64):
        return X.astype(dtype, copy=False)
    half = np.ascontiguousarray(X).view(np.uint16).reshape(-1)
    found = np.empty(X.shape, np.float32)
    for part in chunks(len(half), HALF_BLOCK):
        if (half[part] << 1).max() >= 0xF800:  # infinite or NaN
            return X.astype(dtype)
        numbers = found.reshape(-1)[part]
        bits = numbers.view(np.int32)
        # Sign, exponent and fraction go to their places; the copies of the sign bit
        # are removed, and the product corrects the bias of the exponent.
        np.left_shift(half[part].view(np.int16), 13, out=bits, dtype=np.int32)
        bits &= -0x70002000
        numbers *= np.float32(2.0**112)
    return found.astype(dtype, copy=False)


def _find_map(X):
    """Return the mapped file that an array is read from, and its address, or None."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and isinstance(X._mmap, mmap.mmap):
            address = np.frombuffer(X._mmap, np.uint8).ctypes.data
            return (X._mmap, address) if X.mode == "r" else None
        X = X.base
    return None


class LazyRows:
    """Rows of a large array, copied and converted when they are read.

    Pages of a file that is mapped for reading are released after that.
    `rows[key]` is an ndarray. `positions` (p,) selects rows of `X` (n, d), by default
    all; `dtype` converts them. NumPy functions convert the whole object to an array.
    `X` may be an object that reads rows when it is indexed.
    """

    ndim = 2

    def __init__(self, X, positions=None, dtype=None):
        X = BlockRows(X) if is_dask(X) else X
        self.X, self.positions = X, positions
        self.dtype = X.dtype if dtype is None else np.dtype(dtype)
        self.shape = (len(X) if positions is None else len(positions), X.shape[1])
        self._rows = getattr(X, "mapped", X)  # a FileRows has them unchecked
        self._map = _find_map(self._rows)

    def __len__(self):
        return self.shape[0]

    @property
    def itemsize(self):
        """Size of a number in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self):
        """Size of all rows in bytes."""
        return math.prod(self.shape) * self.itemsize

    def __getitem__(self, key):
        return self._read(key if self.positions is None else self.positions[key])

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
        return self._read(slice(first, stop)), positions - first

    def _read(self, key):
        is_scattered = isinstance(key, np.ndarray) and key.dtype != bool
        if self._map is not None and is_scattered and len(key) > FEW:
            # Each row of a file that is far from the others maps many pages.
            found = np.empty((len(key), self.shape[1]), self.dtype)
            for part in chunks(len(key), FEW):
                found[part] = self._read(key[part])
            return found
        rows = np.asarray(self.X[key])
        found = to_type(rows, self.dtype)
        if self._map is not None:
            self._release(key, found is rows and not rows.flags.owndata)
        return found

    def _release(self, key, is_view):
        """Release the pages of rows that were read, or all if they are not copied."""
        mapped, address = self._map
        start, stop = 0, len(mapped)
        X = self._rows
        if not is_view and X.strides[0] > 0:
            if isinstance(key, slice):
                first, last, _ = key.indices(len(X))
            else:
                key = np.asarray(key)
                first, last = key.min(initial=len(X)), key.max(initial=-1) + 1
            origin = X.ctypes.data - address
            start = origin + int(first) * X.strides[0]
            stop = origin + int(last) * X.strides[0]
        if start < stop:
            release_pages(mapped, start, stop)

    def __array__(self, dtype=None, copy=None):
        return self[:].astype(dtype or self.dtype, copy=bool(copy))


def lazy_rows(X, positions=None, least=None):
    """Return LazyRows of `X`, or None if `X` is not dense or too small to matter.

    Without positions, these are all rows of a mapped file. `least` is the number of
    bytes of a large array, by default 2**26. A dask array of any size is large.
    """
    if isinstance(X, LazyRows):
        if positions is None:
            return X
        own = positions if X.positions is None else X.positions[positions]
        return LazyRows(X.X, own, X.dtype)
    if is_dask(X):
        return LazyRows(X, positions)
    dense = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"
    is_large = dense and X.nbytes >= (LARGE if least is None else least)
    if is_large and positions is None:
        is_large = _find_map(X) is not None
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


def map_rows(function, X):
    """Return `function(X)`; for a dask array, a dask array of it, block by block.

    The array is computed at once if the result is not numbers (r, k) for r rows. Raise
    a ValueError for another number of rows than that of `X`.
    """
    if not is_dask(X):
        rows = function(X)
        if (n := num_samples(rows)) != num_samples(X):
            raise ValueError(
                "'X' must hold items that the first steps of the estimator take; of "
                f"{num_samples(X)} items, they made {n} rows. Of a table with texts, "
                "pass the column, such as X['text']."
            )
        return rows
    first = function(np.asarray(X[:1]))
    if not isinstance(first, np.ndarray) or first.ndim != 2:
        return function(np.asarray(X))
    X = X.rechunk({1: -1})
    chunks = X.chunks[0], (first.shape[1],)
    return X.map_blocks(function, chunks=chunks, meta=first[:0])
