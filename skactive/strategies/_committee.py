"""Query by committee: query where models trained on the same labels disagree."""

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import islice
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import is_regressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_sample_weight

from .._math._scores import (
    consensus_entropy,
    kl_to_mean,
    uncertainty,
    vote_entropy,
    vote_variation_ratio,
)
from .._utils._chunks import chunk_size, chunks, concatenate_chunks, float_rows
from .._utils._labels import CLASSES, SINGLE_LABEL, TARGETS, marginals
from .._utils._pipelines import seeded_clone
from .._utils._repeatable import one_blas_thread
from .._utils._sklearn import (
    POSITIVE,
    POSITIVE_COUNT,
    POSITIVE_INT,
    HasMethods,
    Interval,
    StrOptions,
)
from ..registry import PointwiseStrategy

OF_VOTES: dict[str, Callable] = {
    "vote_entropy": vote_entropy,
    "variation_ratio": vote_variation_ratio,
}
OF_PROBA: dict[str, Callable] = {
    "kl": kl_to_mean,
    "consensus_entropy": consensus_entropy,
}
OF_PERCEPTRONS: dict[str, Callable] = {
    "entropy": consensus_entropy,
    "disagreement": kl_to_mean,
}


class Committee(PointwiseStrategy):
    """Query the candidates on which the members of a committee disagree most.

    Parameters
    ----------
    estimators : list of estimators or of (name, estimator), estimator or None, \
    default=None
        The members. Clones of those in a list are trained on all labeled features.
        A single estimator is cloned `n_members` times, and each clone is trained on a
        bootstrap sample of the labeled features (query by bagging). Defaults to
        `LogisticRegression(max_iter=1000)`, in a `OneVsRestClassifier` for several
        labels per item, or to `Ridge()` for regression.
    n_members : int, default=5
        Number of members if `estimators` is not a list, at most 1,000,000.
    measure : {"auto", "vote_entropy", "variation_ratio", "kl", \
    "consensus_entropy", "variance"}, default="auto"
        Entropy of the votes; share of the votes that are not for the winner; mean
        divergence of the members' probabilities from their mean; entropy of that
        mean; variance of the predicted numbers. "kl" and "consensus_entropy" need
        members with `predict_proba`. For several labels per item it is the mean over
        the labels. "auto" is "variance" for regression, the only one, and else
        "vote_entropy".

    Notes
    -----
    If a member's `random_state` is None, it is set from the query's generator. The
    members know the classes that have labels, and each bootstrap sample holds at
    least one row of each of them. While only one class has labels, all candidates have
    the same score. For several labels per item, each bootstrap sample holds an item
    with each of the labels that were given.

    Cost: t members trained on m labeled rows, and t predictions of the n candidates.

    When to use: with a fast model on fixed features, or with models of different kinds.
    Votes of few members have many ties; "kl" has none.

    References
    ----------
    H. S. Seung, M. Opper, H. Sompolinsky, "Query by committee", COLT 1992.

    I. Dagan, S. P. Engelson, "Committee-based sampling for training probabilistic
    classifiers", ICML 1995.

    A. McCallum, K. Nigam, "Employing EM and pool-based active learning for text
    classification", ICML 1998.

    N. Abe, H. Mamitsuka, "Query learning strategies using boosting and bagging",
    ICML 1998.

    R. Burbidge, J. J. Rowland, R. D. King, "Active learning for regression based on
    query by committee", IDEAL 2007.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import Committee
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.neighbors import NearestCentroid
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> members = [LogisticRegression(), NearestCentroid(), DecisionTreeClassifier()]
    >>> learner = ActiveLearner(LogisticRegression(), strategy=Committee(members))
    >>> learner = learner.fit([[0.0], [1.0], [2.0], [9.0]], [0, 0, 0, 1])
    >>> learner.query([[-1.0], [5.4], [10.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        "estimators": [list, tuple, HasMethods(["fit", "predict"]), None],
        "n_members": [POSITIVE_COUNT],
        "measure": [StrOptions({"auto", "variance", *OF_VOTES, *OF_PROBA})],
    }
    requires = frozenset({"features", "labeled"})

    def __init__(
        self, estimators: Any = None, n_members: int = 5, measure: str = "auto"
    ) -> None:
        self.estimators = estimators
        self.n_members = n_members
        self.measure = measure

    @property
    def targets(self) -> frozenset[str]:
        """Targets of the measure that all given members can predict."""
        of_measure = {"auto": TARGETS, "variance": TARGETS - CLASSES}
        targets = of_measure.get(self.measure, CLASSES)
        for member in [] if self.estimators is None else self._list_members():
            if is_regressor(member):
                targets &= TARGETS - CLASSES
            elif hasattr(member, "__sklearn_tags__"):
                several = get_tags(member).target_tags.multi_output
                targets &= CLASSES if several else SINGLE_LABEL
        return targets

    def score(self, view: Any) -> NDArray:
        """Return the disagreement of the members, in nats or as a share of them."""
        how, target = self._choose_measure(view.target), view.target
        y = np.asarray(view.y_labeled)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) == 1 and target == "single-label":
            return np.zeros(len(view))
        members = self._list_members(target)
        members = [seeded_clone(member, view.rng) for member in members]
        self._fit(members, view, codes)
        width = len(classes) if target == "single-label" else y[0].size
        if target == "regression":
            ask, measure = partial(_stack_numbers, members), _variance
        elif target == "multi-label":
            ask = partial(_stack_labels, members, how in OF_PROBA)
            measure = OF_LABELS[how]
        elif how in OF_VOTES:
            ask = partial(_vote, members, classes)
            measure = partial(OF_VOTES[how], n_classes=len(classes))
        else:
            ask, measure = partial(_stack_proba, members, classes), OF_PROBA[how]
        X = view.features
        size = chunk_size(8 * (X.shape[1] + 2 * len(members) * width))
        return concatenate_chunks(
            lambda rows: measure(ask(X[rows])), len(view), size, view.n_jobs
        )

    def _validate_params(self):
        super()._validate_params()
        members = self._list_members()
        if not members:
            raise ValueError(
                "'estimators' must hold at least one classifier, got an empty list. "
                "None makes a committee of logistic regressions."
            )
        for member in members:
            _check_member(member, self.measure)

    def _choose_measure(self, target):
        """Return the name of the measure, a TypeError for several outputs."""
        if target == "multi-output":
            raise TypeError(
                "strategy 'committee' is defined for one class, several labels or one "
                "number per item. Train a model for each output."
            )
        how = self.measure
        if how == "auto":
            return "variance" if target == "regression" else "vote_entropy"
        return how

    def _list_members(self, target="single-label"):
        if not isinstance(self.estimators, list | tuple):
            member = self.estimators
            if member is None and target == "regression":
                member = Ridge()
            elif member is None:
                member = LogisticRegression(max_iter=1000)
                if target == "multi-label":
                    member = OneVsRestClassifier(member)
            return [member] * self.n_members
        return [m[-1] if isinstance(m, tuple) else m for m in self.estimators]

    def _fit(self, members, view, codes):
        X, y = view.labeled_features, np.asarray(view.y_labeled)
        listed = isinstance(self.estimators, (list, tuple))
        with warnings.catch_warnings() if y.ndim == 2 else nullcontext():
            if y.ndim == 2:  # one-vs-rest warns of labels that no item has
                warnings.filterwarnings("ignore", "Label .* is present in all")
            for member in members:
                rows = slice(None)
                if not listed and view.target == "single-label":
                    rows = draw_bootstrap(codes, view.rng)
                elif not listed:
                    rows = _draw_rows(y, view.rng)
                member.fit(X[rows], y[rows])


class PerceptronEnsemble(PointwiseStrategy):
    """Query the candidates on which an ensemble of perceptrons is most uncertain.

    Each perceptron is a single layer with a softmax, trained on the labeled features
    from its own initial weights. The model that computes the features is not trained.

    Parameters
    ----------
    n_members : int, default=10
        Number of perceptrons, at most 1,000,000.
    measure : {"entropy", "disagreement"}, default="entropy"
        Entropy of the mean of their distributions, as published; or only the part that
        comes from their disagreement, the mean divergence from that mean.
    dropout : float, default=0.5
        Share of the features that are dropped for a perceptron in a training step, in
        [0, 1).
    n_steps : int, default=500
        Number of training steps, at most 1,000,000.
    batch_size : int, default=50
        Number of labeled rows per step.
    lr : float, default=0.01
        Learning rate of Adam, for features divided by their root mean square.
    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the loss, as in scikit-learn's classifiers.

    Notes
    -----
    The number of members and the batch size are those of the published program. Its 10
    epochs at a rate of 1e-4 are a few dozen small steps, which leave the perceptrons
    near their initial weights, and its dropout of 0.9 hides too much if one feature
    matters more than the others. So these defaults differ. All perceptrons use the same
    rows in a step, and the features that one drops are dropped for all rows.

    Cost: O(batch_size d t k) per training step, for any m, and O(n d t k)
    for the candidates.

    When to use: for frozen features, if a committee has to train fast.

    References
    ----------
    L. Ein-Dor et al., "Active learning for BERT: an empirical study", EMNLP 2020.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import PerceptronEnsemble
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), strategy=PerceptronEnsemble())
    >>> learner.fit([[-1.0], [1.0]], [0, 1]).query([[-2.0], [0.01], [3.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        "n_members": [POSITIVE_COUNT],
        "measure": [StrOptions(set(OF_PERCEPTRONS))],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "n_steps": [POSITIVE_COUNT],
        "batch_size": [POSITIVE_INT],
        "lr": [POSITIVE],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }
    requires = frozenset({"features", "labeled"})
    targets = SINGLE_LABEL

    def __init__(
        self,
        n_members: int = 10,
        measure: Literal["entropy", "disagreement"] = "entropy",
        dropout: float = 0.5,
        n_steps: int = 500,
        batch_size: int = 50,
        lr: float = 0.01,
        class_weight: Literal["balanced"] | dict | None = "balanced",
    ) -> None:
        self.n_members = n_members
        self.measure = measure
        self.dropout = dropout
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.lr = lr
        self.class_weight = class_weight

    def score(self, view: Any) -> NDArray:
        """Return the uncertainty of the trained perceptrons, in nats."""
        measure = OF_PERCEPTRONS[self.measure]
        X, X_labeled = float_rows(view.features), float_rows(view.labeled_features)
        classes, codes = np.unique(view.y_labeled, return_inverse=True)
        k = len(classes)
        start = start_perceptrons(
            X.shape[1], self.n_members, k, view.rng, X_labeled.dtype
        )
        weights, biases = train_perceptrons(
            X_labeled,
            codes,
            start[0],
            start[1],
            view.rng,
            sample_weight=compute_sample_weight(self.class_weight, view.y_labeled),
            dropout=self.dropout,
            n_steps=self.n_steps,
            batch_size=self.batch_size,
            lr=self.lr,
        )
        size = chunk_size(8 * (X.shape[1] + 3 * self.n_members * k), 2**23)
        return concatenate_chunks(
            lambda rows: measure(perceptron_proba(X[rows], weights, biases)),
            len(view),
            size,
            view.n_jobs,
        )


def draw_bootstrap(codes, rng):
    """Draw as many rows as there are, with replacement, every class included."""
    m = len(codes)
    order = rng.permutation(m)
    first = order[np.unique(codes[order], return_index=True)[1]]
    return np.concatenate([first, rng.integers(m, size=m - len(first))])


def _draw_rows(y, rng):
    """Draw a bootstrap sample of numbers (m,), or indicators (m, k) with each label."""
    m = len(y)
    first = np.empty(0, dtype=np.intp)
    if y.ndim == 2:
        order = rng.permutation(m)
        present = np.flatnonzero(y.any(axis=0))
        first = np.unique(order[y[order][:, present].argmax(axis=0)])
    return np.concatenate([first, rng.integers(m, size=m - len(first))])


def _stack_numbers(members, X):
    """Return the number that each member predicts for each row, (c, t)."""
    numbers = [np.ravel(member.predict(X)) for member in members]
    return np.stack(numbers, axis=1).astype(np.float64)


def _variance(numbers):
    return numbers.var(axis=1)


def _stack_labels(members, as_proba, X):
    """Return the labels or marginals that each member predicts, (c, t, k)."""
    predictions = []
    for member in members:
        labels = member.predict_proba(X) if as_proba else member.predict(X)
        if isinstance(labels, list):
            labels = marginals(labels, member.classes_)
        predictions.append(np.asarray(labels, dtype=np.float64))
    return np.stack(predictions, axis=1)


def _mean_divergence(proba):
    """Return the mean over labels (c,) of the divergence of marginals (c, t, k)."""
    c, t, k = proba.shape
    of_labels = proba.swapaxes(1, 2).reshape(c * k, t, 1)
    both = np.concatenate([1 - of_labels, of_labels], axis=2)
    return kl_to_mean(both).reshape(c, k).mean(axis=1)


def _of_mean(measure):
    return lambda labels: uncertainty(labels.mean(axis=1), measure, "multi-label")


# The share of the votes for a label is the mean of the predictions, so the same
# functions serve votes and probabilities.
OF_LABELS: dict[str, Callable] = {
    "vote_entropy": _of_mean("entropy"),
    "variation_ratio": _of_mean("least_confidence"),
    "kl": _mean_divergence,
    "consensus_entropy": _of_mean("entropy"),
}


def _vote(members, classes, X):
    """Return the column of the class that each member predicts for each row, (c, t)."""
    votes = [np.searchsorted(classes, member.predict(X)) for member in members]
    return np.stack(votes, axis=1)


def _stack_proba(members, classes, X):
    """Return the probabilities that each member predicts for each row, (c, t, k)."""
    proba = np.zeros((X.shape[0], len(members), len(classes)))
    for i, member in enumerate(members):
        proba[:, i, np.searchsorted(classes, member.classes_)] = member.predict_proba(X)
    return proba


def _check_member(member, measure):
    name = type(member).__name__
    if isinstance(member, type) or not hasattr(member, "fit"):
        raise TypeError(
            f"'estimators' must hold classifiers, got {member!r}. Pass instances, such "
            "as LogisticRegression()."
        )
    if measure in OF_PROBA and not hasattr(member, "predict_proba"):
        raise TypeError(
            f"measure={measure!r} needs members with predict_proba, which "
            f"{name} does not have. Use 'vote_entropy' or 'variation_ratio', or wrap "
            "it in CalibratedClassifierCV."
        )


# Many perceptrons at once, with one matrix product for all of them --------------------
# A perceptron is a single linear layer and a softmax. The weights of t of them have the
# shape (d, t, k), their biases (t, k).


def start_perceptrons(n_features, n_members, n_classes, rng, dtype=np.float64):
    """Draw Glorot-uniform weights (d, t, k) for perceptrons, and biases (t, k) of 0."""
    limit = np.sqrt(6 / (n_features + n_classes))
    weights = rng.uniform(-limit, limit, (n_features, n_members, n_classes))
    return weights.astype(dtype), np.zeros((n_members, n_classes), dtype=dtype)


def perceptron_proba(X, weights, biases):
    """Return class probabilities (n, t, k) of the perceptrons for X (n, d)."""
    products = np.asarray(X @ weights.reshape(weights.shape[0], -1))
    return softmax(products.reshape(-1, *biases.shape) + biases, axis=2)


def train_perceptrons(
    X,
    codes,
    weights,
    biases,
    rng,
    *,
    sample_weight=None,
    dropout=0.0,
    n_steps=500,
    batch_size=50,
    lr=0.01,
):
    """Train perceptrons on X (m, d) by Adam: weights (d, t, k), biases (t, k).

    `X` is divided by its root mean square, so that one learning rate suits features of
    any size. `rng` shuffles the rows, in the same way for all perceptrons, and draws
    the dropped features of each.
    """
    (d, t, _), dtype = weights.shape, weights.dtype
    size = dtype.type(_root_mean_square(X))
    X = X / size
    sample_weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    sample_weight = np.asarray(sample_weight, dtype=dtype)
    values = weights.copy(), biases.copy()
    moments = [(np.zeros_like(v), np.zeros_like(v)) for v in values]
    with one_blas_thread():
        batches = islice(_draw_batches(X.shape[0], batch_size, rng), n_steps)
        for step, rows in enumerate(batches, start=1):
            part = X[rows].toarray() if sparse.issparse(X) else X[rows]
            # A perceptron drops the same features for all rows of the step. This is a
            # mask of its weights, so one product serves all perceptrons.
            mask = _draw_mask(d, t, dropout, rng).astype(dtype)
            slopes = perceptron_proba(part, values[0] * mask, values[1])  # (n, t, k)
            slopes[np.arange(len(rows)), :, codes[rows]] -= 1
            slopes *= sample_weight[rows, None, None] / len(rows)
            of_weights = (part.T @ slopes.reshape(len(rows), -1)).reshape(weights.shape)
            gradients = of_weights * mask, slopes.sum(axis=0)
            for each in zip(values, gradients, moments, strict=True):
                _step_adam(*each, step, lr)
    return values[0] / size, values[1]


def _step_adam(value, gradient, moments, step, lr):
    """Change parameters by a step of Adam, and its moments; `step` counts from 1."""
    first, second = moments
    first += 0.1 * (gradient - first)
    second += 0.001 * (gradient**2 - second)
    root = np.sqrt(second / (1 - 0.999**step)) + 1e-8
    value -= lr / (1 - 0.9**step) * first / root


def _draw_batches(m, size, rng):
    """Yield batches of rows in random order, pass after pass, without end."""
    while True:
        order = rng.permutation(m)
        for part in chunks(m, size):
            yield order[part]


def _draw_mask(d, t, dropout, rng):
    """Return a dropout mask whose mean is 1."""
    if dropout == 0:
        return np.ones((1, 1, 1))
    return (rng.random((d, t, 1)) >= dropout) / (1 - dropout)


def _root_mean_square(X):
    """Return the root mean square of all numbers in a matrix; 1 if all are 0."""
    values = X.data if sparse.issparse(X) else X
    total = np.square(values, dtype=np.float64).sum()
    return np.sqrt(total / max(1, X.shape[0] * X.shape[1])) or 1.0
