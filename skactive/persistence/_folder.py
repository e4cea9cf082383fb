"""A folder that appears whole or not at all, and objects as JSON with files in it."""

import json
import os
import re
import shutil
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from .._storage._files import sync_folder
from .._storage._fingerprint import collect_versions, warn_of_versions
from .._storage._outputs import stage, sweep
from .._utils._sealed import (
    CARD,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    LoadError,
    check_folder,
    hash_file,
    is_read,
    list_files,
    read_manifest,
)
from .._utils._system import allow_everywhere, replace

OBJECT_FILE = "object.json"
MOST_BYTES, _MOST_TIMES = 10**8, 100  # of what a file is unpacked to
TAG = "@"  # the key that distinguishes a coded value from a plain dict


def quote(where):
    """Return the place of a value within the saved object, for error messages."""
    return repr(where) if where else "'estimator'"


class Writer:
    """Encode values as JSON, and the others as files in an empty folder.

    Each of the `encoders`, `encoder(value, where, writer)`, returns JSON or
    NotImplemented. `models` lists the pretrained encoders by name and revision;
    `encoders` maps the hashes of copied encoders to their folders. See
    :func:`skactive.save` for the other arguments.
    """

    def __init__(self, folder, encoders, *, data, bundle, trusted):
        self.folder = folder
        self.data, self.bundle, self.trusted = data, bundle, trusted
        self.models = []
        self.encoders = {}
        self._encoders = encoders
        self._taken = set()

    def encode(self, value, where):
        """Return a value at the place `where` as JSON, or raise a TypeError."""
        for encoder in self._encoders:
            node = encoder(value, where, self)
            if node is not NotImplemented:
                return node
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        shown = repr(value)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        raise TypeError(
            f"{quote(where)} cannot be saved without pickle, got {shown} of the type "
            f"{kind}. Parameters may be None, bool, int, float, str, paths, tuples, "
            "lists, sets, dicts, arrays and estimators; set another value before "
            "saving."
        )

    def new_file(self, kind, where, suffix):
        """Return relative name and path of a new file, named after its place."""
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", where).strip(".") or "estimator"
        stem = allow_everywhere(stem[-80:])
        name, n = f"{kind}/{stem}{suffix}", 1
        while name.lower() in self._taken:
            n += 1
            name = f"{kind}/{stem}-{n}{suffix}"
        self._taken.add(name.lower())
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        return name, path

    def write_json(self, name, content):
        """Write a JSON file; lone surrogates in texts survive."""
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        (self.folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


class Reader:
    """Decode what :class:`Writer` encoded.

    `files` are the checked files of the folder. `decoders` maps each tag to
    `decoder(node, where, reader)`. `models` maps name and revision of a pretrained
    encoder to its folder. See :func:`skactive.load` for the other arguments.
    """

    def __init__(self, folder, files, decoders, *, model, trusted):
        self.folder = folder
        self.models = {}
        self.trusted = trusted
        self._model = model
        self._replaced = set()
        self._files = files
        self._used = set()
        self._decoders = decoders

    def read(self, content):
        """Return the estimator that is the content of the object file."""
        try:
            for entry in content["models"]:
                key = entry["model"], entry["revision"]
                self.models[key] = self.subfolder(entry["folder"])
            estimator = self.decode(content["object"], "")
        except (LoadError, ImportError):
            raise
        except Exception as exc:
            raise _unreadable("", exc) from exc
        if not hasattr(estimator, "get_params") or hasattr(estimator, "select"):
            raise LoadError(
                f"{OBJECT_FILE!r} must hold an estimator, and holds a "
                f"{type(estimator).__name__}. Save again, or copy the folder again."
            )
        asked = set(self._model) if isinstance(self._model, dict) else {None}
        if self._model is not None and asked != self._replaced:
            names = sorted(map(str, asked - self._replaced - {None}))
            raise ValueError(
                "'model' must replace an encoder of the saved estimator, which has "
                f"none{' named ' if names else ''}{', '.join(names)}. Leave it out."
            )
        return estimator

    def replacement(self, model):
        """Return the replacement of an encoder, or None."""
        name = os.fspath(model)
        if not isinstance(self._model, dict):
            self._replaced.add(None)
            return self._model
        if name in self._model:
            self._replaced.add(name)
        return self._model.get(name)

    def decode(self, node, where):
        """Return the value of a node at the place `where`."""
        if isinstance(node, list):
            return [self.decode(item, f"{where}[{i}]") for i, item in enumerate(node)]
        if not isinstance(node, dict):
            return node
        if TAG not in node:
            return {k: self.decode(v, f"{where}.{k}") for k, v in node.items()}
        decoder = self._decoders.get(str(node[TAG]))
        if decoder is None:
            raise LoadError(
                f"{OBJECT_FILE!r} holds the kind {node[TAG]!r} at {quote(where)}, "
                "which this version does not know. Load it with the version that wrote "
                "it."
            )
        try:
            return decoder(node, where, self)
        except (LoadError, ImportError):
            raise
        except Exception as exc:  # a decoder may raise anything
            raise _unreadable(where, exc) from exc

    def path(self, name):
        """Return the path of a file that the manifest lists, and that is used once."""
        if name not in self._files:
            raise LoadError(
                f"{OBJECT_FILE!r} names the file {name!r}, which 'manifest.json' does "
                "not list. Save again."
            )
        if name in self._used:  # files that name each other would be read forever
            raise LoadError(
                f"{OBJECT_FILE!r} uses the file {name!r} more than once, as "
                "skactive.save does not. Do not trust the folder."
            )
        self._used.add(name)
        return self.folder / name

    def subfolder(self, name):
        """Return the path of a folder in which the manifest lists files."""
        if not isinstance(name, str) or f"{name}/config.json" not in self._files:
            raise LoadError(
                f"{OBJECT_FILE!r} names the folder {name!r}, in which 'manifest.json' "
                "lists no config.json. Save again."
            )
        return os.fspath(self.folder / name)


def check_size(name, path, n_bytes):
    """Raise a LoadError for a file that would take far more memory than disk."""
    limit = max(MOST_BYTES, _MOST_TIMES * os.path.getsize(path))
    if n_bytes > limit:
        raise LoadError(
            f"{name!r} must hold at most {_MOST_TIMES} times its size, got {n_bytes} "
            f"bytes in {os.path.getsize(path)}. It was not read; do not trust the "
            "folder."
        )


def _unreadable(where, exc):
    return LoadError(
        f"{OBJECT_FILE!r} cannot be understood at {quote(where)} "
        f"({type(exc).__name__}: {exc}). Save again, or load it with the version "
        "that wrote it."
    )


_NEW, _OLD = "new", "old"  # in the temporary folder


@contextmanager
def new_folder(folder, overwrite):
    """Write a folder next to its target; seal and rename it at the end of the block.

    Yield the target and the new folder as absolute paths. `overwrite` allows to replace
    a folder that was written this way.
    """
    target = Path(os.path.realpath(os.path.expanduser(folder)))
    restore = partial(_restore, target=target)
    sweep(target, restore)
    _check_target(target, overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    with stage(target, f"the save to {os.fspath(target)!r}", restore) as temporary:
        new = temporary / _NEW
        new.mkdir()
        yield target, new
        _seal(new)
        if overwrite and target.exists():
            _check_target(target, overwrite)  # it may have changed since
            _keep_card(target, new)
            replace(target, temporary / _OLD)
        replace(new, target)
        sync_folder(target.parent)


def _keep_card(old, new):
    """Copy a model card that was changed since it was written."""
    card = old / CARD
    if card.is_file() and hash_file(card) != read_manifest(old).get("card"):
        shutil.copyfile(card, new / CARD)


def _restore(temporary, target):
    """Put the target back that a save ended between its two renames left."""
    if (temporary / _OLD).exists() and not target.exists():
        replace(temporary / _OLD, target)


def _check_target(target, overwrite):
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise FileExistsError(
            f"'folder' must be a new folder, got {os.fspath(target)!r}, which is a "
            "file. Pass another path."
        )
    if not overwrite:
        raise FileExistsError(
            f"'folder' must be a new folder, got {os.fspath(target)!r}, which exists. "
            "Pass another path, or overwrite=True to replace what was saved there."
        )
    files = list_files(target)
    if not files:
        return
    try:
        listed = set(read_manifest(target)["files"])
    except (LoadError, KeyError, TypeError) as exc:
        raise FileExistsError(
            f"'folder' must be new or written by skactive.save, got "
            f"{os.fspath(target)!r}, which holds other files. It was left as it is; "
            "pass another path."
        ) from exc
    if others := sorted(set(filter(is_read, files)) - listed - {MANIFEST}):
        raise FileExistsError(
            f"'folder' must hold only what skactive.save wrote to be replaced, got "
            f"{os.fspath(target)!r}, which also holds {others[0]!r}. Move that away, "
            "or pass another path."
        )


def _seal(folder):
    """Write the manifest, and write everything to the disk."""
    files = {}
    for name, path in sorted(list_files(folder).items()):
        if not is_read(name):
            continue
        files[name] = {"sha256": hash_file(path), "size": path.stat().st_size}
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": collect_versions(),
        "files": files,
    }
    if (folder / CARD).exists():
        manifest["card"] = hash_file(folder / CARD)
    (folder / MANIFEST).write_bytes(json.dumps(manifest, indent=1).encode())
    for directory, _, names in os.walk(folder):
        for name in names:
            with open(Path(directory, name), "rb+") as stream:
                os.fsync(stream.fileno())
        sync_folder(directory)


def open_folder(folder):
    """Check every file of a folder against its manifest.

    Return the absolute path, and the relative names of the files without the manifest.
    Raise a FileNotFoundError, or a ValueError that names a file that is missing,
    changed or not listed.
    """
    root = Path(os.path.realpath(os.path.expanduser(folder)))
    if not root.exists():
        sweep(
            root, partial(_restore, target=root)
        )  # a save may have been killed between its two renames
    if not root.is_dir():
        raise FileNotFoundError(
            f"'folder' must be what skactive.save wrote, got {os.fspath(root)!r}, "
            f"which {'is a file' if root.exists() else 'does not exist'}."
        )
    files, versions = check_folder(root)
    warn_of_versions(versions, of_estimators=True)
    return root, files
