"""Labels that out-of-fold probabilities contradict."""

import numpy as np


def find_suspicious(proba, codes):
    """Return positions of contradicted labels, most doubtful first.

    `proba` (n, k) are out-of-fold probabilities, NaN for items that were not held out;
    `codes` (n,) are the classes of the labels. As in confident learning, an item counts
    as of another class if its probability reaches the mean that the items of that class
    have. The order is that of the normalized margin. A class with a single item has no
    such mean, and its item no probability.
    """
    counts = np.bincount(codes, minlength=proba.shape[1])
    known = np.flatnonzero(~np.isnan(proba[:, 0]) & (counts[codes] > 1))
    own = proba[known, codes[known]]
    sums = np.bincount(codes[known], own, minlength=proba.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        thresholds = sums / np.bincount(codes[known], minlength=proba.shape[1])
    # No probability reaches the NaN of a class without a mean.
    reached = proba[known] >= thresholds - 1e-6
    best = proba[known].argmax(axis=1)
    guess = np.where(reached.sum(axis=1) > 1, best, reached.argmax(axis=1))
    doubtful = reached.any(axis=1) & (guess != codes[known]) & (best != codes[known])
    margin = own - proba[known].max(axis=1)
    order = np.flatnonzero(doubtful)
    return known[order[np.argsort(margin[order], kind="stable")]]
