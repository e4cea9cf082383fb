"""Normal posterior of the weights of linear regressors."""

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    LinearRegression,
    Ridge,
    RidgeCV,
    SGDRegressor,
)
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from .._math._neighbors import squared_norms
from .._utils._sklearn import check_sample_weight, validate_data

_EVIDENCE = (BayesianRidge, ARDRegression)  # these keep their posterior
_SQUARES = (Ridge, RidgeCV, LinearRegression, SGDRegressor)


def is_linear_regressor(estimator):
    """Whether an estimator is a linear regressor with a normal posterior."""
    if isinstance(estimator, SGDRegressor):
        return estimator.loss == "squared_error"
    return isinstance(estimator, _EVIDENCE + _SQUARES)


def find_obstacle(estimator):
    """Return why a fitted linear regressor has no normal posterior, or None."""
    if np.ndim(estimator.coef_) == 2 and len(estimator.coef_) > 1:
        return "predicts several outputs. Train one regressor for each."
    if getattr(estimator, "positive", False):
        return "has positive=True, which is no normal prior. Use positive=False."
    if isinstance(estimator, SGDRegressor):
        if estimator.penalty != "l2":
            return (
                f"has penalty={estimator.penalty!r}, which is no normal prior. Use "
                "penalty='l2'."
            )
        return None if estimator.alpha > 0 else "has no prior. Use an alpha above 0."
    if isinstance(estimator, LinearRegression):
        rank = getattr(estimator, "rank_", np.size(estimator.coef_))
        if rank < np.size(estimator.coef_):
            return "has more weights than its training rows determine. Use Ridge."
    return None


def needs_training_rows(estimator):
    """Whether the posterior is computed from the training data."""
    return not isinstance(estimator, _EVIDENCE)


class NormalPosterior:
    """Normal distribution of the weights w of f(x) = b + w x around the fitted ones.

    The covariance of w is `scale * (V diag(spread) V' + rest * (I - V V'))` for columns
    V (d, r) that are orthonormal, and f has the mean `predict(x)` and this covariance
    of x - center. The value at the center has the variance `level`, independently.
    """

    def __init__(self, estimator, X=None, y=None, sample_weight=None):
        check_is_fitted(estimator)
        self.estimator = estimator
        self.columns = slice(None)  # of the features; an ARD model drops the others
        if needs_training_rows(estimator):
            self._approximate(X, y, sample_weight)
        else:
            self._read()

    def sample(self, n_draws, rng):
        """Return a function that maps `X` (n, d) to predictions (n, t) of t models."""
        z = rng.standard_normal((len(self.center), n_draws))
        inside = self.axes.T @ z
        inside *= (np.sqrt(self.spread) - np.sqrt(self.rest))[:, None]
        change = np.sqrt(self.scale) * (np.sqrt(self.rest) * z + self.axes @ inside)
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
        if self.rest and self.axes.shape[1] < len(self.center):
            lengths = squared_norms(X) + self.center @ self.center
            lengths -= 2 * safe_sparse_dot(X, self.center)
            variance += self.rest * np.maximum(lengths - squared_norms(along), 0)
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
        self.scale, self.rest, self.level = 1.0, 0.0, 0.0

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
        self.rest = 1 / penalty if self.axes.shape[1] < d else 0.0
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
    kept = values > len(values) * np.finfo(np.float64).eps * values.max(initial=0)
    values, vectors = values[kept], vectors[:, kept] / np.sqrt(values[kept])
    axes = safe_sparse_dot(X.T, vectors, dense_output=True)
    return values, axes - np.outer(center, root[:, 0] @ vectors)
