"""A folder of features: one `.npy` file, the keys of its rows, a journal of blocks.

`features.npy` is allocated as a whole and filled in blocks of rows. A line of
`blocks.jsonl` follows when blocks are on the disk, with their checksums, so a process
that is killed loses at most the blocks that it was encoding.
"""

import hashlib
import io
import json
import os
import time
import warnings
import zlib
from numbers import Integral
from pathlib import Path
from typing import Literal

import numpy as np

from .._storage._files import (
    LineWriter,
    Lock,
    make_folder,
    read_sound_lines,
    sync_folder,
    write_all,
    write_atomic,
)
from .._storage._fingerprint import find_changes, hash_items
from .._storage._hash_index import HashIndex
from .._storage._mapped import Blocks, FileRows, clip_to, open_array
from .._utils._chunks import chunk_size
from .._utils._containers import as_texts
from .._utils._format import progress_bar
from .._utils._sklearn import Interval, StrOptions
from .._utils._system import replace, reserve, sync_data

_FORMAT = 1
MANIFEST, KEYS = "manifest.json", "keys.npy"
ROWS, JOURNAL = "features.npy", "blocks.jsonl"
_COMMIT_SECONDS = 1.0  # a sync of the disk takes longer than fast blocks
_COMMIT_PAUSES = 9.0  # and a tenth of the time is spent on it, at most
_COMMIT_LONGEST = 30.0
_SPAN_TEXTS, _SPAN_BYTES = 2**16, 2**27


def hash_texts(X):
    """Return the (n,) uint64 keys of texts: those that a `TextPool` has, or hashes."""
    return X.hashes if hasattr(X, "hashes") else hash_items(as_texts(X))


# Reading ------------------------------------------------------------------------------


def is_folder(path):
    """Whether a path is a folder of features, finished or not."""
    return (Path(path) / MANIFEST).is_file()


def open_folder(path):
    """Return the features (n, d), as FileRows, the keys (n,) and the manifest.

    Raise a ValueError for a folder that is not finished or whose files do not fit.
    """
    path = Path(path)
    manifest = _read_manifest(path)
    n_rows, block_rows = manifest["n_rows"], manifest["block_rows"]
    n_blocks = -(-n_rows // block_rows)
    try:
        done, _ = _read_journal(path)
        n_done = sum(block in range(n_blocks) for block in done)
        if n_done < n_blocks:
            raise _UnfinishedError(f"{n_done} of {n_blocks} blocks are finished")
        checksums = [done[block] for block in range(n_blocks)]
        keys = np.array(open_array(path / KEYS))
        features = open_array(path / ROWS)
        actual = keys.shape, keys.dtype, features.shape, features.dtype
        dtype = np.dtype(manifest["dtype"])
        expected = (n_rows,), np.dtype("<u8"), (n_rows, manifest["width"]), dtype
        if actual != expected:
            raise ValueError(f"they are {actual}, and the manifest says {expected}")
        if hashlib.sha256(keys).hexdigest() != manifest["keys"]:
            raise ValueError(f"{KEYS!r} has another checksum")
    except (OSError, EOFError, ValueError) as exc:
        reason = f"{type(exc).__name__}: " * (not isinstance(exc, _UnfinishedError))
        raise ValueError(
            f"{str(path)!r} must hold features that are whole, and does not "
            f"({reason}{exc}). {_AGAIN}"
        ) from exc

    def explain(block):
        last = min((block + 1) * block_rows, n_rows) - 1
        return (
            f"{str(path)!r} must hold features that are whole, got block {block} of "
            f"{ROWS!r}, the rows {block * block_rows} to {last}, with another checksum "
            f"than in {JOURNAL!r}. {_AGAIN}"
        )

    rows = np.minimum(np.arange(n_blocks + 1) * block_rows, n_rows)
    bounds = features.offset + rows * features.strides[0]
    blocks = Blocks(path / ROWS, features._mmap, bounds, checksums, explain)
    return FileRows(features, blocks, block_rows), keys, manifest


_AGAIN = (
    "Call `transform_to` again with the same texts and folder: it encodes what is "
    "missing."
)


class _UnfinishedError(ValueError):
    """Some blocks are not written yet."""


def _read_manifest(path):
    try:
        manifest = json.loads((path / MANIFEST).read_text("utf-8"))
        version = manifest["format"]
        if version == _FORMAT:
            _check_manifest(manifest)
    except (OSError, ValueError, LookupError, TypeError) as exc:
        raise ValueError(
            f"{str(path / MANIFEST)!r} must be the manifest of a folder of features, "
            f"and it cannot be read ({type(exc).__name__}: {exc}). Restore it from a "
            "copy, or delete the folder."
        ) from exc
    if version != _FORMAT:
        raise ValueError(
            f"the features in {str(path)!r} must be of format {_FORMAT}, got "
            f"{version!r}. Install the release of skactive that wrote them."
        )
    return manifest


def _check_manifest(manifest):
    """Raise an error for a manifest of format 1 with other values."""
    for name in ("n_rows", "width", "block_rows"):
        if type(manifest[name]) is not int or not 0 < manifest[name] < 2**63:
            raise ValueError(f"{name} is {manifest[name]!r}")
    if manifest["dtype"] not in ("float16", "float32"):
        raise ValueError(f"dtype is {manifest['dtype']!r}")
    for name, kind in (("keys", str), ("encoder", dict)):
        if not isinstance(manifest[name], kind):
            raise TypeError(f"{name} is {manifest[name]!r}")


def _read_journal(path):
    """Return the checksums of the finished blocks, and whether a line was damaged."""
    done = {}
    try:
        records, is_damaged = read_sound_lines(path / JOURNAL)
    except FileNotFoundError:
        return done, False
    for record in records:
        try:
            done.update(zip(record["blocks"], record["crc32"], strict=True))
        except (LookupError, TypeError, ValueError):
            is_damaged = True
    return done, is_damaged


FloatType = Literal["float16", "float32"]
# The parameters of `transform_to`.
FOLDER_PARAMS = {
    "folder": [str, os.PathLike],
    "dtype": [StrOptions({"float16", "float32"})],
    "block_rows": [Interval(Integral, 1, None, closed="left")],
}


# Writing ------------------------------------------------------------------------------


def write_features(
    source,
    folder,
    *,
    encode,
    recipe,
    width,
    dtype="float16",
    block_rows=4096,
    verbose="auto",
):
    """Write the features of texts into a folder, or what is missing there.

    `source` is a TextPool or a sequence of texts. `encode(texts, bounds, out)` fills
    the rows of `out` (len(texts), width), float32, in any order, and yields the
    positions (p,) that it has just filled. `bounds` are the first positions of the
    blocks in `texts`, and the end; earlier blocks should be filled first, and a row may
    depend on the texts of its block only. `recipe` is a dict of JSON values: all that
    the features depend on besides the text.
    """
    is_pool = hasattr(source, "hashes")
    texts = source if is_pool else as_texts(source, name="source")
    if not len(texts):
        raise ValueError("'source' holds no texts. Pass at least one.")
    keys = np.ascontiguousarray(hash_texts(texts), dtype="<u8")
    folder = os.path.realpath(os.path.expanduser(os.fspath(folder)))
    make_folder(folder)
    lock = Lock(os.path.join(folder, "writer.lock"), f"the folder {folder!r}")
    try:
        manifest = {
            "format": _FORMAT,
            "n_rows": len(keys),
            "width": int(width),
            "dtype": np.dtype(dtype).name,
            "block_rows": int(block_rows),
            "keys": hashlib.sha256(keys).hexdigest(),
            "encoder": json.loads(json.dumps(recipe)),
        }
        with _Writer(Path(folder), keys, manifest) as writer:
            settings = {"desc": "Features", "unit": "text", "total": len(keys)}
            with progress_bar(verbose, **settings) as bar:
                writer.run(texts, encode, bar)
    finally:
        lock.release()


class _Writer:
    """Fill the blocks of a folder, whose lock is held."""

    def __init__(self, folder, keys, manifest):
        self.folder, self.keys = folder, keys
        self.block_rows = manifest["block_rows"]
        self.shape = manifest["n_rows"], manifest["width"]
        self.dtype = np.dtype(manifest["dtype"])
        self._rows = self._journal = None
        self._prepare(manifest)
        self.n_blocks = -(-self.shape[0] // self.block_rows)
        self.first = HashIndex(keys).find_first()
        self._pending, self._committed = [], time.monotonic()
        self._pause = _COMMIT_SECONDS
        try:
            self._open_rows()
            self._journal = LineWriter(self.folder / JOURNAL, checksums=True)
            self.done = self._verify()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        for file in (self._rows, self._journal):
            if file is not None:
                file.close()

    # Preparing the files.

    def _prepare(self, manifest):
        """Write the manifest and the keys; compare them with those of the folder."""
        path = self.folder / MANIFEST
        self.finished, is_damaged = _read_journal(self.folder)
        if path.exists():
            old = _read_manifest(self.folder)
            if self.finished:
                self._compare(old, manifest)
                self.block_rows = manifest["block_rows"] = old["block_rows"]
        else:
            foreign = [name for name in (KEYS, ROWS, JOURNAL) if self._has(name)]
            if foreign:
                raise ValueError(
                    f"'folder' must be empty or a folder of features, got "
                    f"{str(self.folder)!r}, which holds {foreign[0]!r} and no "
                    f"{MANIFEST!r}. Pass another folder."
                )
        write_atomic(path, json.dumps(manifest, indent=1).encode())
        stream = io.BytesIO()
        np.save(stream, self.keys, allow_pickle=False)
        write_atomic(self.folder / KEYS, stream.getvalue())
        if is_damaged:
            self._repair_journal()

    def _has(self, name):
        return (self.folder / name).exists()

    def _compare(self, old, new):
        """Raise a ValueError that says in what a folder differs from what is wanted."""
        names = ("encoder", "n_rows", "width", "dtype")
        changes = find_changes(*({name: m[name] for name in names} for m in (old, new)))
        if not changes and old["keys"] != new["keys"]:
            row = self._find_other_row()
            where = "" if row is None else f", the first of them in row {row}"
            changes = f"the texts differ{where}"
        if changes:
            raise ValueError(
                f"'folder' must hold features of the same texts and encoder, and "
                f"{str(self.folder)!r} does not: {changes}. Pass the same source "
                "and parameters as before, or another folder."
            )

    def _find_other_row(self):
        try:
            old = open_array(self.folder / KEYS)
        except (OSError, ValueError):
            return None
        same = old.shape == self.keys.shape
        return int(np.argmax(old != self.keys)) if same else None

    def _repair_journal(self):
        """Write a journal without its damaged lines."""
        self._warn("some lines of the journal cannot be read")
        path = self.folder / f"{JOURNAL}.tmp"
        path.unlink(missing_ok=True)
        with LineWriter(path, checksums=True) as journal:
            blocks = sorted(self.finished)
            checksums = [self.finished[block] for block in blocks]
            journal.write({"blocks": blocks, "crc32": checksums})
        replace(path, self.folder / JOURNAL)

    def _warn(self, reason):
        warnings.warn(
            f"the features in {str(self.folder)!r} are damaged: {reason}. What is "
            "missing is encoded again.",
            UserWarning,
            stacklevel=2,
        )

    def _open_rows(self):
        """Open the file of the rows, at its full size: a full disk is an error now."""
        header = io.BytesIO()
        order = {"fortran_order": False, "shape": self.shape}
        descr = np.lib.format.dtype_to_descr(self.dtype)
        np.lib.format.write_array_header_1_0(header, {"descr": descr, **order})
        self.start = header.tell()
        self.row_bytes = self.shape[1] * self.dtype.itemsize
        n_bytes = self.start + self.shape[0] * self.row_bytes
        path, is_new = self.folder / ROWS, not self._has(ROWS)
        self._rows = open(path, "w+b" if is_new else "r+b", buffering=0)  # noqa: SIM115
        if os.fstat(self._rows.fileno()).st_size > n_bytes:
            self._rows.truncate(n_bytes)
        try:
            reserve(self._rows, n_bytes, self.folder)
        except OSError as exc:
            if is_new:
                self._rows.close()
                path.unlink()
            raise OSError(
                exc.errno,
                f"{os.strerror(exc.errno)}: no room for {n_bytes / 1e9:.2f} GB of "
                f"features in {str(self.folder)!r}. Nothing was encoded. Make room, or "
                "pass a folder on another disk or dtype='float16'",
            ) from exc
        self._write_at(0, header.getvalue())
        os.fsync(self._rows.fileno())
        sync_folder(self.folder)

    def _verify(self):
        """Return the set of the blocks whose bytes are those that were written."""
        sound = set()
        for block, checksum in self.finished.items():
            rows = self._rows_of(block)
            self._rows.seek(self.start + rows.start * self.row_bytes)
            content = self._rows.read(len(rows) * self.row_bytes)
            if zlib.crc32(content) == checksum:
                sound.add(block)
        damaged = len(self.finished) - len(sound)
        if damaged:
            self._warn(f"{damaged} of {self.n_blocks} blocks have another checksum")
        return sound

    # Encoding.

    def run(self, texts, encode, bar):
        """Encode the blocks that are not done, several at a time."""
        missing = [block for block in range(self.n_blocks) if block not in self.done]
        bar.update(sum(len(self._rows_of(block)) for block in self.done))
        width = min(_SPAN_TEXTS, chunk_size(4 * self.shape[1], _SPAN_BYTES))
        size = max(1, width // self.block_rows)
        try:
            for start in range(0, len(missing), size):
                self._encode(missing[start : start + size], texts, encode, bar)
        finally:  # also when interrupted: what is finished is not encoded twice
            self._commit()

    def _encode(self, blocks, texts, encode, bar):
        own = [self._own_rows(block) for block in blocks]
        bounds = np.cumsum([0, *map(len, own)])
        rows = np.concatenate(own)
        part = [texts[i] for i in rows] if isinstance(texts, list) else texts[rows]
        out = np.empty((len(rows), self.shape[1]), dtype=np.float32)
        left = np.diff(bounds)
        n_written = self._write_filled(blocks, own, left, bounds, out, 0, bar)
        for positions in encode(list(part), bounds, out) if len(rows) else ():
            numbers = np.searchsorted(bounds, positions, side="right") - 1
            left -= np.bincount(numbers, minlength=len(left))
            n_written = self._write_filled(
                blocks, own, left, bounds, out, n_written, bar
            )

    def _own_rows(self, block):
        """Return the rows of a block whose texts are in no earlier row."""
        rows = np.arange(self._rows_of(block).start, self._rows_of(block).stop)
        return rows if self.first is None else rows[self.first[rows] == rows]

    def _write_filled(self, blocks, own, left, bounds, out, n_written, bar):
        """Write the blocks that are filled, in order; return how many are written."""
        while n_written < len(blocks) and not left[n_written]:
            filled = out[bounds[n_written] : bounds[n_written + 1]]
            self._write_block(blocks[n_written], own[n_written], filled)
            bar.update(len(self._rows_of(blocks[n_written])))
            n_written += 1
        return n_written

    def _write_block(self, block, own, filled):
        rows = self._rows_of(block)
        values = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        values[own - rows.start] = clip_to(filled, self.dtype)
        if len(own) < len(rows):
            self._copy_repeats(rows, values)
        self._write_at(self.start + rows.start * self.row_bytes, values)
        self._pending.append((block, zlib.crc32(values)))
        if time.monotonic() - self._committed > self._pause:
            self._commit()

    def _copy_repeats(self, rows, values):
        """Copy the rows of texts that occurred before, here or in an earlier block."""
        for row in rows:
            first = int(self.first[row])
            if rows.start <= first < row:
                values[row - rows.start] = values[first - rows.start]
            elif first < rows.start:
                self._rows.seek(self.start + first * self.row_bytes)
                self._rows.readinto(values[row - rows.start])

    def _commit(self):
        """Record the blocks that were written, after they are on the disk."""
        start = time.monotonic()
        if self._pending:
            sync_data(self._rows.fileno())
            blocks, checksums = zip(*self._pending, strict=True)
            self._journal.write({"blocks": list(blocks), "crc32": list(checksums)})
            self._pending = []
        self._committed = time.monotonic()
        pause = _COMMIT_PAUSES * (self._committed - start)
        self._pause = max(_COMMIT_SECONDS, min(pause, _COMMIT_LONGEST))

    def _rows_of(self, block):
        start = block * self.block_rows
        return range(start, min(start + self.block_rows, self.shape[0]))

    def _write_at(self, offset, content):
        self._rows.seek(offset)
        write_all(self._rows.fileno(), memoryview(content).cast("B"))
