"""Scores of uncertainty and disagreement, and the choice of rows by scores.

Logarithms are natural, so information is in nats. Nothing is clipped: the limits at
probabilities 0 and 1 are exact.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
    best = np.maximum(scores[..., 0], scores[..., 1])
    second = np.minimum(scores[..., 0], scores[..., 1])
    for j in range(2, scores.shape[-1]):  # faster than sorting short rows
        second = np.maximum(second, np.minimum(best, scores[..., j]))
        best = np.maximum(best, scores[..., j])
    return best - second


def binary_entropy(proba):
    """Return the entropy (...) of each label, whose probability is `proba` (...)."""
    proba = np.asarray(proba)
    return entropy(np.stack([proba, 1 - proba], axis=-1))


_OF_LABEL = {
    "entropy": binary_entropy,
    "least_confidence": lambda proba: np.minimum(proba, 1 - proba),
    "margin": lambda proba: 1 - np.abs(2 * proba - 1),
}


Measure = Literal["entropy", "least_confidence", "margin"]
UNCERTAINTIES = {
    "entropy": entropy,
    "least_confidence": least_confidence,
    "margin": lambda proba: 1.0 - margin(proba),
}


def uncertainty(proba, measure, target="single-label", aggregate="mean"):
    """Return the uncertainty (n,) of class probabilities `proba` (n, k).

    For the target "multi-label", the mean or maximum of the measure over the labels.
    """
    if target != "multi-label":
        return UNCERTAINTIES[measure](proba)
    values = _OF_LABEL[measure](np.asarray(proba))
    return values.max(axis=1) if aggregate == "max" else values.mean(axis=1)


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


def label_information(draws):
    """Return the mutual information (n,) of labels and model, summed over labels.

    `draws` (n, t, k) are probabilities of each label, which are independent given the
    model, so that the sum bounds the joint information from above.
    """
    draws = np.asarray(draws).swapaxes(1, 2)
    return mutual_information(np.stack([1 - draws, draws], axis=-1)).sum(axis=1)


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


def top_n(
    scores: "ArrayLike", n_queries: int, rng: np.random.Generator | NDArray
) -> NDArray[np.intp]:
    """Return the positions of the highest scores, best first, ties at random.

    The cost is O(n_candidates + n log n).

    Parameters
    ----------
    scores : array-like of shape (n_candidates,)
        The scores, without NaN.
    n_queries : int
        Number of positions. All are returned if there are fewer scores.
    rng : numpy.random.Generator or ndarray of shape (n_candidates,)
        Breaks ties: a generator, such as `view.rng`, or a random number per candidate,
        such as `view.uniform()`, of which the highest comes first.

    Returns
    -------
    positions : ndarray of int, shape (n,)
        Positions in `scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.strategies import top_n
    >>> top_n([0.1, 0.9, 0.5], 2, np.random.default_rng(0))
    array([1, 2])
    """
    scores = np.asarray(scores)
    n_queries = min(n_queries, scores.shape[0])
    if n_queries == 0:
        return np.empty(0, dtype=np.intp)
    if n_queries == 1:
        threshold = scores.max()
    else:  # one partition finds the n-th highest score
        threshold = np.partition(scores, -n_queries)[-n_queries]
    reached = np.flatnonzero(scores >= threshold)
    # A random key breaks ties, at the border of the batch and within it.
    # Reversed instead of negated, which not every dtype supports.
    if isinstance(rng, np.ndarray):
        keys = rng[reached]
    else:
        keys = -rng.random(reached.shape[0])
    order = np.lexsort((keys, scores[reached]))[::-1]
    return reached[order[:n_queries]]


def stochastic_n(scores, n_queries, rng, *, method="power", coldness=1.0):
    """Draw n positions without replacement, high scores more likely than low ones.

    The next position is drawn with a probability in proportion to `scores ** coldness`
    ("power", for scores that are not negative; those of score 0 come last, in random
    order) or to `exp(coldness * scores)` ("softmax"). The n highest sums of log weight
    and Gumbel noise are such a draw (Kirsch et al., "Stochastic batch acquisition",
    TMLR 2023).
    """
    scores = np.asarray(scores)
    # Noise is assigned by rank, so it does not depend on the order of the pool.
    order = top_n(scores, scores.shape[0], rng)
    ranked = scores[order].astype(np.float64)
    noise = rng.gumbel(size=ranked.shape[0])
    if method == "softmax":
        return order[top_n(coldness * ranked + noise, n_queries, rng)]
    negative = np.isfinite(ranked) & (ranked < 0)
    if negative.any():
        raise ValueError(
            "method 'power' needs scores that are not negative; got "
            f"{ranked[negative][0]} at position {order[negative][0]}. Use 'softmax'."
        )
    positive = int((ranked > 0).sum())
    keys = coldness * np.log(ranked[:positive]) + noise[:positive]
    drawn = order[:positive][top_n(keys, n_queries, rng)]
    # Candidates without weight come last: zeros, then -inf.
    return np.concatenate([drawn, order[positive:]])[:n_queries]


SHRINKAGE = 30  # positive items of a label whose own threshold counts one half


def tune_thresholds(proba, y, shrinkage=SHRINKAGE):
    """Return thresholds (k,) for the probabilities `proba` (n, k) of labels `y` (n, k).

    A label is predicted if its probability is above its threshold. This is the mean of
    two: the one with the label's best F1, weighted by the number of its positive items,
    and the common one, with which as many labels are predicted as `y` has, weighted by
    `shrinkage`. The threshold with the best F1 of a rare label is chance. The common
    one is not tuned for F1, since with few items F1 is best if all is predicted. Among
    equally good thresholds the one nearest to 0.5 is taken.
    """
    proba, y = np.asarray(proba, dtype=np.float64), np.asarray(y) == 1
    n_positive = y.sum(axis=0)
    if not n_positive.any():
        return np.full(len(n_positive), 0.5)
    thresholds, n_above, _ = _cuts(proba.ravel(), y.ravel())
    common = _best_threshold(thresholds, -np.abs(n_above - n_positive.sum()))
    tuned = np.full(len(n_positive), common)
    for j in np.flatnonzero(n_positive):
        thresholds, n_above, n_right = _cuts(proba[:, j], y[:, j])
        own = _best_threshold(thresholds, 2 * n_right / (n_above + n_positive[j]))
        weight = n_positive[j] / (n_positive[j] + shrinkage)
        tuned[j] += weight * (own - common)
    return tuned


def _cuts(p, y):
    """Return the thresholds between `p` (m,), and how many are above, and right."""
    order = np.argsort(-p, kind="stable")
    p = p[order]
    below = np.append(p[1:], 0.0)
    cuts = np.flatnonzero(p > below)  # between equal probabilities nothing fits
    middle = (p[cuts] + below[cuts]) / 2
    middle = np.where((middle < p[cuts]) & (middle > 0), middle, below[cuts])
    return middle, cuts + 1, np.cumsum(y[order])[cuts]


def _best_threshold(thresholds, quality):
    """Return the threshold of the highest quality that is nearest to 0.5."""
    if not len(thresholds):
        return 0.5
    best = thresholds[quality == quality.max()]
    return best[np.abs(best - 0.5).argmin()]
