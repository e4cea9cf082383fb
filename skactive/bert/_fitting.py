"""Train a network on texts, and keep it with all that it needs to read texts."""

import copy
import os
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from .._encoders._module import choose_device, choose_precision
from .._encoders._pretrained import open_checkpoint
from .._utils._containers import refuse_surrogates
from .._utils._repeatable import (
    base_seed,
    fork_torch,
    in_torch_threads,
    one_torch_thread,
    round_rng,
    round_seed,
)
from .._utils._sklearn import check_sample_weight

# Fewest optimizer steps of `max_epochs="auto"`, see
# docs/results/few_label_fine_tuning.md.
_MIN_STEPS = 100
_STEPS_PER_OUTPUT = 4


@dataclass(frozen=True)
class FittedText:
    """A network that reads texts: its outputs, features and posterior samples.

    `source` is the model and revision that the network was built from. The texts of
    all methods are lists of `str` or of pairs of them.
    """

    net: Any  # skorch.NeuralNet
    source: tuple
    max_length: int
    batch_size: int
    cache_frozen: bool | str

    @property
    def network(self):
        """The `TextNetwork`."""
        return self.net.module_

    def checkpoint(self):
        """Open the pretrained model that the network was built from."""
        return open_checkpoint(*self.source)

    def batches(self, texts, *, from_tokens=False):
        """Tokenize `texts` and look up the activations of their frozen layers.

        With `from_tokens` every layer runs, on padded batches.
        """
        from .._encoders._tokens import BATCH_TOKENS, Batches

        checkpoint = self.checkpoint()
        device = next(self.network.parameters()).device.type
        try:
            return Batches(
                self.network,
                checkpoint,
                texts,
                int(min(self.max_length, checkpoint.max_positions or np.inf)),
                batch_tokens=BATCH_TOKENS.get(device, BATCH_TOKENS["cpu"]),
                use_cache=self.cache_frozen and not from_tokens,
                padded=from_tokens,
            )
        except (TypeError, UnicodeError):
            refuse_surrogates(texts)
            raise

    def map(self, texts, function, *, with_graph=False):
        """Return (n, ...) rows that `function(network, inputs)` gives for batches.

        With `with_graph` it starts from tokens and keeps what gradients need; batches
        have no more tokens than a training step.
        """
        import torch

        network, out = self.network, None

        @torch.no_grad()
        def rows_of(positions):
            return positions, function(network, batches.take(positions)).float()

        with self.explained_memory():
            batches = self.batches(texts, from_tokens=with_graph)
            if with_graph:
                step_tokens = self.batch_size * batches.max_length
                batches.batch_tokens = min(batches.batch_tokens, step_tokens)
            tasks = batches.by_length()
            for positions, rows in in_torch_threads(rows_of, tasks, batches.device):
                if out is None:
                    out = np.empty((len(texts), *rows.shape[1:]), dtype=np.float32)
                out[positions] = rows.cpu().numpy()
        return out

    def outputs(self, texts):
        """Return the (n, k) outputs."""
        return self.map(texts, lambda network, inputs: network(**inputs))

    def embed(self, texts):
        """Return the (n, d) inputs of the head's last linear layer."""
        return self.map(texts, lambda network, inputs: network.embed(**inputs))

    def summaries(self, texts):
        """Return the (n, m) inputs of the head's first linear layer."""
        from ._heads import DenseHead

        network = self.network
        as_kept = type(network.head).summarize is DenseHead.summarize
        if self.cache_frozen and as_kept and network.cut == network.depth:
            # Nothing runs if the features of all texts are in the cache.
            with self.explained_memory():
                batches = self.batches(texts)
            if isinstance(batches.activations, np.ndarray):
                return batches.activations[:, 0]
        return self.map(texts, lambda network, inputs: network.summarize(**inputs))

    def explained_memory(self):
        """Name the remedies where prediction does not fit into memory."""
        return explained_memory(
            f"'max_length' must fit into the memory of {self.net.device!r}, got "
            f"{self.max_length} (%s). Pass a smaller one, free memory on the device, "
            "or train with device='cpu'."
        )


@contextmanager
def explained_memory(advice):
    """Raise `advice`, its `%s` replaced by torch's message, where memory runs out."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as exc:
        raise RuntimeError(advice % str(exc).rstrip(".")) from exc


@dataclass
class Objective:
    """What a `fit` learns.

    `y` is a tensor (n,) or (n, k) of encoded targets, `labels` the targets as they were
    given. `attributes` are those that turn outputs into predictions, such as
    `classes_`. The validation part keeps the proportions of `stratify` (n,). After the
    training, `tune(outputs, labels)` returns more attributes from the validation texts.
    `drawn` are the positions of the texts of all steps in their order, if they are not
    epochs over all texts.
    """

    y: Any
    labels: np.ndarray
    attributes: dict
    n_outputs: int
    criterion: type
    stratify: np.ndarray | None = None
    min_valid_texts: int = 1  # fewest that a validation score is defined for
    criterion_params: dict = field(default_factory=dict)  # arrays by name
    drawn: np.ndarray | None = None
    tune: Callable | None = None


def train(model, texts, objective, sample_weight, *, resume, n_epochs):
    """Train a network; return the fitted attributes of the estimator `model`.

    `resume` starts from the present weights. `model` itself does not change.
    """
    from ._training import History, copy_trained, layer_changes, run_epochs

    weights = check_sample_weight(sample_weight, texts, ensure_non_negative=True)
    seed = base_seed(model.random_state)
    parts = objective.drawn, None
    if objective.drawn is None:
        parts = split(model, len(texts), objective, seed)
    scored = parts[1] if model.early_stopping else None
    weights = _normalized(weights, parts[0])
    n_batches = -(-len(parts[0]) // model.batch_size)
    patience = model.n_iter_no_change
    if n_epochs == "auto":
        n_epochs = auto_epochs(n_batches, objective.n_outputs)
        patience *= -(-n_epochs // 3)
    n_steps = n_epochs * n_batches
    before = model.history_ if resume else []
    score = None
    if scored is not None:
        score = _validation_score(model, objective, texts, scored)
    history = History(score, model.tol, patience, n_steps, model.verbose, before)
    recipe = recipe_of(model, objective)
    device = choose_device(model.device)
    with (
        fork_torch(round_seed(seed, len(before), "train")),
        explained_memory(
            f"'batch_size' must fit into the memory of {str(device)!r}, got "
            f"{model.batch_size} with max_length={model.max_length} (%s). Pass a "
            "smaller one, a smaller 'max_length', or freeze more layers."
        ),
    ):
        net = make_net(model, recipe, device, n_epochs, n_steps, history)
        network = net.module_
        if resume:
            _continue(model, network)
        network.frozen_in_eval = bool(model.cache_frozen)
        start = copy_trained(network)
        batches = read_with(model, net, recipe).batches(texts)
        batches.warn_of_cuts(stacklevel=6)  # the caller of fit
        run_epochs(net, batches, (parts[0], scored), objective.y, weights)
    _refuse_diverged(model, net)
    network.eval()
    network.frozen_in_eval = False
    # Only the result of the training is kept: the next one starts afresh.
    net.train_split = history.score = None
    net.optimizer_.state.clear()
    with one_torch_thread():
        changes = layer_changes(network, start)
    if objective.tune is not None:
        texts, valid = [texts[i] for i in parts[1]], parts[1]
        outputs = read_with(model, net, recipe).outputs(texts)
        objective.attributes |= objective.tune(outputs, objective.labels[valid])
    return {
        **objective.attributes,
        "net_": net,
        "history_": [*before, *history.epochs],
        "layer_changes_": changes,
        "_recipe": recipe,
    }


def read_with(model, net, recipe):
    """Return a net with the current parameters of its estimator."""
    built = recipe["module"]
    return FittedText(
        net,
        source=(built["model"], built["revision"]),
        max_length=model.max_length,
        batch_size=model.batch_size,
        cache_frozen=model.cache_frozen,
    )


def auto_epochs(n_batches, n_outputs):
    """Return the epochs of `max_epochs="auto"`, given the steps of one."""
    return max(3, -(-max(_MIN_STEPS, _STEPS_PER_OUTPUT * n_outputs) // n_batches))


def recipe_of(model, objective):
    """Return what the network is built from, whatever becomes of the parameters."""
    module = {
        "model": os.fspath(model.model),
        "revision": model.revision,
        "head": model.head,
        "head_params": copy.deepcopy(model.head_params),
        "n_outputs": objective.n_outputs,
        "dropout": model.dropout,
        "pooling": model.pooling,
        "layers": copy.deepcopy(model.layers),
        "freeze": model.freeze,
        "layers_attr": model.layers_attr,
    }
    recipe = {"module": module, "criterion": objective.criterion}
    if objective.criterion_params:
        recipe["criterion_params"] = objective.criterion_params
    return recipe


def make_net(model, recipe, device, n_epochs=1, n_steps=1, history=None):
    """Build the net; its network starts from the pretrained weights."""
    import torch

    from ._network import TextNetwork
    from ._training import Net, optimization

    net_params = model.net_params or {}
    if "callbacks" in net_params:
        raise ValueError(
            "'net_params' must leave the callbacks to the parameter of that name, "
            "got some. Pass callbacks=[...] instead."
        )
    callbacks = copy.deepcopy(list(model.callbacks or ()))
    if history is not None:
        callbacks.insert(0, ("history", history))
    built = recipe["module"]
    width = open_checkpoint(built["model"], built["revision"]).width
    params, more = optimization(model, width, n_steps)
    params |= {
        "criterion": recipe["criterion"],
        "criterion__reduction": "none",
        "max_epochs": n_epochs,
        "batch_size": model.batch_size,
        "iterator_train__shuffle": True,
        "iterator_valid__batch_size": 4 * model.batch_size,
        "train_split": None,
        "predict_nonlinearity": None,
        "verbose": 0,
        "device": str(device),
        "callbacks": [*more, *callbacks],
        "callbacks__print_log": None,
    }
    settings = {**built, "bfloat16": bfloat16(model.precision, device)}
    params |= {f"module__{name}": value for name, value in settings.items()}
    for name, value in recipe.get("criterion_params", {}).items():
        params[f"criterion__{name}"] = torch.tensor(value, dtype=torch.float32)
    return Net(TextNetwork, **{**params, **net_params}).initialize()


def bfloat16(precision, device):
    """Whether training runs in bfloat16; "auto" uses it on a GPU only."""
    import torch

    if precision == "auto":
        return device.type == "cuda" and (
            choose_precision("auto", device) == torch.bfloat16
        )
    return precision == "bfloat16"


def _continue(model, network):
    """Copy the weights trained so far to a new network."""
    before = model.net_.module_
    if network.checkpoint_digest != before.checkpoint_digest:
        raise ValueError(
            "'model' must be the one that training began with, got "
            f"{os.fspath(model.model)!r} with other weights. Call fit with "
            "warm_start=False to start again."
        )
    # Frozen weights count as pretrained: the cache shares their activations, and no
    # pickle holds them.
    trained = {name for name, p in before.named_parameters() if p.requires_grad}
    frozen = {name for name, p in network.named_parameters() if not p.requires_grad}
    if trained & frozen:
        raise ValueError(
            "'freeze' must leave free what training has changed before, got "
            f"{model.freeze!r}, which freezes {min(trained & frozen)!r} and more. "
            "Freeze no more than before, or call fit with warm_start=False to "
            "start again."
        )
    try:
        network.load_state_dict(before.state_dict())
    except RuntimeError as exc:
        raise ValueError(
            "'head' and 'head_params' must be those that training began with, got "
            f"{model.head!r} and {model.head_params!r}, which make other layers. "
            "Call fit with warm_start=False to start again."
        ) from exc


def _refuse_diverged(model, net):
    """Raise if training has left weights that are infinite or NaN."""
    import torch

    trained = [p for p in net.module_.parameters() if p.requires_grad]
    if trained and not torch.stack([p.isfinite().all() for p in trained]).all():
        raise ValueError(
            f"'lr' must be small enough for the training to converge, got "
            f"{net.lr} (head_lr={model.head_lr}), with which weights became "
            "infinite or NaN. Pass a smaller one, or a smaller 'max_grad_norm'."
        )


def split(model, n, objective, seed):
    """Return the positions to train on and, if necessary, to validate on, or None."""
    positions = np.arange(n)
    if not model.early_stopping and objective.tune is None:
        return positions, None
    name, off = "early_stopping", "early_stopping=None"
    if not model.early_stopping:
        name, off = "thresholds", "thresholds=0.5"
    from sklearn.model_selection import train_test_split

    try:
        train, valid = train_test_split(
            positions,
            test_size=model.validation_fraction,
            stratify=objective.stratify,
            random_state=round_rng(seed, 0, "validation").integers(2**31),
        )
    except ValueError as exc:
        raise ValueError(
            f"{name!r} must have texts to validate on, got {n} texts and "
            f"validation_fraction={model.validation_fraction} ({exc}) Pass more "
            f"texts, another fraction, or {off}."
        ) from exc
    if len(valid) < objective.min_valid_texts:
        raise ValueError(
            f"'validation_fraction' must leave {objective.min_valid_texts} texts to "
            f"score, got {model.validation_fraction} of {n} texts. Pass more texts, "
            "a larger fraction, or early_stopping=None."
        )
    return np.sort(train), np.sort(valid)


def _validation_score(model, objective, texts, valid):
    """Return the function that scores outputs (m, k) on the validation texts."""
    import torch

    by_default = isinstance(model.early_stopping, bool | np.bool_)
    scored = type(model)(**model.get_params(deep=False))
    vars(scored).update(
        objective.attributes, net_=None
    )  # it predicts from given outputs
    scorer = check_scoring(scored, None if by_default else model.early_stopping)
    texts, labels = [texts[i] for i in valid], objective.labels[valid]

    def score(outputs):
        scored._outputs = lambda X: outputs.numpy()
        return float(scorer(scored, texts, labels))

    if not by_default:  # fail before training, not after its first epoch
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                score(torch.zeros(len(texts), objective.n_outputs))
        except Exception as exc:
            raise ValueError(
                f"'early_stopping' must be a scorer that is defined for the "
                f"targets, got {model.early_stopping!r}, which fails on the "
                f"validation texts ({type(exc).__name__}: {exc}). Pass another "
                "scorer, or True."
            ) from exc
    return score


def _normalized(weights, train):
    """Scale weights to mean 1 over the training part, so that `lr` means the same."""
    import torch

    if not weights[train].any():
        raise ValueError(
            "'sample_weight' must be above 0 for one of the texts to train on, got "
            "only 0. Drop the argument to weight all texts alike."
        )
    return torch.from_numpy(weights / weights[train].mean()).float()
