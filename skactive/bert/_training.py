"""Train a network with skorch: weighted loss, schedules, early stopping, history."""

import math
import time
from contextlib import suppress
from functools import partial

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, GradientNormClipping, LRScheduler

from .._utils._progress import progress_bar


class Targets(torch.utils.data.Dataset):
    """Positions of texts, with their targets and weights, as batches of inputs.

    Parameters
    ----------
    batches : Batches
    positions : ndarray of int of shape (m,)
        Which texts are in this part.
    y : torch.Tensor of shape (n,) or (n, k)
        Of all texts.
    weights : torch.Tensor of shape (n,)
        Of all texts.
    """

    def __init__(self, batches, positions, y, weights):
        self.batches, self.positions = batches, positions
        self.y, self.weights = y, weights

    def __len__(self):
        return len(self.positions)

    def __getitem__(self, i):
        return int(self.positions[i])

    def collate(self, positions):
        """Make a batch of what `__getitem__` gave."""
        inputs = self.batches.take(np.array(positions))
        inputs["sample_weight"] = self.weights[positions].to(self.batches.device)
        return inputs, self.y[positions]


class _Stopped(Exception):
    """A callback has ended the training."""


class Net(NeuralNet):
    """skorch's net with one weight per text in the loss."""

    def get_loss(self, y_pred, y_true, X=None, training=False):
        """Average the texts' losses, each times its weight."""
        losses = self.criterion_(y_pred, y_true.to(y_pred.device))
        losses = losses.flatten(1).mean(dim=1) if losses.ndim > 1 else losses
        return (losses * X["sample_weight"]).mean()

    def validation_step(self, batch, **fit_params):
        """Keep the outputs, so that the score costs no second pass."""
        step = super().validation_step(batch, **fit_params)
        self.validated_.append(step["y_pred"].detach().cpu())
        return step

    def run_single_epoch(self, iterator, training, prefix, step_fn, **fit_params):
        """Do as skorch does; but count texts, where it takes packed tokens for them."""
        if iterator is None:
            return
        n_batches = 0
        for batch in iterator:
            n_batches += 1
            self.notify("on_batch_begin", batch=batch, training=training)
            step = step_fn(batch, **fit_params)
            self.history.record_batch(f"{prefix}_loss", step["loss"].item())
            self.history.record_batch(f"{prefix}_batch_size", len(batch[1]))
            self.notify("on_batch_end", batch=batch, training=training, **step)
        self.history.record(f"{prefix}_batch_count", n_batches)

    def get_iterator(self, dataset, training=False):
        """Make batches the way the data set says."""
        iterator = super().get_iterator(dataset, training)
        part = getattr(dataset, "dataset", dataset)  # a split wraps it in a Subset
        iterator.collate_fn = part.collate
        return iterator

    def partial_fit(self, X, y=None, classes=None, **fit_params):
        """Train on; Ctrl-C ends the program, where skorch would take it as a stop."""
        if not self.initialized_:
            self.initialize()
        fit_params.pop("_routing_method", None)
        self.notify("on_train_begin", X=X, y=y)
        with suppress(_Stopped):
            self.fit_loop(X, y)
        self.notify("on_train_end", X=X, y=y)
        return self

    def notify(self, method_name, **kwargs):
        """Call the callbacks; all see the end of an epoch at which one stops."""
        if method_name != "on_epoch_end":
            super().notify(method_name, **kwargs)
            return
        stopped = False
        for callback in (self, *(callback for _, callback in self.callbacks_)):
            try:
                callback.on_epoch_end(self, **kwargs)
            except (_Stopped, KeyboardInterrupt):  # the latter is skorch's way to stop
                stopped = True
        if stopped:
            raise _Stopped


class History(Callback):
    """Record each epoch, keep the best weights and stop when nothing is gained.

    Parameters
    ----------
    score : callable or None
        Called with the outputs (m, k) of the validation texts. None if there are none.
    tol : float
        A gain below it is none.
    patience : int
        Epochs in a row without a gain after which to stop.

    Attributes
    ----------
    epochs : list of dict
    """

    def __init__(self, score, tol, patience):
        self.score, self.tol, self.patience = score, tol, patience

    def on_train_begin(self, net, **kwargs):
        """Start the clock."""
        self.epochs = []
        self.best_score, self.best_weights = -math.inf, None
        self.reference, self.n_without_gain = -math.inf, 0
        self.started = time.perf_counter()

    def on_epoch_begin(self, net, **kwargs):
        """Forget the outputs of the last validation."""
        net.validated_ = []
        self.epoch_started = time.perf_counter()

    def on_epoch_end(self, net, **kwargs):
        """Record the epoch; stop if it is time."""
        now = time.perf_counter()
        record = {
            "epoch": len(self.epochs) + 1,
            "train_loss": float(net.history[-1, "train_loss"]),
            "seconds": now - self.epoch_started,
            "seconds_total": now - self.started,
        }
        self.epochs.append(record)
        if self.score is None:
            return
        outputs = torch.cat(net.validated_)
        net.validated_ = []
        record["valid_loss"] = float(net.history[-1, "valid_loss"])
        score = record["valid_score"] = self.score(outputs)
        if self.best_weights is None or score > self.best_score:
            self.best_score = -math.inf if math.isnan(score) else score
            self.best_weights = copy_trained(net.module_)
        if score >= self.reference + self.tol:
            self.reference, self.n_without_gain = score, 0
        else:
            self.n_without_gain += 1
        if self.n_without_gain >= self.patience:
            raise _Stopped

    def on_train_end(self, net, **kwargs):
        """Put the best weights back."""
        if self.best_weights is not None:
            net.module_.load_state_dict(self.best_weights, strict=False)
            self.best_weights = None


class Progress(Callback):
    """A bar on stderr over all batches of all epochs.

    Parameters
    ----------
    n_batches : int
        In all epochs together.
    verbose : int, bool or "auto"
    """

    def __init__(self, n_batches, verbose):
        self.n_batches, self.verbose = n_batches, verbose

    def on_train_begin(self, net, **kwargs):
        """Open the bar."""
        self.bar = progress_bar(
            self.verbose, total=self.n_batches, desc="training", unit="batch"
        )

    def on_batch_end(self, net, training=False, loss=None, **kwargs):
        """Move it."""
        if training:
            self.bar.update()
            self.bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)

    def on_train_end(self, net, **kwargs):
        """Close it."""
        self.bar.close()
        del self.bar


def learning_rate(step, *, schedule, power, n_steps, n_warmup):
    """Give the factor of the learning rate at a step.

    Parameters
    ----------
    step : int
        From 0.
    schedule : {None, "linear", "polynomial"}
        After the warm-up: constant, or from 1 to 0 at the last step, linearly or as
        the remaining fraction of the steps to `power`.
    power : float
    n_steps, n_warmup : int
        Steps in all, and steps in which the factor rises linearly to 1.

    Returns
    -------
    factor : float

    Examples
    --------
    >>> from skactive.bert._training import learning_rate
    >>> settings = {"schedule": "linear", "power": 1, "n_steps": 6, "n_warmup": 2}
    >>> [learning_rate(step, **settings) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    if step < n_warmup:
        return (step + 1) / n_warmup
    if schedule is None:
        return 1.0
    remaining = max(0.0, (n_steps - step) / max(1, n_steps - n_warmup))
    return remaining if schedule == "linear" else remaining**power


def adamw(groups, **settings):
    """Make AdamW, in its fused form where the device and the parameters have one.

    The fused form passes over the numbers once instead of once per operation: with
    all of MiniLM in training, a step of it takes a ninth of the time.

    Parameters
    ----------
    groups : list of dict
        What training changes, as `torch.optim` takes it.
    **settings : object
        More arguments for `torch.optim.AdamW`.

    Returns
    -------
    optimizer : torch.optim.AdamW
    """
    able = all(
        p.device.type in ("cpu", "cuda") and p.is_floating_point()
        for group in groups
        for p in group["params"]
    )
    if able and not settings.keys() & {"foreach", "differentiable"}:
        settings = {"fused": True, **settings}
    return torch.optim.AdamW(groups, **settings)


def optimization(model, n_steps):
    """Return the arguments of :class:`Net` that say how to optimize, and callbacks.

    `model` is the estimator, `n_steps` the batches of all epochs together.
    """
    head_lr = model.lr if model.head_lr is None else model.head_lr
    head, plain = {"lr": head_lr}, {"weight_decay": 0.0}
    params = {
        "optimizer": adamw,
        "optimizer__weight_decay": model.weight_decay,
        "lr": model.lr,
        # The first pattern that fits a name decides.
        "optimizer__param_groups": [
            ("head*.bias", head | plain),
            ("head*[Nn]orm*", head | plain),
            ("head*", head),
            ("*.bias", plain),
            ("*[Nn]orm*", plain),
        ],
    }
    callbacks = []
    if model.max_grad_norm is not None:
        clip = GradientNormClipping(gradient_clip_value=model.max_grad_norm)
        callbacks.append(("clip", clip))
    if model.schedule is not None or model.warmup:
        factor = partial(
            learning_rate,
            schedule=model.schedule,
            power=model.power,
            n_steps=n_steps,
            n_warmup=math.ceil(model.warmup * n_steps),
        )
        scheduler = LRScheduler(
            torch.optim.lr_scheduler.LambdaLR, lr_lambda=factor, step_every="batch"
        )
        callbacks.append(("schedule", scheduler))
    return params, callbacks


def copy_trained(network):
    """Copy the weights that training changes, batch statistics included.

    Parameters
    ----------
    network : torch.nn.Module

    Returns
    -------
    tensors : dict of str to torch.Tensor
    """
    frozen = {name for name, p in network.named_parameters() if not p.requires_grad}
    return {
        name: tensor.detach().clone()
        for name, tensor in network.state_dict().items()
        if name not in frozen
    }


def layer_changes(network, start):
    """Mean absolute change of the parameters of each layer, and its variance.

    Parameters
    ----------
    network : TextNetwork
        After training.
    start : dict of str to torch.Tensor
        From :func:`copy_trained`, before it. What is not there has not changed.

    Returns
    -------
    changes : dict of str to ndarray of shape (n_layers,)
        `layer`: "embeddings", "0", "1", ... and the layers of the head; `part`:
        "encoder" or "head"; `mean` and `variance` of the absolute change over the
        layer's parameters. In the order in which a text passes them. A data frame
        takes it as it is.

    References
    ----------
    D. Griesshaber, J. Maucher, N. T. Vu (2020). Fine-tuning BERT for low-resource
    natural language understanding via active learning. COLING. Equation 2.
    """
    groups = [
        ("encoder", str(layer), {f"encoder.{name}": p for name, p in found.items()})
        for layer, found in network.stack.groups().items()
    ]
    for path, module in network.head.named_modules():
        own = dict(module.named_parameters(recurse=False))
        prefix = f"head.{path}." if path else "head."
        if own:
            named = {f"{prefix}{name}": p for name, p in own.items()}
            groups.append(("head", path or "head", named))
    changes = {"layer": [], "part": [], "mean": [], "variance": []}
    for part, layer, parameters in groups:
        mean, variance = _moments(parameters, start)
        for key, value in zip(changes, (layer, part, mean, variance), strict=True):
            changes[key].append(value)
    return {key: np.array(values) for key, values in changes.items()}


def _moments(parameters, start):
    """Mean and variance of the absolute changes of some parameters, in float64."""
    n = total = squares = 0
    for name, parameter in parameters.items():
        n += parameter.numel()
        if name in start:
            change = (parameter.detach() - start[name]).abs().double()
            total += change.sum().item()
            squares += change.square().sum().item()
    mean = total / n
    return mean, max(0.0, squares / n - mean**2)
