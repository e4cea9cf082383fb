"""Joint information of the labels of a batch on the model, chosen greedily."""

import math

import numpy as np

from .._utils._chunks import chunk_size, chunks
from ._scores import entropy, mutual_information


def select_by_covariance(draws, n_queries, priority, noise):
    """Choose n rows of `draws` (n_candidates, t) by greedy joint information.

    Labels are normal with variance `noise` around the draws. A pick changes the
    covariance of the others by a product of its covariances with them, so that only the
    variances are kept. The highest `priority` (n_candidates,) wins a tie.
    """
    draws = np.asarray(draws, dtype=np.float64)
    centered = draws - draws.mean(axis=1, keepdims=True)
    variances = np.mean(centered**2, axis=1)
    # Without noise a second copy would divide by 0.
    noise = max(noise, np.finfo(np.float64).eps * variances.max(initial=0), TINY)
    picks, changes = list[int](), []
    while len(picks) < n_queries:
        tied = np.flatnonzero(variances >= variances.max() * (1 - 2.0**-32))
        pick = int(tied[priority[tied].argmax()])
        picks.append(pick)
        covariances = centered @ centered[pick] / draws.shape[1]
        for change in changes:
            covariances -= change * change[pick]
        change = covariances / np.sqrt(max(covariances[pick], 0) + noise)
        changes.append(change)
        variances = np.maximum(variances - change**2, 0)
        variances[picks] = -1
    return np.array(picks, dtype=np.intp)


# Joint mutual information of the labels of a batch and the model ----------------------
# The labels of a batch have the information I(y_1..y_m; w) = H(w) - H(w | y_1..y_m)
# about the model. With t draws as the prior, H(w) = log(t), and each configuration of
# labels has a posterior over the draws. A batch is processed label by label: each
# configuration splits into one for each class of the next label. The gain of another
# candidate x is the mean over configurations of I(y_x; w) under their posteriors. No
# n x k^m array exists.

# Candidates evaluated together. Beyond the exact part this determines which estimates
# are made, so it is fixed, while the memory in use may vary.
BLOCK = 32
# Candidates left by the first estimate beyond the exact part, where it is no bound.
SHORTLIST = 128
# When no gain exceeds this share of the best candidate's own information, the selected
# labels distinguish all draws, and the rest is noise of the draws.
SATURATED = 1e-4


def select_jointly(draws, n_queries, rng, *, n_samples=4096, working_bytes=2**20):
    """Choose n rows of draws (n_candidates, t, k) by greedy joint information.

    Returns positions (n,) and the joint information (n,) of the first 1, 2, ..., n in
    nats. The choice is exact while there are at most `n_samples` configurations of
    labels; beyond that they are a weighted sample, which is extended from pick to pick.

    A gain can only shrink as the batch grows, so its last value is an upper bound, and
    most candidates are not evaluated again ("lazy greedy"). When no remaining candidate
    adds information, the choice starts anew with what they have on their own.
    """
    draws = np.asarray(draws)
    n_candidates, t, k = draws.shape
    alone = np.empty(n_candidates)
    for rows in chunks(n_candidates, chunk_size(24 * t * k)):
        alone[rows] = mutual_information(np.asarray(draws[rows], dtype=np.float64))
    # A random rank per candidate breaks ties.
    ranks = rng.permutation(n_candidates)
    state, bounds = Configurations(t, n_samples, rng), alone.copy()
    saturated = SATURATED * alone.max(initial=0.0)
    positions, information, total, restarted = [], [], 0.0, False
    while len(positions) < min(n_queries, n_candidates):
        looked = _look_at_the_best(bounds, draws, state, working_bytes)
        gains = bounds[looked]
        best = gains.max()
        if best <= saturated and state.n_labels:
            state, bounds = Configurations(t, n_samples, rng), alone.copy()
            restarted = True
            continue
        tied = looked[gains >= best - NEGLIGIBLE]
        pick = tied[ranks[tied].argmin()]
        if not restarted:
            total = min(total + max(best, 0.0), math.log(t))
        positions.append(pick)
        information.append(total)
        alone[pick] = bounds[pick] = -np.inf
        state.add(np.asarray(draws[pick], dtype=np.float64))
    return np.array(positions, dtype=np.intp), np.array(information)


def _look_at_the_best(bounds, draws, state, working_bytes):
    """Replace the highest bounds by gains in place; return their candidates."""
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
    left = np.flatnonzero(bounds >= best - NEGLIGIBLE)
    left = np.setdiff1d(left, looked[0], assume_unique=True)
    if state.rough is not None and len(left) > SHORTLIST:
        rows = chunks(len(left), BLOCK)
        rough = [state.gains(draws[left[i]], working_bytes, rough=True) for i in rows]
        rough = np.minimum(np.concatenate(rough) + state.slack, bounds[left])
        if state.is_sample:
            least = np.partition(rough, len(left) - SHORTLIST)[len(left) - SHORTLIST]
        else:
            bounds[left], least = rough, best
        left = left[rough >= least - NEGLIGIBLE]
    left = left[np.argsort(-bounds[left], kind="stable")]
    for some in chunks(len(left), BLOCK):
        some = left[some]
        if bounds[some[0]] < best - NEGLIGIBLE:
            break
        best = max(best, look(some))
        looked.append(some)
    return np.concatenate(looked)


# Configurations with less total information than this (in nats) are dropped, and gains
# that differ by less are ties: both are below the resolution of float64.
NEGLIGIBLE = 1e-12
ROUGHLY = 8  # factor by which a first estimate uses fewer configurations
TINY = 2 * np.finfo(np.float64).tiny


class Configurations:
    """Configurations of the chosen labels, each with a weight and a posterior.

    The weights are probabilities while all configurations are held. Beyond `limit` some
    are dropped at random, with weights that keep every sum unbiased.
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
        """Return the gain of each of some candidates (c, t, k)."""
        weights, posteriors = self.rough if rough else (self.weights, self.posteriors)
        draws = np.asarray(draws, dtype=np.float64)
        c, t, k = draws.shape
        # Replaces 0 in the logarithm, and changes no other number.
        inputs = np.add(draws, TINY).transpose(1, 0, 2).reshape(t, c * k)
        total = np.zeros(c * k)
        size = chunk_size(16 * c * k, working_bytes)
        for rows in chunks(len(weights), size):
            mixed = posteriors[rows] @ inputs  # (configurations, c * k)
            terms = np.log(mixed)
            terms *= mixed
            total -= weights[rows] @ terms
        # Minus the entropy under each draw. With posteriors instead of the prior no
        # configuration counts negative, not even in a sample.
        mean_posterior = weights @ posteriors
        gains = total.reshape(c, k).sum(axis=1) - entropy(draws) @ mean_posterior
        return np.maximum(gains, 0.0)

    def add(self, item):
        """Split every configuration by the label of a further item (t, k)."""
        self.n_labels += 1
        if not len(self.weights):
            return  # no information is left
        t, k = item.shape
        rows = chunks(len(self.weights), chunk_size(32 * t * k))
        split = [self._split(some, item) for some in rows]
        weights, left = (np.concatenate(parts) for parts in zip(*split, strict=True))
        # `left` is the weighted entropy of a configuration: the maximum that it can
        # still add to any gain.
        self.information = math.log(t) - left.sum()
        entries, shares = thin(left, self.limit, self.rng)
        parents, labels = np.divmod(entries, k)
        posteriors = self.posteriors[parents] * item.T[labels]
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        self.posteriors = posteriors
        self.weights = weights[entries] / shares
        self.is_sample = self.is_sample or shares.min(initial=1.0) < 1
        self._take_some(left[entries] / shares)

    def _take_some(self, left):
        """Select a few configurations for a first bound on a candidate's gain.

        The others add at most their remaining entropy, so with this slack the result is
        a bound if all are held. In a sample it is an estimate from a smaller one.
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
        """Return weights of the configurations after a split, and entropies."""
        joint = self.posteriors[rows, None, :] * item.T  # (configurations, k, t)
        mass = joint.sum(axis=2)
        # mass * H(joint / mass)
        left = surprise(joint).sum(axis=2) - surprise(mass)
        weights = self.weights[rows, None]
        return (weights * mass).ravel(), (weights * np.maximum(left, 0.0)).ravel()


def thin(values, limit, rng):
    """Return at most `limit` entries (s,) and the probability of each to be kept, (s,).

    Large values are kept for certain, others with a probability in proportion to their
    value, so weighted sums over entries are unbiased and the sum of the values is
    exact.
    """
    order = np.argsort(values)
    total = np.cumsum(values[order])
    order = order[np.searchsorted(total, NEGLIGIBLE, side="right") :]
    entries = np.sort(order)
    if len(entries) <= limit:
        return entries, np.ones(len(entries))
    # Number of the largest that are kept for certain.
    largest = values[order[::-1]]
    remaining = np.cumsum(largest[::-1])[::-1]
    certain = np.argmax(largest * (limit - np.arange(len(largest))) <= remaining)
    shares = np.minimum(values[entries] * ((limit - certain) / remaining[certain]), 1.0)
    # One random number for all: entries at even steps of the summed probabilities.
    # Neighbors share most of their labels, so they represent each other.
    steps = np.floor(np.cumsum(shares) + rng.random())
    taken = np.diff(steps, prepend=0.0) > 0
    return entries[taken], shares[taken]


def surprise(proba):
    """Return -p log(p), 0 at 0."""
    return -proba * np.log(np.maximum(proba, TINY))
