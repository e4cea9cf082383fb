"""
Should the model learn after each label?
========================================

With batches, the model waits for several labels before it is trained again. With one
label at a time each question uses all answers so far, but the model is trained often.
:class:`~skactive.linear_model.SequentialLogisticRegression` continues from the previous
solution, so that a person does not wait.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, simulate
from skactive.linear_model import SequentialLogisticRegression
from skactive.plotting import ActiveLearningCurveDisplay

digits = load_digits()
X, y = digits.data.astype(np.float32) / 16, np.where(digits.target % 2, "odd", "even")
X_pool, y_pool, X_test, y_test = X[:1200], y[:1200], X[1200:], y[1200:]

# %%
# The task is to tell odd digits from even ones. After 20 initial labels come 160
# questions, in batches of 1, 10 and 40, with five seeds. ``margin`` selects them.

model = SequentialLogisticRegression(warm_start=True)
runs = {}
for size in (1, 10, 40):
    runs[f"batches of {size}"] = [
        simulate(
            ActiveLearner(model, "margin", batch_size=size, random_state=seed),
            X_pool,
            y_pool,
            n_initial=20,
            n_rounds=160 // size,
            X_test=X_test,
            y_test=y_test,
        )
        for seed in range(5)
    ]
ActiveLearningCurveDisplay.from_runs(runs, baseline=None)
plt.show()

# %%
# The items of a large batch are all near the boundary of one and the same model, so
# they resemble each other. Whether this matters depends on the task and on the
# strategy: where the bands overlap, five seeds do not show a difference. Strategies
# that spread a batch, such as ``badge``, lose less.
#
# Each run records the seconds of a round, for training and for the next question. Here
# is the same loop of single labels with scikit-learn's logistic regression. The lines
# are medians of 20 rounds, since other programs use the processor, too.

plain = simulate(
    ActiveLearner(LogisticRegression(), "margin", batch_size=1, random_state=0),
    X_pool,
    y_pool,
    n_initial=20,
    n_rounds=160,
)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for run, name, color in [
    (plain, "LogisticRegression", "#D55E00"),
    (runs["batches of 1"][0], "SequentialLogisticRegression", "#0072B2"),
]:
    seconds = [r["fit_seconds"] + r["query_seconds"] for r in run.rounds[1:]]
    medians = 1000 * np.median(np.reshape(seconds, (-1, 20)), axis=1)
    ax.plot(run.n_labeled[20::20], medians, "o-", color=color, label=name)
ax.set(xlabel="labels", ylabel="milliseconds of a round", ylim=(0, None))
ax.grid(alpha=0.3)
ax.legend()
plt.show()

# %%
# Both models are fast enough for one person and a small pool. The difference counts in
# simulations of thousands of rounds.
#
# The picture shows two classes and the default ``C=1``. With many classes and a large
# ``C``, one label can change the solution so much that the warm start does not help. A
# round then takes as long as with scikit-learn.
