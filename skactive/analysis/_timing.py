"""Scores and seconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils._format import format_number, format_table, make_frame
from .._utils._sklearn import validate_params
from ._curves import Groups, name_metric, sort_runs, spread

PHASES = ("precomputation", "fit", "query")


def score_against_time(run, scoring=None, *, phases=("fit",)):
    """Return the seconds (p,) until the models of the rounds are trained, and scores.

    Rounds without a score are left out. The seconds of "fit" and "query" are summed
    over the rounds; "precomputation" is counted in full from the first round.
    """
    phases = _as_phases(phases, PHASES)
    scores = run.curve(name_metric([run], scoring))
    seconds = np.zeros(len(run.rounds))
    for phase in {"fit", "query"} & set(phases):
        seconds += np.cumsum([record[f"{phase}_seconds"] for record in run.rounds])
    if "precomputation" in phases:
        seconds += run.ledger["precomputation"]
    is_scored = ~np.isnan(scores)
    return seconds[is_scored], scores[is_scored]


def _as_phases(phases, allowed):
    listed = list(phases) if isinstance(phases, list | tuple | set) else [phases]
    if isinstance(phases, str) or not all(phase in allowed for phase in listed):
        raise ValueError(
            f"'phases' must be a sequence of names among {list(allowed)}, "
            f"got {phases!r}."
        )
    return listed


@dataclass(frozen=True, eq=False)
class EqualTime:
    """Score of the best model within each time budget; see `equal_time`."""

    names: list
    seconds: np.ndarray
    scores: np.ndarray
    scoring: str

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row per budget and a column per name."""
        columns = dict(zip(self.names, self.scores, strict=True))
        return make_frame({"seconds": self.seconds, **columns})

    def __str__(self):
        header = [self.scoring, *(f"{format_number(s, 6)} s" for s in self.seconds)]
        rows = [
            [name, *map(format_number, scores)]
            for name, scores in zip(self.names, self.scores, strict=True)
        ]
        return format_table(header, rows)


@validate_params(
    {"scoring": [str, None], "chosen_by": [str, None], "phases": [str, list, tuple]}
)
def equal_time(
    runs: "Groups",
    seconds: "ArrayLike | None" = None,
    scoring: str | None = None,
    *,
    chosen_by: str | None = None,
    phases: Sequence[str] = ("fit",),
) -> EqualTime:
    """Compare strategies or protocols at equal processor time.

    Parameters
    ----------
    runs : dict of str to list of Run, or sequence of Run
        A sequence is grouped by the strategy in the `info` of each run.
    seconds : array-like of shape (t,) or None, default=None
        Time budgets, as processor seconds. Defaults to five budgets, evenly spaced up
        to the time of the slowest run.
    scoring : str or None, default=None
        Defaults to the first metric of the first run.
    chosen_by : str or None, default=None
        Metric that selects the best model so far, such as the score on validation
        texts; among equal models, the first one. Defaults to `scoring`, which is
        optimistic if that is a test score.
    phases : sequence of str, default=("fit",)
        The phases whose seconds are counted. "fit" and "query" are summed over the
        rounds; "precomputation" is counted in full from the first round.

    Returns
    -------
    table : EqualTime
        `print` shows a table, and `to_frame()` returns a data frame. The attributes are
        `names` (the s strategies), `seconds` (t,), `scoring`, and `scores` (s, t): the
        score of the best model of a run within each budget, averaged over runs; NaN if
        a run has no model yet. A run that ended keeps its best model for all larger
        budgets.

    Examples
    --------
    >>> from skactive.analysis import equal_time
    >>> from skactive.simulation import Run
    >>> def make(seconds, *scores):
    ...     return Run([{"queried": [i], "scores": {"accuracy": score},
    ...                  "fit_seconds": seconds} for i, score in enumerate(scores)])
    >>> runs = {"all layers": [make(4, 0.7, 0.9)], "last 3": [make(2, 0.6, 0.8, 0.85)]}
    >>> print(equal_time(runs, [2, 4, 8]))
    accuracy    2 s  4 s   8 s
    all layers    -  0.7   0.9
    last 3      0.6  0.8  0.85
    """
    groups = sort_runs(runs)
    members = [run for group in groups.values() for run in group]
    scoring = name_metric(members, scoring)
    chosen_by = scoring if chosen_by is None else name_metric(members, chosen_by)
    curves = {
        name: [_candidates(run, scoring, chosen_by, phases) for run in group]
        for name, group in groups.items()
    }
    spent = [
        times[-1] if times.size else 0.0
        for group in curves.values()
        for times, *_ in group
    ]
    if seconds is None:
        seconds = np.linspace(0, max(spent), 6)[1:]
    try:
        seconds = np.atleast_1d(np.asarray(seconds, dtype=float))
    except (TypeError, ValueError) as exc:
        raise TypeError(
            f"'seconds' must be time budgets, numbers of at least 0; got {seconds!r}."
        ) from exc
    if seconds.ndim != 1 or not (seconds >= 0).all():
        raise ValueError(
            f"'seconds' must be time budgets of at least 0, got {seconds}."
        )
    scores = [
        np.mean([_best_within(seconds, *curve) for curve in group], axis=0)
        for group in curves.values()
    ]
    return EqualTime(list(groups), seconds, np.stack(scores), scoring)


def _candidates(run, scoring, chosen_by, phases):
    """Return seconds, scores and merits of the models that have both."""
    times, scores = score_against_time(run, scoring, phases=phases)
    merits = run.curve(chosen_by)[~np.isnan(run.curve(scoring))]
    has_merit = ~np.isnan(merits)
    return times[has_merit], scores[has_merit], merits[has_merit]


def _best_within(budgets, times, scores, merits):
    """Return the score of the model with the most merit within each budget."""
    before = np.maximum.accumulate(np.concatenate([[-np.inf], merits]))[:-1]
    indices = np.where(merits > before, np.arange(len(merits)), 0)
    best = np.concatenate([[np.nan], scores[np.maximum.accumulate(indices)]])
    return best[np.searchsorted(times, budgets, side="right")]


@dataclass(frozen=True, eq=False)
class LedgerTable:
    """Processor seconds of each phase, for each strategy, from :func:`ledger_table`.

    Parameters
    ----------
    names : list of str
        The s strategies.
    phases : list of str
        The p phases.
    mean, std : ndarray of shape (s, p)
        Seconds per run. `std` divides by n - 1 and is NaN for a single run.
    n_runs : list of int
        Number of runs of each strategy.

    Examples
    --------
    >>> from skactive.analysis import ledger_table
    >>> from skactive.simulation import Run
    >>> run = Run([{"queried": [0], "fit_seconds": 2.0}], info={"strategy": "margin"})
    >>> ledger_table([run], phases=["fit"]).total
    array([2.])
    """

    names: list
    phases: list
    mean: np.ndarray
    std: np.ndarray
    n_runs: list

    @property
    def total(self) -> NDArray[np.float64]:
        """Mean seconds of a run in these phases, (s,)."""
        return self.mean.sum(axis=1)

    def to_frame(self) -> Any:
        """Return the means as a pandas.DataFrame with a row per strategy."""
        columns = dict(zip(self.phases, self.mean.T, strict=True))
        return make_frame({"strategy": self.names, **columns, "total": self.total})

    def __str__(self):
        header = ["processor seconds", *self.phases, "total", "runs"]
        rows = [
            [name, *map(format_number, (*means, total)), str(n)]
            for name, means, total, n in zip(
                self.names, self.mean, self.total, self.n_runs, strict=True
            )
        ]
        return format_table(header, rows)


@validate_params({"phases": [str, list, tuple, None]})
def ledger_table(runs: "Groups", *, phases: Sequence[str] | None = None) -> LedgerTable:
    """Compute the mean processor seconds of each phase of the loop.

    Parameters
    ----------
    runs : dict of str to list of Run, or sequence of Run
        A sequence is grouped by the strategy in the `info` of each run.
    phases : sequence of str or None, default=None
        The phases to tabulate. Defaults to all four. Omit "precomputation" if the runs
        share it, because each run counts it in full.

    Returns
    -------
    table : LedgerTable
        `print` shows a table.

    Examples
    --------
    >>> from skactive.analysis import ledger_table
    >>> from skactive.simulation import Run
    >>> run = Run([{"queried": [0], "fit_seconds": 2.0, "query_seconds": 0.5}],
    ...           ledger={"precomputation": 30.0}, info={"strategy": "margin"})
    >>> print(ledger_table([run]))
    processor seconds  precomputation  fit  query  final_training  total  runs
    margin                         30    2    0.5               0   32.5     1
    """
    groups = sort_runs(runs)
    all_phases = list(next(iter(groups.values()))[0].ledger)
    phases = all_phases if phases is None else _as_phases(phases, all_phases)
    spent = [
        np.array([[run.ledger[phase] for phase in phases] for run in group])
        for group in groups.values()
    ]
    return LedgerTable(
        names=list(groups),
        phases=phases,
        mean=np.stack([seconds.mean(axis=0) for seconds in spent]),
        std=np.stack([spread(seconds) for seconds in spent]),
        n_runs=[len(seconds) for seconds in spent],
    )
