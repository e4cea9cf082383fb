"""Summaries of an experiment as Markdown tables."""

import math

from .._utils._format import escape_markdown, format_table
from ._summaries import ALPHA


def format_report(summaries, pictures=None):
    """Return summaries of runs or of data sets, dicts by heading, as Markdown.

    `pictures` are lists of lines by heading.
    """
    parts, entries = [], []
    for heading, summary in summaries.items():
        parts.append(f"## {escape_markdown(heading)}")
        parts += _format_data_sets(summary) if "data" in summary else _format(summary)
        parts += (pictures or {}).get(heading, [])
        entries += summary["strategies"].values()
    if any("test" in entry for entry in entries):
        parts.append(_NOTES)
    return "\n\n".join(parts) + "\n"


_NOTES = (
    "In the tables of single data sets, *over the curve* is the mean score over the "
    "numbers of labels. Brackets hold the 95% interval of the difference over seeds, "
    "which is not corrected for the number of strategies. p (Holm) is that of a t test "
    "of the difference, paired by seed (Welch's where marked), and corrected for the "
    "strategies in the table. A large p does not show that strategies are equal: the "
    "interval says how far apart they can be."
)


def _format(summary):
    strategies, counts = summary["strategies"], summary["n_labeled"]
    shown = sorted({0, len(counts) // 2, len(counts) - 1})
    n_runs = sorted({entry["n_runs"] for entry in strategies.values()})
    runs = " to ".join(map(str, dict.fromkeys([n_runs[0], n_runs[-1]])))
    runs += " run" if runs == "1" else " runs"
    compared = any("test" in entry for entry in strategies.values())
    head = ["strategy", *(f"{counts[i]:g} labels" for i in shown), "over the curve"]
    if compared:
        head += [f"less {escape_markdown(summary['baseline'])}", "p (Holm)"]
    head += ["fit, processor s", "query, processor s"]
    rows = [_row(name, entry, shown, compared) for name, entry in strategies.items()]
    parts = [
        f"{escape_markdown(summary['scoring'])}, mean ± standard deviation of {runs}.",
        format_table(head, rows, "markdown"),
    ]
    if (encoding := summary["precomputation_seconds"]) > 0:
        once = f"Encoding took {encoding:.1f} processor s once for all runs."
        parts.append(f"{once} The rows do not include it.")
    settings = [f"{name} {value}" for name, value in summary["settings"].items()]
    if settings:
        parts.append(f"Of all runs: {escape_markdown('; '.join(settings))}.")
    return parts + _explain_aliases(summary)


def _row(name, entry, shown, compared):
    cells = [escape_markdown(name)]
    for i in shown:
        deviation = f" ± {entry['std'][i]:.3f}" if entry["n_runs"] > 1 else ""
        cells.append(f"{entry['mean'][i]:.3f}{deviation}")
    cells.append(f"{entry['area']:.3f}")
    if test := entry.get("test"):
        low, high = test["interval"]
        cells.append(f"{test['difference']:+.3f} [{low:+.3f}, {high:+.3f}]")
        mark = "" if test["test"].startswith("paired") else " (Welch)"
        cells.append(_format_p(test["p_holm"]) + mark)
    elif compared:
        cells += ["", ""]
    return [*cells, *(f"{entry['seconds'][phase]:.3f}" for phase in ("fit", "query"))]


def _format_p(p):
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _explain_aliases(summary):
    """Return sentences on strategies that are not in the table, if there are any."""
    same = [f"{alias} = {original}" for alias, original in summary["aliases"].items()]
    said = {
        "Counted once, as they made the same queries in all runs": same,
        "Left out, as they lack runs of a data set": summary.get("left_out"),
    }
    return [f"{why}: {escape_markdown(', '.join(x))}." for why, x in said.items() if x]


def _format_data_sets(summary):
    baseline, n = escape_markdown(summary["baseline"]), len(summary["data"])
    n_tests = sum("test" in entry for entry in summary["strategies"].values())
    head = ["strategy", "mean rank", *map(escape_markdown, summary["data"])]
    if n_tests:
        head += ["wins / ties / losses", f"median, less {baseline}", "p (Holm)"]
    rows = []
    for name, entry in summary["strategies"].items():
        row = [escape_markdown(name), f"{entry['mean_rank']:.2f}"]
        row += [f"{area:.3f}" for area in entry["areas"]]
        if test := entry.get("test"):
            row.append(" / ".join(str(entry[x]) for x in ("wins", "ties", "losses")))
            row += [f"{test['difference']:+.3f}", _format_p(test["p_holm"])]
        rows.append(row + [""] * (len(head) - len(row)))
    p = summary["friedman"]["p_value"]
    ranks = _CHANCE if p >= ALPHA else _NEMENYI
    parts = [
        f"{escape_markdown(summary['scoring'])}, mean over the curve and the runs.",
        format_table(head, rows, "markdown"),
        _FRIEDMAN.format(summary["friedman"]["statistic"], _format_p(p))
        + ranks.format(summary["critical_difference"]),
    ]
    # All n differences have one sign with a probability of 2 / 2^n.
    n_needed = 1 + math.ceil(math.log2(max(n_tests, 1) / ALPHA))
    if n_tests:
        few = _TOO_FEW.format(n, n_needed) if n < n_needed else ""
        parts.append(_WILCOXON.format(baseline, n_tests) + few)
    return parts + _explain_aliases(summary)


_FRIEDMAN = (
    "Rank 1 is the best. Friedman's test of the ranks, by permutations within data "
    "sets: chi-squared = {:.2f}, p = {}. "
)
_CHANCE = "Chance can explain the differences of the mean ranks."
_NEMENYI = (
    "Mean ranks that are {:.2f} apart or more differ significantly (Nemenyi, 5%, all "
    "pairs; approximate for fewer than ten data sets)."
)
_WILCOXON = (
    "Wins and losses are data sets whose own 95% interval leaves out 0, without a "
    "correction. p (Holm) is of Wilcoxon's signed-rank test over data sets against {}, "
    "corrected for the strategies compared, {} (Demšar 2006, JMLR 7)."
)
_TOO_FEW = " **With {} data sets it cannot be below 0.05: that takes {} or more.**"
