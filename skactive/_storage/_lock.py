"""A file lock that reports its holder."""

import errno
import json
import os
import socket
import time
import weakref
from contextlib import suppress
from datetime import UTC, datetime

from filelock import FileLock, SoftFileLock, Timeout

from . import _files

_FLOCK_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


# Locks of the parent: a child that collected one would release it.
_INHERITED: list[FileLock] = []


class LockedError(RuntimeError):
    """Another process or object holds the lock."""


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
            self._lock = _acquire(FileLock, self._path)
        except OSError as exc:
            if exc.errno not in _FLOCK_UNSUPPORTED:
                raise
            if os.path.exists(self._path) and not os.path.getsize(self._path):
                os.unlink(self._path)  # made by the attempt
            # The first attempt may only remove the marker of a dead process.
            self._lock = _acquire(SoftFileLock, self._path, timeout=0.1)
        if self._lock is None:
            raise LockedError(
                f"{self._what} is open for writing in {self._read_holder()}. Close it "
                f"there, or delete {self._path!r} if that process is gone."
            )

    def check(self):
        """Raise a RuntimeError if the file was deleted or replaced.

        Another process can then hold a lock of the same name.
        """
        if _files.stat_opened(self._path, self._opened) is None:
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
            handle = _files._open(self._holder_path, flags, 0o666)
            try:
                _files._write(handle, json.dumps(holder).encode())
            finally:
                _files._close(handle)

    def _read_holder(self):
        """Return the process, machine and time of the holder as text."""
        try:
            with open(self._holder_path, encoding="utf-8") as stream:
                holder = json.load(stream)
            return "process {pid} on {host}, since {since}".format(**holder)
        except (OSError, ValueError, LookupError, TypeError):
            return "another process"  # that is about to write who it is


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
