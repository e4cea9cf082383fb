"""Turn objects into JSON and files beside it, and back."""

import json
import os
import re

OBJECT_FILE = "object.json"
# What a library might load from a folder, and save never puts there.
_PICKLES_AND_CODE = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth", ".py")
TAG = "@"  # the key that tells a coded value from a plain dict


class Refusal(ValueError):
    """What was saved is not what this version reads."""


def at(where):
    """Name a place within the saved object in an error message.

    Parameters
    ----------
    where : str
        Such as "estimator.steps[0]"; empty for the object itself.
    """
    return repr(where) if where else "'estimator'"


class Writer:
    """Encode values; what is not for JSON goes into files.

    Parameters
    ----------
    folder : Path
        An empty folder.
    encoders : sequence of callable
        `encoder(value, where, writer)` gives what JSON takes, or NotImplemented.
    data, bundle : bool
        As in :func:`skactive.save`.
    trusted : frozenset of str
        As in :func:`skactive.save`.

    Attributes
    ----------
    models : list of dict
        The pretrained encoders by name: `model`, `revision`, `folder`.
    encoders : dict of tuple of str to str
        The folders of those copied so far, by the hashes of what they hold.
    """

    def __init__(self, folder, encoders, *, data, bundle, trusted):
        self.folder = folder
        self.data, self.bundle, self.trusted = data, bundle, trusted
        self.models = []
        self.encoders = {}
        self._encoders = encoders
        self._taken = set()

    def encode(self, value, where):
        """Encode one value.

        Parameters
        ----------
        value : object
        where : str
            Its place in what is saved.

        Returns
        -------
        node : what JSON takes

        Raises
        ------
        TypeError
            If no encoder takes it.
        """
        for encoder in self._encoders:
            node = encoder(value, where, self)
            if node is not NotImplemented:
                return node
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        shown = repr(value)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        raise TypeError(
            f"{at(where)} cannot be saved without pickle, got {shown} of the type "
            f"{kind}. Parameters may be None, bool, int, float, str, paths, tuples, "
            "lists, sets, dicts, arrays and estimators; set another value before "
            "saving."
        )

    def new_file(self, kind, where, suffix):
        """Reserve a file.

        Parameters
        ----------
        kind : str
            Its folder within the folder.
        where : str
            The place of what it will hold, from which it gets its name.
        suffix : str

        Returns
        -------
        name : str
            Relative, with slashes.
        path : Path
        """
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

    Parameters
    ----------
    folder : Path
        With its files checked.
    files : set of str
        The names of those files.
    decoders : dict of str to callable
        `decoder(node, where, reader)` for each tag.
    model : str, path-like, dict or None
        As in :func:`skactive.load`.
    trusted : frozenset of str
        As in :func:`skactive.load`.

    Attributes
    ----------
    models : dict of (str, str or None) to str
        By name and revision, the folder of a pretrained encoder that was saved.
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
        """Decode the content of the object file.

        Parameters
        ----------
        content : what JSON gives

        Returns
        -------
        estimator : estimator
        """
        try:
            for entry in content["models"]:
                key = entry["model"], entry["revision"]
                self.models[key] = self.subfolder(entry["folder"])
            estimator = self.decode(content["object"], "")
        except (Refusal, ImportError):
            raise
        except Exception as exc:
            raise _unreadable("", exc) from exc
        if not hasattr(estimator, "get_params") or hasattr(estimator, "select"):
            raise Refusal(
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
        """Return what stands in for the encoder of a name, or None."""
        name = os.fspath(model)
        if not isinstance(self._model, dict):
            self._replaced.add(None)
            return self._model
        if name in self._model:
            self._replaced.add(name)
        return self._model.get(name)

    def decode(self, node, where):
        """Decode one value.

        Parameters
        ----------
        node : what JSON gives
        where : str
            Its place in what was saved.
        """
        if isinstance(node, list):
            return [self.decode(item, f"{where}[{i}]") for i, item in enumerate(node)]
        if not isinstance(node, dict):
            return node
        if TAG not in node:
            return {k: self.decode(v, f"{where}.{k}") for k, v in node.items()}
        decoder = self._decoders.get(str(node[TAG]))
        if decoder is None:
            raise Refusal(
                f"{OBJECT_FILE!r} holds the kind {node[TAG]!r} at {at(where)}, which "
                "this version does not know. Load it with the version that wrote it."
            )
        try:
            return decoder(node, where, self)
        except (Refusal, ImportError):
            raise
        except Exception as exc:  # what the content is made into may raise anything
            raise _unreadable(where, exc) from exc

    def path(self, name):
        """Return the path of a file that the manifest lists and that is used once."""
        if name not in self._files:
            raise Refusal(
                f"{OBJECT_FILE!r} names the file {name!r}, which 'manifest.json' does "
                "not list. Save again."
            )
        if name in self._used:  # files that name each other would never end
            raise Refusal(
                f"{OBJECT_FILE!r} uses the file {name!r} more than once, as "
                "skactive.save does not. Do not trust the folder."
            )
        self._used.add(name)
        return self.folder / name

    def subfolder(self, name):
        """Give the path of a folder in which the manifest lists files."""
        if not isinstance(name, str) or f"{name}/config.json" not in self._files:
            raise Refusal(
                f"{OBJECT_FILE!r} names the folder {name!r}, in which 'manifest.json' "
                "lists no config.json. Save again."
            )
        for file in sorted(self._files):
            if file.startswith(f"{name}/") and file.endswith(_PICKLES_AND_CODE):
                raise Refusal(
                    f"{file!r} is a pickle or code, which skactive.save does not "
                    "write. It was not loaded; do not trust the folder."
                )
        return os.fspath(self.folder / name)


def _unreadable(where, exc):
    return Refusal(
        f"{OBJECT_FILE!r} cannot be understood at {at(where)} "
        f"({type(exc).__name__}: {exc}). Save again, or load it with the version "
        "that wrote it."
    )


def read_json(path):
    """Read a JSON file.

    Parameters
    ----------
    path : Path

    Raises
    ------
    ValueError
        If it is none, naming it.
    """
    try:
        text = path.read_bytes().decode("utf-8", "surrogatepass")
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise Refusal(
            f"{path.name!r} in {os.fspath(path.parent)!r} must be JSON that "
            f"skactive.save wrote, and is not ({type(exc).__name__}: {exc}). Save "
            "again, or copy the folder anew."
        ) from exc


def _refuse_constant(name):
    raise ValueError(f"{name} is no JSON")
