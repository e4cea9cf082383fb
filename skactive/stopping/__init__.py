"""Rules that stop the labeling loop.

Call `rule.start()` before a loop and `rule.check(run, learner, X)` after each round.
"""

from difflib import get_close_matches

from ..registry import make
from ._base import StoppingRule, as_callback
from ._base import is_rule as is_rule
from ._base import should_stop as should_stop

# Private names that other folders use are imported as themselves.
from ._estimates import CostRule
from ._estimates import estimate_accuracy as estimate_accuracy
from ._estimates import gain_of_labels as gain_of_labels
from ._estimates import is_rich as is_rich
from ._estimates import n_for_gain as n_for_gain
from ._estimates import out_of_fold as out_of_fold
from ._predictions import (
    ClassificationChange,
    KappaAverage,
    OverallUncertainty,
    SelectedAccuracy,
)
from ._records import LabelBudget, Plateau, RoundBudget, TimeBudget

__all__ = [
    "ClassificationChange",
    "CostRule",
    "KappaAverage",
    "LabelBudget",
    "OverallUncertainty",
    "Plateau",
    "RoundBudget",
    "SelectedAccuracy",
    "StoppingRule",
    "TimeBudget",
    "as_callback",
]

RULES: dict[str, type[StoppingRule]] = {
    "classification_change": ClassificationChange,
    "cost_rule": CostRule,
    "kappa_average": KappaAverage,
    "label_budget": LabelBudget,
    "overall_uncertainty": OverallUncertainty,
    "plateau": Plateau,
    "round_budget": RoundBudget,
    "selected_accuracy": SelectedAccuracy,
    "time_budget": TimeBudget,
}


def get_stopping_rule(name):
    """Return a new stopping rule by its name."""
    if not isinstance(name, str):
        raise TypeError(
            f"'name' must be a str, got {name!r}. A stopping rule itself needs no "
            "name: pass it as stopping=."
        )
    if name not in RULES:
        close = get_close_matches(name.lower(), RULES, n=3)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(
            f"unknown stopping rule {name!r}.{hint} The names are: {', '.join(RULES)}."
        )
    return make("stopping rule", name, RULES[name], {})
