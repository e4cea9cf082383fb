"""Writers of tables: CSV, TSV, JSONL, Parquet and Excel files."""

import csv
import io
import json
import re
from pathlib import Path

from .._storage._files import write_atomic
from ._formats import import_package


def check_folder(path):
    """Return the Path of a file to write; its folder must exist."""
    path = Path(path).expanduser()
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"'path' must be in a folder that exists, got {str(path)!r}. Make "
            f"{str(path.parent)!r} first."
        )
    return path


def write_table(path, columns, *, suffixes=None, **dialect):
    """Write a dict of columns as the file that the suffix of its name requires.

    The file appears whole or not at all. `suffixes` limits the formats. Lists become
    JSON in CSV, TSV and Excel files; `delimiter` and `encoding` are those of a CSV
    file. Raise a ValueError for another suffix, and for values that the format lacks.
    """
    path = check_folder(path)
    suffix, allowed = path.suffix.lower(), suffixes or tuple(WRITERS)
    if suffix not in allowed:
        raise ValueError(
            f"'path' must end in one of {', '.join(allowed)}, which names the format; "
            f"got {str(path)!r}."
        )
    try:
        content = WRITERS[suffix](columns, **(dialect if suffix == ".csv" else {}))
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


def unescape(cell):
    """Undo :func:`escape`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def find_unwritable(text, suffix):
    """Return the first character of a text that a format cannot hold, or None."""
    match = re.search(_UNWRITABLE.get(suffix, _HALVES), text)
    return None if match is None or suffix in (".jsonl", ".ndjson") else match[0]


_FORMULA = re.compile(r"'*(?![+-][\d.]+\Z)[=+\-@\t\r\n]")  # and no number
_HALVES = "[\ud800-\udfff]"  # of characters
_UNWRITABLE = {
    ".tsv": f"[\t\r\n]|{_HALVES}",
    ".xlsx": f"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|{_HALVES}",
}


def _to_csv(columns, delimiter=",", encoding="utf-8"):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=delimiter)
    writer.writerow(columns)
    writer.writerows(_flat_rows(columns))
    return stream.getvalue().encode(encoding)


def _to_tsv(columns):
    # As it is read: a quote is a character like any other, and a cell has no tab.
    rows = [columns, *_flat_rows(columns)]
    lines = []
    for row in rows:
        cells = ["" if cell is None else str(cell) for cell in row]
        if odd := [cell for cell in cells if any(c in cell for c in "\t\r\n")]:
            raise ValueError(
                f"a TSV file cannot hold a tab or a line break within a cell, got "
                f"{odd[0][:60]!r}. Name a .csv or .jsonl file."
            )
        lines.append("\t".join(cells) + "\n")
    return "".join(lines).encode("utf-8")


def _flat_rows(columns):
    for row in zip(*columns.values(), strict=True):
        yield [json.dumps(cell) if isinstance(cell, list) else cell for cell in row]


def _to_jsonl(columns):
    rows = zip(*columns.values(), strict=True)
    lines = [
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n"
        for row in rows
    ]
    # What UTF-8 cannot hold becomes an escape of JSON, such as \ud800.
    return "".join(lines).encode("utf-8", "backslashreplace")


def _to_parquet(columns):
    pa, pq = map(import_package, ("pyarrow", "pyarrow.parquet"))

    stream = io.BytesIO()
    try:
        pq.write_table(pa.table(columns), stream)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as exc:
        raise ValueError(
            f"Parquet does not take these ids or labels ({exc}): a column must be of "
            "one type, and int of at most 64 bits. Name a .jsonl file."
        ) from exc
    return stream.getvalue()


def _to_excel(columns):
    openpyxl = import_package("openpyxl")
    rows = [list(columns), *_flat_rows(columns)]
    for number, row in enumerate(rows, start=1):
        for name, value in zip(columns, row, strict=True):
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
                cell.value = value
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


WRITERS = {
    ".csv": _to_csv,
    ".tsv": _to_tsv,
    ".jsonl": _to_jsonl,
    ".ndjson": _to_jsonl,
    ".parquet": _to_parquet,
    ".xlsx": _to_excel,
}
