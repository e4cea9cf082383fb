"""The loop on data whose labels are known."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skactive import ActiveLearner, simulate
from skactive.simulation import SimulatedLearner

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(-1, 1, (40, 2)), rng.normal(1, 1, (40, 2))])
y = np.repeat(["no", "yes"], 40)


def make(strategy="margin", batch_size=5):
    return ActiveLearner(
        LogisticRegression(), strategy, batch_size=batch_size, random_state=0
    )


def test_the_record_is_the_loop_written_out():
    run = simulate(
        make(), X, y, n_initial=8, n_rounds=4, X_test=X, y_test=y, initial=range(36, 44)
    )
    learner = make().fit(X[36:44], y[36:44])
    unlabelled = np.ones(80, dtype=bool)
    unlabelled[36:44] = False
    scores, asked = [learner.score(X, y)], []
    for _ in range(4):
        ask = learner.query(X, candidates=unlabelled)
        learner.teach(X[ask], y[ask])
        unlabelled[ask] = False
        asked.append(ask.tolist())
        scores.append(learner.score(X, y))
    assert [record["asked"] for record in run.rounds] == [list(range(36, 44)), *asked]
    assert_array_equal(run.scores, scores)
    assert_array_equal(run.n_labeled, [8, 13, 18, 23, 28])
    assert run.rounds[0]["query_seconds"] == 0
    assert all(record["fit_seconds"] > 0 for record in run.rounds)


def test_nothing_is_asked_twice_and_the_end_of_the_pool_ends_it():
    run = simulate(make(batch_size=30), X, y, n_initial=10, n_rounds=9)
    assert_array_equal(np.sort(run.asked), np.arange(80))
    assert_array_equal(run.n_labeled, [10, 40, 70, 80])
    assert np.isnan(run.scores).all()


def test_it_is_seeded_and_leaves_the_learner_alone():
    learner = make("random")
    first, second = (simulate(learner, X, y, n_initial=5, n_rounds=2) for _ in range(2))
    assert_array_equal(first.asked, second.asked)
    assert not hasattr(learner, "estimator_")
    other = simulate(learner.set_params(random_state=1), X, y, n_initial=5, n_rounds=2)
    assert not np.array_equal(first.asked, other.asked)


def test_strategies_begin_with_the_same_items():
    runs = [
        simulate(make(s), X, y, n_initial=6, n_rounds=1) for s in ("random", "margin")
    ]
    assert runs[0].rounds[0]["asked"] == runs[1].rounds[0]["asked"]


def test_a_start_from_nothing():
    run = simulate(make(), X, y, n_initial=0, n_rounds=3, X_test=X, y_test=y)
    assert_array_equal(run.n_labeled, [0, 5, 10, 15])
    assert np.isnan(run.scores[0])
    assert run.scores[-1] > 0.5


def test_scoring_by_name():
    run = simulate(make(), X, y, n_rounds=1, X_test=X, y_test=y, scoring="neg_log_loss")
    assert (run.scores < 0).all()


def test_the_record_is_json():
    run = simulate(make(), X, y, n_initial=5, n_rounds=2, X_test=X, y_test=y)
    assert json.loads(json.dumps(run.to_dict()))["rounds"] == run.rounds


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_initial": 81}, "at most the size of the pool, 80; got 81"),
        ({"n_initial": -1}, "'n_initial' must be an int of at least 0, got -1"),
        ({"n_rounds": 1.5}, "'n_rounds' must be an int of at least 0, got 1.5"),
        ({"X_test": X}, "'y_test' is missing"),
        ({"y_test": y}, "'X_test' is missing"),
        ({"initial": [80]}, r"must lie in \[0, 80\)"),
    ],
)
def test_bad_input(params, message):
    with pytest.raises(ValueError, match=message):
        simulate(make(), X, y, **params)


def test_a_grid_search_compares_strategies_at_one_budget():
    simulated = SimulatedLearner(make(), n_initial=6, n_rounds=3)
    search = GridSearchCV(
        simulated, {"estimator__strategy": ["random", "margin", "entropy"]}, cv=3
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) > 1, "the strategy makes no difference"
    assert len(search.best_estimator_.run_.asked) == 6 + 3 * 5
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
