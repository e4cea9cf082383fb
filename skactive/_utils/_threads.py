"""Limit the threads of BLAS and torch, and let one thread at a time call a method."""

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps

from threadpoolctl import ThreadpoolController


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
    """Limit BLAS to one thread, so that results do not depend on the number of threads.

    It is also faster for small products. Threads meet after every product; on a busy
    machine one of them then waits for a processor, and work of 7 ms takes 300. The
    limit applies to the libraries that were loaded when this was first called, which
    include those of NumPy and SciPy.

    Parameters
    ----------
    condition : bool, default=True
        Whether to limit at all.

    Examples
    --------
    >>> from skactive._utils._threads import one_blas_thread
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


# torch -------------------------------------------------------------------------------

_torch_lock = threading.Lock()


@contextmanager
def one_torch_thread():
    """Give torch one thread in the calling thread, and leave all other threads alone.

    torch splits sums among its threads, so the number of threads changes the rounding.
    With one thread the results are the same for every setting of the user.

    Examples
    --------
    >>> import torch
    >>> from skactive._utils._threads import one_torch_thread
    >>> with one_torch_thread():
    ...     torch.get_num_threads()
    1
    """
    import torch

    n_threads = torch.get_num_threads()
    if n_threads == 1:
        yield
        return
    _set_torch_threads(1)
    try:
        yield
    finally:
        _set_torch_threads(n_threads)


def in_torch_threads(function, tasks, device):
    """Call a function on each task, in as many threads as torch has in the caller.

    Each thread computes with one thread of torch, so the number of threads does not
    change the results. Threads that each do a whole task also wait for each other less
    than threads that share every operation.

    Parameters
    ----------
    function : callable
        Called with one task. It has to set thread-local modes, such as
        `torch.no_grad`, itself.
    tasks : iterable
        Read by the calling thread, a few tasks ahead.
    device : torch.device
        Where the function computes. Other devices than the CPU are driven by the
        calling thread alone.

    Yields
    ------
    result : object
        In the order of the tasks.

    Examples
    --------
    >>> import torch
    >>> from skactive._utils._threads import in_torch_threads
    >>> count = lambda task: (task, torch.get_num_threads())
    >>> list(in_torch_threads(count, "ab", torch.device("cpu")))
    [('a', 1), ('b', 1)]
    """
    import torch

    n_threads = torch.get_num_threads()
    if n_threads == 1 or device.type != "cpu":
        yield from map(function, tasks)
        return
    pool = ThreadPoolExecutor(n_threads, "skactive", _set_torch_threads, (1,))
    waiting = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(function, task))
            if len(waiting) >= 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _set_torch_threads(n_threads):
    """Set torch's number of threads in the calling thread only.

    OpenMP keeps the number for each thread. torch additionally keeps the last number
    that was set, with which new threads begin; a new thread can read and restore it.
    """
    import torch

    torch.get_num_threads()  # the first use in a thread sets the default
    with _torch_lock:
        default = _in_new_thread(torch.get_num_threads)
        torch.set_num_threads(n_threads)
        _in_new_thread(torch.set_num_threads, default)


def _in_new_thread(function, *args):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()
