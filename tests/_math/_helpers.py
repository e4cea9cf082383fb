"""Draws to choose from, and their joint information by hand."""

import itertools
import math

import numpy as np
import scipy.stats

from skactive._math._joint import Configurations, select_jointly, surprise
from skactive._math._scores import entropy, mutual_information


def draw(n, t, k, seed=0, concentration=0.5):
    return np.random.default_rng(seed).dirichlet(np.full(k, concentration), (n, t))


def information_by_loops(draws):
    """H(y_1..y_m) - H(y_1..y_m | w) with a loop over all configurations of labels."""
    m, t, k = draws.shape
    entropy = 0.0
    for labels in itertools.product(range(k), repeat=m):
        likelihoods = [
            math.prod(draws[i, s, y] for i, y in enumerate(labels)) for s in range(t)
        ]
        p = math.fsum(likelihoods) / t
        entropy -= p * math.log(p) if p > 0 else 0.0
    return entropy - scipy.stats.entropy(draws, axis=2).mean(axis=1).sum()


def choose(draws, n, seed=0, **params):
    return select_jointly(draws, n, np.random.default_rng(seed), **params)


def joint_information(draws, *, exact_up_to=2**24, n_samples=4096, rng=None):
    """Joint mutual information of labels with draws (m, t, k) and the model, in nats.

    The sum over all k^m configurations is exact up to `exact_up_to`; beyond it,
    `n_samples` configurations are drawn by `rng`.
    """
    draws = np.asarray(draws, dtype=np.float64)
    m, t, k = draws.shape
    alone = mutual_information(draws).sum()
    if k**m <= exact_up_to:
        # Two halves of the batch: the product of two thin matrices holds the
        # probability of every configuration.
        left, right = (_likelihoods(half) for half in np.split(draws, [m // 2]))
        joint = surprise(left @ (right.T / t)).sum()
        information = joint - entropy(draws).mean(axis=1).sum()
    else:
        state = Configurations(t, n_samples, rng)
        for item in draws:
            state.add(item)
        information = state.information
    # The bounds hold up to rounding; for a sample the second holds on average.
    return float(min(max(information, 0.0), math.log(t), alone))


def _likelihoods(draws):
    """Return probabilities (k^m, t) of configurations of labels under each draw."""
    t = draws.shape[1]
    result = np.ones((1, t))
    for item in draws:
        result = (result[:, None, :] * item.T).reshape(-1, t)
    return result
