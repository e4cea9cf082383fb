"""modAL: logistic regression on fixed features, `margin_sampling`.

Patch: modAL 0.4.2.1 calls scikit-learn's `check_X_y` with `force_all_finite`, which is
`ensure_all_finite` since scikit-learn 1.6 and gone since 1.8; it gets one that takes
the old name.
"""

import modAL.models.learners
import numpy as np
import torch
from modAL.models import ActiveLearner
from modAL.uncertainty import margin_sampling
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_X_y

from .loop_features import Features


def check(X, y, *, force_all_finite, **options):
    return check_X_y(X, y, ensure_all_finite=force_all_finite, **options)


modAL.models.learners.check_X_y = check


class Loop:
    def __init__(self, problem, seed):
        torch.set_num_threads(1)
        self.features = Features(problem)
        self.learner = None

    def prepare(self, texts):
        self.X = self.features.of_pool(texts)
        self.left = np.arange(len(texts))

    def train(self, positions, labels):
        if self.learner is None:
            self.learner = ActiveLearner(
                LogisticRegression(), margin_sampling, self.X[positions], labels
            )
        else:
            self.learner.teach(self.X[positions], labels)
        self.left = np.setdiff1d(self.left, positions)

    def ask(self, n):
        # It keeps no record of the pool: what is left is passed.
        picks, _ = self.learner.query(self.X[self.left], n_instances=n)
        return self.left[picks]

    def predict(self, texts):
        return self.learner.predict(self.features.of_test(texts))

    def finish(self):
        return False
