"""Neighbors kept from query to query: those found anew, whatever has changed."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, get_strategy
from skactive._math import _k_center as nearby
from skactive._math._k_center import NearestCandidates
from skactive._utils._chunks import LazyRows
from skactive.view import PoolView


def oracle(X, k, rows=None):
    """Distances and places of the nearest, ties to the first."""
    X = np.asarray(X, dtype=np.float64)
    D = cdist(X if rows is None else np.asarray(rows, dtype=np.float64), X)
    if rows is None:
        np.fill_diagonal(D, np.inf)
    k = min(k, len(X) - (rows is None))
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, order, axis=1), order


def check(kept, X, k, rows=None):
    distances, order = oracle(X, k, rows)
    assert_allclose(kept.distances, distances, rtol=1e-6, atol=1e-9)
    assert_array_equal(kept.indices, order)


@pytest.fixture
def searched(monkeypatch):
    """How many rows were searched for, update by update."""
    counts, plain = [], nearby.nearest

    def counting(rows, *args, **options):
        counts.append(len(rows))
        return plain(rows, *args, **options)

    monkeypatch.setattr(nearby, "nearest", counting)
    return counts


@pytest.mark.long
@pytest.mark.parametrize(
    ("dtype", "k"),
    [
        (np.float16, 3),
        (np.float32, 1),
        (np.float32, 20),
        (np.float64, 200),
        (np.int64, 3),
    ],
)
@pytest.mark.parametrize("itself", [False, True])
def test_neighbors_are_exact_while_candidates_go(dtype, k, itself):
    rng = np.random.default_rng(k)
    X = rng.normal(scale=50, size=(70, 5)).astype(dtype)
    X[11] = X[5] = X[40]  # equally near: the first comes first
    labeled = X[rng.permutation(70)[:30]]
    kept, rest = NearestCandidates(k), np.arange(70)
    for m in [*range(1, 30), *[30] * 37]:
        rows = None if itself else labeled[:m]
        kept = kept.update(X[rest], rest, rows)
        check(kept, X[rest], k, rows)
        rest = np.delete(rest, rng.integers(len(rest)))
    assert len(rest) == 4


@pytest.mark.parametrize("itself", [False, True])
def test_only_new_rows_and_those_that_ran_short_are_searched(searched, itself):
    X = np.random.default_rng(0).normal(size=(60, 4))
    labeled = X[:5] + 0.01
    rest = np.arange(60)
    kept = NearestCandidates(2).update(X, rest, None if itself else labeled)
    assert searched == [60 if itself else 5]
    spare = kept._near.shape[1] - 2
    assert spare > 0
    first = kept._near[3]
    for gone in range(1, spare + 2):
        rest = np.setdiff1d(np.arange(60), [*first[:gone], *[3] * (not itself)])
        rows = None if itself else labeled
        now = kept.update(X[rest], rest, rows)
        check(now, X[rest], 2, rows)
    short = np.array([np.isin(row, rest).sum() < 2 for row in kept._near])
    short = short[rest] if itself else short
    assert 0 < short.sum() < len(short)
    assert sum(searched[1:]) == short.sum()
    if not itself:
        searched.clear()
        now = now.update(X[rest], rest, np.concatenate([labeled, X[7:9]]))
        assert searched == [2]
        check(now, X[rest], 2, np.concatenate([labeled, X[7:9]]))


@pytest.mark.parametrize("itself", [False, True])
def test_a_candidate_that_is_new_or_changed_begins_anew(searched, itself):
    X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    rows, positions = None if itself else X[:6] * 2, np.arange(40)
    kept = NearestCandidates(3).update(X[5:], positions[5:], rows)
    back = kept.update(X, positions, rows)
    assert searched[1:] == [40 if itself else 6]
    check(back, X, 3, rows)
    X[20, 3] = np.nextafter(X[20, 3], np.float32(9))
    check(back.update(X, positions, rows), X, 3, rows)
    X[20] = X[0] * 2 + 1e-3  # where another is
    check(back.update(X, positions, rows), X, 3, rows)
    assert searched[2:] == [40 if itself else 6] * 2
    order = positions[::-1]
    check(back.update(X[order], order, rows), X[order], 3, rows)
    for other in (X * 3, X[:, :2], X.astype(np.float64)):
        wanted = None if itself else other[:6]
        check(back.update(other, positions, wanted), other, 3, wanted)


def test_a_changed_row_is_searched_for_again(searched):
    X = np.random.default_rng(0).normal(size=(40, 4))
    rows = X[:6] * 2
    kept = NearestCandidates(3).update(X, np.arange(40), rows)
    rows = rows.copy()
    rows[2] += 1.0
    check(kept.update(X, np.arange(40), rows), X, 3, rows)
    assert searched == [6, 1]
    check(kept.update(X, np.arange(40), rows[:4]), X, 3, rows[:4])
    assert searched == [6, 1, 1]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_that_are_taken_when_they_are_looked_at(n_jobs):
    X = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float16)
    positions = np.arange(3, 50, 2)
    kept = NearestCandidates(4).update(LazyRows(X, positions), positions, X[:7], n_jobs)
    check(kept, X[positions], 4, X[:7])


def test_equal_candidates_are_neighbors_of_each_other():
    kept = NearestCandidates(2).update(np.ones((40, 3)), np.arange(40))
    check(kept, np.ones((40, 3)), 2)
    assert (kept.indices != np.arange(40)[:, None]).all()


def test_an_update_leaves_what_was_there():
    X = np.random.default_rng(0).normal(size=(50, 4))
    kept = NearestCandidates(4).update(X, np.arange(50), X[:7])
    before = kept.indices.copy(), kept._near.copy(), kept._far.copy()
    kept.update(X[9:], np.arange(9, 50), X[:8])
    assert_array_equal(kept.indices, before[0])
    assert_array_equal(kept._near, before[1])
    assert_array_equal(kept._far, before[2])


# In strategies


def learners(strategy):
    X = np.random.default_rng(3).normal(size=(120, 6)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    start = [int(np.flatnonzero(y == c)[0]) for c in (0, 1)]
    learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
    return learner.fit(X[start], y[start]), X, y, start


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "batch_size"),
    [
        (get_strategy("seals", n_neighbors=4), 1),
        (get_strategy("density", n_neighbors=5), 3),
        pytest.param(get_strategy("seals", n_neighbors=4), 3, marks=pytest.mark.slow),
        pytest.param(get_strategy("density", n_neighbors=5), 1, marks=pytest.mark.slow),
    ],
)
def test_a_loop_asks_what_one_without_memory_asks(strategy, batch_size, searched):
    learner, X, y, labeled = learners(strategy)
    work = []
    for _ in range(25):
        rest = np.setdiff1d(np.arange(len(X)), labeled)
        fresh = copy.deepcopy(learner)
        fresh._memory = {}
        searched.clear()
        asked = learner.query(X, batch_size, candidates=rest)
        work.append(sum(searched))
        searched.clear()
        assert_array_equal(fresh.query(X, batch_size, candidates=rest), asked)
        work.append(sum(searched))
        learner.teach(X[asked], y[asked])
        labeled = [*labeled, *asked]
    kept, anew = np.reshape(work, (25, 2)).T
    assert kept[0] == anew[0]
    assert kept[1:].sum() < anew[1:].sum() / 4


def view_of(X):
    model = LogisticRegression().fit(X[:4], [0, 1, 0, 1])
    return PoolView(X, estimator=model, X_labeled=X[:4], y_labeled=[0, 1, 0, 1])


def test_the_cosines_of_a_view_are_those_of_its_own_candidates():
    X = np.random.default_rng(0).normal(size=(30, 4)) + 0.3
    view = view_of(X)
    for part, rows in ((view, X), (view.take(np.arange(3, 30, 3)), X[3::3])):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        products = unit @ unit.T
        np.fill_diagonal(products, -np.inf)
        order = np.argsort(-products, axis=1)[:, :5]
        cosines, indices = part.similar(5)
        assert_array_equal(indices, order)
        assert_allclose(cosines, np.take_along_axis(products, order, axis=1))
        near = part.labeled_neighbors(3)
        assert_array_equal(near[1], oracle(rows, 3, X[:4])[1])
        with pytest.raises(ValueError, match="read-only"):
            near[1][0] = 1


def test_features_that_are_not_tracked():
    X = np.random.default_rng(0).poisson(1.0, size=(30, 6)).astype(float)
    X[3] = 0
    assert view_of(X).similar(2) == (None, None)
    rows = sparse.csr_array(X)
    assert view_of(rows).similar(2) == (None, None)
    near = view_of(rows).labeled_neighbors(2)
    assert_array_equal(near[1], oracle(X, 2, X[:4])[1])
    for features in (X, rows):
        learner = ActiveLearner(
            LogisticRegression(), get_strategy("density", n_neighbors=4)
        )
        learner.fit(features[:6], [0, 1, 0, 1, 0, 1])
        assert 3 not in learner.query(features, 20)  # no density, no score


@pytest.mark.parametrize("strategy", ["seals", "density"])
def test_half_floats_too_large_to_convert_at_once(strategy, monkeypatch):
    strategy = {
        "seals": get_strategy("seals", n_neighbors=4),
        "density": get_strategy("density", n_neighbors=5),
    }[strategy]
    learner, X, *_ = learners(strategy)
    X = X.astype(np.float16)
    expected = learner.query(X.astype(np.float32), 5)
    monkeypatch.setattr("skactive._utils._chunks.LARGE", 1)
    assert_array_equal(learner.query(X, 5), expected)
    rest = np.arange(4, 120, 2)
    found = learner.query(X, 5, candidates=rest)
    assert_array_equal(found, learner.query(X.astype(np.float32), 5, candidates=rest))
