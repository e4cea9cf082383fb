"""Learners of every target come back, and their rounds go on."""

import numpy as np
import pytest
from sklearn.linear_model import (
    BayesianRidge,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

from skactive import ActiveLearner
from skactive.linear_model import TunedOneVsRestClassifier

from ._helpers import _round_trip

X = np.random.default_rng(0).normal(size=(60, 4))
LABELS = (X[:, :3] > 0).astype(int)
LABELS[:20, 2] = 0  # no example in the first round
CASES = {
    "one-vs-rest": (OneVsRestClassifier(LogisticRegression()), LABELS, "margin"),
    "tuned": (
        TunedOneVsRestClassifier(LogisticRegression(), random_state=0),
        LABELS,
        "margin",
    ),
    "outputs": (MultiOutputClassifier(LogisticRegression()), LABELS[:, :2], "entropy"),
    "chain": (ClassifierChain(LogisticRegression()), LABELS[:, :2], "lci"),
    "ridge classifier": (RidgeClassifier(), LABELS, "cvirs"),
    "ridge": (Ridge(), X[:, 0], "greedy_sampling"),
    "bayesian": (BayesianRidge(), X[:, 0], "bald"),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Label not")
@pytest.mark.parametrize("case", CASES)
def test_a_learner_comes_back_and_goes_on(tmp_path, case):
    estimator, y, strategy = CASES[case]
    learner = ActiveLearner(estimator, strategy, batch_size=5, random_state=0)
    learner.fit(X[:20], y[:20])
    loaded = _round_trip(learner, tmp_path)
    for _ in range(2):
        np.testing.assert_array_equal(loaded.y_labeled_, learner.y_labeled_)
        np.testing.assert_array_equal(loaded.predict(X), learner.predict(X))
        if hasattr(learner, "predict_proba"):
            ours, theirs = loaded.predict_proba(X), learner.predict_proba(X)
            np.testing.assert_array_equal(np.array(ours), np.array(theirs))
        asked = learner.query(X[20:])
        np.testing.assert_array_equal(loaded.query(X[20:]), asked)
        for each in (learner, loaded):
            each.teach(X[20:][asked], y[20:][asked])
