"""TypiClust and OneShot against loops over given clusters and exact probabilities."""

import math
from itertools import permutations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive._math._clustering import k_means
from skactive.strategies import OneShot, TypiClust
from skactive.strategies import _clustering as typiclust
from skactive.strategies._clustering import spread_sample, typicality
from skactive.testing import check_strategy
from skactive.view import PoolView


def make_view(X, L, strategy, seed=0):
    m = 0 if L is None else L.shape[0]
    return PoolView(
        X,
        unfitted=LogisticRegression(),  # neither needs a model
        X_labeled=L,
        y_labeled=np.zeros(m) if m else None,
        requires=strategy.requires,
        optional=strategy.optional,
        rng=np.random.default_rng(seed),
    )


def ask(strategy, X, L, n, seed=0):
    picks = strategy.select(make_view(X, L, strategy, seed), n)
    assert len(picks) == len(set(picks.tolist())) == n
    return picks


def ask_and_see_clusters(strategy, X, L, n, seed=0):
    """Also the cluster of each candidate and labeled item."""
    seen = []

    def spy(*args, **kwargs):
        seen.append(k_means(*args, **kwargs))
        assert args[1] == min(len(L) + n, strategy.max_clusters)
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typiclust, "k_means", spy)
        picks = ask(strategy, X, L if len(L) else None, n, seed)
    return picks, seen[0][1]


def typicality_of(i, members, n_neighbors):
    """Of one item among those of its cluster, by the definition."""
    others = [x for j, x in enumerate(members) if j != i]
    distances = sorted(math.dist(members[i], x) for x in others)[:n_neighbors]
    mean = math.fsum(distances) / len(distances) if distances else 0
    return math.inf if mean == 0 else 1 / mean


def check_by_loops(picks, X, L, labels, strategy):
    """Each pick is a best one by the definition, given the clusters and earlier picks.

    Where several are best any will do, so each step is judged by what it reached.
    """
    clusters = {}
    for position, c in enumerate(labels):
        clusters.setdefault(int(c), []).append(position)
    n = len(X)
    everything = np.vstack([X, L])
    chosen = set()
    for pick in picks.tolist():
        keys = {}
        for c, members in clusters.items():
            open_ones = [i for i in members if i < n and i not in chosen]
            if open_ones:
                labeled = len([i for i in members if i >= n or i in chosen])
                small = len(members) < strategy.min_cluster_size
                keys[c] = (small, labeled, -len(members))
        home = int(labels[pick])
        assert keys[home] == min(keys.values())
        members = clusters[home]
        rows = everything[members]
        values = {
            i: typicality_of(place, rows, strategy.n_neighbors)
            for place, i in enumerate(members)
            if i < n and i not in chosen
        }
        assert values[pick] == pytest.approx(max(values.values()), rel=1e-9)
        chosen.add(pick)


# TypiClust


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "strategy"),
    [
        (1, TypiClust()),
        (8, TypiClust()),
        (40, TypiClust()),  # more than the large clusters hold
        (69, TypiClust(n_neighbors=3, max_clusters=6, min_cluster_size=1)),
        (25, TypiClust(n_neighbors=1, max_clusters=9)),  # several turns of each
        (25, TypiClust(max_clusters=20, min_cluster_size=100)),  # all too small
    ],
    ids=repr,
)
@pytest.mark.parametrize("m", [0, 1, 12])
def test_typiclust_by_the_oracle_of_loops(n, strategy, m):
    rng = np.random.default_rng(m)
    X, L = rng.normal(size=(70, 3)) ** 3, rng.normal(size=(m, 3))
    picks, labels = ask_and_see_clusters(strategy, X, L, n)
    check_by_loops(picks, X, L, labels, strategy)


def test_typiclust_by_the_oracle_of_a_hand_made_pool():
    # Three groups of which the largest is labeled: 8 + 1, 7 and 6 items.
    X = np.concatenate([np.arange(8.0), 100 + np.arange(7.0), 200 + np.arange(6.0)])
    strategy = TypiClust(n_neighbors=2, max_clusters=3)
    # The middle ones of a group all have neighbors at 1 and 1, its ends do not.
    for seed in range(5):
        first, second, third = ask(strategy, X[:, None], np.array([[3.5]]), 3, seed)
        assert X[first] in range(101, 106)
        assert X[second] in range(201, 205)
        assert X[third] in (3.0, 4.0)  # beside the labeled one at 3.5


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, np.float32])
@pytest.mark.parametrize("n_neighbors", [1, 4, 100])
def test_typicality_is_the_double_loop(convert, n_neighbors):
    rng = np.random.default_rng(0)
    X, others = rng.normal(size=(30, 3)), rng.normal(size=(6, 3))
    X[5] = X[6] = X[7]
    found = typicality(convert(X), convert(others), n_neighbors, rng)
    rows = np.vstack([X, others])
    expected = [typicality_of(i, rows, n_neighbors) for i in range(30)]
    assert_allclose(found, expected, rtol=1e-5)
    assert np.isinf(found).sum() == (3 if n_neighbors == 1 else 0)


def test_of_a_large_cluster_only_some_are_compared(monkeypatch):
    monkeypatch.setattr(typiclust, "MEMBERS", 40)
    X = np.random.default_rng(0).normal(size=(100, 2))
    found = typicality(X[:90], X[90:], 5, np.random.default_rng(1))
    drawn = np.flatnonzero(found)
    assert 30 <= len(drawn) < 40
    # Fewer neighbors are farther, so no row looks more typical than it is.
    full = [typicality_of(i, X, 5) for i in drawn]
    assert (found[drawn] <= np.array(full) + 1e-12).all()
    picks = ask(TypiClust(max_clusters=1), X, None, 90)
    assert (found[picks[:5]] >= 0).all()


def test_labeled_items_steer_away_from_their_clusters():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [40, 30, 20, 10])
    X = 50 * np.eye(4)[y] + rng.normal(size=(100, 4))
    strategy = TypiClust(max_clusters=4)
    assert y[ask(strategy, X, None, 4)].tolist() == [0, 1, 2, 3]
    labeled = 50 * np.eye(4)[[0, 0, 2]]
    assert y[ask(strategy, X, labeled, 4)].tolist() == [1, 3, 1, 2]


def test_small_clusters_come_last():
    X = np.concatenate([np.zeros(4), np.full(6, 50.0), np.full(5, 90.0)])[:, None]
    X += np.linspace(0, 1, 15)[:, None]
    picks = ask(TypiClust(max_clusters=3), X, None, 15)
    assert set(picks[-4:]) == {0, 1, 2, 3}
    picks = ask(TypiClust(max_clusters=3, min_cluster_size=1), X, None, 15)
    assert len({0, 1, 2, 3} & set(picks[:3])) == 1


def test_a_learner_asks_before_any_label_and_after():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = 20 * np.eye(3)[y] + rng.normal(size=(90, 3))
    strategy = TypiClust(max_clusters=3)
    learner = ActiveLearner(
        LogisticRegression(), strategy, cold_start=strategy, random_state=0
    )
    first = learner.query(X, 2)
    assert len(set(y[first])) == 2
    learner.teach(X[first], y[first])
    rest = np.setdiff1d(np.arange(90), first)
    third = learner.query(X, 1, candidates=rest)
    assert set(y[[*first, *third]]) == {0, 1, 2}


def test_one_class_so_far_counts_for_a_cold_start():
    X = np.concatenate([np.linspace(0, 1, 20), np.linspace(50, 51, 10)])[:, None]
    strategy = TypiClust(max_clusters=2)
    learner = ActiveLearner(LogisticRegression(), cold_start=strategy, random_state=0)
    learner.teach(X[:1], [0])
    assert learner.query(X[1:], 1)[0] >= 19


# OneShot


def cosine_distance(x, z):
    x, z = np.asarray(x, dtype=float), np.asarray(z, dtype=float)
    return 1 - x @ z / math.sqrt((x @ x) * (z @ z))


def exact_chances(X, n):
    """Probability of each ordered batch, from the definition."""
    chances = {}
    distances = [[cosine_distance(x, z) for z in X] for x in X]
    for batch in permutations(range(len(X)), n):
        chance = 1 / len(X)
        for t in range(1, n):
            weights = [
                min(distances[i][j] for j in batch[:t]) ** 2 for i in range(len(X))
            ]
            chance *= weights[batch[t]] / math.fsum(weights)
        chances[batch] = chance
    assert math.fsum(chances.values()) == pytest.approx(1)
    return chances


SPREAD = np.array([[1.0, 0.0], [2.0, 0.7], [0.5, 0.6], [-0.2, 1.0], [0.1, -0.8]])


each_number_of_draws = pytest.mark.parametrize(
    "draws", [1000, pytest.param(3000, marks=pytest.mark.slow)]
)


@pytest.mark.long
@each_number_of_draws
@pytest.mark.parametrize("at_once", [1, 64])
def test_one_shot_by_the_oracle_of_exact_chances(at_once, draws, monkeypatch):
    monkeypatch.setattr(typiclust, "AT_ONCE", at_once)
    chances = exact_chances(SPREAD, 3)
    strategy = OneShot()
    view = make_view(SPREAD, None, strategy)
    counts = dict.fromkeys(chances, 0)
    for _ in range(draws):
        counts[tuple(strategy.select(view, 3).tolist())] += 1
    frequent = [batch for batch, p in chances.items() if draws * p >= 5]
    observed = [counts[batch] for batch in frequent]
    expected = [draws * chances[batch] for batch in frequent]
    observed.append(draws - sum(observed))
    expected.append(draws - sum(expected))
    assert scipy.stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.long
@each_number_of_draws
def test_long_batches_follow_the_exact_chances_too(draws):
    # Pairs of opposite rows: the chances of the last pick show every earlier update.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 3))
    chances = exact_chances(X, 5)
    last = np.zeros(6)
    for batch, p in chances.items():
        last[batch[4]] += p
    counts = np.zeros(6)
    for _ in range(draws):
        counts[spread_sample(X, 5, rng)[4]] += 1
    assert scipy.stats.chisquare(counts, draws * last).pvalue > 1e-3


def test_length_does_not_matter_and_copies_come_last():
    X = np.array([[1.0, 0], [5, 0], [0, 1], [0, 9], [3, 3], [0.1, 0.1]])
    for seed in range(30):
        picks = spread_sample(X, 6, np.random.default_rng(seed))
        assert sorted(picks) == list(range(6))
        assert {i // 2 for i in picks[:3]} == {0, 1, 2}


def test_the_first_and_what_is_left_are_uniform():
    X = np.tile(np.random.default_rng(0).normal(size=50), (8, 1)).astype(np.float32)
    firsts, lasts = np.zeros(8), np.zeros(8)
    for seed in range(800):
        picks = spread_sample(X, 3, np.random.default_rng(seed))
        firsts[picks[0]] += 1
        lasts[picks[2]] += 1
    assert scipy.stats.chisquare(firsts).pvalue > 1e-3
    assert scipy.stats.chisquare(lasts).pvalue > 1e-3


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_empty_rows_are_alike(convert):
    X = np.vstack([np.zeros((20, 2)), np.eye(2)])
    for seed in range(10):
        picks = spread_sample(convert(X), 3, np.random.default_rng(seed))
        assert {20, 21} <= set(picks.tolist())


def test_one_shot_spreads_over_far_directions():
    y = np.arange(400) % 20
    X = np.eye(20)[y] + 0.01 * np.random.default_rng(0).normal(size=(400, 20))
    picks = spread_sample(X, 20, np.random.default_rng(0))
    assert len(set(y[picks])) == 20


def test_chunks_change_nothing(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 5))
    expected = spread_sample(X, 100, np.random.default_rng(0))
    monkeypatch.setattr(typiclust, "chunk_size", lambda row_bytes: 7)
    assert_array_equal(spread_sample(X, 100, np.random.default_rng(0)), expected)


# Both


@pytest.mark.slow
def test_other_parameters_pass_the_kit():
    check_strategy(TypiClust(n_neighbors=3, max_clusters=4))


@pytest.mark.parametrize("strategy", [TypiClust(n_neighbors=5), OneShot()], ids=repr)
def test_sparse_and_single_precision_features_give_the_same(strategy):
    rng = np.random.default_rng(0)
    X = (30 * np.eye(6)[np.arange(90) % 6] + rng.normal(size=(90, 6))).astype(
        np.float32
    )
    X, L = X[8:], X[:8]
    expected = ask(strategy, X, L, 10)
    for convert in (np.float64, sparse.csr_array, sparse.csr_matrix):
        assert_array_equal(ask(strategy, convert(X), convert(L), 10), expected)


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.tuples(*[st.integers(0, 2)] * 2), min_size=1, max_size=25),
    m=st.integers(0, 24),
    n=st.integers(1, 25),
    seed=st.integers(0, 9),
)
def test_any_pool_gives_a_valid_batch(rows, m, n, seed):
    X = np.array(rows, dtype=np.float64)
    m = min(m, len(X) - 1)
    X, L = X[m:], X[:m]
    n = min(n, len(X))
    ask(OneShot(), X, L, n, seed)
    strategy = TypiClust(n_neighbors=2, max_clusters=4, min_cluster_size=3)
    picks, labels = ask_and_see_clusters(strategy, X, L, n, seed)
    check_by_loops(picks, X, L, labels, strategy)
