"""Stopping rules by name: the built-in ones and those of installed plugins."""

from typing import Any

from .._utils import _plugins
from ._base import is_rule

GROUP = "skactive.stopping"

_group = _plugins.Group(GROUP, "stopping rule", "stopping rules", "stopping")


def get_stopping_rule_names() -> list[str]:
    """Return the names of the stopping rules, in alphabetical order.

    Returns
    -------
    names : list of str
        A built-in name means the built-in rule. Any other name that several
        distributions offer appears as `dist:name` for each.
    """
    return _group.names()


def get_stopping_rule(name: str, **params: Any) -> Any:
    """Return a new stopping rule by its name.

    Parameters
    ----------
    name : str
        A name, or `dist:name`. The name of a built-in rule always means that rule.
    **params
        Parameters of the rule.

    Returns
    -------
    rule : StoppingRule

    Raises
    ------
    ValueError
        If the name is unknown or ambiguous, or the value of a parameter is invalid.
    ImportError
        If the plugin that offers it cannot be imported.
    TypeError
        If `name` is not a str, the parameters do not fit the rule, or the object that
        the plugin offers is not a rule.

    Examples
    --------
    >>> from skactive.stopping import get_stopping_rule
    >>> get_stopping_rule("label_budget", n=500)
    LabelBudget(n=500)
    """
    entry = _group.find(name)
    offered = _group.load(entry)
    rule = None
    if isinstance(offered, type):
        rule = _group.make(entry, offered, params)
    if not is_rule(rule):
        raise TypeError(
            f"{entry.value!r}, which {entry.dist} {entry.version} offers as the "
            f"stopping rule {entry.name!r}, must be a class with the methods start() "
            "and check(run, learner, X). Derive it from skactive.stopping.StoppingRule."
        )
    return rule
