"""The text part of an encoder that reads pictures and sounds as well."""

import numpy as np
import pytest
import torch
import transformers

from skactive import load, save
from skactive._utils._repeatable import fork_torch
from skactive.bert import BertClassifier

from ..conftest import TEXTS, save_tokenizer
from ._helpers import uncached

SIZES = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "global_head_dim": 8,
    "num_global_key_value_heads": 1,
    "hidden_size_per_layer_input": 8,
    "embedding_dim": 20,
    "max_position_embeddings": 70,
    "sliding_window": 4,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"],
    "pad_token_id": 0,
    "initializer_range": 0.5,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of a tiny EmbeddingGemma 2 of random weights."""
    folder = tmp_path_factory.mktemp("gemma")
    sizes = {"vocab_size": save_tokenizer(folder), **SIZES}
    config = transformers.EmbeddingGemma2Config(text_config=sizes)
    with fork_torch(0):
        transformers.EmbeddingGemma2Model(config).save_pretrained(folder)
    return folder


def whole(folder, texts):
    """Mean states of the whole model, a text at a time, without padding."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    assert "image" in model.input_modalities
    rows = []
    with torch.no_grad():
        for text in texts:
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            rows.append(model(input_ids=ids).last_hidden_state[0].mean(dim=0).numpy())
    return np.array(rows)


def test_features_are_those_of_the_whole_model(folder):
    features = uncached(str(folder))
    found = features.transform(TEXTS)
    assert found.shape == (len(TEXTS), 20)
    assert len(features.get_feature_names_out()) == 20
    np.testing.assert_allclose(found, whole(folder, TEXTS), rtol=0, atol=1e-5)


def test_layers_have_their_own_width(folder):
    last = uncached(str(folder)).transform(TEXTS)
    found = uncached(str(folder), layers=(1, -1)).transform(TEXTS)
    assert found.shape == (len(TEXTS), 16 + 20)
    np.testing.assert_allclose(found[:, 16:], last, rtol=0, atol=1e-5)


def test_a_bundle_holds_it(folder, tmp_path):
    features = uncached(str(folder))
    copy = load(save(features, tmp_path / "bundle", bundle=True))
    np.testing.assert_array_equal(copy.transform(TEXTS), features.transform(TEXTS))


def test_it_is_not_fine_tuned(folder):
    with pytest.raises(ValueError, match="layers have the same width"):
        BertClassifier(folder).fit(TEXTS[:2], [0, 1])
