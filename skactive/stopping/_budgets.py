"""Stop when something is spent: labels, rounds or time."""

import time
from numbers import Integral, Real

from .._utils._sklearn import Interval
from ._base import StoppingRule


class LabelBudget(StoppingRule):
    """Stop when there are at least so many labels, the initial ones included.

    A batch is never cut, so the last one may go over.

    Parameters
    ----------
    n : int
        How many labels.

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

    def __init__(self, n):
        self.n = n

    def decide(self, run, learner, X):
        """Compare with the labels so far."""
        return bool(run.rounds) and run.rounds[-1]["n_labeled"] >= self.n


class RoundBudget(StoppingRule):
    """Stop after so many rounds; the initial labels are none.

    Parameters
    ----------
    n : int
        How many rounds.

    Examples
    --------
    >>> from skactive.simulation import Run
    >>> from skactive.stopping import RoundBudget
    >>> run = Run([{"asked": [4, 1]}, {"asked": [2]}])
    >>> RoundBudget(1).check(run, None, None), RoundBudget(2).check(run, None, None)
    (True, False)
    """

    _parameter_constraints = {"n": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, n):
        self.n = n

    def decide(self, run, learner, X):
        """Compare with the rounds so far."""
        return len(run.rounds) - 1 >= self.n


class TimeBudget(StoppingRule):
    """Stop when so many seconds have passed since `start`.

    A round is never cut, so the last one may go over. The clock begins anew with a
    loop that is resumed in another process.

    Parameters
    ----------
    seconds : float
        How long.
    clock : callable or None, default=None
        Gives the seconds now; None is :func:`time.monotonic`, which no change of the
        system's time touches.

    Attributes
    ----------
    started_ : float
        What the clock showed at `start`.

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

    def __init__(self, seconds, *, clock=None):
        self.seconds = seconds
        self.clock = clock

    def start(self):
        """Look at the clock."""
        super().start()
        self.started_ = self._now()
        return self

    def decide(self, run, learner, X):
        """Look at the clock again."""
        return self._now() - self.started_ >= self.seconds

    def _now(self):
        return time.monotonic() if self.clock is None else self.clock()
