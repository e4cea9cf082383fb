"""Ask where a label would change the model most, or the item least to change it."""

from .._math._gradient_factors import expected_length, sample_apart
from .._utils._sklearn import StrOptions
from ._base import PointwiseStrategy, Strategy


class EGL(PointwiseStrategy):
    """Ask where the gradient of the loss is expected to be longest.

    The gradient is that of the log loss with respect to the weights of the last
    linear layer, the label being drawn from the model's own probabilities p. For
    inputs h its expected length is sum_c p_c ||p - e_c|| sqrt(||h||^2 + 1).

    Parameters
    ----------
    squared : bool, default=False
        Whether to take the expected squared length, as some papers do.
    intercept : bool or "auto", default="auto"
        Whether the layer has an intercept, whose gradient counts too (the 1 in the
        formula). "auto" looks at the estimator's `fit_intercept` and takes True
        where there is none.

    Notes
    -----
    Cost: O(n (k + d)) beside the prediction.

    When to use: where the length of an item's representation carries meaning; on
    representations of one length it ranks much as uncertainty does.

    For two classes the layer is taken in its softmax form with two rows of weights;
    the one row that scikit-learn fits gives sqrt(1/2) of the length, in all items.

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

    def __init__(self, squared=False, intercept="auto"):
        self.squared = squared
        self.intercept = intercept

    def score(self, view):
        """Compute the expected length of the gradient.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and the factors of their gradients.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
        """
        bias = self.intercept
        if bias == "auto":
            bias = _has_intercept(view.final_estimator)
        # The gradient at the predicted label tells those at all others: adding the
        # label's indicator to the residuals gives the probabilities.
        return expected_length(
            *view.gradients, bias=bool(bias), squared=self.squared, n_jobs=view.n_jobs
        )


class EGLEmbedding(PointwiseStrategy):
    """Ask where the gradient of some word's embedding is expected to be longest.

    The score is the largest, over the words of a text, of the expected length of the
    log loss's gradient with respect to the word's embedding; the label is drawn from
    the model's own probabilities. It asks for texts with a word that matters to the
    class and whose meaning would be learned most.

    Notes
    -----
    Cost: k backward passes of the network to its embeddings for each candidate.

    When to use: with `BertClassifier` whose embeddings are fine-tuned, on a pool or a
    subsample of it that is small enough for the passes.

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

    def score(self, view):
        """Take what the model computes.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and their words' largest expected gradients.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
        """
        return view.embedding_gradients


class DFAL(PointwiseStrategy):
    """Ask where the smallest change of the item changes its predicted class.

    The size of the smallest adversarial perturbation stands for the margin: the
    Euclidean distance to the nearest decision boundary, between whatever two
    classes, in the space of the representations. It is exact for linear classifiers.

    Notes
    -----
    Cost: O(n k (d + k)) for a linear classifier.

    When to use: in place of margin sampling with three classes and more, where the
    weights of some pairs of classes differ more than those of others; with two
    classes it asks as margin sampling does.

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

    def score(self, view):
        """Compute the distance to the boundary, turned so that the nearest come first.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and their distances.

        Returns
        -------
        scores : ndarray of shape (n_candidates,)
        """
        return -view.boundary


def _has_intercept(estimator):
    """Whether the last linear layer of an estimator has an intercept."""
    inner = getattr(estimator, "estimator", None)  # OneVsRestClassifier holds one
    return getattr(estimator, "fit_intercept", getattr(inner, "fit_intercept", True))


class BADGE(Strategy):
    """Ask for a batch whose loss gradients are long and far apart.

    The gradient of an item is that of the log loss with respect to the weights of
    the last linear layer, as if the predicted class were the label: the outer
    product of p - e_c, c the likeliest class, and the layer's inputs h. It is long
    where the model is unsure. The longest comes first, ties at random; each further
    one is drawn with a probability proportional to the squared distance to the
    nearest one chosen, as k-means++ draws its centres.

    Notes
    -----
    Cost: O(n b (k + d)), never an n x kd matrix.

    When to use: a good first choice for batches of tens to hundreds, where the most
    uncertain candidates alone would repeat each other.

    Copies of what is chosen are not asked for while anything else is left. The draws
    are exact, though most of them look at a few rows only: see
    `sample_apart`.

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
    >>> learner.query([[-2.0], [-2.0], [1.0]], 2)[1]  # first one of the two copies
    np.int64(2)
    """

    requires = frozenset({"gradients"})

    def select(self, view, n):
        """Choose the longest gradient, then ones far from those chosen.

        Parameters
        ----------
        view : skactive.view.PoolView
            The candidates and the factors of their gradients.
        n : int
            How many to choose.

        Returns
        -------
        positions : ndarray of int, shape (n,)
        """
        return sample_apart(*view.gradients, n, view.rng, n_jobs=view.n_jobs)
