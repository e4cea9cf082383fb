"""The page of eindor2020.py: tables and pictures."""

from itertools import product

import numpy as np
from eindor2020_cells import SCENARIOS
from eindor2020_claims import RULES, claims
from eindor2020_scores import (
    ALL,
    METRICS,
    SHARE,
    beats_trivial,
    by_data,
    is_learnt,
    judged,
    mean_over,
    metric_of,
    pairs,
    pick,
    relative,
    share,
    trivial,
    undisturbed,
)
from eindor2020_tables import batches, leads, name_of, scores, times
from pages import claims_table, figure_path

from skactive.plotting import ActiveLearningCurveDisplay
from skactive.simulation import Run

WANTED = {
    "sst2": "positive",
    "ag_news": "world news",
    "cola": "not acceptable",
    "disaster_tweets": "disasters",
}
PROGRAM = "https://github.com/IBM/low-resource-text-classification-framework"


def page(records, settings):
    """Write the page."""
    parts = [
        "# Ein-Dor et al.: active learning for BERT",
        "The paper fine-tunes BERT after every batch of labels and compares six ways "
        "of choosing the batch with random choice, for two classes, of which one is "
        "wanted. Tasks here: " + _tasks(records, settings) + ". *Balanced*: the first "
        "labels are random. *Imbalanced*: the wanted class is sub-sampled to "
        f"{settings.sizes['prior']:.0%}{_rarity(records)}; the first labels "
        "are a fair sample of it, with as many random texts assumed to be of the other "
        "class. *Imbalanced-practical*: the sample comes from a search for keywords.",
        "Available is a summary of the paper without its figures, so the claims below "
        "stand without numbers of the paper. Scenarios, strategies, the 10% and five "
        "epochs are from the summary. What else is said of the paper's runs is from "
        f"their [published program]({PROGRAM}): its lists of data sets, and what its "
        "runners and its model are set to. How many seeds the paper took, neither "
        "says.",
        _scaled_down(settings) if settings.scale != "paper" else "",
        "## Claims",
        claims_table(claims(records)),
        RULES,
        _left_out(records),
        "## Against random choice",
        "Mean lead over random choice in points, with its interval over data sets, in "
        "each scenario by its own score and in all by F1. Then Wilcoxon's test of F1 "
        f"over the {len(judged(records))} pairs of data set and scenario.",
        leads(records),
        "![Scores against labels](images/eindor2020_curves.png)",
        f"Means over {settings.seeds} seeds. Labels include the assumed ones. Dotted: "
        "the trivial score.",
        "## Scores after the last round",
        "Percent, accuracy / F1 of the wanted class, means ± standard deviation over "
        f"{settings.seeds} seeds. *Trivial* is the accuracy of always naming the more "
        "frequent class, and the F1 of calling every text wanted.",
        *(
            f"### {scenario.capitalize()}\n\n{scores(records, scenario)}"
            for scenario in SCENARIOS
        ),
        "## What the batches are like",
        "Diversity and representativeness (KNN density, ten neighbors) in percent "
        "above those of random batches of the same seed, in the pretrained encoder's "
        "space, so that one measure serves all. "
        "Diversity is how near the pool is to the batch: a batch of outliers has "
        "little. Then the share of the wanted class among what was asked for. All are "
        "means over data sets, those pairs left out on which nothing was learned.",
        batches(records),
        "![Diversity and representativeness](images/eindor2020_batches.png)",
        "## Run time",
        "Seconds of one query on the wall, medians over scenarios, rounds and seeds, "
        "the pass of the pool through the trained layers included"
        + (" (what lies below is kept). " if settings.training["freeze"] else ". ")
        + f"Of {len(records)} loops, the {len(undisturbed(records))} count that had at "
        f"least {SHARE:.0%} of a core; how many that are of each strategy stands in "
        "the table. Run time has nothing to do with learning, so all data sets count.",
        times(records, settings),
        "## How it was measured",
        settings.provenance,
        _busy(records),
    ]
    return "\n\n".join(part for part in parts if part)


def _rarity(records):
    """Say how rare the wanted class came out."""
    rare = [r for r in records if r["scenario"] != "balanced"]
    ranges = []
    for key, what in (("wanted_pool", "pools"), ("wanted_test", "test texts")):
        parts = [100 * r[key] for r in rare]
        ranges.append(f"{min(parts):.1f} to {max(parts):.1f}% of the {what}")
    return (
        " (the cut to size comes after that, so that it makes up "
        f"{' and '.join(ranges)})"
    )


def _left_out(records):
    """Say which pairs no verdict rests on."""
    kept = [pair for pair in pairs(records) if is_learnt(records, pair)]
    out = [pair for pair in pairs(records) if pair not in kept]
    below = [pair for pair in kept if not beats_trivial(records, pair, "random")]
    found = f"That leaves out {_listed(out)}, of which only the seconds count."
    if not kept:
        found = "That is so on all, so all stay, and the verdicts mean nothing."
    if kept and below:
        found += (
            " Where something was learned, random choice alone did not get above the "
            f"trivial F1 on {_listed(below)}."
        )
    return (
        "*Left out*: pairs of data set and scenario on which nothing was learned. The "
        "rule: F1 after the last round, in the mean over seeds, is for none of the "
        "seven strategies (random choice too) above the trivial one, that of calling "
        f"every text wanted. {found}"
    )


def _listed(chosen):
    names = [f"{name_of(data)} {scenario}" for data, scenario in chosen]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "none"


def _tasks(records, settings):
    shares = {}
    for r in records:
        shares.setdefault(r["data"], r["wanted_pool"])  # balanced comes first
    return ", ".join(
        f"{name_of(data)} ({WANTED.get(data, 'one class')}, {shares[data]:.0%})"
        for data in settings.data
    )


def _scaled_down(settings):
    training, sizes, first = settings.training, settings.sizes, settings.n_initial
    rounds, batch = settings.schedule["n_rounds"], settings.schedule["batch_size"]
    last = first["balanced"] + rounds * batch
    return (
        "Scaled down: all-MiniLM-L6-v2 (six layers, mean pooling) instead of "
        f"BERT-base, its first {training['freeze']} layers frozen, so that they run "
        f"once; texts cut at {training['max_length']} tokens; pools of "
        f"{sizes['n_pool']:,} texts and at most {sizes['n_test']:,} test texts; "
        f"{first['balanced']} first labels ({first['wanted']} and as many assumed "
        f"ones where a class is rare) instead of 100 (100), {rounds} rounds of {batch} "
        f"instead of 50, so {last} in the end; {training['max_epochs']} epochs at "
        f"{training['lr']:g}, {training['head_lr']:g} for the head, in batches of "
        f"{training['batch_size']}, the last epoch kept; dropout in the head alone, "
        f"{settings.n_draws} passes; {settings.seeds} seeds; four data sets, of which "
        "the paper's program has AG News and CoLA; and CoLA, whose wanted "
        "sentences no keyword finds, without the practical scenario."
    )


def _busy(records):
    wall, processor = (sum(r[k] for r in records) for k in ("wall", "processor"))
    shares = [share(r) for r in records]
    quarter, median = np.quantile(shares, [0.25, 0.5])
    return (
        f"All loops took {processor / 60:.0f} minutes of the processor and "
        f"{wall / 60:.0f} on the wall, on one thread; other work on the machine makes "
        "the second longer. The share that a loop got of its core was "
        f"{median:.0%} in the median, and below {quarter:.0%} for a quarter of the "
        "loops. The records hold the share of whole loops (`processor` by `wall`), not "
        "that of single queries."
    )


def as_run(record, metric):
    """Make the Run that a record is left of; it no longer knows what was asked."""
    rounds = [
        {"asked": [], "n_labeled": n, "scores": {metric: score}}
        for n, score in zip(record["n_labeled"], record[metric], strict=True)
    ]
    return Run(rounds, info={"seed": record["seed"], "data": record["data"]})


def draw(records, settings):
    """Draw curves, a panel a pair, and what batches are like, a panel a scenario."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    data = settings.data
    figure, axes = plt.subplots(
        3, len(data), figsize=(3.2 * len(data) + 1.4, 8), squeeze=False
    )
    styles = {}
    for ax, (scenario, name) in zip(axes.flat, product(SCENARIOS, data), strict=True):
        if (name, scenario) not in pairs(records):
            ax.remove()
            continue
        metric = metric_of(scenario)
        curves = {
            s: [as_run(r, metric) for r in pick(records, (name, scenario), s)]
            for s in ALL
        }
        display = ActiveLearningCurveDisplay.from_runs(curves, band=None, ax=ax)
        display.legend_.remove()
        level = trivial(records, (name, scenario), metric) / 100
        ax.axhline(level, color="0.5", linewidth=1, linestyle=":", zorder=0)
        ax.set_title(f"{name_of(name)}, {scenario}", fontsize=9)
        ax.set_ylabel(METRICS[metric])
        styles = display.lines_
    _finish(figure, styles, settings, "eindor2020_curves.png")
    plt.close(figure)

    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4))
    for ax, scenario in zip(axes, SCENARIOS, strict=True):
        own = [pair for pair in judged(records) if pair[1] == scenario]
        if not own:
            ax.remove()
            continue
        for s, line in styles.items():
            x, y = (
                by_data(own, mean_over(records, relative, [s], key)).mean()
                for key in ("diversity", "representativeness")
            )
            style = {"marker": line.get_marker(), "color": line.get_color()}
            ax.plot(x, y, linestyle="", markersize=7, **style)
        ax.axhline(0, color="0.8", linewidth=1, zorder=0)
        ax.axvline(0, color="0.8", linewidth=1, zorder=0)
        ax.margins(0.1)
        ax.set_title(scenario, fontsize=9)
        ax.set_xlabel("diversity, % above random")
    axes[0].set_ylabel("representativeness, % above random")
    marks = dict(zip(styles, axes[0].get_lines(), strict=False))
    _finish(figure, marks, settings, "eindor2020_batches.png")
    plt.close(figure)


def _finish(figure, lines, settings, name):
    """Lay out the panels, with one legend on the right, and save."""
    figure.set_layout_engine("constrained")
    place = {"loc": "outside right center", "frameon": False}
    figure.legend(list(lines.values()), list(lines), **place)
    figure.savefig(figure_path(settings, name), dpi=64)
