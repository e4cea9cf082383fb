"""The labels and texts in the cells of a table, checked."""

import math
import re
from dataclasses import dataclass, field
from typing import Any

from .._utils._labels import is_missing
from ..datasets._reader import (
    as_numbers,
    check_finite,
    is_untyped,
    refuse_fractions,
)

_HALF = re.compile("[\ud800-\udfff]")  # of a character


@dataclass
class Table:
    """The columns of a table, and the rows that have a text.

    `places` are the places of the rows in the file, of the kind `place`. `messages` are
    what a person should know, and `stripped` the rows whose labels had spaces around.
    """

    path: Any
    columns: dict[str, Any]
    places: Any
    place: str
    rows: Any
    messages: list[str]
    stripped: set[int] = field(default_factory=set)

    def check_characters(self, column):
        """Refuse halves of characters, which no encoder reads, and count NULs."""
        cells = self.columns[column]
        for row, text in enumerate(cells):
            if text and (half := _HALF.search(text)):
                raise ValueError(
                    f"{self._name(column)} must hold whole characters, got "
                    f"{half[0]!r} at {self._where(row)}. Correct this cell."
                )
        if n_nul := sum("\0" in text for text in cells if text):
            self.messages.append(
                f"{n_nul:,} texts hold the character NUL, which other programs may not "
                "read"
            )

    def read_labels(self, column, form, target):
        """Return the labels of the rows that have one and a text, dict of row to label.

        `form` is a LabelCells for lists of names, None for single labels. Floats that
        stand for integers, as pandas writes them, become integers.
        """
        if form is not None:
            lists = form.read(self.columns, self.places, self.place)
            return self._strip({row: lists[row] for row in self.rows})
        known = self._strip({row: self.columns[column][row] for row in self.rows})
        if target == "regression":
            return self._read_numbers(column, known)
        kinds = {type(value) for value in known.values()}
        if kinds == {float} and all(value.is_integer() for value in known.values()):
            return {row: int(value) for row, value in known.items()}
        if len(kinds) > 1 or not kinds <= {str, int, bool, float}:
            shown = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(
                f"{self._name(column)} must hold labels of one type, str, int or bool; "
                f"got {shown}. Use one type."
            )
        numbers = known.values()
        if is_untyped(self.path):
            numbers = as_numbers(list(numbers))
        at = [self.places[row] for row in known]
        check_finite(numbers, column, self.path, at, self.place)
        refuse_fractions(numbers, column, self.path)
        return known

    def _strip(self, labels):
        """Return the labels that there are, without spaces around names."""
        stripped = {row: _strip_label(label) for row, label in labels.items()}
        changed = [row for row, label in labels.items() if label != stripped[row]]
        known = {row: x for row, x in stripped.items() if not is_missing(x)}
        if n := len(known.keys() & changed):
            self.messages.append(
                f"{n:,} labels had spaces around them, which are removed"
            )
        self.stripped.update(changed)
        return known

    def _read_numbers(self, column, known):
        """Return the labels of a regression as floats."""
        numbers = {}
        for row, cell in known.items():
            try:
                numbers[row] = math.nan if isinstance(cell, bool) else float(cell)
            except (TypeError, ValueError):
                numbers[row] = math.nan
            if not math.isfinite(numbers[row]):
                raise ValueError(
                    f"{self._name(column)} must hold numbers, got {cell!r} at "
                    f"{self._where(row)}. Leave out --regression for classes."
                )
        return numbers

    def _name(self, column):
        return f"column {column!r} of {str(self.path)!r}"

    def _where(self, row):
        return f"{self.place.removesuffix('s')} {self.places[row]}"


def _strip_label(label):
    """Return a name without spaces around it; names in a list, each once."""
    if isinstance(label, list):
        return list(dict.fromkeys(name.strip() for name in label))
    return label.strip() if isinstance(label, str) else label
