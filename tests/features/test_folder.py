"""A folder of features: resumed without repeats, checked, refused where it is other."""

import errno
import json
import os
import shutil
import signal
import warnings

import numpy as np
import pytest

from skactive._storage import _files
from skactive._storage._files import Lock, LockedError
from skactive.features import PrecomputedFeatures, _folder

from ._helpers import RECIPE, WIDTH, CountingEncoder, rows_of, write

TEXTS = [f"text {i}" for i in range(95)]  # the last block is shorter
REPEATED = [f"text {i * i % 37}" for i in range(95)]
PAIRS = [(f"first {i % 7}", f"second {i}") for i in range(35)]


@pytest.fixture(autouse=True)
def every_block_is_committed(monkeypatch):
    """Commit each block, on a disk that needs no time for that."""
    monkeypatch.setattr(_folder, "_COMMIT_SECONDS", -1.0)
    monkeypatch.setattr(_folder, "_COMMIT_LONGEST", -1.0)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr("skactive.features._folder.sync_data", lambda handle: None)
    monkeypatch.setattr(_files, "_fsync", lambda handle: None)


def content(folder):
    return {name: (folder / name).read_bytes() for name in ("features.npy", "keys.npy")}


@pytest.mark.parametrize("texts", [TEXTS, REPEATED, PAIRS, TEXTS[:1], TEXTS[:10]])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_one_row_per_text_and_each_text_encoded_once(tmp_path, texts, dtype):
    stored, encoded = write(texts, tmp_path / "f", dtype=dtype)
    assert sorted(encoded) == sorted(set(texts))
    # Any program reads the file.
    features = np.load(tmp_path / "f" / "features.npy")
    assert features.dtype == dtype
    np.testing.assert_array_equal(features, rows_of(texts))
    np.testing.assert_array_equal(stored.transform(texts), rows_of(texts))
    assert write(texts, tmp_path / "f", dtype=dtype)[1] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("texts", "stop_after", "span"),
    [
        *((TEXTS, stop_after, 10) for stop_after in [0, 1, 10, 14, 18]),
        *((REPEATED, stop_after, 30) for stop_after in [1, 10, 18]),
        *((texts, 14, 10**6) for texts in [TEXTS, REPEATED]),
    ],
)
def test_an_interrupted_call_goes_on(tmp_path, monkeypatch, texts, stop_after, span):
    monkeypatch.setattr(_folder, "_SPAN_TEXTS", span)
    write(texts, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        write(texts, tmp_path / "f", CountingEncoder(stop_after))
    if stop_after < 10:
        match = "0 of 10 blocks are finished.*transform_to` again"
    else:
        match = "of 10 blocks are finished"
    with pytest.raises(ValueError, match=match):
        PrecomputedFeatures(tmp_path / "f").transform(texts)
    first = [sum(1 for t in set(texts[:r])) for r in range(0, 96, 10)]
    finished = set(texts[: 10 * sum(n <= stop_after for n in first[1:])])
    _, encoded = write(texts, tmp_path / "f")
    assert sorted(encoded) == sorted(set(texts) - finished)
    assert content(tmp_path / "f") == content(tmp_path / "whole")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("texts", [TEXTS, REPEATED])
def test_a_killed_process_goes_on(tmp_path, texts):
    write(texts, tmp_path / "whole")
    n_texts, kills, encoded = len(set(texts)), 0, []
    while True:
        log = tmp_path / "log"
        log.write_text("")
        child = os.fork()
        if not child:
            write(texts, tmp_path / "f", KillingEncoder(13, log))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        new = log.read_text().splitlines()
        assert set(encoded).isdisjoint(new)
        if os.WIFEXITED(status):
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        kills += 1
        done, _ = _folder._read_journal(tmp_path / "f")
        encoded = [text for i, text in enumerate(texts) if i // 10 in done]
    assert kills >= n_texts // 20
    assert content(tmp_path / "f") == content(tmp_path / "whole")


class KillingEncoder(CountingEncoder):
    """Write each text encoded to a log, and die after some of them."""

    def __init__(self, stop_after, log):
        super().__init__(stop_after, self.die)
        self.log = log

    def die(self, reason):
        os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, texts, bounds, out):
        for positions in super().__call__(texts, bounds, out):
            with open(self.log, "a", encoding="utf-8") as stream:
                stream.writelines(f"{texts[i]}\n" for i in positions)
            yield positions


def test_a_commit_covers_several_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(_folder, "_COMMIT_SECONDS", 1e9)
    with pytest.raises(KeyboardInterrupt):
        write(TEXTS, tmp_path, CountingEncoder(35))
    assert len((tmp_path / "blocks.jsonl").read_text().splitlines()) == 1
    assert set(write(TEXTS, tmp_path)[1]) == set(TEXTS[30:])


def test_a_slow_disk_is_synced_less_often(tmp_path, monkeypatch):
    monkeypatch.setattr(_folder, "_COMMIT_LONGEST", 1e9)
    monkeypatch.setattr(_folder, "_COMMIT_PAUSES", 1e9)
    write(TEXTS, tmp_path)  # after the first sync, a pause of years
    assert len((tmp_path / "blocks.jsonl").read_text().splitlines()) == 2


def test_values_beyond_float16_are_clipped(tmp_path):
    def encode(texts, bounds, out):
        out[:] = np.array([1e9, -1e9, np.nan, 1e-3, 65504])
        yield np.arange(len(texts))

    stored, _ = write(["a"], tmp_path, encoder=_with(encode))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = stored.transform(["a"])[0]
    np.testing.assert_array_equal(row, np.float16([65504, -65504, np.nan, 1e-3, 65504]))


def _with(encode):
    encode.encoded = []
    return encode


# Damage ---------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [200, 128 + 2 * WIDTH * 55, -1])
def test_a_flipped_byte_is_found_and_its_block_encoded_again(tmp_path, offset):
    write(TEXTS, tmp_path)
    before = content(tmp_path)
    flip(tmp_path / "features.npy", offset)
    with pytest.warns(UserWarning, match="1 of 10 blocks have another checksum"):
        _, encoded = write(TEXTS, tmp_path)
    block = {200: 0, -1: 9}.get(offset, 5)
    assert sorted(encoded) == sorted(TEXTS[10 * block : 10 * block + 10])
    assert content(tmp_path) == before


def flip(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_a_flipped_byte_of_the_header_is_repaired(tmp_path):
    write(TEXTS, tmp_path)
    before = content(tmp_path)
    flip(tmp_path / "features.npy", 20)
    with pytest.raises(ValueError, match="transform_to` again"):
        PrecomputedFeatures(tmp_path).transform(TEXTS)
    assert write(TEXTS, tmp_path)[1] == []
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", ["features.npy", "keys.npy"])
@pytest.mark.parametrize("size", [0, 100, 128 + 2 * WIDTH * 42])
def test_a_truncated_file_is_refused_and_repaired(tmp_path, name, size):
    write(TEXTS, tmp_path)
    before = content(tmp_path)
    os.truncate(tmp_path / name, size)
    with pytest.raises(ValueError, match="features that are whole"):
        PrecomputedFeatures(tmp_path).transform(TEXTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, encoded = write(TEXTS, tmp_path)
    lost = TEXTS[40 if size > 200 else 0 :] if name == "features.npy" else []
    assert sorted(encoded) == sorted(lost)
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", ["features.npy", "keys.npy", "blocks.jsonl"])
def test_a_missing_file_is_made_again(tmp_path, name):
    write(TEXTS, tmp_path)
    before = content(tmp_path)
    (tmp_path / name).unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, encoded = write(TEXTS, tmp_path)
    assert len(encoded) == (0 if name == "keys.npy" else 95)
    assert content(tmp_path) == before


def test_a_flipped_key_is_found_when_the_folder_is_opened(tmp_path):
    write(TEXTS, tmp_path)
    flip(tmp_path / "keys.npy", -1)
    with pytest.raises(ValueError, match=r"'keys.npy' has another checksum"):
        PrecomputedFeatures(tmp_path).transform(TEXTS[:1])


def test_a_torn_line_of_the_journal_is_dropped(tmp_path):
    write(TEXTS, tmp_path)
    before = content(tmp_path)
    journal = tmp_path / "blocks.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])
    with pytest.raises(ValueError, match="9 of 10 blocks are finished"):
        PrecomputedFeatures(tmp_path).transform(TEXTS)
    _, encoded = write(TEXTS, tmp_path)
    assert sorted(encoded) == sorted(TEXTS[90:])
    assert content(tmp_path) == before


@pytest.mark.parametrize("line", [0, 4, 9])
def test_a_damaged_line_of_the_journal_costs_its_blocks(tmp_path, line):
    write(TEXTS, tmp_path)
    before = content(tmp_path)
    journal = tmp_path / "blocks.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b"[", b"(", 1)
    journal.write_bytes(b"".join(lines))
    with pytest.warns(UserWarning, match="lines of the journal cannot be read"):
        _, encoded = write(TEXTS, tmp_path)
    assert sorted(encoded) == sorted(TEXTS[10 * line : 10 * line + 10])
    assert content(tmp_path) == before
    assert write(TEXTS, tmp_path)[1] == []


def test_a_damaged_manifest_is_an_error(tmp_path):
    write(TEXTS, tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match=r"cannot be read.*or delete the folder"):
        write(TEXTS, tmp_path)
    with pytest.raises(ValueError, match=r"cannot be read.*or delete the folder"):
        PrecomputedFeatures(tmp_path).transform(TEXTS)


def test_another_format_is_refused(tmp_path):
    write(TEXTS, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"format": 2}))
    with pytest.raises(ValueError, match="must be of format 1, got 2"):
        PrecomputedFeatures(tmp_path).transform(TEXTS)


# What does not fit ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"recipe": RECIPE | {"weights": "v"}}, "weights was w, is v"),
        ({"width": 6}, "width was 5, is 6"),
        ({"dtype": "float32"}, "dtype was float16, is float32"),
        ({"source": TEXTS[:-1]}, "n_rows was 95, is 94"),
        ({"source": [*TEXTS[:50], "x", *TEXTS[51:]]}, "texts differ.*in row 50"),
    ],
)
def test_other_features_are_refused_with_what_differs(tmp_path, changes, match):
    with pytest.raises(KeyboardInterrupt):
        write(TEXTS, tmp_path, CountingEncoder(20))
    with pytest.raises(ValueError, match=match):
        write(**{"source": TEXTS, "folder": tmp_path, **changes})
    assert len(write(TEXTS, tmp_path)[1]) == 75


def test_a_folder_without_finished_blocks_may_be_begun_anew(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write(TEXTS, tmp_path, CountingEncoder(5))
    stored, _ = write(PAIRS, tmp_path, dtype="float32", width=3)
    np.testing.assert_array_equal(stored.transform(PAIRS), rows_of(PAIRS, 3))


def test_a_folder_keeps_the_blocks_that_it_was_begun_with(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write(TEXTS, tmp_path, CountingEncoder(20))
    _, encoded = write(TEXTS, tmp_path, block_rows=7)
    assert len(encoded) == 75


def test_a_folder_of_other_files_is_refused(tmp_path):
    (tmp_path / "features.npy").write_text("of the user")
    with pytest.raises(ValueError, match=r"holds 'features.npy' and no 'manifest"):
        write(TEXTS, tmp_path)
    assert (tmp_path / "features.npy").read_text() == "of the user"


def test_no_texts(tmp_path):
    with pytest.raises(ValueError, match="holds no texts"):
        write([], tmp_path)
    with pytest.raises(TypeError, match="'source' must be a str"):
        write(["a", None], tmp_path)


def test_two_writers(tmp_path):
    lock = Lock(tmp_path / "writer.lock", "it")
    with pytest.raises(LockedError, match="open for writing in process"):
        write(TEXTS, tmp_path)
    lock.release()
    write(TEXTS, tmp_path)


def test_a_full_disk_is_an_error_before_any_work(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    encoder = CountingEncoder()
    with pytest.raises(
        OSError, match=r"no room for 0\.00 GB.*Nothing was encoded"
    ) as e:
        write(TEXTS, tmp_path, encoder)
    assert e.value.errno == errno.ENOSPC
    assert encoder.encoded == []
    assert not (tmp_path / "features.npy").exists()
    monkeypatch.undo()
    assert len(write(TEXTS, tmp_path)[1]) == 95


def test_systems_without_posix_fallocate(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    free = shutil.disk_usage(tmp_path)._replace(free=1000)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda path: free)
        with pytest.raises(OSError, match="no room for"):
            write(TEXTS, tmp_path)
    assert len(write(TEXTS, tmp_path)[1]) == 95


def test_a_disk_that_fails_in_the_middle_loses_no_finished_block(tmp_path, monkeypatch):
    calls = []

    def fail(handle):
        calls.append(handle)
        if len(calls) == 3:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("skactive.features._folder.sync_data", fail)
    with pytest.raises(OSError, match="Input/output"):
        write(TEXTS, tmp_path)
    monkeypatch.undo()
    stored, encoded = write(TEXTS, tmp_path)
    assert len(encoded) <= 75
    np.testing.assert_array_equal(stored.transform(TEXTS), rows_of(TEXTS))
