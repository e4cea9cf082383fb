"""Rare classes, and what a loop begins with: counts, shares, and what is refused."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, simulate
from skactive.scenarios import (
    Seed,
    keyword_seed,
    make_imbalanced,
    reference_seed,
    unbiased_seed,
)

Y = np.repeat(["ham", "spam"], [60, 40])
X = np.arange(100).reshape(-1, 1)


# make_imbalanced


@pytest.mark.parametrize(
    ("params", "n_kept"),
    [
        ({}, 7),  # 10 % of 67 is 6.7
        ({"prior": 0.1}, 7),
        ({"prior": 0.25}, 20),
        ({"prior": 0.4}, 40),
        ({"ratio": 0.5}, 30),
        ({"ratio": 1 / 60}, 1),
        ({"ratio": 2 / 3}, 40),
    ],
)
def test_so_many_of_the_class_stay(params, n_kept):
    _, y = make_imbalanced(X, Y, minority="spam", random_state=0, **params)
    assert Counter(y.tolist()) == {"ham": 60, "spam": n_kept}


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.floats(0.01, 0.99),
    st.randoms(use_true_random=False),
    st.integers(0, 9),
)
@settings(deadline=None)
def test_the_prior_is_as_near_as_whole_items_allow(
    n_others, n_of_class, share, random, seed
):
    y = [0, 2, 3][: n_others % 3 + 1] * n_others
    y = y[:n_others] + [1] * n_of_class
    random.shuffle(y)
    wanted = max(share * n_of_class, 0.6)
    prior = wanted / (wanted + n_others)
    items = list(range(len(y)))
    kept, labels, positions = make_imbalanced(
        items, y, minority=1, prior=prior, random_state=seed, return_positions=True
    )
    assert kept == positions.tolist() == sorted(set(kept))
    assert labels == [y[i] for i in kept]
    assert [i for i in kept if y[i] != 1] == [i for i in items if y[i] != 1]
    assert abs(labels.count(1) - wanted) <= 0.5 + 1e-9


def test_the_published_prior_of_ten_percent_is_reached():
    y = np.repeat([0, 1], [5000, 5000])
    _, y = make_imbalanced(y, y, minority=1, prior=0.1, random_state=0)
    assert y.mean() == pytest.approx(0.1, abs=1e-4)


def test_every_item_of_the_class_is_as_likely_to_stay():
    counts = np.zeros(100)
    for seed in range(400):
        counts[
            make_imbalanced(
                X,
                Y,
                minority="spam",
                prior=0.25,
                random_state=seed,
                return_positions=True,
            )[2]
        ] += 1
    assert (counts[:60] == 400).all()
    # 20 of 40 each time: 200 +- 10; five standard deviations.
    assert np.abs(counts[60:] - 200).max() < 50


def test_the_seed_decides_what_stays():
    def kept(seed):
        result = make_imbalanced(
            X, Y, minority="spam", random_state=seed, return_positions=True
        )
        return result[2].tolist()

    assert kept(1) == kept(1) != kept(2)


@pytest.mark.parametrize("wrap", [list, tuple, np.array])
def test_containers_keep_their_kind(wrap):
    texts = wrap([f"text {i}" for i in range(100)])
    kept, y = make_imbalanced(texts, Y.tolist(), minority="spam", random_state=0)
    assert isinstance(kept, list if wrap is tuple else type(texts))
    assert isinstance(y, list)
    assert len(kept) == len(y) == 67


def test_frames_series_and_sparse_matrices_keep_their_kind():
    pd = pytest.importorskip("pandas")
    frame, series = pd.DataFrame({"a": X[:, 0]}), pd.Series(Y, index=X[:, 0] + 5)
    kept, y = make_imbalanced(frame, series, minority="spam", random_state=0)
    assert (kept.index + 5 == y.index).all()
    kept, _ = make_imbalanced(sparse.csr_matrix(X), Y, minority="spam", random_state=0)
    assert sparse.issparse(kept)
    assert kept.shape == (67, 1)


@pytest.mark.parametrize("label", [True, 1, np.int64(1)])
def test_classes_of_other_kinds(label):
    y = (Y == "spam") if label is True else (Y == "spam").astype(int)
    _, kept = make_imbalanced(X, y, minority=label, random_state=0)
    assert kept.sum() == 7


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"minority": "egg"}, r"'minority' must be one of the classes in 'y', \['ham'"),
        ({"minority": 1}, "'minority' must be one of the classes in 'y'"),
        ({"prior": 0.5}, "prior=0.5 needs 60 items of the class 'spam' beside the 60"),
        (
            {"ratio": 0.7},
            r"ratio=0.7 needs 42 items .* and there are 40\. Ask for less",
        ),
        ({"prior": 0.001}, "prior=0.001 leaves no item of the class 'spam' beside the"),
        ({"prior": 0.2, "ratio": 0.2}, "give 'prior' or 'ratio', not both"),
        ({"prior": 0}, "'prior' must be a number between 0 and 1, got 0"),
        ({"prior": 1}, "'prior' must be a number between 0 and 1, got 1"),
        ({"prior": "10%"}, "'prior' must be a number between 0 and 1, got '10%'"),
        ({"prior": np.nan}, "'prior' must be a number between 0 and 1, got nan"),
        ({"ratio": -1}, "'ratio' must be a number above 0, got -1"),
        ({"ratio": True}, "'ratio' must be a number above 0, got True"),
        ({"y": Y[:5]}, "'X' and 'y' differ in length"),
        ({"y": [None, *Y[1:]]}, "'y' has no label at positions 0"),
    ],
)
def test_what_cannot_be_made_is_refused(params, message):
    with pytest.raises(ValueError, match=message):
        make_imbalanced(**{"X": X, "y": Y, "minority": "spam", **params})


@pytest.mark.parametrize("y", [np.linspace(0, 1, 100), np.eye(100, 2, dtype=int)])
def test_targets_that_are_no_classes_are_refused(y):
    with pytest.raises(TypeError, match="'y' must hold one class for each item"):
        make_imbalanced(X, y, minority=0)
    with pytest.raises(TypeError, match="'y' must hold one class for each item"):
        unbiased_seed(y, positive=0)


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
    with pytest.raises(ValueError, match="n=101 is more than there are items in the p"):
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
        ({"n": 41}, "n=41 is more than there are items of the class 'spam': 40"),
        (
            {"n": 40, "n_assumed": 61},
            "n_assumed=61 is more than there are items in the",
        ),
        ({"n": 0}, "'n' must be an int of at least 1, got 0"),
        ({"n": 2.5}, "'n' must be an int of at least 1, got 2.5"),
        ({"n": True}, "'n' must be an int of at least 1, got True"),
        ({"n": 5, "n_assumed": -1}, "'n_assumed' must be an int of at least 0, got -1"),
        ({"negative": "spam"}, "'negative' must be another class than 'spam'"),
        ({"negative": "egg"}, "'negative' must be another class than 'spam'"),
        ({"y": [*Y, "egg"]}, r"'negative' must be given.* but 2: \['egg', 'ham'\]"),
        ({"y": Y[60:]}, "'negative' must be given.* but 0"),
        ({"random_state": "x"}, "cannot be used to seed"),
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
    with pytest.raises(ValueError, match="is more than there are texts that match"):
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
            "n=2 is more than there are texts that match 'e",
        ),
        ({"n": 0}, ValueError, "'n' must be an int of at least 1"),
        ({"n_assumed": 2}, ValueError, "'negative' must say what to assume of 2 texts"),
        ({"negative": 0, "n_assumed": 6}, ValueError, "n_assumed=6 .* do not match: 5"),
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
    assert run.rounds[0]["asked"] == begin.positions.tolist()
    assert labels[0].tolist() == [1] * 10 + [0] * 10
    assert labels[-1][20:].tolist() == y[run.asked[20:]].tolist()  # true from here on


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
