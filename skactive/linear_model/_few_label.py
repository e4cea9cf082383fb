"""Linear classifiers for few labels, chosen or tuned by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .._math._calibration import assign_folds, calibrate, shrink_temperature
from .._math._scores import tune_thresholds
from .._utils._bases import BaseEstimator, clone, fit_context
from .._utils._containers import take_rows
from .._utils._format import brief
from .._utils._labels import as_labels, check_classes, check_one_label
from .._utils._repeatable import base_seed, one_blas_thread
from .._utils._sklearn import (
    MOST,
    POSITIVE,
    Interval,
    check_sample_weight,
    naming,
    num_samples,
    validate_data,
)
from ._logistic import LinearLogistic, l_bfgs

# Temperature of the prototypes before calibration: cosines of sentence embeddings of
# one topic differ by a few tenths.
_TEMPERATURE = 0.1
# Inverse strengths of the l2 penalty that are tried, for rows of unit length.
_STRENGTHS = (1.0, 10.0)
# Held-out labels that the temperature 1 counts for.
_PRIOR_LABELS = 10
# Held-out labels that suffice for the comparison.
_ENOUGH = 200
# Second derivative of the log loss in a logit that is typical of trained models, and
# its product with the number of classes and √C, if that is less.
_CURVATURE, _OF_MANY = 0.04, 0.8


_LOGISTIC = {  # strengths, and whether the classes are balanced
    f"{prefix}logistic C={C:g}": (C, bool(prefix))
    for C in _STRENGTHS
    for prefix in ("", "balanced ")
}
CANDIDATES = ("prototypes", "lda", "balanced lda", *_LOGISTIC)


class PrototypeClassifier(LinearLogistic, BaseEstimator):
    r"""Classify by the cosine similarity to the mean of each class.

    The prototype of a class is the mean of its rows, scaled to unit length first, and
    the logit of a class is the cosine with its prototype over `temperature`. One
    example per class suffices.

    Parameters
    ----------
    temperature : float, default=0.1
        The cosines are divided by it. It does not change predictions, only their
        probabilities.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes.
    prototypes_ : ndarray of shape (k, d)
        The prototypes, of unit length.
    coef_ : ndarray of shape (1, d) or (k, d)
        The coefficients of the logits. Two classes have one row, the difference.
    intercept_ : ndarray of shape (1,) or (k,)
        Zeros.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features. Defined only if the columns of `X` have names.

    See Also
    --------
    FewLabelClassifier : Chooses between prototypes and other models.

    Notes
    -----
    The model is linear: rows whose length differs from the quadratic mean of the
    training rows get the same prediction, with probabilities that are flatter or
    sharper. The cost is O(n d).

    References
    ----------
    J. Snell, K. Swersky, R. Zemel (2017). Prototypical networks for few-shot learning.
    NeurIPS.

    Examples
    --------
    >>> from skactive.linear_model import PrototypeClassifier
    >>> model = PrototypeClassifier().fit([[1, 0], [0, 2]], ["east", "north"])
    >>> model.predict([[3, 1], [1, 2]]).tolist()
    ['east', 'north']
    """

    _parameter_constraints = {"temperature": [POSITIVE]}

    def __init__(self, temperature: float = 0.1) -> None:
        self.temperature = temperature

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the prototypes.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training data.
        y : array-like of shape (n,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n,) or None, default=None
            Weight of each row in the mean of its class. Defaults to 1.

        Returns
        -------
        self : PrototypeClassifier
            The fitted estimator.

        Raises
        ------
        TypeError
            For an indicator matrix. `OneVsRestClassifier` trains a model per label.
        ValueError
            For labels of one class, or a negative weight.
        """
        data = _read(self, X, y, sample_weight)
        self.prototypes_, intercept = _fit_prototypes(data)
        coef = self.prototypes_ / (self.temperature * _length(data))
        return self._set(data.classes, coef, intercept)


class FewLabelClassifier(LinearLogistic, BaseEstimator):
    r"""Linear classifier chosen by cross-validation on the labels.

    The candidates are prototypes, linear discriminant analysis with a shrunk covariance
    and logistic regression with two strengths, the last two with the class frequencies
    of the labels or with equal ones. The one with the lowest log loss on
    held-out labels is trained on all labels. A temperature, fitted to the same held-out
    logits, calibrates its probabilities.

    With few labels per class prototypes tend to win, with more the others: the model
    changes as the labels grow, and nothing has to be set.

    Parameters
    ----------
    candidates : sequence of str or None, default=None
        Names of the candidates: "prototypes", "lda", "balanced lda", "logistic C=1",
        "balanced logistic C=1", "logistic C=10", "balanced logistic C=10". Defaults to
        all. A single one is trained without cross-validation or temperature.
    n_splits : int, default=5
        Number of folds. They keep the proportions of the classes. A class with a single
        example is never held out. Folds beyond 200 labels are not held out.
    random_state : int, RandomState instance or None, default=None
        Determines the folds.
    tol : float, default=1e-6
        The optimization of a logistic regression stops when it expects to decrease the
        mean objective by less than `tol` / 2.

    Attributes
    ----------
    chosen_ : str
        Name of the candidate that was chosen: a key of `scores_`, or the first of
        `candidates` if no class has two examples.
    scores_ : dict of str to float
        Log loss of each candidate on held-out labels, in nats. Empty if nothing was
        compared.
    temperature_ : float
        The logits of the chosen candidate are divided by it. Its logarithm is that of
        the best one for h held-out labels, times h / (h + 10).
    classes_ : ndarray of shape (k,)
        The classes.
    coef_ : ndarray of shape (1, d) or (k, d)
        The coefficients of the logits. Two classes have one row.
    intercept_ : ndarray of shape (1,) or (k,)
        The intercepts.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features. Defined only if the columns of `X` have names.

    See Also
    --------
    skactive.semi_supervised.SelfTraining : Uses unlabeled data as well.

    Notes
    -----
    It is meant for embeddings of about unit length, such as those of
    ``BertFeatures(normalize=True)``. Other features are divided by the quadratic mean
    of the lengths of the training rows; they should have comparable scales.

    C is the inverse strength of an l2 penalty on one vector of coefficients per class,
    as in scikit-learn for three or more classes. Two classes have two vectors here as
    well, where scikit-learn has one: C=10 is ``LogisticRegression(C=20)``. The
    optimization stops early; probabilities are up to 0.01 from those at the optimum.

    Ledoit and Wolf's formula gives the shrinkage of the covariance. All folds and
    strengths of the logistic regressions take their steps together: each product with
    `X` serves all of them.

    References
    ----------
    O. Ledoit, M. Wolf (2004). A well-conditioned estimator for large-dimensional
    covariance matrices. Journal of Multivariate Analysis.

    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural
    networks. ICML.

    Examples
    --------
    >>> from skactive.linear_model import FewLabelClassifier
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = FewLabelClassifier(random_state=0).fit(X[:50], y[:50])
    >>> print(f"accuracy with 50 labels: {model.score(X[50:], y[50:]):.2f}")
    accuracy with 50 labels: 0.79
    """

    _parameter_constraints = {
        "candidates": ["array-like", None],
        "n_splits": [Interval(Integral, 2, MOST, closed="both")],
        "random_state": ["random_state"],
        "tol": [POSITIVE],
    }

    def __init__(
        self,
        *,
        candidates: Sequence[str] | None = None,
        n_splits: int = 5,
        random_state: int | np.random.RandomState | None = None,
        tol: float = 1e-6,
    ) -> None:
        self.candidates = candidates
        self.n_splits = n_splits
        self.random_state = random_state
        self.tol = tol

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose a model by cross-validation and train it on all labels.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training data.
        y : array-like of shape (n,)
            Labels of at least two classes. One example per class suffices.
        sample_weight : array-like of shape (n,) or None, default=None
            Weight of each row's loss, in training and in the choice. Defaults to 1.

        Returns
        -------
        self : FewLabelClassifier
            The fitted estimator.

        Raises
        ------
        TypeError
            For an indicator matrix. `OneVsRestClassifier` trains a model per label.
        ValueError
            For labels of one class, a negative weight or an unknown candidate.
        """
        names = self._check_candidates()
        data = _read(self, X, y, sample_weight)
        length = _length(data)
        data = replace(data, X=data.X / length)
        folds = assign_folds(data.codes, self.n_splits, base_seed(self.random_state))
        n_held = np.bincount(folds[folds >= 0]).cumsum()
        folds[folds > np.searchsorted(n_held, _ENOUGH)] = -1
        held = np.flatnonzero(folds >= 0)
        tuned = {}
        with one_blas_thread():
            if held.size and len(names) > 1:
                for name, logits in _hold_out(data, folds, names):
                    tuned[name] = calibrate(
                        logits[held], data.codes[held], data.weight[held]
                    )
            self.scores_ = {name: loss for name, (loss, _) in tuned.items()}
            self.chosen_ = min(tuned, key=self.scores_.__getitem__, default=names[0])
            self.temperature_ = 1.0
            if tuned:
                temperature = tuned[self.chosen_][1]
                self.temperature_ = shrink_temperature(
                    temperature, held.size, _PRIOR_LABELS
                )
            coef, intercept = _fit_candidate(data, self.chosen_, self.tol)
        scale = 1 / self.temperature_
        return self._set(data.classes, coef * (scale / length), intercept * scale)

    def _check_candidates(self):
        """Return the names of the candidates, in the order of `CANDIDATES`."""
        if self.candidates is None:
            return CANDIDATES
        candidates = list(self.candidates)
        unknown = [name for name in candidates if str(name) not in CANDIDATES]
        if unknown or not candidates:
            raise ValueError(
                f"'candidates' must be names among {', '.join(map(repr, CANDIDATES))}, "
                f"got {brief(candidates)}. Leave it out to try all."
            )
        return [name for name in CANDIDATES if name in candidates]


@dataclass(frozen=True)
class _Data:
    """Rows `X` (n, d), `codes` (n,) of their classes (k,) and weights (n,)."""

    X: NDArray
    codes: NDArray
    weight: NDArray
    classes: NDArray

    @property
    def k(self):
        return len(self.classes)

    def take(self, rows):
        return replace(
            self, X=self.X[rows], codes=self.codes[rows], weight=self.weight[rows]
        )


def _read(estimator, X, y, sample_weight):
    """Return the training data of an estimator, checked."""
    check_one_label(y, estimator)
    X, y = validate_data(estimator, X, y, dtype=[np.float64, np.float32])
    check_classes(y, estimator)
    weight = check_sample_weight(
        sample_weight, X, dtype=X.dtype, ensure_non_negative=True
    )
    used = weight > 0
    X, y, weight = X[used], y[used], weight[used]
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        got = f"one class, {classes[0]!r}" if len(classes) else "no weight above 0"
        raise ValueError(
            f"'y' must hold at least two classes with weights above 0, got {got}. "
            "Label more items."
        )
    return _Data(X, codes, weight, classes)


def _unit(X):
    """Scale rows to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths == 0, 1, lengths)


def _length(data):
    """Return the quadratic mean of the lengths of rows, 1 if all are 0."""
    mean = np.average(np.square(data.X).sum(axis=1), weights=data.weight)
    return np.sqrt(mean) or 1.0


def _means(data):
    """Return the weighted mean (k, d) of each class."""
    share = np.zeros((data.k, len(data.X)), dtype=data.X.dtype)
    share[data.codes, np.arange(len(data.X))] = data.weight
    return (share / share.sum(axis=1, keepdims=True)) @ data.X


def _fit_prototypes(data):
    """Return coefficients (k, d) and intercepts (k,) of the cosines."""
    coef = _unit(_means(replace(data, X=_unit(data.X))))
    return coef, np.zeros(data.k, dtype=coef.dtype)


def _fit_lda(data):
    """Return coefficients (k, d) and intercepts (k,) for classes of equal frequency."""
    means = _means(data)
    residuals = data.X - means[data.codes]
    covariance = _shrink(residuals, data.weight)
    coef = cho_solve(cho_factor(covariance, check_finite=False), means.T).T
    return coef, -0.5 * (coef * means).sum(axis=1)


def _shrink(residuals, weight):
    """Return Ledoit and Wolf's estimate (d, d) of the covariance of centered rows."""
    total = weight.sum()
    n, d = total**2 / np.square(weight).sum(), residuals.shape[1]
    covariance = (residuals * (weight / total)[:, None]).T @ residuals
    scale = np.trace(covariance) / d
    size = np.square(covariance).sum()
    spread = size - d * scale**2
    noise = (weight / total) @ np.square(np.square(residuals).sum(axis=1)) - size
    shrinkage = 1.0 if spread <= 0 else min(1.0, max(0.0, noise) / (n * spread))
    covariance *= 1 - shrinkage
    # The last term only matters if all rows of each class are equal.
    covariance[np.diag_indices(d)] += shrinkage * scale + 1e-6
    return covariance


def _fit_logistic(data, weights, C, max_iter=200, tol=1e-6, dtype=None):
    """Return coefficients (m, k, d) and intercepts (m, k) of m logistic regressions.

    Regression j has the weights `weights` (m, n)[j] and the strength `C` (m,)[j]. Each
    objective is divided by its total weight. Rows are centered and the unknowns are the
    coefficients times L, where L Lᵀ approximates the Hessian of one class, so that few
    steps are enough. All regressions take them together.
    """
    dtype = dtype or data.X.dtype
    X, k, m = data.X.astype(dtype, copy=True), data.k, len(weights)
    n, d = X.shape
    weights = (weights / weights.sum(axis=1, keepdims=True)).astype(dtype)
    penalty = (1 / (np.asarray(C) * data.weight.sum())).astype(dtype)
    own = slice(None), data.codes, np.arange(n)

    # L Lᵀ = Xᵀ diag(curvature) X + shared I, and X becomes X L⁻ᵀ. Its last column is
    # that of the intercepts, which are scaled alike.
    root = float(np.exp(np.log(C).mean() / 2))
    typical = min(_CURVATURE, _OF_MANY / (k * root))
    mean = weights.mean(axis=0) @ X
    X -= mean
    curvature = typical * weights.mean(axis=0)
    shared = np.exp(np.log(penalty).mean())
    scaled = X * np.sqrt(curvature)[:, None]
    hessian = scaled.T @ scaled
    hessian[np.diag_indices(d)] += shared
    factor = cholesky(hessian, lower=True, check_finite=False)
    Xt = solve_triangular(factor, X.T, lower=True, check_finite=False)
    X = np.full((n, d + 1), typical**-0.5, dtype=dtype)
    X[:, :d] = Xt.T
    relative = (penalty / shared)[:, None, None]
    pull = relative * curvature

    def gradient(x):
        proba = (x.reshape(m * k, d + 1) @ X.T).reshape(m, k, n)
        # With v = Lᵀw: shared |w|² = |v|² - (X v)ᵀ diag(curvature) (X v). The products
        # of intercepts with other columns are 0, and those with themselves cancel.
        pulled = proba * pull
        proba -= proba.max(axis=1, keepdims=True)
        np.exp(proba, out=proba)
        proba *= (weights / proba.sum(axis=1))[:, None]
        proba[own] -= weights
        proba -= pulled
        gradients = (proba.reshape(m * k, n) @ X).reshape(m, k, d + 1)
        gradients += relative * x.reshape(m, k, d + 1)
        return gradients.reshape(m, -1)

    start = np.zeros((m, k * (d + 1)), dtype=dtype)
    scale = min(1, k * typical)  # from p (1 - p) at the start to the typical value
    parameters, _ = l_bfgs(
        gradient, start, lambda x, g, slope: slope > -tol, scale, max_iter=max_iter
    )
    parameters = parameters.reshape(m, k, d + 1)
    coef = parameters[:, :, :d].reshape(m * k, d).T
    coef = solve_triangular(factor, coef, lower=True, trans="T", check_finite=False)
    coef = coef.T.reshape(m, k, d).astype(data.X.dtype)
    return coef, X[0, d] * parameters[:, :, d] - coef @ mean.astype(coef.dtype)


def _balance(data, weights):
    """Return weights (m, n) whose sums over the classes are equal."""
    sums = np.stack([np.bincount(data.codes, w, data.k) for w in weights])
    share = weights.sum(axis=1, keepdims=True) / data.k
    sums = np.where(sums == 0, np.inf, sums)  # a class may be missing in a fold
    return weights * (share / sums)[:, data.codes]


def _log_shares(data):
    """Return the logarithms of the shares of the classes (k,) in the weights."""
    shares = np.bincount(data.codes, weights=data.weight) / data.weight.sum()
    return np.log(shares).astype(data.X.dtype)


def _fit_candidate(data, name, tol=1e-6):
    """Return coefficients (k, d) and intercepts (k,) of a candidate on all labels."""
    if name == "prototypes":
        coef, intercept = _fit_prototypes(data)
        return coef * (1 / _TEMPERATURE), intercept
    if name in _LOGISTIC:
        C, balanced = _LOGISTIC[name]
        weights = data.weight[None]
        if balanced:
            weights = _balance(data, weights)
        coef, intercept = _fit_logistic(data, weights, [C], tol=tol)
        return coef[0], intercept[0]
    coef, intercept = _fit_lda(data)
    return coef, intercept + (name == "lda") * _log_shares(data)


def _hold_out(data, folds, names):
    """Yield the names of candidates and their logits (n, k) on held-out labels.

    Rows of fold -1 are never held out; their logits are NaN.
    """
    numbers = range(folds.max() + 1)
    log_shares = _log_shares(data)
    for fit, scale, shifts in (
        (_fit_prototypes, 1 / _TEMPERATURE, {"prototypes": 0}),
        (_fit_lda, 1, {"lda": log_shares, "balanced lda": 0}),
    ):
        if shifts.keys().isdisjoint(names):
            continue
        parts = (fit(data.take(folds != fold)) for fold in numbers)
        logits = scale * _predict_folds(data, folds, parts)
        yield from ((name, logits + shifts[name]) for name in shifts if name in names)

    # All folds and all logistic regressions at once. Few steps rank them as many do.
    logistic = [name for name in _LOGISTIC if name in names]
    if not logistic:
        return
    masks = np.array([folds != fold for fold in numbers]) * data.weight
    weights, strengths = [], []
    for C, balanced in map(_LOGISTIC.get, logistic):
        weights.append(_balance(data, masks) if balanced else masks)
        strengths += [C] * len(masks)
    weights = np.concatenate(weights)
    models = _fit_logistic(data, weights, strengths, max_iter=8, dtype=np.float32)
    models = zip(*models, strict=True)
    for name in logistic:
        yield name, _predict_folds(data, folds, islice(models, len(masks)))


def _predict_folds(data, folds, models):
    """Return logits (n, k) of each fold by its model, a pair of (k, d) and (k,)."""
    logits = np.full((len(folds), data.k), np.nan)
    for fold, (coef, intercept) in enumerate(models):
        test = folds == fold
        logits[test] = data.X[test] @ coef.T + intercept
    return logits


class TunedOneVsRestClassifier(OneVsRestClassifier):
    """Train one classifier per label, with thresholds tuned by cross-validation.

    Rare labels rarely have a probability above 0.5, and balanced class weights predict
    too many labels when there are many training items. This classifier keeps the plain
    probabilities and predicts the labels whose probability is above a threshold.

    Parameters
    ----------
    estimator : estimator
        A binary classifier with `predict_proba`. For rows of unit length,
        `LogisticRegression(C=10)` was more accurate than C=1 or C=30.
    cv : int, default=3
        Number of folds for the thresholds, at most the number of items. The estimators
        are trained `cv` + 1 times.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds.
    n_jobs : int or None, default=None
        Number of labels that are trained in parallel, as in
        :class:`~sklearn.multiclass.OneVsRestClassifier`. The models that tune the
        thresholds are trained one after the other.
    verbose : int, default=0
        As in :class:`~sklearn.multiclass.OneVsRestClassifier`.

    Attributes
    ----------
    thresholds_ : ndarray of shape (k,)
        A label is predicted if its probability is above its threshold. 0.5 for targets
        with one class per item, which are predicted as by the base class, and if there
        are fewer than 2 items.
    classes_, estimators_, label_binarizer_
        As in :class:`~sklearn.multiclass.OneVsRestClassifier`.

    See Also
    --------
    skactive.make_text_classifier : Uses it with `multi_label=True`.
    skactive.bert.BertClassifier : `thresholds="auto"` tunes those of an encoder.

    Notes
    -----
    The threshold of a label is the mean of two: the one with the best F1 of the label,
    weighted by the number of its positive items, and a common one, weighted by 30. The
    common threshold predicts as many labels as `y` has. The probabilities are those
    that the models of the other folds predict.

    References
    ----------
    R.-E. Fan, C.-J. Lin (2007). A study on threshold selection for multi-label
    classification. Technical report, National Taiwan University.

    J. Read, B. Pfahringer, G. Holmes, E. Frank (2011). Classifier chains for
    multi-label classification. Machine Learning 85 (the common threshold).

    Examples
    --------
    With a strong penalty, hardly any probability is above 0.5. Lower thresholds help:

    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.metrics import f1_score
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from skactive.linear_model import TunedOneVsRestClassifier
    >>> X, Y = make_multilabel_classification(
    ...     300, n_classes=8, n_labels=1, random_state=0
    ... )
    >>> for kind in [OneVsRestClassifier, TunedOneVsRestClassifier]:
    ...     model = kind(LogisticRegression(C=0.01)).fit(X[:100], Y[:100])
    ...     f1 = f1_score(Y[100:], model.predict(X[100:]), average="micro")
    ...     print(f"{kind.__name__}: F1 {f1:.1f}")
    OneVsRestClassifier: F1 0.1
    TunedOneVsRestClassifier: F1 0.5
    """

    _parameter_constraints = {
        **OneVsRestClassifier._parameter_constraints,
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        cv: int = 3,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(estimator, n_jobs=n_jobs, verbose=verbose)
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Train the estimators, and tune the thresholds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The training items.
        y : array-like or sparse matrix of shape (n, k)
            An indicator matrix; or one class per item, of shape (n,).
        **fit_params : dict
            As in :class:`~sklearn.multiclass.OneVsRestClassifier`, with metadata
            routing. The models that tune the thresholds are trained without them.

        Returns
        -------
        self : TunedOneVsRestClassifier
        """
        if not sparse.issparse(y):
            y = as_labels(y, num_samples(X))
        with naming("y"):
            type_of_target(y, raise_unknown=True)
        with naming("X"):
            super().fit(X, y, **fit_params)
        self.thresholds_ = np.full(len(self.classes_), 0.5)
        n = num_samples(X)
        if self.multilabel_ and n > 1:
            Y = self.label_binarizer_.transform(y).toarray()
            folds = KFold(min(self.cv, n), shuffle=True, random_state=self.random_state)
            self.thresholds_ = tune_thresholds(self._hold_out(X, Y, folds), Y)
        return self

    def predict(self, X: Any) -> NDArray:
        """Predict the labels whose probability is above their threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The items.

        Returns
        -------
        y : ndarray of shape (n, k), or (n,) for one class per item
            An indicator matrix of int, or classes.
        """
        check_is_fitted(self)
        if not self.multilabel_:
            return super().predict(X)
        return (self.predict_proba(X) > self.thresholds_).astype(int)

    def predict_proba(self, X: Any) -> NDArray:
        """See :class:`~sklearn.multiclass.OneVsRestClassifier`."""
        with naming("X"):
            return super().predict_proba(X)

    def _hold_out(self, X, Y, folds):
        """Return the probabilities (n, k) that models without an item predict for it.

        A label that is the same for all items of a fold's training part is predicted
        as such.
        """
        proba = np.empty(Y.shape)
        for train, test in folds.split(Y):
            X_train, X_test = take_rows(X, train), take_rows(X, test)
            for j, y in enumerate(Y[train].T):
                if y.min() == y.max():
                    proba[test, j] = y[0]
                    continue
                model = clone(self.estimator).fit(X_train, y)
                proba[test, j] = model.predict_proba(X_test)[:, 1]
        return proba


_OF_DESCRIPTIONS = "balanced logistic C=10"


def agreement(described, labeled):
    """Return how much higher a model scores the given labels than the other classes.

    It is trained on `described`, a tuple of rows, labels and weights, and applied to
    those of `labeled` whose classes are described.
    """
    X, y, weight = described
    classes, codes = np.unique(y, return_inverse=True)
    data = _Data(X, codes, weight, classes)
    length = _length(data)
    with one_blas_thread():
        coef, intercept = _fit_candidate(replace(data, X=X / length), _OF_DESCRIPTIONS)
    rows = np.flatnonzero(np.isin(labeled[1], classes))
    scores = labeled[0][rows] @ coef.T / length + intercept
    own = scores[np.arange(len(rows)), np.searchsorted(classes, labeled[1][rows])]
    others = (scores.sum(axis=1) - own) / (len(classes) - 1)
    return float((labeled[2][rows] * (own - others)).sum())


def held_out_loss(labeled, described, folds):
    """Return the log loss of held-out labels in nats, their number, and the hits.

    `labeled` and `described` are tuples of rows, labels and weights; the described rows
    are never held out. `folds` (n,) are the labeled rows' folds. The loss is the sum at
    the best temperature. Classes that the other rows lack share the probability that
    Good and Turing give to what has not been seen.
    """
    X, y, weight = map(np.concatenate, zip(labeled, described, strict=True))
    n_classes = len(np.unique(y))
    folds = np.concatenate([folds, np.full(len(described[1]), -1)])
    used = weight > 0
    classes, codes = np.unique(y[used], return_inverse=True)
    data, folds = _Data(X[used], codes, weight[used], classes), folds[used]
    data = replace(data, X=data.X / _length(data))
    held = np.flatnonzero(folds >= 0)
    counts = np.bincount(codes)
    among = np.array([(codes[folds == folds[i]] == codes[i]).sum() for i in held])
    is_new = counts[codes[held]] == among if held.size else np.zeros(0, dtype=bool)
    seen, n_new = held[~is_new], int(is_new.sum())
    loss, n_right = 0.0, 0
    if seen.size:
        with one_blas_thread():
            ((_, logits),) = _hold_out(data, folds, [_OF_DESCRIPTIONS])
        mean, _ = calibrate(logits[seen], codes[seen], data.weight[seen])
        loss = mean * data.weight[seen].sum()
        n_right = int((logits[seen].argmax(axis=1) == codes[seen]).sum())
    n_unseen = n_classes - len(classes) + bool(n_new)
    if n_unseen:
        new = ((counts == 1).sum() + 0.5) / (len(codes) + 1)
        loss -= np.log1p(-new) * data.weight[seen].sum()
        loss -= np.log(new / n_unseen) * data.weight[held[is_new]].sum()
    return float(loss), len(held), n_right
