"""Files of a large table, read in batches through pyarrow."""

import csv
import json
import os
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ._reader import find_delimiter, find_position, large_fields

BATCH_ROWS = 8192
_BATCH_BYTES = 2**24
# Bytes of CSV and JSON that are parsed at once; a row must fit.
_BLOCKS = (2**22, 2**26, 2**30)


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
    raise FileNotFoundError(
        f"'path' is {'a folder' if path.is_dir() else 'no file or folder'}: "
        f"{str(path)!r}. Relative paths start at {str(Path.cwd())!r}."
    )


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
            f"got {str(path)!r}. Convert or rename the file."
        )
    return known


def open_part(source, columns):
    """Return the reader of a file or Dataset, whose columns and types were checked."""
    if not isinstance(source, Path):
        return Part("the dataset", columns, lambda block: source)
    name = str(source)
    opener = _FORMATS[source.suffix.lower()]
    with _named_errors(name):
        return Part(name, columns, opener(source, columns))


class Part:
    """A file or Dataset; `open_blocks(block)` opens it to parse `block` bytes at once.

    `types` are "text" or "integers", for each column.
    """

    def __init__(self, name, columns, open_blocks):
        self.name, self._columns, self._open = name, columns, open_blocks
        schema = open_blocks(_BLOCKS[0]).schema
        for column in columns:
            find_position(column, schema.names, name)
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
        for block in _BLOCKS:
            try:
                for batch in self._read_from(row, block):
                    yield self._convert(batch, schema, row)
                    row += batch.num_rows
                return
            except _RowTooLong:  # a larger block is tried, after the rows so far
                if block == _BLOCKS[-1]:
                    raise

    def _read_from(self, start, block):
        """Yield the batches without the first `start` rows."""
        with _named_errors(self.name):
            reader = self._open(block)
            for batch in reader.to_batches(**self._options(reader)):
                rows = batch.slice(min(start, batch.num_rows))
                start -= batch.num_rows - rows.num_rows
                if rows.num_rows:
                    yield rows

    def _options(self, reader):
        options = {"columns": self._columns, "batch_size": BATCH_ROWS}
        if isinstance(reader, _Stream) or type(reader).__module__.startswith("lance"):
            return options
        return {**options, "batch_readahead": 2, "fragment_readahead": 1}

    def _convert(self, batch, schema, row):
        import pyarrow as pa

        columns = []
        for column, field in zip(self._columns, schema, strict=True):
            values = batch.column(column)
            if values.null_count:
                missing = np.flatnonzero(values.is_null().to_numpy(False))
                raise ValueError(
                    f"column {column!r} of {self.name!r} has no value at row "
                    f"{row + missing[0]} (counted from 0). {self._advice(column)}"
                )
            with _named_errors(self.name):
                values = values.cast(field.type)
                values.validate(full=True)  # UTF-8
            columns.append(values)
        return pa.record_batch(columns, schema=schema)

    def _advice(self, column):
        return (
            "Fill such rows or leave them out, for example by passing "
            f"pyarrow.dataset.dataset(...).filter(pyarrow.dataset.field({column!r})"
            ".is_valid())."
        )


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
        message = " ".join(str(exc).split())
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


# Formats: each function returns `open_blocks(block)` for a file ----------------------


def _open_parquet(path, columns):
    import pyarrow.dataset as ds

    scan = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    kind = ds.ParquetFileFormat(default_fragment_scan_options=scan)
    return lambda block: ds.dataset(str(path), format=kind)


def _open_arrow(path, columns):
    import pyarrow as pa
    import pyarrow.dataset as ds

    with path.open("rb") as file:
        is_file = file.read(6) in (b"ARROW1", b"FEA1")
    if is_file:
        return lambda block: ds.dataset(str(path), format="ipc")
    return lambda block: _Stream(path, pa)


class _Stream:
    """A file of the streaming format, as the library datasets of Hugging Face has."""

    def __init__(self, path, pa):
        self._path, self._pa = path, pa
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            self.schema = reader.schema

    def to_batches(self, columns, batch_size):
        pa = self._pa
        with pa.OSFile(str(self._path)) as file, pa.ipc.open_stream(file) as reader:
            for batch in reader:
                for start in range(0, batch.num_rows, batch_size):
                    yield batch.select(columns).slice(start, batch_size)


def _open_csv(path, columns):
    delimiter = find_delimiter(path)
    return _open_delimited(path, columns, {"delimiter": delimiter}, {})


def _open_tsv(path, columns):
    dialect = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    return _open_delimited(path, columns, dialect, {"quote_char": False})


def _open_delimited(path, columns, dialect, options):
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.dataset as ds

    with path.open(encoding="utf-8-sig", newline="") as file, large_fields():
        names = next(csv.reader(file, **dialect), [])
    if not names:
        raise ValueError(f"{str(path)!r} is empty: it has no header line.")
    for column in columns:
        find_position(column, names, str(path))

    def open_blocks(block):
        kind = ds.CsvFileFormat(
            parse_options=pa.csv.ParseOptions(
                delimiter=dialect["delimiter"],
                newlines_in_values="quote_char" not in options,
                **options,
            ),
            read_options=pa.csv.ReadOptions(block_size=block, use_threads=False),
            convert_options=pa.csv.ConvertOptions(
                column_types={column: pa.string() for column in columns},
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        return ds.dataset(str(path), format=kind)

    return open_blocks


def _open_jsonl(path, columns):
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.json

    first = _first_object(path)
    for column in columns:
        find_position(column, list(first), str(path))
    # Other columns are not parsed, so they may hold anything.
    types = [(c, pa.int64() if _is_int(first[c]) else pa.string()) for c in columns]

    def open_blocks(block):
        kind = ds.JsonFileFormat(
            parse_options=pa.json.ParseOptions(
                explicit_schema=pa.schema(types), unexpected_field_behavior="ignore"
            ),
            read_options=pa.json.ReadOptions(block_size=block, use_threads=False),
        )
        return ds.dataset(str(path), format=kind)

    return open_blocks


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
