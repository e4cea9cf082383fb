"""Rules that say when to stop labelling.

`rule.start()` begins a loop, `rule.check(run, learner, X)` is asked after each round.
"""

from .agreement import ClassificationChange, KappaAverage
from .base import StoppingRule
from .budgets import LabelBudget, RoundBudget, TimeBudget
from .callback import as_callback
from .combined import AllOf, AnyOf
from .confidence import OverallUncertainty, SelectedAccuracy
from .names import get_stopping_rule, get_stopping_rule_names
from .plateau import Plateau

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
