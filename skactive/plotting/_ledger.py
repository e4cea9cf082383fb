"""The seconds of each phase of the loop."""

import textwrap
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._utils._sklearn import validate_params
from ..analysis import Groups, LedgerTable, ledger_table, sort_runs
from ..simulation import Run
from ._axes import add_legend, inches_wide, label_axes, open_axes
from ._style import HATCHES, PHASE_COLORS

_INK = "#333333"
# By phase, so that each has one look whatever is left out.
_LOOKS = dict(zip(Run().ledger, zip(PHASE_COLORS, HATCHES, strict=True), strict=True))


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
        runs: Groups,
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
        names = [textwrap.fill(name, 30) for name in self.table.names]
        ax.set_yticks(range(n), names, parse_math=False)
        ax.set_ylim(n - 0.45, -0.55)  # the first one on top
        label_axes(ax, "seconds", "")
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        # Above the axes, since bars of any length may fill them.
        self.legend_ = add_legend(
            ax,
            list(self.bars_.values()),
            [phase.replace("_", " ") for phase in self.bars_],
            loc="lower left",
            bbox_to_anchor=(0, 1.01),
            ncols=len(used) if inches_wide(ax) > 4.8 else 2,
            handlelength=1.8,
            frameon=False,
            borderaxespad=0,
            columnspacing=1.2,
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
            edgecolor=_INK,
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
