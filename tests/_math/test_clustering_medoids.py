"""k-medoids against all pairs of rows."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skactive._math._clustering import draw_spread, k_medoids


def squared(a, b):
    return sum((float(s) - float(t)) ** 2 for s, t in zip(a, b, strict=True))


def cost(X, medoids):
    return sum(min(squared(x, X[m]) for m in medoids) for x in X)


def assert_is_settled(X, medoids, labels, distances):
    """Rows have the nearest medoid, and no other row of a cluster is a better one."""
    for i, x in enumerate(X):
        away = [squared(x, X[m]) for m in medoids]
        assert_allclose(away[labels[i]], min(away), rtol=1e-9, atol=1e-12)
        assert_allclose(distances[i], away[labels[i]], rtol=1e-9, atol=1e-12)
    for place, medoid in enumerate(medoids):
        rows = np.flatnonzero(labels == place)
        assert medoid in rows
        sums = [sum(squared(X[i], X[j]) for j in rows) for i in rows]
        own = sums[rows.tolist().index(medoid)]
        assert_allclose(own, min(sums), rtol=1e-9, atol=1e-12)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.booleans())
def test_medoids_are_settled_by_all_pairs_of_rows(seed, k, doubled):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 3)) + 10 * rng.normal(size=3)
    X = np.vstack([X, X]) if doubled else X
    found = k_medoids(X, k, rng, max_iter=100)
    assert len(found[0]) == k
    assert_is_settled(X, *found)


def test_the_row_nearest_the_mean_has_the_least_sum_of_squares():
    X = np.random.default_rng(0).normal(size=(30, 4))
    medoid = k_medoids(X, 1, np.random.default_rng(0))[0][0]
    sums = [sum(squared(a, b) for b in X) for a in X]
    assert medoid == np.argmin(sums)
    mean = [sum(column) / len(X) for column in X.T.tolist()]
    assert medoid == np.argmin([squared(a, mean) for a in X])


def test_the_best_of_some_starts_is_the_best_of_all_sets():
    X = np.random.default_rng(3).normal(size=(12, 2))
    best = min(cost(X, medoids) for medoids in combinations(range(12), 3))
    runs = [k_medoids(X, 3, np.random.default_rng(seed))[0] for seed in range(30)]
    assert_allclose(min(cost(X, medoids) for medoids in runs), best)


def groups(n, seed=0, dtype=np.float64):
    """Five groups far from one another, and from the origin."""
    rng = np.random.default_rng(seed)
    names = rng.integers(5, size=n)
    return (100 + 20 * names[:, None] + rng.normal(size=(n, 3))).astype(dtype), names


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_groups_are_found_in_every_kind_of_rows(dtype, convert):
    X, names = groups(200, dtype=dtype)
    medoids, labels, distances = k_medoids(convert(X), 5, np.random.default_rng(0))
    assert_array_equal(np.sort(names[medoids]), np.arange(5))
    assert_array_equal(names[medoids][labels], names)
    for medoid, name in zip(medoids, names[medoids], strict=True):
        rows = np.flatnonzero(names == name)
        sums = [sum(squared(X[i], X[j]) for j in rows) for i in rows]
        own = sums[rows.tolist().index(medoid)]
        assert_allclose(own, min(sums), rtol=1e-3 if dtype is np.float32 else 1e-9)
    away = ((X - X[medoids][labels]) ** 2).sum(axis=1)
    assert_allclose(distances, away, rtol=1e-4, atol=1e-9)


def test_a_sample_ends_at_the_medoids_of_all_rows():
    X, names = groups(1000)
    found = k_medoids(X, 5, np.random.default_rng(0), max_rows=60)
    medoids, labels, _ = found
    assert_array_equal(names[medoids][labels], names)
    for place, medoid in enumerate(medoids):
        rows = X[labels == place]
        away = ((rows - rows.mean(axis=0)) ** 2).sum(axis=1)
        assert_array_equal(X[medoid], rows[away.argmin()])


@pytest.mark.long
def test_neither_threads_nor_chunks_change_the_answer(monkeypatch):
    X, _ = groups(300)
    for convert in (np.asarray, sparse.csr_array):
        plain = k_medoids(convert(X), 9, np.random.default_rng(0))
        threads = k_medoids(convert(X), 9, np.random.default_rng(0), n_jobs=2)
        monkeypatch.setattr("skactive._math._clustering.chunk_size", lambda *_: 7)
        chunked = k_medoids(convert(X), 9, np.random.default_rng(0), n_jobs=2)
        monkeypatch.undo()
        for other in (threads, chunked):
            assert_array_equal(other[0], plain[0])
            assert_array_equal(other[1], plain[1])


def test_a_memory_map_is_not_written_to(tmp_path):
    X, _ = groups(100)
    np.save(tmp_path / "X.npy", X)
    stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = k_medoids(stored, 5, np.random.default_rng(0))
    assert_array_equal(found[0], k_medoids(X, 5, np.random.default_rng(0))[0])


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_copies_are_never_two_medoids(convert):
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 40)) + 5, 50, axis=0)
    for dtype in (np.float32, np.float64):
        rows = convert(X.astype(dtype))
        medoids, labels, distances = k_medoids(rows, 10, np.random.default_rng(1))
        assert_array_equal(np.sort(medoids // 50), np.arange(3))
        assert_array_equal(medoids[labels] // 50, np.arange(150) // 50)
        assert_array_equal(distances, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_draws_no_copies(dtype):
    rows = np.random.default_rng(0).normal(size=(3, 300)) * 10 + 50
    X = np.repeat(rows, 50, axis=0).astype(dtype)
    for seed in range(5):
        drawn = draw_spread(X, 10, np.random.default_rng(seed))
        assert_array_equal(np.sort(drawn // 50), np.arange(3))


def test_more_clusters_than_rows_are_all_rows():
    X = np.arange(6.0)[:, None]
    medoids, labels, distances = k_medoids(X, 50, np.random.default_rng(0))
    assert_array_equal(np.sort(medoids), np.arange(6))
    assert_array_equal(medoids[labels], np.arange(6))
    assert_array_equal(distances, 0)


def test_of_equal_rows_any_may_be_the_medoid():
    X = np.ones((10, 2))
    found = {
        int(k_medoids(X, 3, np.random.default_rng(seed))[0][0]) for seed in range(60)
    }
    assert len(found) >= 8
