"""Labels that held-out predictions contradict."""

import numpy as np
from scipy.special import softmax

from .._math._calibration import calibrate

_MAX_RESIDUAL = 3.0  # median absolute residuals


def temper(proba, codes):
    """Return out-of-fold probabilities (n, k) at the temperature that fits the labels.

    A class with a single item, which no model of its fold knows, does not count.
    """
    counts = np.bincount(codes, minlength=proba.shape[1])
    counted = ~np.isnan(proba[:, 0]) & (counts[codes] > 1)
    if not counted.any():
        return proba
    logits = np.log(np.maximum(proba, np.finfo(np.float64).tiny))
    _, temperature = calibrate(logits[counted], codes[counted], np.ones(counted.sum()))
    return softmax(logits / temperature, axis=1)


def find_suspicious(proba, codes):
    """Return positions of contradicted labels, most doubtful first.

    `proba` (n, k) are out-of-fold probabilities, NaN for items that were not held out;
    `codes` (n,) are the classes of the labels. As in confident learning, an item counts
    as of another class if its probability reaches the mean that the items of that class
    have. The order is that of the normalized margin. A class with a single item has no
    such mean, and its item no probability.
    """
    counts = np.bincount(codes, minlength=proba.shape[1])
    rows = np.flatnonzero(~np.isnan(proba[:, 0]) & (counts[codes] > 1))
    own = proba[rows, codes[rows]]
    sums = np.bincount(codes[rows], own, minlength=proba.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        thresholds = sums / np.bincount(codes[rows], minlength=proba.shape[1])
    # No probability reaches the NaN of a class without a mean.
    reached = proba[rows] >= thresholds - 1e-6
    best = proba[rows].argmax(axis=1)
    guess = np.where(reached.sum(axis=1) > 1, best, reached.argmax(axis=1))
    doubtful = reached.any(axis=1) & (guess != codes[rows]) & (best != codes[rows])
    margin = own - proba[rows].max(axis=1)
    order = np.flatnonzero(doubtful)
    return rows[order[np.argsort(margin[order], kind="stable")]]


def find_suspicious_rows(proba, y):
    """Return positions of contradicted rows of 0 and 1, and the worst column of each.

    `proba` and `y` are (n, k). Each column is judged by :func:`find_suspicious`, and a
    row by its most doubtful column (Thyagarajan et al. 2022). The most doubtful row is
    first.
    """
    margins = np.full(proba.shape, np.inf)
    for j, (p, codes) in enumerate(zip(proba.T, y.T, strict=True)):
        both = np.stack([1 - p, p], axis=1)
        rows = find_suspicious(both, codes)
        margins[rows, j] = both[rows, codes[rows]] - both[rows].max(axis=1)
    worst = margins.min(axis=1)
    rows = np.flatnonzero(worst < np.inf)
    rows = rows[np.argsort(worst[rows], kind="stable")]
    return rows, margins[rows].argmin(axis=1)


def find_suspicious_numbers(predicted, y):
    """Return positions of numbers far from their prediction, and how far each is.

    The unit is the median absolute residual; those above 3 are returned, the largest
    first. `predicted` and `y` are (n,).
    """
    residuals = np.abs(predicted - y)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = residuals / np.median(residuals)
    rows = np.flatnonzero(sizes > _MAX_RESIDUAL)
    rows = rows[np.argsort(-sizes[rows], kind="stable")]
    return rows, sizes[rows]
