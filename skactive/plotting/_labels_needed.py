"""The labels that strategies need for the score of a baseline."""

import textwrap
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._utils._format import format_number
from .._utils._sklearn import validate_params
from ..analysis import Groups, LabelsNeeded, Runs, labels_needed
from ._axes import add_legend, label_axes, open_axes
from ._style import GRAY, assign_styles

_BELOW = 0.2  # of a row, from the mean curve to the single runs


class LabelsNeededDisplay:
    """Labels that each strategy needs for the score of a baseline.

    Create a display with :meth:`from_runs`.

    Parameters
    ----------
    table : LabelsNeeded
        Table of :func:`skactive.analysis.labels_needed`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : dict of str to matplotlib Line2D
        The number of the mean curve. A marker without a face is a lower bound: the
        curve does not reach the score.
    intervals_ : dict of str to matplotlib Line2D or None
        The interval. None if a side has a single run.
    runs_ : dict of str to matplotlib PathCollection
        The numbers of single runs, below the mean curve. Markers without a face are
        lower bounds.
    texts_ : list of matplotlib Text
        Number of labels and its ratio to `at`, to the right of the axes.
    baseline_ : matplotlib Line2D
        The number of labels of the baseline.
    legend_ : matplotlib Legend

    See Also
    --------
    skactive.analysis.labels_needed : The numbers of the picture.

    Examples
    --------
    >>> from skactive.plotting import LabelsNeededDisplay
    >>> from skactive.simulation import Run
    >>> runs = [
    ...     Run([{"queried": range(50), "scores": {"accuracy": s}} for s in scores],
    ...         info={"strategy": strategy})
    ...     for strategy, scores in [("random", (0.5, 0.6)), ("margin", (0.5, 0.7))]
    ... ]
    >>> display = LabelsNeededDisplay.from_runs(runs, "random", 100)
    >>> display.texts_[0].get_text()
    '75 (75%)'
    """

    def __init__(self, *, table: LabelsNeeded):
        self.table = table

    @classmethod
    @validate_params({"log": ["boolean"]})
    def from_runs(
        cls,
        runs: Groups,
        baseline: str | Runs,
        at: float,
        *,
        scoring: str | None = None,
        groupby: str | Sequence[str] = "strategy",
        confidence_level: float = 0.95,
        log: bool = False,
        ax: Any = None,
    ) -> Self:
        """Compute the labels needed and draw them.

        Parameters
        ----------
        runs : dict of str to list of Run, or sequence of Run
            Runs of one data set. A list is grouped by the `info` of the runs.
        baseline : str, Run or list of Run
            The name of one of the groups, or other runs.
        at : float
            Number of labels of the baseline.
        scoring : str or None, default=None
            A metric for which higher is better. Defaults to the first metric of the
            first run.
        groupby : str or sequence of str, default="strategy"
            One or several keys of `info` that a list is grouped by.
        confidence_level : float, default=0.95
            Level of the intervals.
        log, ax
            As in :meth:`plot`.

        Returns
        -------
        display : LabelsNeededDisplay

        Raises
        ------
        ValueError
            If :func:`skactive.analysis.labels_needed` raises it.
        """
        table = labels_needed(
            runs,
            baseline,
            at,
            scoring=scoring,
            groupby=groupby,
            confidence_level=confidence_level,
        )
        return cls(table=table).plot(ax, log=log)

    def plot(self, ax: Any = None, *, log: bool = False) -> Self:
        """Draw a row for each strategy.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            The axes. Defaults to those of a new figure.
        log : bool, default=False
            Whether to use a logarithmic axis, on which equal distances are equal
            ratios.

        Returns
        -------
        display : LabelsNeededDisplay
        """
        table = self.table
        n = len(table.names)
        ax = open_axes(ax, (7, 1.7 + 0.5 * n), type(self).__name__)
        styles = assign_styles(table.names)
        self.points_: dict[str, Any] = {}
        self.intervals_: dict[str, Any] = {}
        self.runs_: dict[str, Any] = {}
        self.texts_: list[Any] = []
        for row, name in enumerate(table.names):
            self._draw_row(ax, row, name, styles[name])
        self.baseline_ = ax.axvline(
            table.at, color=GRAY, linestyle="--", linewidth=1.2, zorder=1
        )
        names = [textwrap.fill(name, 30) for name in table.names]
        ax.set_yticks(range(n), names, parse_math=False)
        ax.set_ylim(n - 0.5, -0.5)  # the first one on top
        score = f"{table.scoring.replace('_', ' ')} {table.target:.3f}"
        label_axes(ax, f"labels needed for {score}", "")
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        ax.margins(x=0.08)  # room for the arrows
        if log:
            ax.set_xscale("log")
            _label_ticks(ax)
        else:
            ax.set_xlim(left=0)
        self._add_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_row(self, ax, row, name, style):
        table, color = self.table, style["color"]
        low, high = table.low[row], table.high[row]
        self.intervals_[name] = None
        if not np.isnan(low):
            (self.intervals_[name],) = ax.plot(
                [low, high], [row, row], color=color, linewidth=2.2, marker="|"
            )
        if not (table.reached[row] and table.high_reached[row]):
            _draw_arrow(ax, table.last[row], row, color)
        (self.points_[name],) = ax.plot(
            table.n_labeled[row],
            row,
            color=color,
            marker=style["marker"],
            markersize=7,
            markerfacecolor=color if table.reached[row] else "white",
        )
        labels, reached = table.run_labels[row], table.run_reached[row]
        self.runs_[name] = ax.scatter(
            labels,
            np.full(len(labels), row + _BELOW),
            s=16,
            facecolors=[(color, 0.5) if each else "none" for each in reached],
            edgecolors=color,
            linewidths=0.6,
        )
        sign = "≤" if table.n_labeled[row] == table.first[row] else ""
        sign = sign if table.reached[row] else ">"
        text = ax.annotate(
            f"{sign}{format_number(table.n_labeled[row], 3)} "
            f"({sign}{table.ratio[row]:.0%})",
            (1, row),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
        self.texts_.append(text)

    def _add_legend(self, ax):
        from matplotlib.lines import Line2D

        table = self.table
        dot = {"marker": "o", "color": GRAY, "markersize": 7}
        small = {**dot, "markersize": 4, "linestyle": "none"}
        mean = "mean curve"
        if any(self.intervals_.values()):
            mean += f", {table.confidence_level:.0%} interval"
        entries = {
            mean: Line2D([], [], linewidth=2.2 * (mean != "mean curve"), **dot),
            "single run": Line2D([], [], **small),
            f"{table.baseline}, {format_number(table.at, 8)} labels": self.baseline_,
        }
        if not table.reached.all() or any(table.n_not_reached):
            entries["not reached"] = Line2D([], [], markerfacecolor="white", **small)
        self.legend_ = add_legend(
            ax,
            list(entries.values()),
            list(entries),
            loc="lower left",
            bbox_to_anchor=(0, 1.01),
            ncols=2,
            frameon=False,
            borderaxespad=0,
            columnspacing=1.2,
        )


def _draw_arrow(ax, x, row, color):
    """Draw an arrow to the right of a lower bound."""
    ax.annotate(
        "",
        (x, row),
        (24, 0),
        textcoords="offset points",
        arrowprops={"arrowstyle": "<|-", "color": color, "linewidth": 1.5},
    )


def _label_ticks(ax):
    """Label the ticks of a logarithmic axis with plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
