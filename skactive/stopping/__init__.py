"""Rules that stop the labeling loop.

Call `rule.start()` before a loop and `rule.check(run, learner, X)` after each round.
"""

from ._base import AllOf, AnyOf, StoppingRule
from ._base import should_stop as should_stop
from ._callback import as_callback
from ._cost import CostRule

# Private names that other folders use are imported as themselves.
from ._estimates import estimate_accuracy as estimate_accuracy
from ._estimates import gain_of_labels as gain_of_labels
from ._estimates import is_rich as is_rich
from ._estimates import n_for_gain as n_for_gain
from ._names import get_stopping_rule
from ._out_of_fold import out_of_fold as out_of_fold
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
