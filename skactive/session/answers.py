"""Labels as people give them, checked before they are recorded."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Set
from difflib import get_close_matches
from numbers import Integral

import numpy as np

from skactive.session.pool import as_list

__all__ = [
    "check_annotator",
    "check_classes",
    "check_n",
    "is_missing",
    "kind_of",
    "read_labels",
    "warn_of_new_classes",
]


def check_n(n):
    """Check a number of items; None stays None."""
    if n is None:
        return None
    if not isinstance(n, Integral) or isinstance(n, bool):
        raise TypeError(f"'n' must be an int or None, got {n!r}.")
    if n < 1:
        raise ValueError(f"'n' must be at least 1, got {n}.")
    return int(n)


def check_annotator(annotator):
    """Check the name of an annotator."""
    if annotator is not None and not isinstance(annotator, str):
        raise TypeError(f"'annotator' must be a str or None, got {annotator!r}.")
    return annotator


def check_classes(classes):
    """Read the classes of a session, list or None."""
    if classes is None:
        return None
    ordered = hasattr(classes, "__len__") and not isinstance(classes, Mapping | Set)
    if isinstance(classes, str) or not ordered or len(classes) < 2:
        raise ValueError(
            f"'classes' must be a sequence of at least two labels, got {classes!r}."
        )
    places = [f"classes[{i}]" for i in range(len(classes))]
    classes = read_labels(classes, places, None)
    if isinstance(classes[0], list) or len(set(classes)) < len(classes):
        raise ValueError(f"'classes' must be different single labels, got {classes!r}.")
    return classes


def read_labels(labels, ids, kind, classes=None):
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
    classes : list, default=None
        The labels that are allowed; None allows any.

    Returns
    -------
    labels : list
        As JSON takes them.

    Raises
    ------
    ValueError
        If their number is not that of the ids, or one is missing, not allowed or an
        int of more than 64 bits.
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
        if classes is not None:
            _check_class(read[-1], id, classes)
    return read


def _check_class(label, id, classes):
    for part in label if isinstance(label, list) else [label]:
        if kind_of(part) == kind_of(classes[0]) and part in classes:
            continue
        close = _find_close(part, classes) if isinstance(part, str) else None
        hint = "" if close is None else f" Did you mean {close!r}?"
        shown = ", ".join(map(repr, classes[:20])) + ", ..." * (len(classes) > 20)
        raise ValueError(
            f"'labels' must be among the classes of the session, {shown}; got "
            f"{part!r} for {id!r}.{hint} To add a class, open the session with "
            "classes= that name it too. Nothing was recorded."
        )


def warn_of_new_classes(labels, known, stacklevel):
    """Warn of new classes that look like others, as those of a slip of the keyboard.

    Parameters
    ----------
    labels : list
        What is going to be recorded.
    known : container of labels
        The classes so far.
    stacklevel : int
        Of the caller to name in the warning, as :func:`warnings.warn` counts.
    """
    known = {label for label in known if isinstance(label, str)}
    told = Counter(label for label in labels if isinstance(label, str))
    hints = []
    for label, _ in told.most_common():
        if label not in known and (close := _find_close(label, known)) is not None:
            hints.append(f"{label!r} (did you mean {close!r}?)")
        known.add(label)
    if hints:
        shown = ", ".join(hints[:5]) + ", ..." * (len(hints) > 5)
        warnings.warn(
            f"new classes look like others: {shown}. If that was a slip, tell the "
            "items again, or undo(). Open the session with classes=[...] to have such "
            "labels refused.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def _find_close(label, known):
    """Find the class that a label looks like, unless they differ by a number."""
    names = sorted(name for name in known if isinstance(name, str))
    looks = {name.strip().casefold(): name for name in names}
    own = label.strip().casefold()
    stem = re.sub(r"[0-9]+", "", own)
    near = get_close_matches(own, looks, n=1, cutoff=0.8)
    if not near or (near[0] != own and re.sub(r"[0-9]+", "", near[0]) == stem):
        return None
    return looks[near[0]]


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
