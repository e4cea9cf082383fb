"""Fine-tuned encoders: trained weights, and a copy of the pretrained encoder."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np

from .._utils._lazy import need_bert
from .._utils._system import replace
from ._folder import OBJECT_FILE, LoadError, quote

_TRAINED = "_trained"
_DIGEST = "_checkpoint_digest"
_RECIPE = "_recipe"
_LOSSES = ("BCEWithLogitsLoss", "CrossEntropyLoss", "MSELoss")


def encode_weights(estimator, where, writer):
    """Write the weights of a fine-tuned estimator and its pretrained encoder.

    Return the rest of its state, and a node with `weights`, `pretrained` and `loss`,
    which is empty before `fit`.
    """
    state = estimator.__getstate__()
    if not hasattr(estimator, "net_"):
        return state, {}
    from safetensors.numpy import save_file

    tensors, digest = state.pop(_TRAINED), state.pop(_DIGEST)
    recipe = dict(state[_RECIPE])
    loss = recipe.pop("criterion").__name__
    recipe.pop("criterion_params", None)  # training builds its own
    state[_RECIPE] = recipe
    pretrained = _copy_pretrained(estimator, digest, where, writer)
    name, path = writer.new_file("weights", where, ".safetensors")
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, path)
    return state, {"weights": name, "pretrained": pretrained, "loss": loss}


def write_encoder(features, where, writer):
    """Copy the encoder that features start from; return its folder."""
    from .._encoders._pretrained import open_checkpoint
    from .._encoders._sentences import SentenceModules

    opened = open_checkpoint(features.model, features.revision)
    argument, files = _model_at(where), {}
    if features.pooling == "auto" or getattr(features, "prompt", None):
        files = SentenceModules(opened.source).files()
    if pickled := [name for name in files if name.endswith(".bin")]:
        raise ValueError(
            f"{argument} must hold no pickle to be bundled, got {opened.name!r} with "
            f"{pickled[0]!r}. Save it again with a newer sentence-transformers."
        )
    return _copy_once(opened, argument, writer, files)


def write_table(features, writer):
    """Write the table of a `StaticFeatures`; return its folder."""
    from .._encoders._pretrained import digest_file

    draft = writer.folder / "pretrained" / "draft"
    draft.parent.mkdir(exist_ok=True)
    features.save_model(draft)
    digests = [digest_file(path) for path in sorted(draft.iterdir())]
    key = hashlib.sha256(json.dumps(digests).encode()).hexdigest()
    name = f"pretrained/static-{key[:12]}"
    if (writer.folder / name).exists():  # of another step
        shutil.rmtree(draft)
    else:
        replace(draft, writer.folder / name)
    return name


def _copy_pretrained(estimator, digest, where, writer):
    """Copy the encoder from which training started; return its folder."""
    from .._encoders._pretrained import open_checkpoint

    recipe = estimator._recipe
    model, revision = recipe["module"]["model"], recipe["module"]["revision"]
    argument = _model_at(where)
    opened = open_checkpoint(model, revision)
    if opened.digest != digest:
        raise ValueError(
            f"{argument} must hold the weights that the estimator was trained from to "
            f"be saved; those in {model!r} have changed. Restore the original files, "
            "or train again."
        )
    # A loaded estimator has its encoder in a folder; others use the original name.
    names = [recipe.get("first_name", (model, revision))]
    if os.fspath(estimator.model) == model:
        names.append((model, estimator.revision))
    name = _copy_once(opened, argument, writer)
    listed = {(entry["model"], entry["revision"]) for entry in writer.models}
    for asked in dict.fromkeys(names):
        if asked not in listed:
            keys = ("model", "revision", "folder")
            writer.models.append(dict(zip(keys, (*asked, name), strict=True)))
    return name


def _model_at(where):
    return quote(f"{where}.model" if where else "model")


def _copy_once(opened, argument, writer, files=()):
    """Copy an encoder unless an equal one was copied; return its folder.

    Without `files`, one that was copied with files will do.
    """
    from .._encoders._pretrained import digest_file

    files = dict(files)
    contents = [[name, digest_file(path)] for name, path in sorted(files.items())]
    key = opened.digest, opened.tokenizer_digest, json.dumps(contents)
    equal = [each for each in writer.encoders if each[:2] == key[:2]]
    if not files and equal:
        return writer.encoders[equal[0]]
    if key not in writer.encoders:
        name = _write_pretrained(opened, argument, writer, files, key[2])
        writer.encoders[key] = name
    return writer.encoders[key]


def _write_pretrained(opened, argument, writer, files, contents):
    """Write encoder and tokenizer, check them, and return their folder."""
    from .._encoders._pretrained import Checkpoint

    # A new tokenizer: the opened checkpoint's may be set to truncate.
    source = Checkpoint(opened.name, opened.revision, local=opened.local)
    draft = writer.folder / "pretrained" / "draft"
    draft.mkdir(parents=True)
    _write_encoder(source, draft)
    source.tokenizer.save_pretrained(draft)
    for name, path in files.items():
        (draft / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(path, draft / name)
    copied = Checkpoint(os.fspath(draft), None, local=True)
    if (copied.tokenizer_digest, copied.max_positions) != (
        source.tokenizer_digest,
        source.max_positions,
    ):
        raise ValueError(
            f"{argument} has a tokenizer that changes when it is saved, that of "
            f"{source.name!r}. Save it with save_pretrained of a newer transformers, "
            "and train from that folder."
        )
    # Named by content: an overwritten folder keeps the names of unchanged encoders.
    name = f"pretrained/{copied.digest[:12]}-{copied.tokenizer_digest[:8]}"
    if files:
        name += f"-{hashlib.sha256(contents.encode()).hexdigest()[:8]}"
    replace(draft, writer.folder / name)
    return name


def _write_encoder(source, folder):
    """Write configuration and weights: the same files, but no pickle."""
    files = [Path(path) for path in source.source.weights()]
    if all(path.suffix in (".json", ".safetensors") for path in files):
        for path in files:
            shutil.copyfile(path, folder / path.name)
        return
    from transformers import AutoModel

    from .._encoders._pretrained import quiet

    model, _ = source.load(AutoModel)
    with quiet():
        model.save_pretrained(folder)


def restore(cls, params, state, node, where, reader):
    """Return a fine-tuned estimator, with its network if it was fitted."""
    params = find_model(params, reader)
    estimator = cls(**params)
    if "weights" not in node:
        vars(estimator).update(state)
        return estimator
    if node["loss"] not in _LOSSES:
        raise LoadError(
            f"{OBJECT_FILE!r} names the loss {node['loss']!r} at {quote(where)}, which "
            f"may not be loaded. Allowed are {', '.join(_LOSSES)}."
        )
    need_bert("a saved fine-tuned model", "skorch")
    from safetensors.numpy import load_file
    from torch import nn

    from .._encoders._pretrained import open_checkpoint
    from ..bert import copy_trained

    # Predictions use the copy, even if the original folder has changed.
    recipe = state[_RECIPE]
    module = recipe["module"]
    recipe.setdefault("first_name", (module["model"], module["revision"]))
    module |= {"model": reader.subfolder(node["pretrained"]), "revision": None}
    recipe["criterion"] = getattr(nn, node["loss"])
    path = reader.path(node["weights"])
    try:
        digest = open_checkpoint(module["model"]).digest
    except Exception as exc:  # each library has errors of its own
        raise LoadError(
            f"{node['pretrained']!r} must be a folder with a pretrained encoder, and "
            f"cannot be loaded ({type(exc).__name__}: {exc})."
        ) from exc
    try:
        tensors = load_file(path)
        estimator.__setstate__({**params, **state, _TRAINED: tensors, _DIGEST: digest})
    except Exception as exc:
        raise LoadError(
            f"{node['weights']!r} does not fit the network of {node['pretrained']!r} "
            f"({type(exc).__name__}: {exc}). Save again, or install the versions that "
            "wrote it."
        ) from exc
    expected = set(copy_trained(estimator.net_.module_))
    if other := sorted(expected ^ set(tensors)):
        raise LoadError(
            f"{node['weights']!r} must hold the weights that were trained; it lacks, "
            f"or has too many, such as {other[0]!r}. Save again."
        )
    return estimator


def find_model(params, reader, folder=None):
    """Return parameters with `model` and `revision` replaced if necessary.

    `folder` is a saved encoder to use in any case. By default, the copy is used only if
    the model itself is not on this machine.
    """
    model, revision = params["model"], params["revision"]
    replacement = reader.replacement(model)
    if replacement is None and folder is not None:
        replacement = reader.subfolder(folder)
    if replacement is not None:
        return {**params, "model": replacement, "revision": None}
    copied = reader.models.get((os.fspath(model), revision))
    if copied is not None and not _is_here(model, revision):
        return {**params, "model": copied}
    return params


def _is_here(model, revision):
    """Whether a model is on this machine, as a folder or in the cache of the hub."""
    if os.path.isdir(os.path.expanduser(model)):
        return True
    need_bert("a saved encoder")
    from transformers.utils import cached_file

    try:
        config_path = cached_file(
            os.fspath(model),
            "config.json",
            revision=revision,
            local_files_only=True,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
    except (OSError, ValueError):  # not a valid name of the hub
        return False
    return config_path is not None
