"""ActiveLearner: a meta-estimator that chooses the items to label next."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.dummy import DummyClassifier
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from ._utils._bases import BaseEstimator, MetaEstimatorMixin, available_if, fit_context
from ._utils._containers import (
    as_container,
    check_alike,
    concatenate,
    count_items,
    drop_known_texts,
    name_bad_texts,
    read_items,
    read_unlabeled,
    snapshot,
)
from ._utils._labels import (
    as_labels,
    check_weights,
    explain_constant_labels,
    join_fit_params,
    join_labels,
    match_columns,
    read_labels,
)
from ._utils._pipelines import (
    computes_features,
    continue_from,
    delegated,
    estimator_has,
    find_sample_weight,
    fresh_estimator,
    has_descriptions,
    needs_classes,
    of_estimator,
    split_estimator,
    takes_unlabeled,
    unlabeled_params,
)
from ._utils._plugins import read_declared
from ._utils._positions import as_positions, check_n_queries, check_picks
from ._utils._repeatable import base_seed, one_blas_thread, round_rng
from ._utils._sklearn import (
    HasMethods,
    Interval,
    IsPredictor,
    QuickParamsMixin,
    check_bool,
)
from .registry import PointwiseStrategy, Strategy, find_requirements, resolve
from .view import PoolView

__all__ = ["ActiveLearner"]

StrategyLike = str | Strategy | Callable[[PoolView], Any]


_PREDICTING = ("predict", "predict_proba", "predict_log_proba", "decision_function")


class DelegationMixin:
    """Methods, metadata and tags of the estimator in `estimator` or `estimator_`."""

    estimator: Any

    def _route(self, method, params):
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, method, **params).estimator[method]
        return params

    def _delegate(self, method, X, *args, **params):
        check_is_fitted(self)
        params = self._route(method, params)
        call, X = getattr(self.estimator_, method), as_container(X)
        with name_bad_texts(X):
            return call(X, *args, **params)

    predict = delegated("predict")
    predict_proba = delegated("predict_proba")
    predict_log_proba = delegated("predict_log_proba")
    decision_function = delegated("decision_function")
    transform = delegated("transform")

    @available_if(estimator_has("score"))
    def score(self, X: Any, y: ArrayLike, **params: Any) -> float:
        """See the method of `estimator`."""
        match_columns(y, getattr(self, "_label_columns", ()))
        y = as_labels(y, count_items(X), estimator=self.estimator)
        return self._delegate("score", X, y, **params)

    classes_: NDArray[Any] = of_estimator("classes_", "Classes of `estimator_`.")
    n_features_in_: int = of_estimator(
        "n_features_in_", "Number of features seen in `fit`, if `estimator_` has it."
    )
    feature_names_in_: NDArray[Any] = of_estimator(
        "feature_names_in_",
        "Names of the features seen in `fit`, if `estimator_` has them.",
    )

    def get_metadata_routing(self) -> Any:
        """Return the routing of metadata to the methods of `estimator`."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for method in (*_PREDICTING, "transform", "score"):
            mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add(
            estimator=self.estimator, method_mapping=mapping
        )

    def __sklearn_is_fitted__(self):
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self):
        own = {"array_api_support": False, "no_validation": False, "requires_fit": True}
        return replace(deepcopy(get_tags(self.estimator)), **own)


@dataclass(frozen=True)
class _LabeledData:
    """All labels after a round, and the base seed of the learner."""

    X: Any
    y: NDArray
    fit_params: dict  # with one value per item
    n_rounds: int
    seed: int


class ActiveLearner(
    DelegationMixin, QuickParamsMixin, MetaEstimatorMixin, BaseEstimator
):
    """Meta-estimator that chooses the items to label next.

    `fit` trains a clone of `estimator` on the first labels, `query` chooses the items
    of a pool to label next, and `teach` adds their labels and trains again. All other
    methods (`predict`, `score`, ...) are those of the fitted estimator.

    Parameters
    ----------
    estimator : estimator
        The model: a classifier, a regressor, or a pipeline that ends in one.
    strategy : str, strategy or callable, default="uherding"
        The query strategy: a registered name (`skactive.get_strategy_names()`),
        `"distribution:name"`, an instance of a strategy, or a function `f(view)` that
        returns one score per candidate, of which the highest are queried first.
    batch_size : int, default=10
        Number of items that `query` returns by default.
    cold_start : str, strategy, callable or None, default=None
        A strategy that needs no model. It is used before there are labels and while all
        labels are of one class. Defaults to "embedding_kmeans" if `estimator` is a
        pipeline whose first steps compute features without training, such as
        `BertFeatures`, else to "random". The former computes the features of the whole
        pool in the first query, "random" none.
    random_state : int, RandomState instance or None, default=None
        Seeds the strategies and each `random_state` inside `estimator` that is None.
        Every round and every number of labels has its own seed. With an int, the same
        calls return the same results, for any number of workers. The global generators
        are neither read nor moved.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone of `estimator`. While all labels are of one class, a
        :class:`~sklearn.dummy.DummyClassifier` that predicts it.
    strategy_ : Strategy
        `strategy` when the model was last trained. `query` uses the current value of
        the parameter.
    classes_ : ndarray of shape (n_classes,)
        The classes of `estimator_`. Only for classifiers.
    X_labeled_ : container of m items
        The labeled items, in the container in which they were passed; a pyarrow array
        becomes a list.
    y_labeled_ : ndarray of shape (m,)
        Their labels.
    n_rounds_ : int
        Number of calls of `teach` since `fit`.
    n_features_in_, feature_names_in_
        As in `estimator_`.

    See Also
    --------
    skactive.simulate : Run the loop on data whose labels are known.

    Notes
    -----
    Texts in any container, text pairs, arrays, sparse matrices and data frames reach
    `estimator` unchanged; only a pyarrow array becomes a list.

    References
    ----------
    B. Settles, "Active learning literature survey", 2009.

    Examples
    --------
    Two texts have labels. Which one to label next, and what does the model say then?

    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive import ActiveLearner
    >>> model = make_pipeline(CountVectorizer(), MultinomialNB())
    >>> learner = ActiveLearner(model, strategy="entropy", batch_size=1)
    >>> learner = learner.fit(["good film", "bad film"], ["like", "dislike"])
    >>> pool = ["a good idea", "dull, but good", "dull film", "good"]
    >>> position = learner.query(pool)[0]
    >>> pool[position]
    'dull film'
    >>> learner.teach(["dull film"], ["dislike"]).predict(["a dull idea"]).tolist()
    ['dislike']
    """

    _parameter_constraints = {
        "estimator": [IsPredictor()],
        "strategy": [str, HasMethods("select"), callable],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "cold_start": [str, HasMethods("select"), callable, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        strategy: StrategyLike = "uherding",
        *,
        batch_size: int = 10,
        cold_start: StrategyLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.strategy = strategy
        self.batch_size = batch_size
        self.cold_start = cold_start
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: ArrayLike, *, X_unlabeled: Any = None, **fit_params: Any
    ) -> Self:
        """Forget earlier labels and train a clone of `estimator` on these.

        Parameters
        ----------
        X : container of n items
            Items that `estimator` accepts. It may be empty for an `estimator` that is a
            :class:`skactive.ClassDescriptions`.
        y : array-like of shape (n,)
            Their labels: `str`, `int` or `bool`. The label -1 is a class.
        X_unlabeled : container of items or None, default=None
            Items without labels, for an `estimator` whose `fit` has a parameter of this
            name, such as :class:`skactive.semi_supervised.SelfTraining`, alone or as
            the last step of a pipeline. Labeled texts are left out. They are not kept.
        **fit_params : dict
            Passed to the `fit` of `estimator`, or routed if metadata routing is
            enabled. Parameters with one value per item are kept for later rounds.

        Returns
        -------
        self : ActiveLearner
            The fitted learner.

        Raises
        ------
        TypeError
            If `estimator` has no use for `X_unlabeled`, or these items are of another
            kind than `X`.
        """
        if has_descriptions(self.estimator) and np.size(y) == 0:
            return self._fit_without_labels(X, X_unlabeled)
        X, n = read_items(X)
        labels = read_labels(y, n, self.estimator)
        kept = join_fit_params({}, 0, fit_params, n)
        data = _LabeledData(snapshot(X), labels, kept, 0, base_seed(self.random_state))
        self._train(data, fit_params, X_unlabeled=X_unlabeled)
        self._label_columns = match_columns(y)
        return self._store(data, forget=True)

    def teach(
        self,
        X: Any,
        y: ArrayLike,
        *,
        refit: bool = True,
        X_unlabeled: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Add labels and, by default, train on all labels.

        If training fails, the learner does not change.

        Parameters
        ----------
        X : container of n items
            The items, in a container of the same kind as in `fit`.
        y : array-like of shape (n,)
            Their labels; new classes are allowed. The columns of a data frame have the
            same names and order each time.
        refit : bool, default=True
            Whether to train now. Otherwise the labels are only stored, and `query`
            uses the previous model.
        X_unlabeled : container of items or None, default=None
            As in `fit`; not used with `refit=False`.
        **fit_params : dict
            As in `fit`. Sample weights that are not given are 1.

        Returns
        -------
        self : ActiveLearner
            The learner with the new labels.
        """
        self._validate_params()
        check_bool("refit", refit)
        X, n = read_items(X)
        columns = match_columns(y, getattr(self, "_label_columns", ()))
        data = self._join(snapshot(X), n, y, fit_params)
        last = getattr(self, "estimator_", None)
        if refit:
            params = {**fit_params, **data.fit_params}
            self._train(data, params, last, X_unlabeled)
        else:
            self._resolve()
        self._label_columns = columns
        return self._store(data, forget=last is None)

    def _join(self, X, n, y, fit_params):
        """Return all labels, with those of `n` items that nobody else changes."""
        known = getattr(self, "y_labeled_", None)
        labels = read_labels(y, n, self.estimator, known)
        if hasattr(self, "X_labeled_"):
            n_before = len(self.y_labeled_)
            return _LabeledData(
                concatenate(self.X_labeled_, X),
                join_labels(self.y_labeled_, labels),
                join_fit_params(self._kept_params, n_before, fit_params, n),
                self.n_rounds_ + 1,
                self._base_seed,
            )
        if hasattr(self, "estimator_") and not has_descriptions(self.estimator):
            raise ValueError("this learner holds no labels (data=False). Call fit.")
        kept = join_fit_params({}, 0, fit_params, n)
        return _LabeledData(X, labels, kept, 1, self._seed())

    def refit(self, *, X_unlabeled: Any = None, **fit_params: Any) -> Self:
        """Train a fresh clone of the current `estimator` on all labels.

        A last step with `warm_start` and a method `continue_from`, such as
        :class:`skactive.linear_model.SequentialLogisticRegression`, starts from the
        previous solution, in `teach` as well.

        Parameters
        ----------
        X_unlabeled : container of items or None, default=None
            As in `fit`.
        **fit_params : dict
            Passed to the `fit` of `estimator` in this call only. Parameters aligned
            with items have one value per item of `y_labeled_`.

        Returns
        -------
        self : ActiveLearner
            The retrained learner.
        """
        self._validate_params()
        check_is_fitted(self, "X_labeled_", msg=_NO_LABELS)
        data = _LabeledData(
            self.X_labeled_,
            self.y_labeled_,
            self._kept_params,
            self.n_rounds_,
            self._base_seed,
        )
        last = getattr(self, "estimator_", None)
        self._train(data, {**self._kept_params, **fit_params}, last, X_unlabeled)
        return self._store(data, forget=last is None)

    @overload
    def query(
        self,
        X: Any,
        n_queries: int | None = ...,
        *,
        candidates: ArrayLike | None = ...,
        return_scores: Literal[False] = ...,
    ) -> NDArray[np.intp]: ...

    @overload
    def query(
        self,
        X: Any,
        n_queries: int | None = ...,
        *,
        candidates: ArrayLike | None = ...,
        return_scores: Literal[True],
    ) -> tuple[NDArray[np.intp], NDArray]: ...

    def query(
        self,
        X: Any,
        n_queries: int | None = None,
        *,
        candidates: ArrayLike | None = None,
        return_scores: bool = False,
    ) -> NDArray[np.intp] | tuple[NDArray[np.intp], NDArray]:
        """Choose items to label next.

        A query changes nothing that a prediction depends on. The same query returns the
        same positions until labels are added.

        Texts, and pairs of texts, that equal a labeled one are excluded, and of
        equal candidates only the first is queried. Numeric rows are not compared.

        Parameters
        ----------
        X : container of n items
            The pool.
        n_queries : int or None, default=None
            Number of items. Defaults to `batch_size`. If there are fewer candidates,
            all of them are returned.
        candidates : array-like of int, or of bool of shape (n,), or None, default=None
            Positions in `X`, or a mask over it, that may be queried. Defaults to all.
        return_scores : bool, default=False
            Whether to return the scores as well. Only strategies that score each
            candidate independently have them.

        Returns
        -------
        positions : ndarray of int, shape (n_queries,)
            Positions in `X`, best first, without repeats.
        scores : ndarray of shape (n_queries,)
            Their scores, highest first. Only if `return_scores` is True.

        Raises
        ------
        ValueError
            If there is no candidate, or all candidates are labeled texts, or the
            strategy is unknown, changes an array of its view, or returns invalid
            positions or scores. If `X` has other columns than the labeled items, or
            missing numbers that the strategy cannot compare.
        TypeError
            If the strategy is not defined for these targets, requires a quantity that
            the estimator lacks, or has no scores to return.
        """
        self._validate_params()
        check_bool("return_scores", return_scores)
        X, n_pool = read_items(X)
        if split_estimator(self.estimator)[0] is None:  # else its first step checks
            check_alike(getattr(self, "X_labeled_", None), X)
        n_queries = check_n_queries(n_queries, self.batch_size)
        positions = None
        if candidates is not None:
            positions = as_positions(candidates, n_pool, X=X)
        positions = drop_known_texts(X, positions, getattr(self, "X_labeled_", None))
        positions = None if positions is None else np.sort(positions)

        argument = "cold_start" if self._is_cold() else "strategy"
        given = self.strategy if argument == "strategy" else self._cold_start()
        strategy = self._resolve()[argument]
        name = given if isinstance(given, str) else repr(given)
        if return_scores:
            _check_gives_scores(strategy, name)

        # Quantities are computed when the strategy uses them.
        view = self._view(X, positions, n_pool, strategy, argument, name)
        n = min(n_queries, len(view))
        select = strategy.select_scored if return_scores else strategy.select
        with one_blas_thread(), name_bad_texts(X, in_strategy=name):
            chosen = select(view, n)

        # Positions in the view become positions in the pool.
        picks = check_picks(chosen[0] if return_scores else chosen, n, len(view), name)
        picks = picks if positions is None else positions[picks]
        return (picks, chosen[1]) if return_scores else picks

    def _view(self, X, positions, n_pool, strategy, argument, name):
        """Return what the strategy may see of the candidates."""
        y_labeled = getattr(self, "y_labeled_", None)
        n_labeled = 0 if y_labeled is None else len(y_labeled)
        round_number = self.n_rounds_ + 1 if n_labeled else 0
        # A second query of a round has fewer candidates and so another generator.
        # The numbers by position stay: the remaining items are a random sample.
        place = self._seed(), round_number, argument, n_labeled
        n_candidates = n_pool if positions is None else len(positions)
        view = PoolView(
            X,
            estimator=self._model(),
            unfitted=self.estimator,
            X_labeled=getattr(self, "X_labeled_", None),
            y_labeled=y_labeled,
            trained=getattr(self, "_trained", None),
            requires=find_requirements(strategy, self.estimator, y_labeled),
            optional=read_declared(strategy, "optional"),
            targets=read_declared(strategy, "targets", None),
            name=name,
            rng=round_rng(*place, n_candidates),
            position_rng=round_rng(*place),
            memory=getattr(self, "_memory", None),
        )
        return view if positions is None else view.take(positions)

    def _resolve(self):
        """Return a fresh strategy and a fresh cold start, by their arguments."""
        given = {"strategy": self.strategy, "cold_start": self._cold_start()}
        return {name: resolve(value, argument=name) for name, value in given.items()}

    def _cold_start(self):
        """Return `cold_start` or its default."""
        if self.cold_start is not None:
            return self.cold_start
        return "embedding_kmeans" if computes_features(self.estimator) else "random"

    def _train(self, data, fit_params, last=None, X_unlabeled=None):
        """Train a fresh estimator, which may continue from the last one."""
        strategy = self._resolve()["strategy"]
        if X_unlabeled is not None and len(data.y):
            X_unlabeled = self._check_unlabeled(data.X, X_unlabeled)
        fit_params = self._route("fit", check_weights(fit_params, len(data.y)))
        if needs_classes(self.estimator, data.y):
            estimator = DummyClassifier(strategy="most_frequent")
            fit_params, X_unlabeled = {}, None
        else:
            estimator = fresh_estimator(
                self.estimator, data.y, data.seed, data.n_rounds
            )
            continue_from(estimator, last)
        # More threads would change rounding, and wait for each other.
        with one_blas_thread(), name_bad_texts(data.X):
            if X_unlabeled is not None:
                pool = unlabeled_params(estimator, data.X, data.y, X_unlabeled)
                fit_params = {**fit_params, **pool}
            with explain_constant_labels(data.y):
                estimator.fit(data.X, data.y, **fit_params)
        self.estimator_ = estimator
        self.strategy_ = strategy
        self._trained = len(data.y), find_sample_weight(estimator, fit_params)
        return self

    def _fit_without_labels(self, X, X_unlabeled):
        """Train on the descriptions of the classes alone, and forget earlier labels."""
        seed, y = base_seed(self.random_state), np.array([], dtype=object)
        self._train(_LabeledData(X, y, {}, 0, seed), {}, X_unlabeled=X_unlabeled)
        for name in ("X_labeled_", "y_labeled_", "n_rounds_"):
            if hasattr(self, name):
                delattr(self, name)
        self._base_seed, self._memory, self._label_columns = seed, {}, []
        return self

    def _check_unlabeled(self, X, X_unlabeled):
        """Return the unlabeled items without labeled texts, or None if none is left."""
        if not takes_unlabeled(self.estimator):
            raise TypeError(
                "'X_unlabeled' must be None for an estimator whose fit has no such "
                f"parameter, got items for {self.estimator!r}. Wrap its last step in "
                "skactive.semi_supervised.SelfTraining to use them."
            )
        return read_unlabeled(X_unlabeled, X)

    def _store(self, data, forget):
        """Store the labels, after training on them has succeeded."""
        self.X_labeled_, self.y_labeled_ = data.X, data.y
        self.n_rounds_, self._base_seed = data.n_rounds, data.seed
        self._kept_params = data.fit_params
        if forget or not hasattr(self, "_memory"):
            self._memory = {}  # distances between queries, which are checked when used
        return self

    def _resume(self, X, y, n_rounds, X_unlabeled=None):
        """Store the labels of an earlier process and train as it did last."""
        data = _LabeledData(X, y, {}, n_rounds, self._seed())
        self._train(data, {}, X_unlabeled=X_unlabeled)
        return self._store(data, forget=True)

    def _model(self):
        """Return the fitted estimator, or None while it has a single class."""
        model = getattr(self, "estimator_", None)
        classes = getattr(model, "classes_", None)
        several = classes if isinstance(classes, list) else [classes]
        n_classes = [len(each) for each in several if isinstance(each, np.ndarray)]
        return None if n_classes and max(n_classes) < 2 else model

    def _is_cold(self):
        """Whether labels have given no model of two classes: the cold start is used."""
        has_no_labels = not hasattr(self, "y_labeled_")
        is_cold = has_descriptions(self.estimator) and has_no_labels
        return is_cold or self._model() is None

    def _seed(self):
        """Return the base seed; drawn once unless `random_state` is an int."""
        if hasattr(self, "_base_seed"):
            return self._base_seed
        if isinstance(self.random_state, Integral):
            return base_seed(self.random_state)
        if not hasattr(self, "_unfitted_seed"):
            self._unfitted_seed = base_seed(self.random_state)
        return self._unfitted_seed

    def __getstate__(self):
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_memory"}


_NO_LABELS = "This %(name)s has no labels to refit on. Call fit or teach first."


def _check_gives_scores(strategy, name):
    """Raise a TypeError unless a strategy selects the highest of its scores."""
    select = getattr(type(strategy), "select", None)
    if select is not PointwiseStrategy.select:
        raise TypeError(
            "'return_scores' must be False for strategies that choose a batch as a "
            f"whole, such as {name!r}. Use a pointwise strategy, such as 'margin', "
            "'entropy' or 'bald', or leave return_scores out."
        )
