"""Two classes of points, a few words, and learners to ask about them."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(-2, 1, (30, 3)), rng.normal(2, 1, (30, 3))])
y = np.repeat(["no", "yes"], 30)
SEED = np.array([0, 1, 2, 30, 31, 32])
POOL = np.setdiff1d(np.arange(60), SEED)

WORDS = ["good fine nice", "bad poor sad", "good great", "sad awful", "nice", "poor"]
SENTIMENT = ["+", "-", "+", "-", "+", "-"]


def make(strategy="margin", **params):
    params.setdefault("random_state", 0)
    return ActiveLearner(LogisticRegression(), strategy, **params)


def by_hand(learner, X):
    proba = learner.estimator_.predict_proba(X)
    top = np.sort(proba, axis=1)
    return np.argsort(top[:, -1] - top[:, -2], kind="stable")
