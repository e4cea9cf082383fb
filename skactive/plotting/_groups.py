"""Take one thing to draw, or several by name."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["as_mapping"]


def as_mapping(value, name, is_one, default="model"):
    """Take one thing or a dict of several by name.

    Parameters
    ----------
    value : object or dict of str to object
    name : str
        The argument, for error messages.
    is_one : callable
        Whether a dict is itself the one thing.
    default : str, default="model"
        What one thing is called.

    Returns
    -------
    values : dict of str to object

    Raises
    ------
    ValueError
        If the dict is empty.
    """
    if not isinstance(value, Mapping) or is_one(value):
        return {default: value}
    if not value:
        raise ValueError(f"{name!r} is empty: pass at least one.")
    return {str(key): item for key, item in value.items()}
