"""Have this process refuse what Windows refuses, as far as Linux can tell.

With `SKACTIVE_TEST_SYSTEM=win32`, `tests/conftest.py` calls `force` and puts this
folder on the path of every process that a test starts, whose Python imports
`sitecustomize`. Then skactive uses the second implementation of
`skactive._utils._system`; what only POSIX has is gone from `os` and `mmap`; and a file
that this process has open or mapped can be neither removed nor renamed nor replaced.
"""

import errno
import mmap
import os
import sys
from pathlib import Path

LACKING = {
    os: ("fdatasync", "getegid", "getpriority", "posix_fallocate", "setpriority"),
    mmap: ("MADV_DONTNEED",),
}
REAL = {name: getattr(os, name) for name in ("open", "remove", "rename", "replace")}


def force(set_attribute=setattr, delete_attribute=delattr):
    """Force the second implementation, in this process."""
    from skactive._utils import _system

    set_attribute(_system, "SYSTEM", "win32")
    for module, names in LACKING.items():
        for name in names:
            if hasattr(module, name):
                delete_attribute(module, name)
    set_attribute(_system, "sync_data", os.fsync)
    for name, fake in {
        "open": _open,
        "remove": _remove,
        "unlink": _remove,
        "rename": _rename,
        "replace": _replace,
    }.items():
        set_attribute(os, name, fake)


def list_open_files():
    """Return the real paths of the files that this process has open or mapped."""
    paths = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            paths.add(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # that of the list itself
            continue
    for line in Path("/proc/self/maps").read_text().splitlines():
        paths.add(line[73:])
    return {path for path in paths if path.startswith("/") and os.path.isfile(path)}


def _refuse_if_open(path, folder=None):
    path = os.fsdecode(path)
    if folder is not None:
        path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)
    parent, name = os.path.split(os.path.abspath(path))
    path = os.path.join(os.path.realpath(parent), name)
    if any(x == path or x.startswith(f"{path}/") for x in list_open_files()):
        raise PermissionError(errno.EACCES, "The file is being used", path)


def _is_of_filelock():
    """Whether the caller's caller knows how to remove its own file on Windows."""
    frame, names = sys._getframe(2), set()
    for _ in range(3):
        names.add(frame.f_globals.get("__name__", "").partition(".")[0])
        frame = frame.f_back or frame
    return "filelock" in names


def _remove(path, *, dir_fd=None):
    if not _is_of_filelock():
        _refuse_if_open(path, dir_fd)
    REAL["remove"](path, dir_fd=dir_fd)


def _rename(source, target, **folders):
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "The file exists", source, None, target)
    _replace(source, target, **folders)


def _replace(source, target, **folders):
    for path in (source, target):
        _refuse_if_open(path)
    REAL["replace"](source, target, **folders)


def _open(path, flags, mode=0o777, *, dir_fd=None):
    caller = sys._getframe(1).f_globals.get("__name__", "")
    if caller.startswith("skactive") and os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", path)
    return REAL["open"](path, flags, mode, dir_fd=dir_fd)
