"""Training, going on or drawing that cannot be done: it is said, and no trace left."""

import json
import os
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from skactive.bert import BertClassifier
from skactive.bert._network import TextNetwork

from ..conftest import TEXTS, save_encoder, save_tokenizer
from ._helpers import (
    INDICATOR,
    NUMBERS,
    X,
    Y,
    classifier,
    fitted_copy,
    grid,
    regressor,
    replaced,
)

# Models


def test_a_folder_without_a_tokenizer(tmp_path):
    folder = save_encoder(tmp_path)
    for name in os.listdir(folder):
        if name.startswith("tokenizer") or name == "special_tokens_map.json":
            os.remove(tmp_path / name)
    with pytest.raises(
        ValueError, match=r"'model' must be .* whose tokenizer cannot be"
    ):
        classifier(folder).fit(X, Y)


def test_a_folder_without_a_model(tmp_path):
    save_tokenizer(tmp_path)
    with pytest.raises(ValueError, match="'model' must be a folder that holds a model"):
        classifier(str(tmp_path)).fit(X, Y)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"'model' must be a local folder .*not exist"):
        classifier(str(tmp_path / "nowhere")).fit(X, Y)


def test_weights_of_another_architecture(tmp_path):
    folder = save_encoder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "hidden_size": 32}))
    model = classifier(folder)
    with pytest.raises(ValueError, match=r"'model' must be .* whose weights cannot be"):
        model.fit(X, Y)
    assert vars(model) == model.get_params()


@pytest.mark.long
def test_weights_that_lack_a_layer(tmp_path):
    folder = save_encoder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["num_hidden_layers"] = 4
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.warns(UserWarning, match="lack .* of the encoder's parameters"):
        classifier(folder).fit(X, Y)


# Memory


@pytest.fixture
def full_device(monkeypatch):
    """Simulate a device whose memory is exhausted."""

    def fail(self, *args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

    return lambda name: monkeypatch.setattr(TextNetwork, name, fail)


MEMORY = (
    r"'batch_size' must fit into the memory of 'cpu', got 8 with max_length=128 "
    r"\(CUDA out of memory.*2 GiB\). Pass a smaller one, a smaller "
    r"'max_length', or freeze more"
)


def test_no_memory_to_train_in(tiny_bert, full_device):
    model = classifier(tiny_bert)
    full_device("forward")
    with pytest.raises(RuntimeError, match=MEMORY) as caught:
        model.fit(X, Y)
    assert isinstance(caught.value.__cause__, torch.OutOfMemoryError)
    assert vars(model) == model.get_params()


def test_no_memory_for_what_is_below_the_cut(tiny_bert, full_device):
    full_device("below_cut")
    texts = [f"{text} at last" for text in X]  # not in the cache
    with pytest.raises(RuntimeError, match=MEMORY):
        classifier(tiny_bert, freeze=2).fit(texts, Y)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["predict", "transform", "sample_proba"])
def test_no_memory_to_predict_in(tiny_bert, full_device, call):
    model = fitted_copy(classifier, tiny_bert, X, Y)
    full_device("represent")
    message = (
        r"'max_length' must fit into the memory of 'cpu', got 128 .* Pass a smaller one"
    )
    with pytest.raises(RuntimeError, match=message):
        getattr(model, call)(X)


# After a failure


def fail_in_the_second_epoch():
    from skorch.callbacks import Callback

    class Fail(Callback):
        def on_epoch_end(self, net, **kwargs):
            if len(net.history) == 2:
                raise OSError("disk full")

    return Fail()


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "warm_start"),
    grid(
        [(make, warm) for make in (classifier, regressor) for warm in (False, True)],
        lambda make, warm_start: warm_start is (make is classifier),
    ),
)
def test_a_fit_that_fails_midway_changes_nothing(tiny_bert, make, warm_start):
    y = Y if make is classifier else NUMBERS
    model = make(tiny_bert, warm_start=warm_start).fit(X, y)
    before = pickle.dumps(model)
    model.set_params(callbacks=[("fail", fail_in_the_second_epoch())])
    with pytest.raises(OSError, match="disk full"):
        model.fit(X[::-1], y)
    assert pickle.dumps(model.set_params(callbacks=None)) == before


@pytest.mark.parametrize("make", [classifier, regressor])
def test_a_first_fit_that_fails_leaves_the_estimator_unfitted(tiny_bert, make):
    fail = [("fail", fail_in_the_second_epoch())]
    model = make(tiny_bert, callbacks=fail)
    with pytest.raises(OSError, match="disk full"):
        model.fit(X, Y if make is classifier else NUMBERS)
    assert vars(model) == model.get_params()
    with pytest.raises(ValueError, match="is not fitted yet"):
        model.predict(X)


# Going on with what does not fit


@pytest.mark.long
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"head": "mlp"}, "'head' and 'head_params' must be those .* got 'mlp'"),
        ({"freeze": 2}, "'freeze' must leave free what training has changed .* got 2"),
        (
            {"freeze": -1},
            "'freeze' must leave free .* freezes 'encoder.encoder.layer.2",
        ),
    ],
    ids=["head", "freeze", "freeze the top"],
)
def test_going_on_with_another_network_is_refused(tiny_bert, params, message):
    model = fitted_copy(classifier, tiny_bert, X, Y, warm_start=True)
    expected = model.predict_proba(X)
    model.set_params(**params)
    for train_on in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=f"{message}.*warm_start=False"):
            train_on(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert model.set_params(warm_start=False).fit(X, Y) is model


def test_going_on_from_another_checkpoint_is_refused(tiny_bert, tmp_path):
    model = fitted_copy(classifier, tiny_bert, X, Y, warm_start=True)
    model.set_params(model=save_encoder(tmp_path, initializer_range=0.4))
    with pytest.raises(ValueError, match="'model' must be the one that training began"):
        model.fit(X, Y)


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (Y, replaced(Y, 0, "so"), r"only the classes \['bad', 'good'\], got \['so'\]"),
        (Y, INDICATOR, "'y' must be of the kind that training began with, labels"),
        (INDICATOR, Y, "'y' must be of the kind .* began with, an indicator matrix"),
        (INDICATOR, INDICATOR[:, :3], "one column for each of 4 classes, got .* of 3"),
    ],
    ids=["class", "to indicator", "to labels", "columns"],
)
def test_going_on_with_other_labels_is_refused(tiny_bert, first, second, message):
    model = classifier(tiny_bert).partial_fit(X, first)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, second)


# Draws and gradients


def test_a_bad_number_of_draws(tiny_bert):
    model = fitted_copy(classifier, tiny_bert, X, Y)
    for n_draws in (0, -1, 2.0, "many"):
        with pytest.raises(ValueError, match="'n_draws' must be an int from 1"):
            model.sample_proba(X, n_draws)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_draws_where_dropout_is_off(tiny_bert, make):
    model = make(tiny_bert, mc_dropout=None)
    name = "sample_proba" if make is classifier else "sample_predictions"
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(model, name)
    assert "Draws need mc_dropout='head' or 'full'" in str(caught.value.__cause__)


def test_a_head_without_a_linear_layer_cannot_represent(tiny_bert):
    model = classifier(tiny_bert, head=Bare).fit(X, Y)
    assert model.predict(TEXTS).shape == (len(TEXTS),)
    with pytest.raises(TypeError, match="a linear layer in the head; Bare has none"):
        model.transform(X)


class Bare(nn.Module):
    def __init__(self, in_features, n_outputs, dropout):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(in_features, n_outputs))

    def forward(self, x, mask=None):
        return x @ self.weight


def test_the_default_model_needs_the_hub():
    with pytest.raises(ValueError, match=r"'model' must be .* 'nobody/nothing'"):
        BertClassifier("nobody/nothing").fit(X, Y)
