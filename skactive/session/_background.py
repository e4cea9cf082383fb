"""What threads do for the model of a session: encode the pool, and train."""

import threading

import numpy as np
from sklearn.base import clone

from .._utils._containers import take_rows
from .._utils._pipelines import computes_features, split_estimator
from .._utils._repeatable import start_in_background

_CHUNK = 256  # texts between two looks at whether to stop
# One chunk at a time, which sessions of the same texts then find in the cache.
_encoding = threading.Lock()


def fit_front(estimator, X):
    """Return the front steps of an estimator; they need no training."""
    return clone(split_estimator(estimator)[0]).fit(take_rows(X, np.arange(1)))


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
        self._front = fit_front(estimator, pool.X)
        self._seed = seed
        self._order = np.empty(0, dtype=np.int32)
        self.ready = np.empty(0, dtype=bool)
        self.error: Exception | None = None
        self._stage = np.empty(0, dtype=np.uint8)  # 0, 1 under way, 2 tried
        self._running = self._hurried = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self.grow(pool)

    @property
    def share(self):
        """Share of the pool whose features were computed or failed, from 0 to 1."""
        return float(np.mean(self._stage == 2))

    def grow(self, pool):
        """Continue with the items that a grown pool has gained."""
        with self._lock:
            self._pool = pool
            start, n = len(self.ready), len(pool)
            # The order of the audit: queries before the first model belong to it.
            new = pool.draw_order(self._seed, start)
            self._order = np.concatenate([self._order, new])
            self.ready = np.concatenate([self.ready, np.zeros(n - start, dtype=bool)])
            self._stage = np.pad(self._stage, (0, n - start))
            self._hurried = False
            if self._running:
                return
            self._running = True
            self._thread = start_in_background(self._work)

    def find_ready(self):
        """Return a mask (n,) of the items that have features, None if all have."""
        ready = self.ready.copy()
        return None if ready.all() else ready

    def stop(self):
        """Encode nothing more, and wait for the chunk under way."""
        self._stopped.set()
        self._thread.join()

    def hurry(self):
        """Encode a chunk in this thread, as people wait; whether one was left.

        The thread of low priority ends after its own chunk, which comes last here.
        """
        self._hurried = True
        return self._encode()

    def _work(self):
        while True:
            with self._lock:
                if self._hurried or self._stopped.is_set() or self._stage.all():
                    self._running = False
                    return
            with _encoding:
                self._encode()

    def _encode(self):
        with self._lock:
            rows, pool = self._order, self._pool
            first = self._stage.min()
            if first == 2:
                return False
            rows = np.sort(rows[self._stage[rows] == first][:_CHUNK])
            self._stage[rows] = 1
        error = None
        try:
            self._front.transform(take_rows(pool.X, rows))
        except Exception as exc:  # shown by the session and the front ends
            error = exc
        with self._lock:
            self.ready[rows] = error is None
            self.error = self.error or error
            self._stage[rows] = 2  # last, as `share` is read without the lock
        return True


def make_encoder(encode, estimator, pool, seed):
    """Return a BackgroundEncoder if it is required and the front steps allow it."""
    if encode not in (None, "background"):
        raise ValueError(f"'encode' must be None or 'background', got {encode!r}.")
    if encode is None or not computes_features(estimator):
        return None
    return BackgroundEncoder(estimator, pool, seed)


class BackgroundTrainer:
    """Train in a thread; of several waiting tasks, only the newest is done.

    `function(task)` returns a model.
    """

    def __init__(self, function):
        self._function = function
        self._changed = threading.Condition()
        self._waiting = self._running = None
        self._done = self._error = self._failed = None
        self._thread = None

    def submit(self, task, again=False):
        """Train a model, unless its training is under way, done or has failed."""
        with self._changed:
            newest = self._waiting or self._running or self._done
            if not again and task.seq in (newest and newest.seq, self._failed):
                return
            self._waiting = task
            if self._thread is None:
                self._thread = start_in_background(self._work)

    def take(self, errors=True):
        """Return the newest model that is ready, or None; raise an error once."""
        with self._changed:
            if errors and self._error is not None:
                error, self._error = self._error, None
                raise error
            done, self._done = self._done, None
            return done

    def wait(self, seq=None):
        """Wait for the task of event `seq` or a later one; by default for all tasks."""
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None or self._has_ended(seq))

    def _has_ended(self, seq):
        ended = self._failed, self._done and self._done.seq
        return seq is not None and any(n is not None and n >= seq for n in ended)

    @property
    def busy(self):
        """Whether a task is under way or waiting."""
        return self._thread is not None

    def drop(self):
        """Remove the waiting task; a running one cannot be stopped."""
        with self._changed:
            self._waiting = None

    def _work(self):
        while True:
            with self._changed:
                self._running, self._waiting = self._waiting, None
                if self._running is None:
                    self._thread = None
                    self._changed.notify_all()
                    return
            try:
                model, error = self._function(self._running), None
            except BaseException as exc:  # raised by the next call of ask
                model, error = None, exc
            with self._changed:
                self._error = error
                self._failed = self._running.seq if error else None
                self._done = model or self._done
                self._changed.notify_all()
