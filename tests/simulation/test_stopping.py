"""A rule ends a simulation, and is asked about the model of each round."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from skactive import simulate
from skactive.stopping import ClassificationChange, LabelBudget, RoundBudget

from ._helpers import X, make, y


class Plateau(BaseEstimator):
    """Stop when the score has not changed for a number of rounds."""

    def __init__(self, patience=2):
        self.patience = patience

    def start(self):
        self.last_, self.n_same_, self.n_seen_ = None, 0, 0

    def check(self, run, learner, X):
        self.n_seen_ += 1
        assert len(run.rounds) == self.n_seen_
        accuracy = learner.score(X, y)
        assert run.scores[-1] == accuracy, "not the model of this round"
        self.n_same_ = self.n_same_ + 1 if accuracy == self.last_ else 0
        self.last_ = accuracy
        return np.bool_(self.n_same_ >= self.patience)


OPTIONS = {"n_initial": 6, "n_rounds": 14, "X_test": X, "y_test": y}


def test_a_rule_ends_the_loop():
    rule = Plateau()
    full = simulate(make(), X, y, **OPTIONS)
    run = simulate(make(), X, y, stopping=rule, **OPTIONS)
    same = np.diff(full.scores) == 0
    stop = np.flatnonzero(same[1:] & same[:-1])[0] + 2
    assert len(run.rounds) == stop + 1 < len(full.rounds)
    assert_array_equal(run.scores, full.scores[: stop + 1])
    assert (run.stopped_by, full.stopped_by) == ("Plateau()", None)
    assert not hasattr(rule, "n_seen_"), "the rule itself was used"


def test_a_rule_is_not_asked_before_there_is_a_model():
    class Never(Plateau):
        def check(self, run, learner, X):
            learner.predict(X)
            return False

    run = simulate(make(), X, y, n_initial=0, n_rounds=2, stopping=Never())
    assert run.stopped_by is None
    assert len(run.rounds) == 3


@pytest.mark.parametrize("rule", [3, Plateau, LogisticRegression()])
def test_what_is_no_rule(rule):
    with pytest.raises(TypeError, match=r"'stopping' must be a rule with .*start\(\)"):
        simulate(make(), X, y, stopping=rule)


def test_the_library_s_own_rules():
    run = simulate(make(), X, y, **OPTIONS, stopping=LabelBudget(20))
    assert run.n_labeled[-1] >= 20 > run.n_labeled[-2]
    assert run.stopped_by == "LabelBudget(n_labels=20)"
    rule = LabelBudget(50) | RoundBudget(2)
    run = simulate(make(), X, y, **OPTIONS, stopping=rule)
    assert (len(run.rounds), run.stopped_by) == (3, "RoundBudget(n_rounds=2)")
    # Looking at the models changes nothing of what is asked.
    full = simulate(make(), X, y, **OPTIONS)
    run = simulate(make(), X, y, **OPTIONS, stopping=ClassificationChange())
    assert "ClassificationChange" in run.stopped_by
    assert run.rounds == [
        {**r, **{k: run.rounds[i][k] for k in r if k.endswith("seconds")}}
        for i, r in enumerate(full.rounds[: len(run.rounds)])
    ]


def test_a_rule_by_its_name(monkeypatch):
    with pytest.raises(ValueError, match="unknown stopping rule 'kapa'"):
        simulate(make(), X, y, stopping="kapa")
    rules = {"label_budget": LabelBudget(20)}
    monkeypatch.setattr("skactive.simulation._simulate.get_stopping_rule", rules.get)
    run = simulate(make(), X, y, **OPTIONS, stopping="label_budget")
    assert run.stopped_by == "LabelBudget(n_labels=20)"
