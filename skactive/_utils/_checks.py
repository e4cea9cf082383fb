"""Checks of arguments that need numpy only, as programs with an export have no more."""

import os
from numbers import Integral

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
