"""
How many labels of a rare class does a strategy find?
=====================================================

One class makes up three percent of the pool. At random, 100 labels hold about three
items of it. The picture counts how many each strategy has found after each round.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive.analysis import class_coverage
from skactive.plotting import ActiveLearningCurveDisplay
from skactive.simulation import Run, make_imbalanced, run_experiment

# %%
# The task is to find the digit 8 among all digits. ``make_imbalanced`` removes most of
# them from the pool.

digits = load_digits()
X, y = digits.data / 16, np.where(digits.target == 8, "eight", "other")
X_test, y_test = X[1200:], y[1200:]
X_pool, y_pool = make_imbalanced(
    X[:1200], y[:1200], minority="eight", prior=0.03, random_state=0
)
print(len(y_pool), "items, of which", np.sum(y_pool == "eight"), "are rare")

runs = run_experiment(
    ActiveLearner(LogisticRegression(C=10), batch_size=10),
    {"digits": (X_pool, y_pool, X_test, y_test)},
    strategies=["random", "margin", "coreset", "badge"],
    seeds=10,
    n_initial=20,
    n_rounds=10,
    scoring=["f1_macro"],
)

# %%
# :func:`~skactive.analysis.class_coverage` counts the labels of each class. The counts
# become the scores of new runs, so that the display can draw them.

counted = []
for run in runs:
    coverage = class_coverage(run, y_pool)
    rare = coverage.counts[:, list(coverage.classes).index("eight")]
    records = [
        {"queried": record["queried"], "scores": {"labels of the rare class": count}}
        for record, count in zip(run.rounds, rare.tolist(), strict=True)
    ]
    counted.append(Run(records, info=run.info))

fig, axes = plt.subplots(2, 1, figsize=(7, 8), sharex=True, layout="constrained")
ActiveLearningCurveDisplay.from_runs(
    counted, ax=axes[0], reference={"all of the pool": np.sum(y_pool == "eight")}
)
ActiveLearningCurveDisplay.from_runs(runs, ax=axes[1], score_name="macro F1")
plt.show()

# %%
# The upper picture counts labels, and the lower one shows what a model gains from them.
# Strategies that query near the boundary of the rare class find several times as many
# of its items as random sampling, and their macro F1 is higher. Compare ``margin`` and
# ``coreset`` at the end: more items of the rare class do not always mean a better
# model.
#
# All runs began with random labels. If these hold no item of the rare class, a strategy
# that uses a model cannot search for it. The band shows the uncertainty of the mean
# over ten seeds, for this one pool.
