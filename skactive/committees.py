"""How much the members of a committee disagree: arrays in, numbers out.

Logarithms are natural, so information is in nats. Nothing is clipped: the limits at
probabilities 0 and 1 are exact.
"""

from __future__ import annotations

import numpy as np

from .measures import entropy

__all__ = [
    "consensus_entropy",
    "kl_to_mean",
    "vote_entropy",
    "vote_shares",
    "vote_variation_ratio",
]


def vote_shares(votes, n_classes):
    """Share of the members that vote for each class.

    Parameters
    ----------
    votes : ndarray of int, shape (n, t)
        The class, from 0 to `n_classes` - 1, that each of t members gives each item.
    n_classes : int
        Number of classes, k.

    Returns
    -------
    shares : ndarray of shape (n, k)
        Each row sums to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.committees import vote_shares
    >>> vote_shares(np.array([[0, 0, 2, 0], [1, 1, 2, 2]]), 3)
    array([[0.75, 0.  , 0.25],
           [0.  , 0.5 , 0.5 ]])
    """
    votes = np.asarray(votes)
    n, t = votes.shape
    cells = votes + n_classes * np.arange(n)[:, None]
    counts = np.bincount(cells.ravel(), minlength=n * n_classes)
    return counts.reshape(n, n_classes) / t


def vote_entropy(votes, n_classes):
    """Entropy of the votes of the members.

    Parameters
    ----------
    votes : ndarray of int, shape (n, t)
        The class, from 0 to `n_classes` - 1, that each of t members gives each item.
    n_classes : int
        Number of classes, k.

    Returns
    -------
    vote_entropy : ndarray of shape (n,)
        In nats, from 0 to log(min(t, k)).

    References
    ----------
    I. Dagan, S. P. Engelson, "Committee-based sampling for training probabilistic
    classifiers", ICML 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.committees import vote_entropy
    >>> vote_entropy(np.array([[0, 0, 0, 0], [1, 1, 2, 2]]), 3).round(6)
    array([0.      , 0.693147])
    """
    # Sorted, as a sum in another order may differ in its last digit, and a split of
    # the votes is the same split whichever classes it is between.
    return entropy(np.sort(vote_shares(votes, n_classes), axis=1))


def vote_variation_ratio(votes, n_classes):
    """Share of the members that do not vote for the class with most votes.

    Parameters
    ----------
    votes : ndarray of int, shape (n, t)
        The class, from 0 to `n_classes` - 1, that each of t members gives each item.
    n_classes : int
        Number of classes, k.

    Returns
    -------
    variation_ratio : ndarray of shape (n,)
        From 0 to 1 - 1 / min(t, k).

    References
    ----------
    L. C. Freeman, "Elementary applied statistics", 1965.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.committees import vote_variation_ratio
    >>> vote_variation_ratio(np.array([[0, 0, 2, 0], [1, 1, 2, 2]]), 3)
    array([0.25, 0.5 ])
    """
    return 1.0 - vote_shares(votes, n_classes).max(axis=1)


def consensus_entropy(proba):
    """Entropy of the mean of the members' distributions.

    Parameters
    ----------
    proba : ndarray of shape (n, t, k)
        What each of t members thinks of each item; each row sums to 1.

    Returns
    -------
    entropy : ndarray of shape (n,)
        In nats, from 0 to log(k). High also where the members agree to be unsure.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.committees import consensus_entropy
    >>> members_differ, members_agree = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5]] * 2
    >>> consensus_entropy(np.array([members_differ, members_agree])).round(6)
    array([0.693147, 0.693147])
    """
    return entropy(np.mean(proba, axis=1))


def kl_to_mean(proba):
    """Mean Kullback-Leibler divergence of the members from their mean.

    The same quantity as the entropy of the mean less the mean entropy, that is the
    mutual information of the label and the choice of a member; summed term by term,
    so that small disagreements are not lost in the difference of two entropies.

    Parameters
    ----------
    proba : ndarray of shape (n, t, k)
        What each of t members thinks of each item; each row sums to 1.

    Returns
    -------
    divergence : ndarray of shape (n,)
        In nats, from 0 to log(min(t, k)).

    References
    ----------
    A. McCallum, K. Nigam, "Employing EM and pool-based active learning for text
    classification", ICML 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.committees import kl_to_mean
    >>> members_differ, members_agree = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5]] * 2
    >>> kl_to_mean(np.array([members_differ, members_agree])).round(6)
    array([0.693147, 0.      ])
    """
    proba = np.asarray(proba)
    t = proba.shape[1]
    # The smallest positive number stands in for 0 inside both logarithms: where a
    # probability is 0 its term is 0, and a mean is 0 only where all are.
    tiny = np.finfo(np.result_type(proba.dtype, np.float32)).tiny
    terms = np.log(np.maximum(proba, tiny))
    terms -= np.log(np.maximum(proba.mean(axis=1, keepdims=True), tiny))
    terms *= proba
    # The maximum removes the negative rounding error where all members agree.
    return np.maximum(terms.sum(axis=(1, 2)) / t, 0.0)
