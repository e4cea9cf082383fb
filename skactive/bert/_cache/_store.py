"""The features of each text, kept by the content that they depend on."""

import json
import os
import threading
import time
import warnings
from functools import partial

import numpy as np

from ..._utils._chunks import chunk_size, chunks
from ._memory import find_store, in_use, lock
from ._rows import (
    Block,
    DiskRows,
    MemoryRows,
    ShardVanished,
    allocate_rows,
    copy_rows,
    in_memory,
)
from ._shards import ShardFolder

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
                out[rows] = self._disk.shards.round(out[rows])
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
