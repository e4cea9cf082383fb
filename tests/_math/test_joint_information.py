"""Joint information against sums over all configurations of labels, and its bounds."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skactive._math._joint import thin

from ._helpers import choose, draw, information_by_loops, joint_information

# The information of a batch


@pytest.mark.parametrize(("m", "k"), [(1, 2), (2, 3), (3, 4), (4, 2), (4, 3), (2, 7)])
@pytest.mark.parametrize("t", [1, 2, 9])
def test_the_information_is_the_sum_over_all_configurations(m, t, k):
    draws = draw(m, t, k, seed=m)
    assert joint_information(draws) == pytest.approx(
        information_by_loops(draws), abs=1e-12
    )


def test_one_label_tells_its_mutual_information():
    draws = draw(1, 6, 3)
    mean = scipy.stats.entropy(draws[0].mean(axis=0))
    expected = mean - scipy.stats.entropy(draws[0], axis=1).mean()
    assert joint_information(draws) == pytest.approx(expected, abs=1e-12)


def test_no_label_tells_nothing():
    assert joint_information(np.empty((0, 5, 3))) == 0.0


def test_independent_items_add_up():
    # Two coins, each known to a factor of the model of its own.
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    first, second = sure[[0, 0, 1, 1]], sure[[0, 1, 0, 1]]
    assert joint_information(np.array([first, second])) == pytest.approx(math.log(4))


@pytest.mark.long
@pytest.mark.parametrize(("m", "k"), [(11, 2), (5, 7)])
def test_the_sampled_information_comes_to_the_exact_one(m, k):
    draws = draw(m, 12, k, concentration=2.0)
    exact = joint_information(draws)

    def error(n_samples):
        found = [
            joint_information(
                draws, exact_up_to=1, n_samples=n_samples, rng=np.random.default_rng(i)
            )
            for i in range(20)
        ]
        return np.abs(np.array(found) - exact).mean(), np.mean(found) - exact

    few, many = error(20), error(1000)
    assert many[0] < few[0] / 4
    assert many[0] < 2e-3 * exact
    assert abs(few[1]) < few[0]  # too high as often as too low
    assert error(k**m)[0] < 1e-10


def test_a_large_batch_tells_no_more_than_there_is():
    draws = draw(200, 8, 3, concentration=0.2)
    rng = np.random.default_rng(0)
    found = joint_information(draws, n_samples=50, rng=rng)
    assert found == pytest.approx(math.log(8), abs=1e-9)
    assert found <= math.log(8)


# The sample of configurations


@pytest.mark.long
@pytest.mark.parametrize("draws", [1500, pytest.param(4000, marks=pytest.mark.slow)])
def test_thinning_keeps_every_sum_right_on_average(draws):
    values = np.random.default_rng(0).gamma(0.3, size=60)
    other = np.random.default_rng(1).normal(size=60)
    sums = []
    for seed in range(draws):
        kept, shares = thin(values, 20, np.random.default_rng(seed))
        assert len(kept) == 20
        assert_allclose((values[kept] / shares).sum(), values.sum(), rtol=1e-9)
        sums.append((other[kept] * values[kept] / shares).sum())
    error = np.mean(sums) - (other * values).sum()
    assert abs(error) < 4 * np.std(sums) / math.sqrt(len(sums))


def test_thinning_keeps_the_large_for_certain():
    values = np.array([0.01] * 30 + [5.0, 7.0])
    for seed in range(30):
        kept, shares = thin(values, 6, np.random.default_rng(seed))
        assert_array_equal(kept[-2:], [30, 31])
        assert_array_equal(shares[-2:], [1, 1])
        assert_allclose(shares[:-2], 4 / 30)


def test_thinning_leaves_few_as_they_are_but_for_what_is_nothing():
    kept, shares = thin(np.array([0.3, 0.0, 1e-14, 0.1]), 10, None)
    assert_array_equal(kept, [0, 3])
    assert_array_equal(shares, [1, 1])


# Properties

shapes = st.tuples(st.integers(1, 6), st.integers(1, 6), st.sampled_from([2, 3, 7]))


@st.composite
def some_draws(draw):
    n, t, k = draw(shapes)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows = rng.dirichlet(np.full(k, draw(st.sampled_from([0.02, 0.3, 5.0]))), (n, t))
    certain = np.eye(k)[rng.integers(k, size=(n, t))]
    return np.where(rng.random((n, 1, 1)) < 0.3, certain, rows)


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(draws=some_draws(), n_samples=st.sampled_from([1, 4, 4096]))
def test_the_information_stays_in_its_bounds(draws, n_samples):
    n, t, _ = draws.shape
    positions, information = choose(draws, n, n_samples=n_samples)
    alone = np.array([joint_information(row[None]) for row in draws])
    slack = 1e-12
    assert (information >= 0).all()
    assert (np.diff(information) >= 0).all()
    assert (information <= math.log(t)).all()
    assert (information <= np.cumsum(alone[positions]) + slack).all()
    assert information[0] == pytest.approx(alone.max(), abs=slack)
    for exact_up_to in (1, 2**24):
        rng = np.random.default_rng(0)
        found = joint_information(draws, exact_up_to=exact_up_to, rng=rng)
        assert 0 <= found <= min(math.log(t), alone.sum() + slack)


@settings(deadline=None, max_examples=60)
@given(draws=some_draws(), data=st.data())
def test_the_order_of_a_batch_does_not_matter(draws, data):
    order = data.draw(st.permutations(range(len(draws))))
    found = joint_information(draws[order])
    assert found == pytest.approx(joint_information(draws), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(draws=some_draws())
def test_a_further_label_never_tells_less(draws):
    found = [joint_information(draws[:m]) for m in range(len(draws) + 1)]
    assert (np.diff(found) >= -1e-12).all()


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1000), data=st.data())
def test_permuting_the_pool_permutes_the_choice(seed, data):
    draws = draw(12, 5, 3, seed)
    order = np.array(data.draw(st.permutations(range(12))))
    positions, information = choose(draws, 4)
    found, values = choose(draws[order], 4)
    assert_allclose(values, information, atol=1e-12)
    assert_array_equal(order[found], positions)
