"""A query strategy, a wrapper and an annotator for skactive."""

from numbers import Real

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min

from skactive.strategies import Interval, PointwiseStrategy, WrapperStrategy, top_n


class Novelty(PointwiseStrategy):
    """Query uncertain candidates that are far from the labeled items.

    Parameters
    ----------
    weight : float, default=1.0
        Power of the distance. 0 uses the uncertainty alone.
    """

    requires = frozenset({"proba", "features", "labeled"})
    _parameter_constraints = {"weight": [Interval(Real, 0, None, closed="left")]}

    def __init__(self, weight=1.0):
        self.weight = weight

    def score(self, view):
        """Multiply the uncertainty by the distance to the nearest labeled item."""
        doubt = 1 - view.proba.max(axis=1)
        features, labeled = view.features, view.labeled_features
        _, distances = pairwise_distances_argmin_min(features, labeled)
        return doubt * distances**self.weight


class Explore(WrapperStrategy):
    """Draw a share of the batch at random, and apply a strategy to the others.

    Parameters
    ----------
    strategy : str, strategy or callable, default="margin"
        The strategy to apply.
    share : float, default=0.2
        Share of the batch that is drawn at random.
    """

    _parameter_constraints = {"share": [Interval(Real, 0, 1, closed="left")]}

    def __init__(self, strategy="margin", share=0.2):
        self.strategy = strategy
        self.share = share

    def select(self, view, n_queries):
        """Select by the strategy first, then at random."""
        n_random = int(self.share * n_queries)
        drawn = top_n(view.uniform(), n_random, view.rng)
        rest = np.setdiff1d(np.arange(len(view)), drawn)
        best = self.select_by("strategy", view.take(rest), n_queries - n_random)
        return np.concatenate([rest[best], drawn])


class KeywordAnnotator:
    """Label each text with the first class one of whose words it contains.

    Parameters
    ----------
    keywords : dict of str to list of str
        Words of each class, in lower case.
    name : str, default="keywords"
        Name under which the answers are recorded.
    """

    deterministic = True  # a text always gets the same answer

    def __init__(self, keywords, name="keywords"):
        self.keywords = keywords
        self.name = name

    def describe(self):
        """Return what somebody needs to repeat the answers."""
        return {"keywords": self.keywords}

    def annotate(self, texts):
        """Return (class or None, no confidence) for each text."""
        return [(self._find_class(text), None) for text in texts]

    def _find_class(self, text):
        words = set(text.lower().split())
        for label, keywords in self.keywords.items():
            if words & set(keywords):
                return label
        return None
