"""A pretrained encoder: its tokenizer, configuration and weights, or what is wrong."""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from collections import OrderedDict
from functools import cached_property

import numpy as np

from skactive._random import fork_torch, generator_lock
from skactive.bert.files import ModelFiles, digest_file, quiet
from skactive.bert.module import forward

__all__ = ["Checkpoint"]

_KEPT = 2
# These count positions from the padding index, so the first rows of their table of
# position embeddings belong to no token. MPNet takes 1 whatever its configuration says.
_POSITIONS_AFTER_PADDING = frozenset(
    {
        *("camembert", "data2vec-text", "esm", "ibert", "longformer", "luke", "mpnet"),
        *("roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"),
    }
)

_lock = threading.RLock()
_modules = OrderedDict()  # (digest, device, dtype, masked_lm) -> torch.nn.Module


class Checkpoint:
    """A pretrained encoder: tokenizer and configuration now, weights when needed.

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
    config : transformers.PretrainedConfig
    tokenizer : transformers tokenizer
        Guard its use with `tokenizer_lock`: truncation is a state of the tokenizer.
    width, depth : int
        Number of features and of layers.
    max_positions : int or None
        Longest sequence in tokens, None where the architecture has no limit.
    tokenizer_digest : str
        SHA-256 of the tokenizer's content.
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
            self.width = self.config.hidden_size
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

    def files(self):
        """List the configuration and the files that `from_pretrained` reads."""
        return self.source.weights()

    @cached_property
    def digest(self):
        """SHA-256 over the configuration and the content of the weights' files."""
        total = hashlib.sha256()
        for path in self.files():
            total.update(digest_file(path).encode())
        return total.hexdigest()

    @cached_property
    def special_ids(self):
        """Ids of the tokens that stand for no word; that of unknown words is none."""
        names = ("bos", "eos", "cls", "sep", "pad", "mask")
        ids = (getattr(self.tokenizer, f"{name}_token_id") for name in names)
        return frozenset(i for i in ids if i is not None)

    @property
    def pad_id(self):
        """Id to fill a batch with, which no text attends to."""
        pad_id = self.tokenizer.pad_token_id or 0
        # A token that was added for padding alone may have no embedding.
        return pad_id if pad_id < getattr(self.config, "vocab_size", np.inf) else 0

    def module(self, device, dtype, *, masked_lm=False):
        """Load the encoder, or take it from the few kept in this process.

        Parameters
        ----------
        device : torch.device
        dtype : torch.dtype
        masked_lm : bool, default=False
            Whether with the head of a masked language model.

        Returns
        -------
        module : torch.nn.Module
            In evaluation mode, shared: callers must not change it.
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
        """Raise an error where the first token is pooled but sees none of the others.

        The state of the first token of a decoder, such as GPT-2, depends on that token
        alone, so all texts that begin with the same token get the same row.

        Parameters
        ----------
        module : torch.nn.Module
            The encoder, in evaluation mode.
        pooling : str or tuple of str
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
        """Tell whether other tokens leave the first token's state exactly as it is."""
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
        """Load the weights into an auto class of transformers; give its report, too."""
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
            for name, found, expected in sorted(report["mismatched_keys"]):
                raise ValueError(
                    f"{name!r} has the shape {tuple(found)}, whereas config.json asks "
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

        known = type(self.config) in MODEL_FOR_MASKED_LM_MAPPING
        if not known or self.config.is_encoder_decoder:
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
    """Change the type of an encoder's weights, where possible not of LayerNorm's.

    Those are few and scale all states: in bfloat16 they made up half of the error.
    """
    from torch.nn import LayerNorm

    from skactive.bert.packed import PackedEncoder

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
