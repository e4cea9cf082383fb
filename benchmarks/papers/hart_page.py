"""The page of hart.py: tables, tests, claims and the picture."""

import numpy as np
from pages import BUSY, claims_table, figure_path, mean_std, table
from scipy.stats import levene
from scipy.stats import t as student

from skactive.analysis import paired_t, welch_t

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
MARGIN = 0.01


def pick(records, part, model, key="accuracy"):
    """Scores of one model, in the order of its folds or initialisations."""
    return np.array(
        [r[key] for r in records if r["part"] == part and r["model"] == model]
    )


def interval(test):
    """Limits of the 95 % interval of the difference that a t test looked at."""
    error = abs(test.difference / test.statistic) if test.statistic else 0.0
    half = student.ppf(0.975, test.df) * error
    return test.difference - half, test.difference + half


def said(test):
    """Write the interval of a difference, and its test."""
    low, high = interval(test)
    tail = str(test).partition(", ")[2]
    return f"{test.difference:+.3f} [{low:+.3f}, {high:+.3f}], {tail}"


def better(test):
    """Whether the first is better: by the sign of a difference that p < 0.05 shows."""
    return None if test.p_value >= 0.05 else test.difference > 0


def alike(tests):
    """Whether means differ by less than MARGIN: all intervals within, or one beyond."""
    limits = [interval(test) for test in tests]
    if all(low > -MARGIN and high < MARGIN for low, high in limits):
        return True
    outside = [low > MARGIN or high < -MARGIN for low, high in limits]
    return False if any(outside) else None


def insignificant(test):
    """Whether a difference is none: p < 0.05 refutes it, a narrow interval shows it."""
    return False if test.p_value < 0.05 else alike([test])


def at_least(test, size):
    """Whether a difference reaches a size: its interval lies above, or below."""
    low, high = interval(test)
    return True if low >= size else False if high < size else None


def spreads_more(a, b):
    """Whether a scatters more than b, by the test of Brown and Forsythe; and its p."""
    if np.ptp(a) == np.ptp(b) == 0:
        return None, 1.0
    p = levene(a, b, center="median").pvalue
    return (None if p >= 0.05 else bool(a.std() > b.std())), p


def share_needed(accuracy, f1):
    """Part of the texts that must be true positives for both scores to hold."""
    return f1 * (1 - accuracy) / (2 * (1 - f1))


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
        "The paper asks whether fine-tuning pays on a small task: are tweets about "
        "disasters? Its models are logistic regression on sparse features, and BERT "
        "frozen, unfrozen, or unfrozen in its last two layers, under one dense layer.",
        _scaled_down(settings, split) if settings.scale != "paper" else "",
        "## Claims",
        claims_table(_claims(records, folds, scores, tests)),
        "The verdicts are computed. *Better* and *more*: p < 0.05 and the sign. *No "
        "difference*: p < 0.05 refutes it, a 95 % interval within ± "
        f"{MARGIN} shows it, anything else cannot tell. *By a size*: the interval lies "
        "above half of the paper's gap, below it, or across it. Folds are compared in "
        "pairs (their training texts overlap, so these p are too small rather than too "
        "large), initialisations by Welch's test, spreads by that of Brown and "
        "Forsythe. Differences stand with their 95 % intervals.",
        "## Linear models on all texts (table 1)",
        f"Means ± standard deviation over {settings.n_folds} folds.",
        table(
            ["features", "accuracy", "F1", "paper: accuracy", "paper: F1"],
            [
                [
                    m,
                    mean_std(folds[m]),
                    mean_std(pick(records, "folds", m, "f1")),
                    *PAPER_SPARSE.get(m, ("", "")),
                ]
                for m in linear
            ],
        ),
        "The features of the last layer and of the last four, each pooled and set side "
        "by side, come from the encoder as it is, without fine-tuning.",
        f"## Fine-tuning (table 2), {split['n_train']:,} labelled texts",
        f"Means ± standard deviation over {settings.seeds} initialisations, on "
        f"{split['n_test']:,} texts that are the same for all. Linear models on the "
        "same texts have one result. F1 is that of the disasters, behind it that of "
        "the others. Seconds of the processor, training and prediction.",
        table(
            [
                *("model", "accuracy", "best", "F1", "F1 of the others", "seconds"),
                *("paper: accuracy", "paper: F1"),
            ],
            [_tuned_row(records, m) for m in [*tuned, *linear]],
        ),
        "| tested against frozen (frozen less the other) | here | paper |\n"
        "|---|---|---|\n"
        + "\n".join(
            f"| {m} | {said(test)} | {PAPER_TESTS[m]} |" for m, test in tests.items()
        ),
        _on_f1(split["share"]),
        "![Accuracy and F1 of all models](images/hart_scores.png)",
        "Left of the line the folds of all texts, right of it the initialisations.",
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
        f"{np.median(seconds):.1f}",
        *PAPER_TUNED.get(model, ("", "")),
    ]


def _claims(records, folds, scores, tests):
    def paired(a, b, key="accuracy"):
        return paired_t(pick(records, "folds", a, key), pick(records, "folds", b, key))

    sparse = [
        paired("counts", "TF-IDF"),
        paired("counts", "hashing"),
        paired("TF-IDF", "hashing"),
    ]
    widest = max(sparse, key=lambda test: abs(test.difference))
    features, f1 = paired("last layer", "TF-IDF"), paired("last layer", "TF-IDF", "f1")
    four = paired("last four layers", "last layer")
    more, p_more = spreads_more(scores["unfrozen"], scores["frozen"])
    less, p_less = spreads_more(scores["unfrozen"], scores["last two layers"])
    std = {m: f"{values.std(ddof=1):.4f}" for m, values in scores.items()}
    means = ", ".join(f"{m} {np.mean(folds[m]):.3f}" for m in PAPER_SPARSE)
    last = "last two layers"
    return [
        (
            "the three sparse features give about the same accuracy",
            "TF-IDF 0.795, counts 0.796, hashing 0.793",
            f"{means}; widest gap {said(widest)}",
            alike(sparse),
        ),
        (
            "features of the frozen encoder are better than sparse ones",
            "0.824 against 0.795",
            f"{np.mean(folds['last layer']):.3f} against "
            f"{np.mean(folds['TF-IDF']):.3f}: {said(features)}",
            better(features),
        ),
        (
            "its F1 is higher by far (at least 0.05, half of the paper's gap)",
            "0.872 against 0.742",
            said(f1),
            at_least(f1, 0.05),
        ),
        (
            "unfreezing makes no significant difference to frozen",
            PAPER_TESTS["unfrozen"],
            said(tests["unfrozen"]),
            insignificant(tests["unfrozen"]),
        ),
        (
            "nor does unfreezing the last two layers",
            PAPER_TESTS[last],
            said(tests[last]),
            insignificant(tests[last]),
        ),
        (
            "unfreezing makes the results of initialisations scatter more",
            "a picture",
            f"standard deviation {std['unfrozen']} against {std['frozen']}, "
            f"p = {p_more:.3f}",
            more,
        ),
        (
            "with only the last two layers they scatter less than with all",
            "a picture",
            f"{std[last]} against {std['unfrozen']}, p = {p_less:.3f}",
            less,
        ),
        (
            "the last four layers give better features than the last one (advice that "
            "the paper passes on)",
            "no figure",
            said(four),
            better(four),
        ),
    ]


def _scaled_down(settings, split):
    return (
        "Scaled down: a smaller encoder (all-MiniLM-L6-v2, six layers, "
        f"{settings.pooling} pooling) instead of BERT-base. Table 2 with "
        f"{split['n_train']:,} labelled texts instead of about 6,000, at most "
        f"{settings.max_length} tokens, "
        f"{settings.epochs} epochs, {settings.frozen_epochs} for the frozen model, "
        "whose features are computed once; the head at a rate of "
        f"{settings.head_lr or 5e-5:g} instead of 5e-5. Table 1 is at full size."
    )


def _on_f1(share):
    needed = {m: share_needed(*figures) for m, figures in PAPER_TUNED.items()}
    frozen = needed.pop("frozen")
    others = ", ".join(f"{part:.0%}" for part in needed.values())
    return (
        "On the paper's F1: with an accuracy of 0.824, an F1 of 0.872 needs "
        f"{frozen:.0%} of the texts to be true positives (F1 (1 - accuracy) / (2 - 2 "
        f"F1)). {share:.0%} of our test texts are disasters, and 43 % of all tweets; "
        "so it can be F1 of neither class of such a test set, and those of the other "
        f"two models ({others}) only that of the other class. Hence both here."
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
