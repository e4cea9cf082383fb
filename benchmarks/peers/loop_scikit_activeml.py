"""scikit-activeml: logistic regression on fixed features, `UncertaintySampling`."""

import numpy as np
import torch
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import UncertaintySampling
from sklearn.linear_model import LogisticRegression

from .loop_features import Features


class Loop:
    def __init__(self, problem, seed):
        torch.set_num_threads(1)
        self.features = Features(problem)
        classes = list(range(problem.n_classes))
        self.model = SklearnClassifier(LogisticRegression(), classes=classes)
        self.strategy = UncertaintySampling("margin_sampling", random_state=seed)

    def prepare(self, texts):
        self.X = self.features.of_pool(texts)
        self.y = np.full(len(texts), np.nan)  # nan is "no label yet"

    def train(self, positions, labels):
        self.y[positions] = labels
        self.model.fit(self.X, self.y)

    def ask(self, n):
        # The model is trained already.
        return self.strategy.query(
            self.X, self.y, self.model, fit_clf=False, batch_size=n
        )

    def predict(self, texts):
        return self.model.predict(self.features.of_test(texts))

    def finish(self):
        return False
