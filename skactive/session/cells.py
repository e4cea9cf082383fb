"""The cells of CSV and TSV files, which have no types."""

from __future__ import annotations

import json
import re
from contextlib import suppress

__all__ = ["escape", "find_reading", "unescape"]

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")


def escape(cell):
    """Keep a spreadsheet from running a text as a formula.

    Parameters
    ----------
    cell : object
        What is no `str` is left as it is.

    Returns
    -------
    cell : object
        Behind an apostrophe if it begins with one of ``= + - @``, a tab or a line
        break, or with apostrophes before one of these. :func:`unescape` undoes it.

    Examples
    --------
    >>> from skactive.session.cells import escape, unescape
    >>> escape("=1+1"), escape("'=1+1"), escape("a=1"), escape(-1)
    ("'=1+1", "''=1+1", 'a=1', -1)
    >>> unescape("'=1+1"), unescape("'a'")
    ('=1+1', "'a'")
    """
    is_formula = isinstance(cell, str) and _FORMULA.match(cell)
    return f"'{cell}" if is_formula else cell


def unescape(cell):
    """Undo :func:`escape`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def find_reading(kind, cells, path):
    """Choose what the labels of a file stand for.

    Parameters
    ----------
    kind : str or None
        The kind of a session's labels; None goes by the looks of all cells.
    cells : list of str
    path : Path
        The file, for the error.

    Returns
    -------
    read : callable
        `read(cell) -> label`.

    Raises
    ------
    ValueError
        If a cell is not of that kind.
    """
    if kind is None:
        for read in (_read_number, _read_bool, _read_list):
            with suppress(ValueError):
                for cell in cells:
                    read(cell)
                return read
        return unescape
    read = _READINGS[kind.split()[0]]
    for cell in cells:
        try:
            read(cell)
        except ValueError as exc:
            raise ValueError(
                f"{str(path)!r} has the label {cell!r}, and the session's labels are "
                f"of the kind {kind!r}. Write them in one way. Nothing was recorded."
            ) from exc
    return read


def _read_number(cell):
    if not _NUMBER.fullmatch(cell):
        raise ValueError(cell)
    return int(cell) if _INTEGER.fullmatch(cell) else float(cell)


def _read_bool(cell):
    return bool(("False", "True").index(cell))


def _read_list(cell):
    value = json.loads(cell)
    if not isinstance(value, list):
        raise ValueError(cell)
    return value


_READINGS = {
    "str": unescape,
    "number": _read_number,
    "bool": _read_bool,
    "list": _read_list,
}
