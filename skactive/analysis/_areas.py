"""Summaries of a learning curve by one number."""

from numbers import Real

import numpy as np
from scipy.integrate import trapezoid

from .._utils._sklearn import validate_params
from ..simulation._run import Run
from ._curves import LearningCurve, known_points


@validate_params(
    {
        "scoring": [str, None],
        "start": [Real, None],
        "stop": [Real, None],
    }
)
def area_under_curve(
    curve: Run | LearningCurve,
    scoring: str | None = None,
    *,
    start: float | None = None,
    stop: float | None = None,
) -> float:
    """Compute the area under a learning curve, divided by the range of label counts.

    This is the mean score over the curve, by the trapezoidal rule. It depends on the
    range, so compare curves over the same range.

    Parameters
    ----------
    curve : Run or LearningCurve
        Points without a score are ignored.
    scoring : str or None, default=None
        Metric of a run. Defaults to the first.
    start, stop : float or None, default=None
        Label counts to integrate between, interpolated linearly. Default to the first
        and the last.

    Returns
    -------
    area : float

    Raises
    ------
    ValueError
        If the range is empty, or the curve does not cover it.

    Examples
    --------
    >>> from skactive.analysis import area_under_curve
    >>> from skactive.simulation import Run
    >>> run = Run([{"queried": range(10), "scores": {"accuracy": 0.5}},
    ...            {"queried": range(10), "scores": {"accuracy": 0.75}}])
    >>> area_under_curve(run)
    0.625
    """
    n_labeled, scores = known_points(curve, scoring)
    start = n_labeled[0] if start is None else start
    stop = n_labeled[-1] if stop is None else stop
    if not n_labeled[0] <= start < stop <= n_labeled[-1]:
        raise ValueError(
            "'start' and 'stop' must be two label counts within the curve, the smaller "
            f"one first; got {start} and {stop} for a curve from {n_labeled[0]} to "
            f"{n_labeled[-1]}."
        )
    inside = n_labeled[(n_labeled > start) & (n_labeled < stop)]
    grid = np.concatenate([[start], inside, [stop]])
    heights = np.interp(grid, n_labeled, scores)
    return float(trapezoid(heights, grid) / (stop - start))


@validate_params(
    {
        "score": [Real],
        "scoring": [str, None],
        "interpolate": ["boolean"],
    }
)
def labels_to_reach(
    curve: Run | LearningCurve,
    score: float,
    scoring: str | None = None,
    *,
    interpolate: bool = False,
) -> float | None:
    """Return the smallest number of labels with which a score is reached.

    Parameters
    ----------
    curve : Run or LearningCurve
        A single run may reach a score by chance, so a mean curve is preferable.
    score : float
        The score to reach. Higher is better.
    scoring : str or None, default=None
        Metric of a run. Defaults to the first.
    interpolate : bool, default=False
        Whether to interpolate linearly between two points. If False, the label count of
        a trained model is returned.

    Returns
    -------
    n_labeled : int, float or None
        None if the score is never reached.

    Examples
    --------
    >>> from skactive.analysis import labels_to_reach
    >>> from skactive.simulation import Run
    >>> run = Run([{"queried": range(10), "scores": {"accuracy": 0.5}},
    ...            {"queried": range(10), "scores": {"accuracy": 0.75}}])
    >>> labels_to_reach(run, 0.7), labels_to_reach(run, 0.7, interpolate=True)
    (20, 18.0)
    >>> labels_to_reach(run, 0.8) is None
    True
    """
    n_labeled, scores = known_points(curve, scoring)
    labels, places = find_crossings(n_labeled, scores[np.newaxis], np.array([score]))
    (i,) = places
    if i == len(n_labeled):
        return None
    if i == 0 or not interpolate:
        return n_labeled[i].item()
    return float(labels[0])


def find_crossings(n_labeled, curves, scores):
    """Find where curves (b, r) first reach scores (b,), interpolated linearly.

    Returns the label counts (b,), and the places (b,) of the first points at or above
    the scores. A curve that does not reach its score has the last label count and the
    place r.
    """
    # The mean of 0.7, 0.8 and 0.9 is a rounding error below 0.8.
    scores = scores[:, np.newaxis]
    above = (curves >= scores) | np.isclose(curves, scores, rtol=1e-12, atol=1e-12)
    places = np.where(above.any(axis=1), above.argmax(axis=1), len(n_labeled))
    labels = np.asarray(n_labeled, dtype=float)[np.minimum(places, len(n_labeled) - 1)]
    between = np.flatnonzero((places > 0) & (places < len(n_labeled)))
    i = places[between]
    low, high = curves[between, i - 1], curves[between, i]
    share = np.minimum((scores[between, 0] - low) / (high - low), 1)
    labels[between] = n_labeled[i - 1] + share * (n_labeled[i] - n_labeled[i - 1])
    return labels, places
