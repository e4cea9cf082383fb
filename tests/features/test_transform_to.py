"""BertFeatures.transform_to: killed and resumed, with the features of `transform`."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from skactive._storage._files import LockedError
from skactive.bert import BertFeatures
from skactive.features import PrecomputedFeatures

from ..bert._helpers import slow, some, uncached

WORDS = "the film match stocks team game is a joy of long and even".split()  # noqa: SIM905
RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(1, 25))) for _ in range(600)]
TEXTS[300:330] = TEXTS[:30]


def test_the_features_are_those_of_transform(tiny_bert, tmp_path):
    bert = uncached(tiny_bert)
    stored = bert.transform_to(TEXTS, tmp_path / "f", dtype="float32", block_rows=64)
    assert isinstance(stored, PrecomputedFeatures)
    found = stored.fit(TEXTS).transform(TEXTS)
    np.testing.assert_allclose(found, bert.transform(TEXTS), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[300:330], found[:30])
    # A block is encoded as `transform` encodes its texts alone.
    np.testing.assert_array_equal(found[64:128], bert.transform(TEXTS[64:128]))


def test_half_precision_and_the_file(tiny_bert, tmp_path):
    bert = uncached(tiny_bert, pooling="max", layers=(1, 2))
    stored = bert.transform_to(TEXTS, tmp_path, block_rows=600)
    expected = bert.transform(TEXTS[:300] + TEXTS[330:]).astype(np.float16)
    rows = np.load(tmp_path / "features.npy")
    np.testing.assert_array_equal(np.delete(rows, range(300, 330), axis=0), expected)
    assert list(stored.get_feature_names_out()) == [
        f"precomputedfeatures{i}" for i in range(32)
    ]


def test_pairs(tiny_bert, tmp_path):
    bert, pairs = uncached(tiny_bert), [("the film", "a joy"), ("", "a")]
    stored = bert.transform_to(pairs, tmp_path, dtype="float32")
    np.testing.assert_array_equal(stored.transform(pairs), bert.transform(pairs))


@pytest.mark.long
@pytest.mark.parametrize("backend", some(["threading", "loky"], "threading"))
def test_workers_write_the_same_features(tiny_bert, tmp_path, backend):
    from joblib import parallel_config

    uncached(tiny_bert).transform_to(TEXTS, tmp_path / "here", block_rows=100)
    with parallel_config(backend, n_jobs=2):
        uncached(tiny_bert).transform_to(TEXTS, tmp_path / "there", block_rows=100)
    files = [tmp_path / where / "features.npy" for where in ("here", "there")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_another_encoder_is_refused(tiny_bert, tmp_path):
    uncached(tiny_bert).transform_to(TEXTS, tmp_path)
    match = "pooling was mean, is cls. Pass the same source and parameters"
    with pytest.raises(ValueError, match=match):
        uncached(tiny_bert, pooling="cls").transform_to(TEXTS, tmp_path)
    with pytest.raises(
        ValueError, match=r"'dtype' parameter of .*transform_to must be"
    ):
        uncached(tiny_bert).transform_to(TEXTS, tmp_path, dtype="float64")


def test_cut_texts_are_reported_once_with_the_total(tiny_bert, tmp_path):
    texts = [f"{'the film ' * 40}{i}" for i in range(50)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        uncached(tiny_bert).transform_to(texts, tmp_path, block_rows=10)
    (warning,) = [w for w in caught if w.category is UserWarning]
    assert "50 of the 50 texts encoded" in str(warning.message)
    assert warning.filename == __file__


def test_surrogates_are_named(tiny_bert, tmp_path):
    with pytest.raises(ValueError, match="unpaired surrogates at positions: 1"):
        uncached(tiny_bert).transform_to(["a", "\ud800"], tmp_path)


def test_unknown_texts_are_encoded_by_the_encoder(tiny_bert, tmp_path):
    bert = uncached(tiny_bert)
    bert.transform_to(TEXTS, tmp_path, dtype="float32", block_rows=600)
    some = [TEXTS[5], "the joy of a film", TEXTS[2], "no"]
    with pytest.raises(ValueError, match=r"got 2 others, at positions: 1, 3\."):
        PrecomputedFeatures(tmp_path).transform(some)
    found = PrecomputedFeatures(tmp_path, encoder=bert).transform(some)
    np.testing.assert_allclose(found, bert.transform(some), rtol=1e-5, atol=1e-6)
    other = PrecomputedFeatures(tmp_path, encoder=uncached(tiny_bert, layers=1))
    with pytest.raises(
        ValueError, match=r"settings differ: layers was \[3\], is \[1\]"
    ):
        other.transform(some)


# Killed ----------------------------------------------------------------------------

_SCRIPT = """
import os, sys
import skactive.features._encoding as module
from skactive.bert import BertFeatures
from skactive.features import _folder
sys.path.insert(0, {root!r})
from tests.features.test_transform_to import TEXTS

_folder._COMMIT_SECONDS = _folder._COMMIT_LONGEST = -1.0
folder, model, log, n_jobs = sys.argv[1:]
encode = module.EncodingRun.encode_blocks

def encode_and_log(self, texts, bounds, out):
    for positions in encode(self, texts, bounds, out):
        with open(log, "a") as stream:
            stream.writelines(texts[i] + "\\n" for i in positions)
        yield positions

module.EncodingRun.encode_blocks = encode_and_log
bert = BertFeatures(
    model,
    normalize=False,
    precision="float32",
    batch_tokens=64,
    n_jobs=int(n_jobs),
    verbose=0,
)
bert.transform_to(TEXTS, folder, block_rows=20)
"""


def start(folder, model, log, n_jobs):
    script = _SCRIPT.format(root=str(Path(__file__).parents[2]))
    arguments = map(str, (folder, model, log, n_jobs))
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], start_new_session=True
    )


def count_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.parametrize(
    ("n_jobs", "n_kills"),
    [slow(1, 2), slow(2, 1)],
)
def test_a_killed_process_goes_on(tiny_bert, tmp_path, n_jobs, n_kills):
    bert = uncached(tiny_bert, batch_tokens=64)
    bert.transform_to(TEXTS, tmp_path / "whole", block_rows=20)
    folder, log = tmp_path / "f", tmp_path / "log"
    journal, n_before, done = folder / "blocks.jsonl", 0, set()
    for kill in range(n_kills):
        process = start(folder, tiny_bert, log, n_jobs)
        goal = (kill + 1) * 28 // (n_kills + 1)
        while count_lines(journal) < goal and process.poll() is None:
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        encoded = log.read_text().splitlines()[n_before:]
        assert done.isdisjoint(encoded)
        n_before += len(encoded)
        finished = count_lines(journal)  # one block a line, in order
        assert finished >= goal
        done = set(TEXTS[: 20 * finished])
    assert start(folder, tiny_bert, log, n_jobs).wait() == 0
    encoded = log.read_text().splitlines()
    assert done.isdisjoint(encoded[n_before:])
    assert set(encoded) == set(TEXTS)
    for name in ("features.npy", "keys.npy", "manifest.json"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_a_second_writer_is_refused_while_one_writes(tiny_bert, tmp_path):
    process = start(tmp_path / "f", tiny_bert, tmp_path / "log", 1)
    while not count_lines(tmp_path / "f" / "blocks.jsonl") and process.poll() is None:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(LockedError, match=f"in process {process.pid}"):
            BertFeatures(tiny_bert).transform_to(TEXTS, tmp_path / "f")
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert process.wait() == 0
