"""Formats of tables, each opened as an OpenTable, which is read in parts."""

import csv
import json
import threading
import zipfile
from codecs import BOM_UTF8
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .._storage._files import BLOCK_BYTES, BLOCK_ROWS

PAIR = ["text_1", "text_2"]  # columns of pairs of texts
_BUFFER = 2**20  # bytes of a Parquet column that are read at once
_csv_lock = threading.RLock()


@dataclass
class OpenTable:
    """The columns of a file.

    `read(columns)` yields the positions of some rows, counted in `unit`, and the cells
    of each column: a list or an Arrow array. `find_type(column)` returns "text",
    "integers" or the name of another type.
    """

    names: list
    read: Callable[[list], Any]
    unit: str = "lines"
    find_type: Callable[[str], str] = lambda column: "text"


def _in_parts(rows):
    """Yield positions and rows as lists, from (position, row, size in characters)."""
    while True:
        positions, part, size = [], [], 0
        with _large_fields():
            for position, row, length in rows:
                positions.append(position)
                part.append(row)
                size += length
                if len(part) == BLOCK_ROWS or size > BLOCK_BYTES:
                    break
        if not part:
            return
        yield positions, part


def _open_csv(path):
    # strict: a quote that is never closed would swallow the rest of the file.
    return _open_delimited(path, delimiter=find_delimiter(path), strict=True)


def _open_tsv(path):
    # Fields with tabs are rare and stray quotes are common, GLUE's files among them.
    return _open_delimited(path, delimiter="\t", quoting=csv.QUOTE_NONE)


def _open_delimited(path, **dialect):
    rows = _read_rows(path, dialect)
    with _large_fields():
        _, names, _ = next(rows, (1, [], 0))
    if not names:
        raise ValueError(f"{str(path)!r} is empty: it has no header line.")
    position_of = {name: i for i, name in enumerate(names)}

    def read(columns):
        positions = [position_of[column] for column in columns]
        rows = _read_rows(path, dialect)
        next(rows)
        for lines, part in _in_parts(rows):
            yield lines, [[row[i] or None for row in part] for i in positions]

    return OpenTable(names, read)


def _read_rows(path, dialect):
    """Yield the line, the cells and the length of the header and each row."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, **dialect)
        start, n_cells = 1, None
        try:
            for row in reader:
                n_cells = n_cells or len(row)
                if row and len(row) != n_cells:
                    raise ValueError(
                        f"line {start} of {str(path)!r} has {len(row)} fields, but the "
                        f"header has {n_cells}. Quote fields that hold the delimiter, "
                        "and check that the suffix matches the format."
                    )
                if row or start == 1:  # an empty line is no row
                    yield start, row, sum(map(len, row))
                start = reader.line_num + 1
        except csv.Error as exc:
            raise ValueError(
                f"{str(path)!r} is malformed near line {reader.line_num}: {exc}. Quote "
                "fields that hold the delimiter, and double the quotes inside them."
            ) from exc


def find_dialect(path):
    """Return the delimiter and the encoding of a CSV file; nothing of another file."""
    if path.suffix.lower() != ".csv":
        return {}
    with path.open("rb") as file:
        is_marked = file.read(len(BOM_UTF8)) == BOM_UTF8  # as Excel writes and wants it
    encoding = "utf-8-sig" if is_marked else "utf-8"
    return {"delimiter": find_delimiter(path), "encoding": encoding}


def find_delimiter(path):
    """Return the delimiter of a CSV file: the one that splits its first lines best.

    The comma is preferred, then the delimiter that gives the most columns of those that
    split the header and the first rows into equally many.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = [line for line, _ in zip(file, range(100), strict=False)]
    best = ","
    n_best = _count_fields(lines, best)
    for delimiter in ";\t|":
        if (n := _count_fields(lines, delimiter)) > n_best and n_best == 1:
            best, n_best = delimiter, n
    return best


def _count_fields(lines, delimiter):
    """Return the number of fields of the header; 1 if the other rows have others."""
    try:
        with _large_fields():
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return 1
    # The last of these lines can be a part of a quoted field.
    complete = rows[:-1] or rows
    return len(complete[0]) if complete and len(set(map(len, complete))) == 1 else 1


@contextmanager
def _large_fields():
    """Lift the field size limit of csv, which is global, for a while."""
    with _csv_lock:
        before = csv.field_size_limit(2**31 - 1)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def open_jsonl(path):
    _, first, _ = next(read_records(path), (1, None, 0))
    if first is None:
        raise ValueError(f"{str(path)!r} holds no rows.")
    types = {name: type(value) for name, value in first.items()}

    def read(columns):
        for lines, part in _in_parts(read_records(path)):
            yield lines, [[record.get(name) for record in part] for name in columns]

    def find_type(column):
        return "integers" if types[column] is int else "text"

    return OpenTable(list(first), read, find_type=find_type)


def read_records(path):
    """Yield the line, the object and the length of each line of a JSONL file."""
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as exc:  # also huge numbers
                is_syntax = isinstance(exc, json.JSONDecodeError)
                fault = f"{exc.msg} at column {exc.colno}" if is_syntax else exc
                raise ValueError(
                    f"line {number} of {str(path)!r} cannot be read as JSON: {fault}. "
                    "Each line must be one JSON object."
                ) from exc
            if not isinstance(record, dict):
                raise ValueError(
                    f"line {number} of {str(path)!r} must be a JSON object such as "
                    f'{{"text": "..."}}, got {type(record).__name__}.'
                )
            yield number, record, len(line)


def _open_parquet(path):
    pq = import_package("pyarrow.parquet")

    def open_file():
        # Not a Dataset, which reads row groups ahead and uses more memory.
        return pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)

    def read(columns):
        with open_file() as file:
            batches = file.iter_batches(BLOCK_ROWS, columns=columns, use_threads=False)
            yield from _number(batches, columns)

    with open_file() as file:
        return _open_typed(file.schema_arrow, read)


def _open_arrow(path):
    pa = import_package("pyarrow")

    def open_file():
        # The library datasets of Hugging Face writes the streaming format.
        file = pa.OSFile(str(path))
        try:
            reader = pa.ipc.open_file(file)
            return reader, map(reader.get_batch, range(reader.num_record_batches))
        except pa.ArrowInvalid:
            file.seek(0)
            reader = pa.ipc.open_stream(file)
            return reader, reader

    def read(columns):
        _, batches = open_file()
        slices = (
            batch.slice(start, BLOCK_ROWS)
            for batch in batches
            for start in range(0, batch.num_rows, BLOCK_ROWS)
        )
        yield from _number(slices, columns)

    return _open_typed(open_file()[0].schema, read)


def open_dataset(dataset):
    options = {"batch_size": BLOCK_ROWS}
    if type(dataset).__module__.startswith("pyarrow"):  # others take other options
        options |= {"batch_readahead": 2, "fragment_readahead": 1}

    def read(columns):
        yield from _number(dataset.to_batches(columns=columns, **options), columns)

    return _open_typed(dataset.schema, read)


def _open_typed(schema, read):
    def find_type(column):
        import pyarrow.types as t

        column_type = schema.field(column).type
        inner = column_type.value_type if t.is_dictionary(column_type) else column_type
        if str(inner) in ("string", "large_string", "string_view"):
            return "text"
        return "integers" if t.is_integer(inner) else str(column_type)

    return OpenTable(schema.names, read, "rows (counted from 0)", find_type)


def _number(batches, columns):
    """Yield the numbers of the rows of RecordBatches, and some columns."""
    start = 0
    for batch in batches:
        rows = range(start, start + batch.num_rows)
        yield rows, [batch.column(name) for name in columns]
        start = rows.stop


def import_package(name):
    """Return a module of another package, or raise an ImportError that names it."""
    try:
        return import_module(name)
    except ImportError as exc:
        package = name.partition(".")[0]
        kind = "Excel" if package == "openpyxl" else "Arrow and Parquet"
        raise ImportError(
            f"{kind} files need {package}. Install it with `pip install {package}`, or "
            "use a .csv file."
        ) from exc


def _open_excel(path):
    try:
        openpyxl = import_package("openpyxl")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as exc:
        raise ValueError(
            f"{str(path)!r} is damaged, or is not an Excel file: {exc}. Save it again."
        ) from exc
    try:
        rows = list(book.worksheets[0].iter_rows(values_only=True))
    finally:
        book.close()
    header = [] if not rows else list(rows[0])
    while header and header[-1] is None:
        header.pop()
    if not header or not all(isinstance(name, str) for name in header):
        raise ValueError(
            f"the first row of the first sheet of {str(path)!r} must hold the names of "
            f"the columns, got {header!r}."
        )
    numbered = [
        (number, [*row, *[None] * (len(header) - len(row))])  # without last cells
        for number, row in enumerate(rows[1:], start=2)
        if any(cell not in (None, "") for cell in row)
    ]

    def read(columns):
        positions = [header.index(column) for column in columns]
        yield (
            [number for number, _ in numbered],
            [[None if r[i] == "" else r[i] for _, r in numbered] for i in positions],
        )

    return OpenTable(header, read, "rows")


OPENERS = {
    ".csv": _open_csv,
    ".tsv": _open_tsv,
    ".jsonl": open_jsonl,
    ".ndjson": open_jsonl,
    ".json": open_jsonl,
    ".parquet": _open_parquet,
    ".arrow": _open_arrow,
    ".feather": _open_arrow,
    ".xlsx": _open_excel,
}
POOL_FORMATS = tuple(suffix for suffix in OPENERS if suffix != ".xlsx")
TABLE_FORMATS = ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".xlsx"


def is_untyped(path):
    """Whether a format has no types, so that all cells are texts."""
    return path.suffix.lower() in (".csv", ".tsv")
