"""How far a text's representation is from the nearest decision boundary of a head."""

from __future__ import annotations

import torch

from skactive.bert.heads import DenseHead
from skactive.linear import distance_from_scores

__all__ = ["deepfool", "distance_to_boundary"]

_OVERSHOOT = 0.02  # the value of the paper
_BISECTIONS = 24  # as many as float32 has digits
_ELEMENTS = 2**24  # numbers of one chunk of Jacobians


def distance_to_boundary(network, inputs, max_iter):
    """Compute how far what the head takes has to move for another label.

    Parameters
    ----------
    network : TextNetwork
        In evaluation mode.
    inputs : dict of str to torch.Tensor
        What the network takes.
    max_iter : int
        Most iterations where the head is not linear.

    Returns
    -------
    distance : torch.Tensor of shape (b,)
    """
    head = network.head
    if type(head).forward is not DenseHead.forward:  # a head of one's own
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


def deepfool(function, x, max_iter=50):
    """Find a short way from each point to where the highest output changes.

    Steps go to the nearest boundary of the linearised function (Moosavi-Dezfooli et
    al. 2016), a little beyond it, until another class has caught up. The way is then
    cut back, by bisection, to where that happens.

    Parameters
    ----------
    function : callable
        `function(points, rows)` gives the outputs (a, k) of `points`, which belong to
        the rows `rows` (a,) of `x`.
    x : torch.Tensor of shape (b, ...)
    max_iter : int, default=50
        Most steps.

    Returns
    -------
    distance : torch.Tensor of shape (b,)
        Euclidean; the least distance where the function is linear, an upper bound on
        it elsewhere, and infinite where no way was found.

    Examples
    --------
    >>> import torch
    >>> from skactive.bert.boundary import deepfool
    >>> layer = torch.tensor([[3.0, 0.0], [4.0, 0.0]])
    >>> deepfool(lambda x, rows: x @ layer, torch.tensor([[2.0, 1.0]]))
    tensor([2.])
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
        ahead, normals = _linearised(
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


def _linearised(function, points, rows, label):
    """Compute how far the label is ahead of each class, and the gradient of that lead.

    Returns
    -------
    ahead : torch.Tensor of shape (a, k)
        Infinite for the label itself.
    normals : torch.Tensor of shape (a, k, ...)
        Direction in which each class catches up.
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
    """Find the part (b,) of each way after which another class has caught up."""
    low, high = torch.zeros_like(distance), torch.ones_like(distance)
    found = torch.nonzero(distance.isfinite() & (distance > 0))[:, 0]
    if len(found):
        shape = (-1, *[1] * (x.ndim - 1))
        for _ in range(_BISECTIONS):
            middle = (low + high)[found] / 2
            points = x[found] + middle.reshape(shape) * moved[found]
            outputs = function(points, rows[found]).float()
            mine = outputs.gather(1, label[found])
            others = outputs.scatter(1, label[found], -torch.inf)
            reached = (others >= mine).any(dim=1)
            high[found] = torch.where(reached, middle, high[found])
            low[found] = torch.where(reached, low[found], middle)
    return high
