"""How unsure a model is: functions of probabilities, arrays in and arrays out.

Logarithms are natural, so information is in nats. Nothing is clipped: the limits at
probabilities 0 and 1 are exact.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "entropy",
    "least_confidence",
    "margin",
    "mean_over_draws",
    "mutual_information",
]


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
    >>> from skactive.measures import entropy
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
    >>> from skactive.measures import least_confidence
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
    >>> from skactive.measures import margin
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
    >>> from skactive.measures import mean_over_draws
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

    >>> from skactive.measures import mutual_information
    >>> import numpy as np
    >>> draws = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> mutual_information(draws).round(6)
    array([0.368064, 0.      ])
    """
    mean = mean_over_draws(draws)
    return np.maximum(entropy(mean) - entropy(draws).mean(axis=-1), 0.0)
