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
    # small-text wants a validation set, of one text here; nothing is chosen by it.
    fit_options = {"early_stopping": "none", "model_selection": "none"}

    def __init__(self, problem, seed):
        self.problem = problem
        # It draws from the global generators.
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.classes = np.arange(problem.n_classes)
        self.tokenizer = AutoTokenizer.from_pretrained(problem.model)
        self.tokenizer.encode_plus = self.tokenizer.__call__
        self.learner = None

    def encode(self, texts, labels=None):
        if labels is None:
            labels = np.full(len(texts), st.LABEL_UNLABELED)
        return self.make_data(list(texts), np.asarray(labels))

    def make_data(self, texts, labels):
        return st.TransformersDataset.from_arrays(
            texts,
            labels,
            self.tokenizer,
            target_labels=self.classes,
            max_length=self.problem.max_length,
        )

    def make_factory(self):
        problem = self.problem
        return st.TransformerBasedClassificationFactory(
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

    def prepare(self, texts):
        self.pool = self.encode(texts)

    def train(self, positions, labels):
        if self.learner is not None:
            self.learner.update(labels)
            return
        options = dict(self.fit_options)
        if options:
            one = self.encode([self.problem.texts[positions[0]]], labels[:1])
            options["validation_set"] = one
        self.learner = st.PoolBasedActiveLearner(
            self.make_factory(), st.BreakingTies(), self.pool, fit_kwargs=options
        )
        self.learner.initialize_data(positions, labels)

    def ask(self, n):
        return self.learner.query(num_samples=n)

    def predict(self, texts):
        return self.learner.classifier.predict(self.encode(texts))

    def finish(self):
        return False  # the model of the last round is the one that is kept
