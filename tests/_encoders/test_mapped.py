"""Features beyond the limit are in a file without a name."""

import os
import shutil
import sys
import tempfile

import joblib
import numpy as np
import pytest

from skactive._encoders._store import allocate_rows, open_store
from skactive._storage._mapped import NoRoomError, copy_rows, in_memory, map_file
from skactive.bert import BertFeatures, clear_cache, set_cache_limit

from ..bert._helpers import RECIPE, CountingEncoder, get, get_quietly, rows_of

pytestmark = pytest.mark.usefixtures("fresh_cache")

WIDE = 5000  # 20 kB a row: 60 texts are beyond the megabyte that is never mapped
POOL = [f"text {i}" for i in range(60)]


@pytest.fixture(params=["memory", "folder"])
def folder(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "cache"


@pytest.mark.parametrize("limit", [1_100_000, 1_300_000])
def test_an_answer_beyond_the_limit_is_mapped_and_the_same(folder, limit):
    set_cache_limit(limit)  # the answer has 1,200,000 bytes
    features, encoded = get_quietly(POOL, folder, width=WIDE)
    assert (in_memory(features) == 0) is (limit < 1_200_000)
    np.testing.assert_array_equal(features, rows_of(POOL, WIDE))
    assert encoded
    again, encoded = get_quietly(POOL, folder, width=WIDE)
    assert again is features
    assert not encoded


def test_an_answer_is_mapped_whatever_else_is_in_memory(folder):
    # What is in memory makes room; only its own size decides.
    set_cache_limit(1_300_000)
    get(["one", *POOL[:49]], folder, width=WIDE)
    assert in_memory(get(POOL, folder, width=WIDE)[0])


def test_a_small_answer_is_in_memory_whatever_the_limit(folder):
    set_cache_limit(0)
    assert in_memory(get(POOL[:50], folder, width=WIDE)[0]) == 1_000_000


def test_a_mapped_answer_is_float32_and_read_only(folder):
    set_cache_limit(0)
    features, _ = get(POOL, folder, width=WIDE)
    assert type(features) is np.ndarray
    assert features.dtype == np.float32
    assert features.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        features[0, 0] = 1


@pytest.mark.parametrize("restart", [True, False])
def test_orders_and_repeats_are_gathered_into_a_file(folder, restart):
    set_cache_limit(0)
    get(POOL, folder, width=WIDE)
    if restart and folder is not None:
        clear_cache()  # as in another process: from the shards
    pool = POOL[::-1] + POOL[::7]
    features, encoded = get_quietly(pool, folder, width=WIDE)
    assert in_memory(features) == 0
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(pool, WIDE))


def test_rows_of_memory_and_of_shards_in_one_file(tmp_path, monkeypatch):
    set_cache_limit(0)
    get(POOL[::2], tmp_path, width=WIDE)
    clear_cache()
    monkeypatch.setattr("skactive._encoders._shards.ShardFolder.write", fail)
    with pytest.warns(UserWarning, match="kept in memory only"):
        features, encoded = get(POOL, tmp_path, width=WIDE)
    assert sorted(encoded) == sorted(POOL[1::2])
    assert in_memory(features) == 0
    np.testing.assert_array_equal(features, rows_of(POOL, WIDE))


def fail(*args):
    raise OSError("full")


def test_rounded_values_of_a_mapped_answer(tmp_path):
    set_cache_limit(0)
    features, _ = get(POOL, tmp_path, width=WIDE, dtype="float16")
    expected = rows_of(POOL, WIDE).astype(np.float16)
    assert not np.array_equal(expected, rows_of(POOL, WIDE))
    np.testing.assert_array_equal(features, expected)
    clear_cache()
    again, encoded = get(POOL, tmp_path, width=WIDE, dtype="float16")
    assert encoded == []
    np.testing.assert_array_equal(again, expected)


def test_rounded_values_where_the_folder_cannot_be_written(tmp_path, monkeypatch):
    set_cache_limit(0)
    monkeypatch.setattr("skactive._encoders._shards.ShardFolder.write", fail)
    monkeypatch.setattr("skactive._encoders._store.chunk_size", lambda n: 7)
    with pytest.warns(UserWarning, match="kept in memory only"):
        features, _ = get(POOL, tmp_path, width=WIDE, dtype="float16")
    assert in_memory(features) == 0
    np.testing.assert_array_equal(features, rows_of(POOL, WIDE).astype(np.float16))


def test_what_is_finished_is_kept_when_interrupted(folder):
    set_cache_limit(0)
    pool = [f"text {i}" for i in range(120)]
    with pytest.raises(KeyboardInterrupt):
        get(pool, folder, CountingEncoder(stop_after=60), width=WIDE)
    if folder is None:
        (block,) = open_store(None, RECIPE)._memory.blocks
        assert in_memory(block.array) == 0
    features, encoded = get(pool, folder, width=WIDE)
    assert len(encoded) == 60
    np.testing.assert_array_equal(features, rows_of(pool, WIDE))


def test_mapped_features_do_not_count_towards_the_limit(folder):
    set_cache_limit(1_100_000)
    large, _ = get(POOL, folder, width=WIDE)
    small, encoded = get(["a", "b"], folder, width=WIDE)
    assert encoded
    # Beside 1,200,000 bytes that counted, one of the two would have gone.
    assert get(POOL, folder, width=WIDE)[0] is large
    assert get(["a", "b"], folder, width=WIDE)[0] is small


def test_a_folder_is_read_a_few_rows_at_a_time(tmp_path, monkeypatch):
    set_cache_limit(0)
    get(POOL, tmp_path, width=WIDE)
    clear_cache()
    sizes, empty = [], np.empty

    def noting(shape, *arguments):
        sizes.append(shape[0])
        return empty(shape, *arguments)

    monkeypatch.setattr("skactive._encoders._shards.chunk_size", lambda n: 7)
    monkeypatch.setattr("skactive._encoders._store.np.empty", noting)
    features, _ = get(POOL[::-1], tmp_path, width=WIDE)
    assert sum(sizes) == len(POOL)
    assert max(sizes) == 7
    np.testing.assert_array_equal(features, rows_of(POOL[::-1], WIDE))


def test_a_full_disk_is_told_and_the_features_are_in_memory(folder, monkeypatch):
    set_cache_limit(0)
    free = shutil.disk_usage("/")._replace(free=2_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: free)
    with pytest.warns(UserWarning, match=r"no room for 0\.0 GB in .*TMPDIR"):
        features, _ = get(POOL, folder, width=WIDE)
    assert in_memory(features) == features.nbytes
    np.testing.assert_array_equal(features, rows_of(POOL, WIDE))


def test_files_have_no_name_and_go_with_the_array(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    array = map_file(1000, 1000)
    assert os.listdir(tmp_path) == []
    array[:] = 1
    if sys.platform == "linux":
        assert shown(tmp_path) == 1
        del array
        assert shown(tmp_path) == 0


def shown(folder):
    """Count the files of a folder that this process maps."""
    with open("/proc/self/maps") as stream:
        return sum(str(folder) in line for line in stream)


def test_room_that_the_disk_does_not_have(monkeypatch):
    free = shutil.disk_usage(tempfile.gettempdir())._replace(free=7999)
    monkeypatch.setattr("shutil.disk_usage", lambda path: free)
    map_file(10, 99)
    with pytest.raises(NoRoomError, match="more than half of the free space"):
        map_file(10, 100)


def test_room_is_reserved(monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full, raising=False)
    with pytest.raises(NoRoomError, match="No space left on device"):
        map_file(10, 100)


@pytest.mark.parametrize("view", [lambda a: a, lambda a: a[1:, ::2], lambda a: a.T])
def test_in_memory_sees_through_views(view):
    assert in_memory(view(map_file(3, 4))) == 0
    array = view(allocate_rows(3, 4))
    assert in_memory(array) == array.nbytes
    assert in_memory(view(np.array(map_file(3, 4)))) == array.nbytes


def test_copy_rows_in_many_chunks(monkeypatch):
    monkeypatch.setattr("skactive._storage._mapped.chunk_size", lambda n: 3)
    rng = np.random.default_rng(0)
    source = rng.random((50, 4), dtype=np.float32)
    rows, positions = rng.integers(50, size=20), rng.permutation(25)[:20]
    target = np.zeros((25, 4), dtype=np.float32)
    copy_rows(source, rows, target, positions)
    expected = np.zeros_like(target)
    expected[positions] = source[rows]
    np.testing.assert_array_equal(target, expected)


def test_workers_can_read_a_mapped_answer():
    set_cache_limit(0)
    features, _ = get(POOL, width=WIDE)
    # joblib sends what it takes for a file on disk by its name.
    sums = joblib.Parallel(n_jobs=2)(joblib.delayed(np.sum)(features) for _ in range(2))
    assert sums == [features.sum()] * 2


@pytest.mark.parametrize("cache", [None, "memory"])
def test_transform_beyond_the_limit(tiny_bert, cache):
    features = BertFeatures(tiny_bert, precision="float32", cache=cache)
    pool = [f"{i % 100}" for i in range(20_000)]  # 16 numbers each
    expected = features.transform(pool[:100])
    set_cache_limit(1_100_000)
    got = features.transform(pool)
    assert in_memory(got) == 0
    np.testing.assert_allclose(got, np.tile(expected, (200, 1)), atol=1e-5)
    pd = pytest.importorskip("pandas")
    frame = features.set_output(transform="pandas").transform(pd.Series(pool))
    np.testing.assert_array_equal(frame.to_numpy(), got)
