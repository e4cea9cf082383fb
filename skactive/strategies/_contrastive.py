"""Strategies that query what differs from the labeled items: DAL and CAL."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from .._math._neighbors import neighbor_means, stack_rows
from .._math._scores import top_n
from .._utils._chunks import chunk_size, concatenate_chunks
from .._utils._labels import CLASSES
from .._utils._pipelines import seeded_clone
from .._utils._sklearn import POSITIVE, POSITIVE_INT, HasMethods
from ..registry import PointwiseStrategy, Strategy

FEW_FEATURES = 128


class DAL(Strategy):
    """Query the candidates that a classifier separates best from the labeled items.

    A classifier is trained to distinguish labeled from unlabeled items. The batch is
    selected in sub-batches: the picks of one count as labeled when the classifier is
    trained for the next, so the batch spreads out.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Trained to distinguish labeled (0) from unlabeled (1) features. It needs
        `decision_function` or `predict_proba`, and has to handle the imbalance of the
        classes. Defaults to a logistic regression with balanced classes. The same clone
        is fitted for each sub-batch, so `warm_start=True` saves work.
    n_batches : int, default=10
        Number of sub-batches, at most the number of queries.
    ratio : float or None, default=10
        Number of unlabeled training rows, drawn once, for each labeled one. None uses
        all. Every candidate may be selected, drawn or not.

    Notes
    -----
    The authors train a network of three hidden layers and stop it at an accuracy of
    0.98. The default here is linear in the features. It has a unique optimum and no
    such parameter, and its picks are the same on every machine. It finds candidates
    beyond the labeled rows, not between them; a classifier with a kernel or hidden
    layers does. Candidates are ranked by `decision_function` if there is one, because
    the probabilities of many are rounded to 1.

    Cost: per sub-batch one training on (ratio + 1) m rows, which are copied, and one
    prediction of the n candidates.

    When to use: if the labels may miss whole regions of the pool. Picks may be
    outliers, and the model's predictions are not used.

    References
    ----------
    D. Gissin, S. Shalev-Shwartz, "Discriminative active learning", 2019.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import DAL
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), strategy=DAL())
    >>> learner = learner.fit([[0.0], [1.0], [0.5]], [0, 1, 1])
    >>> learner.query([[0.2], [0.8], [7.0], [0.4]], 1)
    array([2])
    """

    _parameter_constraints = {
        "estimator": [
            HasMethods(["fit", "decision_function"]),
            HasMethods(["fit", "predict_proba"]),
            None,
        ],
        "n_batches": [POSITIVE_INT],
        "ratio": [POSITIVE, None],
    }
    requires = frozenset({"features", "labeled"})

    def __init__(
        self, estimator: Any = None, n_batches: int = 10, ratio: float | None = 10
    ) -> None:
        self.estimator = estimator
        self.n_batches = n_batches
        self.ratio = ratio

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the highest scores of the class unlabeled, in sub-batches."""
        X, X_labeled, rng = view.features, view.labeled_features, view.rng
        classifier = seeded_clone(self._classifier(X), rng)
        sample = self._draw(X.shape[0], X_labeled.shape[0], rng)
        left = np.ones(X.shape[0], dtype=bool)
        picks = np.empty(0, dtype=np.intp)
        n_batches = min(self.n_batches, n_queries)
        for ends in range(1, n_batches + 1):
            size = n_queries * ends // n_batches - len(picks)
            others = sample[left[sample]]
            if others.size == 0:
                # All drawn rows are selected; the remaining ones are unlabeled as well.
                others = np.flatnonzero(left)
            rows = stack_rows([X_labeled, X[np.concatenate([picks, others])]])
            is_unlabeled = np.ones(rows.shape[0], dtype=int)
            is_unlabeled[: X_labeled.shape[0] + len(picks)] = 0
            classifier.fit(rows, is_unlabeled)
            scores = _decide(classifier, X, view.n_jobs)
            remaining = np.flatnonzero(left)
            chosen = remaining[top_n(scores[remaining], size, rng)]
            picks = np.concatenate([picks, chosen])
            left[chosen] = False
        return picks

    def _classifier(self, X):
        if self.estimator is not None:
            return self.estimator
        # Trained until the start does not matter: at scikit-learn's default `tol` a
        # third of the picks would depend on it. For few features Newton steps are
        # faster and more robust to their scale, except in float32.
        dense = not sparse.issparse(X) and X.dtype != np.float32
        few = dense and X.shape[1] <= FEW_FEATURES
        return LogisticRegression(
            class_weight="balanced",
            solver="newton-cholesky" if few else "lbfgs",
            tol=1e-6,
            max_iter=1000,
            warm_start=True,
        )

    def _draw(self, n, m, rng):
        """Draw the candidates to train on, in the order of the pool."""
        size = n if self.ratio is None else min(n, max(1, int(self.ratio * m)))
        if size == n:
            return np.arange(n)
        return np.sort(rng.choice(n, size, replace=False, shuffle=False))


class CAL(PointwiseStrategy):
    """Query the candidates predicted most unlike the nearest labeled items.

    The score is the mean Kullback-Leibler divergence of the model's predictions for
    the nearest labeled items from its prediction for the candidate.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of labeled items to compare with. All of them are used if there are
        fewer.

    Notes
    -----
    Neighbors have the smallest Euclidean distance between features; ties go to those
    labeled first. Nothing is clipped: if a candidate has probability 0 for a class to
    which a neighbor gives more, the divergence is infinite, and all such candidates
    come first, in random order.

    Cost: O(n m (d + log m)), with the n x m distances in chunks, plus the
    predictions.

    When to use: with features and probabilities of the same model. Models that predict
    probabilities of exactly 0, such as trees, need calibration first.

    References
    ----------
    K. Margatina et al., "Active learning by acquiring contrastive examples",
    EMNLP 2021.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import CAL
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), strategy=CAL(n_neighbors=1))
    >>> learner = learner.fit([[-1.0], [1.0]], [0, 1])
    >>> learner.query([[-1.1], [0.1], [0.9]], 1)
    array([1])
    """

    _parameter_constraints = {"n_neighbors": [POSITIVE_INT]}
    requires = frozenset({"features", "labeled", "proba"})
    targets = CLASSES

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def score(self, view: Any) -> NDArray:
        """Return the mean divergence from the nearest labeled items, in nats."""
        p_labeled = _distributions(view.labeled)
        # The divergence is a sum over the neighbors' own terms and their mean.
        tiny = np.finfo(np.float64).tiny
        inner = (p_labeled * np.log(np.maximum(p_labeled, tiny))).sum(axis=1)
        means = neighbor_means(
            view.features,
            view.labeled_features,
            np.column_stack([p_labeled, inner]),
            self.n_neighbors,
            n_jobs=view.n_jobs,
        )
        p_near = means[:, :-1]
        proba = _distributions(view)
        cross = (p_near * np.log(np.maximum(proba, tiny))).sum(axis=1)
        # The maximum removes negative rounding errors.
        scores = np.maximum(means[:, -1] - cross, 0.0)
        scores[((proba == 0) & (p_near > 0)).any(axis=1)] = np.inf
        return scores


def _distributions(view):
    """Return class probabilities (n, k); of several labels, those of both values.

    The divergence of independent labels is the sum of theirs.
    """
    proba = np.asarray(view.proba, dtype=np.float64)
    return proba if view.target == "single-label" else np.hstack([proba, 1 - proba])


def _decide(classifier, X, n_jobs):
    """Return the score (n,) of class 1 for each row, on the classifier's own scale."""
    if hasattr(classifier, "decision_function"):
        ask, column = classifier.decision_function, -1
    else:
        ask, column = classifier.predict_proba, list(classifier.classes_).index(1)

    def decide(rows):
        values = np.asarray(ask(X[rows]))
        return values if values.ndim == 1 else values[:, column]

    return concatenate_chunks(decide, X.shape[0], chunk_size(8 * X.shape[1]), n_jobs)
