"""Parts that all displays draw: axes, lines, bands, legends and names of rows."""

import textwrap

import numpy as np

from .._utils._lazy import import_or

_MISSING = (
    "with matplotlib, which is not installed. Install it with `pip install matplotlib`."
)
_WIDTH = 30  # characters of a line in a legend, or of a name of a row


def open_axes(ax, figsize, caller):
    """Return `ax`, or the axes of a new figure of `figsize` inches where it is None."""
    if ax is None:
        plt = import_or(f"{caller} draws {_MISSING}", "matplotlib.pyplot")
        return plt.subplots(figsize=figsize, layout="constrained")[1]
    if not (hasattr(ax, "fill_between") and hasattr(ax, "figure")):
        raise TypeError(
            "'ax' must be a matplotlib Axes or None, which opens a figure; got a "
            f"{type(ax).__name__}. If you have several axes, pass one of them."
        )
    return ax


def import_figure():
    """Return matplotlib's `Figure`, which draws without pyplot and its global state."""
    return import_or(f"pictures are drawn {_MISSING}", "matplotlib.figure").Figure


def draw_line(ax, x, y, name, style, number=0):
    """Draw and return a line with a marker at some of its (r,) points.

    `number` counts the lines: markers of several lines fall on different points.
    """
    step = -(-len(x) // 14)
    (line,) = ax.plot(x, y, **style, label=name, linewidth=1.8, markersize=5.5)
    line.set_markevery((number % step, step))
    return line


def draw_band(ax, x, low, high, color):
    """Draw a band with thin edges, which show where bands overlap; return it.

    Points whose limits `low` or `high` (r,) are NaN are left out. Without any other
    point, as for a single run, nothing is drawn and the result is None.
    """
    has_limits = ~(np.isnan(low) | np.isnan(high))
    if not has_limits.any():
        return None
    colors = {"facecolor": (color, 0.13), "edgecolor": (color, 0.45)}
    limits = low[has_limits], high[has_limits]
    return ax.fill_between(x[has_limits], *limits, **colors, linewidth=0.6, zorder=1)


def label_axes(ax, x, y):
    """Label both axes with plain text, which is never parsed as a formula."""
    ax.set_xlabel(x, parse_math=False)
    ax.set_ylabel(y, parse_math=False)
    ax.grid(alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def name_rows(ax, names, margin):
    """Label the rows 0, 1, ... of horizontal axes, the first one on top."""
    names = [textwrap.fill(name, _WIDTH) for name in names]
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(len(names) - 1 + margin, -margin)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)


def add_legend_above(ax, handles, labels, ncols, **options):
    """Add a legend above the axes, which rows of any length may fill; return it."""
    settings = {
        "loc": "lower left",
        "bbox_to_anchor": (0, 1.01),
        "frameon": False,
        "borderaxespad": 0,
        "columnspacing": 1.2,
    }
    return add_legend(ax, handles, labels, ncols=ncols, **{**settings, **options})


def add_legend(ax, handles, labels, title=None, most_inside=4, **options):
    """Add a legend inside the axes, or outside if it has many entries; return it.

    The legend is outside only if the axes are wide and the layout of the figure is
    "constrained", which reserves space for legends.
    """
    where = {"loc": "best"}
    if len(handles) > most_inside and _has_room(ax):
        where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0}
    settings = {
        **where,
        "title": title,
        "alignment": "left",
        "fontsize": "small",
        "title_fontsize": "small",
        "handlelength": 3.2,  # room for a whole pattern of dashes
        "frameon": "bbox_to_anchor" not in where,
        "framealpha": 0.85,
        "edgecolor": "none",
    }
    legend = ax.legend(handles, list(map(_break, labels)), **{**settings, **options})
    for text in [*legend.get_texts(), legend.get_title()]:
        text.set_parse_math(False)
    return legend


def _has_room(ax):
    layout = type(ax.figure.get_layout_engine()).__name__
    return layout == "ConstrainedLayoutEngine" and inches_wide(ax) >= 4


def inches_wide(ax):
    """Return the width of axes in inches, before a layout moves them."""
    return ax.get_position().width * ax.figure.bbox.width / ax.figure.dpi


def _break(label):
    # matplotlib before 3.10 hides labels that begin with an underscore.
    lines = textwrap.wrap(label, _WIDTH) or [label]
    return "\n".join(f" {line}" if line.startswith("_") else line for line in lines)
