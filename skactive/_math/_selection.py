"""Choice of rows by their scores."""

from numbers import Real

import numpy as np


def top_n(scores, n, rng):
    """Return the positions (n,) of the highest scores (n_candidates,), best first.

    `rng` breaks ties: a generator, or one random number per candidate (n_candidates,),
    of which the highest comes first. The cost is O(n_candidates + n log n).
    """
    scores = np.asarray(scores)
    n = min(n, scores.shape[0])
    if n == 0:
        return np.empty(0, dtype=np.intp)
    # One partition finds the n-th highest score.
    threshold = np.partition(scores, scores.shape[0] - n)[scores.shape[0] - n]
    reached = np.flatnonzero(scores >= threshold)
    # A random key breaks ties, at the border of the batch and within it.
    # Reversed instead of negated, which not every dtype supports.
    given = isinstance(rng, np.ndarray)
    keys = rng[reached] if given else -rng.random(reached.shape[0])
    order = np.lexsort((keys, scores[reached]))[::-1]
    return reached[order[:n]]


def stochastic_n(scores, n, rng, *, method="power", coldness=1.0):
    """Draw n positions without replacement, high scores more likely than low ones.

    The next position is drawn with a probability in proportion to `scores ** coldness`
    ("power", for scores that are not negative; those of score 0 come last, in random
    order) or to `exp(coldness * scores)` ("softmax"). The n highest sums of log weight
    and Gumbel noise are such a draw (Kirsch et al., "Stochastic batch acquisition",
    TMLR 2023).
    """
    scores = np.asarray(scores)
    if method not in ("power", "softmax"):
        raise ValueError(f"method must be 'power' or 'softmax'; got {method!r}.")
    if not isinstance(coldness, Real):
        raise TypeError(f"coldness must be a number; got {coldness!r}.")
    if not 0 < coldness < np.inf:
        raise ValueError(f"coldness must be a finite number above 0; got {coldness!r}.")
    # Noise is assigned by rank, so it does not depend on the order of the pool.
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
    # Candidates without weight come last: zeros, then -inf.
    return np.concatenate([drawn, order[positive:]])[:n]
