"""Uncertainty combined with clusters."""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._math import _scores
from .._math._clustering import k_means, k_medoids, nearest_rows
from .._math._neighbors import middle, squared_distances
from .._math._scores import top_n
from .._utils._chunks import chunk_size, chunks, float_rows, map_chunks
from .._utils._sklearn import MOST, Interval, StrOptions
from ._base import CLASSES, Strategy
from ._clustering import ask_each_cluster

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
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "bandwidth": [
            Interval(Real, 0, np.inf, closed="neither"),
            StrOptions({"auto"}),
        ],
    }
    requires = frozenset({"proba", "features"})
    targets = CLASSES

    def __init__(
        self, n_clusters: int | None = None, *, bandwidth: float | str = "auto"
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
        "margin": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "factor": [Interval(Real, 1, np.inf, closed="left")],
    }
    requires = frozenset({"class_scores", "features"})
    targets = CLASSES

    def __init__(self, margin: float | str = "auto", *, factor: float = 10.0) -> None:
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
        "n_draws": [Interval(Integral, 1, MOST, closed="both")],
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
        if hasattr(final, "transform"):
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
    kept = rng.random(values.shape, dtype=np.float32) >= rate
    values = (values * kept / (1 - rate)).astype(X.dtype, copy=False)
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
    return np.concatenate(map_chunks(measure, X.shape[0], size, n_jobs))


def _in_turns(scores, labels, n_queries, rng):
    """Return the n best so that the best of every cluster precede any second best."""
    order = top_n(scores, len(scores), rng)
    by_cluster = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels)
    starts = np.cumsum(counts) - counts
    turn = np.empty(len(scores), dtype=np.intp)
    turn[by_cluster] = np.arange(len(scores)) - np.repeat(starts, counts)
    return order[np.argsort(turn[order], kind="stable")][:n_queries]
