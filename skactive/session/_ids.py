"""Ids and hashes of the items of a pool, in little memory."""

from collections.abc import Mapping, Set

import numpy as np

from .._storage._fingerprint import hash_ids
from .._storage._hash_index import HashIndex
from .._utils._containers import as_list
from .._utils._format import reprs

FEW = 2**16  # so few ids are in a dict, which is faster than a search


class Ids:
    """The ids of a pool and their positions.

    `values` is a sequence of n ids. A range of ids takes no memory, a few ids are kept
    in a dict, and of others 12 bytes each: sorted hashes, and the positions of these.
    """

    def __init__(self, values, name="'ids'", items="X_pool"):
        self.values = values
        self._found = {}
        self._index = None
        if isinstance(values, range):
            return
        if len(values) <= FEW:
            self._found = {id: position for position, id in enumerate(values)}
            twice = [] if len(self._found) == len(values) else repeated(values)
        else:
            self._index = HashIndex(hash_ids(values))
            rows = self._index.find_repeated().tolist()
            twice = repeated([values[row] for row in rows])
        if twice:
            raise ValueError(
                f"{name} must be unique, got {reprs(twice)} more than once. Pass "
                "different ids=."
            )

    def __contains__(self, id):
        return is_id(id) and self._find(id) is not None

    def positions(self, ids):
        """Return the positions of known ids, ndarray of int."""
        ids = list(ids)
        if isinstance(self.values, range):
            return np.array([self.values.index(id) for id in ids], dtype=np.intp)
        if self._index is not None:
            self._search([id for id in ids if id not in self._found])
        return np.array([self._found[id] for id in ids], dtype=np.intp)

    def _find(self, id):
        """Return the position of an id, None for another one."""
        if isinstance(self.values, range):
            is_known = isinstance(id, int) and id in self.values
            return self.values.index(id) if is_known else None
        if self._index is not None and id not in self._found:
            self._search([id])
        return self._found.get(id)

    def _search(self, ids):
        """Find ids by their hashes; they are kept, as they are asked for again."""
        for id, same in zip(ids, self._index.find_all(hash_ids(ids)), strict=True):
            for position in same:
                if self.values[position] == id:
                    self._found[id] = position

    def hash(self):
        """Return a uint64 hash of each id, (n,)."""
        return hash_ids(self.values) if self._index is None else self._index.hashes()


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


def fold(text):
    """Return a text, or a pair as two lines, for a comparison in any case."""
    return (text if isinstance(text, str) else "\n".join(text)).casefold()
