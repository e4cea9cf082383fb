"""The claims, the tables and the picture of hart.py."""

from pathlib import Path

import numpy as np
from common import harness
from verdicts import claim_tables, deviations, read_claims

from skactive.analysis import welch_t

PAPER = harness.read_toml(Path(__file__).with_name("hart"))["paper"]
SPARSE = ("TF-IDF", "counts", "hashing")


def pick(records, part, model, key="accuracy"):
    """Scores of one model, in the order of its folds or initializations."""
    found = harness.select(records, "index", part=part, model=model)
    return np.array([r[key] for r in found])


def make_claims(records, settings):
    """Measure what the paper claims.

    A repetition of the folds counts once, with the mean of its folds.
    """
    means = {model: pick(records, "folds", model).mean() for model in SPARSE}
    order = sorted(SPARSE, key=means.get)
    names = {"best": order[-1], "worst": order[0]}

    def measure(_, *, part, models, key="accuracy", spread=False):
        models = [names.get(model, model) for model in models]
        both = [100 * pick(records, part, model, key) for model in models]
        if part == "folds":
            both = [scores.reshape(-1, settings.n_folds).mean(1) for scores in both]
        if spread:
            both = [deviations(scores) for scores in both]
        n = max(map(len, both))
        first, second = (np.resize(scores, n) for scores in both)
        # One more seed: an initialization, or folds like the split.
        seconds = sum(np.mean(pick(records, "split", m, "seconds")) for m in models)
        seconds *= settings.n_folds if part == "folds" else 1
        return {"values": {"tweets": first - second}, "seconds": seconds}

    return read_claims("hart", measure, {None: [names]})


def make_tables(records, settings):
    """Claims, tables 1 and 2 of the paper, and the tests of table 2."""
    linear = dict.fromkeys(r["model"] for r in records if r["part"] == "folds")
    models = dict.fromkeys(r["model"] for r in records)
    tuned = [model for model in models if model not in linear]
    paper = ["paper: accuracy", "paper: F1"]
    head = ["model", "accuracy", "best", "F1", "F1 of the others", "seconds"]
    return {
        **claim_tables(make_claims, records, settings),
        "folds": harness.table(
            ["features", "accuracy", "F1", *paper],
            [_linear_row(records, model) for model in linear],
        ),
        "split": harness.table(
            [*head, *paper], [_split_row(records, model) for model in [*tuned, *linear]]
        ),
        "tests": harness.table(
            ["compared with frozen (frozen minus the other)", "here", "paper"],
            [
                [model, _test(records, model), PAPER["tests"][model]]
                for model in tuned
                if model != "frozen"
            ],
        ),
    }


def _linear_row(records, model):
    scores = [pick(records, "folds", model, key) for key in ("accuracy", "f1")]
    return [model, *map(harness.mean_std, scores), *_paper(model, model in SPARSE)]


def _split_row(records, model):
    accuracy = pick(records, "split", model)
    return [
        model,
        harness.mean_std(accuracy),
        f"{accuracy.max():.3f}",
        harness.mean_std(pick(records, "split", model, "f1")),
        harness.mean_std(pick(records, "split", model, "f1_other")),
        harness.mean_std(pick(records, "split", model, "seconds"), 1),
        *_paper(model, model not in SPARSE),
    ]


def _paper(model, is_own):
    """Write the figures of the paper, if it has some in this table."""
    figures = PAPER["scores"].get(model) if is_own else None
    return [f"{value:.3f}" for value in figures or []] or ["", ""]


def _test(records, model):
    test = welch_t(pick(records, "split", "frozen"), pick(records, "split", model))
    tail = str(test).partition(", ")[2]
    return f"{test.difference:+.3f} {harness.said_interval(test, 3)}, {tail}"


def draw(records, settings):
    """Draw the boxes of accuracy and F1 (the paper's figures 1 and 2)."""
    figure, axes = harness.open_panels(1, 2, 9, 3.6)
    boxes = list(dict.fromkeys((r["part"], r["model"]) for r in records))
    boxes = [box for box in boxes if len(pick(records, *box)) > 1]
    for ax, key in zip(axes[0], ("accuracy", "f1"), strict=True):
        values = [pick(records, *box, key) for box in boxes]
        ax.boxplot(values, medianprops={"color": "black"}, widths=0.6)
        names = [model.replace(" layers", "\nlayers") for _, model in boxes]
        ax.set_xticks(range(1, len(boxes) + 1), names, rotation=90)
        n_folds = sum(part == "folds" for part, _ in boxes)
        ax.axvline(n_folds + 0.5, color="0.6", linewidth=1, linestyle=":")
        ax.set_ylabel({"accuracy": "accuracy", "f1": "F1"}[key])
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
    harness.save_figure(figure, settings, "hart_scores.png", 80)
