"""Displays with a row for each strategy: labels needed, and seconds."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._utils._format import format_number
from .._utils._sklearn import validate_params
from ..analysis import (
    Groups,
    LabelsNeeded,
    LedgerTable,
    Runs,
    labels_needed,
    ledger_table,
    sort_runs,
)
from ..simulation import Run
from ._axes import add_legend_above, inches_wide, label_axes, name_rows, open_axes
from ._names import GRAY, HATCHES, INK, PHASE_COLORS, assign_styles

_BELOW = 0.2  # of a row, from the mean curve to the single runs
# By phase, so that each has one look whatever is left out.
_LOOKS = dict(zip(Run().ledger, zip(PHASE_COLORS, HATCHES, strict=True), strict=True))


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
    def from_runs(
        cls,
        runs: "Groups",
        baseline: str | Runs,
        at: float,
        *,
        scoring: str | None = None,
        groupby: str | Sequence[str] = "strategy",
        confidence_level: float = 0.95,
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
        ax
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
        return cls(table=table).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a row for each strategy.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            The axes. Defaults to those of a new figure.

        Returns
        -------
        display : LabelsNeededDisplay
        """
        table = self.table
        size = 7, 1.7 + 0.5 * len(table.names)
        ax = open_axes(ax, size, type(self).__name__)
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
        score = f"{table.scoring.replace('_', ' ')} {table.target:.3f}"
        label_axes(ax, f"labels needed for {score}", "")
        name_rows(ax, table.names, 0.5)
        ax.margins(x=0.08)  # room for the arrows
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
        self.legend_ = add_legend_above(ax, list(entries.values()), list(entries), 2)


def _draw_arrow(ax, x, row, color):
    """Draw an arrow to the right of a lower bound."""
    ax.annotate(
        "",
        (x, row),
        (24, 0),
        textcoords="offset points",
        arrowprops={"arrowstyle": "<|-", "color": color, "linewidth": 1.5},
    )


class LedgerDisplay:
    """Seconds of precomputation, fits, queries and final training.

    Create a display with :meth:`from_runs`.

    Parameters
    ----------
    table : LedgerTable
        Table of :func:`skactive.analysis.ledger_table`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : dict of str to matplotlib BarContainer
        Bars by phase, one per name. Phases that took no time are left out.
    texts_ : list of matplotlib Text
        The seconds next to the bars.
    legend_ : matplotlib Legend

    See Also
    --------
    skactive.analysis.ledger_table : The numbers of the picture.

    Examples
    --------
    >>> from skactive.plotting import LedgerDisplay
    >>> from skactive.simulation import Run
    >>> run = Run([{"queried": [0], "fit_seconds": 2.0, "query_seconds": 0.5}],
    ...           ledger={"precomputation": 30.0}, info={"strategy": "margin"})
    >>> display = LedgerDisplay.from_runs([run])
    >>> list(display.bars_)
    ['precomputation', 'fit', 'query']
    >>> display.texts_[0].get_text()
    '32.5 s'
    """

    def __init__(self, *, table: LedgerTable):
        self.table = table

    @classmethod
    @validate_params({"log": ["boolean"]})
    def from_runs(
        cls,
        runs: "Groups",
        *,
        groupby: str | Sequence[str] = "strategy",
        phases: Sequence[str] | None = None,
        log: bool = False,
        ax: Any = None,
    ) -> Self:
        """Average the seconds of runs and draw them.

        Parameters
        ----------
        runs : dict of str to list of Run, or sequence of Run
            A list is grouped by the `info` of the runs.
        groupby : str or sequence of str, default="strategy"
            One or several keys of `info` that a list is grouped by, such as "protocol".
        phases : sequence of str or None, default=None
            The phases to draw, as in :func:`skactive.analysis.ledger_table`. Defaults
            to all. Leave "precomputation" out if runs share it.
        log, ax
            As in :meth:`plot`.

        Returns
        -------
        display : LedgerDisplay

        Raises
        ------
        ValueError
            If there are no runs.
        """
        table = ledger_table(sort_runs(runs, groupby), phases=phases)
        return cls(table=table).plot(ax, log=log)

    def plot(self, ax: Any = None, *, log: bool = False) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            The axes. Defaults to those of a new figure.
        log : bool, default=False
            Whether to use a logarithmic axis, for phases that differ by orders of
            magnitude. Bars are then drawn side by side instead of stacked.

        Returns
        -------
        display : LedgerDisplay
        """
        mean = np.asarray(self.table.mean)
        used = [i for i in range(len(self.table.phases)) if mean[:, i].any()]
        if not used:
            raise ValueError(
                "'table' must hold a time above 0, got none. Use runs that record "
                "seconds, such as those of simulate."
            )
        n = len(self.table.names)
        height = 1.4 + n * (0.22 * len(used) + 0.15 if log else 0.45)
        ax = open_axes(ax, (7, height), type(self).__name__)

        draw = self._draw_beside if log else self._draw_stacked
        self.bars_: dict[str, Any] = {}
        self.texts_: list[Any] = []
        draw(ax, mean, used)
        label_axes(ax, "processor seconds", "")
        name_rows(ax, self.table.names, 0.55)
        self.legend_ = add_legend_above(
            ax,
            list(self.bars_.values()),
            [phase.replace("_", " ") for phase in self.bars_],
            len(used) if inches_wide(ax) > 4.8 else 2,
            handlelength=1.8,
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_stacked(self, ax, mean, used):
        rows = np.arange(len(mean))
        left = np.zeros(len(mean))
        for i in used:
            self._add_bars(ax, i, rows, mean[:, i], 0.6, left)
            left = left + mean[:, i]
        for row, total in zip(rows, left, strict=True):
            self._add_text(ax, row, total)
        ax.set_xlim(0, 1.15 * left.max())  # room for the text of the longest

    def _draw_beside(self, ax, mean, used):
        ax.set_xscale("log")
        width = 0.8 / len(used)
        for j, i in enumerate(used):
            rows = np.arange(len(mean)) + (j - (len(used) - 1) / 2) * width
            self._add_bars(ax, i, rows, mean[:, i], 0.92 * width)
            for row, seconds in zip(rows, mean[:, i], strict=True):
                if seconds > 0:
                    self._add_text(ax, row, seconds)
        spent = mean[mean > 0]
        low, high = np.log10(spent.min()), np.log10(spent.max())
        start = np.floor(low - 0.2)
        ax.set_xlim(10**start, 10 ** (high + 0.16 * (high - start)))

    def _add_bars(self, ax, i, rows, seconds, height, left=None):
        color, hatch = _LOOKS[self.table.phases[i]]
        self.bars_[self.table.phases[i]] = ax.barh(
            rows,
            seconds,
            height,
            left,
            facecolor=color,
            hatch=hatch,
            edgecolor=INK,
            linewidth=0.6,
        )

    def _add_text(self, ax, row, seconds):
        text = ax.annotate(
            f"{_format(seconds)} s",
            (seconds, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
        self.texts_.append(text)


def _format(seconds):
    """Write seconds with three digits, and thousands in full."""
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"
