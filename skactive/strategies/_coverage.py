"""Coverage: select a batch after which every candidate is near a label."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._math._clustering import k_means
from .._math._k_center import METRICS, k_center
from .._math._max_coverage import ball_cover, pure_radius
from .._utils._labels import find_target
from .._utils._sklearn import Interval, StrOptions
from ._base import Strategy

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

    def __init__(self, metric: str = "euclidean") -> None:
        self.metric = metric

    def select(self, view: Any, n: int) -> NDArray:
        """Select the farthest candidate repeatedly, ties at random."""
        distances = view.labeled_distances(self.metric) if view.n_labeled else None
        from_rows = view.n_labeled and distances is None
        return k_center(
            view.feature_rows,
            n,
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
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "metric": [StrOptions(set(METRICS))],
    }
    requires = frozenset({"features"})
    optional = frozenset({"labeled"})

    def __init__(
        self,
        delta: float | str = "auto",
        purity: float = 0.95,
        n_clusters: int | None = None,
        metric: str = "euclidean",
    ) -> None:
        self.delta = delta
        self.purity = purity
        self.n_clusters = n_clusters
        self.metric = metric

    def select(self, view: Any, n: int) -> NDArray:
        """Select the candidate that covers most repeatedly, ties at random."""
        return ball_cover(
            view.features,
            n,
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
