"""Heads: what they compute, with and without dropout, against loops in numpy."""

import numpy as np
import pytest
import torch
from torch import nn

from skactive.bert import BertClassifier
from skactive.bert._heads import CNNHead, DenseHead, LinearHead, MLPHead, make_head

from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import review_classifier as classifier

HEADS = {
    "linear": {},
    "mlp": {"hidden_sizes": (7, 5)},
    "cnn": {"heights": (1, 3), "n_maps": 4, "hidden_size": 6},
}


def numbers(*shape, seed=0):
    return torch.from_numpy(
        np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    )


def built(name, dropout=0.5, width=5):
    """Make a head with weights and batch statistics far from their defaults."""
    head = make_head(name, width, 3, dropout, HEADS[name]).eval()
    with torch.no_grad():
        for i, tensor in enumerate([*head.parameters(), *head.buffers()]):
            if tensor.is_floating_point():
                tensor.copy_(numbers(*tensor.shape, seed=i).abs() * 0.3 - 0.1)
        for norm in getattr(head, "norms", ()):
            norm.running_var += 1.0
    return head


def arrays(head):
    return {name: tensor.numpy() for name, tensor in head.state_dict().items()}


def dense(head, x, scales=None):
    """Run one text through the dense layers, its inputs times some scales."""
    weights = arrays(head)
    for i in range(len(head.dense)):
        x = x if scales is None else x * scales[i]
        x = weights[f"dense.{i}.weight"] @ x + weights[f"dense.{i}.bias"]
        if i < len(head.dense) - 1:
            x = np.maximum(x, 0)
    return x


def convolved(head, states):
    """Pool the maps of one text of real tokens (t, d), place by place."""
    weights, pooled = arrays(head), []
    for i, height in enumerate(HEADS["cnn"]["heights"]):
        kernel = weights[f"convolutions.{i}.weight"]  # (maps, d, height)
        rows = []
        for place in range(len(states)):
            total = weights[f"convolutions.{i}.bias"].copy()
            for row in range(height):
                if place + row < len(states):  # beyond the text there are zeros
                    total += kernel[:, :, row] @ states[place + row]
            norm = {key: weights[f"norms.{i}.{key}"] for key in ("weight", "bias")}
            mean = weights[f"norms.{i}.running_mean"]
            spread = np.sqrt(weights[f"norms.{i}.running_var"] + 1e-5)
            total = (total - mean) / spread * norm["weight"] + norm["bias"]
            rows.append(np.maximum(total, 0))
        pooled.append(np.max(rows, axis=0))
    return np.concatenate(pooled)


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_outputs_of_features(name):
    head, x = built(name), numbers(4, 5)
    expected = [dense(head, row) for row in x.numpy()]
    with torch.no_grad():
        np.testing.assert_allclose(head(x), expected, rtol=1e-4, atol=1e-6)


def test_outputs_of_convolutions():
    head, states = built("cnn"), numbers(4, 6, 5)
    lengths = [6, 2, 1, 4]  # some shorter than a filter is high
    mask = torch.arange(6) < torch.tensor(lengths)[:, None]
    expected = [
        dense(head, convolved(head, row[:n].numpy()))
        for row, n in zip(states, lengths, strict=True)
    ]
    with torch.no_grad():
        np.testing.assert_allclose(head(states, mask), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("filler", [0.0, 1e6, float("nan"), float("inf")])
def test_padding_does_not_reach_the_maps(filler):
    head, states = built("cnn"), numbers(2, 3, 5)
    wide = torch.full((2, 9, 5), filler)
    wide[:, :3] = states
    with torch.no_grad():
        expected = head(states)  # no mask: all tokens are real
        padded = head(wide, torch.arange(9).expand(2, 9) < 3)
    torch.testing.assert_close(padded, expected)


def test_batch_norm_learns_from_real_tokens_only():
    head = built("cnn").train()
    states, mask = numbers(2, 6, 5), torch.arange(6) < torch.tensor([[6], [2]])
    before = head.norms[0].running_mean.clone()
    weights = arrays(head)
    maps = states[mask].numpy() @ weights["convolutions.0.weight"][:, :, 0].T
    maps += weights["convolutions.0.bias"]  # height 1: token by token
    head(states, mask)
    learned = 0.9 * before.numpy() + 0.1 * maps.mean(axis=0)
    np.testing.assert_allclose(head.norms[0].running_mean, learned, rtol=1e-4)


def test_cnn_drops_out_numbers_of_the_maps_in_training():
    head = CNNHead(6, 2, 0.5, heights=(1,), n_maps=200).train()
    head.norms[0].eval()
    states = numbers(3, 1, 6)  # one token, so pooling takes what dropout leaves
    with torch.no_grad():
        dropped = head.summarize(states)
        kept = head.eval().summarize(states)
    positive = kept > 0
    zero = dropped[positive] == 0
    assert 0.4 < zero.float().mean() < 0.6
    torch.testing.assert_close(dropped[positive][~zero], 2 * kept[positive][~zero])


def test_cnn_is_that_of_the_paper_unless_told_otherwise():
    head = CNNHead(16, 2, 0.1)
    sizes = [tuple(c.weight.shape) for c in head.convolutions]
    assert sizes == [(64, 16, 3), (64, 16, 4), (64, 16, 5)]
    assert [tuple(layer.weight.shape) for layer in head.dense] == [(192, 192), (2, 192)]
    assert [norm.num_features for norm in head.norms] == [64, 64, 64]


def test_linear_head_starts_small():
    layer = LinearHead(768, 40, 0.1).dense[0]
    assert layer.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert not layer.bias.any()


def test_mlp_has_the_layers_it_is_told():
    widths = [layer.out_features for layer in MLPHead(8, 3, 0.1, (6, 4)).dense]
    assert widths == [6, 4, 3]
    assert [layer.out_features for layer in MLPHead(8, 3, 0.1).dense] == [256, 3]


@pytest.mark.parametrize("name", HEADS)
def test_dropout_is_on_the_input_of_each_linear_layer(name, monkeypatch):
    head = built(name, dropout=0.25, width=40)
    x = numbers(30, 6, 40).abs() if head.uses_tokens else numbers(30, 40).abs()
    taken = {}
    for i, layer in enumerate(head.dense):
        layer.register_forward_pre_hook(
            lambda module, args, i=i: taken.setdefault(i, args[0].detach())
        )
    with torch.no_grad():
        plain = head.summarize(x)
    monkeypatch.setattr(head, "summarize", lambda *args: plain)
    head.dropout.train()
    head(x)
    assert len(taken) == len(head.dense)
    kept = taken[0] != 0
    torch.testing.assert_close(taken[0][kept], plain[kept] / 0.75)
    for inputs in taken.values():
        assert (inputs == 0).float().mean() > 0.1


@pytest.mark.parametrize("name", HEADS)
def test_draws_are_those_of_a_loop_over_the_masks(name):
    head = built(name)
    x = numbers(4, 6, 5) if head.uses_tokens else numbers(4, 5)
    with torch.no_grad():
        summary = head.summarize(x)
        masks = head.draw_masks(9, torch.Generator().manual_seed(0))
        found = head.draw(summary, masks)
    scales = [mask.numpy() for mask in masks]
    expected = [
        [dense(head, row, [scale[t] for scale in scales]) for t in range(9)]
        for row in summary.numpy()
    ]
    assert found.shape == (4, 9, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.75])
def test_masks_drop_at_the_rate(rate):
    masks = MLPHead(60, 2, rate, (50,)).draw_masks(200, torch.Generator())
    assert [tuple(mask.shape) for mask in masks] == [(200, 60), (200, 50)]
    for mask in masks:
        values = torch.tensor([0.0, 1 / (1 - rate)])
        assert torch.isin(mask, values).all()
        assert (mask == 0).float().mean().item() == pytest.approx(rate, abs=0.02)


def test_masks_follow_the_generator():
    head = MLPHead(20, 2, 0.5, (10,))
    once, again, other = (
        head.draw_masks(3, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert all(map(torch.equal, once, again))
    assert not any(map(torch.equal, once, other))


class Tokens(nn.Module):
    """A head of one's own over the states of all tokens."""

    uses_tokens = True

    def __init__(self, in_features, n_outputs, dropout, scale=1.0):
        super().__init__()
        self.scale, self.out = scale, nn.Linear(in_features, n_outputs)
        self.drop = nn.Dropout(dropout)

    def forward(self, states, mask):
        assert mask.dtype == torch.bool
        assert mask.shape == states.shape[:2]
        first = states[:, 0] * self.scale
        return self.out(self.drop(first))


class Squashed(DenseHead):
    """A head of one's own that computes otherwise than its base."""

    def __init__(self, in_features, n_outputs, dropout):
        super().__init__((in_features, 4, n_outputs), dropout)

    def forward(self, x, mask=None):
        return torch.tanh(super().forward(x))


@pytest.mark.parametrize("head", [Tokens, Squashed])
def test_head_of_ones_own_by_class(tiny_bert, head):
    trained = classifier(tiny_bert, head=head).fit(X, Y)
    assert type(trained.net_.module_.head) is head
    assert trained.predict_proba(X).shape == (8, 2)
    assert np.ptp(trained.sample_proba(X, 5), axis=1).max() > 0


def test_class_that_does_not_take_what_a_head_is_given(tiny_bert):
    with pytest.raises(TypeError, match="'head_params' must be arguments of Bilinear"):
        classifier(tiny_bert, head=nn.Bilinear).fit(X, Y)


@pytest.mark.parametrize("head", [Tokens, Squashed])
def test_draws_of_a_head_of_ones_own_are_its_forward(tiny_bert, head):
    trained = classifier(tiny_bert, head=head, dropout=0.0).fit(X, Y)
    draws, proba = trained.sample_proba(X, 3), trained.predict_proba(X)
    for t in range(3):
        np.testing.assert_allclose(draws[:, t], proba, atol=1e-6)


def test_head_params_reach_the_head(tiny_bert):
    trained = classifier(tiny_bert, head=Tokens, head_params={"scale": 3.0}).fit(X, Y)
    assert trained.net_.module_.head.scale == 3.0
    trained = classifier(tiny_bert, head="mlp", head_params={"hidden_sizes": (9,)}).fit(
        X, Y
    )
    assert trained.transform(X).shape == (8, 9)


@pytest.mark.parametrize(
    ("head", "error", "message"),
    [
        ("dense", ValueError, "'head' must be one of 'linear', 'mlp', 'cnn' or an"),
        (nn.Linear(2, 2), TypeError, "got an instance of Linear. Pass the class"),
        (dict, TypeError, "'head' must be one of .+ got <class 'dict'>"),
        (3, TypeError, "'head' must be one of .+ got 3"),
    ],
)
def test_bad_head(head, error, message):
    with pytest.raises(error, match=message):
        make_head(head, 4, 2, 0.1)


def test_a_classifier_needs_a_head():
    with pytest.raises(ValueError, match=r"'head' parameter .+ Got None"):
        BertClassifier(head=None).fit(["a", "b"], [0, 1])


def test_bad_head_params():
    with pytest.raises(
        TypeError, match=r"arguments of MLPHead, which takes .+hidden_s"
    ):
        make_head("mlp", 4, 2, 0.1, {"sizes": (3,)})


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_folded_draws_up_to_what_a_softmax_does_not_see(n_outputs):
    head = LinearHead(5, n_outputs, dropout=0.5).eval()
    nn.init.normal_(head.dense[0].bias, generator=torch.Generator().manual_seed(1))
    masks, x = head.draw_masks(7, torch.Generator().manual_seed(0)), numbers(4, 5)
    with torch.no_grad():
        whole = head.draw(x, masks)
        relative = head.fold(masks, relative=True)(x)
    assert relative.shape == (4, 7, n_outputs)
    expected = whole if n_outputs == 1 else whole - whole[:, :, :1]
    torch.testing.assert_close(relative, expected)


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_heads_with_hidden_layers_know_no_differences(name):
    head = built(name)
    masks = head.draw_masks(3, torch.Generator().manual_seed(0))
    x = numbers(4, head.dense[0].in_features)
    with torch.no_grad():
        assert torch.equal(head.fold(masks, relative=True)(x), head.draw(x, masks))
