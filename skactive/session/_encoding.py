"""Features of the pool, computed in a thread while people already label."""

import threading

import numpy as np
import sklearn
from sklearn.base import clone

from .._utils._containers import take_rows
from .._utils._pipelines import computes_features, split_estimator
from .._utils._threads import lower_priority

_CHUNK = 256  # texts between two looks at whether to stop


class BackgroundEncoder:
    """Computes the features of a pool in a thread, in a random order.

    The features go into the cache of the estimator's front steps. Until all are there,
    what has features is a random sample of the pool. Items whose features fail have
    none, and the next chunk is computed.

    Attributes
    ----------
    ready : ndarray of bool, (n,)
        The items that have features.
    error : Exception or None
        The first error of the features.
    """

    def __init__(self, estimator, pool, seed):
        front, _ = split_estimator(estimator)
        self._front = clone(front).fit(take_rows(pool.X, np.arange(1)))
        self._pool = pool
        self._seed = seed
        self._order = np.empty(0, dtype=np.int32)
        self.ready = np.empty(0, dtype=bool)
        self.error: Exception | None = None
        self._done = 0  # how far in the order
        self._running = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self.grow()

    @property
    def share(self):
        """Share of the pool whose features were computed or failed, from 0 to 1."""
        return self._done / len(self.ready)

    def grow(self):
        """Continue with the items that the pool has gained."""
        with self._lock:
            start, n = len(self.ready), len(self._pool)
            # The order of the audit: queries before the first model belong to it.
            new = self._pool.draw_order(self._seed, start)
            self._order = np.concatenate([self._order, new])
            self.ready = np.concatenate([self.ready, np.zeros(n - start, dtype=bool)])
            if self._running:
                return
            self._running = True
            config = sklearn.get_config()  # each thread has its own
            self._thread = threading.Thread(
                target=self._work, args=(config,), daemon=True
            )
            self._thread.start()

    def pick(self, free, n):
        """Return positions of `n` free items that have features first, or soon."""
        order = self._order[free[self._order]]
        return order[:n]

    def stop(self):
        """Encode nothing more, and wait for the chunk under way."""
        self._stopped.set()
        self._thread.join()

    def _work(self, config):
        lower_priority()
        with sklearn.config_context(**config):
            while True:
                with self._lock:
                    rows = np.sort(self._order[self._done :][:_CHUNK])
                    if not len(rows) or self._stopped.is_set():
                        self._running = False
                        return
                error = None
                try:
                    self._front.transform(take_rows(self._pool.X, rows))
                except Exception as exc:  # shown by the session and the front ends
                    error = exc
                with self._lock:
                    self._done += len(rows)
                    self.ready[rows] = error is None
                    self.error = self.error or error


def make_encoder(encode, estimator, pool, seed):
    """Return a BackgroundEncoder if it is required and the front steps allow it."""
    if encode not in (None, "background"):
        raise ValueError(f"'encode' must be None or 'background', got {encode!r}.")
    if encode is None or not computes_features(estimator):
        return None
    return BackgroundEncoder(estimator, pool, seed)
