"""Base classes of the query strategies."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._math._scores import top_n
from .._utils._bases import BaseEstimator
from .._utils._labels import SINGLE_LABEL, TARGETS, Target, find_target
from .._utils._pipelines import split_estimator
from .._utils._plugins import check_names, read_declared
from .._utils._sklearn import QuickParamsMixin

# Names in `requires` that describe one class per item.
OF_CLASSES = frozenset(
    {"proba", "class_scores", "draws", "gradients", "boundary", "embedding_gradients"}
)


def find_requirements(strategy, estimator, y_labeled):
    """Return what a strategy requires for the target of an estimator, or None."""
    final = split_estimator(estimator)[1]
    return requires_for(strategy, find_target(final, y_labeled))


def requires_for(strategy, target):
    """Return what a strategy requires for a target, or None if it declares nothing."""
    if hasattr(strategy, "requires_for"):
        return check_names("requires", strategy.requires_for(target), None)
    return read_declared(strategy, "requires", None)


class Strategy(QuickParamsMixin, BaseEstimator, ABC):
    """Base class of the query strategies that choose a batch as a whole.

    A strategy is a scikit-learn object: `__init__` only stores parameters, so `clone`,
    `set_params` and a grid search work on it. It keeps no state between queries.

    Attributes
    ----------
    requires : frozenset of str
        Quantities that the strategy uses, out of "proba", "class_scores", "draws",
        "predictions", "variance", "features", "labeled", "gradients", "boundary",
        "embedding_gradients" and "surprisal". The learner checks that its estimator has
        them before any work. Using any other quantity of the view is an error.
    optional : frozenset of str
        Quantities that the strategy uses when available, such as "labeled", which
        exists after the first labels. They are not checked in advance.
    targets : frozenset of str
        Targets that the strategy is defined for, out of "single-label", "multi-label"
        (an indicator matrix) and "regression". The learner refuses any other before
        any work. Defaults to "single-label" if `requires` names a quantity of classes,
        such as "proba", and to all of them otherwise.

    See Also
    --------
    PointwiseStrategy : For strategies that score each candidate independently.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import Strategy, top_n
    >>> from sklearn.linear_model import LogisticRegression
    >>> class Longest(Strategy):
    ...     "Query the longest rows."
    ...
    ...     requires = frozenset({"features"})
    ...
    ...     def select(self, view, n_queries):
    ...         return top_n((view.features**2).sum(axis=1), n_queries, view.rng)
    >>> learner = ActiveLearner(LogisticRegression(), Longest())
    >>> learner.fit([[0.0], [1.0]], [0, 1]).query([[1.0], [3.0], [2.0]], 2)
    array([1, 2])
    """

    _parameter_constraints: dict = {}
    requires: frozenset[str] | None = frozenset()
    optional: frozenset[str] = frozenset()

    @property
    def targets(self) -> frozenset[str]:
        """Targets that the strategy is defined for; a class may declare others."""
        of_classes = OF_CLASSES.intersection(self.requires or ())
        return SINGLE_LABEL if of_classes else TARGETS

    def requires_for(self, target: Target) -> frozenset[str] | None:
        """Return what the strategy requires for a target; `requires` by default.

        Parameters
        ----------
        target : {"single-label", "multi-label", "regression"}
            What the model predicts.

        Returns
        -------
        requires : frozenset of str or None
            Names as in `requires`.
        """
        return self.requires

    @abstractmethod
    def select(self, view: Any, n_queries: int) -> "ArrayLike":
        """Select the candidates to query.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and the model's predictions.
        n_queries : int
            Number of candidates to select, from 1 to `len(view)`.

        Returns
        -------
        positions : array-like of int, shape (n_queries,)
            Positions in the view, best first, without repeats.
        """


class PointwiseStrategy(Strategy):
    """Base class of the query strategies that score each candidate independently.

    A subclass defines `score`. The highest scores are selected first, and ties are
    broken at random by the generator of the round.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import PointwiseStrategy
    >>> from sklearn.linear_model import LogisticRegression
    >>> class Longest(PointwiseStrategy):
    ...     "Query the longest rows."
    ...
    ...     requires = frozenset({"features"})
    ...
    ...     def score(self, view):
    ...         return (view.features**2).sum(axis=1)
    >>> learner = ActiveLearner(LogisticRegression(), strategy=Longest())
    >>> learner.fit([[0.0], [1.0]], [0, 1]).query([[1.0], [3.0], [2.0]], 2)
    array([1, 2])
    """

    @abstractmethod
    def score(self, view: Any) -> NDArray:
        """Score the candidates.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and the model's predictions.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
            The highest scores are selected first. Infinities are allowed, NaN is not.
        """

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the highest scores, best first, ties in random order."""
        return self.select_scored(view, n_queries)[0]

    def select_scored(self, view: Any, n_queries: int) -> tuple[NDArray, NDArray]:
        """Return the positions that `select` returns, and their scores.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and the model's predictions.
        n_queries : int
            Number of candidates to select.

        Returns
        -------
        positions : ndarray of int, shape (n_queries,)
            Positions in the view, best first.
        scores : ndarray of shape (n_queries,)
            Their scores.
        """
        scores = check_scores(self.score(view), view, self)
        positions = self._choose(scores, view, n_queries)
        return positions, scores[positions]

    def _choose(self, scores, view, n_queries):
        return top_n(scores, n_queries, view.uniform())


class FunctionStrategy(PointwiseStrategy):
    """Strategy that scores candidates by a plain function of the view.

    `strategy=` makes one from a function.

    Parameters
    ----------
    function : callable
        `f(view)` returns the scores, an array of shape (n_candidates,). The highest are
        selected first.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive import ActiveLearner
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), lambda view: np.ravel(view.X))
    >>> pool = [[1.0], [3.0], [2.0]]
    >>> learner.fit([[0.0], [1.0]], [0, 1]).query(pool, 2).tolist()
    [1, 2]
    """

    requires = None  # a function declares nothing: each access is checked separately

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def score(self, view: Any) -> NDArray:
        """Call the function."""
        return self.function(view)


def check_scores(scores, view, strategy):
    """Return the scores (n_candidates,); a ValueError for other shapes or NaN."""
    scores = np.asarray(scores)
    if scores.shape != (len(view),) or scores.dtype.kind not in "fiub":
        raise ValueError(
            f"the strategy {strategy!r} must return one number per candidate, an array "
            f"of shape ({len(view)},), got shape {scores.shape} and dtype "
            f"{scores.dtype}."
        )
    if scores.dtype.kind == "f" and np.isnan(scores).any():
        bad = np.flatnonzero(np.isnan(scores))
        raise ValueError(
            f"the strategy {strategy!r} returned NaN for {bad.size} of {len(view)} "
            f"candidates, the first at position {bad[0]}. Return a number for "
            "every candidate; -inf ranks it last."
        )
    return scores
