"""The measures of disagreement against hand-made tables and scipy in loops."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skactive._math._scores import (
    consensus_entropy,
    kl_to_mean,
    vote_entropy,
    vote_shares,
    vote_variation_ratio,
)

# Three members and three classes, worked out by hand.
VOTES = np.array([[0, 0, 0], [0, 1, 0], [2, 1, 0], [1, 2, 2]])
SHARES = [[1, 0, 0], [2 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 3, 2 / 3]]
TWO_TO_ONE = math.log(3) - 2 / 3 * math.log(2)
PROBA_MEASURES = [consensus_entropy, kl_to_mean]
VOTE_MEASURES = [vote_entropy, vote_variation_ratio]


def draw_proba(n, t, k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(k, 0.5), (n, t))


def test_votes_by_the_table():
    assert_allclose(vote_shares(VOTES, 3), SHARES, rtol=1e-15)
    assert_allclose(
        vote_entropy(VOTES, 3), [0, TWO_TO_ONE, math.log(3), TWO_TO_ONE], rtol=1e-14
    )
    assert_allclose(vote_variation_ratio(VOTES, 3), [0, 1 / 3, 2 / 3, 1 / 3])


def test_divergence_by_hand():
    # Two members at 1/4 and 3/4: their mean is flat.
    proba = np.array([[[0.25, 0.75], [0.75, 0.25]]])
    assert consensus_entropy(proba)[0] == pytest.approx(math.log(2))
    expected = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert kl_to_mean(proba)[0] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("t", "k"), [(1, 2), (2, 2), (5, 3), (4, 7)])
def test_probabilities_are_measured_as_scipy_would(t, k):
    proba = draw_proba(30, t, k)
    for i, row in enumerate(proba):
        mean = sum(row) / t
        assert consensus_entropy(proba)[i] == pytest.approx(scipy.stats.entropy(mean))
        apart = sum(scipy.stats.entropy(member, mean) for member in row) / t
        assert kl_to_mean(proba)[i] == pytest.approx(apart, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize(("t", "k"), [(1, 2), (3, 2), (6, 7)])
def test_votes_are_measured_as_scipy_would(t, k):
    votes = np.random.default_rng(0).integers(k, size=(40, t))
    for i, row in enumerate(votes.tolist()):
        shares = [row.count(c) / t for c in range(k)]
        assert vote_entropy(votes, k)[i] == pytest.approx(
            scipy.stats.entropy(shares), abs=1e-15
        )
        assert vote_variation_ratio(votes, k)[i] == pytest.approx(1 - max(shares))


def test_divergence_is_mutual_information():
    proba = draw_proba(50, 6, 4)
    mean_entropy = scipy.stats.entropy(proba, axis=2).mean(axis=1)
    expected = scipy.stats.entropy(proba.mean(axis=1), axis=1) - mean_entropy
    assert_allclose(kl_to_mean(proba), expected, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_and_one_are_exact(dtype):
    split = np.array([[[1, 0], [0, 1]], [[1, 0], [1, 0]]], dtype=dtype)
    assert_allclose(kl_to_mean(split), [math.log(2), 0], rtol=1e-6)
    assert_allclose(consensus_entropy(split), [math.log(2), 0], rtol=1e-6)
    # Even the smallest number there is, halved to 0 by the mean, is no infinity.
    least = np.finfo(dtype).smallest_subnormal
    tiny = np.array([[[1, least], [1, 0]]], dtype=dtype)
    assert_allclose(kl_to_mean(tiny), 0, atol=1e-6)


def test_a_small_disagreement_is_not_lost():
    # d^2 / (2 p (1 - p)) for two members d either side of p: far below the rounding
    # error of the difference of two entropies.
    d, p = 1e-9, 0.5
    proba = np.array([[[p - d, p + d], [p + d, p - d]]])
    assert kl_to_mean(proba)[0] == pytest.approx(d**2 / (2 * p * (1 - p)), rel=1e-1)


@pytest.mark.long
@pytest.mark.parametrize("measure", PROBA_MEASURES)
@given(seed=st.integers(0, 1000), t=st.integers(1, 5), k=st.integers(2, 7))
def test_order_of_members_classes_and_items_does_not_matter(measure, seed, t, k):
    proba = draw_proba(8, t, k, seed)
    rng = np.random.default_rng(seed)
    members, classes, items = (rng.permutation(size) for size in (t, k, 8))
    again = measure(proba[items][:, members][:, :, classes])
    assert_allclose(again, measure(proba)[items], rtol=1e-9, atol=1e-14)
    assert (again >= 0).all()
    assert (kl_to_mean(proba) <= np.log(min(t, k)) + 1e-12).all()


@pytest.mark.long
@pytest.mark.parametrize("measure", VOTE_MEASURES)
@given(seed=st.integers(0, 1000), t=st.integers(1, 9), k=st.integers(2, 7))
def test_the_same_split_of_votes_is_a_tie_to_the_last_bit(measure, seed, t, k):
    rng = np.random.default_rng(seed)
    votes = rng.integers(k, size=(8, t))
    renamed = rng.permutation(k)[votes][:, rng.permutation(t)]
    assert_array_equal(measure(votes, k), measure(renamed, k))
