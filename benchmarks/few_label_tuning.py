"""Fine-tuning with 8 to 512 labels, compared with frozen features, and its settings.

    SKACTIVE_DATA=.../data python benchmarks/few_label_tuning.py --out tuning --page
    python benchmarks/few_label_tuning.py --scale smoke     # seconds, on docstrings
    python benchmarks/few_label_tuning.py --rebuild --page  # the tables again

Labels are random and of two classes at least. For each number of labels: the loop's
model (make_text_classifier, with 2,000 unlabeled texts), the recommended fine-tuning
on the labels (make_fine_tuned_classifier), and their average.
With 64 labels, one setting of the fine-tuning at a time is changed: optimizer steps,
rates, frozen layers, or pseudo-labels of the loop's model as well (SelfTraining).
Differences are paired by seed, their means are over the data sets, and p are corrected
by Holm over the rows of a table. few_label_tuning.toml has the sizes.
"""

from functools import lru_cache, partial
from time import process_time

import _harness as harness
import numpy as np
from labels_needed import load
from scipy.stats import t

from skactive import (
    ActiveLearner,
    make_fine_tuned_classifier,
    make_text_classifier,
)
from skactive.analysis import holm, paired_t
from skactive.bert import clear_cache
from skactive.semi_supervised import SelfTraining

MEMBERS = ("loop", "fine-tuned", "averaged")
# Epochs of 64 labels in batches of 8 have 8 steps; "auto" takes 100 steps.
CHANGES = {
    "about 50 steps": {"max_epochs": 6},
    "about 200 steps": {"max_epochs": 25},
    "about 400 steps": {"max_epochs": 50},
    "half the rates": {"lr": 5e-5, "head_lr": 5e-4},
    "twice the rates": {"lr": 2e-4, "head_lr": 2e-3},
    "nothing frozen": {"freeze": 0},
    "4 of 6 layers frozen": {"freeze": 4},
    "pseudo-labels": None,
}


@lru_cache(maxsize=1)
def read(name, n_pool, n_test):
    X, y, X_test, y_test = load(name, n_pool, n_test)
    return *(np.asarray(part, dtype=object) for part in (X, X_test)), y, y_test


def draw(y, n, seed):
    """Random positions, n labels first, which have two classes at least."""
    rng = np.random.default_rng([seed, 33])
    while len(set(y[(order := rng.permutation(len(y)))[:n]])) < 2:
        pass
    return order


def make(settings, seed, **options):
    common = {"max_length": settings.sizes["max_length"]}
    options = {"max_epochs": settings.max_epochs, **common, **options}
    return make_fine_tuned_classifier(settings.model, random_state=seed, **options)


def make_loop(settings, X):
    """The model of the loop, with the features of X in its cache."""
    loop = make_text_classifier(
        settings.model,
        adapt=False,
        max_length=settings.sizes["max_length"],
        cache=str(settings.out / "features"),
    )
    loop[0].transform(X)
    clear_cache()
    return loop


class Average:
    """The average of two models; the logits of the second are divided by 2."""

    def __init__(self, first, second):
        self.members = first, second

    def predict(self, X):
        first, second = (model.predict_proba(X) for model in self.members)
        softer = np.sqrt(second)
        total = first + softer / softer.sum(axis=1, keepdims=True)
        return self.members[0].classes_[total.argmax(axis=1)]


def fit_average(settings, loop, X, y, rows, others, seed):
    """Train on rows of X, others without labels: both members, and their average."""
    learner = ActiveLearner(loop, random_state=seed)
    learner.fit(X[rows], y[rows], X_unlabeled=X[others])
    tuned = make(settings, seed).fit(X[rows], y[rows])
    average = Average(learner.estimator_, tuned)
    return dict(zip(MEMBERS, (*average.members, average), strict=True))


def score(models, X_test, y_test):
    """The accuracy of each model."""
    found = {n: np.mean(m.predict(X_test) == y_test) for n, m in models.items()}
    return {"scores": {name: float(value) for name, value in found.items()}}


def run_cell(settings, *, data, labels, change, seed, sizes):
    """Train on random labels; the accuracy of each member, or of what is changed."""
    X, X_test, y, y_test = read(data, sizes["n_pool"], sizes["n_test"])
    order = draw(y, labels, seed)
    rows, others = order[:labels], order[labels : labels + sizes["n_unlabeled"]]
    loop = make_loop(settings, X)
    options = CHANGES.get(change)
    start = process_time()
    if change is None:
        found = fit_average(settings, loop, X, y, rows, others, seed)
    elif options is None:
        tuned = make(settings, seed)
        model = SelfTraining(tuned, teacher=loop, cv=None, random_state=seed)
        found = {change: model.fit(X[rows], y[rows], X_unlabeled=X[others])}
    else:
        found = {change: make(settings, seed, **options).fit(X[rows], y[rows])}
    seconds = process_time() - start
    return score(found, X_test, y_test) | {"processor": round(seconds, 2)}


def run(settings):
    """Run what is not finished."""
    grid = [
        {"data": d, "labels": n, "change": change, "seed": seed}
        for seed in range(settings.seeds)
        for d in settings.data
        for n, change in [
            *((n, None) for n in settings.labels),
            *((settings.changed_at, change) for change in settings.changes),
        ]
    ]
    grid = [cell | {"sizes": settings.sizes} for cell in grid]
    return harness.run_missing(partial(run_cell, settings), grid, settings, "sizes")


def pick(records, data, labels, name):
    """Percent of a member or of a change, by seed."""
    found = harness.select(records, data=data, labels=labels)
    return np.array([100 * r["scores"][name] for r in found if name in r["scores"]])


def compare(records, cells, settings):
    """Test the means over the data sets: cells of (labels, name, other), a row each."""
    found, p_values = [], []
    for n, name, other in cells:
        points = {
            d: pick(records, d, n, name) - pick(records, d, n, other)
            for d in settings.data
            if len(pick(records, d, n, name))
        }
        mean, error, df = harness.stratified(points)
        p_values.append(2 * t.sf(abs(mean) / error, df) if error else float(not mean))
        reach = t.isf(0.025, df) * error
        figures = f"{mean:+.1f} [{mean - reach:+.1f}, {mean + reach:+.1f}]"
        each = [
            f"{points[d].mean():+.1f}" if d in points else "-" for d in settings.data
        ]
        found.append([n, f"{name} less {other}", figures, *each])
    shown = [f"{p:.3f}" if p >= 0.001 else "< 0.001" for p in holm(p_values)]
    rows = [[*row, p] for row, p in zip(found, shown, strict=True)]
    return harness.table(
        ["labels", "difference", "points", *settings.data, "p (Holm)"], rows
    )


def make_tables(records, settings):
    """Accuracy by labels, tests of the fine-tuning, and changes of its settings."""
    rows = []
    for d in settings.data:
        for name in MEMBERS:
            cells = [
                harness.mean_std(pick(records, d, n, name), 1) for n in settings.labels
            ]
            rows.append([d, name, *cells])
    at = settings.changed_at
    whole = []
    for change in [None, *settings.changes]:
        own = [r for r in records if r["change"] == change and r["labels"] == at]
        seconds = [
            f"{np.mean([r['processor'] for r in own if r['data'] == d]):.1f}"
            for d in settings.data
        ]
        whole.append([change or "recommended, averaged", *seconds])
    return {
        "accuracy": harness.table(
            ["data", "model", *(f"{n} labels" for n in settings.labels)], rows
        ),
        "tests": compare(
            records,
            [(n, name, "loop") for name in MEMBERS[1:] for n in settings.labels],
            settings,
        ),
        "changes": compare(
            records, [(at, c, "fine-tuned") for c in settings.changes], settings
        ),
        "seconds": harness.table(
            [f"{at} labels, processor seconds", *settings.data], whole
        ),
    }


def draw_scores(ax, records, settings, data, names):
    """Mean accuracy against labels, with its standard error, a line for each name."""
    for name in names:
        scores = [pick(records, data, n, name) for n in settings.labels]
        means = [s.mean() for s in scores]
        errors = [s.std(ddof=1) / np.sqrt(len(s)) for s in scores]
        ax.errorbar(settings.labels, means, errors, marker=".", label=name)
    ax.set_xscale("log", base=2)
    ax.set_xticks(settings.labels, settings.labels)
    ax.set_title(data)


def draw_picture(records, settings):
    """Accuracy against labels, and what each change does."""
    n = len(settings.data)
    figure, axes = harness.open_panels(2, n, 3.6 * n, 6.4)
    for (above, below), data in zip(axes.T, settings.data, strict=True):
        draw_scores(above, records, settings, data, MEMBERS)
        above.set_xlabel("labels")
        at = settings.changed_at
        own = pick(records, data, at, "fine-tuned")
        tests = [paired_t(pick(records, data, at, c), own) for c in settings.changes]
        middle = [test.difference for test in tests]
        reach = [test.interval[1] - test.difference for test in tests]
        places = range(len(tests))
        below.errorbar(middle, places, xerr=reach, fmt="o", color="black")
        below.axvline(0, color="0.6", linewidth=1)
        below.set_yticks(places, settings.changes if data == settings.data[0] else [])
        below.invert_yaxis()
        below.set_xlabel(f"points, {at} labels")
    axes[0, 0].set_ylabel("accuracy, %")
    axes[0, 0].legend()
    harness.save_figure(figure, settings, "few_label_fine_tuning.png", 90)


def check(records, settings, tables):
    """Fail where the shape of the results is not what the page needs."""
    n_runs = len(settings.labels) + len(settings.changes)
    assert len(records) == n_runs * settings.seeds * len(settings.data), len(records)
    scores = [score for r in records for score in r["scores"].values()]
    assert min(scores) >= 0
    assert max(scores) <= 1
    assert [len(lines) for lines in tables.values()] == [5, 4, 4, 5], tables


def main():
    settings = harness.settle(__doc__, __file__)
    harness.publish(
        settings, "few_label_fine_tuning", run, draw_picture, make_tables, check
    )


if __name__ == "__main__":
    main()
