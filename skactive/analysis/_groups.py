"""Read runs: alone, in groups, and in pairs of one seed."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from .._sklearn import validate_params
from ..runs import Run

__all__ = [
    "as_runs",
    "group_runs",
    "known_points",
    "name_metric",
    "pair_runs",
    "sort_runs",
]


def as_runs(runs, name="runs"):
    """Take one run or several.

    Parameters
    ----------
    runs : Run or sequence of Run
    name : str, default="runs"
        What to call the argument in error messages.

    Returns
    -------
    runs : list of Run

    Raises
    ------
    TypeError
        If something else is among them.
    ValueError
        If there are none.
    """
    if isinstance(runs, Run):
        return [runs]
    if isinstance(runs, str | bytes | Mapping) or not hasattr(runs, "__iter__"):
        raise TypeError(
            f"{name!r} must be a Run or a list of them, got a {type(runs).__name__}."
        )
    try:
        runs = list(runs)
    except TypeError as exc:  # an array without dimensions
        raise TypeError(
            f"{name!r} must be a Run or a list of them, got {runs!r}."
        ) from exc
    for i, run in enumerate(runs):
        if not isinstance(run, Run):
            raise TypeError(
                f"{name!r} must hold runs only, got a {type(run).__name__} at {i}. "
                "Read a file with Run.from_json and a dict with Run.from_dict."
            )
    if not runs:
        raise ValueError(f"{name!r} is empty: pass at least one Run.")
    return runs


@validate_params({"by": [str, list, tuple]})
def group_runs(runs, by="strategy"):
    """Sort runs into groups by what they say of themselves.

    Parameters
    ----------
    runs : dict of str to list of Run, or sequence of Run
        A dict is taken as the groups.
    by : str or sequence of str, default="strategy"
        One key of `info`, or several.

    Returns
    -------
    groups : dict of str to list of Run
        In the order in which they first appear. The names of groups by several keys
        are joined by commas.

    Raises
    ------
    ValueError
        If a run does not hold a key.

    Examples
    --------
    >>> from skactive.analysis import group_runs
    >>> from skactive.runs import Run
    >>> runs = [
    ...     Run(info={"strategy": name, "learner": "lr"})
    ...     for name in ("margin", "random", "margin")
    ... ]
    >>> {name: len(group) for name, group in group_runs(runs).items()}
    {'margin': 2, 'random': 1}
    >>> list(group_runs(runs, by=("learner", "strategy")))
    ['lr, margin', 'lr, random']
    """
    if isinstance(runs, Mapping):
        groups = {
            str(name): as_runs(group, f"runs[{name!r}]") for name, group in runs.items()
        }
        if not groups:
            raise ValueError("'runs' is empty: pass at least one Run.")
        return groups
    keys = _as_keys(by)
    groups = {}
    for i, run in enumerate(as_runs(runs)):
        missing = [key for key in keys if run.info.get(key) is None]
        if missing:
            raise ValueError(
                f"'by' must name keys that all runs hold in `info`; the run at {i} of "
                f"'runs' has no {missing[0]!r}. Pass a dict from name to runs."
            )
        name = ", ".join(str(run.info[key]) for key in keys)
        groups.setdefault(name, []).append(run)
    return groups


def _as_keys(by):
    keys = (by,) if isinstance(by, str) else tuple(by)
    if not keys or not all(isinstance(key, str) for key in keys):
        raise ValueError(
            f"'by' must be a key of `info`, or a sequence of several; got {by!r}."
        )
    return keys


def sort_runs(runs, by="strategy"):
    """Sort runs into groups, and refuse to average what does not belong together.

    Parameters
    ----------
    runs : dict of str to list of Run, or sequence of Run
        A dict is taken as the groups.
    by : str or sequence of str, default="strategy"
        Keys of `info`.

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
            if key not in _as_keys(by) and len(found) > 1:
                values = ", ".join(sorted(found))
                raise ValueError(
                    f"'runs' under {name!r} differ in {key!r}: {values}. Their mean "
                    "would mix these. Pass the runs of one, name several keys as "
                    f"'by', such as ({key!r}, 'strategy'), or pass a dict from name "
                    "to runs."
                )
    return groups


def pair_runs(runs_a, runs_b):
    """Find the runs of two groups that began alike.

    Parameters
    ----------
    runs_a, runs_b : list of Run

    Returns
    -------
    pairs : list of tuple of (int, int), or None
        Places in both lists of runs with one seed and one data set, by `info`; None
        unless every run has exactly one partner.
    """
    keys_a, keys_b = (
        [
            json.dumps([run.info.get("data"), run.info.get("seed")], sort_keys=True)
            if run.info.get("seed") is not None
            else None
            for run in runs
        ]
        for runs in (runs_a, runs_b)
    )
    places = {key: j for j, key in enumerate(keys_b)}
    unique = len(places) == len(keys_b) and len(set(keys_a)) == len(keys_a)
    if not unique or None in places or set(keys_a) != set(keys_b):
        return None
    return [(i, places[key]) for i, key in enumerate(keys_a)]


def name_metric(runs, metric=None):
    """Say which metric is looked at: the one named, or the first run's first.

    Parameters
    ----------
    runs : list of Run
    metric : str or None, default=None

    Returns
    -------
    metric : str

    Raises
    ------
    ValueError
        If a run does not hold it.
    """
    if metric is None:
        if not runs[0].metrics:
            raise ValueError(
                "'runs' hold no scores. Pass X_test and y_test when you simulate."
            )
        metric = runs[0].metrics[0]
    for i, run in enumerate(runs):
        if metric not in run.metrics:
            raise ValueError(
                f"'metric' {metric!r} is not held by the run at {i}, which has "
                f"{run.metrics}. Name one that all runs hold."
            )
    return metric


def known_points(curve, metric=None):
    """Read the label counts at which a score is known.

    Parameters
    ----------
    curve : Run or LearningCurve
    metric : str or None, default=None
        Of a run; None is its first.

    Returns
    -------
    n_labeled : ndarray of int, shape (p,)
        Strictly increasing; of several models with equally many labels the last one
        counts.
    scores : ndarray of shape (p,)
        None is NaN.
    """
    if isinstance(curve, Run):
        metric = name_metric([curve], metric)
        n_labeled, scores = curve.n_labeled, curve.curve(metric)
    elif hasattr(curve, "n_labeled") and hasattr(curve, "mean"):
        n_labeled, scores = np.asarray(curve.n_labeled), np.asarray(curve.mean)
    else:
        raise TypeError(
            f"expected a Run or a LearningCurve, got a {type(curve).__name__}. Make "
            "one curve of several runs with learning_curve(runs)."
        )
    known = ~np.isnan(scores)
    if not known.any():
        raise ValueError(
            f"the run {curve!r} has no score known. Pass X_test and y_test when you "
            "simulate."
        )
    n_labeled, scores = n_labeled[known], scores[known]
    steps = np.diff(n_labeled)
    if (steps < 0).any():
        raise ValueError(
            f"'n_labeled' must not fall from round to round, got {n_labeled.tolist()}."
        )
    last = np.append(steps > 0, True)
    return n_labeled[last], scores[last]
