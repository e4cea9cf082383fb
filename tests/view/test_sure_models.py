"""A model that is sure of both of its classes is sure of them alike."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, SGDClassifier

from skactive import ActiveLearner
from skactive.view import PoolView

FAR = np.r_[np.linspace(-9, -4, 50), np.linspace(4, 9, 50)][:, None]


def make_model(kind):
    model = kind.fit([[-1.0], [-0.5], [0.5], [1.0]], [0, 0, 1, 1])
    model.coef_ = np.array([[30.0]])
    model.intercept_ = np.zeros(1)
    return model


@pytest.mark.parametrize("name", ["entropy", "egl"])
def test_the_least_sure_items_of_both_sides_are_asked_for(name):
    learner = ActiveLearner(LogisticRegression(C=1e6), name, random_state=0)
    picks = learner.fit([[-1.0], [1.0]], [0, 1]).query(FAR, 20)
    if name == "entropy":
        assert_array_equal(np.sort(picks), np.arange(40, 60))
    assert 0.4 <= (FAR[picks, 0] < 0).mean() <= 0.6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "convert"),
    [
        (LogisticRegression(), np.asarray),
        (LogisticRegression(), sparse.csr_array),
        (SGDClassifier(loss="log_loss"), np.asarray),
        (SGDClassifier(loss="log_loss"), sparse.csr_array),
        (LinearDiscriminantAnalysis(), np.asarray),
    ],
)
def test_small_probabilities_are_exact_for_either_class(kind, convert, dtype):
    model = make_model(kind)
    X = (FAR / 8).astype(dtype)
    proba = PoolView(convert(X), estimator=model).proba
    expected = np.exp(-30 * np.abs(X[:, 0].astype(float)))
    assert_allclose(proba.min(axis=1), expected / (1 + expected), rtol=1e-3)
    assert_allclose(proba, model.predict_proba(X), atol=1e-6)


def test_probabilities_that_are_no_logistic_function_stay_as_they_are():
    model = make_model(SGDClassifier(loss="modified_huber"))
    proba = PoolView(FAR, estimator=model).proba
    assert_array_equal(proba, model.predict_proba(FAR))
