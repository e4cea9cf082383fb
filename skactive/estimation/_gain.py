"""What more labels would add to the accuracy, from held-out predictions."""

import numpy as np
from scipy.special import log_softmax
from scipy.stats import norm

from .._math._calibration import calibrate

_Z = float(norm.ppf(0.975))
# Standard deviation of the realized gain: a share of the predictions that change, and
# one of the expected gain, which grows with the distance of the extrapolation. Both
# were chosen on simulated sessions; docs/results/sessions.md has the coverage.
_CHURN, _SLOPE, _DISTANCE = 0.13, 0.4, 0.3
# Standard deviation of a gain for one item; new texts differ from the pool's,
# even where no prediction changes.
_FLOOR = 0.25
# A gain is extrapolated from at least this many labels, absolutely and per label of
# the horizon, and from at least this many unlabeled items.
_MIN_LABELS, _MIN_RATIO, _MIN_REST = 40, 1.5, 20
# With fewer labels per class, probabilities change more with each label than they tell.
_MIN_PER_CLASS = 10


def calibrate_proba(proba, held_proba, codes):
    """Return probabilities (m, k) at the temperature that suits held-out labels.

    `held_proba` (n, k) are those of the held-out items, whose classes are `codes` (n,).
    """
    floor = np.log(np.maximum(held_proba, 1e-9))
    _, temperature = calibrate(floor, codes, np.ones(len(codes)))
    logits = np.log(np.maximum(proba, 1e-9)) / temperature
    return np.exp(log_softmax(logits, axis=1))


def beats_majority(proba, codes):
    """Whether held-out predictions are clearly better than the most frequent class.

    By McNemar's test: of the items that only one of both has right, the predictions
    have more right by two standard deviations.
    """
    right = proba.argmax(axis=1) == codes
    frequent = np.bincount(codes).argmax() == codes
    won, lost = np.sum(right & ~frequent), np.sum(frequent & ~right)
    return bool(won - lost > 2 * np.sqrt(won + lost))


def estimate_gain(proba, codes, shares, n, horizon):
    """Return the gain in accuracy by `horizon` further labels, and its interval.

    Both are for the unlabeled items of the pool, which are easier than new texts after
    queries of uncertain items. `proba` (m, k) are calibrated probabilities of these
    items by a model with n labels. `codes` (f, m) are the classes by models with the
    fractions `shares` (f,) of the labels. The probabilities say how much accuracy the
    smaller models lose. Accuracy is a - b / n near n: the loss is b (1 / (share n) - 1
    / n), the gain b (1 / n - 1 / (n + horizon)). The share of predictions that change,
    squared, has the same form. The actual gain is this expectation, plus the luck of
    these changes.
    """
    rows = np.arange(len(proba))
    current = proba.argmax(axis=1)
    lost = proba[rows, current] - proba[rows, codes]
    steps = (1 / np.asarray(shares) - 1).sum()
    ahead = 1 - n / (n + horizon)
    gain = float(lost.mean(axis=1).sum() / steps * ahead)
    # One more item changes than was seen: few items do not show that none will.
    changed = ((codes != current).sum(axis=1) + 1) / (len(proba) + 1)
    churn = np.sqrt(np.square(changed).sum() / steps * ahead)
    relative = _SLOPE + _DISTANCE * horizon / n
    parts = _CHURN * churn, relative * gain, _FLOOR / np.sqrt(len(proba))
    half = _Z * float(np.linalg.norm(parts))
    return gain, (gain - half, gain + half)


def is_enough(n, n_classes, n_rest, horizon):
    """Whether n labels and a number of unlabeled items allow to estimate a gain."""
    return n >= n_for_gain(n_classes, horizon) and n_rest >= _MIN_REST


def n_for_gain(n_classes, horizon):
    """Return the number of labels from which a gain is estimated."""
    least = max(_MIN_LABELS, _MIN_RATIO * horizon, _MIN_PER_CLASS * n_classes)
    return int(np.ceil(least))


def gain_of_labels(held_out, horizon):
    """Return gain and interval of `horizon` labels from an OutOfFold, or None.

    None stands for too few labels or unlabeled items, or a model that is not yet better
    than the most frequent class.
    """
    n = len(held_out.codes)
    held = ~np.isnan(held_out.proba[:, 0])
    proba, codes = held_out.proba[held], held_out.codes[held]
    if not is_enough(n, len(held_out.classes), len(held_out.rest_proba), horizon):
        return None
    if not beats_majority(proba, codes):
        return None
    unlabeled = calibrate_proba(held_out.rest_proba, proba, codes)
    return estimate_gain(unlabeled, held_out.rest_codes, held_out.shares, n, horizon)
