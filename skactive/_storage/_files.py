"""Files that are replaced atomically or grow by whole JSON lines, and their lock.

Every call that can fail with the disk has a name of its own here, so that a test can
replace it with a faulty disk.
"""

import errno
import json
import os
import re
import socket
import time
import uuid
import weakref
import zlib
from contextlib import suppress
from datetime import UTC, datetime

try:
    from filelock import FileLock, SoftFileLock, Timeout
except ImportError:  # where an export predicts, nothing needs a lock
    FileLock = None  # type: ignore[misc,assignment]

from .._utils._system import BINARY, Closing, can_open_folders, replace

BLOCK_ROWS = 8192  # that are read, written or predicted at a time
BLOCK_BYTES = 2**23
_open = os.open
_write = os.write
_fsync = os.fsync
_ftruncate = os.ftruncate
_close = os.close
_replace = replace
_unlink = os.unlink
_mkdir = os.mkdir


def write_atomic(path, data, sync_names=True, mode=0o666):
    """Write bytes to a file that always holds the old or the new content, whole.

    The folder must exist. On return, the new content is on the disk, and with
    `sync_names` under its name. The file is created with `mode`, less the umask. An
    error leaves no other file behind; the file then has the old content, or the new.
    """
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        handle = _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, mode)
        try:
            write_all(handle, data)
            _fsync(handle)
        finally:
            _close(handle)
        _replace(temporary, path)
    except BaseException as exc:
        with suppress(OSError):
            _unlink(temporary)
        if isinstance(exc, OSError) and exc.filename is None:
            exc.filename = path  # a full disk names no file by itself
        raise
    if sync_names:
        sync_folder(folder)


def make_folder(path):
    """Create a folder and its parents; on return, they are on the disk."""
    path = os.path.realpath(path)
    parent = os.path.dirname(path)
    if os.path.isdir(path) or parent == path:  # of a drive that is missing
        return
    make_folder(parent)
    with suppress(FileExistsError):
        _mkdir(path)
    sync_folder(parent)


def stat_opened(path, opened):
    """Return the status of a file, or None if it is not the opened one."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status if os.path.samestat(status, opened) else None


def write_all(handle, data):
    """Write all bytes, in as many calls as necessary."""
    view = memoryview(data)
    while view:
        written = _write(handle, view)
        if written == 0:
            raise OSError(errno.EIO, f"{os.strerror(errno.EIO)}: nothing was written")
        view = view[written:]


def sync_folder(folder):
    """Write the names in a folder to the disk, where folders can be opened."""
    if not can_open_folders():
        return
    handle = _open(folder, os.O_RDONLY)
    try:
        _fsync(handle)
    except OSError as exc:
        if exc.errno not in (errno.EINVAL, errno.ENOTSUP):  # not offered there
            raise
    finally:
        _close(handle)


_TAIL = 1 << 16
_CHECKSUM = re.compile(rb',"crc":"(.{8})"\}', re.DOTALL)  # at the end of a line
_CHECKSUM_LENGTH = 18
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class LineWriter(Closing):
    """Append records to a file, each as one line of JSON; one writer at a time.

    When `write` returns, the record is on the disk. When it raises, the file ends where
    it ended before. A kill leaves at most one torn line at the end, which
    :func:`read_lines` distinguishes from the others and the next writer removes. A last
    line that only lacks its newline gets it; a damaged last line is a ValueError. With
    `checksums`, each line ends with a CRC-32 of the rest; records must then be
    non-empty dicts. `size` is the length of the whole lines in bytes.
    """

    def __init__(self, path, checksums=False):
        self._path = os.path.realpath(path)
        self._checksums = checksums
        new = not os.path.exists(self._path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | BINARY
        self._handle = _open(self._path, flags, 0o666)
        # The file is closed when the writer is garbage collected.
        self._let_go = weakref.finalize(self, _close_handle, self._handle)
        try:
            if new:
                sync_folder(os.path.dirname(self._path))
            self._opened = os.fstat(self._handle)
            self._begin(self._opened.st_size)
        except BaseException:
            self.close()
            raise

    def _begin(self, length):
        """Find the end of the whole lines, and make the file end there."""
        self.size, tail = _find_tail(self._handle, length)
        self._attempt = tail  # what may be cut off after `size`
        self._clean = not tail
        if tail and not _is_torn(tail):
            try:
                _from_line(tail)
            except ValueError as exc:
                raise ValueError(
                    f"the last line of {self._path!r} is damaged ({exc}). Restore the "
                    "file from a copy."
                ) from exc
            write_all(self._handle, b"\n")
            _fsync(self._handle)
            self.size, self._clean = length + 1, True
        elif tail:
            self._cut()

    def write(self, record):
        """Append one record.

        Raise an OSError if the disk is full or fails; the record is then not in the
        file, and the call can be repeated. Raise a RuntimeError if the file was
        deleted, replaced or changed by others, and a TypeError or ValueError for a
        record that JSON refuses.
        """
        line = _to_line(record, self._checksums)
        if self._handle is None:
            raise ValueError("this file is closed. Open it again to write to it.")
        if not self._clean:  # an earlier failure could not be removed then
            self._cut()
        self._check(self.size)
        self._clean, self._attempt = False, line
        try:
            written = _write(self._handle, line)
            if written != len(line):
                raise OSError(
                    errno.ENOSPC,
                    f"{os.strerror(errno.ENOSPC)}: {written} of {len(line)} bytes "
                    "were written, and taken back",
                    self._path,
                )
            _fsync(self._handle)
            self._check(self.size + written)
            self.size += written
            self._clean = True
        except BaseException:
            with suppress(OSError, RuntimeError):
                self._cut()
            raise

    def close(self):
        """Close the file; harmless if repeated."""
        self._handle = None
        self._let_go()

    def _check(self, length):
        """Raise an error if others replaced the file or wrote to it."""
        status = stat_opened(self._path, self._opened)
        if status is None:
            raise RuntimeError(
                f"{self._path!r} was deleted or replaced while it was open. {_AFTER}"
            )
        if status.st_size != length:
            raise self._changed()

    def _changed(self):
        return RuntimeError(
            f"{self._path!r} was changed by another program while it was open. {_AFTER}"
        )

    def _cut(self):
        """Remove what this writer left after the last good line."""
        os.lseek(self._handle, self.size, os.SEEK_SET)
        tail = os.read(self._handle, len(self._attempt) + 1)
        is_shorter = os.fstat(self._handle).st_size < self.size
        if is_shorter or not self._attempt.startswith(tail):
            raise self._changed()
        _ftruncate(self._handle, self.size)
        _fsync(self._handle)
        self._clean = True


def read_lines(path):
    """Return the records of the whole lines, and a torn last line as bytes or None.

    A whole last line may lack its newline. A correct checksum stays in the record, as
    "crc". Raise a FileNotFoundError, or a ValueError that names a damaged line.
    """
    lines, tail = _split_lines(path)
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(_from_line(line))
        except ValueError as exc:
            raise ValueError(
                f"line {number} of {os.fspath(path)!r} is damaged: it must be JSON "
                f"that agrees with its checksum, got {_show(line)} ({exc}). Nothing "
                "was guessed or changed. Restore the file from a copy."
            ) from exc
    return records, tail or None


def _split_lines(path):
    """Return the whole lines of a file, and a torn last line or nothing."""
    with open(path, "rb") as stream:
        *lines, tail = stream.read().split(b"\n")
    return (lines, tail) if _is_torn(tail) else ([*lines, tail], b"")


def read_sound_lines(path):
    """Return the records of the sound lines, and whether a line is damaged.

    A torn last line is dropped, and is no damage. Raise a FileNotFoundError.
    """
    records, is_damaged = [], False
    for line in _split_lines(path)[0]:
        try:
            records.append(_from_line(line))
        except ValueError:
            is_damaged = True
    return records, is_damaged


_AFTER = (
    "Nothing more is written to it. Look at its folder, restore the file from a copy "
    "if need be, and open it again."
)


def _to_line(record, checksum=False):
    line = _ENCODER.encode(record).encode("utf-8", "surrogatepass")
    if checksum:
        line = line[:-1] + b',"crc":"%08x"}' % zlib.crc32(line)
    return line + b"\n"


def _from_line(line):
    """Return the record of a line without its newline, or raise a ValueError."""
    line = line.removesuffix(b"\r")  # of an editor, or of a copy made on Windows
    checksum = _CHECKSUM.fullmatch(line[-_CHECKSUM_LENGTH:])
    if checksum:
        content = line[:-_CHECKSUM_LENGTH] + b"}"
        if checksum[1] != b"%08x" % zlib.crc32(content):
            raise ValueError("the checksum is of another content")
    try:
        record = json.loads(line.decode("utf-8", "surrogatepass"))
    except RecursionError as exc:
        raise ValueError(f"RecursionError: {exc}") from exc
    if isinstance(record, dict) and "crc" in record and not checksum:
        raise ValueError("the checksum must be at the end")
    return record


def _is_torn(tail):
    """Whether a tail is only the beginning of a record.

    No proper beginning of a JSON object is an object. So a tail that starts with one is
    a line whose newline is missing or damaged.
    """
    try:
        text = tail.decode("utf-8", "replace")
        record, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return True
    return not isinstance(record, dict)


def _show(line):
    return repr(line if len(line) <= 60 else line[:57] + b"...")


def _close_handle(handle):
    _close(handle)


def _find_tail(handle, length):
    """Return the end of the last line with a newline, and the bytes after it."""
    end, tail = length, b""
    while end:
        start = max(0, end - _TAIL)
        os.lseek(handle, start, os.SEEK_SET)
        *lines, last = os.read(handle, end - start).split(b"\n")
        tail = last + tail
        if lines:
            break
        end = start
    return length - len(tail), tail


_FLOCK_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


# Locks of the parent: a child that collected one would release it.
_INHERITED: list[FileLock] = []


class LockedError(RuntimeError):
    """A folder is open for writing elsewhere, in another process or object.

    :class:`skactive.LabelingSession` raises it, and whatever else must not write to a
    folder at the same time as another program.

    Attributes
    ----------
    holder : str
        Who writes there: the process, the machine and the time, as far as they are
        known.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skactive import ActiveLearner, LabelingSession
    >>> from skactive.session import LockedError
    >>> learner, folder = ActiveLearner(LogisticRegression()), mkdtemp()
    >>> session = LabelingSession(learner, [[0.0], [1.0]], folder)
    >>> try:
    ...     LabelingSession(learner, [[0.0], [1.0]], folder)
    ... except LockedError as error:
    ...     print(error.holder.split()[0])
    process
    >>> session.close()
    """

    holder = "another process"


class Lock:
    """Hold a lock file until `release`, or until this object or its process is gone.

    `<path>.holder` names the process, machine and time. On a disk without `flock`, the
    existence of the file is the lock; the lock of a dead process of this machine is
    taken over. `what` is the guarded thing, for the error. Raises LockedError, naming
    the holder, or OSError.
    """

    def __init__(self, path, what):
        self._path = os.path.realpath(path)
        self._holder_path = f"{self._path}.holder"
        self._what = what
        self._acquire()
        self._let_go = weakref.finalize(
            self, _release, self._lock, self._holder_path, os.getpid()
        )
        try:
            self._opened = os.stat(self._path)
            self._sign()
        except BaseException:
            self.release()
            raise

    def _acquire(self):
        try:
            # On a disk without flock, FileLock would empty the file that is the lock.
            if _is_marker(self._path):
                self._lock = _acquire(SoftFileLock, self._path, timeout=0.1)
            else:
                self._lock = _acquire(FileLock, self._path)
        except OSError as exc:
            if exc.errno not in _FLOCK_UNSUPPORTED:
                raise
            if os.path.exists(self._path) and not _is_marker(self._path):
                os.unlink(self._path)  # made by the attempt
            # The first attempt may only remove the marker of a dead process.
            self._lock = _acquire(SoftFileLock, self._path, timeout=0.1)
        if self._lock is None:
            holder = self._read_holder()
            error = LockedError(
                f"{self._what} is open for writing in {holder}. Close it there, or "
                f"delete {self._path!r} if that process is gone."
            )
            error.holder = holder
            raise error

    def check(self):
        """Raise a RuntimeError if the file was deleted or replaced.

        Another process can then hold a lock of the same name.
        """
        if stat_opened(self._path, self._opened) is None:
            raise RuntimeError(
                f"{self._path!r}, the lock of {self._what}, was deleted or replaced "
                "while it was held, so another process may be writing there. Nothing "
                "was recorded. Close it here and open it again."
            )

    def release(self):
        """Release the lock; harmless if repeated, and in a forked child."""
        self._let_go()

    def _sign(self):
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": utc_now().isoformat(timespec="seconds"),
        }
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with suppress(OSError):  # a full disk must not prevent reading
            handle = _open(self._holder_path, flags, 0o666)
            try:
                _write(handle, json.dumps(holder).encode())
            finally:
                _close(handle)

    def _read_holder(self):
        """Return the process, machine and time of the holder as text."""
        try:
            with open(self._holder_path, encoding="utf-8") as stream:
                holder = json.load(stream)
            return "process {pid} on {host}, since {since}".format(**holder)
        except (OSError, ValueError, LookupError, TypeError):
            return "another process"  # that is about to write who it is


def _is_marker(path):
    """Whether a file names the process that made it, so that its existence locks."""
    return os.path.exists(path) and os.path.getsize(path) > 0


def _acquire(kind, path, timeout=0):
    """Return an acquired lock, or None if another process holds it."""
    lock = kind(path, timeout=timeout, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock


def _release(lock, holder_path, pid):
    if os.getpid() != pid:
        _INHERITED.append(lock)
        return
    with suppress(OSError):
        os.unlink(holder_path)
    lock.release(force=True)


def utc_now():
    """Return the time in UTC; a clock out of range gives the first or last instant."""
    seconds = time.time()
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        end = datetime.max if seconds > 0 else datetime.min
        return end.replace(tzinfo=UTC)
