"""What a stopping rule is."""

import re
from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._utils._sklearn import BaseComposition


class StoppingRule(BaseEstimator, ABC):
    """Base class of the rules that say when to stop labelling.

    A rule is a scikit-learn object: `__init__` stores parameters and does nothing
    else, so `clone` and `set_params` work on it. What it keeps from round to round
    has a name with a trailing underscore and is forgotten by `start`. `a | b` stops
    as soon as one of two rules says so, `a & b` when both do.

    A rule of your own defines `decide(run, learner, X)`, and `start()` where it keeps
    something.

    Attributes
    ----------
    requires : frozenset of str
        What the rule looks at: "model" (predictions of the learner), "pool" (items
        of `X`), "labels" (what was asked, and the labels), "scores" (of the run).

    See Also
    --------
    AnyOf : What `a | b` makes.
    AllOf : What `a & b` makes.

    Examples
    --------
    >>> from skactive.simulation import Run
    >>> from skactive.stopping import StoppingRule
    >>> class Perfect(StoppingRule):
    ...     "Stop at a perfect score."
    ...
    ...     requires = frozenset({"scores"})
    ...
    ...     def decide(self, run, learner, X):
    ...         return run.scores[-1] == 1.0
    >>> run = Run([{"asked": [4], "scores": {"accuracy": 1.0}}])
    >>> Perfect().check(run, learner=None, X=None)
    True
    """

    _parameter_constraints = {}
    requires = frozenset()

    def start(self):
        """Check the parameters and forget every earlier loop.

        Returns
        -------
        self : StoppingRule
        """
        self._validate_params()
        self.n_checks_ = 0
        return self

    def check(self, run, learner, X):
        """Say whether to stop now; to be asked once after each round.

        A rule that was not started starts itself.

        Parameters
        ----------
        run : Run
            The rounds so far, the last one included. `run.info["seed"]`, if it is
            there, seeds what a rule draws.
        learner : ActiveLearner
            Trained on the labels of all these rounds; those of the last round are
            the last of its `y_labeled_`.
        X : container of n items
            The pool, to which the positions in `run` point; the same in each round.

        Returns
        -------
        stop : bool
        """
        from ..simulation._run import Run

        if not isinstance(run, Run):
            raise TypeError(
                f"'run' must be a Run with the rounds so far, got a "
                f"{type(run).__name__}."
            )
        if not hasattr(self, "n_checks_"):
            self.start()
        self.n_checks_ += 1
        return as_answer(self.decide(run, learner, X), self)

    @abstractmethod
    def decide(self, run, learner, X):
        """Decide whether to stop now; `check` calls this.

        Parameters
        ----------
        run, learner, X
            As in `check`.

        Returns
        -------
        stop : bool
        """

    def reason(self):
        """Say in one line what stopped the loop.

        Returns
        -------
        reason : str
            The rule; of a rule made of several, those that said so.
        """
        return " ".join(repr(self).split())

    def __or__(self, other):
        return AnyOf._of(self, other)

    def __and__(self, other):
        return AllOf._of(self, other)


def should_stop(rule, run, learner, X):
    """Ask any object with a method `check` whether to stop now."""
    return as_answer(rule.check(run, learner, X), rule, "check")


def as_answer(answer, rule, method="decide"):
    """Read what a rule answered; raise a TypeError unless it is True or False."""
    if isinstance(answer, np.ndarray) and answer.ndim == 0:
        answer = answer[()]
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(
        f"{type(rule).__name__}.{method} must return True or False, got {answer!r}. "
        "Return True where the loop has to stop and False otherwise."
    )


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
        """Get the parameters, and those of the rules."""
        return self._get_params("rules", deep=deep)

    def set_params(self, **params):
        """Set parameters, rules by their names, or parameters of rules."""
        self._set_params("rules", **params)
        return self

    def start(self):
        """Check the parameters and start a clone of each rule."""
        super().start()
        self._check_rules()
        self.rules_ = [(name, clone(rule, safe=False)) for name, rule in self.rules]
        self.agreed_ = []
        for _, rule in self.rules_:
            rule.start()
        return self

    def decide(self, run, learner, X):
        """Ask every rule, as each may keep something from round to round."""
        self.agreed_ = [
            name for name, rule in self.rules_ if should_stop(rule, run, learner, X)
        ]
        return self._enough(len(self.agreed_))

    def reason(self):
        """Say in one line which rules stopped the loop."""
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
    """Whether an object has the methods of a rule."""
    return not isinstance(rule, type) and all(
        callable(getattr(rule, method, None)) for method in ("start", "check")
    )


def _snake_case(kind):
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", kind.__name__)
    return "_".join(words).lower()
