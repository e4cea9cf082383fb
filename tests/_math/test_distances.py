"""Distances against scipy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist

from skactive._math._neighbors import (
    middle,
    paired_distances,
    squared_distances,
    squared_norms,
)

KINDS = {"dense": np.asarray, "csr": sparse.csr_array, "matrix": sparse.csr_matrix}
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_kind = pytest.mark.parametrize("kind", KINDS)


def draw(n, d, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


@each_dtype
@each_kind
def test_distances_are_those_of_scipy(kind, dtype):
    X, Y = draw(30, 7, 0, dtype), draw(20, 7, 1, dtype)
    expected = cdist(X, Y, "sqeuclidean")
    found = squared_distances(KINDS[kind](X), KINDS[kind](Y))
    assert_allclose(found, expected, rtol=1e-5)
    rows, columns = np.indices((30, 20)).reshape(2, -1)
    found = paired_distances(KINDS[kind](X), Y, rows, columns)
    assert_allclose(found, expected.ravel(), rtol=1e-5)
    assert found.dtype == dtype
    assert_allclose(squared_norms(KINDS[kind](X)), (X**2).sum(axis=1), rtol=1e-5)


def test_an_origin_near_the_rows_saves_the_digits():
    X = draw(40, 5, 0, np.float32) / 100 + np.float32(300)
    expected = cdist(X.astype(np.float64), X, "sqeuclidean")
    found = squared_distances(X, X, origin=middle(X))
    assert_allclose(found, expected, atol=1e-7)
    assert (squared_distances(X, X) >= 0).all()


def test_no_middle_fills_a_sparse_matrix():
    assert middle(sparse.csr_array(draw(5, 2))) is None
    assert middle(draw(5, 2)[:0]) is None


def test_a_middle_is_given_where_it_helps():
    assert middle(draw(5000, 3)) is None
    assert_allclose(middle(draw(5000, 3) + 7), 7, atol=0.2)
