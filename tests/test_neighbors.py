"""Means over the nearest rows against a double loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import skactive.neighbors
from skactive.neighbors import neighbor_means


def by_loops(X, Y, values, k):
    means = []
    for x in np.asarray(X, dtype=np.float64):
        far = [(((x - y) ** 2).sum(), j) for j, y in enumerate(np.float64(Y))]
        means.append(np.mean([values[j] for _, j in sorted(far)[:k]], axis=0))
    return np.array(means)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 3, 19, 20, 50])
@pytest.mark.parametrize("offset", [0, 100])
def test_a_double_loop_finds_the_same(dtype, k, offset):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(50, 8)) + offset).astype(dtype)
    Y = (rng.normal(size=(20, 8)) + offset).astype(dtype)
    values = rng.random((20, 3))
    assert_allclose(
        neighbor_means(X, Y, values, k), by_loops(X, Y, values, k), rtol=1e-12
    )


@given(seed=st.integers(0, 500), k=st.integers(1, 8))
def test_of_equally_near_rows_the_first_are_taken(seed, k):
    rng = np.random.default_rng(seed)
    X = rng.integers(3, size=(10, 2)).astype(float)
    Y = rng.integers(3, size=(9, 2)).astype(float)
    values = rng.random((9, 1))
    assert_allclose(
        neighbor_means(X, Y, values, k), by_loops(X, Y, values, k), rtol=1e-12
    )


def test_rounding_does_not_decide():
    # Far from the origin a product in float32 cannot tell these neighbours apart.
    rng = np.random.default_rng(0)
    Y = np.array([[4096.0], [4097.0], [4098.5], [-4096.0]], dtype=np.float32)
    X = rng.uniform(4096, 4098, size=(40, 1)).astype(np.float32)
    values = np.arange(4.0)[:, None]
    assert_array_equal(neighbor_means(X, Y, values, 1), by_loops(X, Y, values, 1))


def test_no_answer_depends_on_chunks_or_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y, values = rng.random((60, 5)), rng.random((12, 5)), rng.random((12, 2))
    whole = neighbor_means(X, Y, values, 4)
    monkeypatch.setattr(skactive.neighbors, "chunk_size", lambda *_: 7)
    assert_array_equal(neighbor_means(X, Y, values, 4), whole)
    assert_array_equal(neighbor_means(X, Y, values, 4, n_jobs=3), whole)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_have_the_same_neighbours(container):
    rng = np.random.default_rng(0)
    X, Y = (rng.poisson(0.4, size=(n, 9)) * rng.random((n, 9)) for n in (40, 15))
    values = rng.random((15, 2))
    dense = neighbor_means(X, Y, values, 4)
    assert_allclose(neighbor_means(container(X), container(Y), values, 4), dense)
