"""Initial labels and a person who errs."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import binomtest, chisquare
from sklearn.linear_model import LogisticRegression, Ridge

from skactive import ActiveLearner, simulate
from skactive.simulation._oracle import Oracle, choose_initial

y = np.repeat(["a", "b", "c"], [90, 9, 1])


def choose(initial, n, labels=y, seed=0):
    numeric = labels.dtype.kind == "f"
    return choose_initial(initial, n, labels, np.random.default_rng(seed), numeric)


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


def test_numbers_are_stratified_by_ten_quantiles():
    numbers = np.random.default_rng(0).permutation(np.linspace(0, 1, 200)) ** 4
    ranks = numbers.argsort().argsort() // 20
    for seed in range(5):
        assert_array_equal(counts(choose("stratified", 40, numbers, seed), ranks), 4)
    few = np.repeat([0.5, 1.5], [90, 10])
    assert counts(choose("stratified", 20, few), few) == [18, 2]


def test_every_label_of_several_is_drawn_once_the_rarest_first():
    rng = np.random.default_rng(0)
    several = (rng.random((300, 4)) < [0.5, 0.3, 0.01, 0.02]).astype(int)
    several[7] = [0, 0, 1, 1]
    for seed in range(5):
        drawn = choose("stratified", 30, several, seed)
        assert len(set(drawn)) == 30
        assert several[drawn].any(axis=0).all()
    both = np.zeros((300, 2), dtype=int)
    both[:, 0], both[7, 1] = 1, 1
    assert all(7 in choose("stratified", 1, both, seed) for seed in range(9))
    # The items beyond are drawn from all others alike.
    rest = np.concatenate([choose("stratified", 2, both, s) for s in range(600)])
    seen = np.bincount(rest, minlength=300)
    assert seen[7] == 600
    assert (np.delete(seen, 7) > 0).mean() > 0.7


def test_several_classes_per_item_cannot_be_stratified():
    with pytest.raises(TypeError, match="an indicator matrix of 0 and 1, got"):
        choose("stratified", 3, np.array([[0, 2], [1, 0], [2, 2]]))


# The person who labels.


def test_without_noise_labels_are_true():
    for noise in (None, 0, 0.0):
        assert_array_equal(Oracle(y, noise).label(np.array([99, 0]), 3)[0], ["c", "a"])


def test_the_rate_is_a_probability_of_any_other_class():
    truth = np.tile(["a", "b", "c"], 4000)
    labels = Oracle(truth, 0.3, seed=1).label(np.arange(12000), 0)[0]
    wrong = labels != truth
    assert binomtest(int(wrong.sum()), 12000, 0.3).pvalue > 1e-3
    confusions = [
        ((truth == t) & (labels == s)).sum() for t in "abc" for s in "abc" if t != s
    ]
    assert chisquare(confusions).pvalue > 1e-3


def test_certain_noise_is_never_right():
    assert not (Oracle(y, 1.0).label(np.arange(100), 0)[0] == y).any()


def test_an_item_has_one_label_whenever_it_is_asked():
    everything = Oracle(y, 0.5).label(np.arange(100), 0)[0]
    some = np.array([40, 2, 95])
    assert_array_equal(Oracle(y, 0.5).label(some, 7)[0], everything[some])
    other = Oracle(y, 0.5, seed=1).label(np.arange(100), 0)[0]
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
    assert_array_equal(oracle.label(np.array([99, 0]), 3)[0], ["a", "a"])
    oracle.label(np.array([99, 0]), 3)
    oracle.label(np.array([99, 0]), 4)
    assert told[0] == told[1]
    assert told[0][:2] == ([99, 0], ["c", "a"])
    assert told[1][2] != told[2][2]


def test_a_function_that_returns_too_few_labels_is_named():
    with pytest.raises(ValueError, match="differ in length") as error:
        Oracle(y, lambda positions, labels, rng: labels[:1]).label(np.arange(3), 2)[0]
    assert "'noise', asked for 3 of them in round 2" in error.value.__notes__[0]


def test_noise_needs_classes():
    with pytest.raises(TypeError, match="a rate of 'noise' needs one class"):
        Oracle(np.array([[0, 2], [1, 0]]), 0.1)
    with pytest.raises(ValueError, match="all labels in 'y' are"):
        Oracle(np.zeros(9, dtype=int), 0.1)


@pytest.mark.parametrize(
    "truth",
    [
        np.repeat([0.0, 0.25, 1.5, 7.0], [500, 300, 150, 50]),
        np.repeat([[0, 0], [0, 1], [1, 1], [1, 0]], [500, 300, 150, 50], axis=0),
    ],
    ids=["numbers", "labels"],
)
def test_a_wrong_number_or_set_is_that_of_another_item(truth):
    codes = np.unique(truth, axis=0, return_inverse=True)[1]
    labels = Oracle(truth, 1.0, seed=2, numeric=True).label(np.arange(1000), 0)[0]
    found = [
        np.flatnonzero((truth == each).reshape(1000, -1).all(1)) for each in labels
    ]
    drawn = np.array([codes[rows[0]] for rows in found])
    assert not (drawn == codes).any()
    largest = np.bincount(codes).argmax()
    of_others = drawn[codes == largest]
    others = [c for c in range(4) if c != largest]
    expected = np.array([(codes == c).sum() for c in others])
    seen = np.array([(of_others == c).sum() for c in others])
    assert chisquare(seen, expected / expected.sum() * seen.sum()).pvalue > 1e-3
    some = Oracle(truth, 0.3, seed=2, numeric=True).label(np.arange(1000), 0)[0]
    wrong = (some != truth).reshape(1000, -1).any(axis=1)
    assert binomtest(int(wrong.sum()), 1000, 0.3).pvalue > 1e-3


@pytest.mark.parametrize("kind", [int, float, str])
def test_classes_may_be_whole_numbers_of_any_kind(kind):
    classes = np.tile(np.arange(20), 20)
    rows = np.random.default_rng(0).normal(size=(400, 2))
    learner = ActiveLearner(LogisticRegression(), "random", random_state=0)
    options = {"n_initial": 20, "n_rounds": 0, "initial": "stratified"}
    run = simulate(learner, rows, classes.astype(kind), **options)
    assert len(set(classes[run.queried])) == 20


def test_wrong_classes_are_equally_likely_whatever_their_kind():
    classes = np.repeat([0, 1, 2], [340, 40, 20])
    found = [
        Oracle(classes.astype(kind), 0.5).label(np.arange(400), 0)[0]
        for kind in (int, float)
    ]
    assert_array_equal(*found)


@pytest.mark.parametrize("kind", [int, float])
def test_numbers_of_a_regression_are_dealt_by_their_quantiles(kind):
    numbers = np.arange(400).astype(kind)
    learner = ActiveLearner(Ridge(), "random", random_state=0)
    options = {"n_initial": 20, "n_rounds": 0, "initial": "stratified"}
    run = simulate(learner, numbers[:, None], numbers, **options)
    assert np.bincount(numbers[run.queried].astype(int) // 40).tolist() == [2] * 10
