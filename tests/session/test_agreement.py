"""Agreement of annotators; scikit-learn, statsmodels and krippendorff are oracles."""

import sys
import threading
from types import SimpleNamespace

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from skactive.estimation import Agreement, measure_agreement
from skactive.session._state import State

# The example of Fleiss (1971) on Wikipedia: ten items, fourteen raters, kappa 0.210.
FLEISS = [
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
]
# Krippendorff (2011): four observers, twelve units, nominal alpha 0.743.
KRIPPENDORFF = [
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
]


def as_answers(table):
    """Return answers by item from rows of annotators; a dot is a missing one."""
    return {
        item: {f"rater {by}": label for by, label in enumerate(column) if label != "."}
        for item, column in enumerate(zip(*table, strict=True))
    }


def random_answers(seed, n=60, raters=3, k=3, missing=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    table = np.where(
        rng.random((raters, n)) < 0.4, rng.integers(k, size=(raters, n)), truth
    )
    shown = np.where(rng.random((raters, n)) < missing, ".", table.astype(str))
    return shown.tolist()


def test_published_kappa_of_fleiss():
    answers = {
        item: dict(enumerate(np.repeat(list("abcde"), counts).tolist()))
        for item, counts in enumerate(FLEISS)
    }
    assert round(measure_agreement(answers).kappa, 3) == 0.210


def test_published_alpha_of_krippendorff():
    answers = as_answers([row.split() for row in KRIPPENDORFF])
    found = measure_agreement(answers)
    assert round(found.alpha, 3) == 0.743
    assert found.n_items == 11  # one unit has a single value


def test_published_kappa_of_cohen():
    # The grant reviews on Wikipedia: 20, 5, 10 and 15 of 50 proposals, kappa 0.4.
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    answers = {i: dict(zip("AB", pair, strict=True)) for i, pair in enumerate(pairs)}
    found = measure_agreement(answers)
    kappa, (low, high), n = found.pairs["A", "B"]
    assert (round(kappa, 3), n) == (0.4, 50)
    assert low < kappa < high
    assert found.share == pytest.approx(0.7)


@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_the_oracles(seed):
    table = random_answers(seed)
    found = measure_agreement(as_answers(table))
    codes = np.array(table).astype(int)
    counts, _ = aggregate_raters(codes.T)
    assert found.kappa == pytest.approx(fleiss_kappa(counts))
    alpha = krippendorff.alpha(codes, level_of_measurement="nominal")
    assert found.alpha == pytest.approx(alpha)
    for (first, second), (kappa, _, n) in found.pairs.items():
        a, b = (codes[int(name.split()[1])] for name in (first, second))
        assert kappa == pytest.approx(cohen_kappa_score(a, b))
        assert n == 60


@pytest.mark.parametrize("seed", range(4))
def test_missing_answers_are_allowed(seed):
    table = random_answers(seed, raters=4, missing=0.4)
    found = measure_agreement(as_answers(table))
    values = [[np.nan if x == "." else int(x) for x in row] for row in table]
    alpha = krippendorff.alpha(values, level_of_measurement="nominal")
    assert found.alpha == pytest.approx(alpha)
    codes = np.array(values)
    for (first, second), (kappa, _, n) in found.pairs.items():
        a, b = (codes[int(name.split()[1])] for name in (first, second))
        both = ~np.isnan(a) & ~np.isnan(b)
        assert kappa == pytest.approx(cohen_kappa_score(a[both], b[both]))
        assert n == both.sum()


def test_intervals_are_those_of_a_plain_bootstrap():
    table = random_answers(0)
    found = measure_agreement(as_answers(table))
    codes, rng = np.array(table).astype(int), np.random.default_rng(1)
    draws = []
    for _ in range(1000):
        sample = codes[:, rng.integers(60, size=60)]
        draws.append(krippendorff.alpha(sample, level_of_measurement="nominal"))
    # Two bootstraps of 1,000 samples differ by a few hundredths.
    np.testing.assert_allclose(
        found.alpha_interval, np.percentile(draws, [2.5, 97.5]), atol=0.03
    )


def test_what_is_undefined_is_none():
    assert measure_agreement({}) == Agreement()
    assert measure_agreement({1: {"ann": "a"}}) == Agreement()
    assert str(Agreement()) == "no item has answers by two annotators"
    same = measure_agreement({i: {"ann": "a", "bob": "a"} for i in range(5)})
    assert (same.alpha, same.kappa, same.share) == (None, None, 1.0)
    assert same.pairs == {("ann", "bob"): (None, None, 5)}
    assert str(same) == "100 % of the answers agree, from 5 items of one class"


def test_the_agreement_of_a_session(open_session):
    session = open_session(annotator="ann", refit=False)
    session.tell(range(8), ["a", "b"] * 4, unasked=True)
    assert session.agreement().n_items == 0
    session.tell(range(4), ["a", "b", "a", "a"], annotator="bob")
    session.tell([4], ["a"], annotator="eve")
    found = session.agreement()
    assert found.n_items == 5
    assert found.share == pytest.approx(0.8)
    assert list(found.pairs) == [("ann", "bob"), ("ann", "eve")]
    assert found == session.agreement()
    text = str(found)
    assert text.startswith("80 % of the answers agree; alpha 0.")
    assert text.endswith(", from 5 items")


def test_lists_and_numbers_are_classes(open_session):
    session = open_session(annotator="ann", refit=False)
    session.tell([1, 2], [[0, 1], [1, 0]], unasked=True)
    session.tell([1, 2], [[0, 1], [1, 1]], annotator="bob")
    assert session.agreement().share == 0.5


# Several classes, and numbers


def test_published_alpha_of_krippendorff_for_intervals():
    table = [[x if x == "." else float(x) for x in row.split()] for row in KRIPPENDORFF]
    found = measure_agreement(as_answers(table), target="regression")
    assert round(found.alpha, 3) == 0.849
    low, high = found.alpha_interval
    assert low < found.alpha < high
    assert (found.kappa, found.kappa_interval) == (None, None)


@pytest.mark.parametrize("seed", range(3))
def test_numbers_against_the_oracle(seed):
    rng = np.random.default_rng(seed)
    table = 1e6 + rng.normal(size=30) + 0.5 * rng.normal(size=(3, 30))
    hidden = rng.random(table.shape) < 0.2
    shown = np.where(hidden, np.nan, table)
    cells = [["." if np.isnan(x) else float(x) for x in row] for row in shown]
    found = measure_agreement(as_answers(cells), target="regression")
    expected = krippendorff.alpha(shown, level_of_measurement="interval")
    assert found.alpha == pytest.approx(expected)
    for (first, second), (alpha, _, n) in found.pairs.items():
        both = shown[[int(first[-1]), int(second[-1])]]
        both = both[:, ~np.isnan(both).any(axis=0)]
        assert n == both.shape[1]
        expected = krippendorff.alpha(both, level_of_measurement="interval")
        assert alpha == pytest.approx(expected)


@pytest.mark.parametrize("as_rows", [False, True], ids=["names", "rows"])
def test_several_classes_are_the_mean_over_the_classes(as_rows):
    rng = np.random.default_rng(0)
    truth = rng.random((50, 4)) < [0.5, 0.3, 0.1, 0.0]  # nobody gives the last class
    given = truth ^ ((rng.random((3, 50, 4)) < 0.2) & [True, True, True, False])
    names = np.array(["a", "b", "c", "d"])

    def as_label(row, by):  # the order of names says nothing
        return (
            row.astype(int).tolist()
            if as_rows
            else names[row][:: 1 - 2 * (by % 2)].tolist()
        )

    answers = {
        item: {f"rater {by}": as_label(given[by, item], by) for by in range(3)}
        for item in range(50)
    }
    found = measure_agreement(answers, target="multi-label")
    alphas = [krippendorff.alpha(given[:, :, c].astype(float)) for c in range(3)]
    tables = [aggregate_raters(given[:, :, c].T.astype(int))[0] for c in range(3)]
    assert found.alpha == pytest.approx(np.mean(alphas))
    assert found.kappa == pytest.approx(np.mean([fleiss_kappa(t) for t in tables]))
    kappa, (low, high), n = found.pairs["rater 0", "rater 2"]
    kappas = [cohen_kappa_score(given[0, :, c], given[2, :, c]) for c in range(3)]
    assert kappa == pytest.approx(np.mean(kappas))
    assert (low < kappa < high, n) == (True, 50)
    equal = [
        (given[i] == given[j]).all(axis=1).mean() for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert found.share == pytest.approx(np.mean(equal))


def test_empty_sets_alone_have_no_alpha():
    answers = {i: {"A": [], "B": []} for i in range(4)}
    found = measure_agreement(answers, target="multi-label")
    assert (found.share, found.alpha, found.pairs["A", "B"]) == (
        1.0,
        None,
        (None, None, 4),
    )


def test_a_class_that_everybody_gave_is_left_out():
    # Everybody gives "y" to every item; "x" and "z" vary.
    given = [
        {"a": ["x", "y"], "b": ["x", "y"]},
        {"a": ["x", "y", "z"], "b": ["y"]},
        {"a": ["y", "z"], "b": ["y", "z"]},
        {"a": ["y"], "b": ["y"]},
    ]
    found = measure_agreement(dict(enumerate(given)), target="multi-label")
    asked = [
        np.array([[name in one[by] for one in given] for by in "ab"], dtype=float)
        for name in "xz"
    ]
    alphas = [krippendorff.alpha(one) for one in asked]
    assert found.alpha == pytest.approx(np.mean(alphas))
    kappas = [cohen_kappa_score(*one) for one in asked]
    assert found.pairs["a", "b"][0] == pytest.approx(np.mean(kappas))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "skill", "n"), [(2, 0.9, 10), (2, 0.98, 40), (4, 0.8, 20)]
)
def test_the_intervals_cover_even_at_full_agreement(k, skill, n):
    # Two annotators know the class, or guess: alpha and kappa are `skill` squared.
    covered = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        truth = rng.integers(k, size=n)
        given = np.where(
            rng.random((2, n)) < skill, truth, rng.integers(k, size=(2, n))
        )
        found = measure_agreement(as_answers(given.tolist()))
        pair = found.pairs["rater 0", "rater 1"]
        for interval in (found.alpha_interval, found.kappa_interval, pair[1]):
            if interval is not None:
                low, high = interval
                assert low < high or high < 1  # one annotator gave a single class
                covered.append(low <= skill**2 <= high)
    assert np.mean(covered) >= 0.9


def test_full_agreement_is_not_certain():
    answers = {i: {"A": i % 2, "B": i % 2} for i in range(6)}
    found = measure_agreement(answers)
    assert found.alpha == 1.0
    assert found.alpha_interval[0] < 0.7
    assert found.alpha_interval[1] == 1.0
    numbers = {i: {"A": float(i), "B": float(i)} for i in range(6)}
    low, high = measure_agreement(numbers, target="regression").alpha_interval
    assert low < high == 1.0


LABELS = {
    "words": ["yes", "no", "no"],
    "numbers": [1, 0, 0],
    "names": [["a", "b"], ["a"], []],
    "truth": [True, False, False],
    "several numbers": [[1, 2], [1.5, 2], [0, 0]],
}


@pytest.mark.parametrize("kind", LABELS)
def test_equal_labels_agree_whatever_numpy_made_of_them(kind):
    def convert(label):
        if isinstance(label, list) and kind == "names":
            return [np.str_(name) for name in label]
        return np.array([label])[0]

    answers = {
        i: {"Ann": label, "Eve": convert(label)} for i, label in enumerate(LABELS[kind])
    }
    target = "multi-label" if kind == "names" else "single-label"
    found = measure_agreement(answers, target=target)
    assert (found.share, found.alpha) == (1, 1)


@pytest.mark.parametrize("kind", [float, np.float32, np.int8])
def test_whole_numbers_agree_with_integers(kind):
    people = {i: {"Ann": i % 3, "Bob": i % 3} for i in range(30)}
    machine = {"model": {i: kind(i % 3) for i in range(30)}}
    found = measure_agreement(people, machines=machine)
    assert found.pairs["Ann", "model"][0] == 1


def test_answers_are_read_while_others_answer():
    one = SimpleNamespace(label="yes", given=[1])
    state = SimpleNamespace(answers={})

    def work():
        for i in range(30_000):
            state.answers[i] = one

    before, thread = sys.getswitchinterval(), threading.Thread(target=work)
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        while thread.is_alive():
            State.labels(state), State.list_answers(state)
    finally:
        sys.setswitchinterval(before)
    assert len(State.labels(state)) == len(State.list_answers(state)) == 30_000
