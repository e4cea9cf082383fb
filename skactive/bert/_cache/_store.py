"""Features and activations of each text, kept by the content that they depend on."""

import itertools
import json
import os
import threading
import time
import warnings
from functools import partial

import numpy as np

from ..._storage._mapped import NoRoomError, clip_to, copy_rows, in_memory, map_file
from ..._utils._chunks import chunk_size, chunks
from ._memory import find_store, fits, in_use, lock, size_of
from ._rows import (
    Block,
    DiskRows,
    MemoryRows,
    ShardFolder,
    ShardVanished,
    allocate_rows,
)

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
                try:
                    return self._gather(texts, width)
                except ShardVanished:
                    continue

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
            self._memory.add(texts, out)

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


class ActivationStore:
    """Rows of numbers for each text, one per token, or one in all.

    A block of rows is kept in memory if it fits under the limit of
    :func:`skactive.bert.set_cache_limit`, where the least recently used goes first. A
    block beyond the limit is in a temporary file, mapped into memory; the file has no
    name and is removed by :func:`skactive.bert.clear_cache`.
    """

    def __init__(self):
        self._memory = MemoryRows()

    def entries(self):
        """List what counts towards the limit, and how to drop it."""
        return self._memory.entries()

    def missing(self, texts):
        """List the texts without rows, each once, in order; the rest is used now."""
        with lock:
            numbers = self._memory.find(texts)
            self._memory.touch(numbers[numbers >= 0])
        return list(dict.fromkeys(texts[i] for i in np.flatnonzero(numbers < 0)))

    def get(self, texts):
        """Return a list of the read-only rows (t, d) of known texts.

        They outlive what is dropped.
        """
        rows = [None] * len(texts)
        with lock:
            for block, numbers, part in self._memory.blocks_of(self._find(texts)):
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
            found = list(self._memory.blocks_of(numbers))
        block, own, _ = found[0]
        if len(found) == 1 and (np.diff(own) == 1).all():
            return block.array[own[0] : own[-1] + 1]
        rows = np.empty((len(texts), block.array.shape[1]), np.float32)
        for block, own, part in found:
            rows[part] = block.array[own]
        return rows

    def _find(self, texts):
        numbers = self._memory.find(texts)
        if numbers.min() < 0:
            raise KeyError(texts[numbers.argmin()])
        return numbers

    def add(self, texts, lengths, width, fill):
        """Allocate `lengths` (n,) rows of different texts, have them filled, keep them.

        `fill` is called with a list of n writable arrays (t, width). If it raises,
        nothing is kept. `NotCacheableError` if neither the memory nor the disk has
        room.
        """
        bounds = [0, *np.cumsum(lengths).tolist()]
        n_bytes = 4 * bounds[-1] * width + size_of(texts)
        if fits(n_bytes):
            array = np.empty((bounds[-1], width), dtype=np.float32)
        else:
            try:
                array, n_bytes = map_file(bounds[-1], width), 0
            except NoRoomError as exc:
                raise NotCacheableError(str(exc)) from exc
        fill([array[a:b] for a, b in itertools.pairwise(bounds)])
        with lock:
            self._memory.add(texts, array, bounds, n_bytes)
