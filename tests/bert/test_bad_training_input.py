"""Bad parameters, labels, weights and texts to train on: errors say what to do."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn

from skactive.bert._estimators import encode_labels
from skactive.bert._fitting import Objective, split

from ._helpers import (
    CODES,
    INDICATOR,
    NUMBERS,
    X,
    Y,
    classifier,
    fitted_copy,
    regressor,
    replaced,
)

# Parameters


@pytest.mark.long
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
    objective = Objective(
        None, None, {}, n_outputs=2, criterion=None, stratify=1 - CODES
    )
    train, _ = split(model, len(X), objective, 0)
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


@pytest.mark.long
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
    fitted = fitted_copy(classifier, tiny_bert, X, Y)
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
