"""Files that are replaced atomically, and disk calls that tests can replace."""

import errno
import os
import uuid
from contextlib import suppress

# Every call that can fail with the disk uses one of these names, so that a test can
# replace them with a faulty disk.
_open = os.open
_write = os.write
_fsync = os.fsync
_ftruncate = os.ftruncate
_close = os.close
_replace = os.replace
_unlink = os.unlink
_mkdir = os.mkdir

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn each newline into two bytes


def write_atomic(path, data, sync_names=True):
    """Write bytes to a file that always holds the old or the new content, whole.

    The folder must exist. On return, the new content is on the disk, and with
    `sync_names` under its name. An error leaves no other file behind; the file then has
    the old content, or the new.
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
    if sync_names:
        sync_folder(folder)


def make_folder(path):
    """Create a folder and its parents; on return, they are on the disk."""
    path = os.path.realpath(path)
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
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
    """Write the names in a folder to the disk; only POSIX can open folders."""
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
