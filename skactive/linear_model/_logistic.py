"""Logistic regression for loops that retrain after every few labels."""

from __future__ import annotations

import warnings
from collections import deque
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import get_blas_funcs, inv
from scipy.special import expit, log_expit, logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.validation import check_is_fitted

from .._math._softmax import SoftmaxHessian
from .._utils._bases import BaseEstimator, LinearClassifierMixin, fit_context
from .._utils._chunks import multiply_rows
from .._utils._labels import check_classes, check_one_label
from .._utils._repeatable import give_way, one_blas_thread
from .._utils._sklearn import (
    POSITIVE,
    POSITIVE_INT,
    QuickParamsMixin,
    StrOptions,
    check_sample_weight,
    validate_data,
)

# Maximum growth of the squared gradient during the steps.
_MOST = 4.0
_SHORTER = 20  # times that L-BFGS shortens a step
_MEMORY = 5  # pairs of steps and changes that L-BFGS keeps
_MOST_STEPS = 50  # from a warm start
_EPS = np.finfo(np.float64).eps
_GROWTH = 1.25  # of the number of rows, until a preconditioner is computed again


def bfgs(gradient, x, inverse, is_small, *, max_iter=50):
    """Minimize a smooth, strictly convex function near its minimum by BFGS.

    `gradient(x)` returns the gradient (p,); `is_small(x, gradient)` stops the search.
    Full steps are taken, without a line search, from an estimate of the inverse Hessian
    (p, p) of which the upper triangle is read. Returns `x` (p,), the better inverse and
    the number of steps. The inverse is None, and `x` the start, if the steps do not
    converge.
    """
    multiply, update = get_blas_funcs(("symv", "syr2"), (inverse,))
    start, n_iter, owned = x, 0, False
    g = gradient(x)
    step = -multiply(1.0, inverse, g)
    limit = _MOST * -(g @ step)  # gᵀ M g
    while not is_small(x, g):
        give_way()
        x = x + step
        g_new = gradient(x)
        image = multiply(1.0, inverse, g_new)
        change = g_new - g
        curvature = step @ change
        # This form also fails for NaN.
        if n_iter == max_iter or not (g_new @ image < limit and curvature > 0):
            return start, None, n_iter
        n_iter += 1
        # M + s uᵀ + u sᵀ with My = Mg' + s, as s = -Mg: one product for each step.
        image_of_change = image + step
        u = 0.5 * (1 + change @ image_of_change / curvature) / curvature * step
        u -= image_of_change / curvature
        inverse = update(1.0, step, u, a=inverse, overwrite_a=owned)
        owned, g = True, g_new
        step = -(image + step * (u @ g) + u * (step @ g))
    return x, inverse, n_iter


def l_bfgs(gradient, x, is_small, scale=None, inverse=None, *, max_iter):
    """Minimize m smooth convex functions by L-BFGS, without their values.

    `gradient(x)` returns the m gradients (m, p) at `x` (m, p), and `is_small(x, g,
    slope)` which minima are near enough (m, 1); the slope is that along the next step.
    The first estimate of the inverse Hessians is `inverse`, a function that multiplies
    vectors (m, p) with it, or `scale` times the identity; by default, the first step
    has the length 1. Returns `x` (m, p) and the number of steps.
    """
    g, pairs, n_iter = gradient(x), deque(maxlen=_MEMORY), 0
    length = np.sqrt(np.maximum(_dots(g, g), np.finfo(x.dtype).tiny))
    scale = 1 / length if scale is None else np.full((len(x), 1), scale)
    scale = scale.astype(x.dtype)
    while n_iter < max_iter:
        step = _direction(g, pairs, inverse or partial(np.multiply, scale))
        slope = _dots(g, step)
        going = ~is_small(x, g, slope)
        if not going.any():
            break
        # Too far is where a function rises about as fast as it fell at the start. Its
        # minimum along the step is there where the slope, taken as linear, is 0.
        for _ in range(_SHORTER):
            give_way()
            new = gradient(x + step)
            end = _dots(new, step)
            too_far = going & (end > -0.9 * slope)
            if not too_far.any():
                break
            shorter = np.ones_like(slope)
            np.divide(slope, slope - end, out=shorter, where=too_far)
            step *= shorter
            slope *= shorter
        change = new - g
        curvature = _dots(step, change)
        # Below there is nothing but rounding.
        is_positive = curvature > np.finfo(x.dtype).tiny
        weight = np.divide(1, curvature, out=np.zeros_like(scale), where=is_positive)
        np.divide(curvature, _dots(change, change), out=scale, where=is_positive)
        pairs.append((step, change, weight))
        x, g, n_iter = x + step, new, n_iter + 1
    return x, n_iter


def _direction(g, pairs, inverse):
    """Return minus the gradients (m, p) times an estimate of the inverse Hessians.

    `inverse` multiplies with a first estimate. A pair is a step and the change of the
    gradient, with the inverse of their product (m, 1).
    """
    step, shares = -g, []
    for moved, change, weight in reversed(pairs):
        shares.append(_dots(moved, step) * weight)
        step -= shares[-1] * change
    step = inverse(step)
    for (moved, change, weight), share in zip(pairs, reversed(shares), strict=True):
        step += (share - _dots(change, step) * weight) * moved
    return step


def _dots(A, B):
    """Return the inner products (m, 1) of rows."""
    return np.array([[a @ b] for a, b in zip(A, B, strict=True)])


class PenalizedLogLoss:
    r"""Sum of weighted log losses and a quadratic penalty.

    The function is :math:`\sum_i s_i \ell_i(w) + \|w\|^2 / 2C`. Its parameters (p,)
    are, for each logit, the d weights and last the intercept, which is not penalized.
    Two classes have one logit. `codes` (n,) are the classes from 0, `weight` (n,) the
    weights of the rows. Everything is computed in the dtype of `X` (n, d).
    """

    def __init__(self, X, codes, k, weight, C, intercept):
        self.X, self.codes, self.k, self.weight = X, codes, k, weight
        self.C, self.intercept = C, intercept
        self.penalty = X.dtype.type(1 / C)
        self.single = k == 2
        self.shape = (1 if self.single else k, X.shape[1] + bool(intercept))
        self.target = (
            codes.astype(X.dtype) if self.single else np.eye(k, dtype=X.dtype)[codes]
        )

    def in_float64(self):
        """Return the same function, computed in float64."""
        X, weight = (
            part.astype(np.float64, copy=False) for part in (self.X, self.weight)
        )
        return type(self)(X, self.codes, self.k, weight, self.C, self.intercept)

    def penalized(self, x):
        """Return the penalized parameters (1 or k, d) of `x` (p,)."""
        return x.reshape(self.shape)[:, : self.X.shape[1]]

    def inverse_hessian(self, x):
        """Return the inverse Hessian (p, p) at `x` (p,), in Fortran order."""
        hessian = SoftmaxHessian(
            self.X,
            self._proba(self._logits(x)),
            sample_weight=self.weight,
            penalty=float(self.penalty),
            intercept=self.intercept,
        )
        return np.asfortranarray(inv(hessian.to_dense()), dtype=self.X.dtype)

    def shared_inverse(self, x):
        """Return the inverse of the mean Hessian of a class at `x`, None if too large.

        Without the intercepts it is (d, d), else (d + 1, d + 1).
        """
        if self.shape[1] > _WIDE or sparse.issparse(self.X):
            return None
        proba = self._proba(self._logits(x))
        curvature = proba * (1 - proba)
        if not self.single:
            curvature = curvature.mean(axis=1)
        X = self.X
        if self.intercept:
            X = np.column_stack([X, np.ones(len(X), dtype=X.dtype)])
        hessian = (X.T * (self.weight * curvature)) @ X
        penalty = np.full(len(hessian), self.penalty)
        if self.intercept:  # for classes that are separated
            penalty[-1] = 1e-6 * self.weight.sum()
        hessian[np.diag_indices_from(hessian)] += penalty
        return inv(hessian)

    def _logits(self, x):
        d = self.X.shape[1]
        if self.single:
            logits = self.X @ x[:d]
            if self.intercept:
                logits += x[d]
            return logits
        W = x.reshape(self.shape)
        logits = self.X @ W[:, :d].T
        if self.intercept:
            logits += W[:, d]
        return logits

    def _proba(self, logits):
        return expit(logits) if self.single else softmax(logits, axis=1)

    def gradient(self, x):
        """Return the gradient (p,) at `x` (p,)."""
        residual = self._proba(self._logits(x))
        residual -= self.target
        residual *= self.weight if self.single else self.weight[:, None]
        d = self.X.shape[1]
        gradient = np.empty(self.shape, dtype=x.dtype)
        gradient[:, :d] = residual @ self.X if self.single else (self.X.T @ residual).T
        gradient[:, :d] += self.penalty * self.penalized(x)
        if self.intercept:
            gradient[:, d] = residual.sum(axis=0)
        return gradient.ravel()


_FLOATS = [np.float64, np.float32]
_LIMIT = 1024  # maximum number of parameters for which an inverse Hessian is kept
_WIDE = 2048  # maximum size of an inverse Hessian that the classes share
_SMALL = 2**22  # maximum number of values of X for which BLAS uses one thread


class LinearLogistic(LinearClassifierMixin):
    """Predictions of `coef_` and `intercept_` by a softmax, in the dtype of `X`."""

    n_features_in_: int
    feature_names_in_: NDArray
    _is_linear_logistic = True  # as lower rooms ask

    def _set(self, classes, coef, intercept):
        """Store a softmax layer, (k, d) and (k,); one logit for two classes."""
        if len(classes) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.classes_, self.coef_, self.intercept_ = classes, coef, intercept
        return self

    def decision_function(self, X: Any) -> NDArray:
        """Return the logits.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Items to predict.

        Returns
        -------
        logits : ndarray of shape (n,) for two classes, else (n, k)
            In the dtype of `X`.
        """
        if not self._is_checked(X):
            check_is_fitted(self)
            X = validate_data(
                self,
                _widen(X),
                reset=False,
                accept_sparse="csr",
                dtype=_FLOATS,
                ensure_all_finite=False,
            )
        coef = self.coef_.astype(X.dtype, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            logits = multiply_rows(X, coef[0] if len(coef) == 1 else coef.T)
            logits += self.intercept_.astype(X.dtype, copy=False)
        # A value that is not finite makes its row's logits not finite.
        if not np.isfinite(logits).all():
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        return logits

    def predict_proba(self, X: Any) -> NDArray:
        """Return the class probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Items to predict.

        Returns
        -------
        proba : ndarray of shape (n, k)
            In the dtype of `X`.
        """
        logits = self.decision_function(X)
        if logits.ndim == 2:
            # NumPy is slow along short rows.
            return softmax(np.ascontiguousarray(logits.T), axis=0).T
        # One exponential for both classes, of the less likely one.
        ratio = np.exp(-np.abs(logits))
        best = 1 / (1 + ratio)
        second = ratio * best
        proba = np.empty((len(logits), 2), dtype=logits.dtype)
        for column, wins in enumerate((logits < 0, logits >= 0)):
            proba[:, column] = np.where(wins, best, second)
        return proba

    def predict_log_proba(self, X: Any) -> NDArray:
        """Return the logarithms of the class probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Items to predict.

        Returns
        -------
        log_proba : ndarray of shape (n, k)
            In the dtype of `X`.
        """
        logits = self.decision_function(X)
        if logits.ndim == 2:
            return logits - logsumexp(logits, axis=1, keepdims=True)
        return np.stack([log_expit(-logits), log_expit(logits)], axis=1)

    def _is_checked(self, X):
        """Whether type and shape of `X` show that only finiteness is unchecked."""
        return (
            type(X) is np.ndarray
            and X.dtype in _FLOATS
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == getattr(self, "n_features_in_", None)
            and not hasattr(self, "feature_names_in_")
        )


def quicken(final, X):
    """Return a LinearLogistic with the layer of a LogisticRegression, or `final`.

    It predicts the same for arrays like `X` (n, d), and reads them once: scikit-learn
    looks first for numbers that are not finite.
    """
    is_softmax = type(final) is LogisticRegression and final.solver != "liblinear"
    # Before scikit-learn 1.8 there was another parameter.
    is_softmax &= getattr(final, "multi_class", "deprecated") == "deprecated"
    coef = getattr(final, "coef_", None)
    is_same = isinstance(coef, np.ndarray) and X.shape[1:] == coef.shape[1:]
    if not is_softmax or not is_same or X.dtype != coef.dtype:
        return final
    quick = LinearLogistic()
    for name in ("classes_", "coef_", "intercept_", "n_features_in_"):
        setattr(quick, name, getattr(final, name))
    return quick


class SequentialLogisticRegression(QuickParamsMixin, LinearLogistic, BaseEstimator):
    r"""Logistic regression with warm starts, which predicts in float32.

    The model of :class:`~sklearn.linear_model.LogisticRegression` with its l2 penalty:
    one logit for two classes, softmax for more. With `warm_start=True` it suits an
    :class:`~skactive.ActiveLearner` that is retrained after each label: the minimum is
    near the previous one, and a few steps find it.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the regularization strength, as in scikit-learn.
    fit_intercept : bool, default=True
        Whether each logit has an intercept, which is not penalized.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    tol : float, default=1e-3
        `fit` stops when the gradient of the objective below, times C, is shorter than
        `tol` times the coefficients. The coefficients, without the intercept, are then
        within a relative distance of `tol` of the exact ones. This is at least ten
        times as close as scikit-learn's default.
    max_iter : int, default=1000
        Maximum number of steps.
    warm_start : bool, default=False
        Whether `fit` starts at the solution of the previous `fit`, if the classes and
        the number of features are the same. An `ActiveLearner` passes the solution from
        each model to the next. The result depends on the start within `tol`.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes.
    coef_ : ndarray of shape (1, d) or (k, d)
        The coefficients, in the dtype of `X`. Two classes have one row.
    intercept_ : ndarray of shape (1,) or (k,)
        The intercepts.
    n_iter_ : ndarray of int, shape (1,)
        Number of steps of the last `fit`.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features. Defined only if the columns of `X` have names.

    See Also
    --------
    sklearn.linear_model.LogisticRegression : Has more penalties and solvers.

    Notes
    -----
    The objective is :math:`\sum_i s_i \ell_i(w) + \|w\|^2 / 2C` with weights s and log
    losses ℓ. A cold start uses L-BFGS in float64. A warm start uses BFGS with full
    steps, whose inverse Hessian (computed once, up to 1,024 parameters) is kept for the
    next `fit` and is not pickled. With more parameters it uses L-BFGS, and what is kept
    is the inverse of the mean Hessian of a class, for dense rows of up to 2,047
    features; it is computed again when there are a quarter more rows. If the data have
    changed too much, the cold search takes over.

    Each step costs O(n d k), two products with `X`, and O(p²) for the p = k (d + 1)
    parameters. A prediction is one product in the dtype of `X`. Its scores, not the
    pool, are checked for NaN and infinity.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.linear_model import SequentialLogisticRegression
    >>> X_pool = [[-3.0], [-1.0], [0.2], [2.0]]
    >>> learner = ActiveLearner(SequentialLogisticRegression(warm_start=True), "margin")
    >>> learner = learner.fit([[-2.0], [2.5]], ["no", "yes"])
    >>> learner.query(X_pool, 1)
    array([2])
    >>> learner.teach([[0.2]], ["yes"]).predict([[-0.1]]).tolist()
    ['yes']
    """

    _parameter_constraints = {
        "C": [POSITIVE],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [POSITIVE],
        "max_iter": [POSITIVE_INT],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        class_weight: dict | Literal["balanced"] | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Training data.
        y : array-like of shape (n,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n,) or None, default=None
            Weight of each row's loss. Defaults to 1.

        Returns
        -------
        self : SequentialLogisticRegression
            The fitted estimator.
        """
        # Values of `X` that are not finite show in the gradient.
        if not (self._is_checked(X) and _are_classes(y, len(X))):
            check_one_label(y, self)
            X, y = validate_data(self, _widen(X), y, accept_sparse="csr", dtype=_FLOATS)
            if not _are_classes(y, X.shape[0]):
                check_classes(y, self)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"'y' must hold at least two classes, got one class, {classes[0]!r}."
            )
        weight = check_sample_weight(
            sample_weight, X, dtype=X.dtype, ensure_non_negative=True
        )
        if self.class_weight == "balanced":
            counts = np.bincount(codes, weights=weight)
            factors = counts.mean() / np.where(counts > 0, counts, 1)
            weight = weight * factors[codes].astype(X.dtype)
        elif self.class_weight is not None:
            factors = compute_class_weight(self.class_weight, classes=classes, y=y)
            weight = weight * factors[codes].astype(X.dtype)
        loss = PenalizedLogLoss(
            X, codes, len(classes), weight, self.C, self.fit_intercept
        )
        start, inverse = self._find_start(classes, loss.shape, X.dtype)
        with one_blas_thread(np.prod(X.shape) <= _SMALL):
            solution = self._minimize(loss, start, inverse)
        solution = solution.reshape(loss.shape)
        d = X.shape[1]
        self.classes_ = classes
        self.coef_ = np.ascontiguousarray(solution[:, :d])
        self.intercept_ = (
            solution[:, d].copy()
            if self.fit_intercept
            else np.zeros(len(solution), dtype=X.dtype)
        )
        return self

    def continue_from(self, fitted: Any) -> Self:
        """Start the next `fit` at the solution of another model.

        An `ActiveLearner` calls this on the clone that it is about to train.

        Parameters
        ----------
        fitted : estimator
            The previous model. Without `warm_start`, or if it is of another class,
            nothing happens.

        Returns
        -------
        self : SequentialLogisticRegression
            The estimator.
        """
        if self.warm_start and type(fitted) is type(self):
            for name, value in vars(fitted).items():
                if name.endswith("_") or name == "_inverse":
                    setattr(self, name, value)
        return self

    def _find_start(self, classes, shape, dtype):
        """Return the previous solution and its inverse Hessian, or zeros and None."""
        if self.warm_start and hasattr(self, "coef_"):
            last = self.coef_
            if self.fit_intercept:
                last = np.column_stack([last, self.intercept_])
            if last.shape == shape and np.array_equal(classes, self.classes_):
                inverse = getattr(self, "_inverse", None)
                if isinstance(inverse, np.ndarray):
                    inverse = inverse.astype(dtype, copy=False)
                return last.astype(dtype).ravel(), inverse
        return np.zeros(np.prod(shape), dtype=dtype), None

    def _minimize(self, loss, start, inverse):
        """Go on from a start: in its dtype where it is near, else in float64.

        `inverse` is the inverse Hessian or, for many parameters, pairs of L-BFGS.
        """
        self._inverse = None  # it may not match the data

        def is_small(x, gradient):
            weights = loss.penalized(x).ravel()
            return self.C * _norm(gradient) <= self.tol * _norm(weights)

        if start.any():
            if len(start) <= _LIMIT:
                if inverse is None:
                    inverse = loss.inverse_hessian(start)
                search = bfgs(loss.gradient, start, inverse, is_small)
                x, self._inverse, n_iter = search
                ended = self._inverse is not None
            else:
                if inverse is None or len(loss.codes) > _GROWTH * inverse[1]:
                    inverse = loss.shared_inverse(start), len(loss.codes)
                x, n_iter = _search(loss, start, is_small, inverse[0], _MOST_STEPS)
                ended = n_iter < _MOST_STEPS
                self._inverse = inverse if ended else None
            if ended:
                self.n_iter_ = np.array([n_iter], dtype=np.int32)
                return x

        assert_all_finite(loss.X, estimator_name=type(self).__name__, input_name="X")
        # In float32, the gradient may not become small enough.
        wide = loss.in_float64()
        rounding = _EPS * wide.weight.sum() * (1 + abs(wide.X).max())
        x, n_iter = _search(
            wide,
            start.astype(np.float64),
            lambda x, g: is_small(x, g) or _norm(g) <= rounding,  # at the minimum 0
            None,
            self.max_iter,
        )
        self.n_iter_ = np.array([n_iter], dtype=np.int32)
        if n_iter >= self.max_iter:
            warnings.warn(
                f"fit stopped after max_iter={self.max_iter} steps, short of "
                f"tol={self.tol}. Raise max_iter, or scale the features to a similar "
                "size.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return x.astype(start.dtype)

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_inverse", None)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _search(loss, x, is_small, inverse, max_iter):
    """Return the minimum (p,) from `x` by L-BFGS and the number of steps."""
    shape = loss.shape
    x, n_iter = l_bfgs(
        lambda x: loss.gradient(x[0])[None],
        x[None],
        lambda x, g, _: np.array([[is_small(x[0], g[0])]]),
        inverse=inverse is not None
        and (lambda v: (v.reshape(shape) @ inverse).reshape(1, -1)),
        max_iter=max_iter,
    )
    return x[0], n_iter


def _are_classes(y, n):
    """Whether labels are an array of n bools, ints or texts."""
    is_row = type(y) is np.ndarray and y.shape == (n,)
    return is_row and y.dtype.kind in "biuU"


def _norm(x):
    return np.sqrt(x @ x)  # several times faster than np.linalg.norm on few numbers


def _widen(X):
    """Convert float16 to float32; scikit-learn would convert it to float64."""
    is_half = isinstance(X, np.ndarray) and X.dtype == np.float16
    return X.astype(np.float32) if is_half else X
