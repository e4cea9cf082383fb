"""Rules that stop the labeling loop.

Call `rule.start()` before a loop and `rule.check(run, learner, X)` after each round.
"""

from difflib import get_close_matches
from typing import Any

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
    "get_stopping_rule",
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


def get_stopping_rule(name: str, **params: Any) -> StoppingRule:
    """Return a new stopping rule by its name.

    Parameters
    ----------
    name : str
        The name of the class in lower case, with underscores.
    **params
        Parameters of the rule.

    Returns
    -------
    rule : StoppingRule

    Raises
    ------
    ValueError
        If the name is unknown, or the value of a parameter is invalid.
    TypeError
        If `name` is not a str, or the parameters do not fit the rule.

    Examples
    --------
    >>> from skactive import ActiveLearner, simulate
    >>> from skactive.stopping import get_stopping_rule
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(LogisticRegression(max_iter=500), batch_size=10)
    >>> rule = get_stopping_rule("label_budget", n_labels=50)
    >>> run = simulate(learner, X, y, n_initial=10, n_rounds=9, stopping=rule)
    >>> print(len(run.queried), "labels")
    50 labels
    """
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
    return make("stopping rule", name, RULES[name], params)
