"""Writers of tables: CSV, TSV, JSONL, Parquet and Excel files."""

import csv
import io
import json
import re
from itertools import zip_longest
from pathlib import Path

from .._storage._files import write_atomic
from ._formats import HALVES, as_list, import_package, is_untyped, name_of, name_once


def check_folder(path):
    """Return the Path of a file to write; its folder must exist."""
    path = Path(path).expanduser()
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"'path' must be in a folder that exists, got {str(path)!r}. Make "
            f"{str(path.parent)!r} first."
        )
    return path


def write_table(path, columns, *, source=None, suffixes=None):
    """Write a dict of columns as the file that the suffix of its name requires.

    The file appears whole or not at all. The keys of the columns are those of
    `as_keys`, and their cells are lists or Arrow arrays. Cells of `source`, the Cells
    of an input, stay as they are; the texts of all others are escaped in CSV and TSV
    files, see :func:`escape`. A file in the format of the source gets its dialect.
    `suffixes` limits the formats. Lists become JSON in CSV, TSV and Excel files. Raise
    a ValueError for another suffix, and for values that the format lacks.
    """
    path = check_folder(path)
    suffix, allowed = path.suffix.lower(), suffixes or tuple(WRITERS)
    if suffix not in allowed:
        raise ValueError(
            f"'path' must end in one of {', '.join(allowed)}, which names the format; "
            f"got {str(path)!r}."
        )
    options, copied = {"delimiter": "\t"} if suffix == ".tsv" else {}, {}
    if source is not None:
        copied = source.columns
        is_same = source.path.suffix.lower() == suffix
        options = source.dialect if is_same else options
    if is_untyped(path):
        columns = {
            key if key in copied else escape(key): (
                cells if cells is copied.get(key) else _escape(cells, copied.get(key))
            )
            for key, cells in columns.items()
        }
    try:
        content = WRITERS[suffix](columns, **options)
    except UnicodeEncodeError as exc:
        raise ValueError(
            f"a text, label or id holds {exc.object[exc.start : exc.end]!r}, half of a "
            f"character, which {suffix} cannot hold. Name a .jsonl file."
        ) from exc
    write_atomic(path, content)


def free_name(name, columns):
    """Return a name for a new column, other than those that are there."""
    while name in columns:
        name = f"skactive_{name}"
    return name


def escape(cell):
    """Return a text that no spreadsheet runs as a formula; :func:`unescape` undoes it.

    A text gets an apostrophe in front if it begins with one of ``= + - @``, a tab or a
    line break, or with apostrophes before one of these. Other cells are unchanged.
    """
    is_formula = isinstance(cell, str) and _FORMULA.match(cell)
    return f"'{cell}" if is_formula else cell


def _escape(cells, before):
    """Escape the cells of a column, but those that it had before; it may be new."""
    pairs = zip_longest(cells, before or ())
    return [cell if cell == old else escape(cell) for cell, old in pairs]


def unescape(cell):
    """Undo :func:`escape`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def find_unwritable(text, suffix, quoting=csv.QUOTE_MINIMAL):
    """Return the first character of a text that a format cannot hold, or None.

    `quoting` is that of a CSV or TSV file.
    """
    odd = _UNWRITABLE if suffix == ".xlsx" else HALVES.pattern
    if quoting == csv.QUOTE_NONE:
        odd = f"[\t\r\n]|{HALVES.pattern}"
    match = re.search(odd, text)
    return None if match is None or suffix in (".jsonl", ".ndjson") else match[0]


_FORMULA = re.compile(r"'*(?![+-][\d.]+\Z)[=+\-@\t\r\n]")  # and no number
_UNWRITABLE = f"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|{HALVES.pattern}"


def _to_csv(columns, delimiter=",", encoding="utf-8", quoting=csv.QUOTE_MINIMAL):
    rows = [list(map(name_of, columns)), *_flat_rows(columns)]
    options = {"delimiter": delimiter, "quoting": quoting}
    if quoting == csv.QUOTE_NONE:  # a quote is a character like any other
        options |= {"quotechar": None, "lineterminator": "\n"}
    stream = io.StringIO(newline="")
    try:
        csv.writer(stream, **options).writerows(rows)
    except csv.Error as exc:
        raise ValueError(
            "a TSV file without quotes around cells cannot hold a tab or a line break "
            "within a cell. Name a .csv or .jsonl file."
        ) from exc
    return stream.getvalue().encode(encoding)


def _flat_rows(columns):
    for row in zip(*map(as_list, columns.values()), strict=True):
        yield [json.dumps(cell) if isinstance(cell, list) else cell for cell in row]


def _to_jsonl(columns):
    # Keys of JSON occur once, and JSON has no dates, for example.
    names = list(map(name_once, columns))
    cells = [list(map(_as_json, as_list(x))) for x in columns.values()]
    lines = [
        json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n"
        for row in zip(*cells, strict=True)
    ]
    # What UTF-8 cannot hold becomes an escape of JSON, such as \ud800.
    return "".join(lines).encode("utf-8", "backslashreplace")


def _as_json(cell):
    is_json = cell is None or isinstance(cell, str | int | float | list | dict)
    return cell if is_json else str(cell)


def _to_parquet(columns, metadata=None):
    pa, pq = map(import_package, ("pyarrow", "pyarrow.parquet"))

    stream = io.BytesIO()
    try:
        arrays = [pa.array(x) if isinstance(x, list) else x for x in columns.values()]
        table = pa.table(arrays, list(map(name_of, columns)))
        pq.write_table(table.replace_schema_metadata(metadata), stream)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as exc:
        raise ValueError(
            f"Parquet does not take these ids or labels ({exc}): a column must be of "
            "one type, and int of at most 64 bits. Name a .jsonl file."
        ) from exc
    return stream.getvalue()


def _to_excel(columns):
    openpyxl = import_package("openpyxl")
    names = list(map(name_of, columns))
    rows = [names, *_flat_rows(columns)]
    for number, row in enumerate(rows, start=1):
        for name, value in zip(names, row, strict=True):
            text = value if isinstance(value, str) else ""
            if len(text) > 32767 or find_unwritable(text, ".xlsx"):  # openpyxl cuts
                raise ValueError(
                    "an Excel cell cannot hold control characters, or more than 32,767 "
                    f"characters; got {len(text):,} in row {number} of column "
                    f"{name!r:.60}: {text!r:.60}. Name a .csv or .jsonl file."
                )
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in rows:
        cells = []
        for value in row:
            cell = openpyxl.cell.WriteOnlyCell(sheet)
            try:
                cell.value = _escape_xml(value)
            except ValueError as exc:
                raise ValueError(
                    f"an Excel file cannot hold {value!r:.60} ({exc}). Name a .csv or "
                    ".jsonl file."
                ) from exc
            if isinstance(value, str):
                cell.data_type = "s"  # never a formula
            cells.append(cell)
        sheet.append(cells)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _escape_xml(cell):
    """Return a cell with line ends of Windows, and their escapes, as Excel stores them.

    XML has no carriage returns.
    """
    if not isinstance(cell, str):
        return cell
    return re.sub("_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", cell).replace("\r", "_x000D_")


WRITERS = {
    ".csv": _to_csv,
    ".tsv": _to_csv,
    ".jsonl": _to_jsonl,
    ".ndjson": _to_jsonl,
    ".parquet": _to_parquet,
    ".xlsx": _to_excel,
}
