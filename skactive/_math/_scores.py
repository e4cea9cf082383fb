"""How unsure a model is: functions of probabilities, arrays in and arrays out.

Logarithms are natural, so information is in nats. Nothing is clipped: the limits at
probabilities 0 and 1 are exact.
"""

import numpy as np


def entropy(proba):
    """Shannon entropy of each row.

    Parameters
    ----------
    proba : ndarray of shape (..., k)
        Probabilities; each row sums to 1.

    Returns
    -------
    entropy : ndarray of shape (...)
        In nats, from 0 to log(k).

    References
    ----------
    C. E. Shannon, "A mathematical theory of communication", Bell System Technical
    Journal 27, 1948.

    Examples
    --------
    >>> from skactive._math._scores import entropy
    >>> import numpy as np
    >>> entropy(np.array([[0.2, 0.5, 0.3], [0.1, 0.7, 0.2], [0.0, 1.0, 0.0]])).round(6)
    array([1.029653, 0.801819, 0.      ])
    """
    proba = np.asarray(proba)
    # The smallest positive number stands in for 0 inside the logarithm only: times
    # the probability 0 it gives the limit 0 exactly, and no other value is touched.
    tiny = np.finfo(np.result_type(proba.dtype, np.float32)).tiny
    terms = np.log(np.maximum(proba, tiny))
    terms *= proba
    # Through matmul, as summing over a short last axis is slow in NumPy. The
    # maximum removes the negative rounding error (and the sign of -0).
    ones = np.ones(proba.shape[-1], dtype=terms.dtype)
    return np.maximum(-(terms @ ones), 0.0)


def least_confidence(proba):
    """One less the probability of the likeliest class.

    Parameters
    ----------
    proba : ndarray of shape (..., k)
        Probabilities; each row sums to 1.

    Returns
    -------
    least_confidence : ndarray of shape (...)
        From 0 to 1 - 1 / k.

    References
    ----------
    D. D. Lewis, W. A. Gale, "A sequential algorithm for training text classifiers",
    SIGIR 1994.

    Examples
    --------
    >>> from skactive._math._scores import least_confidence
    >>> import numpy as np
    >>> least_confidence(np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]]))
    array([0.5, 0. ])
    """
    return 1.0 - np.max(proba, axis=-1)


def margin(scores):
    """Gap between the best and the second-best class.

    Parameters
    ----------
    scores : ndarray of shape (..., k), k >= 2
        Probabilities, or decision values with one column per class.

    Returns
    -------
    margin : ndarray of shape (...)
        0 where the two best tie. The smaller, the less sure.

    References
    ----------
    T. Scheffer, C. Decomain, S. Wrobel, "Active hidden Markov models for information
    extraction", IDA 2001.

    Examples
    --------
    >>> from skactive._math._scores import margin
    >>> import numpy as np
    >>> margin(np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])).round(6)
    array([0.2, 1. ])
    """
    scores = np.asarray(scores)
    k = scores.shape[-1]
    if k == 2:
        return np.abs(scores[..., 0] - scores[..., 1])
    top_two = np.partition(scores, (k - 2, k - 1), axis=-1)[..., -2:]
    return top_two[..., 1] - top_two[..., 0]


def mean_over_draws(draws):
    """Mean prediction of draws of the model.

    Parameters
    ----------
    draws : ndarray of shape (..., t, k)
        Class probabilities under t draws of the model's parameters.

    Returns
    -------
    proba : ndarray of shape (..., k)

    Examples
    --------
    >>> from skactive._math._scores import mean_over_draws
    >>> import numpy as np
    >>> mean_over_draws(np.array([[0.75, 0.25], [0.25, 0.75]]))
    array([0.5, 0.5])
    """
    draws = np.asarray(draws)
    t = draws.shape[-2]
    # Through matmul, as in `entropy`. Divided after it, so that 0 and 1 stay exact.
    return (np.ones(t, dtype=draws.dtype) @ draws) / t


def mutual_information(draws):
    """Mutual information of the label and the model (BALD).

    The entropy of the mean prediction less the mean entropy of the predictions: what
    is unsure because the models disagree, without what each is unsure of.

    Parameters
    ----------
    draws : ndarray of shape (..., t, k)
        Class probabilities under t draws of the model's parameters.

    Returns
    -------
    information : ndarray of shape (...)
        In nats, from 0 to log(min(t, k)).

    References
    ----------
    N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel, "Bayesian active learning for
    classification and preference learning", arXiv:1112.5745, 2011.

    Examples
    --------
    Both items have the mean (1/2, 1/2); the draws disagree on the first only:

    >>> from skactive._math._scores import mutual_information
    >>> import numpy as np
    >>> draws = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> mutual_information(draws).round(6)
    array([0.368064, 0.      ])
    """
    mean = mean_over_draws(draws)
    return np.maximum(entropy(mean) - entropy(draws).mean(axis=-1), 0.0)


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
    >>> from skactive._math._scores import vote_shares
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
    >>> from skactive._math._scores import vote_entropy
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
    >>> from skactive._math._scores import vote_variation_ratio
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
    >>> from skactive._math._scores import consensus_entropy
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
    >>> from skactive._math._scores import kl_to_mean
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
