"""Texts as batches for training and prediction, with or without a cached bottom."""

import warnings

import numpy as np
import torch

from .._utils._threads import in_torch_threads
from ._cache._activations import NotCacheableError, open_activation_store
from ._cache._memory import in_use
from ._tokens import collate, cut, pack, tokenize


class Batches:
    """Tokenized texts as batches for a network, packed if the network takes those.

    The cut of `network` decides what is cached. `batch_tokens` limits a batch in
    prediction and below the cut. `use_cache` keeps the activations of the frozen
    layers and starts there; if they cannot be kept, every layer runs each time, with
    the same result. `padded` pads batches even if the network takes packed ones.
    """

    def __init__(
        self,
        network,
        checkpoint,
        texts,
        max_length,
        *,
        batch_tokens,
        use_cache,
        padded=False,
    ):
        self.pad_id = checkpoint.pad_id
        self.device = next(network.parameters()).device
        self.max_length, self.batch_tokens = max_length, batch_tokens
        self.packed = network.takes_packed and not padded
        self.tokens = self.activations = None
        self.n_truncated = 0
        if use_cache and network.cut:
            try:
                with in_use():
                    self.activations = self._look_up(network, checkpoint, texts)
                if isinstance(self.activations, np.ndarray):
                    self.lengths = np.ones(len(texts), dtype=np.int64)
                else:
                    self.lengths = np.array([len(rows) for rows in self.activations])
            except NotCacheableError as exc:
                warnings.warn(
                    f"'cache_frozen' has no effect here: {exc}. All layers run each "
                    "time, with the same result.",
                    UserWarning,
                    stacklevel=2,
                )
        # Above the cut of packed texts their lengths are all there is to know.
        if self.activations is None or (
            network.cut < network.depth and not self.packed
        ):
            tokens = tokenize(checkpoint, texts, max_length)
            self.n_truncated = tokens.n_truncated
            self.tokens = _at_least_one(tokens, self.pad_id)
            self.lengths = np.array([len(ids) for ids in self.tokens.ids])
        else:  # only a text that fills its room can have been cut
            full = np.flatnonzero(self.lengths >= max_length)
            if len(full):
                full = [texts[i] for i in full]
                self.n_truncated = tokenize(checkpoint, full, max_length).n_truncated

    def __len__(self):
        return len(self.lengths)

    def take(self, positions):
        """Return one batch, as :meth:`TextNetwork.forward` takes it."""
        if self.packed:
            return self._take_packed(positions)
        inputs = {}
        if self.tokens is not None:
            inputs = collate(self.tokens, positions, self.pad_id, self.device)
        if self.activations is not None:
            rows, lengths = self._join_rows(positions), self.lengths[positions]
            shape = (len(lengths), lengths.max(), rows.shape[1])  # (b, t, d)
            padded = np.zeros(shape, dtype=np.float32)
            real = np.arange(shape[1]) < lengths[:, None]  # (b, t)
            padded[real] = rows
            inputs["activations"] = torch.from_numpy(padded).to(self.device)
            if self.tokens is None and not real.all():
                mask = torch.from_numpy(real.astype(np.int64))
                inputs["attention_mask"] = mask.to(self.device)
        return inputs

    def _take_packed(self, positions):
        if self.activations is None:
            return pack(self.tokens, positions, self.device)
        rows = self._join_rows(positions)
        lengths = torch.from_numpy(self.lengths[positions])
        return {"activations": torch.from_numpy(rows), "lengths": lengths}

    def _join_rows(self, positions):
        """Return the kept rows of some texts: (sum of their lengths, d)."""
        if isinstance(self.activations, np.ndarray):
            return self.activations[positions, 0]
        return np.concatenate([self.activations[i] for i in positions])

    def by_length(self):
        """Yield the positions of batches of similar length, for prediction."""
        return cut(self.lengths, self.batch_tokens)

    def _look_up(self, network, checkpoint, texts):
        """Return the rows of each text, computing those that are missing."""
        pooled = network.cut == network.depth and not network.uses_tokens
        store = open_activation_store(
            (
                network.checkpoint_digest,
                checkpoint.tokenizer_digest,
                network.cut,
                network.pooling if pooled else None,
                network.layers if network.cut == network.depth else tuple(network.kept),
                self.max_length,
                network.bfloat16,
                network.stack.path,
            )
        )
        missing = store.missing(texts)
        if missing:
            batches = Batches(
                network,
                checkpoint,
                missing,
                self.max_length,
                batch_tokens=self.batch_tokens,
                use_cache=False,
                padded=not self.packed,
            )
            self.n_truncated = batches.n_truncated
            n_rows = np.ones(len(missing), int) if pooled else batches.lengths

            def run(positions):
                states = network.below_cut(batches.take(positions)).cpu().numpy()
                if batches.packed:
                    states = np.split(states, n_rows[positions].cumsum()[:-1])
                return positions, states

            def fill(views):
                tasks = batches.by_length()
                with network.evaluated():
                    done = in_torch_threads(run, tasks, batches.device)
                    for positions, states in done:
                        for i, rows in zip(positions, states, strict=True):
                            views[i][:] = rows[: n_rows[i]]

            store.add(missing, n_rows, network.activations_width, fill)
        return store.get_single(texts)[:, None] if pooled else store.get(texts)


def _at_least_one(tokens, pad_id):
    """Add a padding token to texts without any token, not even a special one."""
    types = tokens.types
    return tokens._replace(
        ids=[ids or [pad_id] for ids in tokens.ids],
        types=None if types is None else [row or [0] for row in types],
    )
