"""Decoders: their first token sees no other, so it is not pooled."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, GPT2Config, GPT2Model

from skactive._utils._repeatable import fork_torch

from ..conftest import TEXTS, save_tokenizer
from ._helpers import CODES, X, classifier, regressor, uncached

BLIND = r"'pooling' must be 'last', 'mean' or 'max' for .*, got 'cls'.*'gpt2' model"


@pytest.fixture(scope="module")
def tiny_gpt2(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2")
    vocab_size = save_tokenizer(folder)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
    config = GPT2Config(vocab_size=vocab_size, initializer_range=0.5, **sizes)
    with fork_torch(0):
        GPT2Model(config).save_pretrained(folder)
    return str(folder)


def test_features_refuse_the_first_token_of_a_decoder(tiny_gpt2):
    with pytest.raises(ValueError, match=BLIND):
        uncached(tiny_gpt2, pooling="cls").transform(TEXTS)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_fine_tuning_refuses_the_first_token_of_a_decoder(tiny_gpt2, make):
    with pytest.raises(ValueError, match=BLIND):
        make(tiny_gpt2, pooling="cls").fit(X, CODES)


def test_a_head_on_all_tokens_pools_none_and_is_not_refused(tiny_gpt2):
    params = {"head": "cnn", "head_params": {"heights": (1, 2)}, "max_epochs": 1}
    proba = classifier(tiny_gpt2, **params).fit(X, CODES).predict_proba(X)
    assert np.ptp(proba[:, 0]) > 0


@pytest.mark.long
@pytest.mark.parametrize("kind", ["Bert", "DistilBert", "Albert", "DebertaV2"])
def test_encoders_are_not_taken_for_decoders(tiny_encoder, kind):
    features = uncached(tiny_encoder(kind), pooling="cls").transform(TEXTS)
    assert len(np.unique(features, axis=0)) == len(set(TEXTS))


def test_an_encoder_with_a_causal_mask_is_refused(tiny_encoder):
    folder = tiny_encoder("Bert", is_decoder=True)
    with pytest.raises(ValueError, match="'pooling' must be 'last'"):
        uncached(folder, pooling="cls").transform(TEXTS)


@pytest.mark.parametrize("batch_tokens", [1, 2048])
def test_the_last_token_of_a_decoder_against_transformers(tiny_gpt2, batch_tokens):
    features = uncached(tiny_gpt2, pooling="last", batch_tokens=batch_tokens)
    tokenizer = AutoTokenizer.from_pretrained(tiny_gpt2)
    model = AutoModel.from_pretrained(tiny_gpt2).eval()
    for row, text in zip(features.transform(TEXTS), TEXTS, strict=True):
        with torch.no_grad():
            out = model(**tokenizer(text, return_tensors="pt"))
        expected = out.last_hidden_state[0, -1]
        np.testing.assert_allclose(row, expected, atol=1e-5)


def test_the_last_token_of_an_encoder_packed_as_padded(tiny_bert, exact, monkeypatch):
    packed = exact.set_params(pooling="last").transform(TEXTS)
    monkeypatch.setattr(
        "skactive._encoders._encoder.PackedEncoder.supports", lambda _: False
    )
    padded = uncached(tiny_bert, pooling="last").transform(TEXTS)
    np.testing.assert_allclose(packed, padded, atol=1e-5)
    assert abs(packed - uncached(tiny_bert, pooling="cls").transform(TEXTS)).max() > 0.1


def test_fine_tuning_with_the_last_token_tells_texts_apart(tiny_gpt2):
    model = classifier(tiny_gpt2, pooling="last", max_epochs=1).fit(X, CODES)
    assert np.ptp(model.predict_proba(X)[:, 0]) > 1e-4
