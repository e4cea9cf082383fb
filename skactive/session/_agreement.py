"""How much several annotators agree."""

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

_N_BOOTSTRAP = 1000
_Interval = tuple[float, float]


@dataclass(frozen=True)
class Agreement:
    """How much several annotators agree, corrected for chance.

    1 is full agreement, and 0 is what chance would give. A value is None if it is
    undefined: there are no such items, or all their answers are the same class.
    Intervals are the 2.5 and 97.5 percentiles of 1,000 bootstrap samples of the items.

    Attributes
    ----------
    n_items : int
        Items with answers by at least two annotators.
    share : float or None
        Share of the pairs of answers to the same item that are equal.
    alpha, alpha_interval : float and (float, float), or None
        Krippendorff's alpha for nominal data, from these items. It allows any number of
        answers per item.
    kappa, kappa_interval : float and (float, float), or None
        Fleiss' kappa, from the items that have as many answers as most of them.
    pairs : dict of (annotator, annotator) to (kappa, (low, high), n_items)
        Cohen's kappa for each pair of annotators, its interval, and the number of items
        that both answered.

    References
    ----------
    J. Cohen (1960). A coefficient of agreement for nominal scales. Educational and
    Psychological Measurement.

    J. L. Fleiss (1971). Measuring nominal scale agreement among many raters.
    Psychological Bulletin.

    K. Krippendorff (2011). Computing Krippendorff's alpha-reliability.

    Examples
    --------
    >>> from skactive.session import Agreement
    >>> print(Agreement(n_items=40, share=0.9, alpha=0.8, alpha_interval=(0.65, 0.92)))
    90 % of the answers agree; alpha 0.80 (0.65 to 0.92), from 40 items
    """

    n_items: int = 0
    share: float | None = None
    alpha: float | None = None
    alpha_interval: _Interval | None = None
    kappa: float | None = None
    kappa_interval: _Interval | None = None
    pairs: dict[tuple[Any, Any], Any] = field(default_factory=dict)

    def __str__(self):
        if not self.n_items:
            return "no item has answers by two annotators"
        text = f"{self.share:.0%} of the answers agree".replace("%", " %")
        if self.alpha is None or self.alpha_interval is None:
            return f"{text}, from {self.n_items} items of one class"
        low, high = self.alpha_interval
        return (
            f"{text}; alpha {self.alpha:.2f} ({low:.2f} to {high:.2f}), from "
            f"{self.n_items} items"
        )


def measure_agreement(answers, seed=0):
    """Return the Agreement of answers, a dict of id to dict of annotator to label."""
    several = [given for given in answers.values() if len(given) > 1]
    if not several:
        return Agreement()
    classes = {repr(label): None for given in several for label in given.values()}
    numbers = {name: number for number, name in enumerate(classes)}
    counts = np.zeros((len(several), len(classes)))
    for row, given in enumerate(several):
        for label in given.values():
            counts[row, numbers[repr(label)]] += 1
    sizes = counts.sum(axis=1)
    same = counts[sizes == np.bincount(sizes.astype(int)).argmax()]
    rng = np.random.default_rng(seed)
    pairs = (counts * (counts - 1)).sum(), (sizes * (sizes - 1)).sum()
    alpha, kappa = _estimate(alpha_of, counts, rng), _estimate(kappa_of, same, rng)
    by = {name: None for given in several for name in given}
    found = {}
    for first, second in combinations(by, 2):
        both = [g for g in several if first in g and second in g]
        if both:
            table = np.zeros((len(both), len(classes), len(classes)))
            rows = [numbers[repr(given[first])] for given in both]
            columns = [numbers[repr(given[second])] for given in both]
            table[np.arange(len(both)), rows, columns] = 1
            found[first, second] = *_estimate(cohen_of, table, rng), len(both)
    return Agreement(len(several), float(pairs[0] / pairs[1]), *alpha, *kappa, found)


def alpha_of(counts, weight):
    """Return Krippendorff's alpha (b,) of answers per item and class (n, k).

    `weight` (b, n) says how often each item is in each of b samples.
    """
    sizes = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (sizes - 1)
    totals = weight @ counts
    n = totals.sum(axis=1)
    observed = 1 - weight @ agreeing / n
    expected = 1 - (totals * (totals - 1)).sum(axis=1) / (n * (n - 1))
    return _chance_corrected(observed, expected)


def kappa_of(counts, weight):
    """Return Fleiss' kappa (b,) of equally many answers per item; see `alpha_of`."""
    size = counts[0].sum()
    agreeing = (counts * (counts - 1)).sum(axis=1) / (size * (size - 1))
    shares = weight @ counts / (weight.sum(axis=1, keepdims=True) * size)
    observed = 1 - weight @ agreeing / weight.sum(axis=1)
    return _chance_corrected(observed, 1 - np.square(shares).sum(axis=1))


def cohen_of(tables, weight):
    """Return Cohen's kappa (b,) of tables (n, k, k), one for each item."""
    n, k, _ = tables.shape
    table = (weight @ tables.reshape(n, k * k)).reshape(-1, k, k)
    table /= weight.sum(axis=1)[:, None, None]
    by_chance = (table.sum(axis=1) * table.sum(axis=2)).sum(axis=1)
    observed = 1 - np.trace(table, axis1=1, axis2=2)
    return _chance_corrected(observed, 1 - by_chance)


def _chance_corrected(observed, expected):
    """Return 1 - observed / expected disagreement, NaN if none is expected."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 1e-12, 1 - observed / expected, np.nan)


def _estimate(measure, items, rng):
    """Return a measure and its bootstrap interval over the items, or None and None."""
    n = len(items)
    value = float(measure(items, np.ones((1, n)))[0])
    if np.isnan(value):
        return None, None
    draws = rng.multinomial(n, np.full(n, 1 / n), size=_N_BOOTSTRAP).astype(float)
    low, high = np.nanpercentile(measure(items, draws), [2.5, 97.5])
    return value, (float(low), float(high))
