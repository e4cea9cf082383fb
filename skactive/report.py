"""Turn the runs of an experiment into a page: tables, verdicts, pictures, numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ._files import write_atomic
from .analysis import area_under_curve, diagnose, group_runs, ledger_table, welch_t
from .analysis import learning_curve as average
from .experiments import read_runs

__all__ = ["format_report", "summarize_runs", "write_report"]

BASELINE = "random"


def summarize_runs(runs, *, metric=None, baseline=BASELINE):
    """Compare the strategies of runs on one data set with a baseline.

    Parameters
    ----------
    runs : sequence of Run
        With several strategies and seeds, named in `info`.
    metric : str or None, default=None
        None is the first of the first run.
    baseline : str, default="random"
        The strategy to compare with, where it is among them.

    Returns
    -------
    summary : dict
        Plain values: "metric", "n_labeled" and, for each strategy by falling last
        score, its curve, the area under it, the seconds of each phase and, beside
        the baseline, Welch's test of the last score and the diagnosis.

    Examples
    --------
    >>> from skactive.report import summarize_runs
    >>> from skactive.runs import Run
    >>> runs = [
    ...     Run([{"asked": [0], "scores": {"accuracy": score + s / 100}}],
    ...         info={"strategy": name, "seed": s})
    ...     for name, score in [("random", 0.5), ("margin", 0.75)] for s in range(2)
    ... ]
    >>> list(summarize_runs(runs)["strategies"])
    ['margin', 'random']
    """
    groups = group_runs(runs)
    curves = {name: average(group, metric) for name, group in groups.items()}
    metric = next(iter(curves.values())).metric
    ledger = ledger_table(groups)
    strategies = {}
    for name in sorted(groups, key=lambda name: -curves[name].mean[-1]):
        curve, seconds = curves[name], ledger.mean[ledger.names.index(name)]
        # A single point is its own area.
        areas = [
            area_under_curve(run, metric) if len(run.rounds) > 1 else run.curve(metric)
            for run in groups[name]
        ]
        strategies[name] = {
            "n_runs": curve.n_runs,
            "n_labeled": curve.n_labeled.tolist(),
            "mean": curve.mean.tolist(),
            "std": curve.std.tolist(),
            "area": float(np.mean(areas)),
            "seconds": dict(zip(ledger.phases, seconds.tolist(), strict=True)),
        }
        if baseline in groups and name != baseline:
            beside = [curves[n].scores[:, -1] for n in (name, baseline)]
            if min(map(len, beside)) > 1:
                test = welch_t(*beside)
                strategies[name]["welch_t"] = {
                    "difference": test.difference,
                    "t": test.statistic,
                    "df": test.df,
                    "p_value": test.p_value,
                }
            found = diagnose(groups[name], groups[baseline], metric=metric)
            strategies[name]["diagnosis"] = found.to_dict()
    return {"metric": metric, "baseline": baseline, "strategies": strategies}


def format_report(summaries):
    """Write what was found as Markdown.

    Parameters
    ----------
    summaries : dict of str to dict
        By data set, from :func:`summarize_runs`.

    Returns
    -------
    text : str
    """
    parts = []
    for name, summary in summaries.items():
        strategies = summary["strategies"]
        counts = next(iter(strategies.values()))["n_labeled"]
        shown = sorted({0, len(counts) // 2, len(counts) - 1})
        n_runs = max(found["n_runs"] for found in strategies.values())
        head = ["strategy", *(f"{counts[i]} labels" for i in shown), "area"]
        head += [f"last less {summary['baseline']}", "Welch's t", "verdict", "seconds"]
        rows = [_row(name, found, shown) for name, found in strategies.items()]
        lines = [head, ["---"] * len(head), *rows]
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        parts.append(
            f"## {name}\n\n{summary['metric']}, mean ± standard deviation of up to "
            f"{n_runs} runs\n\n{table}"
        )
    return "\n\n".join(parts) + "\n"


def write_report(folder, *, metric=None):
    """Read an experiment's folder and write report.md, report.json and pictures.

    Parameters
    ----------
    folder : str or path-like
        Where :func:`skactive.experiments.run_experiment` wrote its runs.
    metric : str or None, default=None
        None is the first of each data set's first run.

    Returns
    -------
    text : str
        The report, in Markdown.
    written : list of Path

    Raises
    ------
    ValueError
        If the folder holds no runs, or no scores.
    ImportError
        If matplotlib is not installed.
    """
    folder = Path(folder)
    runs = read_runs(folder)
    if not runs:
        raise ValueError(
            f"'folder' must hold the runs of an experiment, got {str(folder)!r}, which "
            "holds none. Run `skactive simulate` or run_experiment(..., folder=) first."
        )
    data = {}
    for run in runs:
        data.setdefault(str(run.info.get("data", "data")), []).append(run)
    summaries = {
        name: summarize_runs(group, metric=metric) for name, group in data.items()
    }
    text = format_report(summaries)
    written = [folder / "report.md", folder / "report.json"]
    write_atomic(written[0], text.encode())
    record = json.dumps(summaries, indent=1, allow_nan=True)
    write_atomic(written[1], record.encode())
    for name, group in data.items():
        suffix = "" if len(data) == 1 else f"-{_as_filename(name)}"
        written += _draw(group, metric, folder, suffix)
    return text, written


def _row(name, found, shown):
    cells = [name]
    for i in shown:
        spread = f" ± {found['std'][i]:.3f}" if found["n_runs"] > 1 else ""
        cells.append(f"{found['mean'][i]:.3f}{spread}")
    cells.append(f"{found['area']:.3f}")
    test = found.get("welch_t")
    if test:
        cells.append(f"{test['difference']:+.3f}")
        cells.append(f"t {test['t']:.2f}, df {test['df']:.1f}, p {test['p_value']:.3f}")
    else:
        cells += ["", ""]
    cells.append(found.get("diagnosis", {}).get("verdict", ""))
    return [*cells, f"{sum(found['seconds'].values()):.1f}"]


def _draw(runs, metric, folder, suffix):
    """Draw the curves, the seconds and the overlap with the baseline."""
    from .plotting import ActiveLearningCurveDisplay, LedgerDisplay, OverlapDisplay
    from .plotting._axes import import_figure

    Figure = import_figure()
    groups = group_runs(runs)
    pictures = {
        "curves": lambda ax: ActiveLearningCurveDisplay.from_runs(
            groups, metric=metric, ax=ax
        ),
        "ledger": lambda ax: LedgerDisplay.from_runs(groups, ax=ax),
    }
    if BASELINE in groups and len(groups) > 1:
        pictures["overlap"] = lambda ax: OverlapDisplay.from_runs(
            groups, BASELINE, ax=ax
        )
    written = []
    for kind, draw in pictures.items():
        # Not through pyplot: a page needs no window and leaves none behind.
        figure = Figure(figsize=(8, 5), layout="constrained")
        draw(figure.subplots())
        written.append(folder / f"{kind}{suffix}.png")
        figure.savefig(written[-1], dpi=150)
    return written


def _as_filename(name):
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
