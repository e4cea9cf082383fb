"""The files of a cache folder: what is in them, and who reads them."""

import hashlib
import json
import os
import shutil
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from skactive._encoders._shards import ShardFolder
from skactive._encoders._store import open_store
from skactive._storage._fingerprint import digest_text
from skactive.bert import clear_cache

from ..bert._helpers import RECIPE, TEXTS, WIDTH, files_of, get, get_quietly, rows_of

pytestmark = pytest.mark.usefixtures("fresh_cache")

SHARDS = [4, 4, 2]  # texts per file


# What is written ---------------------------------------------------------------------


def test_files_of_a_folder(filled):
    (folder,) = filled.iterdir()
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 1 + 2 * len(SHARDS)
    assert json.loads((folder / "manifest.json").read_text()).items() >= RECIPE.items()
    for path in files_of(filled):
        array = np.load(path)
        manifest = json.loads(path.with_suffix(".json").read_text())
        assert array.shape == (len(manifest["texts"]), WIDTH)
        assert array.dtype == np.float32
        assert manifest["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    lengths = [len(np.load(path)) for path in files_of(filled)]
    assert sorted(lengths, reverse=True) == SHARDS


def test_manifest_holds_digests_and_no_text(filled):
    content = b"".join(path.read_bytes() for path in filled.glob("*/*"))
    assert digest_text(TEXTS[0]).hex().encode() in content
    assert TEXTS[0].encode() not in content


def test_digests_are_the_same_in_every_process_and_release():
    assert digest_text("naïve").hex() == "a4da76a04ca4be75fb85879844f3ff5f"
    assert digest_text(("a", "b")).hex() == "67f5215a67dca1aec7e818d5df558cb5"


def test_time_also_ends_a_shard(tmp_path, monkeypatch):
    monkeypatch.setattr("skactive._encoders._store._SHARD_SECONDS", -1.0)
    get(TEXTS, tmp_path)
    assert len(files_of(tmp_path)) == len(TEXTS) // 2  # one for each batch


def test_a_folder_is_read_without_a_warning(filled):
    features, encoded = get_quietly(TEXTS, filled)
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(TEXTS))
    assert not features.flags.writeable


def test_rows_are_read_in_any_order_and_more_than_once(filled):
    shards = ShardFolder(filled, RECIPE, "float32")
    path = next(path for path in files_of(filled) if len(np.load(path)) == 4)
    out = np.zeros((6, WIDTH), dtype=np.float32)
    rows, positions = np.array([3, 0, 3, 1]), np.array([0, 5, 2, 4])
    shards.read(path.stem, WIDTH, rows, out, positions)
    expected = np.zeros_like(out)
    expected[positions] = np.load(path)[rows]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("gap", [0, 1, 2, 16])
def test_rows_far_apart_are_read_one_by_one(tmp_path, monkeypatch, gap):
    monkeypatch.setattr("skactive._encoders._shards._GAP", gap)
    texts = [f"text {i}" for i in range(50)]
    get(texts, tmp_path)
    clear_cache()
    some = texts[40:3:-5] + texts[::7]
    np.testing.assert_array_equal(get_quietly(some, tmp_path)[0], rows_of(some))


def test_no_file_is_held_open_or_mapped(filled):
    get(TEXTS, filled)
    if sys.platform == "linux":
        with open("/proc/self/maps") as stream:
            assert str(filled) not in stream.read()
        links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
        assert not any(link.startswith(str(filled)) for link in links)


def test_content_is_read_for_its_checksum_once_per_process(filled, monkeypatch):
    get(TEXTS, filled)
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert get_quietly(TEXTS[::-1], filled)[1] == []


def test_manifests_are_read_for_their_texts_once_per_process(filled, monkeypatch):
    names, read_digests = [], ShardFolder.read_digests

    def noting(folder, name):
        names.append(name)
        return read_digests(folder, name)

    monkeypatch.setattr(ShardFolder, "read_digests", noting)
    for i in range(3):
        get_quietly([*TEXTS, f"new {i}"], filled)
    assert sorted(names) == sorted(path.stem for path in files_of(filled))


def test_features_survive_the_removal_of_the_folder(filled):
    features, _ = get(TEXTS, filled)
    shutil.rmtree(filled)
    np.testing.assert_array_equal(features, rows_of(TEXTS))
    again, encoded = get(TEXTS, filled)
    assert again is features
    assert encoded == []


def test_a_removed_folder_is_filled_anew(filled):
    shutil.rmtree(filled)
    features, encoded = get_quietly(TEXTS, filled)
    np.testing.assert_array_equal(features, rows_of(TEXTS))
    assert sorted(encoded) == TEXTS
    clear_cache()
    assert get_quietly(TEXTS, filled)[1] == []


def test_shards_of_another_writer_are_found(tmp_path):
    get(TEXTS[:2], tmp_path)
    other = ShardFolder(tmp_path, RECIPE, "float32")
    other.write(TEXTS[2:], rows_of(TEXTS[2:]))
    assert get_quietly(TEXTS, tmp_path)[1] == []


# float16 -----------------------------------------------------------------------------


def test_float16_rounds_from_the_first_call_on(tmp_path):
    first, _ = get(TEXTS, tmp_path, dtype="float16")
    clear_cache()
    later, encoded = get(TEXTS, tmp_path, dtype="float16")
    assert encoded == []
    assert first.dtype == later.dtype == np.float32
    expected = rows_of(TEXTS).astype(np.float16)
    assert (expected != rows_of(TEXTS)).any()
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(later, expected)


def test_float16_halves_the_files(tmp_path):
    for dtype in ("float32", "float16"):
        get(TEXTS, tmp_path / dtype, dtype=dtype, width=1000)
    full, half = (
        sum(path.stat().st_size for path in files_of(tmp_path / dtype))
        for dtype in ("float32", "float16")
    )
    assert full - half == len(TEXTS) * 1000 * 2


def test_types_in_one_folder_are_kept_apart(tmp_path):
    get(TEXTS, tmp_path, dtype="float16")
    exact, encoded = get(TEXTS, tmp_path)
    assert len(encoded) == len(TEXTS)
    np.testing.assert_array_equal(exact, rows_of(TEXTS))


def test_beyond_the_range_of_float16_is_its_largest_value(tmp_path):
    def encode(texts, out):
        out[:] = [[1e6, -1e6, np.nan]]
        yield np.array([0])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = open_store(tmp_path, RECIPE, "float16").get(["a"], encode, 3)
    np.testing.assert_array_equal(got, [[65504, -65504, np.nan]])


def test_float16_that_cannot_be_written_is_rounded_all_the_same(tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="cannot be written"):
        got, _ = get(TEXTS, tmp_path / "file" / "cache", dtype="float16")
    np.testing.assert_array_equal(got, rows_of(TEXTS).astype(np.float16))


# Leftovers ---------------------------------------------------------------------------


def leave(filled, name, age):
    (folder,) = filled.iterdir()
    path = folder / name
    path.write_bytes(b"half a fi")
    os.utime(path, (time.time() - age,) * 2)
    return path


@pytest.mark.parametrize(
    "name", [".tmp-0123", ".shard-0123.npy.45.tmp", "shard-0123.npy"]
)
def test_leftovers_of_a_killed_writer_do_not_matter(filled, name):
    path = leave(filled, name, age=60)
    assert get_quietly(TEXTS, filled)[1] == []
    get_quietly(["new"], filled)
    assert path.exists()  # its writer may be at work


@pytest.mark.parametrize(
    "name", [".tmp-0123", ".shard-0123.npy.45.tmp", "shard-0123.npy"]
)
def test_leftovers_are_removed_by_a_writer_a_day_later(filled, name):
    path = leave(filled, name, age=25 * 3600)
    for whole in [*files_of(filled), *files_of(filled, ".json")]:
        os.utime(whole, (0, 0))
    get_quietly(["new"], filled)
    assert not path.exists()
    clear_cache()
    assert get_quietly([*TEXTS, "new"], filled)[1] == []
