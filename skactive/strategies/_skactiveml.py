"""Strategies of scikit-activeml."""

import copy
import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from .._utils._chunks import as_floats
from .._utils._lazy import import_or
from .._utils._pipelines import makes_features, seeded_clone
from .._utils._sklearn import HasMethods
from ..registry import Strategy
from ._committee import draw_bootstrap

_GIVEN = {"X", "y", "candidates", "batch_size"}
# Models that a query may take: our parameter, and the quantities of the default.
_MODELS = {
    "clf": ("clf", {"labeled", "proba"}),
    "estimator": ("clf", {"labeled", "proba"}),
    "ensemble": ("ensemble", {"labeled", "proba"}),
    "reg": ("reg", {"labeled"}),
    "discriminator": ("discriminator", frozenset()),
}


class FromSkactiveml(Strategy):
    """Query with a pool strategy of scikit-activeml.

    The strategy gets the features of the labeled items and the candidates, the labels
    as class indices, and the models that its `query` takes. Needs
    `pip install scikit-activeml`.

    Parameters
    ----------
    query_strategy : skactiveml.base.SingleAnnotatorPoolQueryStrategy
        An instance, which is cloned for each query. If a `random_state` in it is None,
        it is set from the query's generator. Its `missing_label` is set as needed;
        its `classes`, if any, keep their order.
    clf : classifier or None, default=None
        The argument `clf` or `estimator` of the query: a classifier of scikit-activeml
        or scikit-learn, of which a clone is trained on the labeled features. Defaults
        to the learner's fitted model.
    ensemble : list of classifiers, classifier or None, default=None
        The argument `ensemble` of the query, trained on the labeled features. A single
        classifier must be an ensemble, such as a random forest. Defaults to five clones
        of the learner's final estimator, each trained on a bootstrap sample.
    discriminator : classifier or None, default=None
        The argument `discriminator` of the query. Defaults to a logistic regression.
    reg : regressor or None, default=None
        The argument `reg` of the query, trained on the labeled features. Defaults to a
        clone of the learner's final estimator.
    query_params : dict or None, default=None
        More arguments of `query`. Arrays have one entry for each labeled item and
        then one for each candidate.

    Notes
    -----
    A final estimator that computes the features itself, such as `BertClassifier`,
    cannot be trained on them. Its own probabilities of the labeled items and the
    candidates serve as `clf`. For other rows, as DropQuery creates them, it has none,
    so `clf` must be given. If a query trains more models, a logistic regression on the
    features takes its place.

    These strategies do not work, or need parameters:

    - FourDs supports only `clf=MixtureModelClassifier()`, EpistemicUncertaintySampling
      two classes and only logistic regression or `clf=ParzenWindowClassifier()`;
      ProbabilisticAL needs the latter, or its own `metric`.
    - ExpectedModelOutputChange, ExpectedModelVarianceReduction and
      KLDivergenceMaximization need a `reg` with a distribution, such as
      `NICKernelRegressor()`; RegressionTreeBasedAL needs a decision tree.
    - BatchBALD repeats candidates within a batch; so do Badge and TypiClust if
      candidates are equal, and FourDs if all are. That is an error here.
      ParallelUtilityEstimationWrapper takes batches of one item only.
    - CostEmbeddingAL moves numpy's global generator, but its picks are reproducible.
    - Strategies for several annotators or for streams are refused, and so are sparse
      features: scikit-activeml takes dense arrays only.

    Cost: that of the strategy, many of which hold n x n numbers, and a copy of the
    features.

    When to use: for comparisons, and for strategies that are not built in. The built-in
    ones take less time and memory.

    References
    ----------
    D. Kottke et al., "scikit-activeml: a library and toolbox for active learning
    algorithms", 2021.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import FromSkactiveml
    >>> from skactiveml.pool import UncertaintySampling  # doctest: +SKIP
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = FromSkactiveml(UncertaintySampling("entropy"))  # doctest: +SKIP
    >>> learner = ActiveLearner(LogisticRegression(), strategy)  # doctest: +SKIP
    >>> learner = learner.fit([[-1.0], [1.0]], ["a", "b"])  # doctest: +SKIP
    >>> learner.query([[-3.0], [0.2], [1.0]], 1)  # doctest: +SKIP
    array([1])
    """

    _parameter_constraints = {
        "query_strategy": "no_validation",
        "clf": [HasMethods("fit"), None],
        "ensemble": [list, tuple, HasMethods("fit"), None],
        "discriminator": [HasMethods("fit"), None],
        "reg": [HasMethods("fit"), None],
        "query_params": [dict, None],
    }

    def __init__(
        self,
        query_strategy: Any,
        *,
        clf: Any = None,
        ensemble: Any = None,
        discriminator: Any = None,
        reg: Any = None,
        query_params: dict | None = None,
    ) -> None:
        self.query_strategy = query_strategy
        self.clf = clf
        self.ensemble = ensemble
        self.discriminator = discriminator
        self.reg = reg
        self.query_params = query_params

    @property
    def requires(self) -> frozenset[str]:  # type: ignore[override]
        """Features, and the quantities of the models that the query takes."""
        models = self._models(self._arguments())
        missing = [_MODELS[name][1] for name in models if models[name] is None]
        return frozenset({"features"}).union(*missing)

    @property
    def targets(self) -> frozenset[str]:
        """Single label, and regression if the query takes no classifier."""
        return super().targets - {"multi-label"}

    @property
    def optional(self) -> frozenset[str]:  # type: ignore[override]
        """The labeled items, if there are any."""
        return frozenset({"labeled"}) - self.requires

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Return the positions that the strategy of scikit-activeml queries."""
        names = self._arguments()
        adapter = ForSkactiveml(view, self.query_strategy, "reg" in names)
        picks = adapter.strategy.query(
            adapter.X,
            adapter.y,
            candidates=np.arange(adapter.m, len(adapter.X)),
            batch_size=int(n_queries),
            **self._make_models(names, adapter),
        )
        picks = np.ravel(picks) - adapter.m  # one strategy returns a column
        if np.unique(picks).size < picks.size:
            raise ValueError(
                f"{self.query_strategy!r} of scikit-activeml chose a candidate more "
                "than once. Ask for one item at a time, and leave equal candidates out."
            )
        return picks

    def _validate_params(self):
        super()._validate_params()
        self._arguments()

    def _arguments(self):
        """Return the query's arguments except the data, inner ones included."""
        strategy = self.query_strategy
        query = getattr(strategy, "query", None)
        if isinstance(strategy, type) or query is None:
            raise TypeError(
                "'query_strategy' must be an instance of a pool strategy of "
                f"scikit-activeml, got {strategy!r}. Pass one, such as "
                "skactiveml.pool.UncertaintySampling()."
            )
        names = _parameters(strategy)
        if not names >= _GIVEN or "annotators" in names:
            raise TypeError(
                "'query_strategy' must be a strategy for a pool and one annotator, "
                f"got {strategy!r}, whose query takes {', '.join(sorted(names))}. Use "
                "one of skactiveml.pool."
            )
        names -= _GIVEN
        for name in ("clf", "ensemble", "discriminator", "reg"):
            uses = {argument for argument, (own, _) in _MODELS.items() if own == name}
            if getattr(self, name) is not None and not names & uses:
                raise ValueError(
                    f"{name!r} is given, and the query of {strategy!r} takes none, but "
                    f"{', '.join(sorted(names & set(_MODELS))) or 'no model'}. Leave "
                    "it out."
                )
        return names

    def _models(self, names):
        """Map each model that the query takes to our parameter."""
        models = set(_MODELS) & names - set(self.query_params or {})
        return {name: getattr(self, _MODELS[name][0]) for name in sorted(models)}

    def _make_models(self, names, adapter):
        """Return the query's arguments, from our parameters or the learner's model."""
        made = {}
        # A query that trains more models has to train the first one too.
        trains = "ignore_partial_fit" in names or "reg" in names
        for name, value in self._models(names).items():
            if isinstance(value, list | tuple):
                made[name] = [adapter.wrap(member) for member in value]
            elif value is not None:
                made[name] = adapter.wrap(value)
            elif name == "discriminator":
                made[name] = adapter.wrap(LogisticRegression(max_iter=1000))
            elif trains:
                made[name] = adapter.unfitted()
            else:
                made[name] = adapter.bag() if name == "ensemble" else adapter.fitted()
                made[f"fit_{name}"] = False
        return {**made, **(self.query_params or {})}


def _parameters(strategy):
    """Return the arguments of a query, including those passed on to an inner one."""
    parameters = inspect.signature(strategy.query).parameters
    names = set(parameters)
    hands_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    inner = getattr(strategy, "query_strategy", None)
    if hands_on and hasattr(inner, "query"):
        names |= _parameters(inner)
    return names


N_MEMBERS = 5


class ForSkactiveml:
    """The data and models of one query of a strategy of scikit-activeml.

    `strategy` is a seeded clone; `X` (m + n, d) are the features, the m labeled ones
    first; `y` (m + n,) are class indices or targets, NaN for the candidates.
    """

    def __init__(self, view, query_strategy, regression):
        self._view = view
        self._final = view.final_estimator
        has_model = self._final is not None
        self._is_regression = regression or (has_model and is_regressor(self._final))
        self.m = view.n_labeled
        y_labeled = view.y_labeled if self.m else np.empty(0)
        if self._is_regression:
            _check_targets(y_labeled, query_strategy)
        else:
            self._classes = _list_classes(query_strategy, view, y_labeled)
            y_labeled = _as_codes(y_labeled, self._classes, query_strategy)
        self.X = (
            _join(view.labeled_features, view.features)
            if self.m
            else _join(view.features)
        )
        self.y = np.full(len(self.X), np.nan)
        self.y[: self.m] = y_labeled
        self.strategy = self._adjust(seeded_clone(query_strategy, view.rng))
        _seed_clustering(self.strategy)

    def wrap(self, estimator):
        """Return a seeded, unfitted clone as an estimator of scikit-activeml."""
        if "missing_label" not in estimator.get_params(deep=False):
            wrapper = ("classifier", "SklearnClassifier")
            if is_regressor(estimator):
                wrapper = ("regressor", "SklearnRegressor")
            estimator = _import(*wrapper)(estimator)
        return self._adjust(seeded_clone(estimator, self._view.rng))

    def unfitted(self):
        """Return a clone of the final estimator, to train on the features."""
        return self.wrap(self._trainable())

    def fitted(self):
        """Return the learner's fitted model as a classifier of scikit-activeml."""
        model = self._final
        # Some strategies read the coefficients, of this class only.
        if type(model) is LogisticRegression:
            coded = copy.copy(model)
        else:
            coded = _Coded(self._trainable())
            coded.n_features_in_ = self.X.shape[1]
            coded.model_ = model
            if makes_features(model):
                proba = np.vstack([self._view.labeled.proba, self._view.proba])
                coded.model_ = _KnownRows(self.X, proba)
        codes = _as_codes(self._view.classes, self._classes, self.strategy)
        coded.classes_ = np.array(codes)
        return self._wrap_fitted(coded)

    def bag(self):
        """Return clones of the final estimator trained on bootstrap samples."""
        X, y, rng = self.X[: self.m], self.y[: self.m].astype(int), self._view.rng
        members = []
        for _ in range(N_MEMBERS):
            rows = draw_bootstrap(y, rng)
            member = seeded_clone(self._trainable(), rng).fit(X[rows], y[rows])
            members.append(self._wrap_fitted(member))
        return members

    def _trainable(self):
        if not makes_features(self._final):
            return clone(self._final)
        if is_regressor(self._final):
            raise TypeError(
                f"{type(self._final).__name__} makes the features itself and cannot be "
                "trained on them. Pass 'reg', such as sklearn.linear_model.Ridge()."
            )
        return LogisticRegression(max_iter=1000)

    def _wrap_fitted(self, estimator):
        wrapped = _import("classifier", "SklearnClassifier")(estimator)
        self._adjust(wrapped)
        check_is_fitted(wrapped)  # it copies the state of the fitted estimator
        wrapped.classes_ = np.arange(len(self._classes))
        return wrapped

    def _adjust(self, theirs):
        """Set the labels of an object of scikit-activeml to those used here."""
        changes = {}
        for name in theirs.get_params():
            if name.split("__")[-1] == "missing_label":
                changes[name] = np.nan
            elif name.split("__")[-1] == "classes" and not self._is_regression:
                changes[name] = list(range(len(self._classes)))
        return theirs.set_params(**changes)


class _Coded(ClassifierMixin, BaseEstimator):
    """A fitted classifier with class indices as labels; `fit` trains another."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        params = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.model_ = clone(self.estimator).fit(X, y, **params)
        self.classes_ = self.model_.classes_
        self.n_features_in_ = X.shape[1]
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class _KnownRows:
    """Probabilities of rows that were computed from other inputs than the rows."""

    def __init__(self, rows, proba):
        self.dtype = rows.dtype
        self.proba_of = {row.tobytes(): p for row, p in zip(rows, proba, strict=True)}

    def __deepcopy__(self, memo):
        return self  # nothing writes to it

    def predict_proba(self, X):
        rows = np.asarray(X, dtype=self.dtype)
        try:
            return np.array([self.proba_of[row.tobytes()] for row in rows])
        except KeyError:
            raise ValueError(
                "the strategy predicts rows that are not the features of an item, "
                "and the model takes the items themselves. Pass 'clf', such "
                "as LogisticRegression(), to be trained on the features."
            ) from None


def _join(*parts):
    """Stack dense features; scikit-activeml takes a single array."""
    if any(map(sparse.issparse, parts)):
        raise TypeError(
            "the strategies of scikit-activeml take no sparse features. End the first "
            "steps of the pipeline in something dense, such as TruncatedSVD."
        )
    return as_floats(np.vstack(parts) if len(parts) > 1 else parts[0])


def _list_classes(strategy, view, y):
    """Return the classes in index order: the strategy's, else the model's."""
    for name, value in sorted(strategy.get_params().items()):
        if name.split("__")[-1] == "classes" and value is not None:
            return np.asarray(value)
    classes = y[:0] if view.estimator is None else view.classes
    # Labels taught without training may be of classes new to the model.
    return np.concatenate([classes, np.setdiff1d(y, classes)])


def _as_codes(y, classes, strategy):
    codes = {label: code for code, label in enumerate(classes.tolist())}
    unknown = [label for label in y.tolist() if label not in codes]
    if unknown:
        raise ValueError(
            f"the labels hold {unknown[0]!r}, which the classes of {strategy!r} lack. "
            "Name all classes."
        )
    return [codes[label] for label in y.tolist()]


def _check_targets(y, strategy):
    if y.dtype.kind not in "fiub":
        raise TypeError(
            f"{strategy!r} is for regression and needs numbers as labels, got labels "
            f"of dtype {y.dtype}. Use another strategy for classes."
        )


def _seed_clustering(strategy):
    """Seed the inner clustering, which may otherwise use the global generator."""
    params = strategy.get_params()
    for name in params:
        prefix, separator, suffix = name.rpartition("cluster_algo_dict")
        algorithm = params.get(f"{prefix}cluster_algo")
        if not separator or suffix or algorithm is None:
            continue
        if "random_state" in inspect.signature(algorithm).parameters:
            seed = {"random_state": params.get(f"{prefix}random_state")}
            strategy.set_params(**{name: seed | (params[name] or {})})


def _import(module, name):
    """Import a class of scikit-activeml, an optional dependency."""
    missing = (
        "strategies of scikit-activeml need scikit-activeml, which is not installed. "
        "Install it with `pip install scikit-activeml`."
    )
    return getattr(import_or(missing, f"skactiveml.{module}"), name)
