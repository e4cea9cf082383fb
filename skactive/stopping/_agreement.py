"""Rules that stop when the predictions of successive models agree."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import cohen_kappa_score

from .._utils._sklearn import Interval
from ._stop_set import StopSetRule


class ClassificationChange(StopSetRule):
    """Stop when successive models predict the same classes.

    Parameters
    ----------
    n_rounds : int, default=1
        Number of consecutive rounds in which the classes must not change.
    threshold : float, default=0.0
        Fraction of the items whose class may change in each of these rounds.
    stop_set : int, array-like or None, default=None
        Items to predict. An int is the number of items drawn at random from those
        unlabeled when the first model exists; an array holds positions or is a mask;
        None means all items that are unlabeled then.
    random_state : int, RandomState instance or None, default=None
        Seed of the stop set. Defaults to the seed of the run, so that a seeded
        simulation stays reproducible.

    Attributes
    ----------
    stop_set_ : ndarray of int
        Positions of the items that are predicted.
    changes_ : list of float
        Fraction of items whose class changed, for each pair of successive models.

    Notes
    -----
    Models that know a single class always agree, so they are not compared.

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
    ...     LogisticRegression(max_iter=500), batch_size=5, random_state=0
    ... )
    >>> run = simulate(
    ...     learner, X, y, n_rounds=20, n_initial=5, stopping=ClassificationChange(2)
    ... )
    >>> len(run.rounds) < 21
    True
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
        stop_set: int | ArrayLike | None = None,
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
        self.changes_.append(float(np.mean(before != labels)))
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
        Items to predict. An int is the number of items drawn at random from those
        unlabeled when the first model exists; an array holds positions or is a mask;
        None means all items that are unlabeled then. A larger set gives a steadier
        kappa.
    random_state : int, RandomState instance or None, default=None
        Seed of the stop set. Defaults to the seed of the run, so that a seeded
        simulation stays reproducible.

    Attributes
    ----------
    stop_set_ : ndarray of int
        Positions of the items that are predicted.
    kappas_ : list of float
        Kappa for each pair of successive models.

    Notes
    -----
    Kappa is undefined if both models predict the same single class for all items; such
    full agreement counts as 1. Models that know a single class are not compared.

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
    ...     LogisticRegression(max_iter=500), batch_size=5, random_state=0
    ... )
    >>> run = simulate(
    ...     learner, X, y, n_rounds=20, n_initial=5, stopping=KappaAverage()
    ... )
    >>> len(run.rounds) < 21
    True
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
        stop_set: int | ArrayLike | None = 2000,
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
        self.kappas_.append(1.0 if agree else float(cohen_kappa_score(before, labels)))
        window = self.kappas_[-self.n_rounds :]
        full = len(window) == self.n_rounds
        return bool(full and np.mean(window) >= self.threshold)
