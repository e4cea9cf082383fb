"""What an experiment is given, by names, or refused before any work."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from numbers import Integral

from .._labels import as_labels
from .._positions import count_items
from ..registry import resolve
from ..simulation.plan import to_text

__all__ = ["by_name", "check_data", "list_seeds", "name_strategies"]


def by_name(value, argument):
    """Give a dict of what came alone or by name."""
    if not isinstance(value, Mapping):
        return {"data" if argument == "data" else "learner": value}
    if not value or not all(isinstance(name, str) for name in value):
        raise ValueError(
            f"{argument!r} must hold at least one, by names that are str; got "
            f"{list(value)}."
        )
    return dict(value)


def check_data(name, parts):
    """Give `(X, y, X_test, y_test)`, the last two None where they are not given."""
    if not isinstance(parts, tuple | list) or len(parts) not in (2, 4):
        came = type(parts).__name__
        if isinstance(parts, tuple | list):
            came += f" of {len(parts)}"
        raise ValueError(
            "'data' must be (X, y) or (X, y, X_test, y_test), or a dict of such "
            f"tuples; got a {came} as {name!r}."
        )
    X, y, X_test, y_test = parts if len(parts) == 4 else (*parts, None, None)
    try:
        as_labels(y, count_items(X))
    except (TypeError, ValueError) as exc:
        exc.add_note(f"This is about the data {name!r}.")
        raise
    return X, y, X_test, y_test


def name_strategies(strategies):
    """Give a dict of strategies that exist, from one, several, or a dict."""
    if isinstance(strategies, Mapping):
        named = by_name(strategies, "strategies")
    else:
        if isinstance(strategies, str) or not isinstance(strategies, list | tuple):
            strategies = [strategies]
        names = [
            s if isinstance(s, str) else getattr(s, "__name__", None) or to_text(s)
            for s in strategies
        ]
        twice = {name for name in names if names.count(name) > 1}
        if twice or not names:
            raise ValueError(
                "'strategies' must hold at least one, and none twice; got "
                f"{', '.join(names) or 'none'}. Name them in a dict."
            )
        named = dict(zip(names, strategies, strict=True))
    for strategy in named.values():
        resolve(strategy, argument="strategies")
    return named


def list_seeds(seeds):
    """Give the seeds, from how many or which."""
    if isinstance(seeds, Integral) and not isinstance(seeds, bool) and seeds > 0:
        return list(range(seeds))
    try:
        listed = [int(operator.index(seed)) for seed in seeds]
    except TypeError:
        listed = []
    if not listed or len(set(listed)) < len(listed) or min(listed) < 0:
        raise ValueError(
            "'seeds' must be a number of seeds of at least 1, or different ints of at "
            f"least 0; got {seeds!r}."
        )
    return listed
