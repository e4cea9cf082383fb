"""Draws to choose from, and their joint information by hand."""

import itertools
import math

import numpy as np
import scipy.stats

from skactive._math._joint import select_jointly


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
