"""What all displays do with matplotlib's axes."""

from __future__ import annotations

import textwrap

import numpy as np

__all__ = [
    "add_legend",
    "draw_band",
    "draw_line",
    "import_figure",
    "inches_wide",
    "label_axes",
    "open_axes",
]

_WIDTH = 30  # characters of a line in it


def open_axes(ax, figsize, caller):
    """Take the axes of the user, or open a figure.

    Parameters
    ----------
    ax : matplotlib Axes or None
    figsize : tuple of float
        Of the new figure, in inches.
    caller : str
        The display, for the error message.

    Returns
    -------
    ax : matplotlib Axes

    Raises
    ------
    TypeError
        If `ax` is something else.
    ImportError
        If matplotlib is not installed.
    """
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as exc:
            raise ImportError(
                f"{caller} draws with matplotlib, which is not installed. Install it "
                "with `pip install matplotlib`."
            ) from exc
        return plt.subplots(figsize=figsize, layout="constrained")[1]
    if not (hasattr(ax, "fill_between") and hasattr(ax, "figure")):
        raise TypeError(
            "'ax' must be one matplotlib Axes or None, which opens a figure; got a "
            f"{type(ax).__name__}. Of several axes, pass one."
        )
    return ax


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
            "pictures are drawn with matplotlib, which is not installed. Install it "
            "with `pip install matplotlib`."
        ) from exc
    return Figure


def draw_line(ax, x, y, name, style, number=0, **options):
    """Draw a line of moderate weight, with a marker at some of its points.

    Parameters
    ----------
    ax : matplotlib Axes
    x, y : ndarray of shape (r,)
    name : str
    style : dict
        From :func:`assign_styles`.
    number : int, default=0
        Of the line among all, so that markers of several fall on different points.
    **options
        Over these settings.

    Returns
    -------
    line : matplotlib Line2D
    """
    step = -(-len(x) // 14)
    settings = {
        **style,
        "label": name,
        "linewidth": 1.8,
        "markersize": 5.5,
        "markevery": (number % step, step),
    }
    return ax.plot(x, y, **{**settings, **options})[0]


def draw_band(ax, x, low, high, color, **options):
    """Draw a band with thin edges, which tell bands apart where they overlap.

    Parameters
    ----------
    ax : matplotlib Axes
    x, low, high : ndarray of shape (r,)
        Where the limits are NaN, nothing is drawn.
    color : str
    **options
        Over these settings.

    Returns
    -------
    band : matplotlib PolyCollection or None
        None if there is nothing to draw, as for a single run.
    """
    known = ~(np.isnan(low) | np.isnan(high))
    if not known.any():
        return None
    settings = {
        "facecolor": (color, 0.13),
        "edgecolor": (color, 0.45),
        "linewidth": 0.6,
        "zorder": 1,
    }
    return ax.fill_between(x[known], low[known], high[known], **{**settings, **options})


def label_axes(ax, x, y):
    """Name both axes, in words and never as a formula, and calm the frame.

    Parameters
    ----------
    ax : matplotlib Axes
    x, y : str
    """
    ax.set_xlabel(x, parse_math=False)
    ax.set_ylabel(y, parse_math=False)
    ax.grid(alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def add_legend(ax, handles, labels, title=None, most_inside=4, **options):
    """Write a legend: within the axes, or beside them if it is long.

    Beside the axes there is room if they are wide and the layout of the figure is
    "constrained", which counts legends.

    Parameters
    ----------
    ax : matplotlib Axes
    handles : sequence of artists
    labels : sequence of str
        Long ones are broken into lines.
    title : str or None, default=None
    most_inside : int, default=4
        Entries that the legend may have within the axes.
    **options
        Over these settings.

    Returns
    -------
    legend : matplotlib Legend
    """
    place = {"loc": "best"}
    if len(handles) > most_inside and _has_room(ax):
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0}
    settings = {
        **place,
        "title": title,
        "alignment": "left",
        "fontsize": "small",
        "title_fontsize": "small",
        "handlelength": 3.2,  # room for a whole pattern of dashes
        "frameon": "bbox_to_anchor" not in place,
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
    """Width of axes before a layout moves them.

    Parameters
    ----------
    ax : matplotlib Axes

    Returns
    -------
    inches : float
    """
    return ax.get_position().width * ax.figure.bbox.width / ax.figure.dpi


def _break(label):
    # matplotlib before 3.10 hides labels that begin with an underscore.
    lines = textwrap.wrap(label, _WIDTH) or [label]
    return "\n".join(f" {line}" if line.startswith("_") else line for line in lines)
