"""The files of a pretrained model, in a folder or on the hub, and what is wrong."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from pickle import UnpicklingError

__all__ = ["ModelFiles", "digest_file", "quiet"]

_CODE = frozenset({"AutoConfig", "AutoModel", "AutoModelForMaskedLM", "AutoTokenizer"})

_MOST_LAYERS = 1000
_digests = {}  # (path, size, mtime) -> hex


class ModelFiles:
    """The files of a pretrained model.

    Parameters
    ----------
    name : str
        Absolute folder or name on the hub.
    revision : str or None
        Branch, tag or commit on the hub.
    local : bool
        Whether `name` is a folder.

    Attributes
    ----------
    commit : str or None
        The commit that `revision` stands for, once it is known.
    """

    def __init__(self, name, revision, *, local):
        self.name, self.revision, self.local = name, revision, local
        self.commit = None
        if local and not os.path.isfile(os.path.join(name, "config.json")):
            raise ValueError(
                f"'model' must be a folder that holds a model, got {name!r}, which has "
                "no config.json. Pass the folder that save_pretrained wrote."
            )

    def refuse_code(self):
        """Raise an error where the configuration names code of the model's own.

        This holds also for a model type that transformers knows: its own class may
        compute something else than the class that the configuration names.
        """
        for filename in ("config.json", "tokenizer_config.json"):
            settings = self.read_json(filename, dict) or {}
            named = settings.get("auto_map") or ()
            if isinstance(named, list) or _CODE.intersection(named):
                key = "auto_map"
            elif "/" in str(settings.get("attn_implementation")):  # a kernel's name
                key = "attn_implementation"
            else:
                continue
            raise ValueError(
                "'model' must be a model that transformers runs with its own code, got "
                f"{self.name!r}, whose {filename} names other code under {key!r}. "
                "Code that comes with a model is never run. Pass another model."
            )

    def refuse_endless(self):
        """Raise an error where the configuration names more layers than any model has.

        Transformers would build them all before it looks at the weights.
        """
        for key, value in (self.read_json("config.json", dict) or {}).items():
            is_number = "layers" in key or "group" in key
            if is_number and isinstance(value, int) and value > _MOST_LAYERS:
                raise ValueError(
                    f"'model' must have at most {_MOST_LAYERS} layers, got "
                    f"{self.name!r}, whose config.json says {key}={value}. It cannot "
                    "be loaded. Pass another model."
                )

    def read_json(self, filename, kind):
        """Read one of the model's JSON files; None where there is no such file."""
        path = self.path(filename)
        if path is None:
            return None
        with self.explained(filename):
            with open(path, encoding="utf-8") as stream:
                content = json.load(stream)
            if not isinstance(content, kind):
                raise ValueError(f"it holds a {type(content).__name__}")
        return content

    def weights(self):
        """List the configuration and the files that `from_pretrained` reads."""
        config = self.path("config.json")
        for weights in ("model.safetensors", "pytorch_model.bin"):
            if path := self.path(weights):
                return [config, path]
            if index := self.path(f"{weights}.index.json"):
                return [config, index, *self._shards(f"{weights}.index.json")]
        raise ValueError(
            f"'model' must hold weights, got {self.name!r}, which has neither "
            "model.safetensors nor pytorch_model.bin. Save the model with "
            "save_pretrained."
        )

    def _shards(self, index):
        content = self.read_json(index, dict)
        with self.explained(index):
            for shard in sorted(set(content["weight_map"].values())):
                if shard != os.path.basename(shard) or not (path := self.path(shard)):
                    raise ValueError(f"its shard {shard!r} is not there")
                yield path

    def path(self, filename):
        """Find one of the files, on the hub by way of its cache; None without it."""
        if self.local:
            path = os.path.join(self.name, filename)
            return path if os.path.isfile(path) else None
        with quiet(), self.explained(filename):
            from transformers.utils import cached_file

            return cached_file(
                self.name,
                filename,
                revision=self.commit or self.revision,
                _raise_exceptions_for_missing_entries=False,
                _raise_exceptions_for_connection_errors=False,
            )

    @contextmanager
    def explained(self, what):
        """Raise an error that names the model, whatever goes wrong within."""
        try:
            yield
        except Exception as exc:  # of whatever library reads the file
            if self.local:
                raise ValueError(
                    f"'model' must be a folder with a model and its tokenizer, got "
                    f"{self.name!r}, whose {what} cannot be loaded "
                    f"({_first_line(exc)}). Save both there with save_pretrained."
                ) from exc
            at = "" if self.revision is None else f" at revision {self.revision!r}"
            raise ValueError(
                f"'model' must be a local folder or a name on the hub, got "
                f"{self.name!r}{at}, whose {what} cannot be loaded from the hub or its "
                f"cache ({_first_line(exc)}). Check the name and the connection, or "
                "pass a local folder."
            ) from exc


def _first_line(exc):
    if isinstance(exc, UnpicklingError):
        return "pytorch_model.bin holds more than tensors, which might run code"
    lines = str(exc).strip().splitlines() or [""]
    if lines[0].endswith(":"):
        lines[0] = " ".join(line.strip() for line in lines[:2])
    return f"{type(exc).__name__}: {lines[0]}".rstrip(": .")


def digest_file(path):
    """Hash a file; once, as long as its size and time stay."""
    found = os.stat(path)
    key = (path, found.st_size, found.st_mtime_ns)
    if key not in _digests:
        with open(path, "rb") as stream:
            _digests[key] = hashlib.file_digest(stream, "sha256").hexdigest()
    return _digests[key]


@contextmanager
def quiet():
    """Silence the progress bars and load reports of transformers, then restore."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
