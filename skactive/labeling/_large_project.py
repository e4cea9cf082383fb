"""A table that is larger than memory: its labels, its session, and what comes out."""

from .._utils._labels import is_missing, predict_labels
from ..datasets import open_pool
from ..datasets._parts import find_files, open_part
from ..session import PAIR
from ._project import Project
from ._record import make_folder, plain_folder
from ._result import COLUMNS, Rows

_ROWS = 8192  # that are predicted and written at a time


class LargeProject(Project):
    """A folder of files, or one file, whose texts are read where they are.

    The attributes are those of a Project. Of the table, only the labels that it has are
    in memory.
    """

    _encode = None  # the features are there
    _fallback = None

    def __init__(
        self, file, text, label, *, id=None, folder=None, separator=None, regression
    ):
        self._note(file, text, label, folder, separator, id)
        self.suggestions, self._suffix = {}, ".parquet"
        columns, rows = self._read_labeled()
        self.columns, self.rows = columns, range(len(rows))
        self._places, self._place = rows, "rows (counted from 0)"
        self._find_target(regression)
        # All columns of labels share the texts that `skactive encode` read.
        shared = plain_folder(self.path) if folder is None else self.folder
        make_folder(shared, self.path)
        self.texts = open_pool(self.path, text, id=id, cache=shared / "pool")
        given = self._read_labels(label, self.cells)
        self.given = {rows[place]: label for place, label in given.items()}

    def _read_labeled(self):
        """Return the cells of the labeled rows, dict of lists, and these rows."""
        columns, rows, start = {name: [] for name in self._labels}, [], 0
        files, _ = find_files(self.path)
        parts = list(map(self._open_labels, files))
        shown = ", ".join(map(repr, self._labels))
        if not any(parts):
            self.messages = [f"a column {shown} is added; the files have none"]
            return columns, rows
        for file, part in zip(files, parts, strict=True):
            if part is None:
                self.messages.append(
                    f"{file.name} has no column {shown}: its texts have no labels"
                )
                texts = open_part(file, self._texts)
                start += sum(batch.num_rows for batch in texts.batches())
                continue
            for batch in part.batches():
                cells = [column.to_pylist() for column in batch.columns]
                for i, row in enumerate(zip(*cells, strict=True), start):
                    if not all(map(is_missing, row)):
                        rows.append(i)
                        for name, cell in zip(self._labels, row, strict=True):
                            columns[name].append(cell)
                start += batch.num_rows
        return columns, rows

    def _open_labels(self, file):
        """Return the labels of a file as a Part, None without any column of labels."""
        try:
            return open_part(file, self._labels)
        except ValueError:
            open_part(file, self._texts)  # damage is an error
            if any(_has_column(file, name) for name in self._labels):
                raise
            return None

    def _take_texts(self, rows):
        return self.texts[list(rows)]

    def labeled(self):
        """Return texts and labels to train on; no text without a label is needed."""
        labels, answers = dict(self.given), self.session.labels
        rows = self.session.state.pool.positions(list(answers))
        labels |= dict(zip(rows, answers.values(), strict=True))
        return self._take_texts(labels), list(labels.values()), []

    def write(self, model=None, classes=None):
        """Write ids, texts, labels and, given a model, predictions as Parquet.

        `classes` names the columns of a model of several classes. Return the numbers of
        labels by their source.
        """
        rows = Rows(self.session, self.given.values())

        def batches():
            for start in range(0, len(self.texts), _ROWS):
                part = self.texts[start : start + _ROWS]
                found = predict_labels(model, part, classes, self.target)[:2]
                found = zip(range(start, start + len(part)), *found, strict=True)
                yield (
                    part,
                    [rows.describe(row, self.given.get(row), *x) for row, *x in found],
                )

        known = self.session.known_classes or [0.0]
        kind, cells = self._label_type(known), ("label", *COLUMNS)
        self._write_output(
            lambda path: write_rows(path, self.texts, batches(), kind, cells)
        )
        return rows.count()

    def _label_type(self, known):
        if self.target == "multi-label":
            return [type(known[0])]
        return float if self.target == "regression" else type(known[0])


def _has_column(file, name):
    try:
        open_part(file, [name])
    except ValueError:
        return False
    return True


def write_rows(path, pool, batches, kind, cells):
    """Write a Parquet file from pairs of a part of the pool and a dict for each row.

    `kind` is the type of the labels, in a list for lists of them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = PAIR if isinstance(pool[0], tuple) else ["text"]
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    label = types[kind] if not isinstance(kind, list) else pa.list_(types[kind[0]])
    special = {"label": label, "prediction": label}
    special |= {"probability": pa.float64(), "seconds": pa.float64()}
    special |= {"flag": pa.bool_()}
    id_type = pa.int64() if isinstance(pool.ids[0], int) else pa.large_string()
    schema = pa.schema(
        [
            ("id", id_type),
            *((name, pa.large_string()) for name in names),
            *((name, special.get(name, pa.string())) for name in cells),
        ]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for part, rows in batches:
            texts = zip(*part, strict=True) if len(names) == 2 else [part]
            columns = [list(part.ids), *map(list, texts)]
            columns += [[row.get(name) for row in rows] for name in cells]
            arrays = [
                pa.array(column, field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
