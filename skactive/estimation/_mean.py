"""Means and shares of a pool from the labels of a sample and a proxy of all items."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

_Interval = tuple[float, float]
MIN_LABELS = 10  # fewer say "too few"


@dataclass(frozen=True)
class MeanEstimate:
    """A mean or a share of a pool, and its interval.

    Parameters
    ----------
    value : float or None
        The estimate. None for fewer than ten labels.
    interval : (float, float) or None
        The confidence interval of `value`.
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
    30.0 % (22.3 to 39.1 %), from 100 labels of 1,000 texts
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
    with the correction for a finite pool.

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
    2.983 (2.891 to 3.074), from 100 labels that count as 580 of 2,000 texts
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
    The estimate is that of :func:`estimate_mean`. The interval is Wilson's, for the
    number of labels that would give the same variance without a proxy.

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
    24.7 % (18.9 to 31.6 %), from 100 labels that count as 169 of 2,000 texts
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


def wilson_interval(n_correct, n, z=1.959963984540054):
    """Return the Wilson score interval of a share, which may be of fractions."""
    share = n_correct / n
    spread = z / (1 + z**2 / n)
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = spread * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = min(center - half, share), max(center + half, share)  # by rounding
    return max(0.0, float(low)), min(1.0, float(high))


def interval_of_share(share, size, confidence_level, freedom=np.inf):
    """Return the Wilson interval of a share at an effective size, which may be inf.

    `freedom` are the degrees of freedom of the size, if it is estimated.
    """
    if np.isinf(size):
        return float(share), float(share)
    z = t.isf((1 - confidence_level) / 2, freedom)
    return wilson_interval(share * size, size, z)


class Sample:
    """A sample of a pool: numbers or indicators (n,) and proxies (n, p).

    See `estimate_mean` for the parameters, which are checked here.
    """

    def __init__(
        self, y, proxy=None, pool_proxy=None, n_pool=None, draw_proba=None, finite=True
    ):
        self.y = as_numbers("y", y)
        self.n, self.finite = len(self.y), finite
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
        if n_pool is not None and n_pool < self.n:
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
        if len(q) != self.n or not ((q > 0) & (q <= 1)).all():
            raise ValueError(
                f"'draw_proba' must have {self.n} probabilities above 0, as 'y' has "
                f"items, got {len(q)} from {q.min(initial=1):g} to "
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

        They are the values themselves for a simple random sample. The draw t has seen
        the sum of the values before, and estimates that of the others as x / q.
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
        weights = self.weights
        scale = weights**2 / (1 - 2 * weights)
        variance = scale @ np.square(residuals) / (1 + scale.sum())
        left = 1.0 if self.n_pool is None else 1 - self.n / self.n_pool
        return variance * (left if self.draw_proba is None else 1.0)

    def fit(self, y, proxy, mean):
        """Return the mean and residuals (n,) of least squares of terms on a proxy.

        `proxy` (n, p) has the `mean` (p,) in the pool. Each residual is that of a fit
        without the item, and larger for a sample whose proxy has another mean.
        """
        weights, z, d = self.weights, self.terms(y), self.terms(proxy) - mean
        value, shift = weights @ z, weights @ d
        z, centered = z - value, d - shift
        spread = (centered.T * weights) @ centered
        inverse = np.linalg.pinv(spread, rcond=1e-10, hermitian=True)
        coef = inverse @ (centered.T @ (weights * z))
        leverage = weights * (1 + ((centered @ inverse) * centered).sum(axis=1))
        residuals = z - centered @ coef
        residuals *= np.sqrt(1 + max(0.0, shift @ inverse @ shift))
        return value - shift @ coef, residuals / np.maximum(1 - leverage, 1e-9)

    def find_best(self, always=False):
        """Return the mean with the proxy that explains most, and its relative variance.

        The variance is relative to that without a proxy. A label that the proxy does
        not explain is added for each of its columns: a proxy without an error among few
        labels is not perfect. For shares it is the label that is the furthest from the
        mean, such as one more item of a rare class, as errors there can be few and
        large. docs/results/estimates.md has the coverage. A proxy that explains nothing
        is used `always` or not at all.
        """
        p = self.proxy.shape[1]
        columns = [[j] for j in range(p)] + ([[*range(p)]] if p > 1 else [])
        value, plain = self.fit(self.y, self.proxy[:, :0], self.mean[:0])
        squares, ratio = np.square(self.weights * plain), 1.0
        base = squares.sum()
        one = base / self.n
        if self.draw_proba is None and np.isin(self.y, (0, 1)).all():
            one = squares.max()
        for chosen in columns if base > 0 else ():
            if self.n < len(chosen) + 3:
                continue
            other, rest = self.fit(self.y, self.proxy[:, chosen], self.mean[chosen])
            more = len(chosen) * one
            explained = (np.square(self.weights * rest).sum() + more) / (base + more)
            if explained < ratio - 1e-9 or (always and ratio == 1):
                value, ratio = other, min(explained, 1.0)
        return float(value), float(ratio)

    def estimate(
        self, *, is_share=True, confidence_level=0.95, dependence=1.0, always=False
    ):
        """Return the MeanEstimate.

        `dependence` is a factor of the variance, for labels that depend on each other.
        `always` uses a proxy that explains nothing.
        """
        if not 0 < confidence_level < 1:
            raise ValueError(
                "'confidence_level' must be between 0 and 1, such as 0.95, got "
                f"{confidence_level!r}."
            )
        counted = float(self.mean[0]) if len(self.mean) else None
        about = {"n_labels": self.n, "n_pool": self.n_pool, "counted": counted}
        about |= {"is_share": is_share, "confidence_level": confidence_level}
        if self.n < MIN_LABELS and self.n != self.n_pool:
            return MeanEstimate(None, None, **about)
        value, ratio = self.find_best(always)
        spread = self._spread(value, is_share)
        simple = 1 / self.n - (1 / self.n_pool if self.n_pool else 0)
        if self.draw_proba is not None and spread and simple:
            plain = self.fit(self.y, self.proxy[:, :0], self.mean[:0])[1]
            plain = self.variance(plain * (1 - self.weights))
            ratio *= max(plain, spread * simple / self.n) / (spread * simple)
        inverse = dependence * ratio * simple
        if not self.finite and self.n_pool:
            inverse += 1 / self.n_pool
        size = 1 / inverse if inverse else np.inf
        if is_share:
            least, most = 0.0, 1.0
            if self.n_pool and self.finite:  # the labels themselves are known
                least = self.y.sum() / self.n_pool
                most = 1 - (1 - self.y).sum() / self.n_pool
            value = float(np.clip(value, least, most))
            freedom = self.n - 2 if ratio != 1 else np.inf
            interval = interval_of_share(value, size, confidence_level, freedom)
            interval = tuple(float(np.clip(x, least, most)) for x in interval)
        else:
            half = t.isf((1 - confidence_level) / 2, max(self.n - 2, 1))
            half *= np.sqrt(spread * inverse)
            interval = float(value - half), float(value + half)
        return MeanEstimate(value, interval, effective_size=self.n / ratio, **about)

    def _spread(self, value, is_share):
        """Return the variance of the values in the pool."""
        if is_share and self.draw_proba is not None:
            value = min(max(value, 0.0), 1.0)
            return value * (1 - value)
        if self.draw_proba is None:
            return float(self.y.var(ddof=min(1, self.n - 1)))
        return max(float(self.weights @ self.terms(np.square(self.y - value))), 0.0)


def f1_of(share):
    """Return the F1 score for a share of items in both sets among those in either."""
    return 2 * share / (1 + share)


def as_indicators(name, labels, classes=None):
    """Return the classes (k,) and an indicator matrix (n, k) of labels.

    `labels` is (n,) or (n, k). The classes are the sorted labels by default.
    """
    labels = np.asarray(labels)
    if labels.ndim == 2:
        y = as_numbers(name, labels, 2)
        names = list(range(y.shape[1])) if classes is None else list(classes)
        if len(names) != y.shape[1] or not np.isin(y, (0, 1)).all():
            raise ValueError(
                f"'{name}' must have a column of 0 and 1 for each of the {len(names)} "
                f"classes, got an array of shape {y.shape}."
            )
        return names, y
    if labels.ndim != 1 or not len(labels):
        raise ValueError(
            f"'{name}' must be a list of classes, or a column of 0 and 1 for each "
            f"class, got an array of shape {labels.shape}."
        )
    names = sorted(set(labels.tolist())) if classes is None else list(classes)
    if unknown := set(labels.tolist()) - set(names):
        raise ValueError(
            f"'classes' must list all classes of '{name}'; {next(iter(unknown))!r} is "
            "missing."
        )
    return names, (labels[:, None] == np.array(names)).astype(float)


def check_proba(name, proba, k, most=2):
    """Return probabilities (n, k), or (n, k, p) if `most` is 3; None stays None."""
    if proba is None:
        return None
    proba = as_numbers(name, proba, most if np.ndim(proba) == most else 2)
    if proba.shape[1] != k:
        raise ValueError(
            f"'{name}' must have a column for each of the {k} classes, in the order of "
            f"'classes', got an array of shape {proba.shape}. Name all classes with "
            "'classes'."
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
