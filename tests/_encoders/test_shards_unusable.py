"""Cache folders that cannot be written or read: full, read-only, out of handles."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from skactive._storage import _files
from skactive.bert import clear_cache

from ..bert._helpers import TEXTS, CountingEncoder, get, get_quietly, rows_of

pytestmark = pytest.mark.usefixtures("fresh_cache")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr("skactive._encoders._store._SHARD_TEXTS", 4)


def fail_to_open(monkeypatch, number):
    """Let no shard be opened."""

    def refuse(path, *arguments, **options):
        if str(path).endswith(".npy"):
            raise OSError(number, os.strerror(number))
        return open(path, *arguments, **options)

    monkeypatch.setattr("skactive._encoders._shards.open", refuse, raising=False)


def fail_after(monkeypatch, owner, name, n_good, number=errno.ENOSPC):
    """Let a function of the system work a few times, then fail for good."""
    real, calls = getattr(owner, name), []

    def function(*arguments, **options):
        calls.append(arguments)
        if len(calls) > n_good:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, function)


def check_fallback(cache, message):
    """Right features with one warning, then from memory without any."""
    with pytest.warns(UserWarning, match=message) as caught:
        features, encoded = get(TEXTS, cache)
    assert len(caught) == 1
    assert str(cache) in str(caught[0].message)
    assert sorted(encoded) == TEXTS
    np.testing.assert_array_equal(features, rows_of(TEXTS))
    again, encoded = get_quietly(TEXTS, cache)
    assert again is features
    assert encoded == []
    features, encoded = get_quietly(TEXTS[::-1], cache)
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(TEXTS[::-1]))


def count_shards(cache):
    """Count the shards, after checking that there is nothing else but the recipe."""
    names = {path.name for path in cache.glob("*/*")} - {"manifest.json"}
    stems = {name.removesuffix(".json") for name in names if name.endswith(".json")}
    assert names == {f"{stem}{end}" for stem in stems for end in (".json", ".npy")}
    return len(stems)


@pytest.mark.parametrize("below", ["", "cache", "some/where"])
def test_a_regular_file_in_the_way(tmp_path, below):
    (tmp_path / "file").touch()
    check_fallback(
        tmp_path / "file" / below if below else tmp_path / "file",
        r"cannot be written \((NotADirectory|FileExists)Error: .*kept in memory only",
    )


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch, number):
    fail_after(monkeypatch, Path, "mkdir", 0, number)
    check_fallback(tmp_path / "cache", "Make room or pass a folder that can be written")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_folder_without_the_right_to_write(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o500)
    check_fallback(cache, "cannot be written")


def test_a_read_only_folder_is_still_read(tmp_path, monkeypatch):
    get(TEXTS[:6], tmp_path)
    clear_cache()
    fail_after(monkeypatch, _files, "_replace", 0, errno.EROFS)
    with pytest.warns(UserWarning, match="cannot be written") as caught:
        features, encoded = get(TEXTS, tmp_path)
    assert len(caught) == 1
    assert sorted(encoded) == TEXTS[6:]
    np.testing.assert_array_equal(features, rows_of(TEXTS))


@pytest.mark.long
@pytest.mark.parametrize("function", ["_fsync", "_replace"])
@pytest.mark.parametrize("n_good", range(7))
def test_disk_full_in_the_middle(tmp_path, monkeypatch, function, n_good):
    # The recipe is written first, then the array and the manifest of three shards.
    with monkeypatch.context() as patch:
        fail_after(patch, _files, function, n_good)
        check_fallback(tmp_path, "No space left on device")
        n_shards = count_shards(tmp_path)
    assert n_shards == max(0, n_good - 1) // 2
    clear_cache()
    features, encoded = get_quietly(TEXTS, tmp_path)
    assert len(encoded) == len(TEXTS) - 4 * n_shards
    np.testing.assert_array_equal(features, rows_of(TEXTS))


def test_a_full_disk_is_not_tried_again_in_the_same_call(tmp_path, monkeypatch):
    calls = []

    def write(*arguments):
        calls.append(arguments)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("skactive._encoders._shards.ShardFolder.write", write)
    with pytest.warns(UserWarning, match="full"):
        get(TEXTS, tmp_path)
    assert len(calls) == 1
    with pytest.warns(UserWarning, match="full"):
        get(["new"], tmp_path)
    assert len(calls) == 2


def test_new_texts_go_to_disk_as_soon_as_there_is_room(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        fail_after(patch, _files, "_fsync", 0)
        with pytest.warns(UserWarning, match="No space left"):
            get(TEXTS, tmp_path)
    get_quietly(["new"], tmp_path)
    clear_cache()
    assert get_quietly(["new"], tmp_path)[1] == []


def test_interrupted_on_a_full_disk(tmp_path, monkeypatch):
    fail_after(monkeypatch, _files, "_fsync", 0)
    encoder = CountingEncoder(6)
    with pytest.raises(KeyboardInterrupt):
        get(TEXTS, tmp_path, encoder)
    with pytest.warns(UserWarning, match="No space left"):
        features, encoded = get(TEXTS, tmp_path)
    assert sorted([*encoder.encoded, *encoded]) == TEXTS
    np.testing.assert_array_equal(features, rows_of(TEXTS))


def test_warnings_as_errors_do_not_lose_what_was_encoded(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserWarning, match="cannot be written"):
        get_quietly(TEXTS, tmp_path / "file")
    features, encoded = get_quietly(TEXTS, tmp_path / "file")
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(TEXTS))


# Reading -----------------------------------------------------------------------------


def test_shards_that_cannot_be_read_back_are_kept_in_memory(tmp_path, monkeypatch):
    fail_to_open(monkeypatch, errno.EMFILE)
    with pytest.warns(UserWarning, match="cannot be read .*[Tt]oo many open files"):
        features, _ = get(TEXTS, tmp_path)
    np.testing.assert_array_equal(features, rows_of(TEXTS))
    features, encoded = get_quietly(TEXTS[::-1], tmp_path)
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(TEXTS[::-1]))


def test_a_folder_that_can_be_written_but_not_listed(tmp_path, monkeypatch):
    fail_after(monkeypatch, os, "listdir", 0, errno.EACCES)
    for texts in (TEXTS, TEXTS[::-1]):
        np.testing.assert_array_equal(get(texts, tmp_path)[0], rows_of(texts))
    assert get(TEXTS[3:], tmp_path)[1] == []


@pytest.mark.parametrize("what", ["manifest", "array"])
def test_files_that_cannot_be_read_now_are_not_removed(tmp_path, monkeypatch, what):
    get(TEXTS, tmp_path)
    clear_cache()
    before = set(tmp_path.glob("*/*"))
    with monkeypatch.context() as patch:
        if what == "array":
            fail_to_open(patch, errno.EACCES)
        else:
            fail_after(patch, Path, "read_text", 0, errno.EACCES)
        with pytest.warns(UserWarning, match="cannot be read .*PermissionError"):
            features, encoded = get(TEXTS, tmp_path)
    np.testing.assert_array_equal(features, rows_of(TEXTS))
    assert set(encoded) == set(TEXTS)
    assert set(tmp_path.glob("*/*")) >= before
    clear_cache()
    assert get_quietly(TEXTS, tmp_path)[1] == []


def test_a_shard_that_vanishes_between_look_up_and_reading(tmp_path, monkeypatch):
    get(TEXTS, tmp_path)
    for path in tmp_path.glob("*/shard-*"):
        path.unlink()
    with pytest.warns(UserWarning, match="damaged .*FileNotFoundError"):
        features, _ = get(TEXTS[::-1], tmp_path)
    np.testing.assert_array_equal(features, rows_of(TEXTS[::-1]))
