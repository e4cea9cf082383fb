"""small-text: SetFit is trained again in every round, `BreakingTies` chooses.

Patch: 1.4.1 reads `numpy.lib.index_tricks`, which numpy 2.4 no longer has, and draws a
seed from a range that it refuses; numpy gets the former, and the range is shorter.
"""

from types import SimpleNamespace

import numpy as np
import small_text as st
from small_text.integrations.transformers.classifiers import setfit

from . import loop_small_text

setfit.int_dtype = lambda: np.int32
np.lib.index_tricks = SimpleNamespace(IndexExpression=type(np.s_))


class Loop(loop_small_text.Loop):
    fit_options = {}  # SetFit has no validation set

    def make_data(self, texts, labels):
        return st.TextDataset(texts, labels, target_labels=self.classes)

    def make_factory(self):
        problem = self.problem
        return st.SetFitClassificationFactory(
            st.SetFitModelArguments(problem.model),
            problem.n_classes,
            classification_kwargs={
                "max_seq_len": problem.max_length,
                "mini_batch_size": 16,
                "device": problem.device,
                "trainer_kwargs": {"num_iterations": 20, "num_epochs": 1},
            },
        )
