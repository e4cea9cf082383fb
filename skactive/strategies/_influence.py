"""Influence functions: query the labels that would change an objective most."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.class_weight import compute_class_weight

from .._math import _scores
from .._utils._chunks import chunk_size, map_chunks
from .._utils._sklearn import Interval, StrOptions
from ..linear_model import SoftmaxHessian
from ._base import PointwiseStrategy


class GORAL(PointwiseStrategy):
    r"""Query the labels with most influence on a validation loss or on the entropy.

    Goal-oriented active learning. The last linear layer minimizes a penalized sum of
    log losses with the Hessian H. The objective G is a mean over items of their loss or
    of the entropy of their predictions. Labeling x as y adds a loss to the sum, whose
    first-order effect on the objective is

    .. math:: I(x, y) = -\nabla G^\top H^{-1} \nabla \ell(x, y).

    No model is retrained.

    Parameters
    ----------
    objective : {"entropy", "loss"}, default="entropy"
        The mean entropy of the predictions, which needs no labels, or the mean log loss
        on `X_val` and `y_val`.
    X_val : container of v items or None, default=None
        Items over which the objective is averaged, of the same kind as the pool.
        Defaults to the candidates, for the objective "entropy" only.
    y_val : array-like of shape (v,) or None, default=None
        The labels of `X_val`, for the objective "loss".
    aggregate : {"absolute", "rms", "best"}, default="absolute"
        How the influences of the possible labels become one score: the expected
        absolute value, the root of the expected square, or the largest decrease of the
        objective.
    penalty : float or "auto", default="auto"
        Strength of the squared penalty on the weights, as in the training loss.
        "auto" is 1 / C of `LogisticRegression`, alpha times the number of labeled
        items of `SGDClassifier`, that of its parts for `OneVsRestClassifier`, and 1
        for other estimators.
    max_dense : int, default=4096
        Maximum number of parameters of the last layer for which the Hessian is
        factorized. Above, one equation is solved by conjugate gradients.

    Notes
    -----
    The expectation of I(x, y) over the predicted distribution of y is zero for every x
    and every objective, as is the expected gradient of a log loss. So it does not rank
    candidates, and expectations are taken of its absolute value (which is twice the
    expected decrease of the objective, with increases counted as zero) or square.

    Influences agree with those of actual training to first order for estimators that
    minimize the loss above: `LogisticRegression` with an L2 penalty, whose
    `class_weight`, `fit_intercept` and sample weights are taken into account. For
    others, including fine-tuned networks, they are those of the last layer alone,
    assumed to be at a minimum.

    Cost: O(n k d) in all, and once O(m k² d² + k³ d³), or O(m k d) for each step of
    conjugate gradients.

    When to use: small batches with reliable validation data, or for research.
    Batches are not diverse, and less entropy does not always mean more accuracy.

    References
    ----------
    M. Xu, G. Kazantsev, "Understanding goal-oriented active learning via influence
    functions", 2019.

    P. W. Koh, P. Liang, "Understanding black-box predictions via influence
    functions", ICML 2017.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import GORAL
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), strategy=GORAL())
    >>> learner = learner.fit([[-1.0], [1.0]], [0, 1])
    >>> learner.query([[-3.0], [0.2], [1.0], [9.0]], 2)
    array([0, 2])
    """

    _parameter_constraints = {
        "objective": [StrOptions({"entropy", "loss"})],
        "X_val": "no_validation",
        "y_val": ["array-like", None],
        "aggregate": [StrOptions({"absolute", "rms", "best"})],
        "penalty": [Interval(Real, 0, np.inf, closed="neither"), StrOptions({"auto"})],
        "max_dense": [Interval(Integral, 0, None, closed="left")],
    }
    requires = frozenset({"proba", "gradients", "labeled"})

    def __init__(
        self,
        objective: str = "entropy",
        *,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        aggregate: str = "absolute",
        penalty: float | str = "auto",
        max_dense: int = 4096,
    ) -> None:
        self.objective = objective
        self.X_val = X_val
        self.y_val = y_val
        self.aggregate = aggregate
        self.penalty = penalty
        self.max_dense = max_dense

    def score(self, view: Any) -> NDArray:
        """Aggregate the influences of the possible labels of each candidate."""
        proba = np.asarray(view.proba, dtype=np.float64)
        influence = self._influence(view)
        if self.aggregate == "absolute":
            return np.einsum("nk,nk->n", proba, np.abs(influence))
        if self.aggregate == "rms":
            return np.sqrt(np.einsum("nk,nk->n", proba, influence**2))
        return -influence.min(axis=1)

    def _influence(self, view):
        """Return the effect (n, k) on the objective of each label of a candidate."""
        model, m = view.final_estimator, len(view.y_trained)
        weights = _class_weights(model, view)
        trained_proba = np.asarray(view.trained.proba, dtype=np.float64)
        one_logit = _has_one_logit(model)
        row_weights = weights[_encode(view.y_trained, view.classes, "y_labeled")]
        if view.sample_weight is not None:
            row_weights = row_weights * view.sample_weight
        hessian = SoftmaxHessian(
            view.trained.gradients[1],
            trained_proba[:, 1] if one_logit else trained_proba,
            sample_weight=row_weights,
            penalty=_penalty(model, m) if self.penalty == "auto" else self.penalty,
            intercept=getattr(model, "fit_intercept", True),
            limit=self.max_dense,
        )
        slopes, inputs = self._goal_slopes(view)
        # With one logit, that of the first class is always 0.
        slopes = slopes[:, 1:] if one_logit else slopes
        direction = hessian.solve(_outer(slopes, inputs, hessian, view.n_jobs))
        change = _apply(direction, view.gradients[1], hessian, view.n_jobs)
        if one_logit:
            change = np.hstack([np.zeros_like(change), change])
        # The gradient of the loss in the logits is p - e_y.
        expected = np.einsum("nk,nk->n", view.proba, change)
        return weights * (change - expected[:, None])

    def _goal_slopes(self, view):
        """Return the objective's gradient in the logits (v, k), and the inputs."""
        items, proba = view, view.proba
        if self.X_val is not None:
            items = view.on(self.X_val)
            try:
                proba = items.proba
            except Exception as exc:  # whatever the estimator raises
                raise ValueError(
                    "'X_val' must hold items of the pool's kind, got "
                    f"{type(self.X_val).__name__}, which the estimator refuses: {exc}"
                ) from exc
        proba = np.asarray(proba, dtype=np.float64)
        if self.objective == "entropy":
            return entropy_slopes(proba) / len(proba), items.gradients[1]
        y_val = np.asarray(self.y_val)
        if y_val.shape != (len(proba),):
            raise ValueError(
                f"'y_val' must hold one label for each of the {len(proba)} items of "
                f"X_val, got shape {y_val.shape}."
            )
        slopes = proba.copy()
        slopes[np.arange(len(proba)), _encode(y_val, view.classes, "y_val")] -= 1
        return slopes / len(proba), items.gradients[1]

    def _validate_params(self):
        super()._validate_params()
        if self.objective == "loss" and (self.X_val is None or self.y_val is None):
            raise ValueError(
                "objective='loss' needs X_val and y_val, items and labels to validate "
                "on. Without labels use objective='entropy'."
            )
        if self.objective == "entropy" and self.y_val is not None:
            raise ValueError(
                "objective='entropy' uses no labels. Leave y_val out or use "
                "objective='loss'."
            )


def entropy_slopes(proba):
    """Return the gradient (n, k) of each row's entropy, -p_j (log p_j + H)."""
    entropy = _scores.entropy(proba)
    logs = np.log(np.maximum(proba, np.finfo(np.float64).tiny))
    return -proba * (logs + entropy[:, None]) + 0.0  # no -0


def _encode(y, classes, name):
    """Return the columns of the labels' classes."""
    codes = {label: code for code, label in enumerate(classes.tolist())}
    try:
        return np.array([codes[label] for label in y.tolist()], dtype=np.intp)
    except KeyError as exc:
        raise ValueError(
            f"{name!r} must hold classes of the model, {', '.join(map(repr, codes))}, "
            f"got the label {exc.args[0]!r}. Leave items of other classes out."
        ) from exc


def _has_one_logit(model):
    """Whether two classes share one row of weights, which is penalized once."""
    return len(getattr(model, "coef_", ())) == 1


def _penalty(model, m):
    """Return the precision of the weights in the sum of m losses of the model."""
    if isinstance(model, OneVsRestClassifier):
        model = model.estimators_[0]
    for name in ("C_", "C"):
        if hasattr(model, name):
            strength = 1 / np.mean(getattr(model, name))
            break
    else:
        strength = getattr(model, "alpha", 1 / m) * m
    # Without any penalty the Hessian of fewer rows than columns has no inverse.
    return max(strength, 1e-8)


def _class_weights(model, view):
    """Return the training weight of each class, (k,)."""
    class_weight = getattr(model, "class_weight", None)
    if class_weight is None:
        return np.ones(len(view.classes))
    return compute_class_weight(
        class_weight,
        classes=view.classes,
        y=view.y_trained,
        sample_weight=view.sample_weight,
    )


def _chunk_size(inputs, k):
    """Return the rows of a chunk: with their slopes, and the same memory to work in."""
    n, d = inputs.shape
    filled = 2 * inputs.nnz // n if sparse.issparse(inputs) else d
    return chunk_size(16 * (filled + k))


def _outer(slopes, inputs, hessian, n_jobs):
    """Return the summed outer products of slopes (n, k) and inputs (n, d), one."""
    k, width = hessian.shape
    d = inputs.shape[1]

    def add(rows):
        part = np.empty((k, width))
        part[:, :d] = (inputs[rows].T @ slopes[rows].astype(inputs.dtype)).T
        if hessian.intercept:
            part[:, -1] = slopes[rows].sum(axis=0)
        return part

    size = _chunk_size(inputs, hessian.shape[0])
    return np.sum(map_chunks(add, len(slopes), size, n_jobs), axis=0)


def _apply(direction, inputs, hessian, n_jobs):
    """Return the logits (n, k) of the inputs (n, d) under some parameters."""
    d = inputs.shape[1]
    weights = direction[:, :d].T.astype(inputs.dtype)

    def multiply(rows):
        logits = (inputs[rows] @ weights).astype(np.float64)
        return logits + direction[:, -1] if hessian.intercept else logits

    size = _chunk_size(inputs, hessian.shape[0])
    return np.concatenate(map_chunks(multiply, inputs.shape[0], size, n_jobs))
