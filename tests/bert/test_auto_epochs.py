"""`max_epochs="auto"`: enough optimizer steps whatever the number of labels."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skactive import load, save
from skactive.bert._fitting import auto_epochs

from ._helpers import (
    CODES,
    INDICATOR,
    NUMBERS,
    X,
    Y,
    assert_equal_outputs,
    assert_same_weights,
    classifier,
    regressor,
)
from .conftest import Recorder


class Steps(Recorder):
    def on_batch_end(self, net, training=False, **kwargs):
        if training:
            self.seen.append(None)


@pytest.fixture
def few_steps(monkeypatch):
    """Let the rule ask for 6 steps or 3 per class, to be quick."""
    monkeypatch.setattr("skactive.bert._fitting._MIN_STEPS", 6)
    monkeypatch.setattr("skactive.bert._fitting._STEPS_PER_OUTPUT", 3)


def n_epochs(make, folder, y, n=16, **params):
    """Return the epochs and the steps of a training on the first n texts."""
    steps = []
    settings = {"max_epochs": "auto", "freeze": "all", "callbacks": [Steps(steps)]}
    model = make(folder, **{**settings, **params}).fit(X[:n], y[:n])
    return len(model.history_), len(steps)


def test_the_steps_are_the_fewest_whole_epochs_that_suffice():
    labels, sizes, classes = [2, 8, 50, 100, 300, 801, 5000], [1, 16, 32], [1, 2, 6, 77]
    for n_labels, batch_size, n_classes in itertools.product(labels, sizes, classes):
        n_batches = math.ceil(n_labels / batch_size)
        epochs = auto_epochs(n_batches, n_classes)
        enough = max(100, 4 * n_classes)
        assert epochs >= 3
        assert epochs * n_batches >= enough
        assert epochs == 3 or (epochs - 1) * n_batches < enough


@pytest.mark.long
def test_few_labels_train_for_100_steps(tiny_bert):
    assert n_epochs(classifier, tiny_bert, Y, dropout=0.0) == (50, 100)


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "y", "n", "batch_size", "expected"),
    [
        (classifier, Y, 16, 8, (3, 6)),
        (classifier, Y, 16, 2, (3, 24)),
        (classifier, Y, 5, 8, (6, 6)),
        (classifier, Y, 9, 8, (3, 6)),
        (classifier, np.arange(16) % 4, 16, 8, (6, 12)),
        (classifier, INDICATOR, 16, 8, (6, 12)),
        (regressor, NUMBERS, 16, 16, (6, 6)),
    ],
)
def test_the_rule_counts_batches_and_classes(
    tiny_bert, few_steps, make, y, n, batch_size, expected
):
    assert n_epochs(make, tiny_bert, y, n, batch_size=batch_size) == expected


def test_all_classes_count_though_some_are_missing(tiny_bert, few_steps):
    assert n_epochs(classifier, tiny_bert, CODES, classes=range(4)) == (6, 12)


@pytest.mark.long
def test_it_is_the_same_training_as_with_that_number(tiny_bert, few_steps):
    params = {"schedule": "linear", "warmup": 0.1}
    model = classifier(tiny_bert, max_epochs="auto", **params).fit(X, Y)
    assert_same_weights(model, classifier(tiny_bert, max_epochs=3, **params).fit(X, Y))


@pytest.mark.long
def test_partial_fit_is_one_epoch_and_a_warm_start_a_whole_training(
    tiny_bert, few_steps
):
    model = classifier(tiny_bert, max_epochs="auto", warm_start=True)
    model.partial_fit(X, Y)
    assert len(model.history_) == 1
    model.fit(X, Y)
    assert [record["epoch"] for record in model.history_] == [1, 2, 3, 4]
    model.fit(X[:8], Y[:8])
    assert len(model.history_) == 4 + 6


@pytest.mark.long
@pytest.mark.parametrize(("patience", "expected"), [(1, 4 + 1), (2, 8 + 1), (3, 12)])
def test_early_stopping_waits_for_thirds_of_the_training(
    tiny_bert, few_steps, monkeypatch, patience, expected
):
    monkeypatch.setattr("sklearn.metrics.accuracy_score", lambda *args, **kwargs: 0.5)
    model = classifier(
        tiny_bert,
        **{"max_epochs": "auto", "early_stopping": True, "validation_fraction": 0.5},
        **{"n_iter_no_change": patience, "classes": range(4)},
    )
    # 8 texts in one batch: 3 * 4 steps are 12 epochs, and a third of them is 4.
    assert len(model.fit(X, CODES).history_) == expected


@pytest.mark.long
def test_clones_copies_and_saved_models_keep_it(tiny_bert, few_steps, tmp_path):
    model = classifier(tiny_bert, max_epochs="auto").fit(X, Y)
    assert clone(model).get_params()["max_epochs"] == "auto"
    save(model, tmp_path / "saved")
    copies = (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        load(tmp_path / "saved"),
    )
    for again in copies:
        assert again.max_epochs == "auto"
        assert_equal_outputs(again, model)


def test_grid_search_compares_it_with_numbers(tiny_bert, few_steps):
    search = GridSearchCV(
        classifier(tiny_bert, freeze="all"), {"max_epochs": [1, "auto"]}, cv=2
    ).fit(X, Y)
    params = [found["max_epochs"] for found in search.cv_results_["params"]]
    assert params == [1, "auto"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("value", ["Auto", "3", -1, 2.5, None, True])
def test_other_values_are_refused(tiny_bert, make, value):
    model = make(tiny_bert, max_epochs=value)
    with pytest.raises(ValueError, match=r"max_epochs.* an int .* or a str among"):
        model.fit(X, NUMBERS)
