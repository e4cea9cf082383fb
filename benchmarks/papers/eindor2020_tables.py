"""The tables and the pictures of eindor2020.py."""

from itertools import product

import numpy as np
from common import harness
from eindor2020_cells import MEASURES, SCENARIOS
from eindor2020_claims import make_claims
from eindor2020_scores import (
    ALL,
    METRICS,
    STRATEGIES,
    by_data,
    gains,
    judged,
    last,
    means,
    metric_of,
    pairs,
    pick,
    relative,
    seconds,
    trivial,
    undisturbed,
)
from verdicts import claim_tables

from skactive.analysis import wilcoxon
from skactive.plotting import ActiveLearningCurveDisplay

NAMES = {
    "sst2": "SST-2",
    "ag_news": "AG News",
    "cola": "CoLA",
    "disaster_tweets": "tweets",
    "trec": "TREC",
    "tweet_emotion": "emotion",
    "tweet_offensive": "offensive",
}


def name_of(data):
    return NAMES.get(data, data)


def make_tables(records, settings):
    """Claims, leads over random choice, scores of each scenario, batches, seconds."""
    tables = claim_tables(make_claims, records, settings)
    tables["leads"] = leads(records)
    for scenario in SCENARIOS:
        tables[scenario] = scores(records, scenario)
    return tables | {"batches": batches(records), "times": times(records, settings)}


def compare(records):
    """Test each strategy against random choice by Wilcoxon over pairs."""
    scores = {
        s: [means(pick(records, pair, s), "f1").mean() for pair in judged(records)]
        for s in ALL
    }
    return {s: wilcoxon(scores[s], scores["random"]) for s in STRATEGIES}


def leads(records):
    """Leads over random choice: by scenario, in all, and tested over pairs."""
    tests, chosen, rows = compare(records), judged(records), []
    for s in STRATEGIES:
        cells = []
        for scenario in SCENARIOS:
            metric = metric_of(scenario)
            within = [pair for pair in chosen if pair[1] == scenario]
            own = by_data(within, [gains(records, p, s, metric) for p in within])
            cells.append(harness.said(own) if len(own) else "")
        every = [gains(records, pair, s) for pair in chosen]
        cells.append(harness.said(by_data(chosen, every)))
        ahead = sum(values.mean() > 0 for values in every)
        p = tests[s].p_value
        cells += [f"{ahead} of {len(chosen)}", f"{p:.3f}"]
        rows.append([s, *cells, f"{min(len(tests) * p, 1.0):.3f}"])
    head = [f"{s}, {METRICS[metric_of(s)]}" for s in SCENARIOS]
    head = ["strategy", *head, "all, F1", "ahead on", "p", "p (Bonferroni)"]
    return harness.table(head, rows)


def scores(records, scenario):
    """Scores after the last round; what is trivial, and what there was before."""
    data, rows = [d for d, s in pairs(records) if s == scenario], []
    for s in ALL:
        cells = []
        for name in data:
            ends = [last(records, (name, scenario), s, m) for m in METRICS]
            cells.append(" / ".join(harness.mean_std(values, 1) for values in ends))
        rows.append([s, *cells])
    first, least = [], []
    for name in data:
        runs = pick(records, (name, scenario), "random")
        begun = [100 * np.mean([r[m][0] for r in runs]) for m in METRICS]
        first.append(" / ".join(f"{value:.1f}" for value in begun))
        guess = [trivial(records, (name, scenario), m) for m in METRICS]
        least.append(" / ".join(f"{value:.1f}" for value in guess))
    rows.append(["(before the first batch)", *first])
    rows.append(["(trivial)", *least])
    return harness.table(["strategy", *map(name_of, data)], rows)


def _above_random(records, chosen, strategy, key):
    """Percent by which batches have more of a measure, in the mean over data sets."""
    both = [[pick(records, pair, s) for s in (strategy, "random")] for pair in chosen]
    return by_data(chosen, [relative(*runs, key) for runs in both]).mean()


def batches(records):
    """What was asked for: how diverse, how representative, how much of it wanted."""
    chosen, rows = judged(records), []
    for s in ALL:
        cells = [f"{_above_random(records, chosen, s, key):+.0f}" for key in MEASURES]
        for scenario in SCENARIOS:
            shares = [
                r["wanted"]
                for pair in chosen
                for r in pick(records, pair, s)
                if pair[1] == scenario
            ]
            cells.append(f"{np.mean(shares):.0%}" if shares else "")
        rows.append([s, *cells])
    return harness.table(
        ["strategy", "diversity, %", "representativeness, %"]
        + [f"wanted, {scenario}" for scenario in SCENARIOS],
        rows,
    )


def times(records, settings):
    """Seconds of queries, and for comparison those of one training."""
    rows, found = [], {}
    for s in ALL:
        found[s] = np.array([seconds(records, data, s) for data in settings.data])
    for s in ALL:
        ratio = np.mean(found[s] / found["LC"])
        n = sum(r["strategy"] == s for r in undisturbed(records))
        rows.append([s, n, *(f"{value:.2f}" for value in found[s]), f"{ratio:.1f}"])
    fits = {
        data: [r["fit_seconds"][-1] for r in undisturbed(records) if r["data"] == data]
        for data in settings.data
    }
    training = [f"{np.median(v):.2f}" if v else "nan" for v in fits.values()]
    n = len(undisturbed(records))
    rows.append(["(training of the last round)", n, *training, ""])
    head = ["strategy", "loops", *map(name_of, settings.data), "by those of LC"]
    return harness.table(head, rows)


def draw(records, settings):
    """Draw curves, a panel a pair, and what batches are like, a panel a scenario."""
    data = settings.data
    n = len(data)
    figure, axes = harness.open_panels(n, 3, 11, 2.4 * n, layout=None)
    styles = {}
    for ax, (name, scenario) in zip(axes.flat, product(data, SCENARIOS), strict=True):
        if (name, scenario) not in pairs(records):
            ax.remove()
            continue
        metric = metric_of(scenario)
        curves = {
            s: [
                harness.as_run(r["n_labeled"], r[metric], {"seed": r["seed"]}, metric)
                for r in pick(records, (name, scenario), s)
            ]
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

    figure, (axes,) = harness.open_panels(1, 3, 10.5, 3.4, layout=None)
    for ax, scenario in zip(axes, SCENARIOS, strict=True):
        own = [pair for pair in judged(records) if pair[1] == scenario]
        if not own:
            ax.remove()
            continue
        for s, line in styles.items():
            x, y = (_above_random(records, own, s, key) for key in MEASURES)
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


def _finish(figure, lines, settings, name):
    """Lay out the panels, with one legend on the right, and save."""
    figure.set_layout_engine("constrained")
    place = {"loc": "outside right center", "frameon": False}
    figure.legend(list(lines.values()), list(lines), **place)
    harness.save_figure(figure, settings, name, 64)
