"""BertFeatures encodes each text once: with copies, with breaks, with bad files."""

import copy
import io
import os
import pickle
import signal
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skactive.bert import BertFeatures, clear_cache

from ..bert._helpers import uncached
from ..conftest import TEXTS

pytestmark = [
    pytest.mark.usefixtures("fresh_cache"),
    pytest.mark.filterwarnings("ignore:.*were cut there:UserWarning"),
]

UNIQUE = list(dict.fromkeys(TEXTS))


# Once --------------------------------------------------------------------------------


def test_second_transform_encodes_nothing_and_copies_nothing(features, counter):
    first = features.transform(TEXTS)
    assert counter.take() == len(UNIQUE)
    again = features.transform(list(TEXTS))
    assert again is first
    assert counter.take() == 0


def test_second_transform_neither_loads_nor_tokenises(features, monkeypatch):
    first = features.transform(TEXTS)
    monkeypatch.setattr("skactive.features._encoding.tokenize", None)
    monkeypatch.setattr("skactive._encoders._pretrained.Checkpoint.module", None)
    assert features.transform(TEXTS) is first
    np.testing.assert_array_equal(features.transform(TEXTS[::-1]), first[::-1])


@pytest.mark.long
def test_every_container_shares_the_features(features, counter, texts):
    first = features.transform(TEXTS)
    counter.take()
    assert features.transform(texts) is first
    assert counter.take() == 0


@pytest.mark.parametrize(
    "copier",
    [clone, copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))],
    ids=["clone", "copy", "deepcopy", "pickle"],
)
def test_copies_share_the_features(features, counter, copier):
    first = features.transform(TEXTS)
    counter.take()
    assert copier(features).transform(TEXTS) is first
    assert counter.take() == 0


@pytest.mark.long
def test_a_grid_search_encodes_each_text_once(tiny_bert, cache, counter):
    X = [f"{text} {i}" for i in range(3) for text in UNIQUE]
    y = ["film" if "film" in text else "other" for text in X]
    pipeline = make_pipeline(BertFeatures(tiny_bert, cache=cache), LogisticRegression())
    grid = {"logisticregression__C": [0.1, 1, 10]}
    GridSearchCV(pipeline, grid, cv=3).fit(X, y).predict(X)
    assert counter.take() == len(X)


def test_without_a_cache_every_call_encodes(tiny_bert, counter):
    features = BertFeatures(tiny_bert, cache=None)
    for _ in range(2):
        features.transform(TEXTS)
        assert counter.take() == len(UNIQUE)


def test_truncated_texts_are_reported_when_encoded_only(features):
    features.set_params(max_length=4)
    with pytest.warns(UserWarning, match="were cut there") as caught:
        features.transform(TEXTS)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features.transform(TEXTS[::-1])


# Pickles -----------------------------------------------------------------------------


def test_pickles_hold_no_features(features):
    before = len(pickle.dumps(features))
    features.transform([f"text {i}" for i in range(100)])
    assert len(pickle.dumps(features)) == before
    stream = io.BytesIO()
    joblib.dump(make_pipeline(features), stream)
    assert len(stream.getvalue()) < before + 1000


# Interrupted -------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("stop_after", [1, 3, 6])
def test_an_interrupted_transform_resumes(tiny_bert, features, counter, stop_after):
    features.set_params(batch_tokens=1)  # one text a batch
    counter.stop_after = stop_after
    with pytest.raises(KeyboardInterrupt):
        features.transform(TEXTS)
    assert counter.take() == stop_after
    counter.stop_after = None
    if features.cache != "memory":
        clear_cache()  # as if in another process
    got = features.transform(TEXTS)
    assert counter.take() == len(UNIQUE) - stop_after
    expected = uncached(tiny_bert, batch_tokens=1).transform(TEXTS)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.slow
def test_a_killed_process_is_resumed_by_another(tiny_bert, tmp_path, counter):
    script = (
        "import os, signal, sys\n"
        "from skactive.features import BertFeatures, _encoding\n"
        "from skactive._encoders import _store as store\n"
        "store._SHARD_TEXTS = 8\n"
        "encode, n = _encoding.encode, 0\n"
        "def encode_or_die(*arguments, **options):\n"
        "    global n\n"
        "    n += 1\n"
        "    if n > int(sys.argv[3]):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return encode(*arguments, **options)\n"
        "_encoding.encode = encode_or_die\n"
        "texts = [f'text {i}' for i in range(40)]\n"
        "b = BertFeatures(sys.argv[1], cache=sys.argv[2], batch_tokens=1,\n"
        "                 precision='float32', normalize=False)\n"
        "b.transform(texts)\n"
    )

    def run(n_encoded):
        command = [sys.executable, "-c", script, tiny_bert, tmp_path, str(n_encoded)]
        done = subprocess.run(command, timeout=300, capture_output=True, text=True)
        return done.returncode, done.stderr

    assert run(19) == (-signal.SIGKILL, "")
    features = uncached(tiny_bert, cache=tmp_path, batch_tokens=1)
    texts = [f"text {i}" for i in range(40)]
    got = features.transform(texts)
    assert counter.take() == 40 - 16
    expected = uncached(tiny_bert, batch_tokens=1).transform(texts)
    np.testing.assert_array_equal(got, expected)
    counter.take()
    clear_cache()  # as if in a third process
    np.testing.assert_array_equal(features.transform(texts), expected)
    assert counter.take() == 0


# Folders that fail -------------------------------------------------------------------


def test_a_folder_that_cannot_be_written(tiny_bert, tmp_path, counter):
    (tmp_path / "file").touch()
    features = BertFeatures(tiny_bert, cache=tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match="cannot be written .* kept in memory only"):
        first = features.transform(TEXTS)
    assert counter.take() == len(UNIQUE)
    assert clone(features).transform(TEXTS) is first
    assert counter.take() == 0


def test_a_damaged_file(tiny_bert, tmp_path, counter):
    features = BertFeatures(tiny_bert, cache=tmp_path)
    first = features.transform(TEXTS)
    clear_cache()
    (path,) = tmp_path.glob("*/*.npy")
    os.truncate(path, 150)
    counter.take()
    with pytest.warns(UserWarning, match=f"{path.stem}.* damaged"):
        np.testing.assert_array_equal(features.transform(TEXTS), first)
    assert counter.take() == len(UNIQUE)
