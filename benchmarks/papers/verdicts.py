"""Whether measured values bear a claim out: by the interval of their mean.

A verdict is True or False, or None where the interval holds values of both kinds.
"""

import numpy as np
from scipy.stats import t as student

UNCORRECTED = (
    "Unless stated otherwise, rows are not corrected for the number of rows on the "
    "page, so a claim that is not true still holds in one case of 40."
)


def interval(values):
    """Limits of Student's 95 % interval of a mean; of one value, none."""
    if len(values) < 2:
        return -np.inf, np.inf
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    half = student.ppf(0.975, len(values) - 1) * error
    return np.mean(values) - half, np.mean(values) + half


def above(values, size=0.0):
    """Whether a mean is above a size."""
    low, high = interval(values)
    return True if low > size else False if high < size else None


def below(values, size=0.0):
    """Whether a mean is below a size."""
    return above(-np.asarray(values), -size)


def within(values, size):
    """Whether a mean lies in ± size."""
    low, high = interval(values)
    if -size < low and high < size:
        return True
    return False if low > size or high < -size else None


def always(values, size):
    """Whether all of some values reach a size; None if only some do."""
    reached = np.asarray(values) >= size
    return bool(reached[0]) if reached.all() or not reached.any() else None


def said(values, digits=1, unit="", count=False):
    """Write a mean difference with its interval, and from how many values."""
    low, high = interval(values)
    text = (
        f"{np.mean(values):+.{digits}f}{unit} [{low:+.{digits}f}, {high:+.{digits}f}]"
    )
    return f"{text}, n = {len(values)}" if count else text
