"""Nearest rows and their means, against a stable sort and a double loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist

from skactive._math import _neighbors as neighbors
from skactive._math._neighbors import nearest, neighbor_means

KINDS = {"dense": np.asarray, "csr": sparse.csr_array, "matrix": sparse.csr_matrix}
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


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


@settings(max_examples=25, deadline=None)
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
def test_neighbors_are_those_of_a_full_sort_whatever_the_blocks(
    seed, n, m, d, k, exclude_self, single, kinds, blocks
):
    dtype = np.float32 if single else np.float64
    Y = draw_grid(m, d, seed, dtype)
    X = Y if exclude_self else draw_grid(n, d, seed + 1, dtype)
    k = min(k, m - exclude_self)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors, "QUERIES", blocks[0])
        patch.setattr(neighbors, "TARGETS", blocks[1])
        left, right = (KINDS[kind](Z) for kind, Z in zip(kinds, (X, Y), strict=True))
        found = nearest(left, right, k, exclude_self=exclude_self)
    expected = sort_all(X, Y, k, exclude_self)
    assert_array_equal(found[1], expected[1])
    assert_allclose(found[0], expected[0], rtol=1e-6)


@pytest.mark.long
@each_dtype
@pytest.mark.parametrize("blocks", [(1, 1), (7, 13), (1024, 64), (1024, 2048)])
def test_the_bits_do_not_depend_on_the_blocks(monkeypatch, blocks, dtype):
    X, Y = draw(24, 48, 0, dtype), draw(120, 48, 1, dtype)
    expected = nearest(X, Y, 20)
    monkeypatch.setattr(neighbors, "QUERIES", blocks[0])
    monkeypatch.setattr(neighbors, "TARGETS", blocks[1])
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
def test_rows_far_from_the_origin_keep_their_neighbors(dtype):
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


def test_few_rows_give_fewer_neighbors():
    X = draw(4, 3)
    assert nearest(X, X, 9)[1].shape == (4, 4)
    assert nearest(X, X, 9, exclude_self=True)[1].shape == (4, 3)
    assert nearest(X[:0], X, 2)[1].shape == (0, 2)
    assert_array_equal(nearest(X, X[:1], 2)[1], 0)


def test_whole_numbers_and_mixed_types_are_taken():
    X = draw_grid(20, 3)
    expected = sort_all(X, X, 4)[1]
    assert_array_equal(nearest(X.astype(int), X.astype(np.float32), 4)[1], expected)


def test_what_cannot_be_searched_is_refused():
    X = draw(5, 2)
    with pytest.raises(ValueError, match="k must be at least 1; got 0"):
        nearest(X, X, 0)
    with pytest.raises(ValueError, match="must hold a row that can be a neighbor"):
        nearest(X[:1], X[:1], 1, exclude_self=True)


# Their means


def by_loops(X, Y, values, k):
    means = []
    for x in np.asarray(X, dtype=np.float64):
        far = [(((x - y) ** 2).sum(), j) for j, y in enumerate(np.float64(Y))]
        means.append(np.mean([values[j] for _, j in sorted(far)[:k]], axis=0))
    return np.array(means)


@pytest.mark.parametrize(
    ("dtype", "k", "offset"),
    [
        *((np.float64, k, 100) for k in [1, 3, 19, 20, 50]),
        *((np.float32, k, 0) for k in [1, 3, 19]),
        (np.float32, 3, 100),
    ],
)
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
    # Far from the origin a product in float32 cannot tell these neighbors apart.
    rng = np.random.default_rng(0)
    Y = np.array([[4096.0], [4097.0], [4098.5], [-4096.0]], dtype=np.float32)
    X = rng.uniform(4096, 4098, size=(40, 1)).astype(np.float32)
    values = np.arange(4.0)[:, None]
    assert_array_equal(neighbor_means(X, Y, values, 1), by_loops(X, Y, values, 1))


def test_no_answer_depends_on_chunks_or_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y, values = rng.random((60, 5)), rng.random((12, 5)), rng.random((12, 2))
    whole = neighbor_means(X, Y, values, 4)
    monkeypatch.setattr(neighbors, "chunk_size", lambda *_: 7)
    assert_array_equal(neighbor_means(X, Y, values, 4), whole)
    assert_array_equal(neighbor_means(X, Y, values, 4, n_jobs=3), whole)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_have_the_same_neighbors(container):
    rng = np.random.default_rng(0)
    X, Y = (rng.poisson(0.4, size=(n, 9)) * rng.random((n, 9)) for n in (40, 15))
    values = rng.random((15, 2))
    dense = neighbor_means(X, Y, values, 4)
    assert_allclose(neighbor_means(container(X), container(Y), values, 4), dense)
