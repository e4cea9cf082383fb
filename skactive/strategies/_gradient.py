"""Gradients of the loss, and distances to the decision boundary."""

from typing import Any

from numpy.typing import NDArray

from .._math._gradient_factors import expected_length, sample_apart
from .._utils._sklearn import StrOptions
from ._base import PointwiseStrategy, Strategy


class EGL(PointwiseStrategy):
    """Query the candidates with the largest expected gradient length of the loss.

    The gradient is that of the log loss with respect to the weights of the last
    linear layer, for a label drawn from the predicted probabilities p. For
    inputs h its expected length is sum_c p_c ||p - e_c|| sqrt(||h||^2 + 1).

    Parameters
    ----------
    squared : bool, default=False
        Whether to use the expected squared length, as some papers do.
    intercept : bool or "auto", default="auto"
        Whether the layer has an intercept, whose gradient counts too (the 1 in the
        formula). "auto" reads the estimator's `fit_intercept` and defaults to True.

    Notes
    -----
    Cost: O(n (k + d)) plus the prediction.

    When to use: if the length of an item's representation carries information. For
    representations of equal length the ranking is close to uncertainty sampling.

    For two classes the layer has its softmax form with two rows of weights; the single
    row that scikit-learn fits has sqrt(1/2) of this length for all items.

    References
    ----------
    B. Settles, M. Craven, S. Ray, "Multiple-instance active learning", NIPS 2007.

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
    }
    requires = frozenset({"gradients"})

    def __init__(self, squared: bool = False, intercept: bool | str = "auto") -> None:
        self.squared = squared
        self.intercept = intercept

    def score(self, view: Any) -> NDArray:
        """Return the expected length of the gradient."""
        bias = self.intercept
        if bias == "auto":
            bias = _has_intercept(view.final_estimator)
        # The gradient at the predicted label determines those at all others: the
        # residuals plus the label's indicator are the probabilities.
        return expected_length(
            *view.gradients, bias=bool(bias), squared=self.squared, n_jobs=view.n_jobs
        )


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
    >>> from skactive.strategies import EGLEmbedding
    >>> EGLEmbedding().requires
    frozenset({'embedding_gradients'})
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
    selected gradient, as in k-means++.

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
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import BADGE
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), BADGE())
    >>> learner = learner.fit([[-1.0], [1.0]], [0, 1])
    >>> learner.query([[-2.0], [-2.0], [1.0]], 2)[1]  # after one of the two copies
    np.int64(2)
    """

    requires = frozenset({"gradients"})

    def select(self, view: Any, n: int) -> NDArray:
        """Select the longest gradient, then draw ones far from those selected."""
        residuals, inputs = view.gradients
        return sample_apart(residuals, inputs, n, view.rng, n_jobs=view.n_jobs)
