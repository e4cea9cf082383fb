"""Labels in the cells of a table: one class per text, or several."""

import json
import math
import re

import numpy as np

from .._utils._format import list_some
from .._utils._labels import is_missing
from ._formats import is_untyped

_MOST_FRACTIONS = 20  # more different numbers with a fraction are no classes
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # always fits into 64 bits
_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")


def read_typed(values, path, name, positions, unit):
    """Return labels of one type; None stays. `name` can be a tuple of columns."""
    labeled = [i for i, value in enumerate(values) if not is_missing(value)]
    labels, at = [values[i] for i in labeled], [positions[i] for i in labeled]
    where = name, path, at, unit
    if labels:
        labels = _one_type(labels, *where)
    if is_untyped(path):
        labels = as_numbers(labels)
    check_finite(labels, *where)
    read = [None] * len(values)
    for i, label in zip(labeled, labels, strict=True):
        read[i] = label
    return read


def as_numbers(cells):
    """Return cells of text as int, or as float if all are numbers, one a fraction."""
    if all(map(_INTEGER.fullmatch, cells)):
        return [int(cell) for cell in cells]
    if not all(map(_NUMBER.fullmatch, cells)):
        return cells
    numbers = [float(cell) for cell in cells]
    return cells if all(number.is_integer() for number in numbers) else numbers


def _one_type(labels, column, path, positions, unit):
    """Return labels of one type: str, int, float or bool."""
    types = {type(label) for label in labels}
    for at, value in zip(positions, labels, strict=True):
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise ValueError(
                f"column {column!r} of {str(path)!r} must hold labels of at most 64 "
                f"bits, got an int of {value.bit_length()} bits at {unit} {at}. Write "
                "it as text."
            )
    if types <= {int, float} and len(types) == 2:
        return [float(label) for label in labels]
    if len(types) == 1 and types <= {str, int, float, bool}:
        return labels
    first = type(labels[0])
    other = next(
        (at for at, x in zip(positions, labels, strict=True) if type(x) is not first),
        positions[0],
    )
    raise ValueError(
        f"column {column!r} of {str(path)!r} must hold labels of one type, str, int, "
        f"float or bool; got {', '.join(sorted(t.__name__ for t in types))}, "
        f"for example at {unit.removesuffix('s')} {other}. Use one type."
    )


def refuse_fractions(labels, column, path):
    """Raise a ValueError if numbers are too many with fractions to be classes."""
    fractions = {x for x in labels if isinstance(x, float)}
    if len(fractions) > _MOST_FRACTIONS:
        raise ValueError(
            f"column {column!r} of {str(path)!r} must hold classes, got "
            f"{len(fractions)} different numbers with fractions. Pass regression=True "
            "to predict numbers."
        )


def check_finite(labels, column, path, positions, unit):
    """Raise a ValueError if a label is infinite."""
    for at, value in zip(positions, labels, strict=True):
        if isinstance(value, float) and math.isinf(value):
            raise ValueError(
                f"column {column!r} of {str(path)!r} must hold finite numbers, got "
                f"{value} at {unit.removesuffix('s')} {at}. Correct this cell."
            )


# Several classes of a text: joined names, lists, or a column per class ----------------

JOIN = "|"  # joins names where the table has no separator of its own
_PAIRS = (  # cells of a class that does not apply, and of one that does
    (0, 1),
    (False, True),
    (0.0, 1.0),
    ("0", "1"),
    ("false", "true"),
    ("False", "True"),
    ("FALSE", "TRUE"),
)


def find_label_cells(columns, label, separator, path):
    """Return the LabelCells of a table that has several classes per text, or None.

    `label` names one column, or one for each class; `columns` holds their cells.
    """
    several = not isinstance(label, str)
    if several and separator is not None:
        raise ValueError(
            f"'separator' must be None for one column per class, got {separator!r} and "
            f"the columns {list(label)!r}. Pass one of the two."
        )
    if separator is not None and not separator.strip():
        raise ValueError(
            f"'separator' must be a str such as '|', got {separator!r}. White space "
            "around names is removed."
        )
    if several or separator is not None:
        return LabelCells(label, separator, path)
    filled = [x for x in columns[label] if not is_missing(x)]
    if filled and all(isinstance(cell, list) for cell in filled):
        return LabelCells(label, None, path)
    if filled and all(_parse_list(cell) is not None for cell in filled):
        return LabelCells(label, None, path)
    return None


class LabelCells:
    """How the labels of a table are written: names in one cell, or a column per class.

    `label` is one column or a list of one for each class. The cells of one column hold
    names that `separator` joins; without a separator, they hold lists.
    """

    def __init__(self, label, separator, path):
        self.columns = [label] if isinstance(label, str) else list(label)
        self.several = not isinstance(label, str)
        self._separator, self._path = separator, path
        self._pair = _PAIRS[3 if is_untyped(path) else 0]
        self._as_text = False  # whether lists are JSON in cells of text
        self._are_ids = False  # whether the names in lists are integers

    def read(self, columns, positions, unit):
        """Return a list of names for each row, None for an unlabeled one."""
        if self.several:
            return self._read_columns(columns, positions, unit)
        (label,) = self.columns
        if self._separator is not None:
            return [self._split(cell) for cell in columns[label]]
        lists = [self._as_list(cell) for cell in columns[label]]
        parts = [part for names in lists for part in names or ()]
        kinds = {type(part) for part in parts}
        self._are_ids = kinds == {int}
        odd = [
            at
            for at, names in zip(positions, lists, strict=True)
            if names and len(set(map(str, names))) < len(names)
        ]
        if len(kinds) > 1 or not kinds <= {str, int} or odd:
            where = f" at {unit} {list_some(odd)}" if odd else ""
            raise ValueError(
                f"column {label!r} of {str(self._path)!r} must hold lists of different "
                f"names of classes, got {', '.join(sorted(x.__name__ for x in kinds))}"
                f"{where}. Write names, or one column per class with 0 and 1."
            )
        return [names and list(map(str, names)) for names in lists]

    def _split(self, cell):
        if is_missing(cell) or not str(cell).strip():
            return None
        if isinstance(cell, float) and cell.is_integer():
            cell = int(cell)
        parts = [part.strip() for part in str(cell).split(self._separator)]
        return list(dict.fromkeys(part for part in parts if part))

    def _as_list(self, cell):
        if is_missing(cell) or isinstance(cell, list):
            return None if not isinstance(cell, list) else cell
        self._as_text = True
        return _parse_list(cell)

    def _read_columns(self, columns, positions, unit):
        rows, unit = [], unit.removesuffix("s")
        for i, at in enumerate(positions):
            cells = {name: columns[name][i] for name in self.columns}
            blank = [name for name, cell in cells.items() if is_missing(cell)]
            if len(blank) == len(cells):
                rows.append(None)
                continue
            if blank:
                raise ValueError(
                    f"column {blank[0]!r} of {str(self._path)!r} must hold 0 or 1, as "
                    f"other columns of labels do at {unit} {at}; got a blank cell. "
                    "Fill it, or leave all of them blank."
                )
            rows.append(
                [
                    name
                    for name, cell in cells.items()
                    if self._read_flag(name, cell, f"{unit} {at}")
                ]
            )
        return rows

    def _read_flag(self, name, cell, where):
        for pair in _PAIRS:
            if any(type(cell) is type(value) and cell == value for value in pair):
                self._pair = pair
                return cell == pair[1]
        raise ValueError(
            f"column {name!r} of {str(self._path)!r} must hold 0 or 1, got {cell!r} at "
            f"{where}. Write 1 where the class applies."
        )

    def write(self, rows, file_cells):
        """Return columns of the cells of lists of names; None becomes a blank cell.

        `file_cells`, dict of row to dict of column to cell, are the cells of the file,
        which stay as they are. In the form of a column per class, a new class gets one.
        """
        if not self.several:
            (label,) = self.columns
            cells = [self.join(names) for names in rows]
            for row, row_cells in file_cells.items():
                cells[row] = row_cells[label]
            return {label: cells}
        used = {name for names in rows for name in names or ()}
        names = [*self.columns, *sorted(used - set(self.columns))]
        no, yes = self._pair
        cells = {
            name: [None if row is None else yes if name in row else no for row in rows]
            for name in names
        }
        for row, row_cells in file_cells.items():
            for name, cell in row_cells.items():
                cells[name][row] = cell
        return cells

    def join(self, names):
        """Return names in one cell: joined, or a list."""
        if names is None:
            return None
        if not self.several and self._separator is None:
            if self._are_ids:
                names = [_as_id(name) for name in names]
            names = list(names)
            return json.dumps(names, ensure_ascii=False) if self._as_text else names
        separator = self._separator or JOIN
        if odd := [name for name in names if separator in name]:
            raise ValueError(
                f"the class {odd[0]!r} must not hold {separator!r}, which separates "
                "the names in a cell. Rename the class, or use another separator."
            )
        return separator.join(names) or separator


def _as_id(name):
    try:
        return int(name)
    except ValueError as exc:
        raise ValueError(
            f"the class {name!r} must be an integer, as the other classes are."
        ) from exc


def to_indicator(rows, names):
    """Return lists of names as an indicator matrix, and the names of its columns.

    A row that is None becomes NaN.
    """
    if names is None:
        names = sorted({name for row in rows for name in row or ()})
    column_of = {name: j for j, name in enumerate(names)}
    target = np.zeros((len(rows), len(names)), dtype=int)
    for i, row in enumerate(rows):
        target[i, [column_of[name] for name in row or ()]] = 1
    missing = [i for i, row in enumerate(rows) if row is None]
    if missing:
        target = target.astype(float)
        target[missing] = np.nan
    return target, list(names)


def _parse_list(cell):
    """Return the list that a cell of text holds as JSON, or None."""
    if not isinstance(cell, str) or not cell.startswith("["):
        return None
    try:
        value = json.loads(cell)
    except ValueError:
        return None
    return value if isinstance(value, list) else None
