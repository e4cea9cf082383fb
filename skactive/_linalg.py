"""Linear algebra that NumPy and SciPy do not have in this form."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpotrf
from sklearn.exceptions import ConvergenceWarning

__all__ = ["conjugate_gradients", "span_rows"]

# Lengths, relative to the longest, below which a row's own share is rounding.
_DEPENDENT = 1e-5


def conjugate_gradients(product, B, diagonal, *, tol=1e-8, max_iter=1000):
    """Solve equations with a positive definite matrix that is known by its products.

    Parameters
    ----------
    product : callable
        Multiplies each of a block of vectors, (r, ...) to (r, ...), with the matrix.
    B : ndarray of shape (r, ...)
        Right-hand sides. Each has its own step lengths, and leaves the block when it
        is solved.
    diagonal : ndarray of shape (...)
        Of the matrix; the preconditioner.
    tol : float, default=1e-8
        Norm of a residual at most, relative to that of its right-hand side.
    max_iter : int, default=1000
        Number of products at most. A `ConvergenceWarning` says where it was reached.

    Returns
    -------
    V : ndarray of the shape of `B`

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._linalg import conjugate_gradients
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> conjugate_gradients(lambda V: V @ A, np.array([[3.0, 4.0]]), A.diagonal())
    array([[1., 1.]])
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
    """Find an orthonormal basis of what a few long rows span.

    Parameters
    ----------
    X : ndarray or CSR matrix of float64, shape (m, d)

    Returns
    -------
    mixing : ndarray of shape (m, r)
        `X.T @ mixing` is the basis; as a product it is as sparse as `X`.
    coordinates : ndarray of shape (m, r)
        Of the rows in the basis: `X` is `coordinates @ (X.T @ mixing).T`.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._linalg import span_rows
    >>> X = np.array([[3.0, 4.0, 0.0], [6.0, 8.0, 0.0]])
    >>> mixing, coordinates = span_rows(X)
    >>> np.abs(coordinates).round(6)
    array([[ 5.],
           [10.]])
    """
    gram = X @ X.T
    gram = gram.toarray() if sparse.issparse(gram) else gram
    # Orthonormal in the order of the rows, so that rounding moves nothing much.
    factor, failed = dpotrf(gram, lower=True, clean=True)
    pivots = np.diag(factor)
    if not failed and pivots.min() > _DEPENDENT * pivots.max():
        unit = np.eye(len(factor))
        return solve_triangular(factor, unit, lower=True, trans="T"), factor
    # Some rows depend on others, as empty and repeated texts do.
    values, vectors = eigh(gram)
    kept = values > _DEPENDENT**2 * values[-1]
    vectors = vectors[:, kept]
    largest = np.abs(vectors).argmax(axis=0)
    vectors *= np.sign(vectors[largest, np.arange(len(largest))])
    root = np.sqrt(values[kept])
    return vectors / root, vectors * root


def _dot(A, B):
    return np.einsum("rd,rd->r", A, B)
