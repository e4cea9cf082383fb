"""Keep what a frozen bottom gives for each text, in memory or beyond it on disk."""

from functools import partial
from operator import itemgetter

import numpy as np

from ._memory import Entry, find_store, fits, lock, size_of
from ._rows import NoRoomError, map_file


class NoPrefixError(Exception):
    """What the frozen bottom gives cannot be kept, so it has to be run each time."""


def open_prefix_store(recipe):
    """Find the store of a recipe in this process, or make one.

    Parameters
    ----------
    recipe : tuple
        All that the rows depend on besides the text: weights, tokenizer, cut, length.

    Returns
    -------
    store : PrefixStore
    """
    return find_store(("prefix", *recipe), PrefixStore)


class PrefixStore:
    """Rows of numbers for each text, as many as it has tokens.

    A block of rows is kept in memory where it fits under the limit of
    :func:`skactive.bert.set_cache_limit`, and there the least recently used goes
    first. A block beyond the limit is in a temporary file, mapped into memory; the
    file has no name and goes with :func:`skactive.bert.clear_cache`.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.bert._cache._frozen import PrefixStore
    >>> store = PrefixStore()
    >>> def fill(views):
    ...     for view in views:
    ...         view[:] = len(view)
    >>> store.add(["one", "two"], np.array([1, 3]), 2, fill)
    >>> store.missing(["two", "three"])
    ['three']
    >>> store.get(["two"])[0].shape
    (3, 2)
    """

    def __init__(self):
        self._rows = {}  # text -> (block, start, stop)
        self._blocks = []

    def entries(self):
        """List what counts towards the limit, and how to drop it."""
        return [(block, partial(self._drop, block)) for block in self._blocks]

    def missing(self, texts):
        """List the texts without rows, each once, in order; the rest is used now.

        Parameters
        ----------
        texts : sequence of str or of (str, str)
        """
        with lock:
            found = list(map(self._rows.get, texts))
            for block in {place[0] for place in found if place is not None}:
                block.touch()
            if None not in found:
                return []
            return [text for text in dict.fromkeys(texts) if text not in self._rows]

    def get(self, texts):
        """Look up the rows of texts.

        Parameters
        ----------
        texts : sequence of str or of (str, str)
            All of them known.

        Returns
        -------
        rows : list of ndarray of shape (t, d)
            Read-only; they outlive what is dropped.
        """
        with lock:
            found = [self._rows[text] for text in texts]
            for block in {block for block, _, _ in found}:
                block.touch()
        return [block.array[start:stop] for block, start, stop in found]

    def get_single(self, texts):
        """Look up texts that have one row each.

        Parameters
        ----------
        texts : sequence of n str or of (str, str)
            All of them known.

        Returns
        -------
        rows : ndarray of shape (n, d)
            A view of what is kept where the texts come in the order they came in,
            so read-only then.
        """
        with lock:
            found = list(map(self._rows.__getitem__, texts))
            blocks = {place[0] for place in found}
            for block in blocks:
                block.touch()
        starts = np.fromiter(map(itemgetter(1), found), np.intp, len(found))
        if len(blocks) > 1:
            rows = np.empty((len(found), found[0][0].array.shape[1]), np.float32)
            for block in blocks:
                own = [place[0] is block for place in found]
                rows[own] = block.array[starts[own]]
            return rows
        (block,) = blocks
        if (np.diff(starts) == 1).all():
            return block.array[starts[0] : starts[-1] + 1]
        return block.array[starts]

    def add(self, texts, lengths, width, fill):
        """Make room for new texts, have it filled, then keep it.

        Parameters
        ----------
        texts : list of str or of (str, str)
            Different from each other.
        lengths : ndarray of int of shape (n,)
            Rows of each text.
        width : int
            Columns.
        fill : callable
            Called with a list of n writable arrays (t, d), one per text. If it
            raises, nothing is kept.

        Raises
        ------
        NoPrefixError
            If there is no room, neither in memory nor on the disk.
        """
        stops = np.cumsum(lengths)
        starts = stops - lengths
        block = _Block(texts, int(stops[-1]), width)
        fill([block.array[a:b] for a, b in zip(starts, stops, strict=True)])
        block.array.flags.writeable = False
        places = zip(texts, starts.tolist(), stops.tolist(), strict=True)
        with lock:
            self._blocks.append(block)
            for text, start, stop in places:
                self._rows[text] = (block, start, stop)

    def _drop(self, block):
        self._blocks.remove(block)
        for text in block.texts:
            if self._rows.get(text, (None,))[0] is block:
                del self._rows[text]


class _Block(Entry):
    """Room for the rows of some texts, in memory or in a file."""

    def __init__(self, texts, n_rows, width):
        n_bytes = 4 * n_rows * width + size_of(texts)
        if fits(n_bytes):
            self.array = np.empty((n_rows, width), dtype=np.float32)
        else:
            try:
                self.array, n_bytes = map_file(n_rows, width), 0
            except NoRoomError as exc:
                raise NoPrefixError(str(exc)) from exc
        super().__init__(n_bytes)
        self.texts = texts
