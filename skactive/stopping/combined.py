"""Several stopping rules as one."""

from __future__ import annotations

import re

from sklearn.base import clone

from .._sklearn import BaseComposition
from .base import StoppingRule, should_stop

__all__ = ["AllOf", "AnyOf"]


class _Combined(BaseComposition, StoppingRule):
    """Ask several rules after each round."""

    _parameter_constraints = {"rules": [list]}
    _sign = None

    def __init__(self, rules):
        self.rules = rules

    @property
    def requires(self):
        """What any of the rules looks at."""
        parts = (getattr(rule, "requires", frozenset()) for _, rule in self.rules)
        return frozenset().union(*parts)

    def get_params(self, deep=True):
        """Get the parameters, and those of the rules.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add the rules by their names, and `name__parameter`.

        Returns
        -------
        params : dict
        """
        return self._get_params("rules", deep=deep)

    def set_params(self, **params):
        """Set parameters, rules by their names, or parameters of rules.

        Parameters
        ----------
        **params : dict
            `rules`, `name` or `name__parameter`.

        Returns
        -------
        self : StoppingRule
        """
        self._set_params("rules", **params)
        return self

    def start(self):
        """Check the parameters and start a clone of each rule.

        Returns
        -------
        self : StoppingRule
        """
        super().start()
        self._check_rules()
        self.rules_ = [(name, clone(rule, safe=False)) for name, rule in self.rules]
        self.agreed_ = []
        for _, rule in self.rules_:
            rule.start()
        return self

    def decide(self, run, learner, X):
        """Ask every rule, as each may keep something from round to round.

        Parameters
        ----------
        run, learner, X
            As in :meth:`StoppingRule.check`.

        Returns
        -------
        stop : bool
        """
        self.agreed_ = [
            name for name, rule in self.rules_ if should_stop(rule, run, learner, X)
        ]
        return self._enough(len(self.agreed_))

    def reason(self):
        """Say in one line which rules stopped the loop.

        Returns
        -------
        reason : str
        """
        if not getattr(self, "agreed_", None):
            return super().reason()
        said = [rule for name, rule in self.rules_ if name in self.agreed_]
        reasons = [getattr(rule, "reason", rule.__repr__)() for rule in said]
        return self._sign.join(reasons)

    def _check_rules(self):
        rules = self.rules
        good = [
            isinstance(item, tuple)
            and len(item) == 2
            and isinstance(item[0], str)
            and is_rule(item[1])
            for item in rules
        ]
        if not rules or not all(good):
            got = rules[good.index(False)] if rules else rules
            raise TypeError(
                "'rules' must be a list of (name, rule) tuples with at least one, such "
                f"as [('budget', LabelBudget(500))]; got {got!r}. It is easier to "
                "write a | b or a & b."
            )
        self._validate_names([name for name, _ in rules])

    @classmethod
    def _of(cls, first, second):
        """Join two rules; those that already are of this kind are taken apart."""
        parts = []
        for rule in (first, second):
            if not is_rule(rule):
                return NotImplemented
            is_kind = type(rule) is cls
            parts += rule.rules if is_kind else [(_snake_case(type(rule)), rule)]
        named = {}
        for wanted, rule in parts:
            name, number = wanted, 1
            while name in named:
                number += 1
                name = f"{wanted}_{number}"
            named[name] = rule
        return cls(list(named.items()))


class AnyOf(_Combined):
    """Stop as soon as one of several rules says so; also written `a | b`.

    Parameters
    ----------
    rules : list of (str, rule) tuples
        Names and rules; a rule's parameters are `name__parameter`.

    Attributes
    ----------
    rules_ : list of (str, rule) tuples
        The clones that are asked.
    agreed_ : list of str
        Names of the rules that said stop when they were last asked.

    See Also
    --------
    AllOf : Stop when all say so.

    Examples
    --------
    >>> from skactive.stopping import LabelBudget, Plateau
    >>> rule = LabelBudget(500) | Plateau()
    >>> rule
    AnyOf(rules=[('label_budget', LabelBudget(n=500)), ('plateau', Plateau())])
    >>> rule.set_params(plateau__patience=5).get_params()["plateau__patience"]
    5
    """

    _sign = " | "

    @staticmethod
    def _enough(n):
        return n > 0


class AllOf(_Combined):
    """Stop when several rules say so after one and the same round; also `a & b`.

    Parameters
    ----------
    rules : list of (str, rule) tuples
        Names and rules; a rule's parameters are `name__parameter`.

    Attributes
    ----------
    rules_ : list of (str, rule) tuples
        The clones that are asked.
    agreed_ : list of str
        Names of the rules that said stop when they were last asked.

    See Also
    --------
    AnyOf : Stop when one says so.

    Examples
    --------
    Once predictions are stable, but not before 200 labels:

    >>> from skactive.stopping import KappaAverage, LabelBudget
    >>> rule = LabelBudget(200) & KappaAverage()
    >>> [name for name, _ in rule.rules]
    ['label_budget', 'kappa_average']
    """

    _sign = " & "

    def _enough(self, n):
        return n == len(self.rules_)


def is_rule(rule):
    """Tell an object with the methods of a rule.

    Parameters
    ----------
    rule : object

    Returns
    -------
    is_rule : bool
    """
    return not isinstance(rule, type) and all(
        callable(getattr(rule, method, None)) for method in ("start", "check")
    )


def _snake_case(kind):
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", kind.__name__)
    return "_".join(words).lower()
