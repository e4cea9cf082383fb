"""Features on disk: `.npy` shards, each with a JSON manifest, written atomically."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from pathlib import Path

import numpy as np

__all__ = ["DamagedShard", "ShardFolder", "digest_text"]

_FORMAT = 1


class DamagedShard(Exception):
    """A shard's content is not what its manifest says, or cannot be read."""


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
        self._seen = set()

    def new_shards(self):
        """Find the shards that other calls, or other processes, have written.

        Yields
        ------
        name : str
        digests : list of bytes or None
            Of the texts, in the order of the rows. None for a damaged manifest.
        """
        try:
            names = sorted(
                entry.name[:-5]
                for entry in os.scandir(self.folder)
                if entry.name.endswith(".json") and entry.name.startswith("shard-")
            )
        except OSError:  # not made yet, or not readable: nothing to reuse
            return
        for name in names:
            if name not in self._seen:
                self._seen.add(name)
                yield name, self._read_digests(name)

    def _read_digests(self, name):
        try:
            return [bytes.fromhex(text) for text in self._manifest(name)["texts"]]
        except FileNotFoundError:  # another process found it damaged and removed it
            return []
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _manifest(self, name):
        return json.loads((self.folder / f"{name}.json").read_text("utf-8"))

    def open(self, name, width):
        """Map a shard into memory after checking every byte of it.

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
        path = self.folder / f"{name}.npy"
        try:
            manifest = self._manifest(name)
            with open(path, "rb") as stream:
                checksum = hashlib.file_digest(stream, "sha256").hexdigest()
            if checksum != manifest["sha256"]:
                raise DamagedShard("its checksum is not the manifest's")
            features = np.load(path, mmap_mode="r", allow_pickle=False)
            if features.shape != (len(manifest["texts"]), width):
                raise DamagedShard(f"its shape is {features.shape}")
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise DamagedShard(f"{type(exc).__name__}: {exc}") from exc
        return np.asarray(features)

    def write(self, texts, features):
        """Write one shard.

        Parameters
        ----------
        texts : list of str or of (str, str)
        features : ndarray of shape (n, width)

        Returns
        -------
        name : str

        Raises
        ------
        OSError
            Where the folder cannot be written or the disk is full.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "manifest.json").exists():
            self._write("manifest.json", json.dumps(self.recipe, indent=1).encode())
        name = f"shard-{uuid.uuid4().hex}"
        self._seen.add(name)
        array = _to_npy(np.ascontiguousarray(features, dtype=self.dtype))
        manifest = {
            "format": _FORMAT,
            "sha256": hashlib.sha256(array).hexdigest(),
            "texts": [digest_text(text).hex() for text in texts],
        }
        self._write(f"{name}.npy", array)
        try:
            self._write(f"{name}.json", json.dumps(manifest).encode())
        except OSError:
            (self.folder / f"{name}.npy").unlink(missing_ok=True)
            raise
        return name

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
            temporary.unlink(missing_ok=True)
            raise
        if hasattr(os, "O_DIRECTORY"):  # POSIX: make the new name durable as well
            directory = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def remove(self, name, reason=None):
        """Remove a damaged shard, as far as the folder allows it.

        Parameters
        ----------
        name : str
        reason : DamagedShard or None
            A shard that could not be opened, say for want of rights or file handles,
            is left alone: its content may be sound.
        """
        cause = getattr(reason, "__cause__", None)
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
            return
        for suffix in (".json", ".npy"):
            try:
                (self.folder / f"{name}{suffix}").unlink(missing_ok=True)
            except OSError:
                return


def _to_npy(features):
    import io

    stream = io.BytesIO()
    np.save(stream, features, allow_pickle=False)
    return stream.getbuffer()
