"""Formats of tables, each opened as an OpenTable, which is read in parts."""

import csv
import json
import re
import threading
import zipfile
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, compress, islice
from typing import Any

from .._storage._files import BLOCK_BYTES, BLOCK_ROWS
from .._utils._format import list_some
from .._utils._lazy import import_or

HALVES = re.compile("[\ud800-\udfff]")  # of characters
PAIR = ["text_1", "text_2"]  # columns of pairs of texts
_BUFFER = 2**20  # bytes of a Parquet column that are read at once
_ROWS = "rows (counted from 0)"
_csv_lock = threading.RLock()


@dataclass
class OpenTable:
    """The columns of a file.

    `names` are the keys of the columns, see `as_keys`. `read(columns)` yields the
    positions of some rows, counted in `unit`, and the cells of each column: a list or
    an Arrow array. `find_type(column)` returns "text", "integers" or the name of
    another type. `dialect` holds the options with which `write_table` writes a file of
    the same kind, and `note` says what is not read.
    """

    names: list
    read: Callable[[list], Any]
    unit: str = "lines"
    find_type: Callable[[str], str] = lambda column: "text"
    dialect: dict = field(default_factory=dict)
    note: str = ""


def as_keys(names):
    """Return a key for each column: its name, or (name, n) for the n-th of a name."""
    counts = Counter()
    keys = []
    for name in names:
        counts[name] += 1
        keys.append(name if counts[name] == 1 else (name, counts[name]))
    return keys


def name_of(key):
    """Return the name of a column with a key."""
    return key if isinstance(key, str) else key[0]


def name_once(key):
    """Return a name that only one column of a file has."""
    return key if isinstance(key, str) else "_".join(map(str, key))


def find_places(columns, keys):
    """Return the position of each column among the keys of a file."""
    place_of = {key: i for i, key in enumerate(keys)}
    return [place_of[column] for column in columns]


def as_list(cells):
    """Return the cells of a column, a list or an Arrow array, as a list."""
    if isinstance(cells, list):
        return cells
    # Python has no nanoseconds.
    return (cells.cast("string") if "[ns" in str(cells.type) else cells).to_pylist()


def _open_delimited(path):
    dialect = find_dialect(path)
    with _large_fields():
        _, [names] = next(_read_rows(path, dialect), (1, [[]]))
    if not names:
        raise ValueError(f"{str(path)!r} is empty: it has no header line.")
    keys = as_keys(names)

    def read(columns):
        positions = find_places(columns, keys)
        parts = _read_rows(path, dialect)
        next(parts)
        while True:
            with _large_fields():
                lines, rows = next(parts, (None, None))
            if lines is None:
                return
            yield lines, [[row[i] or None for row in rows] for i in positions]

    return OpenTable(keys, read, dialect=dialect)


def _read_rows(path, dialect):
    """Yield lines and rows, two lists: the header alone, then many rows at a time."""
    options = {name: x for name, x in dialect.items() if name != "encoding"}
    with open_text(path, newline="") as file:
        line = int(skip_separator_line(file) is not None)
        # strict: a quote that is never closed would swallow the rest of the file.
        reader = csv.reader(file, strict=True, **options)
        n_skipped, n_cells, n_read, n = line, None, 0, 1
        try:
            while rows := list(islice(reader, n)):
                end = reader.line_num + n_skipped
                starts = range(line + 1, end + 1)
                if len(starts) > len(rows):  # cells with line breaks
                    ends = accumulate(map(_count_lines, rows), initial=line + 1)
                    starts = list(ends)[:-1]
                n_cells = n_cells or len(rows[0])
                if not all(rows) and n_read:  # an empty line is no row
                    starts = list(compress(starts, rows))
                    rows = list(filter(None, rows))
                if set(map(len, rows)) - {n_cells}:
                    at, row = next(
                        (at, row)
                        for at, row in zip(starts, rows, strict=True)
                        if len(row) != n_cells
                    )
                    raise ValueError(
                        f"line {at} of {str(path)!r} has {len(row)} fields, but the "
                        f"header has {n_cells}. Quote fields that hold the delimiter, "
                        "and check that the suffix matches the format."
                    )
                line, n_read = end, n_read + len(rows)
                if rows:
                    yield starts, rows
                n = BLOCK_BYTES * n_read // max(file.buffer.tell(), 1)
                n = 64 if n_read == 1 else max(1, min(n, BLOCK_ROWS))
        except csv.Error as exc:
            raise ValueError(
                f"{str(path)!r} is malformed near line {reader.line_num + n_skipped}: "
                f"{exc}. Quote fields that hold the delimiter, and double the quotes "
                "inside them."
            ) from exc


def _count_lines(row):
    """Return the number of lines of a row of a delimited file."""
    return 1 + sum(len(_LINE_END.findall(cell)) for cell in row)


_LINE_END = re.compile("\r\n|\r|\n")


def open_text(path, newline=None):
    """Open a file of UTF-8 or UTF-16 text."""
    return path.open(encoding=_find_encoding(path), newline=newline)


def _find_encoding(path):
    """Return the encoding that the first bytes of a file show: UTF-8 without others."""
    with path.open("rb") as file:
        start = file.read(4)
    if start.startswith(BOM_UTF8):
        return "utf-8-sig"
    if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    # Letters of ASCII without a mark, as PowerShell and databases write them.
    places = [byte == 0 for byte in start]
    unmarked = {(False, True) * 2: "utf-16-le", (True, False) * 2: "utf-16-be"}
    return unmarked.get(tuple(places), "utf-8")


_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n?')


def skip_separator_line(file):
    """Return the delimiter that a first line such as ``sep=;`` names, None without."""
    match = _SEPARATOR_LINE.fullmatch(file.readline(10))
    if match is None:
        file.seek(0)
    return match and match[1]


def find_dialect(path):
    """Return how a delimited file is written: delimiter, encoding and quoting.

    The delimiter is what a line ``sep=;`` names, or what splits the first lines best:
    that of the suffix is preferred, then the one that gives the most columns of those
    that split the header and the first rows into equally many. A TSV file with quotes
    that do not enclose cells has no quoting.
    """
    encoding, options = _find_encoding(path), {}
    is_tsv = path.suffix.lower() == ".tsv"
    best, *others = "\t,;|" if is_tsv else ",;\t|"
    with open_text(path, newline="") as file:
        named = skip_separator_line(file)
        lines = list(islice(file, 100))
    n_best = 2 if is_tsv and "\t" in "".join(lines[:1]) else _count_fields(lines, best)
    for delimiter in others:
        if (n := _count_fields(lines, delimiter)) > n_best and n_best == 1:
            best, n_best = delimiter, n
    best = named or best
    if is_tsv and best == "\t" and not _has_quoted_cells(path):
        options = {"quoting": csv.QUOTE_NONE}
    return {"delimiter": best, "encoding": encoding, **options}


_QUOTED = re.compile(r'(?:^|(?<=\t))"(?:[^"]|"")*"(?=\t|$)')
_OPENED = re.compile(r'(?:^|(?<=\t))"(?:[^"]|"")*$')


def _has_quoted_cells(path):
    """Whether all quotes of a TSV file enclose cells, as in a CSV file.

    Quotes that could be part of the texts, as in the files of GLUE, enclose lines only
    if these do not have the right number of tabs by themselves.
    """
    is_open, spans_lines, n_tabs = False, False, set()
    with open_text(path) as file:
        for line in file:
            n_tabs.add(line.count("\t"))
            if '"' not in line:
                continue
            unquoted = _QUOTED.sub("", ('"' if is_open else "") + line.rstrip("\n"))
            is_open = _OPENED.search(unquoted) is not None
            spans_lines |= is_open
            if '"' in _OPENED.sub("", unquoted):
                return False
    return not is_open and (not spans_lines or len(n_tabs) > 1)


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


def _in_parts(rows):
    """Yield positions and rows as lists, from (position, row, size in characters)."""
    while True:
        positions, part, size = [], [], 0
        for position, row, length in rows:
            positions.append(position)
            part.append(row)
            size += length
            if len(part) == BLOCK_ROWS or size > BLOCK_BYTES:
                break
        if not part:
            return
        yield positions, part


def read_records(path):
    """Yield the line, the object and the length of each line of a JSONL file."""
    with open_text(path) as file:
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
            keys = as_keys(file.schema_arrow.names)
            # A name finds only one of several columns.
            names = None if any(isinstance(key, tuple) for key in keys) else columns
            batches = file.iter_batches(BLOCK_ROWS, columns=names, use_threads=False)
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

    dialect = {"metadata": schema.metadata}
    return OpenTable(as_keys(schema.names), read, _ROWS, find_type, dialect)


def _number(batches, columns):
    """Yield the numbers of the rows of RecordBatches, and some columns."""
    start = 0
    for batch in batches:
        rows = range(start, start + batch.num_rows)
        places = find_places(columns, as_keys(batch.schema.names))
        yield rows, [batch.column(i) for i in places]
        start = rows.stop


def import_package(name):
    """Return a module of another package, or raise an ImportError that names it."""
    package = name.partition(".")[0]
    kind = "Excel" if package == "openpyxl" else "Arrow and Parquet"
    missing = (
        f"{kind} files need {package}. Install it with `pip install {package}`, or use "
        "a .csv file."
    )
    return import_or(missing, name)


def _open_excel(path):
    try:
        openpyxl = import_package("openpyxl")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as exc:
        raise ValueError(
            f"{str(path)!r} is damaged, or is not an Excel file: {exc}. Save it again."
        ) from exc
    unescape = import_package("openpyxl.utils.escape").unescape
    try:
        sheets = {
            sheet.title: _read_sheet(sheet, unescape) for sheet in book.worksheets
        }
    finally:
        book.close()
    filled = [name for name, (_, rows) in sheets.items() if rows]
    name, *others = filled or sheets
    header, numbered = sheets[name]
    if not any(header):
        raise ValueError(
            f"the first row of the sheet {name!r} of {str(path)!r} must hold the names "
            f"of the columns, got {header!r}."
        )
    keys, note = as_keys(header), ""
    if others:
        note = f"only the sheet {name!r} is read, not {list_some(others, show=repr)}"

    def read(columns):
        positions = find_places(columns, keys)
        cells = [[row[i] for _, row in numbered] for i in positions]
        yield [number for number, _ in numbered], cells

    return OpenTable(keys, read, "rows", note=note)


def _read_sheet(sheet, unescape):
    """Return the header of a sheet, and the numbers and cells of its other rows."""

    def read(cell):
        # A line end of Windows is stored as _x000D_ and a line feed.
        return unescape(cell) if isinstance(cell, str) and "_x" in cell else cell

    rows = [
        (number, [None if cell == "" else read(cell) for cell in row])
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1)
    ]
    filled = (i for _, row in rows for i, x in enumerate(row, 1) if x is not None)
    width = max(filled, default=0)
    rows = [(at, [*row, *[None] * width][:width]) for at, row in rows]
    (_, first), *others = rows or [(1, [])]
    header = ["" if name is None else str(name) for name in first]
    return header, [row for row in others if any(x is not None for x in row[1])]


OPENERS = {
    ".csv": _open_delimited,
    ".tsv": _open_delimited,
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
