"""A pool of texts in a mapped file behaves like the list of its texts."""

import copy
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from sklearn.model_selection import train_test_split

from skactive._storage._fingerprint import hash_items
from skactive._storage._text_file import (
    BLOCK_ROWS,
    PoolWriter,
    TextFile,
)
from skactive._storage._text_pool import TextPool
from skactive._utils._containers import (
    as_texts,
    concatenate,
    drop_known_texts,
    snapshot,
    take_rows,
)

N = 2 * BLOCK_ROWS + 100  # three blocks
TEXTS = [f"text {i} {'é' * (i % 7)}" for i in range(N)]


def write(path, columns, sizes=(N,)):
    """Write columns in batches of some sizes; return a pool of the file."""
    table = pa.table(columns)
    fields = [
        (name, pa.int64() if pa.types.is_integer(kind) else pa.large_string())
        for name, kind in zip(table.schema.names, table.schema.types, strict=True)
    ]
    writer = PoolWriter(path, pa.schema(fields), "a test")
    start = 0
    for size in sizes:
        [batch] = table.slice(start, size).cast(pa.schema(fields)).to_batches()
        writer.write(batch)
        start += size
    writer.close()
    return TextPool(TextFile(path))


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    path = tmp_path_factory.mktemp("pool") / "texts.arrow"
    return write(path, {"text": TEXTS, "id": [f"i{i}" for i in range(N)]})


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "texts.arrow"
    return write(path, {"first": TEXTS[:9], "second": TEXTS[1:10]}, [9])


def test_it_is_a_sequence_of_its_texts(pool):
    assert len(pool) == N
    assert pool.shape == (N,)
    assert list(pool) == TEXTS
    assert [pool[0], pool[-1], pool[BLOCK_ROWS]] == [
        TEXTS[0],
        TEXTS[-1],
        TEXTS[BLOCK_ROWS],
    ]
    with pytest.raises(IndexError):
        pool[N]


@pytest.mark.parametrize(
    "key",
    [
        slice(None),
        slice(5, 3),
        slice(-3, None),
        slice(None, None, -1),
        slice(3, None, 5000),
        slice(BLOCK_ROWS - 1, BLOCK_ROWS + 1),
        [],
        [N - 1, 0, -1, 0],
        range(7, 2, -2),
        np.arange(N) % 1000 == 3,
        np.random.default_rng(0).permutation(N),
    ],
    ids=str,
)
def test_selections_are_those_of_an_array(pool, key):
    rows = np.arange(N)
    rows = (
        rows[:0]
        if isinstance(key, list) and not key
        else rows[list(key) if isinstance(key, range) else key]
    )
    part = pool[key]
    assert list(part) == [TEXTS[i] for i in rows]
    assert list(part.ids) == [f"i{i}" for i in rows]
    assert np.array_equal(part.hashes, pool.hashes[rows])
    # A selection of a selection.
    assert list(part[::-2]) == [TEXTS[i] for i in rows[::-2]]
    assert list(part[[0] * bool(len(part))]) == [TEXTS[i] for i in rows[:1]]


@pytest.mark.parametrize("key", ["0", 1.5, [0.5], [[1]], [True], [N], [-N - 1]])
def test_other_keys_are_refused(pool, key):
    with pytest.raises(IndexError):
        pool[key]


@pytest.mark.parametrize("size", [8191, 8192, 10_000, N, 2 * N])
def test_batches_are_lists_in_order(pool, size):
    batches = list(pool[50:].batches(size))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    assert [text for batch in batches for text in batch] == TEXTS[50:]


@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_other_sizes_of_batches_are_refused(pool, size):
    with pytest.raises(ValueError, match="'batch_size' must be an int of at least 1"):
        pool.batches(size)


def test_threads_read_at_once_while_pages_are_released(pool, monkeypatch):
    monkeypatch.setattr("skactive._storage._text_file._MAX_RESIDENT", 1)
    rows = [np.random.default_rng(i).integers(N, size=500) for i in range(8)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda part: list(pool[part]), rows))
    assert found == [[TEXTS[i] for i in part] for part in rows]


@pytest.mark.parametrize("sizes", [[N], [1] * 50 + [N - 50], [BLOCK_ROWS + 1, N]])
def test_hashes_are_those_of_the_texts_for_every_way_of_writing(tmp_path, sizes):
    sizes = [*sizes[:-1], N - sum(sizes[:-1])]
    pool = write(tmp_path / "texts.arrow", {"text": TEXTS}, sizes)
    assert list(pool) == TEXTS
    assert np.array_equal(pool.hashes, hash_items(TEXTS))
    assert pool.hashes.dtype == np.uint64
    assert not pool.hashes.flags.writeable
    assert np.array_equal(pool.hashes, np.load(tmp_path / "texts.arrow.npy"))


def test_pairs(pairs):
    expected = list(itertools.pairwise(TEXTS[:10]))
    assert list(pairs) == expected == as_texts(pairs)
    assert pairs[3] == expected[3]
    assert np.array_equal(pairs.hashes, hash_items(expected))
    assert np.asarray(pairs).shape == (9, 2)


def test_without_an_id_column_row_numbers_are_ids(pairs):
    assert pairs.ids == range(9)
    assert pairs[2:5].ids == range(2, 5)
    assert list(pairs[[4, 1]].ids) == [4, 1]
    assert all(type(id) is int for id in pairs[[4, 1]].ids)


def test_numpy_sees_objects(pool):
    texts = np.asarray(pool[:3])
    assert texts.dtype == object
    assert texts.tolist() == TEXTS[:3]


def test_copies_are_the_pool_itself(pool):
    assert copy.copy(pool) is copy.deepcopy(pool) is snapshot(pool) is pool


def test_a_pickle_holds_the_path_alone(pool):
    data = pickle.dumps(pool[[5, 3]])
    assert len(data) < 1000
    other = pickle.loads(data)
    assert list(other) == [TEXTS[5], TEXTS[3]]
    assert list(concatenate(pool[:1], other).ids) == ["i0", "i5", "i3"]


def test_rows_of_one_file_are_joined_without_reading_them(pool, monkeypatch):
    part = take_rows(pool, [3, 1])
    joined = concatenate(part, take_rows(pool, np.array([7])))
    monkeypatch.setattr(TextFile, "read_texts", None)
    assert isinstance(joined, TextPool)
    assert list(joined.ids) == ["i3", "i1", "i7"]


def test_texts_of_two_sources_become_a_list(pool, pairs, tmp_path):
    other = write(tmp_path / "texts.arrow", {"text": ["a", "b"]}, [2])
    assert concatenate(other, pool[:1]) == ["a", "b", TEXTS[0]]
    assert concatenate(["x"], other) == ["x", "a", "b"]
    assert concatenate(other, ["x"]) == ["a", "b", "x"]


def test_scikit_learn_splits_it(pool):
    train, test = train_test_split(pool, test_size=100, random_state=0)
    assert isinstance(train, TextPool)
    assert len(test) == 100
    assert {*train.ids, *test.ids} == {f"i{i}" for i in range(N)}


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """A pool in which 30 texts occur 30 times, and 100 once."""
    texts = [f"text {i}" for i in np.random.default_rng(0).integers(30, size=900)]
    texts += TEXTS[:100]
    path = tmp_path_factory.mktemp("repeated") / "texts.arrow"
    return write(path, {"text": texts}, [1000])


@pytest.mark.parametrize("known", [None, ["text 3"], ["text 3", "other"] * 40])
@pytest.mark.parametrize("n", [None, 7, 300])
def test_known_and_repeated_texts_are_dropped_as_from_a_list(repeated, known, n):
    rng = np.random.default_rng(1)
    for part in (repeated, repeated[::-3], repeated[rng.permutation(1000)]):
        rows = None if n is None else rng.permutation(len(part))[:n]
        expected = drop_known_texts(list(part), rows, known)
        found = drop_known_texts(part, rows, known)
        assert (expected is None) == (found is None)
        assert found is None or np.array_equal(found, expected)


def test_distinct_texts_are_not_copied(pool):
    rows = np.array([5, 3])
    assert drop_known_texts(pool, rows, pool[:3]) is rows
    assert drop_known_texts(pool, None) is None


@pytest.mark.parametrize("positions", [{1: 2}, {1}, [[0]], ["a"], [0, [1]], [N], 2.5])
def test_what_is_no_positions_is_named(tmp_path, positions):
    pool = write(tmp_path / "t.arrow", {"text": TEXTS})
    with pytest.raises(ValueError, match="'positions' must be positions in this pool"):
        pool.take_rows(positions)
