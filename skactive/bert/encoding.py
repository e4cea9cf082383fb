"""One call of `BertFeatures.transform`: tokens, batches, the encoder's answers."""

from __future__ import annotations

import numpy as np

from skactive._progress import progress_bar
from skactive._threads import in_torch_threads
from skactive.bert.batches import collate, cut, cut_parts, tokenize
from skactive.bert.hub import open_checkpoint
from skactive.bert.module import (
    choose_device,
    choose_layers,
    choose_precision,
    encode,
)
from skactive.bert.packing import pack
from skactive.bert.sentences import SentenceModules
from skactive.bert.workers import count_workers, encode_in_workers

__all__ = ["EncodingRun"]

_MOST_TOKENS = 2**31
_BATCH_TOKENS = {"cpu": 2048, "cuda": 16384, "mps": 8192}


class EncodingRun:
    """One call of `transform`: the parameters, resolved for this machine and model.

    Parameters
    ----------
    estimator : BertFeatures
        Only read.

    Attributes
    ----------
    width : int
        Features of a text.
    n_encoded, n_truncated : int
        Texts encoded so far in this call, and those of them that were cut.
    """

    def __init__(self, estimator):
        self.estimator = estimator
        self.checkpoint = open_checkpoint(estimator.model, estimator.revision)
        self.device = choose_device(estimator.device)
        self.dtype = choose_precision(estimator.precision, self.device)
        self.layers = choose_layers(estimator.layers, self.checkpoint.depth)
        self.width = len(self.layers) * self.checkpoint.width
        self.pooling, self.modules = estimator.pooling, None
        self.normalize = bool(estimator.normalize)
        self.limit = self.checkpoint.max_positions or np.inf
        if self.pooling == "auto":
            self._follow_modules()
        self.max_length = int(min(estimator.max_length, self.limit))
        self.batch_tokens = (
            _BATCH_TOKENS.get(self.device.type, _BATCH_TOKENS["cpu"])
            if estimator.batch_tokens == "auto"
            else min(estimator.batch_tokens, _MOST_TOKENS)
        )
        self.revision = estimator.revision
        self.verbose = estimator.verbose
        self.n_encoded = self.n_truncated = 0

    def _follow_modules(self):
        """Resolve `pooling="auto"`: the modules of the model, or else the mean."""
        modules = SentenceModules(self.checkpoint.source)
        if not modules.exist:
            self.pooling = "mean"
            return
        modules.check()
        if self.layers != (self.checkpoint.depth,):
            raise ValueError(
                "'layers' must be -1 with pooling='auto' for a sentence-transformers "
                f"model, which uses the last layer, got {self.estimator.layers!r}. "
                "Pass layers=-1 or another 'pooling'."
            )
        self.modules = modules
        self.pooling = modules.poolings
        self.width = modules.width(self.checkpoint.width)
        self.limit = min(self.limit, modules.max_length)

    @property
    def digests(self):
        """Tell the weights and the tokenizer from all others."""
        digests = [self.checkpoint.digest, self.checkpoint.tokenizer_digest]
        return digests if self.modules is None else [*digests, self.modules.recipe()]

    def recipe(self):
        """List what the features depend on besides the text."""
        recipe = {
            "weights": self.checkpoint.digest,
            "revision": self.revision,
            "tokenizer": self.checkpoint.tokenizer_digest,
            "pooling": self.pooling,
            "layers": list(self.layers),
            "max_length": self.max_length,
            "normalize": self.normalize,
            "precision": str(self.dtype).removeprefix("torch."),
        }
        return recipe if self.modules is None else recipe | self.modules.recipe()

    def encode(self, texts, out):
        """Fill `out`, here or in workers, yielding the positions that are done."""
        parts = cut_parts(texts, self.max_length, self.batch_tokens)
        n_jobs = self.estimator.n_jobs
        if len(parts) > 1 and self.device.type == "cpu" and count_workers(n_jobs) > 1:
            yield from encode_in_workers(self, texts, parts, out)
        else:
            yield from self.encode_here(texts, parts, out)

    def encode_here(self, texts, parts, out):
        """Fill `out` part by part, yielding the positions of each batch."""
        from skactive.bert.packed import PackedEncoder

        module = self.checkpoint.module(self.device, self.dtype)
        pad_id = self.checkpoint.pad_id
        self.checkpoint.refuse_blind_token(module, self.pooling)
        prepare = finish = None
        if self.modules is not None:
            prepare, finish = self.modules.prepare, self.modules.build(self.device)
        packs = self.device.type == "cpu" and PackedEncoder.supports(module)

        def batches():
            for chunk in parts:
                part = [texts[i] for i in chunk]
                if prepare is not None:
                    part = list(map(prepare, part))
                tokens = tokenize(self.checkpoint, part, self.max_length)
                self.n_truncated += tokens.n_truncated
                lengths = np.array([len(ids) for ids in tokens.ids])
                if not lengths.all():  # no token at all, not even a special one
                    yield tokens, None, chunk[lengths == 0]
                for batch in cut(lengths, self.batch_tokens):
                    yield tokens, batch, chunk[batch]

        def fill(task):
            tokens, batch, positions = task
            if batch is None:
                out[positions] = 0.0
                return positions
            features = encode(
                module,
                pack(tokens, batch, self.device)
                if packs
                else collate(tokens, batch, pad_id, self.device),
                layers=self.layers,
                pooling=self.pooling,
                normalize=self.normalize,
                finish=finish,
            )
            out[positions] = features.cpu().numpy()
            return positions

        with self.progress(len(texts)) as progress:
            for positions in in_torch_threads(fill, batches(), self.device):
                self.n_encoded += len(positions)
                progress.update(len(positions))
                yield positions

    def progress(self, total):
        """Show the texts encoded, as `verbose` says."""
        return progress_bar(self.verbose, total=total, desc="BertFeatures", unit="text")
