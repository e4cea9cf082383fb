"""Train a network on texts: validation part, skorch net, history."""

from __future__ import annotations

import copy
import os
import warnings

import numpy as np

from skactive._random import base_seed, fork_torch, round_rng, round_seed
from skactive._sklearn import check_sample_weight
from skactive._texts import refuse_surrogates
from skactive.bert.hub import open_checkpoint
from skactive.bert.module import choose_device, choose_precision

__all__ = ["FittingMixin"]

_BATCH_TOKENS = {"cpu": 1024, "cuda": 16384, "mps": 8192}


class FittingMixin:
    """How the fine-tuned estimators train."""

    def _train(self, texts, y, sample_weight, *, n_outputs, stratify, go_on, n_epochs):
        """Train a network on encoded targets; take it over only when that is done."""
        import torch
        from skorch.helper import predefined_split

        from skactive.bert.changes import copy_trained, layer_changes
        from skactive.bert.training import History, Progress, Targets

        weights = check_sample_weight(sample_weight, texts, ensure_non_negative=True)
        if not weights.sum() > 0:
            raise ValueError(
                "'sample_weight' must hold a weight above 0, got none. Drop the "
                "argument to weigh all texts alike."
            )
        seed = base_seed(self.random_state)
        train, valid = self._split(len(texts), stratify, seed)
        weights = torch.from_numpy(weights / (weights[train].mean() or 1.0)).float()
        n_steps = n_epochs * -(-len(train) // self.batch_size)
        has_valid = valid is not None
        history = History(
            self._validation_score if has_valid else None,
            self.tol,
            self.n_iter_no_change,
        )
        callbacks = [("history", history)]
        if self.verbose:
            callbacks.append(("progress", Progress(n_steps)))

        n_before = len(self.history_) if go_on else 0
        with fork_torch(round_seed(seed, n_before, "train")):
            net = self._make_net(n_outputs, n_epochs, n_steps, callbacks)
            if go_on:
                net.module_.load_state_dict(self.net_.module_.state_dict())
            network = net.module_
            network.frozen_in_eval = self.cache_frozen
            start = copy_trained(network)
            batches = self._batches(network, texts)
            self._warn_of_cut_texts(batches)
            parts = [
                None if part is None else Targets(batches, part, y, weights)
                for part in (train, valid)
            ]
            if has_valid:
                net.train_split = predefined_split(parts[1])
            try:
                net.partial_fit(parts[0])
            except torch.OutOfMemoryError as exc:
                raise RuntimeError(
                    f"'batch_size' must leave room on {self.device!r}, got "
                    f"{self.batch_size} with max_length={self.max_length} ({exc}). "
                    "Pass a smaller one, a smaller 'max_length', or freeze more layers."
                ) from exc
        network.eval()
        network.frozen_in_eval = False
        # Nothing of the training is kept but its result: a next one starts afresh.
        net.train_split = None
        net.optimizer_.state.clear()
        self.net_ = net
        self._n_outputs = n_outputs
        offset = self.history_[-1]["seconds_total"] if n_before else 0.0
        epochs = [
            {
                **record,
                "epoch": record["epoch"] + n_before,
                "seconds_total": record["seconds_total"] + offset,
            }
            for record in history.epochs
        ]
        self.history_ = [*self.history_, *epochs] if n_before else epochs
        self.layer_changes_ = layer_changes(network, start)
        return self

    def _make_net(self, n_outputs, n_epochs=1, n_steps=1, callbacks=()):
        """Build the net; its network starts from the pretrained weights."""
        from skactive.bert.network import TextNetwork
        from skactive.bert.training import Net, optimisation

        params, more = optimisation(
            lr=self.lr,
            head_lr=self.lr if self.head_lr is None else self.head_lr,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            warmup=self.warmup,
            max_grad_norm=self.max_grad_norm,
            n_steps=n_steps,
        )
        device = choose_device(self.device)
        params |= {
            "criterion": self._criterion(),
            "criterion__reduction": "none",
            "max_epochs": n_epochs,
            "batch_size": self.batch_size,
            "iterator_train__shuffle": True,
            "iterator_valid__batch_size": 4 * self.batch_size,
            "train_split": None,
            "predict_nonlinearity": None,
            "verbose": 0,
            "device": str(device),
            "callbacks": [
                *more,
                *callbacks,
                *copy.deepcopy(list(self.callbacks or ())),
            ],
            "callbacks__print_log": None,
        }
        settings = {
            "model": os.fspath(self.model),
            "revision": self.revision,
            "head": self.head,
            "head_params": self.head_params,
            "n_outputs": n_outputs,
            "dropout": self.dropout,
            "pooling": self.pooling,
            "freeze": self.freeze,
            "layers_attr": self.layers_attr,
            "bfloat16": self._bfloat16(device),
        }
        params |= {f"module__{name}": value for name, value in settings.items()}
        net = Net(TextNetwork, **{**params, **(self.net_params or {})})
        return net.initialize()

    def _bfloat16(self, device):
        import torch

        if self.precision == "auto":  # training in bfloat16 pays on a GPU
            return device.type == "cuda" and (
                choose_precision("auto", device) == torch.bfloat16
            )
        return self.precision == "bfloat16"

    def _warn_of_cut_texts(self, batches):
        n = batches.n_truncated
        if n:
            warnings.warn(
                f"{n} of {len(batches)} texts have more than {batches.max_length} "
                "tokens and were cut there. A higher 'max_length' uses more of them.",
                UserWarning,
                stacklevel=6,  # the caller of fit
            )

    def _split(self, n, stratify, seed):
        """Draw the validation part where training stops early."""
        positions = np.arange(n)
        if not self.early_stopping:
            return positions, None
        from sklearn.model_selection import train_test_split

        try:
            train, valid = train_test_split(
                positions,
                test_size=self.validation_fraction,
                stratify=stratify,
                random_state=round_rng(seed, 0, "validation").integers(2**31),
            )
        except ValueError as exc:
            raise ValueError(
                f"'early_stopping' must have texts to validate on, got {n} texts and "
                f"validation_fraction={self.validation_fraction} ({exc}) Pass more "
                "texts, another fraction, or early_stopping=None."
            ) from exc
        return np.sort(train), np.sort(valid)

    def _batches(self, network, texts, *, from_tokens=False):
        """Tokenise, and look up what lies below the cut unless told not to."""
        from skactive.bert.inputs import Batches

        checkpoint = open_checkpoint(self.model, self.revision)
        device = next(network.parameters()).device.type
        try:
            return Batches(
                network,
                checkpoint,
                texts,
                int(min(self.max_length, checkpoint.max_positions or np.inf)),
                batch_tokens=_BATCH_TOKENS.get(device, 1024),
                use_prefix=self.cache_frozen and not from_tokens,
            )
        except (TypeError, UnicodeError):
            refuse_surrogates(texts)
            raise
