"""Collecting and running checks, errors, copies, global generators."""

import pickle
import random
import sys
from functools import partial

import joblib
import numpy as np


def ensure(condition, fault):
    """Raise an AssertionError that states the fault and the remedy unless it holds."""
    if not condition:
        raise AssertionError(fault)


def collect(checks, applies, subject):
    """Yield (name, check) for each check that applies to `subject`.

    `applies` maps names of checks to predicates of the subject; other checks always
    apply. A yielded check takes no argument and raises an AssertionError.
    """
    applicable = [
        check
        for check in checks
        if applies.get(check.__name__, lambda subject: True)(subject)
    ]
    if not applicable:
        raise AssertionError(
            f"no check was collected for {subject.label!r}, so that nothing would be "
            "checked; reinstall skactive."
        )
    for check in applicable:
        yield check.__name__, partial(_run, check, subject)


def _run(check, subject):
    """Run one check; every exception becomes an error that names the check."""
    rule = check.__doc__.splitlines()[0]
    try:
        check(subject)
    except Exception as exc:
        fault = str(exc)
        if not isinstance(exc, AssertionError):
            message = str(exc).rstrip(".")
            fault = f"{type(exc).__name__}: {message}. Repair what raises it."
        raise AssertionError(
            f"{subject.label!r} fails {check.__name__}: {fault} ({rule})"
        ) from exc


def changed_names(before, after):
    """Return the names whose values differ in two results of `read_contents`."""
    names = before.keys() | after.keys()
    return sorted(name for name in names if before.get(name) != after.get(name))


def read_contents(values):
    """Return the content of each value of a dict, which changes if the value does."""
    return {name: _content_of(value, ()) for name, value in values.items()}


def _content_of(value, around):
    """Return a hash of a value, or the content of the parts where it has no hash."""
    try:
        return joblib.hash(value)
    except Exception:  # such as a lambda, which has no content to hash
        if id(value) in around:
            return id(value)
    around = (*around, id(value))
    if isinstance(value, dict):
        return {key: _content_of(part, around) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_content_of(part, around) for part in value]
    return id(value), _content_of(getattr(value, "__dict__", None), around)


def restore_pickled(value):
    """Return a copy of an object by way of a pickle."""
    try:
        return pickle.loads(pickle.dumps(value))
    except Exception as exc:
        raise AssertionError(
            f"it cannot be pickled ({type(exc).__name__}: {exc}); define classes and "
            "functions at the top of a module, and hold no open files or lambdas."
        ) from exc


# Global generators


def _torch():
    """Return torch if the process has imported it."""
    return sys.modules.get("torch")


def global_states():
    """Return the state of each global generator; torch only if it is imported."""
    name, keys, position, *rest = np.random.get_state()  # noqa: NPY002
    states = {
        "numpy.random": (name, keys.tobytes(), position, *rest),
        "random": random.getstate(),
    }
    if _torch():
        states["torch"] = _torch().random.get_rng_state().numpy().tobytes()
    return states


def seed_globals(seed):
    """Seed every global generator."""
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    if _torch():
        _torch().random.manual_seed(seed)


def run_with_global_seeds(make, run):
    """Return `run(make())` for two global seeds, and the generators that it moved."""
    states = global_states()
    results, moved = [], []
    try:
        for seed in (1, 2):
            subject = make()
            seed_globals(seed)
            before = global_states()
            results.append(run(subject))
            after = global_states()
            moved = moved or [name for name in before if before[name] != after[name]]
    finally:
        restore_globals(states)
    return results, moved


def restore_globals(states):
    """Restore what :func:`global_states` returned."""
    name, keys, *rest = states["numpy.random"]
    keys = np.frombuffer(keys, dtype=np.uint32)
    np.random.set_state((name, keys, *rest))  # noqa: NPY002
    random.setstate(states["random"])
    if "torch" in states:
        state = np.frombuffer(states["torch"], dtype=np.uint8).copy()
        _torch().random.set_rng_state(_torch().from_numpy(state))
