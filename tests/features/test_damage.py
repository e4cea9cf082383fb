"""Features that changed on the disk are refused by name, and none is served."""

import json
import os
import subprocess
import sys
import textwrap
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from skactive._storage import _mapped
from skactive.features import PrecomputedFeatures, _vectors

from ._helpers import WIDTH, rows_of, write

TEXTS = [f"text {i}" for i in range(45)]  # in five blocks
START = 128  # of the rows in their file


@pytest.fixture
def folder(tmp_path):
    write(TEXTS, tmp_path / "f")
    return tmp_path / "f"


def flip(path, offset, bit=1):
    data = bytearray(path.read_bytes())
    data[offset] ^= bit
    path.write_bytes(data)


def test_a_flipped_byte_is_refused_with_folder_block_and_rows(folder):
    flip(folder / "features.npy", START + 2 * WIDTH * 27)
    stored = PrecomputedFeatures(folder)
    match = r"f' must hold .* block 2 of 'features.npy', the rows 20 to 29, with anoth"
    with pytest.raises(ValueError, match=match):
        stored.transform(TEXTS)
    with pytest.raises(ValueError, match=match):
        stored.transform([TEXTS[29], TEXTS[3]])
    for sound in (TEXTS[:20], TEXTS[30:], [TEXTS[30], TEXTS[19]]):
        np.testing.assert_array_equal(stored.transform(sound), rows_of(sound))


def test_features_of_another_encoder_are_refused(folder):
    write([f"other {i}" for i in range(45)], folder.parent / "g")
    content = (folder.parent / "g" / "features.npy").read_bytes()
    (folder / "features.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"block 0 of 'features\.npy'"):
        PrecomputedFeatures(folder).transform(TEXTS)


def test_a_change_after_the_first_reading_is_found(folder):
    stored = PrecomputedFeatures(folder)
    stored.transform(TEXTS)
    flip(folder / "features.npy", -1)
    os.utime(folder / "features.npy", ns=(0, 0))
    with pytest.raises(ValueError, match="the rows 40 to 44"):
        stored.transform(TEXTS)


def test_a_block_is_checked_once(folder, monkeypatch):
    n_checked = []

    def count(part):
        n_checked.append(len(part))
        return zlib.crc32(part)

    monkeypatch.setattr(_mapped, "zlib", SimpleNamespace(crc32=count))
    stored = PrecomputedFeatures(folder)
    for _ in range(3):
        stored.transform([TEXTS[44], TEXTS[3]])
        stored.transform(TEXTS[:10])
    assert n_checked == [2 * WIDTH * 10, 2 * WIDTH * 5]


CHANGES = {
    "block_rows": [0, -3, 2.5, "10", True, None, 2**64],
    "n_rows": [0, [], 10**18],
    "width": [0, {}],
    "dtype": ["float64", None, []],
    "keys": [None],
    "encoder": ["mean", None],
}


def look_up(texts, folder):
    return PrecomputedFeatures(folder).transform(texts)


@pytest.mark.parametrize("use", [look_up, write])
@pytest.mark.parametrize("name", CHANGES)
def test_nonsense_in_the_manifest_is_an_error_that_names_it(folder, name, use):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for value in CHANGES[name]:
        path.write_text(json.dumps(manifest | {name: value}))
        with pytest.raises(ValueError, match=r"(manifest\.json|f|folder)' must "):
            use(TEXTS, folder)


@pytest.mark.parametrize("record", [{}, [], {"blocks": 3, "crc32": [1]}])
def test_nonsense_in_the_journal_costs_its_blocks(folder, record):
    (folder / "blocks.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(ValueError, match="0 of 5 blocks are finished"):
        PrecomputedFeatures(folder).transform(TEXTS)
    with pytest.warns(UserWarning, match="lines of the journal cannot be read"):
        write(TEXTS, folder)


# Files that are cut ----------------------------------------------------------------


CUT = """
    import os, sys
    import numpy as np
    from skactive._utils._chunks import LazyRows
    from skactive.features import PrecomputedFeatures
    source, n, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    X = range(n) if source.endswith(".npy") else [f"text {i}" for i in range(n)]
    rows = LazyRows(*PrecomputedFeatures(source).find_rows(X))
    rows[:5], rows[np.arange(4)]
    os.truncate(file, 200)
    for key in (slice(None), slice(n - 5, n), np.array([n - 1, 0])):
        try:
            rows[key]
        except OSError as exc:
            assert f"{file!r} became shorter while it was open" in str(exc), exc
        else:
            raise AssertionError(key)
"""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "npy"])
def test_a_file_that_is_cut_while_it_is_mapped_is_an_os_error(tmp_path, kind):
    texts = [f"text {i}" for i in range(3000)]  # in several pages
    write(texts, tmp_path / "f")
    file = tmp_path / "f" / "features.npy"
    source = file if kind == "npy" else file.parent
    command = [sys.executable, "-c", textwrap.dedent(CUT), source, "3000", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Every byte ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step", [23, pytest.param(1, marks=pytest.mark.slow, id="all")]
)
def test_no_flipped_bit_of_a_folder_gives_other_features(folder, step):
    expected, rng = rows_of(TEXTS), np.random.default_rng(step)
    counts = {"same": 0, "refused": 0, "silent": 0}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for offset in range(0, len(content), step):
            flip(path, offset, 1 << int(rng.integers(8)))
            _vectors._opened.clear()  # as in a new process
            try:
                found = PrecomputedFeatures(folder).transform(TEXTS)
            except (ValueError, OSError):
                counts["refused"] += 1
            else:
                same = found.dtype == np.float16 and np.array_equal(found, expected)
                counts["same" if same else "silent"] += 1
            path.write_bytes(content)
    assert counts["silent"] == 0, counts
    assert counts["refused"] > counts["same"], counts
