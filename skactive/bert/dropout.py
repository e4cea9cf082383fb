"""Monte-Carlo dropout: draws of the class outputs, one model per draw."""

from __future__ import annotations

from contextlib import contextmanager

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

__all__ = ["SharedMasks", "dropout_on"]


@contextmanager
def dropout_on(module):
    """Put a whole module into training mode, then every part back as it was.

    The whole of it, because attention asks its own block, not a dropout module,
    whether to drop. Batch normalisation stays in evaluation mode: it would mix texts.

    Parameters
    ----------
    module : torch.nn.Module
    """
    modes = {part: part.training for part in module.modules()}
    try:
        for part in modes:
            part.training = not isinstance(part, torch.nn.modules.batchnorm._NormBase)
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


class SharedMasks(TorchFunctionMode):
    """Dropout whose masks are those of one draw, the same for every text and batch.

    While it is active, each dropout of a forward pass, that of attention included,
    takes a mask that depends on the seed, on which dropout of the pass it is, and on
    the place in the text: not on the batch. So all texts meet the same model.

    Parameters
    ----------
    seed : int
        Of the draw.
    max_length : int
        Most tokens of a text.

    Examples
    --------
    >>> import torch
    >>> from skactive.bert.dropout import SharedMasks
    >>> x = torch.ones(3, 4)
    >>> with SharedMasks(seed=0, max_length=8) as masks:
    ...     masks.begin_pass()
    ...     dropped = torch.nn.functional.dropout(x, 0.5)
    >>> bool((dropped == dropped[0]).all())
    True
    """

    def __init__(self, seed, max_length):
        super().__init__()
        self.seed, self.max_length = seed, max_length
        self._masks = {}
        self.begin_pass()

    def begin_pass(self, n_texts=None):
        """Say that the next dropout is the first of a forward pass.

        Parameters
        ----------
        n_texts : int or None, default=None
            In the batch; tells rows of texts from rows of a table of weights.
        """
        self._call = 0
        self._n_texts = n_texts

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is functional.dropout:
            return self._dropout(*args, **kwargs)
        if func is functional.scaled_dot_product_attention:
            return self._attention(*args, **kwargs)
        return func(*args, **kwargs)

    def _dropout(self, input, p=0.5, training=True, inplace=False):
        if not training or p == 0.0:
            return input
        return input * self._mask(input, p)

    def _attention(
        self, query, key, value, attn_mask=None, dropout_p=0.0, scale=None, **kwargs
    ):
        if dropout_p == 0.0:
            return functional.scaled_dot_product_attention(
                query, key, value, attn_mask=attn_mask, scale=scale, **kwargs
            )
        if kwargs.get("is_causal") or kwargs.get("enable_gqa"):
            raise NotImplementedError(
                "mc_dropout='full' does not know causal or grouped attention; use "
                "mc_dropout='head'."
            )
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        scores = query @ key.transpose(-2, -1) * scale  # (b, heads, t, t)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        elif attn_mask is not None:
            scores = scores + attn_mask
        weights = scores.softmax(dim=-1)
        return (weights * self._mask(weights, dropout_p)) @ value

    def _mask(self, x, p):
        """Mask for one call, without the batch's dimension, scaled by 1 / (1 - p)."""
        call, self._call = self._call, self._call + 1
        shape, places = list(x.shape), ()
        if x.ndim == 4:  # attention (b, heads, t, t)
            shape, places = shape[1:], (1, 2)
        elif x.ndim == 3:  # states (b, t, d)
            shape, places = shape[1:], (0,)
        elif x.ndim == 2 and self._n_texts in (None, x.shape[0]):  # features (b, d)
            shape = shape[1:]
        if call not in self._masks:
            full = list(shape)
            for place in places:
                full[place] = max(self.max_length, shape[place])
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + call)
            self._masks[call] = torch.rand(full, generator=generator) >= p
        mask = self._masks[call]
        for place in places:
            mask = mask.narrow(place, 0, shape[place])
        return mask.to(device=x.device, dtype=x.dtype) / (1.0 - p if p < 1 else 1.0)
