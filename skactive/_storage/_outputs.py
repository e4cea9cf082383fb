"""Files between the files of a person: what a command did not write is kept."""

import json
import os
import shutil
import stat
import uuid
import warnings
from contextlib import contextmanager, suppress
from glob import escape
from itertools import count
from pathlib import Path

from .._utils._sealed import hash_file
from .._utils._system import find_permissions, limit_permissions, private_mode, replace
from . import _files
from ._files import Lock, LockedError, sync_folder


def write_own(path, write, known_digest=None, mode=0o666):
    """Write a file by `write(path)`, which appears whole or not at all.

    What is at `path` is kept under a free numbered name, unless it is a file whose
    SHA-256 is `known_digest`, or that of the new one. A link is kept as well, and never
    followed. The permissions are at most `mode`. Return the SHA-256 of the new file,
    and the path of what was kept or None.
    """
    path = Path(path)
    try:
        with stage(path, f"the writing of {str(path)!r}") as folder:
            staged = folder / path.name
            write(staged)
            limit_permissions(staged, mode)
            with open(staged, "rb+") as stream:
                _files._fsync(stream.fileno())
            digest, kept_path = hash_file(staged), None
            if os.path.lexists(path) and not _is_known(path, {known_digest, digest}):
                kept_path = set_aside(path)
            _files._replace(staged, path)
    except OSError as exc:
        reason = exc.strerror or exc
        raise OSError(f"{str(path)!r} could not be written: {reason}") from exc
    sync_folder(path.parent)
    return digest, kept_path


def write_listed(path, write):
    """Write a file by `write(path)`, and list its SHA-256 in outputs.json next to it.

    What is at `path`, and was not written like this, is kept under another path, and a
    UserWarning names it.
    """
    listed = Path(path).with_name("outputs.json")
    wrote = {}
    with suppress(OSError, ValueError):
        wrote = dict(json.loads(listed.read_bytes()))
    digest, kept_path = write_own(path, write, wrote.get(path.name))
    content = json.dumps({**wrote, path.name: digest}, indent=1)
    _files.write_atomic(listed, content.encode())
    if kept_path is not None:
        warnings.warn(f"{path} was changed: it is kept as {kept_path}", stacklevel=3)


def set_aside(path):
    """Rename what is at `path`, such as t.csv to t.1.csv, and return its new path."""
    for n in count(1):
        new_path = path.with_name(f"{path.stem}.{n}{path.suffix}")
        if not os.path.lexists(new_path):
            replace(path, new_path)
            return new_path


def find_mode(path):
    """Return the permissions of a file, or what a folder and its files all give."""
    mode, paths = 0o666, [path]
    for folder, _, files in os.walk(path):
        paths += [folder, *(os.path.join(folder, file) for file in files)]
    for name in paths:
        if name is not path and not os.path.exists(name):
            continue  # a link to nothing
        mode &= find_permissions(name)
    return mode | 0o600


def make_private_folder(path, mode, own):
    """Make a folder that others open only if all may read a file of `mode`.

    A folder that has files stays as it is, unless one of them is called `own`.
    """
    is_private = mode & 0o044 != 0o044
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(0o700 if is_private else 0o777, exist_ok=True)
    if is_private and (own in os.listdir(path) or not os.listdir(path)):
        limit_permissions(path, 0o700)


def _is_known(path, digests):
    is_file = stat.S_ISREG(os.lstat(path).st_mode)  # a link is none
    return is_file and hash_file(path) in digests


@contextmanager
def stage(path, what, restore=lambda folder: None):
    """Yield a new folder next to `path` that only its owner opens, removed at the end.

    What killed processes left of the same path is removed first. `restore(folder)`,
    before each removal, can put something back. Errors name `what` is under way.
    """
    sweep(path, restore)
    folder = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    lock = None
    try:
        folder.mkdir(private_mode())
        if _files.FileLock is not None:
            lock = Lock(folder / "lock", what)
        yield folder
    except OSError as exc:
        if exc.errno and exc.filename is None:
            exc.filename = os.fspath(path)  # a full disk names no file by itself
        raise
    finally:
        _remove(folder, lock, restore)


def sweep(path, restore=lambda folder: None):
    """Remove what killed processes left next to `path`; see :func:`stage`."""
    left = path.parent.glob(f".{escape(path.name)}.????????.tmp")
    for folder in left if _files.FileLock is not None else ():
        try:
            lock = Lock(folder / "lock", "")
        except (LockedError, OSError):
            continue  # one that is under way
        _remove(folder, lock, restore)


def _remove(folder, lock, restore, again=True):
    """Remove a staged folder, even if the user interrupts this once."""
    try:
        restore(folder)
        if lock is not None:
            lock.release()
        shutil.rmtree(folder, ignore_errors=True)
    except BaseException as exc:
        if again:
            _remove(folder, lock, restore, again=False)
        first = exc
        while isinstance(first, OSError):  # shutil may close a folder twice
            first = first.__context__
        if first is not None:
            raise first from None
