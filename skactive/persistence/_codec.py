"""Convert objects to JSON with files, and back."""

import json
import os
import re

OBJECT_FILE = "object.json"
# A library might load these from a folder; `save` never writes them.
_PICKLES_AND_CODE = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth", ".py")
TAG = "@"  # the key that distinguishes a coded value from a plain dict


class LoadError(ValueError):
    """A saved folder cannot be loaded."""


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
        stem = stem[-80:]
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
        for file in sorted(self._files):
            if file.startswith(f"{name}/") and file.endswith(_PICKLES_AND_CODE):
                raise LoadError(
                    f"{file!r} is a pickle or code, which skactive.save does not "
                    "write. It was not loaded; do not trust the folder."
                )
        return os.fspath(self.folder / name)


def _unreadable(where, exc):
    return LoadError(
        f"{OBJECT_FILE!r} cannot be understood at {quote(where)} "
        f"({type(exc).__name__}: {exc}). Save again, or load it with the version "
        "that wrote it."
    )


def read_json(path):
    """Return the content of a JSON file, or raise a LoadError that names it."""
    try:
        text = path.read_bytes().decode("utf-8", "surrogatepass")
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise LoadError(
            f"{path.name!r} in {os.fspath(path.parent)!r} must be JSON that "
            f"skactive.save wrote, and is not ({type(exc).__name__}: {exc}). Save "
            "again, or copy the folder anew."
        ) from exc


def _refuse_constant(name):
    raise ValueError(f"{name} is not JSON")
