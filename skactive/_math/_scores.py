"""Scores of uncertainty and disagreement: functions of probabilities or votes.

Logarithms are natural, so information is in nats. Nothing is clipped: the limits at
probabilities 0 and 1 are exact.
"""

import numpy as np


def entropy(proba):
    """Return the Shannon entropy (...) of each row of `proba` (..., k), in nats."""
    proba = np.asarray(proba)
    # The smallest positive number replaces 0 inside the logarithm only. Times the
    # probability 0 the result is exactly the limit 0, and no other value changes.
    tiny = np.finfo(np.result_type(proba.dtype, np.float32)).tiny
    terms = np.log(np.maximum(proba, tiny))
    terms *= proba
    # By matmul, because summing over a short last axis is slow in NumPy. The
    # maximum removes the negative rounding error (and the sign of -0).
    ones = np.ones(proba.shape[-1], dtype=terms.dtype)
    return np.maximum(-(terms @ ones), 0.0)


def least_confidence(proba):
    """Return 1 minus the highest probability (...) of each row of `proba` (..., k)."""
    return 1.0 - np.max(proba, axis=-1)


def margin(scores):
    """Return the gap (...) between the two highest of each row of `scores` (..., k)."""
    scores = np.asarray(scores)
    k = scores.shape[-1]
    if k == 2:
        return np.abs(scores[..., 0] - scores[..., 1])
    top_two = np.partition(scores, (k - 2, k - 1), axis=-1)[..., -2:]
    return top_two[..., 1] - top_two[..., 0]


def mean_over_draws(draws):
    """Return the mean prediction (..., k) of `draws` (..., t, k)."""
    draws = np.asarray(draws)
    t = draws.shape[-2]
    # By matmul, as in `entropy`. Divided last, so that 0 and 1 stay exact.
    return (np.ones(t, dtype=draws.dtype) @ draws) / t


def mutual_information(draws):
    """Return the mutual information (...) of label and model, draws (..., t, k).

    The entropy of the mean prediction minus the mean entropy of the predictions (BALD).
    """
    mean = mean_over_draws(draws)
    return np.maximum(entropy(mean) - entropy(draws).mean(axis=-1), 0.0)


def vote_shares(votes, n_classes):
    """Return the share (n, k) of the `votes` (n, t) for each class."""
    votes = np.asarray(votes)
    n, t = votes.shape
    cells = votes + n_classes * np.arange(n)[:, None]
    counts = np.bincount(cells.ravel(), minlength=n * n_classes)
    return counts.reshape(n, n_classes) / t


def vote_entropy(votes, n_classes):
    """Return the entropy (n,) of the `votes` (n, t) of the members, in nats."""
    # Sorted, because the order of a sum changes its last digit, and equal splits of
    # the votes must be equal for all classes.
    return entropy(np.sort(vote_shares(votes, n_classes), axis=1))


def vote_variation_ratio(votes, n_classes):
    """Return the share (n,) of `votes` (n, t) not for the most frequent class."""
    return 1.0 - vote_shares(votes, n_classes).max(axis=1)


def consensus_entropy(proba):
    """Return the entropy (n,) of the mean of the members' `proba` (n, t, k)."""
    return entropy(np.mean(proba, axis=1))


def kl_to_mean(proba):
    """Return the mean divergence (n,) of members' `proba` (n, t, k) from their mean.

    It equals the entropy of the mean minus the mean entropy, and is summed term by
    term, so that small disagreements are not lost in the difference of two entropies.
    """
    proba = np.asarray(proba)
    t = proba.shape[1]
    # The smallest positive number replaces 0 inside both logarithms: the term of a
    # probability 0 is 0, and a mean is 0 only if all are.
    tiny = np.finfo(np.result_type(proba.dtype, np.float32)).tiny
    terms = np.log(np.maximum(proba, tiny))
    terms -= np.log(np.maximum(proba.mean(axis=1, keepdims=True), tiny))
    terms *= proba
    # The maximum removes negative rounding errors if all members agree.
    return np.maximum(terms.sum(axis=(1, 2)) / t, 0.0)
