"""EmbeddingKMeans, ALPS and WholeCluster against blobs and explicit loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from skactive import ActiveLearner
from skactive._math._clustering import k_means
from skactive.strategies import ALPS, EmbeddingKMeans, WholeCluster
from skactive.testing import check_strategy
from skactive.view import PoolView


class Given(ClassifierMixin, BaseEstimator):
    """Classifier whose first column is its probability of the second class."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = X.toarray()[:, 0] if sparse.issparse(X) else np.asarray(X)[:, 0]
        return np.stack([1 - p, p], axis=1)

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]

    def surprisal(self, X, random_state=None):
        return np.asarray(X)


def make_view(X, strategy, seed=0, model=None):
    model = Given().fit(X, [0, 1]) if model is None else model
    return PoolView(
        X,
        estimator=model,
        requires=strategy.requires,
        rng=np.random.default_rng(seed),
    )


def ask(strategy, X, n, seed=0):
    picks = strategy.select(make_view(X, strategy, seed), n)
    assert len(picks) == len(set(picks.tolist())) == n
    return picks


def draw_blobs(sizes, seed=0, scale=0.1):
    """Blobs around the axes, in directions far apart."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = np.eye(len(sizes))[y] + scale * rng.normal(size=(len(y), len(sizes)))
    return X, y


def nearest_of(X, center):
    """Positions of the rows by their distance to a center, by a loop."""
    return sorted(range(len(X)), key=lambda i: math.dist(X[i], center))


def in_unit_length(X):
    lengths = [math.sqrt(sum(v * v for v in row)) for row in X.tolist()]
    return np.array([row / (z or 1) for row, z in zip(X, lengths, strict=True)])


# Oracles


@pytest.mark.parametrize("normalize", [True, False])
def test_embedding_kmeans_by_the_oracle_of_blobs(normalize):
    X, y = draw_blobs([10, 40, 25, 33, 5, 18])
    picks = ask(EmbeddingKMeans(normalize), X, 6)
    # Each blob once, the largest first, and of each the row nearest its mean.
    assert y[picks].tolist() == [1, 3, 2, 5, 0, 4]
    rows = in_unit_length(X) if normalize else X
    for pick in picks:
        members = np.flatnonzero(y == y[pick])
        mean = [math.fsum(column) / len(members) for column in rows[members].T]
        assert members[nearest_of(rows[members], mean)[0]] == pick


def test_embedding_kmeans_by_the_oracle_of_given_clusters():
    X = np.random.default_rng(3).normal(size=(150, 4))
    picks = ask(EmbeddingKMeans(normalize=False), X, 12, seed=5)
    centers, labels = k_means(X, 12, np.random.default_rng(5))
    sizes = [sum(label == c for label in labels) for c in range(12)]
    order = sorted(range(12), key=lambda c: -sizes[c])
    nearest = [nearest_of(X, centers[c])[0] for c in order]
    assert len(set(nearest)) == 12  # no row is wanted twice here
    assert sorted(picks) == sorted(nearest)
    assert [sizes[order[nearest.index(p)]] for p in picks] == sorted(sizes)[::-1]


def test_alps_by_the_oracle_of_hand_made_surprisal():
    # Three kinds of surprise, in the direction of the row and not in its length.
    surprisal = np.array(
        [
            [9.0, 0.9, 0.0],
            [1.0, 0.0, 0.0],  # in the middle of its kind
            [0.5, 0.0, 0.05],
            [4.0, -0.4, 0.0],
            [2.0, 0.0, -0.2],
            [0.0, 3.0, 0.0],
            [0.0, 0.1, 0.01],
            [0.0, 7.0, -0.7],  # with the one before it, around the first
            [0.0, 0.1, 0.9],
            [0.0, 0.0, 5.0],
        ]
    )
    assert set(ask(ALPS(), surprisal, 3)[:2]) == {1, 5}
    assert ask(ALPS(), surprisal, 3)[2] in (8, 9)
    scaled = surprisal * np.array([[3.0], [0.1]] * 5)
    assert_array_equal(ask(ALPS(), scaled, 3)[:2], [1, 5])


def test_surprisal_is_that_of_the_first_part_of_features_side_by_side():
    class Reader(FunctionTransformer):
        def surprisal(self, X, random_state=None):
            return X * self.func(2)

    X = np.random.default_rng(0).normal(size=(30, 2))
    first, second = Reader(np.negative), Reader(np.square)
    union = FeatureUnion([("a", make_pipeline(first)), ("b", second)])
    model = make_pipeline(FunctionTransformer(), union, Given()).fit(X, X[:, 0] > 0)
    assert_array_equal(make_view(X, ALPS(), model=model).surprisal, X * -2)


def test_alps_by_the_oracle_of_its_clusters_fills_up_with_the_next_nearest():
    # Two directions and three wanted: a center is doubled, and none is asked twice.
    surprisal = np.repeat(np.eye(2), [5, 2], axis=0)
    for seed in range(10):
        picks = ask(ALPS(), surprisal, 3, seed)
        assert {tuple(surprisal[p]) for p in picks} == {(1, 0), (0, 1)}


def entropy_of(row):
    return -sum(p * math.log(p) for p in row if p > 0)


MEASURES = {
    "entropy": entropy_of,
    "least_confidence": lambda row: 1 - max(row),
    "margin": lambda row: -abs(row[0] - row[1]),
}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("n", [1, 7, 40, 90])
def test_whole_cluster_by_the_oracle_of_loops(measure, n):
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.random(90), rng.normal(size=(90, 3))])
    picks = ask(WholeCluster(n_clusters=6, measure=measure), X, n, seed=2)
    centers, labels = k_means(X, 6, np.random.default_rng(2))
    clusters = []
    for c in range(6):
        members = [i for i in range(90) if labels[i] == c]
        values = [MEASURES[measure]([1 - X[i, 0], X[i, 0]]) for i in members]
        near = sorted(members, key=lambda i: math.dist(X[i], centers[c]))
        clusters.append((-math.fsum(values) / len(members), near))
    expected = [i for _, members in sorted(clusters) for i in members]
    assert_array_equal(picks, expected[:n])


def test_whole_cluster_by_the_oracle_of_tight_blobs():
    rng = np.random.default_rng(0)
    scales = [3.0, 0.1, 1.0]
    y = np.repeat([0, 1, 2], 20)
    X = 100 * np.eye(3)[y] + np.array(scales)[y][:, None] * rng.normal(size=(60, 3))
    strategy = WholeCluster(n_clusters=3, measure=None)
    assert strategy.requires == {"features"}
    assert y[ask(strategy, X, 50)].tolist() == [1] * 20 + [2] * 20 + [0] * 10


# EmbeddingKMeans and ALPS


def test_embedding_kmeans_compares_directions_only_if_normalized():
    X = np.array([[1.0, 0.0], [1.1, 0.0], [50.0, 0.0], [0.0, 1.0]])
    assert 3 in ask(EmbeddingKMeans(), X, 2)
    assert 2 in ask(EmbeddingKMeans(normalize=False), X, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", [EmbeddingKMeans(normalize=False), WholeCluster(measure=None)], ids=repr
)
def test_other_parameters_pass_the_kit(strategy):
    check_strategy(strategy)


@pytest.mark.parametrize(
    "strategy", [EmbeddingKMeans(), WholeCluster(measure=None)], ids=repr
)
def test_it_serves_as_a_cold_start(strategy):
    X, y = draw_blobs([10, 10, 10])
    learner = ActiveLearner(LogisticRegression(), cold_start=strategy, random_state=0)
    picks = learner.query(X, 3)
    assert len(set(y[picks])) == (3 if isinstance(strategy, EmbeddingKMeans) else 1)


@pytest.mark.parametrize(
    "strategy",
    [
        EmbeddingKMeans(),
        EmbeddingKMeans(normalize=False),
        WholeCluster(),
        WholeCluster(measure=None),
    ],
    ids=repr,
)
def test_sparse_features_give_what_dense_ones_do(strategy):
    X, _ = draw_blobs([20, 15, 12, 9, 30])
    X[:, 0] = np.random.default_rng(0).random(len(X))
    assert_array_equal(ask(strategy, X, 5), ask(strategy, sparse.csr_array(X), 5))


@pytest.mark.parametrize(
    "strategy", [EmbeddingKMeans(), WholeCluster(n_clusters=5)], ids=repr
)
def test_single_precision_gives_what_double_does(strategy):
    X, _ = draw_blobs([20, 15, 12, 9, 30])
    X = np.abs(X).clip(0, 1).astype(np.float32)
    again = ask(strategy, X.astype(np.float64), 5)
    assert_array_equal(ask(strategy, X, 5), again)


@pytest.mark.long
@settings(deadline=None, max_examples=12)
@given(
    rows=st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=20),
    n=st.integers(1, 20),
    seed=st.integers(0, 9),
)
def test_any_pool_gives_a_valid_batch(rows, n, seed):
    X = np.array(rows, dtype=np.float64) / 2
    n = min(n, len(X))
    for strategy in (
        EmbeddingKMeans(),
        EmbeddingKMeans(normalize=False),
        ALPS(),
        WholeCluster(),
        WholeCluster(n_clusters=2, measure=None),
    ):
        picks = ask(strategy, X, n, seed)
        assert len(set(picks.tolist())) == n
        assert ((picks >= 0) & (picks < len(X))).all()


@pytest.mark.long
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 99))
def test_the_same_items_are_asked_for_in_any_order_of_the_pool(seed):
    X, _ = draw_blobs([9, 14, 20, 11], seed, scale=0.02)
    X[:, 0] = np.abs(X[:, 0]).clip(0, 1)
    order = np.random.default_rng(seed).permutation(len(X))
    for strategy in (EmbeddingKMeans(), WholeCluster(n_clusters=4)):
        here, there = ask(strategy, X, 4), order[ask(strategy, X[order], 4)]
        assert_array_equal(here, there)


# WholeCluster


def test_a_cluster_is_about_a_batch_unless_told(monkeypatch):
    made = []

    def spy(X, n_clusters, rng):
        made.append(n_clusters)
        return k_means(X, n_clusters, rng)

    monkeypatch.setattr("skactive.strategies._clustering.k_means", spy)
    X = np.random.default_rng(0).random((60, 2))
    for n in (7, 60, 1):
        ask(WholeCluster(), X, n)
    ask(WholeCluster(n_clusters=3), X, 7)
    monkeypatch.setattr("skactive.strategies._clustering.MOST_CLUSTERS", 10)
    ask(WholeCluster(), X, 2)
    assert made == [9, 1, 60, 3, 10]


def test_what_it_requires_follows_the_measure():
    assert WholeCluster().requires == {"features", "proba"}
    assert WholeCluster(measure="margin").requires == {"features", "class_scores"}
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    learner = ActiveLearner(LinearSVC(), WholeCluster(measure="margin")).fit(X, y)
    assert len(learner.query(X, 4)) == 4
    learner.set_params(strategy__measure="entropy").fit(X, y)
    with pytest.raises(TypeError, match="needs class probabilities"):
        learner.query(X, 4)


def test_more_clusters_than_candidates_are_one_each():
    X = np.array([[0.1, 0.0], [0.5, 5.0], [0.9, 9.0], [0.6, 20.0]])
    picks = ask(WholeCluster(n_clusters=50), X, 2)
    assert_array_equal(picks, [1, 3])
    assert_allclose(X[picks, 0], [0.5, 0.6])
