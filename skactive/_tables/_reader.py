"""Read tables from files: as a whole, or in parts where they are large."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from .._utils._format import list_some
from ._formats import (
    OPENERS,
    POOL_FORMATS,
    TABLE_FORMATS,
    open_dataset,
    open_jsonl,
    read_records,
)


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
        _check_file(file, "Pass the folder alone, or a list of files.")
    _check_one_format(files, "'path'")
    resolved = [Path(os.path.abspath(file)) for file in files]
    if len(set(resolved)) < len(resolved):
        raise ValueError("'path' names a file more than once. Name each once.")
    return resolved, f"{len(files)} files, the first {str(files[0])!r}"


def _find_in(path):
    if not path.is_dir():
        _check_file(path)
        _find_opener(path, POOL_FORMATS)
        return [Path(os.path.abspath(path))]
    paths = []
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if not name.startswith((".", "_")))
        paths += [
            Path(folder, file) for file in files if not file.startswith((".", "_"))
        ]
    pool_files = sorted(file for file in paths if file.suffix.lower() in POOL_FORMATS)
    if not pool_files:
        hint = ""
        if any(file.suffix == ".lance" for file in paths):
            hint = f" Pass lance.dataset({str(path)!r})."
        raise FileNotFoundError(
            f"{str(path)!r} holds no file whose name ends in one of "
            f"{', '.join(POOL_FORMATS)}.{hint}"
        )
    _check_one_format(pool_files, repr(str(path)))
    return [Path(os.path.abspath(file)) for file in pool_files]


def _check_file(path, advice=None):
    """Raise a FileNotFoundError with advice; `advice` is that for a folder."""
    if path.is_file():
        return
    if path.is_dir():
        raise FileNotFoundError(f"'path' is a folder: {str(path)!r}. {advice}")
    advice = f"Relative paths start at {str(Path.cwd())!r}."
    if any(character in str(path) for character in "*?["):
        advice = f"For a pattern, pass sorted(glob.glob({str(path)!r}))."
    elif re.match("[a-z0-9]+:/", str(path)):
        advice = "For a remote file, pass pyarrow.dataset.dataset(...)."
    raise FileNotFoundError(f"no such file or folder: {str(path)!r}. {advice}")


def _check_one_format(files, name):
    formats = {}
    for file in files:
        formats.setdefault(_find_opener(file, POOL_FORMATS), file)
    if len(formats) > 1:
        shown = ", ".join(repr(file.name) for file in formats.values())
        raise ValueError(
            f"{name} must hold files of one format, got {shown}. Pass a list of the "
            "files to read."
        )


def _find_opener(path, suffixes):
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        is_excel = suffix.startswith(".xls")
        advice = "Save it as .xlsx" if is_excel else "Unpack, convert or rename it"
        raise ValueError(
            f"'path' must end in one of {', '.join(suffixes)}, which names the format; "
            f"got {str(path)!r}. {advice}."
        )
    return OPENERS[suffix]


def read_cells(path, wanted=None, optional=()):
    """Return columns as they are, with empty cells; all columns without `wanted`.

    Return a dict of lists, the positions of the rows, and their unit, such as "lines".
    """
    opener = _find_opener(path, TABLE_FORMATS)
    _check_file(path, "Name one of its files.")
    with _named_errors(str(path)):
        table = opener(path)
        if opener is open_jsonl:  # later rows may have other columns
            records = (record for _, record, _ in read_records(path))
            table.names = list(dict.fromkeys(name for each in records for name in each))
        wanted = table.names if wanted is None else wanted
        optional = [name for name in optional if name in table.names]
        columns = {name: [] for name in (*wanted, *optional)}
        find_positions(columns, table.names, path)
        positions = []
        for part, cells in table.read(list(columns)):
            positions += part
            for column, values in zip(columns.values(), cells, strict=True):
                column += values if isinstance(values, list) else values.to_pylist()
    if not positions:
        raise ValueError(f"{str(path)!r} holds no rows.")
    return columns, positions, table.unit


def open_part(source, columns):
    """Return the Part of a file or Dataset; its columns and types were checked."""
    if not isinstance(source, Path):
        return Part("the dataset", columns, open_dataset(source))
    return Part(str(source), columns, _open_file(source))


def list_columns(path):
    """Return the names of the columns of a file, or of the first row of JSON lines."""
    return _open_file(path).names


def _open_file(path):
    with _named_errors(str(path)):
        return _find_opener(path, POOL_FORMATS)(path)


class Part:
    """Columns of a file or Dataset, which are read in parts.

    `types` are "text" or "integers", for each column.
    """

    def __init__(self, name, columns, table):
        self.name, self._columns, self._table = name, columns, table
        find_positions(columns, table.names, name)
        self.types = [table.find_type(column) for column in columns]

    def check_types(self, n_texts):
        """Raise a ValueError unless the first columns are texts and the rest ids."""
        for i, (column, type) in enumerate(zip(self._columns, self.types, strict=True)):
            expected = ["text"] if i < n_texts else ["text", "integers"]
            if type not in expected:
                raise ValueError(
                    f"column {column!r} of {self.name!r} must hold "
                    f"{' or '.join(expected)}, got the type {type}. Name another "
                    "column, or convert this one."
                )

    def cells(self):
        """Yield lists of the cells of some rows, one for each column."""
        for _, cells in self._read():
            yield [x if isinstance(x, list) else x.to_pylist() for x in cells]

    def read(self, schema):
        """Yield RecordBatches of `schema`; raise a ValueError for a missing value."""
        import pyarrow as pa

        row = 0
        for positions, cells in self._read():
            fields = zip(self._columns, cells, schema, strict=True)
            arrays = [self._convert(*field, row, positions) for field in fields]
            yield pa.record_batch(arrays, schema=schema)
            row += len(positions)

    def _read(self):
        with _named_errors(self.name):
            yield from self._table.read(self._columns)

    def _convert(self, column, values, field, row, positions):
        """Return the cells of a column from `row` on as an Arrow array of a field."""
        import pyarrow as pa

        try:
            if isinstance(values, list):
                self._check_kind(column, values, positions)
                values = pa.array(values, field.type)
            array = values.cast(field.type)
            array.validate(full=True)  # UTF-8
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError) as exc:
            raise ValueError(
                f"column {column!r} of {self.name!r} must hold UTF-8 text, or integers "
                f"of 64 bits, got something else in the {len(values)} rows from {row} "
                f"on: {exc}. Repair these rows."
            ) from exc
        if array.null_count:
            missing = np.flatnonzero(array.is_null().to_numpy(False))
            raise ValueError(
                f"column {column!r} of {self.name!r} has no value at row "
                f"{row + missing[0]} (counted from 0). {self._advise(column)}"
            )
        return array

    def _check_kind(self, column, values, positions):
        """Raise a ValueError for a cell of another type than the first row's."""
        kind = self.types[self._columns.index(column)]
        allowed = {str if kind == "text" else int, type(None)}
        if set(map(type, values)) <= allowed:
            return
        at = [type(value) in allowed for value in values].index(False)
        raise ValueError(
            f"column {column!r} of {self.name!r} must hold {kind}, as its first row "
            f"does, got {values[at]!r:.60} at line {positions[at]}. Repair "
            "this row."
        )

    def _advise(self, column):
        field = f"pyarrow.dataset.field({column!r})"
        if self.name.lower().endswith(".csv"):
            rows = f"pyarrow.dataset.dataset(path, format='csv').filter({field} != '')"
        else:
            rows = f"pyarrow.dataset.dataset(...).filter({field}.is_valid())"
        return f"Fill such rows, or leave them out by passing {rows} as 'path'."


@contextmanager
def _named_errors(name):
    """Name the file in the errors of libraries."""
    try:
        yield
    except UnicodeDecodeError as exc:
        raise ValueError(
            f"{name!r} is not UTF-8 text (byte {exc.start}). Convert it, for example "
            "with `iconv -f latin1 -t utf-8`."
        ) from exc
    except Exception as exc:
        is_arrow = type(exc).__module__.startswith("pyarrow")
        is_fault = is_arrow or isinstance(exc, OSError | OverflowError)
        if not is_fault or isinstance(exc, FileNotFoundError | PermissionError):
            raise
        raise ValueError(
            f"{name!r} is damaged, or its content is not what its suffix says: "
            f"{' '.join(str(exc).split())[:500]}. Write it again."
        ) from exc


class Column:
    """A column of a file, for checks; `name` can be a tuple of several."""

    def __init__(self, path, name, unit):
        self._unit = unit
        self.shown = f"column {name!r} of {str(path)!r}"

    def check_filled(self, values, positions, is_missing, advice):
        """Raise a ValueError that names the rows without a value."""
        missing = [at for at, x in zip(positions, values, strict=True) if is_missing(x)]
        if missing:
            raise ValueError(
                f"{self.shown} has no value at {len(missing)} of {len(values)} rows: "
                f"{self._unit} {list_some(missing)}. {advice}"
            )

    def check_texts(self, values, positions):
        """Raise a ValueError that names the rows without a text."""
        advice = "Fill these rows or leave them out of the file."
        self.check_filled(values, positions, _is_missing, advice)
        odd = [i for i, value in enumerate(values) if not isinstance(value, str)]
        if odd:
            raise ValueError(
                f"{self.shown} must hold text, got {type(values[odd[0]]).__name__} at "
                f"{self._unit} {list_some([positions[i] for i in odd])}. Name a column "
                "of texts."
            )


def _is_missing(value):
    return value is None or value != value  # NaN differs from itself


def find_positions(columns, names, path):
    """Return the positions of columns, or raise an error that lists the columns."""
    counts = Counter(names)
    position_of = {name: i for i, name in enumerate(names)}
    for column in columns:
        if not counts[column]:
            _refuse_column(column, names, path)
        if counts[column] > 1:
            raise ValueError(
                f"{str(path)!r} has {counts[column]} columns named {column!r}. Rename "
                "all but one."
            )
    return [position_of[column] for column in columns]


def _refuse_column(column, names, path):
    close = get_close_matches(column, names, n=1) or [
        name for name in names if name.strip().lower() == column.strip().lower()
    ]
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"{str(path)!r} has no column {column!r}.{hint} Its columns: "
        f"{', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}."
    )
