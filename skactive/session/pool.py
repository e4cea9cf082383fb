"""The pool of a session: ids of the items, and whether they are still the same."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Set

import numpy as np
from scipy import sparse

from skactive._positions import count_items
from skactive.session.batch import Batch

__all__ = [
    "Pool",
    "as_list",
    "compare",
    "dump_hashes",
    "hash_items",
    "load_hashes",
    "shorten",
]

_SHOWN = 5


class Pool:
    """Items with the ids by which a session knows them.

    Parameters
    ----------
    X : container of n items
    ids : sequence of str or int, or None
        None takes the index of a pandas object, and otherwise positions.

    Attributes
    ----------
    X : container
    ids : list or range
        One id per item.
    """

    def __init__(self, X, ids=None):
        self.X = X
        n = count_items(X)
        if ids is None and hasattr(X, "iloc") and hasattr(X, "index"):
            self.ids = _check_ids(X.index, n, "the index of 'X_pool'")
        elif ids is None:
            self.ids = range(n)
        else:
            self.ids = _check_ids(ids, n, "'ids'")
        self._positions = {id: position for position, id in enumerate(self.ids)}

    def __len__(self):
        return len(self.ids)

    def __contains__(self, id):
        return _is_id(id) and id in self._positions

    def positions(self, ids):
        """Give the positions of known ids, ndarray of int."""
        return np.array([self._positions[id] for id in ids], dtype=np.intp)

    def read_ids(self, ids):
        """Read ids that a caller names.

        Parameters
        ----------
        ids : sequence of ids, Batch, or one id

        Returns
        -------
        ids : list

        Raises
        ------
        ValueError
            If an id is unknown or occurs twice, naming it.
        TypeError
            If they are a mapping, a set or no sequence.
        """
        if isinstance(ids, Batch):
            ids = ids.ids
        if isinstance(ids, Mapping | Set) or not (
            isinstance(ids, int | np.generic) or hasattr(ids, "__iter__")
        ):
            raise TypeError(
                f"'ids' must be an id or a sequence of ids, got {ids!r}. Pass a list; "
                "nothing was recorded."
            )
        ids = [ids] if isinstance(ids, str | int | np.generic) else as_list(ids)
        ids = [id.item() if isinstance(id, np.generic) else id for id in ids]
        if not ids:
            raise ValueError("'ids' is empty. Name at least one item.")
        unknown = [id for id in ids if id not in self]
        if unknown:
            raise ValueError(
                f"'ids' must be ids of the pool, got {shorten(unknown)}, which are "
                f"not among its {len(self)} ids, such as {self.ids[0]!r}. Nothing was "
                "recorded."
            )
        if twice := _repeated(ids):
            raise ValueError(
                f"'ids' names {shorten(twice)} more than once. Name each once; "
                "nothing was recorded."
            )
        return ids

    def fingerprint(self):
        """Summarise the pool, and give a hash of each id and item.

        Returns
        -------
        summary : dict
            Count and hash of the ids and of the items.
        hashes : ndarray of uint64, shape (n, 2)
            Of each id and each item.
        """
        hashes = np.empty((len(self), 2), dtype="<u8")
        hashes[:, 0] = [_digest(_encode(id)) for id in self.ids]
        hashes[:, 1] = hash_items(self.X)
        summary = {"n": len(self)}
        for column, name in enumerate(("ids", "items")):
            content = np.ascontiguousarray(hashes[:, column]).tobytes()
            summary[f"{name}_sha256"] = hashlib.sha256(content).hexdigest()
        return summary, hashes


def compare(before, now):
    """Count what differs between two pools.

    Parameters
    ----------
    before, now : ndarray of uint64, shape (n, 2)
        From :meth:`Pool.fingerprint`.

    Returns
    -------
    counts : dict of str to int
        `missing` and `new` ids, `changed` items under ids that stayed, and `moved`
        ids, whose order among those that stayed is another.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.session.pool import compare
    >>> before = np.array([[1, 10], [2, 20], [3, 30]], dtype=np.uint64)
    >>> now = np.array([[1, 10], [3, 31], [4, 40]], dtype=np.uint64)
    >>> compare(before, now)
    {'missing': 1, 'new': 1, 'changed': 1, 'moved': 0}
    """
    was, is_now = dict(before.tolist()), dict(now.tolist())
    stayed = was.keys() & is_now.keys()
    orders = [[id for id in ids if id in stayed] for ids in (was, is_now)]
    return {
        "missing": len(was) - len(stayed),
        "new": len(is_now) - len(stayed),
        "changed": sum(was[id] != is_now[id] for id in stayed),
        "moved": sum(a != b for a, b in zip(*orders, strict=True)),
    }


def dump_hashes(hashes):
    """Turn hashes into the bytes of a file."""
    stream = io.BytesIO()
    np.save(stream, hashes, allow_pickle=False)
    return stream.getvalue()


def load_hashes(path):
    """Read hashes from a file, or give None where it is missing or damaged."""
    try:
        hashes = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    is_sound = hashes.dtype == "<u8" and hashes.ndim == 2 and hashes.shape[1] == 2
    return hashes if is_sound else None


def hash_items(X):
    """Hash each item of a pool; equal texts hash alike in every container.

    Parameters
    ----------
    X : container of n items

    Returns
    -------
    hashes : ndarray of uint64, shape (n,)
    """
    if sparse.issparse(X):
        X = X.tocsr().sorted_indices()
        bounds = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        rows = (
            _encode_array(X.indices[a:b].astype(np.int64)) + _encode_array(X.data[a:b])
            for a, b in bounds
        )
    elif hasattr(X, "iter_rows"):  # polars
        rows = map(_encode, X.iter_rows())
    elif hasattr(X, "itertuples"):  # pandas
        rows = map(_encode, X.itertuples(index=False, name=None))
    elif isinstance(X, np.ndarray) and X.ndim > 1 and X.dtype.kind in "fiubc":
        rows = map(_encode_array, X)
    else:
        rows = map(_encode, as_list(X))
    return np.fromiter(map(_digest, rows), dtype=np.uint64)


def _digest(content):
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _encode(value):
    """Turn an item into bytes that differ wherever the items do."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiubc":
        return _encode_array(value)
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, list | tuple | np.ndarray):
        parts = [_encode(part) for part in value]
        return b"l" + b"".join(len(p).to_bytes(8, "little") + p for p in parts)
    if value is None or isinstance(value, bool | int | float | bytes):
        return b"v" + repr(value).encode()
    # Of other objects no content is known; most show an address, which changes.
    kind = type(value)
    if kind.__repr__ is object.__repr__:
        return b"o" + kind.__qualname__.encode()
    return b"r" + repr(value).encode("utf-8", "surrogatepass")


def _encode_array(row):
    row = np.ascontiguousarray(row, dtype=row.dtype.newbyteorder("<"))
    return f"a{row.dtype.str}{row.shape}".encode() + row.tobytes()


def as_list(values):
    """List the values of any container, as Python's own types where there are some."""
    if sparse.issparse(values):
        values = values.toarray()
    elif len(getattr(values, "shape", ())) == 2 and hasattr(values, "to_numpy"):
        values = values.to_numpy()  # a data frame iterates over its columns
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(values, name):
            values = getattr(values, name)()
            return values if isinstance(values, list) else [values]
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def _is_id(id):
    return isinstance(id, str | int) and not isinstance(id, bool)


def _check_ids(ids, n, name):
    if isinstance(ids, str | Mapping | Set) or not hasattr(ids, "__len__"):
        raise TypeError(f"{name} must be a sequence of n ids, got {ids!r}.")
    ids = as_list(ids)
    if len(ids) != n:
        raise ValueError(
            f"{name} must name each of the {n} items of 'X_pool', got {len(ids)} ids."
        )
    odd = [id for id in ids if not _is_id(id)]
    if odd:
        raise TypeError(
            f"{name} must hold str or int, got {odd[0]!r} ({type(odd[0]).__name__}). "
            "Pass ids=, for example ids=[str(i) for i in ...]."
        )
    if twice := _repeated(ids):
        raise ValueError(
            f"{name} must be unique, got {shorten(twice)} more than once. Pass ids= "
            "that tell the items apart."
        )
    return ids


def _repeated(ids):
    """List the ids that occur more than once, each once."""
    if len(set(ids)) == len(ids):
        return []
    seen = set()
    return list(dict.fromkeys(id for id in ids if id in seen or seen.add(id)))


def shorten(ids):
    """Show the first few ids, and how many more there are."""
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(map(repr, ids[:_SHOWN])) + more
