"""Run the labelling loop on data whose labels are known."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from numbers import Integral
from time import perf_counter

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring

from ._containers import take_rows
from ._delegation import DelegationMixin
from ._labels import as_labels
from ._positions import as_positions, count_items
from ._random import base_seed, round_rng
from ._sklearn import HasMethods, Interval, fit_context

__all__ = ["Run", "SimulatedLearner", "simulate"]


@dataclass
class Run:
    """Record of one simulated loop.

    Attributes
    ----------
    rounds : list of dict
        One for the initial labels and one for each round: `asked` (positions, best
        first), `n_labeled` (labels so far), `score` (after training on them, None
        without test data), `fit_seconds` (retraining) and `query_seconds`
        (acquisition).
    """

    rounds: list = field(default_factory=list)

    @property
    def n_labeled(self):
        """Labels after each round, ndarray of int."""
        return np.array([record["n_labeled"] for record in self.rounds])

    @property
    def scores(self):
        """Score after each round, ndarray of float; NaN without test data."""
        return np.array([record["score"] for record in self.rounds], dtype=float)

    @property
    def asked(self):
        """Positions in the order in which they were asked, ndarray of int."""
        return np.concatenate([record["asked"] for record in self.rounds])

    def to_dict(self):
        """Give the record as plain lists, numbers and strings.

        Returns
        -------
        record : dict
            What `json.dumps` takes.
        """
        return asdict(self)


def simulate(
    learner,
    X,
    y,
    *,
    n_initial=50,
    n_rounds=9,
    X_test=None,
    y_test=None,
    scoring=None,
    initial=None,
):
    """Label by a strategy, with `y` in place of a person.

    Parameters
    ----------
    learner : ActiveLearner
        It is cloned. Its `batch_size` is the size of each round and its
        `random_state` also chooses the initial items.
    X : container of n items
        The pool.
    y : array-like of shape (n,)
        The labels that a person would give.
    n_initial : int, default=50
        How many items are labelled at random to begin with; 0 leaves the first round
        to the learner's `cold_start`.
    n_rounds : int, default=9
        How many times the learner asks. The loop ends early when nothing is left.
    X_test, y_test : container and array-like, default=None
        What to score on after each round; None scores nothing.
    scoring : str, callable or None, default=None
        As in scikit-learn; None is the learner's own `score`.
    initial : array-like of int, or of bool, or None, default=None
        The positions to begin with, in place of `n_initial` random ones.

    Returns
    -------
    run : Run

    Raises
    ------
    ValueError
        If a number is negative, `n_initial` is more than the pool, or test data come
        without labels.

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), batch_size=5, random_state=0
    ... )
    >>> run = simulate(learner, X, y, n_initial=5, n_rounds=3, X_test=X, y_test=y)
    >>> run.n_labeled
    array([ 5, 10, 15, 20])
    """
    learner = clone(learner)
    score = _scorer(learner, X_test, y_test, scoring)
    rounds = _play(learner, X, y, n_initial, n_rounds, initial)
    return Run([{**record, "score": score(learner)} for record in rounds])


def _scorer(learner, X_test, y_test, scoring):
    if (X_test is None) != (y_test is None):
        missing = "y_test" if y_test is None else "X_test"
        raise ValueError(f"{missing!r} is missing: give both test arguments or none.")
    if X_test is None:
        return lambda learner: None
    scorer = check_scoring(learner, scoring=scoring)
    return lambda learner: (
        float(scorer(learner, X_test, y_test))
        if hasattr(learner, "estimator_")
        else None
    )


def _play(learner, X, y, n_initial, n_rounds, initial):
    """Let a learner label the pool, and yield what happened in each round."""
    n_pool = count_items(X)
    y = as_labels(y, n_pool)
    _check_count("n_rounds", n_rounds)
    if initial is not None:
        asked = as_positions(initial, n_pool)
    else:
        _check_count("n_initial", n_initial)
        if n_initial > n_pool:
            raise ValueError(
                f"'n_initial' must be at most the size of the pool, {n_pool}; got "
                f"{n_initial}."
            )
        rng = round_rng(base_seed(learner.random_state), 0, "initial")
        asked = rng.choice(n_pool, size=n_initial, replace=False)

    unlabelled = np.ones(n_pool, dtype=bool)
    query_seconds = 0.0
    for round_number in range(n_rounds + 1):
        if round_number > 0:
            if not unlabelled.any():
                return
            start = perf_counter()
            asked = learner.query(X, candidates=unlabelled)
            query_seconds = perf_counter() - start
        unlabelled[asked] = False
        start = perf_counter()
        if len(asked):
            learn = learner.fit if round_number == 0 else learner.teach
            learn(take_rows(X, asked), y[asked])
        yield {
            "asked": asked.tolist(),
            "n_labeled": int(n_pool - unlabelled.sum()),
            "fit_seconds": perf_counter() - start,
            "query_seconds": query_seconds,
        }


def _check_count(name, value):
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name!r} must be an int of at least 0, got {value!r}.")


class SimulatedLearner(DelegationMixin, MetaEstimatorMixin, BaseEstimator):
    """Learner that spends a labelling budget on the data that `fit` is given.

    `ActiveLearner.fit` trains on all that it gets, so its score does not depend on
    the strategy. Here `fit(X, y)` takes `X` as the pool and `y` as the person who
    labels, and ends with the model trained on what was asked. So a grid search or a
    cross-validation over it compares strategies at one budget.

    Parameters
    ----------
    estimator : ActiveLearner
        The learner; its `batch_size` is the size of each round.
    n_initial : int, default=50
        How many items are labelled at random to begin with.
    n_rounds : int, default=9
        How many times the learner asks.

    Attributes
    ----------
    estimator_ : ActiveLearner
        The learner after the last round.
    run_ : Run
        What was asked; without scores.
    classes_ : ndarray of shape (n_classes,)
        The classes among the labels asked for.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.simulation import SimulatedLearner
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), batch_size=5, random_state=0
    ... )
    >>> search = GridSearchCV(
    ...     SimulatedLearner(learner, n_initial=5, n_rounds=3),
    ...     {"estimator__strategy": ["random", "margin"]},
    ... )
    >>> len(search.fit(X, y).best_estimator_.run_.asked)
    20
    """

    _parameter_constraints = {
        "estimator": [HasMethods(["query", "teach"])],
        "n_initial": [Interval(Integral, 0, None, closed="left")],
        "n_rounds": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, estimator, *, n_initial=50, n_rounds=9):
        self.estimator = estimator
        self.n_initial = n_initial
        self.n_rounds = n_rounds

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y):
        """Run the loop on a pool.

        Parameters
        ----------
        X : container of n items
            The pool.
        y : array-like of shape (n,)
            The labels that a person would give.

        Returns
        -------
        self : SimulatedLearner
        """
        learner = clone(self.estimator)
        rounds = _play(learner, X, y, self.n_initial, self.n_rounds, None)
        self.run_ = Run([{**record, "score": None} for record in rounds])
        self.estimator_ = learner
        return self
