"""Use a trained network: outputs, representations and Monte-Carlo draws."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skactive._random import base_seed, fork_torch, round_seed
from skactive._texts import as_texts
from skactive.bert.fitting import explained_memory
from skactive.bert.hub import open_checkpoint

__all__ = ["InferenceMixin"]

_DRAW_ELEMENTS = 2**24  # numbers of one chunk of draws


class InferenceMixin(TransformerMixin):
    """How the fine-tuned estimators predict, represent and draw."""

    def _map(self, X, function, *, with_graph=False):
        """Call a function of (network, inputs) on batches; rows in the order of X.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
        function : callable
        with_graph : bool, default=False
            Whether it starts from tokens and keeps what gradients need. Batches
            have no more tokens than a step of training, which did so, too.
        """
        import torch

        check_is_fitted(self)
        texts = as_texts(X)
        network = self.net_.module_
        out = None
        with torch.no_grad(), self._room():
            batches = self._batches(
                network, self._checkpoint(), texts, from_tokens=with_graph
            )
            if with_graph:
                step_tokens = self.batch_size * batches.max_length
                batches.batch_tokens = min(batches.batch_tokens, step_tokens)
            for positions in batches.by_length():
                rows = function(network, batches.take(positions)).float().cpu().numpy()
                if out is None:
                    out = np.empty((len(texts), *rows.shape[1:]), dtype=np.float32)
                out[positions] = rows
        return out

    def _checkpoint(self):
        """Open the checkpoint that the network was trained from."""
        built = self._recipe["module"]
        return open_checkpoint(built["model"], built["revision"])

    def _room(self):
        """Say what to do where prediction does not fit into memory."""
        return explained_memory(
            f"'max_length' must leave room on {self.net_.device!r}, got "
            f"{self.max_length} (%s). Pass a smaller one, free memory on the device, "
            "or train with device='cpu'."
        )

    def _outputs(self, X):
        return self._map(X, lambda network, inputs: network(**inputs))

    def transform(self, X):
        """Represent texts by what the head's last linear layer takes.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)

        Returns
        -------
        features : ndarray of shape (n, d), float32

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            Where `X` holds something else than texts, with the positions.
        """
        return self._map(X, lambda network, inputs: network.embed(**inputs))

    @property
    def _n_features_out(self):
        check_is_fitted(self)
        return self.net_.module_.last_linear.in_features

    def _draw_outputs(self, X, n_draws, random_state):
        """Draw outputs (n, t, k) with Monte-Carlo dropout."""
        n_draws = self.n_draws if n_draws is None else n_draws
        if not isinstance(n_draws, Integral) or n_draws < 1:
            raise ValueError(
                f"'n_draws' must be an int of at least 1, got {n_draws!r}."
            )
        check_is_fitted(self)
        if random_state is None:
            random_state = self.random_state
        seed = round_seed(base_seed(random_state), 0, "draws")
        head = self.net_.module_.head
        if self.mc_dropout == "head" and getattr(head, "draws_at_once", False):
            return self._draw_from_head(X, int(n_draws), seed)
        return self._draw_passes(X, int(n_draws), seed)

    def _draw_from_head(self, X, n_draws, seed):
        import torch

        network = self.net_.module_
        summaries = self._map(X, lambda network, inputs: network.summarize(**inputs))
        masks = network.head.draw_masks(n_draws, torch.Generator().manual_seed(seed))
        device = next(network.parameters()).device
        width = max(len(mask) * mask.shape[1] for mask in masks)
        n_rows = max(1, _DRAW_ELEMENTS // width)
        with torch.no_grad(), self._room():
            chunks = [
                network.head.draw(
                    torch.from_numpy(summaries[start : start + n_rows]).to(device),
                    masks,
                ).cpu()
                for start in range(0, len(summaries), n_rows)
            ]
        return torch.cat(chunks).numpy()

    def _draw_passes(self, X, n_draws, seed):
        """Run the network, or a head that cannot draw by itself, once per draw."""
        import torch

        from skactive.bert.dropout import SharedMasks, dropout_on

        texts = as_texts(X)
        network = self.net_.module_
        full = self.mc_dropout == "full"
        draws = [SharedMasks(round_seed(seed, t, "draw")) for t in range(n_draws)]
        out = None
        with fork_torch(seed), torch.no_grad(), self._room():
            # Below the cut there is dropout too: a whole draw starts from tokens.
            batches = self._batches(
                network, self._checkpoint(), texts, from_tokens=full
            )
            passes = _whole_passes if full else _head_passes
            for positions, t, states in passes(network, batches, draws):
                with dropout_on(network.head), draws[t] as masks:
                    masks.begin("head", len(positions))
                    rows = network.decode(*states).cpu().numpy()
                if out is None:
                    shape = (len(texts), n_draws, rows.shape[1])
                    out = np.empty(shape, dtype=np.float32)
                out[positions, t] = rows
        return out


def _whole_passes(network, batches, draws):
    """Run the encoder under each draw; its masks are forgotten after each."""
    from skactive.bert.dropout import dropout_on

    for t, masks in enumerate(draws):
        for positions in batches.by_length():
            inputs = batches.take(positions)
            with dropout_on(network), masks:
                masks.begin("encoder", len(positions))
                states = network.represent(**inputs)
            yield positions, t, states
        masks.forget()


def _head_passes(network, batches, draws):
    """Run the encoder once, for all draws."""
    for positions in batches.by_length():
        states = network.represent(**batches.take(positions))
        for t in range(len(draws)):
            yield positions, t, states
