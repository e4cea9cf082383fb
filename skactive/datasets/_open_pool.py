"""Open large tables of texts as a pool in a mapped file."""

import hashlib
import json
import os
import re
import tempfile
import time
import uuid
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .._storage._files import Lock, LockedError, make_folder, write_atomic
from .._storage._fingerprint import hash_utf8
from .._storage._hash_index import find_repeated
from .._storage._text_file import PoolWriter, TextFile
from .._storage._text_pool import TextPool
from .._tables._reader import check_text_columns, find_files, open_part
from .._utils._format import list_some
from .._utils._sklearn import validate_params

_FORMAT = 2  # of the files in a cache
_WAIT = 0.2  # seconds between two looks at a lock


@validate_params(
    {
        "text": [str, list, tuple],
        "id": [str, None],
        "cache": [str, os.PathLike, None],
    },
    prefer_skip_nested_validation=True,
)
def open_pool(
    path: Any,
    text: str | Sequence[str],
    *,
    id: str | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> TextPool:
    r"""Open a large table of texts, of which only what is read takes memory.

    The table is read once, in batches. Its texts are written to an Arrow file that is
    mapped into memory.

    Parameters
    ----------
    path : str, Path, list of them, or pyarrow.dataset.Dataset
        A file, a folder whose files have one format, or a list of files. The suffix
        determines the format: ``.parquet``, ``.arrow`` or ``.feather``, ``.csv``
        (separated by commas or what the first lines show), ``.tsv`` (tabs),
        ``.jsonl``, ``.ndjson`` or ``.json`` (one JSON object per line). Files of a
        folder are read in the order of their paths; names that start with ``.`` or
        ``_`` are skipped. A Lance dataset is a `pyarrow.dataset.Dataset`.
    text : str or pair of str
        The column of texts, or the two columns of pairs of texts.
    id : str or None, default=None
        The column of ids, which must be distinct: text or integers; always text in CSV
        and TSV files. By default, a text has its position in the pool as id.
    cache : str, Path or None, default=None
        A folder that keeps the Arrow file, so that the next call opens it at once. It
        is used while the names, sizes and times of change of the files stay the same: a
        file whose content changes with none of these is not noticed. Several tables
        can share the folder. By default, a temporary folder that is deleted with the
        pool.

    Returns
    -------
    pool : TextPool
        The texts, in the order of the rows. Rows without a text are left out, with a
        warning; `pool.left_out` holds their numbers.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or a folder holds no table.
    ValueError
        If a column is unknown or holds something else than texts or ids, an id is
        missing or occurs twice, the files differ in format or columns, or one
        is damaged. The message names file and row, counted from 0.
    OSError
        If the disk is full.

    Notes
    -----
    The Arrow file is written in blocks with checksums. A process compares a block with
    its checksum when it reads the block for the first time. A damaged block is a
    ValueError that names the file, the block and its rows; a file that became shorter
    while it was open is an OSError.

    Examples
    --------
    >>> import os, tempfile
    >>> from skactive.datasets import open_pool
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, line in [("a", '{"body": "Rain"}'), ("b", '{"body": "Sun"}')]:
    ...         with open(os.path.join(folder, f"{name}.jsonl"), "w") as file:
    ...             _ = file.write(f"{line}\n")
    ...     pool = open_pool(folder, "body")
    >>> list(pool), list(pool.ids)
    (['Rain', 'Sun'], [0, 1])
    """
    texts = [text] if isinstance(text, str) else list(text)
    check_text_columns(texts)
    if id in texts:
        raise ValueError(f"'text' and 'id' both name the column {id!r}.")
    table = _Table(path, texts, id)
    if cache is None:
        folder = tempfile.mkdtemp(prefix="skactive-pool-")
        file = TextFile(os.path.join(folder, "texts.arrow"), owned=True)
        table.convert(file.path)
        file.open()
    elif not table.files:
        raise ValueError(
            "'cache' must be None for a Dataset, whose changes cannot be noticed, got "
            f"{os.fspath(cache)!r}. Pass the path of its files instead."
        )
    else:
        file = _open_cached(table, Path(cache).expanduser())
    if file.left_out:
        warnings.warn(
            f"{table.source!r}: rows without a text are left out: rows (counted from "
            f"0) {list_some(file.left_out)}.",
            UserWarning,
            stacklevel=3,
        )
    return TextPool(file)


class _Table:
    """The files or the Dataset that hold a table, and the columns to read."""

    def __init__(self, path, texts, id):
        import pyarrow.dataset as ds

        self.columns = [*texts, *([] if id is None else [id])]
        names = ["text"] if len(texts) == 1 else ["first", "second"]
        self.names = [*names, *([] if id is None else ["id"])]
        self.files, self._dataset = [], None
        if isinstance(path, ds.Dataset):
            self._dataset, self.source = path, type(path).__name__
        else:
            self.files, self.source = find_files(path)

    def stamp(self):
        """Return what changes when the files change, as JSON values."""
        status = [(path, path.stat()) for path in self.files]
        files = [[str(path), s.st_size, s.st_mtime_ns] for path, s in status]
        return {"format": _FORMAT, "columns": self.columns, "files": files}

    def convert(self, target):
        """Write the texts and ids to the Arrow file `target`, in one pass."""
        before = self.stamp()
        # Everything that can be seen without reading the rows is checked first.
        parts = [
            open_part(path, self.columns) for path in self.files or [self._dataset]
        ]
        for part in parts:
            part.check_types(len(self.names) - ("id" in self.names))
        has_text_ids = "id" in self.names and parts[0].types[-1] == "text"
        for part in parts:
            if part.types != parts[0].types:
                raise ValueError(
                    f"column {self.columns[-1]!r} must have one type in all files, got "
                    f"{parts[0].types[-1]} in {parts[0].name!r} and {part.types[-1]} "
                    f"in {part.name!r}. Convert one of them."
                )
        schema = _schema(self.names, has_text_ids)
        ids = _Ids("id" in self.names, target)
        try:
            writer = PoolWriter(target, schema, self.source)
            try:
                for part in parts:
                    for batch in part.read(schema):
                        ids.add(batch)
                        writer.write(batch)
                    ids.end_part(part)
                writer.left_out = ids.left_out
                writer.close()
            finally:
                writer.abort()
            if writer.n == 0:
                raise ValueError(f"{self.source!r} holds no rows with a text.")
            ids.check(self.columns[-1])
        except OSError as exc:
            raise type(exc)(
                exc.errno,
                f"{exc.strerror or exc}. The texts are written to "
                f"{os.path.dirname(target)!r}: free some space there, or name a folder "
                "on another disk as 'cache'",
            ) from exc
        finally:
            ids.close()
        if self.stamp() != before:
            raise ValueError(
                f"{self.source!r} was changed while it was read. Open the pool again."
            )


def _schema(names, has_text_ids):
    import pyarrow as pa

    id_type = pa.large_string() if has_text_ids else pa.int64()
    return pa.schema(
        [(name, id_type if name == "id" else pa.large_string()) for name in names]
    )


class _Ids:
    """Find repeated ids by their hashes, which are kept in an unnamed file."""

    def __init__(self, used, target):
        self._used = used
        self._target = target
        self._n = 0
        self._parts = []  # name of each, and where its rows end in the table
        self.left_out = []  # rows of the table without a text
        folder = os.path.dirname(target)
        self._stream = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115

    def add(self, batch):
        """Keep the hashes of the ids of a batch."""
        self._n += batch.num_rows
        if self._used:
            column = batch.column("id")
            if column.type == "int64":
                keys = column.to_numpy().view(np.uint64)
            else:
                keys = hash_utf8([column.cast("large_binary").to_pylist()])
            self._stream.write(keys.tobytes())

    def end_part(self, part):
        """Note where the rows of a file end."""
        start = self._parts[-1][1] if self._parts else 0
        self.left_out += [start + row for row in part.left_out]
        self._parts.append((part.name, self._n + len(self.left_out)))

    def check(self, column):
        """Raise a ValueError that names two rows of one id, if there are any."""
        if not self._used:
            return
        self._stream.flush()
        keys = np.memmap(self._stream, np.uint64, "r", shape=(self._n,))
        rows = find_repeated(keys)
        del keys
        ids = {}
        file = TextFile(self._target)
        for row, id in zip(rows.tolist(), file.read_ids(rows), strict=True):
            if id in ids:
                raise ValueError(
                    f"column {column!r} must hold distinct ids, got {id!r} at "
                    f"{self._locate(ids[id])} and at {self._locate(row)}. Name another "
                    "column, or leave 'id' out to use row numbers."
                )
            ids[id] = row

    def _locate(self, row):
        for left_out in self.left_out:
            row += left_out <= row
        start = 0
        for name, stop in self._parts:
            if row < stop:
                return f"row {row - start} of {name!r}"
            start = stop
        raise AssertionError(row)

    def close(self):
        """Delete the hashes."""
        self._stream.close()


# Cached files -----------------------------------------------------------------------


def _open_cached(table, cache):
    """Return the Arrow file of a table, which is written if necessary."""
    if cache.exists() and not cache.is_dir():
        raise NotADirectoryError(f"'cache' must be a folder, got {str(cache)!r}.")
    stamp = table.stamp()
    named = json.dumps([stamp["columns"], [file[0] for file in stamp["files"]]])
    digest = hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()
    key = f"_{digest[:16]}"  # such names are skipped, if the cache is in the folder
    if (file := _find_cached(cache, key, stamp)) is not None:
        return file
    make_folder(cache)
    lock = _wait_for_lock(cache / f"{key}.lock", f"the cache in {str(cache)!r}")
    try:
        if (file := _find_cached(cache, key, stamp)) is not None:
            return file  # another process was faster
        _clean(cache, key)
        path = cache / f"{key}-{uuid.uuid4().hex[:8]}.arrow"
        try:
            table.convert(str(path))
            stamp = {**table.stamp(), "name": path.name}
            write_atomic(cache / f"{key}.json", json.dumps(stamp).encode())
        except BaseException:
            _clean(cache, key)
            raise
        return TextFile(path).open()
    finally:
        lock.release()


def _find_cached(cache, key, stamp):
    """Return the Arrow file that was written for `stamp`, or None if it is damaged."""
    try:
        record = json.loads((cache / f"{key}.json").read_bytes())
        name = record.pop("name")
        if record == stamp and re.fullmatch(rf"{key}-[0-9a-f]{{8}}\.arrow", name):
            return TextFile(cache / name).open()
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    return None


def _clean(cache, key):
    """Remove the files of earlier conversions, and of killed ones."""
    for path in cache.glob(f"{key}-*.arrow*"):
        with suppress(OSError):  # Windows keeps mapped files
            path.unlink()


def _wait_for_lock(path, what):
    while True:
        try:
            return Lock(path, what)
        except LockedError:
            time.sleep(_WAIT)
