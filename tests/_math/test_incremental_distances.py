"""Distances kept from query to query: those computed anew, whatever has changed."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner, get_strategy
from skactive._math import _k_center as tracking
from skactive._math._k_center import NearestDistances, k_center
from skactive._utils._chunks import LazyRows
from skactive.view import PoolView


def oracle(X, centers, metric):
    X, centers = np.asarray(X, dtype=np.float64), np.asarray(centers, dtype=np.float64)
    if metric == "cosine":
        X, centers = (
            A / np.where((length := np.linalg.norm(A, axis=1)) > 0, length, 1)[:, None]
            for A in (X, centers)
        )
    return cdist(X, centers, "sqeuclidean").min(axis=1)


@pytest.fixture
def counted(monkeypatch):
    """Rows times centers that were compared."""
    work = []
    plain = tracking._lower

    def counting(distances, X, positions, centers, *rest):
        work.append((len(positions), len(centers)))
        return plain(distances, X, positions, centers, *rest)

    monkeypatch.setattr(tracking, "_lower", counting)
    return work


@pytest.mark.long
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize(
    ("dtype", "offset", "n_jobs"),
    [
        (np.float16, 1000, 1),
        (np.float32, 1000, 2),
        (np.float64, 0, 2),
        (np.int64, 0, 1),
    ],
)
def test_distances_are_exact_however_they_came_about(
    metric, dtype, offset, n_jobs, monkeypatch
):
    monkeypatch.setattr(tracking, "CENTERS", 5)
    monkeypatch.setattr(tracking, "chunk_size", lambda *_: 16)
    rng = np.random.default_rng(0)
    X = (rng.normal(scale=9, size=(90, 7)) + offset).astype(dtype)
    X[3] = X[60] = X[8] = 0
    centers = np.concatenate([X[:12], (X[:12] + 1).astype(dtype)])
    kept, rest = NearestDistances(metric), np.arange(90)
    for m in (1, 2, 3, 9, 10, 24):
        for rows in (X[rest], LazyRows(X, rest)):
            now = kept.update(rows, rest, centers[:m], n_jobs)
            expected = oracle(X[rest], centers[:m], metric)
            assert_allclose(now.distances, expected, rtol=1e-9, atol=1e-12)
            # A row that is a center is at no distance, not at a rounding error's.
            same = (X[rest][:, None] == centers[None, :m]).all(axis=2).any(axis=1)
            assert (now.distances[same] == 0).all()
        kept = now
        rest = np.delete(rest, rng.integers(len(rest), size=4))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_centers_nearer_to_each_other_than_products_resolve(metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 64)).astype(np.float32)
    some = rng.normal(size=(6, 64)).astype(np.float32)
    centers = np.concatenate([some, np.nextafter(some, np.float32(9))])
    found = NearestDistances(metric).update(X, np.arange(300), centers).distances
    assert_allclose(found, oracle(X, centers, metric), rtol=1e-12)


def test_only_what_is_new_is_computed(counted):
    X = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    rows = np.arange(50)
    kept = NearestDistances().update(X, rows, X[:5])
    assert counted == [(50, 5)]
    again = kept.update(X, rows, X[:5])
    assert counted == [(50, 5)]
    assert_array_equal(again.distances, kept.distances)
    kept.update(X[10:], rows[10:], X[:8])
    assert counted[1:] == [(40, 3)]
    kept.update(X[::-1], rows[::-1], X[:5])
    assert len(counted) == 2
    # What was not among the rows of the last update is not known any more.
    kept.update(X[10:], rows[10:], X[:5]).update(X, rows, X[:5])
    assert counted[2:] == [(10, 5)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_change_of_one_number_in_the_last_digit_is_seen(counted, dtype):
    X = np.random.default_rng(0).normal(size=(50, 6)).astype(dtype)
    rows, centers = np.arange(50), X[:5].copy()
    kept = NearestDistances().update(X, rows, centers)
    X[20, 3] = np.nextafter(X[20, 3], dtype(9))
    kept.update(X, rows, centers)
    assert counted[1:] == [(1, 5)]
    # Rows and numbers that change places are seen, too.
    X[[30, 31]] = X[[31, 30]]
    X[40] = X[40, ::-1]
    moved = kept.update(X, rows, centers)
    assert counted[2:] == [(4, 5)]
    assert_allclose(moved.distances, oracle(X, centers, "euclidean"), rtol=1e-9)
    # A label's features, fewer labels, labels in another order: begin anew.
    centers[1, 0] = np.nextafter(centers[1, 0], dtype(9))
    for other in (centers, X[:4], X[:5][::-1], X[1:6], centers.astype(np.float64)):
        counted.clear()
        now = kept.update(X, rows, other)
        if other.dtype != dtype or other is centers or len(other) < 5:
            assert counted == [(50, len(other))]
        assert_allclose(now.distances, oracle(X, other, "euclidean"), rtol=1e-6)


def test_other_features_of_the_same_pool_are_seen():
    X = np.random.default_rng(0).normal(size=(50, 6))
    rows = np.arange(50)
    kept = NearestDistances().update(X, rows, X[:5])
    for other in (X * 2, X[:, :5], X.astype(np.float32), X + 0.0):
        now = kept.update(other, rows, other[:5])
        assert_allclose(
            now.distances, oracle(other, other[:5], "euclidean"), rtol=1e-6, atol=1e-12
        )


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 5, 70])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", ["normal", "grid"])
def test_k_center_from_known_distances_picks_the_same(n, metric, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 5))
    if kind == "grid":  # full of ties
        X = rng.integers(3, size=(2500, 4)).astype(float)
    distances = NearestDistances(metric).update(X, np.arange(2500), X[:40]).distances
    for seed in range(3):
        given = {"metric": metric, "rng": np.random.default_rng(seed)}
        known = k_center(X, n, distances=distances, **given)
        given["rng"] = np.random.default_rng(seed)
        assert_array_equal(known, k_center(X, n, labeled=X[:40], **given))


# In the loop


def make_pool(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8)).astype(np.float32)
    return X, (X[:, 0] > 0).astype(int)


def ask(learner, X, rest):
    """What a learner asks, and what it would ask if it had nothing kept."""
    found = learner.query(X, candidates=rest)
    fresh = pickle.loads(pickle.dumps(learner)).query(X, candidates=rest)
    assert_array_equal(found, fresh)
    assert_array_equal(found, learner.query(X, candidates=rest))
    return found


@pytest.mark.long
@pytest.mark.parametrize("front", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_loop_asks_what_it_would_ask_without(front, metric, counted):
    X, y = make_pool()
    model = LogisticRegression()
    # Its scaler is fitted anew in each round, which changes all features.
    model = make_pipeline(StandardScaler(), model) if front else model
    strategy = get_strategy("coreset", metric=metric)
    learner = ActiveLearner(model, strategy, batch_size=2, random_state=0)
    learner.fit(X[:10], y[:10])
    rest = np.arange(len(X)) >= 10
    for _ in range(6):
        found = ask(learner, X, rest)
        rest[found] = False
        learner.teach(X[found], y[found])
    if not front:
        assert (286, 2) in counted


def test_a_pool_changed_in_place_is_not_mistaken_for_what_it_was():
    X, y = make_pool()
    learner = ActiveLearner(LogisticRegression(), "coreset", random_state=0)
    learner.fit(X[:10], y[:10])
    rest = np.arange(len(X)) >= 10
    ask(learner, X, rest)
    X[200] = 50
    assert 200 in ask(learner, X, rest)
    other = X[::-1].copy()
    ask(learner, other, rest[::-1].copy())
    ask(learner, X[:100], np.arange(50, 100))


def test_what_is_kept_is_for_nobody_else():
    X, y = make_pool()
    learner = ActiveLearner(LogisticRegression(), "coreset", random_state=0)
    learner.fit(X[:10], y[:10])
    before = pickle.dumps(learner)
    learner.query(X)
    assert learner._memory
    assert pickle.dumps(learner) == before
    assert not hasattr(copy.deepcopy(learner), "_memory")
    learner.teach(X[20:22], y[20:22])
    assert learner._memory
    learner.fit(X[:10], y[:10])
    assert learner._memory == {}
    loaded = pickle.loads(before)
    loaded.query(X)
    loaded.teach(X[20:22], y[20:22]).query(X)
    assert loaded._memory


def test_a_view_of_other_items_keeps_nothing():
    X, y = make_pool()
    model = LogisticRegression().fit(X, y)
    memory = {}
    view = PoolView(X, estimator=model, X_labeled=X[:5], y_labeled=y[:5], memory=memory)
    part = view.take(np.arange(100, 200)).take(np.arange(0, 100, 3))
    assert_allclose(
        part.labeled_distances(), oracle(X[100:200:3], X[:5], "euclidean"), rtol=1e-9
    )
    (kept,) = memory.values()
    assert_array_equal(kept.positions, np.arange(100, 200, 3))
    view.on(X[::2]).labeled_distances()
    assert list(memory.values()) == [kept]
    assert view.labeled_distances()[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        view.labeled_distances()[0] = 1


def test_sparse_features_and_no_labels_have_no_distances():
    from scipy import sparse

    X, y = make_pool()
    model = LogisticRegression().fit(X, y)
    rows = sparse.csr_array(X)
    labels = {"X_labeled": rows[:5], "y_labeled": y[:5]}
    assert PoolView(rows, estimator=model, **labels).labeled_distances() is None
    learner = ActiveLearner(LogisticRegression(), "coreset", random_state=0)
    learner.fit(rows[:5], y[:5])
    dense = ActiveLearner(LogisticRegression(), "coreset", random_state=0)
    assert_array_equal(learner.query(rows, 20), dense.fit(X[:5], y[:5]).query(X, 20))
