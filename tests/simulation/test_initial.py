"""Initial labels and a person who errs."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import binomtest, chisquare

from skactive.simulation._simulate import Oracle, choose_initial

y = np.repeat(["a", "b", "c"], [90, 9, 1])


def choose(initial, n, labels=y, seed=0):
    return choose_initial(initial, n, labels, np.random.default_rng(seed))


def counts(positions, labels=y):
    return [int((labels[positions] == c).sum()) for c in np.unique(labels)]


def test_random_is_the_default_and_needs_no_labels():
    assert_array_equal(choose("random", 20), choose(None, 20))
    assert_array_equal(choose("random", 20), choose(None, 20, y[::-1]))
    assert len(set(choose(None, 20))) == 20
    assert not np.array_equal(choose(None, 20), choose(None, 20, seed=1))


def test_first():
    assert_array_equal(choose("first", 4), range(4))


def test_positions_and_masks():
    assert_array_equal(choose([7, 3], 50), [7, 3])
    assert_array_equal(choose(y == "b", 50), range(90, 99))


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (100, [90, 9, 1]),
        (50, [44, 5, 1]),
        (20, [17, 2, 1]),
        (3, [1, 1, 1]),
        (0, [0] * 3),
    ],
)
def test_stratified_keeps_shares_and_every_class(n, expected):
    # Of 50: shares 45, 4.5 and 0.5; one more for b or c by chance, then one for c.
    found = [counts(choose("stratified", n, seed=seed)) for seed in range(5)]
    assert all(sum(f) == n for f in found)
    if n == 50:
        assert {tuple(f) for f in found} <= {(44, 5, 1), (45, 4, 1)}
    else:
        assert found == [expected] * 5


def test_stratified_with_fewer_items_than_classes():
    found = [counts(choose("stratified", 2, seed=seed)) for seed in range(20)]
    assert found == [[2, 0, 0]] * 20


def test_stratified_is_exact_where_shares_are_whole():
    labels = np.tile([0, 1, 1, 1], 25)
    assert counts(choose("stratified", 40, labels), labels) == [10, 30]


def test_stratified_takes_any_item_of_a_class_and_mixes_classes():
    draws = [choose("stratified", 10, seed=seed) for seed in range(300)]
    seen = np.bincount(np.concatenate(draws), minlength=100)
    assert chisquare(seen[90:99]).pvalue > 1e-3
    assert len({int(np.flatnonzero(d == 99)[0]) for d in draws}) == 10


@pytest.mark.parametrize(
    ("initial", "n", "message"),
    [
        (
            "balanced",
            5,
            "'random', 'stratified', 'first', or positions.*got 'balanced'",
        ),
        (None, 101, "at most the size of the pool, 100; got 101"),
        ("first", 101, "at most the size of the pool"),
        (None, True, "must be an int of at least 0, got True"),
        ([0, 100], 5, r"'initial' must lie in \[0, 100\)"),
        ([3, 3], 5, "'initial' names 1 positions more than once"),
        ([], 5, "'initial' holds no positions.*n_initial=0"),
        ([True, False], 5, "'initial' is a mask over 2 items"),
    ],
)
def test_invalid_initial_sets_are_refused(initial, n, message):
    with pytest.raises(ValueError, match=message):
        choose(initial, n)


def test_only_classes_can_be_stratified():
    with pytest.raises(TypeError, match="needs one class for each item"):
        choose("stratified", 3, np.linspace(0, 1, 9))


# The person who labels.


def test_without_noise_labels_are_true():
    for noise in (None, 0, 0.0):
        assert_array_equal(Oracle(y, noise).label(np.array([99, 0]), 3), ["c", "a"])


def test_the_rate_is_a_probability_of_any_other_class():
    truth = np.tile(["a", "b", "c"], 4000)
    labels = Oracle(truth, 0.3, seed=1).label(np.arange(12000), 0)
    wrong = labels != truth
    assert binomtest(int(wrong.sum()), 12000, 0.3).pvalue > 1e-3
    confusions = [
        ((truth == t) & (labels == s)).sum() for t in "abc" for s in "abc" if t != s
    ]
    assert chisquare(confusions).pvalue > 1e-3


def test_certain_noise_is_never_right():
    assert not (Oracle(y, 1.0).label(np.arange(100), 0) == y).any()


def test_an_item_has_one_label_whenever_it_is_asked():
    everything = Oracle(y, 0.5).label(np.arange(100), 0)
    some = np.array([40, 2, 95])
    assert_array_equal(Oracle(y, 0.5).label(some, 7), everything[some])
    other = Oracle(y, 0.5, seed=1).label(np.arange(100), 0)
    assert not np.array_equal(other, everything)


def test_noise_does_not_change_the_true_labels():
    truth = y.copy()
    Oracle(truth, 0.9)
    assert_array_equal(truth, y)


def test_a_function_gets_the_queried_items():
    told = []

    def lazy(positions, labels, rng):
        told.append((positions.tolist(), labels.tolist(), rng.random()))
        return np.full(len(labels), "a")

    oracle = Oracle(y, lazy)
    assert_array_equal(oracle.label(np.array([99, 0]), 3), ["a", "a"])
    oracle.label(np.array([99, 0]), 3)
    oracle.label(np.array([99, 0]), 4)
    assert told[0] == told[1]
    assert told[0][:2] == ([99, 0], ["c", "a"])
    assert told[1][2] != told[2][2]


def test_a_function_that_returns_too_few_labels_is_named():
    with pytest.raises(ValueError, match="differ in length") as error:
        Oracle(y, lambda positions, labels, rng: labels[:1]).label(np.arange(3), 2)
    assert "'noise', asked for 3 of them in round 2" in error.value.__notes__[0]


@pytest.mark.parametrize("noise", [-0.1, 1.1, "much", True])
def test_bad_rates(noise):
    with pytest.raises(ValueError, match=r"'noise' must be a probability in \[0, 1\]"):
        Oracle(y, noise)


def test_noise_needs_classes():
    with pytest.raises(TypeError, match="a rate of 'noise' needs one class"):
        Oracle(np.linspace(0, 1, 9), 0.1)
    with pytest.raises(ValueError, match="all labels in 'y' are"):
        Oracle(np.zeros(9, dtype=int), 0.1)
