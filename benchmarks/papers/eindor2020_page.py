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
        "of choosing the batch with random choice. The tasks have two classes, one of "
        "which is the wanted one. Tasks here: "
        + _tasks(records, settings)
        + ". *Balanced*: the first "
        "labels are random. *Imbalanced*: the wanted class is sub-sampled to "
        f"{settings.sizes['prior']:.0%}{_rarity(records)}; the first labels "
        "are a random sample of it and the same number of random texts, which are "
        "assumed to be of the other class. *Imbalanced-practical*: the sample is drawn "
        "from the results of a keyword search.",
        "Only a summary of the paper without its figures was available, so the claims "
        "below have no numbers of the paper. The scenarios, the strategies, the 10% "
        "and the five epochs are from the summary. All other statements about the "
        f"paper's runs are from the [published program]({PROGRAM}): its lists of data "
        "sets and the settings of its runners and its model. Neither states the number "
        "of seeds.",
        _scaled_down(settings) if settings.scale != "paper" else "",
        "## Claims",
        claims_table(claims(records)),
        RULES,
        _left_out(records),
        "## Against random choice",
        "Mean difference from random choice in points, with its interval over data "
        "sets. Each scenario uses its own score, and the column for all scenarios uses "
        "F1. The last columns are Wilcoxon's test of F1 over the "
        f"{len(judged(records))} pairs of data set and scenario.",
        leads(records),
        "![Scores against labels](images/eindor2020_curves.png)",
        f"Means over {settings.seeds} seeds. Labels include the assumed ones. Dotted: "
        "the trivial score.",
        "## Scores after the last round",
        "Percent, accuracy / F1 of the wanted class, means ± standard deviation over "
        f"{settings.seeds} seeds. *Trivial* is the accuracy of always predicting the "
        "more frequent class, and the F1 of predicting the wanted class for every "
        "text.",
        *(
            f"### {scenario.capitalize()}\n\n{scores(records, scenario)}"
            for scenario in SCENARIOS
        ),
        "## Properties of the batches",
        "Diversity and representativeness (KNN density, ten neighbors) in percent "
        "above those of random batches of the same seed, computed on the features of "
        "the pretrained encoder for all strategies. "
        "Diversity measures how near the pool is to the batch, so a batch of outliers "
        "has a low value. The last columns are the share of the wanted class among the "
        "queried texts. All values are means over data sets, without the pairs on "
        "which nothing was learned.",
        batches(records),
        "![Diversity and representativeness](images/eindor2020_batches.png)",
        "## Run time",
        "Wall time of one query in seconds, as medians over scenarios, rounds and "
        "seeds. It includes the pass of the pool through the trained layers"
        + (
            " (activations of the frozen layers are cached). "
            if settings.training["freeze"]
            else ". "
        )
        + f"Of {len(records)} loops, the {len(undisturbed(records))} that had at least "
        f"{SHARE:.0%} of a core are counted; the table has their number for each "
        "strategy. Run time does not depend on learning, so all data sets are counted.",
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
        " (the pool is cut to size after that, so the class makes up "
        f"{' and '.join(ranges)})"
    )


def _left_out(records):
    """Say which pairs no verdict rests on."""
    kept = [pair for pair in pairs(records) if is_learnt(records, pair)]
    out = [pair for pair in pairs(records) if pair not in kept]
    below = [pair for pair in kept if not beats_trivial(records, pair, "random")]
    found = f"This excludes {_listed(out)}, of which only the seconds are used."
    if not kept:
        found = "This is true of all pairs, so all are kept and no verdict is valid."
    if kept and below:
        found += (
            " Of the other pairs, only random choice did not exceed the trivial F1 on "
            f"{_listed(below)}."
        )
    return (
        "*Left out*: pairs of data set and scenario on which nothing was learned. "
        "These are the pairs for which no strategy, including random choice, has a "
        "mean F1 after the last round above the trivial one, that of predicting the "
        f"wanted class for every text. {found}"
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
        f"BERT-base, with its first {training['freeze']} layers frozen and cached; "
        f"texts cut at {training['max_length']} tokens; pools of "
        f"{sizes['n_pool']:,} texts and at most {sizes['n_test']:,} test texts; "
        f"{first['balanced']} first labels ({first['wanted']} and as many assumed "
        f"ones if a class is rare) instead of 100 (100), {rounds} rounds of {batch} "
        f"instead of 50, so {last} labels in total; {training['max_epochs']} epochs at "
        f"{training['lr']:g}, {training['head_lr']:g} for the head, in batches of "
        f"{training['batch_size']}, keeping the last epoch; dropout in the head only, "
        f"{settings.n_draws} passes; {settings.seeds} seeds; four data sets, of which "
        "the paper's program has AG News and CoLA. CoLA has no practical scenario, "
        "because no keyword finds its wanted sentences."
    )


def _busy(records):
    wall, processor = (sum(r[k] for r in records) for k in ("wall", "processor"))
    shares = [share(r) for r in records]
    quarter, median = np.quantile(shares, [0.25, 0.5])
    return (
        f"All loops took {processor / 60:.0f} minutes of processor time and "
        f"{wall / 60:.0f} minutes of wall time on one thread; other work on the "
        "machine increases the wall time. The median share of a core that a loop had "
        f"was {median:.0%}, and a quarter of the loops had less than {quarter:.0%}. "
        " The records hold the share of whole loops (`processor` by `wall`), not "
        "that of single queries."
    )


def as_run(record, metric):
    """Make the Run that a record is left of; it no longer knows what was asked."""
    rounds = [
        {"queried": [], "n_labeled": n, "scores": {metric: score}}
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
