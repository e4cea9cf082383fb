"""Scores and seconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils._format import format_number, format_table, make_frame
from .._utils._sklearn import validate_params
from ..simulation._run import Run
from ._curves import Groups, as_runs, group_runs, name_metric

PHASES = ("precomputation", "fit", "query")


@validate_params({"scoring": [str, None], "phases": [str, list, tuple]})
def score_against_time(
    run: Run, scoring: str | None = None, *, phases: Sequence[str] = ("fit",)
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the score of each round, and the seconds until its model was trained.

    Parameters
    ----------
    run : Run
        The run to read.
    scoring : str or None, default=None
        Defaults to the first metric of the run.
    phases : sequence of str, default=("fit",)
        The phases whose seconds are counted. "fit" and "query" are summed
        over the rounds; "precomputation" is counted in full from the first round.

    Returns
    -------
    seconds : ndarray of shape (p,)
        Seconds at each round with a score.
    scores : ndarray of shape (p,)
        The scores.

    Examples
    --------
    >>> from skactive.analysis import score_against_time
    >>> from skactive.simulation import Run
    >>> run = Run([
    ...     {"queried": [0], "scores": {"accuracy": 0.5}, "fit_seconds": 2.0},
    ...     {"queried": [1], "scores": {"accuracy": 0.75}, "fit_seconds": 3.0},
    ... ])
    >>> score_against_time(run)
    (array([2., 5.]), array([0.5 , 0.75]))
    """
    (run,) = as_runs(run, "run")
    phases = _as_phases(phases, PHASES)
    scores = run.curve(name_metric([run], scoring))
    seconds = np.zeros(len(run.rounds))
    if "fit" in phases:
        seconds += np.cumsum([record["fit_seconds"] for record in run.rounds])
    if "query" in phases:
        seconds += np.cumsum([record["query_seconds"] for record in run.rounds])
    if "precomputation" in phases:
        seconds += run.ledger["precomputation"]
    known = ~np.isnan(scores)
    return seconds[known], scores[known]


def _as_phases(phases, known):
    listed = list(phases) if isinstance(phases, list | tuple | set) else [phases]
    if isinstance(phases, str) or not all(phase in known for phase in listed):
        raise ValueError(
            f"'phases' must be a sequence of names among {list(known)}, got {phases!r}."
        )
    return listed


@dataclass(frozen=True, eq=False)
class EqualTime:
    """Score of the best model within each time budget.

    Attributes
    ----------
    names : list of str
        Strategies or protocols.
    seconds : ndarray of shape (t,)
        Time budgets.
    scores : ndarray of shape (s, t)
        The score of the best model of a run within each budget, averaged over runs. NaN
        if a run has no model yet.
    scoring : str

    Examples
    --------
    Which of two ways to train has the better model after 4 seconds, and after 8?

    >>> from skactive.analysis import equal_time
    >>> from skactive.simulation import Run
    >>> def make(seconds, *scores):
    ...     return Run([{"queried": [i], "scores": {"accuracy": score},
    ...                  "fit_seconds": seconds} for i, score in enumerate(scores)])
    >>> runs = {"all layers": [make(4, 0.7, 0.9)], "last 3": [make(2, 0.6, 0.8, 0.85)]}
    >>> table = equal_time(runs, [4, 8])
    >>> [table.names[i] for i in table.scores.argmax(axis=0)]
    ['last 3', 'all layers']
    """

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
    {
        "scoring": [str, None],
        "chosen_by": [str, None],
        "phases": [str, list, tuple],
    }
)
def equal_time(
    runs: Groups,
    seconds: ArrayLike | None = None,
    scoring: str | None = None,
    *,
    chosen_by: str | None = None,
    phases: Sequence[str] = ("fit",),
) -> EqualTime:
    """Compare strategies or protocols at equal time.

    Parameters
    ----------
    runs : dict of str to list of Run, or sequence of Run
        A sequence is grouped by the strategy in the `info` of each run.
    seconds : array-like of shape (t,) or None, default=None
        Time budgets. Defaults to five budgets, evenly spaced up to the time of the
        slowest run.
    scoring : str or None, default=None
        Defaults to the first metric of the first run.
    chosen_by : str or None, default=None
        Metric that selects the best model so far, such as the score on validation
        texts; among equal models, the first one. Defaults to `scoring`, which is
        optimistic if that is a test score.
    phases : sequence of str, default=("fit",)
        The phases whose seconds are counted, as in `score_against_time`.

    Returns
    -------
    table : EqualTime
        A run that ended keeps its best model for all larger budgets.

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
    groups = group_runs(runs)
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
    known = ~np.isnan(merits)
    return times[known], scores[known], merits[known]


def _best_within(budgets, times, scores, merits):
    """Return the score of the model with the most merit within each budget."""
    before = np.maximum.accumulate(np.concatenate([[-np.inf], merits]))[:-1]
    places = np.where(merits > before, np.arange(len(merits)), 0)
    best = np.concatenate([[np.nan], scores[np.maximum.accumulate(places)]])
    return best[np.searchsorted(times, budgets, side="right")]


@dataclass(frozen=True, eq=False)
class LedgerTable:
    """Seconds of each phase, for each strategy.

    Attributes
    ----------
    names : list of str
        Strategies or protocols.
    phases : list of str
        Some of "precomputation", "fit", "query", "final_training".
    mean, std : ndarray of shape (s, n_phases)
        Seconds per run. `std` divides by n - 1 and is NaN for a single run.
    n_runs : list of int

    Examples
    --------
    >>> from skactive.analysis import ledger_table
    >>> from skactive.simulation import Run
    >>> run = Run([{"queried": [0], "fit_seconds": 2.0, "query_seconds": 0.5}],
    ...           ledger={"precomputation": 30.0}, info={"strategy": "margin"})
    >>> table = ledger_table([run])
    >>> for phase, seconds in zip(table.phases, table.mean[0]):
    ...     print(f"{phase}: {seconds:g} s")
    precomputation: 30 s
    fit: 2 s
    query: 0.5 s
    final_training: 0 s
    """

    names: list
    phases: list
    mean: np.ndarray
    std: np.ndarray
    n_runs: list

    @property
    def total(self) -> NDArray[np.float64]:
        """Mean seconds of a run in these phases, ndarray of shape (s,)."""
        return self.mean.sum(axis=1)

    def to_frame(self) -> Any:
        """Return the means as a pandas.DataFrame with a row per strategy."""
        columns = dict(zip(self.phases, self.mean.T, strict=True))
        return make_frame({"strategy": self.names, **columns, "total": self.total})

    def __str__(self):
        header = ["seconds", *self.phases, "total", "runs"]
        rows = [
            [name, *map(format_number, (*means, total)), str(n)]
            for name, means, total, n in zip(
                self.names, self.mean, self.total, self.n_runs, strict=True
            )
        ]
        return format_table(header, rows)


@validate_params({"phases": [str, list, tuple, None]})
def ledger_table(runs: Groups, *, phases: Sequence[str] | None = None) -> LedgerTable:
    """Compute the mean seconds of each phase of the loop.

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

    Examples
    --------
    >>> from skactive.analysis import ledger_table
    >>> from skactive.simulation import Run
    >>> run = Run([{"queried": [0], "fit_seconds": 2.0, "query_seconds": 0.5}],
    ...           ledger={"precomputation": 30.0}, info={"strategy": "margin"})
    >>> print(ledger_table([run]))
    seconds  precomputation  fit  query  final_training  total  runs
    margin               30    2    0.5               0   32.5     1
    """
    groups = group_runs(runs)
    known = list(next(iter(groups.values()))[0].ledger)
    phases = known if phases is None else _as_phases(phases, known)
    spent = [
        np.array([[run.ledger[phase] for phase in phases] for run in group])
        for group in groups.values()
    ]
    return LedgerTable(
        names=list(groups),
        phases=phases,
        mean=np.stack([seconds.mean(axis=0) for seconds in spent]),
        std=np.stack(
            [
                seconds.std(axis=0, ddof=1)
                if len(seconds) > 1
                else np.full(len(phases), np.nan)
                for seconds in spent
            ]
        ),
        n_runs=[len(seconds) for seconds in spent],
    )
