"""Features on disk: `.npy` shards, each with a JSON manifest, written atomically."""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import uuid
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

import numpy as np

__all__ = ["DamagedShard", "ShardFolder", "UnreadableShard", "digest_text"]

_FORMAT = 1
_MAPS_KEPT = 64  # each holds a file handle, of which a process has few
_LEFTOVER_SECONDS = 24 * 3600


class DamagedShard(Exception):
    """A shard's content is not what its manifest says."""


class UnreadableShard(DamagedShard):
    """A shard cannot be read now, say for want of rights; it may be sound."""


def digest_text(text):
    """Hash a text, or a pair of texts, to 16 bytes.

    Parameters
    ----------
    text : str or tuple of (str, str)

    Returns
    -------
    digest : bytes
        A pair is told from its two texts joined: the length of the first is hashed.

    Examples
    --------
    >>> from skactive.bert.shards import digest_text
    >>> digest_text(("ab", "c")) == digest_text(("a", "bc"))
    False
    """
    if isinstance(text, str):
        content = b"t" + text.encode("utf-8", "surrogatepass")
    else:
        first, second = (part.encode("utf-8", "surrogatepass") for part in text)
        content = b"p%d:" % len(first) + first + second
    return hashlib.blake2b(content, digest_size=16).digest()


class ShardFolder:
    """The shards of one recipe (model, pooling, layers, ...) in a cache folder.

    A shard is two files: `<name>.npy` with the features and `<name>.json`, its
    manifest, with the digests of its texts and the checksum of the array file. The
    manifest is written last, so a shard exists wholly or not at all. Names are
    random and nothing is ever rewritten, so several processes write side by side
    without a lock.

    Parameters
    ----------
    root : path-like
        The cache folder, shared by all recipes.
    recipe : dict
        What the features depend on besides the text; JSON values.
    dtype : {"float32", "float16"}
        Type of the arrays on disk.
    """

    def __init__(self, root, recipe, dtype):
        self.root = Path(root)
        self.dtype = np.dtype(dtype)
        self.recipe = {"format": _FORMAT, "dtype": self.dtype.name, **recipe}
        content = json.dumps(self.recipe, sort_keys=True).encode()
        self.folder = self.root / hashlib.sha256(content).hexdigest()[:32]
        self._listed, self._left_out = set(), set()
        self._checked = {}  # name -> shape, of the shards found sound
        self._maps = OrderedDict()  # name -> array mapped into memory
        self._is_swept = False

    # Reading --------------------------------------------------------------------

    def new_shards(self):
        """List the shards written since the last call, by whatever process.

        Yields
        ------
        name : str
        """
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
        """Let the next call of `new_shards` list all that are there."""
        self._listed.clear()

    def leave_out(self, name):
        """List a shard no more."""
        self._left_out.add(name)
        self._maps.pop(name, None)

    def read_digests(self, name):
        """Read which texts a shard holds.

        Parameters
        ----------
        name : str

        Returns
        -------
        digests : list of bytes
            In the order of the rows. None of a shard that is gone by now.

        Raises
        ------
        DamagedShard
            With the reason.
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
        """Read every byte of a shard, once per process; raise as `open` does."""
        if name not in self._checked:
            self.open(name, width)

    def open(self, name, width):
        """Map a shard into memory, after checking it if that was not done yet.

        Parameters
        ----------
        name : str
        width : int
            Features per text.

        Returns
        -------
        features : ndarray of shape (n, width)
            Read-only.

        Raises
        ------
        DamagedShard
            With the reason.
        """
        if name not in self._maps:
            self._maps[name] = self._open(name, width)
            while len(self._maps) > _MAPS_KEPT:
                self._maps.popitem(last=False)
        self._maps.move_to_end(name)
        return self._maps[name]

    def _open(self, name, width):
        path = self.folder / f"{name}.npy"
        try:
            if name not in self._checked:
                manifest = self._manifest(name)
                with open(path, "rb") as stream:
                    checksum = hashlib.file_digest(stream, "sha256").hexdigest()
                if checksum != manifest["sha256"]:
                    raise DamagedShard("its checksum is not the manifest's")
                shape = len(manifest["texts"]), width
            else:
                shape = self._checked[name]
            features = np.load(path, mmap_mode="r", allow_pickle=False)
            if features.shape != shape:
                raise DamagedShard(f"its shape is {features.shape}, not {shape}")
        except (FileNotFoundError, EOFError, ValueError, KeyError, TypeError) as exc:
            raise DamagedShard(f"{type(exc).__name__}: {exc}") from exc
        except OSError as exc:
            raise UnreadableShard(f"{type(exc).__name__}: {exc}") from exc
        self._checked[name] = shape
        return np.asarray(features)

    def remove(self, name):
        """Remove a damaged shard, as far as the folder allows it.

        Parameters
        ----------
        name : str
        """
        for suffix in (".json", ".npy"):
            with suppress(OSError):
                (self.folder / f"{name}{suffix}").unlink(missing_ok=True)

    # Writing --------------------------------------------------------------------

    def round(self, features):
        """Give features the values that a shard holds of them.

        Parameters
        ----------
        features : ndarray

        Returns
        -------
        rounded : ndarray of the type on disk
            Values beyond the range of float16 become its largest.
        """
        if self.dtype == features.dtype:
            return features
        largest = np.finfo(self.dtype).max
        return np.clip(features, -largest, largest).astype(self.dtype)

    def write(self, texts, features):
        """Write one shard.

        Parameters
        ----------
        texts : list of str or of (str, str)
        features : ndarray of shape (n, width), float32

        Raises
        ------
        OSError
            Where the folder cannot be written or the disk is full. Nothing of the
            shard remains then.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        if not (self.folder / "manifest.json").exists():
            self._write("manifest.json", json.dumps(self.recipe, indent=1).encode())
        name = f"shard-{uuid.uuid4().hex}"
        stream = io.BytesIO()
        np.save(stream, self.round(features), allow_pickle=False)
        array = stream.getbuffer()
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
        """Write a file that appears under its name only when it is complete."""
        temporary = self.folder / f".tmp-{uuid.uuid4().hex}"
        try:
            with open(temporary, "xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, self.folder / filename)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise

    def _sweep(self):
        """Remove what writers that were killed left behind, a day later."""
        if self._is_swept:
            return
        self._is_swept = True
        with suppress(OSError):
            files = set(os.listdir(self.folder))
            for file in files:
                name, suffix = os.path.splitext(file)
                if file.startswith(".tmp-") or (
                    suffix == ".npy" and f"{name}.json" not in files
                ):
                    path = self.folder / file
                    if time.time() - path.stat().st_mtime > _LEFTOVER_SECONDS:
                        path.unlink()
