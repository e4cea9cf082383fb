"""BertRegressor: a pretrained encoder, fine-tuned to predict a number."""

import numpy as np
from scipy.stats import spearmanr
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._utils._labels import as_labels
from .._utils._sklearn import fit_context
from .._utils._texts import as_texts
from ._base import BertEstimator
from ._draws import draws_available


def spearman_score(y_true, y_pred):
    """Spearman's rank correlation as a score, for `make_scorer`.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)

    Returns
    -------
    rho : float
        In [-1, 1]; 0 where one of them is constant, which says nothing of the other.

    References
    ----------
    C. Spearman (1904). The proof and measurement of association between two things.
    American Journal of Psychology 15.

    Examples
    --------
    >>> from skactive.bert import spearman_score
    >>> round(spearman_score([1.0, 2.0, 3.0, 4.0], [0.1, 0.3, 0.2, 9.0]), 6)
    0.8
    """
    if np.ptp(y_true) == 0 or np.ptp(y_pred) == 0:
        return 0.0
    return float(spearmanr(y_true, y_pred).statistic)


class BertRegressor(RegressorMixin, BertEstimator):
    """Fine-tune a pretrained encoder to predict a number for a text or a pair.

    The mean squared error is that of targets scaled to mean 0 and variance 1, so that
    their unit does not matter; predictions are in the unit of `y`.

    Parameters
    ----------
    model : str or path-like, default="bert-base-uncased"
        Any encoder that `transformers.AutoModel` loads: a name on the hub, or a local
        folder with the model and its tokenizer. Code from the hub is never run.
    head : {"linear", "mlp", "cnn"} or class, default="linear"
        What stands on the encoder. "linear" is dropout and one linear layer, "mlp" has
        hidden layers, "cnn" convolutions over the tokens. A class of your own is a
        `torch.nn.Module` as `DenseHead` describes.
    head_params : dict or None, default=None
        Arguments for the head: `hidden_sizes` for "mlp"; `heights`, `n_maps` and
        `hidden_size` for "cnn".
    pooling : {"cls", "mean", "max", "last"}, default="cls"
        How the states of a text's tokens become one row: that of the first token,
        their mean, the largest value of each dimension, or that of the last token.
        "cls" is refused for decoders such as GPT-2, whose first token sees no other.
        The head "cnn" takes the states themselves.
    layers : int or sequence of int, default=-1
        Layers whose states the head takes; several are concatenated in the order
        given. 0 is the output of the embeddings, 1 the first layer, -1 the last.
        `(-4, -3, -2, -1)` are the last four.
    freeze : int or "all", default=0
        `F > 0` freezes the embeddings and the first `F` layers, `F < 0` the last `-F`
        layers, "all" the encoder, 0 nothing. The head always trains.
    dropout : float, default=0.1
        Rate in the head. The encoder keeps the rates of its configuration.
    mc_dropout : {"head", "gaussian", "full"} or None, default="head"
        Where dropout stays on in the draws: in the head, on one pass of the encoder,
        or in the whole network, one pass per draw. "gaussian", for the linear head,
        draws each text's output from the normal distribution with the exact mean and
        variance of "head". None: there are no draws.
    n_draws : int, default=50
        How many draws unless told otherwise.
    max_length : int, default=128
        Tokens after which a text is cut, the special ones included.
    max_epochs : int, default=3
        Passes over the training texts.
    batch_size : int, default=16
        Texts per step.
    lr : float, default=2e-5
        Learning rate of AdamW.
    head_lr : float or None, default=None
        That of the head; None is `lr`.
    weight_decay : float, default=0.0
        Decoupled decay; biases and normalisations have none.
    schedule : {"linear", "polynomial"} or None, default=None
        Learning rate over the steps. None is constant. "linear" and "polynomial"
        decrease it to 0.
    power : float, default=1.0
        Exponent of the polynomial schedule. 1 is linear.
    warmup : float, default=0.0
        Part of the steps in which the rate rises from 0.
    max_grad_norm : float or None, default=1.0
        Longer gradients are scaled down to this length.
    early_stopping : bool, str, callable or None, default=None
        Whether to hold out validation texts, score them after each epoch, stop when
        the score no longer improves and restore the weights of the best epoch. True
        scores by R². A str is the name of a scikit-learn scorer, such as
        "neg_mean_absolute_error". A callable is a scorer `scorer(estimator, X, y)`,
        such as `make_scorer(spearman_score)`.
    validation_fraction : float, default=0.1
        That part.
    n_iter_no_change : int, default=2
        Epochs in a row without a gain after which to stop.
    tol : float, default=1e-4
        A gain in score below this is none.
    warm_start : bool, default=False
        Whether `fit` goes on from the present weights. Otherwise each `fit` starts from
        the pretrained ones.
    cache_frozen : bool, default=True
        Whether what the frozen bottom gives for a text is computed once, in evaluation
        mode, and kept. False runs every layer in every step, with the dropout of the
        frozen layers on.
    layers_attr : str or None, default=None
        Path of the layers within an encoder whose structure does not tell, such as
        `"encoder.layer"`.
    device : str, default="auto"
        "auto" takes CUDA, else MPS, else the processor; or any name torch knows.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Of matrix products; weights are float32. "auto" is bfloat16 on a GPU that has
        it, float32 elsewhere: on a processor that has it "bfloat16" is about 1.3 times
        as fast.
    callbacks : sequence of skorch callbacks or None, default=None
        More callbacks for the training.
    net_params : dict or None, default=None
        More arguments for `skorch.NeuralNet`, over those set here.
    revision : str or None, default=None
        Branch, tag or commit of the model on the hub.
    random_state : int, RandomState instance or None, default=None
        Seeds the head, the order of the texts, dropout and the draws. The global
        generators are neither read nor moved.
    verbose : int, bool or "auto", default="auto"
        Whether a bar on stderr shows the batches and the loss. "auto" shows it on an
        interactive terminal and in a notebook if training takes more than 3 seconds.
        0 or False never shows it, 1 or True always does.

    Attributes
    ----------
    net_ : skorch.NeuralNet
        The trained net; `net_.module_` is the network.
    history_ : list of dict
        For each epoch `epoch`, `train_loss`, `seconds` and `seconds_total` (since the
        start), and with early stopping `valid_loss` and `valid_score`.
    layer_changes_ : dict of str to ndarray
        `layer`, `part`, and `mean` and `variance` of the absolute change of the
        layer's parameters in `fit`. Exactly 0 for frozen layers. `layer` is the name
        of the part in the network, where "0" is the first layer of the encoder.

    See Also
    --------
    BertClassifier : The same for classes.
    skactive.bert.spearman_score : Rank correlation, for `make_scorer`.

    References
    ----------
    J. Devlin, M.-W. Chang, K. Lee, K. Toutanova (2019). BERT: Pre-training of deep
    bidirectional transformers for language understanding. NAACL.

    Examples
    --------
    >>> from skactive.bert import BertRegressor, spearman_score
    >>> from sklearn.metrics import make_scorer
    >>> from sklearn.model_selection import GridSearchCV
    >>> search = GridSearchCV(
    ...     BertRegressor(), {"lr": [1e-5, 5e-5]}, scoring=make_scorer(spearman_score)
    ... )
    >>> search.estimator.pooling
    'cls'
    """

    _min_valid_texts = 2  # of one number, R² says nothing

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Train from the pretrained weights.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts in any usual container.
        y : array-like of shape (n,)
            Finite numbers.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights in the loss.

        Returns
        -------
        self : BertRegressor
        """
        go_on = self.warm_start and hasattr(self, "net_")
        return self._fit(X, y, sample_weight, go_on, self.max_epochs)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, sample_weight=None):
        """Train on for one epoch; the first call sets the scale of the targets.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,) or None, default=None

        Returns
        -------
        self : BertRegressor
        """
        return self._fit(X, y, sample_weight, hasattr(self, "net_"), 1)

    def _fit(self, X, y, sample_weight, go_on, n_epochs):
        import torch
        from torch import nn

        texts = as_texts(X)
        y = as_labels(y, len(texts))
        if y.ndim != 1 or y.dtype.kind not in "fiub":
            raise ValueError(
                f"'y' must hold one number per text, got shape {y.shape} of "
                f"{y.dtype}. Use BertClassifier for classes."
            )
        y = y.astype(np.float64)
        scale = self._scale if go_on else (y.mean(), y.std() or 1.0)
        return self._train(
            texts,
            torch.from_numpy((y - scale[0]) / scale[1]).float()[:, None],
            sample_weight,
            labels=y,
            fitted={"_scale": scale},
            n_outputs=1,
            criterion=nn.MSELoss,
            stratify=None,
            go_on=go_on,
            n_epochs=n_epochs,
        )

    def predict(self, X):
        """Predict a number per text.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)

        Returns
        -------
        y : ndarray of shape (n,)
        """
        check_is_fitted(self)
        mean, std = self._scale
        return self._outputs(X)[:, 0].astype(np.float64) * std + mean

    @available_if(draws_available)
    def sample_predictions(self, X, n_draws=None, random_state=None):
        """Draw predictions with Monte-Carlo dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
        n_draws : int or None, default=None
            How many; None is the parameter of that name.
        random_state : int, RandomState instance or None, default=None
            Seeds the draws; None is the parameter of that name.

        Returns
        -------
        draws : ndarray of shape (n, n_draws)
            Column t comes from one model, the same for every text; with
            `mc_dropout="gaussian"` from each text's own distribution.
        """
        check_is_fitted(self)
        mean, std = self._scale
        draws = self._draw_outputs(
            X, n_draws, random_state, lambda outputs: outputs.cpu().double()
        )
        return draws[:, :, 0] * std + mean

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
