"""Laplace draws of linear logistic models against the loss that scikit-learn fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier

from skactive.linear_model import _normal as laplace
from skactive.posterior import sample_proba

from ._helpers import X_ASKED, log_odds, make_data

torch = pytest.importorskip("torch")

WEIGHTS = {"no": 1.0, "maybe": 3.0, "yes": 0.5}
EXACT = {"tol": 1e-10, "max_iter": 10_000}


def loss_of_softmax(W, inputs, codes, weight):
    losses = -torch.log_softmax(inputs @ W.T, dim=1)
    return (weight * losses[torch.arange(len(codes)), codes]).sum()


def loss_of_sigmoid(W, inputs, codes, weight):
    signs = torch.tensor(2.0 * codes - 1.0)
    return -(weight * torch.nn.functional.logsigmoid(signs * (inputs @ W[0]))).sum()


# Loss, gradient and Hessian by automatic differentiation; the gradient must vanish at
# the fitted weights, so that this is the function that scikit-learn minimizes.


def expand(mean, X, loss, codes, weight, penalty, intercept_penalty=0.0, atol=1e-5):
    inputs = torch.tensor(np.hstack([X, np.ones((len(X), 1))])[:, : mean.shape[1]])
    d = X.shape[1]

    def objective(W):
        prior = penalty * (W[:, :d] ** 2).sum()
        prior = prior + intercept_penalty * (W[:, d:] ** 2).sum()
        return loss(W, inputs, codes, torch.tensor(weight)) + prior / 2

    W = torch.tensor(np.asarray(mean, dtype=np.float64), requires_grad=True)
    (gradient,) = torch.autograd.grad(objective(W), W)
    assert_allclose(gradient.numpy(), 0, atol=atol)
    hessian = torch.autograd.functional.hessian(objective, W)
    return hessian.numpy().reshape(W.numel(), W.numel())


def parameters_of(model, row=None):
    """Fitted weights and intercepts, (q, d + 1), or (q, d) without intercepts."""
    rows = slice(None) if row is None else slice(row, row + 1)
    if not model.fit_intercept:
        return model.coef_[rows]
    return np.column_stack([model.coef_[rows], model.intercept_[rows]])


def compare(drawn, exact, expected):
    """Mean (r,) and covariance (r, r) of draws (r, t), in units of their errors."""
    t = drawn.shape[1]
    spread = np.sqrt(np.diag(expected))
    error = (drawn.mean(axis=1) - exact) / spread
    assert np.abs(error).max() * np.sqrt(t) < 5
    scale = np.sqrt(np.outer(spread**2, spread**2) + expected**2)
    error = (np.cov(drawn) - expected) / scale
    assert np.abs(error).max() * np.sqrt(t) < 5


def check_draws(model, X_train, hessian, **train):
    """Compare the log-odds of all rows and classes together."""
    draws = sample_proba(model, X_ASKED, 20_000, 0, X_train=X_train, **train)
    n, t, k = draws.shape
    odds = log_odds(draws).swapaxes(1, 2).reshape(-1, t)
    exact = log_odds(model.predict_proba(X_ASKED)).ravel()
    # Each as a function of the weights.
    width = len(hessian) // len(model.coef_)
    inputs = np.hstack([X_ASKED, np.ones((n, 1))])[:, :width]
    against = np.eye(1) if k == 2 else np.hstack([-np.ones((k - 1, 1)), np.eye(k - 1)])
    functions = np.einsum("ij,qa->iqaj", inputs, against).reshape(len(odds), -1)
    # The pseudo-inverse leaves out the direction that no probability shows.
    covariance = np.linalg.pinv(hessian, rcond=1e-12, hermitian=True)
    compare(odds, exact, functions @ covariance @ functions.T)


@pytest.mark.long
@pytest.mark.parametrize("class_weight", [None, "balanced", WEIGHTS])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sample_weight", [None, "some"])
def test_softmax_logits_vary_jointly_as_the_loss_is_curved(
    class_weight, fit_intercept, sample_weight
):
    X, y = make_data(3)
    given = np.ones(len(X))
    if sample_weight is not None:
        given = np.where(y == "no", 4.0, 1.0) * np.linspace(0.2, 2, len(X))
    model = LogisticRegression(
        C=0.3, fit_intercept=fit_intercept, class_weight=class_weight, **EXACT
    ).fit(X, y, sample_weight=given)
    weight = given.copy()
    if class_weight is not None:
        if class_weight == "balanced":
            class_weight = {
                c: given.sum() / (3 * given[y == c].sum()) for c in model.classes_
            }
        weight *= np.array([class_weight[c] for c in y])
    codes = np.searchsorted(model.classes_, y)
    mean = parameters_of(model)
    hessian = expand(mean, X, loss_of_softmax, codes, weight, 1 / 0.3)
    check_draws(model, X, hessian, y_train=y, sample_weight=given)


def test_seven_classes_vary_jointly_as_the_loss_is_curved():
    X, y = make_data(7, m=150)
    model = LogisticRegression(C=0.3, **EXACT).fit(X, y)
    assert len(model.classes_) == 7
    codes = np.searchsorted(model.classes_, y)
    mean = parameters_of(model)
    hessian = expand(mean, X, loss_of_softmax, codes, np.ones(150), 1 / 0.3)
    check_draws(model, X, hessian)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
        {"class_weight": {"maybe": 2.0}},
        {"solver": "newton-cholesky"},
        {"solver": "liblinear", "intercept_scaling": 0.3},
        {"solver": "liblinear", "class_weight": {"maybe": 2.0}},
        {"solver": "liblinear", "fit_intercept": False},
    ],
    ids=str,
)
def test_a_single_logit_varies_jointly_as_the_loss_is_curved(options):
    X, y = make_data(2)
    model = LogisticRegression(C=2.0, **EXACT, **options).fit(X, y)
    weight = np.ones(len(X))
    if options.get("class_weight") == "balanced":
        weight = len(y) / 2 / np.where(y == "no", (y == "no").sum(), (y != "no").sum())
    elif "class_weight" in options:
        weight[y == "maybe"] = 2.0
    mean = parameters_of(model)
    liblinear = options.get("solver") == "liblinear"
    own = 0.5 / options.get("intercept_scaling", 1.0) ** 2 if liblinear else 0.0
    codes = y == "no"
    hessian = expand(mean, X, loss_of_sigmoid, codes, weight, 0.5, own, atol=1e-4)
    check_draws(model, X, hessian, y_train=y)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.filterwarnings("ignore::FutureWarning:sklearn")
def test_the_penalty_of_a_search_over_penalties_is_the_chosen_one(k):
    X, y = make_data(k)
    model = LogisticRegressionCV(Cs=[0.01, 0.1, 1.0], cv=3, **EXACT).fit(X, y)
    penalty = 1 / np.ravel(model.C_)[0]
    codes = np.searchsorted(model.classes_, y)
    loss = loss_of_softmax if k == 3 else loss_of_sigmoid
    hessian = expand(parameters_of(model), X, loss, codes, np.ones(len(X)), penalty)
    check_draws(model, X, hessian, y_train=y)


@pytest.mark.long
@pytest.mark.parametrize("class_weight", [None, "balanced", WEIGHTS])
@pytest.mark.parametrize("k", [2, 3])
def test_stochastic_descent_has_independent_logits(k, class_weight, monkeypatch):
    X, y = make_data(k)
    if isinstance(class_weight, dict):
        class_weight = {c: class_weight[c] for c in np.unique(y)}
    model = SGDClassifier(
        "log_loss",
        alpha=0.05,
        class_weight=class_weight,
        max_iter=10_000,
        tol=None,
        average=5_000,
        random_state=0,
    ).fit(X, y)
    if class_weight == "balanced":
        class_weight = {c: len(y) / (k * (y == c).sum()) for c in model.classes_}
    hessians = []
    for row, label in enumerate(model.classes_[-len(model.coef_) :]):
        weight = np.ones(len(X))
        if class_weight is not None:
            # Of several classes, each problem weighs its own class's rows.
            for c in model.classes_ if k == 2 else [label]:
                weight[y == c] = class_weight[c]
        mean = parameters_of(model, row)
        hessians.append(
            expand(
                mean, X, loss_of_sigmoid, y == label, weight, 0.05 * len(X), atol=0.6
            )
        )
    if k == 2:
        check_draws(model, X, hessians[0], y_train=y)
        return
    # Three sigmoids and their sum have one logit less to be read off: compare before.
    seen = []
    normalize = laplace._normalize_sigmoids

    def spy(logits):
        seen.append(logits.copy())
        normalize(logits)

    monkeypatch.setattr(laplace, "_normalize_sigmoids", spy)
    t = 20_000
    draws = sample_proba(model, X_ASKED, t, 0, X_train=X, y_train=y)
    logits = np.concatenate(seen, axis=1)  # (k, n, t)
    sigmoids = expit(logits).transpose(1, 2, 0)
    assert_allclose(draws, sigmoids / sigmoids.sum(axis=2, keepdims=True), rtol=1e-12)
    inputs = np.hstack([X_ASKED, np.ones((5, 1))])
    exact = model.decision_function(X_ASKED).T
    expected = np.zeros((15, 15))
    for j in range(3):
        part = inputs @ np.linalg.inv(hessians[j]) @ inputs.T
        expected[5 * j : 5 * j + 5, 5 * j : 5 * j + 5] = part
    compare(logits.reshape(15, t), exact.ravel(), expected)


@pytest.mark.long
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 4.0}])
def test_one_vs_rest_is_a_model_per_class(class_weight):
    X, y = make_data(3)
    single = LogisticRegression(class_weight=class_weight, **EXACT)
    model = OneVsRestClassifier(single).fit(X, y)
    draws = sample_proba(model, X_ASKED, 20_000, 0, X_train=X, y_train=y)
    # The same by hand: three binary models, drawn one after the other.
    parts = []
    for seed, label in enumerate(model.classes_):
        part = LogisticRegression(class_weight=class_weight, **EXACT)
        part.fit(X, (y == label).astype(int))
        positive = sample_proba(
            part, X_ASKED, 20_000, seed, X_train=X, y_train=(y == label).astype(int)
        )
        parts.append(positive[..., 1])
    by_hand = np.stack(parts, axis=2)
    by_hand /= by_hand.sum(axis=2, keepdims=True)
    assert_allclose(draws.mean(axis=1), by_hand.mean(axis=1), atol=0.01)
    assert_allclose(draws.std(axis=1), by_hand.std(axis=1), atol=0.01)


def test_one_vs_rest_of_two_classes_is_its_only_model():
    X, y = make_data(2)
    single = LogisticRegression(class_weight="balanced")
    model = OneVsRestClassifier(single).fit(X, y)
    train = {"X_train": X, "y_train": y}
    assert_allclose(
        sample_proba(model, X_ASKED, 7, 0, **train),
        sample_proba(single.fit(X, y), X_ASKED, 7, 0, **train),
        rtol=1e-9,
    )


# Against the posterior itself.


@pytest.mark.long
def test_draws_of_a_long_one_dimensional_posterior_are_those_of_integration():
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    y = rng.random(3000) < expit(1.5 * x)
    model = LogisticRegression(fit_intercept=False, **EXACT).fit(x[:, None], y)
    grid = np.linspace(0.5, 2.5, 4001)
    signed = np.where(y, x, -x)
    log_density = -np.logaddexp(0, -np.outer(grid, signed)).sum(axis=1) - grid**2 / 2
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    asked = np.array([0.3, 1.0, 2.0])
    of_grid = expit(np.outer(asked, grid))
    mean = of_grid @ density
    deviation = np.sqrt((of_grid - mean[:, None]) ** 2 @ density)
    draws = sample_proba(model, asked[:, None], 50_000, 0, X_train=x[:, None])[..., 1]
    assert_allclose(draws.mean(axis=1), mean, atol=5e-4)
    assert_allclose(draws.std(axis=1), deviation, rtol=0.02)


def test_few_labels_leave_more_open_than_many():
    X, y = make_data(3, m=400)
    spreads = []
    for m in (20, 400):
        model = LogisticRegression().fit(X[:m], y[:m])
        draws = sample_proba(model, X_ASKED, 500, 0, X_train=X[:m])
        spreads.append(draws.std(axis=1).mean())
    assert spreads[0] > 2 * spreads[1]
