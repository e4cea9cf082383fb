"""Stop when the score no longer grows."""

import math
from numbers import Integral, Real

from .._utils._sklearn import Interval
from ._base import StoppingRule


class Plateau(StoppingRule):
    """Stop when a score has not grown for several rounds.

    It needs labelled test data, which most people who label do not have; then use
    :class:`KappaAverage`. The greater a score the better, as everywhere in
    scikit-learn.

    Parameters
    ----------
    metric : str or None, default=None
        One of the run's `metrics`; None is its primary one.
    patience : int, default=3
        How many rounds in a row may pass without a gain.
    min_delta : float, default=0.0
        What counts as a gain: more than so much above the score of the last gain.

    Notes
    -----
    Rounds whose score is unknown do not count.

    References
    ----------
    L. Prechelt, "Early stopping - but when?", Neural Networks: Tricks of the Trade,
    1998.

    Examples
    --------
    >>> from skactive.simulation import Run
    >>> from skactive.stopping import Plateau
    >>> scores = [0.6, 0.8, 0.79, 0.8]
    >>> run = Run([{"asked": [i], "scores": {"f1": s}} for i, s in enumerate(scores)])
    >>> Plateau(patience=2).check(run, None, None)
    True
    """

    _parameter_constraints = {
        "metric": [str, None],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "min_delta": [Interval(Real, 0, None, closed="left")],
    }
    requires = frozenset({"scores"})

    def __init__(self, metric=None, *, patience=3, min_delta=0.0):
        self.metric = metric
        self.patience = patience
        self.min_delta = min_delta

    def decide(self, run, learner, X):
        """Count the rounds since the last gain."""
        if run.rounds and not run.metrics:
            raise ValueError(
                "Plateau needs scores, and the run holds none. Give the loop test data "
                "(X_test and y_test), or stop by KappaAverage, which needs no labels."
            )
        best, n_without = -math.inf, 0
        for score in run.curve(self.metric):
            if math.isnan(score):
                continue
            if score > best + self.min_delta:
                best, n_without = score, 0
            else:
                n_without += 1
        return n_without >= self.patience
