"""skactive: PRepAL. A logistic regression labels, the encoder is fine-tuned once.

`BertFeatures` (rows of unit length, as the others get them) and `LogisticRegression`,
strategy "margin"; then a `BertClassifier` on all labels. Written out with
`ActiveLearner`, so that the processor seconds of each phase can be reported; the smoke
scale checks that `skactive.simulate` scores the same in every round.
"""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, simulate
from skactive.bert import BertClassifier, BertFeatures


def make_learner(problem, seed):
    features = BertFeatures(
        problem.model,
        max_length=problem.max_length,
        device=problem.device,
    )
    return ActiveLearner(
        make_pipeline(features, LogisticRegression()),
        "margin",
        batch_size=problem.batch,
        random_state=seed,
    )


def make_final(problem, seed):
    return BertClassifier(
        problem.model,
        freeze=problem.freeze,
        precision=problem.precision,
        max_length=problem.max_length,
        max_epochs=problem.epochs,
        batch_size=problem.batch_size,
        lr=problem.lr,
        warmup=0.0,
        device=problem.device,
        random_state=seed,
    )


def run_prepal(problem, seed):
    """Do in one call what `play` does with a `Loop`."""
    return simulate(
        make_learner(problem, seed),
        np.asarray(problem.texts, dtype=object),
        problem.labels,
        final_estimator=make_final(problem, seed),
        initial=problem.initial[seed],
        n_rounds=problem.rounds,
        X_test=problem.test_texts,
        y_test=problem.test_labels,
        scoring="accuracy",
    )


class Loop:
    def __init__(self, problem, seed):
        torch.set_num_threads(1)
        self.learner = make_learner(problem, seed)
        self.final = make_final(problem, seed)
        self.model = self.learner

    def prepare(self, texts):
        self.X = np.asarray(texts, dtype=object)
        self.left = np.ones(len(texts), dtype=bool)
        self.learner.estimator[0].transform(self.X)  # into its cache

    def train(self, positions, labels):
        self.learner.teach(self.X[positions], labels)
        self.left[positions] = False

    def ask(self, n):
        return self.learner.query(self.X, n, candidates=self.left)

    def predict(self, texts):
        return self.model.predict(texts)

    def finish(self):
        self.model = self.final
        self.final.fit(self.learner.X_labeled_, self.learner.y_labeled_)
        return True
