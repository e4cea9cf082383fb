"""Intervals for means over runs."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

from .._chunks import chunk_size, chunks

__all__ = [
    "METHODS",
    "bootstrap_difference",
    "bootstrap_mean",
    "find_band",
    "student",
]

METHODS = ("bootstrap", "t", "std", "percentile")


def find_band(values, method, confidence, n_resamples, random_state):
    """Find the limits of a band around the mean over runs.

    Parameters
    ----------
    values : ndarray of shape (n_runs, r)
    method : {"bootstrap", "t", "std", "percentile"}
        As in :func:`skactive.analysis.learning_curve`.
    confidence : float
    n_resamples : int
    random_state : int, RandomState instance or None

    Returns
    -------
    low, high : ndarray of shape (r,)
        NaN for a single run.
    """
    check_options(confidence, n_resamples)
    if method not in METHODS:
        raise ValueError(f"'method' must be one of {METHODS}, got {method!r}.")
    if len(values) == 1:
        return np.full((2, values.shape[1]), np.nan)
    if method == "bootstrap":
        return bootstrap_mean(values, confidence, n_resamples, random_state)
    tail = (1 - confidence) / 2
    if method == "percentile":
        return np.quantile(values, [tail, 1 - tail], axis=0)
    half = values.std(axis=0, ddof=1)
    if method == "t":
        half = stats.t.isf(tail, len(values) - 1) * half / np.sqrt(len(values))
    mean = values.mean(axis=0)
    return np.stack([mean - half, mean + half])


def bootstrap_mean(values, confidence, n_resamples, random_state):
    """Percentile bootstrap interval of the mean over runs.

    Runs are redrawn whole, so the points of one curve stay together. The levels of
    the percentiles are those of `widened_tail`.

    Parameters
    ----------
    values : ndarray of shape (n, r)
        At least two runs.
    confidence : float
    n_resamples : int
    random_state : int, RandomState instance or None

    Returns
    -------
    low, high : ndarray of shape (r,)
    """
    weights = _draw_weights(len(values), n_resamples, check_random_state(random_state))
    return _percentiles([(weights, values)], confidence, len(values))


def bootstrap_difference(a, b, confidence, n_resamples, random_state):
    """Percentile bootstrap interval of the difference of two means over runs.

    Each group is redrawn by itself. The levels are widened as for the smaller one.

    Parameters
    ----------
    a : ndarray of shape (n, r)
    b : ndarray of shape (m, r)
    confidence, n_resamples, random_state
        As in `bootstrap_mean`.

    Returns
    -------
    low, high : ndarray of shape (r,)
    """
    rng = check_random_state(random_state)
    parts = [
        (_draw_weights(len(a), n_resamples, rng), a),
        (_draw_weights(len(b), n_resamples, rng), -b),
    ]
    return _percentiles(parts, confidence, min(len(a), len(b)))


def student(a, b, paired):
    """Compute the difference of two means over runs, for a t test or an interval.

    Parameters
    ----------
    a : ndarray of shape (n, ...)
    b : ndarray of shape (m, ...)
    paired : bool
        Whether row i of both belongs together; otherwise Welch's formulas are used.

    Returns
    -------
    difference, error, df : ndarray of shape (...)
        The difference, its standard error and the degrees of freedom.
    """
    difference = a.mean(axis=0) - b.mean(axis=0)
    if paired:
        error = (a - b).std(axis=0, ddof=1) / np.sqrt(len(a))
        return difference, error, np.full_like(error, len(a) - 1)
    v, w = a.var(axis=0, ddof=1) / len(a), b.var(axis=0, ddof=1) / len(b)
    varies = v + w > 0
    total, parts = (v + w) ** 2, v**2 / (len(a) - 1) + w**2 / (len(b) - 1)
    df = np.divide(total, parts, out=np.full_like(v, len(a) + len(b) - 2), where=varies)
    return difference, np.sqrt(v + w), df


def widened_tail(confidence, n):
    """Probability to cut off at each end of a bootstrap distribution.

    The plain percentiles of the mean of n values come out too narrow by
    sqrt((n - 1) / n) and by z instead of t; this undoes both [1]_.

    Parameters
    ----------
    confidence : float
    n : int
        At least 2.

    Returns
    -------
    tail : float

    References
    ----------
    .. [1] T. C. Hesterberg, "What teachers should know about the bootstrap",
       The American Statistician 69, 2015: the expanded percentile interval.
    """
    t = stats.t.isf((1 - confidence) / 2, n - 1)
    return float(stats.norm.sf(t * np.sqrt(n / (n - 1))))


def _draw_weights(n, n_resamples, rng):
    """How often each of n runs is in each redrawn group, as shares of it."""
    return rng.multinomial(n, np.full(n, 1 / n), size=n_resamples) / n


def _percentiles(parts, confidence, n):
    tail = widened_tail(confidence, n)
    r = parts[0][1].shape[1]
    limits = np.empty((2, r))
    # Differences to the mean, so that equal values give an interval of width 0.
    mean = sum(values.mean(axis=0) for _, values in parts)
    for columns in chunks(r, chunk_size(8 * len(parts[0][0]))):
        spread = sum(
            weights @ (values[:, columns] - values[:, columns].mean(axis=0))
            for weights, values in parts
        )
        limits[:, columns] = np.quantile(spread, [tail, 1 - tail], axis=0)
    return mean + limits


def check_options(confidence, n_resamples):
    """Refuse a confidence or a number of resamples that means nothing."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ValueError(
            "'confidence' must lie between 0 and 1, such as 0.95 for 95%; got "
            f"{confidence!r}."
        )
    if not isinstance(n_resamples, Integral) or n_resamples < 1:
        raise ValueError(f"'n_resamples' must be a positive int, got {n_resamples!r}.")
