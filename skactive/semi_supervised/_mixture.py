"""MixtureClassifier: classifiers mixed by weights that held-out labels choose."""

from copy import copy
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._math._calibration import (
    calibrate,
    deal_in_order,
    mixture_weights,
    shrink_temperature,
)
from .._math._scores import tune_thresholds
from .._utils._bases import BaseComposition, ClassifierMixin, available_if, fit_context
from .._utils._containers import count_items, read_items, take_rows
from .._utils._labels import (
    as_labels,
    check_classes,
    check_one_label,
    is_indicator,
    marginals,
)
from .._utils._linear import (
    boundary_distance,
    check_boundary,
    check_gradient_factors,
    gradient_factors,
)
from .._utils._pipelines import (
    find_adaptations,
    fit_last,
    needs_training,
    seeded_clone,
    split_estimator,
    takes_weights,
)
from .._utils._repeatable import base_seed
from .._utils._sklearn import Interval, check_count, check_sample_weight, naming
from ._self_training import log_of, soften


class MixtureClassifier(ClassifierMixin, BaseComposition):
    """Mix the probabilities of classifiers by weights that held-out labels choose.

    Each part is trained on all labels, and again without each fold of them. The weights
    make the labels of the folds most likely.

    Parameters
    ----------
    parts : list of (str, classifier)
        Names and classifiers of the same items, with `predict_proba`.
    prior : float, default=2.0
        Number of labels for which equal weights count.
    n_splits : int, default=3
        Number of folds.
    random_state : int, RandomState instance or None, default=None
        Determines each `random_state` of the parts that is None.

    Attributes
    ----------
    parts_ : dict of str to classifier
        The fitted clones. It lacks a part whose encoder has not learned yet,
        `AdaptedFeatures` with fewer labels than its first point, unless none has.
    weights_ : dict of str to float
        The weight of each part of `parts_`. Their sum is 1.
    n_held_out_ : int
        Number of labels that chose the weights. With none, weights are equal.
    temperature_ : float
        The logarithms of the mixed probabilities are divided by it. It is 1 for an
        indicator matrix.
    thresholds_ : ndarray of shape (k,)
        For an indicator matrix: a label is predicted if its probability is above it.
    classes_ : ndarray of shape (k,)
        The classes of any of the parts, or the numbers of the columns.
    multi_label_ : bool
        Whether `y` was an indicator matrix.

    See Also
    --------
    sklearn.ensemble.VotingClassifier : Averages with given weights.
    sklearn.ensemble.StackingClassifier : Trains a classifier on predictions.
    make_text_classifier : Mixes frozen and adapted features.

    Notes
    -----
    The weights maximize the weighted log likelihood of the held-out labels and the log
    density of a Dirichlet prior with the parameters 1 + prior / k for k parts, by
    expectation maximization.

    Each row goes to the fold with the fewest rows of its class, then the fewest rows,
    in the order of the rows. So a later label moves no other. A label that no other row
    has does not choose weights. Of several labels of a row, the one that is rarest so
    far counts there, and each is a share of the row in the likelihood. In a fold, an
    encoder that learns from the first rows learns from those of them that the fold does
    not hold out.

    Features, as a strategy sees them, are those of all parts side by side. Gradients
    and distances to decision boundaries are those of the part with the largest weight.

    References
    ----------
    A. P. Dempster, N. M. Laird, D. B. Rubin (1977). Maximum likelihood from incomplete
    data via the EM algorithm. Journal of the Royal Statistical Society B 39.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skactive.semi_supervised import MixtureClassifier
    >>> parts = [("line", LogisticRegression(max_iter=200)), ("any", DummyClassifier())]
    >>> model = MixtureClassifier(parts).fit(*load_iris(return_X_y=True))
    >>> {name: round(float(weight), 2) for name, weight in model.weights_.items()}
    {'line': 0.99, 'any': 0.01}
    """

    _of_features = False  # True for what `__skactive_split__` returns
    __metadata_request__fit = {"X_unlabeled": True, "n_labeled": True}
    _parameter_constraints = {
        "parts": [list],
        "prior": [Interval(Real, 0, None, closed="left")],
        "n_splits": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        parts: list,
        *,
        prior: float = 2.0,
        n_splits: int = 3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.parts = parts
        self.prior = prior
        self.n_splits = n_splits
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters, and those of the parts under their names."""
        return self._get_params("parts", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a name of a part replaces it."""
        self._set_params("parts", **params)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: "ArrayLike",
        sample_weight: "ArrayLike | None" = None,
        X_unlabeled: Any = None,
        n_labeled: int | None = None,
    ) -> Self:
        """Train the parts and choose their weights.

        Parameters
        ----------
        X : container of n items
            Items that all parts accept.
        y : array-like of shape (n,) or (n, k)
            Their labels, or an indicator matrix if all parts take one.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the labels, also in the choice. Defaults to 1.
        X_unlabeled : container of items or None, default=None
            Items without labels, for parts whose `fit` takes them.
        n_labeled : int or None, default=None
            Number of the first rows that people have labeled; others are not held out.
            None means all.

        Returns
        -------
        self : MixtureClassifier
            The fitted estimator.

        Raises
        ------
        TypeError
            For an indicator matrix if a part takes none, and for weights that the `fit`
            of a part does not take.
        """
        self._check_parts()
        X, n = read_items(X)
        labels = as_labels(y, n)
        self.multi_label_ = labels.ndim == 2
        if not (is_indicator(labels) and all(map(_takes_several, self.parts))):
            check_one_label(labels, self)
        check_classes(labels, self)
        weight = check_sample_weight(
            sample_weight, np.empty((n, 0)), ensure_non_negative=True
        )
        people = n
        if n_labeled is not None:
            people = check_count("n_labeled", n_labeled, least=0, most=n)
        used = np.flatnonzero(weight)
        if len(used) < n:
            X, labels, weight = take_rows(X, used), labels[used], weight[used]
            people = int(np.searchsorted(used, people))
        rows = X, labels, weight
        self._seed = base_seed(self.random_state)
        fitted = {
            name: self._train(name, rows, X_unlabeled, people) for name, _ in self.parts
        }
        classes = [model.classes_ for model in fitted.values()]
        self.classes_ = (
            np.arange(labels.shape[1])
            if self.multi_label_
            else np.unique(np.concatenate(classes))
        )
        self.parts_ = {
            name: model
            for name, model in fitted.items()
            if all(step.n_adapted_ for _, step in _adapted_steps(model))
        } or fitted
        proba, held, folds = self._hold_out(rows, X_unlabeled, people)
        self._folds = [(used[test], models) for test, models in folds]
        self.n_held_out_ = len(held)
        self._choose(proba, labels[held], weight[held])
        return self

    def _choose(self, proba, y, weight):
        """Set the weights, and the temperature or the thresholds, by held-out labels.

        `proba` are the probabilities (parts, h, k) of labels `y`, (h,) or (h, k).
        """
        several, k = self.multi_label_, len(self.classes_)
        if several:  # each label of a row counts for a share of it
            likelihood = np.where(y, proba, 1 - proba).reshape(len(proba), -1).T
            each = np.repeat(weight / k, k)
        else:
            codes, each = np.searchsorted(self.classes_, y), weight
            likelihood = proba[:, np.arange(len(y)), codes].T
        shares = mixture_weights(likelihood, each, self.prior)
        self.weights_ = dict(zip(self.parts_, shares.tolist(), strict=True))
        self.temperature_ = 1.0
        if several:
            self.thresholds_ = np.full(k, 0.5)
        if not len(y) or len(self.parts_) == 1:
            return
        mixed = np.tensordot(shares, proba, 1)
        if several:
            self.thresholds_ = tune_thresholds(mixed, y)
        else:
            temperature = calibrate(log_of(mixed), codes, weight)[1]
            self.temperature_ = shrink_temperature(temperature, len(y))

    def _check_parts(self):
        """Raise an error unless `parts` are named classifiers."""
        if not self.parts:
            raise ValueError(
                "'parts' must have a classifier, got []. Pass (name, classifier) pairs."
            )
        self._validate_names([name for name, _ in self.parts])
        for name, part in self.parts:
            if not (hasattr(part, "fit") and hasattr(part, "predict_proba")):
                raise TypeError(
                    "'parts' must have fit and predict_proba, got "
                    f"{part!r} as {name!r}. Pass a classifier with probabilities."
                )

    def _train(self, name, rows, pool, people, adapted=None):
        """Return a fitted clone of a part.

        An encoder that learns from the first rows learns from the first `adapted`.
        """
        X, y, weight = rows
        part = dict(self.parts)[name]
        index = [each for each, _ in self.parts].index(name)
        model = seeded_clone(part, np.random.default_rng([self._seed, index]))
        params = {"n_labeled": people}
        if adapted is not None:
            steps = [step for step, _ in _adapted_steps(self.parts_[name])]
            model.set_params(**{f"{step}__refit": None for step in steps})
            params["n_labeled"] = adapted
        if not (weight == 1).all():
            if not takes_weights(part):
                raise TypeError(
                    f"'parts' must have a fit with sample_weight to be trained with "
                    f"weights, got {type(part).__name__} as {name!r}. Leave "
                    "sample_weight out."
                )
            params["sample_weight"] = weight
        return fit_last(model, X, y, pool, **params)

    def _hold_out(self, rows, pool, people):
        """Return probabilities (parts, h, k) of held-out rows, these (h,), and folds.

        A fold has the rows that it holds out, and the parts trained without them.
        """
        X, y, weight = rows
        proba = np.zeros((len(self.parts_), len(y), len(self.classes_)))
        is_held, kinds = np.zeros(len(y), dtype=bool), _list_kinds(y)
        is_single = np.bincount(kinds[:people], minlength=kinds.max() + 1)[kinds] < 2
        is_single &= not self.multi_label_
        splits = self._split(kinds, people) if len(self.parts_) > 1 else ()
        folds = []
        for train, test in splits:
            counted = test[~is_single[test]]
            if not len(counted) or (y[train] == y[train][:1]).all():
                continue
            is_held[counted] = True
            part, models = (take_rows(X, train), y[train], weight[train]), {}
            for i, (name, fitted) in enumerate(self.parts_.items()):
                ends = [step.n_adapted_ for _, step in _adapted_steps(fitted)]
                adapted = int(np.sum(train < min(ends))) if ends else None
                n_people = int(np.sum(train < people))
                models[name] = self._train(name, part, pool, n_people, adapted)
                proba[i, counted] = self._predict(models[name], take_rows(X, counted))
            folds.append((test, models))
        held = np.flatnonzero(is_held)
        return proba[:, held], held, folds

    def _split(self, kinds, people):
        """Yield the training rows and the held-out rows of each fold."""
        folds = np.full(len(kinds), -1)
        folds[:people] = deal_in_order(kinds[:people], self.n_splits)
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)

    def __skactive_folds__(self):
        """Yield rows of each fold, and the mixture of the parts trained without them.

        Nothing after `fit` in the same process, or with a single part.
        """
        for rows, parts in getattr(self, "_folds", ()):
            mixture = copy(self)
            mixture.parts_ = parts
            yield rows, mixture

    def __getstate__(self):
        state = super().__getstate__()
        return {k: v for k, v in state.items() if k != "_folds"}

    def __skactive_adaptations__(self, X, y, sample_weight=None, n_labeled=None):
        """Yield the encoders that `fit` trains, each with the rows that it learns from.

        Rows of weight 0 do not count.
        """
        kinds = _list_kinds(np.asarray(y))
        people = len(kinds) if n_labeled is None else n_labeled
        for _, part in self.parts:
            for encoder, rows in find_adaptations(
                part, X, y, sample_weight=sample_weight, n_labeled=people
            ):
                yield encoder, rows
                if len(self.parts) == 1 or not len(rows):
                    continue
                for train, _ in self._split(kinds, people):
                    yield encoder, train[train < len(rows)]

    def _predict(self, model, X):
        """Return the probabilities (n, k) of a part for all classes."""
        proba = np.zeros((count_items(X), len(self.classes_)))
        with naming("X"):
            if self.multi_label_:
                several = model.predict_proba(X)
                is_list = isinstance(several, list)
                return marginals(several, model.classes_) if is_list else several
            columns = np.searchsorted(self.classes_, model.classes_)
            proba[:, columns] = model.predict_proba(X)
        return proba

    def predict_proba(self, X: Any) -> NDArray:
        """Predict class probabilities, calibrated by `temperature_`.

        Parameters
        ----------
        X : container of n items
            Items that all parts accept.

        Returns
        -------
        proba : ndarray of shape (n, k)
        """
        check_is_fitted(self)
        X, _ = read_items(X)
        total: Any = 0.0
        for name, model in self.parts_.items():
            total = total + self.weights_[name] * self._predict(model, X)
        return total if self.multi_label_ else soften(total, self.temperature_)

    def predict(self, X: Any) -> NDArray:
        """Predict labels.

        Parameters
        ----------
        X : container of n items
            Items that all parts accept.

        Returns
        -------
        y : ndarray of shape (n,) or (n, k)
            The most likely class, or those above their threshold.
        """
        proba = self.predict_proba(X)
        if self.multi_label_:
            return (proba > self.thresholds_).astype(int)
        return self.classes_[proba.argmax(axis=1)]

    def _strongest(self):
        """Return the front steps and the model of the part with the largest weight."""
        parts = getattr(self, "parts_", None) or dict(self.parts)
        weights = getattr(self, "weights_", dict.fromkeys(parts, 0.0))
        return split_estimator(parts[max(weights, key=weights.get)])

    def _ask_strongest(self, function, X):
        check_is_fitted(self)
        front, final = self._strongest()
        return function(final, X if front is None else front.transform(X))

    @available_if(lambda self: check_gradient_factors(self._strongest()[1]) or True)
    def gradient_factors(self, X: Any) -> tuple[NDArray, NDArray]:
        """Return the factors of the gradient of the log loss at the predicted label.

        Parameters
        ----------
        X : container of n items
            Items that all parts accept.

        Returns
        -------
        residuals : ndarray of shape (n, k)
            Probabilities minus the indicator of the predicted class.
        inputs : ndarray of shape (n, d)
            Inputs of the last linear layer of the part with the largest weight.
        """
        return self._ask_strongest(gradient_factors, X)

    @available_if(lambda self: check_boundary(self._strongest()[1]) or True)
    def boundary_distance(self, X: Any) -> NDArray:
        """Return the distance to the nearest boundary of the part that weighs most.

        Parameters
        ----------
        X : container of n items
            Items that all parts accept.

        Returns
        -------
        distance : ndarray of shape (n,)
        """
        return self._ask_strongest(boundary_distance, X)

    def __skactive_split__(self):
        """Return a front with the features of all parts, and a mixture of its columns.

        Before `fit`, the front has what needs no training: the front of the first part
        and the first steps of the others, if they compute features.
        """
        if not hasattr(self, "parts_"):
            front, final = split_estimator(self.parts[0][1])
            others = [(k, x[0]) for k, x in self.parts[1:] if isinstance(x, Pipeline)]
            others = [(k, x) for k, x in others if not needs_training(x)]
            if front is None or not others:
                return front, final
            union = FeatureUnion([(self.parts[0][0], front), *others])
            return Pipeline([("side by side", union)]), final
        pairs = {name: split_estimator(part) for name, part in self.parts_.items()}
        widths = [getattr(x, "n_features_in_", None) for _, x in pairs.values()]
        if (
            self._of_features
            or None in widths
            or any(front is None for front, _ in pairs.values())
        ):
            return None, self
        mixture, start = copy(self), 0
        mixture.parts_, mixture._of_features = {}, True
        for (name, (_, final)), width in zip(pairs.items(), widths, strict=True):
            stop = start + width
            columns = {"start": start, "stop": stop}
            take = FunctionTransformer(_take_columns, kw_args=columns)
            mixture.parts_[name], start = make_pipeline(take, final), stop
        if len(pairs) == 1:
            return next(iter(pairs.values()))[0], mixture
        fronts = [(name, front) for name, (front, _) in pairs.items()]
        return Pipeline([("side by side", FeatureUnion(fronts))]), mixture

    @property
    def n_features_in_(self) -> int:
        """Number of features of the first part that counts them."""
        if not hasattr(self, "parts_"):
            raise AttributeError("MixtureClassifier is not fitted yet.")
        return next(iter(self.parts_.values())).n_features_in_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self.parts:
            tags.input_tags = get_tags(self.parts[0][1]).input_tags
        return tags


def _takes_several(part):
    """Whether a named classifier predicts several classes of an item."""
    return get_tags(part[1]).target_tags.multi_output


def _list_kinds(y):
    """Return the class (n,) of each row as a number.

    Of several classes, it is the one that is rarest in the rows up to this one.
    """
    if y.ndim == 1:
        return np.unique(y, return_inverse=True)[1]
    n, k = y.shape
    kinds, counts = np.full(n, k), np.zeros(k)
    for i, row in enumerate(y != 0):
        counts += row
        if row.any():
            kinds[i] = np.where(row, counts, np.inf).argmin()
    return kinds


def _take_columns(X, start, stop):
    return X[:, start:stop]


def _adapted_steps(model):
    """Return the names and the steps of a pipeline whose encoder learns."""
    steps = getattr(model, "steps", ())
    return [(name, step) for name, step in steps if hasattr(step, "n_adapted_")]
