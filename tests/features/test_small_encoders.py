"""Small encoders of the guide: random weights in the shapes of their configurations."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize

from skactive import make_text_classifier

from ..bert._helpers import uncached
from ..conftest import TEXTS
from .test_sentences import dense, save_sentences

WORDS = [text for text in TEXTS if text]
SMALL = {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}
SMALL |= {"initializer_range": 0.05}
DEEP = SMALL | {"num_hidden_layers": 12}
MODERN = DEEP | {"local_attention": 128, "global_attn_every_n_layers": 3}
QUERY = {"query": "Represent this sentence for searching relevant passages: "}
PROMPTS = {"prompts": QUERY | {"document": ""}}


# Name: architecture, sizes, pooling, modules after it, settings.
ENCODERS = {
    "mdbr-leaf-mt": (
        "Bert",
        SMALL | {"num_hidden_layers": 6},
        "mean",
        (dense(1024, torch.nn.Identity(), 384), Normalize()),
        PROMPTS,
    ),
    "gte-small": ("Bert", DEEP, "mean", (Normalize(),), {}),
    "e5-small-v2": ("Bert", DEEP, "mean", (Normalize(),), {}),
    "granite-embedding-small-english-r2": (
        "ModernBert",
        MODERN,
        "cls",
        (Normalize(),),
        {},
    ),
}


@pytest.fixture(scope="module", params=ENCODERS)
def encoder(request, tmp_path_factory):
    """Return the name and the folder of an encoder."""
    kind, sizes, pooling, modules, options = ENCODERS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    saved = save_sentences(
        folder, pooling, *modules, kind=kind, sizes=sizes, width=384, **options
    )
    return request.param, saved


@pytest.mark.slow
def test_features_are_those_of_sentence_transformers(encoder):
    name, folder = encoder
    expected = SentenceTransformer(folder, device="cpu").encode(WORDS)
    assert expected.shape[1] == (1024 if name == "mdbr-leaf-mt" else 384)
    features = uncached(folder, pooling="auto").transform(WORDS)
    np.testing.assert_allclose(features, expected, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoder", "prompt"),
    [("mdbr-leaf-mt", "query"), ("e5-small-v2", "query: ")],
    indirect=["encoder"],
)
def test_a_prompt_is_a_name_or_a_text(encoder, prompt):
    _, folder = encoder
    reference = SentenceTransformer(folder, device="cpu")
    expected = reference.encode(WORDS, prompt=QUERY.get(prompt, prompt))
    features = uncached(folder, pooling="auto", prompt=prompt).transform(WORDS)
    np.testing.assert_allclose(features, expected, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_an_encoder_learns_in_the_loop(encoder):
    _, folder = encoder
    model = make_text_classifier(folder, adapt=True, cache=None)
    model.set_params(adapted__adaptedfeatures__n_steps=1)
    texts = [f"{text} {i}" for i, text in enumerate(WORDS * 40)][:26]
    model.fit(texts, ["a", "b"] * 13)
    assert sorted(model.weights_) == ["adapted", "frozen"]
    np.testing.assert_allclose(model.predict_proba(texts).sum(axis=1), 1)
