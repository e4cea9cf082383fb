"""Tables of texts and labels: one class per text, or several."""

import json
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._utils._format import list_some
from .._utils._labels import is_missing
from .._utils._sklearn import StrOptions, validate_params
from ._formats import is_untyped
from ._reader import Column, read_cells

_MOST_FRACTIONS = 20  # more different numbers with a fraction are no classes
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # always fits into 64 bits
_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")


@validate_params(
    {
        "path": [str, os.PathLike],
        "text": [str, list, tuple],
        "label": [str, list, tuple, None],
        "separator": [str, None],
        "missing_labels": [StrOptions({"raise", "drop", "keep"})],
        "return_X_y": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def load_table(
    path: str | os.PathLike[str],
    *,
    text: str | Sequence[str],
    label: str | Sequence[str] | None = None,
    separator: str | None = None,
    missing_labels: str = "raise",
    return_X_y: bool = False,
) -> Any:
    r"""Load texts, or pairs of texts, and their labels from a table in a file.

    Parameters
    ----------
    path : str or Path
        The file. Its suffix determines the format: ``.csv`` (quoted fields, separated
        by commas or what the first lines show: semicolons, tabs or bars), ``.tsv``
        (tab, quotes are text), ``.jsonl`` or ``.ndjson`` (one JSON object per line),
        ``.parquet``, ``.xlsx`` (the first sheet; needs openpyxl). Text
        is UTF-8.
    text : str or pair of str
        The column of texts, or the two columns of pairs of texts.
    label : str or list of str, default=None
        The column of labels; or, for several classes per text, a column for each class,
        with 0 and 1. By default, no labels are read.
    separator : str, default=None
        What separates the names of classes in a cell of the column `label`, such as
        ``"|"``, for several classes per text. A cell that holds only the separator
        means that no class applies. Lists of names, in CSV and TSV files as JSON, need
        no separator.
    missing_labels : {"raise", "drop", "keep"}, default="raise"
        How to handle rows with a text but no label. "raise" raises an error that names
        the rows. "drop" omits the rows. "keep" returns None as their label, in a
        target of dtype object, so that they can be the unlabeled pool; in an indicator
        matrix, rows of NaN.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch. Needs `label`.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like, with the following attributes.

        data : list of str or list of tuple of (str, str), length n_samples
            The texts, in the order of the file.
        target : ndarray of shape (n_samples,) or (n_samples, n_classes), or None
            The labels. In CSV and TSV files they are str, int if all of them are
            integer literals such as ``12`` or ``-1``, or float if all of them are
            numbers and one has a fraction. In the other formats they keep their
            type: str, int, float or bool. For several classes per text, an indicator
            matrix of 0 and 1. None without `label`.
        target_names : list of str or None
            The sorted distinct labels as str, or the classes of the columns of an
            indicator matrix. None without `label` and for labels of type float.
        DESCR : str
            The number of rows and the path.

    (data, target) : tuple if `return_X_y` is True

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the suffix or a column is unknown, the file has no rows, a row is malformed,
        or texts or labels are missing. The message names the line or row.
    ImportError
        If openpyxl is needed and not installed.

    Notes
    -----
    An empty field of a CSV or TSV file is a missing value, as is a null or absent value
    in the other formats.

    Examples
    --------
    >>> import os, tempfile
    >>> from skactive.datasets import load_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "reviews.csv")
    ...     with open(path, "w", encoding="utf-8") as file:
    ...         _ = file.write('review,stars\nGood food,5\n"Slow, cold",1\n')
    ...     reviews = load_table(path, text="review", label="stars")
    >>> reviews.data
    ['Good food', 'Slow, cold']
    >>> reviews.target
    array([5, 1])

    Several classes per text:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "posts.csv")
    ...     with open(path, "w", encoding="utf-8") as file:
    ...         _ = file.write("post,topics\nA,food|travel\nB,|\nC,food\n")
    ...     posts = load_table(path, text="post", label="topics", separator="|")
    >>> posts.target_names
    ['food', 'travel']
    >>> posts.target
    array([[1, 1],
           [0, 0],
           [1, 0]])
    """
    texts, labels = _name_columns(text, label)
    needs_labels = {"return_X_y": return_X_y, "separator": separator is not None}
    for option, is_given in needs_labels.items():
        if is_given and label is None:
            raise ValueError(f"{option!r} needs labels: name their column as 'label'.")
    path = Path(path)
    columns, places, place = read_cells(path, list(dict.fromkeys([*texts, *labels])))
    name = label if isinstance(label, str) else tuple(labels)
    column = Column(path, name, place)
    target: Any = None
    names = cells = None
    if labels:
        cells = find_label_cells(columns, label, separator, path)
        target = columns[label] if cells is None else cells.read(columns, places, place)
    if labels and missing_labels == "drop":
        kept = [i for i, x in enumerate(target) if not is_missing(x)]
        if not kept:
            raise ValueError(f"{column.shown} holds no label.")
        columns = {name: [columns[name][i] for i in kept] for name in texts}
        target, places = [target[i] for i in kept], [places[i] for i in kept]
    for each in texts:
        Column(path, each, place).check_texts(columns[each], places)
    if labels and missing_labels != "keep":
        advice = "Fill these rows, or pass missing_labels='drop' or 'keep'."
        column.check_filled(target, places, is_missing, advice)
    if cells is not None:
        target, names = to_indicator(target, labels if cells.several else None)
    elif labels:
        target = _read_labels(target, path, name, places, place)
        target, names = _to_target(target, missing_labels == "keep")
    data = columns[texts[0]]
    if len(texts) == 2:
        data = list(zip(*(columns[name] for name in texts), strict=True))
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        target_names=names,
        DESCR=f"{len(data)} rows of {path}",
    )


def _to_target(labels, has_missing):
    """Return single labels as an array, and their names; None for floats."""
    target = np.array(labels, dtype=object if has_missing else None)
    names = sorted(set(labels) - {None})
    if any(isinstance(name, float) for name in names):
        return target, None
    return target, [str(name) for name in names]


def _are_names(columns):
    """Whether there are columns, each a str that is not empty, and each once."""
    is_named = all(isinstance(column, str) and column for column in columns)
    return is_named and 0 < len(columns) == len(set(columns))


def _name_columns(text, label):
    """Return the columns of texts and of labels, two lists, checked."""
    texts = [text] if isinstance(text, str) else list(text)
    if len(texts) not in (1, 2) or not all(isinstance(column, str) for column in texts):
        raise ValueError(
            "'text' must be the name of one column, or of two for pairs of texts; got "
            f"{text!r}."
        )
    labels = [label] if isinstance(label, str) else list(label or [])
    if label is not None and not _are_names(labels):
        raise ValueError(
            "'label' must name one column, or a column for each class, each once; "
            f"got {label!r}."
        )
    for column in labels:
        if column in texts:
            raise ValueError(f"'text' and 'label' both name the column {column!r}.")
    return texts, labels


def _read_labels(values, path, name, places, place):
    """Return labels of one type; None stays. `name` can be a tuple of columns."""
    known = [i for i, value in enumerate(values) if not is_missing(value)]
    labels, at = [values[i] for i in known], [places[i] for i in known]
    where = name, path, at, place
    if labels:
        labels = _one_type(labels, *where)
    if is_untyped(path):
        labels = as_numbers(labels)
    check_finite(labels, *where)
    read = [None] * len(values)
    for i, label in zip(known, labels, strict=True):
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


def _one_type(labels, column, path, places, place):
    """Return labels of one type: str, int, float or bool."""
    types = {type(label) for label in labels}
    for at, value in zip(places, labels, strict=True):
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise ValueError(
                f"column {column!r} of {str(path)!r} must hold labels of at most 64 "
                f"bits, got an int of {value.bit_length()} bits at {place} {at}. Write "
                "it as text."
            )
    if types <= {int, float} and len(types) == 2:
        return [float(label) for label in labels]
    if len(types) == 1 and types <= {str, int, float, bool}:
        return labels
    first = type(labels[0])
    other = next(
        (at for at, x in zip(places, labels, strict=True) if type(x) is not first),
        places[0],
    )
    raise ValueError(
        f"column {column!r} of {str(path)!r} must hold labels of one type, str, int, "
        f"float or bool; got {', '.join(sorted(t.__name__ for t in types))}, "
        f"for example at {place.removesuffix('s')} {other}. Use one type."
    )


def refuse_fractions(labels, column, path):
    """Raise a ValueError if numbers are too many with fractions to be classes."""
    fractions = {x for x in labels if isinstance(x, float)}
    if len(fractions) > _MOST_FRACTIONS:
        raise ValueError(
            f"column {column!r} of {str(path)!r} must hold classes, got "
            f"{len(fractions)} different numbers with fractions. Pass --regression to "
            "predict numbers."
        )


def check_finite(labels, column, path, places, place):
    """Raise a ValueError if a label is infinite."""
    for at, value in zip(places, labels, strict=True):
        if isinstance(value, float) and math.isinf(value):
            raise ValueError(
                f"column {column!r} of {str(path)!r} must hold finite numbers, got "
                f"{value} at {place.removesuffix('s')} {at}. Correct this cell."
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

    def _read_columns(self, columns, places, place):
        rows, place = [], place.removesuffix("s")
        for i, at in enumerate(places):
            cells = {name: columns[name][i] for name in self.columns}
            blank = [name for name, cell in cells.items() if is_missing(cell)]
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
