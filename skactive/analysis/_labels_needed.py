"""The labels that runs need for the score of a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._utils._chunks import chunk_size, chunks
from .._utils._format import format_number, format_table, make_frame
from .._utils._sklearn import validate_params
from ..simulation import Run
from ._curves import (
    Groups,
    LearningCurve,
    Runs,
    align_runs,
    check_options,
    draw_weights,
    known_points,
    name_metric,
    pair_runs,
    refuse_mixed,
    sort_runs,
    split_groups,
    widened_tail,
)


@validate_params({"score": [Real], "scoring": [str, None], "interpolate": ["boolean"]})
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
    labels, index = _find_crossing(n_labeled, scores, score)
    if index == len(n_labeled):
        return None
    if index == 0 or not interpolate:
        return n_labeled[index].item()
    return float(labels)


def _find_crossing(n_labeled, curve, score):
    """Find where one curve (r,) first reaches a score, see `_find_crossings`."""
    (labels,), (index,) = _find_crossings(n_labeled, curve[None], np.array([score]))
    return labels, index


def _find_crossings(n_labeled, curves, scores):
    """Find where curves (b, r) first reach scores (b,), interpolated linearly.

    Returns the label counts (b,), and the indices (b,) of the first points at or above
    the scores. A curve that does not reach its score has the last label count and the
    index r.
    """
    # The mean of 0.7, 0.8 and 0.9 is a rounding error below 0.8.
    scores = scores[:, np.newaxis]
    above = (curves >= scores) | np.isclose(curves, scores, rtol=1e-12, atol=1e-12)
    indices = np.where(above.any(axis=1), above.argmax(axis=1), len(n_labeled))
    labels = np.asarray(n_labeled, dtype=float)[np.minimum(indices, len(n_labeled) - 1)]
    between = np.flatnonzero((indices > 0) & (indices < len(n_labeled)))
    i = indices[between]
    low, high = curves[between, i - 1], curves[between, i]
    share = np.minimum((scores[between, 0] - low) / (high - low), 1)
    labels[between] = n_labeled[i - 1] + share * (n_labeled[i] - n_labeled[i - 1])
    return labels, indices


@dataclass(frozen=True, eq=False)
class LabelsNeeded:
    """Labels that each strategy needs, from :func:`labels_needed`.

    Parameters
    ----------
    names : list of str
        The s strategies, without the baseline.
    n_labeled : ndarray of shape (s,)
        Number of labels with which the mean curve first reaches the target.
    low, high : ndarray of shape (s,)
        Limits of its interval over seeds. NaN if a side has a single run.
    reached, low_reached, high_reached : ndarray of bool, shape (s,)
        Whether the target is reached. If False, the number is the last label count of
        the curve, a lower bound.
    first, last : ndarray of shape (s,)
        First and last label count of the mean curves. A number that equals `first` is
        an upper bound.
    run_labels, run_reached : list of ndarray of shape (n_runs,)
        For each strategy, the numbers of single runs, and whether they reach the
        target. A single run may reach it early by chance, so their mean is smaller than
        `n_labeled` if scores are noisy.
    paired : list of bool
        Whether the runs have the same seeds as those of the baseline.
    at, target : float
        Number of labels and mean score of the baseline.
    baseline, scoring : str
        Name of the baseline, and the metric.
    n_baseline_runs : int
        Number of runs of the baseline.
    confidence_level : float
        Level of the intervals.

    Examples
    --------
    >>> from skactive.analysis import labels_needed
    >>> from skactive.simulation import Run
    >>> def make(*scores):
    ...     return Run([{"queried": range(10), "scores": {"f1": s}} for s in scores])
    >>> runs = {"random": make(0.5, 0.6, 0.7), "margin": make(0.5, 0.7, 0.8)}
    >>> labels_needed(runs, "random", at=30).ratio.round(2)
    array([0.67])
    """

    names: list
    n_labeled: np.ndarray
    low: np.ndarray
    high: np.ndarray
    reached: np.ndarray
    low_reached: np.ndarray
    high_reached: np.ndarray
    first: np.ndarray
    last: np.ndarray
    run_labels: list = field(repr=False)
    run_reached: list = field(repr=False)
    paired: list
    at: float
    target: float
    baseline: str
    scoring: str
    n_baseline_runs: int
    confidence_level: float

    @property
    def ratio(self) -> NDArray[np.float64]:
        """`n_labeled` divided by `at`, (s,)."""
        return self.n_labeled / self.at

    @property
    def n_runs(self) -> list[int]:
        """Number of runs of each strategy."""
        return [len(reached) for reached in self.run_reached]

    @property
    def n_not_reached(self) -> list[int]:
        """Number of runs of each strategy that do not reach the score."""
        return [int((~reached).sum()) for reached in self.run_reached]

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row for each strategy."""
        names = ("n_labeled", "low", "high", "reached", "low_reached", "high_reached")
        return make_frame(
            {
                "strategy": self.names,
                **{name: getattr(self, name) for name in names},
                "ratio": self.ratio,
                "ratio_low": self.low / self.at,
                "ratio_high": self.high / self.at,
                "n_runs": self.n_runs,
                "n_not_reached": self.n_not_reached,
                "paired": self.paired,
            }
        )

    def __str__(self):
        title = (
            f"labels needed for the {self.scoring} of {self.baseline} with "
            f"{format_number(self.at, 8)} labels, {self.target:.4f}; "
            f"{self.confidence_level:.0%} interval"
        )
        header = ["", "labels", "low", "high", "ratio", "runs", "not reached"]
        rows = [
            [
                name,
                *self._format_labels(i, 1, 4),
                self._format_labels(i, self.at, 3)[0],
                str(self.n_runs[i]),
                str(self.n_not_reached[i]),
            ]
            for i, name in enumerate(self.names)
        ]
        return f"{title}\n{format_table(header, rows)}"

    def _format_labels(self, i, unit, digits):
        """Return number and limits of a strategy, with signs where they are bounds."""
        parts = (
            (self.n_labeled[i], self.reached[i]),
            (self.low[i], self.low_reached[i]),
            (self.high[i], self.high_reached[i]),
        )
        return [
            ("" if reached else ">")
            + ("<=" if reached and labels == self.first[i] else "")
            + format_number(labels / unit, digits)
            for labels, reached in parts
        ]


@validate_params(
    {
        "at": [Real],
        "scoring": [str, None],
        "groupby": [str, list, tuple],
        "random_state": ["random_state"],
    }
)
def labels_needed(
    runs: Groups,
    baseline: str | Runs,
    at: float,
    *,
    scoring: str | None = None,
    groupby: str | Sequence[str] = "strategy",
    confidence_level: float = 0.95,
    n_resamples: int = 9999,
    random_state: int | np.random.RandomState | None = 0,
) -> LabelsNeeded:
    """Compute the labels needed for the score of a baseline with `at` labels.

    The target is the mean score of the runs of the baseline with `at` labels. The
    result for a strategy is the number of labels at which its mean learning curve first
    reaches the target. Curves are interpolated linearly between their points, as in
    `learning_curve`, and never extrapolated. A curve may fall below the target
    afterwards.

    Parameters
    ----------
    runs : dict of str to list of Run, or sequence of Run
        Runs of one data set. A sequence is grouped by the `info` of the runs.
    baseline : str, Run or sequence of Run
        The name of one of the groups, or other runs.
    at : float
        Number of labels of the baseline, within the range that all its runs cover.
    scoring : str or None, default=None
        A metric for which higher is better. Defaults to the first metric of the first
        run.
    groupby : str or sequence of str, default="strategy"
        One or several keys of `info` that a sequence is grouped by.
    confidence_level, n_resamples, random_state
        As in `learning_curve`.

    Returns
    -------
    table : LabelsNeeded
        `print` shows a table with "<=" for a curve that is at the target from its first
        point on, and ">" for a curve that does not reach it.

    Raises
    ------
    ValueError
        If there is no group `baseline` or no other group, `at` is outside the curve of
        the baseline, the runs lack the metric, or the data sets differ.

    See Also
    --------
    labels_to_reach : The labels of one curve for a given score.

    Notes
    -----
    This is the data utilization of [1]_; their target is the mean over the last points
    of the curve of the baseline.

    The number is that of the mean curve, because a noisy curve of a single run reaches
    the target early by chance. The numbers of single runs are in the table.

    The bootstrap resamples whole runs of both sides, so that the interval includes the
    uncertainty of the target. If a strategy and the baseline have the same seeds in
    `info`, the same seeds are resampled in both. The limits are percentiles that are
    widened for few runs, as in `learning_curve`. In a simulation with normally
    distributed noise, the 95% interval covered the true number in 92 to 96% of the
    cases with 5 to 20 pairs of runs, and in 72 to 82% with three.

    References
    ----------
    .. [1] P. Melville, R. J. Mooney, "Diverse ensembles for active learning",
       ICML 2004.

    Examples
    --------
    >>> from skactive.analysis import labels_needed
    >>> from skactive.simulation import Run
    >>> def make(strategy, seed, *scores):
    ...     return Run(
    ...         [{"queried": range(50), "scores": {"accuracy": s}} for s in scores],
    ...         info={"strategy": strategy, "seed": seed},
    ...     )
    >>> runs = []
    >>> for seed, noise in enumerate([0.0, 0.01, 0.02, 0.01, 0.0]):
    ...     runs.append(make("random", seed, 0.5 + noise, 0.6, 0.7))
    ...     runs.append(make("margin", seed, 0.5, 0.7 - noise, 0.8 + noise))
    ...     runs.append(make("entropy", seed, 0.4, 0.5, 0.6 + noise))
    >>> print(labels_needed(runs, "random", 150))
    labels needed for the accuracy of random with 150 labels, 0.7000; 95% interval
             labels   low   high  ratio  runs  not reached
    margin    103.4   100  106.6   0.69     5            0
    entropy    >150  >150   >150     >1     5            5
    """
    check_options(confidence_level, n_resamples)
    name, baseline_runs, groups = split_groups(
        sort_runs(runs, groupby), baseline, "baseline"
    )
    members = [run for group in groups.values() for run in group]
    scoring = name_metric([*members, *baseline_runs], scoring)
    refuse_mixed([*members, *baseline_runs], ["data"], "'runs' and 'baseline'")
    theirs = _scores_at(baseline_runs, scoring, at)
    target = np.sort(theirs).mean()
    estimates, run_labels, run_reached, paired = [], [], [], []
    for group in groups.values():
        grid, ours = align_runs(group, scoring)
        pairs = pair_runs(group, baseline_runs)
        options = confidence_level, n_resamples, random_state
        estimates.append(_find_needed(grid, ours, theirs, target, pairs, options))
        labels, reached = _find_of_runs(group, scoring, target)
        run_labels.append(labels)
        run_reached.append(reached)
        paired.append(pairs is not None)
    return LabelsNeeded(
        names=list(groups),
        **{key: np.array([each[key] for each in estimates]) for key in estimates[0]},
        run_labels=run_labels,
        run_reached=run_reached,
        paired=paired,
        at=float(at),
        target=float(target),
        baseline=name or str(baseline_runs[0].info.get("strategy") or "the baseline"),
        scoring=scoring,
        n_baseline_runs=len(baseline_runs),
        confidence_level=float(confidence_level),
    )


def _scores_at(runs, scoring, at):
    """Return the scores of runs (n,) with `at` labels."""
    grid, scores = align_runs(runs, scoring)
    if not grid[0] <= at <= grid[-1]:
        raise ValueError(
            f"'at' must lie in [{grid[0]}, {grid[-1]}], the range that all runs of the "
            f"baseline cover, got {at!r}."
        )
    return np.array([np.interp(at, grid, row) for row in scores])


def _find_of_runs(runs, scoring, target):
    """Return the labels of each run (n,), and whether it reaches the target (n,)."""
    labels, reached = [], []
    for run in runs:
        n_labeled, scores = known_points(run, scoring)
        count, index = _find_crossing(n_labeled, scores, target)
        labels.append(count)
        reached.append(index < len(n_labeled))
    return np.array(labels), np.array(reached)


def _find_needed(grid, ours, theirs, target, pairs, options):
    """Return the labels of the mean curve and their limits, as attributes.

    `ours` (n, r) are curves at label counts `grid` (r,), `theirs` (m,) are the scores
    of the baseline.
    """
    # Sorted, so that results do not depend on the order of the runs.
    if pairs is not None:
        first, second = np.transpose(pairs)
        ours, theirs = ours[first], theirs[second]
        order = np.lexsort([*ours.T, theirs])
        ours, theirs = ours[order], theirs[order]
    else:
        ours, theirs = ours[np.lexsort(ours.T)], np.sort(theirs)
    labels, index = _find_crossing(grid, ours.mean(axis=0), target)
    result = {
        "n_labeled": labels,
        "reached": index < len(grid),
        "first": grid[0],
        "last": grid[-1],
    }
    n = min(len(ours), len(theirs))
    if n == 1:
        nothing = dict.fromkeys(["low", "high"], np.nan)
        return result | nothing | dict.fromkeys(["low_reached", "high_reached"], True)
    confidence_level, n_resamples, random_state = options
    counts, reached = _resample(
        grid, ours, theirs, pairs is not None, n_resamples, random_state
    )
    tail = widened_tail(confidence_level, n)
    low, high = np.quantile(counts, [tail, 1 - tail])
    missed = 1 - reached.mean()
    return result | {
        "low": low,
        "high": high,
        "low_reached": missed < 1 - tail,
        "high_reached": missed <= tail,
    }


def _resample(grid, ours, theirs, paired, n_resamples, random_state):
    """Return labels needed (b,) and whether they are reached (b,) in each sample."""
    rng = check_random_state(random_state)
    weights = draw_weights(len(ours), n_resamples, rng)
    theirs_weights = weights if paired else draw_weights(len(theirs), n_resamples, rng)
    targets = theirs_weights @ theirs
    counts = np.empty(n_resamples)
    reached = np.empty(n_resamples, dtype=bool)
    for rows in chunks(n_resamples, chunk_size(8 * len(grid))):
        counts[rows], indices = _find_crossings(
            grid, weights[rows] @ ours, targets[rows]
        )
        reached[rows] = indices < len(grid)
    return counts, reached
