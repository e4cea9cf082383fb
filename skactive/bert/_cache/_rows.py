"""Rows found by text: in memory, or on disk as `.npy` shards with a JSON manifest each.

Shards are written atomically.
"""

import hashlib
import io
import itertools
import json
import os
import time
import uuid
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np

from ..._storage._files import write_atomic
from ..._storage._fingerprint import digest_text
from ..._storage._mapped import allocate, clip_to, copy_rows, in_memory
from ..._utils._chunks import chunk_size
from ._memory import Entry, cache_limit, size_of

_FORMAT = 1
_GAP = 16  # rows that are rather read than skipped: each piece is a call of the system
_LEFTOVER_SECONDS = 24 * 3600


class DamagedShard(Exception):
    """A shard's content is not what its manifest says."""


class UnreadableShard(DamagedShard):
    """A shard cannot be read now, say for want of rights; it may be sound."""


class ShardFolder:
    """The shards of one recipe (model, pooling, layers, ...) in a cache folder.

    A shard is two files: `<name>.npy` with the features and `<name>.json`, its
    manifest, with the digests of its texts and the checksum of the array file. The
    manifest is written last, so a shard exists completely or not at all. Names are
    random and nothing is ever rewritten, so several processes write at the same time
    without a lock. `root` is shared by all recipes; `dtype` is the type of the arrays
    on disk.
    """

    def __init__(self, root, recipe, dtype):
        self.root = Path(root)
        self.dtype = np.dtype(dtype)
        self.recipe = {"format": _FORMAT, "dtype": self.dtype.name, **recipe}
        content = json.dumps(self.recipe, sort_keys=True).encode()
        self.folder = self.root / hashlib.sha256(content).hexdigest()[:32]
        self._listed, self._left_out = set(), set()
        self._checked = {}  # name -> (file, start of the rows), of those found sound
        self._is_swept = False

    # Reading --------------------------------------------------------------------

    def new_shards(self):
        """Yield the names of the shards written since the last call, by any process."""
        try:
            files = os.listdir(self.folder)
        except OSError:  # not made yet, or not readable: nothing to reuse
            return
        found = {
            file.removesuffix(".json")
            for file in files
            if file.startswith("shard-") and file.endswith(".json")
        }
        for name in sorted(found - self._listed - self._left_out):
            self._listed.add(name)
            yield name

    def list_again(self):
        """Make the next call of `new_shards` list all shards that are there."""
        self._listed.clear()

    def leave_out(self, name):
        """Remove a shard from what is listed."""
        self._left_out.add(name)

    def read_digests(self, name):
        """Return the digests of a shard's texts, in the order of the rows.

        There are none for a shard that has vanished. `DamagedShard` has the reason.
        """
        try:
            return [bytes.fromhex(text) for text in self._manifest(name)["texts"]]
        except FileNotFoundError:  # another process found it damaged and removed it
            return []
        except OSError as exc:
            raise UnreadableShard(f"{type(exc).__name__}: {exc}") from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise DamagedShard(f"manifest: {type(exc).__name__}: {exc}") from exc

    def _manifest(self, name):
        return json.loads((self.folder / f"{name}.json").read_text("utf-8"))

    def check(self, name, width):
        """Read every byte of a shard, once per process; raise as `read` does."""
        if name not in self._checked:
            with self._opened(name, width):
                pass

    def read(self, name, width, rows, out, positions):
        """Copy rows of a shard as in `out[positions] = shard[rows]`.

        The file is read, not mapped into memory: reading a mapped file that another
        process has truncated would kill this process. `DamagedShard` has the reason;
        some of `out` may be written then.
        """
        order = np.argsort(rows, kind="stable")
        row_bytes = width * self.dtype.itemsize
        steps = np.diff(rows[order] // chunk_size(row_bytes))
        cuts = np.flatnonzero((steps > 0) | (np.diff(rows[order]) > _GAP)) + 1
        with self._opened(name, width) as (stream, start):
            for part in np.split(order, cuts):
                first, last = rows[part[0]], rows[part[-1]]
                piece = np.empty((last - first + 1, width), self.dtype)
                stream.seek(start + int(first) * row_bytes)
                if stream.readinto(piece) != piece.nbytes:
                    raise DamagedShard("the file has become shorter")
                out[positions[part]] = piece[rows[part] - first]

    @contextmanager
    def _opened(self, name, width):
        """Open a shard, whose every byte was checked since the file last changed."""
        try:
            with open(self.folder / f"{name}.npy", "rb", buffering=0) as stream:
                found = os.fstat(stream.fileno())
                file = found.st_ino, found.st_size, found.st_mtime_ns
                if self._checked.get(name, (None,))[0] != file:
                    self._checked[name] = file, self._check(stream, name, width)
                yield stream, self._checked[name][1]
        except (FileNotFoundError, EOFError, ValueError, KeyError, TypeError) as exc:
            raise DamagedShard(f"{type(exc).__name__}: {exc}") from exc
        except OSError as exc:
            raise UnreadableShard(f"{type(exc).__name__}: {exc}") from exc

    def _check(self, stream, name, width):
        """Compare a file with its manifest; return where its rows start."""
        manifest = self._manifest(name)
        if hashlib.file_digest(stream, "sha256").hexdigest() != manifest["sha256"]:
            raise DamagedShard("its checksum is not the manifest's")
        stream.seek(0)
        np.lib.format.read_magic(stream)
        shape, transposed, dtype = np.lib.format.read_array_header_1_0(stream)
        expected = len(manifest["texts"]), width
        if shape != expected or dtype != self.dtype or transposed:
            raise DamagedShard(
                f"it holds {dtype} of shape {shape}, not {self.dtype} of {expected}"
            )
        return stream.tell()

    def remove(self, name):
        """Remove a damaged shard, as far as the folder allows it."""
        for suffix in (".json", ".npy"):
            with suppress(OSError):
                (self.folder / f"{name}{suffix}").unlink(missing_ok=True)

    # Writing --------------------------------------------------------------------

    def write(self, texts, features):
        """Write one shard of `features` (n, width).

        Raises `OSError` if the folder cannot be written or the disk is full. Nothing of
        the shard remains then.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        if not (self.folder / "manifest.json").exists():
            self._write("manifest.json", json.dumps(self.recipe, indent=1).encode())
        name = f"shard-{uuid.uuid4().hex}"
        stream = io.BytesIO()
        np.save(stream, clip_to(features, self.dtype), allow_pickle=False)
        array = stream.getvalue()
        manifest = {
            "format": _FORMAT,
            "sha256": hashlib.sha256(array).hexdigest(),
            "texts": [digest_text(text).hex() for text in texts],
        }
        try:
            self._write(f"{name}.npy", array)
            self._write(f"{name}.json", json.dumps(manifest).encode())
        except BaseException:
            self.remove(name)
            raise

    def _write(self, filename, content):
        write_atomic(self.folder / filename, content, sync_names=False)

    def _sweep(self):
        """Remove what writers that were killed left behind, a day later."""
        if self._is_swept:
            return
        self._is_swept = True
        with suppress(OSError):
            files = set(os.listdir(self.folder))
            for file in files:
                name, suffix = os.path.splitext(file)
                if (
                    file.startswith(".tmp-")
                    or suffix == ".tmp"
                    or (suffix == ".npy" and f"{name}.json" not in files)
                ):
                    path = self.folder / file
                    if time.time() - path.stat().st_mtime > _LEFTOVER_SECONDS:
                        path.unlink()


_SMALL_BLOCK, _SMALL_BLOCKS_KEPT = 256, 64


class ShardVanished(Exception):
    """A shard that was there cannot be read any more, and is given up."""


class Block(Entry):
    """The rows of n texts, in one read-only array.

    Row i belongs to text i, or the rows `bounds[i]` to `bounds[i + 1]` do.
    """

    def __init__(self, texts, array, n_bytes, bounds=None):
        super().__init__(n_bytes)
        array.flags.writeable = False
        self.texts, self.array, self.bounds = texts, array, bounds

    def view(self, i):
        """Return the (t, width) rows of text i."""
        return self.array[self.bounds[i] : self.bounds[i + 1]]


class MemoryRows:
    """Rows in memory: one block per call that added some."""

    def __init__(self):
        self.blocks, self._starts = [], []
        self._numbers = {}  # text -> number of the text
        self._n_texts = 0

    def find(self, texts):
        """Return the (n,) numbers of texts, -1 for those that are not here."""
        return _get_each(self._numbers, texts)

    def blocks_of(self, numbers):
        """Yield each block that is used, the numbers in it and their positions."""
        for i, part in _split(self._starts, numbers):
            self.blocks[i].touch()
            yield self.blocks[i], numbers[part] - self._starts[i], part

    def touch(self, numbers):
        """Mark the blocks of texts as used now."""
        for i in np.unique(_numbers(self._starts, numbers)):
            self.blocks[i].touch()

    def take(self, numbers, features, positions):
        """Copy the single rows of texts to their positions in `features`."""
        for block, rows, part in self.blocks_of(numbers):
            copy_rows(block.array, rows, features, positions[part])

    def add(self, texts, array, bounds=None, n_bytes=None):
        """Keep the rows of texts, without a copy."""
        if bounds is None:
            self._merge_small_blocks()
        self._append(texts, array, bounds, n_bytes)

    def _append(self, texts, array, bounds=None, n_bytes=None):
        if n_bytes is None:
            n_bytes = in_memory(array) + size_of(texts)
        self.blocks.append(Block(texts, array, n_bytes, bounds))
        self._starts.append(self._n_texts)
        self._numbers.update(zip(texts, itertools.count(self._n_texts), strict=False))
        self._n_texts += len(texts)

    def _merge_small_blocks(self):
        """Join the blocks of many small calls, so that looking up stays fast."""
        small = [block for block in self.blocks if len(block.texts) < _SMALL_BLOCK]
        if len(small) <= _SMALL_BLOCKS_KEPT:
            return
        for block in small:
            self.drop(block)
        texts = list(itertools.chain.from_iterable(block.texts for block in small))
        self._append(texts, np.concatenate([block.array for block in small]))

    def drop(self, block):
        """Forget a block."""
        i = self.blocks.index(block)
        start = self._starts[i]
        del self.blocks[i], self._starts[i]
        for text in block.texts:
            # Two threads may have added the same text; the later block has it.
            if start <= self._numbers.get(text, -1) < start + len(block.texts):
                del self._numbers[text]

    def entries(self):
        """List the blocks, each with the function that drops it."""
        return [(block, partial(self.drop, block)) for block in self.blocks]


class _Index(Entry):
    """Row numbers by text, so that not every look-up must hash the texts."""

    def __init__(self):
        super().__init__()
        self.rows = {}

    def add(self, texts, rows):
        self.rows.update(zip(texts, rows, strict=True))
        self.n_bytes += size_of(texts)

    def clear(self):
        self.rows, self.n_bytes = {}, 0


class DiskRows:
    """Rows in the shards of a `ShardFolder`."""

    def __init__(self, shards):
        self.shards = shards
        self.index = _Index()
        self._start_over()

    def _start_over(self):
        """Forget what is in the folder, so that the next look-up lists it."""
        self._names, self._starts = [], []
        self._n_rows = 0
        self._rows = {}  # digest of a text -> row number
        self.index.clear()
        self.shards.list_again()

    def find(self, texts, width):
        """Return the row numbers of texts, -1 for those that are in no shard.

        The shards that are read for the first time in this process are checked; a
        damaged one is removed, with a warning.
        """
        while True:
            rows = self._find(texts)
            numbers = np.bincount(_numbers(self._starts, rows[rows >= 0]))
            used = [self._names[i] for i in np.flatnonzero(numbers)]
            damaged = {}
            for name in used:
                try:
                    self.shards.check(name, width)
                except DamagedShard as exc:
                    damaged[name] = exc
            if not damaged:
                return rows
            self._start_over()
            for name, reason in damaged.items():
                self._give_up(name, reason)

    def _find(self, texts):
        self.index.touch()
        rows = _get_each(self.index.rows, texts)
        if rows.min() >= 0:
            return rows
        for name in self.shards.new_shards():
            self._list(name)
        if self._rows:
            unknown = np.flatnonzero(rows < 0)
            digests = [digest_text(texts[i]) for i in unknown]
            rows[unknown] = _get_each(self._rows, digests)
            found = unknown[rows[unknown] >= 0]
            self.index.add([texts[i] for i in found], rows[found].tolist())
        return rows

    def _list(self, name):
        try:
            digests = self.shards.read_digests(name)
        except DamagedShard as exc:
            self._give_up(name, exc)
            return
        self._names.append(name)
        self._starts.append(self._n_rows)
        self._rows.update(zip(digests, itertools.count(self._n_rows), strict=False))
        self._n_rows += len(digests)

    def take(self, rows, features, positions):
        """Copy rows to their positions; `ShardVanished` if a shard is unreadable."""
        for number, part in _split(self._starts, rows):
            name, first = self._names[number], self._starts[number]
            width, places = features.shape[1], positions[part]
            try:
                self.shards.read(name, width, rows[part] - first, features, places)
            except DamagedShard as exc:
                self._start_over()
                self._give_up(name, exc)
                raise ShardVanished from exc

    def _give_up(self, name, reason):
        unreadable = isinstance(reason, UnreadableShard)
        path = self.shards.folder / f"{name}.npy"
        self.shards.leave_out(name)
        if not unreadable:
            self.shards.remove(name)
        warnings.warn(
            f"the cached features in {str(path)!r} "
            f"{'cannot be read' if unreadable else 'are damaged'} ({reason}) and are "
            "computed again.",
            UserWarning,
            stacklevel=2,
        )


def _get_each(index, keys):
    if not index:
        return np.full(len(keys), -1, dtype=np.intp)
    found = map(index.get, keys, itertools.repeat(-1))
    return np.fromiter(found, dtype=np.intp, count=len(keys))


def _numbers(starts, rows):
    """Return the number of the block that each row is in."""
    return np.searchsorted(starts, rows, side="right") - 1


def _split(starts, rows):
    """Yield the number of each block that has some of `rows`, and their positions."""
    numbers = _numbers(starts, rows)
    if numbers.min() == numbers.max():
        yield numbers[0], slice(None)
        return
    order = np.argsort(numbers, kind="stable")
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    for part in np.split(order, cuts):
        yield numbers[part[0]], part


_SMALL = 2**20  # bytes that are not worth a file


def allocate_rows(n_rows, width):
    """Return a float32 array (n_rows, width) to be filled.

    It is in a file if it alone is beyond the limit of the cache.
    """
    return allocate(n_rows, width, np.float32, max(cache_limit(), _SMALL))
