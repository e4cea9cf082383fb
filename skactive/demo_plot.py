"""Draw the learning curves of a demo."""

from __future__ import annotations

from itertools import cycle

import numpy as np

__all__ = ["draw", "import_figure"]

# Okabe and Ito's palette: told apart by colour-blind readers. Line styles and markers
# do the same in a print without colours.
_RANDOM_STYLE = {"color": "#555555", "linestyle": "--", "marker": "o"}
_STYLES = [
    {"color": color, "linestyle": line, "marker": marker}
    for color, line, marker in (
        ("#0072B2", "-", "s"),
        ("#D55E00", "-.", "^"),
        ("#009E73", ":", "D"),
        ("#CC79A7", "-", "v"),
        ("#E69F00", "-.", "P"),
        ("#56B4E9", ":", "X"),
    )
]


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
    axes = figure.subplots()
    styles = cycle(_STYLES)
    for name, result in summary["strategies"].items():
        style = _RANDOM_STYLE if name == "random" else next(styles)
        _draw_curve(axes, summary["labels"], name, result, style)
    _draw_target(axes, summary)

    p = record["parameters"]
    axes.set_xlabel("Labels")
    axes.set_ylabel(f"Accuracy on {p['test_size']:,} test texts")
    axes.set_title(
        f"{record['data']['name']}: {_reading(p['n_seeds'])}",
        fontsize="medium",
        parse_math=False,  # a file's name may hold dollar signs
    )
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=150, format="png")


def _draw_curve(axes, labels, name, result, style):
    mean = np.array(result["accuracy_mean"])
    axes.plot(labels, mean, label=name, linewidth=1.8, markersize=5, **style)
    if result["accuracy_std"] is not None:
        std = np.array(result["accuracy_std"])
        low, high, color = mean - std, mean + std, style["color"]
        axes.fill_between(labels, low, high, color=color, alpha=0.13, linewidth=0)
        # Thin edges tell bands apart where they lie over each other.
        for edge in (low, high):
            axes.plot(labels, edge, color=color, alpha=0.5, linewidth=0.6)


def _draw_target(axes, summary):
    """Draw the accuracy that the table counts labels to reach."""
    target = summary["strategies"]["random"]["accuracy_mean"][-1]
    color = _RANDOM_STYLE["color"]
    axes.axhline(target, color=color, linewidth=0.8, linestyle=":")
    axes.annotate(
        f"random's last accuracy, {target:.3f}",
        (summary["labels"][0], target),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize="small",
        color=color,
    )


def _reading(n_seeds):
    """Say what the curves are, since a figure travels without its table."""
    if n_seeds == 1:
        return "one seed, which shows no difference"
    return f"mean ± std of {n_seeds} seeds; no winner where bands overlap"


def import_figure():
    """Import matplotlib's figure, or say how to install it.

    Returns
    -------
    Figure : type
        The class draws without pyplot and its global state.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise ImportError(
            "the demo draws with matplotlib, which is not installed. Install it with "
            '`pip install "skactive[demo]"`.'
        ) from exc
    return Figure
