"""Rules that stop the labeling loop.

Call `rule.start()` before a loop and `rule.check(run, learner, X)` after each round.
"""

from ._base import AllOf, AnyOf, StoppingRule
from ._callback import as_callback
from ._cost import CostRule
from ._names import get_stopping_rule
from ._predictions import (
    ClassificationChange,
    KappaAverage,
    OverallUncertainty,
    SelectedAccuracy,
)
from ._records import LabelBudget, Plateau, RoundBudget, TimeBudget

__all__ = [
    "AllOf",
    "AnyOf",
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
    "get_stopping_rule",
]
