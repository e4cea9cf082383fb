"""Regression: select a batch by distances of features and of predictions."""

from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from .._math._k_center import k_center
from .._math._neighbors import paired_distances, rounding, squared_norms
from .._utils._chunks import (
    chunk_size,
    chunks,
    concatenate_chunks,
    float_rows,
    map_chunks,
)
from .._utils._labels import TARGETS
from .._utils._sklearn import POSITIVE, Interval, StrOptions
from ..registry import Strategy
from ._coverage import CoreSet

REGRESSION = frozenset({"regression"})
TIE = 2.0**-40  # of a squared distance: smaller differences are ties
BLOCK = 512  # centers of a block of the distance matrix


class GreedySampling(Strategy):
    """Query the candidate farthest from all labels in features and predictions.

    The distance of a candidate to a labeled item is that of the features, that of the
    candidate's prediction to the item's label, or the product of the two. The candidate
    whose smallest distance is largest is selected, and counts as labeled with its
    prediction for the next pick.

    Parameters
    ----------
    space : {"input", "output", "both"}, default="both"
        Which distance: of the features (published as GSx), of the predictions (GSy),
        or their product (iGS).

    Notes
    -----
    Cost: O(n (m + b) d) for n candidates, m labels and b picks.

    When to use: regression on few features. The features are not scaled, so put a
    `StandardScaler` before the model. It selects outliers.

    "input" is CoreSet, which suits all targets.

    References
    ----------
    D. Wu, C.-T. Lin, J. Huang, "Active learning for regression using greedy sampling",
    Information Sciences 474, 2019.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import GreedySampling
    >>> from sklearn.linear_model import Ridge
    >>> learner = ActiveLearner(Ridge(), GreedySampling())
    >>> learner.fit([[0.0], [1.0]], [0.0, 3.0]).query([[0.5], [9.0], [5.0]], 2)
    array([1, 2])
    """

    _parameter_constraints = {"space": [StrOptions({"input", "output", "both"})]}

    def __init__(self, space: Literal["input", "output", "both"] = "both") -> None:
        self.space = space

    @property
    def requires(self) -> frozenset[str]:  # type: ignore[override]
        """Quantities that the strategy uses, which depend on `space`."""
        if self.space == "input":
            return CoreSet.requires
        if self.space == "output":
            return frozenset({"labeled", "predictions"})
        return frozenset({"features", "labeled", "predictions"})

    @property
    def optional(self) -> frozenset[str]:  # type: ignore[override]
        """Quantities that the strategy uses when available."""
        return CoreSet.optional if self.space == "input" else frozenset()

    @property
    def targets(self) -> frozenset[str]:
        """Targets that the strategy is defined for; "input" needs no predictions."""
        return TARGETS if self.space == "input" else REGRESSION

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the candidate with the largest smallest distance, ties at random."""
        if self.space == "input":
            return CoreSet().select(view, n_queries)
        numbers = np.asarray(view.predictions, dtype=np.float64)
        labels = np.asarray(view.y_labeled, dtype=np.float64)
        if self.space == "output":
            # A number is a row with one feature.
            rows, labeled = numbers[:, None], labels[:, None]
            return k_center(
                rows, n_queries, view.rng, labeled=labeled, n_jobs=view.n_jobs
            )
        pool = _Distances(view.feature_rows, numbers, n_jobs=view.n_jobs)
        pool.add(float_rows(view.labeled_features), labels)
        priority, picks = view.uniform(), list[int]()
        while len(picks) < n_queries:
            picks.append(_farthest(pool.closest, priority))
            pool.add_own(picks[-1])
            pool.closest[picks] = -np.inf
        return np.array(picks, dtype=np.intp)


class LargestClusterMaxDistance(Strategy):
    """Query the farthest candidate of the largest cluster, repeatedly.

    Each candidate belongs to the nearest labeled or selected item. The size of a
    cluster is the sum of its squared distances, so large clusters are dense regions
    that are far from a label. Of the largest, the candidate farthest from its center is
    selected and becomes a center. Before there are labels, the longest row is selected
    first.

    Notes
    -----
    Cost: O(n (m + b) d) for n candidates, m labels and b picks.

    When to use: large batches for regression. It compares the features only, so it
    suits all targets. It selects in regions with many candidates, so it selects fewer
    outliers than CoreSet.

    The published method compares gradients of a network, for which the features of the
    last layer stand here. This is its kernel "linear" with the labeled items as
    centers.

    References
    ----------
    D. Holzmüller, V. Zaverkin, J. Kästner, I. Steinwart, "A framework and benchmark
    for deep batch active learning for regression", JMLR 24, 2023.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import LargestClusterMaxDistance
    >>> from sklearn.linear_model import Ridge
    >>> learner = ActiveLearner(Ridge(), LargestClusterMaxDistance())
    >>> learner = learner.fit([[0.0], [9.0]], [0.0, 1.0])
    >>> learner.query([[2.0], [2.5], [3.0], [13.0]], 2)
    array([2, 3])
    """

    requires = frozenset({"features"})
    optional = frozenset({"labeled"})

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the farthest candidate of the largest cluster, ties at random."""
        priority = view.uniform()
        pool = _Distances(view.feature_rows, n_jobs=view.n_jobs)
        chosen, picks = np.zeros(len(view), dtype=bool), []
        if view.n_labeled:
            pool.add(float_rows(view.labeled_features))
        else:
            picks.append(_farthest(pool.norms, priority))
            pool.add_own(picks[0])
        chosen[picks] = True
        while len(picks) < n_queries:
            sizes = np.bincount(pool.owner, weights=pool.closest)
            # A cluster without other candidates has nothing to select.
            sizes[np.bincount(pool.owner[~chosen], minlength=len(sizes)) == 0] = -1
            left = np.flatnonzero((pool.owner == sizes.argmax()) & ~chosen)
            pick = left[_farthest(pool.closest[left], priority[left])]
            pool.add_own(pick)
            chosen[pick] = True
            picks.append(pick)
        return np.array(picks, dtype=np.intp)


class BAIT(Strategy):
    """Query the batch that reduces the mean variance over all items most.

    The variance is that of a linear model of the features with a normal prior, whose
    precision after labels at H is A = alpha I + H'H. The batch minimizes tr(A^-1 F),
    where F is the mean of h h' over all items. Twice as many candidates are selected
    greedily, and then those that are missed least are removed one by one.

    Parameters
    ----------
    alpha : float, default=1.0
        Precision of the prior over that of the noise, like the `alpha` of `Ridge`.
    oversample : float, default=2.0
        Number of candidates selected first, as a multiple of the batch.

    Notes
    -----
    Cost: O(n d^2 + d^3) once, and O(n d + d^2) for each pick.

    When to use: regression with a linear model on up to a few thousand features. The
    features should have a common scale, as after a `StandardScaler`.

    References
    ----------
    J. T. Ash, S. Goel, A. Krishnamurthy, S. Kakade, "Gone fishing: neural active
    learning with Fisher embeddings", NeurIPS 2021.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import BAIT
    >>> from sklearn.linear_model import Ridge
    >>> learner = ActiveLearner(Ridge(), BAIT())
    >>> learner = learner.fit([[1.0, 0.0]], [1.0])
    >>> learner.query([[1.0, 0.1], [0.0, 1.0], [0.9, 0.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        "alpha": [POSITIVE],
        "oversample": [Interval(Real, 1, None, closed="left")],
    }
    requires = frozenset({"features", "labeled"})
    targets = REGRESSION

    def __init__(self, alpha: float = 1.0, oversample: float = 2.0) -> None:
        self.alpha = alpha
        self.oversample = oversample

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select candidates greedily, then remove those that matter least."""
        priority = view.uniform()
        state = _Precision(view.features, view.labeled_features, self.alpha)
        picks, chosen = list[int](), np.zeros(len(view), dtype=bool)
        while len(picks) < min(len(view), round(self.oversample * n_queries)):
            gains = np.maximum(state.changes / (1 + state.variances), 0)
            gains[chosen] = -1
            picks.append(_farthest(gains, priority))
            chosen[picks[-1]] = True
            state.change(picks[-1], 1 / (1 + state.variances[picks[-1]]))
        while len(picks) > n_queries:
            losses = state.changes[picks] / (1 - state.variances[picks])
            removed = picks.pop(int(losses.argmin()))
            state.change(removed, -1 / (1 - state.variances[removed]))
        return np.array(picks, dtype=np.intp)


class _Precision:
    """h'A^-1 h and h'A^-1 F A^-1 h of each candidate h, as A gains or loses rows."""

    def __init__(self, rows, labeled, alpha):
        self.X, labeled = float_rows(rows), float_rows(labeled)
        n, d = self.X.shape
        inner, own = _scatter(self.X), _scatter(labeled)
        self.inverse = np.linalg.inv(own + alpha * np.eye(d))
        mean = (inner + own) / (n + labeled.shape[0])
        self.product = self.inverse @ mean @ self.inverse
        self.variances, self.changes = np.empty(n), np.empty(n)
        for part in chunks(n, chunk_size(24 * d, 2**24)):
            block = _dense(self.X[part])
            for values, matrix in (
                (self.variances, self.inverse),
                (self.changes, self.product),
            ):
                values[part] = np.einsum("ij,ij->i", block @ matrix, block)

    def change(self, position, factor):
        """Add a candidate to A, or remove it, for a factor below 0."""
        row = _dense(self.X[[position]])[0]
        u, g = self.inverse @ row, self.product @ row
        size = row @ g
        self.inverse -= factor * np.outer(u, u)
        crossed = factor * np.outer(u, g)
        self.product -= crossed + crossed.T - factor**2 * size * np.outer(u, u)
        a, b = (np.asarray(self.X @ v.astype(self.X.dtype)) for v in (u, g))
        self.variances -= factor * a**2
        self.changes -= 2 * factor * a * b - factor**2 * size * a**2


def _scatter(X):
    """Return the sum of the outer products of the rows, float64 (d, d)."""
    X = _doubles(X[:])
    return np.asarray(safe_sparse_dot(X.T, X, dense_output=True))


def _dense(rows):
    return _doubles(rows.toarray() if sparse.issparse(rows) else rows)


def _farthest(distances, priority):
    """Return the position of the largest distance; the highest priority wins a tie."""
    tied = np.flatnonzero(distances >= distances.max() * (1 - TIE))
    return int(tied[priority[tied].argmax()])


class _Distances:
    """Squared distance of each candidate to the nearest center, and which it is.

    With `numbers` (n,), distances are multiplied by the distances of the numbers. A
    product of matrices excludes most pairs; float64 differences decide on the others.
    """

    def __init__(self, rows, numbers=None, *, n_jobs=1):
        self.X, self.numbers, self.n_jobs = float_rows(rows), numbers, n_jobs
        self.n, d = self.X.shape
        self.size = chunk_size(8 * (d + 4 * BLOCK), 2**24)
        self.norms = concatenate_chunks(
            lambda rows: self._norms(self.X[rows]), self.n, self.size
        )
        self.closest = np.full(self.n, np.inf)
        self.owner = np.full(self.n, -1)
        self.n_centers = 0

    def add_own(self, position):
        """Add a candidate to the centers, and let it be its own."""
        numbers = None if self.numbers is None else self.numbers[[position]]
        self.add(self.X[[position]], numbers)
        self.closest[position], self.owner[position] = 0, self.n_centers - 1

    def add(self, centers, numbers=None):
        """Add centers (m, d) with numbers (m,)."""
        for start in range(0, centers.shape[0], BLOCK):
            some = slice(start, start + BLOCK)
            self._add_block(centers[some], None if numbers is None else numbers[some])

    def _add_block(self, centers, numbers):
        norms, relative = self._norms(centers), rounding(self.X, centers)

        def update(rows):
            part, closest = self.X[rows], self.closest[rows]
            lengths = self.norms[rows, None] + norms
            block = safe_sparse_dot(part, centers.T, dense_output=True)
            block = lengths - 2.0 * block
            wrong = relative * lengths
            factor = 1.0
            if numbers is not None:
                factor = (self.numbers[rows, None] - numbers) ** 2
            limit = np.minimum(closest, ((block + wrong) * factor).min(axis=1))
            i, j = np.nonzero((block - wrong) * factor <= limit[:, None])
            exact = paired_distances(part, centers, i, j, prepare=_doubles)
            if numbers is not None:
                exact *= factor[i, j]
            order = np.lexsort((j, exact, i))  # the nearest center of each row first
            best = order[np.unique(i[order], return_index=True)[1]]
            best = best[exact[best] < closest[i[best]]]
            closest[i[best]] = exact[best]
            self.owner[rows][i[best]] = self.n_centers + j[best]

        map_chunks(update, self.n, self.size, self.n_jobs)
        self.n_centers += centers.shape[0]

    def _norms(self, rows):
        return squared_norms(rows).astype(np.float64)


def _doubles(rows):
    return rows.astype(np.float64)
