"""Encoders that learn from the labels of a session, in a process of their own."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path

import numpy as np
import sklearn

from .._utils._containers import as_texts
from .._utils._pipelines import find_adaptations, with_adapted
from .._utils._repeatable import start_daemon

MAX_POOL = 20_000  # texts whose features are computed again; minutes on a processor
_CODE = "from skactive.bert._adapt_process import main; main()"


class _Turn:
    """Lets one process at a time train an encoder, the sessions in turn."""

    def __init__(self):
        self._lock, self._waiting = threading.Lock(), weakref.WeakSet()
        self._holder = self._last = None

    def take(self, adapter):
        """Return whether an adapter may begin; else `changed` tells it to ask again.

        Others that wait come before the last one that had the turn.
        """
        with self._lock:
            is_last = self._last is not None and self._last() is adapter
            if self._holder is not None or (is_last and self._find_waiting(adapter)):
                self._waiting.add(adapter)
                return False
            self._waiting.discard(adapter)
            self._holder, self._last = adapter, weakref.ref(adapter)
            return True

    def leave(self, adapter):
        """Pass the turn on."""
        with self._lock:
            self._holder, waiting = None, self._find_waiting(adapter)
        for other in waiting:
            other.changed()

    def _find_waiting(self, adapter):
        others = [other for other in self._waiting if other is not adapter]
        return [other for other in others if not other.stopped]


_TURN = _Turn()


class Adapter:
    """Chooses how many labels the encoder of a model has learned from.

    Training that would take long is done in a process, one at a time, whose results
    are in the cache folder of the encoder.

    Attributes
    ----------
    changed : function
        Called when the process has ended.
    error : str or None
        Why the last process failed.
    pace : float or None
        Seconds for each label that the last process took.
    stopped : bool
        Whether no other process begins.
    """

    def __init__(self, n_trusted, max_pool):
        self._max_pool = max_pool
        self._trusted = n_trusted  # of the last model before the session was opened
        self._ready = {}  # hash of what was trained -> number of rows
        self._failed = set()
        self._process = None
        self.stopped = False
        self._lock = threading.Lock()
        self.error: str | None = None
        self.pace: float | None = None
        self.changed = lambda: None

    def is_too_large(self, pool):
        """Whether the features of a pool are not computed again."""
        return self._max_pool is not None and len(pool) > self._max_pool

    @property
    def busy(self):
        """Whether a process is under way."""
        return self._process is not None

    def choose(self, learner, pool):
        """Return the number of rows to learn from, None to wait for the process.

        It is the largest whose training is there. If more labels are there than that,
        a process begins to train. `learner` has the labels, and is not trained.
        """
        if self.is_too_large(pool) or not hasattr(learner, "X_labeled_"):
            return 0
        wanted = _list_encoders(learner, learner.estimator)
        n, key = _describe(wanted)
        if not n or key in self._ready:
            return n
        before = [self._trusted, *self._ready.values()]
        for m in sorted({m for m in before if m and m <= n}, reverse=True):
            encoders = _list_encoders(learner, with_adapted(learner.estimator, m))
            _, digest = _describe(encoders)
            if digest in self._ready or not self._ready:
                self._ready[digest] = m
                break
        else:
            m = None if any(before) else 0
        if m != n and key not in self._failed and not self.busy:
            self._start(n, key, wanted, pool)
        return 0 if m is None and not self.busy else m

    def stop(self):
        """End the process, and start no other."""
        with self._lock:
            self.stopped = True
            if self._process is not None:
                self._process.kill()

    def _start(self, n, key, encoders, pool):
        """Train encoders in a process, unless another one is under way."""
        texts = [_plain(text) for text in as_texts(pool.X)]
        task = json.dumps({"encoders": encoders, "texts": texts})
        path = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "OMP_NUM_THREADS": "1",
            "PYTHONIOENCODING": "utf-8",
        }
        with self._lock:
            busy = self.stopped or self._process is not None
            if busy or not _TURN.take(self):
                return
            try:
                process = self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _CODE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    text=True,
                    encoding="utf-8",
                )
            except BaseException:
                _TURN.leave(self)
                raise
        # A daemon: Python can exit while it waits, and the process then ends, too.
        start_daemon(self._follow, process, task, n, key, sklearn.get_config())

    def _follow(self, process, task, n, key, config):
        """Wait for a process, and note what it has done."""
        start = time.monotonic()
        try:
            process.stdin.write(task + "\n")
            process.stdin.flush()
            answer = (process.stdout.read().splitlines() or ["its process ended"])[-1]
        except OSError as exc:  # it was killed
            answer = f"{type(exc).__name__}: {exc}"
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            with suppress(OSError):  # what it did not read cannot be written
                process.stdin.close()
        with self._lock:
            self._process = None
            if answer == "done":
                self._ready[key], self.error = n, None
                self.pace = (time.monotonic() - start) / n
            elif not self.stopped:
                self._failed.add(key)
                self.error = answer
        _TURN.leave(self)
        if not self.stopped:
            with sklearn.config_context(**config):  # the training has it
                self.changed()


def _list_encoders(learner, estimator):
    """Return what training adapts: parameters, texts, codes of labels and weights."""
    X, y = as_texts(learner.X_labeled_), np.asarray(learner.y_labeled_)
    codes = y if y.ndim == 2 else np.unique(y, return_inverse=True)[1]
    weight = getattr(learner, "_kept_params", {}).get("sample_weight")
    encoders = []
    params = {} if weight is None else {"sample_weight": weight}
    for encoder, rows in find_adaptations(estimator, X, codes, **params):
        own = {k: _plain(v) for k, v in encoder.get_params().items() if k != "verbose"}
        texts = [_plain(X[i]) for i in rows]
        weights = None if weight is None else np.asarray(weight)[rows].tolist()
        encoders.append([own, texts, _number(codes[rows]), weights])
    return encoders


def _number(codes):
    """Return codes in the order of their first use, which later classes leave alone."""
    if codes.ndim == 2:
        return codes.tolist()
    numbers = {code: i for i, code in enumerate(dict.fromkeys(codes.tolist()))}
    return [numbers[code] for code in codes.tolist()]


def _describe(encoders):
    """Return the number of rows of the first encoder, and a hash of all."""
    n = len(encoders[0][1]) if encoders else 0
    return n, hashlib.sha256(json.dumps(encoders).encode()).hexdigest()


def _plain(value):
    """Return a value as JSON has it."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.ndarray | np.generic | tuple):
        return np.asarray(value).tolist()
    return value
