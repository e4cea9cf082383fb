"""Initial sets of simulations, some with assumed labels, as Ein-Dor et al. use them.

The assumed labels are of the other class, 0, and are not looked at. Each function draws
the same items as in the runs of the committed page.
"""

import re
from typing import NamedTuple

import numpy as np

from skactive._utils._repeatable import base_seed, round_rng


class Seed(NamedTuple):
    """Positions of the first items, and which of them have an assumed label."""

    positions: np.ndarray
    assumed: np.ndarray

    def relabel(self, y):
        """Return `y` with the assumed labels in place of the true ones."""
        labels = np.array(y)
        labels[self.positions[self.assumed]] = 0
        return labels


def reference_seed(X, n, *, random_state):
    """Draw n random items."""
    drawn = _rng(random_state, "reference_seed").choice(len(X), size=n, replace=False)
    return Seed(drawn, np.zeros(n, dtype=bool))


def unbiased_seed(y, n, *, random_state):
    """Draw n items of class 1, and n others, which are assumed to be of class 0."""
    rng = _rng(random_state, "unbiased_seed")
    found = rng.choice(np.flatnonzero(y == 1), size=n, replace=False)
    rest = np.setdiff1d(np.arange(len(y)), found)
    return _assume(found, rest, rng)


def keyword_seed(X, pattern, n, *, random_state):
    """Draw n texts that match, and n others, which are assumed to be of class 0."""
    rng = _rng(random_state, "keyword_seed")
    matches = np.array([re.search(pattern, text) is not None for text in X])
    found = rng.choice(np.flatnonzero(matches), size=n, replace=False)
    return _assume(found, np.flatnonzero(~matches), rng)


def _rng(random_state, name):
    return round_rng(base_seed(random_state), 0, name)


def _assume(found, rest, rng):
    others = rng.choice(rest, size=len(found), replace=False)
    assumed = np.repeat([False, True], len(found))
    return Seed(np.concatenate([found, others]), assumed)
