"""What a loop begins with: fair samples, assumed labels, matches of a pattern."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, simulate
from skactive.simulation import (
    Seed,
    keyword_seed,
    make_imbalanced,
    reference_seed,
    unbiased_seed,
)

from ._helpers import CLASSES as Y
from ._helpers import ITEMS as X

# reference_seed


@pytest.mark.parametrize("pool", [X, list("abc") * 20, sparse.csr_matrix(X)])
def test_the_reference_is_drawn_from_the_whole_pool(pool):
    seed = reference_seed(pool, 30, random_state=0)
    n = pool.shape[0] if hasattr(pool, "shape") else len(pool)
    assert len(set(seed.positions.tolist())) == 30
    assert set(seed.positions.tolist()) <= set(range(n))
    assert not seed.assumed.any()
    assert seed.relabel(Y[:n]).tolist() == Y[:n].tolist()


def test_too_many_are_refused():
    with pytest.raises(
        ValueError, match="'n' must be at most 100, the number of items in the p"
    ):
        reference_seed(X, 101)


# unbiased_seed


@given(
    st.lists(st.sampled_from("abc"), min_size=3, max_size=50),
    st.integers(1, 6),
    st.none() | st.integers(0, 6),
    st.integers(0, 9),
)
@settings(deadline=None)
def test_an_unbiased_seed_holds_the_class_and_assumed_others(y, n, n_assumed, seed):
    n_others = n if n_assumed is None else n_assumed
    assume(y.count("a") >= n and "b" in y and len(y) >= n + n_others)
    got = unbiased_seed(
        y, n, positive="a", negative="b", n_assumed=n_assumed, random_state=seed
    )
    positions, assumed, negative = got
    assert len(set(positions.tolist())) == len(positions) == n + n_others
    assert assumed.tolist() == [False] * n + [True] * n_others
    assert [y[i] for i in positions[:n]] == ["a"] * n
    assert negative == "b"
    taught = got.relabel(y)
    for i, label in enumerate(y):
        assert taught[i] == ("b" if i in positions[n:] else label)


def test_positives_are_a_fair_sample_and_some_assumptions_are_wrong():
    counts, wrong = np.zeros(100), 0
    for i in range(400):
        seed = unbiased_seed(Y, 10, positive="spam", random_state=i)
        counts[seed.positions[:10]] += 1
        wrong += np.sum(Y[seed.positions[10:]] == "spam")
    assert (counts[:60] == 0).all()
    assert np.abs(counts[60:] - 100).max() < 45  # 10 of 40: 100 +- 8.7
    assert wrong / 4000 == pytest.approx(30 / 90, abs=0.04)  # whatever their class


def test_the_other_of_two_classes_is_assumed():
    assert unbiased_seed(Y, 5, positive="spam").negative == "ham"
    assert unbiased_seed(Y == "spam", 5, positive=True).negative is False


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"positive": "egg"}, "'positive' must be one of the classes in 'y'"),
        ({"n": 41}, "'n' must be at most 40, the number of items of the class 'spam'"),
        (
            {"n": 40, "n_assumed": 61},
            "'n_assumed' must be at most 60, the number of items in the",
        ),
        ({"n": 0}, "'n' must be an int of at least 1, got 0"),
        ({"n": 2.5}, "'n' must be an int of at least 1, got 2.5"),
        ({"n": True}, "'n' must be an int of at least 1, got True"),
        ({"n": 5, "n_assumed": -1}, "'n_assumed' must be an int of at least 0, got -1"),
        ({"negative": "spam"}, "'negative' must be another class than 'spam'"),
        ({"negative": "egg"}, "'negative' must be another class than 'spam'"),
        ({"y": [*Y, "egg"]}, r"'negative' must be given.* but 2: \['egg', 'ham'\]"),
        ({"y": Y[60:]}, "'negative' must be given.* but 0"),
        (
            {"random_state": "x"},
            "The 'random_state' parameter of unbiased_seed must be",
        ),
    ],
)
def test_an_unbiased_seed_that_cannot_be_had_is_refused(params, message):
    with pytest.raises(ValueError, match=message):
        unbiased_seed(**{"y": Y, "n": 10, "positive": "spam", **params})


# keyword_seed

MAILS = [
    "free money",
    "at noon",
    "Free lunch",
    "minutes",
    "carefree",
    "",
    "free!",
    "ok",
]


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("free", {0, 4, 6}),
        (r"\bfree\b", {0, 6}),
        ("^free", {0, 6}),
        ("(?i)free", {0, 2, 4, 6}),
        (re.compile("FREE", re.I), {0, 2, 4, 6}),
        ("free.*|noon", {0, 1, 4, 6}),
        ("[A-Z]", {2}),
        ("^$", {5}),
    ],
)
def test_a_pattern_is_found_anywhere_in_a_text(pattern, matching):
    seed = keyword_seed(MAILS, pattern, len(matching), random_state=0)
    assert set(seed.positions.tolist()) == matching
    assert not seed.assumed.any()
    with pytest.raises(ValueError, match="the number of texts that match"):
        keyword_seed(MAILS, pattern, len(matching) + 1)


def test_texts_that_do_not_match_are_assumed():
    seed = keyword_seed(MAILS, "free", 2, negative="ham", n_assumed=4, random_state=0)
    assert set(seed.positions[:2].tolist()) < {0, 4, 6}
    assert set(seed.positions[2:].tolist()) < {1, 2, 3, 5, 7}
    assert seed.assumed.tolist() == [False] * 2 + [True] * 4
    y = ["spam"] * 8
    y[7] = "ham"
    taught = seed.relabel(y)
    assert taught[seed.positions[2:]].tolist() == ["ham"] * 4
    assert taught[seed.positions[:2]].tolist() == ["spam"] * 2


def test_as_many_are_assumed_as_found():
    assert keyword_seed(MAILS, "free", 3, negative="ham").assumed.sum() == 3
    assert (
        keyword_seed(MAILS, "free", 3, negative="ham", n_assumed=0).assumed.sum() == 0
    )


def test_all_containers_of_texts_give_the_same_seed(texts):
    seed = keyword_seed(texts, "film|match", 2, negative=0, random_state=1)
    same = keyword_seed(list(texts), "film|match", 2, negative=0, random_state=1)
    assert seed.positions.tolist() == same.positions.tolist()


def test_either_text_of_a_pair_may_match():
    pairs = [("a cat", "a dog"), ("a dog", "a cow"), ("a cow", "a cat")]
    assert set(keyword_seed(pairs, "cat", 2).positions.tolist()) == {0, 2}


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (
            {"pattern": "money("},
            ValueError,
            r"'money\(' is no regular expression: .*re.e",
        ),
        ({"pattern": 5}, TypeError, "'pattern' must be a regular expression, .*got 5"),
        ({"pattern": b"x"}, TypeError, "'pattern' must be a regular expression"),
        ({"pattern": re.compile(b"x")}, TypeError, "'pattern' must be a regular expr"),
        (
            {"pattern": "egg"},
            ValueError,
            "'n' must be at most 0, the number of texts that match",
        ),
        ({"n": 0}, ValueError, "'n' must be an int of at least 1"),
        (
            {"n_assumed": 2},
            ValueError,
            "'negative' must be the label assumed for 2 texts",
        ),
        (
            {"negative": 0, "n_assumed": 6},
            ValueError,
            "'n_assumed' must be at most 5, .* do not match",
        ),
        (
            {"X": "free money"},
            TypeError,
            "must be a sequence of texts, got a single str",
        ),
        ({"X": [1, 2]}, TypeError, "every item of 'X' must be a str"),
        ({"X": X}, ValueError, "'X' must be one-dimensional texts"),
    ],
)
def test_a_keyword_seed_that_cannot_be_had_is_refused(params, error, message):
    with pytest.raises(error, match=message):
        keyword_seed(**{"X": MAILS, "pattern": "free", "n": 2, **params})


# Seeds in a simulation


def test_an_assumed_label_must_be_one_of_the_data():
    seed = Seed(np.array([0]), np.array([True]), "egg")
    with pytest.raises(ValueError, match=r"'y' has no label 'egg', the one assumed"):
        seed.relabel(Y)
    with pytest.raises(ValueError, match="'positions' must lie in"):
        Seed(np.array([9]), np.array([True]), "a").relabel(["a", "b"])


@pytest.mark.parametrize("seed", range(3))
def test_a_simulation_begins_with_a_seed(seed):
    rng = np.random.default_rng(seed)
    X, y = make_imbalanced(
        rng.normal(size=(400, 2)),
        rng.integers(0, 2, 400),
        minority=1,
        random_state=seed,
    )
    begin = unbiased_seed(y, 10, positive=1, random_state=seed)
    before = y.copy()
    learner = ActiveLearner(LogisticRegression(), batch_size=5, random_state=seed)
    labels = []

    def scoring(learner, X, y):
        labels.append(learner.y_labeled_.copy())
        return learner.score(X, y)

    run = simulate(
        learner,
        X,
        begin.relabel(y),
        initial=begin.positions,
        n_rounds=2,
        X_test=X,
        y_test=y,
        scoring=scoring,
    )
    assert (y == before).all()
    assert run.rounds[0]["queried"] == begin.positions.tolist()
    assert labels[0].tolist() == [1] * 10 + [0] * 10
    assert labels[-1][20:].tolist() == y[run.queried[20:]].tolist()  # true from here on


@pytest.mark.shared_data
def test_the_imbalanced_practical_scenario_on_news(shared_data):
    # World against the rest, at 10 %, and a search for names of countries.
    frame = shared_data("ag_news/test")
    X, y = frame["text"].tolist(), (frame["label"] == 0).to_numpy()
    X, y = make_imbalanced(X, y, minority=True, prior=0.1, random_state=0)
    assert y.mean() == pytest.approx(0.1, abs=1e-3)
    seed = keyword_seed(
        X, "Iraq|Israel|China|Russia", 100, negative=False, random_state=0
    )
    found, assumed = seed.positions[~seed.assumed], seed.positions[seed.assumed]
    assert y[found].mean() > 3 * y.mean()  # rich in the class, and no fair sample
    assert y[assumed].mean() < 0.15  # few assumptions are wrong
