"""
Where strategies look
=====================

Points of three classes in the plane, ten labels, and the next 15 points that each of
four strategies selects.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner

X, y = make_blobs(400, centers=3, cluster_std=2.2, random_state=3)
start = np.arange(10)

fig, axes = plt.subplots(2, 2, figsize=(8, 7), sharex=True, sharey=True)
for ax, strategy in zip(axes.flat, ["random", "margin", "coreset", "badge"]):
    learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
    learner.fit(X[start], y[start])
    batch = learner.query(X, 15)
    ax.scatter(*X.T, c=y, s=8, alpha=0.4)
    ax.scatter(*X[batch].T, facecolors="none", edgecolors="k")
    ax.set_title(strategy)
plt.show()
