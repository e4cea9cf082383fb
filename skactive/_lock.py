"""One writer at a time, who is named to whoever comes second."""

from __future__ import annotations

import errno
import json
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime

from . import _files

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

__all__ = ["Lock", "LockedError"]

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
    >>> from skactive._lock import Lock, LockedError
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
        self._handle = None
        self._path = os.path.realpath(path)
        self._what = what
        self._pid = os.getpid()
        self._is_file = False  # whether the file itself is the lock
        try:
            if not self._flock():
                self._create()
            self._sign()
        except BaseException:
            self.release()
            raise

    def release(self):
        """Let go; harmless if repeated, and in a forked child."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        if os.getpid() == self._pid:  # a child shares the parent's lock
            if self._is_file:
                with suppress(FileNotFoundError):
                    os.unlink(self._path)
            else:
                fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)

    def __del__(self):
        self.release()

    def _flock(self):
        """Lock by the system's means, or give False where it has none."""
        if fcntl is None:
            return False
        handle = _files._open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            os.close(handle)
            if exc.errno in _NOT_OFFERED:
                if os.path.getsize(self._path) == 0:
                    os.unlink(self._path)  # made by the attempt
                return False
            if exc.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            self._refuse(exc)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return True

    def _create(self):
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        try:
            self._handle = _files._open(self._path, flags, 0o666)
        except FileExistsError as exc:
            if not self._is_abandoned():
                self._refuse(exc)
            self._take_over(flags, exc)
        self._is_file = True

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
            self._handle = _files._open(self._path, flags, 0o666)
        finally:
            os.unlink(guard)

    def _sign(self):
        holder = {
            "pid": self._pid,
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
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
