"""What the key of cached features is made of: content, and nothing else."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from skactive.bert import BertFeatures, clear_cache

from ..bert._helpers import PLAIN, uncached
from ..conftest import TEXTS, save_encoder, save_tokenizer

pytestmark = [
    pytest.mark.usefixtures("fresh_cache"),
    pytest.mark.filterwarnings("ignore:.*were cut there:UserWarning"),
]

UNIQUE = list(dict.fromkeys(TEXTS))


@pytest.fixture
def model(tmp_path):
    """Folder of an encoder that a test may change."""
    return save_encoder(tmp_path / "model")


@pytest.mark.long
@pytest.mark.parametrize(
    "params",
    [
        {"pooling": "cls"},
        {"pooling": "max"},
        {"layers": 0},
        {"layers": (-2, -1)},
        {"layers": (-1, -2)},
        {"max_length": 16},
        {"normalize": True},
        {"precision": "bfloat16"},
    ],
    ids=str,
)
def test_each_parameter_that_matters_encodes_again(
    tiny_bert, features, counter, params
):
    first = features.transform(TEXTS)
    counter.take()
    other = clone(features).set_params(**params)
    with_params = other.transform(UNIQUE)
    assert counter.take() == len(UNIQUE)
    expected = uncached(tiny_bert, **params).transform(UNIQUE)
    np.testing.assert_array_equal(with_params, expected)
    counter.take()
    assert features.transform(TEXTS) is first
    assert other.transform(UNIQUE) is with_params
    assert counter.take() == 0


@pytest.mark.parametrize(
    "params",
    [
        {"layers": 3},
        {"layers": [-1]},
        {"max_length": 64},  # all the model has positions for, as 128 is
        {"batch_tokens": 7},
        {"device": "cpu"},
        {"verbose": 1},
    ],
    ids=str,
)
def test_other_ways_to_say_the_same_share_the_features(features, counter, params):
    first = features.transform(TEXTS)
    counter.take()
    assert features.set_params(**params).transform(TEXTS) is first
    assert counter.take() == 0


def test_a_model_is_known_by_content_wherever_it_lies(
    model, cache, counter, tmp_path, monkeypatch
):
    first = BertFeatures(model, cache=cache).transform(TEXTS)
    counter.take()
    shutil.copytree(model, tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    for name in (Path(model), f"{model}/", "model", "./elsewhere"):
        assert BertFeatures(name, cache=cache).transform(TEXTS) is first
    assert counter.take() == 0


def change_weights(folder):
    save_encoder(folder, initializer_range=0.3)


def change_one_weight(folder):
    from safetensors.torch import load_file, save_file

    path = Path(folder, "model.safetensors")
    tensors = load_file(path)
    tensors["encoder.layer.2.output.dense.bias"][0] += 1.0
    save_file(tensors, path, metadata={"format": "pt"})


def change_config(folder):
    path = Path(folder, "config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"hidden_act": "relu"}))


def change_vocabulary(folder):
    path = Path(folder, "tokenizer.json")
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    vocabulary["film"], vocabulary["the"] = vocabulary["the"], vocabulary["film"]
    path.write_text(json.dumps(content))


def change_case(folder):
    path = Path(folder, "tokenizer.json")
    content = json.loads(path.read_text())
    content["normalizer"]["lowercase"] = False
    path.write_text(json.dumps(content))


def shorten(folder):
    save_tokenizer(folder, model_max_length=8)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        *(change_weights, change_one_weight, change_config),
        *(change_vocabulary, change_case, shorten),
    ],
    ids=lambda f: f.__name__,
)
def test_a_model_that_changed_encodes_again(model, cache, counter, change):
    features = BertFeatures(model, **PLAIN, cache=cache)
    texts = ["the film", "The Film", *UNIQUE]
    before = features.transform(texts)
    counter.take()
    change(model)
    after = features.transform(texts)
    assert counter.take() == len(texts)
    assert not np.allclose(after, before)
    np.testing.assert_array_equal(after, uncached(model).transform(texts))


def test_another_revision_encodes_again(features, counter):
    features.transform(TEXTS)
    counter.take()
    features.set_params(revision="v2").transform(TEXTS)
    assert counter.take() == len(UNIQUE)


def test_another_type_of_files_encodes_again(tiny_bert, tmp_path, counter):
    features = BertFeatures(tiny_bert, precision="float32", cache=tmp_path)
    full = features.transform(TEXTS)
    counter.take()
    half = features.set_params(cache_dtype="float16").transform(TEXTS)
    assert counter.take() == len(UNIQUE)
    np.testing.assert_array_equal(half, full.astype(np.float16).astype(np.float32))
    clear_cache()
    np.testing.assert_array_equal(features.transform(TEXTS), half)
    assert counter.take() == 0


def test_type_of_files_does_not_matter_in_memory(tiny_bert, counter):
    features = BertFeatures(tiny_bert)
    first = features.transform(TEXTS)
    assert features.set_params(cache_dtype="float16").transform(TEXTS) is first


def test_memory_and_folders_are_kept_apart(tiny_bert, tmp_path, counter):
    for cache in ("memory", tmp_path / "a", tmp_path / "b"):
        BertFeatures(tiny_bert, cache=cache).transform(TEXTS)
        assert counter.take() == len(UNIQUE)
