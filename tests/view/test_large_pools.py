"""Pools of other numbers than floats, and larger than a copy should be."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from skactive import ActiveLearner, get_strategy
from skactive._utils import _chunks
from skactive._utils._chunks import LazyRows, as_floats, float_rows, lazy_rows
from skactive.view import PoolView
from skactive.view._pool_view import _quantities as quantities

DENSE = ["margin", "entropy", "egl", "bald", "badge", "coreset", "embedding_kmeans"]
DENSE += ["typiclust", "probcover", "density", "cal", "dal", "preclustering"]
DENSE += ["representative", "perceptron_ensemble", "dfal", "goral", "random"]
DENSE += ["uherding", "dropquery", "anchoral", "switch"]


@pytest.fixture
def rows():
    X = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float16)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    return X, y


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(_chunks, "LARGE", 1)
    monkeypatch.setattr(quantities, "LARGE", 1)


def make(rows, strategy, estimator=None):
    X, y = rows
    learner = ActiveLearner(estimator or LogisticRegression(), strategy, random_state=0)
    return learner.fit(X[:60].astype(np.float32), y[:60])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", DENSE)
def test_picks_are_the_same_however_large_the_pool_seems(rows, name, monkeypatch):
    learner, pool = make(rows, get_strategy(name)), rows[0][60:]
    mask = np.arange(340) % 4 > 0
    expected = learner.query(pool, 8), learner.query(pool, 8, candidates=mask)
    monkeypatch.setattr(_chunks, "LARGE", 1)
    monkeypatch.setattr(quantities, "LARGE", 1)
    assert_array_equal(learner.query(pool, 8), expected[0])
    assert_array_equal(learner.query(pool, 8, candidates=mask), expected[1])


@pytest.mark.parametrize("name", ["margin", "egl", "coreset", "uherding", "dropquery"])
def test_half_precision_asks_for_what_single_precision_does(rows, name):
    learner, pool = make(rows, name), rows[0][60:]
    expected = learner.query(pool.astype(np.float32), 8)
    assert_array_equal(learner.query(pool, 8), expected)


@pytest.mark.long
def test_predictions_a_chunk_at_a_time_are_those_of_all(rows, everything_is_large):
    X, y = rows
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    svm = LinearSVC(random_state=0).fit(X, y)
    view = PoolView(X, estimator=forest)
    assert_allclose(view.proba, forest.predict_proba(X), rtol=1e-6)
    some = PoolView(X, estimator=svm).take([5, 3, 300]).take([2, 0])
    expected = svm.decision_function(X[[300, 5]])
    assert_allclose(some.class_scores, expected, rtol=1e-6)
    assert_array_equal(some.X, X[[300, 5]])


def test_an_estimator_of_ones_own_gets_all_rows_at_once(rows, everything_is_large):
    X, y = rows
    model = RandomForestClassifier(2, random_state=0).fit(X, y)
    model.__class__ = type("Own", (RandomForestClassifier,), {"__module__": "own"})
    calls = []
    predict = model.predict_proba
    model.predict_proba = lambda X: calls.append((type(X), len(X))) or predict(X)
    PoolView(X, estimator=model).take(np.arange(300)).proba  # noqa: B018
    assert calls == [(np.ndarray, 300)]


def test_what_a_view_gives_is_an_array(rows, everything_is_large):
    X, y = rows
    view = PoolView(X, estimator=LogisticRegression().fit(X, y)).take([3, 1, 2])
    for value in (view.proba, view.features, *view.gradients, view.boundary, view.X):
        assert type(value) is np.ndarray
        assert len(value) == 3
        assert not value.flags.writeable
    assert view.features.dtype == view.gradients[1].dtype == np.float16


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "copies"),
    [("margin", 0), ("bald", 0), ("dfal", 0), ("egl", 1), ("badge", 1), ("coreset", 1)],
)
@pytest.mark.parametrize("masked", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_large_pool_is_not_converted_as_a_whole(name, copies, masked, monkeypatch):
    monkeypatch.setattr(_chunks, "LARGE", 2**24)
    rng = np.random.default_rng(0)
    X = rng.random((60_000, 300), dtype=np.float32).astype(np.float16)  # 36 MB
    learner = ActiveLearner(LogisticRegression(), name, random_state=0)
    learner.fit(X[:60], np.arange(60) % 3)
    mask = np.arange(len(X)) % 10 > 0 if masked else None
    tracemalloc.start()
    try:
        learner.query(X, 5, candidates=mask)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # All rows would be 72 MB in single, 144 MB in double precision. Strategies that
    # are given features have those of the candidates, as they are.
    assert peak < 60e6 + 33e6 * masked * copies


def test_rows_are_taken_and_converted_when_they_are_looked_at(rows):
    X = rows[0]
    lazy = LazyRows(X, np.array([7, 2, 9]), np.float32)
    assert lazy.shape == (3, 6)
    assert (len(lazy), lazy.ndim, lazy.itemsize) == (3, 2, 4)
    for key in (slice(1, 3), np.array([2, 0]), [1], slice(None, None, 2)):
        assert lazy[key].dtype == np.float32
        assert_array_equal(lazy[key], X[[7, 2, 9]][key])
    assert_array_equal(np.asarray(lazy), X[[7, 2, 9]])
    assert np.asarray(lazy, dtype=np.float64).dtype == np.float64
    again = lazy_rows(lazy, np.array([2, 1]))
    assert_array_equal(again[:], X[[9, 2]])
    assert again.dtype == np.float32


def test_small_and_sparse_rows_are_not_lazy(rows):
    from scipy import sparse

    X = rows[0]
    assert lazy_rows(X, np.array([1])) is None
    assert lazy_rows(sparse.csr_array(X.astype(float)), np.array([1])) is None
    assert type(float_rows(X)) is np.ndarray


@pytest.mark.parametrize(
    ("given", "expected"),
    [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i1", "f8"), ("?", "f8")],
)
def test_types_of_floats(given, expected, everything_is_large):
    X = np.ones((4, 2), dtype=given)
    assert as_floats(X).dtype == expected
    assert float_rows(X).dtype == expected
    assert isinstance(float_rows(X), LazyRows) == (given != expected)
    assert float_rows(float_rows(X)).dtype == expected
