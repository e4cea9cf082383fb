"""Labels that a simulation refuses before it begins."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from skactive import ActiveLearner, simulate
from skactive.simulation import run_experiment

from ._helpers import X, make, y

OPTIONS = {"n_initial": 4, "n_rounds": 1}


def play(learner, X, y, X_test, y_test):
    return simulate(learner, X, y, **OPTIONS, X_test=X_test, y_test=y_test)


def play_in_experiment(learner, X, y, X_test, y_test):
    return run_experiment(learner, (X, y, X_test, y_test), seeds=1, **OPTIONS)


@pytest.fixture(params=[play, play_in_experiment])
def run(request):
    return request.param


@pytest.mark.parametrize(
    ("y_test", "message"),
    [
        (np.zeros(80), "'y_test' must hold labels of the kind of 'y', str; got number"),
        (2, "'y_test' must be a sequence with one label per item, got 2"),
        (y[:79], "'X_test' and 'y_test' differ in length: X_test holds 80 items"),
        (["yes", "maybe"] * 40, "'y_test' must hold classes of 'y' only, got 'maybe'"),
        ([None, *y[1:]], "'y_test' has no label at positions 0"),
        (np.zeros((80, 2)), "'y_test' must have as many columns as 'y'"),
    ],
)
def test_test_labels_that_do_not_fit_are_refused(run, y_test, message):
    with pytest.raises((TypeError, ValueError), match=message):
        run(make(), X, y, X, y_test)


def test_test_items_that_cannot_be_counted_are_named(run):
    with pytest.raises(TypeError, match="'X_test' must be a sequence of items, got 5"):
        run(make(), X, y, 5, y)


def test_a_class_that_the_model_has_not_seen_yet_scores_none():
    y_three = np.where(np.arange(80) == 0, "rare", y)
    run = simulate(
        make(),
        X,
        y_three,
        **OPTIONS,
        initial=[1, 2, 78, 79],
        X_test=X,
        y_test=y_three,
        scoring="neg_log_loss",
    )
    assert run.rounds[0]["scores"] == {"neg_log_loss": None}


def test_classes_outside_of_a_small_pool_may_be_tested():
    mixed = [*range(5), *range(75, 80), *range(5, 75)]
    y_three = np.where(np.arange(80) == 70, "rare", y)[mixed]
    run = simulate(
        make(), X[mixed], y_three, **OPTIONS, pool_size=10, X_test=X, y_test=y_three
    )
    assert not np.isnan(run.scores).any()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            np.repeat("no", 80),
            "'y' must hold at least two classes, got 'no' for all 80",
        ),
        (np.arange(80), "'y' must hold classes of several items, got 80 classes in 80"),
        (np.linspace(0, 1, 80), "'y' must hold classes for a classifier, .* as 0.012"),
    ],
)
def test_columns_that_are_no_labels_are_refused(run, labels, message):
    with pytest.raises(ValueError, match=message):
        run(make(), X, labels, X, labels)


def test_more_classes_than_half_of_the_items_are_doubted():
    labels = np.minimum(np.arange(80), 60)
    with pytest.warns(UserWarning, match="'y' holds 61 classes in 80 items; is this"):
        simulate(make(), X, labels, **OPTIONS)


def test_a_regressor_takes_targets_that_it_has_not_seen():
    learner = ActiveLearner(Ridge(), "random", batch_size=5, random_state=0)
    run = simulate(
        learner, X, np.arange(80), **OPTIONS, X_test=X, y_test=np.arange(80.0)
    )
    assert run.metrics == ["r2"]


def test_an_argument_of_the_wrong_type_is_named_by_simulate():
    with pytest.raises(ValueError, match="The 'learner' parameter of simulate must be"):
        simulate(LogisticRegression(), X, y)
    with pytest.raises(ValueError, match="The 'checkpoint' parameter of simulate must"):
        simulate(make(), X, y, checkpoint=5)
    with pytest.raises(ValueError, match=r"'scoring' must be a metric.* got 'acc'"):
        simulate(make(), X, y, X_test=X, y_test=y, scoring="acc")
