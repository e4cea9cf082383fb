"""What the model is made of: its loss, and the update of the inverse Hessian."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from skactive.linear_model._logistic import PenalizedLogLoss, bfgs, l_bfgs

from ._helpers import make


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_gradient_is_that_of_the_value(k, intercept):
    X, y = make(k, n=30, d=6)
    rng = np.random.default_rng(0)
    loss = PenalizedLogLoss(X, y, k, rng.random(30), 0.7, intercept)
    x = rng.normal(size=np.prod(loss.shape))

    def value(x):  # the sum of its definition
        weights = x.reshape(loss.shape)
        logits = X @ weights[:, :6].T + (weights[:, 6] if intercept else 0)
        if k == 2:
            logits = np.column_stack([np.zeros(30), logits])
        log_proba = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        fit = loss.weight @ log_proba[np.arange(30), y]
        return np.square(weights[:, :6]).sum() / (2 * 0.7) - fit

    assert check_grad(value, loss.gradient, x) < 1e-5
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


@pytest.mark.parametrize("preconditioned", [False, True])
def test_l_bfgs_finds_the_minima_of_several_quadratics(preconditioned):
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(3, 6, 6))
    matrices = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(6)
    matrices *= np.array([0.01, 1, 100])[:, None, None]
    targets = rng.normal(size=(3, 6))
    targets[0] = 0  # at its minimum from the start
    inverses = np.linalg.inv(1.2 * matrices)
    n_calls = 0

    def gradient(x):
        nonlocal n_calls
        n_calls += 1
        return np.einsum("mij,mj->mi", matrices, x) - targets

    def precondition(vectors):
        return np.einsum("mij,mj->mi", inverses, vectors)

    found, n_iter = l_bfgs(
        gradient,
        np.zeros((3, 6)),
        lambda x, g, slope: slope > -1e-16,
        1,
        precondition if preconditioned else None,
        max_iter=1000,
    )
    expected = np.linalg.solve(matrices, targets[..., None])[..., 0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert n_iter < n_calls < (20 if preconditioned else 150)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [4, 1e-3, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_l_bfgs_ends_where_only_rounding_is_left(dtype, scale):
    targets = np.array([[0, 1], [1, -3], [4, 2]], dtype=dtype)
    found, n_iter = l_bfgs(
        lambda x: np.tanh(x - targets),
        np.zeros((3, 2), dtype=dtype),
        lambda x, g, slope: slope > -np.finfo(dtype).tiny,
        scale,
        max_iter=100,
    )
    assert found.dtype == dtype
    assert n_iter <= 100
    np.testing.assert_allclose(found, targets, atol=1e-5)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_shared_inverse_oracle_of_loops(k, intercept):
    X, y = make(k, n=30, d=6)
    rng = np.random.default_rng(0)
    weight = rng.random(30)
    loss = PenalizedLogLoss(X, y, k, weight, 0.7, intercept)
    x = rng.normal(size=np.prod(loss.shape))
    W = x.reshape(loss.shape)
    rows = np.column_stack([X, np.ones(30)]) if intercept else X
    expected = np.eye(rows.shape[1]) / 0.7
    if intercept:
        expected[-1, -1] = 1e-6 * weight.sum()
    for row, share in zip(rows, weight, strict=True):
        logits = W @ row
        if k == 2:
            curvature = 1 / (2 + 2 * np.cosh(logits[0]))
        else:
            proba = np.exp(logits) / np.exp(logits).sum()
            curvature = np.mean([p - p**2 for p in proba])
        expected += share * curvature * np.outer(row, row)
    np.testing.assert_allclose(
        loss.shared_inverse(x), np.linalg.inv(expected), rtol=1e-6, atol=1e-9
    )
