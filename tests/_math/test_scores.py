"""The measures of uncertainty against loops, scipy and published numbers."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skactive._math._scores import (
    entropy,
    least_confidence,
    margin,
    mean_over_draws,
    mutual_information,
)

MEASURES = [entropy, least_confidence, margin]


def entropy_of_row(row):
    return -sum(p * math.log(p) for p in row if p > 0)


def least_confidence_of_row(row):
    return 1 - max(row)


def margin_of_row(row):
    second, best = sorted(row)[-2:]
    return best - second


ORACLES = list(
    zip(
        MEASURES,
        [entropy_of_row, least_confidence_of_row, margin_of_row],
        strict=True,
    )
)
each_measure = pytest.mark.parametrize("measure", MEASURES)
each_with_oracle = pytest.mark.parametrize(("measure", "of_row"), ORACLES)


def draw_proba(n, k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(k, 0.5), n)


# Values


@pytest.mark.parametrize("k", [2, 3, 7])
@each_with_oracle
def test_each_row_is_measured_as_a_loop_would(measure, of_row, k):
    proba = draw_proba(40, k)
    expected = [of_row(row) for row in proba.tolist()]
    assert_allclose(measure(proba), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_entropy_is_that_of_scipy(k):
    proba = draw_proba(40, k)
    assert_allclose(entropy(proba), scipy.stats.entropy(proba, axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    ("row", "nats"), [([0.2, 0.5, 0.3], 1.029653), ([0.1, 0.7, 0.2], 0.801819)]
)
def test_entropy_gives_the_published_numbers(row, nats):
    assert entropy(np.array([row]))[0] == pytest.approx(nats, abs=5e-7)


@pytest.mark.parametrize("k", [2, 7])
@pytest.mark.parametrize(
    ("measure", "value"), [(entropy, math.log), (least_confidence, lambda k: 1 - 1 / k)]
)
def test_the_uniform_distribution_is_the_most_uncertain(measure, value, k):
    uniform = np.full((1, k), 1 / k)
    assert measure(uniform)[0] == pytest.approx(value(k), rel=1e-14)
    assert (measure(draw_proba(50, k)) <= value(k)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 7])
@pytest.mark.parametrize(
    ("measure", "value"), [(entropy, 0.0), (least_confidence, 0.0), (margin, 1.0)]
)
def test_certainty_is_exact(measure, value, k, dtype):
    result = measure(np.eye(k, dtype=dtype))
    assert_array_equal(result, np.full(k, value))
    assert not np.signbit(result).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_probability_of_zero_adds_nothing_to_the_entropy(dtype):
    some = np.array([[0.25, 0.75]], dtype=dtype)
    more = np.array([[0.25, 0, 0.75, 0]], dtype=dtype)
    assert_allclose(entropy(more), entropy(some), rtol=np.finfo(dtype).eps)


def test_the_smallest_probabilities_give_finite_entropy():
    tiny = np.finfo(np.float64).smallest_subnormal
    result = entropy(np.array([[tiny, 1.0], [1e-300, 1.0]]))
    assert_allclose(result, [0, 0], atol=1e-290)


@pytest.mark.parametrize("k", [2, 7])
def test_the_margin_of_a_tie_is_zero(k):
    scores = np.full((3, k), 0.5)
    assert_array_equal(margin(scores), np.zeros(3))


@pytest.mark.parametrize("k", [2, 7, 1000])
def test_the_margin_of_decision_values_may_be_of_any_sign(k):
    scores = np.random.default_rng(0).normal(size=(30, k)) - 5
    expected = [margin_of_row(row) for row in scores.tolist()]
    assert_allclose(margin(scores), expected, rtol=1e-12)


# Types and shapes


@pytest.mark.parametrize("k", [2, 7])
@each_with_oracle
def test_single_precision_stays_and_is_accurate(measure, of_row, k):
    proba = draw_proba(40, k).astype(np.float32)
    result = measure(proba)
    assert result.dtype == np.float32
    expected = [of_row(row) for row in proba.tolist()]
    assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@each_measure
def test_double_precision_stays(measure):
    assert measure(draw_proba(3, 4)).dtype == np.float64


@each_measure
def test_further_axes_are_kept(measure):
    proba = draw_proba(24, 3)
    result = measure(proba.reshape(4, 6, 3))
    assert_allclose(result, measure(proba).reshape(4, 6), rtol=1e-14)


@each_measure
def test_no_rows_give_no_numbers(measure):
    assert measure(np.empty((0, 3))).shape == (0,)


@each_measure
def test_the_input_may_be_read_only_and_stays_as_it_was(measure):
    proba = draw_proba(10, 4)
    before = proba.copy()
    proba.flags.writeable = False
    measure(proba)
    assert_array_equal(proba, before)


@each_measure
def test_lists_and_integers_are_accepted(measure):
    assert_allclose(measure([[1, 0], [0, 1]]), [measure(np.eye(2))[0]] * 2)


# Properties

weights = st.integers(2, 7).flatmap(
    lambda k: st.lists(
        st.lists(st.integers(0, 1000), min_size=k, max_size=k).filter(any),
        min_size=1,
        max_size=8,
    )
)


def as_proba(rows):
    rows = np.array(rows, dtype=float)
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.long
@settings(deadline=None)
@given(rows=weights, data=st.data())
def test_permuting_rows_permutes_the_measures(rows, data):
    proba = as_proba(rows)
    order = data.draw(st.permutations(range(len(rows))))
    for measure in MEASURES:
        # The last bit may depend on where in memory a row stands.
        assert_allclose(measure(proba[order]), measure(proba)[order], atol=1e-14)


@pytest.mark.long
@settings(deadline=None)
@given(rows=weights, data=st.data())
def test_the_order_of_the_classes_does_not_matter(rows, data):
    proba = as_proba(rows)
    order = data.draw(st.permutations(range(proba.shape[1])))
    for measure in MEASURES:
        assert_allclose(measure(proba[:, order]), measure(proba), atol=1e-14)


@pytest.mark.long
@settings(deadline=None)
@given(rows=weights)
def test_every_measure_stays_in_its_range(rows):
    proba = as_proba(rows)
    k = proba.shape[1]
    slack = 1e-14
    assert ((entropy(proba) >= 0) & (entropy(proba) <= math.log(k) + slack)).all()
    confidence = least_confidence(proba)
    assert ((confidence >= 0) & (confidence <= 1 - 1 / k + slack)).all()
    assert ((margin(proba) >= 0) & (margin(proba) <= 1)).all()


@settings(deadline=None)
@given(p=st.floats(0, 1))
def test_for_two_classes_all_measures_rank_alike(p):
    proba = np.array([[p, 1 - p]])
    assert_allclose(least_confidence(proba), (1 - margin(proba)) / 2, atol=1e-15)
    assert_allclose(entropy(proba), [entropy_of_row([p, 1 - p])], atol=1e-14)


# Mutual information of the label and the model


def draw_draws(n, t, k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(k, 0.5), (n, t))


def information_of_item(draws):
    """The mean divergence of the draws from their mean."""
    t = len(draws)
    mean = [math.fsum(column) / t for column in zip(*draws, strict=True)]
    return (
        sum(
            p * math.log(p / m)
            for row in draws
            for p, m in zip(row, mean, strict=True)
            if p > 0
        )
        / t
    )


@pytest.mark.parametrize(("t", "k"), [(1, 3), (2, 2), (9, 3), (50, 7), (3, 40)])
def test_mutual_information_is_that_of_a_loop(t, k):
    draws = draw_draws(30, t, k)
    expected = [information_of_item(item) for item in draws.tolist()]
    assert_allclose(mutual_information(draws), expected, atol=1e-13)


def test_mutual_information_is_that_of_scipy():
    draws = draw_draws(30, 8, 4)
    expected = scipy.stats.entropy(draws.mean(axis=1), axis=1)
    expected = expected - scipy.stats.entropy(draws, axis=2).mean(axis=1)
    assert_allclose(mutual_information(draws), expected, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("t", [1, 3, 49, 50])
def test_certain_draws_give_exact_information(t, dtype):
    agreed = np.repeat(np.eye(3, dtype=dtype)[:, None], t, axis=1)
    result = mutual_information(agreed)
    assert_array_equal(result, [0, 0, 0])
    assert not np.signbit(result).any()
    split = np.concatenate([agreed[:1], agreed[1:2]], axis=1)
    eps = np.finfo(dtype).eps
    assert_allclose(mutual_information(split), [math.log(2)], rtol=2 * eps)
    assert_array_equal(mean_over_draws(split), [[0.5, 0.5, 0]])


def test_equal_draws_tell_nothing():
    draws = np.repeat(draw_proba(200, 3)[:, None], 7, axis=1)
    result = mutual_information(draws)
    assert (result >= 0).all()
    assert_allclose(result, 0, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mutual_information_keeps_its_type_and_is_accurate(dtype):
    draws = draw_draws(30, 20, 4).astype(dtype)
    result = mutual_information(draws)
    assert result.dtype == dtype
    expected = [information_of_item(item) for item in draws.tolist()]
    assert_allclose(result, expected, atol=10 * np.finfo(dtype).eps)


def test_mutual_information_keeps_further_axes():
    draws = draw_draws(12, 5, 3)
    flat = mutual_information(draws)
    assert_allclose(mutual_information(draws.reshape(3, 4, 5, 3)).ravel(), flat)
    assert mutual_information(draws[0]) == pytest.approx(flat[0], abs=1e-15)
    assert mutual_information(np.empty((0, 5, 3))).shape == (0,)


def test_draws_may_be_read_only_and_stay_as_they_were():
    draws = draw_draws(10, 5, 4)
    before = draws.copy()
    draws.flags.writeable = False
    mutual_information(draws)
    mean_over_draws(draws)
    assert_array_equal(draws, before)


@pytest.mark.long
@settings(deadline=None)
@given(rows=weights, data=st.data())
def test_mutual_information_stays_in_its_range(rows, data):
    draws = as_proba(rows)
    t, k = draws.shape
    order = data.draw(st.permutations(range(t)))
    result = mutual_information(draws)
    assert 0 <= result <= math.log(min(t, k)) + 1e-14
    assert result <= entropy(draws.mean(axis=0)) + 1e-14
    assert mutual_information(draws[order]) == pytest.approx(result, abs=1e-14)
