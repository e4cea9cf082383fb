"""Rules that stop at a number of labels, rounds or seconds."""

import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

from .._utils._sklearn import Interval
from ._base import StoppingRule


class LabelBudget(StoppingRule):
    """Stop when there are at least `n` labels, including the initial ones.

    Batches are never cut, so the last one may exceed the budget.

    Parameters
    ----------
    n : int
        Number of labels.

    Examples
    --------
    >>> from skactive.simulation import Run
    >>> from skactive.stopping import LabelBudget
    >>> run = Run([{"asked": [4, 1]}])
    >>> LabelBudget(2).check(run, None, None), LabelBudget(3).check(run, None, None)
    (True, False)
    """

    _parameter_constraints = {"n": [Interval(Integral, 1, None, closed="left")]}
    requires = frozenset({"labels"})

    def __init__(self, n: int):
        self.n = n

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compare the number of labels."""
        return bool(run.rounds) and run.rounds[-1]["n_labeled"] >= self.n


class RoundBudget(StoppingRule):
    """Stop after `n` rounds. The initial labels are not a round.

    Parameters
    ----------
    n : int
        Number of rounds.

    Examples
    --------
    >>> from skactive.simulation import Run
    >>> from skactive.stopping import RoundBudget
    >>> run = Run([{"asked": [4, 1]}, {"asked": [2]}])
    >>> RoundBudget(1).check(run, None, None), RoundBudget(2).check(run, None, None)
    (True, False)
    """

    _parameter_constraints = {"n": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, n: int):
        self.n = n

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compare the number of rounds."""
        return len(run.rounds) - 1 >= self.n


class TimeBudget(StoppingRule):
    """Stop when a number of seconds has passed since `start`.

    Rounds are never cut, so the last one may exceed the budget. The time starts again
    if the loop is resumed in another process.

    Parameters
    ----------
    seconds : float
        Number of seconds.
    clock : callable or None, default=None
        Function that returns the current time in seconds. Defaults to
        :func:`time.monotonic`, which does not depend on the system time.

    Attributes
    ----------
    started_ : float
        The time at `start`.

    Examples
    --------
    >>> from skactive.stopping import TimeBudget
    >>> TimeBudget(3600)
    TimeBudget(seconds=3600)
    """

    _parameter_constraints = {
        "seconds": [Interval(Real, 0, None, closed="neither")],
        "clock": [callable, None],
    }

    def __init__(self, seconds: float, *, clock: Callable[[], float] | None = None):
        self.seconds = seconds
        self.clock = clock

    def start(self) -> Self:
        """Reset the rule and read the clock."""
        super().start()
        self.started_ = self._now()
        return self

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Compare the seconds since `start`."""
        return self._now() - self.started_ >= self.seconds

    def _now(self):
        return time.monotonic() if self.clock is None else self.clock()
