"""The global generators of numpy, random and torch: read, seeded, put back."""

import random
import sys

import numpy as np


def _torch():
    """Find torch if the process has imported it."""
    return sys.modules.get("torch")


def global_states():
    """Read the state of every global generator.

    Returns
    -------
    states : dict of str to object
        Comparable; torch only where the process has imported it.
    """
    name, keys, position, *rest = np.random.get_state()  # noqa: NPY002
    states = {
        "numpy.random": (name, keys.tobytes(), position, *rest),
        "random": random.getstate(),
    }
    if _torch():
        states["torch"] = _torch().random.get_rng_state().numpy().tobytes()
    return states


def seed_globals(seed):
    """Seed every global generator.

    Parameters
    ----------
    seed : int
    """
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    if _torch():
        _torch().random.manual_seed(seed)


def restore_globals(states):
    """Put every global generator back.

    Parameters
    ----------
    states : dict
        From :func:`global_states`.
    """
    name, keys, *rest = states["numpy.random"]
    keys = np.frombuffer(keys, dtype=np.uint32)
    np.random.set_state((name, keys, *rest))  # noqa: NPY002
    random.setstate(states["random"])
    if "torch" in states:
        state = np.frombuffer(states["torch"], dtype=np.uint8).copy()
        _torch().random.set_rng_state(_torch().from_numpy(state))
