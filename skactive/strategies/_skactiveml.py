"""Strategies of scikit-activeml, used by their instance."""

import copy
import inspect
from importlib import import_module

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from .._utils._chunks import as_floats
from .._utils._pipelines import seeded_clone
from .._utils._sklearn import HasMethods
from ._base import Strategy

_GIVEN = {"X", "y", "candidates", "batch_size"}
# Models that a query may ask for: our parameter, and what a default one is made of.
_MODELS = {
    "clf": ("clf", {"labeled", "proba"}),
    "estimator": ("clf", {"labeled", "proba"}),
    "ensemble": ("ensemble", {"labeled", "proba"}),
    "reg": ("reg", {"labeled"}),
    "discriminator": ("discriminator", frozenset()),
}


class FromSkactiveml(Strategy):
    """Ask as a pool strategy of scikit-activeml does.

    The strategy gets the features of the labelled items and the candidates, the labels
    as the numbers of their classes, and the models that its `query` asks for. Needs
    `pip install scikit-activeml`.

    Parameters
    ----------
    query_strategy : skactiveml.base.SingleAnnotatorPoolQueryStrategy
        An instance. It is cloned for each query; where a `random_state` in it is None,
        the clone's comes from the query's generator. Its `missing_label` is set as
        needed, and `classes`, where it has them, stay in their order.
    clf : classifier or None, default=None
        What a query takes as `clf` or `estimator`: one of scikit-activeml or
        scikit-learn, of which a clone is trained on the labelled features. None is
        the learner's fitted model itself.
    ensemble : list of classifiers, classifier or None, default=None
        What a query takes as `ensemble`, trained on the labelled features; a single
        one must consist of several, such as a random forest. None is five clones of
        the learner's final estimator, each trained on a bootstrap sample.
    discriminator : classifier or None, default=None
        What a query takes as `discriminator`. None is a logistic regression.
    reg : regressor or None, default=None
        What a query takes as `reg`, trained on the labelled features. None is a clone
        of the learner's final estimator.
    query_params : dict or None, default=None
        More arguments of `query`. Arrays have one entry for each labelled item and
        then one for each candidate.

    Notes
    -----
    A final estimator that makes the features itself, such as `BertClassifier`, cannot
    be trained on them. Its own probabilities of the labelled items and the candidates
    serve as `clf`; for other rows, as DropQuery makes, it has none, so `clf` must be
    given. Where a query trains more models, a logistic regression on the features
    takes its place.

    These of theirs do not work, or not as they are:

    - FourDs knows only `clf=MixtureModelClassifier()`, EpistemicUncertaintySampling
      two classes and only logistic regression or `clf=ParzenWindowClassifier()`;
      ProbabilisticAL wants the latter, or a `metric` of its own.
    - ExpectedModelOutputChange, ExpectedModelVarianceReduction and
      KLDivergenceMaximization want a `reg` with a distribution, such as
      `NICKernelRegressor()`; RegressionTreeBasedAL a decision tree.
    - BatchBALD repeats itself within a batch; so do Badge and TypiClust where
      candidates are equal, and FourDs where all are. That is an error here.
      ParallelUtilityEstimationWrapper takes batches of one item only.
    - CostEmbeddingAL moves the global generator of numpy, though it asks for the same.
    - Strategies for several annotators or for streams are refused, and so are sparse
      features: theirs take dense arrays only.

    Cost: that of the strategy, many of which hold n x n numbers, and a copy of the \
features.

    When to use: for comparisons, and for what is not built in; the built-in ones \
take less time and memory.

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
        query_strategy,
        *,
        clf=None,
        ensemble=None,
        discriminator=None,
        reg=None,
        query_params=None,
    ):
        self.query_strategy = query_strategy
        self.clf = clf
        self.ensemble = ensemble
        self.discriminator = discriminator
        self.reg = reg
        self.query_params = query_params

    @property
    def requires(self):
        """Features, and what the models are made of that the query asks for."""
        models = self._models(self._arguments())
        missing = [_MODELS[name][1] for name in models if models[name] is None]
        return frozenset({"features"}).union(*missing)

    @property
    def targets(self):
        """One class per item, and numbers where the query asks for no classifier."""
        return super().targets - {"multi-label"}

    @property
    def optional(self):
        """The labelled items, where there are some."""
        return frozenset({"labeled"}) - self.requires

    def select(self, view, n):
        """Let the strategy query, and find what it chose among the candidates.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates, the labelled items and the model.
        n : int
            How many to choose.

        Returns
        -------
        positions : ndarray of int, shape (n,)
        """
        names = self._arguments()
        given = ForSkactiveml(view, self.query_strategy, "reg" in names)
        picks = given.strategy.query(
            given.X,
            given.y,
            candidates=np.arange(given.m, len(given.X)),
            batch_size=int(n),
            **self._make_models(names, given),
        )
        picks = np.ravel(picks) - given.m  # one of them gives a column
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
        """Names of what the query takes beside the data, all the way down."""
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
        """For each model that the query takes, the argument and our parameter."""
        models = set(_MODELS) & names - set(self.query_params or {})
        return {name: getattr(self, _MODELS[name][0]) for name in sorted(models)}

    def _make_models(self, names, given):
        """Make what the query takes of our parameters and of the learner's model."""
        made = {}
        # What trains more models wants to have trained the first one too.
        trains = "ignore_partial_fit" in names or "reg" in names
        for name, value in self._models(names).items():
            if isinstance(value, list | tuple):
                made[name] = [given.wrap(member) for member in value]
            elif value is not None:
                made[name] = given.wrap(value)
            elif name == "discriminator":
                made[name] = given.wrap(LogisticRegression(max_iter=1000))
            elif trains:
                made[name] = given.unfitted()
            else:
                made[name] = given.bag() if name == "ensemble" else given.fitted()
                made[f"fit_{name}"] = False
        return {**made, **(self.query_params or {})}


def _parameters(strategy):
    """Names that a query takes, those that it hands on to an inner one included."""
    parameters = inspect.signature(strategy.query).parameters
    names = set(parameters)
    hands_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    inner = getattr(strategy, "query_strategy", None)
    if hands_on and hasattr(inner, "query"):
        names |= _parameters(inner)
    return names


N_MEMBERS = 5


class ForSkactiveml:
    """What one query of a strategy of scikit-activeml is given.

    Parameters
    ----------
    view : skactive.view.PoolView
        The candidates, the labelled items and the model.
    query_strategy : skactiveml.base.SingleAnnotatorPoolQueryStrategy
        Left as it is.
    regression : bool
        Whether it asks for a regressor.

    Attributes
    ----------
    strategy : skactiveml.base.SingleAnnotatorPoolQueryStrategy
        A clone, seeded by the view, that knows how labels are written here.
    m : int
        How many rows are labelled; they come first.
    X : ndarray of shape (m + n, d)
        Features.
    y : ndarray of float, shape (m + n,)
        Numbers of the labels' classes, or targets; NaN for the candidates.
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
        """Make a seeded, unfitted clone that is one of scikit-activeml.

        Parameters
        ----------
        estimator : estimator
            Of scikit-activeml or scikit-learn.

        Returns
        -------
        wrapped : skactiveml.base.SkactivemlClassifier or SkactivemlRegressor
        """
        if "missing_label" not in estimator.get_params(deep=False):
            wrapper = ("classifier", "SklearnClassifier")
            if is_regressor(estimator):
                wrapper = ("regressor", "SklearnRegressor")
            estimator = _import(*wrapper)(estimator)
        return self._adjust(seeded_clone(estimator, self._view.rng))

    def unfitted(self):
        """Make a model to train on the features: the final estimator's clone.

        Returns
        -------
        wrapped : skactiveml.base.SkactivemlClassifier or SkactivemlRegressor
        """
        return self.wrap(self._trainable())

    def fitted(self):
        """Wrap the learner's model as it was trained.

        Returns
        -------
        wrapped : skactiveml.classifier.SklearnClassifier
        """
        model = self._final
        # Some strategies look at the coefficients, and at no other estimator's.
        if type(model) is LogisticRegression:
            coded = copy.copy(model)
        else:
            coded = _Coded(self._trainable())
            coded.n_features_in_ = self.X.shape[1]
            coded.model_ = model
            if hasattr(model, "transform"):
                proba = np.vstack([self._view.labeled.proba, self._view.proba])
                coded.model_ = _KnownRows(self.X, proba)
        codes = _as_codes(self._view.classes, self._classes, self.strategy)
        coded.classes_ = np.array(codes)
        return self._wrap_fitted(coded)

    def bag(self):
        """Train clones of the final estimator on bootstrap samples.

        Each sample has one row of each class for sure.

        Returns
        -------
        members : list of skactiveml.classifier.SklearnClassifier
        """
        X, y, rng = self.X[: self.m], self.y[: self.m].astype(int), self._view.rng
        members = []
        for _ in range(N_MEMBERS):
            order = rng.permutation(self.m)
            first = order[np.unique(y[order], return_index=True)[1]]
            others = rng.integers(self.m, size=self.m - len(first))
            rows = np.concatenate([first, others])
            member = seeded_clone(self._trainable(), rng).fit(X[rows], y[rows])
            members.append(self._wrap_fitted(member))
        return members

    def _trainable(self):
        if not hasattr(self._final, "transform"):
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
        check_is_fitted(wrapped)  # it takes the fitted estimator over
        wrapped.classes_ = np.arange(len(self._classes))
        return wrapped

    def _adjust(self, theirs):
        """Tell an object of scikit-activeml how labels are written here."""
        changes = {}
        for name in theirs.get_params():
            if name.split("__")[-1] == "missing_label":
                changes[name] = np.nan
            elif name.split("__")[-1] == "classes" and not self._is_regression:
                changes[name] = list(range(len(self._classes)))
        return theirs.set_params(**changes)


class _Coded(ClassifierMixin, BaseEstimator):
    """A fitted classifier under the numbers of its classes; `fit` trains another."""

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
    """Probabilities of rows that were computed from something else than the rows."""

    def __init__(self, rows, proba):
        self.dtype = rows.dtype
        self.known = {row.tobytes(): p for row, p in zip(rows, proba, strict=True)}

    def __deepcopy__(self, memo):
        return self  # nothing writes to it

    def predict_proba(self, X):
        rows = np.asarray(X, dtype=self.dtype)
        try:
            return np.array([self.known[row.tobytes()] for row in rows])
        except KeyError:
            raise ValueError(
                "the strategy asks what the model says of rows that are no item's "
                "features, and the model takes the items themselves. Pass 'clf', such "
                "as LogisticRegression(), to be trained on the features."
            ) from None


def _join(*parts):
    """Stack dense features; theirs takes a single array."""
    if any(map(sparse.issparse, parts)):
        raise TypeError(
            "the strategies of scikit-activeml take no sparse features. End the first "
            "steps of the pipeline in something dense, such as TruncatedSVD."
        )
    return as_floats(np.vstack(parts) if len(parts) > 1 else parts[0])


def _list_classes(strategy, view, y):
    """Classes in the order of their numbers: the strategy's own, else the model's."""
    for name, value in sorted(strategy.get_params().items()):
        if name.split("__")[-1] == "classes" and value is not None:
            return np.asarray(value)
    known = y[:0] if view.estimator is None else view.classes
    # Labels taught without training may be of classes new to the model.
    return np.concatenate([known, np.setdiff1d(y, known)])


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
    """Seed the clustering inside, which some would seed by the global generator."""
    params = strategy.get_params()
    for name in params:
        prefix, found, rest = name.rpartition("cluster_algo_dict")
        algorithm = params.get(f"{prefix}cluster_algo")
        if not found or rest or algorithm is None:
            continue
        if "random_state" in inspect.signature(algorithm).parameters:
            seed = {"random_state": params.get(f"{prefix}random_state")}
            strategy.set_params(**{name: seed | (params[name] or {})})


def _import(module, name):
    """Import a class of scikit-activeml, which is no dependency."""
    try:
        return getattr(import_module(f"skactiveml.{module}"), name)
    except ImportError as exc:
        raise ImportError(
            "strategies of scikit-activeml need scikit-activeml, which is not "
            "installed. Install it with `pip install scikit-activeml`."
        ) from exc
