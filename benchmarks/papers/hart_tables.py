"""The tables and the picture of hart.py."""

from hart_claims import make_claims, pick
from pages import figure_path, mean_std, said_interval, table
from verdicts import claims_table, summary_table

from skactive.analysis import welch_t

PAPER_SPARSE = {
    "TF-IDF": (0.795, 0.742),
    "counts": (0.796, 0.746),
    "hashing": (0.793, 0.735),
}
PAPER_TUNED = {
    "frozen": (0.824, 0.872),
    "unfrozen": (0.833, 0.863),
    "last two layers": (0.831, 0.850),
}
PAPER_TESTS = {
    "unfrozen": "t = -0.91, df = 13, p = 0.38",
    "last two layers": "t = -1.5, df = 16, p = 0.14",
}


def make_tables(records, settings):
    """Claims, tables 1 and 2 of the paper, and the tests of table 2."""
    claims = make_claims(records, settings.n_folds)
    linear = dict.fromkeys(r["model"] for r in records if r["part"] == "folds")
    models = dict.fromkeys(r["model"] for r in records)
    tuned = [model for model in models if model not in linear]
    paper = ["paper: accuracy", "paper: F1"]
    head = ["model", "accuracy", "best", "F1", "F1 of the others", "seconds"]
    return {
        "summary": summary_table(claims),
        "claims": claims_table(claims),
        "folds": table(
            ["features", "accuracy", "F1", *paper],
            [_linear_row(records, model) for model in linear],
        ),
        "split": table(
            [*head, *paper], [_split_row(records, model) for model in [*tuned, *linear]]
        ),
        "tests": table(
            ["compared with frozen (frozen minus the other)", "here", "paper"],
            [
                [model, _test(records, model), PAPER_TESTS[model]]
                for model in tuned
                if model != "frozen"
            ],
        ),
    }


def _linear_row(records, model):
    scores = [pick(records, "folds", model, key) for key in ("accuracy", "f1")]
    return [model, *map(mean_std, scores), *_paper(PAPER_SPARSE.get(model))]


def _split_row(records, model):
    accuracy = pick(records, "split", model)
    return [
        model,
        mean_std(accuracy),
        f"{accuracy.max():.3f}",
        mean_std(pick(records, "split", model, "f1")),
        mean_std(pick(records, "split", model, "f1_other")),
        mean_std(pick(records, "split", model, "seconds"), 1),
        *_paper(PAPER_TUNED.get(model)),
    ]


def _paper(figures):
    return [f"{value:.3f}" for value in figures] if figures else ["", ""]


def _test(records, model):
    test = welch_t(pick(records, "split", "frozen"), pick(records, "split", model))
    tail = str(test).partition(", ")[2]
    return f"{test.difference:+.3f} {said_interval(test, 3)}, {tail}"


def draw(records, settings):
    """Draw the boxes of accuracy and F1 (the paper's figures 1 and 2)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    boxes = list(dict.fromkeys((r["part"], r["model"]) for r in records))
    boxes = [box for box in boxes if len(pick(records, *box)) > 1]
    for ax, key in zip(axes, ("accuracy", "f1"), strict=True):
        values = [pick(records, *box, key) for box in boxes]
        ax.boxplot(values, medianprops={"color": "black"}, widths=0.6)
        names = [model.replace(" layers", "\nlayers") for _, model in boxes]
        ax.set_xticks(range(1, len(boxes) + 1), names, rotation=90)
        n_folds = sum(part == "folds" for part, _ in boxes)
        ax.axvline(n_folds + 0.5, color="0.6", linewidth=1, linestyle=":")
        ax.set_ylabel({"accuracy": "accuracy", "f1": "F1"}[key])
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
    figure.savefig(figure_path(settings, "hart_scores.png"), dpi=80)
    plt.close(figure)
