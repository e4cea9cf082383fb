"""
Where do strategies look?
=========================

Six strategies get the same labels and the same pool, points of three classes in the
plane. Each selects a batch of 15. The picture shows the batches.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner

STRATEGIES = ["random", "margin", "badge", "coreset", "uherding", "typiclust"]

# %%
# The pool has 400 points. Twelve of them are labeled, and a logistic regression is
# trained on these.

X, y = make_blobs(400, centers=3, cluster_std=2.2, random_state=3)
labeled = np.arange(12)
unlabeled = np.arange(12, 400)

fig, axes = plt.subplots(
    3, 2, figsize=(8, 10.5), sharex=True, sharey=True, layout="constrained"
)
for ax, strategy in zip(axes.flat, STRATEGIES, strict=True):
    learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
    learner.fit(X[labeled], y[labeled])
    batch = learner.query(X, 15, candidates=unlabeled)

    DecisionBoundaryDisplay.from_estimator(
        learner.estimator_,
        X,
        ax=ax,
        response_method="predict",
        multiclass_colors=["#0072B2", "#E69F00", "#009E73"],
        alpha=0.22,
    )
    ax.scatter(*X[unlabeled].T, c="#777777", s=7, label="unlabeled")
    ax.scatter(*X[labeled].T, c="k", marker="x", s=40, label="labeled")
    ax.scatter(*X[batch].T, c="w", edgecolors="k", s=42, label="selected")
    ax.set(title=strategy, xticks=[], yticks=[], xlabel="", ylabel="")
fig.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
plt.show()

# %%
# The colors of the background are the classes that the model predicts.
#
# - ``random`` follows the density of the pool.
# - ``margin`` selects points near the boundaries, where the two best classes are
#   close. Several of them are neighbors of each other.
# - ``badge`` prefers uncertain points too, but spreads them.
# - ``coreset`` ignores the model. It selects points that are far from all labels, so
#   it reaches the rim of the pool and its outliers.
# - ``uherding`` selects points that have many uncertain ones around them, so most of
#   its batch lies inside the pool.
# - ``typiclust`` selects points in dense regions that have no label yet.
#
# The picture is one draw with one set of labels. It shows how the strategies differ. It
# does not show which one is best: that depends on the data, the model and the number of
# labels. :ref:`sphx_glr_auto_gallery_comparing_plot_learning_curves.py` shows how to
# compare them.
