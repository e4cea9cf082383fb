"""Coverage: select a batch after which every candidate is near a label."""

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.preprocessing import normalize

from .._math._clustering import assign, k_means
from .._math._coverage import ball_cover, closest_pair, herd, pure_radius
from .._math._k_center import METRICS, Metric, k_center
from .._math._scores import UNCERTAINTIES, Measure, top_n, uncertainty
from .._utils._chunks import float_rows
from .._utils._labels import CLASSES, TARGETS, find_target
from .._utils._sklearn import POSITIVE, POSITIVE_INT, Interval, StrOptions
from ..registry import Strategy

CLUSTERS = 10  # if the number of classes is unknown


class CoreSet(Strategy):
    """Query the candidate farthest from all labeled and selected items, repeatedly.

    This is the greedy k-center algorithm: the largest remaining distance is at most
    twice the optimum for a batch of this size, up to rounding; distances within float64
    rounding count as equal. Before there are labels the first candidate is drawn at
    random.

    Parameters
    ----------
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" uses Euclidean distances between features scaled to length 1. Zero
        features are not scaled.

    Notes
    -----
    Cost: O(n (m + b) d) at most, by matrix products; most candidates are compared
    with few of the b picks. The learner keeps the distances to the m labeled items,
    so from the second query on m is the number of new labels.

    When to use: on features with well separated classes, for large batches or as a cold
    start. It selects outliers, so it does not suit noisy pools.

    References
    ----------
    O. Sener, S. Savarese, "Active learning for convolutional neural networks: a
    core-set approach", ICLR 2018.

    T. F. Gonzalez, "Clustering to minimize the maximum intercluster distance",
    Theoretical Computer Science 38, 1985.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import CoreSet
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), CoreSet())
    >>> learner.fit([[0.0], [1.0]], [0, 1]).query([[0.5], [9.0], [5.0], [8.0]], 2)
    array([1, 2])
    """

    _parameter_constraints = {"metric": [StrOptions(set(METRICS))]}
    requires = frozenset({"features"})
    optional = frozenset({"labeled"})

    def __init__(self, metric: Metric = "euclidean") -> None:
        self.metric = metric

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the farthest candidate repeatedly, ties at random."""
        distances = view.labeled_distances(self.metric) if view.n_labeled else None
        from_rows = view.n_labeled and distances is None
        return k_center(
            view.feature_rows,
            n_queries,
            view.rng,
            labeled=view.labeled_features if from_rows else None,
            distances=distances,
            metric=self.metric,
            n_jobs=view.n_jobs,
        )


class ProbCover(Strategy):
    """Query the candidate whose neighborhood holds most uncovered candidates.

    An item covers the candidates within `delta` of it. Candidates covered by labeled
    items are excluded, and after each pick, those that it covers. When nothing is left
    to cover, the rest of the batch is random.

    Parameters
    ----------
    delta : float or "auto", default="auto"
        Radius of the neighborhoods. "auto" is the largest radius at which the part
        `purity` of them hold candidates of one k-means cluster only. It is estimated on
        a sample of 2,048 candidates.
    purity : float, default=0.95
        Used by "auto", in (0, 1].
    n_clusters : int or None, default=None
        Number of clusters for "auto". Defaults to the number of classes labeled so far,
        at least 2, and to 10 before there are labels or if they are not one class per
        item.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" uses Euclidean distances between features scaled to length 1.

    Notes
    -----
    Cost: O(n^2 d) by matrix products without a stored matrix: half a second for
    10,000 candidates of 384 features, a minute for 100,000.

    When to use: with few or no labels, on features in which classes form groups;
    through `subsample` on more than 100,000 candidates.

    "auto" follows the published rule, except that the paper fixes the radius once on
    the whole pool, and here each query computes it for the remaining candidates. A row
    far from all others may become its own cluster; the radius then reaches up to it,
    and one label covers nearly everything. In this case scale the features, use
    `metric="cosine"`, or pass a number, which also keeps the radius the same in every
    round.

    References
    ----------
    O. Yehuda, A. Dekel, G. Hacohen, D. Weinshall, "Active learning through a covering
    lens", NeurIPS 2022.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import ProbCover
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), ProbCover(delta=1.0))
    >>> pool = [[0.1], [0.2], [4.0], [5.0], [6.0], [9.0], [9.5]]
    >>> learner.fit([[0.0], [1.0]], [0, 1]).query(pool, 1)
    array([3])
    """

    _parameter_constraints = {
        "delta": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "purity": [Interval(Real, 0, 1, closed="right")],
        "n_clusters": [POSITIVE_INT, None],
        "metric": [StrOptions(set(METRICS))],
    }
    requires = frozenset({"features"})
    optional = frozenset({"labeled"})

    def __init__(
        self,
        delta: float | Literal["auto"] = "auto",
        purity: float = 0.95,
        n_clusters: int | None = None,
        metric: Metric = "euclidean",
    ) -> None:
        self.delta = delta
        self.purity = purity
        self.n_clusters = n_clusters
        self.metric = metric

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the candidate that covers most repeatedly, ties at random."""
        return ball_cover(
            view.features,
            n_queries,
            self._radius(view),
            view.rng,
            labeled=view.labeled_features if view.n_labeled else None,
            metric=self.metric,
            n_jobs=view.n_jobs,
        )

    def _knows_classes(self, view):
        if not view.n_labeled:
            return False
        return find_target(view.estimator, view.y_labeled) == "single-label"

    def _radius(self, view):
        if self.delta != "auto":
            return float(self.delta)
        if self.n_clusters is not None:
            n_clusters = self.n_clusters
        elif self._knows_classes(view):
            n_clusters = max(2, len(np.unique(view.y_labeled)))
        else:
            n_clusters = CLUSTERS
        normalize = self.metric == "cosine"
        features = view.features
        clusters = k_means(features, n_clusters, view.rng, normalize=normalize)[1]
        return pure_radius(
            features,
            clusters,
            view.rng,
            purity=self.purity,
            metric=self.metric,
            n_jobs=view.n_jobs,
        )


class UHerding(Strategy):
    """Query the candidate that covers most uncertainty not yet covered, repeatedly.

    The candidates are a random part of the pool. An item covers a candidate by a
    Gaussian kernel of the distance between their features, scaled to length 1. The next
    pick is the candidate i with the highest ::

        sum_j u_j max(k(x_i, x_j) - c_j, 0),   k(x, z) = exp(-|x - z|^2 / radius^2),

    where u_j is the uncertainty of candidate j, and c_j the highest kernel between it
    and a labeled item or a previous pick. With a wide kernel and flat predictions this
    is coverage, with a narrow kernel uncertainty sampling.

    Parameters
    ----------
    measure : {"margin", "entropy", "least_confidence"} or None, default="margin"
        Uncertainty of a candidate; for "margin", 1 minus the gap between the two best
        probabilities. None means 1 for all candidates (MaxHerding), which needs no
        model. It is 1 as well for several labels per item, before there is a model, and
        if the model is certain of every candidate.
    radius : float or "auto", default="auto"
        Width of the kernel. "auto" is the smallest distance between two different
        labeled items, so the kernel becomes narrower with more labels, and 1 before
        there are such items.
    temperature : float, default=1.0
        Temperature of the probabilities: proportional to p ** (1 / temperature), or
        the softmax of decision values / temperature. Higher is flatter.
    sample_size : int, default=1000
        Number of candidates of a query, drawn at random: at least twice `n_queries`, at
        most 20,000. Only they are transformed and predicted.
    random_share : float, default=0.3
        Mean share of random candidates in a batch, its last ones, in [0, 1]. 0 is the
        method of the paper.

    Notes
    -----
    The random share keeps the labels closer to a random sample. Without it, accuracy
    falls below that of random labels if many labels are wrong. With several labels per
    item, the mean uncertainty of the labels was worse than random labels on GoEmotions,
    and 1 was not (``benchmarks/multi_label.py``).

    Sums that differ by less than 1.5e-5 of the largest at the start are ties, which are
    broken at random.

    Cost: O(n) for the draw, O(s^2 d) for s candidates, by matrix products, and for each
    pick O(s d) and O(s s' d) for the s' of them that it covers better, about s / (m +
    1). "auto" adds O(m^2 d). Memory: s^2 numbers.

    When to use: by default. Of an estimator without numeric features, the most
    uncertain candidates are queried. Two nearly equal labeled items make the kernel
    narrow.

    The objective, the kernel, the measures and the radius are those of the paper and
    its program. The temperature of the paper is fitted to held-out labels after a
    second training; here it is a parameter, because a fit by cross-validation gave no
    consistent gain with up to 300 labels of three text data sets.
    The radius before there are labels is that of MaxHerding. The program of the paper
    limits the number of candidates as well.

    References
    ----------
    W. Bae, G. L. Oliveira, D. J. Sutherland, "Uncertainty herding: one active learning
    method for all label budgets", ICLR 2025, arXiv:2412.20644.

    W. Bae, J. Noh, D. J. Sutherland, "Generalized coverage for more robust low-budget
    active learning", ECCV 2024, arXiv:2407.12212 (MaxHerding).

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import UHerding
    >>> from sklearn.linear_model import LogisticRegression
    >>> pool = [[1.0, 0.0], [1.0, 0.1], [1.0, -0.1], [0.0, 1.0], [-0.2, 1.0]]
    >>> learner = ActiveLearner(
    ...     LogisticRegression(), cold_start=UHerding(radius=0.5), random_state=0
    ... )
    >>> learner.query(pool, 1)
    array([0])
    """

    _parameter_constraints = {
        "measure": [StrOptions(set(UNCERTAINTIES)), None],
        "radius": [POSITIVE, StrOptions({"auto"})],
        "temperature": [POSITIVE],
        "sample_size": [Interval(Integral, 1, 20_000, closed="both")],
        "random_share": [Interval(Real, 0, 1, closed="both")],
    }
    requires = frozenset()

    def __init__(
        self,
        measure: Measure | None = "margin",
        radius: float | Literal["auto"] = "auto",
        temperature: float = 1.0,
        sample_size: int = 1000,
        random_share: float = 0.3,
    ) -> None:
        self.measure = measure
        self.radius = radius
        self.temperature = temperature
        self.sample_size = sample_size
        self.random_share = random_share

    @property
    def optional(self) -> frozenset[str]:  # type: ignore[override]
        """Features and labels, and the predictions if a measure uses them."""
        scores = {"class_scores"} if self.measure else set()
        return frozenset({"features", "labeled"} | scores)

    @property
    def targets(self) -> frozenset[str]:
        """All targets without a measure of uncertainty, otherwise classes."""
        return CLASSES if self.measure else TARGETS

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the candidate that covers most repeatedly, then random ones."""
        if not self.random_share:
            return self._cover(view, n_queries)
        n_random = int(self.random_share * n_queries + view.rng.random())
        picks = np.empty(0, dtype=np.intp)
        if n_queries > n_random:
            picks = self._cover(view, n_queries - n_random)
        numbers = view.uniform()
        numbers[picks] = -1
        return np.concatenate([picks, top_n(numbers, n_random, view.rng)])

    def _cover(self, view, n_queries):
        """Return the candidates that cover most, one after another."""
        size = max(self.sample_size, 2 * n_queries)
        if size < len(view):
            rows = np.sort(top_n(view.uniform(), size, view.rng))
            return rows[self._cover(view.take(rows), n_queries)]
        if not view.offers("features"):
            return top_n(self._weigh(view), n_queries, view.rng)
        X = float_rows(view.feature_rows)
        # Distances of unit vectors are at most 2; their squares in float32 are finite.
        radius = float(np.clip(self._find_radius(view), 1e-9, 1e9))
        covered = np.zeros(len(view))
        if view.n_labeled:
            covered = np.exp(-_to_labeled(view, X) / radius**2)
        return herd(
            X,
            n_queries,
            radius,
            view.rng,
            weights=self._weigh(view),
            covered=covered,
        )

    def _find_radius(self, view):
        if self.radius != "auto":
            return self.radius
        distance = closest_pair(view.labeled_features) if view.n_labeled else np.inf
        return distance if np.isfinite(distance) else 1.0

    def _weigh(self, view):
        """Return the uncertainty of each candidate, (n,)."""
        if (
            self.measure is None
            or view.estimator is None
            or view.target != "single-label"
        ):
            return np.ones(len(view))
        scores = view.class_scores.astype(np.float64)
        if hasattr(view.final_estimator, "predict_proba"):
            with np.errstate(divide="ignore"):
                scores = np.log(scores)
        proba = softmax(scores / self.temperature, axis=1)
        weights = uncertainty(proba, self.measure)
        return weights if weights.any() else np.ones(len(view))


def _to_labeled(view, X):
    """Return the squared distance (n,) of each unit row to the nearest labeled one."""
    distances = view.labeled_distances("cosine")
    if distances is not None:
        return distances
    labeled = normalize(float_rows(view.labeled_features)[:])
    labeled = labeled.toarray() if sparse.issparse(labeled) else labeled
    return assign(X, labeled, normalize=True, n_jobs=view.n_jobs)[1] ** 2
