"""Pre-clustering and representatives against loops over groups and partitions."""

import math
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.svm import LinearSVC

from skactive import ActiveLearner
from skactive.strategies import Density, PreClustering, Representative
from skactive.testing import check_strategy
from skactive.testing._strategy_cases import GivenScores

from ._helpers import make_pool, make_view


def squared(a, b):
    return sum((s - t) ** 2 for s, t in zip(a, b, strict=True))


# Pre-clustering


@pytest.mark.parametrize("bandwidth", [0.7, 2.0])
@pytest.mark.parametrize("k", [2, 5])
def test_preclustering_oracle_where_every_row_is_a_medoid(k, bandwidth):
    proba, features = make_pool(14, k)
    scores = []
    for row, x in zip(proba.tolist(), features.tolist(), strict=True):
        density = sum(
            math.exp(-squared(x, y) / (2 * bandwidth**2)) / 14
            for y in features.tolist()
        )
        scores.append((1 - max(row)) * density)
    strategy = PreClustering(14, bandwidth=bandwidth)
    picks = strategy.select(make_view(strategy, proba, features), 14)
    assert_array_equal(picks, np.argsort(-np.array(scores)))


@pytest.mark.parametrize("bandwidth", ["auto", 1.5])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_preclustering_by_the_oracle_of_groups(bandwidth, convert):
    rng = np.random.default_rng(1)
    names = np.repeat([0, 1, 2], [20, 9, 4])
    centers = np.array([[0.0, 0.0], [9.0, 1.0], [2.0, 8.0]])
    features = centers[names] + rng.normal(size=(33, 2))
    proba = rng.dirichlet(np.ones(3), 33)
    rows = features.tolist()
    medoids = {}
    for name in range(3):
        own = [x for x, other in zip(rows, names, strict=True) if other == name]
        medoids[name] = min(own, key=lambda x: sum(squared(x, y) for y in own))
    width = bandwidth
    if bandwidth == "auto":
        away = [squared(x, medoids[name]) for x, name in zip(rows, names, strict=True)]
        width = math.sqrt(sum(away) / 33)
    scores = []
    for row, x in zip(proba.tolist(), rows, strict=True):
        density = sum(
            share / 33 * math.exp(-squared(x, medoids[name]) / (2 * width**2))
            for name, share in enumerate([20, 9, 4])
        )
        scores.append((1 - max(row)) * density)
    # The best of each group in the order of their scores, then the second best.
    waiting = {
        name: sorted(
            (i for i in range(33) if names[i] == name), key=lambda i: scores[i]
        )
        for name in range(3)
    }
    expected = []
    while any(waiting.values()):
        turn = [waiting[name].pop() for name in range(3) if waiting[name]]
        expected += sorted(turn, key=lambda i: -scores[i])
    strategy = PreClustering(3, bandwidth=bandwidth)
    for n in (1, 4, 33):
        picks = strategy.select(make_view(strategy, proba, features, 0, convert), n)
        assert_array_equal(picks, expected[:n])


def test_preclustering_prefers_the_dense_among_the_unsure():
    features = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [40.0]])
    proba = np.tile([0.5, 0.5], (6, 1))
    strategy = PreClustering(3)
    picks = strategy.select(make_view(strategy, proba, features), 3)
    assert picks[0] in (0, 1, 2)
    assert picks[1] in (3, 4)
    assert picks[2] == 5


def test_preclustering_of_copies_spreads_over_the_places():
    features = np.repeat([[0.0, 1.0], [3.0, 1.0], [9.0, 9.0]], 5, axis=0)
    proba = np.tile([0.6, 0.4], (15, 1))
    seen = set()
    for seed in range(20):
        strategy = PreClustering()
        picks = strategy.select(make_view(strategy, proba, features, seed), 6)
        assert_array_equal(np.sort(picks[:3] // 5), [0, 1, 2])
        assert_array_equal(np.sort(picks[3:] // 5), [0, 1, 2])
        seen |= set(picks.tolist())
    assert len(seen) == 15


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_a_narrow_mixture_is_not_lost_in_rounding(convert):
    rng = np.random.default_rng(0)
    names = np.repeat([0, 1, 2], [8, 5, 3])
    features = (100 * rng.normal(size=(3, 50)))[names]
    proba = np.array([[0.9, 0.1], [0.7, 0.3], [0.5, 0.5]])[names]
    # Error times share: 0.8, 1.5, 1.5 of 16, and ties are excluded by a trace.
    proba[names == 2] = [0.505, 0.495]
    strategy = PreClustering(3, bandwidth=1e-6)
    view = make_view(strategy, proba, features.astype(np.float32), 0, convert)
    assert_array_equal(names[strategy.select(view, 3)], [1, 2, 0])


def test_preclustering_asks_last_what_is_certain():
    proba, features = make_pool(12, 3)
    proba[:4] = np.eye(3)[[0, 1, 2, 0]]
    strategy = PreClustering(1)
    picks = strategy.select(make_view(strategy, proba, features), 12)
    assert_array_equal(np.sort(picks[-4:]), np.arange(4))


def test_neither_threads_nor_chunks_change_a_mixture(monkeypatch):
    from joblib import parallel_config

    proba, features = make_pool(80)
    strategy = PreClustering(9)
    plain = strategy.select(make_view(strategy, proba, features), 30)
    for module in ("strategies._clustering", "_math._clustering"):
        monkeypatch.setattr(f"skactive.{module}.chunk_size", lambda *_: 7)
    with parallel_config(n_jobs=2):
        chunked = strategy.select(make_view(strategy, proba, features), 30)
    assert_array_equal(chunked, plain)


# Representatives


def nearest_to_the_best_centres(rows, n):
    """The rows nearest the centers of the best partition, by trying every one."""
    best = None
    for labels in product(range(n), repeat=len(rows)):
        if list(dict.fromkeys(labels)) != list(range(n)):
            continue  # not n clusters, or another numbering of the same ones
        total, picks = 0.0, []
        for name in range(n):
            own = [i for i, label in enumerate(labels) if label == name]
            center = [
                sum(c) / len(own) for c in zip(*(rows[i] for i in own), strict=True)
            ]
            away = {i: squared(rows[i], center) for i in own}
            total += sum(away.values())
            picks.append(min(away, key=away.get))
        if best is None or total < best[0]:
            best = total, sorted(picks)
    return best[1]


@pytest.mark.parametrize("n", [2, 3])
def test_representative_in_the_margin_of_an_svm_by_the_oracle(n):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 2)), np.repeat(["no", "yes"], 30)
    X[y == "yes", 0] += 4
    centers = [[2.0, -9.0], [2.0, 0.0], [2.0, 9.0]][:n]
    pool = np.vstack([rng.normal(scale=0.4, size=(9 // n, 2)) + c for c in centers])
    pool = np.vstack([pool, rng.normal(size=(20, 2)) * [1, 5] - [6, 0]])
    learner = ActiveLearner(LinearSVC(), Representative(), random_state=0).fit(X, y)
    inside = [i for i, f in enumerate(learner.decision_function(pool)) if abs(f) < 1]
    assert n < len(inside) < 20
    picks = learner.query(pool, n)
    best = nearest_to_the_best_centres([pool[i].tolist() for i in inside], n)
    assert_array_equal(np.sort(picks), [inside[i] for i in best])
    away = np.abs(learner.decision_function(pool)[picks])
    assert_array_equal(away, np.sort(away))


@pytest.mark.long
@pytest.mark.parametrize("margin", ["auto", 0.25])
def test_representative_of_probabilities_by_the_oracle(margin):
    rng = np.random.default_rng(109)
    places = np.arange(30) % 3
    features = np.array([[0.0, 0.0], [7.0, 0.0], [0.0, 7.0]])[places]
    features += rng.normal(scale=0.5, size=features.shape)
    proba = rng.dirichlet(np.ones(3), 30)
    gaps = [sorted(row)[-1] - sorted(row)[-2] for row in proba.tolist()]
    if margin == "auto":
        inside = sorted(sorted(range(30), key=gaps.__getitem__)[:9])
    else:
        inside = [i for i in range(30) if gaps[i] < margin]
    # With two of a group both would be equally near its center.
    assert min(np.bincount(places[inside])) >= 3
    assert len(inside) < 12
    strategy = Representative(margin, factor=3)
    picks = strategy.select(make_view(strategy, proba, features), 3)
    best = nearest_to_the_best_centres([features[i].tolist() for i in inside], 3)
    assert_array_equal(np.sort(picks), [inside[i] for i in best])
    assert [gaps[i] for i in picks] == sorted(gaps[i] for i in picks)


def test_too_few_inside_are_filled_up_from_nearest_the_boundary():
    decision = np.array([-3.0, 0.5, -0.2, 1.5, 9.0, -1.1])
    X = np.column_stack([-decision / 2, decision / 2, np.arange(6.0)])
    learner = ActiveLearner(GivenScores(), Representative()).fit(X[:2], [0, 1])
    assert_array_equal(learner.query(X, 4), [2, 1, 5, 3])
    assert_array_equal(np.sort(learner.query(X, 2)), [1, 2])
    assert_array_equal(np.sort(learner.query(X, 6)), np.arange(6))


def test_many_inside_are_clustered_as_a_sample(monkeypatch):
    monkeypatch.setattr("skactive.strategies._clustering.ROWS_PER_QUERY", 20)
    rng = np.random.default_rng(0)
    places = rng.integers(2, size=500)
    features = 50.0 * places[:, None] + rng.normal(size=(500, 2))
    strategy = Representative(margin=2.0)
    seen = set()
    for seed in range(6):
        view = make_view(strategy, rng.dirichlet(np.ones(2), 500), features, seed)
        picks = strategy.select(view, 2)
        assert sorted(places[picks]) == [0, 1]
        seen |= set(picks.tolist())
    assert len(seen) > 6


# All of them


@pytest.mark.parametrize("strategy", [PreClustering(), Representative()], ids=repr)
def test_a_batch_of_copies_and_certainties_is_whole(strategy):
    proba, features = make_pool(10, 7)
    proba[:4] = np.eye(7)[:4]
    rows = np.tile(np.arange(10), 3)
    for dtype in (np.float32, np.float64):
        for n in (1, 12, 30):
            view = make_view(
                strategy, proba[rows].astype(dtype), features[rows].astype(dtype)
            )
            assert len(set(strategy.select(view, n))) == n


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [
        Density("margin", beta=2.0, similarity="shifted"),
        Density(n_neighbors=3),
        PreClustering(4, bandwidth=1.0),
        PreClustering(),
        Representative(0.3),
        Representative(factor=1.5),
    ],
    ids=repr,
)
def test_the_conformance_kit_passes(strategy):
    check_strategy(strategy)
