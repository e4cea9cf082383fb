"""The training itself: steps, rates, schedules, losses, and what they depend on."""

import copy

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from transformers import get_polynomial_decay_schedule_with_warmup

from skactive._utils._repeatable import fork_torch
from skactive.bert._training import choose_lr, learning_rate

from ._helpers import NO_DROPOUT, assert_same_weights, layer_of, slow, weights_of
from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import review_classifier as classifier
from .conftest import Recorder


class Rates(Recorder):
    def on_batch_begin(self, net, training=False, **kwargs):
        if training:
            self.seen.append([group["lr"] for group in net.optimizer_.param_groups])


class Weights(Recorder):
    def on_train_begin(self, net, **kwargs):
        state = net.module_.head.state_dict()
        self.seen.append({name: t.double().numpy() for name, t in state.items()})


class Order(Recorder):
    def on_batch_begin(self, net, batch=None, **kwargs):
        self.seen.extend(batch[1].tolist())


def adamw(weight, x, codes, *, rates, decay, norm):
    """Train a softmax layer with weights (k, d + 1) on all texts at once, by hand."""
    x = np.column_stack([x, np.ones(len(x))])
    first = second = np.zeros_like(weight)
    decayed = np.ones_like(weight) * decay
    decayed[:, -1] = 0  # not the bias
    for step, rate in enumerate(rates, start=1):
        p = softmax(x @ weight.T, axis=1)
        p[np.arange(len(x)), codes] -= 1
        gradient = p.T @ x / len(x)
        if norm is not None:
            gradient = gradient * min(1, norm / np.linalg.norm(gradient))
        weight = weight * (1 - rate * decayed)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        spread = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        weight = weight - rate * first / (1 - 0.9**step) / spread
    return weight


@pytest.mark.long
@pytest.mark.parametrize(
    ("params", "factors"),
    [
        ({}, [1, 1, 1, 1]),
        ({"weight_decay": 0.5}, [1, 1, 1, 1]),
        ({"max_grad_norm": None}, [1, 1, 1, 1]),
        ({"max_grad_norm": 1e-7}, [1, 1, 1, 1]),
        ({"schedule": "linear"}, [1, 3 / 4, 2 / 4, 1 / 4]),
        ({"schedule": "polynomial", "warmup": 0.5}, [1 / 2, 1, 1, 1 / 2]),
        ({"schedule": "polynomial", "power": 2.0}, [1, 9 / 16, 1 / 4, 1 / 16]),
    ],
    ids=str,
)
def test_steps_are_those_of_adamw_by_hand(tiny_bert, params, factors):
    start = []
    settings = {
        **{"freeze": "all", "dropout": 0.0, "lr": 0.05, "batch_size": 8},
        **{"max_epochs": 4, "callbacks": [Weights(start)], **params},
    }
    trained = classifier(tiny_bert, **settings).fit(X, Y)
    weight = np.column_stack([start[0]["dense.0.weight"], start[0]["dense.0.bias"]])
    expected = adamw(
        weight,
        trained.transform(X).astype(float),  # the states that the head takes
        Y,
        rates=0.05 * np.array(factors, float),
        decay=settings.get("weight_decay", 0.0),
        norm=settings.get("max_grad_norm", 1.0),
    )
    layer = trained.net_.module_.head.dense[0]
    with torch.no_grad():
        found = torch.column_stack([layer.weight, layer.bias]).numpy()
    assert np.abs(found - weight).max() > 0.01
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_each_parameter_has_the_rate_and_decay_of_its_part(tiny_bert):
    trained = classifier(
        tiny_bert, lr=1e-4, head_lr=1e-2, weight_decay=0.1, head="cnn", max_epochs=1
    ).fit(X, Y)
    names = {p: name for name, p in trained.net_.module_.named_parameters()}
    seen = set()
    for group in trained.net_.optimizer_.param_groups:
        for parameter in group["params"]:
            name = names[parameter]
            seen.add(name)
            assert group["lr"] == (1e-2 if layer_of(name) == "head" else 1e-4), name
            plain = name.endswith("bias") or "norm" in name.lower()
            assert group["weight_decay"] == (0.0 if plain else 0.1), name
    assert seen == set(names.values())
    assert isinstance(trained.net_.optimizer_, torch.optim.AdamW)


def test_the_rate_of_the_head_is_that_of_the_encoder_unless_told(tiny_bert):
    groups = classifier(tiny_bert, lr=3e-4).fit(X, Y).net_.optimizer_.param_groups
    assert {group["lr"] for group in groups} == {3e-4}


@pytest.mark.parametrize("width", [16, 32])
def test_the_rate_of_auto_is_that_of_minilm_by_the_width(tiny_encoder, width):
    model = tiny_encoder("Bert", hidden_size=width)
    settings = {"lr": "auto", "head_lr": 1e-2, "max_epochs": 1}
    groups = classifier(model, **settings).fit(X, Y).net_.optimizer_.param_groups
    assert {group["lr"] for group in groups} == {1e-2, 1e-4 * (384 / width)}


def test_the_rates_of_minilm_and_bert():
    rates = [choose_lr("auto", width) for width in (384, 768, 1024)]
    assert rates == pytest.approx([1e-4, 5e-5, 3.75e-5])
    assert choose_lr(0.25, 384) == 0.25


@pytest.mark.long
@pytest.mark.parametrize(
    ("schedule", "warmup", "expected"),
    [
        slow(None, 0.0, [1] * 8),
        (None, 0.25, [1 / 2, 1, 1, 1, 1, 1, 1, 1]),
        slow(None, 0.01, [1] * 8),
        slow("linear", 0.0, [8 / 8, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("linear", 0.5, [1 / 4, 2 / 4, 3 / 4, 1, 1, 3 / 4, 2 / 4, 1 / 4]),
        slow("linear", 1.0, [n / 8 for n in range(1, 9)]),
        ("polynomial", 0.0, [n / 8 for n in range(8, 0, -1)]),
    ],
)
def test_rates_follow_the_schedule_batch_by_batch(
    tiny_bert, schedule, warmup, expected
):
    seen = []
    settings = {"lr": 1e-3, "head_lr": 1e-1, "max_epochs": 4}
    classifier(
        tiny_bert,
        schedule=schedule,
        warmup=warmup,
        callbacks=[Rates(seen)],
        **settings,
    ).fit(X, Y)
    rates = np.array(seen)
    np.testing.assert_allclose(rates.min(axis=1), np.multiply(expected, 1e-3))
    np.testing.assert_allclose(rates.max(axis=1), np.multiply(expected, 1e-1))


@pytest.mark.parametrize("schedule", [None, "linear", "polynomial"])
@pytest.mark.parametrize("n_warmup", [0, 3, 10])
def test_factors_stay_between_0_and_1(schedule, n_warmup):
    settings = {"schedule": schedule, "power": 3, "n_steps": 10, "n_warmup": n_warmup}
    factors = [learning_rate(step, **settings) for step in range(12)]
    assert all(0 <= factor <= 1 for factor in factors)
    assert np.argmax(factors) == max(0, n_warmup - 1)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_polynomial_rates_are_those_of_transformers(power):
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    scheduler = get_polynomial_decay_schedule_with_warmup(
        optimizer, 2, 10, lr_end=0.0, power=power
    )
    settings = {"schedule": "polynomial", "power": power}
    factors = [
        learning_rate(step, n_steps=10, n_warmup=2, **settings) for step in range(10)
    ]
    theirs = []
    for _ in range(10):
        theirs.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    # During warm-up, theirs lag one step behind: they begin with a rate of 0.
    np.testing.assert_allclose(factors[2:], theirs[2:])


@pytest.mark.long
@pytest.mark.cpu_only("a GPU adds gradients in any order")
def test_training_starts_anew_each_time(tiny_bert):
    model = classifier(tiny_bert).fit(X, Y)
    first = copy.deepcopy(model)
    assert_same_weights(model.fit(X[:5], Y[:5]).fit(X, Y), first)
    assert len(model.history_) == 2


@pytest.mark.cpu_only("a GPU adds gradients in any order")
def test_training_neither_reads_nor_moves_the_global_generator(tiny_bert):
    fits = []
    for seed in (1, 2):
        with fork_torch(seed):
            state = torch.get_rng_state()
            fits.append(classifier(tiny_bert).fit(X, Y))
            assert torch.equal(torch.get_rng_state(), state)
    assert_same_weights(*fits)


def test_seeds_differ(tiny_bert):
    fits = [classifier(tiny_bert, random_state=seed).fit(X, Y) for seed in (0, 1)]
    a, b = (weights_of(model)["head.dense.0.weight"] for model in fits)
    assert (a - b).abs().max() > 1e-3


def test_history_records_each_epoch(tiny_bert):
    model = classifier(tiny_bert, max_epochs=3).fit(X, Y)
    assert [epoch["epoch"] for epoch in model.history_] == [1, 2, 3]
    assert {*model.history_[0]} == {"epoch", "train_loss", "seconds", "seconds_total"}
    seconds = [epoch["seconds"] for epoch in model.history_]
    total = [epoch["seconds_total"] for epoch in model.history_]
    assert total == sorted(total)
    assert total[-1] >= sum(seconds) > 0


@pytest.mark.parametrize("batch_size", [3, slow(8), slow(100)])
def test_the_loss_is_the_mean_over_texts(tiny_encoder, batch_size):
    model = classifier(
        tiny_encoder("Bert", **NO_DROPOUT),
        **{"lr": 0.0, "dropout": 0.0, "batch_size": batch_size},
    ).fit(X, Y)
    losses = -np.log(model.predict_proba(X)[np.arange(8), Y])
    assert model.history_[1]["train_loss"] == pytest.approx(losses.mean(), abs=1e-5)


def test_the_first_loss_is_that_of_the_untrained_head(tiny_bert):
    start = []
    settings = {"freeze": "all", "dropout": 0.0, "batch_size": 8, "max_epochs": 1}
    model = classifier(tiny_bert, callbacks=[Weights(start)], **settings).fit(X, Y)
    outputs = model.transform(X) @ start[0]["dense.0.weight"].T
    expected = -log_softmax(outputs, axis=1)[np.arange(8), Y].mean()
    assert model.history_[0]["train_loss"] == pytest.approx(expected, abs=1e-5)


def test_weights_count_as_copies(tiny_bert):
    settings = {"freeze": "all", "dropout": 0.0, "lr": 0.05, "batch_size": 16}
    weights = [1, 2, 1, 3, 1, 1, 0, 1]
    weighted = classifier(tiny_bert, **settings).fit(X, Y, sample_weight=weights)
    copied = classifier(tiny_bert, **settings).fit(
        np.repeat(X, weights), np.repeat(Y, weights)
    )
    assert_same_weights(weighted, copied, rtol=1e-3, atol=1e-5)


def test_net_params_reach_the_net(tiny_bert):
    params = {"optimizer": torch.optim.SGD, "optimizer__momentum": 0.5}
    net = classifier(tiny_bert, net_params=params).fit(X, Y).net_
    assert isinstance(net.optimizer_, torch.optim.SGD)
    assert {group["momentum"] for group in net.optimizer_.param_groups} == {0.5}


def test_net_params_win_over_what_is_set_here(tiny_bert):
    seen = []
    params = {"iterator_train__shuffle": False}
    classifier(tiny_bert, net_params=params, callbacks=[Order(seen)], max_epochs=1).fit(
        X, Y
    )
    assert seen == Y.tolist()


def test_texts_come_in_another_order_each_epoch(tiny_bert):
    seen = []
    classifier(tiny_bert, callbacks=[Order(seen)], batch_size=8).fit(X, range(8))
    assert sorted(seen[:8]) == sorted(seen[8:]) == list(range(8))
    assert seen[:8] != seen[8:] != list(range(8))


def test_unknown_net_params_are_refused(tiny_bert):
    with pytest.raises(ValueError, match=r"unexpected argument\(s\) sheduler"):
        classifier(tiny_bert, net_params={"sheduler": 1}).fit(X, Y)


def test_the_bar_is_on_stderr_and_only_if_asked(tiny_bert, capsys):
    classifier(tiny_bert).fit(X, Y)
    quiet = capsys.readouterr()
    classifier(tiny_bert, verbose=1).fit(X, Y)
    told = capsys.readouterr()
    assert "training" not in quiet.out + quiet.err + told.out
    assert "4/4" in told.err
