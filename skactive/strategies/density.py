"""Density: ask where the model is unsure and many candidates are alike."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from scipy import sparse

from .. import measures
from .._chunks import chunk_size, chunks, float_rows, map_chunks
from .._sklearn import Interval, StrOptions
from ..distances import squared_norms
from .base import PointwiseStrategy

__all__ = ["Density"]

_UNCERTAINTIES = {
    "entropy": measures.entropy,
    "least_confidence": measures.least_confidence,
    "margin": lambda proba: 1.0 - measures.margin(proba),
}


class Density(PointwiseStrategy):
    """Ask where uncertainty times the mean similarity to the pool is highest.

    The score of a candidate is its uncertainty times a power of its information
    density, the mean cosine similarity of its features to those of all candidates,
    itself among them. An outlier is not worth a label, however unsure the model.

    Parameters
    ----------
    measure : {"entropy", "least_confidence", "margin"}, default="entropy"
        The uncertainty; "margin" is one less the gap between the two best classes.
    beta : float, default=1.0
        The power, at least 0; 0 leaves the uncertainty alone.
    similarity : {"cosine", "shifted"}, default="cosine"
        A power needs numbers that are not negative. "cosine" takes a negative mean
        similarity as 0, which changes nothing where features are not negative, as
        counts are; "shifted" takes (1 + cosine) / 2, which suits centred features,
        half of which are on the far side of the origin.
    n_neighbors : int or None, default=None
        Average over the so many most similar other candidates instead of the pool.

    Notes
    -----
    Cost: O(n d + n k) beside the prediction, as the mean cosine to all rows is the
    product with the mean of the unit rows. With `n_neighbors` O(n² d); from the second
    query of a learner on that is spared while the features stay.

    When to use: small batches from pools with outliers or junk. The batch is not made
    diverse, so large ones come from one dense region.

    References
    ----------
    B. Settles, M. Craven, "An analysis of active learning strategies for sequence
    labeling tasks", EMNLP 2008, section 3.4.

    J. Zhu et al., "Active learning with sampling by uncertainty and density for word
    sense disambiguation and text classification", COLING 2008, for `n_neighbors`.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies.density import Density
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), strategy=Density())
    >>> learner = learner.fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> learner.query([[-3.0, -3.0], [1.0, 0.8], [4.0, 0.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        "measure": [StrOptions(set(_UNCERTAINTIES))],
        "beta": [Interval(Real, 0, np.inf, closed="left")],
        "similarity": [StrOptions({"cosine", "shifted"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
    }
    requires = frozenset({"proba", "features"})

    def __init__(
        self, measure="entropy", *, beta=1.0, similarity="cosine", n_neighbors=None
    ):
        self.measure = measure
        self.beta = beta
        self.similarity = similarity
        self.n_neighbors = n_neighbors

    def score(self, view):
        """Uncertainty times density to the power of beta.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates, their class probabilities and features.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
        """
        uncertainty = _UNCERTAINTIES[self.measure](view.proba)
        similarity = self._similarity(view)
        if self.similarity == "shifted":
            similarity = (1 + similarity) / 2
        return uncertainty * np.maximum(similarity, 0) ** self.beta

    def _similarity(self, view):
        if self.n_neighbors is None:
            return _mean_similarity(float_rows(view.features), view.n_jobs)
        cosines, _ = view.similar(self.n_neighbors)
        if cosines is None:
            features = float_rows(view.features)
            return _neighbor_similarity(features, self.n_neighbors, view.n_jobs)
        return cosines.mean(axis=1) if cosines.size else np.zeros(len(view))


def _row_bytes(X):
    """Memory of a row and its squares."""
    filled = 3 * X.nnz // X.shape[0] if sparse.issparse(X) else X.shape[1]
    return 2 * X.dtype.itemsize * filled


def _unit(X):
    """Rows of length 1; rows of zeros stay."""
    lengths = np.sqrt(squared_norms(X))
    factors = 1 / np.where(lengths > 0, lengths, 1)
    if sparse.issparse(X):
        return sparse.diags_array(factors).tocsr() @ X
    return X * factors[:, None]


def _mean_similarity(X, n_jobs):
    """Mean cosine of each row to all rows, itself included."""
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
    """Mean cosine of each row to the other rows that are most similar to it."""
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
