"""Values that the tables of eindor2020.py are made of, and which runs count."""

import numpy as np

STRATEGIES = ("LC", "Dropout", "PE", "EGL", "Core-Set", "DAL")
ALL = ("random", *STRATEGIES)
METRICS = {"accuracy": "accuracy", "f1": "F1"}
SHARE = 0.95


def metric_of(scenario):
    """The score that a scenario is judged by."""
    return "accuracy" if scenario == "balanced" else "f1"


def pairs(records):
    """Pairs of data set and scenario, in order."""
    return list(dict.fromkeys((r["data"], r["scenario"]) for r in records))


def pick(records, pair, strategy):
    """Runs of one strategy on a pair of data set and scenario, by seed."""
    wanted = (*pair, strategy)
    found = [r for r in records if (r["data"], r["scenario"], r["strategy"]) == wanted]
    return sorted(found, key=lambda r: r["seed"])


def last(records, pair, strategy, metric):
    """Percent after the last round, by seed."""
    return [100 * r[metric][-1] for r in pick(records, pair, strategy)]


def trivial(records, pair, metric):
    """Percent that a model reaches without reading the texts.

    Accuracy by always naming the more frequent class, F1 by calling all texts wanted.
    """
    part = pick(records, pair, "random")[0]["wanted_test"]
    return 100 * (
        max(part, 1 - part) if metric == "accuracy" else 2 * part / (1 + part)
    )


def beats_trivial(records, pair, strategy):
    """Whether a strategy ends above the trivial F1, in the mean over seeds."""
    return np.mean(last(records, pair, strategy, "f1")) > trivial(records, pair, "f1")


def is_learnt(records, pair):
    """Whether any strategy, random choice too, ends above the trivial F1."""
    return any(beats_trivial(records, pair, s) for s in ALL)


def judged(records):
    """Pairs that are compared: those on which anything was learned.

    All, if nothing was learned on any, as may be in the smoke.
    """
    learned = [pair for pair in pairs(records) if is_learnt(records, pair)]
    return learned or pairs(records)


def means(runs, key):
    """Percent of a score, or a measure, as the mean over the rounds that asked.

    The model before the first batch is the same for all.
    """
    skip = 1 if key in METRICS else 0
    return 100 * np.array([np.mean(r[key][skip:]) for r in runs])


def gains(records, pair, strategy, metric="f1"):
    """Points by which a strategy leads random choice, by seed."""
    own, random = (pick(records, pair, s) for s in (strategy, "random"))
    return means(own, metric) - means(random, metric)


def relative(runs, random, key):
    """Percent by which batches have more of something than random ones, by seed."""
    return 100 * (means(runs, key) / means(random, key) - 1)


def by_data(chosen, values):
    """A value for each data set: the mean over its scenarios.

    Parameters
    ----------
    chosen : list of (str, str)
        Pairs of data set and scenario.
    values : list
        Of each pair a number, or several whose mean counts.
    """
    found = {}
    for (data, _), value in zip(chosen, values, strict=True):
        found.setdefault(data, []).append(np.mean(value))
    return np.array([np.mean(means) for means in found.values()])


def share(record):
    """Part of one core that a loop got, at most (it has a single thread)."""
    return record["processor"] / record["wall"]


def undisturbed(records):
    """Loops whose seconds on the wall are their own."""
    return [r for r in records if share(r) >= SHARE]


def seconds(records, data, strategy, key="query_seconds"):
    """Median over the undisturbed loops of their median seconds; nan without any."""
    found = [
        np.median(r[key])
        for r in undisturbed(records)
        if (r["data"], r["strategy"]) == (data, strategy)
    ]
    return float(np.median(found)) if found else np.nan
