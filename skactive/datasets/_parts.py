"""Files of a large table, read in batches through pyarrow."""

import csv
import json
import os
import re
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from .._storage._text_file import BLOCK_ROWS
from ._reader import find_delimiter, find_positions, large_fields

_BUFFER = 2**20  # bytes of a Parquet column that are read at once
# Bytes of CSV and JSON that are parsed at once; a row must fit.
_BLOCKS = (2**20, 2**24, 2**30)


def find_files(path):
    """Return the files of a table as a list of Path, and what to call them."""
    if isinstance(path, str | os.PathLike):
        return _find_in(Path(path).expanduser()), os.fspath(path)
    if not isinstance(path, Sequence) or not all(
        isinstance(item, str | os.PathLike) for item in path
    ):
        raise TypeError(
            "'path' must be a file, a folder, a list of files or a "
            f"pyarrow.dataset.Dataset, got {type(path).__name__}. For a table in "
            "memory, pass pyarrow.dataset.dataset(table)."
        )
    files = [Path(item).expanduser() for item in path]
    if not files:
        raise ValueError("'path' must name at least one file, got an empty list.")
    for file in files:
        if not file.is_file():
            _refuse_missing(file)
        _suffix_format(file)
    _check_one_format(files, "'path'")
    resolved = [Path(os.path.abspath(file)) for file in files]
    if len(set(resolved)) < len(resolved):
        raise ValueError("'path' names a file more than once. Name each once.")
    return resolved, f"{len(files)} files, the first {str(files[0])!r}"


def _find_in(path):
    if path.is_file():
        _suffix_format(path)
        return [Path(os.path.abspath(path))]
    if not path.is_dir():
        _refuse_missing(path)
    found = []
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if not name.startswith((".", "_")))
        found += [
            Path(folder, file) for file in files if not file.startswith((".", "_"))
        ]
    known = sorted(file for file in found if file.suffix.lower() in _FORMATS)
    if not known:
        hint = ""
        if any(file.suffix == ".lance" for file in found):
            hint = f" Pass lance.dataset({str(path)!r})."
        raise FileNotFoundError(
            f"{str(path)!r} holds no file whose name ends in one of "
            f"{', '.join(_FORMATS)}.{hint}"
        )
    _check_one_format(known, repr(str(path)))
    return [Path(os.path.abspath(file)) for file in known]


def _refuse_missing(path):
    advice = f"Relative paths start at {str(Path.cwd())!r}."
    if path.is_dir():
        advice = "Pass the folder alone, or a list of files."
    elif any(character in str(path) for character in "*?["):
        advice = f"For a pattern, pass sorted(glob.glob({str(path)!r}))."
    elif re.match("[a-z0-9]+:/", str(path)):
        advice = "For a remote file, pass pyarrow.dataset.dataset(...)."
    fault = "'path' is a folder" if path.is_dir() else "no such file or folder"
    raise FileNotFoundError(f"{fault}: {str(path)!r}. {advice}")


def _check_one_format(files, name):
    formats = {}
    for file in files:
        formats.setdefault(_suffix_format(file), file)
    if len(formats) > 1:
        shown = ", ".join(repr(file.name) for file in formats.values())
        raise ValueError(
            f"{name} must hold files of one format, got {shown}. Pass a list of the "
            "files to read."
        )


def _suffix_format(path):
    known = _FORMATS.get(path.suffix.lower())
    if known is None:
        raise ValueError(
            f"'path' must end in one of {', '.join(_FORMATS)}, which names the format; "
            f"got {str(path)!r}. Unpack, convert or rename the file."
        )
    return known


def open_part(source, columns):
    """Return the reader of a file or Dataset, whose columns and types were checked."""
    if not isinstance(source, Path):
        return Part("the dataset", columns, _open_dataset(source, columns))
    name = str(source)
    opener = _FORMATS[source.suffix.lower()]
    with _named_errors(name):
        return Part(name, columns, opener(source, columns))


class Part:
    """A file or Dataset, which is read in batches.

    `start(block)` begins to read, with at most `block` bytes parsed at once, and
    returns the schema and an iterator of batches. `types` are "text" or "integers",
    for each column.
    """

    def __init__(self, name, columns, start):
        self.name, self._columns, self._start = name, columns, start
        schema, _ = start(_BLOCKS[0])
        find_positions(columns, schema.names, name)
        self.types = [_type_name(schema.field(column).type) for column in columns]

    def check_types(self, n_texts):
        """Raise a ValueError unless the first columns are texts and the rest ids."""
        for i, (column, found) in enumerate(
            zip(self._columns, self.types, strict=True)
        ):
            expected = ["text"] if i < n_texts else ["text", "integers"]
            if found not in expected:
                raise ValueError(
                    f"column {column!r} of {self.name!r} must hold "
                    f"{' or '.join(expected)}, got the type {found}. Name another "
                    "column, or convert this one."
                )

    def read(self, schema):
        """Yield RecordBatches of `schema`; raise a ValueError for a missing value."""
        row = 0
        for batch in self.batches():
            yield self._convert(batch, schema, row)
            row += batch.num_rows

    def batches(self):
        """Yield RecordBatches as they are, also with missing values."""
        row = 0
        for block in _BLOCKS:
            try:
                for batch in self._read_from(row, block):
                    yield batch
                    row += batch.num_rows
                return
            except _RowTooLong:  # a larger block is tried, after the rows so far
                if block == _BLOCKS[-1]:
                    raise

    def _read_from(self, start, block):
        """Yield the batches without the first `start` rows."""
        with _named_errors(self.name):
            _, batches = self._start(block)
            for batch in batches:
                rows = batch.slice(min(start, batch.num_rows))
                start -= batch.num_rows - rows.num_rows
                if rows.num_rows:
                    yield rows

    def _convert(self, batch, schema, row):
        import pyarrow as pa

        columns = []
        for column, field in zip(self._columns, schema, strict=True):
            values = batch.column(column)
            if values.null_count:
                missing = np.flatnonzero(values.is_null().to_numpy(False))
                raise ValueError(
                    f"column {column!r} of {self.name!r} has no value at row "
                    f"{row + missing[0]} (counted from 0). {self._advise(column)}"
                )
            try:
                values = values.cast(field.type)
                values.validate(full=True)  # UTF-8
            except pa.ArrowInvalid as exc:
                raise ValueError(
                    f"column {column!r} of {self.name!r} must hold UTF-8 text, or "
                    f"integers of 64 bits, got something else in the "
                    f"{batch.num_rows} rows from {row} on: {exc}. Repair these rows."
                ) from exc
            columns.append(values)
        return pa.record_batch(columns, schema=schema)

    def _advise(self, column):
        field = f"pyarrow.dataset.field({column!r})"
        if self.name.lower().endswith(".csv"):
            rows = f"pyarrow.dataset.dataset(path, format='csv').filter({field} != '')"
        else:
            rows = f"pyarrow.dataset.dataset(...).filter({field}.is_valid())"
        return f"Fill such rows, or leave them out by passing {rows} as 'path'."


class _RowTooLong(ValueError):
    """A row is longer than a block."""


@contextmanager
def _named_errors(name):
    """Name the file in the errors of pyarrow."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, csv.Error, OSError) as exc:
        if isinstance(exc, FileNotFoundError | PermissionError):
            raise
        message = " ".join(str(exc).rpartition("Invalid: ")[2].split())
        kind = _RowTooLong if "straddl" in message else ValueError
        raise kind(
            f"{name!r} is damaged, or its content is not what its suffix says: "
            f"{message[:500]}. Write it again, in UTF-8."
        ) from exc


def _type_name(found):
    import pyarrow.types as t

    inner = found.value_type if t.is_dictionary(found) else found
    if str(inner) in ("string", "large_string", "string_view"):
        return "text"
    return "integers" if t.is_integer(inner) else str(found)


# Formats: each function returns the `start` of a Part. The readers of single files use
# less memory than a Dataset, which reads row groups and blocks ahead.


def _open_dataset(dataset, columns):
    options = {"columns": columns, "batch_size": BLOCK_ROWS}
    if type(dataset).__module__.startswith("pyarrow"):  # others take other options
        options |= {"batch_readahead": 2, "fragment_readahead": 1}

    def read():
        yield from dataset.to_batches(**options)

    return lambda block: (dataset.schema, read())


def _open_parquet(path, columns):
    import pyarrow.parquet as pq

    def start(block):
        file = pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
        batches = file.iter_batches(BLOCK_ROWS, columns=columns, use_threads=False)
        return file.schema_arrow, batches

    return start


def _open_arrow(path, columns):
    import pyarrow as pa

    def start(block):
        # The library datasets of Hugging Face writes the streaming format.
        file = pa.OSFile(str(path))
        try:
            reader = pa.ipc.open_file(file)
            batches = map(reader.get_batch, range(reader.num_record_batches))
        except pa.ArrowInvalid:
            file.seek(0)
            reader = batches = pa.ipc.open_stream(file)
        return reader.schema, _slices(batches, columns)

    return start


def _slices(batches, columns):
    for batch in batches:
        for start in range(0, batch.num_rows, BLOCK_ROWS):
            yield batch.select(columns).slice(start, BLOCK_ROWS)


def _open_csv(path, columns):
    delimiter = find_delimiter(path)
    return _open_delimited(path, columns, {"delimiter": delimiter}, {})


def _open_tsv(path, columns):
    dialect = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    return _open_delimited(path, columns, dialect, {"quote_char": False})


def _open_delimited(path, columns, dialect, options):
    import pyarrow as pa
    import pyarrow.csv

    with path.open(encoding="utf-8-sig", newline="") as file, large_fields():
        names = next(csv.reader(file, **dialect), [])
    if not names:
        raise ValueError(f"{str(path)!r} is empty: it has no header line.")
    find_positions(columns, names, path)

    def start(block):
        reader = pa.csv.open_csv(
            path,
            read_options=pa.csv.ReadOptions(block_size=block, use_threads=False),
            parse_options=pa.csv.ParseOptions(
                delimiter=dialect["delimiter"],
                newlines_in_values="quote_char" not in options,
                **options,
            ),
            convert_options=pa.csv.ConvertOptions(
                include_columns=columns,
                column_types={column: pa.string() for column in columns},
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        return reader.schema, reader

    return start


def _open_jsonl(path, columns):
    import pyarrow as pa
    import pyarrow.json

    first = _first_object(path)
    find_positions(columns, list(first), path)
    types = {c: int if _is_int(first[c]) else str for c in columns}
    fields = [(c, pa.int64() if types[c] is int else pa.string()) for c in columns]
    # Other columns are not parsed, so they may hold anything.
    parse = pa.json.ParseOptions(
        explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
    )

    def start(block):
        read = pa.json.ReadOptions(block_size=block, use_threads=False)
        with _located(path, types):
            reader = pa.json.open_json(path, read_options=read, parse_options=parse)
        return reader.schema, _located_batches(reader, path, types)

    return start


def _located_batches(reader, path, types):
    with _located(path, types):
        yield from reader


@contextmanager
def _located(path, types):
    """Replace the row of a block, in an error of pyarrow, by the line of the file."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid as exc:
        if (line := _find_bad_line(path, types)) is None:
            raise
        message = re.sub(r"\.? in row \d+", "", str(exc))
        raise pa.ArrowInvalid(f"{message}, at line {line}") from exc


def _find_bad_line(path, types):
    """Return the number of the first line that is no object of these types, or None."""
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = json.loads(line) if line.strip() else {}
            except (ValueError, RecursionError):
                return number
            if not isinstance(record, dict):
                return number
            values = [(record.get(column), types[column]) for column in types]
            if not all(x is None or isinstance(x, kind) for x, kind in values):
                return number
    return None


def _first_object(path):
    """Return the first line of a JSONL file as a dict."""
    with path.open(encoding="utf-8-sig") as file:
        line = next((line for line in file if line.strip()), "")
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        first = None
    if not isinstance(first, dict):
        raise ValueError(
            f"{str(path)!r} must hold one JSON object per line, such as "
            f'{{"text": "..."}}, got {line.strip()[:60]!r}.'
        )
    return first


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


_FORMATS = {
    ".parquet": _open_parquet,
    ".arrow": _open_arrow,
    ".feather": _open_arrow,
    ".csv": _open_csv,
    ".tsv": _open_tsv,
    ".jsonl": _open_jsonl,
    ".ndjson": _open_jsonl,
    ".json": _open_jsonl,
}
