"""Draw the learning curves of a demo."""

from __future__ import annotations

from .analysis import learning_curve
from .plotting import ActiveLearningCurveDisplay
from .plotting._axes import import_figure
from .runs import Run

__all__ = ["draw"]


def draw(record, summary, path):
    """Draw the learning curves into a PNG file.

    Parameters
    ----------
    record : dict
        From :func:`skactive.demo.run_demo`.
    summary : dict
        From :func:`skactive.demo_report.summarize`.
    path : str or Path
        Where to write it.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    figure = import_figure()(figsize=(7, 4.5), layout="constrained")
    runs = {name: [] for name in summary["strategies"]}
    for run in record["runs"]:
        runs[run["strategy"]].append(Run(run["rounds"]))
    # The accuracy that the table counts labels to reach.
    target = summary["strategies"]["random"]["accuracy_mean"][-1]
    display = ActiveLearningCurveDisplay(
        curves={
            name: learning_curve(group, "accuracy", method="std")
            for name, group in runs.items()
        },
        reference={"random's last accuracy": target},
    )
    p = record["parameters"]
    axes = figure.subplots()
    display.plot(axes, score_name=f"accuracy on {p['test_size']:,} test texts")
    axes.set_title(
        f"{record['data']['name']}: {_reading(p['n_seeds'])}",
        fontsize="medium",
        parse_math=False,  # a file's name may hold dollar signs
    )
    figure.savefig(path, dpi=150, format="png")


def _reading(n_seeds):
    """Say what the curves are, since a figure travels without its table."""
    if n_seeds == 1:
        return "one seed, which shows no difference"
    return f"mean ± std of {n_seeds} seeds; no winner where bands overlap"
