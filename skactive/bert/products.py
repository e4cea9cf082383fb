"""Linear layers by oneDNN, where torch would take a slower library."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch.autograd.function import once_differentiable

__all__ = ["linear"]


def linear(layer, x):
    """Compute what a linear layer gives, gradients included.

    On a processor torch leaves products of float32 to MKL, which was measured at half
    the speed of oneDNN on processors of AMD; for bfloat16 it asks oneDNN, but adds the
    bias before, in a pass of its own. This calls oneDNN's linear layer itself, as
    compiled models do, where it is there.

    Parameters
    ----------
    layer : torch.nn.Linear
    x : torch.Tensor of shape (n, d_in)

    Returns
    -------
    y : torch.Tensor of shape (n, d_out)
        The layer's own result but for the order of the sums.

    Examples
    --------
    >>> import torch
    >>> from skactive.bert.products import linear
    >>> layer = torch.nn.Linear(3, 2)
    >>> x = torch.ones(4, 3)
    >>> torch.allclose(linear(layer, x), layer(x))
    True
    """
    weight, bias = layer.weight, layer.bias
    direct = (
        x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype
        and not torch.is_autocast_enabled("cpu")
        and torch.backends.mkldnn.enabled
        and _has_onednn(x.dtype)
    )
    if not direct:
        return layer(x)
    trains = any(t.requires_grad for t in (x, weight, bias) if t is not None)
    if torch.is_grad_enabled() and trains:
        return _Linear.apply(x, weight, bias)
    return _product(x, weight, bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        needs_x, needs_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if needs_weight else None, weight if needs_x else None)
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        gradient = gradient.contiguous()
        return (
            _product(gradient, weight.T) if needs_x else None,
            _product(gradient.T, x.T) if needs_weight else None,
            gradient.sum(dim=0) if needs_bias else None,
        )


def _product(x, weight, bias=None):
    """Compute x W' + bias; strides do not matter."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


@lru_cache
def _has_onednn(dtype):
    """Try it: the operator is not in every build, nor a type on every processor."""
    if dtype not in (torch.float32, torch.bfloat16):
        return False
    x, weight, bias = (torch.full(s, 2.0, dtype=dtype) for s in ((2, 3), (4, 3), (4,)))
    try:
        return bool((_product(x, weight, bias) == 14.0).all())
    except (AttributeError, RuntimeError):
        return False
