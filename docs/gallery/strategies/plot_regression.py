"""
Which points does a regression need?
====================================

A function is flat on one side and waves on the other, and most of the pool lies on the
flat side. Random sampling puts most labels where little happens. Greedy sampling and
LCMD choose points by their distance to the labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from skactive import ActiveLearner
from skactive.plotting import ActiveLearningCurveDisplay
from skactive.simulation import run_experiment


def function(x):
    return np.sin(x**2 / 4)


STRATEGIES = ["random", "greedy_sampling", "lcmd"]
kernel = ConstantKernel(1.0, "fixed") * RBF(0.6, "fixed") + WhiteKernel(1e-3, "fixed")
model = GaussianProcessRegressor(kernel, normalize_y=False)

rng = np.random.default_rng(0)
X_pool = np.sort(8 * rng.beta(1, 3, size=500))[:, None]
y_pool = function(X_pool[:, 0]) + rng.normal(0, 0.03, size=500)
X_test = np.linspace(0, 7, 400)[:, None]
y_test = function(X_test[:, 0])

# %%
# Each strategy begins with the same five labels and selects 15 more, five at a time.

fig, axes = plt.subplots(
    3, 1, figsize=(7.5, 8), sharex=True, sharey=True, layout="constrained"
)
for ax, strategy in zip(axes, STRATEGIES, strict=True):
    learner = ActiveLearner(model, strategy, batch_size=5, random_state=0)
    learner.fit(X_pool[:500:100], y_pool[:500:100])
    unlabeled = np.ones(500, dtype=bool)
    unlabeled[:500:100] = False
    for _ in range(3):
        batch = learner.query(X_pool, candidates=unlabeled)
        learner.teach(X_pool[batch], y_pool[batch])
        unlabeled[batch] = False
    ax.plot(X_test, y_test, color="#999999", label="function")
    ax.plot(X_test, learner.predict(X_test), color="#D55E00", label="prediction")
    ax.plot(X_pool, np.full(500, -1.9), "|", color="#555555", label="pool")
    ax.plot(
        learner.X_labeled_, learner.y_labeled_, "ko", mfc="w", ms=6, label="20 labels"
    )
    ax.set(title=strategy, ylim=(-2.1, 1.7))
fig.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=4)
plt.show()

# %%
# The ticks at the bottom are the pool. Random labels pile up on the left, and the
# prediction misses the waves on the right. The other two reach the right side.
#
# That was one draw. The error over ten draws of the first labels:

runs = run_experiment(
    ActiveLearner(model, batch_size=5),
    {"waves": (X_pool, y_pool, X_test, y_test)},
    strategies=STRATEGIES,
    seeds=10,
    n_initial=5,
    n_rounds=9,
    scoring="neg_root_mean_squared_error",
)
display = ActiveLearningCurveDisplay.from_runs(runs, score_name="- RMSE")
display.ax_.set_title("ten seeds")
plt.show()

# %%
# The test points are spread evenly over the range, so errors on the right count as much
# as errors on the left. If the test points came from the distribution of the pool,
# random sampling would lose less. On tables with outliers, strategies that seek distant
# points can be worse than random; the guide on regression has measurements.
