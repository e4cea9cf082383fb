"""Limit the threads of BLAS, and let one thread at a time call a method."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import wraps

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread", "synchronized"]


class _Gate:
    """Counts who is inside: the first limits the threads, the last lifts the limit.

    The number of threads is a setting of the process. Were it restored by each thread
    on its own, one that came second would restore the limit of the first for good.
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.n_inside = 0
        self.controller = self.limiter = None

    def enter(self):
        with self.lock:
            if self.n_inside == 0:
                if self.controller is None:  # looking for libraries takes a while
                    self.controller = ThreadpoolController()
                self.limiter = self.controller.limit(limits=1, user_api="blas")
            self.n_inside += 1

    def leave(self):
        with self.lock:
            self.n_inside -= 1
            if self.n_inside == 0:
                self.limiter.restore_original_limits()


_GATE = _Gate()


@contextmanager
def one_blas_thread(condition=True):
    """Limit BLAS to one thread, for work of less than some hundredths of a second.

    Threads meet after every product. On a busy machine one of them then waits for a
    processor, and work of 7 ms takes 300. It goes for the libraries that were loaded
    when this was first called, NumPy's and SciPy's among them.

    Parameters
    ----------
    condition : bool, default=True
        Whether to limit at all.

    Examples
    --------
    >>> from skactive._threads import one_blas_thread
    >>> from threadpoolctl import threadpool_info
    >>> with one_blas_thread():
    ...     libraries = threadpool_info()
    >>> {lib["num_threads"] for lib in libraries if lib["user_api"] == "blas"} <= {1}
    True
    """
    if not condition:
        yield
        return
    _GATE.enter()
    try:
        yield
    finally:
        _GATE.leave()


def synchronized(method):
    """Decorate a method so that it holds `self._lock` while it runs."""

    @wraps(method)
    def call(self, *args, **kwargs):
        with self._lock:
            return method(self, *args, **kwargs)

    return call
