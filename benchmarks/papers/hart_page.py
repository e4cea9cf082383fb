"""The page of hart.py: tables and the picture."""

import numpy as np
from hart_claims import (
    PAPER_SPARSE,
    PAPER_TESTS,
    PAPER_TUNED,
    RULES,
    claims,
    pick,
    said,
    share_needed,
)
from pages import BUSY, claims_table, figure_path, mean_std, table

from skactive.analysis import welch_t


def page(records, settings):
    """Write the page."""
    first = records[0]
    split = next(r for r in records if r["part"] == "split")
    whole = first["n_train"] + first["n_test"]
    folds = {
        m: pick(records, "folds", m) for m in dict.fromkeys(r["model"] for r in records)
    }
    linear = [m for m, scores in folds.items() if len(scores)]
    tuned = [m for m, scores in folds.items() if not len(scores)]
    scores = {m: pick(records, "split", m) for m in tuned}
    tests = {m: welch_t(scores["frozen"], scores[m]) for m in tuned if m != "frozen"}
    parts = [
        "# Hart: the benefits of fine-tuning BERT",
        f"Data: {', '.join(settings.data)}, {whole:,} texts without repeated ones. "
        "The paper asks whether fine-tuning pays on a small task, which is to find "
        "tweets about disasters. Its models are logistic regression on sparse "
        "features, and BERT frozen, unfrozen, or unfrozen in its last two layers, "
        "under one dense layer.",
        _scaled_down(settings, split) if settings.scale != "paper" else "",
        "## Claims",
        claims_table(claims(records, folds, scores, tests)),
        RULES,
        _limits(split, settings),
        "## Linear models on all texts (table 1)",
        f"Means ± standard deviation over {settings.n_folds} folds.",
        table(
            ["features", "accuracy", "F1", "paper: accuracy", "paper: F1"],
            [
                [
                    m,
                    mean_std(folds[m]),
                    mean_std(pick(records, "folds", m, "f1")),
                    *_paper(PAPER_SPARSE.get(m)),
                ]
                for m in linear
            ],
        ),
        "The features of the last layer, and of the last four layers pooled and "
        "concatenated, are those of the encoder without fine-tuning.",
        f"## Fine-tuning (table 2), {split['n_train']:,} labeled texts",
        f"Means ± standard deviation over {settings.seeds} initializations, on "
        f"the same {split['n_test']:,} test texts. Linear models have one result. "
        "The first F1 is of the disasters, the second of the other class. Seconds are "
        "processor seconds of one run, with encoding, training and prediction. Each "
        "run begins with an empty cache.",
        table(
            [
                *("model", "accuracy", "best", "F1", "F1 of the others", "seconds"),
                *("paper: accuracy", "paper: F1"),
            ],
            [_tuned_row(records, m) for m in [*tuned, *linear]],
        ),
        "| compared with frozen (frozen minus the other) | here | paper |\n"
        "|---|---|---|\n"
        + "\n".join(
            f"| {m} | {said(test)} | {PAPER_TESTS[m]} |" for m, test in tests.items()
        ),
        _on_f1(split["share"]),
        "![Accuracy and F1 of all models](images/hart_scores.png)",
        "Left of the line: folds of all texts. Right of the line: initializations.",
        "## How it was measured",
        settings.provenance,
        BUSY if settings.scale == "cpu" else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _tuned_row(records, model):
    got = [pick(records, "split", model, k) for k in ("accuracy", "f1", "f1_other")]
    seconds = pick(records, "split", model, "seconds")
    return [
        model,
        mean_std(got[0]),
        f"{got[0].max():.3f}",
        *(mean_std(values) for values in got[1:]),
        mean_std(seconds, 1),
        *_paper(PAPER_TUNED.get(model)),
    ]


def _paper(figures):
    return [f"{value:.3f}" for value in figures] if figures else ["", ""]


def _scaled_down(settings, split):
    return (
        "Scaled down: a smaller encoder (all-MiniLM-L6-v2, six layers, "
        f"{settings.pooling} pooling) instead of BERT-base, so that the last two "
        "layers are a third of it instead of a sixth. Table 2 with "
        f"{split['n_train']:,} labeled texts instead of about 6,000, at most "
        f"{settings.max_length} tokens, "
        f"{settings.epochs} epochs, {settings.frozen_epochs} for the frozen model, "
        "whose features are computed once; the head at a rate of "
        f"{settings.head_lr or 5e-5:g} instead of 5e-5. Table 1 is at full size."
    )


def _limits(split, settings):
    """Describe the limits of the tests of table 2."""
    error = 100 * np.sqrt(split["accuracy"] * (1 - split["accuracy"]) / split["n_test"])
    uneven = (
        f" Also, the frozen model gets {settings.frozen_epochs} epochs and the others "
        f"{settings.epochs}, so they differ in more than in what is frozen."
        if settings.frozen_epochs != settings.epochs
        else ""
    )
    return (
        "The initializations share one split. Their p-values and intervals therefore "
        "describe other initializations, not other training or test texts: the "
        f"sampling of {split['n_test']:,} test texts alone gives an accuracy a "
        f"standard error of about {error:.1f} points.{uneven} The paper's section 4.2 "
        'unfreezes "the first two encoders", its section 5.2 and its table 2 "the last '
        'two layers"; we used the last two.'
    )


def _on_f1(share):
    def needed(figures):
        return f"{share_needed(*figures):.0%}"

    tuned = {model: needed(figures) for model, figures in PAPER_TUNED.items()}
    frozen = tuned.pop("frozen")
    return (
        "*On the paper's F1*: with an accuracy of 0.824, an F1 of 0.872 needs "
        f"{frozen} of the texts to be true positives (F1 (1 - accuracy) / (2 - 2 F1)). "
        f"{share:.0%} of our test texts are disasters, and 43% of the paper's tweets; "
        "so it cannot be the F1 of either class of such a test set. The F1 of the "
        f"other two models ({', '.join(tuned.values())}) can only be that of the other "
        f"class. The 0.742 of TF-IDF needs {needed(PAPER_SPARSE['TF-IDF'])}, which "
        "fits the disasters. The paper therefore compares different scores, and the "
        "claim on F1 gets no verdict. This page has the F1 of both classes."
    )


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
