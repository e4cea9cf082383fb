"""The tables of a project: a file in memory, or files whose texts stay on the disk."""

from itertools import chain

import numpy as np

from .._tables._formats import PAIR, is_untyped
from .._tables._labels import find_sources, read_labels
from .._tables._reader import (
    Cells,
    TableFile,
    find_files,
    list_columns,
    open_part,
)
from .._tables._writer import free_name, write_table
from .._utils._format import is_missing, reprs
from ..datasets import open_pool
from ._record import make_folder
from ._result import COLUMNS, MACHINE

ROWS = 8192  # that are predicted and written at a time


class Table:
    """A file in memory: the rows that have a text, and the columns of labels.

    Attributes
    ----------
    file : Cells
        All cells of the file, or those of its labeled rows.
    rows : list of int
        The row of `file` of each text.
    texts : sequence
    label : str or list
        The column of labels, or the column of each class.
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
    added = None  # what `write` writes

    def __init__(self, settings):
        self.path, text, label = settings.file_, settings.text, settings.label
        names = [text] if isinstance(text, str) else list(text)
        if not names:
            raise ValueError(
                f"'text' must name the column of texts, out of {self._list_columns()}, "
                f"got {text!r}."
            )
        labels = [label] if isinstance(label, str) else list(label)
        self._shown, self._id, self.suffix = {}, settings.id, self.path.suffix
        self._read(names, labels, settings)
        self.label = self._keys[0] if isinstance(label, str) else self._keys
        options = {"regression": settings.regression}
        self._given = read_labels(self.file, self.label, settings.separator, **options)
        self.cells, self.target = self._given.cells, self._given.target

    @property
    def messages(self):
        """What a person should know about the file."""
        return self.file.messages

    def _list_columns(self):
        return reprs(TableFile(self.path).names)

    def _read(self, names, labels, settings):
        """Read all columns; find the rows that have a text."""
        file = self.file = TableFile(self.path)
        self._texts = texts = list(map(file.find, names))
        keys = [file.find(label, optional=True) for label in labels]
        if not any(keys):
            for label in labels:
                file.say(f"a column {label!r} is added; the file has none")
        else:
            keys = list(map(file.find, labels))  # names the missing one
        self._keys = [key or label for key, label in zip(keys, labels, strict=True)]
        shown = list(map(file.find, settings.show))
        if odd := [label for label in self._keys if label in texts]:
            raise ValueError(
                f"'label' must be another column than the texts, got {odd[0]!r}."
            )
        file.read()
        for label in self._keys:
            file.columns.setdefault(label, [None] * len(file.places))
        if (delimiter := file.dialect.get("delimiter", ",")) not in (",", "\t"):
            file.say(f"the cells are separated by {delimiter!r}")
        self.rows, self.texts = file.read_texts(texts)
        self._shown = {key: file.cells(key) for key in shown}

    def describe(self, position):
        """Return the cells to show with a text, dict of column to str."""
        row = self.rows[position] if self._shown else None
        cells = {name: cells[row] for name, cells in self._shown.items()}
        return {name: str(x) for name, x in cells.items() if not is_missing(x)}

    def open_texts(self, folder):
        """Return the texts; a folder is for the cache of those on the disk."""
        return self.texts

    def take(self, positions):
        """Return the texts at some positions."""
        return [self.texts[i] for i in positions]

    def read_given(self):
        """Return the labels of the file, dict of position of the text to label."""
        return self._by_position(self._given)

    def read_suggested(self, column):
        """Return the labels of another column, dict of position to label."""
        key = self.file.find(column)
        if key in (*self._keys, *self._texts):
            raise ValueError(
                f"'suggest' must be another column than the texts and the labels, got "
                f"{column!r}."
            )
        regression = self.target == "regression"
        options = {"regression": regression, "like": self._given, "predicted": True}
        return self._by_position(read_labels(self.file, key, **options))

    def _by_position(self, labels):
        values = (labels.values[row] for row in self.rows)
        return {i: label for i, label in enumerate(values) if label is not None}

    def add(self, batches, known_classes):
        """Keep the labels and the columns next to them, of lists of cells."""
        n = len(self.file.places)
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
        self.added = columns, {self.name_column(x): y for x, y in added.items()}

    def name_column(self, name):
        """Return the name of a column next to the labels."""
        return name

    def write(self, path, tables=()):
        """Write all columns of the file, with those of this table or of several."""
        columns, tables = dict(self.file.columns), tables or [self]
        for table in tables:
            columns |= table.added[0]
        for table in tables:  # a class can be named like a column
            columns |= {free_name(x, columns): y for x, y in table.added[1].items()}
        write_table(path, columns, source=self.file)

    def _as_columns(self, labels, sources):
        """Return labels as columns in the form of the file, dict of name to cells."""
        if self.cells is None and not is_untyped(self.path):
            return {self.label: labels}
        cells = {name: self.file.cells(name) for name in self._keys}
        given = {
            row: {name: column[row] for name, column in cells.items()}
            for row, source in enumerate(sources)
            if source == "given"
            and row not in self._given.trimmed
            and self._given.values[row] == labels[row]
        }
        if self.cells is None:
            (key,) = self._keys
            labels = [given.get(i, {key: x})[key] for i, x in enumerate(labels)]
            return {self.label: labels}
        written, taken = {}, self.file.columns.keys() - self._keys
        for name, cells in self.cells.write(labels, given).items():
            written[free_name(name, taken | written.keys())] = cells
        return written


class LargeTable(Table):
    """Files whose texts are read where they are; in memory are only their labels."""

    is_large = True
    encode = None  # the features are there
    fallback = None

    def __init__(self, settings):
        super().__init__(settings)
        self.suffix = ".parquet"

    def _list_columns(self):
        return reprs(list_columns(find_files(self.path)[0][0]))

    def _read(self, names, labels, settings):
        """Read the cells of the rows that have a label."""
        self._names, rows = names, "rows (counted from 0)"
        files, _ = find_files(self.path)
        known = {file: list_columns(file) for file in files}
        every = list(dict.fromkeys(chain(*known.values())))
        self.file = Cells(self.path, every, [], rows)
        keys = [self.file.find(label, optional=True) for label in labels]
        self._keys = [key or label for key, label in zip(keys, labels, strict=True)]
        columns = list(dict.fromkeys([*self._keys, *find_sources(every)]))
        self.file.columns = {key: [] for key in columns}
        shown, start = ", ".join(map(repr, labels)), 0
        if not any(keys):
            self.file.say(f"a column {shown} is added; the files have none")
            files = []
        for file in files:
            start = self._read_file(file, known[file], columns, start)
        self.rows = range(len(self.file.places))

    def _read_file(self, path, known, columns, start):
        """Read the labels of a file, whose first row has a number; return the next."""
        if set(self._keys).isdisjoint(known):
            shown = ", ".join(map(repr, self._keys))
            self.file.say(
                f"{path.name} has no column {shown}: its texts have no labels"
            )
            texts = open_part(path, self._names)
            return start + sum(len(cells[0]) for cells in texts.cells())
        wanted = [key for key in columns if key in known or key in self._keys]
        for cells in open_part(path, wanted).cells():
            for row, values in enumerate(zip(*cells, strict=True), start):
                if not all(map(is_missing, values[: len(self._keys)])):
                    self.file.places.append(row)
                    by_name = dict(zip(wanted, values, strict=True))
                    for name, column in self.file.columns.items():
                        column.append(by_name.get(name))
            start += len(cells[0])
        return start

    def open_texts(self, folder):
        """Open and return the texts, whose cache is in a folder."""
        make_folder(folder, self.path)
        names = self._names[0] if len(self._names) == 1 else self._names
        self.texts = open_pool(self.path, names, id=self._id, cache=folder / "pool")
        return self.texts

    def take(self, positions):
        """Return the texts at some positions."""
        return self.texts[list(positions)]

    def _by_position(self, labels):
        left_out = np.asarray(self.texts.left_out, dtype=int)
        rows = np.asarray(self.file.places, dtype=int)
        positions = (rows - np.searchsorted(left_out, rows)).tolist()
        labeled = zip(positions, labels.values, ~np.isin(rows, left_out), strict=True)
        return {i: label for i, label, kept in labeled if kept and label is not None}

    def add(self, batches, known_classes):
        """Keep the cells of labels and predictions, and their kind."""
        kind = float if self.target == "regression" else type((*known_classes, "")[0])
        self.added = batches, [kind] if self.target == "multi-label" else kind

    def write(self, path, tables=()):
        """Write ids, texts, labels and predictions as Parquet."""
        _write_parquet(path, self.texts, *self.added, ("label", *COLUMNS))


def write_predictions(path, pool, predict, classes=None):
    """Write ids, texts and the predictions of `predict(texts)` as Parquet.

    `classes` are those of a model for several classes per text.
    """

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
        kind = [type((first or classes or [""])[0])]
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
