"""How accurate the model of a session is, and what more labels would add."""

from dataclasses import dataclass

import numpy as np

from ..stopping._estimates import (
    estimate_accuracy,
    gain_of_labels,
    is_rich,
    n_for_gain,
)

_Interval = tuple[float, float]
_MIN_AUDIT, _MIN_LABELS = 10, 20


@dataclass(frozen=True)
class Estimate:
    """How accurate a model is now and what more labels would add.

    `str(estimate)` is one line. Intervals are of 95 %. None stands for what the labels
    do not show yet.

    Attributes
    ----------
    n_labels : int
        Number of labels.
    accuracy, accuracy_interval : float and (float, float), or None
        Accuracy of the model on the pool, from items that it was not trained on.
    n_audited : int
        Number of items of the audit, a random sample, that the accuracy is from. With
        0, the accuracy is that of cross-validation on all labeled items. It is too low
        for the pool if these were chosen because they are hard.
    horizon : int
        Number of labels that the gain is for.
    gain, gain_interval : float and (float, float), or None
        Gain in accuracy by the next `horizon` labels.
    minutes : float or None
        Time for the labels that are still wanted, at the median time per answer.
    gain_from : int or None
        With fewer labels than this, there is no gain yet.

    See Also
    --------
    LabelingSession.estimate : Returns it.
    skactive.stopping.CostRule : Stops when the gain is worth less than the labels.

    Examples
    --------
    >>> from skactive.session import Estimate
    >>> print(Estimate(200, 0.81, (0.74, 0.87), 40, 100, 0.012, (-0.004, 0.028), 35))
    accuracy 81 % (74 to 87), from 40 audited items; the next 100 labels: +1.2 points \
(-0.4 to 2.8); 35 min left at your pace
    """

    n_labels: int
    accuracy: float | None = None
    accuracy_interval: _Interval | None = None
    n_audited: int = 0
    horizon: int = 100
    gain: float | None = None
    gain_interval: _Interval | None = None
    minutes: float | None = None
    gain_from: int | None = None

    def __str__(self):
        parts = ["accuracy: cannot tell yet"]
        if self.accuracy is not None and self.accuracy_interval is not None:
            low, high = self.accuracy_interval
            basis = "of the labeled items"
            if self.n_audited:
                basis = f", from {self.n_audited} audited items"
            shown = f"{100 * self.accuracy:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
            parts = [f"accuracy {shown} {basis}".replace(" ,", ",")]
        gain = "cannot tell"
        if self.gain_from is not None:
            gain = f"from {self.gain_from} labels on"
        if self.gain is not None and self.gain_interval is not None:
            low, high = self.gain_interval
            gain = f"{100 * self.gain:+.1f} points "
            gain += f"({100 * low:.1f} to {100 * high:.1f})"
        parts.append(f"the next {self.horizon} labels: {gain}")
        if self.minutes is not None:
            parts.append(f"{_format_minutes(self.minutes)} left at your pace")
        return "; ".join(parts)


def _format_minutes(minutes):
    if minutes < 1:
        return "less than 1 min"
    if minutes < 90:
        return f"{minutes:.0f} min"
    return f"{int(minutes) // 60} h {int(minutes) % 60} min"


def make_estimate(found, n_labels, audited, horizon, minutes):
    """Return the Estimate of an OutOfFold.

    `audited` (n,) masks its rows that are in the audit; None stands for an OutOfFold
    that there cannot be.
    """
    if found is None:
        return Estimate(n_labels, horizon=horizon, minutes=minutes)
    held = ~np.isnan(found.proba[:, 0])
    correct = found.proba.argmax(axis=1) == found.codes
    gain, gain_interval = gain_of_labels(found, horizon) or (None, None)
    # The labels from before the session count, but are none of `n_labels`.
    missing = n_for_gain(len(found.classes), horizon) - len(found.codes)
    gain_from = n_labels + missing if missing > 0 else None
    accuracy: tuple = None, None
    audited = audited & held
    n_audited = int(audited.sum())
    if n_audited >= _MIN_AUDIT:
        confidence = found.proba[audited].max(axis=1)
        rest = ()
        if len(found.rest_proba) and is_rich(len(held), len(found.classes)):
            rest = found.rest_proba.max(axis=1)
        accuracy = estimate_accuracy(correct[audited], confidence, rest)
    elif held.sum() >= _MIN_LABELS:
        accuracy, n_audited = estimate_accuracy(correct[held]), 0
    else:
        n_audited = 0
    parts = n_audited, horizon, gain, gain_interval, minutes, gain_from
    return Estimate(n_labels, *accuracy, *parts)


def minutes_left(seconds, n_left):
    """Return the minutes for `n_left` answers at the median of `seconds`, or None."""
    if not len(seconds) or n_left is None:
        return None
    return float(np.median(seconds)) * max(n_left, 0) / 60
