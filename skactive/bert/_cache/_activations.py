"""The activations of frozen layers for each text, in memory or on disk."""

import itertools

import numpy as np

from ._memory import find_store, fits, lock, size_of
from ._rows import MemoryRows, NoRoomError, map_file


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
