"""Readers of columns of CSV, TSV, JSONL, Parquet and Excel files."""

import csv
import json
import math
import re
import zipfile
from collections import Counter
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from .._utils._format import list_some

_MOST_FRACTIONS = 20  # more different numbers with a fraction are no classes
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # always fits into 64 bits
_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")


def read_columns(path, *, texts, label=None, missing_labels="raise", merge=None):
    """Read text columns and a label column from a file.

    `label` can be a tuple of columns. `merge` is a function of the columns, the places
    of the rows and their kind; it returns lists of names as the column `label`, or None
    if each cell is a label.
    """
    wanted = [*texts, *([label] if isinstance(label, str) else label or [])]
    columns, places, place = read_cells(path, list(dict.fromkeys(wanted)))
    names = None if merge is None else merge(columns, places, place)
    if names is not None:
        columns = {**{name: columns[name] for name in texts}, label: names}
    if label is not None and missing_labels == "drop":
        kept = [i for i, x in enumerate(columns[label]) if not is_missing_label(x)]
        if not kept:
            raise ValueError(f"column {label!r} of {str(path)!r} holds no label.")
        columns = {name: [cells[i] for i in kept] for name, cells in columns.items()}
        places = [places[i] for i in kept]

    for column, values in columns.items():
        if column == label and missing_labels == "keep":
            continue
        is_missing = is_missing_label if column == label else _is_missing
        missing = [at for at, x in zip(places, values, strict=True) if is_missing(x)]
        if missing:
            advice = "Fill these rows or leave them out of the file."
            if column == label:
                advice = "Fill these rows, or pass missing_labels='drop' or 'keep'."
            raise ValueError(
                f"column {column!r} of {str(path)!r} has no value at {len(missing)} "
                f"of {len(values)} rows: {place} {list_some(missing)}. {advice}"
            )
    for column in texts:
        other = [
            at
            for at, x in zip(places, columns[column], strict=True)
            if not isinstance(x, str)
        ]
        if other:
            first = columns[column][places.index(other[0])]
            raise ValueError(
                f"column {column!r} of {str(path)!r} must hold text, got "
                f"{type(first).__name__} at {place} {list_some(other)}. Name "
                "a column of texts."
            )
    if label is not None and names is None:
        known = [i for i, x in enumerate(columns[label]) if not is_missing_label(x)]
        labels = [columns[label][i] for i in known]
        if labels:
            labels = _one_type(labels, label, path, [places[i] for i in known], place)
        if is_untyped(path):
            labels = as_numbers(labels)
        check_finite(labels, label, path, [places[i] for i in known], place)
        columns[label] = [None] * len(places)
        for i, value in zip(known, labels, strict=True):
            columns[label][i] = value
    return columns


def read_cells(path, wanted=None, optional=()):
    """Return columns as they are, with empty cells; all columns without `wanted`."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        is_excel = path.suffix.lower().startswith(".xls")
        advice = "Save it as .xlsx" if is_excel else "Convert or rename the file"
        raise ValueError(
            f"'path' must end in one of {', '.join(_READERS)}, which names the format; "
            f"got {str(path)!r}. {advice}."
        )
    if not path.is_file():
        what = "'path' is a folder" if path.is_dir() else "no such file"
        raise FileNotFoundError(
            f"{what}: {path}. Relative paths start at {str(Path.cwd())!r}."
        )
    try:
        columns, places, place = reader(path, wanted, optional)
    except UnicodeDecodeError as exc:
        raise ValueError(
            f"{str(path)!r} is not UTF-8 text (byte {exc.start}). Convert it, for "
            "example with `iconv -f latin1 -t utf-8`."
        ) from exc
    if not places:
        raise ValueError(f"{str(path)!r} holds no rows.")
    return columns, places, place


def as_numbers(cells):
    """Return cells of text as int, or as float if all are numbers, one a fraction."""
    if all(map(_INTEGER.fullmatch, cells)):
        return [int(cell) for cell in cells]
    if not all(map(_NUMBER.fullmatch, cells)):
        return cells
    numbers = [float(cell) for cell in cells]
    return cells if all(number.is_integer() for number in numbers) else numbers


def is_untyped(path):
    """Whether a format has no types, so that all cells are texts."""
    return _READERS.get(path.suffix.lower()) in _UNTYPED


def find_delimiter(path):
    """Return the delimiter of a CSV file: the one that splits its first lines best.

    The comma is preferred, then the delimiter that gives the most columns of those that
    split the header and the first rows into equally many.
    """
    with path.open(encoding="utf-8-sig", newline="") as file, large_fields():
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
        with large_fields():
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return 1
    # The last of these lines can be a part of a quoted field.
    complete = rows[:-1] or rows
    return len(complete[0]) if complete and len(set(map(len, complete))) == 1 else 1


def _read_csv(path, wanted, optional):
    # strict: a quote that is never closed would swallow the rest of the file.
    delimiter = find_delimiter(path)
    return _read_delimited(path, wanted, optional, delimiter=delimiter, strict=True)


def _read_tsv(path, wanted, optional):
    # Fields with tabs are rare and stray quotes are common, GLUE's files among them.
    tabs = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    return _read_delimited(path, wanted, optional, **tabs)


def _read_delimited(path, wanted, optional, **dialect):
    with path.open(encoding="utf-8-sig", newline="") as file, large_fields():
        reader = csv.reader(file, **dialect)
        try:
            header = next(reader, [])
            if not header:
                raise ValueError(f"{str(path)!r} is empty: it has no header line.")
            wanted = _add_optional(wanted, optional, header)
            positions = find_positions(wanted, header, path)
            values, lines, start = [], [], reader.line_num + 1
            for row in reader:
                if row and len(row) != len(header):
                    raise ValueError(
                        f"line {start} of {str(path)!r} has {len(row)} fields, but the "
                        f"header has {len(header)}. Quote fields that hold the "
                        "delimiter, and check that the suffix matches the format."
                    )
                if row:  # an empty line is no row
                    values.append([row[i] or None for i in positions])
                    lines.append(start)
                start = reader.line_num + 1
        except csv.Error as exc:
            raise ValueError(
                f"{str(path)!r} is malformed near line {reader.line_num}: {exc}. Quote "
                "fields that hold the delimiter, and double the quotes inside them."
            ) from exc
    columns = {column: [row[i] for row in values] for i, column in enumerate(wanted)}
    return columns, lines, "lines"


def _read_jsonl(path, wanted, optional):
    records, lines = [], []
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as exc:
                raise ValueError(
                    f"line {number} of {str(path)!r} is not JSON: {exc.msg} at column "
                    f"{exc.colno}. Each line must be one JSON object."
                ) from exc
            except (ValueError, RecursionError) as exc:  # huge numbers, deep nesting
                raise ValueError(
                    f"line {number} of {str(path)!r} cannot be read: {exc}. Each line "
                    "must be one JSON object of texts and labels."
                ) from exc
            if not isinstance(record, dict):
                raise ValueError(
                    f"line {number} of {str(path)!r} must be a JSON object such as "
                    f'{{"text": "..."}}, got {type(record).__name__}.'
                )
            records.append(record)
            lines.append(number)
    names = list(dict.fromkeys(name for record in records for name in record))
    wanted = _add_optional(wanted, optional, names)
    if records:
        find_positions(wanted, names, path)
    columns = {column: [record.get(column) for record in records] for column in wanted}
    return columns, lines, "lines"


def _read_parquet(path, wanted, optional):
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as exc:
        raise ImportError(
            "reading Parquet files needs pyarrow. Install it with `pip install "
            "pyarrow`, or convert the file to CSV or JSONL."
        ) from exc
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            wanted = _add_optional(wanted, optional, names)
            find_positions(wanted, names, path)
            table = file.read(columns=wanted)
            columns = {column: table.column(column).to_pylist() for column in wanted}
    except (pa.ArrowException, OSError, OverflowError) as exc:
        raise ValueError(
            f"{str(path)!r} is damaged, or is not a Parquet file: {exc}. Write "
            "it again."
        ) from exc
    return columns, list(range(table.num_rows)), "rows (counted from 0)"


def import_openpyxl():
    """Return the module openpyxl, or raise an ImportError that says how to get it."""
    try:
        import openpyxl
    except ImportError as exc:
        raise ImportError(
            'Excel files need openpyxl. Install it with `pip install "skactive[excel]"'
            "`, or use a .csv file."
        ) from exc
    return openpyxl


def _read_excel(path, wanted, optional):
    try:
        book = import_openpyxl().load_workbook(path, read_only=True, data_only=True)
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
    wanted = _add_optional(wanted, optional, header)
    positions = find_positions(wanted, header, path)
    numbered = [
        (number, [*row, *[None] * (len(header) - len(row))])  # without last cells
        for number, row in enumerate(rows[1:], start=2)
        if any(cell not in (None, "") for cell in row)
    ]
    columns = {
        column: [None if row[i] == "" else row[i] for _, row in numbered]
        for column, i in zip(wanted, positions, strict=True)
    }
    return columns, [number for number, _ in numbered], "rows"


_READERS = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
}
_UNTYPED = (_read_csv, _read_tsv)


def _add_optional(wanted, optional, names):
    wanted = names if wanted is None else wanted
    return list(dict.fromkeys([*wanted, *(name for name in optional if name in names)]))


def find_positions(columns, names, path):
    """Return the positions of columns, or raise an error that lists the columns."""
    counts = Counter(names)
    places = {name: i for i, name in enumerate(names)}
    for column in columns:
        if not counts[column]:
            _refuse_column(column, names, path)
        if counts[column] > 1:
            raise ValueError(
                f"{str(path)!r} has {counts[column]} columns named {column!r}. Rename "
                "all but one."
            )
    return [places[column] for column in columns]


def _refuse_column(column, names, path):
    close = get_close_matches(column, names, n=1) or [
        name for name in names if name.strip().lower() == column.strip().lower()
    ]
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"{str(path)!r} has no column {column!r}.{hint} Its columns: "
        f"{', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}."
    )


def _is_missing(value):
    return value is None or value != value  # NaN differs from itself


def is_missing_label(value):
    """Whether a cell holds no label."""
    return _is_missing(value) or value == ""


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


@contextmanager
def large_fields():
    """Lift the global field size limit of csv while a file is read."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)
