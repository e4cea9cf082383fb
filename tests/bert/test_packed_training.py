"""Training and prediction on packed texts, against padded ones and plain loops."""

import copy

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from skactive._encoders._tokens import Batches
from skactive._utils._repeatable import fork_torch
from skactive.bert import clear_cache
from skactive.bert._network import TextNetwork
from skactive.bert._training import adamw

from ._helpers import (
    ARCHITECTURES,
    NO_DROPOUT,
    assert_same_weights,
    grid,
    network,
    padded,
    slow,
    some,
    weights_of,
)
from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import review_classifier as classifier
from .conftest import Recorder

pytestmark = [
    pytest.mark.usefixtures("fresh_cache"),
    pytest.mark.cpu_only("only there texts are packed in training"),
]
PACKED = ("Bert", "Roberta", "Electra", "MPNet")
POOLINGS, HEADS, CUTS = ("cls", "mean", "max"), ("linear", "mlp", "cnn"), (0, 2, "all")
FREEZE = [0, 1, 2, "all", -1, -3]


class Steps(Recorder):
    """Note the loss of each step and the inputs of each batch."""

    def on_batch_end(self, net, batch=None, loss=None, training=False, **kwargs):
        self.seen.append((training, batch[0], loss.item()))

    def on_train_begin(self, net, **kwargs):
        self.head = copy.deepcopy(net.module_.head)
        self.seen.append(self.head)


@pytest.fixture
def only_padded(monkeypatch):
    """Make every batch a padded one from now on: `only_padded()`."""

    def switch():
        clear_cache()
        monkeypatch.setattr(TextNetwork, "takes_packed", False)

    return switch


def fitted(model, **params):
    """Train without dropout; the estimator, and the losses of its steps."""
    seen = []
    settings = {"dropout": 0.0, "callbacks": [Steps(seen)], "batch_size": 3}
    trained = classifier(model, **{**settings, **params}).fit(X, Y)
    return trained, np.array([step[2] for step in seen[1:]]), seen


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "freeze", "cache_frozen"),
    grid(
        [
            (kind, freeze, cache_frozen)
            for kind in ("Bert", "Roberta")
            for freeze in FREEZE
            for cache_frozen in (True, False)
        ],
        # Without a frozen bottom there is nothing to cache.
        lambda kind, freeze, cache_frozen: (
            kind == "Bert" and (freeze == 2 or (freeze == 0 and cache_frozen))
        ),
    ),
)
def test_packed_training_is_padded_training(
    tiny_encoder, kind, freeze, cache_frozen, only_padded
):
    model = tiny_encoder(kind, **NO_DROPOUT)
    settings = {"freeze": freeze, "cache_frozen": cache_frozen, "pooling": "mean"}
    packed, losses, seen = fitted(model, **settings)
    assert all("lengths" in inputs for _, inputs, _ in seen[1:])
    answers = packed.predict_proba(X), packed.transform(X)
    only_padded()
    plain, expected, seen = fitted(model, **settings)
    assert not any("lengths" in inputs for _, inputs, _ in seen[1:])
    assert len(losses) == 6
    np.testing.assert_allclose(losses, expected, atol=1e-5)
    assert np.ptp(losses) > 1e-2
    np.testing.assert_allclose(answers[0], plain.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(answers[1], plain.transform(X), atol=1e-3)
    for key, values in packed.layer_changes_.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(
                values, plain.layer_changes_[key], rtol=0.02, atol=1e-7
            )
            assert ((values == 0) == (plain.layer_changes_[key] == 0)).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("pooling", "head", "freeze"),
    grid(
        [
            (pooling, head, freeze)
            for pooling in POOLINGS
            for head in HEADS
            for freeze in CUTS
        ],
        # Every value once.
        lambda pooling, head, freeze: (
            POOLINGS.index(pooling) == HEADS.index(head) == CUTS.index(freeze)
        ),
    ),
)
def test_every_head_and_pooling_is_as_on_padded_batches(
    tiny_encoder, pooling, head, freeze, only_padded
):
    model = tiny_encoder("Bert", **NO_DROPOUT)
    settings = {"freeze": freeze, "pooling": pooling, "head": head, "max_epochs": 1}
    packed, losses, _ = fitted(model, **settings)
    proba = packed.predict_proba(X)
    only_padded()
    plain, expected, _ = fitted(model, **settings)
    # Rounding may decide which of two tokens has the maximum, and gets the gradient.
    atol = 1e-3 if pooling == "max" else 1e-4
    np.testing.assert_allclose(losses, expected, atol=atol)
    np.testing.assert_allclose(proba, plain.predict_proba(X), atol=10 * atol)


def by_transformers(model, positions, head, *, freeze, lr):
    """Train transformers' own model on batches of these positions; the losses."""
    encoder = AutoModel.from_pretrained(model).train()
    tokenizer = AutoTokenizer.from_pretrained(model)
    head = copy.deepcopy(head).train()
    n = encoder.config.num_hidden_layers if freeze == "all" else freeze
    if n:  # all that the first free layer rests on
        encoder.requires_grad_(False)
        encoder.encoder.layer[n:].requires_grad_(True)
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(
        [p for p in parameters if p.requires_grad], lr=lr, weight_decay=0.0
    )
    losses = []
    for chosen in positions:
        batch = tokenizer([X[i] for i in chosen], padding=True, return_tensors="pt")
        states = encoder(batch["input_ids"], batch["attention_mask"])[0]
        outputs = head(states[:, 0])
        loss = torch.nn.functional.cross_entropy(outputs, torch.from_numpy(Y[chosen]))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        assert norm > 0
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "freeze"),
    grid(
        [(kind, freeze) for kind in PACKED for freeze in (0, 2, "all")],
        lambda kind, freeze: (kind, freeze) in {("Bert", 0), ("MPNet", 2)},
    ),
)
def test_losses_are_those_of_a_plain_loop_over_transformers(tiny_encoder, kind, freeze):
    model = tiny_encoder(kind, **NO_DROPOUT)
    params = {"iterator_train__shuffle": False}
    _, losses, seen = fitted(model, freeze=freeze, net_params=params, lr=1e-3)
    positions = [np.arange(i, min(i + 3, 8)) for i in (0, 3, 6)] * 2
    expected = by_transformers(model, positions, seen[0], freeze=freeze, lr=1e-3)
    np.testing.assert_allclose(losses, expected, atol=2e-5)


@pytest.mark.parametrize(
    ("kind", "freeze"),
    grid(
        [(kind, freeze) for kind in PACKED for freeze in FREEZE],
        lambda kind, freeze: (
            freeze in (0, 2, -1) if kind == "Bert" else (kind, freeze) == ("MPNet", 2)
        ),
    ),
)
def test_gradients_are_those_of_padded_batches(tiny_encoder, kind, freeze):
    model = tiny_encoder(kind, **NO_DROPOUT)
    net = network(model, freeze=freeze, pooling="mean", dropout=0.0)
    net.train()
    lengths = padded(model, X)["attention_mask"].sum(dim=1)
    flat = padded(model, X)
    ids = torch.cat(
        [row[:n] for row, n in zip(flat["input_ids"], lengths, strict=True)]
    )
    gradients = []
    for batch in ({"input_ids": ids, "lengths": lengths}, flat):
        net.zero_grad()
        net(**batch).pow(2).sum().backward()
        gradients.append({name: p.grad for name, p in net.named_parameters()})
    for name, gradient in gradients[0].items():
        expected = gradients[1][name]
        assert (gradient is None) == (expected is None), name
        if gradient is not None:
            assert gradient.abs().max() > 0 or "key.bias" in name or ".k." in name
            torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "kind", some(ARCHITECTURES, "Bert", "DistilBert", "MPNet", "ModernBert")
)
def test_which_encoders_take_packed_texts(tiny_encoder, kind):
    net = network(tiny_encoder(kind))
    assert net.takes_packed is (kind in PACKED)
    if kind in PACKED:
        hook = net.encoder.encoder.layer[1].register_forward_hook(lambda *args: None)
        assert not net.takes_packed  # the hook would not be called
        hook.remove()
        assert net.takes_packed
        assert not net.to("meta").takes_packed


def test_what_needs_padded_batches_gets_them(tiny_bert, monkeypatch):
    trained = classifier(tiny_bert, freeze=2).fit(X, Y)
    taken = []
    original = Batches.take

    def take(self, positions):
        taken.append(original(self, positions))
        return taken[-1]

    monkeypatch.setattr(Batches, "take", take)
    trained.set_params(mc_dropout="full").sample_proba(X, 2)
    trained.embedding_gradients(X)
    assert len(taken) >= 3
    for inputs in taken:
        assert inputs["input_ids"].ndim == 2
        assert not {"lengths", "activations"} & set(inputs)
    taken.clear()
    trained.predict_proba(X)
    trained.set_params(mc_dropout="head").sample_proba(X, 2)
    assert all(set(inputs) == {"activations", "lengths"} for inputs in taken)


def test_distances_to_the_boundary_are_those_of_padded_batches(tiny_bert, only_padded):
    trained = classifier(tiny_bert, freeze=1, head="cnn").fit(X, Y)
    found = trained.boundary_distance(X)
    only_padded()
    np.testing.assert_allclose(found, trained.boundary_distance(X), rtol=1e-3)


@pytest.mark.long
def test_validation_losses_are_means_over_texts(tiny_encoder):
    seen = []
    settings = {"early_stopping": True, "validation_fraction": 0.5, "lr": 0.0}
    trained = classifier(
        tiny_encoder("Bert", **NO_DROPOUT),
        **{"dropout": 0.0, "batch_size": 1, "callbacks": [Steps(seen)], **settings},
    ).fit(X * 3, [*Y] * 3)
    valid = [
        (len(inputs["lengths"]), loss)
        for training, inputs, loss in seen[1:]
        if not training
    ]
    sizes, losses = np.array(valid[: len(valid) // len(trained.history_)]).T
    assert sorted(sizes) == [4, 4, 4]
    expected = np.average(losses, weights=sizes)
    assert trained.history_[0]["valid_loss"] == pytest.approx(expected, abs=1e-6)


def test_dropout_of_training_follows_the_seed(tiny_bert):
    same, again = (classifier(tiny_bert, freeze=1).fit(X, Y) for _ in range(2))
    assert_same_weights(same, again)
    without = classifier(tiny_bert, freeze=1, dropout=0.0).fit(X, Y)
    assert same.history_[0]["train_loss"] != without.history_[0]["train_loss"]


@pytest.mark.parametrize("part", ["hidden_dropout", "attention_probs_dropout"])
def test_each_dropout_of_the_encoder_is_on_in_training(tiny_encoder, part):
    model = tiny_encoder("Bert", **{**NO_DROPOUT, f"{part}_prob": 0.5})
    net = network(model, freeze=1, dropout=0.0)
    ids = padded(model, X[:1])["input_ids"][0]
    batch = {"input_ids": ids, "lengths": torch.tensor([len(ids)])}
    with torch.no_grad():
        assert torch.equal(net(**batch), net(**batch))
        activations = net.below_cut(batch)
        net.frozen_in_eval = True
        net.train()
        torch.testing.assert_close(net.below_cut(batch), activations)
        assert net.training
        with fork_torch(0):
            once, twice = net(activations, **batch), net(activations, **batch)
    assert (once - twice).abs().max() > 1e-3


@pytest.mark.parametrize("freeze", [slow(0), 2, slow("all")])
def test_bfloat16_is_near_float32(tiny_encoder, freeze):
    model = tiny_encoder("Bert", **NO_DROPOUT)
    exact, losses, _ = fitted(model, freeze=freeze)
    rounded, near, _ = fitted(model, freeze=freeze, precision="bfloat16")
    assert 0 < np.abs(losses - near).max() < 0.03
    np.testing.assert_allclose(
        exact.predict_proba(X), rounded.predict_proba(X), atol=0.05
    )
    for name, weight in weights_of(rounded).items():
        assert weight.dtype != torch.bfloat16, name


def test_cut_texts_are_told_each_time(tiny_bert):
    for freeze in (0, 2, 2):
        with pytest.warns(UserWarning, match="4 of 8 texts have more than 15 "):
            classifier(tiny_bert, freeze=freeze, max_length=15).fit(X, Y)


def parameters(dtype=torch.float32):
    with fork_torch(0):
        values = [torch.randn(5, 3, dtype=dtype), torch.randn(4, dtype=dtype)]
    return [torch.nn.Parameter(value) for value in values]


def test_fused_steps_are_those_of_plain_adamw():
    ways = []
    for make in (adamw, torch.optim.AdamW):
        mine = parameters()
        groups = [{"params": mine[:1], "lr": 0.1}, {"params": mine[1:]}]
        optimizer = make(groups, lr=0.01, weight_decay=0.2)
        for step in range(5):
            for i, p in enumerate(mine):
                p.grad = (p.detach() + i).sin() * (step + 1)
            optimizer.step()
        ways.append(mine)
        assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.01]
    for a, b in zip(*ways, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("dtype", "settings", "fused"),
    [
        (torch.float32, {}, True),
        (torch.float64, {}, True),
        (torch.complex64, {}, None),
        (torch.float32, {"foreach": True}, None),
        (torch.float32, {"fused": False}, False),
    ],
)
def test_adamw_is_fused_where_it_can_be(dtype, settings, fused):
    mine = parameters(dtype)
    optimizer = adamw([{"params": mine}], lr=0.1, **settings)
    assert optimizer.param_groups[0]["fused"] is fused
    before = [p.detach().clone() for p in mine]
    for p in mine:
        p.grad = torch.ones_like(p)
    optimizer.step()
    assert all((p != q).all() for p, q in zip(mine, before, strict=True))
