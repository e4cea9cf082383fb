"""Selected accuracy: what was asked, as the model before would have had it."""

import numpy as np
import pytest

from skactive.simulation import Run
from skactive.stopping import SelectedAccuracy

from ._helpers import Scripted, _learner, _run, _simulate, _Watched


def _accuracy_decisions(rule, rounds):
    """Rounds of (asked, labels, what the model then predicts for the pool)."""
    rule.start()
    run, y, decisions = Run(), [], []
    for queried, labels, answers in rounds:
        run.append({"queried": queried})
        y = [*y, *labels]
        learner = Scripted(answers, classes=["a", "b"], y=y)
        decisions.append(rule.check(run, learner, np.arange(6)))
    return decisions


def test_selected_accuracy_uses_the_previous_model():
    rule = SelectedAccuracy(0.75)
    decisions = _accuracy_decisions(
        rule,
        [
            ([0], ["a"], list("aabbaa")),
            ([1, 2], ["b", "b"], list("abbbbb")),  # one of two was known
            ([3, 4], ["b", "b"], list("aaaaaa")),  # both were
            ([5], ["b"], list("bbbbbb")),  # was not
        ],
    )
    assert decisions == [False, False, True, False]
    assert rule.accuracies_ == [0.5, 1.0, 0.0]


@pytest.mark.parametrize(("threshold", "expected"), [(2 / 3, True), (0.67, False)])
def test_selected_accuracy_counts_items_over_several_rounds(threshold, expected):
    rounds = [
        ([0], ["a"], list("aabbaa")),
        ([1, 2], ["b", "b"], list("aaabaa")),  # 1 of 2
        ([3], ["b"], list("aaabaa")),  # 1 of 1: together 2 of 3, at the threshold
    ]
    decisions = _accuracy_decisions(SelectedAccuracy(threshold, n_rounds=2), rounds)
    assert decisions == [False, False, expected]


def test_a_round_without_queries_does_not_count():
    rounds = [([0], ["a"], list("aaaaaa")), ([], [], list("aaaaaa"))]
    rule = SelectedAccuracy()
    assert _accuracy_decisions(rule, rounds) == [False, False]
    assert rule.accuracies_ == []


@pytest.mark.long
def test_selected_accuracy_in_a_simulation_is_that_of_its_models(data):
    X, y = data
    run = _simulate(data, rule := _Watched(SelectedAccuracy(1.0, n_rounds=50)))
    expected = []
    for i in range(1, len(run.rounds)):
        known, new = run.queried[: run.n_labeled[i - 1]], run.rounds[i]["queried"]
        model = _learner().fit(X[known], y[known])
        expected.append(np.mean(model.predict(X[new]) == y[new]))
    assert rule.seen[-1].accuracies_ == pytest.approx(expected)


def test_labels_that_are_not_those_of_the_round_are_noticed():
    rule = SelectedAccuracy().start()
    rule.check(_run(), Scripted([0, 1, 1]), np.arange(3))
    with pytest.raises(ValueError, match="items of the last round: the model predicts"):
        rule.check(Run([{"queried": [0, 1]}]), Scripted([0, 1, 1], y=[0]), np.arange(3))
