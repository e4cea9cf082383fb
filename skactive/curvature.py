"""Products with the Hessian of softmax regression, and the Hessian itself."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from ._chunks import as_floats, chunk_size, chunks

__all__ = ["SoftmaxCurvature"]

# Rows up to this many bytes are turned into float64 once, more of them by chunks.
_COPIED = 2**26
# An unpenalised intercept has this precision at least, relative to the others: only
# probabilities of exactly 0 and 1 leave it none.
_FLOOR = 1e-10


class SoftmaxCurvature:
    """What :class:`skactive.softmax.SoftmaxHessian` knows without solving anything.

    Parameters
    ----------
    X, proba, sample_weight, penalty, intercept, intercept_penalty
        As there.

    Examples
    --------
    >>> from skactive.curvature import SoftmaxCurvature
    >>> SoftmaxCurvature([[1.0], [2.0]], [0.5, 0.5], intercept=False).to_dense()
    array([[2.25]])
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
    ):
        X = as_floats(X)
        proba = np.asarray(proba, dtype=np.float64)
        m, d = X.shape
        if proba.ndim not in (1, 2) or proba.shape[0] != m:
            raise ValueError(
                f"proba must be of shape ({m}, k) or ({m},), a row for each of X; got "
                f"{proba.shape}."
            )
        if not 0 < penalty < np.inf:
            raise ValueError(
                f"penalty must be above 0, so that every weight has a finite variance; "
                f"got {penalty!r}."
            )
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight, dtype=np.float64)
            if sample_weight.shape != (m,):
                raise ValueError(
                    f"sample_weight must be of shape ({m},), a weight for each row of "
                    f"X; got {sample_weight.shape}."
                )
        if 8 * m * d <= _COPIED or sparse.issparse(X):
            X = X.astype(np.float64, copy=False)
        self.X = X
        self.single = proba.ndim == 1
        self.proba = np.clip(proba[:, None] if self.single else proba, 0, 1)
        self.weight = np.ones(m) if sample_weight is None else sample_weight
        self.penalty = float(penalty)
        self.intercept = intercept
        self.intercept_penalty = float(intercept_penalty)
        self.shape = (self.proba.shape[1], d + bool(intercept))

    def matvec(self, V):
        """Multiply with the Hessian.

        Parameters
        ----------
        V : array-like of shape (k, d + 1) or (r, k, d + 1)

        Returns
        -------
        product : ndarray of the shape of `V`
        """
        V, single = self._as_block(V)
        product = V * self._precision
        if self.intercept:
            # Along the direction of equal intercepts, see `intercept_penalty`.
            product[..., -1] += self._null * V[..., -1].mean(axis=-1, keepdims=True)
        for rows in self._chunks(8 * len(V) * self.shape[0]):
            logits = self._logits(rows, V)  # (c, r, k)
            proba = self.proba[rows, None, :]
            self._curve(logits, proba, self.weight[rows, None, None])
            product += self._backward(rows, logits)
        return product[0] if single else product

    def to_dense(self):
        """Write the Hessian out.

        Returns
        -------
        hessian : ndarray of shape (k (d + 1), k (d + 1))
            Symmetric and positive definite.
        """
        k, width = self.shape
        hessian = np.zeros((k, width, k, width))
        for rows in self._chunks(0):
            X, proba = self._rows(rows), self.proba[rows]
            for a in range(k):
                for b in range(a + 1):
                    block = self._dense_block(X, self._curvature(rows, proba, a, b))
                    hessian[a, :, b, :] += block
        for a in range(k):
            for b in range(a):
                hessian[b, :, a, :] = hessian[a, :, b, :]  # each block is symmetric
        flat = hessian.reshape(k * width, k * width)
        flat[np.diag_indices_from(flat)] += self._precision.ravel()
        if self.intercept:
            hessian[:, -1, :, -1] += self._null / k
        return flat

    # The parts of the products.

    def _as_block(self, V):
        V = np.asarray(V, dtype=np.float64)
        if V.shape[-2:] != self.shape or V.ndim not in (2, 3):
            k, width = self.shape
            raise ValueError(
                f"parameters must be of shape ({k}, {width}) or (r, {k}, {width}); "
                f"got {V.shape}."
            )
        return (V[None], True) if V.ndim == 2 else (V, False)

    def _chunks(self, row_bytes):
        m, d = self.X.shape
        width = 2 * self.X.nnz // max(m, 1) if sparse.issparse(self.X) else d
        return chunks(m, chunk_size(row_bytes + 8 * width))

    def _rows(self, rows):
        if rows == slice(0, len(self.proba)):
            return self.X.astype(np.float64, copy=False)
        return self.X[rows].astype(np.float64, copy=False)

    def _logits(self, rows, V):
        d = self.X.shape[1]
        logits = self._rows(rows) @ V[..., :d].reshape(-1, d).T
        if self.intercept:
            logits += V[..., -1].ravel()
        return logits.reshape(len(logits), *V.shape[:2])

    def _backward(self, rows, residuals):
        """Sum the outer products of residuals (c, r, k) and rows (c, d + 1)."""
        c, r, k = residuals.shape
        flat = residuals.reshape(c, r * k)
        result = np.empty((r * k, self.shape[1]))
        result[:, : self.X.shape[1]] = (self._rows(rows).T @ flat).T
        if self.intercept:
            result[:, -1] = flat.sum(axis=0)
        return result.reshape(r, *self.shape)

    def _curve(self, logits, proba, weight):
        """Multiply by the Hessian of each row's loss in its logits, in place."""
        if self.single:
            logits *= proba * (1 - proba)
        else:
            logits -= logits @ proba.swapaxes(1, 2)
            logits *= proba
        logits *= weight

    def _curve_root(self, noise, proba, weight):
        """Multiply by a square root A, A Aᵀ being what `_curve` multiplies by."""
        if self.single:
            noise *= np.sqrt(proba * (1 - proba))
        else:
            noise *= np.sqrt(proba)
            noise -= proba * noise.sum(axis=2, keepdims=True)
        noise *= np.sqrt(weight)

    def _curvature(self, rows, proba, a, b):
        """Second derivative of each row's loss in the logits a and b."""
        other = 1 - proba[:, b] if a == b else -proba[:, b]
        return self.weight[rows] * proba[:, a] * other

    def _dense_block(self, X, curvature):
        d = X.shape[1]
        block = np.empty((self.shape[1], self.shape[1]))
        # All its values have one sign, so that a product of a matrix with its own
        # transpose does, at half the price.
        root = np.sqrt(np.abs(curvature))
        if sparse.issparse(X):
            scaled = sparse.diags_array(root) @ X
            block[:d, :d] = (scaled.T @ scaled).toarray()
        else:
            scaled = X * root[:, None]
            block[:d, :d] = scaled.T @ scaled
        block[:d, :d] *= np.sign(curvature.sum())
        if self.intercept:
            block[-1, :d] = block[:d, -1] = X.T @ curvature
            block[-1, -1] = curvature.sum()
        return block

    @cached_property
    def _precision(self):
        """What the penalties add to the diagonal, (k, d + 1)."""
        precision = np.full(self.shape, self.penalty)
        if self.intercept:
            floor = _FLOOR * (self.penalty + self._intercept_curvature.mean())
            precision[:, -1] = max(self.intercept_penalty, floor)
        return precision

    @cached_property
    def _intercept_curvature(self):
        return self.weight @ (self.proba * (1 - self.proba))

    @cached_property
    def _null(self):
        if self.single or self.intercept_penalty > 0:
            return 0.0
        return self.penalty + self._intercept_curvature.mean()

    @cached_property
    def _diagonal(self):
        diagonal = self._precision.copy()
        d = self.X.shape[1]
        for rows in self._chunks(0):
            X, proba = self._rows(rows), self.proba[rows]
            curvature = self.weight[rows, None] * proba * (1 - proba)
            squares = X.multiply(X).tocsr() if sparse.issparse(X) else X * X
            diagonal[:, :d] += (squares.T @ curvature).T
        if self.intercept:
            diagonal[:, -1] += self._intercept_curvature + self._null / self.shape[0]
        return diagonal
