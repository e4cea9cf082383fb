"""Say in words, the same in every process, what a simulation will do."""

from __future__ import annotations

import re
import types

import joblib
import numpy as np
from scipy import sparse

__all__ = [
    "describe",
    "find_changes",
    "fingerprint",
    "make_plan",
    "name_estimator",
    "name_initial",
    "name_value",
    "to_text",
]

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def make_plan(learner, *, data, **settings):
    """Gather all that the result of a simulation depends on.

    Parameters
    ----------
    learner : estimator
    data : dict of str to str
        From :func:`fingerprint`.
    **settings
        The arguments of :func:`skactive.simulate`.

    Returns
    -------
    plan : dict
        Of texts, and of dicts of texts.
    """
    return {
        "learner": describe(learner),
        "data": data,
        **{name: describe(value) for name, value in settings.items()},
    }


def fingerprint(X, y, X_test=None, y_test=None):
    """Hash the data of a simulation by what they hold.

    Parameters
    ----------
    X, y, X_test, y_test : container

    Returns
    -------
    digests : dict of str to str
    """
    parts = {"X": X, "y": y, "X_test": X_test, "y_test": y_test}
    return {name: _hash(part) for name, part in parts.items()}


def describe(value):
    """Describe a value, an estimator by each of its parameters.

    Parameters
    ----------
    value : object

    Returns
    -------
    text : str or dict of str to str

    Examples
    --------
    >>> from skactive.simulation.plan import describe
    >>> from sklearn.linear_model import Ridge
    >>> describe(Ridge())["alpha"], describe(0.5), describe(len)
    ('1.0', '0.5', 'builtins.len')
    """
    if _is_estimator(value):
        params = {"type": type(value), **value.get_params(deep=True)}
        return {name: _describe(params[name]) for name in sorted(params)}
    return _describe(value)


def _is_estimator(value):
    return hasattr(value, "get_params") and not isinstance(value, type)


def _describe(value):
    if _is_estimator(value):
        value = type(value)  # its parameters are described beside it
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, np.ndarray) or sparse.issparse(value):
        return f"{type(value).__name__} {value.shape} {_hash(value)}"
    return to_text(value)


def to_text(value):
    """Give the repr of a value in one line, without addresses in memory.

    Parameters
    ----------
    value : object

    Returns
    -------
    text : str
    """
    return " ".join(_ADDRESS.sub("", repr(value)).split())


def name_value(value):
    """Name a strategy or function: the name itself, its `__name__`, or its repr."""
    if isinstance(value, str):
        return value
    return getattr(value, "__name__", None) or to_text(value)


def name_estimator(estimator):
    """Name an estimator by its repr, None by None."""
    return None if estimator is None else to_text(estimator)


def name_initial(initial):
    """Name the way in which a simulation begins."""
    if initial is None:
        return "random"
    return initial if isinstance(initial, str) else "given"


def _hash(data):
    return joblib.hash(data, hash_name="sha1")


def find_changes(old, new):
    """Say what differs between two plans.

    Parameters
    ----------
    old, new : dict

    Returns
    -------
    changes : str
        Empty if nothing does.

    Examples
    --------
    >>> from skactive.simulation.plan import find_changes
    >>> find_changes({"seed": "1", "noise": "None"}, {"seed": "2", "noise": "None"})
    'seed was 1, is 2'
    """
    changes = []
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            inner = find_changes(before, after)
            changes += [f"{name}: {inner}"] if inner else []
        elif before != after:
            changes.append(f"{name} was {before}, is {after}")
    return "; ".join(changes)
