"""The Hessian of softmax regression against automatic differentiation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning

from skactive._math import _softmax as module
from skactive._math._softmax import SoftmaxHessian, conjugate_gradients, span_rows
from skactive._utils import _chunks

# Number of rows of the parameters; 1 is a single logit of two classes.
each_k = pytest.mark.parametrize("k", [1, 2, 3, 7])
each_intercept = pytest.mark.parametrize("intercept", [True, False])
# Small: factorized. Wide: fewer rows than features, and than the limit. Else
# conjugate gradients.
ROUTES = {
    "small": {"m": 30, "d": 5, "limit": 4096},
    "wide": {"m": 12, "d": 40, "limit": 60},
    "wide, then products": {"m": 12, "d": 40, "limit": 12},
    "products": {"m": 60, "d": 6, "limit": 0},
}


def make_problem(k, intercept=True, m=30, d=5, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    parameters = rng.normal(size=(k, d + intercept))
    logits = X @ parameters[:, :d].T
    if intercept:
        logits += parameters[:, d]
    proba = expit(logits[:, 0]) if k == 1 else softmax(logits, axis=1)
    weight = rng.uniform(0.1, 3, m)
    hessian = SoftmaxHessian(
        X, proba, sample_weight=weight, penalty=0.7, intercept=intercept, **options
    )
    return X, parameters, weight, hessian


def differentiate_twice(X, parameters, weight, penalty, intercept_penalty=0.0):
    torch = pytest.importorskip("torch")
    k, width = parameters.shape
    d = X.shape[1]
    inputs = np.hstack([X, np.ones((len(X), 1))])[:, :width]
    inputs, weight = torch.tensor(inputs), torch.tensor(weight)

    def loss(W):
        logits = inputs @ W.T
        if k == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
        label = 0  # the Hessian does not depend on it
        log_loss = -(weight * torch.log_softmax(logits, dim=1)[:, label]).sum()
        prior = penalty * (W[:, :d] ** 2).sum()
        return log_loss + (prior + intercept_penalty * (W[:, d:] ** 2).sum()) / 2

    hessian = torch.autograd.functional.hessian(loss, torch.tensor(parameters))
    return hessian.reshape(k * width, k * width).numpy()


def equal_intercepts(k, width):
    """The unit vector that raises all intercepts alike."""
    direction = np.zeros((k, width))
    direction[:, -1] = k**-0.5
    return direction.ravel()


@each_intercept
@each_k
def test_hessian_is_that_of_automatic_differentiation(k, intercept):
    X, parameters, weight, hessian = make_problem(k, intercept)
    expected = differentiate_twice(X, parameters, weight, 0.7)
    dense = hessian.to_dense()
    if intercept and k > 1:
        # One direction changes no probability: there, and only there, it differs.
        null = equal_intercepts(*parameters.shape)
        assert_allclose(expected @ null, 0, atol=1e-12)
        extra = null @ dense @ null
        assert extra > 0.1
        expected = expected + extra * np.outer(null, null)
    assert_allclose(dense, expected, atol=1e-8)


@each_k
def test_intercepts_may_be_penalized(k):
    X, parameters, weight, hessian = make_problem(k, intercept_penalty=0.2)
    expected = differentiate_twice(X, parameters, weight, 0.7, 0.2)
    assert_allclose(hessian.to_dense(), expected, atol=1e-12)


def test_the_second_of_two_softmax_classes_is_a_single_logit():
    # Logits (-z / 2, z / 2) have the probabilities of the logit z. A softmax that
    # moves along them has the curvature of z.
    X, _, weight, single = make_problem(1)
    proba = np.hstack([1 - single.proba, single.proba])
    double = SoftmaxHessian(X, proba, sample_weight=weight, penalty=1.4)
    V = np.random.default_rng(1).normal(size=(1, 6))
    split = np.vstack([-V / 2, V / 2])
    assert_allclose(
        np.vdot(split, double.matvec(split)), np.vdot(V, single.matvec(V)), rtol=1e-9
    )


# Products and solutions.


@pytest.mark.parametrize("route", ROUTES)
@each_intercept
@each_k
def test_products_and_solutions_are_those_of_the_dense_matrix(k, intercept, route):
    hessian = make_problem(k, intercept, **ROUTES[route])[-1]
    dense = hessian.to_dense()
    V = np.random.default_rng(1).normal(size=(4, *hessian.shape))
    flat = V.reshape(4, -1)
    assert_allclose(hessian.matvec(V).reshape(4, -1), flat @ dense, atol=1e-10)
    solution = hessian.solve(V)
    expected = np.linalg.solve(dense, flat.T).T
    assert_allclose(solution.reshape(4, -1), expected, rtol=1e-5, atol=1e-7)
    assert_allclose(hessian.solve(V[0]), solution[0], atol=1e-7)
    assert_allclose(hessian.matvec(V[0]), hessian.matvec(V)[0], atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@each_intercept
@pytest.mark.parametrize("k", [1, 3])
def test_the_diagonal_is_known_without_the_matrix(k, intercept, kind):
    X, *_, hessian = make_problem(k, intercept)
    hessian.X = kind(X)
    assert_allclose(hessian._diagonal.ravel(), np.diag(hessian.to_dense()))


@pytest.mark.long
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("k", [1, 3])
def test_draws_have_the_inverse_as_their_covariance(k, route, repeated):
    X, _, weight, hessian = make_problem(k, **ROUTES[route])
    if repeated:
        X[6:12] = X[:6]
        proba = hessian.proba[:, 0] if k == 1 else hessian.proba
        hessian = SoftmaxHessian(
            X, proba, sample_weight=weight, penalty=0.7, limit=hessian.limit
        )
    covariance = np.linalg.inv(hessian.to_dense())
    # Seen along some directions, as the whole matrix is large.
    directions = np.random.default_rng(2).normal(size=(8, len(covariance)))
    directions[0] = equal_intercepts(*hessian.shape)
    expected = directions @ covariance @ directions.T
    t = 6_000
    draws = hessian.sample(t, np.random.default_rng(3)).reshape(t, -1) @ directions.T
    spread = np.sqrt(np.diag(expected))
    assert np.abs(draws.mean(axis=0) / spread).max() < 5 / np.sqrt(t)
    # The error of an empirical covariance, in units of its standard deviation.
    error = (np.cov(draws.T) - expected) * np.sqrt(t)
    scale = np.sqrt(np.outer(spread**2, spread**2) + expected**2)
    assert np.abs(error / scale).max() < 5


@pytest.mark.parametrize(
    "kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array]
)
@pytest.mark.parametrize("route", ROUTES)
def test_sparse_rows_give_what_dense_ones_give(route, kind):
    X, _, weight, dense = make_problem(3, **ROUTES[route])
    options = {"sample_weight": weight, "penalty": 0.7, "limit": dense.limit}
    thin = SoftmaxHessian(kind(X), dense.proba, **options)
    V = np.random.default_rng(1).normal(size=(2, *dense.shape))
    assert_allclose(thin.to_dense(), dense.to_dense(), atol=1e-12)
    assert_allclose(thin.matvec(V), dense.matvec(V), atol=1e-12)
    assert_allclose(thin.solve(V), dense.solve(V), atol=1e-8)
    draws = [h.sample(3, np.random.default_rng(0)) for h in (thin, dense)]
    assert_allclose(*draws, atol=1e-3 if "products" in route else 1e-7)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("route", ROUTES)
def test_chunks_change_nothing(route, kind, monkeypatch):
    X, _, weight, hessian = make_problem(3, **ROUTES[route])
    V = np.random.default_rng(1).normal(size=(2, *hessian.shape))
    whole = hessian.to_dense(), hessian.matvec(V), hessian.solve(V)
    monkeypatch.setattr(module, "chunk_size", lambda width: 7)
    monkeypatch.setattr(module, "_COPIED", 0)
    again = SoftmaxHessian(
        kind(X),
        hessian.proba,
        sample_weight=weight,
        penalty=0.7,
        limit=hessian.limit,
    )
    parts = again.to_dense(), again.matvec(V), again.solve(V)
    for one, other in zip(parts, whole, strict=True):
        assert_allclose(one, other, atol=1e-8)


def test_draws_come_in_blocks_of_bounded_memory(monkeypatch):
    hessian = make_problem(3)[-1]
    whole = hessian.sample(10, np.random.default_rng(0))
    monkeypatch.setattr(module, "chunk_size", lambda width: 3)
    blocks = hessian.sample(10, np.random.default_rng(0), dtype=np.float32)
    assert blocks.dtype == np.float32
    assert_allclose(blocks, whole, rtol=1e-5)


def test_read_only_float32_rows_are_left_as_they_are():
    X, _, weight, expected = make_problem(3)
    X = X.astype(np.float32)
    X.flags.writeable = False
    hessian = SoftmaxHessian(X, expected.proba, sample_weight=weight, penalty=0.7)
    assert_allclose(hessian.to_dense(), expected.to_dense(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("route", ["small", "wide"])
def test_a_sure_model_has_a_solution(route):
    m, d = ROUTES[route]["m"], ROUTES[route]["d"]
    X = np.random.default_rng(0).normal(size=(m, d))
    proba = np.eye(3)[np.arange(m) % 3]
    hessian = SoftmaxHessian(X, proba, penalty=2.0, limit=ROUTES[route]["limit"])
    B = np.zeros(hessian.shape)
    B[:, :d] = 1
    assert_allclose(hessian.solve(B)[:, :d], 0.5, atol=1e-6)  # the prior alone
    assert np.isfinite(hessian.sample(5, np.random.default_rng(0))).all()


@pytest.mark.parametrize("route", ROUTES)
def test_float32_probabilities_of_a_sure_model_are_those_of_float64(route):
    m, d = ROUTES[route]["m"], ROUTES[route]["d"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d))
    logits = rng.normal(size=(m, 9)) + 18 * np.eye(9)[np.arange(m) % 9]
    B = rng.normal(size=(9, d + 1))
    exact, rounded = (
        SoftmaxHessian(X, proba, limit=ROUTES[route]["limit"])
        for proba in (softmax(logits, axis=1), softmax(np.float32(logits), axis=1))
    )
    B -= B.mean(axis=0)  # so that the nearly free direction does not count
    assert np.linalg.eigvalsh(rounded.to_dense()).min() > 0
    assert_allclose(rounded.solve(B), exact.solve(B), rtol=1e-3, atol=1e-6)


def test_one_row_leaves_the_prior_in_most_directions():
    hessian = SoftmaxHessian([[3.0, 4.0]], [0.5], penalty=2.0, intercept=False)
    assert_allclose(np.linalg.eigvalsh(hessian.to_dense()), [2, 2 + 25 / 4])


# What goes wrong.


def test_equations_that_take_too_long_are_named():
    hessian = make_problem(3, limit=0, m=60, max_iter=2)[-1]
    with pytest.warns(ConvergenceWarning, match="max_iter=2 steps for 1 of 2"):
        hessian.solve(np.stack([np.ones(hessian.shape), np.zeros(hessian.shape)]))


@pytest.mark.parametrize("penalty", [0.0, np.inf])
def test_a_penalty_that_gives_no_finite_variance_is_named(penalty):
    with pytest.raises(ValueError, match=f".penalty. must be above 0.*got {penalty}"):
        SoftmaxHessian([[1.0], [2.0]], [0.5, 0.5], penalty=penalty)


def test_columns_too_alike_for_the_precision_are_named():
    X = np.random.default_rng(0).normal(size=(30, 5)) + 1e10
    hessian = SoftmaxHessian(X, np.full(30, 0.5), penalty=1e-6)
    with pytest.raises(np.linalg.LinAlgError, match="StandardScaler"):
        hessian.solve(np.ones((1, 6)))


# The tools below.


def test_conjugate_gradients_solve_each_right_hand_side():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(9, 9))
    A = root @ root.T + np.eye(9)
    B = np.vstack([rng.normal(size=(5, 9)), np.zeros((1, 9))])
    V = conjugate_gradients(lambda V: V @ A, B, np.diag(A), tol=1e-10)
    assert_allclose(V, np.linalg.solve(A, B.T).T, atol=1e-7)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rank", [6, 3])
def test_a_span_is_orthonormal_and_holds_the_rows(kind, rank):
    X = np.random.default_rng(0).normal(size=(6, 20))
    X[rank:] = X[: 6 - rank] * 2  # these add nothing
    mixing, coordinates = span_rows(kind(X))
    basis = X.T @ mixing
    assert basis.shape == (20, rank)
    assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-8)
    assert_allclose(coordinates @ basis.T, X, atol=1e-8)
    if rank < 6:  # eigenvectors, whose signs are nobody's choice but ours
        assert (mixing.max(axis=0) >= -mixing.min(axis=0)).all()


def test_chunk_size_is_the_tools():
    assert module.chunk_size is _chunks.chunk_size


def test_rows_half_as_many_as_features_are_solved_in_their_span():
    rng = np.random.default_rng(0)
    X, proba = rng.normal(size=(6, 40)), rng.uniform(size=6)
    hessian = SoftmaxHessian(X, proba, penalty=0.3)
    B = rng.normal(size=hessian.shape)
    expected = np.linalg.solve(hessian.to_dense(), B.ravel())
    assert_allclose(hessian.solve(B).ravel(), expected, rtol=1e-8)
    assert "_cholesky" not in vars(hessian)  # of 41 x 41, and of 7 x 7 for the span
    assert hessian._inner._cholesky[0].shape == (7, 7)
