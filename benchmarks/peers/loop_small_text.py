"""small-text: the encoder is fine-tuned again in every round, as its examples do.

`TransformerBasedClassification` from the pretrained weights, `BreakingTies` (the margin
between the two likeliest classes). It always wants a validation set; it gets one text,
so that all labels are learned from, and neither stops early nor chooses among epochs.

Patch: `TransformersDataset.from_arrays` of 1.4.1 calls `tokenizer.encode_plus`, which
transformers 5 no longer has; the tokenizer gets one, which is its `__call__`.
"""

import random
import tempfile

import numpy as np
import small_text as st
import torch
from transformers import AutoTokenizer


class Loop:
    def __init__(self, problem, seed):
        self.problem = problem
        # It draws from the global generators.
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.tokenizer = AutoTokenizer.from_pretrained(problem.model)
        self.tokenizer.encode_plus = self.tokenizer.__call__
        self.learner = None

    def encode(self, texts, labels=None):
        if labels is None:
            labels = np.full(len(texts), st.LABEL_UNLABELED)
        return st.TransformersDataset.from_arrays(
            texts,
            np.asarray(labels),
            self.tokenizer,
            target_labels=np.arange(self.problem.n_classes),
            max_length=self.problem.max_length,
        )

    def prepare(self, texts):
        self.pool = self.encode(texts)

    def train(self, positions, labels):
        if self.learner is not None:
            self.learner.update(labels)
            return
        problem = self.problem
        factory = st.TransformerBasedClassificationFactory(
            st.TransformerModelArguments(problem.model),
            problem.n_classes,
            kwargs={
                "num_epochs": problem.epochs,
                "lr": problem.lr,
                "mini_batch_size": problem.batch_size,
                "device": problem.device,
                "cache_dir": tempfile.gettempdir(),
            },
        )
        one = self.encode([problem.texts[positions[0]]], labels[:1])
        self.learner = st.PoolBasedActiveLearner(
            factory,
            st.BreakingTies(),
            self.pool,
            fit_kwargs={
                "validation_set": one,
                "early_stopping": "none",
                "model_selection": "none",
            },
        )
        self.learner.initialize_data(positions, labels)

    def ask(self, n):
        return self.learner.query(num_samples=n)

    def predict(self, texts):
        return self.learner.classifier.predict(self.encode(texts))

    def finish(self):
        return False  # the model of the last round is the one that is kept
