"""What all displays do with matplotlib's axes."""

import textwrap
from collections.abc import Mapping
from zlib import crc32

import numpy as np
from sklearn.exceptions import NotFittedError

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


def as_mapping(value, name, is_one, default="model"):
    """Take one thing or a dict of several by name.

    Parameters
    ----------
    value : object or dict of str to object
    name : str
        The argument, for error messages.
    is_one : callable
        Whether a dict is itself the one thing.
    default : str, default="model"
        What one thing is called.

    Returns
    -------
    values : dict of str to object

    Raises
    ------
    ValueError
        If the dict is empty.
    """
    if not isinstance(value, Mapping) or is_one(value):
        return {default: value}
    if not value:
        raise ValueError(f"{name!r} is empty: pass at least one.")
    return {str(key): item for key, item in value.items()}


def read_history(history, name, score):
    """Read one score of each epoch.

    Parameters
    ----------
    history : estimator or list of dict
        Fitted, or its `history_`.
    name : str
        What to call it in error messages.
    score : str

    Returns
    -------
    seconds, scores : ndarray of shape (n_epochs,)

    Raises
    ------
    ValueError
        If there are no epochs, or one has no such score.
    """
    if hasattr(history, "fit"):
        if not hasattr(history, "history_"):
            raise NotFittedError(
                f"{name!r}, a {type(history).__name__}, has no 'history_'. Fit it "
                "first, and pass a BertClassifier or BertRegressor."
            )
        history = history.history_
    if not isinstance(history, list | tuple) or not all(
        isinstance(epoch, Mapping) and "seconds_total" in epoch for epoch in history
    ):
        raise TypeError(
            f"the history of {name!r} must be a fitted estimator or its 'history_', a "
            f"list of one dict for each epoch; got a {type(history).__name__}."
        )
    if not history:
        raise ValueError(f"the history of {name!r} has no epochs: there was no fit.")
    missing = [i for i, epoch in enumerate(history) if epoch.get(score) is None]
    if missing:
        remedy = ""
        if score in ("valid_score", "valid_loss"):
            remedy = (
                " It is measured on texts set aside with early_stopping=True. Train "
                "so, or pass score='train_loss'."
            )
        raise ValueError(
            f"'score' must be one that every epoch holds; the history of {name!r} has "
            f"no {score!r}, only {sorted(history[missing[0]])}.{remedy}"
        )
    return tuple(
        np.array([epoch[key] for epoch in history], dtype=float)
        for key in ("seconds_total", score)
    )


# M. Okabe, K. Ito, "Color universal design", 2008, without the yellow, which is too
# light for lines on white, and the black, which text has.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# The dashes "--" and the marker "o" are the baseline's. Four lines and nine markers
# make 36 pairs that need no color to be told apart.
_LINES = ("-", "-.", ":", (0, (7, 1.5, 1, 1.5, 1, 1.5)))
_MARKERS = ("s", "^", "D", "v", "P", "X", "<", "*", ">")

GREY = "#555555"
BASELINE = {"color": GREY, "linestyle": "--", "marker": "o"}

# From dark to light, so that neighbours in a stack differ in grey as well.
PHASE_COLORS = ("#0072B2", "#E69F00", "#009E73", "#DDDDDD")
HATCHES = ("", "///", "...", "xx")


# A strategy's place in this list is its style, in every picture. The first six have
# different colors.
_STRATEGIES = (
    *("margin", "entropy", "badge", "bald", "coreset", "typiclust"),
    *("least_confidence", "batchbald", "embedding_kmeans", "probcover", "dal", "cal"),
    *("egl", "committee", "density", "alps", "prefilter", "subsample"),
    *("mc_dropout", "variation_ratio", "dfal", "goral", "whole_cluster", "one_shot"),
    *("representative", "preclustering", "perceptron_ensemble", "egl_embedding"),
    *("seals", "class_balanced", "random"),
)
_N_STYLES = 36


def assign_styles(names, baseline=None):
    """Assign each name a color, a line and a marker.

    A built-in strategy looks the same in every picture. So does any other name, unless
    the picture has another that it could be mistaken for.

    Parameters
    ----------
    names : iterable of str
    baseline : str or None, default=None
        The name that is drawn in dashed grey, if it is among them.

    Returns
    -------
    styles : dict of str to dict
        Arguments for `Axes.plot`.
    """
    names = list(names)
    numbers = {}
    for name in sorted(names, key=lambda name: _short(name) not in _STRATEGIES):
        if name != baseline:
            number = _number(name)
            while _short(name) not in _STRATEGIES and _is_like(number, numbers):
                number = (number + 1) % _N_STYLES
            numbers[name] = number
    return {
        name: _style(numbers[name]) if name in numbers else dict(BASELINE)
        for name in names
    }


def _is_like(number, numbers):
    """Whether a style could be mistaken for one of those taken."""
    taken = set(numbers.values())
    if len(taken) < len(_MARKERS):
        return number % len(_MARKERS) in {other % len(_MARKERS) for other in taken}
    return len(taken) < _N_STYLES and number in taken


def _short(name):
    return str(name).removeprefix("skactive:")


def _number(name):
    name = _short(name)
    if name in _STRATEGIES:
        return _STRATEGIES.index(name)
    return crc32(name.encode()) % _N_STYLES


def _style(i):
    return {
        "color": _COLORS[i % len(_COLORS)],
        "linestyle": _LINES[i % len(_LINES)],
        "marker": _MARKERS[i % len(_MARKERS)],
    }
