"""Score a learner by one metric or several."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline

__all__ = ["Scores"]


class Scores:
    """Score a learner on test data, whatever `scoring` is.

    Parameters
    ----------
    learner : ActiveLearner
        Fitted or not.
    X_test, y_test : container and array-like, or None
        None for both scores nothing.
    scoring : str, callable, list, tuple, set or dict of them, or None
        As in :func:`sklearn.model_selection.cross_validate`.

    Raises
    ------
    ValueError
        If scikit-learn knows no such metric.
    """

    def __init__(self, learner, X_test, y_test, scoring):
        self.X_test, self.y_test = X_test, y_test
        try:
            self._take_scoring(learner, scoring)
        except ValueError as exc:
            raise ValueError(
                f"'scoring' must be a metric of scikit-learn, a function, several of "
                f"them, or None; got {scoring!r}. {exc}"
            ) from exc

    def _take_scoring(self, learner, scoring):
        if isinstance(scoring, list | tuple):
            check_scoring(learner, scoring=scoring)  # its words about repeated names
            scoring = {name: name for name in scoring}
        elif isinstance(scoring, set | frozenset):
            scoring = {name: name for name in sorted(scoring)}
        elif not isinstance(scoring, dict):
            scoring = {_name(learner, scoring): scoring}
        self.names = list(scoring)
        # scikit-learn's scorer of several metrics predicts once for all of them.
        self._strict = check_scoring(learner, scoring=scoring)
        self._lenient = check_scoring(learner, scoring=scoring, raise_exc=False)

    def __call__(self, learner):
        """Score.

        Parameters
        ----------
        learner : ActiveLearner

        Returns
        -------
        scores : dict of str to float or None
            None where there is no model yet, where the metric is NaN, and where it
            cannot be computed because the model has not met all the classes.
        """
        if self.X_test is None:
            return {}
        if not hasattr(learner, "estimator_"):
            return dict.fromkeys(self.names)
        try:
            scores = self._strict(learner, self.X_test, self.y_test)
        except ValueError:
            if not self._lacks_classes(learner):
                raise
            scores = self._lenient(learner, self.X_test, self.y_test)
            # In place of a score that failed stands its traceback.
            scores = {k: None if isinstance(v, str) else v for k, v in scores.items()}
        flat = {}
        for name, value in scores.items():
            flat.update(value if isinstance(value, Mapping) else {name: value})
        return {name: _as_score(name, value) for name, value in flat.items()}

    def _lacks_classes(self, learner):
        known = getattr(learner, "classes_", None)
        if not isinstance(known, np.ndarray):
            return False
        return not np.isin(np.unique(self.y_test), known).all()


def _name(learner, scoring):
    if isinstance(scoring, str):
        return scoring
    if scoring is None:
        return _name_of_own_score(learner)
    name = getattr(scoring, "__name__", "score")
    return "score" if name == "<lambda>" else name


def _name_of_own_score(learner):
    """Say what `learner.score` measures, where scikit-learn's mixins define it."""
    estimator = learner.estimator
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    method = getattr(type(estimator), "score", None)
    if method is ClassifierMixin.score:
        return "accuracy"
    return "r2" if method is RegressorMixin.score else "score"


def _as_score(name, value):
    if value is None:
        return None
    if isinstance(value, str) or np.ndim(value) > 0:
        raise ValueError(f"'scoring' must give numbers, and {name!r} gave {value!r}.")
    return float(value) if math.isfinite(value) else None
