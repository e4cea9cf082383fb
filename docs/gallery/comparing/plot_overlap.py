"""
Do two strategies select the same items?
========================================

Strategies with different names may query mostly the same items. The Jaccard similarity
is the share of common items among all that two strategies have queried. It tells which
strategies are worth comparing.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive.plotting import ActiveLearningCurveDisplay, OverlapDisplay
from skactive.simulation import run_experiment

digits = load_digits()
X, y = digits.data / 16, digits.target
runs = run_experiment(
    ActiveLearner(LogisticRegression(C=10, max_iter=300), batch_size=20),
    {"digits": (X[:1200], y[:1200], X[1200:], y[1200:])},
    strategies=["margin", "least_confidence", "entropy", "coreset", "random"],
    seeds=6,
    n_initial=20,
    n_rounds=9,
)

# %%
# Each strategy is compared with ``margin``. Runs of the same seed form a pair, and the
# initial labels, which a pair shares, are not counted.

OverlapDisplay.from_runs(runs, "margin")
plt.show()

# %%
# The dotted line is the similarity that two random choices are expected to have. It
# rises, because two choices from one pool share more items as they grow. ``random``
# follows it. ``least_confidence`` and ``entropy`` are above: like ``margin`` they query
# where the model is uncertain, and still most of their items differ from those of
# ``margin``. ``coreset`` looks at the features only. It shares less with ``margin`` in
# the end, but more than chance.
#
# A high overlap suggests similar models. A low one does not show that the models differ
# in accuracy, as many sets of items teach the same. The curves of the same runs:

ActiveLearningCurveDisplay.from_runs(runs)
plt.show()
