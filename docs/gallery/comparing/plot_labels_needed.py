"""
How many labels does a strategy save?
=====================================

Accuracy is what a model gives, and labels are what it costs. So this example turns the
learning curves around: with how many labels does each strategy reach the accuracy that
random sampling has with 200?
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive.analysis import labels_needed
from skactive.plotting import ActiveLearningCurveDisplay, LabelsNeededDisplay
from skactive.simulation import run_experiment

digits = load_digits()
X, y = digits.data / 16, digits.target
runs = run_experiment(
    ActiveLearner(LogisticRegression(C=10, max_iter=300), batch_size=20),
    {"digits": (X[:1200], y[:1200], X[1200:], y[1200:])},
    strategies=["random", "margin", "entropy", "coreset", "typiclust"],
    seeds=6,
    n_initial=20,
    n_rounds=9,
)

# %%
# The usual picture shows accuracy against labels. With five curves, the intervals are
# drawn at their ends.

ActiveLearningCurveDisplay.from_runs(runs)
plt.show()

# %%
# Read it along a horizontal line at the last accuracy of ``random``, and you see the
# labels that each strategy needs. :class:`~skactive.plotting.LabelsNeededDisplay` does
# this, with intervals.

LabelsNeededDisplay.from_runs(runs, "random", 200)
plt.show()

# %%
# The large marker is the number of labels at which the mean curve first reaches the
# accuracy. The line is its 95% interval over seeds; an arrow means that it goes beyond
# 200 labels. The small marks are single runs, open ones those that do not reach the
# accuracy. The text on the right gives the share of the 200 labels.
#
# The same numbers as a table:

print(labels_needed(runs, "random", 200))

# %%
# The shares hold for this goal. With another number of labels of ``random`` they
# differ: a curve that begins slowly can still be the best one at the end. With six
# seeds the intervals are rough.

# sphinx_gallery_thumbnail_number = 2
