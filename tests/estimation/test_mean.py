"""Means and shares of a pool from the labels of a sample."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import hypergeom, skew, t
from statsmodels.api import OLS, add_constant
from statsmodels.stats.proportion import proportion_confint

from skactive.estimation import (
    MeanEstimate,
    estimate_mean,
    estimate_prevalence,
    estimate_quality,
    estimate_share,
)
from skactive.estimation._mean import Sample, interval_of_count


def make_pool(n=2000, share=0.3, skill=1.0, seed=0):
    """Return classes 0 and 1, and probabilities by a model of some skill."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(float)
    score = np.where(y == 1, skill, -skill) + rng.normal(size=n)
    return y, 1 / (1 + np.exp(-(2 * skill * score + np.log(share / (1 - share)))))


# Oracles ------------------------------------------------------------------------------


def make_fixed():
    """Return a proxy, numbers, and which of 40 items are labeled, all by formula."""
    i = np.arange(40)
    f = (i * 7 % 11) / 11 + (i * 3 % 5) / 7
    return f, 1.3 * f + (i * 5 % 13) / 10 - 0.2, i % 5 == 2


# By glide-py 0.11.0 for the numbers of `make_fixed` (it needs Python 3.12, so it cannot
# be a dependency of these tests): the coefficient and the mean of PPIMeanEstimator with
# and without power tuning, and of StratifiedPPIMeanEstimator on the halves of the pool.
GLIDE = [
    ([slice(0, 40)], [0.5374947185976298], 1.2971070871943962),
    ([slice(0, 40)], [1.0], 1.408603896103896),
    (
        [slice(0, 20), slice(20, 40)],
        [0.2277369405951494, 0.2323318027550409],
        1.2234179504602034,
    ),
]


@pytest.mark.parametrize(("strata", "coefs", "expected"), GLIDE)
def test_the_mean_is_that_of_glide_oracle(strata, coefs, expected):
    # glide compares the labeled items with the others, and this the sample with the
    # pool: the coefficients differ by the share of the others.
    f, y, labeled = make_fixed()
    found = 0.0
    for rows, coef in zip(strata, coefs, strict=True):
        has = labeled[rows]
        coef *= 1 / (1 - has.mean())
        difference = Sample(y[rows][has] - coef * f[rows][has], n_pool=len(has))
        mean = difference.find_best()[0] + coef * f[rows].mean()
        found += mean * len(has) / 40
    assert found == pytest.approx(expected, abs=1e-9)


def test_the_variance_is_that_of_ppi_without_that_of_the_pool():
    # PPI++ estimates the mean of a population, from which the pool is drawn.
    rng = np.random.default_rng(0)
    f = rng.normal(size=40_000)
    y = 0.8 * f + 0.6 * rng.normal(size=40_000)
    n, m = 4000, 36_000
    lam = np.cov(y[:n], f[:n])[0, 1] / ((1 + n / m) * f.var())
    ppi = (y[:n] - lam * f[:n]).var() / n + lam**2 * f[n:].var() / m
    estimates = [estimate_mean(y[:n], f[:n], f, finite=x) for x in (True, False)]
    pool, population = ((e.half_width / t.isf(0.025, n - 2)) ** 2 for e in estimates)
    # But for the errors that the sample may not show.
    assert population - pool == pytest.approx(y[:n].var(ddof=1) / 40_000, rel=0.01)
    assert population == pytest.approx(ppi, rel=0.01)
    assert estimates[0].value == estimates[1].value


def test_all_samples_of_a_small_pool_brute_force_oracle():
    # The estimator and its variance are unbiased: their means over all samples.
    rng = np.random.default_rng(0)
    y, f = rng.random(9), rng.random(9)
    values, variances = [], []
    for rows in map(list, combinations(range(9), 4)):
        sample = Sample(y[rows] - 0.7 * f[rows], n_pool=9)
        mean, residuals = sample.fit(sample.y, sample.proxy, sample.mean)
        values.append(mean + 0.7 * f.mean())
        variance = sample.variance(residuals * (1 - sample.weights))
        variances.append(sample.correct(variance, variance))
    assert np.mean(values) == pytest.approx(y.mean(), abs=1e-12)
    assert np.mean(variances) == pytest.approx(np.var(values), abs=1e-12)


@pytest.mark.parametrize("n", [3, 4])
def test_all_draws_with_probabilities_brute_force_oracle(n):
    rng = np.random.default_rng(1)
    y, f, size = rng.random(6), rng.random(6), rng.uniform(0.2, 1, 6)
    chances, values, variances = [], [], []
    for rows in map(list, permutations(range(6), n)):
        left = size.sum() - np.r_[0, np.cumsum(size[rows])[:-1]]
        q = size[rows] / left
        sample = Sample(y[rows] - 0.7 * f[rows], n_pool=6, draw_proba=q)
        mean, residuals = sample.fit(sample.y, sample.proxy, sample.mean)
        chances.append(q.prod())
        values.append(mean + 0.7 * f.mean())
        variances.append(sample.variance(residuals * (1 - sample.weights)))
    chances, values = np.array(chances), np.array(values)
    assert chances.sum() == pytest.approx(1)
    assert chances @ values == pytest.approx(y.mean(), abs=1e-12)
    expected = chances @ (values - y.mean()) ** 2
    assert chances @ np.array(variances) == pytest.approx(expected, abs=1e-12)


def test_equal_probabilities_give_the_mean_of_the_sample():
    rng = np.random.default_rng(0)
    y = rng.random(30)
    q = 1 / (200 - np.arange(30))
    found = estimate_mean(y, n_pool=200, draw_proba=q)
    assert found.value == pytest.approx(y.mean())


def test_least_squares_and_residuals_without_the_item_oracle():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(300, 2))
    f = pool[:40]
    y = f @ [1.0, -0.5] + rng.normal(size=40)
    sample = Sample(y, f, pool)
    value, residuals = sample.fit(sample.y, sample.proxy, sample.mean)
    fitted = OLS(y, add_constant(f)).fit()
    assert value == pytest.approx(fitted.predict([1, *pool.mean(axis=0)])[0])
    # The variance of a prediction at the mean of the pool, relative to that of a mean.
    about = fitted.get_prediction([1, *pool.mean(axis=0)])
    wider = about.se_mean[0] ** 2 / (fitted.mse_resid / 40)
    for i in (0, 17):
        rest = np.arange(40) != i
        without = OLS(y[rest], add_constant(f[rest])).fit()
        expected = (y[i] - without.predict([1, *f[i]])[0]) * np.sqrt(wider)
        assert residuals[i] == pytest.approx(expected)


# Intervals ----------------------------------------------------------------------------


@pytest.mark.parametrize(("right", "n"), [(0, 20), (20, 20), (37, 40), (1, 300)])
def test_without_a_pool_the_limits_are_the_exact_binomial_ones_oracle(right, n):
    found = estimate_share([1] * right + [0] * (n - right))
    expected = proportion_confint(right, n, method="beta")
    np.testing.assert_allclose(found.interval, expected, atol=1e-12)
    assert found.value == pytest.approx(right / n)
    assert found.effective_size == n


def list_counts():
    """Return sizes of pools and samples, with counts."""
    rng = np.random.default_rng(0)
    cases = [(50, 40, 0), (15, 12, 0), (20, 16, 16), (30, 30, 7), (60, 1, 1)]
    for _ in range(20):
        n_pool = int(rng.integers(5, 60))
        n = int(rng.integers(1, n_pool + 1))
        cases.append((n_pool, n, int(rng.integers(0, n + 1))))
    return cases


@pytest.mark.parametrize(("n_pool", "n", "count"), list_counts())
def test_the_limits_of_a_pool_are_the_exact_hypergeometric_ones_oracle(
    n_pool, n, count
):
    totals = [
        total
        for total in range(count, n_pool - n + count + 1)
        if hypergeom.sf(count - 1, n_pool, total, n) > 0.025
        and hypergeom.cdf(count, n_pool, total, n) > 0.025
    ]
    found = interval_of_count(count, n, n_pool, 0.95)
    assert found == (min(totals), max(totals))


def test_the_limits_of_a_pool_are_whole_texts():
    found = estimate_share([0] * 40, n_pool=50)
    assert found.interval == (0, pytest.approx(2 / 50))
    assert str(found) == "0.0 % (0.0 to 4.0 %), from 40 labels of 50 texts"


@pytest.mark.parametrize(
    ("n_pool", "n"), [(20, 16), (50, 40), (100, 80), (100, 20), (200, 40)]
)
def test_the_limits_cover_every_share_of_a_small_pool(n_pool, n):
    intervals = [interval_of_count(x, n, n_pool, 0.95) for x in range(n + 1)]
    for total in range(n_pool + 1):
        chances = hypergeom.pmf(np.arange(n + 1), n_pool, total, n)
        held = [low <= total <= high for low, high in intervals]
        assert chances @ held >= 0.95 - 1e-9


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_a_proxy_without_an_error_among_the_labels_leaves_the_rule_of_three(level):
    y = np.tile([0, 1], 1000)
    found = estimate_share(y[:200], y[:200], y, finite=False, confidence_level=level)
    drawn = estimate_share(y[:200], y[:200], np.tile(y, 500), confidence_level=level)
    z, three = t.isf((1 - level) / 2, 198), -np.log(1 - level) / 200
    expected = three * z / t.isf((1 - level) / 2, np.inf)
    assert drawn.half_width == pytest.approx(expected, rel=0.002)
    assert found.half_width > drawn.half_width


@pytest.mark.parametrize("rate", [1.05, 1.5, 3.0])
def test_rare_errors_on_one_side_are_covered(rate):
    # Half of a large pool is of the class; a language model has `rate` false alarms
    # in a sample of 300.
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 10_000)
    proxy = y.copy()
    wrong = rng.choice(np.flatnonzero(y == 0), round(20_000 * rate / 300), False)
    proxy[wrong] = 1
    held = []
    for _ in range(300):
        rows = rng.choice(20_000, 300, replace=False)
        low, high = estimate_share(y[rows], proxy[rows], proxy).interval
        held.append(low <= y.mean() <= high)
    assert np.mean(held) >= 0.91


@pytest.mark.parametrize("part", [0.5, 0.95])
def test_draws_by_doubt_cover_a_rare_class(part):
    rng = np.random.default_rng(0)
    y = np.arange(400) < 8
    score = np.where(y, 1.5, -1.5) + rng.normal(size=400) - 2
    doubt = 1 / (1 + np.exp(score)) / (1 + np.exp(-score))
    size = (1 - part) / 400 + part * doubt / doubt.sum()
    held = []
    for _ in range(200):
        rows, q = draw(size, 100, rng)
        found = estimate_share(y[rows], n_pool=400, draw_proba=q)
        held.append(found.interval[0] <= 0.02 <= found.interval[1])
    assert np.mean(held) >= 0.93


# The means of numbers -----------------------------------------------------------------


def test_the_interval_of_a_mean_is_students_with_unseen_labels_and_a_tail_oracle():
    y = np.random.default_rng(0).exponential(size=30)
    deviations = (y - y.mean()) * 30 / 29
    q, z = t.isf(0.05, 28), t.isf(0.05, np.inf)
    unseen = (np.log(0.1) / z) ** 2 * np.square(deviations).max() / 30**2
    error = np.sqrt(y.var(ddof=1) / 30 + unseen)
    tail = error * skew(y) * (1 + 2 * q**2) / (6 * np.sqrt(30))
    expected = y.mean() - q * error, y.mean() + q * error + tail
    found = estimate_mean(y, confidence_level=0.9)
    np.testing.assert_allclose(found.interval, expected)


@pytest.mark.parametrize(
    ("draw_numbers", "n"),
    [
        (lambda rng, size: rng.lognormal(0, 1.5, size), 100),
        (lambda rng, size: rng.lognormal(0, 1, size), 20),
        (
            lambda rng, size: (rng.random(size) < 0.05) * (1.0 + rng.poisson(2, size)),
            40,
        ),
        (
            lambda rng, size: (rng.random(size) < 0.05) * (1.0 + rng.poisson(2, size)),
            300,
        ),
        (lambda rng, size: rng.normal(5, 2, size), 15),
    ],
)
def test_the_interval_covers_a_skewed_mean(draw_numbers, n):
    rng = np.random.default_rng(0)
    pool, held = draw_numbers(rng, 5000), []
    for _ in range(300):
        found = estimate_mean(pool[rng.choice(5000, n, replace=False)], n_pool=5000)
        if found.interval is not None:
            held.append(found.interval[0] <= pool.mean() <= found.interval[1])
    assert np.mean(held) >= 0.9


def test_equal_numbers_have_no_interval():
    found = estimate_mean([0.0] * 40, n_pool=500)
    assert (found.value, found.interval, found.half_width) == (0, None, np.inf)
    assert str(found) == "0, no interval: all 40 labels are equal"
    assert estimate_mean([2.0] * 12, n_pool=12).interval == (2, 2)


def test_equal_labels_are_explained_by_nothing():
    for n in range(11, 100):
        for y in (np.ones(n), np.zeros(n)):
            found = estimate_share(y, np.full(n, 0.6), np.full(400, 0.6))
            assert found.interval == estimate_share(y, n_pool=400).interval
        assert estimate_mean(np.full(n, 0.1), n_pool=400).interval is None


def test_a_column_that_only_rounding_changes_is_no_proxy():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n, constant = int(rng.integers(11, 300)), rng.random()
        y = rng.random(n) < 0.9
        sample = Sample(y, np.full(n, constant), np.full(2000, constant))
        assert sample.estimate(always=True).value == pytest.approx(y.mean())


# Missing labels -----------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["", None, np.nan])
def test_a_missing_label_is_no_class(missing):
    labels = ["a"] * 20 + ["b"] * 19 + [missing]
    for estimate in (
        lambda: estimate_prevalence(labels),
        lambda: estimate_quality(labels, ["a"] * 40),
        lambda: estimate_quality(["a"] * 40, labels),
    ):
        with pytest.raises(ValueError, match=r"has no label at positions 39"):
            estimate()
    with pytest.raises(ValueError, match="'classes' must hold names, got"):
        estimate_prevalence(labels[:39], classes=["a", "b", missing])


def test_labels_of_two_kinds_are_refused():
    with pytest.raises(TypeError, match="'labels' mixes labels of the kinds"):
        estimate_prevalence([1, "1"] * 10)


# Coverage of the interval of a share --------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share"), [(40, 0.3), (100, 0.1), (300, 0.03)])
@pytest.mark.parametrize("design", ["random", "active"])
def test_the_interval_covers_the_share(n, share, design):
    y, f = make_pool(share=share)
    rng = np.random.default_rng(1)
    covered, relative = [], []
    for _ in range(200):
        if design == "random":
            rows, q = rng.choice(len(y), n, replace=False), None
        else:
            rows, q = draw(0.5 + 0.5 * f * (1 - f) / (f * (1 - f)).mean(), n, rng)
        found = estimate_share(y[rows], f[rows], f, draw_proba=q)
        low, high = found.interval
        assert low <= found.value <= high
        covered.append(low <= y.mean() <= high)
        relative.append(found.effective_size / n)
    # Draws by doubt have wide intervals: the doubtless items are hardly seen.
    assert 0.91 <= np.mean(covered) <= (0.99 if design == "random" else 1.0)
    assert np.median(relative) > (1.05 if share == 0.3 else 0.999)
    if design == "random":
        assert np.min(relative) >= 1.0 - 1e-9


def draw(size, n, rng):
    """Return n rows by their size, one after another, and the chance of each draw."""
    rows = np.argsort(rng.exponential(size=len(size)) / size)[:n]
    return rows, size[rows] / (size.sum() - np.r_[0, np.cumsum(size[rows])[:-1]])


def test_a_proxy_that_explains_nothing_is_left_out():
    y, _ = make_pool()
    rng = np.random.default_rng(0)
    rows = rng.choice(2000, 60, replace=False)
    plain = estimate_share(y[rows], n_pool=2000)
    constant = np.full(2000, 0.4)
    found = estimate_share(y[rows], constant[rows], constant)
    assert (found.value, found.interval) == (plain.value, plain.interval)
    assert (found.r2, found.counted) == (0, pytest.approx(0.4))
    noise = rng.random((100, 2000))
    sizes = [estimate_share(y[rows], f[rows], f).effective_size for f in noise]
    assert min(sizes) == np.median(sizes) == 60
    assert np.mean(sizes) < 61.5


def test_two_proxies_are_used_where_both_help():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(3000, 2))
    y = pool.sum(axis=1) + 0.5 * rng.normal(size=3000)
    rows = rng.choice(3000, 100, replace=False)
    both = estimate_mean(y[rows], pool[rows], pool)
    one = estimate_mean(y[rows], pool[rows, 0], pool[:, 0])
    assert both.effective_size > 3 * one.effective_size
    spare = np.column_stack([pool[:, 0], rng.normal(size=3000)])
    with_noise = estimate_mean(y[rows], spare[rows], spare)
    assert with_noise.effective_size >= one.effective_size


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_proxies_that_say_the_same_are_used_once(scale):
    y, f = make_pool()
    rng = np.random.default_rng(0)
    noise = 1e-12 * rng.normal(size=(2000, 3))
    pool = scale * (np.column_stack([f, 0.5 * f, np.ones(2000)]) + noise)
    rows = rng.choice(2000, 80, replace=False)
    found = estimate_share(y[rows], pool[rows], pool)
    one = estimate_share(y[rows], f[rows], f)
    assert found.value == pytest.approx(one.value, abs=1e-6)
    assert found.interval == pytest.approx(one.interval, abs=1e-6)


def test_a_labeled_pool_is_known():
    y, f = make_pool(50)
    found = estimate_share(y, f, f)
    assert found.value == pytest.approx(y.mean())
    assert found.interval == pytest.approx((y.mean(), y.mean()))
    q = 1 / (50 - np.arange(50))
    assert estimate_share(y, n_pool=50, draw_proba=q).half_width == pytest.approx(0)


@pytest.mark.parametrize("y", [[1.0], [0.0], [0.0, 1.0], [1.0, 1.0]])
def test_a_labeled_pool_of_one_or_two_is_known(y):
    n, mean = len(y), np.mean(y)
    for options in ({"n_pool": n}, {"proxy": y, "pool_proxy": y}):
        for estimate in (estimate_mean, estimate_share):
            found = estimate(y, **options)
            assert (found.value, *found.interval) == (mean, mean, mean)
            # These are not all items of the population.
            assert estimate(y, **options, finite=False).value is None
    accuracy = estimate_quality(y, [1.0] * n, n_pool=n).accuracy
    assert (accuracy.value, *accuracy.interval) == (mean, mean, mean)


def test_few_labels_have_no_interval():
    found = estimate_share([1] * 9, n_pool=100)
    assert found.value is found.interval is None
    assert found.half_width == np.inf
    assert str(found) == "too few labels: 9, of at least 10"
    assert str(MeanEstimate(2.5, (2.0, 3.0), 10, is_share=False)) == (
        "2.5 (2 to 3), from 10 labels"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [1, 0, 2]}, "'y' must be 0 or 1"),
        ({"y": ["yes", "no"]}, "'y' must hold numbers"),
        ({"y": [1, np.nan]}, "1 missing or infinite"),
        ({"y": [[1, 0]]}, "'y' must have 1 dimension, got"),
        ({"y": []}, "'y' must hold at least one"),
        ({"y": [1, 0], "proxy": [1, 0]}, "must be given together"),
        ({"y": [1, 0], "proxy": [1], "pool_proxy": [1, 0, 1]}, "must have 2 rows"),
        ({"y": [1, 0], "n_pool": 1}, "must hold the 2 items"),
        (
            {"y": [1, 0], "proxy": [1, 0], "pool_proxy": [1, 0, 1], "n_pool": 4},
            "each of the 4 items",
        ),
        ({"y": [1, 0], "draw_proba": [0.5, 0.5]}, "'n_pool' must be given"),
        ({"y": [1, 0], "draw_proba": [0, 1], "n_pool": 4}, "above 1e-100"),
        ({"y": [1, 0], "confidence_level": 95}, "between 0 and 1"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        estimate_share(**options)


@pytest.mark.parametrize("n", [60, 150])
def test_rare_errors_of_a_good_proxy_are_not_overlooked(n):
    # A fifth of the texts says nothing about a class of 10 %: a sample has few of its
    # texts that are predicted wrongly, or none.
    held, worth = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        y = (rng.random(2000) < 0.1).astype(int)
        proxy = np.where(rng.random(2000) < 0.8, 0.9 * y + 0.03, 0.1)
        rows = rng.permutation(2000)[:n]
        found = estimate_share(y[rows], proxy[rows], proxy)
        low, high = found.interval
        held.append(low <= y.mean() <= high)
        worth.append(found.effective_size / n)
    assert np.mean(held) >= 0.92
    assert np.median(worth) > 1.4
