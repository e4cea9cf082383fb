"""Sort runs into what is drawn apart."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..analysis import group_runs

__all__ = ["as_mapping", "sort_runs"]


def sort_runs(runs, by="strategy"):
    """Sort runs into groups, and refuse to average what does not belong together.

    Parameters
    ----------
    runs : dict of str to list of Run, or sequence of Run
        A dict is taken as the groups.
    by : str, default="strategy"
        A key of `info`.

    Returns
    -------
    groups : dict of str to list of Run

    Raises
    ------
    ValueError
        If there are none, or a list mixes data sets, learners or strategies under one
        name.
    """
    groups = group_runs(runs, by)
    if isinstance(runs, Mapping):
        return groups
    for name, group in groups.items():
        for key in ("data", "learner", "strategy", "protocol"):
            found = {json.dumps(run.info.get(key), default=str) for run in group}
            if key != by and len(found) > 1:
                values = ", ".join(sorted(found))
                raise ValueError(
                    f"'runs' under {name!r} differ in {key!r}: {values}. Their mean "
                    "would mix these. Pass the runs of one, or a dict from name to "
                    "runs."
                )
    return groups


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
