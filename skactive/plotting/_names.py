"""Names of lines and bars: their styles, and dicts by name."""

from collections.abc import Mapping
from zlib import crc32

# M. Okabe, K. Ito, "Color universal design", 2008, without the yellow, which is too
# light for lines on white, and the black, which text has.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# The dashes "--" and the marker "o" are the baseline's. Four lines and nine markers
# make 36 pairs that need no color to be told apart.
_LINES = ("-", "-.", ":", (0, (7, 1.5, 1, 1.5, 1, 1.5)))
_MARKERS = ("s", "^", "D", "v", "P", "X", "<", "*", ">")

GRAY = "#555555"
BASELINE = {"color": GRAY, "linestyle": "--", "marker": "o"}

# From dark to light, so that adjacent parts of a stack differ in gray as well.
PHASE_COLORS = ("#0072B2", "#E69F00", "#009E73", "#DDDDDD")
HATCHES = ("", "///", "...", "xx")
INK = "#333333"  # edges of bars


# A strategy's place in this list is its style, in every picture. The first six have
# different colors.
_NAMES = """
    margin entropy badge bald coreset typiclust least_confidence batchbald
    embedding_kmeans probcover dal cal egl committee density alps prefilter subsample
    mc_dropout variation_ratio dfal goral whole_cluster one_shot representative
    preclustering perceptron_ensemble egl_embedding seals class_balanced random switch
    anchoral uherding dropquery lcmd greedy_sampling bait lci cvirs besra partitioned
"""
_STRATEGIES = _NAMES.split()
_N_STYLES = 36


def check_named(value, name, kind):
    """Raise an error unless `value` is a dict from names to values of some kind."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            f"{name!r} must be a dict from name to {kind} that is not empty, got "
            f"{value!r}."
        )


def say_number(counts, what):
    """Return the range of some counts as text, such as '3 to 5 runs'."""
    return f"{' to '.join(map(str, dict.fromkeys([min(counts), max(counts)])))} {what}"


def as_mapping(value, name, is_one, default="model"):
    """Return a dict by name: `value` itself, or `value` alone under `default`.

    `is_one` returns whether a dict is a single value instead of several by name. `name`
    is the argument in error messages.
    """
    if not isinstance(value, Mapping) or is_one(value):
        return {default: value}
    if not value:
        raise ValueError(f"{name!r} is empty: pass at least one.")
    return {str(key): item for key, item in value.items()}


def assign_styles(names, baseline=None):
    """Return the arguments of `Axes.plot` for the line of each name.

    A built-in strategy looks the same in every picture. So does any other name, unless
    it would look like another one in the same picture. `baseline` is dashed and gray.
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
