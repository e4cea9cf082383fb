"""Rows of three classes, and ensembles of every kind to draw from."""

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
