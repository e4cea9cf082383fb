"""Read tables from files: as a whole, or in parts where they are large."""

import os
import re
import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from .._utils._format import BLANKS, is_missing, list_some, trim
from ._formats import (
    HALVES,
    OPENERS,
    POOL_FORMATS,
    TABLE_FORMATS,
    as_list,
    name_of,
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


class Cells:
    """Columns in memory, and what a person should know about them.

    Attributes
    ----------
    path : Path
    names : list
        The keys of the columns of the file, see `as_keys`.
    columns : dict of key to list or Arrow array
        The columns that were read.
    places : list of int
        Where the rows are in the file, counted in `unit`.
    dialect : dict
        The options with which `write_table` writes a file of the same kind.
    rows : sequence of int
        The rows that count: those that have a text, after `read_texts`.
    texts : list
        The text of each row, None without one; empty before `read_texts`.
    messages : list of str
    """

    def __init__(self, path, names, places, unit):
        self.path, self.names, self.places, self.unit = path, names, places, unit
        self.columns, self.texts, self.dialect, self.messages = {}, [], {}, []
        self._blank = []  # rows without a text

    @property
    def rows(self):
        """The rows that count."""
        rows = range(len(self.places))
        return sorted(set(rows).difference(self._blank)) if self._blank else rows

    def say(self, message):
        """Add a message, once."""
        if message not in self.messages:
            self.messages.append(message)

    def cells(self, key):
        """Return the cells of a column as a list."""
        return as_list(self.columns[key])

    def name(self, column):
        """Return what errors call a column; `column` can be a list of several."""
        return f"column {column!r} of {str(self.path)!r}"

    def where(self, rows):
        """Return the places of some rows in the file."""
        rows, unit = list(rows), self.unit
        if len(rows) == 1:
            unit = unit.replace("lines", "line").replace("rows", "row")
        return f"{unit} {list_some([self.places[row] for row in rows])}"

    def find(self, name, optional=False):
        """Return the key of a column, which may differ in spaces and case.

        Raise a ValueError if there is none, or several; with `optional`, return None if
        there is none.
        """
        key = find_key(name, self.names, self.path, optional)
        if key not in (name, None):
            self.say(_resolved(key, name))
        return key

    def read_texts(self, columns):
        """Return the rows that have texts in one or two columns, and these texts.

        The others are left out. Raise a ValueError if no row has a text.
        """
        check_text_columns(columns)
        cells = [self._read_text(column) for column in columns]
        self.texts = cells[0]
        if len(cells) == 2:
            pairs = zip(*cells, strict=True)
            self.texts = [None if None in pair else pair for pair in pairs]
        if None not in self.texts:
            return self.rows, self.texts
        self._blank = [row for row, text in enumerate(self.texts) if text is None]
        if len(self._blank) == len(self.texts):
            raise ValueError(f"{self.name(columns[0])} has no text.")
        self.say(f"rows without a text are left out: {self.where(self._blank)}")
        return self.rows, [text for text in self.texts if text is not None]

    def _read_text(self, column):
        """Return texts, None for blank ones; numbers in Excel are texts."""
        texts, n_nul = list(self.cells(column)), 0
        if self.path.suffix.lower() == ".xlsx":
            texts = [None if cell is None else spell(cell) for cell in texts]
        for row, cell in enumerate(texts):
            is_plain = type(cell) is str and cell.isascii() and cell[:1] > " "
            if is_plain and "\0" not in cell:
                continue
            if is_missing(cell):
                texts[row] = None
                continue
            if not isinstance(cell, str):
                raise ValueError(
                    f"{self.name(column)} must hold text, got {cell!r:.60} at "
                    f"{self.where([row])}. Name a column of texts."
                )
            if half := HALVES.search(cell):
                raise ValueError(
                    f"{self.name(column)} must hold whole characters, got "
                    f"{half[0]!r} at {self.where([row])}. Correct this cell."
                )
            n_nul += "\0" in cell
        if n_nul:
            self.say(
                f"{n_nul:,} texts hold the character NUL, which other programs may not "
                "read"
            )
        return texts


def spell(value):
    """Return the shortest spelling of a cell as a text; whole floats are integers."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


class TableFile(Cells):
    """A file whose columns are read into memory."""

    def __init__(self, path):
        opener = _find_opener(path, TABLE_FORMATS)
        _check_file(path, "Name one of its files.")
        with _named_errors(str(path)):
            table = opener(path)
            if opener is open_jsonl:  # later rows may have other columns
                records = (record for _, record, _ in read_records(path))
                table.names = list(dict.fromkeys(x for each in records for x in each))
        super().__init__(path, table.names, [], table.unit)
        self._table, self.dialect = table, table.dialect
        self.messages += [table.note] if table.note else []

    def read(self, names=None):
        """Read some columns, or all; Arrow arrays stay so. Return self."""
        keys = list(dict.fromkeys(self.names if names is None else names))
        parts, self.places = [], []
        with _named_errors(str(self.path)):
            for places, cells in self._table.read(keys):
                self.places += places
                parts.append(cells)
        if not self.places:
            raise ValueError(f"{str(self.path)!r} holds no rows.{self._note()}")
        for key, *cells in zip(keys, *parts, strict=True):
            self.columns[key] = _join(cells)
        return self

    def find(self, name, optional=False):
        """Return the key of a column; see `Cells.find`."""
        try:
            return super().find(name, optional)
        except ValueError as exc:
            raise ValueError(f"{exc}{self._note()}") from exc

    def _note(self):
        """Return what was not read of the file, as a sentence."""
        note = self._table.note
        return note and f" {note[0].upper()}{note[1:]}."


def _join(cells):
    """Return the parts of a column as one."""
    if isinstance(cells[0], list):
        return [cell for part in cells for cell in part]
    import pyarrow as pa

    return pa.chunked_array(cells)


def check_text_columns(columns):
    """Raise a ValueError unless a list holds one column, or two for pairs of texts."""
    are_names = all(isinstance(column, str | tuple) for column in columns)
    if not are_names or not 0 < len(columns) == len(set(columns)) < 3:
        raise ValueError(
            "'text' must be the name of one column, or of two different ones for pairs "
            f"of texts; got {columns!r}."
        )


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
        self.name, self._table = name, table
        keys = [find_key(column, table.names, name) for column in columns]
        for column, key in zip(columns, keys, strict=True):
            if key != column:
                warnings.warn(
                    f"{name!r}: {_resolved(key, column)}.", UserWarning, stacklevel=2
                )
        self._columns, self.types = keys, list(map(table.find_type, keys))
        self.left_out = []  # rows without a text, of those that were read

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
            yield list(map(as_list, cells))

    def read(self, schema):
        """Yield RecordBatches of `schema`; rows without a text are left out.

        `left_out` holds their numbers. Raise a ValueError for a missing id.
        """
        import pyarrow as pa

        row = 0
        for positions, cells in self._read():
            fields = zip(self._columns, cells, schema, strict=True)
            arrays = [self._convert(*field, row, positions) for field in fields]
            batch = pa.record_batch(arrays, schema=schema)
            filled = self._find_filled(batch)
            self.left_out += [row + i for i in np.flatnonzero(~filled).tolist()]
            if "id" in schema.names and batch.column("id").null_count:
                missing = batch.column("id").is_null().to_numpy(False) & filled
                if missing.any():
                    raise ValueError(
                        f"column {self._columns[-1]!r} of {self.name!r} has no value "
                        f"at row {row + int(missing.argmax())} (counted from 0). Fill "
                        "such rows, or leave out 'id' to use row numbers."
                    )
            row += len(positions)
            yield batch if filled.all() else batch.filter(pa.array(filled))

    @staticmethod
    def _find_filled(batch):
        """Return a mask of the rows that have all texts, (n,)."""
        import pyarrow.compute as pc

        filled = np.ones(batch.num_rows, dtype=bool)
        for name in batch.schema.names:
            if name != "id":
                texts = pc.utf8_trim(pc.fill_null(batch.column(name), ""), BLANKS)
                filled &= pc.not_equal(texts, "").to_numpy(False)
        return filled

    def _read(self):
        with _named_errors(self.name):
            yield from self._table.read(self._columns)

    def _convert(self, column, values, field, row, positions):
        """Return the cells of a column from `row` on as an Arrow array of a field."""
        import pyarrow as pa

        try:
            if isinstance(values, list):
                values = [None if is_missing(x) else x for x in values]
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


@contextmanager
def _named_errors(name):
    """Name the file in the errors of libraries."""
    try:
        yield
    except UnicodeDecodeError as exc:
        raise ValueError(
            f"{name!r} is not UTF-8 text (byte {exc.start}). In Excel, save it as CSV "
            "UTF-8; or convert it, for example with `iconv -f windows-1252 -t utf-8`."
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


def find_key(name, keys, path, optional=False):
    """Return the key of a column among those of a file; see `Cells.find`."""
    n = sum(name_of(key) == name for key in keys)
    if n > 1:
        raise ValueError(
            f"{str(path)!r} has {n} columns named {name!r}. Rename all but one."
        )
    if n == 1:
        return name
    names = [key for key in keys if isinstance(key, str)]
    close = [key for key in names if _fold(key) == _fold(name)]
    if len(close) == 1:
        return close[0]
    if optional and not close:
        return None
    close = close or get_close_matches(name, names, n=1)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ValueError(
        f"{str(path)!r} has no column {name!r}.{hint} Its columns: "
        f"{', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}."
    )


def _resolved(key, name):
    return f"the column {key!r} is read as {name!r}"


def _fold(name):
    return trim(name).casefold()
