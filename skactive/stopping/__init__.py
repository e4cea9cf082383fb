"""Rules that stop the labeling loop.

Call `rule.start()` before a loop and `rule.check(run, learner, X)` after each round.
"""

from ._base import StoppingRule, as_callback
from ._base import is_rule as is_rule
from ._base import should_stop as should_stop

# Private names that other folders use are imported as themselves.
from ._cost import CostRule
from ._predictions import (
    ClassificationChange,
    KappaAverage,
    OverallUncertainty,
    SelectedAccuracy,
)
from ._records import RULES as RULES
from ._records import (
    AuditGoal,
    LabelBudget,
    Plateau,
    RoundBudget,
    TimeBudget,
    get_stopping_rule,
)
from ._run import Run

__all__ = [
    "AuditGoal",
    "ClassificationChange",
    "CostRule",
    "KappaAverage",
    "LabelBudget",
    "OverallUncertainty",
    "Plateau",
    "RoundBudget",
    "Run",
    "SelectedAccuracy",
    "StoppingRule",
    "TimeBudget",
    "as_callback",
    "get_stopping_rule",
]
