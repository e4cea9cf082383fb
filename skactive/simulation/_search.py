"""A learner with a labelling budget, as an estimator that searches can score."""

from numbers import Integral

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone

from .._utils._containers import count_items
from .._utils._labels import as_labels
from .._utils._random import base_seed, round_rng
from .._utils._sklearn import HasMethods, Interval, fit_context
from ..learner import DelegationMixin
from ._initial import Oracle, choose_initial
from ._resume import RunRecorder
from ._simulate import run_loop


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
        seed = base_seed(learner.random_state)
        learner.set_params(random_state=seed)
        y = as_labels(y, count_items(X))
        rng = round_rng(seed, 0, "initial")
        queried = choose_initial("random", self.n_initial, y, rng)
        recorder = RunRecorder()
        run_loop(learner, X, Oracle(y), queried, self.n_rounds, recorder)
        self.run_ = recorder.run
        self.estimator_ = learner
        return self
