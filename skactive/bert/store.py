"""Keep features by the content of what they were made from."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
import warnings

import numpy as np

from skactive.bert.shards import DamagedShard, ShardFolder, digest_text

__all__ = ["clear_cache", "get_cache_limit", "open_store", "set_cache_limit", "unique"]

_ANSWERS_KEPT = 4  # gathered arrays remembered per recipe, besides the blocks
_SMALL_BLOCK, _SMALL_BLOCKS_KEPT = 256, 64
_SHARD_TEXTS, _SHARD_SECONDS = 1024, 20.0
_TEXT_OVERHEAD = 150  # bytes of a text's entries in dicts and lists, about

_lock = threading.RLock()  # guards every store; never held while encoding
_stores = {}  # (folder, recipe) -> FeatureStore
_clock = itertools.count(1)
_running = []  # the clock at the start of each `get` under way
_latest = [0]  # the clock at the start of the latest `get` that ended
_limit = [2 * 2**30]


def set_cache_limit(n_bytes):
    """Limit the memory that cached features may take in this process.

    The features that the latest call used are kept whatever their size; beyond
    them, the least recently used go first. Files in a cache folder do not count.

    Parameters
    ----------
    n_bytes : int
        At least 0. The limit is 2 GiB until set.

    Examples
    --------
    >>> from skactive.bert import get_cache_limit, set_cache_limit
    >>> set_cache_limit(2 * 2**30)
    >>> get_cache_limit()
    2147483648
    """
    if isinstance(n_bytes, bool) or not isinstance(n_bytes, int) or n_bytes < 0:
        raise ValueError(
            f"'n_bytes' must be a non-negative int, got {n_bytes!r}. Pass bytes, such "
            "as 4 * 2**30."
        )
    with _lock:
        _limit[0] = n_bytes
        _trim()


def get_cache_limit():
    """Tell the limit that :func:`set_cache_limit` sets, in bytes."""
    return _limit[0]


def clear_cache():
    """Forget all features cached in this process; files stay."""
    with _lock:
        _stores.clear()


def open_store(folder, recipe, dtype="float32"):
    """Get this process's store of one recipe.

    Parameters
    ----------
    folder : path-like or None
        Cache folder; None keeps the features in memory.
    recipe : dict
        Everything the features depend on besides the text; JSON values.
    dtype : {"float32", "float16"}, default="float32"
        Type on disk.

    Returns
    -------
    store : FeatureStore
    """
    root = None if folder is None else os.path.abspath(os.path.expanduser(folder))
    key = (root, dtype, json.dumps(recipe, sort_keys=True))
    with _lock:
        if key not in _stores:
            shards = None if root is None else ShardFolder(root, recipe, dtype)
            _stores[key] = FeatureStore(shards)
        return _stores[key]


def unique(texts):
    """List each text once, in order of first appearance."""
    return list(dict.fromkeys(texts))


def _trim():
    """Drop what was least recently used until the rest fits the limit."""
    keep_from = min([*_running, _latest[0]])
    held = [
        (block.used, store, block)
        for store in _stores.values()
        for block in [*store._blocks, *store._answers]
        if block.n_bytes
    ]
    excess = sum(block.n_bytes for _, _, block in held) - _limit[0]
    for used, store, block in sorted(held, key=lambda entry: entry[0]):
        if excess <= 0 or used >= keep_from:
            return
        store._drop(block)
        excess -= block.n_bytes


class _Gone(Exception):
    """A block that was to be read turned out damaged and is dropped."""


class _Block:
    """Rows of features.

    Attributes
    ----------
    array : ndarray of shape (n_rows, width) or None
        None for a shard that is not yet opened.
    texts : list or None
        What the rows belong to, in order; None for a shard.
    start : int or None
        Number of the first row in the store; None for an answer, which holds copies
        of other blocks' rows.
    """

    def __init__(self, array, texts, n_rows, start=None, shard=None):
        self.array, self.texts, self.n_rows = array, texts, n_rows
        self.start, self.shard = start, shard
        self.used = next(_clock)
        self.n_bytes = 0
        if array is not None:
            array.flags.writeable = False
            self.n_bytes = array.nbytes + (_size(texts) if start is not None else 0)


def _size(texts):
    parts = texts if isinstance(texts[0], str) else itertools.chain(*texts)
    return sum(map(sys.getsizeof, parts)) + _TEXT_OVERHEAD * len(texts)


class FeatureStore:
    """The features of one recipe: by text, and by whole sequence of texts.

    A sequence seen before gets the very array it got before. A text seen before is
    one lookup in a dict keyed by the string itself, whose hash Python caches.

    Parameters
    ----------
    shards : ShardFolder or None
        Where to keep the features on disk.
    """

    def __init__(self, shards=None):
        self.shards = shards
        self._rows = {}  # text -> row number
        self._on_disk = {}  # digest of a text -> row number
        self._blocks = []  # by start
        self._answers = []  # oldest first
        self._next_row = 0
        self._encoding = threading.Lock()

    def get(self, texts, encode, width):
        """Look the features up, encoding what is missing.

        Parameters
        ----------
        texts : list of str or of (str, str)
        encode : callable
            `encode(missing, out)` fills the rows of `out`, an array of shape
            (len(missing), width), in any order, and yields the positions it has
            just filled.
        width : int

        Returns
        -------
        features : ndarray of shape (n, width), float32
            Read-only; the same array for the same sequence.
        """
        began = next(_clock)
        with _lock:
            _running.append(began)
        try:
            features = self._known(texts, width)
            if features is None:
                # One thread encodes; the others wait, then find what it stored.
                with self._encoding:
                    features = self._known(texts, width)
                    while features is None:
                        self._encode_missing(texts, encode, width)
                        features = self._known(texts, width)
        finally:
            with _lock:
                _running.remove(began)
                _latest[0] = max(_latest[0], began)
                _trim()
        return features

    # Looking up -----------------------------------------------------------------

    def _known(self, texts, width):
        """Answer from what is stored, or return None."""
        with _lock:
            for block in itertools.chain(reversed(self._answers), self._blocks):
                # Lists compare by identity before equality, so this is fast both
                # for the same strings and for another pool.
                if block.texts is not None and block.texts == texts:
                    block.used = next(_clock)
                    return block.array
            while True:
                rows = self._look_up(texts)
                if rows.min() < 0:
                    return None
                try:
                    features = self._gather(rows, width)
                except _Gone:
                    continue
                return self._remember(texts, features)

    def _look_up(self, texts):
        """Find row numbers, -1 for unknown texts."""
        found = map(self._rows.get, texts, itertools.repeat(-1))
        rows = np.fromiter(found, dtype=np.intp, count=len(texts))
        if self.shards is not None and rows.min() < 0:
            self._list_new_shards()
            for i in np.flatnonzero(rows < 0) if self._on_disk else ():
                rows[i] = self._on_disk.get(digest_text(texts[i]), -1)
                if rows[i] >= 0:
                    self._rows[texts[i]] = int(rows[i])
        return rows

    def _list_new_shards(self):
        for name, digests in self.shards.new_shards():
            if digests is None:
                self._drop_shard(name, "its manifest cannot be read")
            elif digests:
                block = self._append(None, None, len(digests), name)
                self._on_disk.update(
                    zip(digests, itertools.count(block.start), strict=False)
                )

    def _gather(self, rows, width):
        """Copy rows out of their blocks; raise `_Gone` if one is damaged."""
        starts = [block.start for block in self._blocks]
        which = np.searchsorted(starts, rows, side="right") - 1
        used = np.flatnonzero(np.bincount(which))
        for block in [self._blocks[number] for number in used]:
            self._open(block, width)
            block.used = next(_clock)
        features = np.empty((len(rows), width), dtype=np.float32)
        if len(used) == 1:
            parts = [slice(None)]
        else:
            order = np.argsort(which, kind="stable")
            parts = np.split(order, np.searchsorted(which[order], used[1:]))
        for number, part in zip(used, parts, strict=True):
            block = self._blocks[number]
            features[part] = block.array[rows[part] - block.start]
        return features

    def _open(self, block, width):
        if block.array is not None:
            return
        try:
            block.array = self.shards.open(block.shard, width)
        except DamagedShard as exc:
            self._drop(block)
            self._drop_shard(block.shard, exc)
            raise _Gone from exc

    def _drop_shard(self, name, reason):
        path = self.shards.folder / f"{name}.npy"
        warnings.warn(
            f"the cached features in {str(path)!r} are damaged ({reason}) and are "
            "computed again.",
            UserWarning,
            stacklevel=2,
        )
        self.shards.remove(name, reason)

    def _remember(self, texts, features):
        self._answers.append(_Block(features, texts, len(texts)))
        del self._answers[:-_ANSWERS_KEPT]
        return features

    # Adding ---------------------------------------------------------------------

    def _encode_missing(self, texts, encode, width):
        with _lock:
            rows = self._look_up(texts)
        missing = unique(
            text for text, row in zip(texts, rows.tolist(), strict=True) if row < 0
        )
        out = np.empty((len(missing), width), dtype=np.float32)
        waiting, kept = [], []
        written = time.monotonic()
        try:
            for positions in encode(missing, out):
                waiting.append(positions)
                if self.shards is not None and (
                    sum(map(len, waiting)) >= _SHARD_TEXTS
                    or time.monotonic() - written > _SHARD_SECONDS
                ):
                    kept += self._flush(missing, out, waiting)
                    waiting, written = [], time.monotonic()
        finally:
            # Also when interrupted: what is finished is not computed twice.
            if self.shards is not None and waiting:
                kept += self._flush(missing, out, waiting)
            elif waiting:
                kept = waiting
            if kept:
                self._keep(missing, out, np.concatenate(kept))

    def _flush(self, missing, out, waiting):
        """Write a shard; return the positions that stay in memory instead."""
        positions = np.concatenate(waiting)
        texts = [missing[i] for i in positions]
        try:
            name = self.shards.write(texts, out[positions])
        except OSError as exc:
            self._give_up_on_disk(exc)
            return [positions]
        with _lock:
            block = self._append(None, None, len(texts), name)
            self._rows.update(zip(texts, itertools.count(block.start), strict=False))
        return []

    def _give_up_on_disk(self, reason):
        warnings.warn(
            f"the cache folder {str(self.shards.root)!r} cannot be written "
            f"({type(reason).__name__}: {reason}); these features are kept in memory "
            "only. Make room or pass a folder that can be written to 'cache'.",
            UserWarning,
            stacklevel=2,
        )

    def _keep(self, texts, out, positions):
        """Keep finished rows in memory, without a copy where all are finished."""
        if len(positions) < len(texts):
            positions = np.sort(positions)
            texts, out = [texts[i] for i in positions], out[positions]
        with _lock:
            self._merge_small_blocks()
            block = self._append(out, texts, len(texts))
            self._rows.update(zip(texts, itertools.count(block.start), strict=False))

    def _append(self, array, texts, n_rows, shard=None):
        block = _Block(array, texts, n_rows, self._next_row, shard)
        self._next_row += n_rows
        self._blocks.append(block)
        return block

    def _merge_small_blocks(self):
        """Join the blocks of many small calls, so that looking up stays fast."""
        small = [b for b in self._blocks if b.texts and b.n_rows < _SMALL_BLOCK]
        if len(small) <= _SMALL_BLOCKS_KEPT:
            return
        self._blocks = [b for b in self._blocks if b not in small]
        texts = list(itertools.chain.from_iterable(b.texts for b in small))
        array = np.concatenate([b.array for b in small])
        block = self._append(array, texts, len(texts))
        self._rows.update(zip(texts, itertools.count(block.start), strict=False))

    def _drop(self, block):
        if block.start is None:
            self._answers.remove(block)
            return
        self._blocks.remove(block)
        if block.texts is not None:
            for text in block.texts:
                del self._rows[text]
            return
        stop = block.start + block.n_rows
        for rows in (self._rows, self._on_disk):
            for text in [t for t, row in rows.items() if block.start <= row < stop]:
                del rows[text]
