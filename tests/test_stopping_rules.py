"""Rules that stop the loop: decisions on given sequences, and inside a simulation."""

import copy
import itertools
import math
import pickle
import re
import sys
import textwrap
import tomllib
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import LinearSVC

from skactive import ActiveLearner, plugins, simulate
from skactive.runs import Run
from skactive.stopping import (
    AllOf,
    AnyOf,
    ClassificationChange,
    KappaAverage,
    LabelBudget,
    OverallUncertainty,
    Plateau,
    RoundBudget,
    SelectedAccuracy,
    StoppingRule,
    TimeBudget,
    as_callback,
    get_stopping_rule,
    get_stopping_rule_names,
)

PAGE = (Path(__file__).parents[1] / "docs" / "stopping.md").read_text("utf-8")
RULES = [
    LabelBudget(30),
    RoundBudget(3),
    TimeBudget(1e-9),
    ClassificationChange(2, threshold=0.1),
    KappaAverage(2, threshold=0.5, stop_set=40),
    OverallUncertainty(0.6),
    SelectedAccuracy(0.6),
    Plateau(patience=2),
    LabelBudget(30) | Plateau(),
    LabelBudget(30) & KappaAverage(2, threshold=0.5),
]


class Scripted:
    """Learner whose predictions are given; its pool holds the positions."""

    def __init__(self, answers=(), classes=(0, 1), y=()):
        self.answers = np.asarray(answers)
        self.classes_ = np.asarray(classes)
        self.y_labeled_ = np.asarray(y)
        self.estimator_ = self

    def query(self, X):
        raise NotImplementedError

    def predict(self, X):
        return self.answers[np.asarray(X)]

    def predict_proba(self, X):
        return self.answers[np.asarray(X)]


def _run(n_rounds=1, **info):
    """A run that has asked for nothing yet."""
    return Run([{"asked": []} for _ in range(n_rounds)], info=info)


def _decisions(rule, answers, **params):
    """What a rule says to each of several predictions of one pool, in order."""
    rule.start()
    pool = np.arange(len(answers[0]))
    return [
        rule.check(_run(i + 1), Scripted(a, **params), pool)
        for i, a in enumerate(answers)
    ]


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


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return X, np.where(
        X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=300) > 0, "b", "a"
    )


def _learner(strategy="margin", **params):
    return ActiveLearner(
        LogisticRegression(), strategy, batch_size=5, random_state=0, **params
    )


def _simulate(data, stopping, **params):
    X, y = data
    given = {"n_initial": 10, "n_rounds": 20, "scoring": "accuracy"}
    given |= {"X_test": X[200:], "y_test": y[200:], **params}
    return simulate(_learner(), X[:200], y[:200], stopping=stopping, **given)


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


def test_kappa_average_in_a_simulation_is_that_of_its_models(data):
    X, y = data
    stop_set = np.arange(150, 200)
    rule = KappaAverage(3, threshold=0.9, stop_set=stop_set)
    run = _simulate(data, rule)
    whole = _simulate(data, None)
    answers, kappas = [], []
    for i in range(len(whole.rounds)):
        asked = whole.asked[: whole.n_labeled[i]]
        model = _learner().fit(X[asked], y[asked])
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


# Overall uncertainty


@pytest.mark.parametrize(
    ("proba", "expected"),
    [
        # As published with small-text, at the threshold 0.05.
        ([[0.5, 0.5]], False),
        ([[0, 0.5, 0.5, 0], [0, 1, 0, 0], [0, 0, 1, 0]], False),
        ([[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]], True),
    ],
)
def test_overall_uncertainty_on_given_probabilities(proba, expected):
    assert _decisions(OverallUncertainty(), [proba]) == [expected]


def test_overall_uncertainty_is_the_mean_over_what_is_left(data):
    X, y = data
    learner = _learner().fit(X[:20], y[:20])
    run = Run([{"asked": range(15)}, {"asked": range(15, 20)}])
    rule = OverallUncertainty()
    rule.check(run, learner, X)
    proba = learner.predict_proba(X[20:])
    expected = np.mean([scipy.stats.entropy(row, base=2) for row in proba])
    assert rule.uncertainties_ == pytest.approx([expected])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0.25, 0.25, 0.25, 0.25], 1.0),
        ([0.5, 0.5, 0, 0], 0.5),  # one bit of two
        ([0.2, 0.5, 0.3], 1.029653 / math.log(3)),
        ([0.1, 0.7, 0.2], 0.801819 / math.log(3)),
        ([1, 0, 0], 0.0),
    ],
)
def test_uncertainty_is_a_share_of_the_greatest(row, expected):
    rule = OverallUncertainty()
    _decisions(rule, [[row]])
    assert rule.uncertainties_ == pytest.approx([expected], abs=1e-6)


def test_items_labelled_since_the_stop_set_was_drawn_do_not_count():
    pool = np.arange(4)
    learner = Scripted([[0.5, 0.5], [0.5, 0.5], [1, 0], [1, 0]])
    rule = OverallUncertainty()
    assert not rule.check(_run(), learner, pool)
    assert rule.check(Run([{"asked": []}, {"asked": [0, 1]}]), learner, pool)
    assert rule.uncertainties_ == [0.5, 0.0]


def test_uncertainty_must_fall_below_the_threshold():
    proba = [[0.5, 0.5], [1.0, 0.0]]
    assert not _decisions(OverallUncertainty(0.5), [proba])[0]
    assert _decisions(OverallUncertainty(0.51), [proba])[0]


def test_with_nothing_left_there_is_no_uncertainty():
    learner = Scripted([[0.5, 0.5]] * 2)
    assert not OverallUncertainty().check(Run([{"asked": [0, 1]}]), learner, [0, 1])
    rule = OverallUncertainty(stop_set=[0])
    assert not rule.check(Run([{"asked": [0]}]), learner, [0, 1])
    assert rule.uncertainties_ == []


def test_a_model_without_probabilities_is_refused(data):
    X, y = data
    learner = ActiveLearner(LinearSVC()).fit(X[:20], y[:20])
    with pytest.raises(TypeError, match="needs predict_proba, which LinearSVC lacks"):
        OverallUncertainty().check(_run(), learner, X)


# Selected accuracy


def _accuracy_decisions(rule, rounds):
    """Rounds of (asked, labels, what the model then predicts for the pool)."""
    rule.start()
    run, y, decisions = Run(), [], []
    for asked, labels, answers in rounds:
        run.append({"asked": asked})
        y = [*y, *labels]
        learner = Scripted(answers, classes=["a", "b"], y=y)
        decisions.append(rule.check(run, learner, np.arange(6)))
    return decisions


def test_selected_accuracy_asks_the_model_before():
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


def test_a_round_that_asked_for_nothing_is_none():
    rounds = [([0], ["a"], list("aaaaaa")), ([], [], list("aaaaaa"))]
    rule = SelectedAccuracy()
    assert _accuracy_decisions(rule, rounds) == [False, False]
    assert rule.accuracies_ == []


def test_selected_accuracy_in_a_simulation_is_that_of_its_models(data):
    X, y = data
    run = _simulate(data, rule := _Watched(SelectedAccuracy(1.0, n_rounds=50)))
    expected = []
    for i in range(1, len(run.rounds)):
        known, new = run.asked[: run.n_labeled[i - 1]], run.rounds[i]["asked"]
        model = _learner().fit(X[known], y[known])
        expected.append(np.mean(model.predict(X[new]) == y[new]))
    assert rule.seen[-1].accuracies_ == pytest.approx(expected)


def test_labels_that_are_not_those_of_the_round_are_noticed():
    rule = SelectedAccuracy().start()
    rule.check(_run(), Scripted([0, 1, 1]), np.arange(3))
    with pytest.raises(ValueError, match="items of the last round: the model predicts"):
        rule.check(Run([{"asked": [0, 1]}]), Scripted([0, 1, 1], y=[0]), np.arange(3))


# Plateau


def _scored(scores, metric="f1"):
    return Run([{"asked": [i], "scores": {metric: s}} for i, s in enumerate(scores)])


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


def test_plateau_looks_at_the_metric_it_is_told():
    run = Run([{"asked": [i], "scores": {"f1": i, "recall": 0.5}} for i in range(5)])
    assert not Plateau().check(run, None, None)
    assert Plateau("recall").check(run, None, None)
    with pytest.raises(ValueError, match=r"'metric' must be one .*got 'precision'"):
        Plateau("precision").check(run, None, None)


@pytest.mark.parametrize("metric", [None, "f1"])
def test_plateau_without_scores_says_what_to_do(metric):
    with pytest.raises(ValueError, match=r"Plateau needs scores.*X_test.*KappaAverage"):
        Plateau(metric).check(_run(), None, None)


# Budgets


@pytest.mark.parametrize(
    ("n", "expected"), [(1, 0), (10, 0), (11, 1), (20, 2), (21, 3)]
)
def test_a_budget_of_labels_stops_after_the_round_that_reaches_it(data, n, expected):
    assert len(_simulate(data, LabelBudget(n)).rounds) - 1 == expected


@pytest.mark.parametrize("n", [1, 4, 20, 21])
def test_a_budget_of_rounds(data, n):
    run = _simulate(data, RoundBudget(n))
    assert len(run.rounds) - 1 == min(n, 20)
    assert run.stopped_by == (f"RoundBudget(n={n})" if n <= 20 else None)


def test_a_budget_of_time_is_measured_from_the_start():
    now = [100.0]
    rule = TimeBudget(5, clock=lambda: now[0]).start()
    answers = []
    for now[0] in [100.0, 104.99, 90.0, 105.0, 106.0]:
        answers.append(rule.check(_run(), None, None))
    assert answers == [False, False, False, True, True]
    rule.start()
    assert not rule.check(_run(), None, None)


def test_the_clock_is_one_that_nobody_sets(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    rule = TimeBudget(5).start()
    monkeypatch.setattr("time.monotonic", lambda: 5.0)
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert rule.check(_run(), None, None)


def test_no_round_is_no_budget_spent():
    for rule in (LabelBudget(1), RoundBudget(1)):
        assert not rule.check(Run(), None, None)


# Stop sets


def _drawn(rule, run=None, n=50):
    rule.start()
    rule.check(run or _run(), Scripted(np.zeros(n, dtype=int)), np.arange(n))
    return rule.stop_set_


@pytest.mark.parametrize(
    "kind", [KappaAverage, ClassificationChange, OverallUncertainty]
)
def test_a_stop_set_is_drawn_from_the_unlabelled(kind):
    answers = np.full((50, 2), 0.5) if kind is OverallUncertainty else np.zeros(50)
    run = Run([{"asked": range(0, 50, 2)}])
    rule = kind(stop_set=10, random_state=3).start()
    rule.check(run, Scripted(answers), np.arange(50))
    assert len(set(rule.stop_set_.tolist())) == 10
    assert (rule.stop_set_ % 2 == 1).all()


@pytest.mark.parametrize("stop_set", [None, 50, 25])
def test_where_fewer_are_unlabelled_all_of_them_are_watched(stop_set):
    rule = KappaAverage(stop_set=stop_set)
    assert _drawn(rule, Run([{"asked": range(25)}])).tolist() == list(range(25, 50))


def test_the_stop_set_is_drawn_once_for_each_loop():
    rule = KappaAverage(stop_set=5, random_state=np.random.RandomState(0)).start()
    first = _drawn(rule)
    for asked in ([], [first[0]], range(40)):
        rule.check(Run([{"asked": asked}]), Scripted(np.zeros(50)), np.arange(50))
        assert rule.stop_set_ is first
    assert _drawn(rule).tolist() != first.tolist()  # the next loop draws again


def test_the_stop_set_follows_the_seed():
    def drawn(random_state, **info):
        rule = KappaAverage(stop_set=10, random_state=random_state)
        return _drawn(rule, _run(**info)).tolist()

    assert drawn(1) == drawn(1) != drawn(2)
    assert drawn(None, seed=1) == drawn(1)  # the run's own
    assert drawn(2, seed=1) == drawn(2)
    assert drawn(None) == drawn(None)


@pytest.mark.parametrize("given", [[4, 1, 3], np.arange(6) % 2 == 1])
def test_a_stop_set_can_be_given(given):
    rule = ClassificationChange(stop_set=given)
    assert set(_drawn(rule, n=6).tolist()) == set(np.arange(6)[np.asarray(given)])


def test_only_the_stop_set_is_predicted():
    asked = []

    class Learner(Scripted):
        def predict(self, X):
            asked.append(np.asarray(X).tolist())
            return super().predict(X)

    rule = KappaAverage(stop_set=[2, 5])
    rule.check(_run(), Learner(np.zeros(50)), np.arange(50))
    assert asked == [[2, 5]]


def test_another_pool_is_noticed():
    rule = KappaAverage(stop_set=[1, 2])
    _drawn(rule, n=50)
    with pytest.raises(ValueError, match="'X' holds 49 items, and held 50 when"):
        rule.check(_run(), Scripted(np.zeros(49)), np.arange(49))
    with pytest.raises(
        ValueError, match="'X' holds 3 items, and the run asked for pos"
    ):
        KappaAverage().check(Run([{"asked": [3]}]), Scripted(np.zeros(3)), np.arange(3))


@pytest.mark.parametrize(
    ("stop_set", "message"),
    [
        ([7], "'stop_set' must lie in"),
        ([], "'stop_set' is empty"),
        ([0.5], "'stop_set'"),
    ],
)
def test_a_bad_stop_set_is_refused(stop_set, message):
    with pytest.raises((ValueError, TypeError), match=message):
        _drawn(KappaAverage(stop_set=stop_set), n=5)


def test_with_everything_labelled_there_is_nothing_to_watch():
    rule = KappaAverage(1)
    run = Run([{"asked": range(5)}])
    for _ in range(3):
        assert not rule.check(run, Scripted(np.zeros(5)), np.arange(5))


@pytest.mark.parametrize("wrap", [list, tuple, np.array])
def test_texts_in_any_container_are_watched(wrap):
    class Length(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return self.classes_[[len(text) % 2 for text in X]]

    X = wrap(["a", "bb", "ccc", "dddd"])
    learner = ActiveLearner(Length()).fit(X, ["x", "y", "x", "y"])
    rule = KappaAverage(1)
    assert [rule.check(_run(), learner, X) for _ in range(2)] == [False, True]


# Learners without classes to compare


MODEL_RULES = [
    KappaAverage(1, threshold=-1),
    ClassificationChange(threshold=0.9),
    OverallUncertainty(0.999),
    SelectedAccuracy(1e-9),
]


@pytest.mark.parametrize("rule", MODEL_RULES)
def test_before_there_are_two_classes_nothing_is_judged(rule):
    # All of one class: successive models agree, are sure, and are right.
    X, y = np.arange(20.0).reshape(-1, 1), ["a"] * 20
    rule = clone(rule).start()
    unfitted = ActiveLearner(LogisticRegression())
    assert not rule.check(_run(), unfitted, X)
    learner = ActiveLearner(LogisticRegression())
    run = Run()
    for i in range(4):
        run.append({"asked": [i]})
        learner.teach(X[[i]], y[:1])
        assert not rule.check(run, learner, X)


@pytest.mark.parametrize("rule", MODEL_RULES)
def test_a_regressor_is_refused(rule):
    X = np.arange(6.0).reshape(-1, 1)
    learner = ActiveLearner(LinearRegression(), "random").fit(X, X[:, 0])
    message = f"{type(rule).__name__} looks at predicted classes, and LinearRegression"
    with pytest.raises(TypeError, match=message):
        clone(rule).check(_run(), learner, X)


@pytest.mark.parametrize("rule", MODEL_RULES[:3])
def test_several_outputs_are_refused(rule):
    X = np.arange(8.0).reshape(-1, 1)
    y = np.column_stack([X[:, 0] > 3, X[:, 0] % 2 > 0]).astype(int)
    model = MultiOutputClassifier(LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match=r"an array of shape .*Use a budget"):
        clone(rule).check(_run(), model, X)


# Rules of several


class Always(StoppingRule):
    """Say the same each time."""

    def __init__(self, answer=True):
        self.answer = answer

    def decide(self, run, learner, X):
        return self.answer


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_truth_tables(first, second):
    a, b = Always(first), Always(second)
    assert (a | b).check(_run(), None, None) == (first or second)
    assert (a & b).check(_run(), None, None) == (first and second)
    assert ((a & b) | a).check(_run(), None, None) == first
    assert ((a | b) & a & b).check(_run(), None, None) == (first and second)


@pytest.mark.parametrize("kind", [AnyOf, AllOf])
def test_every_rule_is_asked_in_every_round(kind):
    rules = [("a", Always(True)), ("b", Always(False)), ("c", Always(True))]
    rule = kind(rules).start()
    for n in range(1, 4):
        rule.check(_run(), None, None)
        assert [part.n_checks_ for _, part in rule.rules_] == [n, n, n]


def test_a_budget_beside_kappa_needs_both(data):
    kappa = KappaAverage(2, threshold=0.5)
    alone = len(_simulate(data, kappa).rounds)
    both = _simulate(data, kappa & LabelBudget(60))
    assert alone < len(both.rounds) == 11
    assert len(_simulate(data, kappa | LabelBudget(60)).rounds) == alone


def test_the_sign_flattens_its_own_kind_and_names_apart():
    rule = LabelBudget(1) | Plateau() | LabelBudget(2) | (RoundBudget(3) & Plateau())
    assert type(rule) is AnyOf
    names = ["label_budget", "plateau", "label_budget_2", "all_of"]
    assert [name for name, _ in rule.rules] == names
    assert (AnyOf([("mine", Plateau())]) | Plateau()).rules[0][0] == "mine"


def test_parameters_of_parts_are_reached_by_name():
    rule = LabelBudget(1) | (RoundBudget(3) & KappaAverage())
    rule.set_params(all_of__kappa_average__n_rounds=7, label_budget__n=2)
    assert rule.get_params()["all_of__kappa_average__n_rounds"] == 7
    assert rule.get_params()["label_budget"].n == 2
    assert rule.set_params(label_budget=Plateau()).rules[0][1].patience == 3
    twin = clone(rule)
    twin.set_params(all_of__round_budget__n=9)
    assert rule.get_params()["all_of__round_budget__n"] == 3


def test_the_rules_given_stay_as_they_are():
    part = KappaAverage()
    rule = part | LabelBudget(1)
    rule.check(_run(), Scripted(np.zeros(5)), np.arange(5))
    assert vars(part) == vars(KappaAverage())


def test_the_reason_is_the_rules_that_said_so():
    rule = (Always(True) | Always(False) | LabelBudget(9)).start()
    assert rule.reason().startswith("AnyOf(")
    rule.check(_run(), None, None)
    assert rule.reason() == "Always()"
    rule = LabelBudget(1) & (RoundBudget(1) | Plateau())
    rule.check(Run([{"asked": [0], "scores": {"f1": 1}}, {"asked": []}]), None, None)
    assert rule.reason() == "LabelBudget(n=1) & RoundBudget(n=1)"
    assert (
        "\n" not in KappaAverage(5, threshold=0.95, stop_set=list(range(99))).reason()
    )


def test_what_a_rule_requires_is_that_of_its_parts():
    rule = LabelBudget(1) | (Plateau() & TimeBudget(1))
    assert rule.requires == {"labels", "scores"}


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [LabelBudget(1)],
        [("a", LabelBudget)],
        [("a", 5)],
        [(1, LabelBudget(1))],
        [("a", LabelBudget(1), 2)],
    ],
)
@pytest.mark.parametrize("kind", [AnyOf, AllOf])
def test_a_bad_list_of_rules_is_refused(kind, rules):
    message = r"'rules' must be a list of \(name, rule\) tuples .* It is easier to"
    with pytest.raises(TypeError, match=message):
        kind(rules).start()


@pytest.mark.parametrize("name", ["a__b", "rules"])
def test_a_bad_name_of_a_part_is_refused(name):
    with pytest.raises(ValueError, match="Estimator names"):
        AnyOf([(name, LabelBudget(1))]).start()
    with pytest.raises(ValueError, match="not unique"):
        AnyOf([("a", LabelBudget(1))] * 2).start()


@pytest.mark.parametrize("other", [5, None, "plateau", LabelBudget])
def test_a_rule_is_joined_with_rules_only(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        LabelBudget(1) | other
    with pytest.raises(TypeError, match="unsupported operand"):
        LabelBudget(1) & other


# Every rule as a scikit-learn object


@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
def test_rules_can_be_cloned_compared_and_pickled(rule):
    twin = clone(rule)
    assert repr(twin) == repr(rule)
    assert twin.get_params().keys() == rule.get_params().keys()
    assert repr(pickle.loads(pickle.dumps(rule))) == repr(rule)
    for name, value in rule.get_params(deep=False).items():
        assert getattr(type(rule)(**{**rule.get_params(deep=False)}), name) is value


@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
def test_a_rule_is_the_same_in_every_simulation(data, rule):
    before = copy.deepcopy(vars(rule))
    first = _simulate(data, rule)
    assert first == _simulate(data, rule)
    assert first == _simulate(data, clone(rule))
    assert repr(vars(rule)) == repr(before)
    assert len(first.rounds) < 21
    assert first.stopped_by is not None


@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
def test_start_forgets_the_loop_before(data, rule):
    X, y = data
    rule = clone(rule)
    learner = _learner().fit(X[:10], y[:10])

    def answers():
        run = Run(info={"seed": 1})
        for i in range(4):
            run.append({"asked": range(10 * i, 10 * i + 10), "scores": {"f1": 0.5}})
            yield rule.check(run, learner, X)

    first = list(answers())
    rule.start()
    assert list(answers()) == first
    again = clone(rule).start()
    public = {name for name in vars(rule) if name.endswith("_")}
    assert public == {name for name in vars(again) if name.endswith("_")}
    assert rule.n_checks_ == 4


@pytest.mark.parametrize(
    "rule",
    [
        LabelBudget(0),
        LabelBudget(1.5),
        LabelBudget("5"),
        RoundBudget(0),
        TimeBudget(0),
        TimeBudget(-1),
        TimeBudget("1"),
        TimeBudget(1, clock=5),
        ClassificationChange(0),
        ClassificationChange(threshold=1),
        ClassificationChange(threshold=-0.1),
        KappaAverage(0),
        KappaAverage(threshold=1.1),
        KappaAverage(stop_set=0),
        KappaAverage(stop_set="all"),
        KappaAverage(random_state="x"),
        OverallUncertainty(0),
        OverallUncertainty(1.0),
        SelectedAccuracy(0),
        SelectedAccuracy(1.1),
        SelectedAccuracy(n_rounds=0),
        Plateau(5),
        Plateau(patience=0),
        Plateau(min_delta=-1),
    ],
    ids=repr,
)
def test_bad_parameters_are_named_before_any_work(data, rule):
    kind = type(rule).__name__
    with pytest.raises(ValueError, match=rf"The '\w+' parameter of {kind} must be"):
        _simulate(data, rule)
    with pytest.raises(ValueError, match=rf"The '\w+' parameter of {kind} must be"):
        (rule | LabelBudget(5)).check(_run(), None, None)


class _Watched(StoppingRule):
    """Hand the rule that a simulation clones back to the test."""

    def __init__(self, rule, seen=None):
        self.rule = rule
        self.seen = seen if seen is not None else _Kept()

    def start(self):
        super().start()
        self.rule_ = clone(self.rule).start()
        self.seen.append(self.rule_)
        return self

    def decide(self, run, learner, X):
        return self.rule_.check(run, learner, X)


class _Kept(list):
    """The same list in every clone."""

    def __sklearn_clone__(self):
        return self


@pytest.mark.parametrize("rule", RULES[3:8], ids=lambda r: type(r).__name__)
def test_a_resumed_simulation_stops_where_an_uninterrupted_one_does(
    tmp_path, data, rule
):
    whole = _simulate(data, rule)
    n_last = len(whole.rounds) - 1

    def scoring(learner, X, y):
        if learner.n_rounds_ == n_last and not (tmp_path / "once").exists():
            (tmp_path / "once").touch()
            raise KeyboardInterrupt
        return learner.score(X, y)

    params = {"scoring": {"accuracy": scoring}, "checkpoint": tmp_path / "kept"}
    with pytest.raises(KeyboardInterrupt):
        _simulate(data, rule, **params)
    assert _simulate(data, rule, **params) == whole


# Names and plugins

BUILTIN = {
    "label_budget": (LabelBudget, {"n": 5}),
    "round_budget": (RoundBudget, {"n": 5}),
    "time_budget": (TimeBudget, {"seconds": 5}),
    "classification_change": (ClassificationChange, {}),
    "kappa_average": (KappaAverage, {"threshold": 0.9}),
    "overall_uncertainty": (OverallUncertainty, {}),
    "selected_accuracy": (SelectedAccuracy, {}),
    "plateau": (Plateau, {}),
}


def test_the_built_in_names_are_those_of_pyproject():
    # After a change there the package has to be installed again.
    path = Path(__file__).parents[1] / "pyproject.toml"
    groups = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["entry-points"]
    assert sorted(groups["skactive.stopping"]) == sorted(BUILTIN)
    assert set(BUILTIN) <= set(get_stopping_rule_names())
    assert get_stopping_rule_names() == sorted(get_stopping_rule_names())


@pytest.mark.parametrize("name", BUILTIN)
def test_a_name_makes_its_rule(name):
    kind, params = BUILTIN[name]
    rule = get_stopping_rule(name, **params)
    assert type(rule) is kind
    assert params.items() <= rule.get_params().items()
    assert type(get_stopping_rule(f"skactive:{name}", **params)) is kind


def test_an_unknown_name_gets_a_suggestion():
    message = r"unknown stopping rule 'plato'\. Did you mean 'plateau'\? .*kappa_aver"
    with pytest.raises(ValueError, match=message):
        get_stopping_rule("plato")
    with pytest.raises(
        TypeError, match="A stopping rule itself needs no name: pass it"
    ):
        get_stopping_rule(Plateau())
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
        get_stopping_rule("label_budget")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Fake an installed distribution that offers rules."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(dist, source, **entries):
        module = f"fake_stopping_{dist}"
        path = tmp_path / f"{module}.py"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)
        info = tmp_path / f"{dist}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n", encoding="utf-8"
        )
        lines = [f"{name} = {module}:{attr}" for name, attr in entries.items()]
        (info / "entry_points.txt").write_text(
            "\n".join(["[skactive.stopping]", *lines, ""]), encoding="utf-8"
        )
        plugins.Group.refresh()

    yield install
    monkeypatch.undo()
    plugins.Group.refresh()


def test_a_rule_of_a_plugin_stops_a_simulation(install, data):
    source = """
    from skactive.stopping import StoppingRule

    class Odd(StoppingRule):
        def __init__(self, least=1):
            self.least = least

        def decide(self, run, learner, X):
            return run.n_labeled[-1] % 2 == 1 and run.n_labeled[-1] > self.least
    """
    install("one", source, odd="Odd")
    assert "odd" in get_stopping_rule_names()
    run = _simulate(data, get_stopping_rule("odd", least=20))
    assert run.n_labeled[-1] == 25
    assert run.stopped_by == "Odd(least=20)"


@pytest.mark.parametrize(
    "source", ["class Bad: pass", "def Bad(): pass", "Bad = 5", "Bad = object()"]
)
def test_what_is_no_rule_is_refused(install, source):
    install("two", source, bad="Bad")
    message = r"two 1\.0 offers as the stopping rule 'bad', must be a class with the"
    with pytest.raises(TypeError, match=message):
        get_stopping_rule("bad")


def test_a_plugin_that_cannot_be_loaded_stops_no_other(install):
    install("three", "raise RuntimeError('no luck')", bad="Bad")
    message = r"stopping rule 'bad' of three 1\.0 cannot .*other stopping rules are not"
    with pytest.raises(ImportError, match=message):
        get_stopping_rule("bad")
    assert type(get_stopping_rule("plateau")) is Plateau


# As callbacks of scikit-learn


@pytest.fixture
def steps():
    """A classifier that trains in steps and stops when a callback says so."""
    callback = pytest.importorskip("sklearn.callback")

    class Steps(callback.CallbackSupportMixin, ClassifierMixin, BaseEstimator):
        def __init__(self, max_iter=20, right=5):
            self.max_iter = max_iter
            self.right = right

        @callback.with_callbacks
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            context = self._init_callback_context(max_subtasks=self.max_iter)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
            self.n_iter_, self.stopped_ = 0, []
            while self.n_iter_ < self.max_iter and not self._step(context, X=X, y=y):
                pass
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
            return self

        def _step(self, context, **known):
            self.n_iter_ += 1
            step = context.subcontext(task_name="step")
            step.call_on_fit_task_begin(estimator=self, **known)
            known["reconstruction_attributes"] = {"n_iter_": self.n_iter_}
            return step.call_on_fit_task_end(estimator=self, **known)

        def predict(self, X):
            # Right about one item more with each step, until all that it can be.
            right = np.arange(len(X)) < min(self.n_iter_, self.right)
            return np.where(right, self.classes_[1], self.classes_[0])

    return Steps


X10, Y10 = np.zeros((10, 1)), np.array([1] * 9 + [0])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RoundBudget(4), 4),
        (Plateau(patience=3), 8),
        (ClassificationChange(stop_set=None), 6),
        (KappaAverage(3, threshold=1.0), 8),
        (RoundBudget(7) | Plateau(patience=3), 7),
        (RoundBudget(7) & Plateau(patience=3), 8),
        (TimeBudget(1e-9), 1),
        (TimeBudget(1e9), 20),
    ],
    ids=repr,
)
def test_a_rule_ends_training(steps, rule, expected):
    before = repr(vars(rule))
    model = steps().set_callbacks(as_callback(rule, X10, Y10))
    assert model.fit(X10, Y10).n_iter_ == expected
    assert model.fit(X10, Y10).n_iter_ == expected  # starts anew
    assert clone(model).fit(X10, Y10).n_iter_ == expected
    assert repr(vars(rule)) == before


def test_the_innermost_steps_are_the_rounds(steps):
    class Epochs(steps):
        def _step(self, context, **known):
            self.n_iter_ += 1
            step = context.subcontext(task_name="epoch", max_subtasks=2)
            for _ in range(2):
                batch = step.subcontext(task_name="batch")
                self.stopped_.append(batch.call_on_fit_task_end(estimator=self))
            return step.call_on_fit_task_end(estimator=self)

    model = Epochs(max_iter=3).set_callbacks(as_callback(RoundBudget(4)))
    model.fit(X10, Y10)
    assert model.stopped_ == [False, False, False, True, True, True]


def test_a_rule_ends_training_of_several_at_once(steps):
    from sklearn.model_selection import GridSearchCV

    model = steps().set_callbacks(as_callback(Plateau(patience=2), X10, Y10))
    search = GridSearchCV(model, {"right": [1, 3, 6]}, cv=2, n_jobs=2)
    from joblib import parallel_backend

    with parallel_backend("threading"):
        search.fit(np.zeros((20, 1)), np.arange(20) % 2)
    assert search.best_estimator_.n_iter_ == search.best_params_["right"] + 2


def test_a_metric_can_be_chosen(steps):
    scores = []

    def scoring(model, X, y):
        scores.append(model.n_iter_)
        return 0.0

    callback = as_callback(Plateau(patience=4), X10, Y10, scoring=scoring)
    assert steps().set_callbacks(callback).fit(X10, Y10).n_iter_ == 5
    assert scores == [1, 2, 3, 4, 5]


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
def test_estimators_of_scikit_learn_report_their_steps(data):
    pytest.importorskip("sklearn.callback")
    X, y = data
    rule = _Watched(RoundBudget(2) | Plateau(patience=2))
    callback = as_callback(rule, X[200:], y[200:])
    model = LogisticRegression(max_iter=30).set_callbacks(callback).fit(X, y)
    # Whether the answer ends the training is up to scikit-learn; 1.9 asks in vain.
    assert rule.seen[-1].n_checks_ >= min(2, model.n_iter_[0])


def test_a_callback_can_be_pickled(steps):
    callback = as_callback(Plateau(), X10, Y10)
    twin = pickle.loads(pickle.dumps(callback))
    assert steps().set_callbacks(twin).fit(X10, Y10).n_iter_ == 8


@pytest.mark.parametrize(
    ("rule", "given", "error", "message"),
    [
        (LabelBudget(5), (X10, Y10), TypeError, "training asks for none"),
        (SelectedAccuracy(), (X10, Y10), TypeError, "training asks for none"),
        (Plateau() | LabelBudget(5), (X10, Y10), TypeError, "training asks for none"),
        (KappaAverage(), (), ValueError, "'X' is None, and KappaAverage"),
        (Plateau(), (X10,), ValueError, "'X' and 'y' are needed by Plateau"),
        (Plateau(), (), ValueError, "'X' and 'y' are needed by Plateau"),
        (5, (), TypeError, "'rule' must be a stopping rule, got 5"),
        (Plateau, (), TypeError, "'rule' must be a stopping rule"),
        (RoundBudget(0), (), ValueError, "The 'n' parameter of RoundBudget"),
    ],
)
def test_a_rule_that_cannot_watch_training_is_refused(rule, given, error, message):
    pytest.importorskip("sklearn.callback")
    with pytest.raises(error, match=message):
        as_callback(rule, *given)


def test_an_older_scikit_learn_is_named(monkeypatch):
    monkeypatch.setattr("skactive.stopping.callback.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=re.escape("pip install 'scikit-learn>=1.9'")):
        as_callback(TimeBudget(5))


def test_nan_scores_of_a_callback_do_not_stop(steps):
    callback = as_callback(
        Plateau(patience=1), X10, Y10, scoring=lambda *args: math.nan
    )
    assert steps().set_callbacks(callback).fit(X10, Y10).n_iter_ == 20


# The page


@pytest.mark.slow
def test_the_examples_of_the_page_run(capsys):
    pytest.importorskip("sklearn.callback")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)
    assert re.search(r"\d+ labels, stopped by \w+\(", capsys.readouterr().out)
    assert len(names["run"].rounds) > 1
    rule = names["Affordable"](money=70)
    assert not rule.check(Run([{"asked": range(35)}]), None, None)
    assert rule.check(Run([{"asked": range(36)}]), None, None)


def test_the_page_names_every_rule_with_its_defaults():
    rows = dict(re.findall(r"^\| `(\w+)`: (.*)$", PAGE, re.MULTILINE))
    assert sorted(rows) == sorted(BUILTIN)
    for name, (kind, params) in BUILTIN.items():
        assert f"`{kind.__name__}(" in rows[name]
        if {"n", "seconds"}.isdisjoint(params):
            defaults = kind().get_params()
            defaults.pop("random_state", None)
            for param, value in defaults.items():
                assert f"{param}={value}" in rows[name]
