"""What differs between systems: POSIX has one implementation, Windows a second one.

`SYSTEM` is read at each call, so that tests can force the second implementation.
"""

import errno
import mmap
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

SYSTEM = sys.platform  # "win32" is Windows

# Files and folders ------------------------------------------------------------------

BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn each newline into two bytes
sync_data = getattr(os, "fdatasync", os.fsync)  # perhaps without times of the file
_PAUSES = (0.01, 0.04, 0.15, 0.3, 0.5, None)  # seconds


def replace(source, target):
    """Rename a file or folder, in the place of a file that has the new name.

    Windows refuses that while a program has one of them open, as a virus scanner does
    for a moment. After a second of trying, a PermissionError says what to do.
    """
    for pause in _PAUSES if SYSTEM == "win32" else ():
        try:
            return os.replace(source, target)
        except PermissionError as exc:
            if pause is None:
                exc.strerror += ". Close it in other programs, and try again"
                raise
            time.sleep(pause)
    return os.replace(source, target)


def can_open_folders():
    """Whether a folder can be opened, so that its names can be written to the disk."""
    return SYSTEM != "win32"


def reserve(file, n_bytes, folder):
    """Reserve the space of a file in a folder; an OSError if the disk lacks it."""
    if SYSTEM != "win32" and hasattr(os, "posix_fallocate"):  # macOS lacks it
        return os.posix_fallocate(file.fileno(), 0, n_bytes)
    if n_bytes - os.fstat(file.fileno()).st_size > shutil.disk_usage(folder).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return file.truncate(n_bytes)


def release_pages(mapped, start, stop):
    """Release the memory of bytes of a mapped file; they are read again when used."""
    if SYSTEM != "win32" and hasattr(mmap, "MADV_DONTNEED"):
        start -= start % mmap.PAGESIZE
        mapped.madvise(mmap.MADV_DONTNEED, start, stop - start)


# Permissions ------------------------------------------------------------------------


def find_permissions(path):
    """Return what a file allows, as a new file of this process may allow it."""
    if SYSTEM == "win32":
        return 0o777
    status = os.stat(path)
    # A new file may be of another group than this one.
    same_readers = status.st_gid == os.getegid() or status.st_mode & 0o004
    return status.st_mode if same_readers else status.st_mode & ~0o060


def limit_permissions(path, mode):
    """Remove the permissions of a file or folder that `mode` lacks."""
    if SYSTEM != "win32" and (granted := os.stat(path).st_mode) & 0o777 & ~mode:
        with suppress(PermissionError):  # a disk without permissions
            os.chmod(path, granted & mode)


def private_mode():
    """Return the mode of a folder that only its owner opens.

    On Windows, what is moved out of such a folder would stay closed to others.
    """
    return 0o777 if SYSTEM == "win32" else 0o700


# Names ------------------------------------------------------------------------------


def allow_everywhere(name):
    """Return a name that is no device of Windows."""
    return re.sub(r"(?i)^(con|prn|aux|nul|(com|lpt)\d)(?=\.|$)", r"_\1", name)


def to_form(name):
    """Return the one form of names that differ in case or Unicode form only."""
    return unicodedata.normalize("NFC", name).casefold()


def find_named(path):
    """Return a path, or what has its name in another case or Unicode form there."""
    if os.path.lexists(path) or not path.parent.is_dir():
        return path
    names = {to_form(name): name for name in sorted(os.listdir(path.parent))}
    return path.with_name(names.get(to_form(path.name), path.name))


# Signals and priorities -------------------------------------------------------------


@contextmanager
def note_signals():
    """Yield a list that gets the signals that interrupt the block, such as Ctrl-C.

    They interrupt it as before. Only the main thread gets signals.
    """
    came, before = [], {}

    def handle(number, frame):
        came.append(number)
        return before[number](number, frame)

    is_main = threading.current_thread() is threading.main_thread()
    try:
        for number in (signal.SIGINT, signal.SIGTERM) if is_main else ():
            if callable(handler := signal.getsignal(number)):
                before[number] = handler
                signal.signal(number, handle)
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupt_at_sigterm() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGTERM, as Ctrl-C does; Windows never sends it."""
    number, handler = signal.SIGTERM, signal.default_int_handler
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(number, handler) if is_main else None
    try:
        yield
    finally:
        if is_main:  # another thread gets no signals
            signal.signal(number, before or signal.SIG_DFL)


def lower_priority(by=10):
    """Lower the priority of this thread and of those that it will start, on Linux.

    People wait for the other threads of the process. A new process has the priority of
    the thread that started it, and is not lowered twice.
    """
    if SYSTEM == "linux":
        with suppress(OSError):
            own = threading.get_native_id()
            base = 0 if own == os.getpid() else _nice(os.getpid())
            os.setpriority(os.PRIO_PROCESS, own, max(min(base + by, 19), _nice(own)))


def has_low_priority():
    """Whether `lower_priority` was called in this thread, and changed something."""
    return SYSTEM == "linux" and _nice(0) > _nice(os.getpid())


def _nice(thread):
    return os.getpriority(os.PRIO_PROCESS, thread)


# Ports ------------------------------------------------------------------------------


def claim_port(listener):
    """Have a socket follow a killed one at once, and share its port with no other."""
    name = "SO_EXCLUSIVEADDRUSE" if SYSTEM == "win32" else "SO_REUSEADDR"
    if hasattr(socket, name):
        listener.setsockopt(socket.SOL_SOCKET, getattr(socket, name), 1)


class Closing:
    """A `with` statement closes the object at its end."""

    close: Callable[[], None]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
