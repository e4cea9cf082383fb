"""Data with labels that follow logits of the rows, and ensembles of every kind."""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.array(["maybe", "no", "yes"])[(X[:, :3] + RNG.normal(size=(60, 3))).argmax(1)]
ASKED = RNG.normal(size=(9, 4))

ENSEMBLES = [
    RandomForestClassifier(12, max_depth=3, random_state=0),
    ExtraTreesClassifier(12, max_depth=3, random_state=0),
    BaggingClassifier(LogisticRegression(), 12, random_state=0),
    BaggingClassifier(n_estimators=12, max_features=0.5, random_state=0),
    BaggingClassifier(LinearSVC(), 12, random_state=0),
    BaggingClassifier(KNeighborsClassifier(1), 12, max_samples=3, random_state=0),
    VotingClassifier(
        [("lr", LogisticRegression()), ("nb", GaussianNB()), ("no", "drop")],
        voting="soft",
    ),
    CalibratedClassifierCV(LinearSVC(), cv=4, ensemble=True),
    CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=3, ensemble=True),
]

NAMES = np.array(["maybe", "no", "yes", "yes a", "yes b", "yes c", "yes d"])


def make_data(k, m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + 0.5
    truth = X @ rng.normal(size=(d, k)) + rng.gumbel(size=(m, k))
    return X, NAMES[:k][truth.argmax(axis=1)]


def log_odds(proba):
    return np.log(proba[..., 1:] / proba[..., :1])


X_ASKED = np.random.default_rng(9).normal(size=(5, 4))
