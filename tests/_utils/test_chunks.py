"""Rows that are read and converted a chunk at a time."""

import mmap

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive._utils import _chunks
from skactive._utils._chunks import (
    LazyRows,
    concatenate_chunks,
    lazy_rows,
    multiply_rows,
    to_type,
)
from skactive.view import _quantities

HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)
FINITE = HALVES[np.isfinite(HALVES)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("numbers", [FINITE, HALVES, FINITE[:0]], ids=len)
def test_every_half_becomes_the_same_number(numbers, dtype):
    found = to_type(numbers, dtype)
    with np.errstate(invalid="ignore"):
        expected = numbers.astype(dtype)
    assert found.dtype == dtype
    assert_array_equal(found, expected)
    assert_array_equal(np.signbit(found), np.signbit(expected))


def test_other_numbers_and_orders_of_halves_are_converted_too():
    table = FINITE[: 2 * (len(FINITE) // 2)].reshape(-1, 2)
    for X in (table.T, table[::3, 1:], table.astype(">f2")):
        assert_array_equal(to_type(X, np.float32), X.astype(np.float32))
    single = np.ones(3, np.float32)
    assert to_type(single, np.float32) is single
    assert to_type(np.arange(3), np.float64).dtype == np.float64


@pytest.mark.parametrize("shape", [(6,), (6, 3), (6, 500)])
def test_a_product_in_parts_is_that_of_the_whole(shape, monkeypatch):
    monkeypatch.setattr(_chunks, "_UNCOPIED", 64 * 6 * 3)
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(1000, 6)), rng.normal(size=shape)
    assert_allclose(multiply_rows(X, W), np.einsum("nd,d...->n...", X, W), rtol=1e-9)
    assert_allclose(multiply_rows(sparse.csr_array(X), W), X @ W, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(384,), (4, 384)])
def test_a_product_in_parts_has_the_bits_of_its_parts(shape, dtype):
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(1000, 384)), rng.normal(size=shape).T
    X, W = X.astype(dtype), W.astype(dtype)
    size = _chunks._UNCOPIED // W.size
    parts = [X[i : i + size] @ W for i in range(0, len(X), size)]
    assert_array_equal(multiply_rows(X, W), np.concatenate(parts))


def test_results_of_chunks_are_joined():
    rows = np.arange(20).reshape(10, 2)
    for size in (3, 10, 99):
        assert_array_equal(concatenate_chunks(lambda s: rows[s], 10, size, 2), rows)
        both = concatenate_chunks(lambda s: [rows[s], rows[s, 0]], 10, size)
        assert_array_equal(both[0], rows)
        assert_array_equal(both[1], rows[:, 0])


@pytest.fixture
def mapped(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 70)).astype(np.float16)
    np.save(tmp_path / "X.npy", X)
    return X, np.load(tmp_path / "X.npy", mmap_mode="r")


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="no such call here")
def test_pages_of_rows_that_were_read_are_released(mapped, tmp_path):
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows, calls = LazyRows(X, dtype=np.float32), []

    class Noting:
        def __len__(self):
            return len(X._mmap)

        def madvise(self, *call):
            calls.append(call)

    rows._map = Noting(), rows._map[1]
    assert_array_equal(rows[100:200], mapped[0][100:200])
    assert_array_equal(rows[[299, 5]], mapped[0][[299, 5]])
    assert_array_equal(rows[250:250], mapped[0][:0])
    (_, start, length), (_, first, long) = calls
    assert start % mmap.PAGESIZE == first % mmap.PAGESIZE == 0
    begin = X.offset + 100 * 140
    assert begin - mmap.PAGESIZE < start <= begin
    assert start + length == X.offset + 200 * 140
    assert first <= X.offset + 5 * 140
    assert first + long == len(X._mmap)


def test_scattered_rows_are_released_a_few_at_a_time(mapped, monkeypatch):
    X, on_disk = mapped
    monkeypatch.setattr(_chunks, "FEW", 40)
    rows, released = LazyRows(on_disk, dtype=np.float32), []
    monkeypatch.setattr(rows, "_release", lambda key, _: released.append(len(key)))
    key = np.random.default_rng(1).integers(0, 300, 90)
    assert_array_equal(rows[key], X[key])
    assert released == [40, 40, 10]
    mask = np.arange(300) % 2 == 0
    assert_array_equal(rows[mask], X[mask])


def test_only_files_mapped_for_reading_are_released(mapped, tmp_path):
    X, on_disk = mapped
    assert lazy_rows(on_disk, least=0)._map is not None
    assert lazy_rows(np.asarray(on_disk)[3:], least=0)._map is not None
    assert lazy_rows(X, least=0) is None
    for mode in ("c", "r+"):
        # A changed page of a private copy exists nowhere else.
        copy = np.load(tmp_path / "X.npy", mmap_mode=mode)
        copy[7] = 1
        rows = LazyRows(copy)
        assert rows._map is None
        rows[:]
        assert (rows[7] == 1).all()


@pytest.mark.long
@pytest.mark.parametrize("name", ["margin", "entropy", "badge", "coreset"])
def test_picks_from_a_file_are_those_from_memory(mapped, name, monkeypatch):
    X, on_disk = mapped
    y = np.arange(300) % 3
    learner = ActiveLearner(LogisticRegression(), name, random_state=0)
    learner.fit(X[:60].astype(np.float32), y[:60])
    mask = np.arange(300) % 5 > 0
    expected = learner.query(X, 9), learner.query(X, 9, candidates=mask)
    monkeypatch.setattr(_chunks, "LARGE", 1)
    monkeypatch.setattr(_quantities, "LARGE", 1)
    monkeypatch.setattr(_quantities, "ROWS", 50)
    assert_array_equal(learner.query(on_disk, 9), expected[0])
    assert_array_equal(learner.query(on_disk, 9, candidates=mask), expected[1])
