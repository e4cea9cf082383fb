"""Room for many rows: in memory, or in a file without a name that is mapped into it."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import warnings

import numpy as np

from skactive._chunks import chunk_size, chunks
from skactive.bert.memory import get_cache_limit

__all__ = ["NoRoomError", "copy_rows", "in_memory", "map_file", "room"]

_SMALL = 2**20  # bytes that are not worth a file


class NoRoomError(Exception):
    """The disk has no room for a file."""


def room(n_rows, width):
    """Make room for rows of float32, in a file where they are beyond the limit.

    Parameters
    ----------
    n_rows, width : int

    Returns
    -------
    array : ndarray of shape (n_rows, width)
        To be filled. In a file where all rows together take more than
        :func:`skactive.bert.set_cache_limit` allows.

    Warns
    -----
    UserWarning
        Where the disk has no room for that; the rows are in memory then.

    Examples
    --------
    >>> from skactive.bert.mapped import in_memory, room
    >>> in_memory(room(10, 100))
    4000
    """
    n_bytes = 4 * n_rows * width
    if n_bytes > max(get_cache_limit(), _SMALL):
        try:
            return map_file(n_rows, width)
        except NoRoomError as exc:
            warnings.warn(
                f"{exc}; the features are kept in memory, beyond the limit. Set the "
                "environment variable TMPDIR to a folder with more room.",
                UserWarning,
                stacklevel=2,
            )
    return np.empty((n_rows, width), dtype=np.float32)


def map_file(n_rows, width):
    """Map a new file without a name, which lasts as long as the array.

    Parameters
    ----------
    n_rows, width : int
        At least 1.

    Returns
    -------
    array : ndarray of shape (n_rows, width), float32

    Raises
    ------
    NoRoomError
        If the file would take more than half of what is free.
    """
    n_bytes, folder = 4 * n_rows * width, tempfile.gettempdir()
    try:
        if n_bytes > shutil.disk_usage(folder).free / 2:
            raise OSError("it would take more than half of the free space")
        with tempfile.TemporaryFile(prefix="skactive-") as file:
            # Reserved now: a sparse file on a full disk would kill the process later.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            else:
                file.truncate(n_bytes)
            # Not np.memmap: joblib would send a worker its name, and it has none.
            mapping = mmap.mmap(file.fileno(), n_bytes)
    except OSError as exc:
        raise NoRoomError(
            f"no room for {n_bytes / 1e9:.1f} GB in {folder!r} ({exc})"
        ) from exc
    return np.frombuffer(mapping, dtype=np.float32).reshape(n_rows, width)


def in_memory(array):
    """Count the bytes of an array that are in memory and in no file.

    Parameters
    ----------
    array : ndarray

    Returns
    -------
    n_bytes : int
    """
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    # NumPy may hold the buffer itself or a view of it.
    base = base.obj if isinstance(base, memoryview) else base
    return 0 if isinstance(base, mmap.mmap) else array.nbytes


def copy_rows(source, rows, target, positions):
    """Copy rows as in `target[positions] = source[rows]`, a few at a time.

    Parameters
    ----------
    source : ndarray of shape (m, width)
    rows : ndarray of int of shape (b,)
    target : ndarray of shape (n, width)
    positions : ndarray of int of shape (b,)
    """
    for part in chunks(len(rows), chunk_size(source[:1].nbytes)):
        target[positions[part]] = source[rows[part]]
