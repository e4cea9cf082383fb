"""Influences against models that were in fact trained again."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner
from skactive.strategies import GORAL
from skactive.strategies._gradient import entropy_slopes
from skactive.testing import check_strategy
from skactive.testing._strategy_cases import GivenProba
from skactive.view import PoolView

AGGREGATES = ("absolute", "rms", "best")


def make_data(k, seed=0, m=24, n=7, v=11, d=3):
    """Labeled rows, a pool and a validation set with noisy linear labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m + n + v, d)) + 0.5
    W = rng.normal(size=(d, k)) * 2
    y = (X @ W + rng.gumbel(size=(len(X), k))).argmax(axis=1)
    y[:k] = np.arange(k)
    names = np.array(["b", "a", "c", "d"])[y]  # columns are not in order of y
    parts = np.split(np.arange(len(X)), [m, m + n])
    return [X[p] for p in parts], [names[p] for p in parts]


def make_view(strategy, model, X, y, pool, seed=0):
    return PoolView(
        pool,
        estimator=model,
        X_labeled=X,
        y_labeled=y,
        requires=strategy.requires,
        rng=np.random.default_rng(seed),
    )


def exact(**params):
    return LogisticRegression(solver="newton-cholesky", tol=1e-13, **params)


def entropy_goal(model, X):
    goal = 0.0
    for row in model.predict_proba(X):
        goal -= sum(p * np.log(p) for p in row)
    return goal / len(X)


def loss_goal(model, X, y):
    rows = zip(model.predict_proba(X), y, strict=True)
    columns = model.classes_.tolist()
    return sum(-np.log(row[columns.index(label)]) for row, label in rows) / len(X)


def train_again(model, X, y, x, label, weight):
    """Train with one more row that counts `weight`."""
    return type(model)(**model.get_params()).fit(
        np.vstack([X, x]), np.append(y, label), np.append(np.ones(len(X)), weight)
    )


def aggregate(how, proba, influences):
    if how == "absolute":
        return sum(p * abs(i) for p, i in zip(proba, influences, strict=True))
    if how == "rms":
        return sum(p * i**2 for p, i in zip(proba, influences, strict=True)) ** 0.5
    return max(-i for i in influences)


MODELS = {
    "plain": {},
    "strong": {"C": 0.05},
    "no intercept": {"fit_intercept": False},
    "weighted": {"class_weight": {"a": 3.0, "b": 0.5}},
}


STEP = 1e-3


@functools.cache
def train_all(k, name):
    """A model, and those with one more row: by item, label and half or whole step."""
    (X, pool, _), (y, _, _) = make_data(k)
    model = exact(**MODELS[name]).fit(X, y)
    others = [
        [
            [train_again(model, X, y, x, label, step) for step in (STEP / 2, STEP)]
            for label in model.classes_
        ]
        for x in pool
    ]
    return model, others


def trained_influence(model, others, goal):
    """How the goal changes with the weight of one more row, for each label."""
    start = goal(model)
    influences = []
    for half, whole in others:
        near, far = (goal(half) - start) / (STEP / 2), (goal(whole) - start) / STEP
        influences.append(2 * near - far)  # the second derivative falls out
    return np.array(influences)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("k", "goal"),
    [
        (2, "entropy"),
        (3, "loss"),
        (3, "entropy of validation"),
        pytest.param(2, "loss", marks=pytest.mark.slow),
        pytest.param(2, "entropy of validation", marks=pytest.mark.slow),
        pytest.param(3, "entropy", marks=pytest.mark.slow),
    ],
)
def test_goral_by_the_oracle_of_training_again(k, goal, name):
    (X, pool, X_val), (y, _, y_val) = make_data(k)
    model, others = train_all(k, name)
    if goal == "loss":
        options = {"objective": "loss", "X_val": X_val, "y_val": y_val}

        def value(other):
            return loss_goal(other, X_val, y_val)

    else:
        items = pool if goal == "entropy" else X_val
        options = {} if goal == "entropy" else {"X_val": X_val}

        def value(other):
            return entropy_goal(other, items)

    expected = [trained_influence(model, of_item, value) for of_item in others]
    proba = model.predict_proba(pool)
    for how in AGGREGATES:
        strategy = GORAL(aggregate=how, **options)
        scores = strategy.score(make_view(strategy, model, X, y, pool))
        by_hand = [aggregate(how, *pair) for pair in zip(proba, expected, strict=True)]
        assert_allclose(scores, by_hand, rtol=1e-4, atol=1e-9)
        assert np.ptp(scores) > 1e-4


def test_goral_with_autograd_and_a_dense_inverse_oracle():
    torch = pytest.importorskip("torch")
    torch.set_default_dtype(torch.float64)
    try:
        _compare_with_autograd(torch)
    finally:
        torch.set_default_dtype(torch.float32)


def _compare_with_autograd(torch):
    k, d, penalty = 4, 3, 0.7
    rng = np.random.default_rng(0)
    W = torch.tensor(rng.normal(size=(k, d + 1)), requires_grad=True)
    rows = [torch.tensor(np.c_[rng.normal(size=(n, d)), np.ones(n)]) for n in (9, 6)]
    X, pool = rows
    y = torch.tensor(rng.integers(k, size=len(X)))

    def training_loss(W):
        loss = torch.nn.functional.cross_entropy(X @ W.T, y, reduction="sum")
        return loss + penalty / 2 * (W[:, :d] ** 2).sum()

    def goal(W):
        p = torch.softmax(pool @ W.T, dim=1)
        return -(p * p.log()).sum(dim=1).mean()

    hessian = torch.autograd.functional.hessian(training_loss, W)
    # Equal intercepts change nothing, so that direction has no inverse and no part.
    inverse = torch.linalg.pinv(hessian.reshape(k * (d + 1), -1), rtol=1e-12)
    (slope,) = torch.autograd.grad(goal(W), W)
    proba = torch.softmax(pool @ W.T, dim=1).detach().numpy()
    expected = []
    for x, p in zip(pool, proba, strict=True):
        influences = []
        for label in range(k):
            target = torch.tensor([label])
            loss = torch.nn.functional.cross_entropy(x[None] @ W.T, target)
            (gradient,) = torch.autograd.grad(loss, W)
            influences.append(-float(slope.ravel() @ inverse @ gradient.ravel()))
        expected.append(aggregate("absolute", p, influences))

    labeled = torch.softmax(X @ W.T, dim=1).detach().numpy()
    model = GivenProba().fit(np.c_[labeled, X[:, :d]], np.arange(len(X)) % k)
    strategy = GORAL(penalty=penalty)
    view = make_view(
        strategy,
        model,
        np.c_[labeled, X[:, :d]],
        np.arange(len(X)) % k,
        np.c_[proba, pool[:, :d]],
    )
    assert_allclose(strategy.score(view), expected, rtol=1e-7)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_slope_of_the_entropy_is_that_of_autograd(k):
    torch = pytest.importorskip("torch")
    logits = torch.tensor(
        np.random.default_rng(k).normal(size=(20, k)) * 5, requires_grad=True
    )
    p = torch.softmax(logits, dim=1)
    (slopes,) = torch.autograd.grad(-(p * torch.log_softmax(logits, 1)).sum(), logits)
    assert_allclose(entropy_slopes(p.detach().numpy()), slopes, rtol=1e-9, atol=1e-12)


def test_the_slope_of_the_entropy_is_0_where_all_is_certain():
    assert_array_equal(entropy_slopes(np.eye(3)), np.zeros((3, 3)))


@pytest.mark.parametrize("k", [2, 3])
def test_the_expected_influence_is_zero_and_so_ranks_nothing(k):
    (X, pool, X_val), (y, _, y_val) = make_data(k)
    model = exact().fit(X, y)
    for strategy in (GORAL(), GORAL("loss", X_val=X_val, y_val=y_val)):
        view = make_view(strategy, model, X, y, pool)
        influence = strategy._influence(view)
        assert np.abs(influence).min() > 1e-6
        assert_allclose((view.proba * influence).sum(axis=1), 0, atol=1e-15)
        # So the expected decrease is half of the expected absolute influence.
        decrease = (view.proba * np.maximum(-influence, 0)).sum(axis=1)
        assert_allclose(strategy.score(view), 2 * decrease)


@pytest.mark.parametrize("k", [2, 4])
def test_conjugate_gradients_and_cholesky_agree(k):
    (X, pool, _), (y, _, _) = make_data(k, m=40, d=6)
    model = exact().fit(X, y)
    scores = [
        s.score(make_view(s, model, X, y, pool)) for s in (GORAL(), GORAL(max_dense=0))
    ]
    assert_allclose(*scores, rtol=1e-6)


def test_the_penalty_is_that_of_the_model():
    (X, pool, _), (y, _, _) = make_data(3)

    def score(model, penalty="auto"):
        strategy = GORAL(penalty=penalty)
        return strategy.score(make_view(strategy, model.fit(X, y), X, y, pool))

    for model, penalty in [
        (exact(C=0.25), 4.0),
        (LogisticRegressionCV(Cs=[0.5], cv=2, scoring="accuracy"), 2.0),
        (SGDClassifier(loss="log_loss", alpha=0.1, random_state=0), 0.1 * len(X)),
        (exact(C=np.inf), 1e-8),
        (OneVsRestClassifier(exact(C=0.25)), 4.0),
    ]:
        assert_allclose(score(model), score(model, penalty), rtol=1e-6)
    assert not np.allclose(score(exact()), score(exact(), 2.0))


def test_a_pipeline_takes_raw_validation_items():
    (X, pool, X_val), (y, _, y_val) = make_data(3)
    model = make_pipeline(StandardScaler(), exact())
    strategy = GORAL("loss", X_val=X_val, y_val=y_val)
    picks = ActiveLearner(model, strategy, random_state=0).fit(X, y).query(pool, 3)
    scaler = StandardScaler().fit(X)
    inner = GORAL("loss", X_val=scaler.transform(X_val), y_val=y_val)
    learner = ActiveLearner(exact(), inner, random_state=0)
    expected = learner.fit(scaler.transform(X), y).query(scaler.transform(pool), 3)
    assert_array_equal(picks, expected)


@pytest.mark.parametrize("k", [2, 3])
def test_sparse_and_float32_rows_score_the_same(k):
    (X, pool, X_val), (y, _, y_val) = make_data(k)
    model = exact().fit(X, y)
    strategy = GORAL("loss", X_val=X_val, y_val=y_val)
    plain = strategy.score(make_view(strategy, model, X, y, pool))
    convert = sparse.csr_array
    strategy = GORAL("loss", X_val=convert(X_val), y_val=y_val)
    view = make_view(strategy, model, convert(X), y, convert(pool))
    assert_allclose(strategy.score(view), plain)
    strategy = GORAL("loss", X_val=X_val.astype(np.float32), y_val=y_val)
    view = make_view(strategy, model, X, y, pool.astype(np.float32))
    assert_allclose(strategy.score(view), plain, rtol=1e-4)


def test_the_size_of_chunks_changes_nothing(monkeypatch):
    (X, pool, _), (y, _, _) = make_data(3, n=50)
    model = exact().fit(X, y)
    strategy = GORAL()
    plain = strategy.score(make_view(strategy, model, X, y, pool))
    monkeypatch.setattr("skactive.strategies._gradient.chunk_size", lambda *_: 7)
    chunked = strategy.score(make_view(strategy, model, X, y, pool))
    assert_allclose(chunked, plain, rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([2, 3, 7]), st.sampled_from(AGGREGATES))
def test_scores_follow_the_items_and_are_at_least_zero(seed, k, how):
    rng = np.random.default_rng(seed)
    rows = np.hstack([rng.dirichlet(np.full(k, 0.3), 30), rng.normal(size=(30, 3))])
    rows[rng.integers(30, size=4), :k] = np.eye(k)[rng.integers(k, size=4)]
    labeled, pool = rows[:9], np.vstack([rows[9:], rows[9:15]])
    y = np.arange(9) % k
    model = GivenProba().fit(labeled, y)
    strategy = GORAL(aggregate=how)
    scores = strategy.score(make_view(strategy, model, labeled, y, pool))
    order = rng.permutation(len(pool))
    again = strategy.score(make_view(strategy, model, labeled, y, pool[order]))
    assert_allclose(again, scores[order], rtol=1e-7, atol=1e-12)
    assert_allclose(scores[-6:], scores[:6], rtol=1e-7, atol=1e-12)
    assert np.isfinite(scores).all()
    assert (scores >= -1e-12).all()


def test_one_labeled_row_is_enough():
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.dirichlet(np.ones(3), 8), rng.normal(size=(8, 2))])
    model = GivenProba().fit(rows, np.arange(8) % 3)
    strategy = GORAL()
    view = make_view(strategy, model, rows[:1], np.array([2]), rows[1:])
    assert np.isfinite(strategy.score(view)).all()


def test_validation_labels_must_fit():
    (X, pool, X_val), (y, _, y_val) = make_data(3)
    learner = ActiveLearner(exact(), GORAL("loss", X_val=X_val, y_val=y_val[:5]))
    with pytest.raises(ValueError, match=r"of the 11 items of X_val, got shape \(5,"):
        learner.fit(X, y).query(pool)
    learner.set_params(strategy__y_val=np.full(11, "z"))
    with pytest.raises(ValueError, match=r"'y_val' must hold classes .* the label 'z'"):
        learner.query(pool)


@pytest.mark.slow
@pytest.mark.parametrize("how", AGGREGATES)
def test_the_conformance_kit_passes(how):
    check_strategy(GORAL(aggregate=how, max_dense=0 if how == "rms" else 4096))
