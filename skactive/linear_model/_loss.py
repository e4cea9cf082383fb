"""The objective of logistic regression: its value, gradient and inverse Hessian."""

import numpy as np
from scipy.linalg import inv
from scipy.special import expit, log_expit, logsumexp, softmax

from ._softmax import softmax_hessian


class PenalisedLogLoss:
    r"""Sum of weighted log losses and a quadratic penalty.

    The function is :math:`\sum_i s_i \ell_i(w) + \|w\|^2 / 2C`. Its parameters are
    flat: for each logit its d weights and, last, the intercept, without penalty. Two
    classes have one logit, more have one each. All is computed in the dtype of `X`.

    Parameters
    ----------
    X : ndarray or CSR matrix of float32 or float64, shape (n, d)
    codes : ndarray of int, shape (n,)
        Classes, from 0.
    k : int
        Number of classes.
    weight : ndarray of shape (n,)
        Weight of each row's loss.
    C : float
    intercept : bool
        Whether there are intercepts.

    Attributes
    ----------
    shape : tuple of int
        Of the parameters before they are flat, (1 or k, d + 1), or d without
        intercepts.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.linear_model._loss import PenalisedLogLoss
    >>> X, codes = np.array([[1.0], [3.0]]), np.array([0, 1])
    >>> loss = PenalisedLogLoss(X, codes, 2, np.ones(2), C=1.0, intercept=True)
    >>> value, gradient = loss(np.zeros(2))
    >>> value.round(6), gradient
    (np.float64(1.386294), array([-1.,  0.]))
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
        """Give the value, in float64, and the gradient.

        Parameters
        ----------
        x : ndarray of shape (p,)

        Returns
        -------
        value : float64
        gradient : ndarray of shape (p,)
        """
        logits = self._logits(x)
        if self.single:
            # log(1 + exp(-z)) for the second class, log(1 + exp(z)) for the first
            value = -(self.weight @ log_expit(np.where(self.codes, logits, -logits)))
        else:
            own = np.take_along_axis(logits, self.codes[:, None], axis=1)[:, 0]
            value = self.weight @ (logsumexp(logits, axis=1) - own)
        weights = self.penalised(x).astype(np.float64)
        value = value + 0.5 * float(self.penalty) * (weights**2).sum()
        return value, self._gradient(x, logits)

    def in_float64(self):
        """Give the same function, computed in float64.

        Returns
        -------
        loss : PenalisedLogLoss
        """
        X, weight = (
            part.astype(np.float64, copy=False) for part in (self.X, self.weight)
        )
        return type(self)(X, self.codes, self.k, weight, self.C, self.intercept)

    def gradient(self, x):
        """Give the gradient alone.

        Parameters
        ----------
        x : ndarray of shape (p,)

        Returns
        -------
        gradient : ndarray of shape (p,)
        """
        return self._gradient(x, self._logits(x))

    def penalised(self, x):
        """Take the parameters that bear a penalty.

        Parameters
        ----------
        x : ndarray of shape (p,)

        Returns
        -------
        weights : ndarray of shape (1 or k, d)
        """
        return x.reshape(self.shape)[:, : self.X.shape[1]]

    def inverse_hessian(self, x):
        """Invert the Hessian.

        Parameters
        ----------
        x : ndarray of shape (p,)

        Returns
        -------
        inverse : ndarray of shape (p, p)
            In Fortran order.
        """
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
        gradient[:, :d] += self.penalty * self.penalised(x)
        if self.intercept:
            gradient[:, d] = residual.sum(axis=0)
        return gradient.ravel()


# Rows up to this many bytes are turned into float64 once, more of them by chunks.
