"""Distances and neighbours against scipy's double loop and a stable sort."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

from skactive import distances
from skactive.distances import (
    middle,
    nearest,
    paired_distances,
    squared_distances,
    squared_norms,
)

KINDS = {"dense": np.asarray, "csr": sparse.csr_array, "matrix": sparse.csr_matrix}
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_kind = pytest.mark.parametrize("kind", KINDS)


def sort_all(X, Y, k, exclude_self=False):
    """The definition: every distance in float64, sorted, ties by index."""
    table = cdist(X.astype(np.float64), Y.astype(np.float64))
    if exclude_self:
        np.fill_diagonal(table, np.inf)
    order = np.argsort(table, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(table, order, axis=1), order


def draw(n, d, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def draw_grid(n, d, seed=0, dtype=np.float64):
    """Rows of small whole numbers: many are equal or equally far."""
    return np.random.default_rng(seed).integers(-2, 3, (n, d)).astype(dtype)


# Neighbours


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 30),
    m=st.integers(2, 50),
    d=st.integers(1, 6),
    k=st.integers(1, 60),
    exclude_self=st.booleans(),
    single=st.booleans(),
    kinds=st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(KINDS))),
    blocks=st.tuples(st.integers(1, 40), st.integers(1, 60)),
)
def test_neighbours_are_those_of_a_full_sort_whatever_the_blocks(
    seed, n, m, d, k, exclude_self, single, kinds, blocks
):
    dtype = np.float32 if single else np.float64
    Y = draw_grid(m, d, seed, dtype)
    X = Y if exclude_self else draw_grid(n, d, seed + 1, dtype)
    k = min(k, m - exclude_self)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distances, "QUERIES", blocks[0])
        patch.setattr(distances, "TARGETS", blocks[1])
        left, right = (KINDS[kind](Z) for kind, Z in zip(kinds, (X, Y), strict=True))
        found = nearest(left, right, k, exclude_self=exclude_self)
    expected = sort_all(X, Y, k, exclude_self)
    assert_array_equal(found[1], expected[1])
    assert_allclose(found[0], expected[0], rtol=1e-6)


@each_dtype
@pytest.mark.parametrize("blocks", [(1, 1), (7, 13), (1024, 64), (1024, 2048)])
def test_the_bits_do_not_depend_on_the_blocks(monkeypatch, blocks, dtype):
    X, Y = draw(60, 48, 0, dtype), draw(300, 48, 1, dtype)
    expected = nearest(X, Y, 20)
    monkeypatch.setattr(distances, "QUERIES", blocks[0])
    monkeypatch.setattr(distances, "TARGETS", blocks[1])
    for n_jobs in (1, 3):
        found = nearest(X, Y, 20, n_jobs=n_jobs)
        assert_array_equal(found[1], expected[1])
        assert_array_equal(found[0], expected[0])
    assert found[0].dtype == dtype


@each_dtype
def test_more_equal_rows_than_are_kept_fall_to_the_first(dtype):
    rows = draw(3, 20, 0, dtype)
    Y = np.repeat(rows, 300, axis=0)[np.random.default_rng(0).permutation(900)]
    found, indices = nearest(Y, Y, 5, exclude_self=True)
    assert_array_equal(found, 0)
    assert_array_equal(indices, sort_all(Y, Y, 5, exclude_self=True)[1])


@each_dtype
def test_rows_far_from_the_origin_keep_their_neighbours(dtype):
    Y = draw_grid(200, 4, 0, dtype) / 8
    far = Y + dtype(1000)
    assert_array_equal(nearest(far, far, 9)[1], sort_all(far, far, 9)[1])
    assert_array_equal(nearest(far, far, 1)[0], 0)


def test_rows_nearer_than_rounding_of_the_product_are_told_apart():
    rng = np.random.default_rng(0)
    Y = np.ones((200, 8), dtype=np.float32)
    Y[:, 0] += rng.permutation(200).astype(np.float32) * np.float32(2**-20)
    Y[::2] *= -1  # so that no shift of the origin helps
    assert_array_equal(nearest(Y, Y, 20)[1], sort_all(Y, Y, 20)[1])


def test_a_memory_map_is_searched_as_the_array_is(tmp_path):
    X = draw(500, 16, 0, np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    both = nearest(mapped, mapped, 7), nearest(X, X, 7)
    for found, expected in zip(*both, strict=True):
        assert_array_equal(found, expected)


def test_few_rows_give_fewer_neighbours():
    X = draw(4, 3)
    assert nearest(X, X, 9)[1].shape == (4, 4)
    assert nearest(X, X, 9, exclude_self=True)[1].shape == (4, 3)
    assert nearest(X[:0], X, 2)[1].shape == (0, 2)
    assert_array_equal(nearest(X, X[:1], 2)[1], 0)


def test_whole_numbers_and_mixed_types_are_taken():
    X = draw_grid(20, 3)
    expected = sort_all(X, X, 4)[1]
    assert_array_equal(nearest(X.astype(int), X.astype(np.float32), 4)[1], expected)


@pytest.mark.parametrize("method", ["auto", "faiss"])
def test_the_index_of_faiss_finds_most_of_the_same(method, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(distances, "MANY", 10)
    centers = 4 * draw(20, 16, 2)
    X = (np.repeat(centers, 100, axis=0) + draw(2000, 16)).astype(np.float32)
    found, indices = nearest(X, X, 10, exclude_self=True, method=method)
    exact = nearest(X, X, 10, exclude_self=True)[1]
    shared = [len(set(a) & set(b)) for a, b in zip(indices, exact, strict=True)]
    assert np.mean(shared) > 7
    assert (np.diff(found, axis=1) >= 0).all()
    rows = np.arange(2000)
    assert not (indices == rows[:, None]).any()
    assert_allclose(found[:, 0], np.linalg.norm(X - X[indices[:, 0]], axis=1), 1e-5)


def test_faiss_with_few_rows_looks_everywhere():
    pytest.importorskip("faiss")
    X = draw(30, 4)
    both = nearest(X, X, 25, method="faiss"), nearest(X, X, 25)
    for found, expected in zip(*both, strict=True):
        assert_allclose(found, expected)


def test_faiss_missing_is_said_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"pip install 'skactive\[ann\]'"):
        nearest(draw(5, 2), draw(5, 2), 1, method="faiss")


def test_what_cannot_be_searched_is_refused():
    X = draw(5, 2)
    with pytest.raises(ValueError, match="method must be one of"):
        nearest(X, X, 1, method="kd_tree")
    with pytest.raises(ValueError, match="k must be at least 1; got 0"):
        nearest(X, X, 0)
    with pytest.raises(ValueError, match="no row that could be a neighbour"):
        nearest(X[:1], X[:1], 1, exclude_self=True)
    with pytest.raises(TypeError, match="dense rows and got sparse"):
        nearest(sparse.csr_array(X), X, 1, method="faiss")


# Distances


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
