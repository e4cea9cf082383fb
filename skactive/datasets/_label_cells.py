"""Several classes of a text in a table: joined names, lists, or a column per class."""

import json

import numpy as np

from .._utils._format import list_some
from ._reader import is_missing_label, is_untyped

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
    filled = [x for x in columns[label] if not is_missing_label(x)]
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

    def read(self, columns, places, place):
        """Return a list of names for each row, None for an unlabeled one."""
        if self.several:
            return self._read_columns(columns, places, place)
        (label,) = self.columns
        if self._separator is not None:
            return [self._split(cell) for cell in columns[label]]
        lists = [self._as_list(cell) for cell in columns[label]]
        parts = [part for names in lists for part in names or ()]
        kinds = {type(part) for part in parts}
        self._are_ids = kinds == {int}
        odd = [
            at
            for at, names in zip(places, lists, strict=True)
            if names and len(set(map(str, names))) < len(names)
        ]
        if len(kinds) > 1 or not kinds <= {str, int} or odd:
            where = f" at {place} {list_some(odd)}" if odd else ""
            raise ValueError(
                f"column {label!r} of {str(self._path)!r} must hold lists of different "
                f"names of classes, got {', '.join(sorted(x.__name__ for x in kinds))}"
                f"{where}. Write names, or one column per class with 0 and 1."
            )
        return [names and list(map(str, names)) for names in lists]

    def _split(self, cell):
        if is_missing_label(cell) or not str(cell).strip():
            return None
        if isinstance(cell, float) and cell.is_integer():
            cell = int(cell)
        parts = [part.strip() for part in str(cell).split(self._separator)]
        return list(dict.fromkeys(part for part in parts if part))

    def _as_list(self, cell):
        if is_missing_label(cell) or isinstance(cell, list):
            return None if not isinstance(cell, list) else cell
        self._as_text = True
        return _parse_list(cell)

    def _read_columns(self, columns, places, place):
        rows, place = [], place.removesuffix("s")
        for i, at in enumerate(places):
            cells = {name: columns[name][i] for name in self.columns}
            blank = [name for name, cell in cells.items() if is_missing_label(cell)]
            if len(blank) == len(cells):
                rows.append(None)
                continue
            if blank:
                raise ValueError(
                    f"column {blank[0]!r} of {str(self._path)!r} must hold 0 or 1, as "
                    f"other columns of labels do at {place} {at}; got a blank cell. "
                    "Fill it, or leave all of them blank."
                )
            rows.append(
                [
                    name
                    for name, cell in cells.items()
                    if self._read_flag(name, cell, f"{place} {at}")
                ]
            )
        return rows

    def _read_flag(self, name, cell, where):
        for pair in _PAIRS:
            if any(type(cell) is type(known) and cell == known for known in pair):
                self._pair = pair
                return cell == pair[1]
        raise ValueError(
            f"column {name!r} of {str(self._path)!r} must hold 0 or 1, got {cell!r} at "
            f"{where}. Write 1 where the class applies."
        )

    def write(self, rows, given):
        """Return columns of the cells of lists of names; None becomes a blank cell.

        `given` are the cells of the file, dict of row to dict of column to cell, which
        stay as they are. In the form of a column per class, a new class gets one.
        """
        if not self.several:
            (label,) = self.columns
            cells = [self.join(names) for names in rows]
            for row, known in given.items():
                cells[row] = known[label]
            return {label: cells}
        found = {name for names in rows for name in names or ()}
        names = [*self.columns, *sorted(found - set(self.columns))]
        no, yes = self._pair
        cells = {
            name: [None if row is None else yes if name in row else no for row in rows]
            for name in names
        }
        for row, known in given.items():
            for name, cell in known.items():
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
    place = {name: j for j, name in enumerate(names)}
    target = np.zeros((len(rows), len(names)), dtype=int)
    for i, row in enumerate(rows):
        target[i, [place[name] for name in row or ()]] = 1
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
