"""Colours, lines, markers and hatches that differ in print and for the colour-blind."""

from __future__ import annotations

from itertools import count

__all__ = ["BASELINE", "GREY", "HATCHES", "PHASE_COLORS", "assign_styles"]

# M. Okabe, K. Ito, "Color universal design", 2008, without the yellow, which is too
# light for lines on white, and the black, which text has.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# The dashes "--" and the marker "o" are the baseline's. Four lines and nine markers
# make 36 pairs that need no colour to be told apart.
_LINES = ("-", "-.", ":", (0, (7, 1.5, 1, 1.5, 1, 1.5)))
_MARKERS = ("s", "^", "D", "v", "P", "X", "<", "*", ">")

GREY = "#555555"
BASELINE = {"color": GREY, "linestyle": "--", "marker": "o"}

# From dark to light, so that neighbours in a stack differ in grey as well.
PHASE_COLORS = ("#0072B2", "#E69F00", "#009E73", "#DDDDDD")
HATCHES = ("", "///", "...", "xx")


def assign_styles(names, baseline=None):
    """Give each name a colour, a line and a marker.

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
    numbers = count()
    return {
        name: dict(BASELINE) if name == baseline else _style(next(numbers))
        for name in names
    }


def _style(i):
    return {
        "color": _COLORS[i % len(_COLORS)],
        "linestyle": _LINES[i % len(_LINES)],
        "marker": _MARKERS[i % len(_MARKERS)],
    }
