"""Scores of a learner by one or several metrics, and checks of labels."""

import math
import warnings
from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from scipy.stats import spearmanr
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.metrics import (
    check_scoring,
    get_scorer,
    get_scorer_names,
    hamming_loss,
    label_ranking_average_precision_score,
    make_scorer,
)
from sklearn.pipeline import Pipeline

from .._utils._containers import count_items
from .._utils._format import reprs
from .._utils._labels import as_labels, kind_of, marginals, match_columns


def _rank_labels(learner, X, y):
    """Score the ranking of the labels by their probabilities or decision values."""
    if hasattr(learner, "predict_proba"):
        scores = learner.predict_proba(X)
        if isinstance(scores, list):
            scores = marginals(scores, learner.classes_)
    else:
        scores = learner.decision_function(X)
    return label_ranking_average_precision_score(y, scores)


def _correlate_ranks(y, predicted):
    """Return Spearman's rank correlation; 0 if one of the arguments is constant."""
    if np.ptp(y) == 0 or np.ptp(predicted) == 0:
        return 0.0
    return float(spearmanr(y, predicted).statistic)


# Metrics that scikit-learn has as functions only, by the names that `scoring` takes.
SCORERS = {
    "label_ranking_average_precision": _rank_labels,
    "neg_hamming_loss": make_scorer(hamming_loss, greater_is_better=False),
    "spearman": make_scorer(_correlate_ranks),
}


class Scores:
    """Score a learner on test data by `scoring`, in any of scikit-learn's forms."""

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
            own = [n for n in scoring if isinstance(n, str) and n in SCORERS]
            if len(set(own)) < len(own):
                raise ValueError("Name each metric once.")
            others = [name for name in scoring if name not in own]
            if others:
                check_scoring(learner, scoring=others)  # reports repeated names
            scoring = {name: name for name in scoring}
        elif isinstance(scoring, set | frozenset):
            scoring = {name: name for name in sorted(scoring)}
        elif not isinstance(scoring, dict):
            scoring = {_name(learner, scoring): scoring}
        self.names = list(scoring)
        if self.y_test is not None and is_classifier(learner):
            for how in scoring.values():
                _check_classes(how, self.y_test)
        scoring = {
            name: SCORERS.get(how, how) if isinstance(how, str) else how
            for name, how in scoring.items()
        }
        # scikit-learn's scorer of several metrics predicts once for all of them.
        self._strict = check_scoring(learner, scoring=scoring)
        self._lenient = check_scoring(learner, scoring=scoring, raise_exc=False)

    def __call__(self, learner):
        """Return the scores by name; None where a score is not defined yet."""
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
            # A failed score is replaced by its traceback.
            scores = {k: None if isinstance(v, str) else v for k, v in scores.items()}
        flat = {}
        for name, value in scores.items():
            flat.update(value if isinstance(value, Mapping) else {name: value})
        return {name: _as_score(name, value) for name, value in flat.items()}

    def _lacks_classes(self, learner):
        classes = getattr(learner, "classes_", None)
        if not isinstance(classes, np.ndarray):
            return False
        return not np.isin(np.unique(self.y_test), classes).all()


def _check_classes(metric, y):
    """Raise a ValueError for the name of a metric of two classes, if there are more."""
    is_own = not isinstance(metric, str) or metric in SCORERS
    if is_own or np.ndim(y) != 1 or len(np.unique(y)) < 3:
        return
    X = np.zeros((len(y), 1))
    with warnings.catch_warnings(action="ignore"), suppress(AttributeError):
        try:
            get_scorer(metric)(DummyClassifier().fit(X, y), X, y)
        except ValueError as exc:
            others = {f"{metric}_ovr", f"{metric}_macro"} & {*get_scorer_names()}
            if others:
                fault = str(exc).rstrip(".")
                raise ValueError(f"{fault}. Use {others.pop()!r}.") from exc


def _name(learner, scoring):
    if isinstance(scoring, str):
        return scoring
    if scoring is None:
        return _name_of_own_score(learner)
    name = getattr(scoring, "__name__", "score")
    return "score" if name == "<lambda>" else name


def _name_of_own_score(learner):
    """Return the name of `learner.score`, if scikit-learn's mixins define it."""
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


_FEW = 20  # items; a pool this small may well hold as many classes


def check_labels(X, y, X_test, y_test, estimator):
    """Return the labels of the items and those of the test items, which may be None.

    Refuse labels that no model can learn, or that a model of `y` can never predict.
    """
    match_columns(y_test, match_columns(y), "y_test")
    y = as_labels(y, count_items(X), estimator=estimator)
    _check_learnable(y, estimator)
    return y, _read_test_labels(X_test, y_test, y, estimator)


def _check_learnable(y, estimator):
    """Refuse labels that no classifier can learn, and warn about unlikely ones."""
    if len(y) > 1 and (y == y[0]).all() and (y.ndim == 2 or is_regressor(estimator)):
        raise ValueError(
            f"'y' must hold different labels, got {y[0].tolist()!r} for all {len(y)} "
            "items. Check that it is the column of the labels."
        )
    if y.ndim != 1 or not is_classifier(estimator):
        return
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise ValueError(
            "'y' must hold classes for a classifier, got numbers with fractions such "
            f"as {y[y != np.floor(y)][0].item()!r}. Bin them, or use a regressor."
        )
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise ValueError(
            f"'y' must hold at least two classes, got {classes[0].item()!r} for all "
            f"{len(y)} items. Check that it is the column of the labels."
        )
    if len(y) < _FEW or len(classes) <= len(y) / 2:
        return
    description = f"{len(classes)} classes in {len(y)} items"
    if counts.max() == 1:
        raise ValueError(
            f"'y' must hold classes of several items, got {description}. Check that it "
            "is the column of the labels."
        )
    warnings.warn(
        f"'y' holds {description}; is this a label? Most classes have a single item, "
        "from which little can be learned.",
        UserWarning,
        stacklevel=4,
    )


def _read_test_labels(X_test, y_test, y, estimator):
    """Return the test labels; refuse those that a model of `y` can never predict."""
    if (X_test is None) != (y_test is None):
        missing = "y_test" if y_test is None else "X_test"
        raise ValueError(f"{missing!r} is missing: give both test arguments or none.")
    if X_test is None:
        return None
    n = count_items(X_test, name="X_test")
    y_test = as_labels(y_test, n, name="y_test", items="X_test")
    if y_test.shape[1:] != y.shape[1:]:
        raise ValueError(
            "'y_test' must have as many columns as 'y', got arrays of shape "
            f"{y_test.shape} and {y.shape}. Pass labels of the same form."
        )
    if kind_of(y_test) != kind_of(y):
        raise TypeError(
            f"'y_test' must hold labels of the kind of 'y', {kind_of(y)}; got "
            f"{kind_of(y_test)} such as {y_test.flat[0].item()!r}. Write the labels "
            "of both in one way."
        )
    if y.ndim > 1 or not is_classifier(estimator):
        return y_test
    unknown = np.setdiff1d(y_test, y)
    if unknown.size:
        shown = reprs(unknown.tolist())
        raise ValueError(
            f"'y_test' must hold classes of 'y' only, got {shown}, which 'y' "
            "lacks, so that no label could teach them. Leave these items out of the "
            "test data."
        )
    return y_test
