"""Find stopping rules by name: the built-in ones and those of installed plugins."""

from __future__ import annotations

from .. import plugins
from .combined import is_rule

__all__ = ["GROUP", "get_stopping_rule", "get_stopping_rule_names"]

GROUP = "skactive.stopping"

_group = plugins.Group(GROUP, "stopping rule", "stopping rules", "stopping")


def get_stopping_rule_names():
    """Names of the stopping rules, in alphabetical order.

    Returns
    -------
    names : list of str
        A name that several distributions offer appears as `dist:name` for each.
    """
    return _group.names()


def get_stopping_rule(name, **params):
    """Make the stopping rule of a name.

    Parameters
    ----------
    name : str
        A name, or `dist:name` where several distributions offer one.
    **params
        Parameters of the rule.

    Returns
    -------
    rule : StoppingRule

    Raises
    ------
    ValueError
        If the name is unknown or ambiguous.
    ImportError
        If the plugin that offers it cannot be imported.
    TypeError
        If `name` is no str, or what the plugin offers is no rule or does not take the
        parameters.

    Examples
    --------
    >>> from skactive.stopping import get_stopping_rule
    >>> get_stopping_rule("label_budget", n=500)
    LabelBudget(n=500)
    """
    entry = _group.find(name)
    offered = _group.load(entry)
    rule = offered(**params) if isinstance(offered, type) else offered
    if rule is offered or not is_rule(rule):
        raise TypeError(
            f"{entry.value!r}, which {entry.dist} {entry.version} offers as the "
            f"stopping rule {entry.name!r}, must be a class with the methods start() "
            "and check(run, learner, X). Derive it from skactive.stopping.StoppingRule."
        )
    return rule
