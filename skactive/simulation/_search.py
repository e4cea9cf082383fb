"""A learner with a labeling budget, as an estimator for searches."""

from numbers import Integral
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone

from .._utils._containers import count_items
from .._utils._labels import as_labels
from .._utils._random import base_seed, round_rng
from .._utils._sklearn import HasMethods, Interval, fit_context
from ..learner import ActiveLearner, DelegationMixin
from ._initial import Oracle, choose_initial
from ._resume import RunRecorder
from ._simulate import run_loop


class SimulatedLearner(DelegationMixin, MetaEstimatorMixin, BaseEstimator):
    """Learner that spends a labeling budget on the data passed to `fit`.

    `ActiveLearner.fit` trains on all its data, so its score does not depend on the
    strategy. Here `fit(X, y)` uses `X` as the pool and `y` in place of a person, and
    ends with the model trained on the queried labels. So a grid search or a
    cross-validation compares strategies at equal budgets.

    Parameters
    ----------
    estimator : ActiveLearner
        The learner; its `batch_size` is the size of each round.
    n_initial : int, default=50
        Number of random items labeled before the first query.
    n_rounds : int, default=9
        Number of queries.

    Attributes
    ----------
    estimator_ : ActiveLearner
        The learner after the last round.
    run_ : Run
        The queried positions, without scores.
    classes_ : ndarray of shape (n_classes,)
        The classes among the queried labels.

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

    def __init__(
        self, estimator: ActiveLearner, *, n_initial: int = 50, n_rounds: int = 9
    ):
        self.estimator = estimator
        self.n_initial = n_initial
        self.n_rounds = n_rounds

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Run the loop on a pool.

        Parameters
        ----------
        X : container of n items
            The pool.
        y : array-like of shape (n,)
            The true labels.

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
