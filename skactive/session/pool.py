"""The pool of a session: ids of the items, and whether they are still the same."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping, Set
from functools import cached_property

import numpy as np
from scipy import sparse

from skactive._positions import read_items
from skactive._texts import as_texts
from skactive.session.batch import Batch

__all__ = [
    "Pool",
    "as_list",
    "dump_hashes",
    "hash_ids",
    "hash_item",
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
    ids_are_positions : bool
        Whether nobody gave ids, so that they change with the order of the items.
    contents : ndarray of uint64, shape (n,)
        A hash of each item; 0 where the content of an object is not known.
    """

    def __init__(self, X, ids=None):
        self.X, n = read_items(X)
        if ids is None and hasattr(X, "iloc") and hasattr(X, "index"):
            self.ids = _check_ids(X.index, n, "the index of 'X_pool'")
        elif ids is None:
            self.ids = range(n)
        else:
            self.ids = _check_ids(ids, n, "'ids'")
        self.ids_are_positions = ids is None and list(self.ids) == list(range(n))
        self._positions = {id: position for position, id in enumerate(self.ids)}
        self.contents = hash_items(self.X)
        if self.ids_are_positions and not self.contents.all():
            kind = type(as_list(X)[int(np.argmin(self.contents))]).__name__
            raise TypeError(
                f"'X_pool' must hold items whose content can be compared, got {kind}. "
                "Pass ids=, by which such items are then known."
            )

    def __len__(self):
        return len(self.ids)

    def __contains__(self, id):
        return _is_id(id) and id in self._positions

    def positions(self, ids):
        """Give the positions of known ids, ndarray of int."""
        return np.array([self._positions[id] for id in ids], dtype=np.intp)

    @cached_property
    def texts(self):
        """The items as texts or pairs of texts; None if they are something else."""
        try:
            return as_texts(self.X)
        except (TypeError, ValueError):
            return None

    @cached_property
    def copies(self):
        """For each item, the first position of the same text, ndarray of int."""
        if self.texts is None:
            return np.arange(len(self))
        _, first, group = np.unique(
            self.contents, return_index=True, return_inverse=True
        )
        return first[group]

    @cached_property
    def _by_content(self):
        found = {}
        for position, content in enumerate(self.contents.tolist()):
            found.setdefault(content, []).append(position)
        return found

    def find(self, content):
        """List the positions of the items with a hash, in order."""
        return self._by_content.get(content, [])

    def agrees(self, id, content):
        """Whether an item has this hash, as far as its content is known."""
        own = int(self.contents[self._positions[id]])
        return content is None or own in (0, content)

    def read_ids(self, ids, *, name="ids"):
        """Read ids that a caller names.

        Parameters
        ----------
        ids : sequence of ids, Batch, or one id
        name : str, default="ids"
            What to call the argument in error messages.

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
                f"{name!r} must be ids of the pool, got {shorten(unknown)}, which "
                f"are not among its {len(self)} ids, such as {self.ids[0]!r}. Nothing "
                "was recorded."
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
            Count, hash of the ids and of the items, names of the columns if any.
        hashes : ndarray of uint64, shape (n, 2)
            Of each id and each item.
        """
        hashes = np.empty((len(self), 2), dtype="<u8")
        hashes[:, 0] = hash_ids(self.ids)
        hashes[:, 1] = self.contents
        summary = {"n": len(self)}
        if hasattr(self.X, "columns"):
            summary["columns"] = [str(name) for name in self.X.columns]
        return summary | _digest_columns(hashes), hashes


def dump_hashes(hashes):
    """Turn hashes into the bytes of a file."""
    stream = io.BytesIO()
    np.save(stream, hashes, allow_pickle=False)
    return stream.getvalue()


def load_hashes(path, summary):
    """Read the hashes that a summary is of; None where they are missing or damaged."""
    size = 16 * summary.get("n", 0)
    try:
        with open(path, "rb") as stream:
            content = stream.read()
    except FileNotFoundError:
        return None
    if not 0 < size <= len(content):
        return None
    # The header of the file says nothing that the summary does not say.
    hashes = np.frombuffer(content[-size:], dtype="<u8").reshape(-1, 2)
    return hashes if _digest_columns(hashes).items() <= summary.items() else None


def _digest_columns(hashes):
    columns = zip(("ids", "items"), hashes.T, strict=True)
    return {
        f"{name}_sha256": hashlib.sha256(column.tobytes()).hexdigest()
        for name, column in columns
    }


def hash_ids(ids):
    """Hash ids, ndarray of uint64."""
    return np.fromiter((_digest(_encode(id)) for id in ids), dtype=np.uint64)


def hash_items(X):
    """Hash each item of a pool; equal texts hash alike in every container.

    The hash of an object whose content is not known is 0.

    Parameters
    ----------
    X : container of n items

    Returns
    -------
    hashes : ndarray of uint64, shape (n,)
    """
    encode = _encode
    if sparse.issparse(X):
        encode = bytes
        X = X.tocsr().sorted_indices()
        bounds = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        rows = (
            _encode_array(X.indices[a:b].astype(np.int64)) + _encode_array(X.data[a:b])
            for a, b in bounds
        )
    elif hasattr(X, "iter_rows"):  # polars
        rows = X.iter_rows()
    elif hasattr(X, "itertuples"):  # pandas
        rows = X.itertuples(index=False, name=None)
    elif isinstance(X, np.ndarray) and X.ndim > 1 and X.dtype.kind in "fiubc":
        rows = X
    else:
        rows = as_list(X)
    return np.fromiter((hash_item(row, encode) for row in rows), dtype=np.uint64)


def hash_item(item, encode=None):
    """Hash one item, int; see :func:`hash_items`."""
    try:
        return _digest((encode or _encode)(item))
    except _UnknownContentError:
        return 0


def _digest(content):
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _encode(value):
    """Turn an item into bytes that differ wherever the items do."""
    if not isinstance(value, np.ndarray | np.generic) and (
        hasattr(value, "__array__") or hasattr(value, "__array_interface__")
    ):
        value = np.asarray(value)  # a tensor or a picture
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
    shown = repr(value)
    if re.search(r" at 0x[0-9a-fA-F]+", shown):  # an address tells nothing
        raise _UnknownContentError
    return b"r" + shown.encode("utf-8", "surrogatepass")


class _UnknownContentError(Exception):
    """An object shows nothing by which it could be told from another."""


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
