"""A trained network with all that it needs to read texts."""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._utils._texts import refuse_surrogates
from .._utils._threads import in_torch_threads
from ._pretrained import open_checkpoint

_BATCH_TOKENS = {"cpu": 1024, "cuda": 16384, "mps": 8192}


@dataclass(frozen=True)
class FittedText:
    """A network that reads texts: its outputs, features and posterior samples.

    `source` is the model and revision that the network was built from. The texts of
    all methods are lists of `str` or of pairs of them.
    """

    net: Any  # skorch.NeuralNet
    source: tuple
    max_length: int
    batch_size: int
    cache_frozen: bool

    @property
    def network(self):
        """The `TextNetwork`."""
        return self.net.module_

    def checkpoint(self):
        """Open the pretrained model that the network was built from."""
        return open_checkpoint(*self.source)

    def batches(self, texts, *, from_tokens=False):
        """Tokenize `texts` and look up the activations of their frozen layers.

        With `from_tokens` every layer runs, on padded batches.
        """
        from ._inputs import Batches

        checkpoint = self.checkpoint()
        device = next(self.network.parameters()).device.type
        try:
            return Batches(
                self.network,
                checkpoint,
                texts,
                int(min(self.max_length, checkpoint.max_positions or np.inf)),
                batch_tokens=_BATCH_TOKENS.get(device, _BATCH_TOKENS["cpu"]),
                use_cache=self.cache_frozen and not from_tokens,
                padded=from_tokens,
            )
        except (TypeError, UnicodeError):
            refuse_surrogates(texts)
            raise

    def map(self, texts, function, *, with_graph=False):
        """Return (n, ...) rows that `function(network, inputs)` gives for batches.

        With `with_graph` it starts from tokens and keeps what gradients need; batches
        have no more tokens than a training step.
        """
        import torch

        network, out = self.network, None

        @torch.no_grad()
        def rows_of(positions):
            rows = function(network, batches.take(positions))
            return positions, rows.float().cpu().numpy()

        with self.explained_memory():
            batches = self.batches(texts, from_tokens=with_graph)
            if with_graph:
                step_tokens = self.batch_size * batches.max_length
                batches.batch_tokens = min(batches.batch_tokens, step_tokens)
            tasks = batches.by_length()
            for positions, rows in in_torch_threads(rows_of, tasks, batches.device):
                if out is None:
                    out = np.empty((len(texts), *rows.shape[1:]), dtype=np.float32)
                out[positions] = rows
        return out

    def outputs(self, texts):
        """Return the (n, k) outputs."""
        return self.map(texts, lambda network, inputs: network(**inputs))

    def embed(self, texts):
        """Return the (n, d) inputs of the head's last linear layer."""
        return self.map(texts, lambda network, inputs: network.embed(**inputs))

    def summaries(self, texts):
        """Return the (n, m) inputs of the head's first linear layer."""
        from ._heads import DenseHead

        network = self.network
        as_kept = type(network.head).summarize is DenseHead.summarize
        if self.cache_frozen and as_kept and network.cut == network.depth:
            # Nothing runs if the features of all texts are in the cache.
            with self.explained_memory():
                batches = self.batches(texts)
            if isinstance(batches.activations, np.ndarray):
                return batches.activations[:, 0]
        return self.map(texts, lambda network, inputs: network.summarize(**inputs))

    def explained_memory(self):
        """Name the remedies where prediction does not fit into memory."""
        return explained_memory(
            f"'max_length' must leave room on {self.net.device!r}, got "
            f"{self.max_length} (%s). Pass a smaller one, free memory on the device, "
            "or train with device='cpu'."
        )


@contextmanager
def explained_memory(advice):
    """Raise `advice`, its `%s` replaced by torch's message, where memory runs out."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as exc:
        raise RuntimeError(advice % str(exc).rstrip(".")) from exc
