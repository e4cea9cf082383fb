"""Two query strategies: a class with a parameter, and a plain function."""

import numpy as np

from skactive.strategies import PointwiseStrategy

__all__ = ["Gini", "ratio"]


class Gini(PointwiseStrategy):
    """Ask where two guesses drawn from the predicted distribution differ most often.

    Parameters
    ----------
    power : float, default=2.0
        How many guesses are drawn; 2 gives the Gini impurity.
    """

    requires = frozenset({"proba"})

    def __init__(self, power=2.0):
        self.power = power

    def score(self, view):
        """Chance that not all guesses agree."""
        return 1 - (view.proba**self.power).sum(axis=1)


def ratio(view):
    """Ask where the second-best class comes closest to the best."""
    top_two = np.sort(view.proba, axis=1)[:, -2:]
    return top_two[:, 0] / top_two[:, 1]
