"""Texts and ids in a file that is mapped into memory."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from numbers import Integral
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils._sklearn import check_count
from ._files import BLOCK_ROWS
from ._fingerprint import hash_items
from ._hash_index import HashIndex
from ._text_file import TextFile, as_array, take


class TextPool(Sequence):
    r"""Immutable sequence of texts, or of pairs of texts, in a file.

    Made by :func:`skactive.datasets.open_pool`. The file is mapped into memory, so that
    only the texts that are read take memory. A pool is passed as `X` to
    :class:`skactive.ActiveLearner`, :func:`skactive.simulate` and
    :class:`skactive.LabelingSession`.

    `pool[i]` is a text, or a tuple of two. `pool[rows]`, for a slice, positions or a
    boolean mask, is a pool of these texts in the same file; no text is read for it.
    Pools are compared by identity. A pickle holds the path of the file, not its texts.

    Attributes
    ----------
    ids : sequence of int or str
        The id of each text; without an id column, its position.
    hashes : ndarray of uint64, shape (n,)
        A hash of the content of each text; equal texts have equal hashes.
    shape : tuple of int
        `(n,)`.
    left_out : list of int
        Rows of the table, counted from 0, that have no text and are not in the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from skactive.datasets import open_pool
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "news.csv")
    ...     with open(path, "w", encoding="utf-8") as file:
    ...         _ = file.write("key,title\na7,Rain\na8,Sun\na9,Snow\n")
    ...     pool = open_pool(path, "title", id="key")
    >>> len(pool), pool[0]
    (3, 'Rain')
    >>> list(pool[[2, 1]]), list(pool[1:].ids)
    (['Snow', 'Sun'], ['a8', 'a9'])
    """

    def __init__(self, file: TextFile, rows: Any = None) -> None:
        self._file = file
        self._given_rows = rows  # a range or (n,); None for all, so that none is opened

    @cached_property
    def _rows(self):
        return range(self._file.n) if self._given_rows is None else self._given_rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def left_out(self) -> list[int]:
        """Rows of the table that have no text."""
        return self._file.left_out

    @property
    def shape(self) -> tuple[int]:
        """Number of texts, in a tuple."""
        return (len(self),)

    @overload
    def __getitem__(self, key: int) -> Any: ...

    @overload
    def __getitem__(self, key: Any) -> Any: ...

    def __getitem__(self, key: Any) -> Any:
        """Return one text, or a pool of several."""
        rows = _choose(self._rows, key)
        if isinstance(rows, int):
            return self._file.read_texts(range(rows, rows + 1))[0]
        return TextPool(self._file, rows)

    def take_rows(self, positions: "ArrayLike") -> "TextPool":
        """Return a pool of the texts at some positions.

        Parameters
        ----------
        positions : array-like of int, shape (p,)
            Positions in this pool, in any order.

        Returns
        -------
        pool : TextPool
            Pool of p texts in the same file.
        """
        try:
            return self[np.asarray(positions)]
        except (IndexError, ValueError) as exc:
            raise ValueError(
                f"'positions' must be positions in this pool: {exc}"
            ) from exc

    def batches(self, batch_size: int = BLOCK_ROWS) -> Iterator[list[Any]]:
        """Return an iterator of the texts in order, in lists.

        Parameters
        ----------
        batch_size : int, default=8192
            Number of texts in each list but the last.

        Returns
        -------
        batches : iterator of list of str, or of list of tuple of (str, str)
            Each list is read when it is reached.

        Raises
        ------
        ValueError
            If `batch_size` is no int of at least 1.
        """
        check_count("batch_size", batch_size)
        starts = range(0, len(self), batch_size)
        return (self._file.read_texts(self._rows[i : i + batch_size]) for i in starts)

    def __iter__(self) -> Iterator[Any]:
        for texts in self.batches():
            yield from texts

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all texts as an array of objects; of shape (n, 2) for pairs."""
        shape = (len(self), 2) if self._file.is_paired else self.shape
        texts = np.empty(shape, dtype=object)
        texts[:] = list(self)
        return texts if dtype is None else texts.astype(dtype)

    @property
    def ids(self) -> Sequence[Any]:
        """The id of each text: a range, or a sequence that reads the file."""
        if not self._file.has_ids and isinstance(self._rows, range):
            return self._rows
        return PoolIds(self._file, self._rows)

    @property
    def hashes(self) -> NDArray[np.uint64]:
        """Hash of the content of each text, ndarray of uint64, shape (n,)."""
        hashes = take(self._file.hashes, self._rows)
        hashes.flags.writeable = False
        return hashes

    def drop_known(self, positions: NDArray | None, X_known: Any) -> NDArray | None:
        """Return positions without those of known texts and of repeated ones.

        Parameters
        ----------
        positions : ndarray of int, shape (p,), or None
            Positions in the pool. None stands for all of them.
        X_known : container of m texts or None
            The known texts, such as those with labels.

        Returns
        -------
        positions : ndarray of int or None
            `positions` itself if none is dropped.
        """
        hashes = self.hashes if positions is None else self.hashes[positions]
        mask = np.ones(len(hashes), dtype=bool)
        rows = self._rows
        if positions is not None:
            rows = _choose(rows, positions)
        repeated = np.flatnonzero(self._file.is_repeated(rows))
        mask[repeated] = False
        mask[repeated[np.unique(hashes[repeated], return_index=True)[1]]] = True
        if X_known is not None and len(X_known):
            known_index = HashIndex(hash_items(X_known))
            for start in range(0, len(mask), 2**16):
                part = slice(start, start + 2**16)
                mask[part] &= known_index.find(hashes[part]) < 0
        if mask.all():
            return positions
        return np.flatnonzero(mask) if positions is None else positions[mask]

    def join_rows(self, other: Any) -> "TextPool | None":
        """Return the texts of two pools of one file.

        Parameters
        ----------
        other : TextPool
            A pool whose texts follow those of this one.

        Returns
        -------
        pool : TextPool or None
            None if `other` is no pool of the same file.
        """
        if not isinstance(other, TextPool) or other._file.path != self._file.path:
            return None
        return TextPool(self._file, np.r_[as_array(self._rows), as_array(other._rows)])

    def __repr__(self) -> str:
        what = "pairs of texts" if self._file.is_paired else "texts"
        return f"<TextPool of {len(self)} {what} from {self._file.source!r}>"

    def __copy__(self) -> "TextPool":
        return self

    def __deepcopy__(self, memo: Any) -> "TextPool":
        return self

    def __reduce__(self) -> Any:
        return _from_path, (self._file.path, self._given_rows)


class PoolIds(Sequence):
    """Ids of the texts of a pool, read from its file when they are used."""

    def __init__(self, file, rows):
        self._file, self._rows = file, rows

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, key):
        rows = _choose(self._rows, key)
        if isinstance(rows, int):
            return self._file.read_ids(range(rows, rows + 1))[0]
        return PoolIds(self._file, rows)

    def batches(self, batch_size=BLOCK_ROWS):
        """Yield the ids in order, in lists of at most `batch_size`."""
        for start in range(0, len(self), batch_size):
            yield self._file.read_ids(self._rows[start : start + batch_size])

    def __iter__(self):
        for ids in self.batches():
            yield from ids

    def tolist(self):
        """Return all ids as a list."""
        return list(self)

    def __repr__(self):
        return f"<{len(self)} ids from {self._file.source!r}>"


def _choose(rows, key):
    """Return the rows, a range or (n,), that a key selects; an int for one."""
    if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
        key = key[0]  # scikit-learn indexes what has a shape so
    if isinstance(key, Integral):
        return int(rows[key])
    if isinstance(key, slice):
        return rows[key]
    key = np.asarray(key)
    if key.ndim == 1 and key.size == 0:
        key = key.astype(np.intp)
    if key.ndim != 1 or key.dtype.kind not in "iub":
        raise IndexError(
            "a pool is indexed by a position, a slice, positions or a mask, got an "
            f"array of shape {key.shape} and dtype {key.dtype}."
        )
    n = len(rows)
    if key.dtype.kind == "b":
        if len(key) != n:
            raise IndexError(f"the mask must have {n} entries, got {len(key)}.")
        key = np.flatnonzero(key)
    outside = key[(key < -n) | (key >= n)]
    if outside.size:
        raise IndexError(f"positions must lie in [0, {n}), got {outside[0]}.")
    key = np.where(key < 0, key + n, key).astype(np.intp)
    if len(key) and key[-1] - key[0] == len(key) - 1 and (np.diff(key) == 1).all():
        return rows[int(key[0]) : int(key[0]) + len(key)]  # no array is kept
    return rows.start + rows.step * key if isinstance(rows, range) else rows[key]


def _from_path(path, rows):
    return TextPool(TextFile(path), rows)
