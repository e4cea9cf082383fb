"""Bayesian strategies: query where posterior samples of the model disagree."""

import math
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._math import _scores
from .._math._scores import entropy, mutual_information, stochastic_n
from .._utils._chunks import chunk_size, chunks
from .._utils._sklearn import MOST, Interval, StrOptions
from ._base import TARGETS, PointwiseStrategy, Strategy

_MEASURES = {
    "entropy": _scores.entropy,
    "least_confidence": _scores.least_confidence,
    # From 0 to 1, the highest first, as "power" needs it.
    "margin": lambda proba: 1.0 - _scores.margin(proba),
}


class _Draws(PointwiseStrategy):
    """Base of the pointwise strategies on posterior draws: how a batch is selected."""

    _parameter_constraints = {
        "n_draws": [Interval(Integral, 1, MOST, closed="both")],
        "selection": [StrOptions({"top", "power", "softmax"})],
        "coldness": [Interval(Real, 0, np.inf, closed="neither")],
    }
    requires = frozenset({"draws"})
    targets = TARGETS

    def _choose(self, scores, view, n):
        """Select the n highest scores, or draw by the scores."""
        if self.selection == "top":
            return super()._choose(scores, view, n)
        return stochastic_n(
            scores, n, view.rng, method=self.selection, coldness=self.coldness
        )


class BALD(_Draws):
    """Query the candidates with the highest mutual information of label and parameters.

    The score is the entropy of the mean prediction minus the mean entropy of the
    predictions. It is high where posterior samples of the model are confident and
    disagree. For several labels per item it is the sum over the labels, and for a
    regressor the variance of the prediction under the posterior.

    Parameters
    ----------
    n_draws : int, default=50
        Number of posterior samples, from 2 to 1,000,000.
    selection : {"top", "power", "softmax"}, default="top"
        "top" selects the highest scores. The others draw without replacement with
        probabilities in proportion to `score ** coldness` ("PowerBALD") or to
        `exp(coldness * score)`, which makes batches more diverse.
    coldness : float, default=1.0
        Not used by "top". Higher values are closer to it.

    Notes
    -----
    Cost: O(n t k) plus the draws, which are made and reduced in chunks.

    For a regressor with noise of the same variance everywhere, the information
    log(1 + variance / noise) / 2 has the order of the variance. The variance is exact
    for linear models and Gaussian processes, and that of 50 draws otherwise. The sum
    over labels is an upper bound of the information of all labels together.

    When to use: models with posterior samples, if labels are noisy and uncertainty
    sampling keeps selecting candidates that no label resolves. Large batches of the
    highest scores are redundant: use `selection="power"` or BatchBALD.

    References
    ----------
    N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel, "Bayesian active learning for
    classification and preference learning", arXiv:1112.5745, 2011.

    A. Kirsch et al., "Stochastic batch acquisition: a simple baseline for deep active
    learning", TMLR 2023, for `selection`.

    D. J. C. MacKay, "Information-based objective functions for active data selection",
    Neural Computation 4, 1992, for regression.

    Examples
    --------
    The trees of a forest agree at the ends and disagree in the middle:

    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import BALD
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(random_state=0)
    >>> learner = ActiveLearner(forest, strategy=BALD(), random_state=0)
    >>> learner = learner.fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    >>> learner.query([[-9.0], [0.1], [9.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        **_Draws._parameter_constraints,
        "n_draws": [Interval(Integral, 2, MOST, closed="both")],
    }

    def __init__(
        self, n_draws: int = 50, *, selection: str = "top", coldness: float = 1.0
    ) -> None:
        self.n_draws = n_draws
        self.selection = selection
        self.coldness = coldness

    def requires_for(self, target: str) -> frozenset[str]:
        """Return what the strategy requires: of a regressor, its variance."""
        return frozenset({"variance"}) if target == "regression" else self.requires

    def score(self, view: Any) -> NDArray:
        """Return the information in nats, or the variance of a regressor."""
        if view.target == "regression":
            return view.variance
        several = view.target == "multi-label"
        measure = _scores.label_information if several else _scores.mutual_information
        return view.map_draws(measure, self.n_draws)


class MCDropout(_Draws):
    """Query the candidates with the most uncertain mean over posterior samples.

    For a network whose samples are dropout masks this is Monte Carlo dropout: the mean
    over the samples is the prediction, and its uncertainty is the score.

    Parameters
    ----------
    n_draws : int, default=50
        Number of posterior samples, at most 1,000,000.
    measure : {"entropy", "least_confidence", "margin"}, default="entropy"
        The uncertainty of the mean; "margin" is 1 minus the gap between the two best
        classes. For several labels per item it is the mean over the labels. Not used by
        regressors, whose uncertainty is the variance of the draws.
    selection : {"top", "power", "softmax"}, default="top"
        "top" selects the highest scores. The others draw without replacement with
        probabilities in proportion to `score ** coldness` or to `exp(coldness *
        score)`, which makes batches more diverse.
    coldness : float, default=1.0
        Not used by "top". Higher values are closer to it.

    Notes
    -----
    Cost: O(n t k) plus the draws, which are made and reduced in chunks.

    When to use: networks that are overconfident without dropout. For linear models the
    mean hardly differs from the prediction, so use entropy.

    References
    ----------
    Y. Gal, Z. Ghahramani, "Dropout as a Bayesian approximation: representing model
    uncertainty in deep learning", ICML 2016.

    L. Ein-Dor et al., "Active learning for BERT: an empirical study", EMNLP 2020.

    A. Kirsch et al., "Stochastic batch acquisition: a simple baseline for deep active
    learning", TMLR 2023, for `selection`.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import MCDropout
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(random_state=0)
    >>> learner = ActiveLearner(forest, strategy=MCDropout(measure="margin"))
    >>> learner = learner.fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    >>> learner.query([[-9.0], [0.1], [9.0]], 1)
    array([1])
    """

    _parameter_constraints = {
        **_Draws._parameter_constraints,
        "measure": [StrOptions(set(_MEASURES))],
    }

    def __init__(
        self,
        n_draws: int = 50,
        *,
        measure: str = "entropy",
        selection: str = "top",
        coldness: float = 1.0,
    ) -> None:
        self.n_draws = n_draws
        self.measure = measure
        self.selection = selection
        self.coldness = coldness

    def score(self, view: Any) -> NDArray:
        """Return the uncertainty of the mean, or the variance of a regressor."""
        if view.target == "regression":
            return view.map_draws(lambda draws: draws.var(axis=1), self.n_draws)
        measure = _MEASURES[self.measure]
        if view.target == "multi-label":
            measure = partial(_scores.label_uncertainty, measure=self.measure)
        return view.map_draws(
            lambda draws: measure(_scores.mean_over_draws(draws)), self.n_draws
        )


class BatchBALD(Strategy):
    """Query the batch whose labels have most joint information on the parameters.

    Candidates are selected greedily: each adds most to the joint mutual information of
    the labels of the batch and the model's parameters. Of two candidates with the same
    information, only one is selected. For a regressor the information is that of
    normal labels, log det(I + K / noise) / 2 for the covariance K of the batch.

    Parameters
    ----------
    n_draws : int, default=50
        Number of posterior samples, from 2 to 1,000,000. Their information is at most
        log(n_draws). A batch that reaches this limit is completed by starting anew, so
        large batches need many draws.
    n_samples : int, default=4096
        Maximum number of configurations of the batch's labels. The joint information is
        exact while there are no more, k^(b - 1) for a batch of b; beyond that they are
        a weighted sample. At most 1,000,000. Not used by regressors.
    noise : float or "auto", default="auto"
        Variance of the noise in the labels of a regression. "auto" is the mean squared
        residual of the labels that the model was trained on.

    Notes
    -----
    Cost: O(n t k) and, for each pick, O(s t k) for each candidate that could still be
    the best, s = min(k^(b - 1), n_samples). These are few of n, unless all are similar.
    For a regressor O(n b (t + b)).
    The draws of all candidates are held, n t k numbers: use a prefilter for huge pools.

    When to use: small batches with a model that has posterior samples. The advantage
    over BALD is larger if candidates are similar. Use no more picks than draws.

    References
    ----------
    A. Kirsch, J. van Amersfoort, Y. Gal, "BatchBALD: efficient and diverse batch
    acquisition for deep Bayesian active learning", NeurIPS 2019.

    Examples
    --------
    The pool holds five copies of one item; one label for them is enough:

    >>> from skactive import ActiveLearner
    >>> from skactive.strategies import BatchBALD
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(max_features=1, random_state=0)
    >>> learner = ActiveLearner(forest, strategy=BatchBALD(), random_state=0)
    >>> X = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]
    >>> learner = learner.fit(X, [0, 0, 1, 1])
    >>> pool = [[0.1, 0.1]] * 5 + [[-0.1, 0.1]]
    >>> sorted(pool[i] for i in learner.query(pool, 2))
    [[-0.1, 0.1], [0.1, 0.1]]
    """

    _parameter_constraints = {
        "n_draws": [Interval(Integral, 2, MOST, closed="both")],
        "n_samples": [Interval(Integral, 1, MOST, closed="both")],
        "noise": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }
    requires = frozenset({"draws"})
    targets = frozenset({"single-label", "regression"})

    def __init__(
        self,
        n_draws: int = 50,
        *,
        n_samples: int = 4096,
        noise: float | str = "auto",
    ) -> None:
        self.n_draws = n_draws
        self.n_samples = n_samples
        self.noise = noise

    def requires_for(self, target: str) -> frozenset[str]:
        """Return what the strategy requires, for the noise of a regressor as well."""
        more = {"labeled", "predictions"} if target == "regression" else set()
        return self.requires | more

    def select(self, view: Any, n: int) -> NDArray:
        """Select n candidates, each with the largest gain in joint information."""
        draws = view.draws(self.n_draws)
        if view.target == "regression":
            noise = self.noise
            if noise == "auto":
                residuals = np.asarray(view.y_trained) - view.trained.predictions
                noise = np.mean(residuals**2, dtype=np.float64)
            return select_by_covariance(draws, n, view.uniform(), noise)
        return select_jointly(draws, n, view.rng, n_samples=self.n_samples)[0]


def select_by_covariance(draws, n, places, noise):
    """Choose n rows of `draws` (n_candidates, t) by greedy joint information.

    Labels are normal with variance `noise` around the draws. A pick changes the
    covariance of the others by a product of its covariances with them, so that only the
    variances are kept. The highest of `places` (n_candidates,) wins a tie.
    """
    draws = np.asarray(draws, dtype=np.float64)
    centered = draws - draws.mean(axis=1, keepdims=True)
    variances = np.mean(centered**2, axis=1)
    # Without noise a second copy would divide by 0.
    noise = max(noise, np.finfo(np.float64).eps * variances.max(initial=0), TINY)
    picks, changes = list[int](), []
    while len(picks) < n:
        tied = np.flatnonzero(variances >= variances.max() * (1 - 2.0**-32))
        pick = int(tied[places[tied].argmax()])
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


def select_jointly(draws, n, rng, *, n_samples=4096, working_bytes=2**20):
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
    # A random place per candidate breaks ties, whatever its position.
    places = rng.permutation(n_candidates)
    state, bounds = Configurations(t, n_samples, rng), alone.copy()
    saturated = SATURATED * alone.max(initial=0.0)
    positions, information, known, restarted = [], [], 0.0, False
    while len(positions) < min(n, n_candidates):
        looked = _look_at_the_best(bounds, draws, state, working_bytes)
        gains = bounds[looked]
        best = gains.max()
        if best <= saturated and state.n_labels:
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
        kept, shares = thin(left, self.limit, self.rng)
        parents, labels = np.divmod(kept, k)
        posteriors = self.posteriors[parents] * item.T[labels]
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        self.posteriors = posteriors
        self.weights = weights[kept] / shares
        self.is_sample = self.is_sample or shares.min(initial=1.0) < 1
        self._take_some(left[kept] / shares)

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
    kept = np.sort(order)
    if len(kept) <= limit:
        return kept, np.ones(len(kept))
    # Number of the largest that are kept for certain.
    largest = values[order[::-1]]
    rest = np.cumsum(largest[::-1])[::-1]
    certain = np.argmax(largest * (limit - np.arange(len(largest))) <= rest)
    shares = np.minimum(values[kept] * ((limit - certain) / rest[certain]), 1.0)
    # One random number for all: entries at even steps of the summed probabilities.
    # Neighbors share most of their labels, so they represent each other.
    steps = np.floor(np.cumsum(shares) + rng.random())
    taken = np.diff(steps, prepend=0.0) > 0
    return kept[taken], shares[taken]


def surprise(proba):
    """Return -p log(p), 0 at 0."""
    return -proba * np.log(np.maximum(proba, TINY))
