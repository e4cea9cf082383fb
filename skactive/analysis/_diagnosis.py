"""The verdict on whether active learning pays, compared with random sampling."""

import math
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from scipy import stats
from scipy.integrate import trapezoid

from .._utils._format import plain
from .._utils._sklearn import Interval, StrOptions, validate_params
from ._curves import (
    Runs,
    align_runs,
    as_runs,
    bootstrap_difference,
    bootstrap_mean,
    check_options,
    learning_curve,
    name_metric,
    pair_runs,
    refuse_mixed,
    t_test,
)
from ._labels_needed import labels_to_reach

PAYS = "pays"
DOES_NOT_PAY = "does not pay"
UNDECIDED = "undecided: more seeds needed"
WHERE = {"curve": "over the curve", "end": "at the end"}
POWER = 0.8  # of the number of runs that would decide
FEWEST = 5  # runs; with fewer, all lie on one side of 0 too often by chance


@dataclass(frozen=True)
class Diagnosis:
    """A verdict on active learning, with its evidence; see `diagnose`."""

    verdict: str
    reason: str
    scoring: str
    baseline: str
    n_runs: int
    n_baseline_runs: int
    paired: bool
    labels: tuple
    criterion: str
    confidence_level: float
    worthwhile: float
    gap: float
    gap_interval: tuple | None
    gap_end: float
    gap_end_interval: tuple | None
    target: float
    labels_to_target: float | None
    baseline_labels_to_target: float
    labels_saved: float | None
    seeds_needed: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for `json.dumps`."""
        return plain(asdict(self))

    def __str__(self):
        start, stop = self.labels
        runs = f"{self.n_runs} runs against {self.n_baseline_runs}"
        lines = [
            f"Active learning {self.verdict}"
            if self.verdict != UNDECIDED
            else self.verdict.capitalize(),
            self.reason,
            f"{self.scoring} over {start} to {stop} labels, less {self.baseline}'s: "
            f"{self._with_interval(self.gap, self.gap_interval)}; {runs}"
            + (", paired by seed" if self.paired else ""),
            f"{self.scoring} at {stop} labels, less {self.baseline}'s: "
            f"{self._with_interval(self.gap_end, self.gap_end_interval)}",
            self._describe_target(),
        ]
        if self.seeds_needed is not None:
            lines.append(
                f"About {self.seeds_needed} runs would decide a gap like this in "
                f"{100 * POWER:.0f} % of cases"
            )
        return "\n".join(lines)

    def _with_interval(self, gap, interval):
        if interval is None:
            return f"{gap:+.4f}"
        low, high = interval
        level = f"{self.confidence_level:.0%}"
        return f"{gap:+.4f} ({level} interval {low:+.4f} to {high:+.4f})"

    def _describe_target(self):
        theirs = self.baseline_labels_to_target
        text = f"{self.baseline}'s last {self.scoring}, {self.target:.4f}: "
        if self.labels_to_target is None:
            return f"{text}not reached; {self.baseline} after {theirs:.0f} labels"
        saved = self.labels_saved
        verb = "saved" if saved >= 0 else "more"
        return (
            f"{text}after {self.labels_to_target:.0f} labels, {self.baseline} after "
            f"{theirs:.0f} ({abs(saved):.0f} {verb})"
        )


@validate_params(
    {
        "scoring": [str, None],
        "criterion": [StrOptions(set(WHERE))],
        "worthwhile": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }
)
def diagnose(
    runs: Runs,
    baseline_runs: Runs,
    *,
    scoring: str | None = None,
    criterion: Literal["curve", "end"] = "curve",
    worthwhile: float = 0.005,
    confidence_level: float = 0.95,
    n_resamples: int = 9999,
    random_state: int | np.random.RandomState | None = 0,
) -> Diagnosis:
    """Decide whether active learning pays, compared with a baseline.

    The gap is the difference of the mean scores over the curve (by the trapezoidal
    rule over the range of labels) or of the last scores. Its interval over runs decides.
    Each limit is the wider one of the bootstrap's and of Student's t (Welch's if the
    runs are not paired):

    - does not pay: the whole interval is below `worthwhile`;
    - pays: otherwise, if the whole interval is above 0;
    - undecided: otherwise, or if a side has fewer than five runs.

    Parameters
    ----------
    runs : sequence of Run
        Runs of one strategy with several seeds.
    baseline_runs : sequence of Run
        Runs of random sampling on the same data. If both groups have the same seeds in
        `info`, runs are compared in pairs, which gives a narrower interval.
    scoring : str or None, default=None
        A metric for which higher is better. Defaults to the first metric of the first
        run.
    criterion : {"curve", "end"}, default="curve"
        The gap that decides. Use "curve" if the number of labels is not known yet, and
        "end" if it is fixed. Both gaps are shown.
    worthwhile : float, default=0.005
        The smallest gain in the score that matters.
    confidence_level, n_resamples, random_state
        As in `learning_curve`.

    Returns
    -------
    diagnosis : Diagnosis
        `print` shows a summary, and `to_dict()` returns all values. The attributes are:

        - `verdict`: "pays", "does not pay" or "undecided: more seeds needed".
        - `reason`: the reason in a few words.
        - `gap`, `gap_interval`: mean score over the curve minus that of the baseline,
          and its interval. The interval is None for a single run.
        - `gap_end`, `gap_end_interval`: the same for the last score.
        - `target`: the last mean score of the baseline.
        - `labels_to_target`, `baseline_labels_to_target`: number of labels with which
          the mean curves first reach the target. None if they do not reach it.
        - `labels_saved`: the difference of the two, or None.
        - `seeds_needed`: estimated number of runs that decide with a probability
          (power) of about 80 % if gap and variation stay the same. None if the verdict
          is decided.
        - `labels`: the first and the last label count of the comparison.
        - `paired`: whether runs with the same seed were compared in pairs.
        - `n_runs`, `n_baseline_runs`, `scoring`, `baseline`, `criterion`,
          `confidence_level`, `worthwhile`.

    Notes
    -----
    The verdict is for this data, model and range of labels. The interval describes the
    variation between seeds, not between data sets. The best of several strategies looks
    better than it is: correct their tests with `holm`.

    At a confidence of 95%, the verdict for a strategy that equals the baseline should
    be "pays" in 2.5% of the cases. In a simulation with normally distributed
    differences it was in 2.5% with five pairs of runs and in 2.4% with six; with the
    bootstrap alone, in 4.1% and 3.4%. If single runs are far below the others, it was
    in 10% with five pairs.

    If runs are added until the verdict is decided, a false "pays" is more frequent than
    that. Choose the number of runs once, for example from `seeds_needed`, and run that
    many with new seeds. `seeds_needed` assumes that the gap is the measured one, which
    is uncertain: with smaller gaps, fewer than 80% of the comparisons are decided.

    Examples
    --------
    >>> from skactive.analysis import diagnose
    >>> from skactive.simulation import Run
    >>> def make(seed, *scores):
    ...     rounds = [{"queried": range(50), "scores": {"accuracy": s}} for s in scores]
    ...     return Run(rounds, info={"seed": seed, "strategy": "random"})
    >>> random = [make(s, 0.5 + s / 100, 0.6, 0.7) for s in range(6)]
    >>> margin = [make(s, 0.5 + s / 100, 0.7 + s / 50, 0.75) for s in range(6)]
    >>> print(diagnose(margin, random))
    Active learning pays
    The gain over the curve is above 0
    accuracy over 50 to 150 labels, less random's: +0.0875 (95% interval +0.0679 to +0.1071); 6 runs against 6, paired by seed
    accuracy at 150 labels, less random's: +0.0500 (95% interval +0.0500 to +0.0500)
    random's last accuracy, 0.7000: after 89 labels, random after 150 (61 saved)
    """  # noqa: E501
    runs, baseline_runs = as_runs(runs), as_runs(baseline_runs, "baseline_runs")
    check_options(confidence_level, n_resamples)
    members = [*runs, *baseline_runs]
    refuse_mixed(members, ["data"], "'runs' and 'baseline_runs'")
    scoring = name_metric(members, scoring)
    grid, scores = align_runs(members, scoring)
    ours, theirs = scores[: len(runs)], scores[len(runs) :]
    pairs = pair_runs(runs, baseline_runs)
    options = confidence_level, n_resamples, random_state
    gaps, intervals = _compare(
        summarize_curves(ours, grid), summarize_curves(theirs, grid), pairs, options
    )
    n = min(len(runs), len(baseline_runs))
    baseline = str(baseline_runs[0].info.get("strategy") or "the baseline")
    verdict, reason = _judge(n, intervals, criterion, worthwhile, baseline)
    judged = gaps[criterion], intervals[criterion]
    curve, baseline_curve = (
        learning_curve(group, scoring, grid=grid, method="std")
        for group in (runs, baseline_runs)
    )
    return Diagnosis(
        verdict=verdict,
        reason=reason,
        scoring=scoring,
        baseline=baseline,
        n_runs=len(runs),
        n_baseline_runs=len(baseline_runs),
        paired=pairs is not None,
        labels=(int(grid[0]), int(grid[-1])),
        criterion=criterion,
        confidence_level=float(confidence_level),
        worthwhile=float(worthwhile),
        gap=gaps["curve"],
        gap_interval=intervals["curve"],
        gap_end=gaps["end"],
        gap_end_interval=intervals["end"],
        **_count_labels(curve, baseline_curve),
        seeds_needed=_count_seeds(n, *judged, worthwhile, verdict, confidence_level),
    )


def summarize_curves(scores, grid):
    """Return the mean over the curve and the last score of each run, (n, 2)."""
    end = scores[:, -1]
    if len(grid) == 1:
        return np.stack([end, end], axis=1)
    area = trapezoid(scores, grid, axis=1) / (grid[-1] - grid[0])
    return np.stack([area, end], axis=1)


def _compare(ours, theirs, pairs, options):
    """Return the gaps over the curve and at the end, and their intervals."""
    gaps = ours.mean(axis=0) - theirs.mean(axis=0)
    gaps = dict(zip(WHERE, gaps.tolist(), strict=True))
    if min(len(ours), len(theirs)) < 2:
        return gaps, dict.fromkeys(WHERE)
    if pairs is not None:
        first, second = np.transpose(pairs)
        ours, theirs = ours[first], theirs[second]
        low, high = bootstrap_mean(ours - theirs, *options)
    else:
        low, high = bootstrap_difference(ours, theirs, *options)
    # The bootstrap is too narrow for few runs, Student's interval for skewed scores.
    result = t_test(ours, theirs, paired=pairs is not None)
    interval = result.confidence_interval(options[0])
    low, high = np.minimum(low, interval.low), np.maximum(high, interval.high)
    limits = zip(low.tolist(), high.tolist(), strict=True)
    return gaps, dict(zip(WHERE, limits, strict=True))


def _judge(n, intervals, criterion, worthwhile, baseline):
    if n < FEWEST:
        few = "one run is" if n == 1 else f"{n} runs are"
        return UNDECIDED, f"{few} too few: it takes {FEWEST} at least".capitalize()
    beside = "end" if criterion == "curve" else "curve"
    where, other = WHERE[criterion], WHERE[beside]
    (low, high), (other_low, other_high) = intervals[criterion], intervals[beside]
    if high < worthwhile or high < 0:
        if high < 0:
            reason = f"The score {where} lies below {baseline}'s"
        elif low > 0:
            reason = f"There is a gain {where}, but of less than {worthwhile:g}"
        else:
            reason = f"A gain {where} of {worthwhile:g} or more is ruled out"
        if other_low > worthwhile:
            reason += f"; yet there is a gain {other}"
        return DOES_NOT_PAY, reason
    if low > 0:
        reason = f"The gain {where} is above 0"
        if other_high < 0:
            reason += f"; yet there is a loss {other}"
        return PAYS, reason
    return UNDECIDED, f"The interval holds no gain as well as one of {worthwhile:g}"


def _count_seeds(n, gap, interval, worthwhile, verdict, confidence_level):
    """Estimate how many runs decide, as intervals shrink by 1 / sqrt(n)."""
    if verdict != UNDECIDED or n < FEWEST:
        return None
    low, high = interval
    distance = max(gap, worthwhile - gap)
    if distance <= 0:
        return None
    # With half the width as the distance, every second interval would decide.
    half = (high - low) / 2
    half *= 1 + stats.norm.isf(1 - POWER) / stats.norm.isf((1 - confidence_level) / 2)
    return max(n + 1, math.ceil(n * (half / distance) ** 2))


def _count_labels(curve, baseline_curve):
    """Count the labels until mean curves reach the baseline's last score."""
    target = float(baseline_curve.mean[-1])
    ours = labels_to_reach(curve, target, interpolate=True)
    theirs = float(labels_to_reach(baseline_curve, target, interpolate=True))
    return {
        "target": target,
        "labels_to_target": None if ours is None else float(ours),
        "baseline_labels_to_target": theirs,
        "labels_saved": None if ours is None else float(theirs - ours),
    }
