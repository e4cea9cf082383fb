"""Rules that stop the labeling loop.

Call `rule.start()` before a loop and `rule.check(run, learner, X)` after each round.
"""

from ._agreement import ClassificationChange, KappaAverage
from ._base import AllOf, AnyOf, StoppingRule
from ._budgets import LabelBudget, RoundBudget, TimeBudget
from ._callback import as_callback
from ._confidence import OverallUncertainty, SelectedAccuracy
from ._names import get_stopping_rule, get_stopping_rule_names
from ._plateau import Plateau

__all__ = [
    "AllOf",
    "AnyOf",
    "ClassificationChange",
    "KappaAverage",
    "LabelBudget",
    "OverallUncertainty",
    "Plateau",
    "RoundBudget",
    "SelectedAccuracy",
    "StoppingRule",
    "TimeBudget",
    "as_callback",
    "get_stopping_rule",
    "get_stopping_rule_names",
]
