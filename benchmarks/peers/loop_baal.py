"""baal: a head with dropout on fixed features, `BALD` of 20 draws.

Its `ActiveLearningDataset`, `ModelWrapper` and `ActiveLearningLoop`. The head has one
hidden layer of 256 and dropout 0.5, which `MCDropoutModule` keeps on, and is reset and
trained for 40 epochs by Adam in every round; baal leaves all this to its user.
"""

import logging

import numpy as np
import structlog
import torch
from baal import ActiveLearningDataset
from baal.active import ActiveLearningLoop
from baal.active.heuristics import BALD
from baal.bayesian.dropout import MCDropoutModule
from baal.modelwrapper import ModelWrapper, TrainingArgs
from torch import nn
from torch.utils.data import TensorDataset

from .loop_features import Features

DRAWS = 20


class Loop:
    def __init__(self, problem, seed):
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING)
        )
        self.problem = problem
        self.features = Features(problem)

    def prepare(self, texts):
        X = torch.from_numpy(self.features.of_pool(texts))
        self.y = torch.tensor(self.problem.labels)
        self.data = ActiveLearningDataset(TensorDataset(X, self.y))
        self.loop = ActiveLearningLoop(
            self.data, self.draw, BALD(), query_size=self.problem.batch
        )

    def train(self, positions, labels):
        if not len(self.data):
            self.data.label(positions.tolist())  # positions in the pool
        head = nn.Sequential(
            nn.Linear(self.data[0][0].numel(), 256),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(256, self.problem.n_classes),
        )
        self.head = MCDropoutModule(head)
        args = TrainingArgs(
            optimizer=torch.optim.Adam(self.head.parameters()),
            batch_size=self.problem.batch_size,
            epoch=40,
            use_cuda=self.problem.device == "cuda",
            workers=0,
            criterion=nn.CrossEntropyLoss(),
        )
        self.wrapper = ModelWrapper(self.head, args)
        self.wrapper.train_on_dataset(self.data)

    def draw(self, pool):
        return self.wrapper.predict_on_dataset(pool, DRAWS, verbose=False)

    def ask(self, n):
        before = self.data.labelled
        self.loop.step()  # reads the labels of what it asks for by itself
        return np.flatnonzero(self.data.labelled & ~before)

    def predict(self, texts):
        X = torch.from_numpy(self.features.of_test(texts))
        y = torch.tensor(self.problem.test_labels)
        draws = self.draw(TensorDataset(X, y))
        return torch.from_numpy(draws).softmax(1).mean(-1).argmax(1).numpy()

    def finish(self):
        return False
