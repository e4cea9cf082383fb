"""Arrays in files, mapped into memory."""

import mmap
import os
import shutil
import tempfile
import tokenize

import numpy as np


class NoRoomError(Exception):
    """The disk has no room for a file."""


def map_file(n_rows, width, dtype=np.float32):
    """Return an array (n_rows, width) in a new file without a name.

    The file lasts as long as the array. `NoRoomError` if it would take more than half
    of the free space.
    """
    dtype = np.dtype(dtype)
    n_bytes, folder = dtype.itemsize * n_rows * width, tempfile.gettempdir()
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
    return np.frombuffer(mapping, dtype=dtype).reshape(n_rows, width)


def open_array(path):
    """Map the array of a `.npy` file read-only; a damaged header is a ValueError."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (SyntaxError, tokenize.TokenError) as exc:  # from Python 3.12 on
        raise ValueError(f"{str(path)!r} has a damaged header ({exc})") from exc


def in_memory(array):
    """Return the bytes of an array that are in memory and in no file."""
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    # NumPy may hold the buffer itself or a view of it.
    base = base.obj if isinstance(base, memoryview) else base
    return 0 if isinstance(base, mmap.mmap) else array.nbytes
