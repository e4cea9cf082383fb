"""Training in parts: their sizes, and gradients of the whole batch as the oracle."""

import copy

import numpy as np
import pytest
import torch
from transformers import AutoModel

from skactive._encoders._tokens import Tokens, pack
from skactive.bert._parts import cut_evenly, each_in_parts

from ._helpers import NO_DROPOUT

LENGTHS = [40, 7, 33, 50, 21, 50, 12, 45, 38, 60, 9, 44, 30, 51, 17, 50]


def make_batch(lengths):
    rng = np.random.default_rng(0)
    ids = [rng.integers(5, 90, n).tolist() for n in lengths]
    types = [[0] * n for n in lengths]
    return pack(Tokens(ids, types, 0), np.arange(len(lengths)), "cpu")


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr("skactive.bert._parts._TOKENS", 32)


@pytest.mark.parametrize(
    ("lengths", "n_parts"),
    [
        ([9], 1),
        ([50] * 3, 1),
        ([50] * 4, 2),
        ([50] * 16, 4),
        ([500], 1),
        ([1] * 800, 4),
    ],
)
def test_parts_have_about_the_same_number_of_tokens(lengths, n_parts):
    parts = cut_evenly(lengths)
    assert len(parts) == n_parts
    assert sorted(i for part in parts for i in part) == list(range(len(lengths)))
    sizes = [sum(lengths[i] for i in part) for part in parts]
    assert max(sizes) - min(sizes) <= max(lengths)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Bert", "MPNet"])
@pytest.mark.parametrize(
    ("frozen", "stop"), [((), 3), (("embeddings", "layer.0."), 3), (("layer.2.",), 3)]
)
def test_gradients_are_those_of_the_whole_batch(
    tiny_encoder, small_parts, kind, frozen, stop
):
    model = AutoModel.from_pretrained(tiny_encoder(kind, **NO_DROPOUT)).train()
    model.pooler = None
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not any(part in name for part in frozen))
    batch, other = make_batch(LENGTHS), copy.deepcopy(model)
    assert len(cut_evenly(LENGTHS)) == 16
    # transformers' own model, a text at a time, in double precision
    ends = np.cumsum(LENGTHS)
    own = other.double()
    expected = [[] for _ in range(stop + 1)]
    for start, end in zip(ends - LENGTHS, ends, strict=True):
        inputs = {"input_ids": batch["input_ids"][None, start:end]}
        if kind == "Bert":
            inputs["token_type_ids"] = batch["token_type_ids"][None, start:end]
        for i, states in enumerate(own(**inputs, output_hidden_states=True)[1]):
            expected[i].append(states[0])
    expected = [torch.cat(states) for states in expected]
    got = list(
        each_in_parts(
            model, batch, start=0, stop=stop, entering=None, dtype=torch.float32
        )
    )
    generator = torch.Generator().manual_seed(0)
    factors = [torch.randn(x.shape, generator=generator) for x in got]
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-5)
    for states in (got, expected):  # the last states and some between
        sum((states[i] * factors[i]).sum() for i in (1, stop)).backward()
    named = dict(own.named_parameters())
    assert any(parameter.grad is not None for parameter in model.parameters())
    for name, parameter in model.named_parameters():
        theirs = named[name].grad
        assert (parameter.grad is None) == (theirs is None), name
        if theirs is not None:
            scale = max(1.0, float(theirs.abs().max()))
            assert (parameter.grad - theirs).abs().max() <= 1e-4 * scale, name


def test_dropout_draws_anew_for_each_part_and_follows_the_seed(
    tiny_encoder, small_parts
):
    model = AutoModel.from_pretrained(tiny_encoder("Bert")).train()
    batch = make_batch([24] * 16)
    batch["input_ids"] = batch["input_ids"][:24].repeat(16)
    states = torch.zeros(24 * 16, model.config.hidden_size)
    states[:] = model.embeddings.LayerNorm.weight.detach()

    def run(seed):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            *_, last = each_in_parts(
                model, batch, start=0, stop=3, entering=states, dtype=torch.float32
            )
        return last.detach().unflatten(0, (16, 24))

    first = run(0)
    assert torch.equal(first, run(0))
    assert not torch.equal(first, run(1))
    assert len(torch.unique(first.flatten(1), dim=0)) == 16  # no two texts alike
