"""Fine-tuning on the states of several layers."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from transformers import AutoModel

from skactive.bert import BertFeatures

from ..bert._helpers import (
    ARCHITECTURES,
    NO_DROPOUT,
    PLAIN,
    assert_same_weights,
    fitted_copy,
    grid,
    network,
    padded,
)
from ..bert._helpers import REVIEW_LABELS as Y
from ..bert._helpers import REVIEWS as X
from ..bert._helpers import review_classifier as classifier

CHOICES = [(3, 0, 1), [2]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "layers"),
    grid(
        [(kind, layers) for kind in ARCHITECTURES for layers in CHOICES],
        lambda kind, layers: (
            kind == "Bert"
            or (kind in ("DistilBert", "Albert", "ModernBert") and layers == CHOICES[0])
        ),
    ),
)
def test_features_are_those_of_bert_features(tiny_encoder, kind, layers):
    model = tiny_encoder(kind)
    frozen = classifier(model, freeze="all", layers=layers, pooling="mean").fit(X, Y)
    features = BertFeatures(model, layers=layers, **PLAIN).transform(X)
    np.testing.assert_allclose(frozen.transform(X), features, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "layers", "freeze"),
    grid(
        [
            (kind, layers, freeze)
            for kind in ARCHITECTURES
            if kind != "Albert"
            for layers in CHOICES
            for freeze in (0, 2)
        ],
        lambda kind, layers, freeze: (
            (kind == "Bert" and bool(freeze) is (len(layers) > 1))
            or (kind in ("DistilBert", "ModernBert") and freeze and len(layers) > 1)
        ),
    ),
)
def test_cached_and_plain_states_are_those_of_the_encoder(
    tiny_encoder, kind, layers, freeze
):
    model = tiny_encoder(kind)
    batch = padded(model, X)
    with torch.no_grad():
        plain = AutoModel.from_pretrained(model).eval()
        out = plain(**batch, output_hidden_states=True)
        states = [*out.hidden_states[:-1], out.last_hidden_state]
        whole = network(model, freeze=freeze, layers=layers, head="cnn")
        expected = torch.cat([states[i] for i in layers], dim=-1)
        real = batch["attention_mask"].bool()
        found, mask = whole.represent(**batch)
        torch.testing.assert_close(found[real], expected[real])
        assert torch.equal(mask, real)
        if freeze:
            activations = whole.below_cut(batch)
            found, _ = whole.represent(activations=activations, **batch)
            torch.testing.assert_close(found[real], expected[real])


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "layers", "freeze", "head"),
    grid(
        [
            (kind, layers, freeze, head)
            for kind in ("Bert", "DistilBert")  # packed and padded
            for layers in ((-1, 0, 2), (1,))
            for freeze in (1, 2, "all")
            for head in ("linear", "cnn")
        ],
        # Every kind with every choice of layers, and all depths.
        lambda kind, layers, freeze, head: (
            (kind, len(layers), freeze, head)
            in {
                ("Bert", 3, 1, "linear"),
                ("Bert", 1, "all", "cnn"),
                ("DistilBert", 3, "all", "linear"),
                ("DistilBert", 1, 2, "linear"),
            }
        ),
    ),
)
def test_cached_activations_train_alike(tiny_encoder, kind, layers, freeze, head):
    model = tiny_encoder(kind, **NO_DROPOUT)
    settings = {"freeze": freeze, "head": head, "layers": layers, "pooling": "mean"}
    cached, plain = (
        classifier(model, cache_frozen=cache_frozen, **settings).fit(X, Y)
        for cache_frozen in (True, False)
    )
    losses = [[epoch["train_loss"] for epoch in m.history_] for m in (cached, plain)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        cached.predict_proba(X), plain.predict_proba(X), atol=1e-4
    )


def test_caches_of_other_layers_are_apart(tiny_bert):
    settings = {"freeze": "all", "pooling": "mean"}
    one, other = (
        classifier(tiny_bert, layers=layers, **settings).fit(X, Y)
        for layers in ((1, 2), (2, 3))
    )
    width = one.transform(X).shape[1] // 2
    np.testing.assert_array_equal(
        one.transform(X)[:, width:], other.transform(X)[:, :width]
    )
    assert np.abs(one.transform(X)[:, :width] - other.transform(X)[:, width:]).max() > 0


@pytest.mark.cpu_only("a GPU adds gradients in any order")
def test_the_last_layer_is_the_default(tiny_bert):
    assert_same_weights(
        fitted_copy(classifier, tiny_bert, X, Y),
        classifier(tiny_bert, layers=(3,)).fit(X, Y),
    )


def test_layers_above_the_highest_are_left_alone(tiny_bert):
    changes = classifier(tiny_bert, layers=1).fit(X, Y).layer_changes_
    by_layer = dict(zip(changes["layer"], changes["mean"], strict=True))
    assert by_layer["0"] > 0
    assert by_layer["1"] == by_layer["2"] == 0


def test_draws_and_gradients_have_the_width_of_all_layers(tiny_bert):
    model = fitted_copy(classifier, tiny_bert, X, Y, layers=(-1, -2), mc_dropout="full")
    residuals, inputs = model.gradient_factors(X)
    assert residuals.shape == (8, 2)
    assert inputs.shape == (
        8,
        2 * fitted_copy(classifier, tiny_bert, X, Y).transform(X).shape[1],
    )
    assert model.sample_proba(X, 3).shape == (8, 3, 2)
    assert (model.embedding_gradients(X) > 0).all()


def test_layers_that_the_model_lacks_are_refused(tiny_bert):
    with pytest.raises(
        ValueError, match=r"'layers' must be .* \[-3, 3\], got \(1, 9\)"
    ):
        classifier(tiny_bert, layers=(1, 9)).fit(X, Y)


def test_several_layers_are_cloned(tiny_bert):
    assert clone(classifier(tiny_bert, layers=(1, -1))).layers == (1, -1)
