"""Adapted and frozen features with 25 to 200 labels, and settings of the adaptation.

    SKACTIVE_DATA=.../data python benchmarks/adapted_features.py --out adapted --page
    python benchmarks/adapted_features.py --scale smoke     # seconds, on docstrings
    python benchmarks/adapted_features.py --rebuild --page  # the tables again

Labels are random and of two classes at least. After AdaptedFeatures, or frozen features
of unit length, comes LogisticRegression(C=10). On the data sets in `tuned`, one setting
at a time is changed; the defaults were chosen there. On those in `data`, which had no
part in that, adapted features are compared with frozen ones. Tests as in
few_label_tuning.py. adapted_features.toml has the sizes and the changes.
"""

from copy import copy
from functools import partial
from time import process_time

import _harness as harness
import numpy as np
from few_label_tuning import compare, draw, draw_scores, pick, read
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive.bert import AdaptedFeatures, BertFeatures

MODELS = ("frozen", "adapted")


def make(settings, change, seed, max_length):
    """The features before the classifier."""
    common = {"max_length": max_length, "verbose": 0}
    if change == "frozen":
        features = BertFeatures(
            settings.model, pooling="mean", normalize=True, **common
        )
    else:
        options = settings.changes.get(change, {}) | {"random_state": seed}
        features = AdaptedFeatures(settings.model, cache=None, **common, **options)
    return make_pipeline(features, LogisticRegression(C=10, max_iter=1000))


def run_cell(settings, *, data, labels, change, seed, sizes):
    """Accuracy after training on random labels, and processor seconds of training."""
    X, X_test, y, y_test = read(data, sizes["n_pool"], sizes["n_test"])
    rows = draw(y, labels, seed)[:labels]
    model = make(settings, change, seed, sizes["max_length"])
    start = process_time()
    model.fit(X[rows], y[rows])
    seconds = process_time() - start
    right = float(np.mean(model.predict(X_test) == y_test))
    return {"scores": {change: right}, "processor": round(seconds, 2)}


def run(settings):
    """Run what is not finished."""
    part = {"sizes": settings.sizes}
    tuned = [
        {"data": d, "labels": n, "change": change, "seed": seed, **part}
        for change in [*MODELS, *settings.changes]
        for seed in range(settings.tuned_seeds)
        for n in settings.tuned_labels
        for d in settings.tuned
    ]
    shown = [
        {"data": d, "labels": n, "change": change, "seed": seed, **part}
        for seed in range(settings.seeds)
        for n in settings.labels
        for d in settings.data
        for change in MODELS
    ]
    grid = tuned + [cell for cell in shown if cell not in tuned]
    return harness.run_missing(partial(run_cell, settings), grid, settings, "sizes")


def make_tables(records, settings):
    """Adapted and frozen features, and what each change does."""
    rows = [
        [
            d,
            name,
            *(harness.mean_std(pick(records, d, n, name), 1) for n in settings.labels),
        ]
        for d in settings.data
        for name in MODELS
    ]
    tuned = copy(settings)
    tuned.data = settings.tuned
    seconds = []
    for change in ["adapted", *settings.changes]:
        own = [r for r in records if r["change"] == change and r["data"] in tuned.data]
        spent = [
            np.mean([r["processor"] for r in own if r["labels"] == n])
            for n in settings.tuned_labels
        ]
        seconds.append([change, *(f"{s:.1f}" for s in spent)])
    return {
        "accuracy": harness.table(
            ["data", "features", *(f"{n} labels" for n in settings.labels)], rows
        ),
        "tests": compare(
            records, [(n, "adapted", "frozen") for n in settings.labels], settings
        ),
        "changes": compare(
            records,
            [
                (n, c, "adapted")
                for c in settings.changes
                for n in settings.tuned_labels
            ],
            tuned,
        ),
        "seconds": harness.table(
            ["processor seconds", *(f"{n} labels" for n in settings.tuned_labels)],
            seconds,
        ),
    }


def draw_picture(records, settings):
    """Accuracy against labels."""
    n = len(settings.data)
    figure, axes = harness.open_panels(1, n, 3.6 * n, 3.2)
    for ax, data in zip(axes[0], settings.data, strict=True):
        draw_scores(ax, records, settings, data, MODELS)
        ax.set_xlabel("labels")
    axes[0, 0].set_ylabel("accuracy, %")
    axes[0, 0].legend()
    harness.save_figure(figure, settings, "adapted_features.png", 90)


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    scores = [score for r in records for score in r["scores"].values()]
    assert min(scores) >= 0
    assert max(scores) <= 1
    assert [len(lines) for lines in tables.values()] == [4, 3, 3, 4], tables


def main():
    settings = harness.settle(__doc__, __file__)
    harness.publish(settings, "adapted_features", run, draw_picture, make_tables, check)


if __name__ == "__main__":
    main()
