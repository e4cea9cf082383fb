"""The page of eindor2020.py: tables and pictures."""

from itertools import product

import numpy as np
from eindor2020_cells import SCENARIOS
from eindor2020_claims import (
    ALL,
    STRATEGIES,
    claims,
    compare,
    gains,
    metric_of,
    over_pairs,
    pairs,
    pick,
    relative,
    seconds,
)
from pages import claims_table, figure_path, mean_std, table

from skactive.plotting import ActiveLearningCurveDisplay
from skactive.runs import Run

NAMES = {
    "sst2": "SST-2",
    "ag_news": "AG News",
    "cola": "CoLA",
    "disaster_tweets": "tweets",
}
WANTED = {
    "sst2": "positive",
    "ag_news": "world news",
    "cola": "not acceptable",
    "disaster_tweets": "disasters",
}
METRICS = {"accuracy": "accuracy", "f1": "F1"}
_RULES = (
    "The verdicts are computed. A score is the mean over the rounds after the first "
    "labels, accuracy in the balanced scenario, F1 of the wanted class in the others. "
    "Intervals (95 %, Student's, in brackets) and tests are over the pairs of data set "
    "and scenario, each the mean over the seeds, unless said otherwise: a claim holds "
    "where the interval lies above (or below) 0, or above 2 where twice is claimed; "
    "does not hold where it lies on the other side; cannot tell where it holds the "
    "limit. *Better than random*: Wilcoxon's signed ranks with Bonferroni's correction "
    "for six strategies; the sign where p < 0.05, otherwise cannot tell. *In most*: "
    "the exact interval of the share against one half. *Differ*: p < 0.05, otherwise "
    "cannot tell. The scenarios of one data set share texts, so the p are rather too "
    "small than too large."
)


def page(records, settings):
    """Write the page."""
    parts = [
        "# Ein-Dor et al.: active learning for BERT",
        "The paper fine-tunes BERT after every batch of labels and compares six ways "
        "of choosing the batch with random choice, for two classes, of which one is "
        "wanted. Tasks here: " + _tasks(records, settings) + ". *Balanced*: the first "
        "labels are random. *Imbalanced*: the wanted class makes up "
        f"{settings.sizes['prior']:.0%} of pool and test texts, and the first labels "
        "are a fair sample of it, with as many random texts assumed to be of the other "
        "class. *Imbalanced-practical*: the sample comes from a search for keywords.",
        "At hand is a summary of the paper without its figures, so the claims below "
        "stand without numbers of the paper.",
        _scaled_down(settings) if settings.scale != "paper" else "",
        "## Claims",
        claims_table(claims(records)),
        _RULES,
        "## Against random choice",
        "Mean lead over random choice in points, by scenario and over all pairs, and "
        "Wilcoxon's test over all pairs. With four data sets the test cannot reach "
        "p < 0.05 within one scenario.",
        _leads(records),
        "![Scores against labels](images/eindor2020_curves.png)",
        f"Means over {settings.seeds} seeds. Labels include the assumed ones.",
        "## Scores after the last round",
        "Percent, accuracy / F1 of the wanted class, means ± standard deviation over "
        f"{settings.seeds} seeds.",
        *(
            f"### {scenario.capitalize()}\n\n{_scores(records, scenario)}"
            for scenario in SCENARIOS
        ),
        "## What the batches are like",
        "Diversity and representativeness (KNN density, ten neighbours) in percent "
        "above those of random batches of the same seed, in the pretrained encoder's "
        "space, so that one measure serves all. "
        "Diversity is how near the pool is to the batch: a batch of outliers has "
        "little. Then the share of the wanted class among what was asked for.",
        _batches(records),
        "![Diversity and representativeness](images/eindor2020_batches.png)",
        "Means over data sets and seeds.",
        "## Run time",
        "Seconds of one query on the wall, medians over scenarios, rounds and seeds, "
        "the pass of the pool through the trained layers included"
        + (" (what lies below is kept)." if settings.training["freeze"] else "."),
        _times(records, settings),
        "## How it was measured",
        settings.provenance,
        _busy(records),
    ]
    return "\n\n".join(part for part in parts if part)


def name_of(data):
    return NAMES.get(data, data)


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
        f"{settings.n_draws} passes; {settings.seeds} seeds instead of five; four data "
        "sets, of which the paper has AG News and CoLA; and CoLA, whose wanted "
        "sentences no keyword finds, without the practical scenario."
    )


def _leads(records):
    comparison, rows = compare(records), []
    for s in STRATEGIES:
        means = {pair: gains(records, pair, s).mean() for pair in pairs(records)}
        by_scenario = [
            np.mean([gain for pair, gain in means.items() if pair[1] == scenario])
            for scenario in SCENARIOS
        ]
        values = list(means.values())
        rows.append(
            [
                s,
                *(f"{value:+.1f}" for value in (*by_scenario, np.mean(values))),
                f"{np.sum(np.array(values) > 0)} of {len(values)}",
                f"{comparison.results[s].p_value:.3f}",
                f"{comparison.adjusted[s]:.3f}",
            ]
        )
    head = ["strategy", *SCENARIOS, "all", "ahead on", "p", "p (Bonferroni)"]
    return table(head, rows)


def _scores(records, scenario):
    data = [d for d, s in pairs(records) if s == scenario]
    rows = []
    for s in ALL:
        cells = []
        for name in data:
            runs = pick(records, (name, scenario), s)
            ends = [
                mean_std([100 * r[metric][-1] for r in runs], 1) for metric in METRICS
            ]
            cells.append(" / ".join(ends))
        rows.append([s, *cells])
    first = [
        " / ".join(f"{100 * np.mean([r[m][0] for r in runs]):.1f}" for m in METRICS)
        for runs in (pick(records, (name, scenario), "random") for name in data)
    ]
    rows.append(["(before the first batch)", *first])
    return table(["strategy", *map(name_of, data)], rows)


def _batches(records):
    rows = []
    for s in ALL:
        cells = [
            f"{over_pairs(records, relative, [s], key).mean():+.0f}"
            for key in ("diversity", "representativeness")
        ]
        for scenario in SCENARIOS:
            shares = [
                r["wanted"]
                for pair in pairs(records)
                if pair[1] == scenario
                for r in pick(records, pair, s)
            ]
            cells.append(f"{np.mean(shares):.0%}")
        rows.append([s, *cells])
    return table(
        ["strategy", "diversity, %", "representativeness, %"]
        + [f"wanted, {scenario}" for scenario in SCENARIOS],
        rows,
    )


def _times(records, settings):
    """Seconds of queries, and for comparison those of one training."""
    rows, found = [], {}
    for s in ALL:
        for data in settings.data:
            own = [pair for pair in pairs(records) if pair[0] == data]
            found[s, data] = np.median([seconds(records, pair, s) for pair in own])
    for s in ALL:
        ratio = np.mean([found[s, d] / found["LC", d] for d in settings.data])
        rows.append([s, *(f"{found[s, d]:.2f}" for d in settings.data), f"{ratio:.1f}"])
    training = [
        f"{np.median([r['fit_seconds'][-1] for r in records if r['data'] == d]):.2f}"
        for d in settings.data
    ]
    rows.append(["(training of the last round)", *training, ""])
    return table(["strategy", *map(name_of, settings.data), "by those of LC"], rows)


def _busy(records):
    wall, processor = (sum(r[k] for r in records) for k in ("wall", "processor"))
    return (
        f"All loops took {processor / 60:.0f} minutes of the processor and "
        f"{wall / 60:.0f} on the wall, on one thread; other work on the machine makes "
        f"the second longer. The share that a loop got of its core was "
        f"{np.median([r['processor'] / r['wall'] for r in records]):.0%} (median)."
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
        ax.set_title(f"{name_of(name)}, {scenario}", fontsize=9)
        ax.set_ylabel(METRICS[metric])
        styles = display.lines_
    _finish(figure, styles, settings, "eindor2020_curves.png")
    plt.close(figure)

    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4))
    for ax, scenario in zip(axes, SCENARIOS, strict=True):
        own = [r for r in records if r["scenario"] == scenario]
        for s, line in styles.items():
            x, y = (
                over_pairs(own, relative, [s], key).mean()
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
