"""The curvature of softmax regression: its Hessian, and what is solved with it.

Parameters are arrays of shape (k, d + 1), one row for each class as scikit-learn's
`coef_`, and the class's intercept last; (k, d) without intercepts. A block of r of
them has the shape (r, k, d + 1). Flattened, they lie in C order.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from ._chunks import chunk_size, chunks
from ._linalg import conjugate_gradients, span_rows
from .curvature import SoftmaxCurvature

__all__ = ["SoftmaxHessian", "softmax_hessian"]

# Draws need no more digits than this from conjugate gradients.
_SAMPLING_TOL = 1e-5


class SoftmaxHessian(SoftmaxCurvature):
    r"""Hessian of a weighted log loss with a quadratic penalty.

    The function is :math:`\sum_i w_i \ell_i(W) + \frac{\lambda}{2} \|W\|^2`, where
    :math:`\ell_i` is the log loss of row i under softmax regression. Its Hessian
    does not depend on the labels.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (m, d)
        The rows that the model was trained on.
    proba : ndarray of shape (m, k) or (m,)
        Probabilities of the k classes. One dimension is the probability of the second
        of two classes, of a model with a single logit: then k is 1 below, as in
        `LogisticRegression.coef_`.
    sample_weight : array-like of shape (m,), default=None
        Weight of each row's loss; None is 1.
    penalty : float, default=1.0
        The precision λ of the weights: 1 / C of `LogisticRegression`.
    intercept : bool, default=True
        Whether each class has an intercept.
    intercept_penalty : float, default=0.0
        Precision of the intercepts. Where it is 0, adding one number to all
        intercepts of a softmax changes no probability: along that direction only, the
        Hessian gets the mean of the intercepts' own curvature instead of 0.
    limit : int, default=4096
        Up to this many parameters the Hessian is factorized; above, equations are
        solved by conjugate gradients. Up to this many rows, equations are solved in the
        space that the rows span, if they are at most half as many as the features, or
        fewer than the features where there are too many parameters to factorize.
    tol : float, default=1e-8
        Where conjugate gradients stop: norm of the residual, relative to that of the
        right-hand side.
    max_iter : int, default=1000
        Steps of conjugate gradients at most.

    Attributes
    ----------
    shape : tuple of int
        Of the parameters, (k, d + 1) or (k, d).

    Notes
    -----
    A product costs O(m d k) for each of a block of parameters, in two matrix products
    for the whole block. Factorising costs O(m d² k²) and once O(d³ k³).

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.softmax import SoftmaxHessian
    >>> hessian = SoftmaxHessian([[1.0], [2.0]], [0.5, 0.5])
    >>> hessian.matvec(np.array([[1.0, 0.0]]))
    array([[2.25, 0.75]])
    >>> hessian.solve(np.array([[2.25, 0.75]])).round(6)
    array([[1., 0.]])
    """

    def __init__(
        self,
        X,
        proba,
        *,
        sample_weight=None,
        penalty=1.0,
        intercept=True,
        intercept_penalty=0.0,
        limit=4096,
        tol=1e-8,
        max_iter=1000,
    ):
        super().__init__(
            X,
            proba,
            sample_weight=sample_weight,
            penalty=penalty,
            intercept=intercept,
            intercept_penalty=intercept_penalty,
        )
        self.limit = limit
        self.tol = tol
        self.max_iter = max_iter

    def solve(self, B):
        """Solve an equation with the Hessian on its left side.

        Parameters
        ----------
        B : array-like of shape (k, d + 1) or (r, k, d + 1)
            Right-hand sides.

        Returns
        -------
        V : ndarray of the shape of `B`
            `matvec(V)` is `B`.
        """
        B, single = self._as_block(B)
        if self._is_small:
            flat = cho_solve(self._cholesky, B.reshape(len(B), -1).T)
            V = flat.T.reshape(B.shape)
        elif self._is_wide:
            V = B / self._precision
            self._replace_span(V, self._inner.solve(self._to_span(B)))
        else:
            V = self._solve_by_products(B, self.tol)
        return V[0] if single else V

    def sample(self, n_draws, rng, dtype=np.float64):
        """Draw parameters from the normal distribution of this precision.

        Parameters
        ----------
        n_draws : int
        rng : numpy.random.Generator
        dtype : dtype, default=float64
            Of the result; the work is done in float64.

        Returns
        -------
        V : ndarray of shape (n_draws, k, d + 1)
            Mean 0; the covariance is the inverse of the Hessian.
        """
        result = np.empty((n_draws, *self.shape), dtype=dtype)
        size = chunk_size(8 * self.shape[0] * self.shape[1])
        for block in chunks(n_draws, size):
            result[block] = self._sample_block(block.stop - block.start, rng)
        return result

    def _sample_block(self, r, rng):
        if self._is_small:
            noise = rng.standard_normal((r, self.shape[0] * self.shape[1]))
            factor = self._cholesky[0]
            flat = solve_triangular(factor, noise.T, lower=True, trans="T")
            return flat.T.reshape(r, *self.shape)
        noise = rng.standard_normal((r, *self.shape))
        if self._is_wide:
            # The loss knows of the span of the rows only; besides, the prior holds.
            noise /= np.sqrt(self._precision)
            return self._replace_span(noise, self._inner._sample_block(r, rng))
        # A right-hand side whose covariance is the Hessian: its terms, each with a
        # square root of its own.
        noise *= np.sqrt(self._precision)
        if self.intercept:
            shared = rng.standard_normal((r, 1))
            noise[..., -1] += np.sqrt(self._null / self.shape[0]) * shared
        for rows in self._chunks(8 * r * self.shape[0]):
            proba = self.proba[rows, None, :]
            of_rows = rng.standard_normal((len(proba), r, self.shape[0]))
            self._curve_root(of_rows, proba, self.weight[rows, None, None])
            noise += self._backward(rows, of_rows)
        return self._solve_by_products(noise, max(self.tol, _SAMPLING_TOL))

    # The ways to solve.

    @property
    def _is_small(self):
        return self._is_few and not self._is_wide

    @property
    def _is_few(self):
        return self.shape[0] * self.shape[1] <= self.limit

    @property
    def _is_wide(self):
        """Whether the rows are few enough to work in the space that they span."""
        m, d = self.X.shape
        return m <= self.limit and (2 * m <= d if self._is_few else m < d)

    @cached_property
    def _span(self):
        return span_rows(self._rows(slice(0, len(self.proba))))

    @cached_property
    def _inner(self):
        """The same Hessian in coordinates of the span of the rows."""
        return SoftmaxHessian(
            self._span[1],
            self.proba[:, 0] if self.single else self.proba,
            sample_weight=self.weight,
            penalty=self.penalty,
            intercept=self.intercept,
            intercept_penalty=self.intercept_penalty,
            limit=self.limit,
            tol=self.tol,
            max_iter=self.max_iter,
        )

    def _to_span(self, V):
        """Project the weights (r, k, d) on the span; intercepts stay, (r, k, q + 1)."""
        d = self.X.shape[1]
        projected = (self.X @ V[..., :d].reshape(-1, d).T).T @ self._span[0]
        projected = projected.reshape(*V.shape[:2], -1)
        return np.concatenate([projected, V[..., d:]], axis=2)

    def _replace_span(self, V, inner):
        """Put these coordinates in place of those that `V` has in the span."""
        d = self.X.shape[1]
        change = (inner - self._to_span(V))[..., : self._span[0].shape[1]]
        mixed = self._span[0] @ change.reshape(-1, change.shape[2]).T
        V[..., :d] += (self.X.T @ mixed).T.reshape(*V.shape[:2], d)
        V[..., d:] = inner[..., change.shape[2] :]
        return V

    @cached_property
    def _cholesky(self):
        try:
            return cho_factor(self.to_dense(), lower=True, overwrite_a=True)
        except LinAlgError as exc:
            raise LinAlgError(
                "the Hessian is singular to working precision. Scale the features to "
                "a similar size (StandardScaler), or raise the penalty."
            ) from exc

    def _solve_by_products(self, B, tol):
        return conjugate_gradients(
            self.matvec, B, self._diagonal, tol=tol, max_iter=self.max_iter
        )


def softmax_hessian(
    X, proba, sample_weight=None, penalty=1.0, intercept=True, intercept_penalty=0.0
):
    """Write out the Hessian of softmax regression.

    Parameters
    ----------
    X, proba, sample_weight, penalty, intercept, intercept_penalty
        As in :class:`SoftmaxHessian`.

    Returns
    -------
    hessian : ndarray of shape (k (d + 1), k (d + 1))
        The parameters (k, d + 1) lie in C order.

    Examples
    --------
    >>> from skactive.softmax import softmax_hessian
    >>> softmax_hessian([[1.0], [2.0]], [0.5, 0.5], intercept=False)
    array([[2.25]])
    """
    return SoftmaxHessian(
        X,
        proba,
        sample_weight=sample_weight,
        penalty=penalty,
        intercept=intercept,
        intercept_penalty=intercept_penalty,
    ).to_dense()
