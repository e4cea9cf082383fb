"""Thresholds of probabilities for several labels."""

import numpy as np

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
    common = _best(thresholds, -np.abs(n_above - n_positive.sum()))
    found = np.full(len(n_positive), common)
    for j in np.flatnonzero(n_positive):
        thresholds, n_above, n_right = _cuts(proba[:, j], y[:, j])
        own = _best(thresholds, 2 * n_right / (n_above + n_positive[j]))
        weight = n_positive[j] / (n_positive[j] + shrinkage)
        found[j] += weight * (own - common)
    return found


def _cuts(p, y):
    """Return the thresholds between `p` (m,), and how many are above, and right."""
    order = np.argsort(-p, kind="stable")
    p = p[order]
    below = np.append(p[1:], 0.0)
    cuts = np.flatnonzero(p > below)  # between equal probabilities nothing fits
    middle = (p[cuts] + below[cuts]) / 2
    middle = np.where((middle < p[cuts]) & (middle > 0), middle, below[cuts])
    return middle, cuts + 1, np.cumsum(y[order])[cuts]


def _best(thresholds, quality):
    """Return the threshold of the highest quality that is nearest to 0.5."""
    if not len(thresholds):
        return 0.5
    best = thresholds[quality == quality.max()]
    return best[np.abs(best - 0.5).argmin()]
