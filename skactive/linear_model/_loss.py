"""The objective of logistic regression: its value, gradient and inverse Hessian."""

import numpy as np
from scipy.linalg import inv
from scipy.special import expit, log_expit, logsumexp, softmax

from ._softmax import softmax_hessian


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

    def __call__(self, x):
        """Return the value, in float64, and the gradient (p,) at `x` (p,)."""
        logits = self._logits(x)
        if self.single:
            # log(1 + exp(-z)) for the second class, log(1 + exp(z)) for the first
            value = -(self.weight @ log_expit(np.where(self.codes, logits, -logits)))
        else:
            own = np.take_along_axis(logits, self.codes[:, None], axis=1)[:, 0]
            value = self.weight @ (logsumexp(logits, axis=1) - own)
        weights = self.penalized(x).astype(np.float64)
        value = value + 0.5 * float(self.penalty) * (weights**2).sum()
        return value, self._gradient(x, logits)

    def in_float64(self):
        """Return the same function, computed in float64."""
        X, weight = (
            part.astype(np.float64, copy=False) for part in (self.X, self.weight)
        )
        return type(self)(X, self.codes, self.k, weight, self.C, self.intercept)

    def gradient(self, x):
        """Return the gradient (p,) at `x` (p,)."""
        return self._gradient(x, self._logits(x))

    def penalized(self, x):
        """Return the penalized parameters (1 or k, d) of `x` (p,)."""
        return x.reshape(self.shape)[:, : self.X.shape[1]]

    def inverse_hessian(self, x):
        """Return the inverse Hessian (p, p) at `x` (p,), in Fortran order."""
        hessian = softmax_hessian(
            self.X,
            self._proba(self._logits(x)),
            sample_weight=self.weight,
            penalty=float(self.penalty),
            intercept=self.intercept,
        )
        return np.asfortranarray(inv(hessian), dtype=self.X.dtype)

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

    def _gradient(self, x, logits):
        residual = self._proba(logits)
        residual -= self.target
        residual *= self.weight if self.single else self.weight[:, None]
        d = self.X.shape[1]
        gradient = np.empty(self.shape, dtype=x.dtype)
        gradient[:, :d] = residual @ self.X if self.single else (self.X.T @ residual).T
        gradient[:, :d] += self.penalty * self.penalized(x)
        if self.intercept:
            gradient[:, d] = residual.sum(axis=0)
        return gradient.ravel()


# Rows up to this many bytes are converted to float64 at once, others in chunks.
