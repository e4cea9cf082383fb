"""Arrays in files, mapped into memory."""

import mmap
import shutil
import tempfile
import tokenize
import warnings
import zlib

import numpy as np

from .._utils._chunks import chunk_size, chunks
from .._utils._system import reserve


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
            reserve(file, n_bytes, folder)
            # Not np.memmap: joblib would send a worker its name, and it has none.
            mapping = mmap.mmap(file.fileno(), n_bytes)
    except OSError as exc:
        raise NoRoomError(
            f"no room for {n_bytes / 1e9:.1f} GB in {folder!r} ({exc})"
        ) from exc
    return np.frombuffer(mapping, dtype=dtype).reshape(n_rows, width)


def allocate(n_rows, width, dtype, limit):
    """Return an array (n_rows, width) to be filled.

    It is in a temporary file if it takes more than `limit` bytes and the disk has room.
    """
    if n_rows * width * np.dtype(dtype).itemsize > limit:
        try:
            return map_file(n_rows, width, dtype)
        except NoRoomError as exc:
            warnings.warn(
                f"{exc}; the features are kept in memory. Set the environment variable "
                "TMPDIR to a folder with more room.",
                UserWarning,
                stacklevel=2,
            )
    return np.empty((n_rows, width), dtype=dtype)


def copy_rows(source, rows, target, positions):
    """Copy (b,) rows as in `target[positions] = source[rows]`, a few at a time."""
    for part in chunks(len(rows), chunk_size(target[:1].nbytes)):
        target[positions[part]] = source[rows[part]]


def clip_to(features, dtype):
    """Return features as `dtype`; values beyond its range become its largest."""
    if features.dtype == dtype:
        return features
    largest = np.finfo(dtype).max
    return np.clip(features, -largest, largest).astype(dtype)


def open_array(path):
    """Map the array of a `.npy` file read-only; a damaged header is a ValueError."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (SyntaxError, tokenize.TokenError) as exc:  # from Python 3.12 on
        raise ValueError(f"{str(path)!r} has a damaged header ({exc})") from exc


class Blocks:
    """Blocks of a mapped file, compared with their checksums when they are first read.

    Block i is the bytes `bounds[i]` to `bounds[i + 1]` of the file, and `checksums[i]`
    is their CRC-32. `explain(block)` says which block is damaged and what to do.
    """

    def __init__(self, path, mapped, bounds=(0,), checksums=(), explain=None):
        self._path, self._map = path, mapped
        self._bounds, self._checksums = list(bounds), checksums
        self._explain = explain
        self._is_sound = np.zeros(len(checksums), dtype=bool)
        self._n_unread = len(checksums)

    def check(self, blocks):
        """Check blocks, an int, a slice or (b,), that are read now.

        Raise an OSError if the file was cut, as reading the rest of the map would end
        the process, and a ValueError for a block with another checksum.
        """
        self._check_length()
        if not self._n_unread or self._is_sound[blocks].all():
            return
        for block in np.unique(np.arange(len(self._is_sound))[blocks]).tolist():
            if self._is_sound[block]:
                continue
            self._check_length()
            with memoryview(self._map) as content:
                part = content[self._bounds[block] : self._bounds[block + 1]]
                with part:
                    checksum = zlib.crc32(part)
            if checksum != self._checksums[block]:
                raise ValueError(self._explain(block))
            self._is_sound[block] = True
        self._n_unread = int(np.sum(~self._is_sound))

    def _check_length(self):
        if self._map.size() < len(self._map):
            raise OSError(
                f"{str(self._path)!r} became shorter while it was open. Restore it, "
                "or delete it and make it again."
            )


class FileRows:
    """Rows (n, d) of a `.npy` file, which are checked when they are read.

    Consecutive rows are FileRows, and are read by `np.asarray`; other rows are copied.
    `mapped` (n, d) are the rows unchecked. Each of the `blocks` has `block_rows` rows,
    and row 0 is the row `first` of the file.
    """

    ndim = 2

    def __init__(self, mapped, blocks, block_rows, first=0):
        self.mapped, self.shape, self.dtype = mapped, mapped.shape, mapped.dtype
        self._blocks, self._block_rows, self._first = blocks, block_rows, first

    def __len__(self):
        return self.shape[0]

    @property
    def itemsize(self):
        """Size of a number in bytes."""
        return self.dtype.itemsize

    def __getitem__(self, key):
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(len(self))
            first = self._first + start
            rows = self.mapped[start:stop]
            return FileRows(rows, self._blocks, self._block_rows, first)
        if isinstance(key, slice):
            key = np.arange(len(self))[key]
        key = np.asarray(key)
        rows = np.flatnonzero(key) if key.dtype == bool else key
        numbers = self._first + rows % max(1, len(self))
        self._blocks.check(numbers // self._block_rows)
        return np.asarray(self.mapped.take(rows, axis=0))

    def __array__(self, dtype=None, copy=None):
        if len(self):
            last = (self._first + len(self) - 1) // self._block_rows
            self._blocks.check(slice(self._first // self._block_rows, last + 1))
        return self.mapped.view(np.ndarray).astype(dtype or self.dtype, copy=bool(copy))


def in_memory(array):
    """Return the bytes of an array that are in memory and in no file."""
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    # NumPy may hold the buffer itself or a view of it.
    base = base.obj if isinstance(base, memoryview) else base
    return 0 if isinstance(base, mmap.mmap) else array.nbytes
