"""small-text: SetFit is trained again in every round, `BreakingTies` chooses.

Patch: 1.4.1 reads `numpy.lib.index_tricks`, which numpy 2.4 no longer has, and draws a
seed from a range that it refuses; numpy gets the former, and the range is shorter.
"""

import random
from types import SimpleNamespace

import numpy as np
import small_text as st
import torch
from small_text.integrations.transformers.classifiers import setfit

setfit.int_dtype = lambda: np.int32
np.lib.index_tricks = SimpleNamespace(IndexExpression=type(np.s_))


class Loop:
    def __init__(self, problem, seed):
        self.problem = problem
        # It draws from the global generators.
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.learner = None

    def read(self, texts):
        unknown = np.full(len(texts), st.LABEL_UNLABELED)
        classes = np.arange(self.problem.n_classes)
        return st.TextDataset(list(texts), unknown, target_labels=classes)

    def prepare(self, texts):
        self.pool = self.read(texts)

    def train(self, positions, labels):
        if self.learner is not None:
            self.learner.update(labels)
            return
        factory = st.SetFitClassificationFactory(
            st.SetFitModelArguments(self.problem.model),
            self.problem.n_classes,
            classification_kwargs={
                "max_seq_len": self.problem.max_length,
                "mini_batch_size": 16,
                "device": self.problem.device,
                "trainer_kwargs": {"num_iterations": 20, "num_epochs": 1},
            },
        )
        self.learner = st.PoolBasedActiveLearner(factory, st.BreakingTies(), self.pool)
        self.learner.initialize_data(positions, labels)

    def ask(self, n):
        return self.learner.query(num_samples=n)

    def predict(self, texts):
        return self.learner.classifier.predict(self.read(texts))

    def finish(self):
        return False
