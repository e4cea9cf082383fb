"""What contrastive training needs: batches drawn by class, and losses of pairs."""

from collections import deque

import numpy as np
import torch
from torch import nn

_TEMPERATURE, _MARGIN = 0.1, 0.25


def draw_batches(Y, batch_size, n_steps, seed):
    """Return the rows of `n_steps` batches, one after the other.

    `Y` (m, k) says which rows have which classes. Each batch has `min(batch_size, m)`
    different rows, drawn evenly over the classes in turn; rows without any are a class
    of their own. It has two rows of each of its classes that has two.
    """
    rng = np.random.default_rng(seed)
    columns = [*Y.T.astype(bool), ~Y.any(axis=1)]
    groups = [np.flatnonzero(column) for column in columns if column.any()]
    queues = [deque(rng.permutation(group).tolist()) for group in groups]
    turns, drawn = deque(), []
    size = min(batch_size, len(Y))
    for _ in range(n_steps):
        batch: dict = {}  # row -> None, in order
        present = []
        while len(batch) < size:
            if not turns:
                turns.extend(rng.permutation(len(groups)).tolist())
            # The last place goes to a class that is there already, if one has more.
            last = [i for i in present if set(queues[i]) - batch.keys()]
            i = last[0] if last and len(batch) == size - 1 else turns.popleft()
            if i not in present:
                present.append(i)
            for _ in range(min(2, size - len(batch))):
                if row := _next_row(queues[i], batch):
                    batch[row[0]] = None
        drawn += batch
    return np.array(drawn)


def _next_row(queue, batch):
    """Return [the first row that the batch lacks], now the queue's last, or []."""
    for row in queue:
        if row not in batch:
            queue.remove(row)
            queue.append(row)
            return [row]
    return []


def overlap(Y):
    """Return (b, b) shares of common classes: 1 or 0 where each row has one class.

    It is the size of the intersection over that of the union of the classes of two
    rows; 1 if both have none.
    """
    both = Y @ Y.T
    sizes = Y.sum(dim=1)
    either = sizes[:, None] + sizes - both
    return torch.where(either > 0, both / either.clamp(min=1), 1.0)


class PairLoss(nn.Module):
    """Base of losses of the pairs of a batch; `reduction` is not used.

    The targets (b, k + 1) are indicators of the classes, and the weights of the texts:
    a pair has the product of two.
    """

    def __init__(self, reduction="none"):
        super().__init__()

    def forward(self, rows, targets):
        """Return the loss of rows (b, d) of length 1."""
        same, weight = overlap(targets[:, :-1]), targets[:, -1]
        weight = weight.outer(weight).fill_diagonal_(0.0)
        return self.compare(rows @ rows.T, same, weight)


class CosineLoss(PairLoss):
    """Squared difference of the cosine and the share of common classes.

    Pairs of the same class and pairs of different ones have the same total weight.
    """

    @staticmethod
    def compare(cosine, same, weight):
        """Return the loss; the arguments are (b, b)."""
        return 0.5 * (
            _mean((cosine - 1).square(), weight * same)
            + _mean(cosine.square(), weight * (1 - same))
        )


class SupervisedContrastiveLoss(PairLoss):
    """Cross-entropy of the texts of the same class among all others of the batch."""

    @staticmethod
    def compare(cosine, same, weight):
        """Return the loss; the arguments are (b, b)."""
        itself = torch.eye(len(cosine), dtype=torch.bool, device=cosine.device)
        logits = (cosine / _TEMPERATURE).masked_fill(itself, -torch.inf)
        losses = -logits.log_softmax(dim=1).masked_fill(itself, 0.0)
        return _mean(losses, weight * same)


class TripletLoss(PairLoss):
    """Margin by which a text of the same class is nearer than one of another."""

    @staticmethod
    def compare(cosine, same, weight):
        """Return the loss; the arguments are (b, b)."""
        near, far = weight * same, weight * (1 - same)
        losses = (cosine[:, None] - cosine[:, :, None] + _MARGIN).relu()  # (b, b, b)
        other = 1 - torch.eye(len(cosine), device=cosine.device)  # a text is not both
        return _mean(losses, near[:, :, None] * far[:, None] * other)


def _mean(values, weight):
    """Return the weighted mean; 0 without any weight."""
    return (values * weight).sum() / weight.sum().clamp(min=1e-12)


LOSSES = {
    "cosine": CosineLoss,
    "supervised_contrastive": SupervisedContrastiveLoss,
    "triplet": TripletLoss,
}
