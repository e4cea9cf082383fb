"""Seeds derived from a base seed, a round and a purpose; no global generator."""

import threading
import zlib
from contextlib import contextmanager
from numbers import Integral

import numpy as np

# torch has one generator for all threads: whoever seeds it has it alone until the end.
generator_lock = threading.RLock()


def base_seed(random_state):
    """Turn scikit-learn's `random_state` into one integer, read once.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        An int is its own seed. A `RandomState` is drawn from, so it moves on. None
        reads the operating system's entropy, never `numpy.random`'s global state.

    Returns
    -------
    seed : int
        A non-negative integer.
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


def round_rng(seed, round_number, purpose, *counts):
    """Make the generator of one round and one purpose.

    Parameters
    ----------
    seed : int
        From :func:`base_seed`.
    round_number : int
        Which round of the loop, from 0.
    purpose : str
        What the numbers are for; two purposes never share a stream.
    *counts : int
        What else the stream depends on, such as the number of labels. Not negative.

    Returns
    -------
    rng : numpy.random.Generator

    Examples
    --------
    >>> from skactive._utils._random import round_rng
    >>> a, b = round_rng(0, 3, "query"), round_rng(0, 3, "query")
    >>> bool(a.random() == b.random())
    True
    """
    return np.random.default_rng(_sequence(seed, round_number, purpose, counts))


def round_seed(seed, round_number, purpose, *counts):
    """Derive an int in [0, 2**31) for an estimator's `random_state`.

    Parameters
    ----------
    seed, round_number, purpose, *counts
        As in :func:`round_rng`.

    Returns
    -------
    seed : int
    """
    sequence = _sequence(seed, round_number, purpose, counts)
    return int(sequence.generate_state(1)[0]) % 2**31


@contextmanager
def fork_torch(seed):
    """Run a block under its own torch seed and put the generators back after it.

    Blocks of several threads run one after the other.

    Parameters
    ----------
    seed : int
        Seed of the CPU generator and of every visible CUDA device.
    """
    import torch

    devices = list(range(torch.cuda.device_count()))
    with generator_lock, torch.random.fork_rng(devices=devices):
        torch.random.manual_seed(seed)
        yield
