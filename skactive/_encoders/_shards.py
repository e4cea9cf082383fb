"""Features of texts in the files of a cache folder, which processes may share."""

import hashlib
import io
import json
import os
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from .._storage._files import write_atomic
from .._storage._fingerprint import digest_text
from .._storage._mapped import clip_to
from .._utils._chunks import chunk_size

_FORMAT = 1
_GAP = 16  # rows that are rather read than skipped: each piece is a call of the system
_LEFTOVER_SECONDS = 24 * 3600


def cache_folder(cache):
    """Check the argument `cache` and return its folder; None for the memory."""
    if isinstance(cache, str) and cache == "memory":
        return None
    folder = os.path.expanduser(os.fsdecode(cache))
    try:
        is_path = b"\0" not in os.fsencode(folder)
    except UnicodeEncodeError:
        is_path = False
    if not is_path or not folder.strip() or folder.startswith("~"):
        raise ValueError(
            f"'cache' must be 'memory', a folder or None, got {cache!r}. "
            "Pass the path of a folder; it is made where it does not exist."
        )
    return folder


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
        names = {
            file.removesuffix(".json")
            for file in files
            if file.startswith("shard-") and file.endswith(".json")
        }
        for name in sorted(names - self._listed - self._left_out):
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
                status = os.fstat(stream.fileno())
                file = status.st_ino, status.st_size, status.st_mtime_ns
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
