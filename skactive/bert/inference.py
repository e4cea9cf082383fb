"""Use a trained network: outputs and representations."""

from __future__ import annotations

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skactive._texts import as_texts
from skactive._threads import in_torch_threads
from skactive.bert.fitting import explained_memory
from skactive.bert.hub import open_checkpoint

__all__ = ["InferenceMixin"]


class InferenceMixin(TransformerMixin):
    """How the fine-tuned estimators predict and represent."""

    def _map(self, X, function, *, with_graph=False):
        """Call a function of (network, inputs) on batches; rows in the order of X.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
        function : callable
        with_graph : bool, default=False
            Whether it starts from tokens and keeps what gradients need. Batches
            have no more tokens than a training step.
        """
        import torch

        check_is_fitted(self)
        texts = as_texts(X)
        network = self.net_.module_
        out = None

        @torch.no_grad()
        def rows_of(positions):
            rows = function(network, batches.take(positions))
            return positions, rows.float().cpu().numpy()

        with self._room():
            batches = self._batches(
                network, self._checkpoint(), texts, from_tokens=with_graph
            )
            if with_graph:
                step_tokens = self.batch_size * batches.max_length
                batches.batch_tokens = min(batches.batch_tokens, step_tokens)
            tasks = batches.by_length()
            for positions, rows in in_torch_threads(rows_of, tasks, batches.device):
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
