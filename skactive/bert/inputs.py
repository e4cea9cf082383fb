"""Texts as batches for training and prediction, with or without a cached bottom."""

from __future__ import annotations

import numpy as np
import torch

from skactive.bert.batches import collate, cut, tokenize
from skactive.bert.memory import in_use
from skactive.bert.prefix import open_prefix_store

__all__ = ["Batches"]


class Batches:
    """Tokenised texts that become padded batches for a network.

    Parameters
    ----------
    network : TextNetwork
        Whose cut decides what is cached.
    checkpoint : Checkpoint
        Whose tokenizer to use.
    texts : list of str or of (str, str)
    max_length : int
        In tokens.
    batch_tokens : int
        Most tokens of a batch in prediction and below the cut.
    use_prefix : bool
        Whether to keep what the frozen bottom gives, and begin there.
    """

    def __init__(
        self, network, checkpoint, texts, max_length, *, batch_tokens, use_prefix
    ):
        self.pad_id = checkpoint.tokenizer.pad_token_id or 0
        self.tokens = _at_least_one(
            tokenize(checkpoint, texts, max_length), self.pad_id
        )
        self.lengths = np.array([len(ids) for ids in self.tokens.ids])
        self.device = next(network.parameters()).device
        self.max_length, self.batch_tokens = max_length, batch_tokens
        self.prefix = None
        if use_prefix and network.cut:
            with in_use():
                self.prefix = self._prefix(network, checkpoint, texts, max_length)

    def __len__(self):
        return len(self.lengths)

    def take(self, positions):
        """Make one batch.

        Parameters
        ----------
        positions : ndarray of int of shape (b,)

        Returns
        -------
        inputs : dict of str to torch.Tensor
            What :meth:`TextNetwork.forward` takes.
        """
        inputs = collate(self.tokens, positions, self.pad_id, self.device)
        if self.prefix is not None:
            rows = [self.prefix[i] for i in positions]
            longest = max(map(len, rows))
            padded = np.zeros((len(rows), longest, rows[0].shape[1]), dtype=np.float32)
            for row, values in zip(padded, rows, strict=True):
                row[: len(values)] = values
            inputs["prefix"] = torch.from_numpy(padded).to(self.device)
        return inputs

    def by_length(self):
        """Yield the positions of batches of like length, for prediction."""
        return cut(self.lengths, self.batch_tokens)

    def _prefix(self, network, checkpoint, texts, max_length):
        """Look up the rows of each text, computing those that are missing."""
        pooled = network.cut == network.depth and not network.uses_tokens
        store = open_prefix_store(
            (
                network.checkpoint_digest,
                checkpoint.tokenizer_digest,
                network.cut,
                network.pooling if pooled else None,
                max_length,
                network.bfloat16,
                network.stack.path,
            )
        )
        missing = store.missing(texts)
        if missing:
            position = {text: i for i, text in enumerate(texts)}
            where = np.array([position[text] for text in missing])
            lengths = np.ones_like(where) if pooled else self.lengths[where]

            def fill(views):
                for batch in cut(self.lengths[where], self.batch_tokens):
                    inputs = collate(
                        self.tokens, where[batch], self.pad_id, self.device
                    )
                    states = network.below_cut(inputs).cpu().numpy()
                    for i, state in zip(batch, states, strict=True):
                        views[i][:] = state[: lengths[i]]

            store.add(missing, lengths, checkpoint.width, fill)
        return store.get(texts)


def _at_least_one(tokens, pad_id):
    """Give texts without any token, not even a special one, a token to stand on."""
    types = tokens.types
    return tokens._replace(
        ids=[ids or [pad_id] for ids in tokens.ids],
        types=None if types is None else [row or [0] for row in types],
    )
