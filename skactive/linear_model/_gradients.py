"""What linear classifiers of scikit-learn know of their gradients and boundaries."""

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, NuSVC

from .._utils._chunks import as_floats, chunk_size, float_rows, map_chunks
from ._logistic import SequentialLogisticRegression


def check_gradient_factors(estimator):
    """Raise unless `gradient_factors` works on an estimator; do no work.

    Parameters
    ----------
    estimator : estimator
        Fitted.

    Raises
    ------
    TypeError
        Says what would work.
    """
    is_logistic = is_linear_logistic(estimator) and not _is_multilabel(estimator)
    if hasattr(estimator, "gradient_factors") or is_logistic:
        return
    raise TypeError(
        f"{_describe(estimator)} has no gradient_factors and is no linear logistic "
        "model. Use LogisticRegression, SGDClassifier(loss='log_loss'), a "
        "OneVsRestClassifier of one of these, or an estimator with "
        "gradient_factors(X), such as BertClassifier."
    )


def gradient_factors(estimator, X, proba=None):
    """Factors of the gradient of the log loss at the predicted label.

    For item i the gradient with respect to the weights of the last linear layer is
    the outer product of rows i of both factors.

    Parameters
    ----------
    estimator : estimator
        Fitted; with a method `gradient_factors`, which is then asked, or a linear
        logistic model of scikit-learn.
    X : array-like or sparse matrix of shape (n, d), or what the method takes
        What the estimator takes.
    proba : ndarray of shape (n, k) or None, default=None
        Its `predict_proba(X)`, where that is known already.

    Returns
    -------
    residuals : ndarray of shape (n, k)
        Probabilities less the indicator of the likeliest class.
    inputs : ndarray or CSR matrix of shape (n, d)
        `X` itself; floating-point numbers are not copied. No constant column.

    Notes
    -----
    The form is that of a softmax layer for two classes as well. Scikit-learn fits
    one logit there: the norms of its gradients are smaller by the constant factor
    sqrt(2), which changes no order and no ratio. Where one-vs-rest scores are
    normalised to probabilities (`SGDClassifier` and `OneVsRestClassifier` with three
    classes and more), the residuals are those of a softmax layer that predicts the
    same probabilities.

    Examples
    --------
    >>> from skactive.linear_model._gradients import gradient_factors
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    >>> residuals, inputs = gradient_factors(model, [[0.0], [3.0]])
    >>> residuals.round(3)
    array([[-0.5  ,  0.5  ],
           [ 0.117, -0.117]])
    >>> inputs
    array([[0.],
           [3.]])
    """
    if hasattr(estimator, "gradient_factors"):
        return estimator.gradient_factors(X)
    check_gradient_factors(estimator)
    residuals = np.array(estimator.predict_proba(X) if proba is None else proba)
    residuals[np.arange(len(residuals)), residuals.argmax(axis=1)] -= 1
    if not sparse.issparse(X):
        X = np.asarray(X)
    return residuals, X if X.dtype == np.float16 else as_floats(X)


def check_boundary(estimator):
    """Raise unless `boundary_distance` works on an estimator; do no work.

    Parameters
    ----------
    estimator : estimator
        Fitted.

    Raises
    ------
    TypeError
        Says what would work.
    """
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
    """Distance of each item to the nearest decision boundary.

    Parameters
    ----------
    estimator : estimator
        Fitted; with a method `boundary_distance`, which is then asked, or a linear
        classifier of scikit-learn.
    X : array-like or sparse matrix of shape (n, d), or what the method takes
        What the estimator takes.
    n_jobs : int, default=1
        Threads for the products of a linear classifier.

    Returns
    -------
    distance : ndarray of shape (n,)
        Euclidean, in the space of `X` for a linear classifier; infinite where no
        change of the item changes its prediction.

    Examples
    --------
    >>> from skactive.linear_model._gradients import boundary_distance
    >>> from sklearn.svm import LinearSVC
    >>> model = LinearSVC().fit([[-1.0], [1.0]], [0, 1])
    >>> boundary_distance(model, [[0.0], [3.0]]).round(6)
    array([0., 3.])
    """
    if hasattr(estimator, "boundary_distance"):
        return estimator.boundary_distance(X)
    check_boundary(estimator)
    weights, intercept = _layer(estimator)
    X = float_rows(X)
    # In float64: what matters most are the small differences of scores.
    weights = np.asarray(weights, dtype=np.float64)

    def measure(rows):
        part = X[rows]
        part = part if sparse.issparse(part) else part.astype(np.float64, copy=False)
        return distance_from_scores(part @ weights.T + intercept, weights)

    size = chunk_size(8 * (X.shape[1] + 4 * len(weights)))
    parts = map_chunks(measure, X.shape[0], size, n_jobs)
    return np.concatenate(parts) if parts else np.empty(0)


def distance_from_scores(scores, weights):
    """Distance to the nearest boundary of a linear layer.

    Parameters
    ----------
    scores : ndarray of shape (n, k), or (n, 1) for two classes
        What the layer gives; the highest wins, a single one by its sign.
    weights : ndarray of shape (k, d), or (1, d) for two classes
        Its weights.

    Returns
    -------
    distance : ndarray of shape (n,)
        The region of a class is an intersection of half-spaces, one per other class,
        so the nearest boundary is the nearest of their hyperplanes.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.linear_model._gradients import distance_from_scores
    >>> distance_from_scores(np.array([[5.0], [0.0]]), np.array([[3.0, 4.0]]))
    array([1., 0.])
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


def is_linear_logistic(estimator):
    """Whether this is a linear model that minimises a log loss.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.

    Returns
    -------
    is_linear_logistic : bool
    """
    if isinstance(estimator, OneVsRestClassifier):
        return is_linear_logistic(estimator.estimator)
    if isinstance(estimator, SGDClassifier):
        return estimator.loss == "log_loss"
    # The CV variant is one, too.
    return isinstance(estimator, LogisticRegression | SequentialLogisticRegression)


def _layer(estimator):
    """Weights and intercepts of a linear classifier, one row per class, else None.

    Two classes have one row, whose sign decides.
    """
    if isinstance(estimator, OneVsRestClassifier) and not _is_multilabel(estimator):
        layers = [_layer(part) for part in getattr(estimator, "estimators_", [])]
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


def _is_multilabel(estimator):
    return getattr(estimator, "multilabel_", False)


def _describe(estimator):
    name = type(estimator).__name__
    if isinstance(estimator, SGDClassifier):
        return f"{name}(loss={estimator.loss!r})"
    return name
