"""Ids and hashes of the items of a pool, in little memory."""

from collections.abc import Mapping, Set

import numpy as np

from .._storage._fingerprint import hash_ids
from .._utils._containers import as_list

_SHOWN = 5
FEW = 2**16  # so few ids are in a dict, which is faster than a search


class Ids:
    """The ids of a pool and their positions.

    `values` is a sequence of n ids. A range of ids takes no memory, a few ids are kept
    in a dict, and of others 12 bytes each: sorted hashes, and the positions of these.
    """

    def __init__(self, values, name="'ids'", items="X_pool"):
        self.values = values
        self._found = {}
        self._hashes = None
        if isinstance(values, range):
            return
        if len(values) <= FEW:
            self._found = {id: position for position, id in enumerate(values)}
            twice = [] if len(self._found) == len(values) else repeated(values)
        else:
            self._hashes, self._order = sort_hashes(hash_ids(values))
            twice = self._find_twice()
        if twice:
            raise ValueError(
                f"{name} must be unique, got {shorten(twice)} more than once. Pass "
                "different ids=."
            )

    def _find_twice(self):
        """Return the ids that occur more than once, of those with equal hashes."""
        same = self._hashes[1:] == self._hashes[:-1]
        if not same.any():
            return []
        rows = self._order[np.r_[same, False] | np.r_[False, same]]
        return repeated([self.values[row] for row in np.sort(rows).tolist()])

    def __contains__(self, id):
        return is_id(id) and self._find(id) is not None

    def positions(self, ids):
        """Return the positions of known ids, ndarray of int."""
        ids = list(ids)
        if isinstance(self.values, range):
            return np.array([self.values.index(id) for id in ids], dtype=np.intp)
        if self._hashes is not None:
            self._search([id for id in ids if id not in self._found])
        return np.array([self._found[id] for id in ids], dtype=np.intp)

    def _find(self, id):
        """Return the position of an id, None for another one."""
        if isinstance(self.values, range):
            is_known = isinstance(id, int) and id in self.values
            return self.values.index(id) if is_known else None
        if self._hashes is not None and id not in self._found:
            self._search([id])
        return self._found.get(id)

    def _search(self, ids):
        """Find ids by their hashes; they are kept, as they are asked for again."""
        if not ids:
            return
        keys = hash_ids(ids)
        first = np.searchsorted(self._hashes, keys)
        last = np.searchsorted(self._hashes, keys, side="right")
        for id, start, stop in zip(ids, first.tolist(), last.tolist(), strict=True):
            for position in self._order[start:stop].tolist():
                if self.values[position] == id:
                    self._found[id] = position

    def hash(self):
        """Return a uint64 hash of each id, (n,)."""
        if self._hashes is None:
            return hash_ids(self.values)
        hashes = np.empty_like(self._hashes)
        hashes[self._order] = self._hashes
        return hashes


def sort_hashes(hashes):
    """Return hashes (n,) in order, and their positions (n,) of a small int type."""
    order = np.argsort(hashes, kind="stable")
    return hashes[order], order.astype(small_int(len(order)))


def small_int(n):
    """Return the smaller type of integers that holds positions of n items."""
    return np.int32 if n < 2**31 else np.int64


class Index:
    """Positions of the items by hash; `get` is that of a dict of hash to positions."""

    def __init__(self, hashes):
        self._hashes, self._order = sort_hashes(hashes)

    def get(self, key, default):
        """Return the positions with a hash as a list, in order."""
        key = np.uint64(key)
        start = np.searchsorted(self._hashes, key)
        stop = np.searchsorted(self._hashes, key, side="right")
        return self._order[start:stop].tolist() or default


def count_earlier(hashes):
    """Return the first position of each hash, and how many equal ones are before it.

    Two arrays (n,), the first one of a small int type; it is None if all differ.
    """
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    n = len(hashes)
    earlier = np.zeros(n, dtype=small_int(n))
    if len(starts) == n:
        return None, earlier
    sizes = np.diff(starts, append=n)
    first = np.empty_like(earlier)
    first[order] = np.repeat(order[starts], sizes)
    earlier[order] = np.arange(n) - np.repeat(starts, sizes)
    return first, earlier


def look_up(table, keys):
    """Return the values in the second column of `table` (n, 2) for keys (m,).

    The first column holds keys; of equal ones the last one counts. Return a mask (m,)
    of the keys that were found, too.
    """
    order = np.argsort(table[:, 0], kind="stable")
    ordered = table[order, 0]
    places = np.searchsorted(ordered, keys, side="right") - 1
    return table[order[places], 1], ordered[places] == keys


def is_id(id):
    """Whether a value can be an id."""
    return isinstance(id, str | int) and not isinstance(id, bool)


def check_ids(ids, n, name, items="X_pool"):
    """Return checked ids of n items as a list, or as a range or lazy sequence."""
    if isinstance(ids, str | Mapping | Set) or not hasattr(ids, "__len__"):
        raise TypeError(f"{name} must be a sequence of n ids, got {ids!r}.")
    if not isinstance(ids, range) and not hasattr(ids, "batches"):
        ids = as_list(ids)
    if len(ids) != n:
        raise ValueError(
            f"{name} must name each of the {n} items of {items!r}, got {len(ids)} ids."
        )
    for id in () if isinstance(ids, range) else ids:
        if not is_id(id):
            raise TypeError(
                f"{name} must hold str or int, got {id!r} ({type(id).__name__}). "
                "Pass ids=, for example ids=[str(i) for i in ...]."
            )
    return ids


def repeated(ids):
    """Return the ids that occur more than once, each once."""
    if len(set(ids)) == len(ids):
        return []
    seen = set()
    return list(dict.fromkeys(id for id in ids if id in seen or seen.add(id)))


def shorten(ids):
    """Return the first few ids as text, and the number of others."""
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(map(repr, ids[:_SHOWN])) + more


def fold(text):
    """Return a text, or a pair as two lines, for a comparison in any case."""
    return (text if isinstance(text, str) else "\n".join(text)).casefold()
