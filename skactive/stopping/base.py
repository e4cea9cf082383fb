"""What a stopping rule is."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator

from ..runs import Run

__all__ = ["StoppingRule", "should_stop"]


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
    >>> from skactive.runs import Run
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
        return self._join("AnyOf", other)

    def __and__(self, other):
        return self._join("AllOf", other)

    def _join(self, kind, other):
        from . import combined  # which derives from this class

        return getattr(combined, kind)._of(self, other)


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
