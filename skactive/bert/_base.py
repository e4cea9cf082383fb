"""What BertClassifier and BertRegressor share: parameters, tags and copies."""

import os
import warnings
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.metrics import get_scorer_names

from .._utils._random import fork_torch
from .._utils._sklearn import Interval, StrOptions
from ._draws import DrawsMixin
from ._fitting import FittingMixin
from ._inference import InferenceMixin
from ._module import choose_device


class BertEstimator(
    FittingMixin,
    DrawsMixin,
    InferenceMixin,
    ClassNamePrefixFeaturesOutMixin,
    BaseEstimator,
):
    """Base of :class:`BertClassifier` and :class:`BertRegressor`."""

    _parameter_constraints = {
        "model": [str, os.PathLike],
        "head": [str, type],
        "head_params": [dict, None],
        "pooling": [StrOptions({"mean", "cls", "max", "last"})],
        "layers": [Integral, Sequence, np.ndarray],
        "freeze": [Integral, str],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "mc_dropout": [StrOptions({"head", "gaussian", "full"}), None],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "max_length": [Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="left")],
        "head_lr": [Interval(Real, 0, None, closed="left"), None],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "schedule": [StrOptions({"linear", "polynomial"}), None],
        "power": [Interval(Real, 0, None, closed="neither")],
        "warmup": [Interval(Real, 0, 1, closed="both")],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "early_stopping": [
            "boolean",
            StrOptions(set(get_scorer_names())),
            callable,
            None,
        ],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
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
        model="bert-base-uncased",
        *,
        head="linear",
        head_params=None,
        pooling="cls",
        layers=-1,
        freeze=0,
        dropout=0.1,
        mc_dropout="head",
        n_draws=50,
        max_length=128,
        max_epochs=3,
        batch_size=16,
        lr=2e-5,
        head_lr=None,
        weight_decay=0.0,
        schedule=None,
        power=1.0,
        warmup=0.0,
        max_grad_norm=1.0,
        early_stopping=None,
        validation_fraction=0.1,
        n_iter_no_change=2,
        tol=1e-4,
        warm_start=False,
        cache_frozen=True,
        layers_attr=None,
        device="auto",
        precision="auto",
        callbacks=None,
        net_params=None,
        revision=None,
        random_state=None,
        verbose="auto",
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

    def __getstate__(self):
        """Leave out what can be loaded by name, and the state of the optimiser."""
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

        checkpoint = self._checkpoint()
        if checkpoint.digest != digest:
            raise ValueError(
                f"'model' must hold the weights that this {type(self).__name__} was "
                f"trained from; those in {self._recipe['module']['model']!r} are "
                "others. Put the earlier ones there, or train again."
            )
        with fork_torch(0):
            net = self._make_net(self._recipe, self._device_here())
        network = net.module_
        tensors = {name: torch.from_numpy(array) for name, array in trained.items()}
        network.load_state_dict(tensors, strict=False)
        network.eval()
        self.net_ = net

    def _device_here(self):
        """Choose the device; the processor where this machine lacks it."""
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
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags
