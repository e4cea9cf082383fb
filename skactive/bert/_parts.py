"""Training on all cores: the layers of an encoder over fixed parts of a batch."""

import math
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from .._encoders._encoder import PackedEncoder, linear
from .._utils._repeatable import count_torch_threads, in_torch_threads
from ._draws import SharedMasks

# Fewest tokens of one of two and of more parts: fewer make slow products.
_TOKENS_OF_TWO, _TOKENS = 96, 192
_CPU = torch.device("cpu")


def cut_evenly(lengths):
    """Return the positions of each part of a batch: about the same number of tokens.

    The number of parts, a power of two, depends on nothing but the `lengths` (n,).
    """
    lengths = np.asarray(lengths)
    n_tokens = lengths.sum()
    n_parts = 2 ** int(np.log2(max(1, n_tokens // _TOKENS)))
    n_parts = max(n_parts, 1 + (n_tokens >= 2 * _TOKENS_OF_TWO))
    parts, sizes = [[] for _ in range(n_parts)], np.zeros(n_parts)
    for i in np.argsort(-lengths, kind="stable").tolist():
        smallest = sizes.argmin()
        parts[smallest].append(i)
        sizes[smallest] += lengths[i]
    return [part for part in parts if part]


def each_in_parts(encoder, batch, *, start, stop, entering, dtype):
    """Return the states that :meth:`PackedEncoder.each` yields, with gradients.

    Products have the type `dtype`. Each part of the batch goes forward and backward in
    one thread, with dropout from a generator of its own, and gradients are added in the
    order of the parts: so the number of threads does not change a bit.
    """
    states = PackedEncoder(encoder).embed(batch) if entering is None else entering
    trained = [
        parameter
        for name, parameter in encoder.encoder.named_parameters()
        if parameter.requires_grad
        and (name[:6] != "layer." or start <= int(name.split(".")[1]) < stop)
    ]
    lengths = batch["lengths"].tolist()
    run = _Run(encoder, states, lengths, trained, (start, stop), dtype)
    return [states, *_Function.apply(run, states, *trained)]


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, states, *trained):
        ctx.run = run
        ctx.set_materialize_grads(False)
        return run.forward(states)

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients):
        return None, *ctx.run.backward(gradients)


class _Part(SharedMasks):
    """A part of a batch: what it draws, and what its gradients need.

    Gradients of weights are computed for all parts together, so the weights of `layers`
    are none that require any; `products` lists each layer that trains with the inputs
    and outputs of its product.
    """

    def __init__(self, positions, lengths, seed, layers):
        super().__init__(seed)
        self.positions, self.lengths = positions, [lengths[i] for i in positions]
        self.generator = torch.Generator().manual_seed(seed)
        self.layers, self.products, self.leaving = layers, [], []

    def _mask(self, x, p):
        """Return a mask for dropout, scaled; 16 random bits decide on each number."""
        n_dropped = round(p * 2**16)
        if n_dropped == 2**16:
            return torch.zeros_like(x)
        bits = torch.empty(math.ceil(x.numel() / 4), dtype=torch.int64)
        bits.random_(-(2**63), None, generator=self.generator)
        bits = bits.view(torch.int16)[: x.numel()].view(x.shape)
        return (bits >= n_dropped - 2**15).to(x.dtype).div_(1 - n_dropped / 2**16)

    def linear(self, layer, x):
        """Return the outputs of a linear layer; gradients reach `x` only."""
        x = x.to(self.layers[layer].weight.dtype)
        out = linear(self.layers[layer], x)
        trains = any(each.requires_grad for each in layer.parameters())
        if torch.is_grad_enabled() and trains:
            out.requires_grad_()
            self.products.append((layer, x, out))
        return out

    def gather(self, texts):
        """Concatenate what `texts` has for the texts of the part."""
        return torch.cat([texts[i] for i in self.positions])


class _Run:
    """A forward and a backward pass over the parts of a batch."""

    def __init__(self, encoder, states, lengths, trained, layers, dtype):
        self.encoder, self.lengths, self.trained = encoder, lengths, trained
        (self.start, self.stop), self.enters = layers, states.requires_grad
        modules = list(encoder.encoder.modules())
        frozen = {
            layer: SimpleNamespace(
                weight=layer.weight.detach().to(dtype),
                bias=None if layer.bias is None else layer.bias.detach().to(dtype),
            )
            for layer in modules
            if isinstance(layer, nn.Linear)
        }
        parts, seeds = cut_evenly(lengths), [0] * len(lengths)
        # Without dropout the generator stays where it is, as on padded batches.
        if any(isinstance(m, nn.Dropout) and m.training and m.p for m in modules):
            seeds = torch.randint(2**62, (len(parts),)).tolist()
        self.parts = [
            _Part(positions, lengths, seed, frozen)
            for positions, seed in zip(parts, seeds, strict=False)
        ]

    def forward(self, states):
        """Return the states after each layer."""
        texts = states.split(self.lengths)

        def run(group):
            with torch.enable_grad(), torch.autocast("cpu", enabled=False):
                enter(group)

        def enter(group):
            for part in group:
                part.entering = part.gather(texts).requires_grad_(self.enters)
                part.passes = PackedEncoder(self.encoder, part.linear).each(
                    {"lengths": torch.tensor(part.lengths)},
                    start=self.start,
                    stop=self.stop,
                    entering=part.entering,
                )
                next(part.passes)
            # Layer by layer, while the weights of one are in the processor's cache.
            for _ in range(self.start, self.stop):
                for part in group:
                    with part:
                        part.leaving.append(next(part.passes))

        n_groups = count_torch_threads()
        groups = [self.parts[i::n_groups] for i in range(n_groups)]
        for _ in in_torch_threads(run, filter(None, groups), _CPU):
            pass
        leaving = zip(*(part.leaving for part in self.parts), strict=True)
        return tuple(self._join([out.detach() for out in outs]) for outs in leaving)

    def backward(self, gradients):
        """Return the gradients of the entering states and of what is trained."""
        texts = [None if g is None else g.split(self.lengths) for g in gradients]
        layers = [layer for layer, *_ in self.parts[0].products]
        weights = {p for layer in layers for p in layer.parameters()}
        others = [p for p in self.trained if p not in weights]
        n_wanted = len(layers) + len(others) + self.enters

        def run(part):
            pairs = [
                (out, part.gather(gradient))
                for out, gradient in zip(part.leaving, texts, strict=True)
                if gradient is not None and out.requires_grad
            ]
            if not pairs:  # nothing below the output is trained
                return (None,) * n_wanted
            outs, out_grads = zip(*pairs, strict=True)
            made = [out for *_, out in part.products]
            wanted = [*made, *others, *([part.entering] if self.enters else [])]
            grads = torch.autograd.grad(outs, wanted, out_grads, allow_unused=True)
            part.passes = part.leaving = part.entering = None
            return grads

        pieces = list(zip(*in_torch_threads(run, self.parts, _CPU), strict=True))
        entering = self._join(pieces.pop()) if self.enters else None
        sums = {
            p: _sum(each) for p, each in zip(others, pieces[len(layers) :], strict=True)
        }
        tasks = [
            (layer, [part.products[i][1] for part in self.parts], pieces[i])
            for i, layer in enumerate(layers)
        ]
        for done in in_torch_threads(_weigh, tasks, _CPU):
            sums |= done
        return entering, *(sums.get(p) for p in self.trained)

    def _join(self, pieces):
        """Concatenate the (t, d) pieces of the parts in the order of the texts."""
        texts = [None] * len(self.lengths)
        for part, piece in zip(self.parts, pieces, strict=True):
            for i, text in zip(part.positions, piece.split(part.lengths), strict=True):
                texts[i] = text
        return torch.cat(texts)


@torch.no_grad()
def _weigh(task):
    """Return the gradients of a linear layer, from inputs and gradients of outputs."""
    layer, inputs, gradients = task
    pairs = [(x, g) for x, g in zip(inputs, gradients, strict=True) if g is not None]
    if not pairs:
        return {}
    x, g = map(torch.cat, zip(*pairs, strict=True))
    sums = {layer.weight: linear(SimpleNamespace(weight=x.T, bias=None), g.T).float()}
    if layer.bias is not None:
        sums[layer.bias] = g.sum(dim=0, dtype=torch.float32)
    return sums


def _sum(gradients):
    """Add tensors in their order, in float32; None if there are none."""
    total = None
    for gradient in gradients:
        if gradient is not None:
            total = gradient.float() if total is None else total.add_(gradient)
    return total
