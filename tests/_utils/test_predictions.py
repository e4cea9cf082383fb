"""Predictions in the form of the labels, for every target."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier

from skactive._utils._labels import predict_labels

NAMES = ["ham", "spam", "eggs"]


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture
def Y(X):
    return (X > 0.3).astype(int)


def test_one_class_for_each_item(X):
    y = np.array(["cold", "warm"])[(X[:, 0] > 0).astype(int)]
    model = LogisticRegression().fit(X, y)
    labels, scores, top = predict_labels(model, X, None, "single-label")
    proba = model.predict_proba(X)
    assert labels == model.predict(X).tolist()
    assert scores == proba.max(axis=1).tolist()
    assert [dict(row) for row in top] == [
        dict(zip(["cold", "warm"], row, strict=True)) for row in proba.tolist()
    ]
    assert all(row[0][0] == label for row, label in zip(top, labels, strict=True))
    other = RidgeClassifier().fit(X, y)
    labels, scores, top = predict_labels(other, X, None, "single-label")
    assert (labels, set(scores)) == (other.predict(X).tolist(), {None})
    assert top[0] == [[labels[0], None]]


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LogisticRegression()),
        RandomForestClassifier(10, random_state=0),
    ],
    ids=["array", "list"],
)
def test_names_of_each_item(model, X, Y):
    model.fit(X, Y)
    labels, scores, top = predict_labels(model, X, NAMES, "multi-label")
    for row, item, score, best in zip(X, labels, scores, top, strict=True):
        found = model.predict([row])[0]
        assert item == [NAMES[j] for j in range(3) if found[j] == 1]
        proba = model.predict_proba([row])
        if isinstance(proba, list):
            proba = [[part[0, 1] for part in proba]]
        p = dict(zip(NAMES, proba[0], strict=True))
        assert score == pytest.approx(min(max(q, 1 - q) for q in p.values()))
        assert dict(best) == pytest.approx(p)
        assert [q for _, q in best] == pytest.approx(sorted(p.values())[::-1])


class Thresholded:
    """Predicts the classes whose probability is above a threshold below one half."""

    def __init__(self, proba, threshold=0.15):
        self.proba, self.threshold = np.array(proba), threshold

    def predict_proba(self, X):
        return self.proba

    def predict(self, X):
        return (self.proba > self.threshold).astype(int)


def test_the_probability_of_a_set_is_that_of_what_is_predicted():
    model = Thresholded([[0.21, 0.1, 0.02], [0.05, 0.1, 0.02], [0.9, 0.6, 0.14]])
    labels, scores, _ = predict_labels(model, [0, 1, 2], NAMES, "multi-label")
    assert labels == [["ham"], [], ["ham", "spam"]]
    assert scores == pytest.approx([0.21, 0.9, 0.6])


def test_columns_without_a_name_are_no_labels(X, Y):
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    labels, _, top = predict_labels(model, X, ["ham"], "multi-label")
    assert labels == [["ham"] if row[0] else [] for row in model.predict(X)]
    assert {len(row) for row in top} == {1}
    assert predict_labels(model, X, [], "multi-label")[0] == [[]] * 40


def test_a_constant_column_of_a_forest_has_the_probability_0_or_1(X, Y):
    Y[:, 1], Y[:, 2] = 0, 1
    model = RandomForestClassifier(10, random_state=0).fit(X, Y)
    labels, _, top = predict_labels(model, X, NAMES, "multi-label")
    assert all("eggs" in label and "spam" not in label for label in labels)
    assert {dict(row)["spam"] for row in top} == {0.0}
    assert {dict(row)["eggs"] for row in top} == {1.0}


def test_columns_instead_of_names(X, Y):
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    labels, _, top = predict_labels(model, X, None, "multi-label")
    assert labels == model.predict(X).tolist()
    assert {name for name, _ in top[0]} == {0, 1, 2}


def test_names_without_probabilities(X, Y):
    model = RidgeClassifier().fit(X, Y)
    labels, scores, top = predict_labels(model, X[:2], NAMES, "multi-label")
    assert [set(label) <= set(NAMES) for label in labels] == [True, True]
    assert (scores, top) == ([None, None], [[], []])


def test_numbers(X):
    model = Ridge().fit(X, X[:, 0])
    labels, scores, top = predict_labels(model, X, None, "regression")
    assert labels == model.predict(X).tolist()
    assert (set(scores), top) == ({None}, [[]] * 40)


@pytest.mark.parametrize("target", ["single-label", "multi-label", "regression"])
def test_no_model_and_no_items(X, target):
    assert predict_labels(None, X[:2], None, target) == (
        [None] * 2,
        [None] * 2,
        [[]] * 2,
    )
    assert predict_labels(Ridge(), [], None, target) == ([], [], [])
