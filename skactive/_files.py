"""Files that survive a kill: replaced whole, or grown by whole lines."""

from __future__ import annotations

import errno
import json
import os
import uuid
from contextlib import suppress

__all__ = ["LineWriter", "append_line", "make_folder", "read_lines", "write_atomic"]

# Every call that a disk can fail goes through one of these names, so that a test can
# put a faulty disk in their place.
_open = os.open
_write = os.write
_fsync = os.fsync
_ftruncate = os.ftruncate
_close = os.close
_replace = os.replace
_unlink = os.unlink
_mkdir = os.mkdir

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn each newline into two bytes
_TAIL = 1 << 16


def write_atomic(path, data):
    """Write a file so that at any instant the old content or the new is there, whole.

    When this returns, the new content has reached the disk. When it raises, nothing
    is left beside the file.

    Parameters
    ----------
    path : str or path-like
        In a folder that exists. What stands there is replaced.
    data : bytes

    Raises
    ------
    OSError
        If the disk fails; the old content is then there, or the new.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skactive._files import write_atomic
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "notes.txt"
    ...     write_atomic(path, b"first")
    ...     write_atomic(path, b"second")
    ...     path.read_bytes(), len(list(path.parent.iterdir()))
    (b'second', 1)
    """
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        handle = _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        try:
            _write_all(handle, data)
            _fsync(handle)
        finally:
            _close(handle)
        _replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            _unlink(temporary)
        raise
    _sync_folder(folder)


def make_folder(path):
    """Make a folder, and those above it; all have reached the disk on return.

    Parameters
    ----------
    path : str or path-like
        A folder that exists is left alone.
    """
    path = os.path.realpath(path)
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    make_folder(parent)
    with suppress(FileExistsError):
        _mkdir(path)
    _sync_folder(parent)


class LineWriter:
    """Append records to a file, each as one line of JSON.

    A record is there, on the disk, when `write` returns. When `write` raises, the
    file ends where it ended before. A kill can leave at most one torn line, the last,
    which :func:`read_lines` tells from the others and the next writer cuts off.

    Parameters
    ----------
    path : str or path-like
        Made if it is not there. One writer at a time.

    Attributes
    ----------
    size : int
        Length of the file in bytes, as far as it consists of whole lines.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skactive._files import LineWriter, read_lines
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.jsonl"
    ...     with LineWriter(path) as writer:
    ...         writer.write({"round": 1})
    ...         writer.write({"round": 2})
    ...     read_lines(path)
    ([{'round': 1}, {'round': 2}], None)
    """

    def __init__(self, path):
        path = os.path.realpath(path)
        new = not os.path.exists(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _BINARY
        self._handle = _open(path, flags, 0o666)
        try:
            if new:
                _sync_folder(os.path.dirname(path))
            length = os.fstat(self._handle).st_size
            self.size = _end_of_lines(self._handle, length)
            self._clean = self.size == length
            if not self._clean:
                self._cut()
        except BaseException:
            self.close()
            raise

    def write(self, record):
        """Append one record.

        Parameters
        ----------
        record : what JSON takes

        Raises
        ------
        OSError
            If the disk is full or fails. The record is then not in the file, and the
            call can be repeated.
        TypeError or ValueError
            If JSON does not take the record.
        """
        line = _to_line(record)
        if self._handle is None:
            raise ValueError("this file is closed. Open it again to write to it.")
        if not self._clean:  # an earlier failure could not be cleared away then
            self._cut()
        self._clean = False
        try:
            written = _write(self._handle, line)
            if written != len(line):
                raise OSError(
                    errno.ENOSPC,
                    f"{os.strerror(errno.ENOSPC)}: {written} of {len(line)} bytes "
                    "were written, and taken back",
                )
            _fsync(self._handle)
            self.size += written
            self._clean = True
        except BaseException:
            with suppress(OSError):
                self._cut()
            raise

    def close(self):
        """Let go of the file; harmless if repeated."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _close(handle)

    def _cut(self):
        """Take back what stands after the last good line."""
        _ftruncate(self._handle, self.size)
        _fsync(self._handle)
        self._clean = True

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()


def append_line(path, record):
    """Append one record to a file of JSON lines; see :class:`LineWriter`.

    Parameters
    ----------
    path : str or path-like
        Made if it is not there. One writer at a time.
    record : what JSON takes
    """
    with LineWriter(path) as writer:
        writer.write(record)


def read_lines(path):
    """Read a file of JSON lines, and tell a torn last line from damage.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    records : list
        What the whole lines hold.
    torn : bytes or None
        What follows the last newline: the beginning of a line whose writer died.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a whole line is no JSON, naming the line.
    """
    with open(path, "rb") as stream:
        *lines, tail = stream.read().split(b"\n")
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(json.loads(line.decode("utf-8", "surrogatepass")))
        except (ValueError, RecursionError) as exc:
            raise ValueError(
                f"line {number} of {os.fspath(path)!r} is damaged: it must be JSON, "
                f"got {_show(line)} ({exc}). Nothing was guessed or changed. Restore "
                "the file from a copy, or repair that line."
            ) from exc
    return records, tail or None


def _to_line(record):
    text = json.dumps(
        record, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _show(line):
    return repr(line if len(line) <= 60 else line[:57] + b"...")


def _write_all(handle, data):
    view = memoryview(data)
    while view:
        written = _write(handle, view)
        if written == 0:
            raise OSError(errno.EIO, f"{os.strerror(errno.EIO)}: nothing was written")
        view = view[written:]


def _end_of_lines(handle, length):
    """Find where the last whole line ends."""
    end = length
    while end:
        start = max(0, end - _TAIL)
        os.lseek(handle, start, os.SEEK_SET)
        block = os.read(handle, end - start)
        if (newline := block.rfind(b"\n")) >= 0:
            return start + newline + 1
        end = start
    return 0


def _sync_folder(folder):
    """Have the names in a folder reach the disk; only POSIX opens folders."""
    if os.name != "posix":
        return
    handle = _open(folder, os.O_RDONLY)
    try:
        _fsync(handle)
    except OSError as exc:
        if exc.errno not in (errno.EINVAL, errno.ENOTSUP):  # not offered there
            raise
    finally:
        _close(handle)
