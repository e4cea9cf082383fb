"""Choose rows from scores: arrays in, positions out."""

from __future__ import annotations

import numpy as np

__all__ = ["top_n"]


def top_n(scores, n, rng):
    """Positions of the n highest scores, best first, ties broken at random.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)
        Higher is better. Infinities are allowed, NaN is not (and not looked for).
    n : int
        How many to choose, at most `n_candidates`.
    rng : numpy.random.Generator
        Breaks ties; each member of a tie is equally likely at each of its places.

    Returns
    -------
    positions : ndarray of int, shape (n,)

    Notes
    -----
    O(n_candidates + n log n): candidates that cannot be chosen are never sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.selection import top_n
    >>> top_n(np.array([0.1, 0.9, 0.5, 0.3]), 2, np.random.default_rng(0))
    array([1, 2])
    """
    scores = np.asarray(scores)
    n = min(n, scores.shape[0])
    if n == 0:
        return np.empty(0, dtype=np.intp)
    # One partition finds the n-th best score.
    threshold = np.partition(scores, scores.shape[0] - n)[scores.shape[0] - n]
    reached = np.flatnonzero(scores >= threshold)
    # A random key decides inside a tie, at the border of the batch as within it.
    # Read backwards rather than by negated scores, which not every number type has.
    order = np.lexsort((-rng.random(reached.shape[0]), scores[reached]))[::-1]
    return reached[order[:n]]
