"""Kappa average and classification change: successive models that agree."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from skactive.stopping import ClassificationChange, KappaAverage

from ._helpers import _decisions, _learner, _simulate


def _labels(table):
    """Two annotators' labels of a contingency table [[both a, a b], [b a, both b]]."""
    pairs = [(i, j) for i in (0, 1) for j in (0, 1) for _ in range(table[i][j])]
    return np.array(pairs).T


def _kappa(first, second):
    """Cohen's kappa, from its definition, by loops."""
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    expected = sum(
        sum(a == c for a in first) * sum(b == c for b in second) / n**2
        for c in {*first, *second}
    )
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)


# Kappa average


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[20, 5], [10, 15]], 0.4),
        ([[45, 15], [25, 15]], 3 / 23),
        ([[25, 35], [5, 35]], 7 / 27),
        ([[10, 0], [0, 10]], 1.0),
        ([[0, 10], [10, 0]], -1.0),
        ([[0, 20], [0, 0]], 0.0),
    ],
)
def test_kappa_is_that_of_tables_worked_by_hand(table, expected):
    rule = KappaAverage()
    _decisions(rule, _labels(table))
    assert rule.kappas_ == pytest.approx([expected])


@pytest.mark.parametrize(
    ("answers", "expected", "kappas"),
    [
        # As published with small-text, at the threshold 0.7.
        ([[0, 1, 1, 0], *[[0, 1, 1, 1]] * 3], [0, 0, 0, 1], [0.5, 1, 1]),
        ([[1, 1, 1, 1]] * 4, [0, 0, 0, 1], [1, 1, 1]),
        ([[0, 0, 0, 1, 1], [0, 1, 0, 1, 0]], [0, 0], [1 / 6]),
        ([[0, 1, 1, 1, 1], [1, 1, 1, 1, 0]], [0, 0], [-0.25]),
        ([[0, 1, 1, 2, 1], [0, 1, 2, 2, 0]], [0, 0], [4 / 9]),
        # The window moves on: an old disagreement is forgotten, a new one counts.
        (
            [[0, 1, 1, 0], [1, 0, 0, 1], *[[1, 0, 0, 1]] * 3, [0, 1, 1, 0]],
            [0, 0, 0, 0, 1, 0],
            [-1, 1, 1, 1, -1],
        ),
    ],
)
def test_kappa_average_on_given_sequences(answers, expected, kappas):
    rule = KappaAverage(threshold=0.7)
    classes = np.unique([*answers[0], *answers[-1], 0, 1])
    assert _decisions(rule, answers, classes=classes) == [bool(e) for e in expected]
    assert rule.kappas_ == pytest.approx(kappas)


def test_an_average_at_the_threshold_stops():
    answers = [[0, 1, 1, 0], [0, 1, 1, 1], [0, 1, 1, 1]]  # kappas 0.5 and 1
    assert _decisions(KappaAverage(2, threshold=0.75), answers)[-1]
    assert not _decisions(KappaAverage(2, threshold=np.nextafter(0.75, 1)), answers)[-1]


@pytest.mark.long
@given(
    st.integers(2, 4).flatmap(
        lambda k: st.lists(
            st.lists(st.sampled_from("abcd"[:k]), min_size=6, max_size=6), min_size=1
        )
    ),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3, 0.75, 1.0]),
)
@settings(deadline=None, max_examples=60)
def test_kappa_average_is_its_definition(answers, n_rounds, threshold):
    rule = KappaAverage(n_rounds, threshold=threshold)
    decisions = _decisions(rule, answers, classes=list("abcd"))
    kappas = [_kappa(a, b) for a, b in itertools.pairwise(answers)]
    assert rule.kappas_ == pytest.approx(kappas, abs=1e-12)
    for i, decision in enumerate(decisions):
        window = kappas[:i][-n_rounds:]
        mean = sum(window) / max(len(window), 1)
        if abs(mean - threshold) > 1e-9:
            assert decision == (len(window) == n_rounds and mean > threshold)


@pytest.mark.filterwarnings("error")
def test_full_agreement_on_one_class_is_no_division_by_zero():
    rule = KappaAverage(1)
    assert _decisions(rule, [["a"] * 5] * 2, classes=["a", "b"]) == [False, True]
    assert rule.kappas_ == [1.0]


@pytest.mark.long
def test_kappa_average_in_a_simulation_is_that_of_its_models(data):
    X, y = data
    stop_set = np.arange(150, 200)
    rule = KappaAverage(3, threshold=0.9, stop_set=stop_set)
    run = _simulate(data, rule)
    whole = _simulate(data, None)
    answers, kappas = [], []
    for i in range(len(whole.rounds)):
        queried = whole.queried[: whole.n_labeled[i]]
        model = _learner().fit(X[queried], y[queried])
        answers.append(model.predict(X[stop_set]))
        if i:
            kappas.append(cohen_kappa_score(*answers[-2:]))
        if len(kappas) >= 3 and np.mean(kappas[-3:]) >= 0.9:
            break
    assert len(run.rounds) == i + 1 < len(whole.rounds)
    assert run.stopped_by.startswith("KappaAverage(")


# Classification change


@pytest.mark.parametrize(
    ("params", "answers", "expected"),
    [
        # As published with small-text.
        (
            {"threshold": 0.25},
            [[0, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 1, 1]],
            [0, 0, 0, 1],
        ),
        ({}, [[0, 1, 1, 0], [0, 1, 1, 1]], [0, 0]),
        ({}, [[0, 1, 1, 0], [0, 1, 1, 0]], [0, 1]),
        # A share at the threshold is allowed, one above is not.
        ({"threshold": 0.5}, [[0, 0, 0, 0], [1, 1, 0, 0]], [0, 1]),
        ({"threshold": 0.49}, [[0, 0, 0, 0], [1, 1, 0, 0]], [0, 0]),
        # Several rounds in a row; a change in between begins the count anew.
        ({"n_rounds": 2}, [[0, 1]] * 4, [0, 0, 1, 1]),
        ({"n_rounds": 2}, [[0, 1], [0, 1], [1, 1], [1, 1], [1, 1]], [0, 0, 0, 0, 1]),
    ],
)
def test_classification_change_on_given_sequences(params, answers, expected):
    rule = ClassificationChange(**params)
    assert _decisions(rule, answers) == [bool(e) for e in expected]


def test_the_share_of_changes_is_kept():
    rule = ClassificationChange()
    _decisions(rule, [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]])
    assert rule.changes_ == [0.25, 0.5]
