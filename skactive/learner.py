"""The active learner: a scikit-learn estimator that also says what to label next."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ._clones import unseeded
from ._containers import concatenate, snapshot
from ._delegation import DelegationMixin
from ._labels import as_labels, join_fit_params, join_labels
from ._pipelines import continue_from
from ._positions import as_positions, check_picks, count_items
from ._random import base_seed, round_rng, round_seed
from ._sklearn import HasMethods, Interval, QuickParamsMixin, fit_context
from ._threads import one_blas_thread
from .registry import resolve
from .view import PoolView

__all__ = ["ActiveLearner"]


class ActiveLearner(
    DelegationMixin, QuickParamsMixin, MetaEstimatorMixin, BaseEstimator
):
    """Estimator that asks for the labels it learns from.

    `fit` trains a clone of `estimator` on the first labels, `query` says which items
    of a pool to label next, `teach` adds their labels and trains again. Everything
    else (`predict`, `score`, ...) is the fitted estimator's own, so a learner can be
    cloned, pickled, piped, searched over and cross-validated.

    Parameters
    ----------
    estimator : estimator
        The model: a classifier, a regressor, or a pipeline that ends in one.
    strategy : str, strategy or callable, default="margin"
        What to ask next: a registered name (`skactive.get_strategy_names()`),
        `"distribution:name"`, an instance of a strategy, or a function `f(view)` that
        returns one score per candidate, the highest asked first.
    batch_size : int, default=10
        How many items `query` asks for unless told otherwise.
    cold_start : str, strategy or callable, default="random"
        A strategy that needs no model. It is used before any label is known and while
        all labels are of one class.
    random_state : int, RandomState instance or None, default=None
        Seeds the strategies, with a seed of its own for every round, and each
        `random_state` inside `estimator` that is None. With an int the same calls give
        the same answers, whatever the number of workers. The global generators are
        neither read nor moved.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone of `estimator`. While all labels are of one class, a
        :class:`~sklearn.dummy.DummyClassifier` that predicts it.
    strategy_ : Strategy
        `strategy` as it was when the model was last trained. `query` always goes by
        the present value of the parameter.
    classes_ : ndarray of shape (n_classes,)
        The classes that `estimator_` knows. Only for classifiers.
    X_labeled_ : container of m items
        The labelled items, in the container they came in.
    y_labeled_ : ndarray of shape (m,)
        Their labels.
    n_rounds_ : int
        How often `teach` was called since `fit`.
    n_features_in_ : int
        Where `estimator_` has it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where `estimator_` has it.

    See Also
    --------
    skactive.get_strategy : Make a strategy by name.
    skactive.simulate : Run the loop on data whose labels are known.

    Notes
    -----
    `X` is never converted or checked here: texts in any container, text pairs, arrays,
    sparse matrices and data frames reach `estimator` as they are.

    References
    ----------
    B. Settles, "Active learning literature survey", 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive import ActiveLearner
    >>> from sklearn.linear_model import LogisticRegression
    >>> X_pool = np.linspace(-3, 3, 7).reshape(-1, 1)
    >>> learner = ActiveLearner(LogisticRegression(), strategy="entropy", batch_size=2)
    >>> learner.fit([[-3.0], [3.0]], ["cold", "warm"]).query(X_pool, 1)
    array([3])
    >>> learner.teach(X_pool[[3]], ["warm"]).predict([[0.5]])
    array(['warm'], dtype='<U4')
    """

    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict"])],
        "strategy": [str, HasMethods("select"), callable],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "cold_start": [str, HasMethods("select"), callable],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator,
        strategy="margin",
        *,
        batch_size=10,
        cold_start="random",
        random_state=None,
    ):
        self.estimator = estimator
        self.strategy = strategy
        self.batch_size = batch_size
        self.cold_start = cold_start
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, **fit_params):
        """Forget earlier labels and train a clone of `estimator` on these.

        Parameters
        ----------
        X : container of n items
            What `estimator` takes.
        y : array-like of shape (n,)
            Their labels: `str`, `int` or `bool`.
        **fit_params : dict
            Passed to the `fit` of `estimator`, routed where metadata routing is
            enabled. What has one value per item is kept for later rounds.

        Returns
        -------
        self : ActiveLearner
        """
        n = count_items(X)
        y = as_labels(y, n)
        return self._learn(
            snapshot(X),
            y,
            seed=base_seed(self.random_state),
            n_rounds=0,
            kept=join_fit_params({}, 0, fit_params, n),
            passed=fit_params,
            last=None,
        )

    def teach(self, X, y, *, refit=True, **fit_params):
        """Add labels and, unless told otherwise, train on all of them.

        If training fails the new labels are not kept, and the learner stays as it
        was.

        Parameters
        ----------
        X : container of n items
            The items, in the container that `fit` got.
        y : array-like of shape (n,)
            Their labels; classes not seen before are welcome.
        refit : bool, default=True
            Whether to train now. Otherwise the labels are stored for the next
            `refit` or `teach`.
        **fit_params : dict
            As in `fit`. Sample weights that were not given count as 1.

        Returns
        -------
        self : ActiveLearner
        """
        self._validate_params()
        n = count_items(X)
        y = as_labels(y, n)
        if not hasattr(self, "X_labeled_"):
            X_all, y_all, n_rounds, seed = snapshot(X), y, 1, self._seed()
            kept = join_fit_params({}, 0, fit_params, n)
        else:
            X_all = concatenate(self.X_labeled_, X)
            y_all = join_labels(self.y_labeled_, y)
            n_rounds, seed = self.n_rounds_ + 1, self._base_seed
            n_before = len(self.y_labeled_)
            kept = join_fit_params(self._kept_params, n_before, fit_params, n)
        return self._learn(
            X_all,
            y_all,
            seed,
            n_rounds,
            kept,
            passed={**fit_params, **kept},
            last=getattr(self, "estimator_", None),
            train=refit,
        )

    def refit(self, **fit_params):
        """Train a fresh clone of the present `estimator` on all labels.

        A last step with `warm_start` and a method `continue_from`, such as
        :class:`skactive.logistic.SequentialLogisticRegression`, begins at the last
        solution, in `teach` as well. `fit` forgets it.

        Parameters
        ----------
        **fit_params : dict
            Passed to the `fit` of `estimator` this once; what has one value per item
            has one for each of `y_labeled_`.

        Returns
        -------
        self : ActiveLearner
        """
        self._validate_params()
        if not hasattr(self, "X_labeled_"):
            check_is_fitted(self, "X_labeled_", msg=_NO_LABELS)
        kept = self._kept_params
        return self._learn(
            self.X_labeled_,
            self.y_labeled_,
            self._base_seed,
            self.n_rounds_,
            kept,
            passed={**kept, **fit_params},
            last=getattr(self, "estimator_", None),
        )

    def query(self, X, n_queries=None, *, candidates=None):
        """Choose items to label next.

        Changes nothing that a prediction depends on; asked twice, it gives the same
        answer.

        Parameters
        ----------
        X : container of n items
            The pool.
        n_queries : int or None, default=None
            How many items; None means `batch_size`. If there are fewer candidates,
            all of them are returned.
        candidates : array-like of int, or of bool of shape (n,), or None, default=None
            Positions in `X`, or a mask over it, that may be asked about. None means
            all.

        Returns
        -------
        positions : ndarray of int, shape (n_queries,)
            Positions in `X`, best first, without repeats.

        Raises
        ------
        ValueError
            If the pool or the candidates are empty, or the strategy is unknown or
            gives nonsense.
        TypeError
            If the strategy needs something that the estimator lacks.
        """
        self._validate_params()
        n_pool = count_items(X)
        n_queries = self._check_n_queries(n_queries)
        if candidates is not None:
            candidates = as_positions(candidates, n_pool)

        # Without a model that tells classes apart, only a cold start can answer.
        model = self._model()
        argument = "cold_start" if model is None else "strategy"
        given = getattr(self, argument)
        strategy = resolve(given, argument=argument)
        name = given if isinstance(given, str) else repr(given)

        has_labels = hasattr(self, "y_labeled_")
        round_number = self.n_rounds_ + 1 if has_labels else 0
        view = PoolView(
            X,
            estimator=model,
            unfitted=self.estimator,
            X_labeled=self.X_labeled_ if has_labels else None,
            y_labeled=self.y_labeled_ if has_labels else None,
            requires=getattr(strategy, "requires", None),
            optional=getattr(strategy, "optional", frozenset()),
            name=name,
            rng=round_rng(self._seed(), round_number, argument),
            memory=getattr(self, "_memory", None),
        )
        if candidates is not None:
            view = view.take(candidates)

        n = min(n_queries, len(view))
        picks = check_picks(strategy.select(view, n), n, len(view), name)
        return picks if candidates is None else candidates[picks]

    def _learn(self, X, y, seed, n_rounds, kept, passed, last, train=True):
        """Train if asked to, and only then take over the labels."""
        strategy = resolve(self.strategy)
        resolve(self.cold_start, argument="cold_start")
        if train:
            params = self._route("fit", passed)
            estimator = self._fresh_estimator(y, seed, n_rounds)
            if isinstance(estimator, DummyClassifier):
                params = {}
            continue_from(estimator, last)
            with one_blas_thread(len(y) <= _SMALL):
                estimator.fit(X, y, **params)
            self.estimator_ = estimator
            self.strategy_ = strategy
        self.X_labeled_ = X
        self.y_labeled_ = y
        self.n_rounds_ = n_rounds
        self._kept_params = kept
        self._base_seed = seed
        if last is None or not hasattr(self, "_memory"):
            self._memory = {}  # of queries, which check what they find there
        return self

    def _resume(self, X, y, n_rounds):
        """Take over all labels of an earlier process and train as it did last."""
        return self._learn(X, y, self._seed(), n_rounds, {}, {}, last=None)

    def _fresh_estimator(self, y, seed, n_rounds):
        """Clone `estimator` and seed what in it is not seeded."""
        frozen = isinstance(self.estimator, FrozenEstimator)
        single_class = y.ndim == 1 and np.all(y == y[0])
        if is_classifier(self.estimator) and single_class and not frozen:
            # Most classifiers refuse a single class, yet a loop may begin so.
            return DummyClassifier(strategy="most_frequent")
        estimator = clone(self.estimator)
        seeds = {name: round_seed(seed, n_rounds, name) for name in unseeded(estimator)}
        estimator.set_params(**seeds)
        return estimator  # a FrozenEstimator's set_params returns nothing

    def _model(self):
        """Get the fitted estimator, if it tells at least two classes apart."""
        model = getattr(self, "estimator_", None)
        classes = getattr(model, "classes_", None)
        if isinstance(classes, np.ndarray) and len(classes) < 2:
            return None
        return model

    def _seed(self):
        """Get the base seed; drawn once where `random_state` itself fixes none."""
        if hasattr(self, "_base_seed"):
            return self._base_seed
        if isinstance(self.random_state, Integral):
            return base_seed(self.random_state)
        if not hasattr(self, "_unfitted_seed"):
            self._unfitted_seed = base_seed(self.random_state)
        return self._unfitted_seed

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_memory", None)
        return state

    def _check_n_queries(self, n_queries):
        if n_queries is None:
            return self.batch_size
        if not isinstance(n_queries, Integral) or isinstance(n_queries, bool):
            raise TypeError(f"'n_queries' must be an int, got {n_queries!r}.")
        if n_queries <= 0:
            raise ValueError(f"'n_queries' must be at least 1, got {n_queries}.")
        return int(n_queries)


# Labels, up to which BLAS is kept on one thread while a model is trained.
_SMALL = 2048

_NO_LABELS = (
    "This %(name)s has no labels to refit on. Call fit(X, y) or teach(X, y) first."
)
