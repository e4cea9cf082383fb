"""What an experiment is given, by names, or refused before any work."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from numbers import Integral

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from .._containers import take_rows
from .._labels import as_labels
from .._pipelines import split_estimator
from .._positions import count_items
from .._sklearn import HasMethods
from ..capabilities import check_capability, check_target
from ..initial import choose_initial
from ..registry import resolve
from ..simulation.plan import to_text
from ..simulation.targets import check_labels, check_test_data
from ..strategies.base import TARGETS

__all__ = [
    "by_name",
    "check_data",
    "check_learners",
    "check_requirements",
    "list_seeds",
    "name_strategies",
]

_FEW = 50  # items, for a model that is trained only to see what it can do


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


def check_learners(learners):
    """Refuse what cannot be simulated."""
    for name, learner in learners.items():
        if not HasMethods(["query", "teach", "get_params"]).is_satisfied_by(learner):
            raise ValueError(
                "'learners' must be an ActiveLearner, or a dict of several by name; "
                f"got {learner!r} as {name!r}."
            )


def check_data(name, parts, learners):
    """Return `(X, y, X_test, y_test)`, the last two None where they are missing."""
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
        labels = as_labels(y, count_items(X))
        for learner in learners.values():
            check_labels(labels, learner.estimator)
            check_test_data(X_test, y_test, labels, learner.estimator)
    except (TypeError, ValueError) as exc:
        exc.add_note(f"This is about the data {name!r}.")
        raise
    return X, y, X_test, y_test


def check_requirements(tasks, data):
    """Refuse strategies that need what a learner's model cannot give.

    Parameters
    ----------
    tasks : dict of (data, learner, strategy, seed) to ActiveLearner
    data : dict of str to tuple
    """
    fitted, faults, seen = {}, [], set()
    for (on, by, name, _), learner in tasks.items():
        if (on, by, name) in seen:
            continue
        seen.add((on, by, name))
        X, y = data[on][:2]
        strategy = resolve(learner.strategy)
        try:
            _check(strategy, name, learner.estimator, X, y)
        except (TypeError, NotFittedError):
            # Some models show only once they are fitted what they can do.
            if (on, by) not in fitted:
                fitted[on, by] = _fit_on_few(learner.estimator, X, y)
            if fitted[on, by] is None:
                continue
            try:
                _check(strategy, name, fitted[on, by], X, y)
            except TypeError as exc:
                faults.append(f"{name!r} with the learner {by!r} on {on!r}: {exc}")
    if faults:
        raise TypeError(
            "'strategies' must suit every learner. Leave these out, or run each "
            f"learner in an experiment of its own: {' '.join(faults)}"
        )


def _check(strategy, name, estimator, X, y):
    front, final = split_estimator(estimator)
    known = {"name": name, "final": final, "front": front, "model": estimator}
    known |= {"X": X, "y_labeled": as_labels(y, count_items(X))}
    check_target(getattr(strategy, "targets", TARGETS), **known)
    for capability in getattr(strategy, "requires", None) or ():
        check_capability(capability, **known)


def _fit_on_few(estimator, X, y):
    """Train a clone on a few items; None where that fails, as the runs will say."""
    labels = as_labels(y, count_items(X))
    kind = "stratified" if is_classifier(estimator) and labels.ndim == 1 else "random"
    n = min(_FEW, len(labels))
    few = choose_initial(kind, n, labels, np.random.default_rng(0))
    try:
        return clone(estimator).fit(take_rows(X, few), labels[few])
    except Exception:
        return None


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
