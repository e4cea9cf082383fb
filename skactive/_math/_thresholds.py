"""Thresholds of probabilities for several labels, tuned for F1."""

import numpy as np

SHRINKAGE = 30  # positive items of a label whose own threshold counts one half


def tune_thresholds(proba, y, shrinkage=SHRINKAGE):
    """Return thresholds (k,) with a high F1 for `proba` (n, k) and `y` (n, k).

    A label is predicted if its probability is above its threshold. This is the mean of
    the threshold with the label's best F1, weighted by the number of its positive
    items, and of the one threshold for all labels with the best micro F1, weighted by
    `shrinkage`: the best threshold of a rare label is chance. Among equally good
    thresholds the one nearest to 0.5 is taken.
    """
    proba, y = np.asarray(proba, dtype=np.float64), np.asarray(y) == 1
    found = np.full(proba.shape[1], _best_threshold(proba.ravel(), y.ravel()))
    n_positive = y.sum(axis=0)
    for j in np.flatnonzero(n_positive):
        own = _best_threshold(proba[:, j], y[:, j])
        weight = n_positive[j] / (n_positive[j] + shrinkage)
        found[j] += weight * (own - found[j])
    return found


def _best_threshold(p, y):
    """Return the threshold of `p` (m,) with the best F1 for the bools `y` (m,)."""
    order = np.argsort(-p, kind="stable")
    p = p[order]
    f1 = 2 * np.cumsum(y[order]) / (np.arange(1, len(p) + 1) + y.sum())
    below = np.append(p[1:], 0.0)
    cuts = np.flatnonzero(p > below)  # between equal probabilities nothing fits
    if not y.any() or not len(cuts):
        return 0.5
    middle = (p[cuts] + below[cuts]) / 2
    middle = np.where((middle < p[cuts]) & (middle > 0), middle, below[cuts])
    best = f1[cuts] == f1[cuts].max()
    return middle[best][np.abs(middle[best] - 0.5).argmin()]
