"""Many perceptrons at once, with one matrix product for all of them.

A perceptron is a single linear layer and a softmax. The weights of t of them have the
shape (d, t, k), their biases (t, k).
"""

import numpy as np
from scipy import sparse

from .._utils._chunks import chunks

# Adam, with the constants of its authors.
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8


def start_perceptrons(n_features, n_members, n_classes, rng, dtype=np.float64):
    """Draw Glorot-uniform weights (d, t, k) for perceptrons, and biases (t, k) of 0."""
    limit = np.sqrt(6 / (n_features + n_classes))
    weights = rng.uniform(-limit, limit, (n_features, n_members, n_classes))
    return weights.astype(dtype), np.zeros((n_members, n_classes), dtype=dtype)


def perceptron_proba(X, weights, biases):
    """Return class probabilities (n, t, k) of the perceptrons for X (n, d)."""
    flat = weights.reshape(weights.shape[0], -1)
    proba = np.asarray(X @ flat).reshape(-1, *biases.shape)
    proba += biases
    proba -= proba.max(axis=2, keepdims=True)
    np.exp(proba, out=proba)
    proba /= proba.sum(axis=2, keepdims=True)
    return proba


def loss_gradients(X, codes, weights, biases, sample_weight=None):
    """Return gradients (d, t, k), (t, k) of the mean log losses on X (n, d)."""
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
    """Train perceptrons on X (m, d) by Adam: weights (d, t, k), biases (t, k).

    `X` is divided by its root mean square, so that one learning rate suits features of
    any size. `rng` shuffles the rows, in the same way for all perceptrons, and draws
    the dropped features of each.
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
        # A perceptron drops the same features for all rows of the step. This is a
        # mask of its weights, so one product serves all perceptrons.
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
    """Yield batches of rows in random order, pass after pass, without end."""
    while True:
        order = rng.permutation(m)
        for part in chunks(m, size):
            yield order[part]


def _draw_mask(d, t, dropout, rng):
    """Return a dropout mask whose mean is 1."""
    if dropout == 0:
        return np.ones((1, 1, 1))
    return (rng.random((d, t, 1)) >= dropout) / (1 - dropout)


def _root_mean_square(X):
    """Return the root mean square of all numbers in a matrix; 1 if all are 0."""
    values = X.data if sparse.issparse(X) else X
    total = np.square(values, dtype=np.float64).sum()
    return np.sqrt(total / max(1, X.shape[0] * X.shape[1])) or 1.0
