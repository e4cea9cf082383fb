"""The Hessian of softmax regression, and equations with it.

Parameters are arrays of shape (k, d + 1), one row for each class as scikit-learn's
`coef_`, with the intercept last; (k, d) without intercepts. A block of r of them has
the shape (r, k, d + 1). Flattened, they are in C order.
"""

import warnings
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, solve_triangular
from scipy.linalg.lapack import dpotrf
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from .._utils._chunks import as_floats, chunk_size, chunks

# Rows up to this many bytes are converted to float64 at once, others in chunks.
_COPIED = 2**26
# Minimum relative precision of an unpenalized intercept, which has none only for
# probabilities of exactly 0 and 1.
_FLOOR = 1e-10
_SAMPLING_TOL = 1e-5  # of conjugate gradients for draws


class SoftmaxHessian:
    r"""Hessian of a weighted log loss with a quadratic penalty.

    The function is :math:`\sum_i w_i \ell_i(W) + \frac{\lambda}{2} \|W\|^2`, where
    :math:`\ell_i` is the log loss of row i of `X` (m, d). `proba` is (m, k), or (m,)
    for a model of two classes with a single logit, which has k = 1.

    If `intercept_penalty` is 0, adding one number to all intercepts of a softmax
    changes no probability: along that direction, the Hessian gets the mean of the
    intercepts' own curvature instead of 0. Up to `limit` parameters the Hessian is
    factorized, which costs O(m d² k²) and O(d³ k³); above, equations are solved by
    conjugate gradients up to the relative residual `tol`. Up to `limit` rows, equations
    are solved in the space that the rows span, if they are at most half as many as the
    features, or fewer than the features if there are too many parameters to factorize.
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
        X = as_floats(X)
        proba = np.asarray(proba, dtype=np.float64)
        m, d = X.shape
        if not 0 < penalty < np.inf:
            raise ValueError(
                f"'penalty' must be above 0 and finite, got {penalty!r}. Every weight "
                "needs a finite variance."
            )
        if 8 * m * d <= _COPIED or sparse.issparse(X):
            X = X.astype(np.float64, copy=False)
        self.X = X
        self.single = proba.ndim == 1
        # Probabilities of float32 add up to 1 with an error above `_FLOOR`.
        proba = proba[:, None] if self.single else normalize(proba, norm="l1")
        self.proba = np.clip(proba, 0, 1)
        weight = np.ones(m) if sample_weight is None else sample_weight
        self.weight = np.asarray(weight, dtype=np.float64)
        self.penalty = float(penalty)
        self.intercept = intercept
        self.intercept_penalty = float(intercept_penalty)
        self.shape = (self.proba.shape[1], d + bool(intercept))
        self.limit, self.tol, self.max_iter = limit, tol, max_iter

    def matvec(self, V):
        """Multiply `V` (k, d + 1) or (r, k, d + 1) with the Hessian."""
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
        """Return the Hessian (k (d + 1), k (d + 1))."""
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

    # Parts of the products.

    def _as_block(self, V):
        V = np.asarray(V, dtype=np.float64)
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
        """Multiply by a square root A of the Hessian A Aᵀ in `_curve`."""
        if self.single:
            noise *= np.sqrt(proba * (1 - proba))
        else:
            noise *= np.sqrt(proba)
            noise -= proba * noise.sum(axis=2, keepdims=True)
        noise *= np.sqrt(weight)

    def _curvature(self, rows, proba, a, b):
        """Return the second derivative of each row's loss in the logits a and b."""
        other = 1 - proba[:, b] if a == b else -proba[:, b]
        return self.weight[rows] * proba[:, a] * other

    def _dense_block(self, X, curvature):
        d = X.shape[1]
        block = np.empty((self.shape[1], self.shape[1]))
        # All values have one sign, so a product of a matrix with its own transpose
        # is enough, at half the cost.
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
        """Precision that the penalties add to the diagonal, (k, d + 1)."""
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

    def solve(self, B):
        """Return `V` with `matvec(V) == B`, for `B` (k, d + 1) or (r, k, d + 1)."""
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
        """Draw parameters (n_draws, k, d + 1) with mean 0 and this precision."""
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
            # The loss depends on the span of the rows only; elsewhere the prior holds.
            noise /= np.sqrt(self._precision)
            return self._replace_span(noise, self._inner._sample_block(r, rng))
        # A right-hand side whose covariance is the Hessian, as a sum of the square
        # roots of its terms.
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

    # Solvers.

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
        """Replace the coordinates of `V` in the span by others."""
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


# Relative length below which a row's own component is rounding error.
_DEPENDENT = 1e-5


def conjugate_gradients(product, B, diagonal, *, tol=1e-8, max_iter=1000):
    """Solve equations with a positive definite matrix given by its products.

    `product` multiplies a block of vectors (r, ...) with the matrix, `B` (r, ...) are
    the right-hand sides, and `diagonal` (...) is the preconditioner. Each right-hand
    side has its own step lengths and leaves the block when its relative residual is
    below `tol`.
    """
    shape = B.shape
    B, diagonal = B.reshape(len(B), -1), diagonal.ravel()
    V = np.zeros_like(B)
    goal = tol * np.linalg.norm(B, axis=1)
    active = np.flatnonzero(goal)
    residual = B[active]
    direction = residual / diagonal
    energy = _dot(residual, direction)
    for _ in range(max_iter):
        if not len(active):
            break
        image = product(direction.reshape(-1, *shape[1:])).reshape(direction.shape)
        length = (energy / _dot(direction, image))[:, None]
        V[active] += length * direction
        residual -= length * image
        going = np.linalg.norm(residual, axis=1) > goal[active]
        if not going.all():
            active, residual = active[going], residual[going]
            direction, energy = direction[going], energy[going]
        scaled = residual / diagonal
        previous, energy = energy, _dot(residual, scaled)
        direction *= (energy / previous)[:, None]
        direction += scaled
    if len(active):
        warnings.warn(
            f"conjugate gradients have not reached tol={tol} in max_iter={max_iter} "
            f"steps for {len(active)} of {len(B)} right-hand sides. Raise max_iter, "
            "tol or the penalty.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return V.reshape(shape)


def span_rows(X):
    """Return an orthonormal basis of the span of `X` (m, d) as mixing and coordinates.

    `X.T @ mixing` (m, r) is the basis; kept as a product, it is as sparse as `X`. `X`
    is `coordinates @ (X.T @ mixing).T`, with coordinates (m, r).
    """
    gram = X @ X.T
    gram = gram.toarray() if sparse.issparse(gram) else gram
    # Orthonormalized in the order of the rows, which is robust to rounding.
    factor, failed = dpotrf(gram, lower=True, clean=True)
    pivots = np.diag(factor)
    if not failed and pivots.min() > _DEPENDENT * pivots.max():
        unit = np.eye(len(factor))
        return solve_triangular(factor, unit, lower=True, trans="T"), factor
    # Some rows depend on others, such as empty and repeated texts.
    values, vectors = eigh(gram)
    is_large = values > _DEPENDENT**2 * values[-1]
    vectors = vectors[:, is_large]
    largest = np.abs(vectors).argmax(axis=0)
    vectors *= np.sign(vectors[largest, np.arange(len(largest))])
    root = np.sqrt(values[is_large])
    return vectors / root, vectors * root


def _dot(A, B):
    return np.einsum("rd,rd->r", A, B)
