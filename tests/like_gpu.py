"""The processor as a GPU: what `device="auto"` selects is treated as CUDA is.

Batches are padded, `precision="auto"` is bfloat16, and the gradients of each training
differ a little, as a GPU adds them in any order. What names its device stays as it is.
"""

import random
import sys

_NOISE = 1e-6  # relative, of a loss


class _Latest:
    """Whether the device that was chosen last is that of "auto"."""

    is_auto = False


def force():
    """Treat "auto" as a GPU from now on, in this process."""
    import torch

    import skactive.bert._adapted
    import skactive.bert._estimators
    import skactive.bert._training
    import skactive.features._encoding
    from skactive._encoders import _module
    from skactive._encoders._encoder import PackedEncoder
    from skactive.bert import _fitting

    choose_device, supports = _module.choose_device, PackedEncoder.supports
    choose_precision, bfloat16 = _module.choose_precision, _fitting.bfloat16
    get_loss = skactive.bert._training.Net.get_loss
    number = random.SystemRandom()

    def choose_auto_device(device):
        _Latest.is_auto = device == "auto"
        return choose_device("cpu" if _Latest.is_auto else device)

    def choose_auto_precision(precision, device):
        if precision == "auto" and _Latest.is_auto:
            return torch.bfloat16
        return choose_precision(precision, device)

    def is_bfloat16(precision, device):
        return (precision == "auto" and _Latest.is_auto) or bfloat16(precision, device)

    def get_noisy_loss(net, *args, **kwargs):
        loss = get_loss(net, *args, **kwargs)
        return loss * (1 + _NOISE * number.random()) if _Latest.is_auto else loss

    replaced = {
        choose_device: choose_auto_device,
        choose_precision: choose_auto_precision,
        bfloat16: is_bfloat16,
    }
    for name, module in list(sys.modules.items()):
        if name.startswith("skactive."):
            for own in ("choose_device", "choose_precision", "bfloat16"):
                if (function := vars(module).get(own)) in replaced:
                    setattr(module, own, replaced[function])
    PackedEncoder.supports = staticmethod(
        lambda encoder: not _Latest.is_auto and supports(encoder)
    )
    skactive.bert._training.Net.get_loss = get_noisy_loss
