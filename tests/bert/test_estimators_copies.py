"""Copies of BERT estimators, their output in frames, and metadata to route."""

import copy
import pickle
import shutil

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from ..conftest import save_encoder
from ._helpers import (
    NUMBERS,
    X,
    Y,
    assert_equal_outputs,
    assert_same_weights,
    classifier,
    grid,
    outputs,
    regressor,
    slow,
)


@pytest.fixture(params=["classifier", "regressor"])
def fitted(request, tiny_bert):
    if request.param == "classifier":
        return classifier(tiny_bert).fit(X, Y)
    return regressor(tiny_bert).fit(X, NUMBERS)


# Copies


def test_clone_has_the_parameters_and_nothing_else(fitted):
    copied = clone(fitted)
    assert vars(copied) == fitted.get_params()


def test_clone_of_arrays_and_callbacks(tiny_bert):
    model = classifier(tiny_bert, classes=np.array(["good", "bad"]), callbacks=[])
    assert clone(model).classes is not model.classes
    assert clone(model).classes.tolist() == ["good", "bad"]


@pytest.mark.parametrize(
    ("head", "freeze"),
    grid(
        [(head, freeze) for head in ("linear", "cnn") for freeze in (0, 1, -1, "all")],
        lambda head, freeze: (head, freeze) in {("linear", 1), ("cnn", "all")},
    ),
)
def test_a_pickle_restores_the_trained_weights(tiny_bert, freeze, head):
    model = classifier(tiny_bert, freeze=freeze, head=head).fit(X, Y)
    restored = pickle.loads(pickle.dumps(model))
    assert_same_weights(restored, model)
    assert_equal_outputs(restored, model)
    assert restored.history_ == model.history_
    draws = [m.sample_proba(X, 3, random_state=0) for m in (model, restored)]
    np.testing.assert_array_equal(*draws)


@pytest.mark.long
def test_copies_of_a_fitted_model_are_independent(fitted):
    copied = copy.deepcopy(fitted)
    expected = outputs(fitted)
    copied.partial_fit(X[::-1], Y if is_classifier(fitted) else NUMBERS)
    for one, other in zip(outputs(fitted), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def n_bytes(model, which=lambda p: True):
    return sum(4 * p.numel() for p in model.net_.module_.parameters() if which(p))


def test_a_pickle_holds_no_state_of_the_optimiser(tiny_bert):
    model = classifier(tiny_bert).fit(X, Y)
    size = len(pickle.dumps(model))
    assert n_bytes(model) < size < 1.3 * n_bytes(model)


@pytest.mark.long
@pytest.mark.parametrize("freeze", [1, 2, -2, "all"])
def test_a_pickle_holds_no_pretrained_weights(tiny_bert, freeze):
    model = classifier(tiny_bert, freeze=freeze).fit(X, Y)
    trained = n_bytes(model, lambda p: p.requires_grad)
    assert trained < n_bytes(model)
    assert len(pickle.dumps(model)) < trained + 8000


def test_a_pickle_of_an_unfitted_model_is_small(tiny_bert):
    assert len(pickle.dumps(classifier(tiny_bert))) < 2000


def test_a_pickle_does_not_depend_on_later_parameters(tiny_bert, tmp_path):
    model = classifier(tiny_bert, pooling="mean", head="mlp").fit(X, Y)
    expected = outputs(model)
    model.set_params(model=str(tmp_path), pooling="cls", freeze=2, head="linear")
    restored = pickle.loads(pickle.dumps(model))
    for one, other in zip(outputs(restored), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert restored.freeze == 2


def test_a_pickle_after_unfreezing_holds_all_that_was_trained(tiny_bert):
    model = classifier(tiny_bert, freeze="all", warm_start=True).fit(X, Y)
    model.set_params(freeze=1).fit(X, Y)
    assert_equal_outputs(pickle.loads(pickle.dumps(model)), model)


def test_a_changed_checkpoint_is_refused(tmp_path):
    folder = save_encoder(tmp_path / "model")
    model = classifier(folder, freeze=2).fit(X, Y)
    pickled = pickle.dumps(model)
    save_encoder(tmp_path / "other", initializer_range=0.4)
    shutil.copy(tmp_path / "other" / "model.safetensors", folder)
    message = "'model' must hold the weights that this BertClassifier was trained from"
    with pytest.raises(ValueError, match=message):
        pickle.loads(pickled)


def test_a_vanished_checkpoint_is_named(tmp_path):
    folder = save_encoder(tmp_path / "model")
    pickled = pickle.dumps(classifier(folder).fit(X, Y))
    shutil.rmtree(folder)
    with pytest.raises(
        ValueError, match=r"'model' must be a local folder .* not exist"
    ):
        pickle.loads(pickled)


def test_a_pickle_from_a_device_that_is_not_here(tiny_bert):
    model = classifier(tiny_bert).fit(X, Y)
    expected = outputs(model)
    pickled = pickle.dumps(model.set_params(device="cuda:7"))
    with pytest.warns(UserWarning, match="got 'cuda:7'.* loaded on the processor"):
        restored = pickle.loads(pickled)
    for one, other in zip(outputs(restored), expected, strict=True):
        np.testing.assert_array_equal(one, other)


# Output and metadata


def test_set_output(fitted):
    pd = pytest.importorskip("pandas")
    rows = fitted.transform(X)
    name = type(fitted).__name__.lower()
    frame = fitted.set_output(transform="pandas").transform(pd.Series(X, index=X))
    assert list(frame.columns) == [f"{name}{i}" for i in range(16)]
    assert list(frame.index) == X
    np.testing.assert_array_equal(frame.to_numpy(), rows)
    pl = pytest.importorskip("polars")
    assert isinstance(fitted.set_output(transform="polars").transform(X), pl.DataFrame)


@pytest.mark.long
@pytest.mark.parametrize("make", [classifier, slow(regressor)])
def test_sample_weights_are_routed(tiny_bert, make):
    y = Y if make is classifier else NUMBERS
    weights = np.linspace(0.1, 3.0, len(X))
    with config_context(enable_metadata_routing=True):
        model = make(tiny_bert).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"freeze": [0]}, cv=2)
        search.fit(X, y, sample_weight=weights)
        assert_same_weights(
            search.best_estimator_, make(tiny_bert).fit(X, y, sample_weight=weights)
        )
        pipe = make_pipeline(model).fit(X, y, sample_weight=weights)
    assert_same_weights(pipe[-1], search.best_estimator_)
