"""Repeated texts: a text is asked about once."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, simulate

from ._helpers import SENTIMENT, WORDS, X, make, y


def learner(strategy="margin"):
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression())
    return ActiveLearner(pipe, strategy, random_state=0)


CONTAINERS = [list, np.array, pd.Series, lambda t: np.array(t, dtype=object)]


@pytest.mark.parametrize("wrap", CONTAINERS)
@pytest.mark.parametrize("strategy", ["margin", "badge", "random"])
def test_exact_repeats_are_asked_once(strategy, wrap):
    pool = wrap(WORDS[2:] * 3)
    picks = learner(strategy).fit(WORDS[:2], SENTIMENT[:2]).query(pool, 8)
    assert sorted(picks) == [0, 1, 2, 3]


@pytest.mark.parametrize("wrap", CONTAINERS)
def test_a_text_with_a_label_is_not_asked_again(wrap):
    asked = learner().fit(WORDS[:2], SENTIMENT[:2]).query(wrap(WORDS), 6)
    assert sorted(asked) == [2, 3, 4, 5]


def test_labels_that_were_only_stored_count():
    taught = learner().fit(WORDS[:2], SENTIMENT[:2])
    taught.teach(WORDS[2:4], SENTIMENT[2:4], refit=False)
    assert sorted(taught.query(WORDS, 6)) == [4, 5]


def test_before_any_label_repeats_are_asked_once():
    assert sorted(learner().query(["a", "b", "a", "b", "c"], 5)) == [0, 1, 4]


def test_the_first_candidate_of_equal_texts_is_asked():
    pool = ["a", "b", "a", "b"]
    assert sorted(learner().query(pool, 4, candidates=[2, 3, 1])) == [2, 3]


def test_no_candidate_but_texts_with_a_label():
    taught = learner().fit(WORDS[:2], SENTIMENT[:2])
    with pytest.raises(ValueError, match="every candidate is a text with a label"):
        taught.query(WORDS, candidates=[0, 1])


@pytest.mark.parametrize("wrap", [list, np.array, lambda p: pd.DataFrame(p)])
def test_pairs_of_texts_are_compared_as_pairs(wrap):
    pairs = [("a", "b"), ("b", "a"), ("a", "b"), ("a", "c")]

    class Join:
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return [" ".join(map(str, pair)) for pair in np.asarray(X)]

    pipe = make_pipeline(Join(), TfidfVectorizer(analyzer="char"), LogisticRegression())
    taught = ActiveLearner(pipe, random_state=0)
    assert sorted(taught.query(wrap(pairs), 4)) == [0, 1, 3]
    taught.fit(wrap(pairs[:2]), ["x", "y"])
    assert_array_equal(taught.query(wrap(pairs), 4), [3])


def test_numeric_rows_are_not_compared():
    taught = make().fit(X, y)
    assert len(taught.query(np.concatenate([X, X]), 120)) == 120


def test_a_simulation_ends_where_only_repeats_are_left():
    run = simulate(
        learner().set_params(batch_size=2),
        WORDS * 2,
        SENTIMENT * 2,
        n_initial=2,
        n_rounds=9,
        initial=[0, 1],
    )
    assert sorted(run.queried) == [0, 1, 2, 3, 4, 5]
