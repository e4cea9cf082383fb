"""Laplace approximation of linear logistic models."""

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from .._utils._chunks import chunk_size, chunks
from .._utils._sklearn import check_sample_weight, num_samples, validate_data
from ._logistic import LinearLogistic, SequentialLogisticRegression
from ._softmax import SoftmaxHessian

_L2 = "Use an l2 penalty alone (l1_ratio=0, or penalty='l2' before scikit-learn 1.8)."


def find_obstacle(estimator):
    """Return why a linear logistic model has no normal approximation, or None."""
    if isinstance(estimator, OneVsRestClassifier | MultiOutputClassifier):
        parts = filter(_is_trained, estimator.estimators_)
        return next(filter(None, map(find_obstacle, parts)), None)
    if isinstance(estimator, SGDClassifier):
        if estimator.penalty != "l2":
            return (
                f"has penalty={estimator.penalty!r}, which is no normal prior. Use "
                "penalty='l2'."
            )
        return None if estimator.alpha > 0 else "has no prior. Use an alpha above 0."
    return _find_obstacle_logistic(estimator)


def _find_obstacle_logistic(estimator):
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
        else lambda X, part=part: _repeat(part, X, n_draws)
        for label, part in enumerate(estimator.estimators_)
    ]
    return lambda X: np.stack([draw(X)[:, :, -1] for draw in parts], axis=2)


def _repeat(part, X, n_draws):
    """Return the probabilities of a constant model under each draw, (n, t, 2)."""
    return np.repeat(part.predict_proba(X)[:, None], n_draws, axis=1)


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
        # Only these balance the sums of sample weights, the others the rows.
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
