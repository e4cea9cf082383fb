"""Positions of items by 64-bit hashes, in little memory."""

import numpy as np

_PART_BYTES = 2**25  # of the hashes that are sorted at once


class HashIndex:
    """Positions of n hashes: the sorted hashes and their order, 12 bytes for each."""

    def __init__(self, hashes):
        order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[order]
        self._order = order.astype(small_int(len(order)))

    def find(self, keys):
        """Return the first position of each of keys (m,), -1 for unknown ones."""
        indices = np.searchsorted(self._sorted, keys)
        indices[indices == len(self._sorted)] = 0
        positions = self._order[indices].astype(np.intp)
        positions[self._sorted[indices] != keys] = -1
        return positions

    def find_all(self, keys):
        """Return a list of the positions of each of keys (m,), in order."""
        starts = np.searchsorted(self._sorted, keys)
        stops = np.searchsorted(self._sorted, keys, side="right")
        bounds = zip(starts.tolist(), stops.tolist(), strict=True)
        return [self._order[start:stop].tolist() for start, stop in bounds]

    def get(self, key):
        """Return a list of the positions of one hash, in order."""
        return self.find_all(np.array([key], dtype=np.uint64))[0]

    def find_first(self):
        """Return the first position of each hash, (n,); None if all differ."""
        starts, sizes = self._find_groups()
        if len(starts) == len(self._order):
            return None
        first = np.empty_like(self._order)
        first[self._order] = np.repeat(self._order[starts], sizes)
        return first

    def count_earlier(self):
        """Return the number of equal hashes before each hash, (n,)."""
        starts, sizes = self._find_groups()
        earlier = np.empty_like(self._order)
        earlier[self._order] = np.arange(len(earlier)) - np.repeat(starts, sizes)
        return earlier

    def _find_groups(self):
        """Return where the groups of equal hashes begin, and their sizes."""
        is_start = np.ones(len(self._sorted), dtype=bool)
        np.not_equal(self._sorted[1:], self._sorted[:-1], out=is_start[1:])
        starts = np.flatnonzero(is_start)
        return starts, np.diff(starts, append=len(is_start))

    def find_repeated(self):
        """Return the sorted positions of hashes that occur more than once, (r,)."""
        is_equal = self._sorted[1:] == self._sorted[:-1]
        is_repeated = np.zeros(len(self._sorted), dtype=bool)
        is_repeated[1:] = is_equal
        is_repeated[:-1] |= is_equal
        return np.sort(self._order[is_repeated])

    def hashes(self):
        """Return the hashes in their original order, (n,)."""
        hashes = np.empty_like(self._sorted)
        hashes[self._order] = self._sorted
        return hashes


def small_int(n):
    """Return the smaller type of integers that holds positions of n items."""
    return np.int32 if n < 2**31 else np.int64


def find_repeated(hashes):
    """Return the sorted positions of hashes (n,) that occur more than once, (r,).

    A part of the values is sorted at a time, so that little memory is used.
    """
    n_parts = 1 + hashes.nbytes // _PART_BYTES
    repeated = []
    for part in range(n_parts):
        rows = [
            start + np.flatnonzero(hashes[start : start + 2**20] % n_parts == part)
            for start in range(0, len(hashes), 2**20)
        ]
        rows = np.concatenate(rows)
        repeated.append(rows[HashIndex(hashes[rows]).find_repeated()])
    return np.sort(np.concatenate(repeated))
