"""skactive with its defaults: the encoder learns from the first 50, 100, 200 labels."""

import numpy as np
import torch

from skactive import ActiveLearner, make_text_classifier


class Loop:
    adapt = True

    def __init__(self, problem, seed):
        torch.set_num_threads(1)
        model = make_text_classifier(
            problem.model,
            adapt=self.adapt,
            max_length=problem.max_length,
            device=problem.device,
            cache="memory",
        )
        self.learner = ActiveLearner(model, random_state=seed)

    def prepare(self, texts):
        self.X = np.asarray(texts, dtype=object)
        self.left = np.ones(len(texts), dtype=bool)

    def train(self, positions, labels):
        self.left[positions] = False
        self.learner.teach(self.X[positions], labels, X_unlabeled=self.X[self.left])

    def ask(self, n):
        return self.learner.query(self.X, n, candidates=self.left)

    def predict(self, texts):
        return self.learner.predict(texts)

    def finish(self):
        return False
