"""Strategies that cluster the candidates by k-means."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from .. import measures
from .._sklearn import Interval, StrOptions
from ..clustering import k_means, nearest_rows
from ..distances import paired_distances
from ..selection import top_n
from .base import Strategy

__all__ = ["ALPS", "EmbeddingKMeans", "WholeCluster"]

MOST_CLUSTERS = 500  # that a whole-cluster query makes unless told

# What a cluster can be ranked by, and what the strategy then requires.
_UNCERTAINTIES = {
    "entropy": ("proba", measures.entropy),
    "least_confidence": ("proba", measures.least_confidence),
    "margin": ("class_scores", lambda scores: -measures.margin(scores)),
    None: (None, None),
}


class EmbeddingKMeans(Strategy):
    """Ask for the candidate nearest the centre of each of as many clusters as asked.

    The candidates are clustered by k-means into b clusters for a batch of b, whatever
    is labelled. The candidate of the largest cluster comes first. One that is nearest
    to two centres goes to the one it is nearer to; the other gets its next nearest.

    Parameters
    ----------
    normalize : bool, default=True
        Whether features are scaled to unit length first.

    Notes
    -----
    Cost: O(n b d), about eight times over for up to 256 b candidates and once for more.

    When to use: before there are labels, or to spread a batch over the pool. It looks
    at neither model nor labels, so later rounds ask again where the first ones did.

    References
    ----------
    M. Yuan, H.-T. Lin, J. Boyd-Graber, "Cold-start active learning through
    self-supervised language modeling", EMNLP 2020 (there as BERT-KM).

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import EmbeddingKMeans
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = EmbeddingKMeans(normalize=False)
    >>> learner = ActiveLearner(LogisticRegression(), cold_start=strategy)
    >>> learner.query([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0], [9.1]], 2)
    array([4, 1])
    """

    _parameter_constraints = {"normalize": ["boolean"]}
    requires = frozenset({"features"})

    def __init__(self, normalize=True):
        self.normalize = normalize

    def select(self, view, n):
        """Choose the candidates nearest the centres.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and their features.
        n : int
            How many to choose, and how many clusters.

        Returns
        -------
        positions : ndarray of int, shape (n,)
            By the size of their clusters, the largest first.
        """
        return _ask_each_cluster(view.features, n, view.rng, self.normalize)


class ALPS(Strategy):
    """Ask at the centres of clusters of what surprises a masked language model.

    The surprisal embedding of a text holds the loss of the language model at tokens
    drawn at random, 0 at the others. Scaled to unit length, the embeddings are
    clustered by k-means into as many clusters as the batch has items, and the text
    nearest each centre is asked for, that of the largest cluster first.

    Notes
    -----
    Cost: O(n b l) for l tokens a text, beside one pass of the language model.

    When to use: for texts before there are labels, with a model that has a masked
    language modelling head. The choice of tokens makes it vary from seed to seed.

    Where a text is nearest to two centres the paper's program fills up at random;
    here the further centre gets its next nearest text.

    References
    ----------
    M. Yuan, H.-T. Lin, J. Boyd-Graber, "Cold-start active learning through
    self-supervised language modeling", EMNLP 2020.

    Examples
    --------
    >>> from skactive.strategies import ALPS
    >>> ALPS().requires
    frozenset({'surprisal'})
    """

    requires = frozenset({"surprisal"})

    def select(self, view, n):
        """Choose the texts nearest the centres.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and their surprisal embeddings.
        n : int
            How many to choose, and how many clusters.

        Returns
        -------
        positions : ndarray of int, shape (n,)
            By the size of their clusters, the largest first.
        """
        return _ask_each_cluster(view.surprisal, n, view.rng, normalize=True)


class WholeCluster(Strategy):
    """Ask for all of the cluster in which the model is least sure, then of the next.

    The candidates are clustered by k-means. Clusters come in the order of the mean
    uncertainty of their candidates; within one, those near its centre come first. So
    an annotator sees like items in a row and may label them together.

    Parameters
    ----------
    n_clusters : int or None, default=None
        None makes a cluster about as large as the batch: n / b of them, but at most
        500.
    measure : {"entropy", "least_confidence", "margin"} or None, default="entropy"
        How unsure the model is of a candidate. None asks for the tightest clusters
        first, by the mean distance to the centre, and needs no model.

    Notes
    -----
    Cost: O(n c d) for c clusters, about eight times over for up to 256 c candidates.

    When to use: where labelling a group of like items takes little more than
    labelling one. Item by item such a batch tells a model less than a varied one.

    The paper gives a cluster one label, with some error; here each item gets its own.

    References
    ----------
    F. Perez, R. Lebret, K. Aberer, "Cluster-based active learning", arXiv:1812.11780,
    2018.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import WholeCluster
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), WholeCluster(n_clusters=2))
    >>> learner = learner.fit([[-4.0], [5.0]], [0, 1])
    >>> learner.query([[0.3], [0.5], [0.8], [9.0], [9.5], [10.0]], 2)
    array([1, 0])
    """

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "measure": [StrOptions(set(_UNCERTAINTIES) - {None}), None],
    }

    def __init__(self, n_clusters=None, measure="entropy"):
        self.n_clusters = n_clusters
        self.measure = measure

    @property
    def requires(self):
        """Features, and what the measure of uncertainty is taken of."""
        return frozenset({"features", _UNCERTAINTIES[self.measure][0]} - {None})

    def select(self, view, n):
        """Choose the first n candidates, cluster by cluster.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates, their features and what the model says of them.
        n : int
            How many to choose.

        Returns
        -------
        positions : ndarray of int, shape (n,)
            The last cluster may be asked for in part, its centre first.
        """
        features = view.features
        n_clusters = self.n_clusters
        if n_clusters is None:
            n_clusters = min(-(-len(view) // n), MOST_CLUSTERS)
        centers, labels = k_means(features, n_clusters, view.rng)
        quantity, measure = _UNCERTAINTIES[self.measure]
        rows = np.arange(len(view))
        if measure is None:
            values = -np.sqrt(paired_distances(features, centers, rows, labels))
        else:
            values = measure(getattr(view, quantity))
        picks = []
        for cluster in _by_mean(values, labels, view.rng):
            members = rows[labels == cluster]
            which = np.full(len(members), cluster)
            distances = paired_distances(features, centers, members, which)
            wanted = min(n - len(picks), len(members))
            picks.extend(members[top_n(-distances, wanted, view.rng)])
            if len(picks) == n:
                break
        return np.array(picks)


def _ask_each_cluster(X, n, rng, normalize):
    """Cluster into n, ask for the row nearest each centre, largest cluster first."""
    centers, labels = k_means(X, n, rng, normalize=normalize)
    rows = nearest_rows(X, centers, rng, normalize=normalize)
    sizes = np.bincount(labels, minlength=n)
    return rows[top_n(sizes, n, rng)]


def _by_mean(values, labels, rng):
    """List the clusters that have members by the mean of their values, highest first.

    Equal means come in random order.
    """
    sizes = np.bincount(labels)
    clusters = np.flatnonzero(sizes)
    means = np.bincount(labels, weights=values)[clusters] / sizes[clusters]
    return clusters[top_n(means, len(clusters), rng)]
