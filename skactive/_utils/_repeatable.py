"""Seeds from a base seed, and threads: their limits, priority and end."""

import atexit
import ctypes
import threading
import time
import zlib
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial, wraps
from itertools import islice
from numbers import Integral

import numpy as np
import sklearn
from threadpoolctl import ThreadpoolController

from ._bases import Method
from ._system import has_low_priority, lower_priority

# torch has one generator for all threads: whoever seeds it has it alone until the end.
generator_lock = threading.RLock()


def base_seed(random_state):
    """Return the seed of a `random_state` as a non-negative int.

    An int is its own seed. A `RandomState` is advanced. None reads the entropy of the
    operating system, not the global state of `numpy.random`.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    is_int = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if not is_int or not 0 <= random_state < 2**32:
        raise ValueError(
            "'random_state' must be an int from 0 to 2**32 - 1, a RandomState instance "
            f"or None, got {random_state!r}."
        )
    return int(random_state)


def _sequence(seed, round_number, purpose, counts):
    # crc32 gives each purpose a number that is the same in every process, which
    # hash() of a str is not.
    purpose = zlib.crc32(purpose.encode())
    return np.random.SeedSequence([seed, round_number, purpose, *counts])


def mix_bits(start, steps):
    """Return the state of SplitMix64 (Steele, Lea, Flood 2014) after `steps`, mixed."""
    z = start + steps * np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def round_rng(seed, round_number, purpose, *counts):
    """Return the Generator of one round, from 0, and one purpose.

    Different purposes have independent streams, as have different `counts`, such as the
    number of labels.
    """
    return np.random.default_rng(_sequence(seed, round_number, purpose, counts))


def round_seed(seed, round_number, purpose, *counts):
    """Return a seed in [0, 2**31); see :func:`round_rng` for the arguments."""
    sequence = _sequence(seed, round_number, purpose, counts)
    return int(sequence.generate_state(1)[0]) % 2**31


@contextmanager
def fork_torch(seed):
    """Run a block under its own torch seed, then restore the generators.

    Blocks of several threads run one after another. The seed is set for the CPU and for
    every visible CUDA device.
    """
    import torch

    devices = list(range(torch.cuda.device_count()))
    with generator_lock, torch.random.fork_rng(devices=devices):
        torch.random.manual_seed(seed)
        yield


class _Gate:
    """Count the threads inside: the first sets the limit, the last removes it.

    The number of BLAS threads is a setting of the process. If each thread restored it,
    one that came second would restore the limit of the first for good. Another library
    that does so, such as the k-means of scikit-learn in another thread, can raise the
    number meanwhile, so each thread that comes in lowers it again.
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.n_inside = 0
        self.controller = self.limiter = None

    def enter(self):
        with self.lock:
            if self.n_inside == 0:
                if self.controller is None:  # looking for libraries takes a while
                    self.controller = ThreadpoolController().select(user_api="blas")
                self.limiter = self.controller.limit(limits=1)
            for library in self.controller.lib_controllers:
                if library.num_threads != 1:
                    library.set_num_threads(1)
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

    It is also faster for small products: threads meet after every product, and on a
    busy machine one of them waits for a processor, so that 7 ms of work take 300. The
    limit applies to the libraries that were loaded at the first call.
    """
    if not condition:
        yield
        return
    _GATE.enter()
    try:
        yield
    finally:
        _GATE.leave()


def start_in_background(work):
    """Start a thread of low priority with the configuration of scikit-learn.

    It stops when Python exits. C++ code that runs on while Python ends aborts the
    process.
    """

    def run(config):
        lower_priority()
        with sklearn.config_context(**config):  # each thread has its own
            work()
        atexit.unregister(stop)

    def stop():
        while thread.is_alive():
            # A thread that starts has the number of its parent, and would end instead.
            starts = any(each.ident is None for each in threading.enumerate())
            if not starts:
                interrupt(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
            thread.join(0.01 if starts else 1)  # once more if something caught it

    interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc
    thread = threading.Thread(target=run, args=(sklearn.get_config(),), daemon=True)
    atexit.register(stop)
    thread.start()
    return thread


def start_daemon(function, *args, **kwargs):
    """Return the Future of a call in a thread that the exit of Python does not join."""
    outcome: Future = Future()

    def work():
        try:
            outcome.set_result(function(*args, **kwargs))
        except BaseException as exc:
            outcome.set_exception(exc)

    threading.Thread(target=work, daemon=True).start()
    return outcome


def map_in_daemons(function, items, n_threads, stop):
    """Yield the results of `function` for items, in any order.

    At an error, and where nobody waits any more, `stop` is set: an event that ends the
    other calls.
    """
    items, running = iter(items), set()
    try:
        while True:
            new = islice(items, n_threads - len(running))
            running |= {start_daemon(function, item) for item in new}
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (one.result() for one in done)
    except BaseException:
        stop.set()
        wait(running)
        raise


_stop: ContextVar = ContextVar("stop", default=None)


@contextmanager
def stopped_by(stop):
    """Have clients of servers that are made in the block stop once an event is set."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


def find_stop():
    """Return the event of :func:`stopped_by`, or a new one."""
    return _stop.get() or threading.Event()


class StoppedError(RuntimeError):
    """The event that stops a client is set."""


_PAUSE = 0.06  # seconds: from a key to the next text on the page, as a rule


class _Pause:
    """When threads of low priority may go on, by `time.monotonic`."""

    until = 0.0


def pause_background():
    """Pause threads of low priority for 60 ms, at most half of the time, on Linux.

    An answer wakes several threads, here and in the browser. Each would wait for a
    processor or for the interpreter lock, which such a thread uses.
    """
    now = time.monotonic()
    if now > _Pause.until + _PAUSE:
        _Pause.until = now + _PAUSE


def give_way():
    """Wait for the end of a pause, if the priority of this thread is low."""
    left = _Pause.until - time.monotonic()
    if left > 0 and has_low_priority():
        time.sleep(left)


def synchronized(method: Method) -> Method:
    """Decorate a method to hold `self._lock` while it runs."""

    @wraps(method)
    def call(self, *args, **kwargs):
        with self._lock:
            return method(self, *args, **kwargs)

    return call  # type: ignore[return-value]


# torch -------------------------------------------------------------------------------

_torch_lock = threading.Lock()


@contextmanager
def one_torch_thread():
    """Limit torch to one thread in the calling thread only.

    torch splits sums among its threads, so the number of threads changes the rounding.
    With one thread the results are the same for every setting of the user.
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


_kept = threading.local()


@contextmanager
def keep_torch_threads():
    """Keep the threads of :func:`in_torch_threads` until the block ends.

    In the block torch has one thread in the calling thread.
    """
    n_threads, before = count_torch_threads(), dict(vars(_kept))
    with one_torch_thread(), _torch_pool(n_threads) as pool:
        vars(_kept).update(pool=pool, n_threads=n_threads)
        try:
            yield
        finally:
            vars(_kept).clear()
            vars(_kept).update(before)


def count_torch_threads():
    """Return the number of threads that :func:`in_torch_threads` uses on the CPU."""
    import torch

    return vars(_kept).get("n_threads") or torch.get_num_threads()


def in_torch_threads(function, tasks, device):
    """Yield `function(task)` for each task in order, in as many threads as torch has.

    Each thread computes with one torch thread, so the number of threads does not change
    the results; and it waits for others less than in shared operations. The function
    sets thread-local modes such as `torch.no_grad` itself. Devices other than the CPU
    are used from the calling thread alone. On CUDA a result is a tuple, whose tensors
    come back on the processor, and the next task is prepared and begun before.
    """
    if device.type == "cuda":
        yield from _one_behind(map(function, tasks), partial(_copy_back, device))
        return
    kept, n_threads = vars(_kept).get("pool"), count_torch_threads()
    if device.type != "cpu" or n_threads == 1:
        yield from map(function, tasks)
        return
    waiting = deque()
    with _torch_pool(n_threads) if kept is None else nullcontext(kept) as pool:
        try:
            for task in tasks:
                waiting.append(pool.submit(function, task))
                if len(waiting) >= 2 * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _one_behind(results, copy_back):
    """Yield each result after the next one was begun.

    `copy_back` begins to copy a result and returns a function that waits for the copy.
    """
    waiting = deque()
    for result in results:
        waiting.append(copy_back(result))
        if len(waiting) > 1:
            yield waiting.popleft()()
    yield from (wait_for_copy() for wait_for_copy in waiting)


def _copy_back(device, result):
    """Copy the tensors of a tuple from CUDA to pinned memory, without waiting."""
    import torch

    to_cpu = partial(torch.Tensor.to, device="cpu", non_blocking=True)
    copied = [to_cpu(x) if torch.is_tensor(x) else x for x in result]
    done = torch.cuda.Event()
    done.record(torch.cuda.current_stream(device))
    return lambda: (done.synchronize(), copied)[1]


def _torch_pool(n_threads):
    """Return a pool of threads in which torch has one thread each."""
    return ThreadPoolExecutor(n_threads, "skactive", _set_torch_threads, (1,))


def _set_torch_threads(n_threads):
    """Set the number of torch threads in the calling thread only.

    OpenMP keeps it for each thread. torch additionally keeps the last number that was
    set, with which new threads begin; a new thread can read and restore it.
    """
    import torch

    torch.get_num_threads()  # the first use in a thread sets the default
    with _torch_lock:
        default = _in_new_thread(torch.get_num_threads)
        torch.set_num_threads(n_threads)
        _in_new_thread(torch.set_num_threads, default)


def _in_new_thread(function, *args):
    # A pool would refuse while Python exits, when threads of another one still start.
    return start_daemon(function, *args).result()
