"""One writer at a time, who is named to whoever comes second."""

import errno
import json
import os
import socket
import time
import weakref
from contextlib import suppress
from datetime import UTC, datetime

from . import _files

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


_NOT_OFFERED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


class LockedError(RuntimeError):
    """Somebody else holds the lock."""


class Lock:
    """A file that one process at a time holds, and that says which.

    The lock ends with this object. Where the system has `flock`, it also ends with its
    process, however that ends.
    Elsewhere the file itself is the lock: a process that was killed leaves it behind,
    and it is taken over if that process ran on this machine and is seen to be gone.

    Parameters
    ----------
    path : str or path-like
        Made if it is not there, in a folder that exists.
    what : str
        What it guards, for the error.

    Raises
    ------
    LockedError
        If it is held, with the holder's process, machine and time.
    OSError
        If the file cannot be made; nothing is then held.

    Examples
    --------
    >>> import os, tempfile
    >>> from pathlib import Path
    >>> from skactive._storage._lock import Lock, LockedError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = Lock(Path(folder) / "lock", "the folder")
    ...     try:
    ...         Lock(Path(folder) / "lock", "the folder")
    ...     except LockedError as error:
    ...         print(f"process {os.getpid()} on" in str(error))
    ...     lock.release()
    True
    """

    def __init__(self, path, what):
        self._path = os.path.realpath(path)
        self._what = what
        self._pid = os.getpid()
        self._handle = self._flock()
        is_file = self._handle is None  # whether the file itself is the lock
        if is_file:
            self._handle = self._create()
        self._opened = os.fstat(self._handle)
        self._let_go = weakref.finalize(
            self, _unlock, self._handle, self._path, is_file, self._pid
        )
        try:
            self._sign()
        except BaseException:
            self.release()
            raise

    def check(self):
        """Raise a RuntimeError if the file was deleted or replaced since.

        Another process can then hold a lock of the same name.
        """
        if _files.stat_opened(self._path, self._opened) is None:
            raise RuntimeError(
                f"{self._path!r}, the lock of {self._what}, was deleted or replaced "
                "while it was held, so another process may be writing there. Nothing "
                "was recorded. Close it here and open it again."
            )

    def release(self):
        """Let go; harmless if repeated, and in a forked child."""
        self._let_go()

    def _flock(self):
        """Lock by the system's means, or give None where it has none."""
        if fcntl is None:
            return None
        handle = _files._open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            os.close(handle)
            if exc.errno in _NOT_OFFERED:
                if os.path.getsize(self._path) == 0:
                    os.unlink(self._path)  # made by the attempt
                return None
            if exc.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            self._refuse(exc)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _create(self):
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        try:
            return _files._open(self._path, flags, 0o666)
        except FileExistsError as exc:
            if not self._is_abandoned():
                self._refuse(exc)
            return self._take_over(flags, exc)

    def _take_over(self, flags, exc):
        # Of two who find the same dead holder, the guard lets one through.
        guard = f"{self._path}.takeover"
        try:
            os.close(_files._open(guard, flags, 0o666))
        except FileExistsError:
            self._refuse(exc)
        try:
            if not self._is_abandoned():
                self._refuse(exc)
            os.unlink(self._path)
            return _files._open(self._path, flags, 0o666)
        finally:
            os.unlink(guard)

    def _sign(self):
        holder = {
            "pid": self._pid,
            "host": socket.gethostname(),
            "since": utc_now().isoformat(timespec="seconds"),
        }
        with suppress(OSError):  # a full disk need not keep anyone from reading
            _files._ftruncate(self._handle, 0)
            _files._write(self._handle, json.dumps(holder).encode())

    def _holder(self):
        """Read who holds it; {} while the holder is about to write that."""
        try:
            with open(self._path, encoding="utf-8") as stream:
                holder = json.load(stream)
            return holder if isinstance(holder, dict) else {}
        except (OSError, ValueError):
            return {}

    def _is_abandoned(self):
        holder = self._holder()
        pid = holder.get("pid")
        if os.name != "posix" or holder.get("host") != socket.gethostname():
            return False  # only POSIX can ask after a process without ending it
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except (OSError, TypeError):
            return False
        return False

    def _refuse(self, exc):
        holder = self._holder()
        who = "another process"
        if holder:
            who = (
                f"process {holder.get('pid')} on {holder.get('host')}, since "
                f"{holder.get('since')}"
            )
        remedy = "Close it there"
        if fcntl is None or isinstance(exc, FileExistsError):
            remedy += f", or delete {self._path!r} if that process is gone"
        raise LockedError(
            f"{self._what} is open for writing in {who}. {remedy}."
        ) from exc


def _unlock(handle, path, is_file, pid):
    try:
        if os.getpid() != pid:  # a child shares the parent's lock
            return
        if not is_file:
            fcntl.flock(handle, fcntl.LOCK_UN)
        elif _files.stat_opened(path, os.fstat(handle)):
            os.unlink(path)
    finally:
        os.close(handle)


def utc_now():
    """Return the time in UTC; a clock beyond the calendar gives its first or last."""
    seconds = time.time()
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        end = datetime.max if seconds > 0 else datetime.min
        return end.replace(tzinfo=UTC)
