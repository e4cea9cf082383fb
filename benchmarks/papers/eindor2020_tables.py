"""The tables of the page of eindor2020.py."""

import numpy as np
from eindor2020_cells import SCENARIOS
from eindor2020_claims import compare
from eindor2020_scores import (
    ALL,
    METRICS,
    STRATEGIES,
    by_data,
    gains,
    judged,
    last,
    mean_over,
    metric_of,
    pairs,
    pick,
    relative,
    seconds,
    trivial,
    undisturbed,
)
from pages import mean_std, table
from verdicts import said

NAMES = {
    "sst2": "SST-2",
    "ag_news": "AG News",
    "cola": "CoLA",
    "disaster_tweets": "tweets",
}


def name_of(data):
    return NAMES.get(data, data)


def _within(chosen, scenario):
    return [pair for pair in chosen if pair[1] == scenario]


def leads(records):
    """Leads over random choice: by scenario, in all, and tested over pairs."""
    (tests, corrected), chosen, rows = compare(records), judged(records), []
    for s in STRATEGIES:
        cells = []
        for scenario in SCENARIOS:
            value = mean_over(records, gains, [s], metric_of(scenario))
            own = by_data(_within(chosen, scenario), value)
            cells.append(said(own) if len(own) else "")
        cells.append(said(by_data(chosen, mean_over(records, gains, [s]))))
        ahead = sum(gains(records, pair, s).mean() > 0 for pair in chosen)
        cells += [f"{ahead} of {len(chosen)}", f"{tests[s].p_value:.3f}"]
        rows.append([s, *cells, f"{corrected[s]:.3f}"])
    head = [f"{s}, {METRICS[metric_of(s)]}" for s in SCENARIOS]
    head = ["strategy", *head, "all, F1", "ahead on", "p", "p (Bonferroni)"]
    return table(head, rows)


def scores(records, scenario):
    """Scores after the last round; what is trivial, and what there was before."""
    data, rows = [d for d, s in pairs(records) if s == scenario], []
    for s in ALL:
        cells = []
        for name in data:
            ends = [last(records, (name, scenario), s, m) for m in METRICS]
            cells.append(" / ".join(mean_std(values, 1) for values in ends))
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
    return table(["strategy", *map(name_of, data)], rows)


def batches(records):
    """What was asked for: how diverse, how representative, how much of it wanted."""
    chosen, rows = judged(records), []
    for s in ALL:
        cells = [
            f"{by_data(chosen, mean_over(records, relative, [s], key)).mean():+.0f}"
            for key in ("diversity", "representativeness")
        ]
        for scenario in SCENARIOS:
            shares = [
                r["wanted"]
                for pair in _within(chosen, scenario)
                for r in pick(records, pair, s)
            ]
            cells.append(f"{np.mean(shares):.0%}" if shares else "")
        rows.append([s, *cells])
    return table(
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
    return table(head, rows)
