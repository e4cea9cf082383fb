"""Normal posteriors of linear models: Laplace approximation, and ridge regression."""

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.special import expit, softmax
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from .._math._neighbors import squared_norms
from .._math._softmax import SoftmaxHessian
from .._utils._chunks import chunk_size, chunks
from .._utils._sklearn import check_sample_weight, num_samples, validate_data
from ._logistic import LinearLogistic, SequentialLogisticRegression

_L2 = "Use an l2 penalty alone (l1_ratio=0, or penalty='l2' before scikit-learn 1.8)."


def find_logistic_obstacle(estimator):
    """Return why a linear logistic model has no normal approximation, or None."""
    if isinstance(estimator, OneVsRestClassifier | MultiOutputClassifier):
        parts = filter(_is_trained, estimator.estimators_)
        return next(filter(None, map(find_logistic_obstacle, parts)), None)
    if isinstance(estimator, SGDClassifier):
        return _find_obstacle_of_sgd(estimator)
    return _find_obstacle_of_logistic(estimator)


def _find_obstacle_of_sgd(estimator):
    if estimator.penalty != "l2":
        return (
            f"has penalty={estimator.penalty!r}, which is no normal prior. Use "
            "penalty='l2'."
        )
    return None if estimator.alpha > 0 else "has no prior. Use an alpha above 0."


def _find_obstacle_of_logistic(estimator):
    if isinstance(estimator, SequentialLogisticRegression):
        return None
    if isinstance(estimator, LinearLogistic):
        return "is not at the minimum of a log loss. Use LogisticRegression."
    penalty = getattr(estimator, "penalty", "deprecated")
    ratio = getattr(estimator, "l1_ratio_", getattr(estimator, "l1_ratio", None))
    if penalty is None or np.max(_inverse_penalty(estimator)) == np.inf:
        return (
            "has no penalty, so no prior, and where the classes can be separated no "
            "posterior. Use a finite C and an l2 penalty."
        )
    # Before scikit-learn 1.8 l1_ratio is used only if penalty is 'elasticnet'.
    mixed = penalty != "l2" and any(share not in (None, 0) for share in np.ravel(ratio))
    if penalty == "l1" or mixed:
        return f"has an l1 penalty, which is no normal prior. {_L2}"
    k, way = len(estimator.classes_), getattr(estimator, "multi_class", "auto")
    one_vs_rest = way == "ovr" or estimator.solver == "liblinear"
    if (k > 2 and one_vs_rest) or (k == 2 and way == "multinomial"):
        return (
            f"has multi_class={way!r} and solver={estimator.solver!r} for {k} classes, "
            "a deprecated combination. Leave multi_class at its default, or use "
            "OneVsRestClassifier(LogisticRegression())."
        )
    return None


def draw_linear(estimator, n_draws, rng, X, y=None, sample_weight=None):
    """Return a function that maps `X` (n, d) to probabilities (n, t, k) under t models.

    The weights are drawn from the normal distribution around the fitted ones whose
    precision is the Hessian of the loss. `X` (m, d), `y` (m,) and `sample_weight` (m,)
    are the training data; `y` None stands for the predicted labels. For several labels,
    `y` is (m, k), and the models of the labels vary independently of each other.
    """
    check_is_fitted(estimator)
    if _has_one_model_per_label(estimator):
        return _draw_labels(estimator, n_draws, rng, X, y, sample_weight)
    X = _check_features(estimator, X)
    if y is not None:
        y = np.asarray(y)
        if y.shape != X.shape[:1]:
            raise ValueError(
                f"'y_train' must have a label for each of the {X.shape[0]} rows of "
                f"X_train, got shape {y.shape}."
            )
        if not np.isin(y, estimator.classes_).all():
            raise ValueError(
                "y_train holds labels that the estimator was not trained on; it knows "
                f"{estimator.classes_.tolist()}."
            )
    weight = check_sample_weight(sample_weight, X, dtype=np.float64)
    rows, intercepts = [], []
    for mean, hessian in _approximate(estimator, X, y, weight):
        drawn = hessian.sample(n_draws, rng, dtype=X.dtype)  # (t, q, d + 1)
        drawn += mean.astype(X.dtype)
        width = X.shape[1]
        rows.append(drawn[..., :width])
        no_intercept = np.zeros(drawn.shape[:2], dtype=X.dtype)
        intercepts.append(drawn[..., -1] if hessian.intercept else no_intercept)
    # Concatenated only if there are several, because this copies.
    weights = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)
    intercept = np.concatenate(intercepts, axis=1)
    one_vs_rest = len(rows) > 1
    if weights.shape[1] > 1 and not one_vs_rest:
        # A softmax depends only on differences to one class: one product less.
        weights = weights[:, 1:] - weights[:, :1]
        intercept = intercept[:, 1:] - intercept[:, :1]
    return _LinearDraws(estimator, weights, intercept, one_vs_rest)


def _has_one_model_per_label(estimator):
    """Whether a linear logistic model is trained on an indicator matrix."""
    one_vs_rest = isinstance(estimator, OneVsRestClassifier) and estimator.multilabel_
    return one_vs_rest or isinstance(estimator, MultiOutputClassifier)


def _is_trained(part):
    """Whether a model of one label has seen items with it and without it."""
    return hasattr(part, "classes_")


def _draw_labels(estimator, n_draws, rng, X, y, sample_weight):
    """Return a function that maps `X` to probabilities of k labels, (n, t, k)."""
    if y is None:
        y = estimator.predict(X)
    y = y if sparse.issparse(y) else np.asarray(y)
    if y.shape != (num_samples(X), len(estimator.estimators_)):
        raise ValueError(
            f"'y_train' must be an indicator matrix of shape ({num_samples(X)}, "
            f"{len(estimator.estimators_)}), got shape {y.shape}."
        )
    parts = [
        draw_linear(part, n_draws, rng, X, y[:, label], sample_weight)
        if _is_trained(part)
        else lambda X, p=part: np.repeat(p.predict_proba(X)[:, None], n_draws, axis=1)
        for label, part in enumerate(estimator.estimators_)
    ]
    return lambda X: np.stack([draw(X)[:, :, -1] for draw in parts], axis=2)


class _LinearDraws:
    """Probabilities under t linear models with q logits, (t, q, d) and (t, q)."""

    def __init__(self, estimator, weights, intercept, one_vs_rest):
        self.estimator = estimator
        self.n_draws, self.n_logits, d = weights.shape
        flat = weights.swapaxes(0, 1).reshape(-1, d)
        self.weights = np.ascontiguousarray(flat.T)  # (d, q t)
        self.intercept = intercept.T.ravel()
        self.one_vs_rest = one_vs_rest

    def __call__(self, X):
        X = _check_features(self.estimator, X)
        weights = self.weights.astype(X.dtype, copy=False)
        intercept = self.intercept.astype(X.dtype)
        n, t, q = X.shape[0], self.n_draws, self.n_logits
        k = q + (not self.one_vs_rest)
        draws = np.empty((n, t, k), dtype=X.dtype)
        # Small chunks, so that intermediate results stay in the cache.
        for rows in chunks(n, chunk_size(2 * X.dtype.itemsize * t * k, 2**21)):
            logits = X[rows] @ weights
            logits += intercept
            c = len(logits)
            # Class by class, because sums over a short last axis are slow.
            by_class = np.zeros((k, c, t), dtype=X.dtype)
            by_class[k - q :] = logits.reshape(c, q, t).swapaxes(0, 1)
            if self.one_vs_rest:
                _normalize_sigmoids(by_class)
            else:
                _normalize_exponentials(by_class)
            for j in range(k):
                draws[rows, :, j] = by_class[j]
        return draws


def _normalize_exponentials(logits):
    """Softmax over the first axis, in place."""
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits *= 1 / logits.sum(axis=0)


def _normalize_sigmoids(logits):
    """Sigmoids over their sum over the first axis, in place."""
    expit(logits, out=logits)
    total = logits.sum(axis=0)
    logits[:, total == 0] = 1
    total[total == 0] = len(logits)
    logits /= total


def _check_features(estimator, X):
    return validate_data(
        estimator, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
    )


def _approximate(estimator, X, y, weight):
    """Yield means (q, d + 1) and Hessians of independent parts of the weights."""
    if isinstance(estimator, OneVsRestClassifier):
        # For two classes it trains one model, of the second class.
        positive = estimator.classes_[-len(estimator.estimators_) :]
        for part, label in zip(estimator.estimators_, positive, strict=True):
            of_part = None if y is None else (y == label).astype(int)
            yield from _approximate(part, X, of_part, weight)
        return
    coef = estimator.coef_
    coef = coef.toarray() if sparse.issparse(coef) else coef
    coef = np.asarray(coef, dtype=np.float64)
    intercept = np.ones((len(coef), 1)) * np.reshape(estimator.intercept_, (-1, 1))
    logits = np.asarray(X @ coef.T + intercept.ravel())
    mean = np.hstack([coef, intercept]) if estimator.fit_intercept else coef
    prior = _read_prior(estimator, X.shape[0])
    if y is None and estimator.class_weight is not None:
        y = estimator.predict(X)
    softmaxes = LogisticRegression | SequentialLogisticRegression
    if len(coef) > 1 and isinstance(estimator, softmaxes):
        of_rows = weight * _class_weights(estimator, y, weight)
        proba = softmax(logits, axis=1)
        yield mean, SoftmaxHessian(X, proba, sample_weight=of_rows, **prior)
        return
    for j in range(len(coef)):
        label = None if len(coef) == 1 else estimator.classes_[j]
        of_rows = weight * _class_weights(estimator, y, weight, label)
        proba = expit(logits[:, j])
        part = SoftmaxHessian(X, proba, sample_weight=of_rows, **prior)
        yield mean[j : j + 1], part


def _read_prior(estimator, m):
    """Return the precisions of weights and intercepts, as in `SoftmaxHessian`."""
    prior = {"intercept": estimator.fit_intercept, "intercept_penalty": 0.0}
    if isinstance(estimator, SGDClassifier):
        return {**prior, "penalty": estimator.alpha * m}  # of a mean loss
    prior["penalty"] = 1 / float(np.max(_inverse_penalty(estimator)))
    if getattr(estimator, "solver", None) == "liblinear":
        # The intercept is the weight of a constant feature, penalized like any other.
        prior["intercept_penalty"] = prior["penalty"] / estimator.intercept_scaling**2
    return prior


def _inverse_penalty(estimator):
    return estimator.C_ if isinstance(estimator, LogisticRegressionCV) else estimator.C


def _class_weights(estimator, y, sample_weight, positive=None):
    """Return the weight of each row's class in the loss, (m,).

    With one problem per class, scikit-learn's stochastic descent weights the rows of
    its positive class only.
    """
    how = estimator.class_weight
    if how is None:
        return 1.0
    classes = estimator.classes_
    codes = np.searchsorted(classes, y)
    if how == "balanced":
        # Only these models balance sums of sample weights; others count the rows.
        weighted = isinstance(
            estimator, SequentialLogisticRegression | LogisticRegression
        )
        counts = np.bincount(
            codes, weights=sample_weight if weighted else None, minlength=len(classes)
        )
        # A class without rows has no weight.
        weights = counts.sum() / (len(classes) * np.where(counts > 0, counts, np.inf))
    else:
        weights = compute_class_weight(how, classes=classes, y=classes)
    weights = weights[codes]
    return weights if positive is None else np.where(y == positive, weights, 1.0)


_EVIDENCE = (BayesianRidge, ARDRegression)  # these keep their posterior
_SQUARES = (Ridge, RidgeCV, LinearRegression, SGDRegressor)


def is_linear_regressor(estimator):
    """Whether an estimator is a linear regressor with a normal posterior."""
    if isinstance(estimator, SGDRegressor):
        return estimator.loss == "squared_error"
    return isinstance(estimator, _EVIDENCE + _SQUARES)


def find_ridge_obstacle(estimator):
    """Return why a fitted linear regressor has no normal posterior, or None."""
    if np.ndim(estimator.coef_) == 2 and len(estimator.coef_) > 1:
        return "predicts several outputs. Train one regressor for each."
    if getattr(estimator, "positive", False):
        return "has positive=True, which is no normal prior. Use positive=False."
    if isinstance(estimator, SGDRegressor):
        return _find_obstacle_of_sgd(estimator)
    if isinstance(estimator, LinearRegression):
        rank = getattr(estimator, "rank_", np.size(estimator.coef_))
        if rank < np.size(estimator.coef_):
            return "has more weights than its training rows determine. Use Ridge."
    if not np.all(getattr(estimator, "alpha", 1)):
        return "has alpha=0, which is no prior. Use an alpha above 0."
    return None


def needs_training_rows(estimator):
    """Whether the posterior is computed from the training data."""
    return not isinstance(estimator, _EVIDENCE)


class NormalPosterior:
    """Normal distribution of the weights w of f(x) = b + w x around the fitted ones.

    The covariance of w is `scale * (V diag(spread) V' + outside * (I - V V'))` for
    orthonormal columns V (d, r). f has the mean `predict(x)` and this covariance of
    x - center. The value at the center has the variance `level`, independently.
    """

    def __init__(self, estimator, X=None, y=None, sample_weight=None):
        check_is_fitted(estimator)
        self.estimator = estimator
        self.columns = slice(None)  # of the features; an ARD model drops some
        if needs_training_rows(estimator):
            self._approximate(X, y, sample_weight)
        else:
            self._read()

    def sample(self, n_draws, rng):
        """Return a function that maps `X` (n, d) to predictions (n, t) of t models."""
        z = rng.standard_normal((len(self.center), n_draws))
        inside = self.axes.T @ z
        inside *= (np.sqrt(self.spread) - np.sqrt(self.outside))[:, None]
        change = np.sqrt(self.scale) * (np.sqrt(self.outside) * z + self.axes @ inside)
        level = np.sqrt(self.level) * rng.standard_normal(n_draws)
        level -= self.center @ change

        def draw(X):
            mean = np.ravel(self.estimator.predict(X)).astype(np.float64)
            moved = safe_sparse_dot(self._prepare(X), change, dense_output=True)
            return mean[:, None] + moved + level

        return draw

    def variance(self, X):
        """Return the variance (n,) of the function's value at `X` (n, d)."""
        X = self._prepare(X)
        along = safe_sparse_dot(X, self.axes, dense_output=True)
        along -= self.center @ self.axes
        variance = along**2 @ self.spread
        if self.outside and self.axes.shape[1] < len(self.center):
            lengths = squared_norms(X) + self.center @ self.center
            lengths -= 2 * safe_sparse_dot(X, self.center)
            variance += self.outside * np.maximum(lengths - squared_norms(along), 0)
        return self.scale * variance + self.level

    def _prepare(self, X):
        X = validate_data(
            self.estimator,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
        )
        return X[:, self.columns]

    def _read(self):
        """Read the posterior that the estimator has computed."""
        model = self.estimator
        if isinstance(model, ARDRegression):
            self.columns = np.flatnonzero(model.lambda_ < model.threshold_lambda)
        offset = np.broadcast_to(model.X_offset_, np.shape(model.coef_))
        self.center = np.asarray(offset, dtype=np.float64)[self.columns]
        values, self.axes = eigh(np.asarray(model.sigma_, dtype=np.float64))
        self.spread = np.maximum(values, 0)
        self.scale, self.outside, self.level = 1.0, 0.0, 0.0

    def _approximate(self, X, y, sample_weight):
        """Compute the posterior for the noise that the residuals have."""
        model = self.estimator
        X = self._prepare(X)
        m, d = X.shape
        y = np.asarray(y, dtype=np.float64)
        if y.shape != (m,):
            raise ValueError(
                f"'y_train' must hold a number for each of the {m} rows of X_train, "
                f"got shape {y.shape}."
            )
        weight = check_sample_weight(sample_weight, X, dtype=np.float64)
        centered = getattr(model, "fit_intercept", True)
        total = weight.sum()
        mean = np.asarray(weight @ X).ravel() / total
        self.center = mean if centered else np.zeros(d)
        penalty = _penalty(model, m)
        values, self.axes = _principal_axes(X, weight, self.center, dual=d > m)
        self.spread = 1 / (values + penalty)
        self.outside = 1 / penalty if self.axes.shape[1] < d else 0.0
        n_used = values @ self.spread + centered
        residuals = y - np.ravel(model.predict(X))
        noise = weight @ residuals**2 / max(1.0, m - n_used)
        # An exact fit leaves no noise, on which the order does not depend.
        least = np.finfo(np.float64).eps * (weight @ y**2 / total or 1.0)
        self.scale = max(noise, least)
        self.level = self.scale / total if centered else 0.0


def _penalty(model, m):
    """Return the factor of the squared weights in the sum of squared errors."""
    if isinstance(model, LinearRegression):
        return 0.0
    if isinstance(model, SGDRegressor):
        return model.alpha * m  # its loss is a mean
    alpha = model.alpha_ if isinstance(model, RidgeCV) else model.alpha
    return float(np.ravel(alpha)[0])


def _principal_axes(X, weight, center, *, dual):
    """Return the eigenvalues (r,) and -vectors (d, r) of the rows' scatter matrix.

    With `dual`, they come from the matrix of the rows' inner products (m, m), and those
    of eigenvalue 0 are left out.
    """
    root = np.sqrt(weight)[:, None]
    X = X.multiply(root).tocsr() if sparse.issparse(X) else X * root
    if not dual:
        scatter = safe_sparse_dot(X.T, X, dense_output=True).astype(np.float64)
        values, axes = eigh(scatter - (weight.sum() * center)[:, None] * center)
        return np.maximum(values, 0), axes
    across = np.asarray(X @ center)
    inner = safe_sparse_dot(X, X.T, dense_output=True).astype(np.float64)
    inner += (center @ center) * root * root.T - across[:, None] * root.T
    inner -= across * root
    values, vectors = eigh(inner)
    used = values > len(values) * np.finfo(np.float64).eps * values.max(initial=0)
    values, vectors = values[used], vectors[:, used] / np.sqrt(values[used])
    axes = safe_sparse_dot(X.T, vectors, dense_output=True)
    return values, axes - np.outer(center, root[:, 0] @ vectors)
