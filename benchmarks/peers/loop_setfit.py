"""SetFit on random labels, trained again from the pretrained weights in every round.

The settings are those of SetFit's own results: one epoch of 20 pairs of each kind per
text, batches of 16.
"""

import tempfile

import numpy as np
import torch
from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments


class Loop:
    def __init__(self, problem, seed):
        torch.set_num_threads(1)
        self.problem, self.seed = problem, seed
        self.rng = np.random.default_rng(seed)

    def prepare(self, texts):
        self.labels = {}

    def train(self, positions, labels):
        self.labels |= dict(zip(positions.tolist(), labels.tolist(), strict=True))
        self.model = SetFitModel.from_pretrained(self.problem.model)
        self.model.model_body.max_seq_length = self.problem.max_length
        texts = [self.problem.texts[i] for i in self.labels]
        train = {"text": texts, "label": [*self.labels.values()]}
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder,
                batch_size=16,
                num_epochs=1,
                num_iterations=20,
                seed=self.seed,
                report_to="none",
                save_strategy="no",
                show_progress_bar=False,
            )
            train = Dataset.from_dict(train)
            Trainer(model=self.model, args=arguments, train_dataset=train).train()

    def ask(self, n):
        left = np.setdiff1d(np.arange(len(self.problem.texts)), [*self.labels])
        return self.rng.choice(left, n, replace=False)

    def predict(self, texts):
        return self.model.predict(texts, as_numpy=True, show_progress_bar=False)

    def finish(self):
        return False
