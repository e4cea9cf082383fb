"""Errors of the fine-tuned estimators: they say what to do, and leave no trace."""

import json
import os
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from skactive.bert import BertClassifier
from skactive.bert.network import TextNetwork
from skactive.bert.targets import encode_labels

from ..conftest import TEXTS, save_encoder, save_tokenizer
from .quick import CODES, NUMBERS, X, Y, classifier, regressor

INDICATOR = np.eye(4, dtype=int)[np.arange(len(X)) % 4]


def replaced(values, i, value):
    values = list(values)
    values[i] = value
    return values


# Parameters


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (
            {"freeze": 4},
            ValueError,
            r"'freeze' must be 'all' or an int in \[-3, 3\], got 4: .* has 3 layers",
        ),
        ({"freeze": -4}, ValueError, r"in \[-3, 3\], got -4: the model has 3 layers"),
        ({"freeze": "some"}, ValueError, "'freeze' must be 'all' or .*, got 'some'"),
        ({"freeze": True}, ValueError, "'freeze' must be 'all' or .*, got True"),
        ({"freeze": 1.5}, ValueError, "The 'freeze' parameter .* Got 1.5"),
        (
            {"head": "lstm"},
            ValueError,
            "'head' must be one of 'linear', 'mlp', 'cnn' or .*, got 'lstm'",
        ),
        ({"head": dict}, TypeError, "'head' must be .* nn.Module class, got <class"),
        ({"head": nn.Linear(2, 2)}, ValueError, "The 'head' parameter .* Got Linear"),
        (
            {"head": "mlp", "head_params": {"sizes": (3,)}},
            TypeError,
            "'head_params' must be arguments of MLPHead.*hidden_sizes.*'sizes'",
        ),
        (
            {"head": "cnn", "head_params": {"hidden_sizes": (3,)}},
            TypeError,
            "'head_params' must be arguments of CNNHead, which takes .*heights",
        ),
        ({"layers_attr": "layer"}, ValueError, "'layers_attr' must be the path .*'lay"),
        ({"device": "gpu"}, ValueError, "'device' must be 'auto' or a device of torch"),
        ({"pooling": "sum"}, ValueError, "The 'pooling' parameter .* Got 'sum'"),
        ({"max_length": 0}, ValueError, "The 'max_length' parameter .* Got 0"),
        ({"batch_size": 0}, ValueError, "The 'batch_size' parameter .* Got 0"),
        ({"lr": -1.0}, ValueError, "The 'lr' parameter .* Got -1.0"),
        ({"dropout": 1.0}, ValueError, "The 'dropout' parameter .* Got 1.0"),
        ({"mc_dropout": "all"}, ValueError, "The 'mc_dropout' parameter .* Got 'all'"),
        (
            {"schedule": "cosine"},
            ValueError,
            "The 'schedule' parameter .* Got 'cosine'",
        ),
        ({"random_state": "x"}, ValueError, "The 'random_state' parameter .* Got 'x'"),
        ({"net_params": {"callbacks": []}}, ValueError, "Pass callbacks=.* instead"),
        (
            {"net_params": {"optimiser": 1}},
            ValueError,
            "unexpected argument.*optimiser",
        ),
        ({"class_weight": "even"}, ValueError, "The 'class_weight' parameter .*'even'"),
        ({"class_weight": {"god": 1.0}}, ValueError, "'good'.* not in class_weight"),
        ({"classes": "good"}, ValueError, "The 'classes' parameter .* Got 'good'"),
        (
            {"classes": ["good", "so"]},
            ValueError,
            r"'y' must hold only the classes \['good', 'so'\], got \['bad'\] as well",
        ),
        ({"classes": ["good", 1]}, TypeError, "'classes' must hold one label .* kind"),
        ({"classes": ["good", None]}, ValueError, "'classes' must hold one label per"),
        ({"lr": 1e6}, ValueError, r"'lr' must be small enough .* got 1000000.0"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_named(tiny_bert, params, error, message):
    model = classifier(tiny_bert, **params)
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        model.fit(X, Y)
    assert vars(model) == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none(tiny_bert):
    message = "'device' must be .*, got 'cuda', but torch finds no cuda .* Pass device="
    with pytest.raises(ValueError, match=message):
        classifier(tiny_bert, device="cuda").fit(X, Y)


# Labels, numbers and weights


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (["good", 1] * 8, TypeError, r"'y' mixes labels of the kinds \['number', 'str"),
        ([True, 1] * 8, TypeError, r"'y' mixes labels of the kinds \['bool', 'number'"),
        (["good"] * 16, ValueError, r"at least 2 classes, got only \['good'\] \(1 cla"),
        ([7] * 16, ValueError, r"at least 2 classes, got only \[7\] .* Label a text"),
        (replaced(Y, 3, None), ValueError, "'y' has no label at positions 3"),
        (replaced(CODES, 5, np.nan), ValueError, "'y' has no label at positions 5"),
        (NUMBERS / 7, ValueError, "continuous"),
        (Y[:-1], ValueError, "X holds 16 items, y holds 15 labels"),
        (None, ValueError, "requires y to be passed"),
        ("good", TypeError, "'y' must be a sequence with one label per item"),
        (INDICATOR * 2, ValueError, r"indicator matrix of 0 and 1, got \[2\] as well"),
        (INDICATOR - 1, ValueError, r"indicator matrix of 0 and 1, got \[-1\] as well"),
    ],
)
def test_bad_labels(tiny_bert, y, error, message):
    model = classifier(tiny_bert)
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        model.fit(X, y)
    assert vars(model) == before


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (replaced(NUMBERS, 3, np.nan), "'y' has no label at positions 3 .*NaN"),
        (replaced(NUMBERS, 0, np.inf), "'y' has no label at positions 0 .*infinity"),
        (replaced(NUMBERS, 2, None), "'y' has no label at positions 2"),
        (Y, "'y' must hold one number per text, got .*<U4. Use BertClassifier"),
        (np.ones((16, 2)), r"'y' must hold one number per text, got shape \(16, 2\)"),
        (NUMBERS[:-1], "X holds 16 items, y holds 15 labels"),
    ],
    ids=["NaN", "infinity", "None", "strings", "columns", "length"],
)
def test_bad_numbers(tiny_bert, y, message):
    model = regressor(tiny_bert)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert vars(model) == before


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(15), r"sample_weight.*\(15,\).*\(16,\)"),
        (-np.ones(16), "Negative values .*sample_weight"),
        (np.zeros(16), "weights? must|'sample_weight' must be above 0"),
        (replaced(np.ones(16), 2, np.nan), "sample_weight contains NaN"),
        (np.ones((16, 1)), "weights must be 1D"),
    ],
    ids=["length", "negative", "zero", "NaN", "column"],
)
def test_bad_weights(tiny_bert, make, weights, message):
    y = Y if make is classifier else NUMBERS
    with pytest.raises(ValueError, match=message):
        make(tiny_bert).fit(X, y, sample_weight=weights)


def test_no_weight_among_the_texts_to_train_on(tiny_bert):
    model = classifier(tiny_bert, early_stopping=True, validation_fraction=0.5)
    train, _ = model._split(len(X), 1 - CODES, 0)
    weights = np.ones(len(X))
    weights[train] = 0.0
    with pytest.raises(ValueError, match="'sample_weight' must be above 0 for one of"):
        model.fit(X, Y, sample_weight=weights)


def test_encoding_needs_known_classes():
    with pytest.raises(
        ValueError, match=r"must hold only the classes \[1, 2\], got \['"
    ):
        encode_labels(np.array(["a", "b"]), classes=[1, 2])


# The validation part


def test_fewer_texts_than_classes_to_validate_on(tiny_bert):
    y = np.array([f"class {i % 4}" for i in range(16)])
    model = classifier(tiny_bert, early_stopping=True)
    message = "'early_stopping' must have texts .* 16 texts .*=0.1 .*classes = 4.* Pass"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert model.set_params(validation_fraction=0.25).fit(X, y).classes_.shape == (4,)


def test_a_class_of_one_text_cannot_be_split(tiny_bert):
    y = replaced(Y, 0, "rare")
    with pytest.raises(
        ValueError, match=r"'early_stopping' must have texts .*least pop"
    ):
        classifier(tiny_bert, early_stopping=True, validation_fraction=0.3).fit(X, y)


def test_a_score_of_one_number_is_refused(tiny_bert):
    message = "'validation_fraction' must leave 2 texts to score, got 0.1 of 8 texts"
    with pytest.raises(ValueError, match=message):
        regressor(tiny_bert, early_stopping=True).fit(X[:8], NUMBERS[:8])


# Texts


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("a text", TypeError, r"'X' must be a sequence of texts.*Wrap it in a list"),
        (replaced(X, 3, None), TypeError, r"got .* at 1 of 16 positions: 3 \(NoneType"),
        (replaced(X, 2, ("a", "b")), TypeError, r"every item of 'X' must be .*: 2 \(t"),
        (replaced(X, 5, "\ud800"), ValueError, "'X' must hold valid Unicode.*: 5"),
        (np.array(X)[:, None], ValueError, r"of shape \(16, 1\). Pass one column"),
        ([], ValueError, "'X' holds no texts"),
    ],
    ids=["str", "None", "mixed", "surrogate", "column", "empty"],
)
def test_bad_texts(tiny_bert, texts, error, message):
    fitted = classifier(tiny_bert).fit(X, Y)
    before = pickle.dumps(fitted)
    for call in (
        lambda: fitted.fit(texts, Y),
        lambda: fitted.partial_fit(texts, Y),
        lambda: fitted.predict(texts),
        lambda: fitted.sample_proba(texts, 2),
        lambda: fitted.transform(texts),
    ):
        with pytest.raises(error, match=message):
            call()
    assert pickle.dumps(fitted) == before


@pytest.mark.parametrize("make", [classifier, regressor])
def test_texts_that_were_cut_are_counted_at_the_line_of_the_caller(tiny_bert, make):
    y = Y if make is classifier else NUMBERS
    with pytest.warns(UserWarning, match="16 of 16 texts .* 4 tokens") as caught:
        make(tiny_bert, max_length=4).fit(X, y)
    assert [w.filename for w in caught] == [__file__]


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
    r"'batch_size' must leave room on 'cpu', got 4 with max_length=128 \(CUDA out of "
    r"memory.*2 GiB\). Pass a smaller one, a smaller 'max_length', or freeze more"
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


@pytest.mark.parametrize("call", ["predict", "transform", "sample_proba"])
def test_no_memory_to_predict_in(tiny_bert, full_device, call):
    model = classifier(tiny_bert).fit(X, Y)
    full_device("represent")
    message = r"'max_length' must leave room on 'cpu', got 128 .* Pass a smaller one"
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


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("make", [classifier, regressor])
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
    model = classifier(tiny_bert, warm_start=True).fit(X, Y)
    expected = model.predict_proba(X)
    model.set_params(**params)
    for train_on in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=f"{message}.*warm_start=False"):
            train_on(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert model.set_params(warm_start=False).fit(X, Y) is model


def test_going_on_from_another_checkpoint_is_refused(tiny_bert, tmp_path):
    model = classifier(tiny_bert, warm_start=True).fit(X, Y)
    model.set_params(model=save_encoder(tmp_path, initializer_range=0.4))
    with pytest.raises(ValueError, match="'model' must be the one that training began"):
        model.fit(X, Y)


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


@pytest.mark.parametrize("n_draws", [0, -1, 2.0, "many"])
def test_a_bad_number_of_draws(tiny_bert, n_draws):
    model = classifier(tiny_bert).fit(X, Y)
    with pytest.raises(ValueError, match="'n_draws' must be an int of at least 1, got"):
        model.sample_proba(X, n_draws)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_draws_where_dropout_is_off(tiny_bert, make):
    model = make(tiny_bert, mc_dropout=None)
    name = "sample_proba" if make is classifier else "sample_predictions"
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(model, name)
    assert "Draws need mc_dropout='head' or 'full'" in str(caught.value.__cause__)


def test_gradients_of_several_labels(tiny_bert):
    model = classifier(tiny_bert).fit(X, INDICATOR)
    with pytest.raises(TypeError, match="one label per text, got one of several"):
        model.gradient_factors(X)


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


def test_the_default_model_needs_the_hub(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ValueError, match=r"'model' must be .* 'nobody/nothing'"):
        BertClassifier("nobody/nothing").fit(X, Y)
