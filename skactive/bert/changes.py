"""How far training has moved each layer."""

from __future__ import annotations

import numpy as np

__all__ = ["copy_trained", "layer_changes"]


def copy_trained(network):
    """Copy the weights that training changes, batch statistics included.

    Parameters
    ----------
    network : torch.nn.Module

    Returns
    -------
    tensors : dict of str to torch.Tensor
    """
    frozen = {name for name, p in network.named_parameters() if not p.requires_grad}
    return {
        name: tensor.detach().clone()
        for name, tensor in network.state_dict().items()
        if name not in frozen
    }


def layer_changes(network, start):
    """Mean absolute change of the parameters of each layer, and its variance.

    Parameters
    ----------
    network : TextNetwork
        After training.
    start : dict of str to torch.Tensor
        From :func:`copy_trained`, before it. What is not there has not changed.

    Returns
    -------
    changes : dict of str to ndarray of shape (n_layers,)
        `layer`: "embeddings", "0", "1", ... and the layers of the head; `part`:
        "encoder" or "head"; `mean` and `variance` of the absolute change over the
        layer's parameters. In the order in which a text passes them. A data frame
        takes it as it is.

    References
    ----------
    D. Griesshaber, J. Maucher, N. T. Vu (2020). Fine-tuning BERT for low-resource
    natural language understanding via active learning. COLING. Equation 2.
    """
    groups = [
        ("encoder", str(layer), {f"encoder.{name}": p for name, p in found.items()})
        for layer, found in network.stack.groups().items()
    ]
    for path, module in network.head.named_modules():
        own = dict(module.named_parameters(recurse=False))
        prefix = f"head.{path}." if path else "head."
        if own:
            named = {f"{prefix}{name}": p for name, p in own.items()}
            groups.append(("head", path or "head", named))
    changes = {"layer": [], "part": [], "mean": [], "variance": []}
    for part, layer, parameters in groups:
        mean, variance = _moments(parameters, start)
        for key, value in zip(changes, (layer, part, mean, variance), strict=True):
            changes[key].append(value)
    return {key: np.array(values) for key, values in changes.items()}


def _moments(parameters, start):
    """Mean and variance of the absolute changes of some parameters, in float64."""
    n = total = squares = 0
    for name, parameter in parameters.items():
        n += parameter.numel()
        if name in start:
            change = (parameter.detach() - start[name]).abs().double()
            total += change.sum().item()
            squares += change.square().sum().item()
    mean = total / n
    return mean, max(0.0, squares / n - mean**2)
