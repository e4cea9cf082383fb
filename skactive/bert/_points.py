"""Encoders that learned from labels, kept in memory and in a folder."""

import hashlib
import json
import os
import shutil
import warnings
from functools import partial
from pathlib import Path

from .._encoders._module import choose_device, choose_layers
from .._encoders._pretrained import open_checkpoint
from .._encoders._shards import cache_folder
from .._encoders._store import Entry, lock
from .._storage._files import make_folder, write_atomic
from ._fitting import bfloat16, recipe_of

_FORMAT = 1
FIRST_POINT = 25  # labels; the points after it are each twice as many
_KEPT = 2  # points of each lineage


def is_kept(features):
    """Whether the folder of the cache has what a fitted `AdaptedFeatures` needs."""
    if not features._keys:
        return True
    folder = cache_folder(features.cache)
    path = None if folder is None else Points.path(folder, *features._keys)
    return path is not None and any(path.glob("weights-*"))


def make_keys(encoder, labeled, *more):
    """Return the keys of a lineage, and of what is learned from all rows."""
    checkpoint = open_checkpoint(encoder.model, encoder.revision)
    device = choose_device(encoder.device)
    names = ("pooling", "freeze", "max_length", "batch_size", "lr", "warmup")
    settings = [
        *(_FORMAT, checkpoint.digest, checkpoint.tokenizer_digest),
        choose_layers(encoder.layers, checkpoint.depth),
        *(device.type, bfloat16(encoder.precision, device), encoder.random_state),
        *(getattr(encoder, name) for name in names),
        *more,
    ]
    keys = ([*settings, labeled.digest(n)] for n in (FIRST_POINT, None))
    return tuple(_digest(json.dumps(key, default=float).encode()) for key in keys)


def _digest(content):
    return hashlib.sha256(content).hexdigest()[:32]


class Points:
    """The latest trained encoders of a lineage, in memory and, if not None, a folder.

    A lineage has the same parameters and first rows.
    """

    def __init__(self, folder, lineage):
        self.folder, self.lineage = folder, lineage
        self._encoders = {}  # key -> Entry and encoder, least recently used first

    def entries(self):
        """List what takes memory, each with the function that drops it."""
        return [
            (entry, partial(self._encoders.pop, key))
            for key, (entry, _) in self._encoders.items()
        ]

    @staticmethod
    def path(folder, lineage, key):
        """Return the folder of the weights and features of one point."""
        return Path(folder) / f"adapted-{lineage}" / key

    def get(self, key, encoder, objective):
        """Return a trained encoder or None; `encoder` gets weights that are read."""
        with lock:
            _, trained = self._encoders.get(key, (None, None))
        if trained is None and self.folder is not None:
            trained = self._read(key, encoder, recipe_of(encoder, objective))
        if trained is not None:
            self.keep(key, trained)
        return trained

    def keep(self, key, encoder, *, is_new=False):
        """Keep an encoder as the latest one."""
        with lock:
            self._encoders.pop(key, None)
            self._encoders[key] = Entry(encoder.share_frozen()), encoder
            for old in list(self._encoders)[:-_KEPT]:
                del self._encoders[old]
        if self.folder is None:
            return
        try:
            self._write(key, encoder if is_new else None)
        except OSError as exc:
            warnings.warn(
                f"the cache folder {self.folder!r} cannot be written "
                f"({type(exc).__name__}: {exc}); the adapted encoder is kept in memory "
                "only. Make room or pass a folder that can be written to 'cache'.",
                UserWarning,
                stacklevel=5,
            )

    def _read(self, key, encoder, recipe):
        from safetensors.torch import load

        from ._training import copy_trained

        checkpoint = open_checkpoint(encoder.model, encoder.revision)
        for path in self.path(self.folder, self.lineage, key).glob("weights-*"):
            try:
                content = path.read_bytes()
                if path.name != _name(key, content):
                    raise ValueError("its checksum is not that of its name")
                arrays = {name: t.numpy() for name, t in load(content).items()}
                encoder._recipe = recipe
                encoder._restore(arrays, checkpoint.digest)
                if copy_trained(encoder.net_.module_).keys() != arrays.keys():
                    raise ValueError("it lacks weights")
                return encoder
            except (OSError, ValueError, RuntimeError) as exc:
                warnings.warn(
                    f"the adapted encoder in {str(path)!r} is damaged "
                    f"({type(exc).__name__}: {exc}) and is made again.",
                    UserWarning,
                    stacklevel=6,
                )
        return None

    def _write(self, key, encoder):
        """Write weights unless None, mark them as the latest, and remove old ones."""
        own = self.path(self.folder, self.lineage, key)
        if encoder is not None:
            from safetensors.torch import save

            from ._training import copy_trained

            trained = copy_trained(encoder.net_.module_)
            content = save({k: t.cpu().contiguous() for k, t in trained.items()})
            shutil.rmtree(own, ignore_errors=True)  # damaged
            make_folder(own)
            write_atomic(own / _name(key, content), content)
        os.utime(own)
        points = sorted(own.parent.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in points[:-_KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def _name(key, content):
    """Return the name of a file of weights, which has their checksum."""
    return f"weights-{_digest(key.encode() + content)}.safetensors"
