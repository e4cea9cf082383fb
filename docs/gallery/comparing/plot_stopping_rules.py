"""
When does each stopping rule stop?
==================================

More labels help less and less. A stopping rule ends the loop when the model or its
score no longer changes much. The picture shows where four rules stop on the same curve.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, simulate
from skactive.plotting import ActiveLearningCurveDisplay
from skactive.stopping import (
    ClassificationChange,
    KappaAverage,
    OverallUncertainty,
    Plateau,
)

# %%
# Each rule runs with five seeds and stops a loop of at most 400 labels. A rule does not
# change what is queried, so all loops of a seed follow one curve.

digits = load_digits()
X, y = digits.data / 16, digits.target
rules = {
    "KappaAverage(0.99)": KappaAverage(threshold=0.99),
    "KappaAverage(0.97)": KappaAverage(threshold=0.97),
    "ClassificationChange(0.01)": ClassificationChange(threshold=0.01),
    "OverallUncertainty(0.2)": OverallUncertainty(0.2),
    "Plateau(patience=3)": Plateau(patience=3),
}
runs, stops = [], {name: [] for name in rules}
for seed in range(5):
    learner = ActiveLearner(
        LogisticRegression(C=10, max_iter=300), batch_size=20, random_state=seed
    )
    options = {"n_initial": 20, "n_rounds": 19, "X_test": X[1200:], "y_test": y[1200:]}
    runs.append(simulate(learner, X[:1200], y[:1200], **options))
    for name, rule in rules.items():
        run = simulate(learner, X[:1200], y[:1200], stopping=rule, **options)
        stops[name].append(run.n_labeled[-1] if run.stopped_by else np.nan)

fig, axes = plt.subplots(
    2, 1, figsize=(7.5, 6.5), sharex=True, height_ratios=[3, 2], layout="constrained"
)
display = ActiveLearningCurveDisplay.from_runs({"margin": runs}, ax=axes[0])
axes[0].set_xlabel("")
for row, labels in enumerate(stops.values()):
    jitter = np.linspace(-0.2, 0.2, len(labels))
    axes[1].plot(labels, row + jitter, "o", color="#555555", mfc="none")
    axes[1].plot(np.nanmean(labels), row, "D", color="k")
axes[1].set_yticks(range(len(stops)), stops)
axes[1].set(xlabel="labels", ylim=(len(stops) - 0.5, -0.5))
axes[1].grid(axis="x", alpha=0.3)
plt.show()

# %%
# An open circle is the end of one loop, and the diamond is the mean of the loops that
# the rule stopped. How many it stopped, and the accuracy then:

for name, labels in stops.items():
    scores = [
        run.scores[list(run.n_labeled).index(n)]
        for run, n in zip(runs, labels, strict=True)
        if not np.isnan(n)
    ]
    print(f"{name:27s} {len(scores)} of 5, accuracy {np.mean(scores):.3f}")

# %%
# A stricter threshold stops later. The circles of a rule lie apart, so do not judge a
# rule by one loop. ``Plateau`` reads the score on the test items and can be used only
# if such labels exist. The other rules read the predictions for the pool, which needs
# no further labels.
#
# A threshold that suits these digits need not suit another task. Combine a rule with a
# budget: ``KappaAverage() | LabelBudget(1000)``.
