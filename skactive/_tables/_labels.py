"""The one reader of labels in a table: one class per text, several, or numbers."""

import json
import math
import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._utils._format import is_missing, trim
from .._utils._labels import is_names, list_classes, same_label
from ._formats import is_untyped, name_of
from ._reader import spell
from ._writer import unescape

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # always fits into 64 bits
_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")
_MANY = 20  # different numbers, which may be meant as quantities
_SOURCES = {"given", "person", "model", "skipped"}  # of a label that skactive wrote


@dataclass
class Labels:
    """The labels of the rows of a table.

    Attributes
    ----------
    values : list
        A label for each row: str, int or bool; a list of names for several classes per
        text; float for a regression. None without one.
    target : str
        "single-label", "multi-label" or "regression".
    cells : LabelCells or None
        How several classes per text are written.
    trimmed : set of int
        The rows whose labels had blanks around them.
    n_chosen : int
        Number of labels by people in a session of skactive, which asked for them.
    """

    values: list
    target: str = "single-label"
    cells: Any = None
    trimmed: set = field(default_factory=set)
    n_chosen: int = 0


def read_labels(
    table,
    label,
    separator=None,
    *,
    regression=False,
    like=None,
    predicted=False,
    typed=True,
):
    """Return the Labels of a table, Cells; `label` are one key or several.

    This is how every command and function reads labels, those of `table.rows`. Spaces
    and invisible characters around a label are removed, and blank cells are missing. In
    formats without types, a column holds text unless each cell is the shortest spelling
    of one integer. In the others, numbers with fractions are text as well, since
    classes are no quantities; with `regression`, all labels are floats.

    In a table that skactive wrote, predictions are missing labels, unless `predicted`.
    `like` are the Labels of another column, whose form is taken. Without `typed`, the
    labels are the cells, without blanks.
    """
    _check_form(label, separator, regression)
    several = not isinstance(label, str)
    keys = list(label) if several else [label]
    rows, columns = table.rows, {key: table.cells(key) for key in keys}
    labels = Labels([])
    if not predicted:
        rows = _leave_out_predictions(table, keys, columns, rows, labels)
    if regression:
        labels.target, values = "regression", columns[label]
    elif typed and (cells := _find_cells(columns, label, separator, table, like)):
        labels.target, labels.cells = "multi-label", cells
        values = cells.read(columns, rows, table)
    else:
        values = columns[label]
    if len(rows) < len(values):
        counts = set(rows)
        values = [x if row in counts else None for row, x in enumerate(values)]
    restored = restore(values) if is_untyped(table.path) else values
    values = _trim(restored)
    pairs = zip(values, restored, strict=True)
    labels.trimmed = {i for i, (x, y) in enumerate(pairs) if x is not None and x != y}
    if n := len(labels.trimmed):
        table.say(
            f"{n:,} labels of {label!r} had spaces around them, which are removed"
        )
    if regression:
        values = _read_numbers(values, table, label)
    elif typed:
        values = values if labels.cells else _read_classes(values, table, label)
        names = dict.fromkeys(values if labels.cells is None else list_classes(values))
        for message in describe_lookalikes(x for x in names if x is not None):
            table.say(message)
        _compare_copies(values, table)
    labels.values = values
    return labels


def find_sources(names):
    """Return the columns that tell labels from predictions, of those of a table."""
    ends = ("_source", "_prediction")
    return [x for x in names if f"_{_own_name(x)}".endswith(ends)]


def _check_form(label, separator, regression):
    """Raise a ValueError unless the form of the labels is one."""
    several = not isinstance(label, str)
    if regression and (several or separator is not None):
        raise ValueError(
            "'regression' must be False for several classes per text, got True. Name "
            "one column of numbers."
        )
    if several and separator is not None:
        raise ValueError(
            f"'separator' must be None for one column per class, got {separator!r} and "
            f"the columns {list(label)!r}. Pass one of the two."
        )
    if separator is not None and not trim(separator):
        raise ValueError(
            f"'separator' must be a str such as '|', got {separator!r}. White space "
            "around names is removed."
        )


def restore(cells):
    """Return cells as they were before `write_table` escaped them."""
    restored = {x: unescape(x) for x in set(filter(_is_str, cells))}
    return [restored[x] if _is_str(x) else x for x in cells]


def _trim(cells):
    """Return labels without blanks around names, None for missing ones."""
    names = {x: trim(x) or None for x in set(filter(_is_str, cells))}

    def trim_one(cell):
        if is_names(cell):
            return list(dict.fromkeys(map(trim, cell)))
        return None if is_missing(cell) else cell

    return [names[x] if _is_str(x) else trim_one(x) for x in cells]


def _is_str(cell):
    return type(cell) is str


# Tables that skactive wrote -----------------------------------------------------------


def _own_name(key):
    """Return the name of a column that skactive added, without its prefixes."""
    return re.sub("^(skactive_)+", "", name_of(key))


def find_own(names, name, key=None):
    """Return the last column that skactive added to a table as `name`, or None.

    Next to the labels `key` of one of several questions, it has another name.
    """
    own = key and f"{name_of(key)}_{name and name.removeprefix('label_')}"
    keys = [x for x in names if _own_name(x) == name]
    keys += [x for x in names if _own_name(x) == own]
    return keys[-1] if keys else None


def _leave_out_predictions(table, keys, columns, rows, labels):
    """Return the rows whose labels are no predictions, and count the chosen ones."""
    partners = {"prediction": "probability", "machine_label": "machine_confidence"}
    for key in keys:
        name = _own_name(key)
        start = next((x for x in partners if name.endswith(f"_{x}")), None)
        wanted = start and name.removesuffix(start) + partners[start]
        partner = find_own(table.names, partners.get(name) or wanted)
        if partner is not None:
            raise ValueError(
                f"'label' must be a column of labels by people, got {key!r}, which "
                f"holds predictions: {partner!r} is next to it. Name another column, "
                "or rename this one."
            )
    several = "+".join(map(name_of, keys))
    source = find_own(table.names, "label_source", several)
    if source is None or source not in table.columns:
        return rows
    sources = table.cells(source)
    if not {x for x in sources if not is_missing(x)} <= _SOURCES:
        return rows
    labeled = [row for row in rows if not is_missing(columns[keys[0]][row])]
    ours = [row for row in labeled if sources[row] == "model"]
    prediction = find_own(table.names, "prediction", several)
    edited = []
    if len(keys) == 1 and prediction in table.columns:
        predicted, written = table.cells(prediction), columns[keys[0]]
        edited = [row for row in ours if written[row] != predicted[row]]
        if 2 * len(edited) > len(ours):
            return rows  # the sources are those of another column
    labels.n_chosen = sum(sources[row] == "person" for row in labeled)
    if ours:
        table.say(
            f"{len(ours):,} labels are predictions of a model, as the column "
            f"{source!r} says, and are left out"
        )
    if edited:
        table.say(
            f"{len(edited):,} of them differ from the column {prediction!r}: write "
            f"'person' into {source!r} to use them ({table.where(edited)})"
        )
    return [row for row in rows if sources[row] != "model"]


# What a person should look at ---------------------------------------------------------


def describe_lookalikes(names):
    """Return messages about classes that look the same, and about names of nothing."""
    looks = {}
    for name in dict.fromkeys(map(str, names)):
        look = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
        look = "".join(x for x in look if unicodedata.category(x) != "Cf")
        look = float(look) if _NUMBER.fullmatch(look) else look
        looks.setdefault(look, []).append(name)
    alike = [group for group in looks.values() if len(group) > 1]
    messages = [
        f"the classes {' and '.join(map(repr, x))} look the same" for x in alike
    ]
    return messages + [
        f"{looks[name][0]!r} is a class like any other; leave cells without a label "
        "blank"
        for name in ("nan", "null", "n/a", "<na>")
        if name in looks
    ]


def _compare_copies(values, table):
    """Add a message about texts that occur with different labels."""
    rows = [row for row in table.rows if values[row] is not None] if table.texts else []
    if len({table.texts[row] for row in rows}) == len(rows):
        return
    first, odd = {}, {}
    for row in rows:
        other = first.setdefault(table.texts[row], row)
        if not same_label(values[other], values[row]):
            odd.setdefault(other, [other]).append(row)
    if odd:
        at = table.where(next(iter(odd.values())))
        table.say(
            f"{len(odd):,} texts occur with different labels, and all of them count: "
            f"the first at {at}"
        )


# One class or number per text ---------------------------------------------------------


def _read_classes(values, table, label):
    """Return labels of one type, str, int or bool; None stays."""
    kinds = set(map(type, values)) - {type(None)}
    rows = [row for row, x in enumerate(values) if x is not None]
    odd = [] if kinds == {str} else [row for row in rows if not _is_label(values[row])]
    if bool in kinds and len(kinds) > 1:
        odd += [row for row in rows if type(values[row]) is not type(values[rows[0]])]
    if odd:
        raise ValueError(
            f"{table.name(label)} must hold labels of one type, str, bool or int of at "
            f"most 64 bits; got {values[odd[0]]!r:.60} at {table.where(odd[:1])}. Use "
            "one type."
        )
    different = {x for x in values if x is not None}
    if is_untyped(table.path):
        if all(map(_INTEGER.fullmatch, different)):
            return list(map({x: int(x) for x in different}.get, values))
        if len(different) > _MANY and all(map(_NUMBER.fullmatch, different)):
            table.say(
                f"{len(different):,} different numbers of column {label!r} are names "
                "of classes; only a regression reads them as quantities"
            )
        return values
    if kinds <= {int, float} and all(float(x).is_integer() for x in different):
        return [None if x is None else int(x) for x in values]
    if len(kinds) < 2 and float not in kinds:
        return values
    spelled = [None if x is None else spell(x) for x in values]
    both = [
        row for row in rows if not _is_str(values[row]) and spelled[row] in different
    ]
    if both and table.path.suffix.lower() != ".xlsx":
        raise ValueError(
            f"{table.name(label)} must hold labels of one type, got the number and the "
            f"text {spelled[both[0]]!r}, the number at {table.where(both)}. Write them "
            "in one way."
        )
    table.say(f"the numbers of column {label!r} are names of classes, read as text")
    return spelled


def _is_label(value):
    if isinstance(value, float):
        return math.isfinite(value)
    is_huge = type(value) is int and not -(2**63) <= value < 2**63
    return type(value) in (str, bool, int) and not is_huge


def _read_numbers(values, table, label):
    """Return the labels of a regression as floats; None stays."""
    numbers = [None] * len(values)
    for row, cell in enumerate(values):
        if cell is None:
            continue
        is_number = not isinstance(cell, str) or _NUMBER.fullmatch(cell)
        with suppress(TypeError, ValueError):
            if is_number and not isinstance(cell, bool):
                numbers[row] = float(cell)
        if numbers[row] is None or not math.isfinite(numbers[row]):
            advice = "Leave out regression=True for classes."
            if _NUMBER.fullmatch(str(cell).replace(",", ".")):
                advice = "Write decimal points, not commas."
            raise ValueError(
                f"{table.name(label)} must hold numbers, got {cell!r:.60} at "
                f"{table.where([row])}. {advice}"
            )
    return numbers


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


def _find_cells(columns, label, separator, table, like):
    """Return the LabelCells of labels that are several per text, or None."""
    path = table.path
    if not isinstance(label, str) or separator is not None:
        return LabelCells(label, separator, path)
    filled = [x for x in columns[label] if not is_missing(x)]
    if filled and all(_parse_list(cell) is not None for cell in filled):
        return LabelCells(label, None, path)
    if like is not None and like.cells is not None:
        return LabelCells(label, like.cells.separator or JOIN, path)
    return None


class LabelCells:
    """How the labels of a table are written: names in one cell, or a column per class.

    `label` is one column or a list of one for each class. The cells of one column hold
    names that `separator` joins; without a separator, they hold lists.
    """

    def __init__(self, label, separator, path):
        self.columns = [label] if isinstance(label, str) else list(label)
        self.several = not isinstance(label, str)
        self.separator, self._path = separator, path
        self._pair = _PAIRS[3 if is_untyped(path) else 0]
        self._as_text = False  # whether lists are JSON in cells of text
        self._are_ids = False  # whether the names in lists are integers

    def read(self, columns, rows, table):
        """Return a list of names for each row, None for the others and unlabeled ones.

        `columns` are cells by column, and `rows` are those to read.
        """
        lists = [None] * len(table.places)
        if self.several:
            return self._read_columns(columns, rows, lists, table)
        (label,) = self.columns
        read = self._as_list if self.separator is None else self._split
        for row in rows:
            lists[row] = read(columns[label][row])
        if self.separator is None:
            self._check_lists(lists, table)
            return [names and list(map(str, names)) for names in lists]
        return lists

    def _check_lists(self, lists, table):
        """Check that lists hold names, or ids; and remember which."""
        kinds = {type(part) for names in lists for part in names or ()}
        self._are_ids = kinds == {int}
        odd = [
            row
            for row, names in enumerate(lists)
            if names and len(set(map(str, names))) < len(names)
        ]
        if len(kinds) > 1 or not kinds <= {str, int} or odd:
            where = f" at {table.where(odd)}" if odd else ""
            raise ValueError(
                f"{table.name(self.columns[0])} must hold lists of different names of "
                f"classes, got {', '.join(sorted(x.__name__ for x in kinds))}{where}. "
                "Write names, or one column per class with 0 and 1."
            )

    def _split(self, cell):
        if is_missing(cell):
            return None
        cell = unescape(cell) if is_untyped(self._path) else spell(cell)
        parts = map(trim, cell.split(self.separator))
        return list(dict.fromkeys(filter(None, parts)))

    def _as_list(self, cell):
        if is_missing(cell) or isinstance(cell, list):
            return None if not isinstance(cell, list) else cell
        self._as_text = True
        return _parse_list(cell)

    def _read_columns(self, columns, rows, lists, table):
        for row in rows:
            cells = {name: columns[name][row] for name in self.columns}
            blank = [name for name, cell in cells.items() if is_missing(cell)]
            if len(blank) == len(cells):
                continue
            where = table.where([row])
            if blank:
                raise ValueError(
                    f"{table.name(blank[0])} must hold 0 or 1, as other columns of "
                    f"labels do at {where}; got a blank cell. Fill it, or leave all of "
                    "them blank."
                )
            lists[row] = [
                name for name in cells if self._read_flag(name, cells[name], where)
            ]
        return lists

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
        if not self.several and self.separator is None:
            if self._are_ids:
                names = [_as_id(name) for name in names]
            names = list(names)
            return json.dumps(names, ensure_ascii=False) if self._as_text else names
        separator = self.separator or JOIN
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
    if isinstance(cell, list):
        return cell
    if not isinstance(cell, str) or not cell.startswith("["):
        return None
    try:
        value = json.loads(cell)
    except ValueError:
        return None
    return value if isinstance(value, list) else None
