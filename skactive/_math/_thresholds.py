"""Thresholds of probabilities for several labels, tuned for F1."""

import numpy as np

_MIN_POSITIVES = 3  # with fewer, the best threshold of a label is chance


def tune_thresholds(proba, y):
    """Return the thresholds (k,) with the best F1 for `proba` (n, k) and `y` (n, k).

    A label is predicted if its probability is above its threshold. A label with fewer
    than 3 positive items gets the one threshold for all labels with the best micro F1,
    as in SCutFBR (Yang 2001; Fan and Lin 2007). Among equally good thresholds the one
    nearest to 0.5 is taken.
    """
    proba, y = np.asarray(proba, dtype=np.float64), np.asarray(y) == 1
    found = np.full(proba.shape[1], _best_threshold(proba.ravel(), y.ravel()))
    for j in np.flatnonzero(y.sum(axis=0) >= _MIN_POSITIVES):
        found[j] = _best_threshold(proba[:, j], y[:, j])
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
