"""Choose rows from scores: arrays in, positions out."""

from numbers import Real

import numpy as np


def top_n(scores, n, rng):
    """Return the positions of the n highest scores, best first, ties at random.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)
        Higher is better. Infinities are allowed, NaN is not (and not looked for).
    n : int
        How many to choose, at most `n_candidates`.
    rng : numpy.random.Generator or ndarray of shape (n_candidates,)
        Breaks ties: a generator, or one random number per candidate, such as
        `view.uniform()`. The highest number of a tie comes first.

    Returns
    -------
    positions : ndarray of int, shape (n,)

    Notes
    -----
    O(n_candidates + n log n): candidates that cannot be chosen are never sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._selection import top_n
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
    given = isinstance(rng, np.ndarray)
    keys = rng[reached] if given else -rng.random(reached.shape[0])
    order = np.lexsort((keys, scores[reached]))[::-1]
    return reached[order[:n]]


def stochastic_n(scores, n, rng, *, method="power", coldness=1.0):
    """Draw n positions without replacement, high scores more likely than low ones.

    The n highest scores are often alike, and a batch of them redundant. A draw is more
    diverse at no cost.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)
        Higher is better. Infinities are allowed, NaN is not (and not looked for).
    n : int
        How many to choose, at most `n_candidates`.
    rng : numpy.random.Generator
        Draws. The draw follows a candidate wherever it stands among the scores.
    method : {"power", "softmax"}, default="power"
        Whether the next one drawn is a given one with a probability in proportion to
        `scores ** coldness` or to `exp(coldness * scores)`. "power" is for scores that
        are not negative, and does not depend on their unit; candidates of score 0
        come last, in random order.
    coldness : float, default=1.0
        Above 0. The higher, the nearer to the n highest scores; the lower, the nearer
        to chance.

    Returns
    -------
    positions : ndarray of int, shape (n,)
        In the order of the draw.

    Raises
    ------
    TypeError
        If `coldness` is no number.
    ValueError
        If a parameter, or with "power" a finite score, is out of its range.

    Notes
    -----
    The n highest sums of log weight and Gumbel noise are such a draw [1]_.

    References
    ----------
    .. [1] A. Kirsch et al., "Stochastic batch acquisition: a simple baseline for deep
       active learning", TMLR 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive._math._selection import stochastic_n
    >>> stochastic_n(np.array([0.0, 3.0, 0.0, 1.0]), 3, np.random.default_rng(0))
    array([1, 3, 2])
    """
    scores = np.asarray(scores)
    if method not in ("power", "softmax"):
        raise ValueError(f"method must be 'power' or 'softmax'; got {method!r}.")
    if not isinstance(coldness, Real):
        raise TypeError(f"coldness must be a number; got {coldness!r}.")
    if not 0 < coldness < np.inf:
        raise ValueError(f"coldness must be a finite number above 0; got {coldness!r}.")
    # Noise goes by rank, so that it does not depend on the order of the pool.
    order = top_n(scores, scores.shape[0], rng)
    ranked = scores[order].astype(np.float64)
    noise = rng.gumbel(size=ranked.shape[0])
    if method == "softmax":
        return order[top_n(coldness * ranked + noise, n, rng)]
    negative = np.isfinite(ranked) & (ranked < 0)
    if negative.any():
        raise ValueError(
            "method 'power' needs scores that are not negative; got "
            f"{ranked[negative][0]} at position {order[negative][0]}. Use 'softmax'."
        )
    positive = int((ranked > 0).sum())
    keys = coldness * np.log(ranked[:positive]) + noise[:positive]
    drawn = order[:positive][top_n(keys, n, rng)]
    # What has no weight is never drawn while there is other: zeros, then -inf.
    return np.concatenate([drawn, order[positive:]])[:n]
