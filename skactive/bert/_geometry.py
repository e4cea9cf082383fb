"""How far a text's representation is from the nearest decision boundary of a head."""

import threading
from contextlib import contextmanager

import torch

from ..linear_model._gradients import distance_from_scores
from ._heads import DenseHead

_OVERSHOOT = 0.02  # the value of the paper
_BISECTIONS = 24  # as many as float32 has digits
_ELEMENTS = 2**24  # numbers of one chunk of Jacobians


def distance_to_boundary(network, inputs, max_iter):
    """Return the (b,) distance of the head's input to another label.

    `network` is in evaluation mode. `max_iter` limits the iterations if the head is not
    linear.
    """
    head = network.head
    if type(head).forward is not DenseHead.forward:  # a custom head
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
    """Return the (b,) length of a short path from each point to another highest output.

    `function(points, rows)` returns the outputs (a, k) of `points`, which belong to the
    rows `rows` (a,) of `x`. Steps go to the nearest boundary of the linearized function
    (Moosavi-Dezfooli et al. 2016), and slightly beyond it, until another class has
    caught up. The path is then cut back, by bisection, to that point. The distance is
    the smallest one if the function is linear, an upper bound on it otherwise, and
    infinite if no path was found.
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
        ahead, normals = _linearized(
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


def _linearized(function, points, rows, label):
    """Return the label's lead (a, k) over each class, and its gradient (a, k, ...).

    The lead is infinite for the label itself.
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
    """Return the part (b,) of each path after which another class has caught up."""
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


def expected_word_change(network, inputs, special_ids):
    """Return the (b,) largest expected gradient norms of a word's embedding.

    The expectation is over the label, by the model's own probabilities. A word that
    occurs several times in a text has one embedding, so its gradients are added.
    `special_ids` are not words; a text without words has 0. `inputs` (b, t) have no
    activations.
    """
    with torch.enable_grad(), _looked_up(network.encoder) as found:
        outputs = network(**inputs)
    if len(found) != 1:
        raise TypeError(
            "embedding_gradients needs an encoder that looks the embedding of each "
            f"token up once; {type(network.encoder).__name__} does so {len(found)} "
            "times. Use an encoder such as BERT."
        )
    ids, vectors = found[0]
    special = torch.tensor(sorted(special_ids), device=ids.device, dtype=ids.dtype)
    rows, places = torch.isin(ids, special, invert=True).nonzero(as_tuple=True)
    change = outputs.new_zeros(len(ids))
    if not len(rows):
        return change
    # A word belongs to its text: the same word of another text is another one.
    n_ids = int(ids.max()) + 1
    words, word_of = torch.unique(rows * n_ids + ids[rows, places], return_inverse=True)
    text_of = words // n_ids
    expected = outputs.new_zeros(len(words))
    for weight, residual in _weighted_residuals(outputs):
        grads = torch.autograd.grad(outputs, vectors, residual, retain_graph=True)[0]
        grads = grads[rows, places].float()
        summed = grads.new_zeros(len(words), grads.shape[1])
        summed.index_add_(0, word_of, grads)
        expected += weight[text_of] * summed.norm(dim=1)
    return change.scatter_reduce_(0, text_of, expected, "amax")


def _weighted_residuals(outputs):
    """Yield the weight (b,) and the gradient in the outputs (b, k) of each loss."""
    # In float64, on the processor, as not every device has it: what a confident
    # model leaves for the other classes would round to nothing.
    proba = outputs.detach().cpu().double().softmax(dim=1)
    if proba.shape[1] == 2:  # both gradients are multiples of the same one
        opposite = torch.tensor([1.0, -1.0]).expand(len(proba), 2)
        yield (2 * proba.prod(dim=1)).to(outputs), opposite.to(outputs)
        return
    for c, weight in enumerate(proba.T):
        residual = proba.clone()
        residual[:, c] -= 1.0
        yield weight.to(outputs), residual.to(outputs)


@contextmanager
def _looked_up(encoder):
    """Collect the token ids and the vectors looked up for them, as leaves of a graph.

    What other threads compute with the same encoder is left alone.
    """
    found = []
    me = threading.get_ident()

    def cut_off(module, args, output):
        if threading.get_ident() != me:
            return output
        vectors = output.detach().requires_grad_()
        found.append((args[0], vectors))
        return vectors.clone()  # some encoders add to it in place

    try:
        lookup = encoder.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        lookup = torch.nn.Identity()  # never called: nothing is found
    hook = lookup.register_forward_hook(cut_off)
    try:
        yield found
    finally:
        hook.remove()
