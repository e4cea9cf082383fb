"""Rules made of several: truth tables, names, parameters and reasons."""

import numpy as np
import pytest
from sklearn.base import clone

from skactive.simulation import Run
from skactive.stopping import (
    KappaAverage,
    LabelBudget,
    Plateau,
    RoundBudget,
    StoppingRule,
    TimeBudget,
)
from skactive.stopping._base import AllOf, AnyOf

from ._helpers import Scripted, _run, _simulate


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


@pytest.mark.parametrize("answer", [None, "yes", 1, np.array([True, False])])
def test_a_rule_that_answers_neither_true_nor_false_is_refused(answer):
    with pytest.raises(TypeError, match=r"Always\.decide must return True or False"):
        Always(answer).check(_run(), None, None)


@pytest.mark.parametrize("answer", [np.True_, np.array(True)])
def test_a_rule_may_answer_by_a_numpy_bool(answer):
    assert Always(answer).check(_run(), None, None) is True


def test_a_rule_by_its_methods_alone_must_answer_true_or_false():
    class Plain:
        def start(self):
            return self

        def check(self, run, learner, X):
            return None

    rule = AnyOf([("plain", Plain())]).start()
    with pytest.raises(TypeError, match=r"Plain\.check must return True or False"):
        rule.check(_run(), None, None)


@pytest.mark.parametrize("kind", [AnyOf, AllOf])
def test_every_rule_is_asked_in_every_round(kind):
    rules = [("a", Always(True)), ("b", Always(False)), ("c", Always(True))]
    rule = kind(rules).start()
    for n in range(1, 4):
        rule.check(_run(), None, None)
        assert [part.n_checks_ for _, part in rule.rules_] == [n, n, n]


def test_a_budget_and_kappa_need_both(data):
    kappa = KappaAverage(2, threshold=0.5)
    alone = len(_simulate(data, kappa).rounds)
    both = _simulate(data, kappa & LabelBudget(60))
    assert alone < len(both.rounds) == 11
    assert len(_simulate(data, kappa | LabelBudget(60)).rounds) == alone


def test_operators_flatten_rules_of_their_kind_and_number_equal_names():
    rule = LabelBudget(1) | Plateau() | LabelBudget(2) | (RoundBudget(3) & Plateau())
    assert type(rule) is AnyOf
    names = ["label_budget", "plateau", "label_budget_2", "all_of"]
    assert [name for name, _ in rule.rules] == names
    assert (AnyOf([("mine", Plateau())]) | Plateau()).rules[0][0] == "mine"


def test_parameters_of_parts_are_reached_by_name():
    rule = LabelBudget(1) | (RoundBudget(3) & KappaAverage())
    rule.set_params(all_of__kappa_average__n_rounds=7, label_budget__n_labels=2)
    assert rule.get_params()["all_of__kappa_average__n_rounds"] == 7
    assert rule.get_params()["label_budget"].n_labels == 2
    assert rule.set_params(label_budget=Plateau()).rules[0][1].patience == 3
    twin = clone(rule)
    twin.set_params(all_of__round_budget__n_rounds=9)
    assert rule.get_params()["all_of__round_budget__n_rounds"] == 3


def test_the_rules_given_stay_as_they_are():
    part = KappaAverage()
    rule = part | LabelBudget(1)
    rule.check(_run(), Scripted(np.zeros(5)), np.arange(5))
    assert vars(part) == vars(KappaAverage())


def test_the_reason_names_the_rules_that_stopped():
    rule = (Always(True) | Always(False) | LabelBudget(9)).start()
    assert rule.reason().startswith("AnyOf(")
    rule.check(_run(), None, None)
    assert rule.reason() == "Always()"
    rule = LabelBudget(1) & (RoundBudget(1) | Plateau())
    rule.check(
        Run([{"queried": [0], "scores": {"f1": 1}}, {"queried": []}]), None, None
    )
    assert rule.reason() == "LabelBudget(n_labels=1) & RoundBudget(n_rounds=1)"
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
    message = (
        r"'rules' must be a non-empty list of \(name, rule\) tuples.* Write a \| b"
    )
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
