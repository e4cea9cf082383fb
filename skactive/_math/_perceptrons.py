"""Many perceptrons side by side: one matrix product serves all of them.

A perceptron is a single linear layer and a softmax. The weights of t of them have the
shape (d, t, k), their biases (t, k).
"""

import numpy as np
from scipy import sparse

from .._utils._chunks import chunks

# Adam, with the constants of its authors.
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8


def start_perceptrons(n_features, n_members, n_classes, rng, dtype=np.float64):
    """Draw weights for perceptrons, and set their biases to 0.

    Parameters
    ----------
    n_features, n_members, n_classes : int
        d, t and k.
    rng : numpy.random.Generator
    dtype : numpy dtype, default=numpy.float64

    Returns
    -------
    weights : ndarray of shape (d, t, k)
        Uniform within sqrt(6 / (d + k)) of 0.
    biases : ndarray of shape (t, k)

    References
    ----------
    X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward
    neural networks", AISTATS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._perceptrons import start_perceptrons
    >>> weights, biases = start_perceptrons(5, 3, 2, np.random.default_rng(0))
    >>> weights.shape, biases.shape
    ((5, 3, 2), (3, 2))
    """
    limit = np.sqrt(6 / (n_features + n_classes))
    weights = rng.uniform(-limit, limit, (n_features, n_members, n_classes))
    return weights.astype(dtype), np.zeros((n_members, n_classes), dtype=dtype)


def perceptron_proba(X, weights, biases):
    """Class probabilities of each perceptron for each row.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    weights : ndarray of shape (d, t, k)
    biases : ndarray of shape (t, k)

    Returns
    -------
    proba : ndarray of shape (n, t, k)

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._perceptrons import perceptron_proba
    >>> weights, biases = np.array([[[0.0, 1.0], [0.0, -1.0]]]), np.zeros((2, 2))
    >>> perceptron_proba(np.array([[0.0], [np.log(3)]]), weights, biases)[1].round(6)
    array([[0.25, 0.75],
           [0.75, 0.25]])
    """
    flat = weights.reshape(weights.shape[0], -1)
    proba = np.asarray(X @ flat).reshape(-1, *biases.shape)
    proba += biases
    proba -= proba.max(axis=2, keepdims=True)
    np.exp(proba, out=proba)
    proba /= proba.sum(axis=2, keepdims=True)
    return proba


def loss_gradients(X, codes, weights, biases, sample_weight=None):
    """Gradients of each perceptron's mean log loss over some rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    codes : ndarray of int, shape (n,)
        Column of each row's class.
    weights : ndarray of shape (d, t, k)
    biases : ndarray of shape (t, k)
    sample_weight : ndarray of shape (n,) or None, default=None
        Factor of each row's loss; None is 1.

    Returns
    -------
    of_weights : ndarray of shape (d, t, k)
    of_biases : ndarray of shape (t, k)

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._perceptrons import loss_gradients
    >>> loss_gradients(
    ...     np.array([[4.0]]), np.array([0]), np.zeros((1, 1, 2)), np.zeros((1, 2))
    ... )
    (array([[[-2.,  2.]]]), array([[-0.5,  0.5]]))
    """
    n = X.shape[0]
    residuals = perceptron_proba(X, weights, biases)
    residuals[np.arange(n), :, codes] -= 1
    if sample_weight is not None:
        residuals *= sample_weight[:, None, None]
    residuals /= n
    of_weights = np.asarray(X.T @ residuals.reshape(n, -1)).reshape(weights.shape)
    return of_weights, residuals.sum(axis=0)


def train_perceptrons(
    X,
    codes,
    weights,
    biases,
    rng,
    *,
    sample_weight=None,
    dropout=0.0,
    n_steps=500,
    batch_size=50,
    learning_rate=0.01,
):
    """Train perceptrons on the log loss by Adam.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (m, d)
        Divided by its root mean square, so that one learning rate suits features of
        any size.
    codes : ndarray of int, shape (m,)
        Column of each row's class.
    weights : ndarray of shape (d, t, k)
        Where to start, for the features as divided.
    biases : ndarray of shape (t, k)
    rng : numpy.random.Generator
        Shuffles the rows, the same way for all, and chooses what is dropped, for each
        perceptron by itself.
    sample_weight : ndarray of shape (m,) or None, default=None
        Factor of each row's loss; None is 1.
    dropout : float, default=0.0
        Share of the features that a perceptron does not see in a step.
    n_steps : int, default=500
        Steps of training.
    batch_size : int, default=50
        Rows of a step; a pass over all rows may end in fewer.
    learning_rate : float, default=0.01

    Returns
    -------
    weights : ndarray of shape (d, t, k)
        For `X` as it was given.
    biases : ndarray of shape (t, k)

    References
    ----------
    D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._perceptrons import (
    ...     perceptron_proba, start_perceptrons, train_perceptrons
    ... )
    >>> rng = np.random.default_rng(0)
    >>> X, codes = np.array([[-1.0], [1.0]]), np.array([0, 1])
    >>> trained = train_perceptrons(X, codes, *start_perceptrons(1, 3, 2, rng), rng)
    >>> perceptron_proba(X, *trained).argmax(axis=2)
    array([[0, 0, 0],
           [1, 1, 1]])
    """
    d, t, _ = weights.shape
    size = _root_mean_square(X)
    X = X / weights.dtype.type(size)
    parameters = [weights.copy(), biases.copy()]
    means = [np.zeros_like(values) for values in parameters]
    squares = [np.zeros_like(values) for values in parameters]
    if sample_weight is None:
        sample_weight = np.ones(X.shape[0])
    sample_weight = np.asarray(sample_weight, dtype=weights.dtype)
    batches = _draw_batches(X.shape[0], batch_size, rng)
    for step in range(1, n_steps + 1):
        rows = next(batches)
        # What a perceptron drops, it drops for all rows of the step: that is a mask
        # of its weights, and one product still serves all perceptrons.
        kept = _draw_mask(d, t, dropout, rng).astype(weights.dtype)
        of_weights, of_biases = loss_gradients(
            X[rows],
            codes[rows],
            parameters[0] * kept,
            parameters[1],
            sample_weight[rows],
        )
        of_weights *= kept
        for values, gradient, mean, square in zip(
            parameters, (of_weights, of_biases), means, squares, strict=True
        ):
            mean += (1 - FIRST_DECAY) * (gradient - mean)
            square += (1 - SECOND_DECAY) * (gradient * gradient - square)
            spread = np.sqrt(square / (1 - SECOND_DECAY**step)) + EPSILON
            values -= (learning_rate / (1 - FIRST_DECAY**step)) * mean / spread
    return parameters[0] / weights.dtype.type(size), parameters[1]


def _draw_batches(m, size, rng):
    """Yield rows in random order, pass after pass, without end."""
    while True:
        order = rng.permutation(m)
        for part in chunks(m, size):
            yield order[part]


def _draw_mask(d, t, dropout, rng):
    """Draw 0 for what is dropped, and for the rest what keeps the mean."""
    if dropout == 0:
        return np.ones((1, 1, 1))
    return (rng.random((d, t, 1)) >= dropout) / (1 - dropout)


def _root_mean_square(X):
    """Root of the mean square of all numbers in a matrix; 1 if all are 0."""
    values = X.data if sparse.issparse(X) else X
    total = np.square(values, dtype=np.float64).sum()
    return np.sqrt(total / max(1, X.shape[0] * X.shape[1])) or 1.0
