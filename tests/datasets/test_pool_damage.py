"""Files of `open_pool(cache=)` that changed on the disk never give other texts."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from skactive._storage import _text_file
from skactive._storage._fingerprint import hash_items
from skactive._storage._text_pool import TextPool
from skactive.datasets import open_pool

TEXTS = [f"a good film {i} {'é' * (i % 5)}" for i in range(45)]
IDS = [f"id {i}" for i in range(45)]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table whose pool has five blocks."""
    monkeypatch.setattr(_text_file, "BLOCK_ROWS", 10)
    rows = zip(IDS, TEXTS, strict=True)
    lines = "".join(f"{id},{text}\n" for id, text in rows)
    (tmp_path / "t.csv").write_text(f"id,text\n{lines}", encoding="utf-8")
    open_again(tmp_path / "t.csv")
    return tmp_path / "t.csv"


def open_again(table):
    return open_pool(table, "text", id="id", cache=table.parent / "cache")


def find(table, suffix):
    [path] = (table.parent / "cache").glob(f"*{suffix}")
    return path


def test_a_flipped_byte_is_refused_with_file_block_and_rows(table):
    path = find(table, ".arrow")
    content = path.read_bytes()
    at = content.index(b"a good film 27")
    path.write_bytes(content.replace(b"a good film 27", b"a evil film 27"))
    pool = open_again(table)
    match = r"\.arrow' must hold texts as .* block 2, the rows 20 to 29, with another"
    for key in (27, 20):
        with pytest.raises(ValueError, match=match):
            pool[key]
    with pytest.raises(ValueError, match=match):
        list(pool)
    with pytest.raises(ValueError, match=match):
        list(pool.ids)
    assert list(pool[:20]) == TEXTS[:20]
    assert list(pool[[44, 30]].ids) == [IDS[44], IDS[30]]
    assert at > 0
    path.unlink()  # as the error says
    assert list(open_again(table)) == TEXTS


def test_flipped_hashes_are_refused_by_name(table):
    path = find(table, ".npy")
    content = path.read_bytes()
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    with pytest.raises(ValueError, match=r"\.arrow\.npy' has another checksum"):
        open_again(table).hashes  # noqa: B018


def test_garbage_of_the_same_size_gives_no_texts(table):
    path = find(table, ".arrow")
    path.write_bytes(b"\x00garbage" * (path.stat().st_size // 8 + 1))
    os.truncate(path, path.stat().st_size // 8 * 8)
    assert list(open_again(table)) == TEXTS


def test_garbage_in_a_file_that_a_pickle_names_is_an_error_that_names_it(table):
    path = find(table, ".arrow")
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(ValueError, match=rf"{path.name}' must hold texts as they were"):
        list(TextPool(_text_file.TextFile(path)))


@pytest.mark.parametrize("suffix", [".jsonl", ".npy", ".arrow"])
def test_a_file_that_lacks_something_is_an_error_that_names_it(table, suffix):
    path, pool = find(table, suffix), find(table, ".arrow")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=f"{suffix}"):
        _text_file.TextFile(pool).open()


@pytest.mark.parametrize("name", ["../x.arrow", "x.arrow", "/x.arrow", 5, None])
def test_no_other_file_is_opened_in_place_of_a_pool(table, name):
    found, other = find(table, ".arrow"), table.parent / "x.arrow"
    for suffix in ("", ".npy", ".jsonl"):
        for folder in (table.parent, found.parent):
            shutil.copy(f"{found}{suffix}", folder / f"{other.name}{suffix}")
    path = find(table, "[0-9a-f].json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"name": name}))
    opened = open_again(table)._file.path
    assert os.path.basename(opened).startswith("_")
    assert os.path.dirname(opened) == str(found.parent)


CUT = """
    import glob, os, sys
    from skactive.datasets import open_pool
    table, cache, suffix = sys.argv[1:]
    pool, other = (open_pool(table, "text", cache=cache) for _ in range(2))
    assert pool[0].startswith("good film 0")
    [file] = glob.glob(f"{cache}/*{suffix}")
    size = os.path.getsize(file)
    os.truncate(file, size - 2 if cache.endswith("by two bytes") else 100)
    reads = [lambda: pool[0], lambda: list(pool[[4000, 3]]), lambda: list(other)]
    if suffix == ".npy":
        reads = [lambda: pool.hashes, lambda: other.hashes]
    for read in reads:
        try:
            read()
        except OSError as exc:
            assert f"{os.path.realpath(file)!r} became shorter" in str(exc), exc
        else:
            raise AssertionError("read")
"""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".arrow", ".npy"])
@pytest.mark.parametrize("cache", ["almost all", "by two bytes"])
def test_a_file_that_is_cut_while_it_is_mapped_is_an_os_error(tmp_path, suffix, cache):
    lines = "".join(f"good film {i} {'x' * 90}\n" for i in range(5000))
    (tmp_path / "t.csv").write_text(f"text\n{lines}")
    command = [sys.executable, "-c", textwrap.dedent(CUT)]
    command += [tmp_path / "t.csv", tmp_path / cache, suffix]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("step", [37, pytest.param(3, marks=pytest.mark.slow)])
def test_no_flipped_bit_of_a_cache_gives_other_texts(table, step):
    cache, kept = table.parent / "cache", table.parent / "kept"
    shutil.copytree(cache, kept)
    hashes, rng = hash_items(TEXTS), np.random.default_rng(step)
    counts = {"same": 0, "written again": 0, "refused": 0, "silent": 0}
    for path in sorted(kept.iterdir()):
        content = bytearray(path.read_bytes())
        for offset in range(0, len(content), step):
            bit = 1 << int(rng.integers(8))
            content[offset] ^= bit
            (cache / path.name).write_bytes(content)
            content[offset] ^= bit
            try:
                pool = open_again(table)
                same = list(pool) == TEXTS and list(pool.ids) == IDS
                same = same and np.array_equal(pool.hashes, hashes)
            except (ValueError, OSError):
                counts["refused"] += 1
            else:
                is_new = set(os.listdir(cache)) != set(os.listdir(kept))
                right = "written again" if is_new else "same"
                counts[right if same else "silent"] += 1
                if is_new:
                    shutil.rmtree(cache)
                    shutil.copytree(kept, cache)
            (cache / path.name).write_bytes(content)
    assert counts["silent"] == 0, counts
    assert counts["refused"] > counts["written again"] > 0, counts
