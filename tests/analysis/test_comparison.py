"""Tests against their textbook formulas and published examples."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skactive.analysis import (
    holm,
    paired_t,
    welch_t,
    wilcoxon,
)
from skactive.simulation import Run

A = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0,
     21.7, 21.4]  # fmt: skip
B = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9,
     20.5, 24.4]  # fmt: skip


def mean_and_variance(values):
    mean = sum(values) / len(values)
    return mean, sum((v - mean) ** 2 for v in values) / (len(values) - 1)


def test_welch_by_its_formula():
    a, b = A, B[:11]
    (mean_a, s2_a), (mean_b, s2_b) = mean_and_variance(a), mean_and_variance(b)
    v_a, v_b = s2_a / len(a), s2_b / len(b)
    t = (mean_a - mean_b) / math.sqrt(v_a + v_b)
    df = (v_a + v_b) ** 2 / (v_a**2 / (len(a) - 1) + v_b**2 / (len(b) - 1))
    found = welch_t(a, b)
    assert_allclose([found.statistic, found.df], [t, df])
    assert_allclose(found.p_value, 2 * stats.t.sf(abs(t), df))
    assert_allclose(found.difference, mean_a - mean_b)


def test_welch_of_a_known_example():
    # Two samples of 15 with t = -2.46, 25.0 degrees of freedom, p = 0.021.
    found = welch_t(A, B)
    assert round(found.statistic, 2) == -2.46
    assert round(found.df, 1) == 25.0
    assert round(found.p_value, 3) == 0.021
    assert str(found) == (
        "Welch's t test: difference -2.167, t = -2.46, df = 25, p = 0.021"
    )


def test_paired_t_by_its_formula():
    mean, s2 = mean_and_variance([a - b for a, b in zip(A, B, strict=True)])
    t = mean / math.sqrt(s2 / 15)
    found = paired_t(A, B)
    assert_allclose([found.statistic, found.df, found.difference], [t, 14, mean])
    assert_allclose(found.p_value, 2 * stats.t.sf(abs(t), 14))


def rank_sums(differences):
    """The definition: ranks of the sizes, ties in the middle, zeros left out."""
    left = [d for d in differences if d]
    sizes = [abs(d) for d in left]
    ranks = [
        sum(other < size for other in sizes) + (sizes.count(size) + 1) / 2
        for size in sizes
    ]
    plus = sum(rank for rank, d in zip(ranks, left, strict=True) if d > 0)
    return plus, sum(ranks) - plus, ranks


def test_wilcoxon_by_all_signs():
    differences = [5, -1, 8, 3, -2, 9, 4, 7]
    plus, minus, ranks = rank_sums(differences)
    sums = [
        sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign)
        for signs in itertools.product([0, 1], repeat=len(ranks))
    ]
    p = 2 * sum(s <= min(plus, minus) for s in sums) / len(sums)
    found = wilcoxon([20 + d for d in differences], [20] * 8)
    assert found.statistic == min(plus, minus) == 3
    assert_allclose(found.p_value, p)
    assert found.difference == 4.5
    assert found.df is None


def test_differences_that_differ_in_their_last_bits_are_tied():
    a, b = [0.82, 0.84, 0.86, 0.90, 0.71], [0.80, 0.82, 0.88, 0.87, 0.65]
    assert len({abs(x - y) for x, y in zip(a, b, strict=True)}) > 3
    plus, minus, _ = rank_sums([2, 2, -2, 3, 6])
    assert wilcoxon(a, b).statistic == min(plus, minus) == 2
    tiny = np.array(a) * 1e-15, np.array(b) * 1e-15
    assert wilcoxon(*tiny).statistic == 2


def test_wilcoxon_leaves_out_zeros():
    a = [1.0, 2, 3, 4, 5, 6, 7]
    b = [1.0, 1, 1, 1, 1, 1, 1]
    assert_allclose(wilcoxon(a, b).p_value, wilcoxon(a[1:], b[1:]).p_value, rtol=0.2)
    same = wilcoxon(a, a)
    assert (same.p_value, same.statistic, same.difference) == (1, 0, 0)
    assert wilcoxon([0, 0], [0, 0]).p_value == 1


@pytest.mark.filterwarnings("ignore:Precision loss")
def test_scores_that_do_not_vary_do_not_differ():
    for test in (welch_t, paired_t):
        found = test([0.8, 0.8], [0.8, 0.8])
        assert (found.statistic, found.p_value) == (0, 1)
        assert test([0.9, 0.9], [0.8, 0.8]).p_value < 1e-6


@pytest.mark.parametrize(
    ("test", "a", "b", "message"),
    [
        (welch_t, [0.8], [0.7, 0.8], "'a' must be at least two scores"),
        (welch_t, [0.8, 0.9], [[0.7, 0.8]], "'b' must be at least two .* one dim"),
        (
            paired_t,
            [0.8, 0.9],
            [0.7, np.nan],
            r"'b' must hold finite numbers, got .* at \[1\]",
        ),
        (paired_t, [0.8, 0.9], [0.7, 0.8, 0.9], "must be paired, got 2 and 3"),
        (wilcoxon, [0.8, 0.9], [0.7, 0.8, 0.9], "must be paired, got 2 and 3"),
    ],
)
def test_what_cannot_be_compared_is_refused(test, a, b, message):
    with pytest.raises(ValueError, match=message):
        test(a, b)


# Corrections


def test_holm_by_hand():
    # The usual example: at 0.05 the first and the fourth are rejected, no other.
    p = [0.01, 0.04, 0.03, 0.005]
    assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02])


def reject_stepwise(p_values, alpha):
    """Holm's procedure as he states it: stop at the first that is too large."""
    rejected = set()
    for step, i in enumerate(np.argsort(p_values)):
        if p_values[i] > alpha / (len(p_values) - step):
            break
        rejected.add(int(i))
    return rejected


def test_holm_rejects_as_the_procedure_does():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.beta(0.4, 3, size=rng.integers(1, 8))
        for alpha in (0.01, 0.05, 0.2):
            found = set(np.flatnonzero(holm(p) <= alpha).tolist())
            assert found == reject_stepwise(p, alpha)


def test_adjusted_values_end_at_one():
    assert holm([0.5, 0.9]).tolist() == [1, 1]
    assert holm([]).size == 0


@pytest.mark.parametrize("p", [[0.1, 1.2], [-0.1], [np.nan], [[0.1]]])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(ValueError, match="'p_values' must be numbers from 0 to 1"):
        holm(p)


@pytest.mark.parametrize("test", [paired_t, welch_t, wilcoxon])
def test_runs_in_place_of_scores_are_named(test):
    with pytest.raises(
        TypeError, match=r"'a' must be scores, got runs\. Pass one score"
    ):
        test([Run(), Run()], [0.1, 0.2])
    with pytest.raises(TypeError, match="'b' must be scores, one number for each run"):
        test([0.1, 0.2], ["x", "y"])


def test_the_interval_of_a_t_test_is_that_of_scipy():
    a, b = np.array([0.82, 0.84, 0.86]), np.array([0.80, 0.81, 0.82])
    expected = stats.ttest_rel(a, b).confidence_interval()
    assert_allclose(paired_t(a, b).interval, expected)
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert_allclose(welch_t(a, b).interval, expected)


def test_differences_that_do_not_vary_have_an_interval_of_no_width():
    assert paired_t([0.5, 0.75], [0.25, 0.5]).interval == (0.25, 0.25)
    assert paired_t([0.5, 0.75], [0.25, 0.5]).p_value == 0
