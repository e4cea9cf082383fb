"""Rows of dask arrays, which are computed when they are read."""

import numpy as np

FEW = 16  # rows of a block, below which the rest of it is not computed


def is_dask(X):
    """Whether `X` is a dask array (n, d) of numbers. dask is not imported."""
    if not hasattr(X, "__dask_graph__") or not hasattr(X, "rechunk"):
        return False
    return X.ndim == 2 and X.dtype.kind in "fiub"


def check_known_size(X, name):
    """Raise a ValueError for a dask array of unknown shape."""
    shape = getattr(X, "shape", None) if hasattr(X, "__dask_graph__") else None
    if isinstance(shape, tuple) and any(isinstance(size, float) for size in shape):
        raise ValueError(
            f"{name!r} must be a dask array of known size, got the shape {shape}. Call "
            f"{name}.compute_chunk_sizes() first."
        )


def map_rows(function, X):
    """Return `function(X)`; for a dask array, a dask array of it, block by block.

    The array is computed at once if the result is not numbers (r, k) for r rows.
    """
    if not is_dask(X):
        return function(X)
    first = function(np.asarray(X[:1]))
    if not isinstance(first, np.ndarray) or first.ndim != 2:
        return function(np.asarray(X))
    X = X.rechunk({1: -1})
    chunks = X.chunks[0], (first.shape[1],)
    return X.map_blocks(function, chunks=chunks, meta=first[:0])


class BlockRows:
    """Rows of a dask array as ndarrays. The block that was read last is kept.

    So a block is computed once, though slices of it are read one after the other.
    """

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype
        self._stops = np.cumsum(X.chunks[0])
        self._last = None, None  # a block's number and rows

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._read_slice(start, stop)
            key = range(start, stop, step)
        key = np.asarray(key)
        if key.ndim == 0:
            return self[key[None]][0]
        positions = np.flatnonzero(key) if key.dtype == bool else key.astype(np.intp)
        rows, places = np.unique(positions % len(self), return_inverse=True)
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            return self._read_slice(rows[0], rows[-1] + 1)[places]
        return self._read_rows(rows)[places]

    def _read_slice(self, start, stop):
        if start >= stop:
            return np.empty((0, self.shape[1]), self.dtype)
        first, last = np.searchsorted(self._stops, [start, stop - 1], side="right")
        if first == last != self._last[0] and stop - start < FEW:
            return self._compute(slice(start, stop))
        parts = []
        for number in range(first, last + 1):
            begin, block = self._read_block(number)
            parts.append(block[max(start - begin, 0) : stop - begin])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _read_rows(self, rows):
        """Return rows at ascending positions (p,)."""
        numbers = np.searchsorted(self._stops, rows, side="right")
        touched = np.unique(numbers)
        if len(rows) < FEW * len(touched):
            return self._compute(rows)
        found = np.empty((len(rows), self.shape[1]), self.dtype)
        for number in touched:
            begin, block = self._read_block(number)
            mine = numbers == number
            found[mine] = block[rows[mine] - begin]
        return found

    def _read_block(self, number):
        """Return the position of a block's first row, and its rows."""
        stop = self._stops[number]
        start = stop - self.X.chunks[0][number]
        known, rows = self._last  # one reference, as threads replace it
        if known != number:
            rows = self._compute(slice(start, stop))
            self._last = number, rows
        return start, rows

    def _compute(self, key):
        rows = np.asarray(np.asarray(self.X[key]), self.dtype, order="C").view()
        rows.flags.writeable = False  # it may be the array that the user has
        return rows
