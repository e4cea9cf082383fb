"""What BertClassifier and BertRegressor share: parameters, representation, copies."""

import os
import re
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer_names
from sklearn.utils.validation import check_is_fitted

from .._encoders._module import choose_device
from .._encoders._options import MCDropout, Pooling, Precision, Schedule
from .._encoders._pretrained import open_checkpoint
from .._utils._bases import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from .._utils._containers import as_texts
from .._utils._repeatable import base_seed, fork_torch
from .._utils._sklearn import (
    MOST,
    POSITIVE,
    POSITIVE_COUNT,
    POSITIVE_INT,
    Interval,
    StrOptions,
    check_count,
    tag_text_transformer,
)
from ._fitting import make_net, read_with, train


class BertEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of :class:`BertClassifier` and :class:`BertRegressor`.

    Parameters
    ----------
    model : str or path-like, default="sentence-transformers/all-MiniLM-L6-v2"
        Any encoder that `transformers.AutoModel` loads: a name on the hub, or a local
        folder with the model and its tokenizer. Code from the hub is never run.
    head : {"linear", "mlp", "cnn"} or class, default="linear"
        Network on top of the encoder. "linear" is dropout and one linear layer, "mlp"
        has hidden layers, "cnn" convolutions over the tokens. A class is a subclass of
        `torch.nn.Module`, as :class:`skactive.bert.DenseHead` describes.
    head_params : dict or None, default=None
        Arguments for the head: `hidden_sizes` for "mlp"; `heights`, `n_maps` and
        `hidden_size` for "cnn".
    pooling : {"mean", "cls", "max", "last"}, default="mean"
        How the states of a text's tokens become one row: the mean, the state of the
        first token, the maximum of each dimension, or the state of the last token.
        "cls" is refused for decoders such as GPT-2, whose first token sees no other.
        The head "cnn" uses the states themselves.
    layers : int or sequence of int, default=-1
        Layers whose states the head uses; several are concatenated in the order
        given. 0 is the output of the embeddings, 1 the first layer, -1 the last.
        `(-4, -3, -2, -1)` are the last four.
    freeze : int or "all", default=0
        `F > 0` freezes the embeddings and the first `F` layers, `F < 0` the last `-F`
        layers, "all" the encoder, 0 nothing. The head is always trained.
    dropout : float, default=0.1
        Dropout rate of the head. The encoder keeps the rates of its configuration.
    mc_dropout : {"head", "gaussian", "full"} or None, default="head"
        Where dropout stays on in posterior samples: in the head, with one pass of the
        encoder, or in the whole network, with one pass per draw. "gaussian", for the
        linear head, draws each text's outputs from the normal distribution with the
        exact moments of "head": scores of single texts hardly depend on the seed,
        even with few draws. None disables the draws.
    n_draws : int, default=50
        Default number of draws, at most 1,000,000.
    max_length : int, default=128
        Maximum number of tokens of a text, special tokens included. Longer texts are
        truncated.
    max_epochs : int or "auto", default="auto"
        Passes over the training texts. "auto" is 3, or as many as it takes for 100
        optimizer steps and for 4 steps per class: with few labels, three passes are
        too few steps.
    batch_size : int, default=8
        Texts per optimizer step.
    lr : float or "auto", default="auto"
        Learning rate of AdamW. "auto" is 1e-4 * 384 / width of the encoder: 1e-4 for
        MiniLM, 5e-5 for BERT-base and 3.75e-5 for BERT-large. See Notes.
    head_lr : float or None, default=1e-3
        Learning rate of the head. None uses `lr`.
    weight_decay : float, default=0.0
        Decoupled weight decay. Biases and normalization layers have none.
    schedule : {"linear", "polynomial"} or None, default="linear"
        Learning rate over the steps. "linear" and "polynomial" decrease it to 0. None
        keeps it constant.
    power : float, default=1.0
        Exponent of the polynomial schedule. 1 is linear.
    warmup : float, default=0.1
        Fraction of the steps in which the learning rate rises from 0.
    max_grad_norm : float or None, default=1.0
        Gradients with a larger norm are scaled down to it.
    early_stopping : bool, str, callable or None, default=None
        Whether to hold out validation texts, score them after each epoch, stop when
        the score no longer improves and restore the weights of the best epoch. True
        uses the `score` method: accuracy, or R² for numbers. A str is the name of a
        scikit-learn scorer, such as "f1_macro", "neg_log_loss" or
        "neg_mean_absolute_error". A callable is a scorer `scorer(estimator, X, y)`,
        for example from :func:`sklearn.metrics.make_scorer`.
    validation_fraction : float, default=0.1
        Fraction of the texts held out for early stopping.
    n_iter_no_change : int, default=2
        Number of successive epochs without an improvement after which training stops.
        With `max_epochs="auto"` it counts thirds of the training.
    tol : float, default=1e-4
        Smallest increase of the score that counts as an improvement.
    warm_start : bool, default=False
        Whether `fit` continues from the present weights. Otherwise each `fit` starts
        from the pretrained ones.
    cache_frozen : bool, default=True
        Whether the activations of the frozen layers are computed once per text, in
        evaluation mode, and kept. False runs every layer in every step, with the
        dropout of the frozen layers on.
    layers_attr : str or None, default=None
        Path of the layers within an encoder whose structure is not recognized, such as
        `"encoder.layer"`.
    device : str, default="auto"
        "auto" selects CUDA, else MPS, else the processor. Any device of torch is valid.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Precision of matrix products; weights are float32. "auto" is bfloat16 on a GPU
        that supports it and float32 elsewhere. On a processor that supports it,
        "bfloat16" is about 1.3 times as fast.
    callbacks : sequence of skorch callbacks or None, default=None
        Additional callbacks for the training.
    net_params : dict or None, default=None
        Additional arguments for `skorch.NeuralNet`, which override those set here.
    revision : str or None, default=None
        Branch, tag or commit of the model on the hub.
    random_state : int, RandomState instance or None, default=None
        Seed of the head, the order of the texts, dropout and the draws. The global
        generators are neither read nor changed.
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

    Notes
    -----
    The defaults are those of the fine-tuning that was measured with few labels, with
    MiniLM [1]_. `lr="auto"` transfers its rate to encoders of another width: with Adam,
    the best rate of the hidden layers is inversely proportional to their width [2]_.
    The result is in the range that BERT was fine-tuned with, 2e-5 to 5e-5 [3]_. Other
    widths were not measured. The setting of BERT's authors for many labels is
    `pooling="cls", max_epochs=3, batch_size=16, lr=2e-5, head_lr=None`.

    References
    ----------
    .. [1] "Fine-tuning with few labels", a page of skactive's documentation.
    .. [2] G. Yang et al. (2022). Tensor programs V: tuning large neural networks via
       zero-shot hyperparameter transfer. arXiv:2203.03466.
    .. [3] J. Devlin, M.-W. Chang, K. Lee, K. Toutanova (2019). BERT: Pre-training of
       deep bidirectional transformers for language understanding. NAACL.
    """

    history_: list[dict[str, Any]]
    layer_changes_: dict[str, NDArray]

    _parameter_constraints = {
        "model": [str, os.PathLike],
        "head": [str, type],
        "head_params": [dict, None],
        "pooling": [StrOptions({"mean", "cls", "max", "last"})],
        "layers": [Integral, Sequence, np.ndarray],
        "freeze": [Integral, str],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "mc_dropout": [StrOptions({"head", "gaussian", "full"}), None],
        "n_draws": [POSITIVE_COUNT],
        "max_length": [POSITIVE_INT],
        "max_epochs": [
            Interval(Integral, 0, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "batch_size": [POSITIVE_INT],
        "lr": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "head_lr": [Interval(Real, 0, None, closed="left"), None],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "schedule": [StrOptions({"linear", "polynomial"}), None],
        "power": [POSITIVE],
        "warmup": [Interval(Real, 0, 1, closed="both")],
        "max_grad_norm": [POSITIVE, None],
        "early_stopping": [
            "boolean",
            StrOptions(set(get_scorer_names())),
            callable,
            None,
        ],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [POSITIVE_INT],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "cache_frozen": ["boolean"],
        "layers_attr": [str, None],
        "device": [str],
        "precision": [StrOptions({"auto", "float32", "bfloat16"})],
        "callbacks": [Sequence, None],
        "net_params": [dict, None],
        "revision": [str, None],
        "random_state": ["random_state"],
        "verbose": ["verbose", StrOptions({"auto"})],
    }

    def __init__(
        self,
        model: str | os.PathLike = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        head: Literal["linear", "mlp", "cnn"] | type = "linear",
        head_params: dict | None = None,
        pooling: Pooling = "mean",
        layers: int | Sequence[int] = -1,
        freeze: int | Literal["all"] = 0,
        dropout: float = 0.1,
        mc_dropout: MCDropout | None = "head",
        n_draws: int = 50,
        max_length: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        batch_size: int = 8,
        lr: float | Literal["auto"] = "auto",
        head_lr: float | None = 1e-3,
        weight_decay: float = 0.0,
        schedule: Schedule | None = "linear",
        power: float = 1.0,
        warmup: float = 0.1,
        max_grad_norm: float | None = 1.0,
        early_stopping: Any = None,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
        tol: float = 1e-4,
        warm_start: bool = False,
        cache_frozen: bool = True,
        layers_attr: str | None = None,
        device: str = "auto",
        precision: Precision = "auto",
        callbacks: Sequence | None = None,
        net_params: dict | None = None,
        revision: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | Literal["auto"] = "auto",
    ):
        self.model = model
        self.head = head
        self.head_params = head_params
        self.pooling = pooling
        self.layers = layers
        self.freeze = freeze
        self.dropout = dropout
        self.mc_dropout = mc_dropout
        self.n_draws = n_draws
        self.max_length = max_length
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.head_lr = head_lr
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.power = power
        self.warmup = warmup
        self.max_grad_norm = max_grad_norm
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.warm_start = warm_start
        self.cache_frozen = cache_frozen
        self.layers_attr = layers_attr
        self.device = device
        self.precision = precision
        self.callbacks = callbacks
        self.net_params = net_params
        self.revision = revision
        self.random_state = random_state
        self.verbose = verbose

    @property
    def draws_jointly(self) -> bool:
        """Whether a draw is one model for all texts, not one model per text."""
        return self.mc_dropout != "gaussian"

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the inputs of the head's last linear layer.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.

        Returns
        -------
        features : ndarray of shape (n, d), float32

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            If `X` holds anything but texts. The message names the positions.
        """
        return self._fitted.embed(as_texts(X))

    @property
    def _n_features_out(self):
        return self._fitted.network.last_linear.in_features

    @property
    def _fitted(self):
        """The trained network with the current parameters, a `FittedText`."""
        check_is_fitted(self)
        return read_with(self, self.net_, self._recipe)

    def _outputs(self, X):
        """Return the (n, k) outputs."""
        return self._fitted.outputs(as_texts(X))

    def _draw_outputs(self, X, n_draws, random_state, link, *, relative=False):
        """Return (n, t, k) draws of what `link` makes of the outputs, float64."""
        n_draws = self.n_draws if n_draws is None else n_draws
        n_draws = check_count("n_draws", n_draws, most=MOST)
        fitted = self._fitted
        from ._draws import draw_outputs

        seed = base_seed(self.random_state if random_state is None else random_state)
        return draw_outputs(
            fitted, as_texts(X), self.mc_dropout, n_draws, seed, link, relative=relative
        )

    def _train(self, texts, objective, sample_weight, resume, n_epochs):
        """Train; the estimator changes only when that is done."""
        vars(self).update(
            train(
                self, texts, objective, sample_weight, resume=resume, n_epochs=n_epochs
            )
        )
        return self

    def __getstate__(self):
        """Leave out what can be loaded by name, and the state of the optimizer."""
        state = dict(super().__getstate__())
        if "net_" in state:
            from ._training import copy_trained

            network = state.pop("net_").module_
            state["_trained"] = {
                name: tensor.cpu().numpy()
                for name, tensor in copy_trained(network).items()
            }
            state["_checkpoint_digest"] = network.checkpoint_digest
        return state

    def __setstate__(self, state):
        state = dict(state)
        trained = state.pop("_trained", None)
        digest = state.pop("_checkpoint_digest", None)
        super().__setstate__(state)
        if trained is not None:
            self._restore(trained, digest)

    def _restore(self, trained, digest):
        """Rebuild the net from the pretrained weights and the trained ones."""
        import torch

        built = self._recipe["module"]
        if open_checkpoint(built["model"], built["revision"]).digest != digest:
            raise ValueError(
                f"'model' must hold the weights that this {type(self).__name__} was "
                f"trained from; the weights in {built['model']!r} have "
                "changed. Restore the original files, or train again."
            )
        with fork_torch(0):
            net = make_net(self, self._recipe, self._device_here())
        network = net.module_
        tensors = {name: torch.from_numpy(array) for name, array in trained.items()}
        network.load_state_dict(tensors, strict=False)
        network.eval()
        self.net_ = net

    def _device_here(self):
        """Return the device; the processor if this machine lacks it."""
        try:
            return choose_device(self.device)
        except ValueError as exc:
            warnings.warn(
                f"{exc} This {type(self).__name__} was trained there; it is loaded "
                "on the processor.",
                UserWarning,
                stacklevel=2,
            )
            return choose_device("cpu")

    def __sklearn_is_fitted__(self):
        return hasattr(self, "net_")

    def __sklearn_tags__(self):
        tags = tag_text_transformer(super().__sklearn_tags__())
        tags.requires_fit = True
        return tags


def draws_available(estimator):
    """Whether Monte-Carlo dropout is on; the reason, as an error, where it is not."""
    if estimator.mc_dropout is None:
        raise AttributeError(
            "Draws need mc_dropout='head' or 'full', or 'gaussian' for the linear "
            "head, got None. Pass one of them."
        )
    return True


def complete(cls):
    """Fill the sections of the base's docstring into the places of a subclass's."""
    if cls.__doc__:  # None under -OO
        texts = re.split(r"\n +(\w+)\n +-+\n", BertEstimator.__doc__)
        for name, text in zip(texts[1::2], texts[2::2], strict=True):
            placeholder = f"    {{{name.lower()}}}\n"
            cls.__doc__ = cls.__doc__.replace(placeholder, f"{text.rstrip()}\n")
    return cls
