"""Held-out predictions of a mixture are those of its own folds."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier

from skactive import ActiveLearner
from skactive._math._calibration import deal_in_order
from skactive.estimation import out_of_fold, predict_held_out
from skactive.semi_supervised import MixtureClassifier

X, Y = make_classification(90, n_informative=4, n_classes=3, random_state=0)
PARTS = [("line", LogisticRegression()), ("near", KNeighborsClassifier(3))]


def test_each_row_is_predicted_by_parts_that_lack_its_fold():
    model = MixtureClassifier(PARTS, random_state=0)
    found = out_of_fold(model, X[:60], Y[:60], X[60:])
    fitted = MixtureClassifier(PARTS, random_state=0).fit(X[:60], Y[:60])
    folds = deal_in_order(Y[:60], 3)
    for fold in range(3):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        mixed = sum(
            fitted.weights_[name] * part.fit(X[train], Y[train]).predict_proba(X[test])
            for name, part in PARTS
        )
        expected = mixed ** (1 / fitted.temperature_)
        expected /= expected.sum(axis=1, keepdims=True)
        assert_allclose(found.proba[test], expected)
    assert_allclose(found.shares, 1 - np.bincount(folds) / 60)
    assert_allclose(found.rest_proba, fitted.predict_proba(X[60:]))
    assert found.rest_codes.shape == (3, 30)


def test_rows_that_are_never_held_out():
    held = np.arange(60) >= 20
    model = MixtureClassifier(PARTS, random_state=0)
    found = out_of_fold(model, X[:60], Y[:60], held=held)
    assert_array_equal(np.isnan(found.proba).any(axis=1), ~held)


def test_a_single_part_is_held_out_as_it_would_be_alone():
    model = MixtureClassifier(PARTS[:1], random_state=0)
    found = out_of_fold(model, X[:60], Y[:60])
    alone = out_of_fold(LogisticRegression(), X[:60], Y[:60])
    assert_allclose(found.proba, alone.proba)


def test_one_class_is_predicted_for_all():
    found = out_of_fold(LogisticRegression(), X[:6], np.zeros(6), X[6:])
    assert_array_equal(found.rest_proba, np.ones((84, 1)))


def test_several_labels_are_held_out_by_the_folds_of_the_mixture():
    several = np.column_stack([Y[:60] == 0, Y[:60] != 2]).astype(int)
    parts = [(f"line{c}", OneVsRestClassifier(LogisticRegression(C=c))) for c in (1, 9)]
    learner = ActiveLearner(MixtureClassifier(parts), random_state=0)
    learner.fit(X[:60], several)
    found = predict_held_out(learner, 50)
    model = MixtureClassifier(parts, random_state=0).fit(X[:60], several)
    for rows, mixture in model.__skactive_folds__():
        expected = mixture.predict_proba(X[rows])[rows >= 10]
        assert_allclose(found[rows[rows >= 10] - 10], expected)
