"""Stop when successive models agree about items that nobody labels for it."""

from numbers import Integral, Real

import numpy as np
from sklearn.metrics import cohen_kappa_score

from .._utils._sklearn import Interval
from ._stop_set import StopSetRule


class ClassificationChange(StopSetRule):
    """Stop when successive models classify the same items alike.

    Parameters
    ----------
    n_rounds : int, default=1
        How many rounds in a row must leave the classes as they are.
    threshold : float, default=0.0
        The share of items that may change in each of them.
    stop_set : int, array-like or None, default=None
        What to watch: so many items that are unlabelled when the first model is seen,
        drawn at random; these positions, or this mask; or, with None, all that are
        unlabelled then.
    random_state : int, RandomState instance or None, default=None
        Draws the stop set. None takes the run's own seed, so a seeded simulation
        stays repeatable.

    Attributes
    ----------
    stop_set_ : ndarray of int
        Positions watched.
    changes_ : list of float
        The share of items whose class changed, for each pair of successive models.

    Notes
    -----
    Models that know a single class are not compared: they always agree.

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

    def __init__(self, n_rounds=1, *, threshold=0.0, stop_set=None, random_state=None):
        self.n_rounds = n_rounds
        self.threshold = threshold
        self.stop_set = stop_set
        self.random_state = random_state

    def start(self):
        """Check the parameters and forget every earlier loop."""
        super().start()
        self.changes_ = []
        return self

    def decide(self, run, learner, X):
        """Compare the classes with those of the model before."""
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

    That is, when Cohen's kappa between successive models on a stop set, averaged over
    the last rounds, reaches a threshold.

    Parameters
    ----------
    n_rounds : int, default=3
        How many agreements to average: that of the last two models, that of the two
        before, and so on.
    threshold : float, default=0.99
        The average kappa to reach. Lower it to stop earlier.
    stop_set : int, array-like or None, default=2000
        What to watch: so many items that are unlabelled when the first model is seen,
        drawn at random; these positions, or this mask; or, with None, all that are
        unlabelled then. The larger, the steadier.
    random_state : int, RandomState instance or None, default=None
        Draws the stop set. None takes the run's own seed, so a seeded simulation
        stays repeatable.

    Attributes
    ----------
    stop_set_ : ndarray of int
        Positions watched.
    kappas_ : list of float
        Kappa for each pair of successive models.

    Notes
    -----
    Kappa is undefined where both models give every item one and the same class; such
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

    def __init__(self, n_rounds=3, *, threshold=0.99, stop_set=2000, random_state=None):
        self.n_rounds = n_rounds
        self.threshold = threshold
        self.stop_set = stop_set
        self.random_state = random_state

    def start(self):
        """Check the parameters and forget every earlier loop."""
        super().start()
        self.kappas_ = []
        return self

    def decide(self, run, learner, X):
        """Measure the agreement with the model before."""
        if not self._ready(run, learner, X):
            return False
        before, labels = self._predict(learner, X)
        if before is None:
            return False
        agree = np.array_equal(before, labels)  # 0 / 0 where all are of one class
        self.kappas_.append(1.0 if agree else float(cohen_kappa_score(before, labels)))
        window = self.kappas_[-self.n_rounds :]
        return len(window) == self.n_rounds and np.mean(window) >= self.threshold
