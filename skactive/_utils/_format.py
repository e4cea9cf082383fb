"""Tables, numbers, blank cells, progress bars and warnings for the reader."""

import html
import math
import multiprocessing
import re
import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ._lazy import import_or

_ALIGN = {"numbers": str.rjust, "text": str.ljust}


def format_number(value, digits=4):
    """Return a number with some significant digits, and a dash for NaN.

    Examples
    --------
    >>> from skactive._utils._format import format_number
    >>> format_number(0.123456), format_number(float("nan")), format_number(2000.0)
    ('0.1235', '-', '2000')
    """
    if math.isnan(value):
        return "-"
    large = math.isfinite(value) and abs(value) >= 10**digits
    return f"{value:.0f}" if large else f"{value:.{digits}g}"


def brief(value, most=100):
    """Return the repr of a value in one line, cut after some characters.

    Examples
    --------
    >>> from skactive._utils._format import brief
    >>> brief(list("abc"), most=9)
    "['a', 'b'..."
    """
    text = repr(value)
    if "\n" in text or len(text) > most:
        text = " ".join(text.split())
    return text if len(text) <= most else f"{text[:most]}..."


def visible(text, kept="\n\u200c\u200d"):
    r"""Return a text without characters that a terminal obeys or does not show.

    Each becomes a blank, or the sign for an unknown character; those of `kept` stay:
    line breaks and joiners of letters.

    Examples
    --------
    >>> from skactive._utils._format import visible
    >>> visible("red\x1b[31m")
    'red�[31m'
    """
    return "".join(
        x if x.isprintable() or x in kept else " " if x.isspace() else "\ufffd"
        for x in str(text)
    )


def escape_markdown(text):
    """Return a text in one line that Markdown and HTML show as it is."""
    text = html.escape(" ".join(visible(text).split()), quote=False)
    return re.sub(r"([\\`*\[\]|#])", r"\\\1", text)


# Spaces, and what has no width: soft hyphens, joiners, marks of directions, and others.
BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))
BLANKS += "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"


def trim(text):
    """Return a text without the spaces and invisible characters at its ends."""
    return text.strip(BLANKS)


def is_missing(label):
    """Whether a value stands for no label: None, NaN, NA, NaT or a blank string."""
    if label is None or isinstance(label, str):
        return not label or not (label[0].isalnum() or trim(label))
    # pandas.NA and NaT, without importing pandas.
    is_na = type(label).__name__ in ("NAType", "NaTType")
    return is_na or (isinstance(label, float | np.floating) and math.isnan(label))


def find_certainty(proba, decided):
    """Return the smallest probability of all decisions about several classes, (n,).

    `proba` (n, k) are probabilities of classes, and `decided` (n, k) masks those that
    are predicted. Of a class that is not predicted, 1 minus its probability counts.
    """
    return np.where(decided, proba, 1 - proba).min(axis=1)


def list_best(names, proba, n_top):
    """Return the best pairs of name and probability per row of `proba` (n, k)."""
    best = np.argsort(-proba, axis=1, kind="stable")[:, :n_top]
    values = np.take_along_axis(proba, best, axis=1).tolist()
    return [
        [[names[j], p] for j, p in zip(row, ps, strict=True)]
        for row, ps in zip(best.tolist(), values, strict=True)
    ]


def list_some(values, shown=5, show=str):
    """Return the first values as text, and the number of the others."""
    more = f" and {len(values) - shown} more" if len(values) > shown else ""
    return ", ".join(map(show, values[:shown])) + more


def reprs(values):
    """Return the repr of the first values, and the number of the others."""
    return list_some(values, show=brief)


def format_table(header, rows, style="numbers"):
    """Return a table, a line for each row.

    `style` is "numbers" (the first column to the left, the others to the right),
    "text" (all to the left) or "markdown", whose cells are escaped by the caller.

    Examples
    --------
    >>> from skactive._utils._format import format_table
    >>> print(format_table(["name", "n"], [["a", "12"]], "markdown"))
    | name | n |
    |---|---|
    | a | 12 |
    """
    rows = [list(header), *map(list, rows)]
    if style == "markdown":
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])
    rows = [[visible(cell, kept="") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    align = [str.ljust, *[_ALIGN[style]] * (len(widths) - 1)]
    lines = []
    for row in rows:
        cells = [put(*cell) for put, *cell in zip(align, row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def make_frame(columns):
    """Return a pandas data frame, or raise an error that says how to get pandas."""
    missing = (
        "to_frame makes a pandas.DataFrame, and pandas is not installed. Install it "
        "with `pip install pandas`, or read the attributes, which are arrays."
    )
    return import_or(missing, "pandas").DataFrame(columns)


# Called with the share of its work that a bar has done.
_report: ContextVar[Any] = ContextVar("report", default=None)


@contextmanager
def report_progress(report):
    """Call a function with the share of its work whenever a bar moves, shown or not."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


_DELAY = 3.0  # seconds before a bar appears on its own


def progress_bar(verbose, **settings):
    """Return a tqdm bar on stderr, or a hidden one; `settings` are passed to tqdm.

    "auto" shows a bar after 3 seconds on an interactive terminal and in a notebook, and
    removes it at the end. It is hidden in worker processes, in scripts whose stderr is
    redirected, and where the environment variable TQDM_DISABLE is set. 0 and False
    never show a bar.
    """
    from tqdm import tqdm

    if verbose == "auto":
        in_notebook = _in_notebook()
        settings |= {"delay": _DELAY, "leave": False}
        if not (in_notebook or _on_terminal()):
            settings["disable"] = True  # otherwise the environment decides
        if in_notebook:
            from tqdm.autonotebook import tqdm
    else:
        settings |= {"disable": not verbose}
    bar = tqdm(**settings)
    report, total, n_done = _report.get(), settings.get("total"), 0
    if report is not None and total:
        update = bar.update

        def update_and_report(n=1):
            nonlocal n_done
            n_done += n
            report(n_done / total)
            return update(n)

        bar.update = update_and_report
    return bar


def _on_terminal():
    """Whether stderr is a terminal, and this is not a worker process."""
    is_main = multiprocessing.current_process().name == "MainProcess"
    return is_main and hasattr(sys.stderr, "isatty") and sys.stderr.isatty()


def _in_notebook():
    """Whether IPython runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and "IPKernelApp" in shell.config


def warn_caller(message):
    """Warn with a UserWarning that names the line that called this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("skactive."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


def plain(value):
    """Return plain Python values: lists for tuples and arrays, None for NaN."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
