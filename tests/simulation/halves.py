"""Two classes of points, and a learner to simulate."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(-1, 1, (40, 2)), rng.normal(1, 1, (40, 2))])
y = np.repeat(["no", "yes"], 40)


def make(strategy="margin", batch_size=5):
    return ActiveLearner(
        LogisticRegression(), strategy, batch_size=batch_size, random_state=0
    )
