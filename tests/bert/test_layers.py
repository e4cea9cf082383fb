"""Freezing: which parameters train, which move, and what may be computed once."""

import copy
import functools
import pickle
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from skactive.bert._network import LayerStack, resolve_freeze

from ._helpers import (
    ARCHITECTURES,
    NO_DROPOUT,
    grid,
    layer_of,
    module_of,
    network,
    padded,
    pretrained,
    some,
)
from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import review_classifier as classifier

DEPTH = 3
ALL_VALUES = [-3, -2, -1, 0, 1, 2, 3, "all"]
BY_ARCHITECTURE = [
    (kind, freeze)
    for kind in ARCHITECTURES
    for freeze in ALL_VALUES
    if kind != "Albert" or freeze in (-3, 0, 3, "all")  # it has one layer, three times
]
USUAL = (1, -1, "all")
CUTS = [(k, cut) for k, cut in BY_ARCHITECTURE if cut in (1, 2, 3)]
# Whose layers are called and found differently from those of BERT.
VARIED = ("DistilBert", "DebertaV2", "ModernBert")
BELOW_THE_TOP = grid(
    [(kind, cut) for kind, cut in CUTS if cut < DEPTH],
    lambda kind, cut: kind == "Bert" or (kind in VARIED and cut == 2),
)


def is_frozen(name, freeze):
    """Say in the words of the documentation whether a parameter is frozen."""
    layer = layer_of(name)
    if layer == "head" or freeze == 0:
        return False
    if freeze == "all":
        return True
    if layer == "rest":
        return freeze > 0
    if layer == "top":  # goes with the last layer
        layer = DEPTH - 1
    return layer < freeze if freeze > 0 else layer >= DEPTH + freeze


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "freeze"),
    grid(
        BY_ARCHITECTURE,
        lambda kind, freeze: (
            kind == "Bert"
            or (kind in VARIED and freeze == 1)
            or (kind, freeze) == ("Albert", 3)
        ),
    ),
)
def test_freeze_says_which_parameters_train(tiny_encoder, kind, freeze):
    parameters = dict(network(tiny_encoder(kind), freeze=freeze).named_parameters())
    found = {name for name, p in parameters.items() if not p.requires_grad}
    expected = {name for name in parameters if is_frozen(name, freeze)}
    assert found == expected
    assert len({layer_of(name) for name in parameters}) >= (
        3 if kind == "Albert" else 5
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "freeze", "cached"),
    grid(
        [
            (kind, freeze, cached)
            for kind, freeze in BY_ARCHITECTURE
            if freeze in (*USUAL, 0, -3)
            for cached in (True, False)
        ],
        # Albert's layers are frozen together.
        lambda kind, freeze, cached: (
            freeze in (1, -1) and (cached or freeze == 1)
            if kind == "Bert"
            else cached and (kind, freeze) in {("Albert", -3), ("ModernBert", 1)}
        ),
    ),
)
def test_freeze_says_which_parameters_move(tiny_encoder, kind, freeze, cached):
    model = tiny_encoder(kind)
    trained = classifier(model, freeze=freeze, cache_frozen=cached, max_epochs=1).fit(
        X, Y
    )
    after = trained.net_.module_.state_dict()
    moved, stayed = set(), set()
    for name, before in pretrained(model).items():
        if is_frozen(name, freeze):
            assert torch.equal(after[name], before), name
            stayed.add(layer_of(name))
        elif not torch.equal(after[name], before):
            moved.add(layer_of(name))
    everything = {layer_of(name) for name in pretrained(model)}
    assert moved == everything - stayed


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "freeze", "head"),
    grid(
        [(*case, head) for case in CUTS for head in ("linear", "cnn")],
        lambda kind, freeze, head: (
            (kind, freeze, head)
            in {
                *(("Bert", 1, "linear"), ("Bert", 3, "cnn")),
                *(("DebertaV2", 2, "linear"), ("ModernBert", 2, "linear")),
            }
        ),
    ),
)
def test_freeze_with_cached_activations_trains_alike(tiny_encoder, kind, freeze, head):
    model = tiny_encoder(kind, **NO_DROPOUT)
    losses, probabilities = [], []
    for cached in (True, False):
        trained = classifier(
            model, freeze=freeze, head=head, pooling="mean", cache_frozen=cached
        ).fit(X, Y)
        losses.append([epoch["train_loss"] for epoch in trained.history_])
        probabilities.append(trained.predict_proba(X))
    np.testing.assert_allclose(losses[0], losses[1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(probabilities[0], probabilities[1], atol=1e-4)
    assert losses[0][0] != losses[0][1]


@functools.cache
def frozen_network(model, cut, pooling="mean"):
    """Build a network once, for tests that leave it as it is."""
    return network(model, freeze=cut, pooling=pooling)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "cut"), BELOW_THE_TOP)
def test_freeze_cut_keeps_what_enters_the_layer(tiny_encoder, kind, cut):
    model = tiny_encoder(kind)
    batch = padded(model, X)
    with torch.no_grad():
        plain = module_of(model)
        states = plain(**batch, output_hidden_states=True).hidden_states[cut]
    kept = frozen_network(model, cut).below_cut(batch)
    real = batch["attention_mask"].bool()
    torch.testing.assert_close(kept[real], states[real])


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "cut", "pooling"),
    grid(
        [(*case, pooling) for case in CUTS for pooling in ("mean", "cls", "max")],
        lambda kind, cut, pooling: (
            ("mean", "cls", "max").index(pooling) == cut - 1
            if kind == "Bert"
            else kind in VARIED and (cut, pooling) == (2, "mean")
        ),
    ),
)
def test_freeze_cut_and_the_rest_make_the_whole(tiny_encoder, kind, cut, pooling):
    model = tiny_encoder(kind)
    batch = padded(model, X)
    whole = frozen_network(model, cut, pooling)
    with torch.no_grad():
        expected = whole(**batch)
        activations = whole.below_cut(batch)
        torch.testing.assert_close(whole(activations=activations, **batch), expected)


@pytest.mark.parametrize(("kind", "cut"), BELOW_THE_TOP)
def test_freeze_cut_ignores_what_stands_for_padding(tiny_encoder, kind, cut):
    model = tiny_encoder(kind)
    batch = padded(model, X)
    whole = frozen_network(model, cut)
    with torch.no_grad():
        activations = whole.below_cut(batch)
        activations[batch["attention_mask"] == 0] = 0.0
        torch.testing.assert_close(
            whole(activations=activations, **batch), whole(**batch)
        )


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", some([k for k in ARCHITECTURES if k != "Albert"], "Bert", *VARIED)
)
def test_freeze_cut_gives_the_layers_above_their_gradients(tiny_encoder, kind):
    model = tiny_encoder(kind)
    batch = padded(model, X)
    gradients = []
    for with_activations in (True, False):
        part = network(model, freeze=1)
        activations = part.below_cut(batch) if with_activations else None
        part(activations=activations, **batch).square().sum().backward()
        gradients.append({n: p.grad for n, p in part.named_parameters()})
    for name, gradient in gradients[0].items():
        if gradients[1][name] is None:
            assert gradient is None
        else:
            torch.testing.assert_close(
                gradient, gradients[1][name], rtol=1e-3, atol=1e-5
            )


@pytest.mark.parametrize(
    ("freeze", "layers", "embeddings"),
    [
        (0, [], False),
        (1, [0], True),
        (np.int64(3), [0, 1, 2], True),
        (-1, [2], False),
        (-3, [0, 1, 2], False),
        ("all", [0, 1, 2], True),
    ],
)
def test_freeze_resolved(freeze, layers, embeddings):
    frozen, with_embeddings = resolve_freeze(freeze, DEPTH)
    assert list(frozen) == layers
    assert bool(with_embeddings) is embeddings


@pytest.mark.parametrize("freeze", [4, -4, "some", True, 1.0, None])
def test_freeze_out_of_range_names_the_depth(freeze):
    with pytest.raises(
        ValueError, match=r"'freeze' must be 'all' or an int in \[-3, 3"
    ):
        resolve_freeze(freeze, DEPTH)


def test_freeze_out_of_range_in_fit(tiny_bert):
    with pytest.raises(ValueError, match="the model has 3 layers"):
        classifier(tiny_bert, freeze=12).fit(X, Y)


@pytest.mark.parametrize("freeze", [1, 2, -1, -2])
def test_freeze_of_a_part_of_shared_layers(tiny_encoder, freeze):
    with pytest.raises(ValueError, match="must be 0, 'all' or ±3 for AlbertModel"):
        network(tiny_encoder("Albert"), freeze=freeze)


@pytest.mark.parametrize("freeze", [1, -1, -3])
def test_freeze_of_an_unknown_architecture_says_how_to_name_it(tiny_encoder, freeze):
    message = r"got .+ for XLMModel .+ \(attentions, .+layers_attr='encoder.layer'"
    with pytest.raises(ValueError, match=message):
        network(tiny_encoder("XLM"), freeze=freeze)


@pytest.mark.parametrize("freeze", [0, 3, "all"])
def test_freeze_of_an_unknown_architecture_as_a_whole(tiny_encoder, freeze):
    model = tiny_encoder("XLM")
    trained = classifier(model, freeze=freeze).fit(X, Y)
    changes = trained.layer_changes_
    assert changes["layer"].tolist() == ["layers", "dense.0"]
    assert (changes["mean"][0] == 0) == (freeze != 0)
    assert changes["mean"][1] > 0


class TwoStacks(nn.Module):
    """An encoder that does not say which of its two lists is the stack."""

    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(num_hidden_layers=DEPTH)
        self.a = nn.ModuleList(nn.Linear(2, 2) for _ in range(DEPTH))
        self.b = nn.ModuleList(nn.Linear(2, 2) for _ in range(DEPTH))
        self.short = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))


def test_freeze_where_the_layers_are_named():
    encoder = TwoStacks()
    assert LayerStack(encoder, "b").freeze(2) == 2
    trains = {name for name, p in encoder.named_parameters() if p.requires_grad}
    assert trains == {"b.2.weight", "b.2.bias"}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("c", r"must be the path of the layers in TwoStacks, got 'c', which it does"),
        ("a.0", r"must name a ModuleList of 3 layers, got 'a.0', a Linear\."),
        (
            "short",
            r"must name a ModuleList of 3 layers, got 'short', a ModuleList of 2\.",
        ),
    ],
)
def test_freeze_where_the_layers_are_named_wrongly(path, message):
    with pytest.raises(ValueError, match=f"'layers_attr' {message}"):
        LayerStack(TwoStacks(), path)


def test_freeze_takes_layers_attr_from_the_estimator(tiny_bert):
    trained = classifier(tiny_bert, freeze=1, layers_attr="encoder.layer").fit(X, Y)
    assert trained.layer_changes_["mean"][1] == 0


def test_freeze_leaves_the_encoder_as_it_was_after_an_error(tiny_bert):
    part = network(tiny_bert, freeze=2)
    batch = padded(tiny_bert, X)
    with torch.no_grad():
        expected = part(**batch)
        activations = part.below_cut(batch)
        with pytest.raises(RuntimeError, match="size"):
            part(activations=activations[:, :2], **batch)
        with pytest.raises(IndexError):
            part.below_cut({"input_ids": batch["input_ids"] + 10_000})
        torch.testing.assert_close(part(**batch), expected)
    assert not part.training


def test_freeze_looks_at_the_layers_without_moving_a_generator(tiny_bert):
    part = network(tiny_bert, freeze=1).train()
    modes = [module.training for module in part.modules()]
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    part.stack._output_length()
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert random.getstate() == python_state
    assert [module.training for module in part.modules()] == modes


@pytest.mark.parametrize(
    "make", [copy.deepcopy, lambda part: pickle.loads(pickle.dumps(part))]
)
def test_freeze_holds_in_copies(tiny_bert, make):
    part = network(tiny_bert, freeze=2)
    batch = padded(tiny_bert, X)
    twin = make(part)
    with torch.no_grad():
        out = twin(activations=twin.below_cut(batch), **batch)
        torch.testing.assert_close(out, part(**batch))
    assert twin.stack.encoder is twin.encoder


def test_freeze_keeps_cached_layers_in_evaluation_mode(tiny_bert):
    part = network(tiny_bert, freeze=2)
    part.frozen_in_eval = True
    part.train()
    layers = part.encoder.encoder.layer
    assert [layer.training for layer in layers] == [False, False, True]
    assert not part.encoder.embeddings.training
    assert part.head.training
    assert layers[2].attention.self.dropout.training
