"""BADGE: batches of gradients that are long and differ."""

from __future__ import annotations

from ..factors import sample_apart
from .base import Strategy

__all__ = ["BADGE"]


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
    :func:`skactive.factors.sample_apart`.

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
