"""Configurations of the labels of a batch, and what each leaves to learn.

Kept all while they are few; then a weighted sample, in which every sum is right on
average. See :mod:`skactive.joint` for what they are for.
"""

from __future__ import annotations

import math

import numpy as np

from ._chunks import chunk_size, chunks
from .measures import entropy

__all__ = ["NEGLIGIBLE", "Configurations", "surprise", "thin"]

# Configurations that matter less than this together (in nats) are left out, and gains
# closer to each other than this are a tie: both are beyond what float64 resolves.
NEGLIGIBLE = 1e-12
ROUGHLY = 8  # a first look takes so many times fewer configurations
TINY = 2 * np.finfo(np.float64).tiny


class Configurations:
    """Configurations of the labels chosen so far, each with a weight and a posterior.

    The weights are the configurations' probabilities while all of them are held.
    Beyond `limit` some are left out at random, and the weights of those that stay
    are such that every sum over configurations is right on average.
    """

    def __init__(self, t, limit, rng):
        self.limit = limit
        self.rng = rng
        self.weights = np.ones(1)
        self.posteriors = np.full((1, t), 1 / t)
        self.is_sample = False
        self.rough, self.slack = None, 0.0
        self.n_labels = 0
        self.information = 0.0

    def gains(self, draws, working_bytes, rough=False):
        """Gains of some candidates (c, t, k): what each would add."""
        weights, posteriors = self.rough if rough else (self.weights, self.posteriors)
        draws = np.asarray(draws, dtype=np.float64)
        c, t, k = draws.shape
        # What stands in for 0 in the logarithm, and changes no other number.
        inputs = np.add(draws, TINY).transpose(1, 0, 2).reshape(t, c * k)
        total = np.zeros(c * k)
        size = chunk_size(16 * c * k, working_bytes)
        for rows in chunks(len(weights), size):
            mixed = posteriors[rows] @ inputs  # (configurations, c * k)
            terms = np.log(mixed)
            terms *= mixed
            total -= weights[rows] @ terms
        # Less the entropy under each draw. Posteriors rather than the prior here, as
        # then no configuration counts negative, in a sample neither.
        mean_posterior = weights @ posteriors
        gains = total.reshape(c, k).sum(axis=1) - entropy(draws) @ mean_posterior
        return np.maximum(gains, 0.0)

    def add(self, item):
        """Split every configuration by the label of a further item (t, k)."""
        self.n_labels += 1
        if not len(self.weights):
            return  # nothing is left to learn
        t, k = item.shape
        rows = chunks(len(self.weights), chunk_size(32 * t * k))
        split = [self._split(some, item) for some in rows]
        weights, left = (np.concatenate(parts) for parts in zip(*split, strict=True))
        # `left` is what a configuration, with its weight, leaves to learn: all that it
        # can still add to any gain.
        self.information = math.log(t) - left.sum()
        kept, shares = thin(left, self.limit, self.rng)
        parents, labels = np.divmod(kept, k)
        posteriors = self.posteriors[parents] * item.T[labels]
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        self.posteriors = posteriors
        self.weights = weights[kept] / shares
        self.is_sample = self.is_sample or shares.min(initial=1.0) < 1
        self._take_some(left[kept] / shares)

    def _take_some(self, left):
        """Set few configurations aside for a first look at what a candidate adds.

        The others add no more than they leave to learn, so that with this slack it is
        a bound, where all are held. In a sample it is an estimate, from a smaller one.
        """
        few = len(left) // ROUGHLY
        if few < ROUGHLY:
            self.rough, self.slack = None, 0.0
        elif self.is_sample:
            some, shares = thin(left, few, self.rng)
            self.rough = self.weights[some] / shares, self.posteriors[some]
            self.slack = 0.0
        else:
            some = np.argsort(-left)[:few]
            self.rough = self.weights[some], self.posteriors[some]
            self.slack = left.sum() - left[some].sum()

    def _split(self, rows, item):
        """Weights of the configurations that some split into, and what they leave."""
        joint = self.posteriors[rows, None, :] * item.T  # (configurations, k, t)
        mass = joint.sum(axis=2)
        # mass * H(joint / mass)
        left = surprise(joint).sum(axis=2) - surprise(mass)
        weights = self.weights[rows, None]
        return (weights * mass).ravel(), (weights * np.maximum(left, 0.0)).ravel()


def thin(values, limit, rng):
    """Keep at most `limit` entries, so that sums over entries stay right on average.

    Large values are kept for certain, others with a probability in proportion to their
    value. That leaves the sum of the values themselves without any error.

    Returns
    -------
    kept : ndarray of int, shape (s,)
    shares : ndarray of shape (s,)
        The probability with which each was kept.
    """
    order = np.argsort(values)
    total = np.cumsum(values[order])
    order = order[np.searchsorted(total, NEGLIGIBLE, side="right") :]
    kept = np.sort(order)
    if len(kept) <= limit:
        return kept, np.ones(len(kept))
    # From the largest down: how many are kept for certain.
    largest = values[order[::-1]]
    rest = np.cumsum(largest[::-1])[::-1]
    certain = np.argmax(largest * (limit - np.arange(len(largest))) <= rest)
    shares = np.minimum(values[kept] * ((limit - certain) / rest[certain]), 1.0)
    # One random number for all: entries at even steps of the summed probabilities.
    # Neighbours have most of their labels in common, so they stand for each other.
    steps = np.floor(np.cumsum(shares) + rng.random())
    taken = np.diff(steps, prepend=0.0) > 0
    return kept[taken], shares[taken]


def surprise(proba):
    """-p log(p), 0 at 0."""
    return -proba * np.log(np.maximum(proba, TINY))
