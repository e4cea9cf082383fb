"""How much several annotators agree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np

from .._utils._format import brief, is_missing
from .._utils._labels import Target, is_names, key_of
from .._utils._sklearn import StrOptions, validate_params
from ._mean import as_numbers

_N_BOOTSTRAP = 1000
_Interval = tuple[float, float]


@dataclass(frozen=True)
class Agreement:
    """How much several annotators agree.

    Values are corrected for chance: 1 is full agreement, and 0 is what chance would
    give. A value is None if it is undefined: there are no items with several answers,
    or all their answers are the same class. Intervals are the 2.5 and 97.5 percentiles
    of 1,000 bootstrap samples of the items. For the lower limit, an item on which the
    annotators disagree is added, so that it is below 1 even if all answers agree.

    Parameters
    ----------
    n_items : int
        Number of items with answers by at least two annotators.
    share : float or None
        Share of the pairs of answers to the same item that are equal.
    alpha : float or None
        Krippendorff's alpha for nominal data from these items [3]_, for numbers that
        for interval data. It allows any number of answers per item.
    alpha_interval : (float, float) or None
        Its interval.
    kappa : float or None
        Fleiss' kappa, from the items that have as many answers as most of them [2]_.
        None for numbers.
    kappa_interval : (float, float) or None
        Its interval.
    pairs : dict of (annotator, annotator) to (kappa, (low, high), n_items)
        Cohen's kappa for each pair [1]_, its interval, and the number of items that
        both answered. Alpha instead for numbers.

    Notes
    -----
    If items have several classes, two answers are equal if their sets are, and alpha
    and the kappas are means over the classes of those for the question whether the
    class applies; classes that nobody or everybody gave are left out.

    References
    ----------
    .. [1] J. Cohen (1960). A coefficient of agreement for nominal scales. Educational
       and Psychological Measurement.
    .. [2] J. L. Fleiss (1971). Measuring nominal scale agreement among many raters.
       Psychological Bulletin.
    .. [3] K. Krippendorff (2011). Computing Krippendorff's alpha-reliability.

    Examples
    --------
    >>> from skactive.estimation import measure_agreement
    >>> answers = {1: {"Ann": "yes", "Bob": "yes"}, 2: {"Ann": "no", "Bob": "yes"}}
    >>> measure_agreement(answers).share
    0.5
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


@validate_params(
    {
        "answers": [dict],
        "target": [StrOptions({"single-label", "multi-label", "regression"})],
        "machines": [dict, None],
        "random_state": [Integral],
    }
)
def measure_agreement(
    answers: dict[Any, dict[Any, Any]],
    *,
    target: Target = "single-label",
    machines: dict[str, dict[Any, Any]] | None = None,
    random_state: int = 0,
) -> Agreement:
    """Compute how much several annotators agree on the same items.

    Parameters
    ----------
    answers : dict of item to dict of annotator to label
        Labels are as in a :class:`skactive.LabelingSession`. Items with one answer do
        not count.
    target : {"single-label", "multi-label", "regression"}, default="single-label"
        What was labeled.
    machines : dict of name to dict of item to label, or None, default=None
        Labels of machines. They are compared with each annotator, and count in `pairs`
        only.
    random_state : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    agreement : Agreement
        Its `str` is one line.

    Examples
    --------
    >>> from skactive.estimation import measure_agreement
    >>> answers = {i: {"Ann": i % 2, "Bob": i % 2, "Eve": i % 3} for i in range(30)}
    >>> agreement = measure_agreement(answers)
    >>> kappa, interval, n_items = agreement.pairs["Ann", "Bob"]
    >>> kappa, n_items
    (1.0, 30)
    """
    answers = read_answers(answers)
    machines = {x: drop_missing("machines", one) for x, one in (machines or {}).items()}
    several = [labels for labels in answers.values() if len(labels) > 1]
    rng, values = np.random.default_rng(random_state), ()
    if several:
        values = len(several), *_measure(several, target, rng)
    people = list(dict.fromkeys(by for labels in several for by in labels))
    both = {
        pair: [labels for labels in several if {*pair} <= labels.keys()]
        for pair in combinations(people, 2)
    }
    people = list(dict.fromkeys(by for labels in answers.values() for by in labels))
    for machine, predictions in machines.items():
        for person in people:
            both[person, machine] = [
                {person: labels[person], machine: predictions[id]}
                for id, labels in answers.items()
                if person in labels and id in predictions
            ]
    pairs = {
        pair: (*_compare(rows, pair, target, rng), len(rows))
        for pair, rows in both.items()
        if rows
    }
    return Agreement(*values, pairs=pairs)


def read_answers(answers):
    """Return answers by item and annotator without those that are missing."""
    answers = drop_missing("answers", answers)
    return {id: drop_missing("answers", labels) for id, labels in answers.items()}


def drop_missing(name, labels):
    """Return a dict of labels without those that are missing."""
    if not isinstance(labels, Mapping):
        raise TypeError(
            f"{name!r} must hold a dict of labels, got {brief(labels)}. Pass labels by "
            "item, or by item and annotator, as in the example."
        )
    return {key: label for key, label in labels.items() if not is_missing(label)}


def _measure(several, target, rng):
    """Return share, alpha and kappa of answers, the last two with intervals."""
    keys = [{by: key_of(label) for by, label in labels.items()} for labels in several]
    counts = _count(keys, _number(keys))
    sizes = counts.sum(axis=1)
    share = (counts * (counts - 1)).sum() / (sizes * (sizes - 1)).sum()
    kappa = None, None
    if target == "regression":
        alpha = _estimate(interval_alpha_of, _find_moments(several), rng)
    else:
        counts = np.stack([_count(*x) for x in _views(several, target)], axis=1)
        same = sizes == np.bincount(sizes.astype(int)).argmax()
        alpha = _estimate(_average(alpha_of), counts, rng)
        kappa = _estimate(_average(kappa_of), counts[same], rng)
    return float(share), *alpha, *kappa


def _views(several, target):
    """Return pairs of answers by annotator and the columns of these answers."""
    if target == "multi-label":  # whether each class was given
        return [(view, {False: 0, True: 1}) for view in _ask_for_each(several)]
    keys = [{by: key_of(label) for by, label in labels.items()} for labels in several]
    return [(keys, _number(keys))]


def _compare(both, pair, target, rng):
    """Return Cohen's kappa, or alpha for numbers, of a pair, and its interval."""
    both = [{by: labels[by] for by in pair} for labels in both]
    if target == "regression":
        return _estimate(interval_alpha_of, _find_moments(both), rng)
    tables = [_cross(view, pair, numbers) for view, numbers in _views(both, target)]
    return _estimate(_average(cohen_of), np.stack(tables, axis=1), rng)


def _number(several):
    """Return the column of each answer, in order of their first use."""
    distinct = {label: None for labels in several for label in labels.values()}
    return {label: column for column, label in enumerate(distinct)}


def _count(several, numbers):
    """Return the number of answers per item and class, (n, k)."""
    counts = np.zeros((len(several), len(numbers)))
    for row, labels in zip(counts, several, strict=True):
        for label in labels.values():
            row[numbers[label]] += 1
    return counts


def _cross(both, pair, numbers):
    """Return the tables (n, k, k) of the answers of two annotators to n items."""
    table = np.zeros((len(both), len(numbers), len(numbers)))
    rows, columns = ([numbers[labels[by]] for labels in both] for by in pair)
    table[np.arange(len(both)), rows, columns] = 1
    return table


def _ask_for_each(several):
    """Return for each class the answers to the question whether it applies."""
    sets = [
        {
            by: {*label} if is_names(label) else {*np.flatnonzero(label).tolist()}
            for by, label in labels.items()
        }
        for labels in several
    ]
    names = sorted({name for labels in sets for one in labels.values() for name in one})
    return [
        [{by: name in one for by, one in labels.items()} for labels in sets]
        for name in names or [None]
    ]


def _average(measure):
    """Return a measure of items (n, c, ...) that is the mean over c classes.

    Classes for which it is undefined are left out.
    """

    def average(items, weight):
        parts = (measure(items[:, c], weight) for c in range(items.shape[1]))
        values = np.stack(list(parts))
        is_defined = ~np.isnan(values)
        total = np.where(is_defined, values, 0.0).sum(axis=0)
        with np.errstate(invalid="ignore"):
            return total / is_defined.sum(axis=0)

    return average


def _find_moments(several):
    """Return number, sum and sum of squares of the answers to each item, (n, 3)."""
    values = [as_numbers("answers", list(labels.values())) for labels in several]
    middle = np.concatenate(values).mean()
    return np.array(
        [[len(x), (x - middle).sum(), ((x - middle) ** 2).sum()] for x in values]
    )


def interval_alpha_of(moments, weight):
    """Return Krippendorff's alpha (b,) of numbers, by their squared differences.

    `moments` (n, 3) are from :func:`_find_moments`; `weight` as for `alpha_of`.
    """
    size, total, squares = moments.T
    differences = 2 * (size * squares - total**2)  # of ordered pairs
    n, total_of_all, squares_of_all = (weight @ moments).T
    observed = weight @ (differences / (size - 1)) / n
    expected = 2 * (n * squares_of_all - total_of_all**2) / (n * (n - 1))
    return _chance_corrected(observed, expected)


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
    """Return a measure and its bootstrap interval over the items, or None and None.

    The lower limit is that with one more item, on which the annotators disagree: few
    items do not show that they always agree.
    """
    n = len(items)
    value = float(measure(items, np.ones((1, n)))[0])
    if np.isnan(value):
        return None, None
    limits = []
    for part, share in (
        (np.append(items, _disagree(items), axis=0), 2.5),
        (items, 97.5),
    ):
        n = len(part)
        draws = rng.multinomial(n, np.full(n, 1 / n), size=_N_BOOTSTRAP).astype(float)
        limits.append(float(np.nanpercentile(measure(part, draws), share)))
    return value, (min(limits[0], value), max(limits[1], value))


def _disagree(items):
    """Return an item (1, ...) on which annotators answer as for two different items."""
    flat = items.reshape(len(items), -1)
    other = np.flatnonzero((flat != flat[0]).any(axis=1))[:1]
    if items.ndim < 4:  # numbers of answers, or their moments
        return (items[:1] + items[other]) / 2
    # A table for each class: the rows of one item, and the columns of the other.
    return items[:1].sum(axis=3)[..., None] * items[other].sum(axis=2)[:, :, None]
