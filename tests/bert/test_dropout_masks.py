"""Masks of dropout that all texts share, and the modes that switch dropout on."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from skactive.bert._draws import SharedMasks, dropout_on


def test_modes_come_back_one_by_one():
    module = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2), nn.Linear(2, 2))
    module.eval()
    module[2].train()
    seen = []
    with pytest.raises(ZeroDivisionError), dropout_on(module):
        seen.append([part.training for part in module]) or 1 / 0
    assert seen == [[True, False, True]]
    assert [part.training for part in module] == [False, False, True]


def mask(shape, p=0.5, seed=0, part="head", calls=1):
    """Read the mask of the last of some dropouts off a tensor of ones."""
    x = torch.ones(shape)
    with SharedMasks(seed) as masks:
        masks.begin(part, len(x))
        for _ in range(calls):
            out = functional.dropout(x, p)
    return out


@pytest.mark.parametrize("shape", [(3, 400), (3, 20, 20), (3, 2, 15, 15)])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_masks_drop_at_the_rate_and_are_shared(shape, p):
    out = mask(shape, p)
    assert (out == out[0]).all()
    assert set(out.unique().tolist()) == {0.0, torch.tensor(1 / (1 - p)).item()}
    assert (out[0] == 0).float().mean().item() == pytest.approx(p, abs=0.08)


def test_masks_of_other_draws_calls_and_parts_are_others():
    masks = [
        mask((1, 4000), seed=seed, calls=calls)[0] > 0
        for seed in (0, 1, 2)
        for calls in (1, 2, 3)
    ]
    masks.append(mask((1, 1, 4000), part="encoder")[0, 0] > 0)
    agreement = np.corrcoef(torch.stack(masks).double().numpy())
    assert np.abs(agreement - np.eye(10)).max() < 0.08


def test_places_of_a_mask_are_independent():
    out = (mask((1, 300, 300))[0] > 0).double().numpy() - 0.5
    for rows, columns in [(0, 1), (1, 0), (1, 1), (0, 2), (7, 0)]:
        shifted = np.roll(out, (rows, columns), axis=(0, 1))
        assert abs((out * shifted).mean()) < 0.25 * 0.02


@pytest.mark.parametrize("lengths", [(3, 9), (9, 3), (5, 5)])
def test_masks_depend_on_the_place_and_not_on_the_length(lengths):
    whole = mask((1, 2, 12, 12))
    with SharedMasks(0) as masks:
        for length in lengths:
            masks.begin("head", 4)
            out = functional.dropout(torch.ones(4, 2, length, length))
            assert torch.equal(out[0], whole[0, :, :length, :length])


def test_the_same_seed_gives_the_same_masks():
    x, dropped = torch.ones(2, 50), []
    for masks in (SharedMasks(3), SharedMasks(3)):
        with masks:
            masks.begin("head", 2)
            dropped.append(functional.dropout(x))
    assert torch.equal(*dropped)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_masks_at_the_ends(p):
    assert torch.equal(mask((2, 5), p), torch.full((2, 5), 1.0 - p))


def test_dropout_that_is_off_stays_off():
    x = torch.ones(2, 5)
    with SharedMasks(0) as masks:
        masks.begin("head", 2)
        assert functional.dropout(x, 0.5, training=False) is x


@pytest.mark.parametrize("masked", [None, "bool", "float"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_is_that_of_torch_times_the_mask(masked, scale):
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, 2, 5, 4, generator=generator) for _ in "qkv")
    bias, real = torch.zeros(5), torch.tensor([True, True, True, True, False])
    bias[~real] = -torch.inf
    attn_mask = {None: None, "bool": real.expand(2, 1, 5, 5), "float": bias}[masked]
    scores = query @ key.transpose(2, 3) * (0.5 if scale is None else scale)
    weights = (scores + (0 if masked is None else bias)).softmax(dim=3)
    drop = mask((2, 2, 5, 5), 0.4)
    with SharedMasks(0) as masks:
        masks.begin("head", 2)
        found = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attn_mask, dropout_p=0.4, scale=scale
        )
    torch.testing.assert_close(found, (weights * drop) @ value)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_attention_of_a_place_that_may_look_nowhere_is_nothing(kind):
    x = torch.ones(1, 1, 2, 2)
    allowed = torch.tensor([[True, True], [False, False]])
    bias = torch.zeros(2, 2).masked_fill(~allowed, -torch.inf)
    attn_mask = {"bool": allowed, "float": bias}[kind]
    with SharedMasks(0) as masks:
        masks.begin("encoder", 1)
        found = functional.scaled_dot_product_attention(
            x, x, x, attn_mask=attn_mask, dropout_p=1e-6
        )
    torch.testing.assert_close(found[0, 0], torch.tensor([[1.0, 1.0], [0.0, 0.0]]))


@pytest.mark.parametrize("option", ["is_causal", "enable_gqa"])
def test_attention_of_other_kinds_is_refused(option):
    x = torch.ones(1, 1, 2, 2)
    with SharedMasks(0) as masks:
        masks.begin("encoder", 1)
        with pytest.raises(NotImplementedError, match="causal or grouped attention"):
            functional.scaled_dot_product_attention(
                x, x, x, dropout_p=0.1, **{option: True}
            )


def test_texts_must_come_first():
    with SharedMasks(0) as masks:
        masks.begin("encoder", 3)
        with pytest.raises(NotImplementedError, match=r"shape \(7, 3, 2\) for 3 texts"):
            functional.dropout(torch.ones(7, 3, 2))


@pytest.mark.parametrize(
    "layer",
    [nn.Dropout1d(), nn.Dropout2d(), nn.AlphaDropout(), nn.FeatureAlphaDropout()],
    ids=repr,
)
def test_dropout_without_shared_masks_is_refused(layer):
    x = (
        torch.ones(2, 3, 4, 4)
        if isinstance(layer, nn.Dropout2d)
        else torch.ones(2, 3, 4)
    )
    with SharedMasks(0) as masks:
        masks.begin("head", 2)
        with pytest.raises(NotImplementedError, match="masks that all texts share"):
            layer(x)
        layer.eval()(x)


def test_attention_module_without_shared_masks_is_refused():
    layer, x = nn.MultiheadAttention(4, 2, dropout=0.1), torch.ones(2, 3, 4)
    with SharedMasks(0) as masks:
        masks.begin("head", 2)
        with pytest.raises(NotImplementedError, match=r"multi_head_attention_forward"):
            layer(x, x, x)
        layer.eval()(x, x, x)
