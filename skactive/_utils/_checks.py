"""Checks of arguments that need numpy only, as programs with an export have no more."""

import os
from numbers import Integral, Real

import numpy as np

from ._format import brief, list_some


def check_bool(name, value):
    """Raise a TypeError unless a value is True or False; "no" would be true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name!r} must be True or False, got {brief(value)}.")


def check_path(name, value):
    """Raise a TypeError unless a value is a str or path-like, a ValueError for ""."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name!r} must be a str or path-like, got {brief(value)}.")
    if os.fspath(value) == "":
        raise ValueError(
            f"{name!r} must name a file or folder, got ''. Pass '.' for the working "
            "directory."
        )


def check_count(name, value, least=1, most=None):
    """Return a value as int; raise a ValueError unless it is an int from least to most.

    `most` is the largest value, if there is one.
    """
    is_int = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_int or value < least or (most is not None and value > most):
        bound = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name!r} must be an int {bound}, got {brief(value)}.")
    return int(value)


def check_share(name, value, limits=()):
    """Return a value as float; raise a ValueError unless it is between 0 and 1.

    `limits` are those of the two that are allowed, too.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not (0 < value < 1 or value in limits):
        bounds = "from 0 to " + ("1" if 1 in limits else "below 1")
        bounds = bounds if limits else "between 0 and 1"
        raise ValueError(
            f"{name!r} must be {bounds}, got {brief(value)}. Divide percentages by 100."
        )
    return float(value)


def check_option(name, value, options):
    """Raise a ValueError that lists the options unless a value is one of them."""
    known = tuple(options)
    if not isinstance(value, str | None) or value not in known:
        raise ValueError(
            f"{name!r} must be one of {', '.join(map(repr, known))}, got "
            f"{brief(value)}."
        )


def refuse_surrogates(texts, *, name="X"):
    """Raise a ValueError for half of a surrogate pair, which no tokenizer accepts."""

    def is_broken(text):
        try:
            (text if isinstance(text, str) else "".join(text)).encode()
        except UnicodeEncodeError:
            return True
        return False

    bad = [i for i, text in enumerate(texts) if is_broken(text)]
    if bad:
        raise ValueError(
            f"{name!r} must hold valid Unicode, got unpaired surrogates at positions: "
            f"{list_some(bad)}. Read the file with the encoding it "
            "was written in, or drop them: text.encode(errors='ignore').decode()."
        )
