"""How unsure a model is: functions of probabilities, arrays in and arrays out.

Logarithms are natural, so information is in nats. Nothing is clipped: the limits at
probabilities 0 and 1 are exact.
"""

from __future__ import annotations

import numpy as np

__all__ = ["entropy", "least_confidence", "margin"]


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
