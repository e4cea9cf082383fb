"""Monte-Carlo dropout: one model per draw, the same for every text."""

import numpy as np
import pytest
import torch
from torch import nn

from ._helpers import ARCHITECTURES, NO_DROPOUT, grid, slow, some
from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import review_classifier as classifier

MODES = ["head", "full"]
HEADS = ["linear", "mlp", "cnn"]
ONLY_EAGER = ("DebertaV2", "MPNet")  # attention


class Own(nn.Module):
    """A head that cannot draw by itself."""

    def __init__(self, in_features, n_outputs, dropout):
        super().__init__()
        self.drop, self.norm = nn.Dropout(dropout), nn.BatchNorm1d(in_features)
        self.out = nn.Linear(in_features, n_outputs)

    def forward(self, x):
        return self.out(self.drop(self.norm(x)))


# Every head once, and each mode with two of them.
MODES_OF_HEADS = grid(
    [(mode, head) for mode in MODES for head in (*HEADS, Own)],
    lambda mode, head: (mode == "full") is (head in ("linear", Own)),
)


@pytest.fixture(scope="module")
def fitted(tiny_encoder):
    """Train once per head and architecture; give it with the mode that is asked for."""
    kept = {}

    def find(mode, head="linear", kind="Bert", **params):
        key = (head, kind, repr(params))
        if key not in kept:
            kept[key] = classifier(
                tiny_encoder(kind), head=head, dropout=0.4, n_draws=6, **params
            ).fit(X, Y)
        return kept[key].set_params(mc_dropout=mode)

    return find


@pytest.mark.long
@pytest.mark.parametrize(("mode", "head"), MODES_OF_HEADS)
def test_draws_are_distributions_that_differ(fitted, mode, head):
    draws = fitted(mode, head).sample_proba(X)
    assert draws.shape == (8, 6, 2)
    np.testing.assert_allclose(draws.sum(axis=2), 1, rtol=1e-14)
    assert (np.ptp(draws, axis=1) > 0).all()
    assert fitted(mode, head).sample_proba(X, n_draws=3).shape == (8, 3, 2)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_draws_repeat_for_a_seed(fitted, mode):
    model = fitted(mode)
    first = model.sample_proba(X, random_state=5)
    np.testing.assert_array_equal(model.sample_proba(X, random_state=5), first)
    assert np.abs(model.sample_proba(X, random_state=6) - first).max() > 0.01
    np.testing.assert_array_equal(model.sample_proba(X), model.sample_proba(X))


@pytest.mark.parametrize(("mode", "head"), MODES_OF_HEADS)
def test_draws_do_not_depend_on_the_other_texts(fitted, mode, head):
    model = fitted(mode, head)
    draws = model.sample_proba(X)
    order = np.array([3, 7, 0, 0, 4])  # another order, a subset, one text twice
    found = model.sample_proba([X[i] for i in order])
    np.testing.assert_allclose(found, draws[order], atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 1e-3


@pytest.mark.long
@pytest.mark.parametrize(("mode", "head"), MODES_OF_HEADS)
def test_draws_do_not_depend_on_the_batches(fitted, mode, head, monkeypatch):
    model = fitted(mode, head)
    draws = model.sample_proba(X, 3)
    monkeypatch.setattr("skactive._encoders._tokens.BATCH_TOKENS", {"cpu": 1})
    np.testing.assert_allclose(model.sample_proba(X, 3), draws, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    ("mode", "head"),
    grid(
        [(mode, head) for mode in MODES for head in (*HEADS, Own)],
        lambda mode, head: (
            (mode == "full") is (head == "linear") and head in ("linear", Own)
        ),
    ),
)
def test_chunks_of_a_pool_meet_the_same_models(fitted, mode, head):
    model = fitted(mode, head)
    pool = [f"{text} {i}" for i in range(2) for text in X]
    draws = model.sample_proba(pool, n_draws=3, random_state=11)
    for size in (1, 7):  # each begins with texts of other lengths
        chunks = [
            model.sample_proba(pool[i : i + size], n_draws=3, random_state=11)
            for i in range(0, len(pool), size)
        ]
        np.testing.assert_allclose(np.concatenate(chunks), draws, atol=1e-5)
    assert np.ptp(draws, axis=1).min() > 0


@pytest.mark.long
@pytest.mark.parametrize("kind", some(ARCHITECTURES, "Albert", "DebertaV2"))
def test_full_draws_are_one_model_in_every_architecture(fitted, kind):
    model = fitted("full", kind=kind)
    draws = model.sample_proba(X, 3)
    some = [0, 1, 4]  # of several lengths
    alone = np.concatenate([model.sample_proba([X[i]], 3) for i in some])
    np.testing.assert_allclose(alone, draws[some], atol=1e-6)
    assert (np.ptp(draws, axis=1) > 0).all()


def test_tables_of_weights_are_not_taken_for_texts(fitted):
    model = fitted("full", kind="DebertaV2")
    rows = model.net_.module_.encoder.encoder.rel_embeddings.num_embeddings
    texts = [f"text {i}" for i in range(rows)]  # a batch as high as the table
    assert rows * 8 < 1024
    found = model.sample_proba(texts, 3)
    alone = model.sample_proba(texts[:2], 3)
    np.testing.assert_allclose(found[:2], alone, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("kind", some(ARCHITECTURES, "Albert", "MPNet"))
def test_full_draws_include_the_dropout_of_attention(tiny_encoder, kind):
    rates = {"attention_probs_dropout_prob": 0.3, "attention_dropout": 0.3}
    model = classifier(
        tiny_encoder(kind, **{**NO_DROPOUT, **rates}),
        **{"dropout": 0.0, "mc_dropout": "full", "max_epochs": 1},
    ).fit(X, Y)
    encoder = model.net_.module_.encoder
    for attention in ("eager",) if kind in ONLY_EAGER else ("sdpa", "eager"):
        if kind not in ONLY_EAGER:
            encoder.set_attn_implementation(attention)
        assert encoder.config._attn_implementation == attention
        assert np.ptp(model.sample_proba(X, 5), axis=1).max() > 1e-3


def test_full_draws_are_alike_for_both_kinds_of_attention(fitted):
    model = fitted("full")
    encoder = model.net_.module_.encoder
    draws = []
    for attention in ("eager", "sdpa"):
        encoder.set_attn_implementation(attention)
        draws.append(model.sample_proba(X))
    np.testing.assert_allclose(*draws, atol=1e-5)


@pytest.mark.parametrize("head", some(HEADS, "mlp"))
def test_no_dropout_no_spread(tiny_encoder, head):
    model = classifier(tiny_encoder("Bert", **NO_DROPOUT), head=head, dropout=0.0).fit(
        X, Y
    )
    expected = np.repeat(model.predict_proba(X)[:, None], 3, axis=1)
    for mode in MODES:
        draws = model.set_params(mc_dropout=mode).sample_proba(X, 3)
        np.testing.assert_allclose(draws, expected, atol=1e-6)  # batch norm included


def test_full_draws_reach_below_a_cached_cut(tiny_encoder):
    model = classifier(
        tiny_encoder("Bert"), dropout=0.0, freeze="all", mc_dropout="full"
    ).fit(X, Y)
    assert np.ptp(model.sample_proba(X, 5), axis=1).max() > 1e-4
    model.set_params(mc_dropout="head")
    assert np.ptp(model.sample_proba(X, 5), axis=1).max() < 1e-6


@pytest.mark.parametrize("freeze", [slow(0), 2, slow("all")])
def test_head_draws_are_the_same_with_and_without_the_cache(tiny_encoder, freeze):
    model = classifier(tiny_encoder("Bert"), freeze=freeze, dropout=0.3).fit(X, Y)
    draws = model.sample_proba(X, 4)
    model.set_params(cache_frozen=False)
    np.testing.assert_allclose(model.sample_proba(X, 4), draws, atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "head", "passes"),
    [("head", "cnn", 1), ("head", Own, 1), ("full", "cnn", 6), ("full", Own, 6)],
)
def test_the_encoder_runs_once_unless_its_dropout_is_drawn(fitted, mode, head, passes):
    model = fitted(mode, head)
    count = []
    hook = model.net_.module_.encoder.register_forward_hook(
        lambda *args: count.append(1)
    )
    model.sample_proba(X)
    hook.remove()
    assert len(count) == passes


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("head", ["cnn", Own])
def test_draws_leave_prediction_as_it_was(fitted, mode, head):
    model = fitted(mode, head)
    network = model.net_.module_
    before, proba = network.state_dict(), model.predict_proba(X)
    before = {name: tensor.clone() for name, tensor in before.items()}
    model.sample_proba(X)
    assert not any(part.training for part in network.modules())
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    np.testing.assert_array_equal(model.predict_proba(X), proba)


@pytest.mark.parametrize("mode", MODES)
def test_draws_that_fail_leave_the_modes_as_they_were(fitted, mode, monkeypatch):
    model = fitted(mode, Own)
    network = model.net_.module_

    def fail(x):
        assert network.head.drop.training
        assert not network.head.norm.training
        raise MemoryError

    monkeypatch.setattr(network.head, "forward", fail)
    with pytest.raises(MemoryError):
        model.sample_proba(X)
    assert not any(part.training for part in network.modules())


@pytest.mark.parametrize("mode", MODES)
def test_draws_do_not_touch_the_global_generator(fitted, mode):
    model, state = fitted(mode, Own), torch.get_rng_state()
    model.sample_proba(X)
    assert torch.equal(torch.get_rng_state(), state)


def test_without_dropout_there_are_no_draws(fitted):
    model = fitted(None)
    assert not hasattr(model, "sample_proba")
    with pytest.raises(AttributeError, match="sample_proba"):
        model.sample_proba(X)


@pytest.mark.parametrize("n_draws", [0, -1, 2.0, "many"])
def test_bad_number_of_draws(fitted, n_draws):
    with pytest.raises(ValueError, match="'n_draws' must be an int from 1 to 1000000"):
        fitted("head").sample_proba(X, n_draws=n_draws)
