"""How good predictions are, in all and for each class, from labels of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from .._utils._format import brief, make_frame
from .._utils._labels import join_labels
from ._mean import (
    MIN_LABELS,
    MeanEstimate,
    Sample,
    as_indicators,
    check_proba,
    f1_of,
    unseen_errors,
)

# Held-out predictions depend on each other, as their models share labels, and the final
# model has more labels than these: the variance is larger by about this factor, if all
# labels are in the sample.
CROSS_FITTED = 1.75


@dataclass(frozen=True)
class ClassQuality:
    """Quality of the predictions of one class.

    Parameters
    ----------
    precision : MeanEstimate
        Share of the items predicted to be in the class that are in it.
    recall : MeanEstimate
        Share of the items of the class that are predicted to be in it.
    f1 : MeanEstimate
        Harmonic mean of both.

    Examples
    --------
    >>> from skactive.estimation import estimate_quality
    >>> truth, predicted = [1] * 20 + [0] * 80, [1] * 15 + [0] * 85
    >>> found = estimate_quality(truth, predicted, n_pool=1000, cross_fitted=False)
    >>> print(found.classes[1].recall)
    75.0 % (51.8 to 90.6 %), from 20 labels of 1,000 texts
    """

    precision: MeanEstimate
    recall: MeanEstimate
    f1: MeanEstimate


@dataclass(frozen=True)
class QualityEstimate:
    """Quality of predictions for a pool, with intervals.

    Parameters
    ----------
    accuracy : MeanEstimate
        Share of the items that are predicted right; for several classes per item,
        right in all of them.
    micro_f1 : MeanEstimate
        F1 score of all classes together. For one class per item, it is the accuracy.
    macro_f1 : MeanEstimate
        Mean of the F1 scores of all classes. It has no value while one of them has
        fewer than ten items in the labels and predictions.
    overconfidence : MeanEstimate or None
        Mean of the confidence minus the accuracy. None without probabilities.
    classes : dict of class to ClassQuality
        Quality of each class.
    confusion : ndarray of shape (k, k) or None
        Number of items of the sample by class, in rows, and by predicted class, in
        columns. None for several classes per item. scikit-learn's
        ConfusionMatrixDisplay draws it.

    Examples
    --------
    >>> from skactive.estimation import estimate_quality
    >>> truth, predicted = [1] * 20 + [0] * 80, [1] * 15 + [0] * 85
    >>> found = estimate_quality(truth, predicted, n_pool=1000, cross_fitted=False)
    >>> print(found)
    accuracy 95.0 % (89.1 to 98.2 %), from 100 labels of 1,000 texts
    >>> found.confusion
    array([[80,  0],
           [ 5, 15]])
    """

    accuracy: MeanEstimate
    micro_f1: MeanEstimate
    macro_f1: MeanEstimate
    overconfidence: MeanEstimate | None
    classes: dict[Any, ClassQuality]
    confusion: Any

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row for each measure and class."""
        parts = {
            (name, None): getattr(self, name)
            for name in ("accuracy", "micro_f1", "macro_f1", "overconfidence")
        }
        for label, quality in self.classes.items():
            for name in ("precision", "recall", "f1"):
                parts[name, label] = getattr(quality, name)
        rows = [
            [*key, score.value, *(score.interval or (None, None)), score.n_labels]
            for key, score in parts.items()
            if score is not None
        ]
        names = ("measure", "class", "value", "low", "high", "n_labels")
        columns = zip(names, map(list, zip(*rows, strict=True)), strict=True)
        return make_frame(dict(columns))

    def __str__(self):
        return f"accuracy {self.accuracy}"


def estimate_quality(
    y: ArrayLike,
    predicted: ArrayLike,
    proba: ArrayLike | None = None,
    pool_proba: ArrayLike | None = None,
    *,
    classes: Sequence[Any] | None = None,
    n_pool: int | None = None,
    draw_proba: ArrayLike | None = None,
    cross_fitted: float = True,
    confidence_level: float = 0.95,
) -> QualityEstimate:
    """Estimate how good predictions are from the labels of a sample.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, k)
        The classes of the items of the sample; or, if several apply to an item, a
        column of 0 and 1 for each class. See :func:`estimate_share` for the sample.
    predicted : array-like of shape (n,) or (n, k)
        The predictions for these items. Those of a model that was trained on the sample
        must be out-of-fold.
    proba : array-like of shape (n, k), default=None
        Probabilities of the classes for these items, by the same models. The largest
        one is the confidence; for several classes per item, it is the probability that
        all columns are right.
    pool_proba : array-like of shape (n_pool, k), default=None
        The same for all items of the pool, with the sample. All measures then use the
        probabilities as proxies, also where these explain little: the audit of a
        session is not like the other texts, as the strategy knew it.
    classes : list of length k, default=None
        The classes. Defaults to the sorted labels and predictions.
    n_pool : int, default=None
        Number of items in the pool. Defaults to the length of `pool_proba`;
        without either, the pool has no end.
    draw_proba : array-like of shape (n,), default=None
        The probability of each draw; see :func:`estimate_mean`.
    cross_fitted : bool or float, default=True
        Whether the predictions are by models that were trained on labels of the sample,
        as those of cross-validation. They depend on each other, and the intervals are
        wider. A number from 0 to 1 is the share of the labels of these models that are
        in the sample, such as 0.2 for an audit of one label in five. False is for
        predictions that do not depend on the sample, such as those of a language model.
    confidence_level : float, default=0.95
        Confidence level of each interval.

    Returns
    -------
    quality : QualityEstimate
        The measures. They have no value for fewer than ten labels, precision, recall
        and F1 none without an item to which they apply, and the macro F1 none while a
        class has fewer than ten items in the labels and predictions.

    Raises
    ------
    ValueError
        If the predictions do not have the shape of the labels, a label or prediction is
        missing, a label is none of the classes, the columns of the probabilities are
        not those of the classes, or for the reasons of :func:`estimate_mean`.

    Notes
    -----
    Precision and recall are shares among the items that are predicted to be in a class,
    or in it. The F1 score is 2 J / (1 + J) for the share J of the items in both sets
    among those in either. With `pool_proba`, both counts of such a share are predicted
    for the pool by least squares on their probabilities, unless this doubles the
    variance. The intervals of the labels alone are exact binomial ones for an effective
    number of items; the others are those of :func:`estimate_share`. They are combined
    for the macro F1 score (MOVER, by G. Y. Zou and A. Donner 2008).

    With `cross_fitted`, the estimates are those of the final model for the whole pool,
    from models that lack a part of the labels. The variance is multiplied by a factor
    that was chosen in simulations, 1.75 for True and 1 + .75 s for a share s; see
    :doc:`/results/estimates` (S. Bates, T. Hastie,
    R. Tibshirani 2024, on what cross-validation estimates).

    Examples
    --------
    >>> from skactive.estimation import estimate_quality
    >>> truth, predicted = [1] * 20 + [0] * 80, [1] * 15 + [0] * 85
    >>> found = estimate_quality(truth, predicted, n_pool=1000, cross_fitted=False)
    >>> print(found.classes[1].f1)
    85.7 % (68.3 to 95.1 %), from 20 labels of 1,000 texts
    """
    names, truth = as_indicators("y", y, classes)
    several = np.ndim(y) == 2
    if classes is None and not several:
        others, _ = as_indicators("predicted", predicted)
        classes = sorted({*join_labels(*map(np.array, (names, others))).tolist()})
        names, truth = as_indicators("y", y, classes)
    _, guess = as_indicators("predicted", predicted, names)
    if truth.shape != guess.shape:
        raise ValueError(
            f"'predicted' must have the shape of 'y', got {guess.shape} and "
            f"{truth.shape}."
        )
    if pool_proba is not None and proba is None:
        raise ValueError("'proba' must be given with 'pool_proba', got None.")
    beliefs = [
        check_proba(name, p, len(names), n, is_sum=not several)
        for name, p, n in (
            ("proba", proba, len(truth)),
            ("pool_proba", pool_proba, None),
        )
    ]
    own, every = (None if p is None else _find_confidence(p, several) for p in beliefs)
    right = (truth == guess).all(axis=1)
    used = None if every is None else own
    if not isinstance(cross_fitted, Real) or not 0 <= cross_fitted <= 1:
        raise ValueError(
            "'cross_fitted' must be True, False or a share from 0 to 1, got "
            f"{brief(cross_fitted)}."
        )
    dependence = 1 + (CROSS_FITTED - 1) * float(cross_fitted)
    options = {"n_pool": n_pool, "draw_proba": draw_proba}
    sample = Sample(right, used, every, dependence=dependence, **options)
    accuracy = sample.estimate(confidence_level=confidence_level, always=True)
    rates = _Rates(sample, truth, guess, beliefs, several, confidence_level)
    each = [(j, j + 1) for j in range(len(names))]
    return QualityEstimate(
        accuracy,
        rates.f1((0, len(names))) if several else accuracy,
        rates.average_f1(each),
        _find_overconfidence(own, every, accuracy, options),
        {
            name: ClassQuality(
                rates.find(_GUESS, j), rates.find(_TRUTH, j), rates.f1(j)
            )
            for name, j in zip(names, each, strict=True)
        },
        None if several else (truth.T @ guess).astype(int),
    )


# Parts of a pool for a class: items in it and predicted to be, and so on.
_BOTH, _GUESS, _TRUTH, _EITHER = range(4)
_PARTS = np.multiply, lambda truth, guess: guess, lambda truth, guess: truth, np.maximum


def _find_confidence(proba, several):
    """Return the probability (n,) that the most likely labels are right."""
    return np.maximum(proba, 1 - proba).prod(axis=1) if several else proba.max(axis=1)


def _predict(proba, several):
    """Return the most likely labels, an indicator matrix (n, k)."""
    if several:
        return proba > 0.5
    return np.arange(proba.shape[1]) == proba.argmax(axis=1)[:, None]


class _Rates:
    """Ratios of two parts of a pool, with intervals.

    `_pairs` are the labels and predictions (k, n) of the sample; with probabilities of
    the pool, also those that models expect in the sample and in the pool.
    """

    def __init__(self, sample, truth, guess, beliefs, several, level):
        self._sample, self._level = sample, level
        self._pairs = [(truth, guess)]
        if beliefs[1] is not None:
            self._pairs += [(p, _predict(p, several)) for p in beliefs]
        self._pairs = [[np.ascontiguousarray(x.T) for x in y] for y in self._pairs]
        self.f1 = cache(self._find_f1)

    def _find_f1(self, chosen):
        """Return the MeanEstimate of the F1 score of a range of classes together."""
        return self.find(_EITHER, chosen, f1_of)

    def find(self, whole, chosen, transform=float):
        """Return the MeanEstimate of the share of `_BOTH` in another part.

        For labels alone of items with several classes or weights, the effective number
        of items is that of equal outcomes with these weights, times the ratio of the
        variance to it, to which one item is added that is not explained.
        """
        sample = self._sample
        share, variance, total, is_plain = self._estimate(whole, chosen)[:4]
        n = int((total > 0).sum())
        fields = {"n_labels": n, "n_pool": sample.n_pool}
        fields["confidence_level"] = self._level
        if not n or (sample.n < MIN_LABELS and sample.n != sample.n_pool):
            return MeanEstimate(None, None, **fields)
        inverse = self._inverse(total)
        plain = share * (1 - share) * inverse
        if is_plain:
            if plain and (total.max() > 1 or sample.draw_proba is not None):
                inverse *= (variance / plain * n + 1) / (n + 1)
            limits = sample.limits_alone(share, n, inverse, self._level)
        else:
            half = np.sqrt(sample.correct(variance, plain))
            half *= -stdtrit(max(n - 1, 1), (1 - self._level) / 2)
            limits = np.clip((share - half, share + half), 0, 1)
        interval = tuple(float(transform(x)) for x in limits)
        share = float(transform(share))
        return MeanEstimate(share, interval, effective_size=float(n), **fields)

    def _inverse(self, total):
        """Return the variance of a share of a part, in units of that of one item."""
        weights = self._sample.item_weights * total
        return np.square(weights).sum() / weights.sum() ** 2

    def _estimate(self, whole, chosen):
        """Return the share of `_BOTH` in another part, and its variance.

        Then come the part (n,), whether the labels alone are used, and the residuals.
        """
        sample = self._sample
        part, total, *expected = self._sum([_BOTH, whole], chosen)
        plain = self._fit(part, total, np.empty((sample.n, 0)), np.empty(0))
        share, variance, residuals = plain
        if not expected or sample.n <= 5 or not 0 < share < 1:
            return share, variance, total, True, residuals
        assisted = self._fit(part, total, expected[0], expected[1].mean(axis=0))
        weights = sample.item_weights * total
        one = np.square(weights.max() / weights.sum())
        more = unseen_errors(self._level) * one
        if assisted[1] + more > 2 * (variance + more):
            return share, variance, total, True, residuals
        return assisted[0], assisted[1] + more, total, False, assisted[2]

    def _fit(self, part, total, f, mean):
        """Return a share by least squares of both parts, its variance and residuals."""
        sample = self._sample
        (value, left), (size, right) = (sample.fit(x, f, mean) for x in (part, total))
        share = float(np.clip(value / size if size > 0 else 0, 0, 1))
        residuals = (left - share * right) * (1 - sample.weights)
        residuals /= max(sample.item_weights @ total, 1e-9)
        return share, sample.variance(residuals), residuals

    def _sum(self, chosen_parts, chosen):
        """Return parts (n,) of some classes, and their probabilities (., 2)."""
        sums = []
        for pair in self._pairs:
            truth, guess = (x[slice(*chosen)] for x in pair)
            parts = [_PARTS[i](truth, guess) for i in chosen_parts]
            sums.append(np.stack([part.sum(axis=0) for part in parts]))
        return [*sums[0].astype(float), *(x.T for x in sums[1:])]

    def average_f1(self, classes):
        """Return the MeanEstimate of the macro F1 score.

        The limits of the classes are combined by their squared distances (MOVER), times
        the ratio of the variance to that of classes that do not depend on each other.
        """
        sample = self._sample
        fields = {"n_labels": sample.n, "n_pool": sample.n_pool}
        fields["confidence_level"] = self._level
        scores = [self.f1(j) for j in classes]
        fewest = min(one.n_labels for one in scores)
        if not fewest or (fewest < MIN_LABELS and sample.n != sample.n_pool):
            return MeanEstimate(None, None, **fields | {"n_labels": fewest})
        values = np.array([one.value for one in scores])
        parts = [self._estimate(_EITHER, j) for j in classes]
        changes = np.array([2 / (1 + one[0]) ** 2 * one[4] for one in parts])
        single = sum(map(sample.variance, changes))
        ratio = sample.variance(changes.sum(axis=0)) / single if single else len(scores)
        below, above = (
            float(np.sqrt(ratio * np.square(values - limit).sum()) / len(scores))
            for limit in np.transpose([one.interval for one in scores])
        )
        value = float(values.mean())
        interval = max(0.0, value - below), min(1.0, value + above)
        return MeanEstimate(value, interval, effective_size=float(sample.n), **fields)


def _find_overconfidence(confidence, pool_confidence, accuracy, options):
    """Return the MeanEstimate of the mean confidence minus the accuracy, or None.

    Without the mean of the pool, the intervals of both means are combined (MOVER). That
    of the confidence has 3 / n more for 95 %, as a sample may lack the doubtful items.
    """
    if confidence is None or accuracy.value is None:
        return None
    if pool_confidence is None:
        level = {"confidence_level": accuracy.confidence_level}
        estimate = Sample(confidence, **options).estimate(is_share=False, **level)
        unseen = -np.log(1 - accuracy.confidence_level) / accuracy.n_labels
        mean = estimate.value
        half = np.hypot(estimate.half_width if estimate.interval else 0.0, unseen)
    else:
        mean, half = float(np.mean(pool_confidence)), 0.0
    gap, (low, high) = mean - accuracy.value, accuracy.interval
    below, above = np.hypot(half, (high - accuracy.value, accuracy.value - low))
    interval = float(gap - below), float(gap + above)
    changed = {"value": gap, "interval": interval, "is_share": False, "counted": None}
    return replace(accuracy, **changed)
