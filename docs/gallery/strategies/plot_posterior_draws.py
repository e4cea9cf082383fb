"""
What is a posterior sample, and what does BALD select?
======================================================

A posterior sample is another model that fits the labels almost as well. Where such
models disagree, a label teaches something. Where they agree that a point is ambiguous,
it does not. BALD measures the disagreement, and entropy does not separate the two.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive.posterior import sample_proba

# %%
# Two classes overlap on the left, where 60 points are labeled. On the right, the pool
# has a region without labels.

rng = np.random.default_rng(0)
left = rng.normal([-1.5, 0.0], [0.8, 1.2], size=(60, 2))
y_left = (left[:, 1] + rng.normal(0, 0.8, size=60) > 0).astype(int)
X_pool = rng.uniform([-4, -4], [8, 4], size=(600, 2))
model = LogisticRegression().fit(left, y_left)

# %%
# For logistic regression, :func:`~skactive.posterior.sample_proba` draws models from
# the Laplace approximation of the posterior. The result has the shape (points, draws,
# classes), and draw t is the same model for all points.

side = np.linspace(-4, 8, 90), np.linspace(-4, 4, 60)
grid = np.stack(np.meshgrid(*side), axis=-1)
draws = sample_proba(
    model, grid.reshape(-1, 2), 200, random_state=0, X_train=left, y_train=y_left
)
print(draws.shape)


def entropy(proba):
    return -np.sum(proba * np.log(proba), axis=-1)


of_the_mean = entropy(draws.mean(axis=1))
of_the_draws = entropy(draws).mean(axis=1)
disagreement = of_the_mean - of_the_draws  # BALD

# %%
# The upper picture shows the boundaries of 25 of the draws. They are close where labels
# are, and fan out on the right. The other two show the entropy of the mean prediction
# and BALD, with the ten points that each strategy selects from the pool.

fig, axes = plt.subplots(
    3, 1, figsize=(7, 10), sharex=True, sharey=True, layout="constrained"
)
for t in range(25):
    own = draws[:, t, 1].reshape(grid.shape[:2])
    axes[0].contour(*side, own, levels=[0.5], colors="#555555", linewidths=0.7)
axes[0].set_title("boundaries of 25 posterior samples")

for ax, values, strategy in [
    (axes[1], of_the_mean, "entropy"),
    (axes[2], disagreement, "bald"),
]:
    picture = ax.pcolormesh(
        *side, values.reshape(grid.shape[:2]), cmap="Blues", shading="gouraud"
    )
    fig.colorbar(picture, ax=ax, label="nats")
    learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
    batch = learner.fit(left, y_left).query(X_pool, 10)
    ax.scatter(*X_pool[batch].T, c="w", edgecolors="k", s=45, label="selected")
    ax.set_title(strategy)
for ax in axes:
    ax.scatter(*left[y_left == 0].T, c="#0072B2", marker="s", s=14, label="class 0")
    ax.scatter(*left[y_left == 1].T, c="#D55E00", marker="^", s=18, label="class 1")
    ax.set(xlim=(-4, 8), ylim=(-4, 4))
axes[1].legend(loc="lower right", ncols=3, fontsize="small")
plt.show()

# %%
# Entropy is high along the whole boundary, also on the left, where many labels already
# show that the classes overlap. BALD is low there and high on the right, because the
# draws disagree. Its ten points are close to each other: BALD scores each point on its
# own. The strategy ``batchbald`` scores the batch as a whole.
#
# The picture shows a linear model. Its draws can only be other lines, so it never
# doubts that the boundary is straight. For ensembles and networks
# :func:`~skactive.posterior.sample_proba` returns draws as well.
