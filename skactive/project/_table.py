"""The tables of a project: a file in memory, or files whose texts stay on the disk."""

import math
import re
from itertools import chain, compress, count

from .._tables._formats import PAIR, find_dialect, is_untyped
from .._tables._labels import (
    JOIN,
    LabelCells,
    as_numbers,
    check_finite,
    find_label_cells,
    refuse_fractions,
)
from .._tables._reader import find_files, list_columns, open_part, read_cells
from .._tables._writer import free_name
from .._utils._labels import is_missing
from ..datasets import open_pool
from ._record import make_folder
from ._result import COLUMNS, MACHINE, write_result

ROWS = 8192  # that are predicted and written at a time
_HALF = re.compile("[\ud800-\udfff]")  # of a character


class Table:
    """A file in memory: the rows that have a text, and the columns of labels.

    Attributes
    ----------
    columns : dict of str to list
        All cells of the file, or those of its labeled rows.
    rows : list of int
        The row of `columns` of each text.
    texts : sequence
    cells : LabelCells or None
        How several classes per text are written.
    target : str
        "single-label", "multi-label" or "regression".
    suffix : str
        The format of the labeled table.
    messages : list of str
        What a person should know about the file.
    """

    is_large = False  # whether the texts stay on the disk
    encode: str | None = "background"  # how a session computes the features
    fallback: str | None = ".jsonl"  # the format for what another cannot hold

    def __init__(self, settings):
        self.path, text, label = settings.file_, settings.text, settings.label
        self._names = [text] if isinstance(text, str) else list(text)
        self.labels = [label] if isinstance(label, str) else list(label)
        self.label = label if isinstance(label, str) else self.labels
        label = self.label
        self._shown, self._id = list(settings.show), settings.id
        self.suffix, self.messages = self.path.suffix, []
        self._separator, self._as_read = settings.separator, {}
        self._read()
        self.cells, self.target = None, "regression"
        if not settings.regression:
            options = label, self._separator, self.path
            self.cells = find_label_cells(self.columns, *options)
            self.target = "single-label" if self.cells is None else "multi-label"
        elif self._separator is not None or not isinstance(label, str):
            raise ValueError(
                "'regression' must be False for several classes per text, got True. "
                "Name one column of numbers."
            )

    def _read(self):
        """Read all columns; find the rows that have a text."""
        columns, self._places, self._place = read_cells(self.path)
        new = [label for label in self.labels if label not in columns]
        if len(new) == len(self.labels) and self._names[0] in columns:
            for label in new:
                columns[label] = [None] * len(self._places)
                self.messages.append(f"a column {label!r} is added; the file has none")
            new = []
        others = [name for name in self._names if name not in self.labels]
        read_cells(self.path, [*new, *others, *self._shown])
        if odd := [label for label in self.labels if label in self._names]:
            raise ValueError(
                f"'label' must be another column than the texts, got {odd[0]!r}."
            )
        self.columns, self._dialect = columns, find_dialect(self.path)
        if (delimiter := self._dialect.get("delimiter", ",")) != ",":
            self.messages.append(f"the cells are separated by {delimiter!r}")
        for name in self._names:
            for row, cell in enumerate(columns[name]):
                if not isinstance(cell, str) and cell is not None:
                    raise ValueError(
                        f"{self._name(name)} must hold text, got {cell!r} at "
                        f"{self._where(row)}. Name a column of texts."
                    )
        texts = list(zip(*(columns[name] for name in self._names), strict=True))
        self.rows = list(compress(count(), map(all, texts)))
        if not self.rows:
            raise ValueError(f"{self._name(self._names[0])} has no text.")
        if n_blank := len(texts) - len(self.rows):
            self.messages.append(f"{n_blank:,} rows have no text and are left out")
        single = len(self._names) == 1
        self.texts = [texts[row][0] if single else texts[row] for row in self.rows]
        for name in self._names:
            self._check_characters(name)

    def describe(self, position):
        """Return the cells to show with a text, dict of column to str."""
        row = self.rows[position] if self._shown else None
        cells = {name: self.columns[name][row] for name in self._shown}
        return {name: str(x) for name, x in cells.items() if not is_missing(x)}

    def _check_characters(self, column):
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

    def open_texts(self, folder):
        """Return the texts; a folder is for the cache of those on the disk."""
        return self.texts

    def take(self, positions):
        """Return the texts at some positions."""
        return [self.texts[i] for i in positions]

    def read_given(self):
        """Return the labels of the file, dict of position of the text to label."""
        return self._by_position(self.labels[0], self.cells)

    def read_suggested(self, column):
        """Return the labels of another column, dict of position to label."""
        read_cells(self.path, [column])  # names the columns that there are
        if column in self.labels:
            raise ValueError(
                f"'suggest' must be another column than the labels, got {column!r}."
            )
        cells = None
        if self.cells is not None:
            cells = find_label_cells(self.columns, column, None, self.path)
            cells = cells or LabelCells(column, self._separator or JOIN, self.path)
        return self._by_position(column, cells)

    def _by_position(self, column, cells):
        labels = self._read_labels(column, cells)
        position = {row: i for i, row in enumerate(self.rows)}
        return {position[row]: label for row, label in labels.items()}

    def _read_labels(self, column, cells):
        """Return the labels of the rows that have one and a text, dict of row to label.

        Floats that stand for integers, as pandas writes them, become integers.
        """
        if cells is not None:
            lists = cells.read(self.columns, self._places, self._place)
            return self._strip({row: lists[row] for row in self.rows})
        known = self._strip({row: self.columns[column][row] for row in self.rows})
        if self.target == "regression":
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
        at = [self._places[row] for row in known]
        check_finite(numbers, column, self.path, at, self._place)
        refuse_fractions(numbers, column, self.path)
        return known

    def _strip(self, labels):
        """Return the labels that there are, without spaces around names."""
        stripped = {row: _strip_label(label) for row, label in labels.items()}
        known = {row: x for row, x in stripped.items() if not is_missing(x)}
        self._as_read = {row: x for row, x in known.items() if x == labels[row]}
        if n := len(known) - len(self._as_read):
            self.messages.append(
                f"{n:,} labels had spaces around them, which are removed"
            )
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
                    f"{self._where(row)}. Leave out regression=True for classes."
                )
        return numbers

    def _name(self, column):
        return f"column {column!r} of {str(self.path)!r}"

    def _where(self, row):
        return f"{self._place.removesuffix('s')} {self._places[row]}"

    def write(self, path, batches, known_classes):
        """Write all columns, with those of `batches`: lists of cells of each text."""
        n = len(self._places)
        labels, names = [None] * n, (*COLUMNS, *MACHINE)
        added = {name: [None] * n for name in names}
        for row, cells in zip(self.rows, chain(*batches), strict=True):
            score = cells["probability"]
            cells = {**cells, "probability": score and round(score, 4)}
            labels[row] = cells.get("label")
            for name in names:
                added[name][row] = cells.get(name)
        columns = self._as_columns(labels, added["label_source"])
        if self.cells is not None:
            for name in ("prediction", "machine_label"):
                added[name] = list(map(self.cells.join, added[name]))
        if not any(label is not None for label in added["machine_label"]):
            added = {name: added[name] for name in COLUMNS}
        taken = {**self.columns, **columns}  # a class can be named like a column
        columns |= {free_name(name, taken): x for name, x in added.items()}
        note = free_name("note", taken)
        write_result(path, self.path, self.columns, columns, note, self._dialect)

    def _as_columns(self, labels, sources):
        """Return labels as columns in the form of the file, dict of name to cells."""
        if self.cells is None:
            return {self.labels[0]: labels}
        given = {
            row: {name: self.columns[name][row] for name in self.labels}
            for row, source in enumerate(sources)
            if source == "given" and self._as_read.get(row) == labels[row]
        }
        written, taken = {}, self.columns.keys() - self.labels
        for name, cells in self.cells.write(labels, given).items():
            written[free_name(name, taken | written.keys())] = cells
        return written


def _strip_label(label):
    """Return a name without spaces around it; names in a list, each once."""
    if isinstance(label, list):
        return list(dict.fromkeys(name.strip() for name in label))
    return label.strip() if isinstance(label, str) else label


class LargeTable(Table):
    """Files whose texts are read where they are; in memory are only their labels."""

    is_large = True
    encode = None  # the features are there
    fallback = None

    def __init__(self, settings):
        super().__init__(settings)
        self.suffix = ".parquet"

    def _read(self):
        """Read the cells of the rows that have a label."""
        self.columns = {name: [] for name in self.labels}
        self._places, self._place = [], "rows (counted from 0)"
        files, _ = find_files(self.path)
        parts = list(map(self._open_labels, files))
        shown, start = ", ".join(map(repr, self.labels)), 0
        if not any(parts):
            self.messages = [f"a column {shown} is added; the files have none"]
            files = parts = []
        for file, part in zip(files, parts, strict=True):
            if part is None:
                self.messages.append(
                    f"{file.name} has no column {shown}: its texts have no labels"
                )
                texts = open_part(file, self._names)
                start += sum(len(cells[0]) for cells in texts.cells())
                continue
            for cells in part.cells():
                for row, values in enumerate(zip(*cells, strict=True), start):
                    if not all(map(is_missing, values)):
                        self._places.append(row)
                        for name, cell in zip(self.labels, values, strict=True):
                            self.columns[name].append(cell)
                start += len(cells[0])
        self.rows = range(len(self._places))

    def _open_labels(self, file):
        """Return the labels of a file as a Part, None without any column of labels."""
        if set(self.labels).isdisjoint(list_columns(file)):
            return None
        return open_part(file, self.labels)

    def open_texts(self, folder):
        """Open and return the texts, whose cache is in a folder."""
        make_folder(folder, self.path)
        names = self._names[0] if len(self._names) == 1 else self._names
        self.texts = open_pool(self.path, names, id=self._id, cache=folder / "pool")
        return self.texts

    def take(self, positions):
        """Return the texts at some positions."""
        return self.texts[list(positions)]

    def _by_position(self, column, cells):
        labels = self._read_labels(column, cells)
        return {self._places[row]: label for row, label in labels.items()}

    def write(self, path, batches, known_classes):
        """Write ids, texts, labels and predictions as Parquet."""
        kind = float if self.target == "regression" else type((*known_classes, "")[0])
        kind = [kind] if self.target == "multi-label" else kind
        _write_parquet(path, self.texts, batches, kind, ("label", *COLUMNS))


def write_predictions(path, pool, predict):
    """Write ids, texts and the predictions of `predict(texts)` as Parquet."""

    def batches():
        for start in range(0, len(pool), ROWS):
            part = pool[start : start + ROWS]
            labels, scores, _ = predict(part)
            yield [
                {"prediction": label, "probability": score}
                for label, score in zip(labels, scores, strict=True)
            ]

    first = predict(pool[:1])[0][0]
    kind = type(first)
    if isinstance(first, list):
        kind = [type(first[0]) if first else str]
    _write_parquet(path, pool, batches(), kind, ("prediction", "probability"))


def _write_parquet(path, pool, batches, kind, names):
    """Write a Parquet file of texts and of the cells `names` of `batches`.

    `kind` is the type of the labels, in a list for lists of them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = PAIR if isinstance(pool[0], tuple) else ["text"]
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    label = pa.list_(types[kind[0]]) if isinstance(kind, list) else types[kind]
    special = {"label": label, "prediction": label, "flag": pa.bool_()}
    special |= {"probability": pa.float64(), "seconds": pa.float64()}
    id_type = pa.int64() if isinstance(pool.ids[0], int) else pa.large_string()
    fields = [("id", id_type), *((name, pa.large_string()) for name in texts)]
    fields += [(name, special.get(name, pa.string())) for name in names]
    start, schema = 0, pa.schema(fields)
    with pq.ParquetWriter(path, schema) as writer:
        for rows in batches:
            part = pool[start : start + len(rows)]
            start += len(rows)
            columns = [list(part.ids)]
            columns += map(list, zip(*part, strict=True)) if len(texts) == 2 else [part]
            columns += [[row.get(name) for row in rows] for name in names]
            arrays = [
                pa.array(column, field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
