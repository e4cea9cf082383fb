"""Wrong values: some for any argument, some derived from the valid value."""

import numpy as np
import pandas as pd

HUGE = 10**30

# Any number is valid, and this one starts as many workers or asks for as much work.
UNBOUNDED = {"n_jobs", "max_epochs"}

_ANYTHING = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "-1": lambda: -1,
    "2.5": lambda: 2.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "huge": lambda: HUGE,
    "large": lambda: 2**40,
    "1j": lambda: 1j,
    "''": lambda: "",
    "'no such'": lambda: "no such",
    "b'bytes'": lambda: b"bytes",
    "an object": object,
    "len": lambda: len,
    "int": lambda: int,
    "[]": list,
    "{}": dict,
    "{'a': 1}": lambda: {"a": 1},
    "a set": lambda: {"a", "b", "c"},
    "a generator": lambda: (i for i in range(3)),
    "[None]": lambda: [None],
    "[[[0]]]": lambda: [[[0]]],
    "[nan, 1.0]": lambda: [float("nan"), 1.0],
    "[HUGE]": lambda: [HUGE],
    "array of shape (0, 2)": lambda: np.zeros((0, 2)),
    "array of shape (2, 1, 3)": lambda: np.zeros((2, 1, 3)),
    "array of shape ()": lambda: np.array(1),
    "array of objects": lambda: np.array([{}, None], dtype=object),
    "a frame": lambda: pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
}


def _other_kind(value):
    """Numbers for texts and texts for numbers, in a list of the same length."""
    rows = np.asarray(value, dtype=object)
    is_text = isinstance(rows.ravel()[0], str)
    return (np.arange(rows.size).reshape(rows.shape) if is_text else rows).astype(
        float if is_text else str
    )


def _with_first(value, item):
    return [item, *np.asarray(value, dtype=object)[1:].tolist()]


_OF_ROWS = {
    "one row less": lambda v: v[:-1],
    "one row": lambda v: v[:1],
    "no rows": lambda v: v[:0],
    "as dict": lambda v: dict(enumerate(v)),
    "as dict of its rows": lambda v: dict.fromkeys(map(str, v), 1),
    "as set": lambda v: set(map(str, v)),
    "as generator": lambda v: (row for row in v),
    "of another kind": _other_kind,
    "with None": lambda v: _with_first(v, None),
    "with nan": lambda v: _with_first(v, float("nan")),
    "with a list": lambda v: _with_first(v, [1, "a"]),
    "with bytes": lambda v: _with_first(v, b"\xff"),
    "nested": lambda v: [[row] for row in v],
}
_OF_NUMBERS = {
    "as str": str,
    "in a list": lambda v: [v],
    "negative": lambda v: -v,
    "plus a half": lambda v: v + 0.5,
}


def wrong_values(name, value):
    """Map names of wrong values for an argument to functions that make them."""
    pool = {
        label: make
        for label, make in _ANYTHING.items()
        if label not in ("huge", "large") or name not in UNBOUNDED
    }
    if isinstance(value, list | np.ndarray) and len(value):
        derived = _OF_ROWS
    elif isinstance(value, int | float) and not isinstance(value, bool):
        derived = _OF_NUMBERS
    else:
        derived = {}
    # Twice, as these come closer to what people do.
    for label, make in derived.items():
        for copy in ("", " "):
            pool[label + copy] = lambda make=make: make(value)
    return pool
