"""Find the minimum of a function: anew, or again when it has changed a little."""

from scipy.linalg import get_blas_funcs
from scipy.optimize import minimize

# The squared gradient may grow on the way, but not beyond so many times the first.
_MOST = 4.0


def bfgs(gradient, x, inverse, is_small, *, max_iter=50):
    """Minimise a smooth, strictly convex function near its minimum.

    The method of Broyden, Fletcher, Goldfarb and Shanno with full steps: it learns the
    inverse Hessian from the gradients that it sees, and gives it back for the next
    time. There is no line search, so it is for starts near the minimum; it says so
    when it was not near enough.

    Parameters
    ----------
    gradient : callable
        `gradient(x)` returns the gradient, ndarray of shape (p,).
    x : ndarray of float32 or float64, shape (p,)
        Where to start.
    inverse : ndarray of shape (p, p), in Fortran order
        About the inverse of the Hessian, positive definite. The upper triangle is
        read. Left as it is.
    is_small : callable
        `is_small(x, gradient)` tells when to stop.
    max_iter : int, default=50
        Steps at most.

    Returns
    -------
    x : ndarray of shape (p,)
    inverse : ndarray of shape (p, p), or None
        The better estimate, for the next time; its upper triangle counts. None where
        steps stopped to help: then `x` is the start.
    n_iter : int
        Steps taken.

    References
    ----------
    J. Nocedal, S. J. Wright, "Numerical optimization", 2nd edition, 2006, section 6.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.linear_model._bfgs import bfgs
    >>> hessian = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> x, inverse, _ = bfgs(
    ...     lambda x: hessian @ x - [3.0, 4.0],
    ...     np.zeros(2),
    ...     np.eye(2, order="F") / 3,
    ...     lambda x, gradient: np.linalg.norm(gradient) < 1e-10,
    ... )
    >>> x.round(6)
    array([1., 1.])
    """
    multiply, update = get_blas_funcs(("symv", "syr2"), (inverse,))
    start, n_iter, owned = x, 0, False
    g = gradient(x)
    step = -multiply(1.0, inverse, g)
    limit = _MOST * -(g @ step)  # gᵀ M g, the squared length that counts here
    while not is_small(x, g):
        x = x + step
        g_new = gradient(x)
        image = multiply(1.0, inverse, g_new)
        change = g_new - g
        curvature = step @ change
        # In this form NaN fails, too.
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


def l_bfgs(function, x, is_small, *, max_iter):
    """Minimise a smooth function from anywhere, by SciPy's L-BFGS.

    Parameters
    ----------
    function : callable
        `function(x)` returns the value and the gradient, ndarray of shape (p,).
    x : ndarray of float64, shape (p,)
        Where to start.
    is_small : callable
        `is_small(x, gradient)` tells when to stop.
    max_iter : int
        Steps at most.

    Returns
    -------
    x : ndarray of shape (p,)
        Where it stopped: `is_small` there, unless values too near each other to tell
        apart or `max_iter` came first.
    n_iter : int
        Steps taken.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.linear_model._bfgs import l_bfgs
    >>> x, _ = l_bfgs(
    ...     lambda x: (np.cosh(x - 2).sum(), np.sinh(x - 2)),
    ...     np.zeros(3),
    ...     lambda x, gradient: np.linalg.norm(gradient) < 1e-5,
    ...     max_iter=100,
    ... )
    >>> x.round(4)
    array([2., 2., 2.])
    """
    last = {}

    def evaluate(x):
        value, gradient = function(x)
        last["x"], last["gradient"] = x, gradient
        return value, gradient

    def stop(intermediate_result):
        if is_small(last["x"], last["gradient"]):
            raise StopIteration

    options = {"maxiter": max_iter, "gtol": 0, "ftol": 0, "maxls": 50}
    found = minimize(
        evaluate, x, method="L-BFGS-B", jac=True, callback=stop, options=options
    )
    return found.x, found.nit
