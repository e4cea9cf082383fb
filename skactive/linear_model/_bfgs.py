"""Quasi-Newton minimization, from a start near the minimum or from anywhere."""

from scipy.linalg import get_blas_funcs
from scipy.optimize import minimize

# Maximum growth of the squared gradient during the steps.
_MOST = 4.0


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


def l_bfgs(function, x, is_small, *, max_iter):
    """Minimize a smooth function from anywhere by SciPy's L-BFGS.

    `function(x)` returns the value and the gradient (p,). Returns `x` (p,), where
    `is_small` holds unless the values no longer differ or `max_iter` was reached, and
    the number of steps.
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
