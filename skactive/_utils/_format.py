"""Lay numbers out as plain text or as a data frame."""

import math


def format_number(value, digits=4):
    """Write a number with some significant digits, and a dash for NaN.

    Parameters
    ----------
    value : float
    digits : int, default=4

    Returns
    -------
    text : str

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


def format_table(header, rows):
    """Align cells in columns: the first to the left, the others to the right.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequences of str

    Returns
    -------
    table : str
        A line for each row.
    """
    rows = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        cells += [
            cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def make_frame(columns):
    """Make a data frame, or say how to get pandas.

    Parameters
    ----------
    columns : dict of str to sequence

    Returns
    -------
    frame : pandas.DataFrame

    Raises
    ------
    ImportError
        If pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as exc:
        raise ImportError(
            "to_frame makes a pandas.DataFrame, and pandas is not installed. Install "
            "it with `pip install pandas`, or read the attributes, which are arrays."
        ) from exc
    return pd.DataFrame(columns)
