"""Damaged files of a cache folder are noticed, told and computed again."""

import hashlib
import json
import os
import re
import sys
import warnings

import numpy as np
import pytest

from skactive._encoders._shards import DamagedShard, ShardFolder
from skactive._storage._fingerprint import digest_text
from skactive.bert import clear_cache

from ..bert._helpers import (
    RECIPE,
    TEXTS,
    WIDTH,
    CountingEncoder,
    files_of,
    get,
    get_quietly,
    rows_of,
    run_python,
)

pytestmark = pytest.mark.usefixtures("fresh_cache")


def edit_manifest(path, **changes):
    manifest = path.with_suffix(".json")
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changes))


def truncate(path):
    os.truncate(path, path.stat().st_size - 1)


def empty(path):
    path.write_bytes(b"")


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def overwrite_header(path):
    path.write_bytes(b"not an array" + path.read_bytes()[12:])


def delete(path):
    path.unlink()


def widen(path):
    """Put a sound file of another width in the place of the array."""
    np.save(path, np.ones((len(np.load(path)), WIDTH + 1), dtype=np.float32))
    edit_manifest(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def pickle_inside(path):
    np.save(path, np.array([None] * WIDTH, dtype=object), allow_pickle=True)
    edit_manifest(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def garbage_manifest(path):
    path.with_suffix(".json").write_bytes(b"\x00\xff{")


def cut_manifest(path):
    truncate(path.with_suffix(".json"))


def empty_manifest(path):
    empty(path.with_suffix(".json"))


def other_json(path):
    path.with_suffix(".json").write_text("[1, 2]")


def no_texts(path):
    edit_manifest(path, texts=None)


def texts_without_digests(path):
    edit_manifest(path, texts=["what", "is", "no", "hex"])


def a_text_too_few(path):
    texts = json.loads(path.with_suffix(".json").read_text())["texts"]
    edit_manifest(path, texts=texts[1:])


def no_checksum(path):
    edit_manifest(path, sha256=None)


DAMAGES = [
    *(truncate, empty, flip_a_bit, overwrite_header, delete, widen, pickle_inside),
    *(garbage_manifest, cut_manifest, empty_manifest, other_json, no_texts),
    *(texts_without_digests, a_text_too_few, no_checksum),
]


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_a_damaged_shard_is_computed_again(filled, damage):
    path = files_of(filled)[1]
    n_texts = len(np.load(path))
    damage(path)
    with pytest.warns(UserWarning, match="damaged .* computed again") as caught:
        features, encoded = get(TEXTS, filled)
    assert len(caught) == 1
    assert repr(str(path)) in str(caught[0].message)
    assert len(encoded) == n_texts
    np.testing.assert_array_equal(features, rows_of(TEXTS))
    # The damage is mended for everybody.
    clear_cache()
    features, encoded = get_quietly(TEXTS, filled)
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(TEXTS))
    assert len(files_of(filled)) == len(files_of(filled, ".json")) == 3


@pytest.mark.parametrize("damage", [flip_a_bit, garbage_manifest])
def test_all_shards_damaged_are_computed_in_one_go(filled, damage):
    for path in files_of(filled):
        damage(path)
    encoder = CountingEncoder()
    with pytest.warns(UserWarning, match="damaged") as caught:
        features, encoded = get([*TEXTS, "new"], filled, encoder)
    assert len(caught) == 3
    assert encoder.n_calls == 1
    assert sorted(encoded) == ["new", *TEXTS]
    np.testing.assert_array_equal(features, rows_of([*TEXTS, "new"]))


def test_a_damaged_shard_that_is_not_asked_for_is_left_alone(filled):
    path, other, _ = files_of(filled)
    digests = json.loads(path.with_suffix(".json").read_text())["texts"]
    flip_a_bit(other)
    texts = [text for text in TEXTS if digest_text(text).hex() in digests]
    assert get_quietly(texts, filled)[1] == []
    assert len(files_of(filled)) == 3


@pytest.mark.parametrize("damaged", ["old", "new"])
def test_texts_in_two_shards_survive_damage_to_one(filled, damaged):
    old = files_of(filled)
    ShardFolder(filled, RECIPE, "float32").write(TEXTS, rows_of(TEXTS))
    new = [path for path in files_of(filled) if path not in old]
    for path in old if damaged == "old" else new:
        flip_a_bit(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether the damage shows is left to chance
        features, encoded = get(TEXTS, filled)
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(TEXTS))


def test_a_shard_without_manifest_does_not_exist(filled):
    path = files_of(filled)[0]
    n_texts = len(np.load(path))
    path.with_suffix(".json").unlink()
    features, encoded = get_quietly(TEXTS, filled)
    assert len(encoded) == n_texts
    np.testing.assert_array_equal(features, rows_of(TEXTS))


@pytest.mark.parametrize("damage", [flip_a_bit, garbage_manifest])
def test_each_damage_is_an_error_once_where_warnings_are_errors(filled, damage):
    for path in files_of(filled)[:2]:
        damage(path)
    for _ in range(2):
        with pytest.raises(UserWarning, match="damaged"):
            get_quietly(TEXTS, filled)
    np.testing.assert_array_equal(get_quietly(TEXTS, filled)[0], rows_of(TEXTS))


def test_damage_is_reported_by_the_folder_itself(filled):
    shards = ShardFolder(filled, RECIPE, "float32")
    path = next(path for path in files_of(filled) if len(np.load(path)) == 4)
    with pytest.raises(DamagedShard, match=r"shape \(4, 3\), not float32 of \(4, 5\)"):
        shards.check(path.stem, 5)
    flip_a_bit(path)
    with pytest.raises(DamagedShard, match="checksum"):
        shards.check(path.stem, WIDTH)


@pytest.mark.slow
def test_a_shard_truncated_after_it_was_read_is_computed_again(tmp_path):
    # In a process of its own: reading a mapped file that was truncated kills it.
    script = """
import os, sys, warnings
from pathlib import Path
import numpy as np
from tests.bert._helpers import TEXTS, files_of, get, rows_of
folder = Path(sys.argv[1])
texts = [f"text {i}" for i in range(3000)]
get(texts[:2000], folder, width=9)
for path in files_of(folder):
    os.truncate(path, 200)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    features, encoded = get(texts[5:2900], folder, width=9)
np.testing.assert_array_equal(features, rows_of(texts[5:2900], 9))
print(len(encoded), *{str(w.message) for w in caught}, sep="\\n")
"""
    out = run_python(script, tmp_path, PYTHONPATH=os.pathsep.join(sys.path))
    assert out.returncode == 0, out.stderr
    assert out.stdout.startswith("2895\n")
    assert re.search("damaged .* computed again", out.stdout)


@pytest.mark.parametrize("n_bytes", [-1, 4])
def test_a_shard_of_another_length_is_checked_again(filled, n_bytes):
    get(TEXTS, filled)
    path = files_of(filled)[0]
    os.truncate(path, path.stat().st_size + n_bytes)
    with pytest.warns(UserWarning, match="damaged .* computed again"):
        features, encoded = get(TEXTS[::-1], filled)
    assert encoded
    np.testing.assert_array_equal(features, rows_of(TEXTS[::-1]))


def test_a_shard_cut_while_it_is_read_is_damaged(filled, monkeypatch):
    shards = ShardFolder(filled, RECIPE, "float32")
    path = files_of(filled)[0]
    shards.check(path.stem, WIDTH)
    file, start = shards._checked[path.stem]
    shards._checked[path.stem] = file, start + 4  # as if the end had gone since
    rows = np.arange(len(np.load(path)))
    with pytest.raises(DamagedShard, match="has become shorter"):
        shards.read(path.stem, WIDTH, rows, np.empty((4, WIDTH)), rows)
