"""Rules by their names, and on the page about them."""

import re
from pathlib import Path

import pytest

from skactive import stopping
from skactive.simulation import Run
from skactive.stopping import (
    RULES,
    AuditGoal,
    ClassificationChange,
    CostRule,
    KappaAverage,
    LabelBudget,
    OverallUncertainty,
    Plateau,
    RoundBudget,
    SelectedAccuracy,
    TimeBudget,
    get_stopping_rule,
)

PAGE = (Path(__file__).parents[2] / "docs/guides/when_to_stop.md").read_text("utf-8")


# Names

BUILTIN = {
    "audit_goal": (AuditGoal, {"until": "shares:3"}),
    "label_budget": (LabelBudget, {"n_labels": 5}),
    "round_budget": (RoundBudget, {"n_rounds": 5}),
    "time_budget": (TimeBudget, {"seconds": 5}),
    "classification_change": (ClassificationChange, {}),
    "cost_rule": (CostRule, {"label_cost": 1, "error_cost": 5.0}),
    "kappa_average": (KappaAverage, {}),
    "overall_uncertainty": (OverallUncertainty, {}),
    "selected_accuracy": (SelectedAccuracy, {}),
    "plateau": (Plateau, {}),
}


def test_every_rule_has_a_name():
    assert {name: kind for name, (kind, _) in BUILTIN.items()} == RULES
    exported = [getattr(stopping, name) for name in stopping.__all__]
    rules = {kind for kind in exported if isinstance(kind, type)}
    combined = {stopping.StoppingRule, stopping.Run}
    assert rules - combined == set(RULES.values())


@pytest.mark.parametrize(
    "name", [n for n, (_, params) in BUILTIN.items() if not params]
)
def test_a_name_makes_its_rule(name):
    assert type(get_stopping_rule(name)) is BUILTIN[name][0]


def test_an_unknown_name_gets_a_suggestion():
    message = r"unknown stopping rule 'plato'\. Did you mean 'plateau'\? .*kappa_aver"
    with pytest.raises(ValueError, match=message):
        get_stopping_rule("plato")
    with pytest.raises(
        TypeError, match="A stopping rule itself needs no name: pass it"
    ):
        get_stopping_rule(Plateau())


def test_a_parameter_without_a_default_must_be_given():
    message = r"'n_labels' must be given: the stopping rule .* LabelBudget\(n_labels="
    with pytest.raises(TypeError, match=message):
        get_stopping_rule("label_budget")


# The page


def test_the_page_names_every_rule():
    for kind, _ in BUILTIN.values():
        assert re.search(
            rf"^\| `{kind.__name__}\(|^\| .*, `{kind.__name__}\(", PAGE, re.M
        )


def test_the_rule_of_the_page_counts_the_next_batch():
    (block,) = re.findall(r"```python\n([^`]*class Affordable.*?)\n\n\nrun", PAGE, re.S)
    names = {}
    exec(block, names)
    rule = names["Affordable"](money=70)
    assert not rule.check(Run([{"queried": range(35)}]), None, None)
    assert rule.check(Run([{"queried": range(36)}]), None, None)
