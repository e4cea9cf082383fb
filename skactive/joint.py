"""Joint mutual information of a batch of labels and the model: draws in, nats out.

What the labels of a batch tell of the model is I(y_1..y_m; w) = H(w) - H(w | y_1..y_m).
With t draws as the prior, H(w) = log(t), and each configuration of labels leaves a
posterior over the draws. A batch is worked up label by label: a configuration splits
into one for each class of the next label, and what another candidate x would add is
the mutual information I(y_x; w) under the configuration's posterior, in the mean over
the configurations. Nothing of size n x k^m is ever held.
"""

from __future__ import annotations

import math

import numpy as np

from ._chunks import chunk_size, chunks
from .configurations import NEGLIGIBLE, Configurations, surprise
from .measures import entropy, mutual_information

__all__ = ["joint_information", "select_jointly"]

# Candidates looked at together. It decides, beyond the exact part, which estimates are
# made at all, so it is fixed, while the memory in use may vary.
BLOCK = 32
# Beyond the exact part, where a first look is no bound, it leaves so many candidates.
SHORTLIST = 128
# When no candidate adds more than this share of what the best one tells alone, the
# labels chosen tell the draws apart, and what is left is chance in the draws.
SATURATED = 1e-4


def joint_information(draws, *, exact_up_to=2**24, n_samples=4096, rng=None):
    """Mutual information of the labels of a batch, taken together, and the model.

    Parameters
    ----------
    draws : ndarray of shape (m, t, k)
        Class probabilities of the m items of the batch under t draws of the model's
        parameters, the same t for every item.
    exact_up_to : int, default=2**24
        The sum over all k^m configurations of labels is made up to this many, in
        chunks; it takes about a second for 2**27.
    n_samples : int, default=4096
        Beyond it, how many configurations are kept as the batch is worked up.
    rng : numpy.random.Generator or None, default=None
        Draws these; not used, and not needed, where the sum is exact.

    Returns
    -------
    information : float
        In nats, from 0 to log(t) and to the sum of the items' own mutual information.

    References
    ----------
    A. Kirsch, J. van Amersfoort, Y. Gal, "BatchBALD: efficient and diverse batch
    acquisition for deep Bayesian active learning", NeurIPS 2019.

    Examples
    --------
    Two draws that disagree for certain are told apart by one label, and a second one
    adds nothing:

    >>> import numpy as np
    >>> from skactive.joint import joint_information
    >>> item = [[1.0, 0.0], [0.0, 1.0]]
    >>> round(joint_information(np.array([item, item])), 6)
    0.693147
    """
    draws = np.asarray(draws, dtype=np.float64)
    m, t, k = draws.shape
    alone = mutual_information(draws).sum()
    if k**m <= exact_up_to:
        # One half of the batch meets the other: a product of two thin matrices holds
        # the probability of every configuration.
        left, right = (_likelihoods(half) for half in np.split(draws, [m // 2]))
        ones = np.ones(len(right))
        joint = 0.0
        for rows in chunks(len(left), chunk_size(24 * len(right))):
            joint += surprise(left[rows] @ (right.T / t)).dot(ones).sum()
        information = joint - entropy(draws).mean(axis=1).sum()
    elif rng is None:
        raise ValueError(
            f"`rng` is needed for {m} labels of {k} classes: {k}^{m} configurations "
            f"exceed exact_up_to={exact_up_to}. Pass numpy.random.default_rng(seed)."
        )
    else:
        state = Configurations(t, n_samples, rng)
        for item in draws:
            state.add(item)
        information = state.information
    # The bounds hold but for rounding, and the second for a sample only on average.
    return float(min(max(information, 0.0), math.log(t), alone))


def select_jointly(draws, n, rng, *, n_samples=4096, working_bytes=2**20):
    """Choose rows one by one so that their labels together tell most of the model.

    Parameters
    ----------
    draws : ndarray of shape (n_candidates, t, k)
        Class probabilities under t draws of the model's parameters, the same t for
        every candidate.
    n : int
        How many to choose, at most `n_candidates`.
    rng : numpy.random.Generator
        Breaks ties, and draws configurations of labels beyond the exact part.
    n_samples : int, default=4096
        How many configurations of labels may be held. Up to it they are all there and
        the choice is exact; beyond it they are a weighted sample.
    working_bytes : int, default=2**20
        Working memory of the innermost step. Changes speed only.

    Returns
    -------
    positions : ndarray of int, shape (n,)
        In the order of choice; each adds most to those before it.
    information : ndarray of shape (n,)
        Joint mutual information of the first 1, 2, ..., n chosen, in nats; never
        falling, never above log(t) or the sum of the items' own. When all candidates
        left add nothing, because the labels chosen tell the t draws apart, it stays,
        and the choice starts anew with what they tell on their own.

    Notes
    -----
    What a candidate adds can only fall as the batch grows, so what it last added
    bounds what it adds now, and most candidates are not looked at again ("lazy
    greedy"). The configurations that leave most to learn give a closer bound. In the
    exact part this finds the same rows as looking at all.

    In the sampled part one sample is extended from pick to pick, not drawn anew. Its
    bounds are estimates as the gains are, of which the smaller is kept, and a smaller
    sample draws up a shortlist of the candidates to look at.

    References
    ----------
    A. Kirsch, J. van Amersfoort, Y. Gal, "BatchBALD: efficient and diverse batch
    acquisition for deep Bayesian active learning", NeurIPS 2019.

    M. Minoux, "Accelerated greedy algorithms for maximizing submodular set
    functions", Optimization Techniques, 1978.

    Examples
    --------
    The second row is as good as the first and adds nothing to it:

    >>> import numpy as np
    >>> from skactive.joint import select_jointly
    >>> first = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    >>> other = [[0.7, 0.3], [0.3, 0.7], [0.7, 0.3], [0.3, 0.7]]
    >>> draws = np.array([first, first, other])
    >>> positions, information = select_jointly(draws, 2, np.random.default_rng(0))
    >>> positions[1]
    np.int64(2)
    >>> information.round(6)
    array([0.693147, 0.77543 ])
    """
    draws = np.asarray(draws)
    n_candidates, t, k = draws.shape
    alone = np.empty(n_candidates)
    for rows in chunks(n_candidates, chunk_size(24 * t * k)):
        alone[rows] = mutual_information(np.asarray(draws[rows], dtype=np.float64))
    # A place in a random order for each candidate decides ties, wherever it stands.
    places = rng.permutation(n_candidates)
    state, bounds = Configurations(t, n_samples, rng), alone.copy()
    told = SATURATED * alone.max(initial=0.0)
    positions, information, known, restarted = [], [], 0.0, False
    while len(positions) < min(n, n_candidates):
        looked = _look_at_the_best(bounds, draws, state, working_bytes)
        gains = bounds[looked]
        best = gains.max()
        if best <= told and state.n_labels:
            state, bounds = Configurations(t, n_samples, rng), alone.copy()
            restarted = True
            continue
        tied = looked[gains >= best - NEGLIGIBLE]
        pick = tied[places[tied].argmin()]
        if not restarted:
            known = min(known + max(best, 0.0), math.log(t))
        positions.append(pick)
        information.append(known)
        alone[pick] = bounds[pick] = -np.inf
        state.add(np.asarray(draws[pick], dtype=np.float64))
    return np.array(positions, dtype=np.intp), np.array(information)


def _look_at_the_best(bounds, draws, state, working_bytes):
    """Lower bounds in place to what candidates add, for all that may add most.

    Returns
    -------
    looked : ndarray of int
        The candidates whose bounds now are what they add.
    """
    n = bounds.shape[0]
    if not state.n_labels or bounds.max() <= NEGLIGIBLE:
        return np.arange(n)  # before the first label the bounds are the gains

    def look(some):
        gains = state.gains(draws[some], working_bytes)
        bounds[some] = np.minimum(bounds[some], gains)
        return bounds[some].max()

    block = min(BLOCK, n)
    looked = [np.argpartition(bounds, n - block)[n - block :]]
    best = look(looked[0])
    rest = np.flatnonzero(bounds >= best - NEGLIGIBLE)
    rest = np.setdiff1d(rest, looked[0], assume_unique=True)
    if state.rough is not None and len(rest) > SHORTLIST:
        rows = chunks(len(rest), BLOCK)
        rough = [state.gains(draws[rest[i]], working_bytes, rough=True) for i in rows]
        rough = np.minimum(np.concatenate(rough) + state.slack, bounds[rest])
        if state.is_sample:
            least = np.partition(rough, len(rest) - SHORTLIST)[len(rest) - SHORTLIST]
        else:
            bounds[rest], least = rough, best
        rest = rest[rough >= least - NEGLIGIBLE]
    rest = rest[np.argsort(-bounds[rest], kind="stable")]
    for some in chunks(len(rest), BLOCK):
        some = rest[some]
        if bounds[some[0]] < best - NEGLIGIBLE:
            break
        best = max(best, look(some))
        looked.append(some)
    return np.concatenate(looked)


def _likelihoods(draws):
    """Probability of each configuration of labels under each draw, (k^m, t)."""
    t = draws.shape[1]
    result = np.ones((1, t))
    for item in draws:
        result = (result[:, None, :] * item.T).reshape(-1, t)
    return result
