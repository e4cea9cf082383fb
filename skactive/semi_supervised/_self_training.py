"""SelfTraining: pseudo-labels of unlabeled data, used where they help."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._math._calibration import assign_folds, calibrate, shrink_temperature
from .._utils._bases import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    available_if,
    fit_context,
)
from .._utils._containers import (
    concatenate,
    count_items,
    read_items,
    read_unlabeled,
    take_rows,
)
from .._utils._labels import as_labels, check_classes, check_one_label
from .._utils._linear import (
    boundary_distance,
    check_boundary,
    check_gradient_factors,
    gradient_factors,
)
from .._utils._pipelines import (
    delegated,
    estimator_has,
    fit_last,
    of_estimator,
    seeded_clone,
)
from .._utils._repeatable import base_seed, one_blas_thread, round_rng
from .._utils._sklearn import (
    POSITIVE,
    POSITIVE_INT,
    HasMethods,
    StrOptions,
    check_sample_weight,
    naming,
)
from ..linear_model import FewLabelClassifier

_ROUGH = 3e-4  # the `tol` of linear models that are only compared


def _passes(check):
    """Whether a function that raises accepts the fitted estimator."""

    def accepts(self):
        check(getattr(self, "estimator_", self.estimator))
        return True

    return accepts


class Calibrated(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Predictions of `estimator_`, with probabilities softened by `temperature_`."""

    temperature_: float

    def predict(self, X: Any) -> NDArray:
        """Predict labels.

        Parameters
        ----------
        X : container of n texts

        Returns
        -------
        y : ndarray of shape (n,)
        """
        return self._delegate("predict", X)

    def predict_proba(self, X: Any) -> NDArray:
        """Predict class probabilities.

        Parameters
        ----------
        X : container of n texts

        Returns
        -------
        proba : ndarray of shape (n, k)
        """
        return soften(self._delegate("predict_proba", X), self.temperature_)

    def _delegate(self, method, X):
        check_is_fitted(self)
        with naming("X"):
            return getattr(self.estimator_, method)(X)

    decision_function = delegated("decision_function")
    transform = delegated("transform")
    n_features_in_ = of_estimator("n_features_in_")
    feature_names_in_ = of_estimator("feature_names_in_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


class SelfTraining(Calibrated):
    """Classifier that learns from unlabeled data as well, where this helps.

    A teacher, trained on the labels, predicts the unlabeled items. Its most confident
    predictions, equally many of each class, become pseudo-labels, and `estimator` is
    trained on labels and pseudo-labels together. Cross-validation on the labels decides
    whether the result is used: if the pseudo-labels do not lower the log loss of
    held-out labels, the better one of the teacher and of `estimator` on the labels
    alone is used.

    Parameters
    ----------
    estimator : classifier
        Trained on labels and pseudo-labels. Its `fit` takes `sample_weight`.
    teacher : classifier or None, default=None
        Predicts the pseudo-labels. If its `fit`, or that of a pipeline's last step,
        takes `X_unlabeled`, it gets the unlabeled items. Defaults to `estimator`,
        trained on the labels.
    pseudo_per_label : float, default=10.0
        Number of pseudo-labels per label. At most half of the unlabeled items get one.
    weight : float, default=1.0
        Total weight of the pseudo-labels, relative to that of the labels.
    sample_size : int, default=2000
        Number of unlabeled items that are used. They are drawn at random if there are
        more.
    cv : int, splitter, iterable or None, default=3
        Number of folds of the choice; a splitter of scikit-learn, such as
        `GroupKFold()`; or pairs of positions of training and held-out labels. A pair
        whose training labels are of one class is left out. With None nothing is
        compared: pseudo-labels are used if there are unlabeled items, else `estimator`
        on the labels.
    max_folds : int or None, default=None
        Number of the folds that are held out, one after the other. Defaults to all. 1
        compares on a single split, for an `estimator` that is expensive to train.
    compare : {"all", "teacher"}, default="all"
        What the folds compare: the teacher, `estimator` on the labels and `estimator`
        on labels and pseudo-labels; or only the first two, in which case pseudo-labels
        are used if the teacher is the better one. This halves the trainings of an
        expensive `estimator`, and needs a `teacher`.
    random_state : int, RandomState instance or None, default=None
        Determines the folds, the unlabeled items that are used and each `random_state`
        of `estimator` and `teacher` that is None.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier that predicts: a clone of `estimator` or, if `chosen_` is
        "teacher", of `teacher`, whose class and attributes may be others.
    chosen_ : {"pseudo-labels", "labels", "teacher"}
        What `estimator_` was trained on or, for "teacher", that it is the teacher.
    scores_ : dict of str to float
        Log loss on held-out labels, in nats, at the best temperature; a key for each of
        the choices. Empty if nothing was compared.
    temperature_ : float
        The logarithms of the probabilities of `estimator_` are divided by it. It is
        between 1 and the best one for the held-out labels (for pseudo-labels with
        `compare="teacher"` that of `estimator` on the labels), see Notes; 1 if nothing
        was compared, or for a `FewLabelClassifier` as the teacher, which has its own.
    pseudo_labels_ : ndarray of shape (n_pseudo_labels,)
        The pseudo-labels, empty if none were used.
    classes_ : ndarray of shape (k,)
        The classes.

    See Also
    --------
    sklearn.semi_supervised.SelfTrainingClassifier : Adds confident pseudo-labels in
        several rounds, without weights or a comparison.

    Notes
    -----
    The comparison trains the teacher once and the estimator twice for each fold that is
    held out, or once with `compare="teacher"`. A `FewLabelClassifier` as the teacher
    chooses its model once, on all labels; in the folds it is trained less exactly, and
    only once if `estimator` is the same model. Classes with a single example are never
    held out; without two examples of a class nothing is compared and no pseudo-labels
    are used.

    The logarithm of the temperature is that of the best one, times h / (h + 50) for h
    held-out labels. Few labels, and those that a strategy asked for, say little about
    the best temperature of other items.

    References
    ----------
    D.-H. Lee (2013). Pseudo-label: the simple and efficient semi-supervised learning
    method for deep neural networks. ICML workshop on challenges in representation
    learning.

    C. Schröder, G. Heyer (2024). Self-training for sample-efficient active learning for
    text classification with pre-trained language models. EMNLP.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skactive.semi_supervised import SelfTraining
    >>> X, y = load_digits(return_X_y=True)
    >>> X /= 16
    >>> model = SelfTraining(LogisticRegression(), random_state=0)
    >>> model = model.fit(X[:40], y[:40], X_unlabeled=X[40:1000])
    >>> model.chosen_
    'pseudo-labels'
    >>> bool(model.score(X[1000:], y[1000:]) > 0.8)
    True
    """

    __metadata_request__fit = {"X_unlabeled": True}
    _parameter_constraints = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "teacher": [HasMethods(["fit", "predict_proba"]), None],
        "pseudo_per_label": [POSITIVE],
        "weight": [POSITIVE],
        "sample_size": [POSITIVE_INT],
        "cv": ["cv_object"],
        "max_folds": [POSITIVE_INT, None],
        "compare": [StrOptions({"all", "teacher"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        teacher: Any = None,
        pseudo_per_label: float = 10.0,
        weight: float = 1.0,
        sample_size: int = 2000,
        cv: Any = 3,
        max_folds: int | None = None,
        compare: Literal["all", "teacher"] = "all",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.teacher = teacher
        self.pseudo_per_label = pseudo_per_label
        self.weight = weight
        self.sample_size = sample_size
        self.cv = cv
        self.max_folds = max_folds
        self.compare = compare
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        X_unlabeled: Any = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Train on labels and, where they help, on pseudo-labels.

        Parameters
        ----------
        X : container of n items
            Items that `estimator` accepts.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the labels. Defaults to 1.
        X_unlabeled : container of items or None, default=None
            Items without labels, in a container of the same kind. Texts that are in `X`
            are left out. Rows of numbers are not compared: leave out those that have a
            label, or the folds learn from the held-out rows, though not from their
            labels. By default, or without items, only the labels are used.
        groups : array-like of shape (n,) or None, default=None
            Groups of the labels, passed to the splitter in `cv`.

        Returns
        -------
        self : SelfTraining
            The fitted estimator.

        Raises
        ------
        TypeError
            For an indicator matrix. `OneVsRestClassifier` trains a model per label.
            If the unlabeled items are of another kind than `X`, or the `fit` of
            `estimator` takes no `sample_weight` and there are unlabeled items.
        ValueError
            For `compare="teacher"` without a teacher.
        """
        seed = base_seed(self.random_state)
        X, n = read_items(X)
        targets = as_labels(y, n)
        check_one_label(targets, self)
        check_classes(targets, self)
        weight = check_sample_weight(
            sample_weight, np.empty((n, 0)), ensure_non_negative=True
        )
        used = np.flatnonzero(weight)
        splits = self._split(targets, used, groups, seed)
        if len(used) < n:
            X, targets, weight = take_rows(X, used), targets[used], weight[used]
        self.classes_ = np.unique(targets)
        labels = X, targets, weight
        pool = self._draw_pool(X, X_unlabeled, seed)
        if pool is not None:
            self._check_takes_weights()
        if self.compare == "teacher" and self.teacher is None:
            raise ValueError(
                "'teacher' must be a classifier to compare with it, got None. Pass "
                "one, or compare='all'."
            )

        # Compare on held-out labels, then train what was best on all labels.
        self.scores_: dict[str, float] = {}
        self.temperature_ = 1.0
        compares = self.cv is not None
        self.chosen_ = "labels" if pool is None or compares else "pseudo-labels"
        teacher: Any = None
        if compares or pool is not None or self.teacher is None:
            teacher = self._train(self._teacher, labels, seed, pool)
        if compares:
            self._compare(teacher, labels, pool, seed, splits)
        self.pseudo_labels_ = targets[:0]
        if self.chosen_ == "pseudo-labels":
            rows, self.pseudo_labels_ = self._choose(teacher, pool, n)
            labels = self._join(labels, pool, rows, self.pseudo_labels_)
        elif self.chosen_ == "teacher" or self.teacher is None:
            self.estimator_ = teacher
            return self
        self.estimator_ = self._train(self.estimator, labels, seed)
        return self

    def _split(self, y, used, groups, seed):
        """Return pairs of positions among the used rows: of training, and held out."""
        if self.cv is None:
            return []
        if isinstance(self.cv, Integral):
            codes = np.unique(y[used], return_inverse=True)[1]
            folds = assign_folds(codes, self.cv, seed)
            each = range(folds.max() + 1)
            return [tuple(map(np.flatnonzero, (folds != i, folds == i))) for i in each]
        index_of, splits = np.full(len(y), -1), []
        index_of[used] = np.arange(len(used))
        for pair in check_cv(self.cv, y, classifier=True).split(y, y, groups):
            train, test = (index_of[each][index_of[each] >= 0] for each in pair)
            if len(test) and len(np.unique(y[used[train]])) > 1:
                splits.append((train, test))
        return splits

    @property
    def _teacher(self):
        return self.estimator if self.teacher is None else self.teacher

    def _check_takes_weights(self):
        """Raise a TypeError unless pseudo-labels can have a weight."""
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(
                "'estimator' must have a fit with sample_weight to learn from pseudo-"
                f"labels, got {type(self.estimator).__name__}. Pass another one; of a "
                "pipeline, wrap only the last step."
            )

    def _draw_pool(self, X, X_unlabeled, seed):
        """Return at most `sample_size` items without labels, or None."""
        pool = read_unlabeled(X_unlabeled, X)
        if pool is None or (n := count_items(pool)) <= self.sample_size:
            return pool
        rng = round_rng(seed, 0, "unlabeled")
        rows = rng.choice(n, self.sample_size, replace=False)
        return take_rows(pool, np.sort(rows))

    def _train(self, model, labels, seed, pool=None):
        """Return a fitted clone of `estimator` or of the teacher."""
        X, y, weight = labels
        rng = np.random.default_rng([seed, model is not self.estimator])
        params = {} if (weight == 1).all() else {"sample_weight": weight}
        return fit_last(seeded_clone(model, rng), X, y, pool, **params)

    def _choose(self, teacher, pool, n):
        """Return rows of the pool and their pseudo-labels, equally many per class."""
        proba = _predict_proba(teacher, pool)
        best, k = proba.argmax(axis=1), proba.shape[1]
        n_each = max(1, int(min(self.pseudo_per_label * n, len(proba) / 2) / k))
        # Items of each class by their probability, highest first.
        order = np.lexsort([-proba[np.arange(len(best)), best], best])
        first = np.searchsorted(best[order], np.arange(k))
        rank = np.arange(len(best)) - first[best[order]]
        rows = np.sort(order[rank < n_each])
        return rows, teacher.classes_[best[rows]]

    def _join(self, labels, pool, rows, pseudo_labels):
        """Return items, labels and weights with the pseudo-labels."""
        X, y, weight = labels
        share = self.weight * weight.sum() / len(rows)
        return (
            concatenate(X, take_rows(pool, rows)),
            np.concatenate([y, pseudo_labels]),
            np.concatenate([weight, np.full(len(rows), share)]),
        )

    def _compare(self, teacher, labels, pool, seed, splits):
        """Set `scores_`, `temperature_` and `chosen_`.

        `teacher` is trained on all labels. The folds use the model that it has chosen.
        """
        template, student = self._teacher, _rough(self.estimator)
        if isinstance(teacher, FewLabelClassifier):
            template = _rough(template).set_params(candidates=[teacher.chosen_])
        X, y, weight = labels
        codes = np.searchsorted(self.classes_, y)
        splits = splits[: self.max_folds]
        if not splits:
            return
        held = np.unique(np.concatenate([test for _, test in splits]))
        same = self.teacher is None or _same_model(template, student)
        names = [] if self.teacher is None else ["teacher"]
        with_pseudo = pool is not None and self.compare == "all"
        names += ["labels", "pseudo-labels"] if with_pseudo else ["labels"]
        log_proba = {name: np.empty((len(y), len(self.classes_))) for name in names}
        for train, test in splits:
            part = take_rows(X, train), y[train], weight[train]
            models = {"labels": self._train(student, part, seed)}
            models["teacher"] = models["labels"]
            if not same:
                models["teacher"] = self._train(template, part, seed, pool)
            if with_pseudo:
                rows = self._choose(models["teacher"], pool, len(train))
                part = self._join(part, pool, *rows)
                models["pseudo-labels"] = self._train(student, part, seed)
            for name in names:
                proba = np.zeros((len(test), len(self.classes_)))
                columns = np.searchsorted(self.classes_, models[name].classes_)
                proba[:, columns] = _predict_proba(models[name], take_rows(X, test))
                log_proba[name][test] = log_of(proba)
        calibrations = {
            name: calibrate(values[held], codes[held], weight[held])
            for name, values in log_proba.items()
        }
        self.scores_ = {name: loss for name, (loss, _) in calibrations.items()}
        self.chosen_ = min(self.scores_, key=self.scores_.get)
        # A teacher that has chosen its model is calibrated already.
        calibrated = self.chosen_ == "teacher" and template is not self.teacher
        if self.chosen_ == "teacher" and pool is not None and not with_pseudo:
            self.chosen_, calibrated = "pseudo-labels", False
            calibrations[self.chosen_] = calibrations["labels"]
        if not calibrated:
            temperature = calibrations[self.chosen_][1]
            self.temperature_ = shrink_temperature(temperature, held.size)

    @available_if(estimator_has("sample_proba"))
    def sample_proba(
        self, X: Any, n_draws: int | None = None, random_state: Any = None
    ) -> NDArray:
        """Return posterior samples of `estimator_`.

        Parameters
        ----------
        X : container of n items
            Items that `estimator` accepts.
        n_draws : int or None, default=None
            Number of samples. Defaults to that of `estimator_`.
        random_state : int, RandomState instance or None, default=None
            Seeds the samples.

        Returns
        -------
        draws : ndarray of shape (n, n_draws, k)
        """
        check_is_fitted(self)
        return self.estimator_.sample_proba(X, n_draws, random_state)

    @available_if(_passes(check_gradient_factors))
    def gradient_factors(self, X: Any) -> tuple[NDArray, NDArray]:
        """Return the factors of the gradient of the log loss at the predicted label.

        Parameters
        ----------
        X : container of n items
            Items that `estimator` accepts.

        Returns
        -------
        residuals : ndarray of shape (n, k)
            Probabilities minus the indicator of the predicted class.
        inputs : ndarray of shape (n, d)
            Inputs of the last linear layer of `estimator_`.
        """
        check_is_fitted(self)
        return gradient_factors(self.estimator_, X)

    @available_if(_passes(check_boundary))
    def boundary_distance(self, X: Any) -> NDArray:
        """Return the distance to the nearest decision boundary of `estimator_`.

        Parameters
        ----------
        X : container of n items
            Items that `estimator` accepts.

        Returns
        -------
        distance : ndarray of shape (n,)
        """
        check_is_fitted(self)
        return boundary_distance(self.estimator_, X)


def _rough(model):
    """Return a clone of a `FewLabelClassifier` that is trained less exactly."""
    if isinstance(model, FewLabelClassifier):
        return clone(model).set_params(tol=max(model.tol, _ROUGH))
    return model


def _predict_proba(model, X):
    """Return probabilities; those of linear models do not depend on the threads."""
    with one_blas_thread(isinstance(model, FewLabelClassifier)):
        return model.predict_proba(X)


def _same_model(one, other):
    """Whether two classifiers, the first with one candidate, train the same one."""
    return (
        type(one) is type(other) is FewLabelClassifier
        and np.array_equal(one.candidates, other.candidates)
        and one.tol == other.tol
    )


def soften(proba, temperature):
    """Return probabilities whose logarithms are divided by a temperature."""
    if temperature == 1:
        return proba
    return np.exp(log_softmax(log_of(proba) / temperature, axis=1))


def log_of(proba):
    """Return the logarithm of probabilities, finite for those of 0."""
    return np.log(np.maximum(proba, 1e-9))
