"""Train a network on texts: validation part, skorch net, history."""

import copy
import os
import warnings
from contextlib import contextmanager

import numpy as np
from sklearn.metrics import check_scoring

from .._utils._random import base_seed, fork_torch, round_rng, round_seed
from .._utils._sklearn import check_sample_weight
from .._utils._texts import refuse_surrogates
from .._utils._threads import one_torch_thread
from ._module import choose_device, choose_precision
from ._pretrained import open_checkpoint

_BATCH_TOKENS = {"cpu": 1024, "cuda": 16384, "mps": 8192}


class FittingMixin:
    """How the fine-tuned estimators train."""

    _min_valid_texts = 1  # for a validation score that means something

    def _train(
        self,
        texts,
        y,
        sample_weight,
        *,
        labels,
        fitted,
        n_outputs,
        criterion,
        stratify,
        go_on,
        n_epochs,
    ):
        """Train a network on encoded targets; take it over only when that is done.

        Parameters
        ----------
        texts : list of str or of (str, str)
        y : torch.Tensor of shape (n,) or (n, k)
            Encoded targets.
        sample_weight : array-like of shape (n,) or None
        labels : ndarray of shape (n,) or (n, k)
            Targets as they were passed to `fit`.
        fitted : dict
            Attributes that turn outputs into predictions, such as `classes_`.
        n_outputs : int
        criterion : class
            The loss, a `torch.nn.Module`.
        stratify : ndarray of shape (n,) or None
            What the validation part keeps the proportions of.
        go_on : bool
            Whether to start from the present weights.
        n_epochs : int
        """
        from skorch.helper import predefined_split

        from ._training import History, Progress, Targets, copy_trained, layer_changes

        weights = check_sample_weight(sample_weight, texts, ensure_non_negative=True)
        seed = base_seed(self.random_state)
        train, valid = self._split(len(texts), stratify, seed)
        weights = _normalised(weights, train)
        n_steps = n_epochs * -(-len(train) // self.batch_size)
        has_valid = valid is not None
        score = None
        if has_valid:
            score = self._validation_score(
                fitted, [texts[i] for i in valid], labels[valid], n_outputs
            )
        history = History(score, self.tol, self.n_iter_no_change)
        callbacks = [
            ("history", history),
            ("progress", Progress(n_steps, self.verbose)),
        ]
        recipe = self._recipe_of(n_outputs, criterion)
        device = choose_device(self.device)

        n_before = len(self.history_) if go_on else 0
        with (
            fork_torch(round_seed(seed, n_before, "train")),
            explained_memory(
                f"'batch_size' must leave room on {str(device)!r}, got "
                f"{self.batch_size} with max_length={self.max_length} (%s). Pass a "
                "smaller one, a smaller 'max_length', or freeze more layers."
            ),
        ):
            net = self._make_net(recipe, device, n_epochs, n_steps, callbacks)
            network = net.module_
            if go_on:
                self._continue(network)
            network.frozen_in_eval = self.cache_frozen
            start = copy_trained(network)
            checkpoint = open_checkpoint(self.model, self.revision)
            batches = self._batches(network, checkpoint, texts)
            self._warn_of_cut_texts(batches)
            parts = [
                None if part is None else Targets(batches, part, y, weights)
                for part in (train, valid)
            ]
            if has_valid:
                net.train_split = predefined_split(parts[1])
            # A step is a chain of small sums, which torch would split among threads.
            with one_torch_thread():
                net.partial_fit(parts[0])
        self._refuse_diverged(network)
        network.eval()
        network.frozen_in_eval = False
        # Nothing of the training is kept but its result: a next one starts afresh.
        net.train_split = history.score = None
        net.optimizer_.state.clear()
        with one_torch_thread():
            changes = layer_changes(network, start)

        offset = self.history_[-1]["seconds_total"] if n_before else 0.0
        epochs = [
            {
                **record,
                "epoch": record["epoch"] + n_before,
                "seconds_total": record["seconds_total"] + offset,
            }
            for record in history.epochs
        ]
        vars(self).update(fitted)
        self.net_ = net
        self.history_ = [*self.history_, *epochs] if n_before else epochs
        self.layer_changes_ = changes
        self._recipe = recipe
        return self

    def _recipe_of(self, n_outputs, criterion):
        """List what the network is built from, whatever becomes of the parameters."""
        module = {
            "model": os.fspath(self.model),
            "revision": self.revision,
            "head": self.head,
            "head_params": copy.deepcopy(self.head_params),
            "n_outputs": n_outputs,
            "dropout": self.dropout,
            "pooling": self.pooling,
            "layers": copy.deepcopy(self.layers),
            "freeze": self.freeze,
            "layers_attr": self.layers_attr,
        }
        return {"module": module, "criterion": criterion}

    def _make_net(self, recipe, device, n_epochs=1, n_steps=1, callbacks=()):
        """Build the net; its network starts from the pretrained weights."""
        from ._network import TextNetwork
        from ._training import Net, optimisation

        net_params = self.net_params or {}
        if "callbacks" in net_params:
            raise ValueError(
                "'net_params' must leave the callbacks to the parameter of that name, "
                "got some. Pass callbacks=[...] instead."
            )
        params, more = optimisation(
            lr=self.lr,
            head_lr=self.lr if self.head_lr is None else self.head_lr,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            power=self.power,
            warmup=self.warmup,
            max_grad_norm=self.max_grad_norm,
            n_steps=n_steps,
        )
        params |= {
            "criterion": recipe["criterion"],
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
        settings = {**recipe["module"], "bfloat16": self._bfloat16(device)}
        params |= {f"module__{name}": value for name, value in settings.items()}
        return Net(TextNetwork, **{**params, **net_params}).initialize()

    def _continue(self, network):
        """Give a fresh network the weights trained so far."""
        before = self.net_.module_
        if network.checkpoint_digest != before.checkpoint_digest:
            raise ValueError(
                "'model' must be the one that training began with, got "
                f"{os.fspath(self.model)!r} with other weights. Call fit with "
                "warm_start=False to begin anew."
            )
        # What is frozen counts as pretrained: it is shared by way of the cache, and
        # no pickle holds it.
        trained = {name for name, p in before.named_parameters() if p.requires_grad}
        frozen = {name for name, p in network.named_parameters() if not p.requires_grad}
        if trained & frozen:
            raise ValueError(
                "'freeze' must leave free what training has changed before, got "
                f"{self.freeze!r}, which freezes {min(trained & frozen)!r} and more. "
                "Freeze no more than before, or call fit with warm_start=False to "
                "begin anew."
            )
        try:
            network.load_state_dict(before.state_dict())
        except RuntimeError as exc:
            raise ValueError(
                "'head' and 'head_params' must be those that training began with, got "
                f"{self.head!r} and {self.head_params!r}, which make other layers. "
                "Call fit with warm_start=False to begin anew."
            ) from exc

    def _refuse_diverged(self, network):
        trained = (p for p in network.parameters() if p.requires_grad)
        if not all(p.isfinite().all() for p in trained):
            raise ValueError(
                f"'lr' must be small enough for the training to converge, got "
                f"{self.lr} (head_lr={self.head_lr}), with which weights became "
                "infinite or NaN. Pass a smaller one, or a smaller 'max_grad_norm'."
            )

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
            is_limit = batches.max_length < self.max_length
            advice = (
                ", which is the most that the model takes."
                if is_limit
                else ". A higher 'max_length' uses more of them."
            )
            warnings.warn(
                f"{n} of {len(batches)} texts have more than {batches.max_length} "
                f"tokens and were cut there{advice}",
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
        if len(valid) < self._min_valid_texts:
            raise ValueError(
                f"'validation_fraction' must leave {self._min_valid_texts} texts to "
                f"score, got {self.validation_fraction} of {n} texts. Pass more texts, "
                "a larger fraction, or early_stopping=None."
            )
        return np.sort(train), np.sort(valid)

    def _validation_score(self, fitted, texts, labels, n_outputs):
        """Make the function that scores outputs (n, k) on the validation texts."""
        import torch

        by_default = isinstance(self.early_stopping, bool | np.bool_)
        model = type(self)(**self.get_params(deep=False))
        vars(model).update(fitted, net_=None)  # it predicts from given outputs
        scorer = check_scoring(model, None if by_default else self.early_stopping)

        def score(outputs):
            model._outputs = lambda X: outputs.numpy()
            return float(scorer(model, texts, labels))

        if not by_default:  # fail before training, not after its first epoch
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    score(torch.zeros(len(texts), n_outputs))
            except Exception as exc:
                raise ValueError(
                    f"'early_stopping' must be a scorer that is defined for the "
                    f"targets, got {self.early_stopping!r}, which fails on the "
                    f"validation texts ({type(exc).__name__}: {exc}). Pass another "
                    "scorer, or True."
                ) from exc
        return score

    def _batches(self, network, checkpoint, texts, *, from_tokens=False):
        """Tokenise, and look up what lies below the cut unless it has to run, too."""
        from ._inputs import Batches

        device = next(network.parameters()).device.type
        try:
            return Batches(
                network,
                checkpoint,
                texts,
                int(min(self.max_length, checkpoint.max_positions or np.inf)),
                batch_tokens=_BATCH_TOKENS.get(device, 1024),
                use_prefix=self.cache_frozen and not from_tokens,
                padded=from_tokens,
            )
        except (TypeError, UnicodeError):
            refuse_surrogates(texts)
            raise


def _normalised(weights, train):
    """Scale weights to mean 1 over the training part, so that `lr` means the same."""
    import torch

    if not weights[train].any():
        raise ValueError(
            "'sample_weight' must be above 0 for one of the texts to train on, got "
            "only 0. Drop the argument to weigh all texts alike."
        )
    return torch.from_numpy(weights / weights[train].mean()).float()


@contextmanager
def explained_memory(advice):
    """Say what to do where the memory of a device does not suffice.

    Parameters
    ----------
    advice : str
        With `%s` in the place of what torch says.
    """
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as exc:
        raise RuntimeError(advice % str(exc).rstrip(".")) from exc
