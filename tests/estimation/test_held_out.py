"""Predictions of labels by models that lack them."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skactive.estimation._held_out import _assign, out_of_fold


class Doubled(TransformerMixin, BaseEstimator):
    """Features that need no training; the calls are counted in the class."""

    calls = []

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        self.calls.append(len(X))
        return 2 * np.asarray(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class Recording(ClassifierMixin, BaseEstimator):
    """Predicts equal chances and records the pool of each training in the class."""

    pools = []

    def fit(self, X, y, X_unlabeled=None):
        self.classes_ = np.unique(y)
        self.pools.append(X_unlabeled)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


@pytest.mark.parametrize("seed", [0, 1])
def test_they_are_those_of_cross_val_predict(data, seed):
    X, y = data[0][:60], data[1][:60]
    found = out_of_fold(LogisticRegression(), X, y, data[0][60:], seed=seed)
    folds = _assign(np.unique(y, return_inverse=True)[1], None, seed)
    expected = cross_val_predict(
        LogisticRegression(), X, y, cv=PredefinedSplit(folds), method="predict_proba"
    )
    np.testing.assert_allclose(found.proba, expected)
    for fold, codes in enumerate(found.rest_codes):
        model = LogisticRegression().fit(X[folds != fold], y[folds != fold])
        np.testing.assert_array_equal(found.classes[codes], model.predict(data[0][60:]))
        assert found.shares[fold] == np.mean(folds != fold)
    full = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(found.rest_proba, full.predict_proba(data[0][60:]))
    assert found.classes[found.codes].tolist() == y.tolist()


def test_folds_keep_the_shares_of_the_classes(data):
    codes = np.repeat([0, 1, 2], [50, 20, 5])
    folds = _assign(codes, None, 0)
    counts = np.array([np.bincount(codes[folds == fold]) for fold in range(5)])
    np.testing.assert_array_equal(counts, [[10, 4, 1]] * 5)


def test_a_class_of_one_item_is_held_out_as_well():
    X = np.arange(9.0)[:, None]
    y = np.array(list("aaaabbbbc"))
    found = out_of_fold(LogisticRegression(), X, y)
    assert found.proba.shape == (9, 3)
    assert found.proba[8, 2] == 0
    np.testing.assert_allclose(found.proba.sum(axis=1), 1)
    assert set(_assign(found.codes, None, 0)) == {0, 1, 2, 3, 4}


def test_a_model_of_one_class_is_certain():
    found = out_of_fold(LogisticRegression(), np.arange(2.0)[:, None], [0, 1])
    np.testing.assert_array_equal(found.proba, [[0, 1], [1, 0]])


def test_what_may_not_be_held_out_is_always_trained_on(data):
    X, y = data
    held = np.arange(300) >= 100
    found = out_of_fold(LogisticRegression(), X, y, held=held)
    assert np.isnan(found.proba[:100]).all()
    assert not np.isnan(found.proba[100:]).any()
    np.testing.assert_allclose(found.shares, 1 - 40 / 300)


def test_features_that_need_no_training_are_computed_once(data):
    X, y = data
    Doubled.calls.clear()
    estimator = make_pipeline(Doubled(), LogisticRegression())
    found = out_of_fold(estimator, X[:60], y[:60], X[60:])
    assert Doubled.calls == [60, 240]
    expected = out_of_fold(LogisticRegression(), 2 * X[:60], y[:60], 2 * X[60:])
    np.testing.assert_allclose(found.proba, expected.proba)


def test_trained_features_are_trained_in_each_fold():
    texts = [f"{word} {i}" for i in range(6) for word in ("good", "bad")]
    estimator = make_pipeline(CountVectorizer(), LogisticRegression())
    found = out_of_fold(estimator, texts, np.array([1, 0] * 6), ["good", "bad"] * 10)
    assert (found.proba.argmax(axis=1) == found.codes).all()
    assert (found.rest_codes == [1, 0] * 10).all()


@pytest.mark.parametrize("front", [[], [Doubled()]])
def test_the_unlabeled_items_reach_an_estimator_that_uses_them(data, front):
    X, y = data
    Recording.pools.clear()
    estimator = make_pipeline(*front, Recording())
    out_of_fold(estimator, X[:60], y[:60], X[60:], n_rest=10)
    assert [pool.shape for pool in Recording.pools] == [(240, 4)] * 6
    Recording.pools.clear()
    out_of_fold(estimator, X[:60], y[:60])
    assert Recording.pools == [None] * 5


def test_at_most_n_rest_items_are_predicted(data):
    X, y = data
    found = out_of_fold(LogisticRegression(), X[:60], y[:60], X[60:], n_rest=30)
    assert found.rest_proba.shape == (30, 2)
    assert found.rest_codes.shape == (5, 30)


@pytest.mark.parametrize(
    "front", [[], [FunctionTransformer(lambda X: np.array([[len(t)] for t in X]))]]
)
def test_copies_of_held_out_texts_are_no_unlabeled_items(front):
    texts = [f"text {i % 30}" for i in range(90)]  # each of 30 texts three times
    y = ["a", "b"] * 15
    model = make_pipeline(*front, Recording())
    Recording.pools.clear()
    found = out_of_fold(model, texts[:20], y[:20], texts[20:])
    assert len(found.rest_proba) == 70  # predictions are for all of them
    # The ten texts without a label, once each.
    assert [len(pool) for pool in Recording.pools] == [10] * 6
    Recording.pools.clear()
    out_of_fold(model, texts[:30], y, texts[30:])
    assert Recording.pools == [None] * 6
