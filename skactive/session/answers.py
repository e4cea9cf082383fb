"""Labels as people give them, checked before they are recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set

import numpy as np

from skactive.session.pool import as_list

__all__ = ["is_missing", "kind_of", "read_labels"]


def read_labels(labels, ids, kind):
    """Read the labels that a caller gives.

    Parameters
    ----------
    labels : sequence
        One `str`, `int`, `bool` or finite float for each id, or for several outputs a
        list of these.
    ids : list
        The ids they belong to.
    kind : str or None
        The kind of the labels given before.

    Returns
    -------
    labels : list
        As JSON takes them.

    Raises
    ------
    ValueError
        If their number is not that of the ids, or one is missing or an int of more
        than 64 bits.
    TypeError
        If one is nothing of the above, or of another kind than the others.
    """
    unordered = isinstance(labels, Mapping | Set)
    if unordered or isinstance(labels, str) or not hasattr(labels, "__len__"):
        raise TypeError(
            f"'labels' must be a sequence with one label for each of the {len(ids)} "
            f"ids, got {labels!r}. Pass a list, or tell({{id: label, ...}}). Nothing "
            "was recorded."
        )
    labels = as_list(labels)
    if len(labels) != len(ids):
        raise ValueError(
            f"'labels' must hold one label for each of the {len(ids)} ids, got "
            f"{len(labels)}. Nothing was recorded."
        )
    read = []
    for id, label in zip(ids, labels, strict=True):
        read.append(_read(label, id))
        kind = kind or kind_of(read[-1])
        if kind_of(read[-1]) != kind:
            raise TypeError(
                f"'labels' must all be of one kind in a session, here {kind}; got "
                f"{label!r} for {id!r}. Nothing was recorded."
            )
    return read


def kind_of(label):
    """Name the kind of a label.

    Parameters
    ----------
    label : str, bool, int, float or list

    Returns
    -------
    kind : str

    Examples
    --------
    >>> from skactive.session.answers import kind_of
    >>> kind_of("spam"), kind_of(3), kind_of([0, 1])
    ('str', 'number', 'list of 2')
    """
    if isinstance(label, str):
        return "str"
    if isinstance(label, list | np.ndarray):
        return f"list of {len(label)}"
    return "bool" if isinstance(label, bool | np.bool_) else "number"


def _read(label, id):
    if hasattr(label, "tolist"):
        label = label.tolist()
    if isinstance(label, list | tuple):
        return [_read(part, id) for part in label]
    if is_missing(label) or (isinstance(label, float) and math.isinf(label)):
        raise ValueError(
            f"'labels' has no label for {id!r}, but {label!r}. Tell only what has "
            "one, or skip the item. Nothing was recorded."
        )
    if not isinstance(label, str | bool | int | float):
        raise TypeError(
            f"'labels' must hold str, int, bool or float, got {label!r} for {id!r}. "
            "Nothing was recorded."
        )
    if isinstance(label, int) and label.bit_length() > 63:
        raise ValueError(
            f"'labels' must hold int of at most 64 bits, got {label!r} for {id!r}. "
            "Pass it as a str. Nothing was recorded."
        )
    return label


def is_missing(label):
    """Whether a value stands for no label: None, NaN, NA, NaT or an empty string."""
    if label is None or isinstance(label, str):
        return not label
    is_na = type(label).__name__ in ("NAType", "NaTType")
    return is_na or (isinstance(label, float) and math.isnan(label))
