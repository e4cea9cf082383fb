"""Plateau and budgets: rules that go by the record of a run alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skactive.simulation import Run
from skactive.stopping import LabelBudget, Plateau, RoundBudget, TimeBudget

from ._helpers import _run, _simulate

# Plateau


def _scored(scores, scoring="f1"):
    return Run([{"queried": [i], "scores": {scoring: s}} for i, s in enumerate(scores)])


@pytest.mark.parametrize(
    ("params", "scores", "stops_after"),
    [
        ({"patience": 2}, [0.5, 0.6, 0.6, 0.6], 4),
        ({"patience": 2}, [0.5, 0.6, 0.5, 0.7, 0.6, 0.7], 6),
        ({"patience": 1}, [0.5, 0.5], 2),
        ({"patience": 3}, [0.5, 0.5, 0.5], None),
        ({"patience": 3}, [0.5, 0.5, 0.5, 0.5], 4),
        ({"patience": 2, "min_delta": 0.25}, [0.25, 0.5, 0.5, 0.625], 3),
        ({"patience": 2, "min_delta": 0.25}, [0.25, 0.4375, 0.625], None),  # creeps
        ({"patience": 1, "min_delta": 0.25}, [0.25, 0.5], 2),  # no more than min_delta
        ({"patience": 2}, [None, 0.5, None, 0.5, None, 0.5], 6),
        ({"patience": 1}, [-2.0, -1.0], None),
        ({"patience": 1}, [None, None], None),
    ],
)
def test_plateau_on_given_scores(params, scores, stops_after):
    rule = Plateau(**params)
    found = None
    for n in range(1, len(scores) + 1):
        if rule.check(_scored(scores[:n]), None, None):
            found = n
            break
    assert found == stops_after


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(1, 4))
@settings(deadline=None)
def test_plateau_is_no_record_in_the_last_rounds(scores, patience):
    # Without min_delta: none of the last rounds exceeds all those before it.
    records = [i for i, s in enumerate(scores) if all(s > t for t in scores[:i])]
    expected = len(scores) - 1 - records[-1] >= patience
    assert Plateau(patience=patience).check(_scored(scores), None, None) == expected


def test_plateau_uses_the_given_metric():
    run = Run([{"queried": [i], "scores": {"f1": i, "recall": 0.5}} for i in range(5)])
    assert not Plateau().check(run, None, None)
    assert Plateau("recall").check(run, None, None)
    with pytest.raises(ValueError, match=r"'scoring' must be one .*got 'precision'"):
        Plateau("precision").check(run, None, None)


@pytest.mark.parametrize("scoring", [None, "f1"])
def test_plateau_without_scores_says_what_to_do(scoring):
    with pytest.raises(ValueError, match=r"Plateau needs scores.*X_test.*KappaAverage"):
        Plateau(scoring).check(_run(), None, None)


# Budgets


@pytest.mark.parametrize(
    ("n", "expected"), [(1, 0), (10, 0), (11, 1), (20, 2), (21, 3)]
)
def test_a_budget_of_labels_stops_after_the_round_that_reaches_it(data, n, expected):
    assert len(_simulate(data, LabelBudget(n)).rounds) - 1 == expected


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 4, 20, 21])
def test_a_budget_of_rounds(data, n):
    run = _simulate(data, RoundBudget(n))
    assert len(run.rounds) - 1 == min(n, 20)
    assert run.stopped_by == (f"RoundBudget(n_rounds={n})" if n <= 20 else None)


def test_a_budget_of_time_is_measured_from_the_start():
    now = [100.0]
    rule = TimeBudget(5, clock=lambda: now[0]).start()
    answers = []
    for now[0] in [100.0, 104.99, 90.0, 105.0, 106.0]:
        answers.append(rule.check(_run(), None, None))
    assert answers == [False, False, False, True, True]
    rule.start()
    assert not rule.check(_run(), None, None)


def test_the_default_clock_is_monotonic(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    rule = TimeBudget(5).start()
    monkeypatch.setattr("time.monotonic", lambda: 5.0)
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert rule.check(_run(), None, None)


def test_no_round_is_no_budget_spent():
    for rule in (LabelBudget(1), RoundBudget(1)):
        assert not rule.check(Run(), None, None)
