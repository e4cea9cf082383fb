"""BADGE against k-means++ on the explicit matrix of autograd's gradients."""

from itertools import permutations

import numpy as np
import pytest
import scipy.stats
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from skactive import ActiveLearner
from skactive.strategies import BADGE
from skactive.testing._strategy_cases import GivenProba
from skactive.view import PoolView


def make_view(X, model, seed=0):
    return PoolView(
        X, estimator=model, requires=BADGE.requires, rng=np.random.default_rng(seed)
    )


def select(X, model, n_queries, seed=0):
    return BADGE().select(make_view(X, model, seed), n_queries)


def load(k):
    """A fitted model of k classes and rows of a pool."""
    X, y = (
        load_digits(n_class=k, return_X_y=True)
        if k != 3
        else load_iris(return_X_y=True)
    )
    X = scale(X)
    order = np.random.default_rng(k).permutation(len(X))
    train, pool = order[:50], order[50:90]
    return LogisticRegression(C=0.01).fit(X[train], y[train]), X[pool]


def gradients_by_autograd(model, X):
    """Gradient of the loss at the predicted label, flattened: n x kd."""
    weights, biases = model.coef_, model.intercept_
    if len(weights) == 1:  # two classes, as a softmax with the same probabilities
        weights = np.vstack([-weights / 2, weights / 2])
        biases = np.r_[-biases / 2, biases / 2]
    weights = torch.tensor(weights, requires_grad=True)
    rows = []
    for x in X:
        logits = weights @ torch.tensor(x) + torch.tensor(biases)
        loss = torch.nn.functional.cross_entropy(logits, logits.detach().argmax())
        rows.append(torch.autograd.grad(loss, weights)[0].ravel().numpy())
    return np.array(rows)


def squared_distances(gradients):
    return [[float(((g - h) ** 2).sum()) for h in gradients] for g in gradients]


def chances(picked, distances):
    """Probabilities of the next pick, by the definition and in loops."""
    nearest = [min(row[c] for c in picked) for row in distances]
    total = sum(nearest)
    return [square / total for square in nearest]


def assert_as_likely(counts, expected):
    rare = expected < 5
    expected = np.r_[expected[~rare], max(expected[rare].sum(), 1e-9)]
    counts = np.r_[counts[~rare], counts[rare].sum()]
    some = expected > 1e-6
    assert counts[~some].sum() == 0
    assert scipy.stats.chisquare(counts[some], expected[some]).pvalue > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow), 7])
def test_badge_by_the_oracle_of_explicit_gradients(k):
    model, X = load(k)
    X = X[:7]
    gradients = gradients_by_autograd(model, X)
    first = int(np.linalg.norm(gradients, axis=1).argmax())
    distances = squared_distances(gradients)
    orders = list(permutations(set(range(7)) - {first}, 2))
    likely = []
    for second, third in orders:
        likely.append(chances([first], distances)[second])
        likely[-1] *= chances([first, second], distances)[third]
    assert sum(likely) == pytest.approx(1)
    runs, view = 1000, make_view(X, model)
    found = [BADGE().select(view, 3).tolist() for _ in range(runs)]
    assert {picks[0] for picks in found} == {first}
    counts = np.array([found.count([first, *order]) for order in orders])
    assert counts.sum() == runs
    assert_as_likely(counts, runs * np.array(likely))


@pytest.mark.long
@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow), 7])
def test_badge_draws_later_picks_by_the_oracle_too(k):
    """Given all earlier picks, the probability of the next is uniformly spread.

    The chances of each pick are stacked in a row and the pick's place in it, blurred
    over its own width, must be uniform: that holds for the right chances only.
    """
    model, X = load(k)
    distances = squared_distances(gradients_by_autograd(model, X))
    rng = np.random.default_rng(0)
    places = []
    for seed in range(25):
        picks = select(X, model, 25, seed).tolist()
        for at in range(1, 25):
            width = chances(picks[:at], distances)
            order = np.argsort(width, kind="stable")
            stacked = np.cumsum(np.array(width)[order])
            own = int(np.flatnonzero(order == picks[at])[0])
            places.append(stacked[own] - rng.random() * width[picks[at]])
    assert scipy.stats.kstest(places, "uniform").pvalue > 1e-3


def test_there_is_no_center_at_the_origin():
    # A short gradient is far from the long one that was chosen: the nearer it is to
    # the origin, the nearer its chance to that of one on the other side, not to zero.
    X = np.array([[0.5, 0.5, 10.0], [0.5, 0.5, 0.01], [0.5, 0.5, 9.0]])
    model = GivenProba().fit(X, [0, 1, 1])
    seconds = [select(X, model, 2, seed)[1] for seed in range(200)]
    assert seconds.count(1) > 190


@pytest.mark.long
def test_two_classes_with_the_same_inputs_are_told_apart_by_their_certainty():
    X = np.array([[0.5, 0.5, 1.0], [0.9, 0.1, 1.0], [1.0, 0.0, 5.0]])
    model = GivenProba().fit(X, [0, 1, 1])
    assert {select(X, model, 1, seed)[0] for seed in range(20)} == {0}
    # Squared distances to the first: 2 (0.5 + 0.1)^2 crosses the label or not.
    counts = np.bincount([select(X, model, 2, s)[1] for s in range(1000)], minlength=3)
    chance = 2 * np.array([0.0, 0.4**2, 0.5**2])
    assert_allclose(counts / 1000, chance / chance.sum(), atol=0.05)


@pytest.mark.long
@pytest.mark.parametrize(
    ("k", "dtype"),
    [
        (7, np.float32),
        pytest.param(2, np.float32, marks=pytest.mark.slow),
        pytest.param(2, np.float64, marks=pytest.mark.slow),
        pytest.param(7, np.float64, marks=pytest.mark.slow),
    ],
)
def test_copies_are_not_asked_for_twice(k, dtype):
    model, X = load(k)
    X = np.random.default_rng(0).permutation(np.repeat(X, 3, axis=0)).astype(dtype)
    for rows in (X, sparse.csr_array(X)):
        picks = select(rows, model, 40)
        assert len({X[pick].tobytes() for pick in picks}) == 40
        assert len(set(select(rows, model, 120))) == 120


def test_sure_candidates_are_left_to_the_last():
    rng = np.random.default_rng(0)
    proba = np.vstack([np.eye(3)[rng.integers(3, size=20)], np.full((5, 3), 1 / 3)])
    X = np.hstack([proba, rng.normal(size=(25, 4))])
    model = GivenProba().fit(X, np.arange(25) % 3)
    for seed in range(10):
        # All sure ones have the gradient 0: one of them at most is worth asking.
        picks = select(X, model, 6, seed)
        assert (picks < 20).sum() == 1


def test_the_answer_is_that_of_the_round():
    model, X = load(3)
    learner = ActiveLearner(LogisticRegression(), BADGE(), random_state=0)
    learner.fit(X[:20], model.predict(X[:20]))
    first = learner.query(X, 10)
    assert_array_equal(first, learner.query(X, 10))
    learner.set_params(random_state=1).fit(X[:20], model.predict(X[:20]))
    assert not np.array_equal(first, learner.query(X, 10))


def test_texts_behind_a_pipeline_with_sparse_features():
    texts = ["good film", "bad film", "good plot", "a plot", "bad", "good bad film"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner = ActiveLearner(model, BADGE(), random_state=0)
    picks = learner.fit(texts[:3], ["+", "-", "+"]).query(texts[3:], 3)
    assert sorted(picks) == [0, 1, 2]


def test_a_model_without_gradients_is_refused():
    _, X = load(3)
    learner = ActiveLearner(GaussianNB(), BADGE()).fit(X, np.arange(40) % 2)
    with pytest.raises(TypeError, match="needs factors of the loss gradient"):
        learner.query(X)
