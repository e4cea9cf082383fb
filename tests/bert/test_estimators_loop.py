"""BERT estimators in an ActiveLearner."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.bert import BertClassifier, BertFeatures, BertRegressor

from ._helpers import X, Y, classifier


@pytest.mark.long
def test_an_active_learner_queries_and_teaches(tiny_bert):
    learner = ActiveLearner(
        classifier(tiny_bert, random_state=None), "margin", batch_size=3, random_state=0
    ).fit(X[:4], Y[:4])
    open_ones = np.arange(4, len(X))
    for _ in range(2):
        picks = learner.query(X, candidates=open_ones)
        proba = np.sort(learner.predict_proba([X[i] for i in open_ones]), axis=1)
        margins = proba[:, -1] - proba[:, -2]
        np.testing.assert_array_equal(
            np.sort(picks), np.sort(open_ones[np.argsort(margins)[:3]])
        )
        learner.teach([X[i] for i in picks], Y[picks])
        open_ones = np.setdiff1d(open_ones, picks)
    assert len(learner.X_labeled_) == 10
    assert learner.score(X, Y) >= 0.0


@pytest.mark.long
def test_a_loop_gives_the_same_answers_again(tiny_bert):
    def picks():
        learner = ActiveLearner(
            classifier(tiny_bert, random_state=None), "entropy", random_state=7
        ).fit(X[:4], Y[:4])
        first = learner.query(X[4:], 4)
        learner.teach([X[4:][i] for i in first], Y[4:][first])
        return [*first, *learner.query(X[4:], 4)]

    assert picks() == picks()


def test_a_loop_may_begin_with_one_class(tiny_bert):
    learner = ActiveLearner(classifier(tiny_bert), batch_size=4, random_state=0)
    learner.fit(X[:1], Y[:1]).query(X)
    learner.teach(X[1:4], Y[1:4])
    assert isinstance(learner.estimator_, BertClassifier)


@pytest.fixture(scope="module")
def learner(tiny_bert):
    learner = ActiveLearner(classifier(tiny_bert), batch_size=2, random_state=0)
    return learner.fit(X[:4], Y[:4])


@pytest.mark.long
def test_a_loop_with_texts_in_every_container(learner, texts):
    learner = copy.deepcopy(learner)
    picks = learner.query(texts, len(texts))
    items = list(map(str, texts))  # one of them occurs twice
    assert sorted(items[i] for i in picks) == sorted(set(items))


@pytest.mark.long
def test_swapping_the_model_at_the_end(tiny_bert):
    features = BertFeatures(tiny_bert, precision="float32")
    learner = ActiveLearner(make_pipeline(features, LogisticRegression()), "margin")
    learner.fit(X[:6], Y[:6])
    picks = learner.query(X[6:], 4)
    learner.teach([X[6:][i] for i in picks], Y[6:][picks])
    learner.set_params(estimator=classifier(tiny_bert, freeze=1)).refit()
    expected = classifier(tiny_bert, freeze=1).fit(
        learner.X_labeled_, learner.y_labeled_
    )
    np.testing.assert_array_equal(learner.predict_proba(X), expected.predict_proba(X))
    restored = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(restored.predict(X), learner.predict(X))


@pytest.mark.long
def test_strategies_ask_for_the_targets_that_they_are_defined_for(tiny_bert):
    codes = np.arange(6) % 2
    indicators = np.column_stack([codes, 1 - codes, codes])
    several = classifier(tiny_bert).fit(X[:6], indicators)
    number = BertRegressor(tiny_bert, max_epochs=1).fit(X[:6], np.arange(6.0))
    for model, y, able, unable in (
        (several, indicators, ("margin", "bald", "badge", "dfal"), "batchbald"),
        (number, np.arange(6.0), ("bald", "lcmd", "greedy_sampling"), "margin"),
    ):
        learner = ActiveLearner(model, random_state=0).fit(X[:6], y)
        for strategy in able:
            asked = learner.set_params(strategy=strategy).query(X[6:], 2)
            assert len({*asked.tolist()}) == 2
        with pytest.raises(TypeError, match=f"'{unable}' is defined for"):
            learner.set_params(strategy=unable).query(X[6:], 2)
