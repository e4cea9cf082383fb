"""Use a trained network: outputs and representations."""

from numbers import Integral

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._utils._texts import as_texts
from .._utils._threads import in_torch_threads
from ._draws import draws_available
from ._fitting import explained_memory
from ._pretrained import open_checkpoint


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


class ProbabilitiesMixin:
    """The methods of :class:`BertClassifier` that read its outputs."""

    def _probabilities(self, outputs):
        outputs = outputs.astype(np.float64)
        return expit(outputs) if self._multilabel else softmax(outputs, axis=-1)

    def predict(self, X):
        """Predict labels.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)

        Returns
        -------
        y : ndarray of shape (n,) or (n, k)
            Classes; an indicator matrix where `fit` got one.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            Where `X` holds something else than texts, with the positions.
        """
        outputs = self._outputs(X)
        if self._multilabel:
            return (outputs > 0).astype(int)
        return self.classes_[outputs.argmax(axis=1)]

    def predict_proba(self, X):
        """Predict probabilities, without dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)

        Returns
        -------
        proba : ndarray of shape (n, k)
            Columns as in `classes_`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            Where `X` holds something else than texts, with the positions.
        """
        return self._probabilities(self._outputs(X))

    @available_if(draws_available)
    def sample_proba(self, X, n_draws=None, random_state=None):
        """Draw probabilities with Monte-Carlo dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
        n_draws : int or None, default=None
            How many; None is the parameter of that name.
        random_state : int, RandomState instance or None, default=None
            Seeds the draws; None is the parameter of that name.

        Returns
        -------
        draws : ndarray of shape (n, n_draws, k)
            `draws[:, t]` comes from one model, the same for every text; with
            `mc_dropout="gaussian"` from each text's own distribution.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            Where `X` holds something else than texts, with the positions.
        """
        check_is_fitted(self)
        link = _sigmoid if self._multilabel else _softmax
        return self._draw_outputs(
            X, n_draws, random_state, link, relative=not self._multilabel
        )

    def gradient_factors(self, X):
        """Factors of the gradient of the log loss at the predicted label.

        The gradient with respect to the weights of the last linear layer is, for
        text i, the outer product of rows i of both.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)

        Returns
        -------
        residuals : ndarray of shape (n, k)
            Probabilities less the indicator of the predicted class.
        inputs : ndarray of shape (n, d)
            What the layer takes: `transform(X)`, without a constant column. The
            gradient with respect to the layer's biases is the row of `residuals`.
        """
        self._check_single_label("gradient_factors")
        residuals = self.predict_proba(X)
        residuals[np.arange(len(residuals)), residuals.argmax(axis=1)] -= 1.0
        return residuals, self.transform(X)

    def embedding_gradients(self, X):
        """Largest expected gradient of a word's embedding.

        For each text, the maximum over its words of the length of the gradient of
        the log loss with respect to the word's embedding, in expectation over the
        label by the predicted probabilities. Without dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)

        Returns
        -------
        change : ndarray of shape (n,)
            0 for a text without words.

        Raises
        ------
        TypeError
            If the model was trained on several labels per text, and for an encoder
            that does not look the embeddings of tokens up.

        Notes
        -----
        A word is an entry of the tokenizer's vocabulary. Special tokens are none. One
        that occurs several times in a text has one embedding, whose gradient is the
        sum over its places. Costs one pass and k backward passes through the whole
        network, one for two classes, whatever is frozen.

        References
        ----------
        Y. Zhang, M. Lease, B. C. Wallace (2017). Active discriminative text
        representation learning. AAAI.
        """
        from ._geometry import expected_word_change

        self._check_single_label("embedding_gradients")
        special_ids = self._checkpoint().special_ids
        return self._map(
            X,
            lambda network, inputs: expected_word_change(network, inputs, special_ids),
            with_graph=True,
        ).astype(np.float64)

    def boundary_distance(self, X, max_iter=50):
        """How far what the head takes has to move for another prediction.

        The space is that of the head's input: the pooled states of the encoder; for
        "cnn" its pooled maps. For the linear head, where that is `transform(X)`, the
        distance is exact. Elsewhere it is the length of a short way to the boundary
        that DeepFool finds.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
        max_iter : int, default=50
            Most steps of DeepFool.

        Returns
        -------
        distance : ndarray of shape (n,)
            Euclidean. Infinite where no change of the label was found.

        Raises
        ------
        TypeError
            If the model was trained on several labels per text.

        Notes
        -----
        Steps go 2 % beyond the boundary of the linearised head, as in the paper, until
        another class has caught up; the way is then cut back to where that happens.
        Where the head is not linear, the distance is an upper bound on the least one.
        A head of one's own that takes tokens is moved in the states of all tokens.

        References
        ----------
        S.-M. Moosavi-Dezfooli, A. Fawzi, P. Frossard (2016). DeepFool: a simple and
        accurate method to fool deep neural networks. CVPR.

        M. Ducoffe, F. Precioso (2018). Adversarial active learning for deep networks:
        a margin based approach. arXiv:1802.09841.
        """
        from ._geometry import distance_to_boundary

        self._check_single_label("boundary_distance")
        if not isinstance(max_iter, Integral) or max_iter < 1:
            raise ValueError(
                f"'max_iter' must be an int of at least 1, got {max_iter!r}."
            )
        return self._map(
            X,
            lambda network, inputs: distance_to_boundary(network, inputs, max_iter),
        ).astype(np.float64)

    def _check_single_label(self, method):
        check_is_fitted(self)
        if self._multilabel:
            raise TypeError(
                f"{method} needs a model of one label per text, got one of several. "
                "Train it on labels, not on an indicator matrix."
            )


def _softmax(outputs):
    """Softmax over the last axis of a tensor; the sums are 1 in float64."""
    # Over the last but one in memory, as over a short last one it is slow.
    by_class = outputs.transpose(-1, -2)
    proba = by_class.softmax(dim=-2).cpu().double()
    proba /= proba.sum(dim=-2, keepdim=True)
    return proba.transpose(-1, -2)


def _sigmoid(outputs):
    return outputs.cpu().double().sigmoid()
