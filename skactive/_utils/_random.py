"""Seeds derived from a base seed, a round and a purpose; no global generator."""

import threading
import zlib
from contextlib import contextmanager
from numbers import Integral

import numpy as np

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
