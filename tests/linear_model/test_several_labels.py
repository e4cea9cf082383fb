"""TunedOneVsRestClassifier against loops over folds, labels and thresholds."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier

from skactive import ActiveLearner
from skactive.linear_model import TunedOneVsRestClassifier

X, Y = make_multilabel_classification(n_samples=60, n_classes=4, random_state=0)
Y[:, 3] = 0
Y[:2, 3] = 1
MODEL = LogisticRegression(C=0.1)


def best_threshold(p, judge):
    """Return the middle of a gap of `p` that `judge` rates highest, nearest to 0.5."""
    values = np.unique(p)
    cuts = (np.concatenate([[0], values[:-1]]) + values) / 2
    scores = np.array([judge(p > t) for t in cuts])
    best = cuts[np.isclose(scores, scores.max(), atol=1e-12)]
    return best[np.abs(best - 0.5).argmin()]


@pytest.mark.long
@pytest.mark.slow
def test_thresholds_are_those_of_a_loop():
    model = TunedOneVsRestClassifier(MODEL, cv=4, random_state=3).fit(X, Y)
    p = np.empty(Y.shape)
    for train, test in KFold(4, shuffle=True, random_state=3).split(X):
        for j in range(4):
            if len(set(Y[train, j])) == 1:
                p[test, j] = Y[train, j][0]
            else:
                fitted = clone(MODEL).fit(X[train], Y[train, j])
                p[test, j] = fitted.predict_proba(X[test])[:, 1]
    common = best_threshold(p, lambda predicted: -abs(predicted.sum() - Y.sum()))
    for j, n in enumerate(Y.sum(axis=0)):
        y = Y[:, j]
        own = best_threshold(p[:, j], lambda z, y=y: f1_score(y, z, zero_division=0))
        expected = (n * own + 30 * common) / (n + 30)
        assert model.thresholds_[j] == pytest.approx(expected)


def test_probabilities_are_those_of_the_base_class():
    model = TunedOneVsRestClassifier(MODEL, random_state=0).fit(X, Y)
    plain = OneVsRestClassifier(MODEL).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    expected = plain.predict_proba(X) > model.thresholds_
    np.testing.assert_array_equal(model.predict(X), expected)
    assert model.predict(X).dtype.kind == "i"


def test_one_class_per_item_is_predicted_as_by_the_base_class():
    y = np.arange(60) % 3
    model = TunedOneVsRestClassifier(MODEL).fit(X, y)
    plain = OneVsRestClassifier(MODEL).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert model.thresholds_.tolist() == [0.5] * 3


def test_rare_labels_are_predicted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    Y = (X[:, :3] + rng.normal(size=(200, 3)) > 2).astype(int)
    plain = OneVsRestClassifier(MODEL).fit(X, Y).predict(X)
    tuned = TunedOneVsRestClassifier(MODEL, random_state=0).fit(X, Y).predict(X)
    scores = [f1_score(Y, found, average="micro") for found in (plain, tuned)]
    assert scores[1] > scores[0] + 0.1


@pytest.mark.long
@pytest.mark.parametrize("convert", [sparse.csr_matrix, lambda X: X.tolist()])
def test_other_containers(convert):
    model = TunedOneVsRestClassifier(MODEL, random_state=0)
    expected = model.fit(X, Y).predict(X)
    found = clone(model).fit(convert(X), sparse.csr_matrix(Y)).predict(convert(X))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:Label not")
def test_few_items():
    model = TunedOneVsRestClassifier(MODEL, random_state=0)
    assert clone(model).fit(X[:1], Y[:1]).thresholds_.tolist() == [0.5] * 4
    assert clone(model).fit(X[:2], Y[:2]).predict(X).shape == (60, 4)


def test_bad_parameters():
    with pytest.raises(ValueError, match="'cv' parameter of TunedOneVsRestClassifier"):
        TunedOneVsRestClassifier(MODEL, cv=1).fit(X, Y)


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["margin", "bald", "egl", "badge", "lci"])
def test_strategies_use_it_as_the_base_class(strategy):
    picks = []
    for kind in (TunedOneVsRestClassifier, OneVsRestClassifier):
        learner = ActiveLearner(kind(MODEL), strategy, batch_size=5, random_state=0)
        learner.teach(X[:40], Y[:40])
        picks.append(learner.query(X[40:]).tolist())
    if strategy == "lci":  # it counts the predicted labels
        assert len(set(picks[0])) == 5
    else:
        assert picks[0] == picks[1]
