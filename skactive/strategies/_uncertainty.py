"""Uncertainty sampling, and the random baseline."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._math._neighbors import squared_norms
from .._math._scores import UNCERTAINTIES, uncertainty
from .._utils._chunks import chunk_size, chunks, float_rows, map_chunks
from .._utils._sklearn import Interval, StrOptions
from ._base import CLASSES, PointwiseStrategy


class Random(PointwiseStrategy):
    """Query candidates at random, each with the same probability.

    The baseline for every other strategy, and the default before there is a model.

    Notes
    -----
    Cost: O(n).

    When to use: as the baseline, before there is a model, and if labels must represent
    the pool, as for a test set.

    References
    ----------
    B. Settles, "Active learning literature survey", 2009, section 1.

    Examples
    --------
    The same seed draws the same items:

    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import Random
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), Random(), random_state=0)
    >>> learner = learner.fit([[-1.0], [1.0]], ["no", "yes"])
    >>> pool = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    >>> learner.query(pool, 2).tolist() == learner.query(pool, 2).tolist()
    True
    """

    def score(self, view: Any) -> NDArray:
        """Draw a uniform number for each position in the pool."""
        return view.uniform()


class _OfLabels(PointwiseStrategy):
    """Base of the measures that have a mean and a maximum over several labels."""

    _parameter_constraints = {"aggregate": [StrOptions({"mean", "max"})]}
    targets = CLASSES

    def __init__(self, *, aggregate: str = "mean") -> None:
        self.aggregate = aggregate


class Entropy(_OfLabels):
    """Query the candidates with the highest entropy of the prediction, -Σ p log p.

    For multi-label targets, the mean or maximum of the entropies of the labels.

    Parameters
    ----------
    aggregate : {"mean", "max"}, default="mean"
        How the entropies of the labels become one number, for multi-label targets.

    Notes
    -----
    Cost: O(n k) plus the prediction.

    When to use: if the probabilities of all classes matter. With many classes it also
    selects candidates whose two best classes are clearly separated from each other.

    References
    ----------
    B. Settles, "Active learning literature survey", 2009, section 3.1.

    A. Esuli, F. Sebastiani, "Active learning strategies for multi-label text
    classification", ECIR 2009, for several labels.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), strategy="entropy")
    >>> learner.fit([[-1.0], [1.0]], [0, 1]).query([[-2.0], [0.1], [3.0]], 1)
    array([1])
    """

    requires = frozenset({"proba"})

    def score(self, view: Any) -> NDArray:
        """Return the entropy in nats."""
        return uncertainty(view.proba, "entropy", view.target, self.aggregate)


class LeastConfidence(_OfLabels):
    """Query the candidates with the lowest highest class probability, 1 - max p.

    Also known as "variation_ratio". For multi-label targets, the mean or maximum of
    min(p, 1 - p) over the labels.

    Parameters
    ----------
    aggregate : {"mean", "max"}, default="mean"
        How the values of the labels become one number, for multi-label targets.

    Notes
    -----
    Cost: O(n k) plus the prediction.

    When to use: if only the predicted class matters.

    References
    ----------
    D. D. Lewis, W. A. Gale, "A sequential algorithm for training text classifiers",
    SIGIR 1994.

    L. C. Freeman, "Elementary applied statistics", 1965, for the variation ratio.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import LeastConfidence
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), LeastConfidence())
    >>> learner.fit([[-1.0], [1.0]], [0, 1]).query([[-2.0], [0.1], [3.0]], 1)
    array([1])
    """

    requires = frozenset({"proba"})

    def score(self, view: Any) -> NDArray:
        """Return 1 minus the highest probability."""
        return uncertainty(view.proba, "least_confidence", view.target, self.aggregate)


VariationRatio = LeastConfidence  # the other name of the measure


class Margin(_OfLabels):
    """Query the candidates with the smallest gap between the two best classes.

    It uses probabilities, or decision values for classifiers without them. For two
    classes the gap is the distance to the hyperplane. Also known as "breaking ties".

    For multi-label targets, the gap of a label is ``|2 p - 1|``, or its absolute
    decision value. Candidates have the mean of the gaps, or their minimum.

    Parameters
    ----------
    aggregate : {"mean", "max"}, default="mean"
        "mean" uses the mean gap of the labels, and "max" the smallest, the gap of the
        most uncertain label, for multi-label targets.

    Notes
    -----
    Cost: O(n k) plus the prediction.

    When to use: by default. It is rarely worse than random, and fast.

    References
    ----------
    T. Scheffer, C. Decomain, S. Wrobel, "Active hidden Markov models for information
    extraction", IDA 2001.

    S. Tong, D. Koller, "Support vector machine active learning with applications to
    text classification", JMLR 2, 2001.

    K. Brinker, "On active learning in multi-label classification", 2006, for the
    smallest gap of several labels.

    Examples
    --------
    180 labels of handwritten digits, random ones and those of small margin:

    >>> from skactive import ActiveLearner, simulate
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_digits(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X / 16, y, random_state=0)
    >>> test = {"X_test": X_test, "y_test": y_test}
    >>> for strategy in ["random", "margin"]:
    ...     learner = ActiveLearner(
    ...         LogisticRegression(), strategy, batch_size=20, random_state=0
    ...     )
    ...     run = simulate(learner, X, y, n_initial=20, n_rounds=8, **test)
    ...     print(strategy, "above 93 %:", bool(run.scores[-1] > 0.93))
    random above 93 %: False
    margin above 93 %: True
    """

    requires = frozenset({"class_scores"})

    def score(self, view: Any) -> NDArray:
        """Return the negative gap between the two best classes."""
        if view.target == "multi-label":
            gaps = view.label_margins
            return -(gaps.min(axis=1) if self.aggregate == "max" else gaps.mean(axis=1))
        return -view.margins


class Density(PointwiseStrategy):
    """Query the candidates with the highest uncertainty times density.

    The score of a candidate is its uncertainty times a power of its information
    density, the mean cosine similarity of its features to those of all candidates,
    including itself. So uncertain outliers have low scores.

    Parameters
    ----------
    measure : {"entropy", "least_confidence", "margin"}, default="entropy"
        The uncertainty; "margin" is 1 minus the gap between the two best classes. For
        multi-label targets, the mean over the labels.
    beta : float, default=1.0
        The power, at least 0. With 0 only the uncertainty counts.
    similarity : {"cosine", "shifted"}, default="cosine"
        How similarities become nonnegative, as a power requires. "cosine" replaces a
        negative mean similarity by 0, which has no effect on nonnegative features such
        as counts. "shifted" uses (1 + cosine) / 2, which suits centered features.
    n_neighbors : int or None, default=None
        Number of most similar other candidates to average over. Defaults to the whole
        pool.

    Notes
    -----
    Cost: O(n d + n k) plus the prediction, as the mean cosine to all rows is the
    product with the mean of the unit rows. With `n_neighbors` O(n² d), only in the
    first query of a learner while the features stay the same.

    When to use: small batches from pools with outliers. Batches are not diverse, so
    large ones come from one dense region.

    References
    ----------
    B. Settles, M. Craven, "An analysis of active learning strategies for sequence
    labeling tasks", EMNLP 2008, section 3.4.

    J. Zhu et al., "Active learning with sampling by uncertainty and density for word
    sense disambiguation and text classification", COLING 2008, for `n_neighbors`.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import Density
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), strategy=Density())
    >>> learner = learner.fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> learner.query([[-3.0, -3.0], [1.0, 0.8], [4.0, 0.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        "measure": [StrOptions(set(UNCERTAINTIES))],
        "beta": [Interval(Real, 0, np.inf, closed="left")],
        "similarity": [StrOptions({"cosine", "shifted"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
    }
    requires = frozenset({"proba", "features"})
    targets = CLASSES

    def __init__(
        self,
        measure: str = "entropy",
        *,
        beta: float = 1.0,
        similarity: str = "cosine",
        n_neighbors: int | None = None,
    ) -> None:
        self.measure = measure
        self.beta = beta
        self.similarity = similarity
        self.n_neighbors = n_neighbors

    def score(self, view: Any) -> NDArray:
        """Return uncertainty times density to the power of beta."""
        uncertain = uncertainty(view.proba, self.measure, view.target)
        similarity = self._similarity(view)
        if self.similarity == "shifted":
            similarity = (1 + similarity) / 2
        return uncertain * np.maximum(similarity, 0) ** self.beta

    def _similarity(self, view):
        if self.n_neighbors is None:
            return _mean_similarity(float_rows(view.features), view.n_jobs)
        cosines, _ = view.similar(self.n_neighbors)
        if cosines is None:
            features = float_rows(view.features)
            return _neighbor_similarity(features, self.n_neighbors, view.n_jobs)
        return cosines.mean(axis=1) if cosines.size else np.zeros(len(view))


def _row_bytes(X):
    """Return the memory of a row and its squares."""
    filled = 3 * X.nnz // X.shape[0] if sparse.issparse(X) else X.shape[1]
    return 2 * X.dtype.itemsize * filled


def _unit(X):
    """Scale rows to length 1; rows of zeros stay."""
    lengths = np.sqrt(squared_norms(X))
    factors = 1 / np.where(lengths > 0, lengths, 1)
    if sparse.issparse(X):
        return sparse.diags_array(factors).tocsr() @ X
    return X * factors[:, None]


def _mean_similarity(X, n_jobs):
    """Return the mean cosine of each row to all rows, itself included."""
    n = X.shape[0]
    size = chunk_size(_row_bytes(X))

    def add(rows):
        part = X[rows]
        lengths = np.sqrt(squared_norms(part))
        factors = 1 / np.where(lengths > 0, lengths, 1)
        return factors, part.T @ factors

    factors, sums = zip(*map_chunks(add, n, size, n_jobs), strict=True)
    mean = np.sum(sums, axis=0, dtype=np.float64) / n

    def compare(rows):
        return X[rows] @ mean.astype(X.dtype)

    products = np.concatenate(map_chunks(compare, n, size, n_jobs))
    return products * np.concatenate(factors)


def _neighbor_similarity(X, n_neighbors, n_jobs):
    """Return the mean cosine of each row to the most similar other rows."""
    n = X.shape[0]
    keep = min(n_neighbors, n - 1)
    if keep == 0:
        return np.zeros(n)

    def compare(rows):
        left = _unit(X[rows])
        best = np.empty((rows.stop - rows.start, 0), dtype=X.dtype)
        for columns in chunks(n, 2048):
            block = left @ _unit(X[columns]).T
            block = block.toarray() if sparse.issparse(block) else block
            own = np.arange(
                max(rows.start, columns.start), min(rows.stop, columns.stop)
            )
            block[own - rows.start, own - columns.start] = -np.inf
            best = np.concatenate([best, block], axis=1)
            if best.shape[1] > keep:
                best.partition(best.shape[1] - keep, axis=1)
                best = best[:, -keep:]
        return best.mean(axis=1)

    return np.concatenate(map_chunks(compare, n, 1024, n_jobs))
