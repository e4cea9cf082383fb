"""The summary of an experiment: a table with tests and verdicts."""

from dataclasses import asdict
from typing import Any

from .._utils._format import escape_markdown, format_table, plain
from .._utils._sklearn import validate_params
from ._comparison import holm, paired_t, welch_t
from ._curves import (
    Groups,
    align_runs,
    area_under_curve,
    learning_curve,
    name_metric,
    pair_runs,
    sort_runs,
)
from ._diagnosis import UNDECIDED, diagnose
from ._timing import ledger_table

# Precomputation is shared by all runs, so it is not a cost of a strategy.
_OF_A_RUN = ("fit", "query", "final_training")


@validate_params({"scoring": [str, None], "baseline": [str]})
def summarize_runs(
    runs: Groups, *, scoring: str | None = None, baseline: str = "random"
) -> dict[str, Any]:
    """Compare strategies with a baseline, for one learner and one data set.

    Parameters
    ----------
    runs : dict of str to list of Run, or sequence of Run
        A sequence is grouped by the strategy in the `info` of each run.
    scoring : str or None, default=None
        Defaults to the first metric of the first run.
    baseline : str, default="random"
        Name of the strategy to compare with. Without such runs nothing is compared.

    Returns
    -------
    summary : dict
        Plain values, for a JSON file: "scoring", "baseline", "n_labeled" (label counts
        that all runs cover), "precomputation_seconds" (of the slowest run, because an
        experiment encodes once and every run records it) and "strategies", sorted by
        their last score in descending order. Each has "n_runs", "mean" and "std" at
        each count, "area" (the mean over the curve), "seconds" per run in the other
        phases and, except for the baseline, "diagnosis" and "test". The test compares
        the last scores: by a paired t test if the seeds are the same, and by Welch's
        otherwise. "p_holm" is corrected for the number of strategies.

    Raises
    ------
    ValueError
        If the runs hold no scores, or mix data sets or learners.

    See Also
    --------
    skactive.plotting.write_report : The summary as a table, with pictures.

    Examples
    --------
    >>> from skactive.analysis import summarize_runs
    >>> from skactive.simulation import Run
    >>> runs = {
    ...     name: [Run([{"queried": [0], "scores": {"f1": s}}]) for s in scores]
    ...     for name, scores in {"random": [0.5, 0.6], "margin": [0.7, 0.9]}.items()
    ... }
    >>> summary = summarize_runs(runs)
    >>> list(summary["strategies"]), summary["strategies"]["margin"]["mean"]
    (['margin', 'random'], [0.8])
    """
    groups = sort_runs(runs)
    members = [run for group in groups.values() for run in group]
    scoring = name_metric(members, scoring)
    grid, _ = align_runs(members, scoring)
    curves = {
        name: learning_curve(group, scoring, grid=grid)
        for name, group in groups.items()
    }
    ledger = ledger_table(groups, phases=_OF_A_RUN)
    strategies = {}
    for name in sorted(groups, key=lambda name: -curves[name].mean[-1]):
        curve, seconds = curves[name], ledger.mean[ledger.names.index(name)]
        entry = strategies[name] = {
            "n_runs": curve.n_runs,
            "mean": curve.mean.tolist(),
            "std": curve.std.tolist(),
            # A single point is its own area.
            "area": area_under_curve(curve) if len(grid) > 1 else float(curve.mean[0]),
            "seconds": dict(zip(ledger.phases, seconds.tolist(), strict=True)),
        }
        if baseline in groups and name != baseline:
            pair = groups[name], groups[baseline]
            entry["diagnosis"] = diagnose(*pair, scoring=scoring).to_dict()
            test = _test(*pair, curve.scores[:, -1], curves[baseline].scores[:, -1])
            if test is not None:
                entry["test"] = test
    _correct([entry["test"] for entry in strategies.values() if "test" in entry])
    return {
        "scoring": scoring,
        "baseline": baseline,
        "n_labeled": grid.tolist(),
        "precomputation_seconds": max(run.ledger["precomputation"] for run in members),
        "strategies": strategies,
    }


def _test(runs, baseline_runs, scores, baseline_scores):
    """Test the last scores, in pairs if the seeds are the same; None for one run."""
    if min(len(runs), len(baseline_runs)) < 2:
        return None
    pairs = pair_runs(runs, baseline_runs)
    if pairs is None:
        result = welch_t(scores, baseline_scores)
    else:
        first, second = map(list, zip(*pairs, strict=True))
        result = paired_t(scores[first], baseline_scores[second])
    return plain(asdict(result))


def _correct(tests):
    """Add the p-values that are corrected by Holm's procedure."""
    for test, p in zip(tests, holm([t["p_value"] for t in tests]), strict=True):
        test["p_holm"] = float(p)


def format_report(summaries):
    """Return results of `summarize_runs`, a dict by heading, as Markdown."""
    parts = [_format(heading, summary) for heading, summary in summaries.items()]
    return "\n\n".join(parts) + "\n"


def _format(heading, summary):
    strategies, counts = summary["strategies"], summary["n_labeled"]
    shown = sorted({0, len(counts) // 2, len(counts) - 1})
    baseline, scoring = (
        escape_markdown(summary["baseline"]),
        escape_markdown(summary["scoring"]),
    )
    n_runs = sorted({entry["n_runs"] for entry in strategies.values()})
    runs = " to ".join(map(str, dict.fromkeys([n_runs[0], n_runs[-1]])))
    compared = any("diagnosis" in entry for entry in strategies.values())
    head = ["strategy", *(f"{counts[i]:g} labels" for i in shown), "over the curve"]
    if compared:
        at_end = f"{counts[-1]:g} labels, less {baseline}"
        head += [at_end, "p", "p (Holm)", f"curve, less {baseline}", "verdict"]
    head += ["fit, s", "query, s"]
    rows = [_row(name, entry, shown, compared) for name, entry in strategies.items()]
    parts = [
        f"## {escape_markdown(heading)}",
        f"{scoring}, mean ± standard deviation of {runs} run{'s' * (runs != '1')}.",
        format_table(head, rows, "markdown"),
    ]
    if compared:
        parts.append(_explain(summary))
    encoding = summary["precomputation_seconds"]
    if encoding > 0:
        parts.append(
            f"Encoding took {encoding:.1f} s once for all runs. The rows do not "
            "include it."
        )
    return "\n\n".join(parts)


def _row(name, entry, shown, compared):
    cells = [escape_markdown(name)]
    for i in shown:
        spread = f" ± {entry['std'][i]:.3f}" if entry["n_runs"] > 1 else ""
        cells.append(f"{entry['mean'][i]:.3f}{spread}")
    cells.append(f"{entry['area']:.3f}")
    if compared:
        cells += _compare(entry)
    seconds = entry["seconds"]
    return [*cells, *(f"{seconds[p]:.1f}" for p in ("fit", "query"))]


def _compare(entry):
    """Return the cells of the test of the last score and of the verdict."""
    test, diagnosis = entry.get("test"), entry.get("diagnosis")
    cells = [""] * 5
    if test:
        cells[0] = _with_interval(test["difference"], test["interval"])
        mark = "" if test["test"].startswith("paired") else " (Welch)"
        cells[1] = f"{_format_p(test['p_value'])}{mark}"
        cells[2] = _format_p(test["p_holm"])
    if diagnosis:
        cells[3] = _with_interval(diagnosis["gap"], diagnosis["gap_interval"])
        verdict = diagnosis["verdict"]
        if verdict == UNDECIDED:
            verdict = verdict.partition(":")[0]
            verdict += f": {diagnosis['reason'][0].lower()}{diagnosis['reason'][1:]}"
        if diagnosis["seeds_needed"] is not None:
            verdict += (
                f"; about {diagnosis['seeds_needed']} seeds would decide (power 80 %)"
            )
        cells[4] = verdict
    return cells


def _with_interval(gap, interval):
    if interval is None:
        return f"{gap:+.3f}"
    return f"{gap:+.3f} [{interval[0]:+.3f}, {interval[1]:+.3f}]"


def _format_p(p):
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _explain(summary):
    entries = summary["strategies"].values()
    baseline = escape_markdown(summary["baseline"])
    tests = [f["test"] for f in entries if "test" in f]
    diagnosis = next(f["diagnosis"] for f in entries if "diagnosis" in f)
    text = (
        f"The verdict compares the mean score over the curve with that of {baseline}, "
        f"with a {diagnosis['confidence_level']:.0%} interval over runs: a strategy "
        "*pays* if the interval is above 0, and *does not pay* if the interval is "
        f"below {diagnosis['worthwhile']:g}. It is not corrected for the number of "
        "strategies."
    )
    if not tests:
        return text
    names = {test["test"] for test in tests}
    kinds = {
        "paired t test": "paired by seed",
        "Welch's t test": "Welch's if the seeds differ (marked)",
    }
    used = " or ".join(kind for name, kind in kinds.items() if name in names)
    number = f"{len(tests)} strateg{'y' if len(tests) == 1 else 'ies'}"
    return (
        f"p is the p-value of a t test of the last score, {used}; p (Holm) is "
        f"corrected for the {number} compared in this table. Brackets hold 95% "
        f"intervals. {text}"
    )
