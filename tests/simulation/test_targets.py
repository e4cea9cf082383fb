"""Labels that a simulation refuses before it begins, and those of every target."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import hamming_loss, label_ranking_average_precision_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from skactive import ActiveLearner, simulate
from skactive.simulation import run_experiment
from skactive.simulation._experiment import _fit_on_few

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


def test_test_labels_have_the_columns_of_the_labels(run):
    Y = pd.DataFrame({"a": y == "yes", "b": y == "no"})
    learner = ActiveLearner(OneVsRestClassifier(LogisticRegression()), "random")
    with pytest.raises(ValueError, match=r"columns of 'y_test' differ .*\['b', 'a'\]"):
        run(learner, X, Y, X, Y[["b", "a"]])


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
    assert run.score_names == ["r2"]


def test_an_argument_of_the_wrong_type_is_named_by_simulate():
    with pytest.raises(ValueError, match="The 'learner' parameter of simulate must be"):
        simulate(LogisticRegression(), X, y)
    with pytest.raises(ValueError, match="The 'folder' parameter of simulate must"):
        simulate(make(), X, y, folder=5)
    with pytest.raises(ValueError, match=r"'scoring' must be a metric.* got 'acc'"):
        simulate(make(), X, y, X_test=X, y_test=y, scoring="acc")


SEVERAL = np.stack([X[:, 0] > 0, X[:, 0] > 0.5, np.arange(80) % 3 == 0], axis=1) * 1
KNOWN = "label_ranking_average_precision", "neg_hamming_loss"


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LogisticRegression()),
        KNeighborsClassifier(3),
        OneVsRestClassifier(LinearSVC()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("form", [list, lambda names: {n[:3]: n for n in names}])
def test_several_labels_are_scored_by_name(model, form):
    learner = ActiveLearner(model, "random", batch_size=5, random_state=0)
    run = simulate(
        learner,
        X,
        SEVERAL,
        n_initial=20,
        n_rounds=1,
        initial="stratified",
        noise=0.1,
        X_test=X,
        y_test=SEVERAL,
        scoring=form([*KNOWN, "f1_micro"]),
        final_estimator=model,
    )
    learner.fit(X[run.queried], SEVERAL[run.queried])
    ranking, loss, f1 = run.rounds[-1]["scores"].values()
    assert 0.5 < ranking <= 1
    assert -1 < loss < 0
    assert 0 < f1 <= 1
    # Without noise the scores are those of scikit-learn's functions.
    run = simulate(
        learner, X, SEVERAL, n_initial=20, n_rounds=0, initial=range(0, 80, 4),
        X_test=X, y_test=SEVERAL, scoring=list(KNOWN),
    )  # fmt: skip
    model = model.fit(X[::4], SEVERAL[::4])
    if hasattr(model, "predict_proba"):
        scores = model.predict_proba(X)
        if isinstance(scores, list):
            scores = np.stack([each[:, 1] for each in scores], axis=1)
    else:
        scores = model.decision_function(X)
    expected = label_ranking_average_precision_score(SEVERAL, scores)
    assert run.rounds[0]["scores"][KNOWN[0]] == pytest.approx(expected)
    expected = -hamming_loss(SEVERAL, model.predict(X))
    assert run.rounds[0]["scores"][KNOWN[1]] == pytest.approx(expected)


def test_numbers_are_scored_by_the_correlation_of_ranks():
    numbers = X[:, 0] ** 3 + X[:, 0]
    learner = ActiveLearner(Ridge(), "random", batch_size=5, random_state=0)
    options = {"initial": range(20), "X_test": X, "y_test": numbers, "n_rounds": 0}
    run = simulate(learner, X, numbers, scoring="spearman", **options)
    predicted = Ridge().fit(X[:20], numbers[:20]).predict(X)
    expected = spearmanr(numbers, predicted).statistic
    assert run.rounds[0]["scores"] == {"spearman": pytest.approx(expected)}
    options |= {"initial": "stratified", "noise": 0.2, "n_rounds": 2}
    several = ["neg_root_mean_squared_error", "spearman"]
    run = simulate(learner, X, numbers, scoring=several, n_initial=9, **options)
    assert run.score_names == several
    assert run.n_labeled.tolist() == [9, 14, 19]


def test_names_of_metrics_are_given_once():
    for twice in (["spearman", "spearman"], ["r2", "r2"]):
        with pytest.raises(ValueError, match="'scoring' must be a metric"):
            simulate(
                ActiveLearner(Ridge()), X, X[:, 0], X_test=X, y_test=X[:, 0],
                scoring=twice,
            )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (Ridge(), np.full(80, 2.5)),
        (OneVsRestClassifier(LogisticRegression()), np.tile([0, 1], (80, 1))),
    ],
)
def test_labels_that_are_all_alike_are_refused(run, model, labels):
    with pytest.raises(ValueError, match="'y' must hold different labels, got"):
        run(ActiveLearner(model, "random"), X, labels, X, labels)


def test_an_experiment_knows_what_a_model_of_rare_labels_can_do():
    rare = np.stack([X[:, 0] > 0, np.arange(80) == 7], axis=1).astype(int)
    model = MultiOutputClassifier(LogisticRegression())
    with pytest.raises(TypeError, match=r"'goral' with the learner.*indicator matrix"):
        run_experiment(
            ActiveLearner(model, "goral"), (X, rare, X, rare), seeds=1, **OPTIONS
        )
    assert _fit_on_few(model, X, rare) is not None
