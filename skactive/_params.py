"""Check the parameters of a strategy when it is used, as scikit-learn does."""

from __future__ import annotations

import os
from contextlib import contextmanager
from numbers import Integral

import numpy as np

__all__ = ["check_bool", "check_count", "check_option", "check_path", "naming"]


@contextmanager
def naming(name):
    """Add the name of an argument to an error of the estimator that was given it."""
    try:
        yield
    except (TypeError, ValueError) as exc:
        if repr(name) not in str(exc):
            exc.add_note(
                f"The estimator was given {name!r}. Check its items and shape."
            )
        raise


def check_bool(name, value):
    """Refuse what is neither True nor False, such as "no", which is true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name!r} must be True or False, got {value!r}.")


def check_path(name, value):
    """Refuse what is no path, by the name of the argument."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name!r} must be a str or path-like, got {value!r}.")


def check_count(name, value, least=1):
    """Check a parameter that counts something.

    Parameters
    ----------
    name : str
        What the error calls it.
    value : object
    least : int, default=1

    Returns
    -------
    value : int

    Raises
    ------
    ValueError
        If it is no int or too small.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an int of at least {least}; got {value!r}.")
    return int(value)


def check_option(name, value, options):
    """Check a parameter that is one of some names.

    Parameters
    ----------
    name : str
        What the error calls it.
    value : object
    options : iterable of str or None

    Raises
    ------
    ValueError
        If it is none of them, listing them.
    """
    known = tuple(options)
    if not isinstance(value, str | None) or value not in known:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}."
        )
