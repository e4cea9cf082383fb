"""The choice of scores against brute force, ties and draws by counting."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skactive._math._scores import stochastic_n, top_n


def choose(scores, n, seed=0):
    return top_n(np.array(scores), n, np.random.default_rng(seed))


def by_hand(scores, n):
    """The best scores, as a full sort finds them."""
    return sorted(scores, reverse=True)[:n]


def test_the_best_come_first():
    assert_array_equal(choose([0.1, 0.9, 0.5, 0.3, 0.7], 3), [1, 4, 2])


def test_n_may_be_the_number_of_scores():
    assert_array_equal(choose([0.1, 0.9, 0.5], 3), [1, 2, 0])


def test_n_beyond_the_number_of_scores_gives_all():
    assert_array_equal(choose([0.1, 0.9, 0.5], 10), [1, 2, 0])


def test_a_single_score_can_be_chosen():
    assert_array_equal(choose([0.3], 1), [0])


@pytest.mark.parametrize(("scores", "n"), [([], 3), ([], 0), ([1.0, 2.0], 0)])
def test_nothing_can_be_chosen(scores, n):
    result = choose(scores, n)
    assert result.shape == (0,)
    assert result.dtype == np.intp


def test_infinities_come_first_and_last():
    scores = [0.0, -np.inf, np.inf, 5.0]
    assert_array_equal(choose(scores, 4), [2, 3, 0, 1])


def test_a_batch_of_infinities_is_a_tie():
    assert set(choose([-np.inf, -np.inf, -np.inf], 2)) < {0, 1, 2}


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8, bool]
)
def test_scores_may_be_of_any_number_type(dtype):
    scores = np.array([0, 1, 0, 0], dtype=dtype)
    assert choose(scores, 1)[0] == 1
    assert sorted(choose(scores, 4)) == [0, 1, 2, 3]


def test_integers_too_large_for_a_float_keep_their_order():
    big = 2**62
    assert_array_equal(choose([big, big + 2, big + 1], 3), [1, 2, 0])


def test_the_smallest_integer_is_the_last():
    low = np.iinfo(np.int64).min
    assert_array_equal(choose(np.array([low, 0, 5]), 3), [2, 1, 0])


def test_the_scores_stay_as_they_were():
    scores = np.array([3.0, 1.0, 2.0])
    scores.flags.writeable = False
    top_n(scores, 2, np.random.default_rng(0))
    assert_array_equal(scores, [3, 1, 2])


# Ties


def test_the_same_generator_breaks_ties_the_same_way():
    scores = np.zeros(50)
    assert_array_equal(choose(scores, 10, seed=3), choose(scores, 10, seed=3))
    assert not np.array_equal(choose(scores, 10, seed=3), choose(scores, 10, seed=4))


def test_a_tie_does_not_let_in_what_is_worse():
    scores = [1.0, 0.0, 1.0, 2.0, 1.0, 0.5]
    for seed in range(20):
        picks = choose(scores, 3, seed)
        assert picks[0] == 3
        assert set(picks[1:]) < {0, 2, 4}


@pytest.mark.parametrize(
    "scores",
    [np.zeros(6), np.array([1, 5, 1, 1, 0, 1, 1, 1.0]), np.full(6, True)],
    ids=["all equal", "at the border", "bool"],
)
def test_every_member_of_a_tie_is_equally_likely(scores):
    tied = np.flatnonzero(scores == np.median(scores))
    rng = np.random.default_rng(0)
    counts = np.zeros(len(scores), dtype=int)
    for _ in range(3000):
        counts[top_n(scores, 3, rng)] += 1
    assert scipy.stats.chisquare(counts[tied]).pvalue > 1e-3


def test_every_order_of_a_tie_is_equally_likely():
    rng = np.random.default_rng(0)
    orders = [tuple(top_n(np.ones(3), 3, rng).tolist()) for _ in range(3000)]
    values, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(values) == 6
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


# Properties

numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False, width=32))


@pytest.mark.long
@settings(deadline=None)
@given(scores=st.lists(numbers, max_size=30), n=st.integers(0, 35), seed=st.integers(0))
def test_the_choice_is_what_a_full_sort_finds(scores, n, seed):
    picks = choose(np.array(scores, dtype=float), n, seed)
    assert [scores[i] for i in picks] == by_hand(scores, n)
    assert len(set(picks.tolist())) == min(n, len(scores))


@settings(deadline=None)
@given(scores=st.lists(numbers, min_size=2, max_size=30), seed=st.integers(0))
def test_a_single_choice_is_the_first_of_two(scores, seed):
    keys = np.random.default_rng(seed).random(len(scores))
    first, _ = top_n(scores, 2, keys)
    assert_array_equal(top_n(scores, 1, keys), [first])


@pytest.mark.long
@settings(deadline=None)
@given(
    scores=st.lists(numbers, min_size=1, max_size=30, unique_by=float),
    data=st.data(),
)
def test_permuting_scores_permutes_the_choice(scores, data):
    order = np.array(data.draw(st.permutations(range(len(scores)))))
    n = data.draw(st.integers(1, len(scores)))
    picks = choose(np.array(scores)[order], n)
    assert_array_equal(order[picks], choose(scores, n))


# Drawn in proportion


def draw(scores, n, seed=0, **params):
    return stochastic_n(np.array(scores), n, np.random.default_rng(seed), **params)


def chances(weights, n):
    """The probability of each ordered draw without replacement."""
    result = {}
    for picks in itertools.permutations(range(len(weights)), n):
        rest, chance = math.fsum(weights), 1.0
        for i in picks:
            chance *= weights[i] / rest
            rest -= weights[i]
        result[picks] = chance
    return result


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "coldness", "weight"),
    [
        ("power", 1.0, lambda s: s),
        ("power", 2.0, lambda s: s**2),
        ("power", 0.5, math.sqrt),
        ("softmax", 1.0, math.exp),
        ("softmax", 0.3, lambda s: math.exp(0.3 * s)),
    ],
)
@pytest.mark.parametrize(("scores", "n"), [([1.0, 2.0, 0.5], 1), ([0.3, 2, 1, 1], 2)])
@pytest.mark.parametrize("draws", [2000, pytest.param(6000, marks=pytest.mark.slow)])
def test_each_draw_is_as_likely_as_it_should_be(
    method, coldness, weight, scores, n, draws
):
    expected = chances([weight(s) for s in scores], n)
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(expected, 0)
    for _ in range(draws):
        picks = stochastic_n(np.array(scores), n, rng, method=method, coldness=coldness)
        counts[tuple(picks.tolist())] += 1
    likely = draws * np.array(list(expected.values()))
    assert scipy.stats.chisquare(list(counts.values()), likely).pvalue > 1e-3


def test_the_unit_of_a_score_does_not_matter_to_power():
    scores = np.random.default_rng(0).random(30)
    assert_array_equal(draw(scores, 8), draw(1e-9 * scores, 8))
    softly = [draw(s, 8, method="softmax") for s in (10 * scores, 1e-9 * scores)]
    assert not np.array_equal(*softly)


def test_scores_of_zero_come_last_in_random_order():
    scores = [0.0, 3.0, 0.0, 1e-300, 0.0, -np.inf]
    lasts = set()
    for seed in range(60):
        picks = draw(scores, 6, seed).tolist()
        assert set(picks[:2]) == {1, 3}
        assert picks[5] == 5
        lasts.add(tuple(picks[2:5]))
    assert len(lasts) == 6


@pytest.mark.parametrize("method", ["power", "softmax"])
def test_infinite_scores_are_drawn_first_and_last(method):
    scores = [1.0, np.inf, -np.inf, 2.0, np.inf]
    firsts = set()
    for seed in range(20):
        picks = draw(scores, 5, seed, method=method).tolist()
        assert set(picks[:2]) == {1, 4}
        assert picks[4] == 2
        firsts.add(picks[0])
    assert firsts == {1, 4}


@pytest.mark.parametrize("method", ["power", "softmax"])
def test_a_draw_follows_an_item_wherever_it_stands(method):
    rng = np.random.default_rng(0)
    scores, order = rng.random(40), rng.permutation(40)
    picks, found = (draw(s, 9, method=method) for s in (scores, scores[order]))
    assert_array_equal(order[found], picks)


@pytest.mark.parametrize("method", ["power", "softmax"])
@pytest.mark.parametrize(
    ("size", "n"), [(0, 0), (0, 3), (5, 0), (5, 5), (5, 9), (1, 1)]
)
def test_n_are_drawn_or_all_there_are(method, size, n):
    picks = draw(np.ones(size), n, method=method)
    assert picks.dtype == np.intp
    assert len(set(picks.tolist())) == len(picks) == min(size, n)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
@pytest.mark.parametrize("method", ["power", "softmax"])
def test_drawn_scores_may_be_of_any_number_type(method, dtype):
    scores = np.array([0, 1, 0, 1], dtype=dtype)
    scores.flags.writeable = False
    rng = np.random.default_rng(0)
    picks = stochastic_n(scores, 4, rng, method=method, coldness=50.0)
    assert set(picks[:2]) == {1, 3}
    assert_array_equal(scores, [0, 1, 0, 1])


def test_the_scores_of_a_draw_stay_as_they_were():
    scores = np.array([3.0, 1.0, 2.0])
    for method in ("power", "softmax"):
        stochastic_n(scores, 2, np.random.default_rng(0), method=method, coldness=3.0)
    assert_array_equal(scores, [3, 1, 2])


def test_a_negative_score_has_no_power():
    with pytest.raises(ValueError, match=r"got -0.5 at position 2. Use 'softmax'"):
        draw([1.0, 0.0, -0.5], 2)
    assert draw([-1.0, -0.0, -90.0], 2, method="softmax", coldness=30.0)[0] == 1
