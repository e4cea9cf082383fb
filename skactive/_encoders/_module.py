"""Run an encoder: device, precision, layers and pooling."""

import inspect
import numbers
import sys


def choose_device(device):
    """Return the `torch.device`; "auto" selects CUDA, else MPS, else the CPU."""
    import torch

    has_mps = torch.backends.mps.is_available()
    if device == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu"
        return torch.device(name)
    try:
        chosen = torch.device(device)
    except RuntimeError as exc:
        raise ValueError(
            f"'device' must be 'auto' or a device of torch, such as 'cpu' or 'cuda:0', "
            f"got {device!r}."
        ) from exc
    if chosen.type not in ("cpu", "cuda", "mps"):
        try:
            torch.zeros(1, device=chosen).item()
        except Exception as exc:  # each backend has errors of its own
            raise ValueError(
                f"'device' must be a device of this machine that computes, got "
                f"{device!r}. Pass device='auto' or 'cpu'."
            ) from exc
    count = {"cuda": torch.cuda.device_count(), "mps": int(has_mps)}.get(chosen.type, 1)
    if (chosen.index or 0) >= count:
        raise ValueError(
            f"'device' must be a device of this machine, got {device!r}, but torch "
            f"finds {count or 'no'} {chosen.type} device{'s' * (count > 1)}. Pass "
            "device='auto' or 'cpu'."
        )
    return chosen


def choose_precision(precision, device):
    """Return the `torch.dtype`; "auto" is bfloat16 if the device has it natively."""
    import torch

    if precision != "auto":
        return getattr(torch, precision)
    if device.type == "cuda":
        native = torch.cuda.get_device_capability(device) >= (8, 0)
    elif device.type == "cpu":
        native = _has_flag("_is_avx512_bf16_supported") or _has_flag(
            "_is_amx_tile_supported"
        )
    else:
        native = False
    return torch.bfloat16 if native else torch.float32


def _has_flag(name):
    import torch

    # Private in torch: without it, exact float32 is the safe answer.
    return bool(getattr(torch.cpu, name, bool)())


def choose_layers(layers, depth):
    """Return `layers` as a tuple of indices in [0, depth]."""
    is_one = isinstance(layers, numbers.Integral) or getattr(layers, "ndim", 1) == 0
    several = [layers] if is_one else list(layers)
    good = [
        isinstance(i, numbers.Integral)
        and not isinstance(i, bool)
        and -depth <= i <= depth
        for i in several
    ]
    if not several or not all(good):
        raise ValueError(
            f"'layers' must be one or several integers in [-{depth}, {depth}], got "
            f"{layers!r}: the model has {depth} layers, 1 the first, -1 the last, and "
            "0 is the output of its embeddings."
        )
    return tuple(int(i) if i >= 0 else depth + 1 + int(i) for i in several)


def encode(encoder, batch, *, layers, pooling, normalize, finish=None, width=None):
    """Return the (b, d) float32 features of a padded or packed batch.

    `encoder` is a module, or a :class:`PackedEncoder` for packed batches. `layers` are
    those of `choose_layers`; several values of `pooling` are concatenated.
    `finish` is a function of the pooled rows, of which the first `width` columns stay.
    """
    import torch

    pool_states = _pool_packed_states if "lengths" in batch else _pool_padded_states
    with torch.inference_mode():
        features = torch.cat(pool_states(encoder, batch, layers, pooling), dim=1)
        if finish is not None:
            features = finish(features)
        features = features[:, :width]
        if normalize:
            features = torch.nn.functional.normalize(features, dim=1)
    return features


def _pool_packed_states(encoder, batch, layers, pooling):
    from ._tokens import pool_packed

    pooled = {}
    each = encoder.each(batch, stop=max(layers), pooling=pooling)
    for i, states in enumerate(each):
        if i in layers:
            pooled[i] = pool_packed(states, batch["lengths"], pooling)
    return [pooled[i] for i in layers]


def _pool_padded_states(module, batch, layers, pooling):
    last = module.config.num_hidden_layers
    out = forward(module, batch, output_hidden_states=layers != (last,))
    mask = batch.get("attention_mask")
    return [
        pool(
            out.last_hidden_state if i == last else out.hidden_states[i], mask, pooling
        )
        for i in layers
    ]


def forward(module, batch, **kwargs):
    """Call a model of transformers with those tensors of a batch that it takes."""
    accepted = inspect.signature(module.forward).parameters
    inputs = {name: value for name, value in batch.items() if name in accepted}
    if "attention_mask" in inputs and _takes_whole_masks(module):
        inputs["attention_mask"] = inputs["attention_mask"][:, None, None].bool()
    return module(**inputs, **kwargs, return_dict=True)


def _takes_whole_masks(module):
    """Whether the layers get a mask (b, 1, 1, t) as it is.

    transformers looks for a 0 in one of (b, t), so each batch would wait for a GPU. It
    still does for what is not listed here, such as ModernBERT.
    """
    from ._encoder import MODELS

    kind, config = type(module), module.config
    return (
        f"{kind.__module__}.{kind.__qualname__}" in MODELS
        and hasattr(sys.modules[kind.__module__], "create_bidirectional_mask")
        and config._attn_implementation == "sdpa"
        and not getattr(config, "is_decoder", False)
    )


def pool(states, mask, pooling):
    """Pool the `states` (b, t, d) of the real tokens into one float32 row per text.

    `mask` (b, t) is 1 for real tokens; None if nothing is padded. Several values of
    `pooling` are concatenated.
    """
    import torch

    if not isinstance(pooling, str):
        return torch.cat([pool(states, mask, each) for each in pooling], dim=1)
    if pooling == "cls":
        return states[:, 0].float()
    if pooling == "last":
        if mask is None:
            return states[:, -1].float()
        # Of the shape, not of `len`, which would be a constant in an exported graph.
        texts = torch.arange(states.shape[0], device=states.device)
        return states[texts, mask.sum(dim=1) - 1].float()
    states = states.float()
    if mask is None:
        return states.mean(dim=1) if pooling == "mean" else states.amax(dim=1)
    real = mask.unsqueeze(-1).bool()  # (b, t, 1)
    if pooling == "max":
        return states.masked_fill(~real, float("-inf")).amax(dim=1)
    # Padding may hold anything, NaN included: fill, do not multiply by 0.
    return states.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1)
