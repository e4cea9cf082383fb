"""A rule that stops when the score no longer improves."""

import math
from numbers import Integral, Real
from typing import Any

from .._utils._sklearn import Interval
from ._base import StoppingRule


class Plateau(StoppingRule):
    """Stop when a score has not improved for several rounds.

    The rule needs labeled test data. Without test data, use :class:`KappaAverage`.
    Higher scores are better, as everywhere in scikit-learn.

    Parameters
    ----------
    metric : str or None, default=None
        One of the run's `metrics`. Defaults to the primary metric.
    patience : int, default=3
        Number of consecutive rounds without an improvement after which to stop.
    min_delta : float, default=0.0
        Minimum improvement over the best score that counts.

    Notes
    -----
    Rounds without a score do not count.

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

    def __init__(
        self,
        metric: str | None = None,
        *,
        patience: int = 3,
        min_delta: float = 0.0,
    ):
        self.metric = metric
        self.patience = patience
        self.min_delta = min_delta

    def decide(self, run: Any, learner: Any, X: Any) -> bool:
        """Count the rounds since the last improvement."""
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
