"""The Bayesian strategies against tables and sums over labels, through the learner."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skactive import ActiveLearner
from skactive.strategies import BALD, BatchBALD, MCDropout, PointwiseStrategy
from skactive.testing import check_strategy
from skactive.view import PoolView
from skactive.view import _quantities as view


class Known(ClassifierMixin, BaseEstimator):
    """A model whose draws stand in a table; a row of X is a row of the table."""

    def __init__(self, table=None):
        self.table = table

    def fit(self, X, y):
        self.classes_ = np.arange(np.shape(self.table)[2])
        return self

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        return np.asarray(self.table)[np.ravel(X)].mean(axis=1)

    def sample_proba(self, X, n_draws=50, random_state=None):
        return np.asarray(self.table)[np.ravel(X), :n_draws]


# Two items of which all draws think (1/2, 1/2) in the mean: they disagree on the first
# and are unsure of the second. Of the others, the draws disagree a little or not.
TABLE = np.array(
    [
        [[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]],
        [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]],
        [[0.8, 0.2], [0.4, 0.6], [0.8, 0.2], [0.4, 0.6]],
        [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]],
        [[0.7, 0.3], [0.7, 0.3], [0.6, 0.4], [0.6, 0.4]],
    ]
)


def make_view(table, strategy, seed=0):
    X = np.arange(len(table))[:, None]
    return PoolView(
        X,
        estimator=Known(table).fit(X, None),
        requires=strategy.requires,
        rng=np.random.default_rng(seed),
    )


def make_learner(table, strategy, random_state=0):
    X = np.arange(len(table))[:, None]
    learner = ActiveLearner(Known(table), strategy, random_state=random_state)
    return learner.fit(X[:2], [0, 1]), X


def draw(n, t, k, seed=0, concentration=0.5):
    return np.random.default_rng(seed).dirichlet(np.full(k, concentration), (n, t))


# Oracles


def test_bald_by_the_oracle_of_a_table():
    def h(p):
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    expected = [
        h(0.5) - h(0.9),
        0.0,
        h(0.6) - (h(0.8) + h(0.4)) / 2,
        0.0,
        h(0.65) - (h(0.7) + h(0.6)) / 2,
    ]
    strategy = BALD(n_draws=4)
    scores = strategy.score(make_view(TABLE, strategy))
    assert_allclose(scores, expected, atol=1e-14)
    assert scores[3] == 0
    learner, X = make_learner(TABLE, strategy)
    assert_array_equal(learner.query(X, 3), [0, 2, 4])


@pytest.mark.long
@pytest.mark.parametrize("k", [2, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bald_by_the_oracle_of_scipy(k, dtype):
    table = draw(50, 9, k).astype(dtype)
    strategy = BALD(n_draws=9)
    expected = [
        scipy.stats.entropy(np.mean(rows, axis=0))
        - np.mean([scipy.stats.entropy(row) for row in rows])
        for rows in table.astype(float)
    ]
    found = strategy.score(make_view(table, strategy))
    assert_allclose(found, expected, atol=1e-6 if dtype == np.float32 else 1e-13)
    learner, X = make_learner(table, strategy)
    assert_array_equal(learner.query(X, 10), np.argsort(expected)[::-1][:10])


UNCERTAINTIES = {
    "entropy": lambda row: -sum(p * math.log(p) for p in row if p > 0),
    "least_confidence": lambda row: 1 - max(row),
    "margin": lambda row: 1 - sorted(row)[-1] + sorted(row)[-2],
}


@pytest.mark.parametrize("measure", UNCERTAINTIES)
@pytest.mark.parametrize("k", [2, 7])
def test_mc_dropout_by_the_oracle_of_a_loop(measure, k):
    table = draw(50, 9, k)
    expected = []
    for draws in table.tolist():
        mean = [math.fsum(column) / 9 for column in zip(*draws, strict=True)]
        expected.append(UNCERTAINTIES[measure](mean))
    strategy = MCDropout(9, measure=measure)
    found = strategy.score(make_view(table, strategy))
    assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    learner, X = make_learner(table, strategy)
    assert_array_equal(learner.query(X, 10), np.argsort(expected)[::-1][:10])


def joint_information(draws):
    """Mutual information of the labels and the draw, by all configurations."""
    m, t, k = draws.shape
    total = 0.0
    for labels in itertools.product(range(k), repeat=m):
        likelihood = np.ones(t)
        for item, label in zip(draws, labels, strict=True):
            likelihood = likelihood * item[:, label]
        # p(y) KL(p(w | y) || p(w)) with the uniform prior over the draws
        if likelihood.sum() > 0:
            entropy = entr(likelihood / likelihood.sum()).sum()
            divergence = math.log(t) - entropy
            total += likelihood.mean() * divergence
    return total


@pytest.mark.parametrize(
    ("n", "t", "k", "b"), [(8, 6, 2, 5), (7, 5, 3, 4), (5, 4, 7, 3)]
)
def test_batchbald_by_the_oracle_of_all_configurations(n, t, k, b):
    known = draw(n, t + 3, k, seed=n)
    table, expected = known[:, :t], []
    while len(expected) < b:
        rest = [i for i in range(n) if i not in expected]
        expected.append(
            max(rest, key=lambda i: joint_information(table[[*expected, i]]))
        )
    learner, X = make_learner(known, BatchBALD(n_draws=t))
    assert_array_equal(learner.query(X, b), expected)


def test_batchbald_reaches_what_the_oracle_of_all_batches_bounds():
    # Greedy is within 1 - 1/e of the best batch, as information is submodular.
    table = draw(9, 6, 3, concentration=2.0)
    learner, X = make_learner(table, BatchBALD(n_draws=6))
    found = joint_information(table[learner.query(X, 3)])
    batches = itertools.combinations(range(9), 3)
    best = max(joint_information(table[list(batch)]) for batch in batches)
    assert best * (1 - 1 / math.e) < found <= best + 1e-12


# Behavior


@pytest.mark.parametrize("strategy", [BALD(n_draws=4), BatchBALD(n_draws=4)])
def test_what_the_draws_agree_on_is_not_asked(strategy):
    learner, X = make_learner(TABLE, strategy)
    assert learner.query(X, 1) == [0]
    learner.set_params(strategy=MCDropout(4))
    assert set(learner.query(X, 2)) == {0, 1}


def test_a_batch_of_one_is_that_of_bald():
    table = draw(40, 12, 3)
    for seed in range(5):
        learner, X = make_learner(table, BatchBALD(n_draws=12), seed)
        pick = learner.query(X, 1)
        assert_array_equal(pick, learner.set_params(strategy=BALD(12)).query(X, 1))


def test_batchbald_asks_for_a_duplicate_once_and_bald_many_times():
    table = np.concatenate([np.repeat(TABLE[:1], 6, axis=0), TABLE[1:]])
    table[:6] = np.round(table[:6])  # one label tells all about the first
    learner, X = make_learner(table, BALD(n_draws=4))
    assert set(learner.query(X, 2)) < set(range(6))
    # Rows 4 of the table tells apart what the first leaves together.
    learner.set_params(strategy=BatchBALD(n_draws=4))
    picks = learner.query(X, 2)
    assert picks[0] < 6
    assert picks[1] == 9


@pytest.mark.long
@pytest.mark.parametrize("n_samples", [1, 20, 4096])
def test_batchbald_gives_b_picks_whatever_the_sample(n_samples):
    table = draw(30, 6, 4)
    learner, X = make_learner(table, BatchBALD(6, n_samples=n_samples))
    picks = learner.query(X, 25)
    assert len(set(picks)) == 25
    assert_array_equal(picks, learner.query(X, 25))


def test_a_better_sample_chooses_no_worse():
    table = draw(80, 12, 3, concentration=3.0)
    found = []
    for n_samples in (2, 4096):
        learner, X = make_learner(table, BatchBALD(12, n_samples=n_samples))
        found.append(joint_information(table[learner.query(X, 7)]))
    assert found[0] < found[1]


STRATEGIES = [
    BALD(6),
    BALD(6, selection="power"),
    BALD(6, selection="softmax", coldness=5.0),
    MCDropout(6),
    MCDropout(6, measure="margin", selection="power"),
    BatchBALD(6, n_samples=30),
]
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)


@each_strategy
def test_chunks_and_threads_change_nothing(strategy, monkeypatch):
    learner, X = make_learner(draw(60, 6, 3), strategy)
    expected = learner.query(X, 12)
    monkeypatch.setattr(view, "chunk_size", lambda row_bytes, limit=0: 7)
    assert_array_equal(learner.query(X, 12), expected)
    with parallel_config(backend="threading", n_jobs=3):
        assert_array_equal(learner.query(X, 12), expected)


@each_strategy
def test_the_pool_of_a_real_model_is_asked_about(strategy):
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(150)
    learner = ActiveLearner(LogisticRegression(max_iter=500), strategy, random_state=0)
    learner.fit(X[rows[:20]], y[rows[:20]])
    picks = learner.query(X, 10, candidates=rows[20:])
    assert len(set(picks)) == 10
    assert set(picks) <= set(rows[20:])


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES[1:3] + STRATEGIES[4:5], ids=repr)
def test_the_conformance_kit_accepts_drawn_batches(strategy):
    check_strategy(strategy)


@pytest.mark.long
@pytest.mark.parametrize("draws", [1500, pytest.param(4000, marks=pytest.mark.slow)])
def test_drawn_batches_follow_the_scores(draws):
    table = draw(40, 6, 2)
    strategy = BALD(6, selection="power")
    scores = strategy.score(make_view(table, strategy))
    counts = np.zeros(40)
    pool = make_view(table, strategy)
    for _ in range(draws):
        counts[strategy.select(pool, 1)] += 1
    assert scipy.stats.chisquare(counts, draws * scores / scores.sum()).pvalue > 1e-3


def test_a_drawn_batch_of_what_says_nothing_is_any():
    table = np.repeat(TABLE[1:2], 20, axis=0)
    strategy = BALD(4, selection="power")
    picks = {strategy.select(make_view(table, strategy, i), 1)[0] for i in range(60)}
    assert len(picks) > 10


@pytest.mark.parametrize("seed", range(3))
def test_a_cold_draw_is_the_top(seed):
    table = draw(40, 6, 3)
    for strategy in (BALD(6), MCDropout(6), MCDropout(6, measure="margin")):
        learner, X = make_learner(table, strategy, seed)
        top = learner.query(X, 5)
        for selection in ("power", "softmax"):
            learner.set_params(strategy__selection=selection, strategy__coldness=1e7)
            assert_array_equal(learner.query(X, 5), top)


def test_scores_are_of_their_kind():
    assert issubclass(BALD, PointwiseStrategy)
    assert issubclass(MCDropout, PointwiseStrategy)
    assert not issubclass(BatchBALD, PointwiseStrategy)


def test_a_model_without_draws_is_named():
    from sklearn.svm import LinearSVC

    learner = ActiveLearner(LinearSVC(), BALD()).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="LinearSVC"):
        learner.query([[0.5]], 1)


@pytest.mark.long
def test_grid_search_runs_over_draws_and_selection():
    X, y = load_iris(return_X_y=True)
    learner = ActiveLearner(LogisticRegression(max_iter=300), BALD(), random_state=0)
    grid = [
        {"strategy__n_draws": [5, 10], "strategy__selection": ["top", "power"]},
        {"strategy": [BatchBALD(), MCDropout()], "strategy__n_draws": [5]},
    ]
    search = GridSearchCV(learner, grid, cv=3, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 6


# Properties


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), data=st.data())
def test_permuting_the_pool_permutes_scores_and_batches(seed, data):
    table = draw(15, 4, 3, seed)
    order = np.array(data.draw(st.permutations(range(15))))
    for strategy in (BALD(4), BALD(4, selection="power"), MCDropout(4), BatchBALD(4)):
        if hasattr(strategy, "score"):
            scores = strategy.score(make_view(table, strategy))
            found = strategy.score(make_view(table[order], strategy))
            assert_allclose(found, scores[order], atol=1e-13)
        picks = strategy.select(make_view(table, strategy), 4)
        found = strategy.select(make_view(table[order], strategy), 4)
        assert_array_equal(order[found], picks)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 1000),
    t=st.integers(2, 6),
    k=st.sampled_from([2, 3, 7]),
    certain=st.booleans(),
)
def test_bald_stays_between_nothing_and_everything(seed, t, k, certain):
    table = draw(10, t, k, seed, concentration=0.1)
    if certain:
        table = np.eye(k)[table.argmax(axis=2)]
    strategy = BALD(t)
    scores = strategy.score(make_view(table, strategy))
    assert (scores >= 0).all()
    assert (scores <= math.log(min(t, k)) + 1e-12).all()
    mean = MCDropout(t)
    assert (scores <= mean.score(make_view(table, mean)) + 1e-12).all()
