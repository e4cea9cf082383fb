"""Files that are replaced whole, and calls that a test can make fail."""

import errno
import os
import uuid
from contextlib import suppress

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
    >>> from skactive._storage._files import write_atomic
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
            write_all(handle, data)
            _fsync(handle)
        finally:
            _close(handle)
        _replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            _unlink(temporary)
        raise
    sync_folder(folder)


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
    sync_folder(parent)


def stat_opened(path, opened):
    """Return the status of a file, or None if it is not the one that was opened."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status if os.path.samestat(status, opened) else None


def write_all(handle, data):
    """Write all bytes, in as many calls as that takes."""
    view = memoryview(data)
    while view:
        written = _write(handle, view)
        if written == 0:
            raise OSError(errno.EIO, f"{os.strerror(errno.EIO)}: nothing was written")
        view = view[written:]


def sync_folder(folder):
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
