"""Rules that stop when predictions are stable, certain or correct."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import cohen_kappa_score

from .._math._scores import entropy
from .._utils._containers import count_items, take_rows
from .._utils._labels import is_multi_label, marginals
from .._utils._pipelines import split_estimator
from .._utils._positions import as_positions
from .._utils._repeatable import base_seed, round_rng
from .._utils._sklearn import Interval
from ._base import StoppingRule


class StopSetRule(StoppingRule):
    """Base class of rules that compare predictions on a fixed set of items."""

    _parameter_constraints = {
        "stop_set": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "random_state": ["random_state"],
    }
    requires = frozenset({"model", "pool"})

    def start(self) -> Self:
        """Check the parameters and reset the rule for a new loop."""
        super().start()
        self.stop_set_: Any = None
        self._n_pool = None
        self._last = None
        return self

    def _ready(self, run, learner, X):
        """Whether there is anything to judge; draw the stop set the first time."""
        if not knows_classes(learner, type(self).__name__):
            return False
        n = count_items(X)
        if self.stop_set_ is None:
            self.stop_set_ = self._draw(run, n)
            self._n_pool = n
        if n != self._n_pool:
            raise ValueError(
                f"'X' holds {n} items, and held {self._n_pool} when the stop set was "
                "drawn. Pass the whole pool to each check, or call start() first."
            )
        return bool(self.stop_set_.size)

    def _draw(self, run, n):
        if self.stop_set is not None and not isinstance(self.stop_set, Integral):
            return as_positions(self.stop_set, n, name="stop_set")
        positions = np.flatnonzero(mask_unlabeled(run, n))
        if self.stop_set is None or positions.size <= self.stop_set:
            return positions
        seed = self.random_state
        if seed is None:
            seed = run.info.get("seed")
            seed = seed if isinstance(seed, Integral) else 0
        rng = round_rng(base_seed(seed), 0, "stop set")
        return np.sort(rng.choice(positions, size=self.stop_set, replace=False))

    def _predict(self, learner, X):
        """Return the previous predictions, None at first, and the new ones, (s,).

        They are (s, k) if the model predicts several labels per item.
        """
        labels = np.asarray(learner.predict(take_rows(X, self.stop_set_)))
        if labels.ndim != 1 and not np.isin(labels, [0, 1]).all():
            raise TypeError(
                f"{type(self).__name__} compares one class for each item, or whether "
                "each label applies, and the learner predicts an array of shape "
                f"{labels.shape}. Use a budget."
            )
        before, self._last = self._last, labels
        return before, labels


def mask_unlabeled(run, n):
    """Return an (n,) mask of the positions that `run` has not queried."""
    queried = run.queried
    if queried.size and queried.max() >= n:
        raise ValueError(
            f"'X' holds {n} items, and the run queried position {queried.max()}. Pass "
            "the pool of that run."
        )
    unlabeled = np.ones(n, dtype=bool)
    unlabeled[queried] = False
    return unlabeled


def knows_classes(learner, name):
    """Whether a learner has a model of at least two classes; `name` is the rule."""
    if hasattr(learner, "query") and not hasattr(learner, "estimator_"):
        return False
    classes = getattr(learner, "classes_", None)
    if classes is None:
        kind = type(getattr(learner, "estimator_", learner)).__name__
        raise TypeError(
            f"'learner' must be a classifier: {name} looks at predicted classes, and "
            f"{kind} is no classifier. Use Plateau or a budget."
        )
    return len(classes) >= 2


class ClassificationChange(StopSetRule):
    """Stop when successive models predict the same classes.

    Parameters
    ----------
    n_rounds : int, default=1
        Number of consecutive rounds in which the classes must not change.
    threshold : float, default=0.0
        Fraction of the items whose class may change in each of these rounds.
    stop_set : int, array-like or None, default=None
        Items to predict: a number of random unlabeled items, positions or a mask, or
        None for all items that are unlabeled when the first model exists.
    random_state : int, RandomState instance or None, default=None
        Seed of the stop set. Defaults to the seed of the run.

    Attributes
    ----------
    stop_set_ : ndarray of int
        Positions of the items that are predicted.
    changes_ : list of float
        Fraction of items whose class changed, for each pair of successive models.

    Notes
    -----
    Models that know a single class always agree, so they are not compared. If items
    have several labels, an item has changed if any of its labels has.

    References
    ----------
    J. Zhu, H. Wang, E. Hovy, "Multi-criteria-based strategy to stop active learning
    for data annotation", COLING 2008.

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from skactive.stopping import ClassificationChange
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), "margin", batch_size=10, random_state=0
    ... )
    >>> run = simulate(
    ...     learner, X, y, n_rounds=14, n_initial=10,
    ...     stopping=ClassificationChange(threshold=0.01),
    ... )
    >>> print(f"stopped with {len(run.queried)} of {len(y)} labels")
    stopped with 50 of 150 labels
    """

    _parameter_constraints = {
        **StopSetRule._parameter_constraints,
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        n_rounds: int = 1,
        *,
        threshold: float = 0.0,
        stop_set: "int | ArrayLike | None" = None,
        random_state: Any = None,
    ):
        self.n_rounds = n_rounds
        self.threshold = threshold
        self.stop_set = stop_set
        self.random_state = random_state

    def start(self) -> Self:
        """Check the parameters and reset the rule for a new loop."""
        super().start()
        self.changes_: list[float] = []
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compare the classes with those of the previous model."""
        if not self._ready(run, learner, X):
            return False
        before, labels = self._predict(learner, X)
        if before is None:
            return False
        changed = (before != labels).reshape(len(labels), -1).any(axis=1)
        self.changes_.append(float(np.mean(changed)))
        window = self.changes_[-self.n_rounds :]
        return len(window) == self.n_rounds and max(window) <= self.threshold


class KappaAverage(StopSetRule):
    """Stop when the predictions of successive models are stable.

    The rule averages Cohen's kappa between successive models on a stop set over the
    last rounds, and compares it with a threshold.

    Parameters
    ----------
    n_rounds : int, default=3
        Number of kappas to average, from the last pair of models back.
    threshold : float, default=0.99
        Average kappa to reach. A lower value stops earlier.
    stop_set : int, array-like or None, default=2000
        Items to predict: a number of random unlabeled items, positions or a mask, or
        None for all items that are unlabeled when the first model exists. A larger
        set gives a steadier kappa.
    random_state : int, RandomState instance or None, default=None
        Seed of the stop set. Defaults to the seed of the run.

    Attributes
    ----------
    stop_set_ : ndarray of int
        Positions of the items that are predicted.
    kappas_ : list of float
        Kappa for each pair of successive models.

    Notes
    -----
    Kappa is undefined if both models predict the same single class for all items; such
    full agreement counts as 1. Models that know a single class are not compared. If
    items have several labels, the n k decisions on n items and k labels are compared.

    References
    ----------
    M. Bloodgood, K. Vijay-Shanker, "A method for stopping active learning based on
    stabilizing predictions and the need for user-adjustable stopping", CoNLL 2009.

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from skactive.stopping import KappaAverage
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), "margin", batch_size=5, random_state=0
    ... )
    >>> run = simulate(
    ...     learner, X, y, n_rounds=20, n_initial=5, stopping=KappaAverage()
    ... )
    >>> print(f"stopped with {len(run.queried)} of {len(y)} labels")
    stopped with 25 of 150 labels
    """

    _parameter_constraints = {
        **StopSetRule._parameter_constraints,
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Interval(Real, -1, 1, closed="both")],
    }

    def __init__(
        self,
        n_rounds: int = 3,
        *,
        threshold: float = 0.99,
        stop_set: "int | ArrayLike | None" = 2000,
        random_state: Any = None,
    ):
        self.n_rounds = n_rounds
        self.threshold = threshold
        self.stop_set = stop_set
        self.random_state = random_state

    def start(self) -> Self:
        """Check the parameters and reset the rule for a new loop."""
        super().start()
        self.kappas_: list[float] = []
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compute kappa with the previous model."""
        if not self._ready(run, learner, X):
            return False
        before, labels = self._predict(learner, X)
        if before is None:
            return False
        agree = np.array_equal(before, labels)  # 0 / 0 where all are of one class
        before, labels = np.ravel(before), np.ravel(labels)
        self.kappas_.append(1.0 if agree else float(cohen_kappa_score(before, labels)))
        window = self.kappas_[-self.n_rounds :]
        full = len(window) == self.n_rounds
        return bool(full and np.mean(window) >= self.threshold)


class OverallUncertainty(StopSetRule):
    """Stop when the model is certain about the unlabeled items.

    The rule compares the mean entropy of the predictions for the unlabeled items,
    divided by its maximum log(k) for k classes, with a threshold. If items have several
    labels, it is the mean entropy of each label, divided by log(2).

    Parameters
    ----------
    threshold : float, default=0.05
        Value between 0 and 1 below which to stop. The best value depends on the
        calibration of the model; see `uncertainties_` of a first run.
    stop_set : int, array-like or None, default=None
        Items to predict: a number of random unlabeled items, positions or a mask, or
        None for all items that are unlabeled when the first model exists. Items
        labeled later do not count.
    random_state : int, RandomState instance or None, default=None
        Seed of the stop set. Defaults to the seed of the run.

    Attributes
    ----------
    stop_set_ : ndarray of int
        Positions of the items that are predicted while they are unlabeled.
    uncertainties_ : list of float
        The mean after each round.

    References
    ----------
    J. Zhu, H. Wang, E. Hovy, M. Ma, "Confidence-based stopping criteria for active
    learning for data annotation", ACM Transactions on Speech and Language Processing
    6, 2010.

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from skactive.stopping import OverallUncertainty
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), "margin", batch_size=5, random_state=0
    ... )
    >>> run = simulate(
    ...     learner, X, y, n_rounds=20, n_initial=5, stopping=OverallUncertainty(0.15)
    ... )
    >>> print(f"stopped with {len(run.queried)} of {len(y)} labels")
    stopped with 25 of 150 labels
    """

    _parameter_constraints = {
        **StopSetRule._parameter_constraints,
        "threshold": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        threshold: float = 0.05,
        *,
        stop_set: "int | ArrayLike | None" = None,
        random_state: Any = None,
    ):
        self.threshold = threshold
        self.stop_set = stop_set
        self.random_state = random_state

    def start(self) -> Self:
        """Check the parameters and reset the rule for a new loop."""
        super().start()
        self.uncertainties_: list[float] = []
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compute the mean entropy of the predictions."""
        if not self._ready(run, learner, X):
            return False
        left = self.stop_set_[mask_unlabeled(run, self._n_pool)[self.stop_set_]]
        if not left.size:
            return False
        if not hasattr(learner, "predict_proba"):
            kind = type(getattr(learner, "estimator_", learner)).__name__
            raise TypeError(
                f"OverallUncertainty needs predict_proba, which {kind} lacks. Wrap it "
                "in CalibratedClassifierCV, or use KappaAverage."
            )
        proba = learner.predict_proba(take_rows(X, left))
        if _predicts_several(learner, proba):
            if isinstance(proba, list):
                proba = marginals(proba, learner.classes_)
            proba = np.stack([1 - proba, proba], axis=-1).reshape(-1, 2)
        proba = np.asarray(proba)
        if proba.ndim != 2:
            raise TypeError(
                "OverallUncertainty needs one distribution for each item, and the "
                f"learner gives an array of shape {proba.shape}. Use a budget."
            )
        mean = float(np.mean(entropy(proba)) / np.log(proba.shape[1]))
        self.uncertainties_.append(mean)
        return mean < self.threshold


def _predicts_several(learner, proba):
    """Whether a learner, whose probabilities are `proba`, predicts several labels."""
    if isinstance(proba, list):
        return all(np.isin(classes, [0, 1]).all() for classes in learner.classes_)
    final = split_estimator(getattr(learner, "estimator_", learner))[1]
    several = np.ndim(getattr(learner, "y_labeled_", None)) == 2
    return several or is_multi_label(final)


class SelectedAccuracy(StoppingRule):
    """Stop when the model predicted the labels of the queried items correctly.

    The rule compares the accuracy of the previous model on the items just labeled with
    a threshold. A strategy queries items that the model is uncertain about, so this
    accuracy stays low until little is left to learn. With random queries it is an
    ordinary test on new labels.

    Parameters
    ----------
    threshold : float, default=0.9
        Accuracy to reach.
    n_rounds : int, default=1
        Number of rounds over which the accuracy is computed. Use more with small
        batches.

    Attributes
    ----------
    accuracies_ : list of float
        Accuracy in each round.

    Notes
    -----
    The rule keeps the fitted model of the previous round. If most items are of one
    class, a batch without the other classes looks like success. Models that know a
    single class are not judged.

    References
    ----------
    J. Zhu, H. Wang, E. Hovy, M. Ma, "Confidence-based stopping criteria for active
    learning for data annotation", ACM Transactions on Speech and Language Processing
    6, 2010.

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from skactive.stopping import SelectedAccuracy
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), "margin", batch_size=5, random_state=0
    ... )
    >>> run = simulate(
    ...     learner, X, y, n_rounds=20, n_initial=5, stopping=SelectedAccuracy()
    ... )
    >>> print(f"stopped with {len(run.queried)} of {len(y)} labels")
    stopped with 15 of 150 labels
    """

    _parameter_constraints = {
        "threshold": [Interval(Real, 0, 1, closed="right")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
    }
    requires = frozenset({"labels", "model", "pool"})

    def __init__(self, threshold: float = 0.9, *, n_rounds: int = 1):
        self.threshold = threshold
        self.n_rounds = n_rounds

    def start(self) -> Self:
        """Check the parameters and reset the rule for a new loop."""
        super().start()
        self.accuracies_: list[float] = []
        self._counts: list[tuple[int, int]] = []
        self._model = None
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compute the accuracy of the previous model on the items of the last round."""
        has_classes = knows_classes(learner, type(self).__name__)
        before, self._model = self._model, learner.estimator_ if has_classes else None
        last = run.rounds[-1] if run.rounds else {"queried": ()}
        queried = [i for i in last["queried"] if i not in last["refused"]]
        if before is None or not len(queried):
            return False
        labels = learner.y_labeled_[-len(queried) :]
        predicted = np.asarray(before.predict(take_rows(X, np.asarray(queried))))
        if predicted.shape != labels.shape or predicted.ndim != 1:
            raise ValueError(
                f"SelectedAccuracy compares one class for each of the {len(queried)} "
                f"items of the last round: the model predicts {predicted.shape}, and "
                f"the learner's last labels have the shape {labels.shape}. Check the "
                "rule after each teach, with the run of this learner."
            )
        right = int(np.sum(predicted == labels))
        self._counts.append((right, len(queried)))
        self.accuracies_.append(right / len(queried))
        window = np.array(self._counts[-self.n_rounds :])
        share = window[:, 0].sum() / window[:, 1].sum()
        return len(window) == self.n_rounds and share >= self.threshold
