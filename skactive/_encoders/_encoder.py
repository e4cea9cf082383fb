"""Encoders of transformers, run on packed texts: without padding."""

from functools import lru_cache

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

from .._utils._repeatable import give_way
from ._tokens import runs, single_tokens

# Post-normalized layers over absolute positions, all built of the same parts. MPNet
# names them otherwise and adds a bias for relative positions.
MODELS = frozenset(
    {
        "transformers.models.bert.modeling_bert.BertModel",
        "transformers.models.camembert.modeling_camembert.CamembertModel",
        "transformers.models.electra.modeling_electra.ElectraModel",
        "transformers.models.mpnet.modeling_mpnet.MPNetModel",
        "transformers.models.roberta.modeling_roberta.RobertaModel",
        "transformers.models.xlm_roberta.modeling_xlm_roberta.XLMRobertaModel",
    }
)
_BLOCKS = frozenset(
    getattr(torch.nn, name)
    for name in ("Dropout", "Embedding", "LayerNorm", "Linear", "ModuleList")
)
_HOOKS = (
    *("_forward_hooks", "_forward_pre_hooks"),
    *("_backward_hooks", "_backward_pre_hooks"),
)
_LOOKING = "transformers.utils.output_capturing"
_ROWS = 64  # what runs through the layers is a multiple of so many
_FEW, _FEW_ROWS = 256, 16  # up to so many tokens, of so many
_MANY_ROWS = 1024  # from so many rows on, arranging weights costs less than it saves


class PackedEncoder:
    """An encoder of transformers, run on packed texts with its own modules.

    Linear layers and normalization treat each token separately, so they run on all of
    them at once; attention runs on each text alone, texts of equal length together. The
    states are those of the plain model. In training mode the modules' dropout applies,
    that of attention included, and gradients reach whatever requires them.
    """

    def __init__(self, encoder, product=None):
        self.encoder = encoder
        self.is_mpnet = hasattr(encoder.encoder, "relative_attention_bias")
        product = linear if product is None else product
        self.layers = [
            _Layer(each, self.is_mpnet, product) for each in encoder.encoder.layer
        ]

    @staticmethod
    def supports(encoder):
        """Whether the packed states are sure to be those of the encoder itself.

        False for every other architecture, for decoders, and if a part was replaced
        (adapters, quantized layers) or has a hook.
        """
        kind = type(encoder)
        if f"{kind.__module__}.{kind.__qualname__}" not in MODELS:
            return False
        config = encoder.config
        plain = (
            not getattr(config, "is_decoder", False)
            and not getattr(config, "add_cross_attention", False)
            and getattr(config, "position_embedding_type", None) in (None, "absolute")
            and isinstance(config.hidden_act, str)
            and getattr(config, "_attn_implementation", None) in ("eager", "sdpa", None)
        )
        return plain and all(_is_plain(part, kind) for part in encoder.modules())

    def each(self, batch, *, start=0, stop=None, entering=None, pooling=None):
        """Yield the (T, d) states that enter `start`, then those after each layer.

        The embeddings come before layer 0. `entering` (T, d) are the states that enter
        layer `start`, if that is not 0. If `pooling` takes a single token of each text,
        the states after the last layer are those of these tokens alone: (b, d).
        """
        lengths = batch["lengths"].tolist()
        states = self.embed(batch) if entering is None else entering
        yield states
        groups = runs(lengths)
        n_tokens = len(states)
        # oneDNN keeps megabytes of code for each number of rows that it meets, which
        # adds up to gigabytes. The rows behind the last text are no text, and nothing
        # depends on them, so their gradients are zero.
        multiple = _ROWS if n_tokens > _FEW else _FEW_ROWS
        states = functional.pad(states, (0, 0, 0, -n_tokens % multiple))
        bias = None
        if self.is_mpnet:  # (1, heads, t, t), from the relative positions alone
            longest = states.new_empty(1, max(lengths), 0)
            bias = self.encoder.encoder.compute_position_bias(longest)
        single = single_tokens(batch["lengths"], pooling)
        layers = self.layers[start:stop]
        for i, layer in enumerate(layers, 1):
            tokens = single if i == len(layers) else None
            states = layer(states, groups, bias, tokens)
            yield states[: n_tokens if tokens is None else len(tokens)]

    def embed(self, batch):
        """Return the (T, d) states that enter the first layer."""
        ids, lengths = batch["input_ids"], batch["lengths"]
        types = batch.get("token_type_ids")
        embeddings = self.encoder.embeddings
        starts = (lengths.cumsum(0) - lengths).repeat_interleave(lengths)  # (T,)
        padding = getattr(embeddings, "padding_idx", None)
        if padding is None:
            position_ids = torch.arange(len(ids), device=ids.device) - starts
        else:  # counted from the padding index, without padding tokens within a text
            real = (ids != padding).long()
            before = real.cumsum(0) - real
            position_ids = (before - before[starts] + 1) * real + padding
        states = embeddings(
            input_ids=ids[None],
            token_type_ids=(torch.zeros_like(ids) if types is None else types)[None],
            position_ids=position_ids[None],
        )[0]
        project = getattr(self.encoder, "embeddings_project", None)
        states = states if project is None else project(states)
        # What runs through all layers has the type of LayerNorm's weights.
        return states.to(embeddings.LayerNorm.weight.dtype)


class _Layer:
    """The parts of one layer, under the names of BERT."""

    def __init__(self, layer, is_mpnet, product):
        self.product = product
        if is_mpnet:
            outer = layer.attention
            inner = outer.attn
            self.linears, self.mix = (inner.q, inner.k, inner.v), inner.o
        else:
            outer, inner = layer.attention.output, layer.attention.self
            self.linears, self.mix = (inner.query, inner.key, inner.value), outer.dense
        self.n_heads = inner.num_attention_heads
        self.attention_dropout = inner.dropout
        self.dropout, self.norm = outer.dropout, outer.LayerNorm
        self.widen = layer.intermediate.dense
        self.activation = layer.intermediate.intermediate_act_fn
        self.is_gelu = getattr(self.activation, "act", None) is functional.gelu
        self.output = layer.output

    def __call__(self, states, groups, bias, tokens=None):
        give_way()
        dtype = self.widen.weight.dtype  # of the products; states keep their own
        context = self._attend(states.to(dtype), groups, bias)
        if tokens is not None:  # the other tokens were needed for attention only
            tokens = functional.pad(tokens, (0, -len(tokens) % _ROWS))
            context, states = context[tokens], states[tokens]
        mixed = self.dropout(self.product(self.mix, context))
        attended = self.norm(mixed + states)
        wide = self.product(self.widen, attended.to(dtype))
        in_place = self.is_gelu and not wide.requires_grad  # touches less memory
        wide = torch.ops.aten.gelu_(wide) if in_place else self.activation(wide)
        narrow = self.output.dropout(self.product(self.output.dense, wide))
        return self.output.LayerNorm(narrow + attended)

    def _attend(self, states, groups, bias):
        parts = [self.product(layer, states) for layer in self.linears]
        dtype = parts[0].dtype
        # In float32 always: on a processor bfloat16 takes longer here, and thrice as
        # long for gradients.
        with torch.autocast(states.device.type, enabled=False):
            parts = [part.float() for part in parts]
            return self._attend_texts(parts, groups, bias).to(dtype)

    def _attend_texts(self, parts, groups, bias):
        dropout = self.attention_dropout
        sizes = [n_texts * n_tokens for n_texts, n_tokens in groups]
        *texts, behind = zip(
            *(part.split([*sizes, len(part) - sum(sizes)]) for part in parts),
            strict=True,
        )
        contexts = []
        for (n_texts, n_tokens), qkv in zip(groups, texts, strict=True):
            shape = (n_texts, n_tokens, self.n_heads, -1)
            nearby = None if bias is None else bias[..., :n_tokens, :n_tokens].float()
            context = functional.scaled_dot_product_attention(
                *(part.view(shape).transpose(1, 2) for part in qkv),  # (n, h, t, w)
                attn_mask=nearby,
                dropout_p=dropout.p if dropout.training else 0.0,
            )
            contexts.append(context.transpose(1, 2).reshape(n_texts * n_tokens, -1))
        contexts.append(behind[0])
        return torch.cat(contexts)  # (T, d)


def _is_plain(part, kind):
    """Whether a module is one of the architecture's own, and unchanged."""
    homes = (kind.__module__, "transformers.activations", "torch.nn.modules.activation")
    hooks = [hook for name in _HOOKS for hook in getattr(part, name).values()]
    return (
        (type(part).__module__ in homes or type(part) in _BLOCKS)
        and "forward" not in vars(part)
        # These hooks only look. They stay once hidden states were asked for.
        and all(getattr(hook, "__module__", None) == _LOOKING for hook in hooks)
        and not getattr(part, "gradient_checkpointing", False)
    )


def linear(layer, x):
    """Return (n, d_out) outputs of a linear layer for `x` (n, d_in), with gradients.

    On a CPU torch leaves float32 products to MKL, which was measured at half the speed
    of oneDNN on processors of AMD with AVX-512; for bfloat16 it uses oneDNN, but adds
    the bias before, in a pass of its own. This calls oneDNN's linear layer directly, as
    compiled models do, where it is faster. The result is the layer's own except for the
    order of the sums.
    """
    weight, bias = layer.weight, layer.bias
    if not _is_direct(layer, x):
        return functional.linear(x, weight, bias)
    trains = any(t.requires_grad for t in (x, weight, bias) if t is not None)
    if torch.is_grad_enabled() and trains:
        return _Linear.apply(x, weight, bias)
    return _product(x, weight, bias)


def _is_direct(layer, x):
    """Whether oneDNN is called for `x`."""
    return (
        x.device.type == layer.weight.device.type == "cpu"
        and x.dtype == layer.weight.dtype
        and not torch.is_autocast_enabled("cpu")
        and torch.backends.mkldnn.enabled
        and _prefers_onednn(x.dtype)
    )


class ArrangedLinear:
    """Outputs of linear layers as those of `linear`, for many batches of one call.

    oneDNN arranges the weights in memory for each product. This keeps them arranged,
    which takes a copy of the weights of all layers, until the object is dropped. It is
    for weights that stay as they are, and passes no gradients.
    """

    def __init__(self):
        self._weights = {}

    def __call__(self, layer, x):
        if len(x) < _MANY_ROWS or not _is_direct(layer, x):
            return linear(layer, x)
        if layer not in self._weights:  # two threads may do it: the same weights
            self._weights[layer] = _arrange(layer.weight)
        return _product(x, self._weights[layer], layer.bias)


def _arrange(weight):
    """Arrange a weight for products with many rows."""
    return torch.ops.mkldnn._reorder_linear_weight(weight, 2 * _MANY_ROWS)


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
    """Return x W' + bias; strides do not matter."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _prefers_onednn(dtype):
    """Whether to call oneDNN, which is left to where MKL is slower."""
    return not (dtype == torch.float32 and _mkl_is_fast()) and _has_onednn(dtype)


@lru_cache
def _mkl_is_fast():
    """With AVX2, MKL was 1.1 to 1.5 times as fast, on Intel's AVX-512 1.1 times."""
    read = getattr(torch.cpu, "get_capabilities", dict)  # not in every version
    is_fast = torch.backends.cpu.get_cpu_capability() == "AVX2"
    is_fast = is_fast or "Intel" in str(read().get("cpu_name"))
    return is_fast and torch.backends.mkl.is_available()


@lru_cache
def _has_onednn(dtype):
    """Try it: the operator is not in every build, nor a type on every processor."""
    if dtype not in (torch.float32, torch.bfloat16):
        return False
    x, weight, bias = (torch.full(s, 2.0, dtype=dtype) for s in ((2, 3), (4, 3), (4,)))
    try:
        both = _product(x, weight, bias), _product(x, _arrange(weight), bias)
        return all(bool((out == 14.0).all()) for out in both)
    except (AttributeError, RuntimeError):
        return False
