"""Gradients and decision boundaries of scikit-learn's linear classifiers."""

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import SVC, NuSVC

from ._chunks import (
    LazyRows,
    as_floats,
    chunk_size,
    concatenate_chunks,
    float_rows,
)
from ._labels import is_multi_label


def check_gradient_factors(estimator):
    """Raise a TypeError unless `gradient_factors` works on a fitted estimator."""
    if hasattr(estimator, "gradient_factors") or is_linear_logistic(estimator):
        return
    raise TypeError(
        f"{_describe(estimator)} has no gradient_factors and is no linear logistic "
        "model. Use LogisticRegression, SGDClassifier(loss='log_loss'), a "
        "OneVsRestClassifier of one of these, or an estimator with "
        "gradient_factors(X), such as BertClassifier."
    )


def gradient_factors(estimator, X, proba=None):
    """Return residuals (n, k) and inputs (n, d) of the log loss at the predicted label.

    Row i of the gradient with respect to the weights of the last linear layer is the
    outer product of rows i. The estimator's own `gradient_factors` is used where it has
    one.

    The form is that of a softmax layer for two classes as well. Scikit-learn fits one
    logit there: the norms of its gradients are smaller by the constant factor sqrt(2),
    which changes no order and no ratio. If one-vs-rest scores are normalized to
    probabilities, the residuals are those of a softmax layer that predicts the same
    probabilities. If items have several labels, the loss is the sum of the binary log
    losses of the labels, and the residuals are p - [p > 1/2].
    """
    if hasattr(estimator, "gradient_factors"):
        return estimator.gradient_factors(X)
    check_gradient_factors(estimator)
    residuals = np.array(estimator.predict_proba(X) if proba is None else proba)
    if _predicts_indicators(estimator):
        residuals -= residuals > 0.5
    else:
        rows, best = np.arange(len(residuals)), residuals.argmax(axis=1)
        residuals[rows, best] = 0
        # Rather than p - 1, which is 0 where p rounds to 1.
        residuals[rows, best] = -residuals.sum(axis=1)
    if isinstance(X, LazyRows):
        return residuals, X if X.dtype == np.float16 else float_rows(X)
    if not sparse.issparse(X):
        X = np.asarray(X)
    return residuals, X if X.dtype == np.float16 else as_floats(X)


def check_boundary(estimator):
    """Raise a TypeError unless `boundary_distance` works on a fitted estimator."""
    if hasattr(estimator, "boundary_distance") or _layer(estimator) is not None:
        return
    name = _describe(estimator)
    if isinstance(estimator, SVC | NuSVC) and estimator.kernel == "linear":
        raise TypeError(
            f"{name} with {len(estimator.classes_)} classes votes one-vs-one, so no "
            "linear function belongs to a class. Use LinearSVC, which is one-vs-rest."
        )
    raise TypeError(
        f"{name} has no boundary_distance and is no linear classifier with one row of "
        "coef_ per class. Use LogisticRegression, LinearSVC, SGDClassifier, "
        "RidgeClassifier, Perceptron, LinearDiscriminantAnalysis, a "
        "OneVsRestClassifier of one of these, or an estimator with "
        "boundary_distance(X), such as BertClassifier."
    )


def boundary_distance(estimator, X, n_jobs=1):
    """Return the Euclidean distance (n,) of each item to the nearest decision boundary.

    It is measured in the space of `X` (n, d), and infinite if no change of the item
    changes its prediction. If items have several labels, it is the distance to the
    nearest boundary of any label. The estimator's own `boundary_distance` is used where
    it has one.
    """
    if hasattr(estimator, "boundary_distance"):
        return estimator.boundary_distance(X)
    check_boundary(estimator)
    weights, intercept = _layer(estimator)
    several = _predicts_indicators(estimator)
    measure_scores = distance_to_any if several else distance_from_scores
    X = float_rows(X)
    # In float64, because small differences of scores matter most.
    weights = np.asarray(weights, dtype=np.float64)

    def measure(rows):
        part = X[rows]
        part = part if sparse.issparse(part) else part.astype(np.float64, copy=False)
        return measure_scores(part @ weights.T + intercept, weights)

    size = chunk_size(8 * (X.shape[1] + 4 * len(weights)))
    return concatenate_chunks(measure, X.shape[0], size, n_jobs)


def distance_from_scores(scores, weights):
    """Return the distance (n,) to the nearest boundary of a linear layer.

    `scores` are (n, k) and `weights` (k, d); (n, 1) and (1, d) for two classes. The
    region of a class is an intersection of half-spaces, one per other class, so the
    nearest boundary is the nearest of their hyperplanes.
    """
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
        weights = np.vstack([np.zeros_like(weights), weights])
    between = np.stack([np.linalg.norm(weights - row, axis=1) for row in weights])
    winner = scores.argmax(axis=1)
    ahead = scores.max(axis=1, keepdims=True) - scores
    # Classes with equal weights have no boundary between them: a tie is everywhere
    # (0) or nowhere (infinity).
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(ahead == 0, 0.0, ahead / between[winner])
    distance[np.arange(len(distance)), winner] = np.inf
    return distance.min(axis=1)


def distance_to_any(scores, weights):
    """Return the distance (n,) to the nearest of k independent boundaries.

    `scores` are (n, k) and `weights` (k, d). A label without weights never changes.
    """
    lengths = np.linalg.norm(weights, axis=1)
    distances = np.full(scores.shape, np.inf)
    np.divide(np.abs(scores), lengths, out=distances, where=lengths > 0)
    return distances.min(axis=1)


def is_linear_logistic(estimator):
    """Whether an estimator is a linear model that minimizes a log loss."""
    if isinstance(estimator, OneVsRestClassifier | MultiOutputClassifier):
        return is_linear_logistic(estimator.estimator)
    if isinstance(estimator, SGDClassifier):
        return estimator.loss == "log_loss"
    # LogisticRegression includes LogisticRegressionCV.
    return is_own_logistic(estimator) or isinstance(estimator, LogisticRegression)


def is_own_logistic(estimator):
    """Whether an estimator is one of skactive's own linear logistic models."""
    return getattr(estimator, "_is_linear_logistic", False)


def _layer(estimator):
    """Return weights and intercepts of a linear classifier, one row per class, or None.

    Two classes have one row, whose sign decides.
    """
    if isinstance(estimator, OneVsRestClassifier | MultiOutputClassifier):
        # One class of a label in training leaves a constant, which has no boundary.
        parts = getattr(estimator, "estimators_", [])
        layers = [_layer(part) for part in parts if hasattr(part, "classes_")]
        if not layers or any(layer is None for layer in layers):
            return None
        return tuple(np.concatenate(parts) for parts in zip(*layers, strict=True))
    if not hasattr(estimator, "classes_") or not hasattr(estimator, "coef_"):
        return None
    weights = estimator.coef_
    weights = weights.toarray() if sparse.issparse(weights) else np.atleast_2d(weights)
    k = len(estimator.classes_)
    pairwise = isinstance(estimator, SVC | NuSVC) and k > 2
    if pairwise or weights.ndim != 2 or len(weights) != (1 if k == 2 else k):
        return None
    return weights, np.ones(len(weights)) * estimator.intercept_


def _predicts_indicators(estimator):
    return isinstance(estimator, MultiOutputClassifier) or is_multi_label(estimator)


def _describe(estimator):
    name = type(estimator).__name__
    if isinstance(estimator, SGDClassifier):
        return f"{name}(loss={estimator.loss!r})"
    return name
