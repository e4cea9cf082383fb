"""Means and shares of a pool from the labels of a sample and a proxy of all items."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammaln, ndtri, stdtrit

from .._utils._checks import check_count, check_share
from .._utils._containers import as_list
from .._utils._format import brief, is_missing
from .._utils._labels import as_labels

_Interval = tuple[float, float]
MIN_LABELS = 10  # fewer say "too few"
_LEAST = 1e-100  # probability of a draw, whose inverse is squared
_MOST_EXACT = 1_000  # labels for which the exact limits of a finite pool are computed


@dataclass(frozen=True)
class MeanEstimate:
    """A mean or a share of a pool, and its interval.

    Parameters
    ----------
    value : float or None
        The estimate. None for fewer than ten labels.
    interval : (float, float) or None
        The confidence interval of `value`. None for a mean of labels that are all
        equal.
    n_labels : int
        Number of labels in the sample.
    n_pool : int or None
        Number of items in the pool, or None for a pool without end.
    effective_size : float
        Number of labels that would give this interval without a proxy.
    counted : float or None
        Mean of the proxy in the pool: what counting predictions says. It has no
        interval, as its error is unknown.
    is_share : bool
        Whether the value is a share.
    confidence_level : float
        Confidence level of the interval.

    Examples
    --------
    >>> from skactive.estimation import estimate_share
    >>> print(estimate_share([1] * 30 + [0] * 70, n_pool=1000))
    30.0 % (21.7 to 39.4 %), from 100 labels of 1,000 texts
    """

    value: float | None
    interval: _Interval | None
    n_labels: int
    n_pool: int | None = None
    effective_size: float = 0.0
    counted: float | None = None
    is_share: bool = True
    confidence_level: float = 0.95

    @property
    def half_width(self) -> float:
        """Half of the width of the interval, infinite without one."""
        low, high = self.interval or (-np.inf, np.inf)
        return float(high - low) / 2

    @property
    def r2(self) -> float:
        """Share of the variance that the proxy explains, from 0 to below 1."""
        if not self.effective_size:
            return 0.0
        return max(0.0, 1 - self.n_labels / self.effective_size)

    def __str__(self):
        if self.value is None:
            return f"too few labels: {self.n_labels}, of at least {MIN_LABELS}"
        if self.interval is None:
            return (
                f"{self.value:.4g}, no interval: all {self.n_labels:,} labels are equal"
            )
        low, high = self.interval
        if self.is_share:
            shown = f"{self.value:.1%} ({100 * low:.1f} to {high:.1%})"
            shown = shown.replace("%", " %")
        else:
            shown = f"{self.value:.4g} ({low:.4g} to {high:.4g})"
        text = f"{shown}, from {self.n_labels:,} labels"
        if self.r2 > 0:
            text += f" that count as {self.effective_size:,.0f}"
        return text + (f" of {self.n_pool:,} texts" if self.n_pool else "")


def estimate_mean(
    y: ArrayLike,
    proxy: ArrayLike | None = None,
    pool_proxy: ArrayLike | None = None,
    *,
    n_pool: int | None = None,
    draw_proba: ArrayLike | None = None,
    finite: bool = True,
    confidence_level: float = 0.95,
) -> MeanEstimate:
    """Estimate the mean of a number in a pool from the labels of a sample.

    Parameters
    ----------
    y : array-like of shape (n,)
        Numbers that people gave to the items of the sample. The sample is simple random
        without replacement, except with `draw_proba`.
    proxy : array-like of shape (n,) or (n, p), default=None
        What a model, or p models, predict for the items of the sample. Predictions of
        a model that was trained on the sample must be out-of-fold.
    pool_proxy : array-like of shape (n_pool,) or (n_pool, p), default=None
        What they predict for all items of the pool, with the sample.
    n_pool : int, default=None
        Number of items in the pool. Defaults to the length of `pool_proxy`; without
        either, the pool has no end.
    draw_proba : array-like of shape (n,), default=None
        For items that were drawn one after another without replacement: the probability
        of each draw, among the items that were left. Needs a pool of known size, and
        `y` in the order of the draws.
    finite : bool, default=True
        Whether the mean is that of the pool. False stands for the population of which
        the pool is a random sample.
    confidence_level : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    estimate : MeanEstimate
        The mean and its interval.

    Raises
    ------
    ValueError
        If the arrays do not fit each other or the pool, a number is missing, the
        probability of a draw is not positive, or `confidence_level` is not between 0
        and 1.
    TypeError
        If an array does not hold numbers.

    Notes
    -----
    The estimate is the mean of the labels, corrected by the difference of the proxy
    between pool and sample: prediction-powered inference with power tuning. The
    coefficient is that of least squares, and the residuals are those of fits without
    the item. A proxy that explains nothing is not used. The interval is Student's,
    with the correction for a finite pool. Labels are added that the sample may not
    show, as far from their prediction as the furthest one, and the side of a long tail
    is extended by the skewness (Johnson 1978). Intervals of fewer than 40 labels of
    heavy-tailed numbers are still too short: see :doc:`/results/estimates`. If all
    labels are equal, there is no interval.

    With `draw_proba`, each draw gives an unbiased term of the mean, and the terms are
    uncorrelated. They are weighted as in the levelled unbiased risk estimator.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi, T. Zrnic (2023). PPI++: Efficient
    prediction-powered inference. arXiv:2311.01453.

    Des Raj (1956). Some estimators in sampling with varying probabilities without
    replacement. Journal of the American Statistical Association 51.

    S. Farquhar, Y. Gal, T. Rainforth (2021). On statistical bias in active learning:
    how and when to fix it. ICLR.

    N. J. Johnson (1978). Modified t tests and confidence intervals for asymmetrical
    populations. Journal of the American Statistical Association 73.

    Examples
    --------
    >>> import numpy as np
    >>> from skactive.estimation import estimate_mean
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(3, 1, 2000)
    >>> predicted = truth + rng.normal(0, 0.5, 2000)
    >>> rows = rng.choice(2000, 100, replace=False)
    >>> estimate = estimate_mean(truth[rows], predicted[rows], predicted)
    >>> print(estimate)
    2.983 (2.883 to 3.085), from 100 labels that count as 561 of 2,000 texts
    """
    sample = Sample(y, proxy, pool_proxy, n_pool, draw_proba, finite)
    return sample.estimate(is_share=False, confidence_level=confidence_level)


def estimate_share(
    y: ArrayLike,
    proxy: ArrayLike | None = None,
    pool_proxy: ArrayLike | None = None,
    *,
    n_pool: int | None = None,
    draw_proba: ArrayLike | None = None,
    finite: bool = True,
    confidence_level: float = 0.95,
) -> MeanEstimate:
    """Estimate the share of a pool that has a property, such as a class.

    Parameters
    ----------
    y : array-like of shape (n,)
        Whether the items of the sample have the property, 0 or 1. The sample is simple
        random without replacement, except with `draw_proba`.
    proxy : array-like of shape (n,) or (n, p), default=None
        What a model, or p models, predict for the items of the sample: probabilities,
        or 0 and 1. Predictions of a model that was trained on the sample must be
        out-of-fold.
    pool_proxy : array-like of shape (n_pool,) or (n_pool, p), default=None
        What they predict for all items of the pool, with the sample.
    n_pool : int, default=None
        Number of items in the pool. Defaults to the length of `pool_proxy`; without
        either, the pool has no end.
    draw_proba : array-like of shape (n,), default=None
        For items that were drawn one after another without replacement: the probability
        of each draw, among the items that were left. Needs a pool of known size, and
        `y` in the order of the draws.
    finite : bool, default=True
        Whether the share is that of the pool. False stands for the population of which
        the pool is a random sample.
    confidence_level : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    estimate : MeanEstimate
        The share and its interval.

    Raises
    ------
    ValueError
        If the labels are not 0 and 1, or for the reasons of :func:`estimate_mean`.
    TypeError
        If an array does not hold numbers.

    Notes
    -----
    The estimate is that of :func:`estimate_mean`. Without a proxy, the limits are
    exact: hypergeometric ones for a pool, in whole items, and binomial ones (Clopper
    and Pearson 1934) without a pool. With a proxy, the interval is Student's, and
    errors are added that the sample may not show: if there is no error among n labels,
    the half width is 3 / n for 95 %.

    With `draw_proba`, an unseen error has the largest weight of an item of the sample.
    So draws that leave little to chance have wide intervals.

    Examples
    --------
    A model finds nine of ten cases. Counting its predictions says 30 %:

    >>> import numpy as np
    >>> from skactive.estimation import estimate_share
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000) < 0.25
    >>> predicted = np.where(rng.random(2000) < 0.1, ~truth, truth)
    >>> rows = rng.choice(2000, 100, replace=False)
    >>> estimate = estimate_share(truth[rows], predicted[rows], predicted)
    >>> print(estimate)
    24.7 % (18.1 to 31.2 %), from 100 labels that count as 138 of 2,000 texts
    >>> print(f"{estimate.counted:.1%}, in truth {truth.mean():.1%}")
    29.5%, in truth 25.4%
    """
    sample = Sample(y, proxy, pool_proxy, n_pool, draw_proba, finite)
    if not np.isin(sample.y, (0, 1)).all():
        raise ValueError(
            "'y' must be 0 or 1 for each item, whether it has the property. Use "
            "estimate_mean for numbers, got some of them."
        )
    return sample.estimate(confidence_level=confidence_level)


def unseen_errors(confidence_level):
    """Return how many errors of one item each are added to what a sample shows.

    Without an error among n items, the interval is then the rule of three, 3 / n for
    95 %.
    """
    z = ndtri((1 - confidence_level) / 2)
    return float((np.log(1 - confidence_level) / z) ** 2)


def interval_of_share(share, size, confidence_level):
    """Return the exact binomial limits of a share at an effective size.

    The size need not be an integer (Korn and Graubard 1998), and may be infinite.
    """
    if np.isinf(size):
        return float(share), float(share)
    alpha, count = (1 - confidence_level) / 2, share * size
    low = betaincinv(count, size - count + 1, alpha) if share > 0 else 0.0
    high = betaincinv(count + 1, size - count, 1 - alpha) if share < 1 else 1.0
    return float(low), float(high)


@lru_cache(4096)
def interval_of_count(count, n, n_pool, confidence_level):
    """Return the exact limits of the number of items of a pool that have a property.

    `count` of the n items of a random sample have it (hypergeometric distribution).
    """
    alpha = (1 - confidence_level) / 2
    others = _find_most(n - count, n, n_pool, alpha)
    return n_pool - others, _find_most(count, n, n_pool, alpha)


def _find_most(count, n, n_pool, alpha):
    """Return the largest number of items of which a sample can have only `count`."""
    drawn = np.arange(count + 1)
    fixed = gammaln(n_pool - n + 1) + gammaln(n + 1) - gammaln(n_pool + 1)
    fixed = fixed - gammaln(drawn + 1) - gammaln(n - drawn + 1)

    def is_excluded(total):
        others = n_pool - total
        logs = gammaln(total + 1) - gammaln(total - drawn + 1) + gammaln(others + 1)
        logs -= gammaln(others - n + drawn + 1)  # infinite for an impossible draw
        return np.exp(fixed + logs).sum() <= alpha

    totals = range(count, n_pool - n + count + 1)
    return totals[bisect_left(totals, True, key=is_excluded) - 1]


class Sample:
    """A sample of a pool: numbers or indicators (n,) and proxies (n, p).

    See `estimate_mean` for the parameters, which are checked here. `dependence` is a
    factor of the variance, for values that depend on each other.
    """

    def __init__(
        self,
        y,
        proxy=None,
        pool_proxy=None,
        n_pool=None,
        draw_proba=None,
        finite=True,
        dependence=1.0,
    ):
        self.y = as_numbers("y", y)
        self.n, self.finite, self._dependence = len(self.y), finite, dependence
        self.proxy, self.mean = np.empty((self.n, 0)), np.empty(0)
        if (proxy is None) != (pool_proxy is None):
            raise ValueError(
                "'proxy' and 'pool_proxy' must be given together, got one of them. The "
                "estimate compares the predictions of the sample with those of the "
                "pool."
            )
        if proxy is not None:
            f = as_numbers("proxy", proxy, 2)
            pool = as_numbers("pool_proxy", pool_proxy, 2)
            if len(f) != self.n or f.shape[1] != pool.shape[1]:
                raise ValueError(
                    f"'proxy' must have {self.n} rows, as 'y', and as many columns as "
                    f"'pool_proxy', got shapes {f.shape} and {pool.shape}."
                )
            if n_pool not in (None, len(pool)):
                raise ValueError(
                    f"'pool_proxy' must have a row for each of the {n_pool} items of "
                    f"the pool ('n_pool'), with the sample, got {len(pool)} rows."
                )
            n_pool = len(pool)
            self.proxy, self.mean = f, pool.mean(axis=0)
        if n_pool is not None and check_count("n_pool", n_pool) < self.n:
            raise ValueError(
                f"the pool must hold the {self.n} items of the sample, got {n_pool} "
                "items. 'n_pool' and 'pool_proxy' are those of all items."
            )
        self.n_pool = n_pool
        self.draw_proba = draw_proba
        if draw_proba is not None:
            self._check_draws()

    def _check_draws(self):
        q = self.draw_proba = as_numbers("draw_proba", self.draw_proba)
        if self.n_pool is None:
            raise ValueError(
                "'n_pool' must be given with 'draw_proba', got None. Draws without "
                "replacement need the number of items in the pool."
            )
        if len(q) != self.n or not ((q > _LEAST) & (q <= 1)).all():
            raise ValueError(
                f"'draw_proba' must have {self.n} probabilities above {_LEAST}, as 'y' "
                f"has items, got {len(q)} from {q.min(initial=1):g} to "
                f"{q.max(initial=0):g}."
            )

    @cached_property
    def weights(self):
        """Weights (n,) of the terms, which sum to one."""
        if self.draw_proba is None or self.n == self.n_pool:
            return np.full(self.n, 1 / self.n)
        left = self.n_pool - np.arange(self.n)
        weights = 1 / (left * (left - 1.0))
        return weights / weights.sum()

    @cached_property
    def item_weights(self):
        """Weights (n,) of the items: their sum with values estimates the mean."""
        return self.weights @ self.terms(np.eye(self.n))

    def terms(self, x):
        """Return terms (n, ...) that are uncorrelated, each with the mean of the pool.

        For a simple random sample, they are the values themselves. Otherwise, a draw
        adds the values drawn before it to x / q, its estimate of the sum of the others.
        """
        if self.draw_proba is None or self.n == self.n_pool:
            return x
        q = self.draw_proba.reshape(-1, *[1] * (x.ndim - 1))
        return (np.cumsum(x, axis=0) - x + x / q) / self.n_pool

    def variance(self, residuals):
        """Return the variance of the weighted mean of terms from their residuals (n,).

        It is unbiased for uncorrelated terms of one mean, residuals from their weighted
        mean, and fixed weights.
        """
        others = 1 - 2 * self.weights
        if self.n < 3:  # all items of a pool of one or two
            others = np.maximum(others, 1e-9)
        scale = self.weights**2 / others
        return scale @ np.square(residuals) / (1 + scale.sum())

    def correct(self, variance, plain):
        """Return a variance for a finite pool and values that depend on each other.

        `plain` is the variance of the labels alone.
        """
        part = self.n / self.n_pool if self.n_pool else 0.0
        left = 1.0 if self.draw_proba is not None and part < 1 else 1 - part
        more = 0.0 if self.finite else part * plain
        return self._dependence * variance * left + more

    def fit(self, y, proxy, mean):
        """Return the mean and residuals (n,) of least squares of terms on a proxy.

        `proxy` (n, p) has the `mean` (p,) in the pool. Each residual is that of a fit
        without the item, and larger for a sample whose proxy has another mean. A column
        that only rounding changes explains nothing.
        """
        weights, z, f = self.weights, self.terms(y), self.terms(proxy)
        value, shift = weights @ z, weights @ f - mean
        z, centered = z - value, f - mean - shift
        z = z * (np.abs(z).max() > 1e-12 * abs(value))  # else it is rounding
        if not len(mean):
            return value, z / np.maximum(1 - weights, 1e-9)
        constant = weights @ np.square(centered) <= 1e-12 * (weights @ np.square(f))
        centered[:, constant] = 0.0
        spread = (centered.T * weights) @ centered
        inverse = np.linalg.pinv(spread, rcond=1e-10, hermitian=True)
        coef = inverse @ (centered.T @ (weights * z))
        leverage = weights * (1 + ((centered @ inverse) * centered).sum(axis=1))
        residuals = z - centered @ coef
        residuals *= np.sqrt(1 + max(0.0, shift @ inverse @ shift))
        return value - shift @ coef, residuals / np.maximum(1 - leverage, 1e-9)

    def find_best(self, is_share=True, confidence_level=0.95, always=False):
        """Return the mean, its variance, that of the labels alone, and residuals (n,).

        All are for the proxy that explains most, or for the labels. To a variance,
        errors are added that the sample may not show: a proxy without an error among
        few labels is not perfect. For shares, an error is one item. For numbers, it is
        the furthest residual, or the mean one of the labels if that is larger. A proxy
        that explains nothing is used `always`, unless it doubles the variance, or not
        at all. The variances are those for a pool without end.
        """
        errors, alone = unseen_errors(confidence_level), 0.0

        def fit(chosen):
            value, residuals = self.fit(
                self.y, self.proxy[:, chosen], self.mean[chosen]
            )
            variance = self.variance(residuals * (1 - self.weights))
            one = np.square(self.item_weights).max()
            if not is_share:
                one = max(np.square(self.weights * residuals).max(), alone / self.n)
            return value, variance, errors * one * max(len(chosen), 1), residuals

        value, alone, more, residuals = fit([])
        if not is_share or self.draw_proba is not None:
            alone += more
        best, limit = (value, alone, residuals), alone * (2 if always else 1 - 1e-9)
        p = self.proxy.shape[1]
        for chosen in [[j] for j in range(p)] + [[*range(p)]] * (p > 1):
            if alone > 0 and self.n >= len(chosen) + 3:
                value, variance, more, residuals = fit(chosen)
                if variance + more < limit:
                    limit, best = variance + more, (value, variance + more, residuals)
        return *best[:2], alone, best[2]

    @np.errstate(over="ignore", invalid="ignore")
    def estimate(self, *, is_share=True, confidence_level=0.95, always=False):
        """Return the MeanEstimate.

        `always` uses a proxy that explains nothing.
        """
        check_share("confidence_level", confidence_level)
        counted = float(self.mean[0]) if len(self.mean) else None
        fields = {"n_labels": self.n, "n_pool": self.n_pool, "counted": counted}
        fields |= {"is_share": is_share, "confidence_level": confidence_level}
        is_complete = self._in_pool and self.n == self.n_pool
        if self.n < MIN_LABELS and not is_complete:
            return MeanEstimate(None, None, **fields)
        value, variance, alone, residuals = self.find_best(
            is_share, confidence_level, always
        )
        size = self.n * alone / variance if variance else float(self.n)
        is_plain = variance == alone and self.draw_proba is None
        q = -stdtrit(max(self.n - 2, 1), (1 - confidence_level) / 2)
        error = np.sqrt(self.correct(variance, alone))
        if is_share:
            interval = self._limits(value, q * error, confidence_level, is_plain)
            value = float(np.clip(value, *self._bounds()))
        elif variance or is_complete:
            # Johnson 1978: the mean of few labels misses a long tail.
            skew = np.mean(residuals**3) / max(np.mean(residuals**2) ** 1.5, 1e-300)
            tail = error * skew * (1 + 2 * q**2) / (6 * np.sqrt(self.n))
            low, high = value - q * error, value + q * error
            interval = float(low + min(tail, 0)), float(high + max(tail, 0))
        else:
            interval = None
        if not np.isfinite([value, size, *(interval or ())]).all():
            raise ValueError(
                f"'y' must have a finite mean and variance, got {value:g} with the "
                f"limits {interval}. Leave out extreme numbers."
            )
        return MeanEstimate(float(value), interval, effective_size=size, **fields)

    def _bounds(self):
        """Return the smallest and the largest share that the labels leave open."""
        if not self._in_pool:
            return 0.0, 1.0
        others = (1 - self.y).sum() / self.n_pool
        return self.y.sum() / self.n_pool, 1 - others

    def limits_alone(self, share, n, inverse, confidence_level):
        """Return the limits of a share of n labels alone, of which each counts once.

        `inverse` is the variance in units of that of one label. The limits are exact
        for a random sample, of a part of the pool if n is a part of the sample.
        """
        is_simple = self.draw_proba is None and self._dependence == 1
        if self._in_pool and is_simple and n <= _MOST_EXACT:
            # The size of this part of the pool is known within two standard errors.
            more = 2 * np.sqrt((1 / n - 1 / self.n) * (1 - self.n / self.n_pool))
            limits = []
            for factor in {1 - more, 1 + more}:
                n_pool = max(n, round(n * self.n_pool / self.n * factor))
                counts = round(share * n), n, n_pool
                count_limits = interval_of_count(*counts, confidence_level)
                limits.append([count / n_pool for count in count_limits])
            low, high = zip(*limits, strict=True)
            return min(low), max(high)
        inverse = self.correct(inverse, inverse)
        size = 1 / inverse if inverse else np.inf
        return interval_of_share(share, size, confidence_level)

    @property
    def _in_pool(self):
        return self.n_pool is not None and self.finite

    def _limits(self, value, half, confidence_level, is_plain):
        """Return the interval of a share; in a pool, of whole numbers of items."""
        limits = value - half, value + half
        if is_plain:
            limits = self.limits_alone(value, self.n, 1 / self.n, confidence_level)
        low, high = np.clip(limits, *self._bounds())
        if self._in_pool:
            low = np.floor(low * self.n_pool + 1e-9) / self.n_pool
            high = max(0.0, np.ceil(high * self.n_pool - 1e-9)) / self.n_pool
        return float(low), float(high)


def f1_of(share):
    """Return the F1 score for a share of items in both sets among those in either."""
    return 2 * share / (1 + share)


def as_indicators(name, labels, classes=None):
    """Return the classes (k,) and an indicator matrix (n, k) of labels.

    `labels` is (n,) or (n, k). The classes are the sorted labels by default.
    """
    n_dimensions = count_dimensions(labels)
    if not n_dimensions or not len(labels):
        raise ValueError(
            f"'{name}' must be a list of classes, or a column of 0 and 1 for each "
            f"class, got {brief(labels)}."
        )
    if classes is not None:
        classes = _read_classes(classes)
    if n_dimensions == 2:
        y = as_numbers(name, labels, 2)
        names = list(range(y.shape[1])) if classes is None else classes
        if len(names) != y.shape[1] or not np.isin(y, (0, 1)).all():
            raise ValueError(
                f"'{name}' must have a column of 0 and 1 for each of the {len(names)} "
                f"classes, got an array of shape {y.shape}."
            )
        return names, y
    labels = as_labels(labels, len(labels), name=name, items=name)
    names = sorted(set(labels.tolist())) if classes is None else classes
    if unknown := set(labels.tolist()) - set(names):
        raise ValueError(
            f"'classes' must list all classes of '{name}'; {next(iter(unknown))!r} is "
            "missing."
        )
    return names, (labels[:, None] == np.array(names)).astype(float)


def count_dimensions(values):
    """Return the number of dimensions, 0 for rows of several lengths."""
    try:
        return np.ndim(values)
    except ValueError:
        return 0


def _read_classes(classes):
    """Return different classes of one kind, list."""
    names = as_list(classes) if count_dimensions(classes) == 1 else []
    known = [x for x in names if isinstance(x, str | Real) and not is_missing(x)]
    kinds = {isinstance(x, str) for x in known}
    if len(kinds) != 1 or not len({*known}) == len(known) == len(names):
        raise ValueError(
            f"'classes' must hold names, got {brief(classes)}. Pass different ones, "
            "all str or all numbers; None, NaN and '' stand for a missing label."
        )
    return names


def check_proba(name, proba, k, n=None, *, is_sum=False, most=2):
    """Return probabilities (n, k), or (n, k, p) if `most` is 3; None stays None.

    With `is_sum`, the classes exclude each other.
    """
    if proba is None:
        return None
    proba = as_numbers(name, proba, most if count_dimensions(proba) == most else 2)
    if proba.shape[1] != k or n not in (None, len(proba)):
        rows = "" if n is None else f"{n} rows and "
        raise ValueError(
            f"'{name}' must have {rows}a column for each of the {k} classes, in the "
            f"order of 'classes', got an array of shape {proba.shape}. Name all of "
            "them with 'classes'."
        )
    sums = proba.sum(axis=1) if is_sum and proba.ndim == 2 else 1
    if proba.min() < 0 or proba.max() > 1 + 1e-6 or np.abs(sums - 1).max() > 0.01:
        raise ValueError(
            f"'{name}' must hold probabilities from 0 to 1, got {proba.min():g} to "
            f"{proba.max():g}, which sum to 1 in each row if an item has one class, "
            f"got {np.min(sums):g} to {np.max(sums):g}. Divide the rows by their sums."
        )
    return proba


def as_numbers(name, values, ndim=1) -> Any:
    """Return finite float values (n,), or (n, p) for two dimensions."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as exc:
        raise TypeError(
            f"'{name}' must hold numbers, got {type(values).__name__} of something "
            "else. Give 0 and 1 for whether an item has a class."
        ) from exc
    if ndim == 2 and numbers.ndim == 1:
        numbers = numbers[:, None]
    if numbers.ndim != ndim:
        raise ValueError(
            f"'{name}' must have {ndim} dimension{'s' * (ndim > 1)}, got an array of "
            f"shape {numbers.shape}."
        )
    if not len(numbers) or not np.isfinite(numbers).all():
        raise ValueError(
            f"'{name}' must hold at least one number, and only finite ones, got an "
            f"array of shape {numbers.shape} with {int((~np.isfinite(numbers)).sum())} "
            "missing or infinite. Leave these items out."
        )
    return numbers
