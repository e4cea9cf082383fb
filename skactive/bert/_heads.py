"""Heads: networks that turn an encoder's states into one output per class."""

import inspect
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from ._encoder import linear


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
        """Return the (b, m) inputs of the first linear layer, before its dropout."""
        return x

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the (b, k) outputs."""
        return self.dense[-1](self.dropout(self._hidden(self.summarize(x, mask))))

    def embed(self, summary: torch.Tensor) -> torch.Tensor:
        """Return the (b, m) inputs of the last linear layer, before its dropout."""
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

        Returns a tensor (n_draws, m) of 0 and 1 / (1 - rate) for the input of each
        linear layer. `generator` is a `torch.Generator` on the CPU.
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
        """Return a function from :meth:`summarize`'s (b, m) to outputs (b, n_draws, k).

        Masking an input is masking the columns of the weights: the masks of all draws
        are folded into one matrix for the first layer. `relative` means that only the
        differences of outputs matter, as for a softmax; one linear layer then needs one
        product less, and the first output is 0.
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
        """Return the (b, n_draws, k) outputs under every set of masks at once.

        `summary` (b, m) is from :meth:`summarize` in evaluation mode, `masks` from
        :meth:`draw_masks`.
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


def make_head(head, in_features, n_outputs, dropout, params=None):
    """Build a head by name or class, with `params` as additional arguments."""
    if isinstance(head, nn.Module):
        raise TypeError(
            f"'head' must be a name or a class, got an instance of "
            f"{type(head).__name__}. Pass the class, and its arguments as head_params."
        )
    if isinstance(head, str):
        if head not in HEADS:
            raise ValueError(
                f"'head' must be one of {', '.join(map(repr, HEADS))} or an nn.Module "
                f"class, got {head!r}."
            )
        head = HEADS[head]
    if not (inspect.isclass(head) and issubclass(head, nn.Module)):
        raise TypeError(
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
