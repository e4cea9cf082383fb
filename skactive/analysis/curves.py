"""Learning curves over runs, with bands."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._sklearn import validate_params
from ._groups import as_runs, known_points, name_metric
from ._intervals import find_band
from ._tables import format_number, format_table, make_frame

__all__ = ["LearningCurve", "align_runs", "band_width", "learning_curve"]


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Mean of a score over runs at each number of labels, and a band around it.

    Attributes
    ----------
    n_labeled : ndarray of shape (r,)
        Label counts.
    mean, std : ndarray of shape (r,)
        Over the runs; `std` divides by n - 1 and is NaN for a single run.
    low, high : ndarray of shape (r,)
        Limits of the band, point by point; NaN for a single run.
    scores : ndarray of shape (n_runs, r)
        The runs themselves.
    metric, method : str
    confidence : float
    """

    n_labeled: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    low: np.ndarray
    high: np.ndarray
    scores: np.ndarray = field(repr=False)
    metric: str
    method: str
    confidence: float

    @property
    def n_runs(self):
        """Number of runs."""
        return len(self.scores)

    def to_frame(self):
        """Tabulate the curve as a pandas.DataFrame, a row for each label count."""
        names = ("n_labeled", "mean", "std", "low", "high")
        return make_frame({name: getattr(self, name) for name in names})

    def __str__(self):
        rows = [
            [format_number(n, 8), *map(format_number, numbers)]
            for n, *numbers in zip(
                self.n_labeled, self.mean, self.low, self.high, strict=True
            )
        ]
        title = f"{self.metric}, {self.n_runs} runs, band: {self.method}"
        if self.method != "std":
            title += f" {self.confidence:.0%}"
        return f"{title}\n{format_table(['labels', 'mean', 'low', 'high'], rows)}"


@validate_params({"metric": [str, None]})
def align_runs(runs, metric=None, *, grid=None):
    """Bring the scores of runs to the same numbers of labels.

    Runs that asked alike keep their points. Where they differ, the grid is every
    count of any run within the range that all of them cover, and a run is
    interpolated linearly between its own points; nothing is extrapolated, so a run
    that ended early ends the grid. Points without a score are passed over.

    Parameters
    ----------
    runs : Run or sequence of Run
    metric : str or None, default=None
        None is the first metric of the first run.
    grid : array-like of shape (r,) or None, default=None
        Label counts to interpolate at, within the common range.

    Returns
    -------
    n_labeled : ndarray of shape (r,)
    scores : ndarray of shape (n_runs, r)

    Raises
    ------
    ValueError
        If no count is covered by all runs, or the grid leaves the common range.

    Examples
    --------
    >>> from skactive.analysis import align_runs
    >>> from skactive.runs import Run
    >>> runs = [
    ...     Run([{"asked": range(10), "scores": {"accuracy": 0.5}},
    ...          {"asked": range(20), "scores": {"accuracy": 0.75}}]),
    ...     Run([{"asked": range(20), "scores": {"accuracy": 0.625}}]),
    ... ]
    >>> align_runs(runs)
    (array([20]), array([[0.625],
           [0.625]]))
    """
    runs = as_runs(runs)
    metric = name_metric(runs, metric)
    points = [known_points(run, metric) for run in runs]
    start = max(n_labeled[0] for n_labeled, _ in points)
    stop = min(n_labeled[-1] for n_labeled, _ in points)
    if start > stop:
        raise ValueError(
            f"'runs' have no number of labels in common: one begins at {start} and "
            f"another ends at {stop}. Compare runs of one budget."
        )
    if grid is None:
        grid = np.unique(np.concatenate([n_labeled for n_labeled, _ in points]))
        grid = grid[(grid >= start) & (grid <= stop)]
    else:
        grid = _as_grid(grid, start, stop)
    scores = np.stack([np.interp(grid, *point) for point in points])
    return grid, scores


def _as_grid(grid, start, stop):
    grid = np.asarray(grid)
    if grid.ndim != 1 or grid.size == 0 or grid.dtype.kind not in "iuf":
        raise ValueError(
            "'grid' must be numbers of labels in one dimension, got an array of shape "
            f"{grid.shape} and dtype {grid.dtype}."
        )
    if not (np.diff(grid) > 0).all():
        raise ValueError("'grid' must increase from number to number.")
    if not (grid[0] >= start and grid[-1] <= stop):
        raise ValueError(
            f"'grid' must lie in [{start}, {stop}], the numbers of labels that all "
            f"runs cover; it goes from {grid[0]} to {grid[-1]}."
        )
    return grid


@validate_params(
    {
        "metric": [str, None],
        "method": [str],
        "random_state": ["random_state"],
    }
)
def learning_curve(
    runs,
    metric=None,
    *,
    grid=None,
    confidence=0.95,
    method="bootstrap",
    n_resamples=9999,
    random_state=0,
):
    """Average a score over runs at each number of labels.

    Parameters
    ----------
    runs : Run or sequence of Run
        Of one strategy, with several seeds. Brought together as by `align_runs`.
    metric : str or None, default=None
        None is the first metric of the first run.
    grid : array-like or None, default=None
        Label counts; None takes those of the runs.
    confidence : float, default=0.95
        Level of the band; "std" does not use it.
    method : {"bootstrap", "t", "std", "percentile"}, default="bootstrap"
        "bootstrap": interval of the mean from redrawing whole runs, by percentiles
        that are widened for few runs [1]_. "t": mean ± t s / sqrt(n), by Student's t
        with n - 1 degrees of freedom. "std": mean ± s, the spread of single runs.
        "percentile": the range of the middle `confidence` of the runs.
    n_resamples : int, default=9999
        Redrawn groups of the bootstrap.
    random_state : int, RandomState instance or None, default=0
        Of the bootstrap.

    Returns
    -------
    curve : LearningCurve

    Notes
    -----
    Bands hold point by point, not for a whole curve at once. With two to four runs
    the 95% bootstrap interval is the range from the worst to the best run, as nothing
    beyond can be redrawn; it then covers the mean in about 50, 75 and 88% of the
    cases. "t" is the choice for so few, if scores scatter normally.

    References
    ----------
    .. [1] T. C. Hesterberg, "What teachers should know about the bootstrap",
       The American Statistician 69, 2015.

    Examples
    --------
    >>> from skactive.analysis import learning_curve
    >>> from skactive.runs import Run
    >>> runs = [
    ...     Run([{"asked": range(10), "scores": {"accuracy": first}},
    ...          {"asked": range(10), "scores": {"accuracy": second}}])
    ...     for first, second in [(0.5, 0.7), (0.6, 0.8), (0.55, 0.9)]
    ... ]
    >>> print(learning_curve(runs, method="t"))
    accuracy, 3 runs, band: t 95%
    labels  mean     low    high
    10      0.55  0.4258  0.6742
    20       0.8  0.5516   1.048
    """
    runs = as_runs(runs)
    metric = name_metric(runs, metric)
    n_labeled, scores = align_runs(runs, metric, grid=grid)
    low, high = find_band(scores, method, confidence, n_resamples, random_state)
    single = len(runs) == 1
    return LearningCurve(
        n_labeled=n_labeled,
        mean=scores.mean(axis=0),
        std=np.full(len(n_labeled), np.nan) if single else scores.std(axis=0, ddof=1),
        low=low,
        high=high,
        scores=scores,
        metric=metric,
        method=method,
        confidence=confidence,
    )


@validate_params(
    {
        "metric": [str, None],
        "method": [str],
        "random_state": ["random_state"],
    }
)
def band_width(
    runs,
    metric=None,
    *,
    confidence=0.95,
    method="bootstrap",
    n_resamples=9999,
    random_state=0,
):
    """Mean width of the band over the rounds: how stable training is.

    The difference between the upper and the lower limit of the interval over runs,
    in the mean over the label counts [1]_. The paper does not say how its intervals
    were made; with its three runs, the bootstrap's are the range of the runs.

    Parameters
    ----------
    runs : sequence of Run
        At least two.
    metric, confidence, method, n_resamples, random_state
        As in `learning_curve`.

    Returns
    -------
    width : float
        In units of the score.

    References
    ----------
    .. [1] D. Grießhaber, J. Maucher, N. T. Vu, "Fine-tuning BERT for low-resource
       natural language understanding via active learning", COLING 2020, table 2.

    Examples
    --------
    >>> from skactive.analysis import band_width
    >>> from skactive.runs import Run
    >>> runs = [
    ...     Run([{"asked": range(10), "scores": {"accuracy": first}},
    ...          {"asked": range(10), "scores": {"accuracy": second}}])
    ...     for first, second in [(0.5, 0.7), (0.6, 0.8), (0.55, 0.9)]
    ... ]
    >>> round(band_width(runs), 6)  # the mean of 0.6 - 0.5 and 0.9 - 0.7
    0.15
    """
    runs = as_runs(runs)
    if len(runs) < 2:
        raise ValueError("'runs' must be at least two to have a band; got one.")
    curve = learning_curve(
        runs,
        metric,
        confidence=confidence,
        method=method,
        n_resamples=n_resamples,
        random_state=random_state,
    )
    return float(np.mean(curve.high - curve.low))
