"""BertFeatures on packed texts: the same features as on padded ones."""

import numpy as np
import pytest
import torch

import skactive.features._encoding
from skactive._encoders._encoder import PackedEncoder
from skactive.bert import BertFeatures

from ..bert._helpers import grid
from ..conftest import TEXTS

pytestmark = pytest.mark.cpu_only("only there texts are packed")

PACKED, PADDED = ["Bert", "Roberta", "MPNet"], ["DistilBert", "ModernBert"]


@pytest.fixture
def forms(monkeypatch):
    """List the form of each batch that BertFeatures encodes."""
    seen = []
    encode = skactive.features._encoding.encode

    def note(module, batch, **options):
        seen.append("packed" if "lengths" in batch else "padded")
        return encode(module, batch, **options)

    monkeypatch.setattr(skactive.features._encoding, "encode", note)
    return seen


@pytest.mark.long
@pytest.mark.parametrize("kind", PACKED + PADDED)
def test_packs_where_that_is_sure_to_be_the_same(tiny_encoder, kind, forms):
    BertFeatures(tiny_encoder(kind), cache=None, device="cpu").transform(TEXTS)
    assert set(forms) == {"packed" if kind in PACKED else "padded"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "layers", "pooling"),
    grid(
        [
            (kind, layers, pooling)
            for kind in PACKED
            for layers in (-1, 0, 1, (3, 0, 3, 2))
            for pooling in ("mean", "cls", "max")
        ],
        lambda kind, layers, pooling: (
            (kind == "Bert" or layers == -1) and (pooling == "mean" or layers == -1)
        ),
    ),
)
def test_packed_features_are_the_padded_ones(
    tiny_encoder, kind, layers, pooling, forms, monkeypatch
):
    features = BertFeatures(
        tiny_encoder(kind),
        layers=layers,
        pooling=pooling,
        normalize=True,
        precision="float32",
        batch_tokens=40,
        cache=None,
    )
    packed = features.transform(TEXTS)
    monkeypatch.setattr(PackedEncoder, "supports", lambda encoder: False)
    np.testing.assert_allclose(packed, features.transform(TEXTS), atol=1e-5)
    assert set(forms) == {"packed", "padded"}


def test_layers_above_the_last_one_asked_for_are_not_run(tiny_bert, monkeypatch):
    run = []
    act = torch.nn.functional.scaled_dot_product_attention

    def note(*args, **kwargs):
        run.append(1)
        return act(*args, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", note)
    for layers, expected in [(0, 0), (1, 1), ((2, 0), 2), (-1, 3)]:
        BertFeatures(tiny_bert, layers=layers, cache=None).transform(TEXTS[:1])
        assert len(run) == expected
        run.clear()
