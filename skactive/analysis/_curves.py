"""Learning curves over runs, with bands."""

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.integrate import trapezoid
from sklearn.utils import check_random_state

from .._utils._checks import check_share
from .._utils._chunks import chunk_size, chunks
from .._utils._format import format_number, format_table, make_frame
from .._utils._sklearn import MOST, StrOptions, check_count, validate_params
from ..simulation import Run

Runs = Run | Iterable[Run]
Groups = Mapping[str, Runs] | Runs
METHODS = ("bootstrap", "t", "std", "percentile")


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Mean score over runs at each number of labels, from :func:`learning_curve`.

    Parameters
    ----------
    n_labeled : ndarray of shape (r,)
        Label counts, or costs if `against` is "cost".
    mean, std : ndarray of shape (r,)
        Mean and standard deviation over the runs. `std` divides by n - 1 and is NaN for
        a single run.
    low, high : ndarray of shape (r,)
        Pointwise limits of the band, NaN for a single run.
    scores : ndarray of shape (n_runs, r)
        Scores of the runs.
    scoring, method : str
        The metric, and how the band was computed.
    confidence_level : float
        Level of the band.
    against : {"labels", "cost"}, default="labels"
        What the curve is drawn against.

    Examples
    --------
    >>> from skactive.analysis import learning_curve
    >>> from skactive.simulation import Run
    >>> runs = [Run([{"queried": [0], "scores": {"f1": s}}]) for s in (0.5, 0.7)]
    >>> learning_curve(runs).mean.round(3)
    array([0.6])
    """

    n_labeled: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    low: np.ndarray
    high: np.ndarray
    scores: np.ndarray = field(repr=False)
    scoring: str
    method: str
    confidence_level: float
    against: str = "labels"

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return len(self.scores)

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row for each label count or cost."""
        names = ("mean", "std", "low", "high")
        x = "cost" if self.against == "cost" else "n_labeled"
        columns = {name: getattr(self, name) for name in names}
        return make_frame({x: self.n_labeled, **columns})

    def __str__(self):
        rows = [
            [format_number(n, 8), *map(format_number, numbers)]
            for n, *numbers in zip(
                self.n_labeled, self.mean, self.low, self.high, strict=True
            )
        ]
        title = f"{self.scoring}, {self.n_runs} runs, band: {self.method}"
        if self.method != "std":
            title += f" {self.confidence_level:.0%}"
        return f"{title}\n{format_table([self.against, 'mean', 'low', 'high'], rows)}"


def align_runs(runs, scoring=None, *, grid=None, against="labels"):
    """Interpolate the scores of runs at the same numbers of labels.

    If the label counts of the runs are equal, the points are unchanged. Otherwise the
    grid holds every label count of any run within the range that all runs cover, and
    each run is interpolated linearly between its own points. Nothing is extrapolated,
    and points without a score are ignored. Costs differ between runs, so their grid
    has as many even steps as the longest run.

    Returns `n_labeled` (r,) or costs, `scores` (n_runs, r).
    """
    runs = as_runs(runs)
    scoring = name_metric(runs, scoring)
    points = [known_points(run, scoring, against) for run in runs]
    start = max(n_labeled[0] for n_labeled, _ in points)
    stop = min(n_labeled[-1] for n_labeled, _ in points)
    if start > stop:
        raise ValueError(
            f"'runs' must have {against} in common, got one run that begins at "
            f"{start} and one that ends at {stop}. Compare runs with the same budget."
        )
    if grid is None and against == "cost":
        counts = np.linspace(start, stop, max(len(costs) for costs, _ in points))
    elif grid is None:
        counts = np.unique(np.concatenate([n_labeled for n_labeled, _ in points]))
        counts = counts[(counts >= start) & (counts <= stop)]
    else:
        counts = _as_grid(grid, start, stop)
    scores = np.stack([np.interp(counts, *point) for point in points])
    return counts, scores


def _as_grid(grid, start, stop) -> NDArray[Any]:
    grid = np.asarray(grid)
    if grid.ndim != 1 or grid.size == 0 or grid.dtype.kind not in "iuf":
        raise ValueError(
            "'grid' must be label counts in one dimension, got an array of shape "
            f"{grid.shape} and dtype {grid.dtype}."
        )
    if not (np.diff(grid) > 0).all():
        raise ValueError(f"'grid' must be increasing, got {grid}.")
    if not (grid[0] >= start and grid[-1] <= stop):
        raise ValueError(
            f"'grid' must lie in [{start}, {stop}], the range that all runs cover, got "
            f"{grid[0]} to {grid[-1]}."
        )
    return grid


@validate_params(
    {
        "scoring": [str, None],
        "against": [StrOptions({"labels", "cost"})],
        "method": [StrOptions(set(METHODS))],
        "random_state": ["random_state"],
    }
)
def learning_curve(
    runs: Runs,
    scoring: str | None = None,
    *,
    against: Literal["labels", "cost"] = "labels",
    grid: "ArrayLike | None" = None,
    confidence_level: float = 0.95,
    method: Literal["bootstrap", "t", "std", "percentile"] = "bootstrap",
    n_resamples: int = 9999,
    random_state: int | np.random.RandomState | None = 0,
) -> LearningCurve:
    """Average a score over runs at each number of labels.

    Parameters
    ----------
    runs : Run or sequence of Run
        Runs of one strategy with several seeds.
    scoring : str or None, default=None
        Defaults to the first metric of the first run.
    against : {"labels", "cost"}, default="labels"
        Whether the curve shows the score at numbers of labels or at costs, as in
        `run.cost`.
    grid : array-like or None, default=None
        Label counts, or costs, to interpolate at, linearly. Defaults to every label
        count of any run within the range that all runs cover, and to even steps of the
        cost. Nothing is extrapolated, and points without a score are ignored.
    confidence_level : float, default=0.95
        Level of the band; "std" does not use it.
    method : {"bootstrap", "t", "std", "percentile"}, default="bootstrap"
        "bootstrap": interval of the mean, from percentiles of resampled runs that are
        widened for few runs [1]_. "t": mean ± t s / sqrt(n), by Student's t
        with n - 1 degrees of freedom. "std": mean ± s, the spread of single runs.
        "percentile": the range of the middle `confidence_level` of the runs.
    n_resamples : int, default=9999
        Number of bootstrap samples, at most 1,000,000.
    random_state : int, RandomState instance or None, default=0
        Seed of the bootstrap.

    Returns
    -------
    curve : LearningCurve
        `print` shows a table.

    Raises
    ------
    ValueError
        If no label count is covered by all runs, or the grid leaves the common range.

    Notes
    -----
    Bands are pointwise: they do not cover a whole curve at once. With two, three and
    four runs, the 95% bootstrap interval is the range from the worst to the best run,
    which covers the mean in about 50, 75 and 88% of the cases. For so few runs, "t" is
    preferable if scores are normally distributed.

    References
    ----------
    .. [1] T. C. Hesterberg, "What teachers should know about the bootstrap",
       The American Statistician 69, 2015.

    Examples
    --------
    >>> from skactive.analysis import learning_curve
    >>> from skactive.simulation import Run
    >>> runs = [
    ...     Run([{"queried": range(10), "scores": {"accuracy": first}},
    ...          {"queried": range(10), "scores": {"accuracy": second}}])
    ...     for first, second in [(0.5, 0.7), (0.6, 0.8), (0.55, 0.9)]
    ... ]
    >>> print(learning_curve(runs, method="t"))
    accuracy, 3 runs, band: t 95%
    labels  mean     low    high
    10      0.55  0.4258  0.6742
    20       0.8  0.5516   1.048
    """
    runs = as_runs(runs)
    scoring = name_metric(runs, scoring)
    n_labeled, scores = align_runs(runs, scoring, grid=grid, against=against)
    low, high = find_band(scores, method, confidence_level, n_resamples, random_state)
    return LearningCurve(
        n_labeled=n_labeled,
        mean=scores.mean(axis=0),
        std=spread(scores),
        low=low,
        high=high,
        scores=scores,
        scoring=scoring,
        method=method,
        confidence_level=confidence_level,
        against=against,
    )


@validate_params({"scoring": [str, None], "start": [Real, None], "stop": [Real, None]})
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


def spread(values):
    """Return the standard deviations over n rows with n - 1; NaN for a single row."""
    if len(values) == 1:
        return np.full(values.shape[1], np.nan)
    return values.std(axis=0, ddof=1)


def as_runs(runs, name="runs") -> list[Run]:
    """Return one run or several as a list."""
    if isinstance(runs, Run):
        return [runs]
    if isinstance(runs, str | bytes | Mapping) or not hasattr(runs, "__iter__"):
        raise TypeError(
            f"{name!r} must be a Run or a list of them, got a {type(runs).__name__}."
        )
    try:
        runs = list(runs)
    except TypeError as exc:  # an array without dimensions
        raise TypeError(
            f"{name!r} must be a Run or a list of them, got {runs!r}."
        ) from exc
    for i, run in enumerate(runs):
        if not isinstance(run, Run):
            raise TypeError(
                f"{name!r} must hold Run objects, got a {type(run).__name__} at {i}. "
                "Read a file with Run.from_json and a dict with Run.from_dict."
            )
    if not runs:
        raise ValueError(f"{name!r} is empty: pass at least one Run.")
    return runs


@validate_params({"groupby": [str, list, tuple]})
def group_runs(
    runs: "Groups", groupby: str | Sequence[str] = "strategy"
) -> dict[str, list[Run]]:
    """Group runs by their `info`.

    Parameters
    ----------
    runs : dict of str to list of Run, or sequence of Run
        A dict is returned as the groups.
    groupby : str or sequence of str, default="strategy"
        One or several keys of `info`.

    Returns
    -------
    groups : dict of str to list of Run
        The groups, in the order of their first run. If there are several keys, their
        values are joined by commas.

    Raises
    ------
    ValueError
        If a run does not hold a key, or a group mixes data sets.

    Examples
    --------
    >>> from skactive.analysis import group_runs
    >>> from skactive.simulation import Run
    >>> runs = [
    ...     Run(info={"strategy": name, "learner": "lr"})
    ...     for name in ("margin", "random", "margin")
    ... ]
    >>> {name: len(group) for name, group in group_runs(runs).items()}
    {'margin': 2, 'random': 1}
    >>> list(group_runs(runs, groupby=("learner", "strategy")))
    ['lr, margin', 'lr, random']
    """
    if isinstance(runs, Mapping):
        groups = {
            str(name): as_runs(group, f"runs[{name!r}]") for name, group in runs.items()
        }
        if not groups:
            raise ValueError("'runs' is empty: pass at least one Run.")
        return groups
    keys = _as_keys(groupby)
    groups = {}
    for i, run in enumerate(as_runs(runs)):
        missing = [key for key in keys if run.info.get(key) is None]
        if missing:
            raise ValueError(
                "'groupby' must name keys that all runs hold in `info`; the run at "
                f"{i} of 'runs' has no {missing[0]!r}. Pass a dict from name to runs."
            )
        name = ", ".join(str(run.info[key]) for key in keys)
        groups.setdefault(name, []).append(run)
    for name, group in groups.items():
        refuse_mixed(group, {"data"} - set(keys), f"'runs' under {name!r}")
    return groups


def refuse_mixed(runs, keys, subject):
    """Raise an error if runs differ in a key of `info`."""
    for key in keys:
        distinct = {json.dumps(run.info.get(key), default=str) for run in runs}
        if len(distinct) > 1:
            raise ValueError(
                f"{subject} differ in {key!r}: {', '.join(sorted(distinct))}. Their "
                "mean would mix these. Pass the runs of one, name several keys as "
                f"'groupby', such as ({key!r}, 'strategy'), or pass a dict from name "
                "to runs."
            )


def _as_keys(groupby):
    keys = (groupby,) if isinstance(groupby, str) else tuple(groupby)
    if not keys or not all(isinstance(key, str) for key in keys):
        raise ValueError(
            "'groupby' must be a key of `info`, or a sequence of several; got "
            f"{groupby!r}."
        )
    return keys


def sort_runs(runs, groupby="strategy"):
    """Group runs, and raise an error if a group mixes data sets or learners."""
    groups = group_runs(runs, groupby)
    keys = {"learner", "strategy", "protocol"} - set(_as_keys(groupby))
    for name, group in () if isinstance(runs, Mapping) else groups.items():
        refuse_mixed(group, sorted(keys), f"'runs' under {name!r}")
    return groups


def split_groups(groups, reference, argument):
    """Return the name and the runs of a reference, and the other groups.

    `reference` is the name of a group, or runs, whose name is None. `argument` is its
    name in error messages.
    """
    if not isinstance(reference, str):
        return None, as_runs(reference, argument), groups
    if reference not in groups:
        raise ValueError(
            f"{argument!r} must be one of {list(groups)}, or runs to compare with; got "
            f"{reference!r}."
        )
    others = {name: group for name, group in groups.items() if name != reference}
    if not others:
        raise ValueError(
            f"'runs' must hold a group other than the {argument} {reference!r}, got "
            "none."
        )
    return reference, groups[reference], others


def pair_runs(runs_a, runs_b):
    """Return the pairs of runs of two groups with the same data and seed, or None."""
    keys_a, keys_b = (
        [
            json.dumps([run.info.get("data"), run.info.get("seed")], sort_keys=True)
            if run.info.get("seed") is not None
            else None
            for run in runs
        ]
        for runs in (runs_a, runs_b)
    )
    index_of = {key: j for j, key in enumerate(keys_b)}
    unique = len(index_of) == len(keys_b) and len(set(keys_a)) == len(keys_a)
    if not unique or None in index_of or set(keys_a) != set(keys_b):
        return None
    return [(i, index_of[key]) for i, key in enumerate(keys_a)]


def name_metric(runs, scoring=None):
    """Return the metric: the given one, or the first of the first run."""
    if scoring is None:
        if not runs[0].score_names:
            raise ValueError(
                "'runs' hold no scores. Pass X_test and y_test when you simulate."
            )
        scoring = runs[0].score_names[0]
    for i, run in enumerate(runs):
        if scoring not in run.score_names:
            raise ValueError(
                f"'scoring' must be a metric of all runs, got {scoring!r}. The run at "
                f"{i} has {run.score_names}."
            )
    return scoring


def known_points(curve, scoring=None, against="labels"):
    """Read the label counts, or costs, at which a score is known.

    Returns `n_labeled` (p,), `scores` (p,).
    """
    if isinstance(curve, Run):
        scoring = name_metric([curve], scoring)
        n_labeled = curve.cost if against == "cost" else curve.n_labeled
        scores = curve.curve(scoring)
    elif hasattr(curve, "n_labeled") and hasattr(curve, "mean"):
        n_labeled, scores = np.asarray(curve.n_labeled), np.asarray(curve.mean)
    else:
        raise TypeError(
            f"expected a Run or a LearningCurve, got a {type(curve).__name__}. Make "
            "one curve of several runs with learning_curve(runs)."
        )
    is_scored = ~np.isnan(scores)
    if not is_scored.any():
        raise ValueError(
            f"the run {curve!r} has no scores. Pass X_test and y_test when you "
            "simulate."
        )
    n_labeled, scores = n_labeled[is_scored], scores[is_scored]
    steps = np.diff(n_labeled)
    if (steps < 0).any():
        raise ValueError(
            "'n_labeled' must not decrease from round to round, got "
            f"{n_labeled.tolist()}."
        )
    last = np.append(steps > 0, True)
    return n_labeled[last], scores[last]


def find_band(values, method, confidence_level, n_resamples, random_state):
    """Find the limits of a band around the mean over runs.

    Returns `low, high` (r,).
    """
    check_options(confidence_level, n_resamples)
    if len(values) == 1:
        return np.full((2, values.shape[1]), np.nan)
    if method == "bootstrap":
        return bootstrap_mean(values, confidence_level, n_resamples, random_state)
    tail = (1 - confidence_level) / 2
    if method == "percentile":
        return np.quantile(values, [tail, 1 - tail], axis=0)
    half = spread(values)
    if method == "t":
        half = stats.t.isf(tail, len(values) - 1) * half / np.sqrt(len(values))
    mean = values.mean(axis=0)
    return np.stack([mean - half, mean + half])


def bootstrap_mean(values, confidence_level, n_resamples, random_state):
    """Percentile bootstrap interval of the mean over runs.

    Whole runs are resampled, so the points of one curve stay together. The levels of
    the percentiles are those of `widened_tail`.

    Returns `low, high` (r,).
    """
    weights = draw_weights(len(values), n_resamples, check_random_state(random_state))
    return _percentiles([(weights, values)], confidence_level, len(values))


def bootstrap_difference(a, b, confidence_level, n_resamples, random_state):
    """Percentile bootstrap interval of the difference of two means over runs.

    Each group is resampled separately. The levels are widened as for the smaller one.

    Returns `low, high` (r,).
    """
    rng = check_random_state(random_state)
    parts = [
        (draw_weights(len(a), n_resamples, rng), a),
        (draw_weights(len(b), n_resamples, rng), -b),
    ]
    return _percentiles(parts, confidence_level, min(len(a), len(b)))


def t_test(a, b, paired):
    """Compare means over runs by Student's paired t test or Welch's t test of scipy."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        # scipy warns of scores that do not vary; their interval has no width.
        if paired:
            return stats.ttest_rel(a, b)
        return stats.ttest_ind(a, b, equal_var=False)


def widened_tail(confidence_level, n):
    """Probability to cut off at each end of a bootstrap distribution.

    The plain percentiles of the mean of n values are too narrow by a factor of
    sqrt((n - 1) / n), and use z instead of t. This corrects both.
    """
    t = stats.t.isf((1 - confidence_level) / 2, n - 1)
    return float(stats.norm.sf(t * np.sqrt(n / (n - 1))))


def draw_weights(n, n_resamples, rng):
    """Return the fraction of each of n runs in each bootstrap sample."""
    return rng.multinomial(n, np.full(n, 1 / n), size=n_resamples) / n


def _percentiles(parts, confidence_level, n):
    tail = widened_tail(confidence_level, n)
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


def check_options(confidence_level, n_resamples):
    """Raise an error if the confidence or the number of resamples is invalid."""
    check_share("confidence_level", confidence_level)
    check_count("n_resamples", n_resamples, most=MOST)
