"""Labels that the other labels contradict; cleanlab is the oracle."""

import numpy as np
import pytest
from cleanlab.filter import find_label_issues
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.session._suspicious import find_suspicious


def noisy(seed, n=300, k=4, noise=0.2, sharpness=2.0):
    """Return probabilities (n, k) and labels (n,) of which some are wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    logits = rng.normal(size=(n, k)) + sharpness * np.eye(k)[truth]
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    wrong = rng.random(n) < noise
    return proba, np.where(wrong, rng.integers(k, size=n), truth)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 4, 7])
def test_the_order_is_that_of_cleanlab(seed, k):
    proba, codes = noisy(seed, k=k, sharpness=0.5 + seed)
    expected = find_label_issues(
        codes,
        proba,
        return_indices_ranked_by="normalized_margin",
        filter_by="confident_learning",
        n_jobs=1,
    )
    assert len(expected) > 10
    np.testing.assert_array_equal(find_suspicious(proba, codes), expected)


def test_classes_of_one_item_and_items_without_probabilities_are_left_out():
    proba, codes = noisy(0, k=3)
    found = find_suspicious(proba, codes)
    more = np.column_stack([proba, np.full(300, 1e-3)])
    more = np.vstack([more, [0.9, 0.05, 0.05, 0.0], np.full(4, np.nan)])
    np.testing.assert_array_equal(find_suspicious(more, np.r_[codes, 3, 0]), found)


def test_wrong_answers_of_a_session_come_first(open_session, data):
    X, truth = data
    wrong = np.argsort(X[:40, 0] * (truth[:40] != "ham"))[:2]  # far from "ham"
    y = truth.copy()
    y[wrong] = "ham"
    session = open_session(refit=False)
    session.tell(range(40), y[:40], unasked=True)
    seq = session.seq
    found = session.suspicious(2)
    assert {id for id, *_ in found} == set(wrong.tolist())
    for id, label, predicted, probability in found:
        assert label == y[id] == session.labels[id]
        assert predicted == truth[id]
        assert type(probability) is float
        assert probability > 0.5
    assert session.suspicious(2) == found  # the folds do not change
    assert session.seq == seq


def test_labels_from_before_the_session_are_trained_on_but_not_judged(
    open_session, learner, data
):
    X, y = data
    before = y[:20].copy()
    before[0] = "ham" if y[0] != "ham" else "eggs"
    session = open_session(learner=learner.fit(X[:20], before), refit=False)
    session.tell(range(20, 24), y[20:24], unasked=True)
    assert {id for id, *_ in session.suspicious()} <= set(range(20, 24))


def test_texts_whose_features_are_trained(open_session):
    texts = [f"the {word} film {i}" for i in range(15) for word in ("good", "bad")]
    labels = ["pos", "neg"] * 15
    labels[4] = "neg"
    estimator = make_pipeline(TfidfVectorizer(), LogisticRegression())
    session = open_session(texts, learner=ActiveLearner(estimator, random_state=0))
    session.tell(range(30), labels, unasked=True)
    assert session.suspicious(1)[0][:3] == (4, "neg", "pos")


@pytest.mark.parametrize("labels", [[], ["a"], ["a", "a", "a"]])
def test_too_few_labels_contradict_nothing(open_session, labels):
    session = open_session(refit=False)
    if labels:
        session.tell(range(len(labels)), labels, unasked=True)
    assert session.suspicious() == []


@pytest.mark.parametrize("estimator", [LinearRegression(), Perceptron()])
def test_other_estimators_are_refused(open_session, estimator):
    session = open_session(learner=ActiveLearner(estimator, random_state=0))
    session.tell(range(6), [0, 1, 0, 1, 0, 1], unasked=True)
    with pytest.raises(TypeError, match=r"a classifier with predict_proba .*, got"):
        session.suspicious()
    with pytest.raises(ValueError, match="'n' must be"):
        session.suspicious(0)
