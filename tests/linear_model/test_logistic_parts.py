"""What the model is made of: its loss, and the update of the inverse Hessian."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from skactive.linear_model._logistic import PenalizedLogLoss, bfgs

from ._helpers import make


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_gradient_is_that_of_the_value(k, intercept):
    X, y = make(k, n=30, d=6)
    rng = np.random.default_rng(0)
    loss = PenalizedLogLoss(X, y, k, rng.random(30), 0.7, intercept)
    x = rng.normal(size=np.prod(loss.shape))
    assert check_grad(lambda x: loss(x)[0], loss.gradient, x) < 1e-5
    np.testing.assert_array_equal(loss(x)[1], loss.gradient(x))
    # Columns of the Hessian as differences of gradients.
    step = 1e-6
    columns = [
        (loss.gradient(x + step * e) - loss.gradient(x - step * e)) / (2 * step)
        for e in np.eye(len(x))
    ]
    product = loss.inverse_hessian(x) @ np.array(columns)
    if k == 2 or not intercept:
        np.testing.assert_allclose(product, np.eye(len(x)), atol=1e-6)
    else:  # but for adding one number to all intercepts
        null = np.zeros(loss.shape)
        null[:, -1] = k**-0.5
        null = null.ravel()
        expected = np.eye(len(x)) - np.outer(null, null)
        np.testing.assert_allclose(product, expected, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_update_is_the_formula_of_the_books(dtype):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    hessian = (root @ root.T + np.eye(6)).astype(dtype)
    inverse = np.asfortranarray(np.diag(0.5 / np.diag(hessian)))
    target = rng.normal(size=6).astype(dtype)
    points, gradients = [], []

    def gradient(x):
        points.append(x)
        gradients.append(hessian @ x - target)
        return gradients[-1]

    _, updated, n_iter = bfgs(
        gradient, np.zeros(6, dtype), inverse, lambda x, g: len(points) > 3
    )
    assert n_iter == 3
    expected = np.array(inverse, dtype=np.float64)
    for i in range(3):
        s, v = points[i + 1] - points[i], gradients[i + 1] - gradients[i]
        rho = 1 / (v @ s)
        left = np.eye(6) - rho * np.outer(s, v)
        expected = left @ expected @ left.T + rho * np.outer(s, s)
    tol = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(
        np.triu(updated), np.triu(expected), atol=tol * np.abs(expected).max()
    )


def test_bfgs_leaves_its_arguments_and_gives_up_where_it_is_of_no_use():
    inverse = np.eye(2, order="F")
    before = inverse.copy()
    start = np.array([5.0, 5.0])

    def solve(gradient):
        return bfgs(gradient, start, inverse, lambda x, g: np.abs(g).max() < 1e-9)

    # Curvature ten times what the matrix says: the first step leads away.
    x, updated, _ = solve(lambda x: 10 * x)
    assert updated is None
    np.testing.assert_array_equal(x, start)
    assert solve(lambda x: np.full(2, np.nan))[1] is None
    x, updated, _ = solve(lambda x: 1.5 * x)
    np.testing.assert_allclose(x, 0, atol=1e-9)
    np.testing.assert_array_equal(inverse, before)
    assert updated is not inverse
