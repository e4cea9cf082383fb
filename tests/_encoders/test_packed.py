"""The packed encoder against transformers itself, on the same weights."""

import copy
import inspect
import shutil

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers import AutoModel

from skactive._encoders._encoder import PackedEncoder, linear
from skactive._encoders._pretrained import open_checkpoint
from skactive._encoders._tokens import Tokens, collate, pack, tokenize

from ..bert._helpers import grid, slow, some

pytestmark = pytest.mark.cpu_only("only there texts are packed")

KINDS = ["Bert", "Roberta", "XLMRoberta", "Camembert", "Electra", "MPNet"]
OTHERS = ["DistilBert", "Albert", "DebertaV2", "ModernBert"]
BATCHES = {
    "one token": [1],
    "one text": [9],
    "equal lengths": [6, 6, 6],
    "longest first": [30, 12, 12, 5, 1, 1],
    "any order": [3, 30, 3, 1, 12, 3],
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def load(tiny_encoder, kind, **overrides):
    if kind == "Electra":
        overrides["embedding_size"] = 8  # so that there is a projection
    model = AutoModel.from_pretrained(tiny_encoder(kind, **overrides)).eval()
    vary_norms(model)
    return model


def vary_norms(model):
    """Give each LayerNorm weights of its own, where all start as ones."""
    generator = torch.Generator().manual_seed(1)
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            noise = torch.randn(part.weight.shape, generator=generator)
            part.weight.data += 0.1 * noise


def make_tokens(lengths, seed=0):
    """Random tokens; in long texts also the ids 0 and 1, which pad elsewhere."""
    rng = np.random.default_rng(seed)
    ids = [rng.integers(5, 90, n).tolist() for n in lengths]
    for row in ids:
        if len(row) > 8:
            row[3], row[5] = 0, 1
    return Tokens(ids, [rng.integers(0, 2, n).tolist() for n in lengths], 0)


def both(tokens):
    """Give the same texts padded and packed, and where the padded have tokens."""
    order = np.arange(len(tokens.ids))
    padded = collate(tokens, order, 0, "cpu")
    mask = padded.get("attention_mask", torch.ones_like(padded["input_ids"])).bool()
    return padded, pack(tokens, order, "cpu"), mask


def plain_states(model, padded, mask):
    """Take from transformers itself the states (T, d) before and after each layer."""
    accepted = inspect.signature(model.forward).parameters
    inputs = {name: tensor for name, tensor in padded.items() if name in accepted}
    states = model(**inputs, output_hidden_states=True).hidden_states
    return [state[mask] for state in states]


def last_states(encoder, batch, **reach):
    *_, last = encoder.each(batch, **reach)
    return last


def assert_close(got, expected, tolerance=1e-5):
    for mine, theirs in zip(got, expected, strict=True):
        scale = max(1.0, float(theirs.abs().max()))
        assert float((mine - theirs).abs().max()) <= tolerance * scale


@pytest.mark.parametrize("kind", some(KINDS, "Bert", "MPNet"))
def test_every_layer_is_that_of_transformers(tiny_encoder, kind):
    model = load(tiny_encoder, kind)
    for lengths in BATCHES.values():
        padded, packed, mask = both(make_tokens(lengths))
        with torch.no_grad():
            expected = plain_states(model, padded, mask)
            got = list(PackedEncoder(model).each(packed))
        assert_close(got, expected)


@pytest.mark.parametrize("pooling", ["cls", "last", slow(("cls",))])
@pytest.mark.parametrize("kind", some(KINDS, "Bert", "MPNet"))
def test_the_last_layer_runs_on_the_pooled_tokens_alone(tiny_encoder, kind, pooling):
    model = load(tiny_encoder, kind)
    for lengths in BATCHES.values():
        padded, packed, mask = both(make_tokens(lengths))
        ends = np.cumsum(lengths)
        rows = ends - 1 if pooling == "last" else ends - lengths
        with torch.no_grad():
            *below, top = plain_states(model, padded, mask)
            got = list(PackedEncoder(model).each(packed, pooling=pooling))
        assert len(got[-1]) == len(lengths)
        assert_close(got, [*below, top[rows]])


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_without_token_types(tiny_encoder, kind):
    model = load(tiny_encoder, kind)
    padded, packed, mask = both(make_tokens([7, 4])._replace(types=None))
    with torch.no_grad():
        got = list(PackedEncoder(model).each(packed))
        assert_close(got, plain_states(model, padded, mask))


def test_more_tokens_in_a_batch_than_the_model_has_positions(tiny_encoder):
    model = load(tiny_encoder, "Bert")
    padded, packed, mask = both(make_tokens([60] * 9)._replace(types=None))
    with torch.no_grad():
        got = list(PackedEncoder(model).each(packed))
        assert_close(got, plain_states(model, padded, mask))


@pytest.mark.parametrize("activation", ["relu", "gelu_new", "silu"])
def test_other_activations(tiny_encoder, activation):
    model = load(tiny_encoder, "Bert", hidden_act=activation)
    padded, packed, mask = both(make_tokens([7, 4]))
    assert PackedEncoder.supports(model)
    with torch.no_grad():
        got = list(PackedEncoder(model).each(packed))
        assert_close(got, plain_states(model, padded, mask))


@pytest.mark.parametrize("kind", ["Bert", "Electra", "MPNet"])
def test_a_cut_changes_nothing(tiny_encoder, kind):
    encoder = PackedEncoder(load(tiny_encoder, kind))
    _, packed, _ = both(make_tokens(BATCHES["any order"]))
    with torch.no_grad():
        whole = list(encoder.each(packed))
        lengths_only = {"lengths": packed["lengths"]}
        for cut in (0, 1, 2, 3):
            bottom = last_states(encoder, packed, stop=cut)
            assert torch.equal(bottom, whole[cut])
            top = last_states(encoder, lengths_only, start=cut, entering=bottom)
            assert torch.equal(top, whole[-1])


@pytest.mark.parametrize("grad", [True, slow(False)])
def test_few_numbers_of_rows_reach_the_products(tiny_encoder, monkeypatch, grad):
    """Each number costs memory that is never given back."""
    model, rows = load(tiny_encoder, "Bert"), set()

    def look(layer, x):
        rows.add(len(x))
        return linear(layer, x)

    monkeypatch.setattr("skactive._encoders._encoder.linear", look)
    for n_texts in range(1, 20):
        padded, packed, mask = both(make_tokens([7] * n_texts + [3]))
        with torch.set_grad_enabled(grad):
            got = list(PackedEncoder(model).each(packed))
            assert_close(got, plain_states(model, padded, mask))
    assert rows == set(range(16, 145, 16))


@pytest.mark.slow
@pytest.mark.weights
def test_minilm_in_float32(minilm):
    model = AutoModel.from_pretrained(minilm).eval()
    padded, packed, mask = both(minilm_tokens(minilm))
    with torch.inference_mode():
        expected = plain_states(model, padded, mask)
        got = list(PackedEncoder(model).each(packed))
    assert_close(got, expected, tolerance=2e-6)


@pytest.mark.slow
@pytest.mark.weights
@pytest.mark.parametrize(("rounds_norms", "cosine"), [(True, 0.9998), (False, 0.99994)])
def test_minilm_in_bfloat16(minilm, rounds_norms, cosine):
    model = AutoModel.from_pretrained(minilm).eval()
    padded, packed, mask = both(minilm_tokens(minilm))
    if rounds_norms:
        rounded = copy.deepcopy(model).to(torch.bfloat16)
    else:
        rounded = open_checkpoint(minilm).module(torch.device("cpu"), torch.bfloat16)
    with torch.inference_mode():
        expected = plain_states(model, padded, mask)
        got = list(PackedEncoder(rounded).each(packed))
    lengths = packed["lengths"].tolist()
    for mine, theirs in zip(got, expected, strict=True):
        mine = torch.stack([part.mean(0) for part in mine.float().split(lengths)])
        theirs = torch.stack([part.mean(0) for part in theirs.split(lengths)])
        assert functional.cosine_similarity(mine, theirs).min() >= cosine


@pytest.mark.parametrize("kind", ["Bert", slow("Electra"), slow("MPNet"), "DistilBert"])
def test_a_checkpoint_keeps_norms_exact_where_they_are_packed(
    tiny_encoder, kind, tmp_path
):
    plain = load(tiny_encoder, kind)
    shutil.copytree(plain.config._name_or_path, tmp_path, dirs_exist_ok=True)
    plain.save_pretrained(tmp_path)
    model = open_checkpoint(tmp_path).module(torch.device("cpu"), torch.bfloat16)
    exact = dict(plain.named_parameters())
    for name, parameter in model.named_parameters():
        is_norm = "LayerNorm" in name and kind != "DistilBert"
        assert parameter.dtype == (torch.float32 if is_norm else torch.bfloat16), name
        assert torch.equal(parameter, exact[name].to(parameter.dtype)), name
        assert not parameter.requires_grad
    # Such a model still runs as transformers has it.
    padded, packed, mask = both(make_tokens([7, 4])._replace(types=None))
    with torch.no_grad():
        states = plain_states(model, padded, mask)
        if PackedEncoder.supports(model):
            assert_close([last_states(PackedEncoder(model), packed)], states[-1:], 0.2)


def minilm_tokens(folder):
    docs = [functional.linear.__doc__, nn.Linear.__doc__, np.mean.__doc__]
    texts = [line.strip() for doc in docs for line in doc.splitlines() if line.strip()]
    return tokenize(open_checkpoint(folder), texts[:60], 64)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "frozen"),
    grid(
        [
            (kind, frozen)
            for kind in ("Bert", "Roberta", "Electra", "MPNet")
            for frozen in ((), ("embeddings", "layer.0."), ("layer.2.",))
        ],
        lambda kind, frozen: kind == "Bert" or (kind == "MPNet" and not frozen),
    ),
)
def test_gradients_are_those_of_transformers(tiny_encoder, kind, frozen):
    model = load(tiny_encoder, kind, **NO_DROPOUT).train()
    model.pooler = None
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not any(part in name for part in frozen))
    padded, packed, mask = both(make_tokens(BATCHES["any order"]))
    other = copy.deepcopy(model)
    expected = plain_states(model, padded, mask)[-1]
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(0))
    (expected * weights).sum().backward()
    (last_states(PackedEncoder(other), packed) * weights).sum().backward()
    named = dict(other.named_parameters())
    assert any(parameter.grad is not None for parameter in named.values())
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            assert named[name].grad is None, name
        else:
            assert_close([named[name].grad], [parameter.grad], tolerance=5e-5)


def rates_met(model, packed, monkeypatch):
    """List the rates that dropout runs with; attention's own come apart."""
    hidden, attention = [], []
    dropout, attend = functional.dropout, functional.scaled_dot_product_attention

    def note_dropout(x, p=0.5, training=True, inplace=False):
        hidden.append(p if training else 0.0)
        return dropout(x, p, training, inplace)

    def note_attention(*args, dropout_p=0.0, **kwargs):
        attention.append(dropout_p)
        return attend(*args, dropout_p=dropout_p, **kwargs)

    monkeypatch.setattr(functional, "dropout", note_dropout)
    monkeypatch.setattr(functional, "scaled_dot_product_attention", note_attention)
    last_states(PackedEncoder(model), packed)
    return hidden, attention


@pytest.mark.parametrize("kind", some(KINDS, "Bert", "MPNet"))
def test_training_mode_drops_at_the_rates_of_the_modules(
    tiny_encoder, kind, monkeypatch
):
    model = load(
        tiny_encoder, kind, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.4
    )
    _, packed, _ = both(make_tokens([5, 5]))
    assert rates_met(model, packed, monkeypatch) == ([0.0] * 7, [0.0] * 3)
    model.train()
    model.encoder.layer[0].eval()
    expected = [0.2, 0.0, 0.0, *[0.2] * 4], [0.0, 0.4, 0.4]
    assert rates_met(model, packed, monkeypatch) == expected


@pytest.mark.long
@pytest.mark.parametrize("where", ["hidden", "attention_probs"])
@pytest.mark.parametrize("kind", ["Bert", "MPNet"])
def test_dropout_moves_the_states_in_training_mode_only(tiny_encoder, kind, where):
    rates = NO_DROPOUT | {f"{where}_dropout_prob": 0.3}
    model = load(tiny_encoder, kind, **rates)
    encoder = PackedEncoder(model)
    _, packed, _ = both(make_tokens([6, 4]))
    with torch.no_grad():
        assert torch.equal(last_states(encoder, packed), last_states(encoder, packed))
        model.train()
        assert not torch.equal(
            last_states(encoder, packed), last_states(encoder, packed)
        )


def test_weights_are_read_anew_each_time(tiny_encoder):
    model = load(tiny_encoder, "Bert")
    encoder = PackedEncoder(model)
    padded, packed, mask = both(make_tokens([6, 4]))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.9)
        got = list(encoder.each(packed))
        assert_close(got, plain_states(model, padded, mask))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_supports_a_model_also_once_asked_for_its_states(tiny_encoder, kind):
    model = load(tiny_encoder, kind)
    assert PackedEncoder.supports(model)
    model(torch.tensor([[2, 3]]), output_hidden_states=True, output_attentions=True)
    assert PackedEncoder.supports(model)


@pytest.mark.parametrize("kind", OTHERS)
def test_does_not_support_other_architectures(tiny_encoder, kind):
    assert not PackedEncoder.supports(load(tiny_encoder, kind))


class _Adapted(nn.Linear):
    pass


def _exchange_linear(model):
    model.encoder.layer[1].attention.self.query = _Adapted(16, 16)


def _hook_layer(model):
    model.encoder.layer[1].register_forward_hook(lambda *args: None)


def _hook_before(model):
    model.embeddings.register_forward_pre_hook(lambda *args: None)


def _hook_backward(model):
    model.encoder.layer[2].register_full_backward_hook(lambda *args: None)


def _patch_forward(model):
    layer = model.encoder.layer[0]
    layer.forward = layer.forward


def _quantise(model):
    linear = model.encoder.layer[0].intermediate.dense
    nn.utils.parametrize.register_parametrization(linear, "weight", nn.Identity())


def _checkpoint(model):
    model.gradient_checkpointing_enable()


def _subclass(model):
    model.__class__ = type("BertModel", (type(model),), {})


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        *(_exchange_linear, _hook_layer, _hook_before, _hook_backward),
        *(_patch_forward, _quantise, _checkpoint, _subclass),
    ],
)
def test_does_not_support_a_changed_model(tiny_encoder, change):
    model = load(tiny_encoder, "Bert")
    change(model)
    assert not PackedEncoder.supports(model)


@pytest.mark.parametrize(
    "overrides",
    [
        {"is_decoder": True},
        {"is_decoder": True, "add_cross_attention": True},
    ],
    ids=lambda overrides: "+".join(overrides),
)
def test_does_not_support_decoders(tiny_encoder, overrides):
    assert not PackedEncoder.supports(load(tiny_encoder, "Bert", **overrides))


def test_does_not_support_relative_positions_of_old_models(tiny_encoder):
    model = load(tiny_encoder, "Bert")
    model.config.position_embedding_type = "relative_key"
    assert not PackedEncoder.supports(model)
