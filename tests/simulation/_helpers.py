"""Two classes of points with a learner, and items with an imbalanced class."""

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


# A hundred items, two fifths of them spam.
ITEMS = np.arange(100).reshape(-1, 1)
CLASSES = np.repeat(["ham", "spam"], [60, 40])
