"""DisagreeWithMachine against a loop, and what it needs."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.annotators import ColumnAnnotator
from skactive.strategies import DisagreeWithMachine

RNG = np.random.default_rng(0)
POOL = [" ".join(RNG.choice(list("abcdefghij"), 5)) for _ in range(80)]
SAID = RNG.choice(["yes", "no", "maybe", ""], 80, p=[0.4, 0.4, 0.1, 0.1]).tolist()


@pytest.fixture
def learner():
    model = make_pipeline(CountVectorizer(token_pattern="[a-j]"), LogisticRegression())
    strategy = DisagreeWithMachine(ColumnAnnotator(POOL, SAID))
    labels = ["yes" if "a" in text else "no" for text in POOL[:20]]
    return ActiveLearner(model, strategy, random_state=0).fit(POOL[:20], labels)


def test_oracle_the_least_probable_answers_are_asked_first(learner):
    picks, scores = learner.query(POOL, 60, return_scores=True)
    proba = learner.predict_proba(POOL)
    expected = {}
    for i, said in enumerate(SAID):
        if said == "yes":
            expected[i] = 1 - proba[i, 1]
        elif said == "no":
            expected[i] = 1 - proba[i, 0]
        else:  # a class that the model does not know, or no answer
            expected[i] = 1.0 if said else -1.0
    np.testing.assert_allclose(scores, [expected[i] for i in picks])
    assert (np.diff(scores) <= 0).all()
    assert not set(picks) & set(range(20))
    others = [i for i in range(20, 80) if POOL[i] not in POOL[:20]]
    assert set(picks) == set(others)


def test_a_learner_with_it_can_be_cloned_and_searched(learner):
    from sklearn.base import clone

    other = clone(learner)
    assert other.strategy.annotator.annotate(POOL[:1]) == [(SAID[0] or None, None)]


@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_an_answer_is_found_by_equality(kind):
    said = [kind(len(text) % 2) for text in POOL]
    model = make_pipeline(CountVectorizer(token_pattern="[a-j]"), LogisticRegression())
    strategy = DisagreeWithMachine(ColumnAnnotator(POOL, said))
    learner = ActiveLearner(model, strategy).fit(POOL[:20], [0, 1] * 10)
    picks, scores = learner.query(POOL, 20, return_scores=True)
    proba = learner.predict_proba(POOL)[picks, np.take(said, picks).astype(int)]
    np.testing.assert_allclose(scores, 1 - proba)
