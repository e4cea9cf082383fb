"""What a rule watches: stop sets, and learners without classes to compare."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from skactive import ActiveLearner
from skactive.simulation import Run
from skactive.stopping import (
    ClassificationChange,
    KappaAverage,
    OverallUncertainty,
    SelectedAccuracy,
)

from ._helpers import Scripted, _run

# Stop sets


def _drawn(rule, run=None, n=50):
    rule.start()
    rule.check(run or _run(), Scripted(np.zeros(n, dtype=int)), np.arange(n))
    return rule.stop_set_


@pytest.mark.parametrize(
    "kind", [KappaAverage, ClassificationChange, OverallUncertainty]
)
def test_a_stop_set_is_drawn_from_the_unlabeled(kind):
    answers = np.full((50, 2), 0.5) if kind is OverallUncertainty else np.zeros(50)
    run = Run([{"queried": range(0, 50, 2)}])
    rule = kind(stop_set=10, random_state=3).start()
    rule.check(run, Scripted(answers), np.arange(50))
    assert len(set(rule.stop_set_.tolist())) == 10
    assert (rule.stop_set_ % 2 == 1).all()


@pytest.mark.parametrize("stop_set", [None, 50, 25])
def test_if_fewer_are_unlabeled_all_of_them_are_used(stop_set):
    rule = KappaAverage(stop_set=stop_set)
    assert _drawn(rule, Run([{"queried": range(25)}])).tolist() == list(range(25, 50))


def test_the_stop_set_is_drawn_once_for_each_loop():
    rule = KappaAverage(stop_set=5, random_state=np.random.RandomState(0)).start()
    first = _drawn(rule)
    for queried in ([], [first[0]], range(40)):
        rule.check(Run([{"queried": queried}]), Scripted(np.zeros(50)), np.arange(50))
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
    queried = []

    class Learner(Scripted):
        def predict(self, X):
            queried.append(np.asarray(X).tolist())
            return super().predict(X)

    rule = KappaAverage(stop_set=[2, 5])
    rule.check(_run(), Learner(np.zeros(50)), np.arange(50))
    assert queried == [[2, 5]]


def test_another_pool_is_noticed():
    rule = KappaAverage(stop_set=[1, 2])
    _drawn(rule, n=50)
    with pytest.raises(ValueError, match="'X' holds 49 items, and held 50 when"):
        rule.check(_run(), Scripted(np.zeros(49)), np.arange(49))
    with pytest.raises(ValueError, match="'X' holds 3 items, and the run queried pos"):
        KappaAverage().check(
            Run([{"queried": [3]}]), Scripted(np.zeros(3)), np.arange(3)
        )


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


def test_with_everything_labeled_the_stop_set_is_empty():
    rule = KappaAverage(1)
    run = Run([{"queried": range(5)}])
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
        run.append({"queried": [i]})
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
    y = np.column_stack([X[:, 0] > 3, X[:, 0] % 2 + 1]).astype(int)
    model = MultiOutputClassifier(LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match=r"an array of shape .*Use a budget"):
        clone(rule).check(_run(), model, X)
