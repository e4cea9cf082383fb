"""Posterior samples of a trained network: Monte-Carlo dropout or normal outputs."""

import inspect
import math
import threading
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from .._utils._chunks import chunk_size, chunks
from .._utils._repeatable import (
    fork_torch,
    in_torch_threads,
    mix_bits,
    one_torch_thread,
    round_seed,
)
from ._heads import HEADS, DenseHead

# Bytes of a chunk of draws; on the processor a chunk fits into its cache.
_CHUNK = {"cpu": 2**20}
_LARGE_CHUNK = 2**26
_ROWS = 256  # fewest rows of a chunk: fewer make slow products


def draw_outputs(fitted, texts, mc_dropout, n_draws, seed, link, *, relative=False):
    """Return (n, t, k) draws of the outputs, float64.

    `link` is applied to chunks (..., k) of outputs; it returns float64 tensors of the
    same shape on the processor. `relative` means that it depends on the differences
    of the k outputs only.
    """
    seed = round_seed(seed, 0, "draws")
    if mc_dropout == "gaussian":
        return _draw_normal(fitted, texts, n_draws, seed, link, relative)
    at_once = getattr(fitted.network.head, "draws_at_once", False)
    if mc_dropout == "head" and at_once:
        return _draw_from_head(fitted, texts, n_draws, seed, link, relative)
    passes = _whole_passes if mc_dropout == "full" else _head_passes
    return _draw_passes(fitted, texts, n_draws, seed, link, passes)


def _draw_from_head(fitted, texts, n_draws, seed, link, relative):
    """Draw with dropout in the head: all draws by one product."""
    head = fitted.network.head
    masks = head.draw_masks(n_draws, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        if type(head).draw is DenseHead.draw:
            draw = head.fold(masks, relative=relative)
        else:
            draw = partial(head.draw, masks=masks)
    width = max(linear.out_features for linear in head.dense)
    device = next(head.parameters()).device
    return _draw_by_chunks(fitted, texts, draw, 8 * n_draws * width, device, link)


def _draw_normal(fitted, texts, n_draws, seed, link, relative):
    """Draw from the normal distribution of the outputs under dropout."""
    head = fitted.network.head
    if not getattr(head, "is_linear", False):
        raise ValueError(
            f"'mc_dropout' must be 'head' or 'full' for a {type(head).__name__}, "
            "got 'gaussian': outputs are normal where dropout is followed by one "
            "linear layer and nothing else. Pass head='linear', or mc_dropout="
            "'head'."
        )
    linear = head.dense[0]
    layer = GaussianOutputs(linear.weight, linear.bias, head.dropout.p, relative)
    points = normal_points(n_draws, layer.size, seed)
    draw = partial(layer.draw, points=points)
    row_bytes = 8 * layer.size * (n_draws + 4 * layer.size)
    return _draw_by_chunks(fitted, texts, draw, row_bytes, torch.device("cpu"), link)


def _draw_by_chunks(fitted, texts, draw, row_bytes, device, link):
    """Compute the inputs of the head, then call `draw` on chunks of them."""
    summaries = fitted.summaries(texts)
    size = chunk_size(row_bytes, _CHUNK.get(device.type, _LARGE_CHUNK))
    out = None

    @torch.no_grad()
    def draw_rows(rows):
        # A copy, because torch does not know that the cached rows are read-only.
        return rows, link(draw(torch.tensor(summaries[rows], device=device)))

    with fitted.explained_memory():
        tasks = chunks(len(summaries), max(size, _ROWS))
        for rows, outputs in in_torch_threads(draw_rows, tasks, device):
            if out is None:
                out = np.empty((len(summaries), *outputs.shape[1:]))
            out[rows] = outputs.numpy()
    return out


def _draw_passes(fitted, texts, n_draws, seed, link, passes):
    """Run the network, or a head that cannot draw by itself, once per draw."""
    seeds = [round_seed(seed, t, "draw") for t in range(n_draws)]
    # Frozen layers have dropout too: a draw of the whole network starts from tokens.
    from_tokens = passes is _whole_passes
    out = None
    with fork_torch(seed), torch.no_grad(), fitted.explained_memory():
        batches = fitted.batches(texts, from_tokens=from_tokens)
        for positions, t, rows in passes(fitted.network, batches, seeds, link):
            if out is None:
                out = np.empty((len(texts), n_draws, rows.shape[1]))
            out[positions, t] = rows
    return out


def _whole_passes(network, batches, seeds, link):
    """Run the whole network under each draw."""

    @torch.no_grad()
    def run(task):
        positions, t, masks = task
        inputs = batches.take(positions)
        with masks:
            masks.begin("encoder", len(positions))
            states = network.represent(**inputs)
            masks.begin("head", len(positions))
            outputs = network.decode(*states)
        return positions, t, link(outputs).numpy()

    def tasks():
        for t, seed in enumerate(seeds):
            masks = SharedMasks(seed)
            for positions in batches.by_length():
                yield positions, t, masks

    with dropout_on(network):
        if network.takes_packed and type(network.head) in HEADS.values():
            yield from in_torch_threads(run, tasks(), batches.device)
        else:  # it may draw from torch's generator, in an order that must not vary
            with one_torch_thread():
                yield from map(run, tasks())


def _head_passes(network, batches, seeds, link):
    """Run the encoder once, and the head under each draw."""
    draws = [SharedMasks(seed) for seed in seeds]

    @torch.no_grad()
    def run(positions):
        return positions, network.represent(**batches.take(positions))

    tasks = batches.by_length()
    for positions, states in in_torch_threads(run, tasks, batches.device):
        for t, masks in enumerate(draws):
            with one_torch_thread():
                with dropout_on(network.head), masks:
                    masks.begin("head", len(positions))
                    outputs = network.decode(*states)
                rows = link(outputs).numpy()
            yield positions, t, rows


_UNKNOWN = frozenset(
    {
        functional.alpha_dropout,
        functional.dropout1d,
        functional.dropout2d,
        functional.dropout3d,
        functional.feature_alpha_dropout,
        functional.multi_head_attention_forward,
    }
)


@contextmanager
def dropout_on(module):
    """Put a whole module into training mode, then restore every part.

    All parts, because attention asks its own block, not a dropout module, whether to
    drop. Batch normalization stays in evaluation mode: it would mix texts.
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
    """Dropout with the masks of one draw, the same for every text and batch.

    While it is active, each dropout of a forward pass, also of attention, uses a mask
    that depends on the seed, the number of the dropout in the pass, and the position in
    the text. The mask does not depend on the batch, so the same model sees all texts.
    Several threads may use it at once, each for its own pass.
    """

    def __init__(self, seed):
        super().__init__()
        self.seed = seed
        self._masks = {}  # (part, number of the dropout in it) -> mask
        self._pass = threading.local()

    def begin(self, part, n_texts):
        """Declare that the next dropout is the first of a part of a forward pass.

        `part` is "encoder" or "head". In the head two dimensions are features of texts;
        in the encoder they are a table of weights, such as that of relative positions.
        """
        self._pass.part, self._pass.n_texts, self._pass.call = part, n_texts, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is functional.dropout:
            return self._dropout(*args, **kwargs)
        if func is functional.scaled_dot_product_attention:
            return self._attention(*args, **kwargs)
        if func in _UNKNOWN:
            _refuse_dropout(func, args, kwargs)
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
        if attn_mask is not None:
            # As in torch, a position that attends to nothing, such as padding, gets 0.
            nowhere = (scores == float("-inf")).all(dim=-1, keepdim=True)
            weights = weights.masked_fill(nowhere, 0.0)
        return (weights * self._mask(weights, dropout_p)) @ value

    def _mask(self, x, p):
        """Return the mask of one call, without the batch's dimension, scaled."""
        part, n_texts = self._pass.part, self._pass.n_texts
        key = (part, self._pass.call)
        self._pass.call += 1
        if x.ndim < 3 and part == "encoder":
            shape = x.shape
        elif len(x) == n_texts:
            shape = x.shape[1:]
        else:
            raise NotImplementedError(
                f"draws by dropout need the texts as the first dimension, got states "
                f"of shape {tuple(x.shape)} for {n_texts} texts. Use "
                "mc_dropout='head' with a head that keeps them there."
            )
        mask = self._masks.get(key)
        if mask is None or any(np.less(mask.shape, shape)):
            # The mask of a longer text begins with the old mask.
            old_shape = shape if mask is None else mask.shape
            larger = np.maximum(old_shape, shape)
            seed = [self.seed, part == "head", key[1]]
            mask = torch.from_numpy(_draw_mask(seed, larger, p)).to(x.device)
            self._masks[key] = mask
        mask = mask[tuple(slice(size) for size in shape)]
        return mask.to(x.dtype) / (1.0 - p if p < 1 else 1.0)


def _refuse_dropout(func, args, kwargs):
    bound = inspect.signature(func).bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = bound.arguments
    if arguments["training"] and arguments.get("dropout_p", arguments.get("p")):
        raise NotImplementedError(
            f"draws by dropout need masks that all texts share, which "
            f"torch.nn.functional.{func.__name__} does not have here. Use "
            "torch.nn.Dropout."
        )


def _draw_mask(seed, shape, p):
    """Draw a mask whose value at an index does not depend on the shape.

    The index is hashed, so a mask can grow with the texts and be no larger than they
    need: attention over thousands of tokens would take gigabytes.
    """
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    for size in shape:
        state = mix_bits(state[..., None], np.arange(1, size + 1, dtype=np.uint64))
    return (state[0] >> np.uint64(11)) >= np.uint64(math.ceil(p * 2**53))


_TIE = 1e-12  # of the mean variance, added to each so that a factor exists


class GaussianOutputs:
    """Draws of the outputs of a linear layer, each text's from its own distribution.

    With masks m_j of mean 1 and variance r = p / (1 - p), the outputs W (m x) + b have
    the mean W x + b and the covariance r sum_j x_j^2 w_j w_j^T, exactly. Sums of many
    terms are nearly normal, so draws from the normal distribution of these moments
    replace draws of masks (Wang and Manning 2013). They take k numbers per text instead
    of d.

    The normal numbers behind the draws are the same for every text, so similar texts
    have similar draws; but the draws of two texts together are not those of one model.
    `relative` means that only the differences of outputs matter, as for a softmax: the
    first output is then 0, and one dimension less is to be covered.
    """

    def __init__(self, weight, bias, rate, relative=False):
        # In double precision, in which rounding leaves the covariances positive.
        weight = weight.detach().cpu().double()
        bias = bias.detach().cpu().double()
        self.relative = relative and len(weight) > 1
        if self.relative:
            weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
        self.weight, self.bias = weight, bias
        self.size = len(weight)
        self.rows, self.columns = torch.tril_indices(self.size, self.size)
        products = weight[self.rows] * weight[self.columns]  # (pairs, d)
        self.products = rate / (1 - rate) * products

    def moments(self, x):
        """Return mean (b, q) and covariance (b, q, q) of the outputs for `x` (b, d).

        With `relative`, q is k - 1 and they are those of the differences.
        """
        x = x.double()
        covariance = x.new_empty(len(x), self.size, self.size)
        mean = torch.addmm(self.bias, x, self.weight.T)
        half = (x * x) @ self.products.T
        covariance[:, self.rows, self.columns] = half
        covariance[:, self.columns, self.rows] = half
        return mean, covariance

    def draw(self, x, points):
        """Return (b, t, k) draws for `x` (b, d) and standard normal `points` (t, q)."""
        mean, covariance = self.moments(x)
        variances = covariance.diagonal(dim1=1, dim2=2)
        tie = _TIE * variances.mean(dim=1, keepdim=True) + np.finfo(np.float64).tiny
        variances += tie
        factor = torch.linalg.cholesky_ex(covariance).L.float()
        points = torch.from_numpy(points.T.astype(np.float32))
        first = int(self.relative)
        outputs = factor.new_zeros(len(x), first + self.size, points.shape[1])
        outputs[:, first:] = factor @ points  # (b, q, q) and (q, t)
        outputs[:, first:] += mean.float()[:, :, None]
        return outputs.transpose(1, 2)


def normal_points(n, q, seed):
    """Return (n, q) standard normal points, more evenly spread than by chance.

    They are a scrambled Sobol sequence. If n > q they are shifted and rotated so that
    their mean is 0 and their covariance the identity, exactly: so all draws made with
    them have exactly the mean and covariance that they should.
    """
    from scipy.stats import qmc

    rng = np.random.default_rng(seed)
    engine = qmc.Sobol(q, seed=rng)
    normal = qmc.MultivariateNormalQMC(np.zeros(q), engine=engine, seed=rng)
    points = normal.random(2 ** (n - 1).bit_length())[:n]
    if n > q:
        points -= points.mean(axis=0)
        factor = np.linalg.cholesky(points.T @ points / n)
        points = np.linalg.solve(factor, points.T).T
    return points
