"""Train a network with skorch: weighted loss, schedules, early stopping, history."""

import math
import time
from functools import partial

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, GradientNormClipping, LRScheduler
from skorch.helper import predefined_split

from .._encoders._tokens import send
from .._utils._format import progress_bar
from .._utils._repeatable import in_torch_threads, keep_torch_threads
from .._utils._system import note_signals


class Targets(torch.utils.data.Dataset):
    """Positions (m,) of texts, with the targets and weights of all n texts."""

    def __init__(self, batches, positions, y, weights):
        self.batches, self.positions = batches, positions
        self.y, self.weights = y, weights

    def __len__(self):
        return len(self.positions)

    def __getitem__(self, i):
        return int(self.positions[i])

    def collate(self, positions):
        """Return a batch of what `__getitem__` returned."""
        inputs = self.batches.take(np.array(positions))
        device = self.batches.device
        inputs["sample_weight"] = send(self.weights[positions], device)
        return inputs, send(self.y[positions], device)


class Net(NeuralNet):
    """skorch's net with one weight per text in the loss, and batches of `Targets`."""

    def get_loss(self, y_pred, y_true, X=None, training=False):
        """Average the texts' losses, each times its weight."""
        losses = self.criterion_(y_pred, y_true)
        losses = losses.flatten(1).mean(dim=1) if losses.ndim > 1 else losses
        return (losses * X["sample_weight"]).mean()

    def get_iterator(self, dataset, training=False):
        """Make batches as the data set says."""
        iterator = super().get_iterator(dataset, training)
        part = getattr(dataset, "dataset", dataset)  # a split wraps it in a Subset
        iterator.collate_fn = part.collate
        return iterator


def run_epochs(net, batches, positions, y, weights):
    """Train an initialized net on texts, for at most its `max_epochs`.

    `positions` are those of the texts to train on and of those to score, or None.
    skorch's own loop counts tokens of packed texts, takes Ctrl-C as a stop, and hides
    the end of an epoch from the callbacks behind one that stops.
    """
    data = Targets(batches, positions[0], y, weights)
    if positions[1] is not None:
        net.train_split = predefined_split(Targets(batches, positions[1], y, weights))
    train, valid = net.get_split_datasets(data)
    epoch = {"dataset_train": train, "dataset_valid": valid}
    parts = [("train", net.get_iterator(train, training=True), net.train_step)]
    if valid is not None:
        parts.append(("valid", net.get_iterator(valid), net.validation_step))
    # torch would split the sums of a step among threads; see `_parts`.
    with keep_torch_threads():
        net.notify("on_train_begin", X=data, y=None)
        for _ in range(net.max_epochs):
            net.notify("on_epoch_begin", **epoch)
            for prefix, iterator, make_step in parts:
                _run_part(net, prefix, iterator, make_step)
            if _end_epoch(net, epoch):
                break
        net.notify("on_train_end", X=data, y=None)


def _run_part(net, prefix, batches, make_step):
    """Run the batches of one epoch, of training or of validation."""
    records, training = [], prefix == "train"

    def begin(batch):
        net.notify("on_batch_begin", batch=batch, training=training)

    def run(batch):
        if training:
            begin(batch)
        return batch, make_step(batch)

    # A step of the training follows from the one before it.
    device = torch.device(net.device)
    steps = map(run, batches) if training else in_torch_threads(run, batches, device)
    for batch, step in steps:
        if not training:
            begin(batch)
        # A tensor until the last step: each reading would wait for the device.
        net.history.record_batch(f"{prefix}_loss", step["loss"].detach())
        net.history.record_batch(f"{prefix}_batch_size", len(batch[1]))
        net.notify("on_batch_end", batch=batch, training=training, **step)
        records.append(net.history[-1, "batches", -1])
    losses = torch.stack([record[f"{prefix}_loss"] for record in records]).tolist()
    for record, loss in zip(records, losses, strict=True):
        record[f"{prefix}_loss"] = loss
    net.history.record(f"{prefix}_batch_count", len(records))


def _end_epoch(net, epoch):
    """Return whether a callback stops; all of them see the end of the epoch."""
    stops = False
    for callback in (net, *(callback for _, callback in net.callbacks_)):
        with note_signals() as came:
            try:
                callback.on_epoch_end(net, **epoch)
            except KeyboardInterrupt:  # how callbacks of skorch stop
                if came:  # Ctrl-C
                    raise
                stops = True
        stops |= getattr(callback, "stops", False) is True
    return stops


class History(Callback):
    """Record each epoch, keep the best weights and stop without an improvement.

    `score` is called with the (m, k) outputs of the validation texts; None if there are
    none. An increase of less than `tol` is no improvement; `stops` is True after
    `patience` epochs in a row without one. `epochs` are the records. A bar on stderr
    shows the `n_batches` of all epochs, as `verbose` says.
    """

    def __init__(self, score, tol, patience, n_batches=0, verbose=0, before=()):
        self.score, self.tol, self.patience = score, tol, patience
        self.n_batches, self.verbose = n_batches, verbose
        self.n_before = len(before)
        self.seconds_before = before[-1]["seconds_total"] if before else 0.0

    def on_train_begin(self, net, **kwargs):
        """Start the clock and the bar."""
        self.epochs, self.stops = [], False
        self.best_score, self.best_weights = -math.inf, None
        self.reference, self.n_without_gain = -math.inf, 0
        self.bar = progress_bar(
            self.verbose, total=self.n_batches, desc="training", unit="batch"
        )
        self.started = time.perf_counter()

    def on_epoch_begin(self, net, **kwargs):
        """Forget the outputs of the last validation."""
        self.outputs = []
        self.epoch_started = time.perf_counter()

    def on_batch_end(self, net, training=False, loss=None, y_pred=None, **kwargs):
        """Keep the outputs of the validation: the score costs no second pass."""
        if training:
            if self.bar.update():  # it was drawn, as it is ten times a second at most
                self.bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        else:
            self.outputs.append(y_pred.detach())

    def on_epoch_end(self, net, **kwargs):
        """Record the epoch; say whether it is time to stop."""
        now = time.perf_counter()
        record = {
            "epoch": self.n_before + len(self.epochs) + 1,
            "train_loss": float(net.history[-1, "train_loss"]),
            "seconds": now - self.epoch_started,
            "seconds_total": now - self.started + self.seconds_before,
        }
        self.epochs.append(record)
        if self.score is None:
            return
        outputs = torch.cat(self.outputs).cpu()
        self.outputs = []
        record["valid_loss"] = float(net.history[-1, "valid_loss"])
        score = record["valid_score"] = self.score(outputs)
        if self.best_weights is None or score > self.best_score:
            self.best_score = -math.inf if math.isnan(score) else score
            self.best_weights = copy_trained(net.module_)
        if score >= self.reference + self.tol:
            self.reference, self.n_without_gain = score, 0
        else:
            self.n_without_gain += 1
        self.stops = self.n_without_gain >= self.patience

    def on_train_end(self, net, **kwargs):
        """Restore the best weights."""
        self.bar.close()
        del self.bar
        if self.best_weights is not None:
            net.module_.load_state_dict(self.best_weights, strict=False)
            self.best_weights = None


def learning_rate(step, *, schedule, power, n_steps, n_warmup):
    """Return the factor of the learning rate at `step`, from 0.

    It rises linearly to 1 in `n_warmup` steps. Then it is constant, or decreases to 0
    at step `n_steps`, linearly or as the remaining fraction of the steps to `power`.
    The schedules of transformers begin with a step at 0, and end at a rate above 0 if
    they are polynomial.
    """
    if step < n_warmup:
        return (step + 1) / n_warmup
    if schedule is None:
        return 1.0
    remaining = max(0.0, (n_steps - step) / max(1, n_steps - n_warmup))
    return remaining if schedule == "linear" else remaining**power


def adamw(groups, **settings):
    """Return AdamW, fused if the device and the parameters allow it.

    The fused form passes over the numbers once instead of once per operation: with all
    of MiniLM in training, a step takes a ninth of the time.
    """
    able = all(
        p.device.type in ("cpu", "cuda") and p.is_floating_point()
        for group in groups
        for p in group["params"]
    )
    if able and not settings.keys() & {"foreach", "differentiable"}:
        settings = {"fused": True, **settings}
    return torch.optim.AdamW(groups, **settings)


def choose_lr(lr, width):
    """Return a learning rate; "auto" is inversely proportional to the encoder's width.

    1e-4 was measured with MiniLM, whose width is 384.
    """
    return 1e-4 * (384 / width) if lr == "auto" else lr


def optimization(model, width, n_steps):
    """Return the arguments of :class:`Net` that say how to optimize, and callbacks.

    `model` is the estimator, `width` that of the encoder, `n_steps` the batches of all
    epochs together.
    """
    lr = choose_lr(model.lr, width)
    head_lr = lr if model.head_lr is None else model.head_lr
    head, plain = {"lr": head_lr}, {"weight_decay": 0.0}
    params = {
        "optimizer": adamw,
        "optimizer__weight_decay": model.weight_decay,
        "lr": lr,
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
    """Copy the weights that training changes, batch statistics included, by name."""
    frozen = {name for name, p in network.named_parameters() if not p.requires_grad}
    return {
        name: tensor.detach().clone()
        for name, tensor in network.state_dict().items()
        if name not in frozen
    }


def layer_changes(network, start):
    """Return the mean absolute change of each layer's parameters, and its variance.

    `start` is from `copy_trained`; what is not in it has not changed. The result has
    arrays of one entry per layer: `layer` is "embeddings", "0", "1", ... and the layers
    of the head, `part` is "encoder" or "head" (Griesshaber et al. 2020, equation 2).
    """
    groups = [
        ("encoder", str(layer), {f"encoder.{name}": p for name, p in group.items()})
        for layer, group in network.stack.groups().items()
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
    """Return mean and variance of the absolute changes of parameters, in float64."""
    n = total = squares = 0
    for name, parameter in parameters.items():
        n += parameter.numel()
        if name in start:
            change = (parameter.detach() - start[name]).abs().double()
            total += change.sum()
            squares += change.square().sum()
    mean = float(total) / n
    return mean, max(0.0, float(squares) / n - mean**2)
