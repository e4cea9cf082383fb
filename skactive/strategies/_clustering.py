"""Strategies that cluster the candidates, alone or with uncertainty."""

import heapq
import warnings
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from .._math import _scores
from .._math._clustering import k_means, k_medoids, nearest_rows, row_bytes
from .._math._neighbors import (
    middle,
    nearest,
    paired_distances,
    squared_distances,
    squared_norms,
    stack_rows,
)
from .._math._scores import Measure, top_n
from .._utils._chunks import chunk_size, chunks, concatenate_chunks, float_rows
from .._utils._labels import CLASSES, TARGETS
from .._utils._pipelines import makes_features
from .._utils._sklearn import (
    POSITIVE,
    POSITIVE_COUNT,
    POSITIVE_INT,
    Interval,
    StrOptions,
)
from ..registry import Strategy

MOST_CLUSTERS = 500  # of a whole-cluster query by default

# Measures that rank clusters, and the quantity that each requires.
_UNCERTAINTIES: dict[str | None, tuple] = {
    "entropy": ("proba", _scores.entropy),
    "least_confidence": ("proba", _scores.least_confidence),
    "margin": ("class_scores", lambda scores: -_scores.margin(scores)),
    None: (None, None),
}


class EmbeddingKMeans(Strategy):
    """Query the candidate nearest each center of k-means with one cluster per query.

    The candidates are clustered by k-means into b clusters for a batch of b, regardless
    of labels. The candidate of the largest cluster comes first. If one is nearest to
    two centers, the farther center gets its next nearest candidate.

    Parameters
    ----------
    normalize : bool, default=True
        Whether features are scaled to unit length first.

    Notes
    -----
    Cost: O(n b d), about eight times for up to 256 b candidates and once for more.

    When to use: before there are labels, or to spread a batch over the pool. It uses
    neither the model nor the labels, so later rounds select similar items again.

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

    def __init__(self, normalize: bool = True) -> None:
        self.normalize = normalize

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the candidates nearest the centers, by the size of their clusters."""
        return ask_each_cluster(view.feature_rows, n_queries, view.rng, self.normalize)


class ALPS(Strategy):
    """Query the texts nearest the cluster centers of a language model's surprisal.

    The surprisal embedding of a text holds the loss of a masked language model at
    randomly drawn tokens, and 0 at the others. The embeddings are scaled to unit length
    and clustered by k-means into as many clusters as the batch has items. The text
    nearest each center is selected, that of the largest cluster first.

    Notes
    -----
    Cost: O(n b l) for l tokens per text, plus one pass of the language model.

    When to use: for texts before there are labels, with a model that has a masked
    language modeling head. The random choice of tokens makes results vary between
    seeds.

    If a text is nearest to two centers, the paper's program fills up at random; here
    the farther center gets its next nearest text.

    References
    ----------
    M. Yuan, H.-T. Lin, J. Boyd-Graber, "Cold-start active learning through
    self-supervised language modeling", EMNLP 2020.

    Examples
    --------
    One text about each subject. Counts of words take the place of the losses of a
    language model here, which :class:`skactive.bert.BertFeatures` computes:

    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import ALPS
    >>> class Words(HashingVectorizer):
    ...     def surprisal(self, X, random_state=None):
    ...         return self.transform(X).toarray()
    >>> model = make_pipeline(Words(n_features=64), LogisticRegression())
    >>> learner = ActiveLearner(model, cold_start=ALPS(), random_state=0)
    >>> pool = ["rain and wind", "wind and rain today", "rain", "they won", "we won"]
    >>> [pool[i] for i in learner.query(pool, 2)]
    ['rain and wind', 'they won']
    """

    requires = frozenset({"surprisal"})

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the texts nearest the centers, by the size of their clusters."""
        return ask_each_cluster(view.surprisal, n_queries, view.rng, normalize=True)


class WholeCluster(Strategy):
    """Query all of the cluster with the highest mean uncertainty, then of the next.

    The candidates are clustered by k-means. Clusters are ordered by the mean
    uncertainty of their candidates. Within a cluster, candidates near the center come
    first. So an annotator sees similar items in sequence and may label them together.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters. Defaults to n / b, at most 500, so that a cluster is about
        as large as the batch.
    measure : {"entropy", "least_confidence", "margin"} or None, default="entropy"
        Uncertainty of a candidate, the mean over the labels for multi-label targets.
        None orders clusters by the mean distance to the center, the smallest first, and
        needs no model.

    Notes
    -----
    Cost: O(n c d) for c clusters, about eight times for up to 256 c candidates.

    When to use: if labeling a group of similar items takes little more than labeling
    one. Per label, such a batch is less informative for a model than a diverse one.

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
        "n_clusters": [POSITIVE_INT, None],
        "measure": [StrOptions(set(_UNCERTAINTIES) - {None}), None],
    }

    def __init__(
        self, n_clusters: int | None = None, measure: Measure | None = "entropy"
    ) -> None:
        self.n_clusters = n_clusters
        self.measure = measure

    @property
    def requires(self) -> frozenset[str]:  # type: ignore[override]
        """Features, and the quantity that the measure of uncertainty uses."""
        return frozenset({"features", _UNCERTAINTIES[self.measure][0]} - {None})

    @property
    def targets(self) -> frozenset[str]:
        """All targets without a measure of uncertainty, otherwise classes."""
        return TARGETS if self.measure is None else CLASSES

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select n candidates, cluster by cluster, each from its center outwards."""
        features = view.features
        n_clusters = self.n_clusters
        if n_clusters is None:
            n_clusters = min(-(-len(view) // n_queries), MOST_CLUSTERS)
        centers, labels = k_means(features, n_clusters, view.rng)
        quantity, measure = _UNCERTAINTIES[self.measure]
        rows = np.arange(len(view))
        if measure is None:
            values = -np.sqrt(paired_distances(features, centers, rows, labels))
        elif view.target == "multi-label":
            values = self._measure_labels(view)
        else:
            values = measure(getattr(view, quantity))
        picks: list[int] = []
        for cluster in _by_mean(values, labels, view.rng):
            members = rows[labels == cluster]
            which = np.full(len(members), cluster)
            distances = paired_distances(features, centers, members, which)
            wanted = min(n_queries - len(picks), len(members))
            picks.extend(members[top_n(-distances, wanted, view.rng)])
            if len(picks) == n_queries:
                break
        return np.array(picks)

    def _measure_labels(self, view):
        """Return the mean uncertainty (n,) of the labels."""
        if self.measure == "margin":
            return -view.label_margins.mean(axis=1)
        return _scores.uncertainty(view.proba, self.measure, "multi-label")


def ask_each_cluster(X, n_queries, rng, normalize=False):
    """Return the row nearest each of n centers (n,), largest cluster first."""
    centers, labels = k_means(X, n_queries, rng, normalize=normalize)
    rows = nearest_rows(X, centers, rng, normalize=normalize)
    sizes = np.bincount(labels, minlength=n_queries)
    return rows[top_n(sizes, n_queries, rng)]


def _by_mean(values, labels, rng):
    """Return the clusters with members by the mean of their values, highest first.

    Equal means are in random order.
    """
    sizes = np.bincount(labels)
    clusters = np.flatnonzero(sizes)
    means = np.bincount(labels, weights=values)[clusters] / sizes[clusters]
    return clusters[top_n(means, len(clusters), rng)]


MEMBERS = 10_000  # of a cluster that are compared with each other; others come last
AT_ONCE = 64  # rows drawn by one set of weights


class TypiClust(Strategy):
    """Query the most typical candidate of each large cluster without labels.

    Candidates and labeled items are clustered by k-means into as many clusters as there
    will be labels after the batch, up to a limit. Each pick comes from the cluster with
    the fewest labels, of those the largest. It is the most typical candidate of the
    cluster: the one with the smallest mean distance to its nearest neighbors in the
    cluster. It counts as labeled from then on.

    Parameters
    ----------
    n_neighbors : int, default=20
        Number of neighbors in the cluster that determine how typical a candidate is.
        All others are used in a smaller cluster.
    max_clusters : int, default=500
        Maximum number of clusters.
    min_cluster_size : int, default=5
        Clusters with fewer items, including labeled ones, come last.

    Notes
    -----
    Cost: O((n + m) c d) for c clusters, and O(s^2 d) for each queried cluster of s
    items, of which at most 10,000, drawn at random, are compared.

    When to use: with few or no labels, when the uncertainty of a model is not yet
    reliable. With many labels uncertainty sampling is better.

    Copies of an item are infinitely typical; one of them is selected at random.

    References
    ----------
    G. Hacohen, A. Dekel, D. Weinshall, "Active learning on a budget: opposite
    strategies suit high and low budgets", ICML 2022.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import TypiClust
    >>> from sklearn.linear_model import LogisticRegression
    >>> strategy = TypiClust(n_neighbors=2, min_cluster_size=2)
    >>> learner = ActiveLearner(LogisticRegression(), strategy)
    >>> learner = learner.fit([[0.0], [100.0]], [0, 1])
    >>> learner.query([[0.2], [99.9], [50.0], [50.8], [51.0], [51.4]], 1)
    array([4])
    """

    _parameter_constraints = {
        "n_neighbors": [POSITIVE_INT],
        "max_clusters": [POSITIVE_INT],
        "min_cluster_size": [POSITIVE_INT],
    }
    requires = frozenset({"features"})
    optional = frozenset({"labeled"})

    def __init__(
        self, n_neighbors: int = 20, max_clusters: int = 500, min_cluster_size: int = 5
    ) -> None:
        self.n_neighbors = n_neighbors
        self.max_clusters = max_clusters
        self.min_cluster_size = min_cluster_size

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the most typical candidates, cluster by cluster."""
        features = float_rows(view.features)
        labeled = float_rows(view.labeled_features) if view.n_labeled else features[:0]
        n_clusters = min(view.n_labeled + n_queries, self.max_clusters)
        labels = k_means(features, n_clusters, view.rng, also=labeled)[1]
        labels, labels_of_labeled = labels[: len(view)], labels[len(view) :]

        def by_typicality(cluster):
            members = np.flatnonzero(labels == cluster)
            others = np.flatnonzero(labels_of_labeled == cluster)
            scores = typicality(
                features[members],
                labeled[others],
                self.n_neighbors,
                view.rng,
                view.n_jobs,
            )
            return iter(members[top_n(scores, len(members), view.rng)])

        candidates = np.bincount(labels, minlength=n_clusters)
        counts = np.bincount(labels_of_labeled, minlength=n_clusters)
        sizes = candidates + counts
        ties = view.rng.permutation(n_clusters)
        # Sort keys: large enough, fewest labels, most items.
        queue = [
            (sizes[c] < self.min_cluster_size, counts[c], -sizes[c], ties[c], c)
            for c in np.flatnonzero(candidates)
        ]
        heapq.heapify(queue)
        order: dict = {}
        picks: list[int] = []
        while len(picks) < n_queries:
            small, count, size, tie, cluster = queue[0]
            if cluster not in order:
                order[cluster] = by_typicality(cluster)
            picks.append(next(order[cluster]))
            candidates[cluster] -= 1
            if candidates[cluster]:
                heapq.heapreplace(queue, (small, count + 1, size, tie, cluster))
            else:
                heapq.heappop(queue)
        return np.array(picks)


class OneShot(Strategy):
    """Query a batch drawn one by one, preferably far from those drawn before.

    The first candidate is drawn uniformly. Each further one is drawn with a probability
    in proportion to its squared cosine distance to the nearest candidate drawn before.
    Model and labels are not used: the batch is meant to be the only one.

    Notes
    -----
    Cost: O(n b d), in about b / 64 passes over the features.

    When to use: for a single query before any label, on pretrained features. The
    farthest rows are likely but not certain to be drawn, so batches hold fewer outliers
    than with coreset. In a loop use a strategy that uses the labels.

    The paper draws among several local features of an image; here an item has one
    feature vector.

    References
    ----------
    Y. Xie, M. Tomizuka, W. Zhan, "Towards general and efficient active learning",
    arXiv:2112.07963, 2021.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import OneShot
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = [[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]
    >>> learner = ActiveLearner(
    ...     LogisticRegression(), cold_start=OneShot(), random_state=0
    ... )
    >>> learner.query(X, 2)
    array([0, 2])
    """

    requires = frozenset({"features"})

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Draw candidates far from each other, in the order drawn."""
        return spread_sample(view.features, n_queries, view.rng)


def typicality(X, others, n_neighbors, rng, n_jobs=1):
    """Return the inverse mean distance (s,) of each row of `X` (s, d) to its neighbors.

    `others` are further rows of the cluster that may be neighbors only. The result is
    infinite if the neighbors are copies, and for a single row. In clusters of more than
    10,000 rows, those that were not drawn get 0.
    """
    result = np.zeros(X.shape[0])
    total = X.shape[0] + others.shape[0]
    rows = np.arange(X.shape[0])
    if total > MEMBERS:
        drawn = np.sort(rng.choice(total, MEMBERS, replace=False))
        rows = drawn[drawn < X.shape[0]]
        X, others = X[rows], others[drawn[drawn >= len(result)] - len(result)]
        total = MEMBERS
    if total == 1:
        result[rows] = np.inf
        return result
    others = stack_rows([X, others]) if others.shape[0] else X
    distances = nearest(X, others, n_neighbors, exclude_self=True, n_jobs=n_jobs)[0]
    with np.errstate(divide="ignore"):
        result[rows] = 1 / distances.mean(axis=1, dtype=np.float64)
    return result


def spread_sample(X, n_queries, rng):
    """Draw n rows with preference for rows far from those drawn; positions (n,).

    The first is uniform; each further one has a probability in proportion to the square
    of its smallest cosine distance to those before. Copies come last, in random order.

    Weights only decrease as rows are drawn. So a row is proposed by the weights of some
    draws ago and accepted with the ratio of its current to its old weight. This is a
    draw by the current weights, with one computation of all weights for many draws.
    """
    X = float_rows(X)
    draw = _Draw(X)
    picks = [int(rng.integers(X.shape[0]))]
    fresh = picks.copy()
    while len(picks) < n_queries:
        draw.approach(fresh)
        size = min(AT_ONCE, n_queries - len(picks))
        fresh = draw.propose(size, rng)
        picks.extend(fresh)
        if not fresh:  # all others are copies
            left = np.setdiff1d(np.arange(X.shape[0]), picks)
            picks.extend(rng.choice(left, n_queries - len(picks), replace=False))
    return np.array(picks, dtype=np.intp)


class _Draw:
    """Cosine distances of all rows to the nearest row drawn."""

    def __init__(self, X):
        self.X = X
        self.size = chunk_size(row_bytes(X) + 16 * AT_ONCE)
        squares = [squared_norms(X[part]) for part in self._parts()]
        self.lengths = np.sqrt(np.concatenate(squares))
        self.empty = self.lengths == 0
        self.lengths[self.empty] = 1
        self.closest = np.full(X.shape[0], np.inf)
        # Distances within rounding are 0.
        self.slack = 4 * np.finfo(X.dtype).eps * np.sqrt(X.shape[1])

    def approach(self, rows):
        """Lower the distances for newly drawn rows."""
        for part in self._parts():
            distances = self._distances(part, rows).min(axis=1)
            np.minimum(self.closest[part], distances, out=self.closest[part])
        self.closest[rows] = 0

    def propose(self, size, rng):
        """Draw some rows by the known distances; keep those that later ones allow."""
        cumulative = np.cumsum(self.closest**2)
        if cumulative[-1] == 0:
            return []
        points = rng.random(size) * cumulative[-1]
        rows = np.searchsorted(cumulative, points, side="right")
        between = self._distances(rows, rows)
        accepted = []
        for i, chance in enumerate(rng.random(size)):
            before = self.closest[rows[i]]
            now = min(before, between[i, accepted].min(initial=np.inf))
            if chance * before**2 < now**2:
                accepted.append(i)
        return rows[accepted].tolist()

    def _distances(self, rows, others):
        """Return cosine distances; zero rows are at 1 from others, 0 from such."""
        distances = safe_sparse_dot(self.X[rows], self.X[others].T, dense_output=True)
        distances /= -self.lengths[rows][:, None]
        distances /= self.lengths[others]
        distances += 1
        alike = self.empty[rows][:, None] & self.empty[others]
        distances[alike | (distances < self.slack)] = 0
        return distances

    def _parts(self):
        return chunks(self.X.shape[0], self.size)


ROWS_PER_QUERY = 256  # clustered for one center; more rows hardly move it


class PreClustering(Strategy):
    """Query the candidates with the highest expected error times cluster density.

    The candidates are clustered around medoids, which carry a mixture of Gaussians of
    one width; a cluster's weight is its share of the candidates. The score of a
    candidate is the predicted probability of an error times its density under the
    mixture. A batch takes the best of each cluster, then the second best of each, and
    so on, in each turn by score, so that no cluster is queried repeatedly while others
    wait.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of medoids. Defaults to twice the batch size, at least 20.
    bandwidth : float or "auto", default="auto"
        Standard deviation of the Gaussians. "auto" is the root of the mean squared
        distance of candidates to their medoids.

    Notes
    -----
    The paper builds its own classifier of two classes on the medoids. Here the
    estimator is the learner's, and the expected error is 1 minus its highest
    probability, which for two classes has the same order as the paper's squared error.
    The maximum-likelihood width would be that of "auto" divided by sqrt(d): in hundreds
    of dimensions densities would then differ by so many orders of magnitude that the
    uncertainty had no effect.

    Cost: O(n c d) for c clusters, with memory by chunks; medoids are found in a sample.

    When to use: first rounds on pools with clear clusters, where uncertainty alone
    selects outliers and one region repeatedly.

    References
    ----------
    H. T. Nguyen, A. Smeulders, "Active learning using pre-clustering", ICML 2004.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import PreClustering
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), PreClustering(2), random_state=0)
    >>> learner = learner.fit([[-1.0], [1.0]], [0, 1])
    >>> learner.query([[-1.2], [-1.1], [-1.0], [0.4], [0.5], [0.6], [0.7], [0.3]], 2)
    array([4, 1])
    """

    _parameter_constraints = {
        "n_clusters": [POSITIVE_INT, None],
        "bandwidth": [POSITIVE, StrOptions({"auto"})],
    }
    requires = frozenset({"proba", "features"})
    targets = CLASSES

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        bandwidth: float | Literal["auto"] = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.bandwidth = bandwidth

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the best of each cluster, in turns."""
        n_clusters = self.n_clusters
        if n_clusters is None:
            n_clusters = max(2 * n_queries, 20)
        features = float_rows(view.features)
        medoids, labels, distances = k_medoids(
            features, n_clusters, view.rng, n_jobs=view.n_jobs
        )
        bandwidth = self.bandwidth
        if bandwidth == "auto":
            bandwidth = np.sqrt(distances.mean(dtype=np.float64))
        density = _log_mixture(
            features, medoids, labels, distances, bandwidth, view.n_jobs
        )
        error = _scores.uncertainty(view.proba, "least_confidence", view.target)
        with np.errstate(divide="ignore"):
            error = np.log(error)  # -inf: no error
        return _in_turns(error + density, labels, n_queries, view.rng)


def _gaps(view):
    """Return the gap (n,) of the two best classes, or of the least certain label."""
    if view.target == "multi-label":
        return view.label_margins.min(axis=1)
    return _scores.margin(view.class_scores)


class Representative(Strategy):
    """Query the row nearest each center of k-means inside the model's margin.

    The candidates inside the margin are clustered into as many groups as there are
    queries, and one row of each is selected, so a batch is both uncertain and diverse.

    Parameters
    ----------
    margin : float or "auto", default="auto"
        A candidate is inside if the gap between the scores of its two best classes is
        smaller. "auto" is 1 for decision values, the margin of a support vector
        machine, ``|f(x)| < 1``. For probabilities, `factor` determines the number.
    factor : float, default=10.0
        Number of candidates per query that are inside if "auto" is used with
        probabilities: those with the smallest gaps. At least 1.

    Notes
    -----
    If fewer candidates are inside than are queried, those nearest the boundary fill up.
    Of more than 256 per query a random 256 are clustered. The batch is ordered by the
    distance to the boundary.

    Cost: O(n k) and k-means of at most 256 b rows, O(b² d), plus the prediction.

    When to use: large batches from a classifier with a margin, if the most uncertain
    candidates are copies of one another.

    References
    ----------
    Z. Xu, K. Yu, V. Tresp, X. Xu, J. Wang, "Representative sampling for text
    classification using support vector machines", ECIR 2003.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import Representative
    >>> from sklearn.svm import LinearSVC
    >>> learner = ActiveLearner(LinearSVC(), Representative(), random_state=0)
    >>> learner = learner.fit([[-2.0, 0.0], [2.0, 0.0]], [0, 1])
    >>> X = [[0.1, 0.0], [0.1, 0.1], [0.1, 0.2], [0.2, 5.0], [4.0, 9.0]]
    >>> learner.query(X, 2)
    array([1, 3])
    """

    _parameter_constraints = {
        "margin": [POSITIVE, StrOptions({"auto"})],
        "factor": [Interval(Real, 1, np.inf, closed="left")],
    }
    requires = frozenset({"class_scores", "features"})
    targets = CLASSES

    def __init__(
        self, margin: float | Literal["auto"] = "auto", *, factor: float = 10.0
    ) -> None:
        self.margin = margin
        self.factor = factor

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select one row near each center."""
        gap = _gaps(view)
        inside = self._look_inside(gap, n_queries, view)
        if len(inside) <= n_queries:
            return top_n(-gap, n_queries, view.uniform())
        if len(inside) > ROWS_PER_QUERY * n_queries:
            drawn = top_n(view.uniform()[inside], ROWS_PER_QUERY * n_queries, view.rng)
            inside = inside[np.sort(drawn)]  # a memory map is read faster in order
        features = float_rows(view.features[inside])
        centers = k_means(features, n_queries, view.rng)[0]
        picks = inside[nearest_rows(features, centers, view.rng)]
        return picks[top_n(-gap[picks], n_queries, view.uniform()[picks])]

    def _look_inside(self, gap, n_queries, view):
        """Return the positions of the candidates inside the margin."""
        if self.margin != "auto":
            return np.flatnonzero(gap < self.margin)
        if hasattr(view.final_estimator, "predict_proba"):
            return top_n(
                -gap, min(len(gap), round(self.factor * n_queries)), view.uniform()
            )
        return np.flatnonzero(gap < 1)


class DropQuery(Strategy):
    """Query the rows nearest the centers of candidates that dropout reclassifies.

    In each of several draws a share of the features is set to 0, at random for each
    candidate, and the model predicts again. The candidates whose predicted class
    changes in more than half of the draws are clustered by k-means into as many groups
    as there are queries, and the one nearest each center is selected.

    Parameters
    ----------
    n_draws : int, default=3
        Number of draws of dropped features, at most 1,000,000.
    rate : float, default=0.75
        Probability with which a feature is dropped, in [0, 1). The others are divided
        by 1 - `rate`, as in training with dropout.

    Notes
    -----
    If fewer candidates change than are queried, those with the smallest margins fill
    up, which is not from the paper. The candidate of the largest cluster comes first.

    The final estimator must predict from the features of the pipeline's front steps.

    Cost: O(n d t) random numbers and t + 1 predictions of the n candidates for t draws,
    and k-means of those that change, O(n b d) at most.

    When to use: with a linear model on frozen features, for large batches.

    References
    ----------
    S. R. Gupte, J. Aklilu, J. J. Nirschl, S. Yeung-Levy, "Revisiting active learning in
    the era of vision foundation models", TMLR 2024, arXiv:2401.14555.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import DropQuery
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), DropQuery())
    >>> learner = learner.fit([[-1.0], [1.0], [2.0], [3.0]], [0, 1, 1, 1])
    >>> learner.query([[5.0], [-0.3], [4.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        "n_draws": [POSITIVE_COUNT],
        "rate": [Interval(Real, 0, 1, closed="left")],
    }
    requires = frozenset({"class_scores", "features"})
    targets = CLASSES

    def __init__(self, n_draws: int = 3, rate: float = 0.75) -> None:
        self.n_draws = n_draws
        self.rate = rate

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the rows nearest the centers, by the size of their clusters."""
        rows = np.flatnonzero(2 * self._count_changes(view) > self.n_draws)
        if len(rows) < n_queries:
            others = np.setdiff1d(np.arange(len(view)), rows, assume_unique=True)
            ties = view.uniform()[others]
            multi = view.target == "multi-label"
            gaps = _gaps(view) if multi else view.margins
            fill = top_n(-gaps[others], n_queries - len(rows), ties)
            rows = np.sort(np.concatenate([rows, others[fill]]))
        return rows[ask_each_cluster(view.features[rows], n_queries, view.rng)]

    def _count_changes(self, view):
        """Return the number of draws in which the predicted class changes, (n,)."""
        final = view.final_estimator
        if makes_features(final):
            raise TypeError(
                f"'estimator' must predict from features, got {type(final).__name__}, "
                "which computes its own. Use a pipeline of a transformer and a "
                "classifier without transform, such as LogisticRegression."
            )
        X = float_rows(view.feature_rows)
        changes = []
        with warnings.catch_warnings():
            # A model trained on a data frame gets an array.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            for part in chunks(X.shape[0], chunk_size(16 * X.shape[1])):
                rows = X[part]
                expected = final.predict(rows)
                changed = np.zeros(len(expected), dtype=np.intp)
                for _ in range(self.n_draws):
                    drawn = final.predict(_drop(rows, self.rate, view.rng)) != expected
                    changed += drawn if drawn.ndim == 1 else drawn.any(axis=1)
                changes.append(changed)
        return np.concatenate(changes)


def _drop(X, rate, rng):
    """Return rows (n, d) with each value set to 0 or divided by 1 - rate, at random."""
    values = X.data if sparse.issparse(X) else X
    mask = rng.random(values.shape, dtype=np.float32) >= rate
    values = (values * mask / (1 - rate)).astype(X.dtype, copy=False)
    if not sparse.issparse(X):
        return values
    return type(X)((values, X.indices, X.indptr), shape=X.shape)


def _log_mixture(X, medoids, labels, distances, bandwidth, n_jobs):
    """Return the log density (n,) of the mixture, up to a constant, from -inf to 0."""
    shares = np.log(np.bincount(labels) / len(labels))
    if bandwidth == 0:  # every row equals its medoid
        return shares[labels]
    centers = X[medoids]
    origin = None if sparse.issparse(X) else middle(centers)

    def measure(rows):
        exponents = squared_distances(X[rows], centers, origin=origin)
        exponents = exponents.astype(np.float64, copy=False)
        exponents[np.arange(len(exponents)), labels[rows]] = distances[rows]
        exponents /= -2 * bandwidth**2
        exponents += shares
        highest = exponents.max(axis=1)
        exponents -= highest[:, None]
        return highest + np.log(np.exp(exponents, out=exponents).sum(axis=1))

    size = chunk_size(16 * len(medoids) + 2 * X.dtype.itemsize * X.shape[1])
    return concatenate_chunks(measure, X.shape[0], size, n_jobs)


def _in_turns(scores, labels, n_queries, rng):
    """Return the n best so that the best of every cluster precede any second best."""
    order = top_n(scores, len(scores), rng)
    by_cluster = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels)
    starts = np.cumsum(counts) - counts
    turn = np.empty(len(scores), dtype=np.intp)
    turn[by_cluster] = np.arange(len(scores)) - np.repeat(starts, counts)
    return order[np.argsort(turn[order], kind="stable")][:n_queries]
