"""Items that the oracle refuses, and what the queried items cost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, simulate
from skactive.analysis import class_coverage
from skactive.simulation import Run, run_experiment
from skactive.simulation._oracle import Oracle
from skactive.stopping import SelectedAccuracy

from ._helpers import X, make, y

TEST = {"X_test": X, "y_test": y}


def refuse_thirds(positions, labels, rng):
    return [
        None if position % 3 == 0 else label
        for position, label in zip(positions, labels, strict=True)
    ]


def refuse_round(positions, labels, rng):
    """Refuse everything in the rounds whose first number is large."""
    return [None] * len(labels) if rng.random() < 0.4 else labels


def test_what_is_refused_gets_no_label_and_is_not_queried_again():
    run = simulate(make(), X, y, n_initial=9, n_rounds=12, noise=refuse_thirds)
    assert len(set(run.queried.tolist())) == len(run.queried) == 69
    for record in run.rounds:
        assert record["refused"] == [i for i in record["queried"] if i % 3 == 0]
    refused = sum(len(record["refused"]) for record in run.rounds)
    assert refused > 0
    assert run.n_labeled[-1] == 69 - refused
    assert_array_equal(run.cost, [9 + 5 * i for i in range(13)])


def test_the_learner_has_the_labels_of_the_others():
    seen = {}

    class Watch:
        def start(self):
            pass

        def check(self, run, learner, X):
            seen["X"], seen["y"] = learner.X_labeled_, learner.y_labeled_
            return False

    options = {"noise": refuse_thirds, "stopping": Watch()}
    run = simulate(make(), X, y, n_initial=10, n_rounds=3, **options)
    answered = [i for i in run.queried.tolist() if i % 3]
    assert_array_equal(seen["X"], X[answered])
    assert_array_equal(seen["y"], y[answered])


@pytest.mark.parametrize(
    "truth", [np.array(["a", "b"] * 3), np.arange(6), np.eye(6, dtype=int)]
)
def test_labels_of_every_kind_can_be_refused(truth):
    oracle = Oracle(truth, refuse_thirds)
    labels, answered = oracle.label(np.array([5, 3, 1]), 1)
    assert_array_equal(answered, [True, False, True])
    assert_array_equal(labels, truth[[5, 1]])
    assert labels.dtype == truth.dtype


def test_none_in_an_array_of_str_is_no_class():
    def refuse(positions, labels, rng):
        labels[0] = None
        return labels

    labels, answered = Oracle(y, refuse).label(np.array([2, 70]), 1)
    assert labels.tolist() == ["yes"]
    assert answered.tolist() == [False, True]


def test_a_round_may_be_refused_as_a_whole():
    run = simulate(make(), X, y, n_initial=5, n_rounds=8, noise=refuse_round, **TEST)
    gains = np.diff(run.n_labeled)
    assert set(gains) == {0, 5}
    # Without new labels, the model and its score stay the same.
    assert (np.diff(run.scores)[gains == 0] == 0).all()


@pytest.mark.parametrize("noise", [refuse_thirds, refuse_round])
@pytest.mark.parametrize("n_initial", [0, 6])
def test_an_interrupted_loop_continues_after_refusals(tmp_path, noise, n_initial):
    options = {"n_initial": n_initial, "n_rounds": 6, "noise": noise, **TEST}
    whole = simulate(make(), X, y, folder=tmp_path / "whole", **options)
    lines = (tmp_path / "whole" / "runs.jsonl").read_bytes().splitlines(keepends=True)
    for n in range(2, len(lines)):
        (tmp_path / str(n)).mkdir()
        (tmp_path / str(n) / "runs.jsonl").write_bytes(b"".join(lines[:n]))
        assert simulate(make(), X, y, folder=tmp_path / str(n), **options) == whole


# Costs


def test_the_cost_is_the_sum_over_all_queried_items():
    costs = np.arange(80) / 4
    options = {"n_initial": 4, "n_rounds": 3, "noise": refuse_thirds}
    run = simulate(make(), X, y, cost=costs, **options)
    batches = [sum(costs[i] for i in record["queried"]) for record in run.rounds]
    assert_allclose(run.cost, np.cumsum(batches))
    frame = run.to_frame()
    assert_allclose(frame["cost"], run.cost)
    assert frame["refused"].tolist() == [record["refused"] for record in run.rounds]


def test_a_function_gives_the_cost_of_an_item():
    texts = [f"{'word ' * (i % 7)}{i}" for i in range(80)]

    learner = make()
    front = HashingVectorizer(n_features=64)
    learner.set_params(estimator=make_pipeline(front, learner.estimator))
    options = {"n_initial": 4, "n_rounds": 2, "pool_size": 70}
    run = simulate(learner, texts, y, cost=len, **options)
    assert run.cost[-1] == sum(len(texts[i]) for i in run.queried)
    by_array = simulate(learner, texts, y, cost=list(map(len, texts)), **options)
    assert by_array == run


@pytest.mark.parametrize(
    ("cost", "got"),
    [
        (np.ones(79), r"\[1\., "),
        (-np.ones(80), r"\[-1\., "),
        (np.full(80, np.nan), r"\[nan, "),
        (["a"] * 80, r"\['a', "),
        (lambda item: None, "function"),
    ],
)
def test_costs_that_are_none_are_refused(cost, got):
    message = f"'cost' must be one number of at least 0 for each of the 80 .*{got}"
    with pytest.raises(ValueError, match=message):
        simulate(make(), X, y, cost=cost)


def test_another_cost_is_another_simulation(tmp_path):
    simulate(make(), X, y, n_rounds=1, cost=np.ones(80), folder=tmp_path)
    with pytest.raises(ValueError, match="other settings: cost was"):
        simulate(make(), X, y, n_rounds=1, cost=np.full(80, 2.0), folder=tmp_path)


def test_an_experiment_has_costs_of_each_data_set():
    data = {"all": (X, y, X, y), "half": (X[::2], y[::2], X, y)}
    options = {"seeds": 1, "n_initial": 4, "n_rounds": 1, "cost": lambda item: 3}
    runs = run_experiment(make(), data, **options)
    assert [run.cost.tolist() for run in runs] == [[12, 27], [12, 27]]


# The record


def test_a_record_fills_in_labels_and_costs():
    run = Run([{"queried": [4, 2, 0], "refused": [2]}, {"queried": [1], "cost": 7.5}])
    assert run.n_labeled.tolist() == [2, 3]
    assert run.cost.tolist() == [3, 7.5]
    assert Run([{"queried": [], "n_labeled": 30}]).cost.tolist() == [30]


def test_classes_are_counted_without_refused_items():
    run = Run([{"queried": [0, 1]}, {"queried": [3, 4], "refused": [4]}])
    coverage = class_coverage(run, ["ham", "ham", "spam", "ham", "spam"])
    assert coverage.n_labeled.tolist() == [2, 3]
    assert coverage.counts.tolist() == [[2, 0], [3, 0]]
    assert coverage.first == {"ham": 1, "spam": None}


def test_selected_accuracy_leaves_out_refused_items():
    rule = SelectedAccuracy(1.0, n_rounds=50)
    rule.start()

    class Learner:
        classes_ = np.array(["a", "b"])
        y_labeled_ = np.array(["a", "b", "b"])

        class estimator_:
            predict = staticmethod(lambda X: np.where(np.asarray(X) > 2, "b", "a"))

    run = Run([{"queried": [0]}])
    rule.check(run, Learner(), np.arange(6))
    run.append({"queried": [1, 5, 4], "refused": [1]})
    rule.check(run, Learner(), np.arange(6))
    assert rule.accuracies_ == [1.0]


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("nope", "'nope' is not a valid scoring"),
        ("roc_auc", "Use 'roc_auc_ovr'.$"),
        (["accuracy", "f1"], "Use 'f1_macro'.$"),
    ],
)
def test_a_metric_is_checked_before_any_text_is_encoded(monkeypatch, scoring, message):
    monkeypatch.setattr("skactive.simulation._experiment._encode", None)
    X, y = np.eye(30), np.arange(30) % 3
    learner, data = ActiveLearner(LogisticRegression()), (X, y, X, y)
    with pytest.raises(ValueError, match=f"^'scoring' must be a metric.*{message}"):
        run_experiment(learner, data, n_initial=5, n_rounds=1, scoring=scoring)
