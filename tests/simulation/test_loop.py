"""The loop on data whose labels are known."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner, simulate
from skactive._storage._fingerprint import collect_versions
from skactive.simulation import SimulatedLearner
from skactive.simulation._folder import VERSIONED

from ._helpers import X, make, y


def count_errors(learner, X, y):
    return (learner.predict(X) != y).sum()


def test_the_record_is_the_loop_written_out():
    run = simulate(
        make(), X, y, n_initial=8, n_rounds=4, X_test=X, y_test=y, initial=range(36, 44)
    )
    learner = make().fit(X[36:44], y[36:44])
    unlabeled = np.ones(80, dtype=bool)
    unlabeled[36:44] = False
    scores, queried = [learner.score(X, y)], []
    for _ in range(4):
        ask = learner.query(X, candidates=unlabeled)
        learner.teach(X[ask], y[ask])
        unlabeled[ask] = False
        queried.append(ask.tolist())
        scores.append(learner.score(X, y))
    assert [record["queried"] for record in run.rounds] == [
        list(range(36, 44)),
        *queried,
    ]
    assert_array_equal(run.scores, scores)
    assert_array_equal(run.n_labeled, [8, 13, 18, 23, 28])
    assert run.rounds[0]["query_seconds"] == 0
    assert all(record["fit_seconds"] > 0 for record in run.rounds)


def test_nothing_is_asked_twice_and_the_end_of_the_pool_ends_it():
    run = simulate(make(batch_size=30), X, y, n_initial=10, n_rounds=9)
    assert_array_equal(np.sort(run.queried), np.arange(80))
    assert_array_equal(run.n_labeled, [10, 40, 70, 80])
    assert np.isnan(run.scores).all()


def test_it_is_seeded_and_leaves_the_learner_alone():
    learner = make("random")
    first, second = (simulate(learner, X, y, n_initial=5, n_rounds=2) for _ in range(2))
    assert_array_equal(first.queried, second.queried)
    assert not hasattr(learner, "estimator_")
    other = simulate(learner.set_params(random_state=1), X, y, n_initial=5, n_rounds=2)
    assert not np.array_equal(first.queried, other.queried)


def test_progress_goes_to_stderr(capsys):
    simulate(make(), X, y, n_initial=8, n_rounds=2, verbose=1)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "3/3" in printed.err
    for quiet in (0, "auto"):  # the test has no terminal
        simulate(make(), X, y, n_initial=8, n_rounds=2, verbose=quiet)
        assert capsys.readouterr().err == ""


def test_strategies_begin_with_the_same_items():
    runs = [
        simulate(make(s), X, y, n_initial=6, n_rounds=1) for s in ("random", "margin")
    ]
    assert runs[0].rounds[0]["queried"] == runs[1].rounds[0]["queried"]


def test_a_loop_without_initial_labels():
    run = simulate(make(), X, y, n_initial=0, n_rounds=3, X_test=X, y_test=y)
    assert_array_equal(run.n_labeled, [0, 5, 10, 15])
    assert np.isnan(run.scores[0])
    assert run.scores[-1] > 0.5


def test_scoring_by_name():
    run = simulate(make(), X, y, n_rounds=1, X_test=X, y_test=y, scoring="neg_log_loss")
    assert (run.scores < 0).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("scoring", "score_names"),
    [
        (None, ["accuracy"]),
        ("f1_macro", ["f1_macro"]),
        (["f1_macro", "accuracy"], ["f1_macro", "accuracy"]),
        (("neg_log_loss", "f1_macro"), ["neg_log_loss", "f1_macro"]),
        ({"f1_macro", "accuracy"}, ["accuracy", "f1_macro"]),
        ({"mine": "accuracy", "own": None}, ["mine", "own"]),
        (count_errors, ["count_errors"]),
        (lambda learner, X, y: 0.5, ["score"]),
        (lambda learner, X, y: {"a": 1, "b": 2}, ["a", "b"]),
    ],
)
def test_several_scores(scoring, score_names):
    learner = make()
    run = simulate(
        learner, X, y, n_initial=8, n_rounds=2, X_test=X, y_test=y, scoring=scoring
    )
    assert run.score_names == score_names
    assert_array_equal(run.scores, run.curve(score_names[0]))
    assert not np.isnan(run.scores).any()
    if "accuracy" in score_names:
        plain = simulate(make(), X, y, n_initial=8, n_rounds=2, X_test=X, y_test=y)
        assert_array_equal(run.curve("accuracy"), plain.scores)


def test_what_own_scores_are_called():
    def called(estimator):
        learner = ActiveLearner(estimator, "random", random_state=0)
        run = simulate(learner, X, y == "yes", n_rounds=0, X_test=X, y_test=y == "yes")
        return run.score_names

    assert called(make_pipeline(StandardScaler(), LogisticRegression())) == ["accuracy"]
    assert called(Ridge()) == ["r2"]
    # A search scores by its own metric, whatever that is.
    assert called(GridSearchCV(LogisticRegression(), {"C": [1]})) == ["score"]


def test_scores_that_need_classes_not_yet_met_are_unknown():
    start = np.flatnonzero(y == "no")[:3]
    scoring = ["neg_log_loss", "accuracy"]
    options = {"X_test": X, "y_test": y, "scoring": scoring}
    run = simulate(make("random"), X, y, initial=start, n_rounds=5, **options)
    assert run.rounds[0]["scores"] == {"neg_log_loss": None, "accuracy": 0.5}
    assert not np.isnan(run.curve("neg_log_loss")[-1])


def test_an_error_of_a_scorer_is_raised():
    def broken(learner, X, y):
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        simulate(make(), X, y, n_rounds=1, X_test=X, y_test=y, scoring=broken)
    with pytest.raises(ValueError, match="'wordy' gave 'good'"):
        simulate(
            make(), X, y, n_rounds=1, X_test=X, y_test=y,
            scoring={"wordy": lambda learner, X, y: "good"},
        )  # fmt: skip


def test_the_record_is_json():
    run = simulate(make(), X, y, n_initial=5, n_rounds=2, X_test=X, y_test=y)
    record = json.loads(json.dumps(run.to_dict()))
    assert record["rounds"] == run.rounds
    assert record["info"] == run.info == {
        "strategy": "margin",
        "estimator": "LogisticRegression()",
        "seed": 0,
        "versions": ", ".join(map(" ".join, collect_versions(VERSIONED).items())),
        "pool_size": 80,
        "test_size": 80,
        "initial": "random",
        "n_initial": 5,
        "n_rounds": 2,
        "batch_size": 5,
        "noise": 0.0,
        "final_estimator": None,
    }  # fmt: skip


def test_initial_sets_by_name():
    first = simulate(make(), X, y, n_initial=4, n_rounds=0, initial="first")
    assert_array_equal(first.queried, range(4))
    fair = simulate(make(), X, y, n_initial=6, n_rounds=0, initial="stratified")
    assert_array_equal(np.unique(y[fair.queried], return_counts=True)[1], [3, 3])
    assert fair.info["initial"] == "stratified"
    assert simulate(make(), X, y, n_rounds=0, initial=[1]).info["initial"] == "given"


@pytest.mark.long
def test_single_labels():
    run = simulate(make(), X, y, n_initial=4, n_rounds=76, batch_size=1)
    assert_array_equal(run.n_labeled, range(4, 81))
    assert_array_equal(np.sort(run.queried), range(80))


def test_a_pool_of_the_first_items():
    run = simulate(make(), X, y, n_initial=4, pool_size=30, batch_size=9)
    assert_array_equal(np.sort(run.queried), range(30))
    assert simulate(make(), X, y, n_rounds=1, pool_size=999).info["pool_size"] == 80


def test_noise_is_taught_and_not_tested_on():
    taught = {}

    class Spy(LogisticRegression):
        def fit(self, X, y):
            taught.update(zip(map(tuple, X), y, strict=True))
            return super().fit(X, y)

    learner = ActiveLearner(Spy(), "random", batch_size=40, random_state=0)
    run = simulate(
        learner, X, y, n_initial=40, n_rounds=1, noise=1.0, X_test=X, y_test=y
    )
    assert all(taught[tuple(row)] != label for row, label in zip(X, y, strict=True))
    assert run.scores[-1] < 0.3
    assert run.info["noise"] == 1.0


def test_a_final_model():
    options = {"n_initial": 8, "n_rounds": 3, "X_test": X, "y_test": y}
    run = simulate(make(), X, y, final_estimator=GaussianNB(), **options)
    plain = simulate(make(), X, y, **options)
    model = GaussianNB().fit(X[plain.queried], y[plain.queried])
    assert run.final_scores == {"accuracy": model.score(X, y)}
    assert run.rounds[-1]["queried"] == plain.rounds[-1]["queried"]
    assert run.ledger["final_training"] > 0
    assert plain.final_scores == {}
    assert run.info["final_estimator"] == "GaussianNB()"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_initial": 81}, "at most the size of the pool, 80; got 81"),
        ({"n_initial": -1}, "'n_initial' must be an int of at least 0, got -1"),
        ({"n_rounds": 1.5}, "'n_rounds' must be an int of at least 0, got 1.5"),
        ({"X_test": X}, "'y_test' is missing"),
        ({"y_test": y}, "'X_test' is missing"),
        ({"initial": [80]}, r"'initial' must lie in \[0, 80\)"),
        ({"initial": "best"}, "got 'best'"),
        ({"batch_size": 0}, "'batch_size' must be an int of at least 1, got 0"),
        ({"pool_size": 0}, "'pool_size' must be an int of at least 1, got 0"),
        (
            {"noise": 2},
            r"'noise' parameter of simulate must be a float in the range \[",
        ),
    ],
)
def test_bad_input(params, message):
    with pytest.raises(ValueError, match=message):
        simulate(make(), X, y, **params)


@pytest.mark.long
@pytest.mark.slow
def test_a_grid_search_compares_strategies_at_one_budget():
    simulated = SimulatedLearner(make(), n_initial=6, n_rounds=3)
    search = GridSearchCV(
        simulated, {"estimator__strategy": ["random", "margin", "entropy"]}, cv=3
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) > 1, "the strategy makes no difference"
    assert len(search.best_estimator_.run_.queried) == 6 + 3 * 5
    parallel = GridSearchCV(
        simulated,
        {"estimator__strategy": ["random", "margin", "entropy"]},
        cv=3,
        n_jobs=2,
    ).fit(X, y)
    assert_array_equal(parallel.cv_results_["mean_test_score"], scores)


def test_it_predicts_as_its_learner():
    simulated = SimulatedLearner(make(), n_initial=6, n_rounds=1).fit(X, y)
    assert_array_equal(simulated.predict(X), simulated.estimator_.predict(X))
    assert_array_equal(simulated.classes_, ["no", "yes"])
