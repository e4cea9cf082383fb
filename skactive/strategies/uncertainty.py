"""Uncertainty sampling: ask where the model is least sure, and the random baseline."""

from __future__ import annotations

from .. import measures
from .base import PointwiseStrategy

__all__ = ["Entropy", "LeastConfidence", "Margin", "Random", "VariationRatio"]


class Random(PointwiseStrategy):
    """Ask at random, every candidate equally likely.

    The baseline that every other strategy has to beat, and the default before there
    is a model.

    Notes
    -----
    Cost: O(n).

    When to use: as the baseline, before there is a model, and where labels must
    represent the pool, as for a test set.

    References
    ----------
    B. Settles, "Active learning literature survey", 2009, section 1.

    Examples
    --------
    >>> from skactive import get_strategy
    >>> get_strategy("random")
    Random()
    """

    def score(self, view):
        """Draw a uniform number for each candidate.

        A number belongs to a position in the pool, so that the queries of one round
        are random samples without replacement.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates; only their positions are used.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
        """
        return view.uniform()


class Entropy(PointwiseStrategy):
    """Ask where the predicted distribution has the highest entropy, -Σ p log p.

    Notes
    -----
    Cost: O(n k) beside the prediction.

    When to use: where every class counts. With many classes it also asks where two
    good classes are easily told from the rest.

    References
    ----------
    B. Settles, "Active learning literature survey", 2009, section 3.1.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), strategy="entropy")
    >>> learner.fit([[-1.0], [1.0]], [0, 1]).query([[-2.0], [0.1], [3.0]], 1)
    array([1])
    """

    requires = frozenset({"proba"})

    def score(self, view):
        """Entropy in nats.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and their class probabilities.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
        """
        return measures.entropy(view.proba)


class LeastConfidence(PointwiseStrategy):
    """Ask where the likeliest class has the lowest probability, 1 - max p.

    Notes
    -----
    Cost: O(n k) beside the prediction.

    When to use: where only the predicted class counts.

    References
    ----------
    D. D. Lewis, W. A. Gale, "A sequential algorithm for training text classifiers",
    SIGIR 1994.

    Examples
    --------
    >>> from skactive import get_strategy
    >>> get_strategy("least_confidence").requires
    frozenset({'proba'})
    """

    requires = frozenset({"proba"})

    def score(self, view):
        """One less the highest probability.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and their class probabilities.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
        """
        return measures.least_confidence(view.proba)


class VariationRatio(LeastConfidence):
    """Ask where the likeliest class leaves most mass to the others.

    For a single predicted distribution this is least confidence under the name that
    statistics gives it; both names are in use in the field.

    Notes
    -----
    Cost: O(n k) beside the prediction.

    When to use: as `least_confidence`, whose order it has.

    References
    ----------
    L. C. Freeman, "Elementary applied statistics", 1965.

    Examples
    --------
    >>> from skactive import get_strategy
    >>> get_strategy("variation_ratio")
    VariationRatio()
    """


class Margin(PointwiseStrategy):
    """Ask where the two best classes are closest ("breaking ties").

    Works on probabilities, and for classifiers without them on their decision
    values; in the binary case that is the distance to the hyperplane.

    Notes
    -----
    Cost: O(n k) beside the prediction.

    When to use: by default; seldom worse than random, and cheap.

    References
    ----------
    T. Scheffer, C. Decomain, S. Wrobel, "Active hidden Markov models for information
    extraction", IDA 2001.

    S. Tong, D. Koller, "Support vector machine active learning with applications to
    text classification", JMLR 2, 2001.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from sklearn.svm import LinearSVC
    >>> learner = ActiveLearner(LinearSVC(), strategy="margin")
    >>> learner.fit([[-1.0], [1.0]], [0, 1]).query([[-2.0], [0.1], [3.0]], 1)
    array([1])
    """

    requires = frozenset({"class_scores"})

    def score(self, view):
        """Gap between the two best classes, turned so that the smallest comes first.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and their probabilities or decision values.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
        """
        return -view.margins
