"""What the tables of wang.py are made of: scores, epochs and seconds of its runs."""

from pathlib import Path

import numpy as np
from common import harness

from skactive.analysis import equal_time, paired_t
from skactive.simulation import Run

# The paper's task that a data set is or stands in for.
TASKS = {
    "mnli": "MNLI",
    "snli": "MNLI",
    "qnli": "QNLI",
    "sst2": "SST-2",
    "cola": "CoLA",
    "stsb": "STS-B",
    "mrpc": "MRPC",
    "rte": "RTE",
    "docstrings_two_pairs": "MNLI",
    "docstrings_two": "SST-2",
    "docstrings_numbers": "STS-B",
}
PAPER = harness.read_toml(Path(__file__).with_name("wang"))["paper"]
LARGE = ("MNLI", "QQP", "QNLI", "SST-2")
SMALL = ("CoLA", "STS-B", "MRPC", "RTE")
POINT = 1.0
PHASES = ("precomputation", "fit")
# Training ends after so many epochs in a row that gain less than this.
PATIENCE, TOL = 2, 1e-3


def name_of(n_last):
    return "all" if n_last is None else f"last {n_last}"


def title_of(data):
    """Name a data set as the paper does, if it is one of the paper's."""
    if data == "snli":
        return "SNLI"
    return data if data.startswith("docstrings") else TASKS[data]


def metric_of(data):
    names = {"mrpc": "F1", "stsb": "Spearman", "docstrings_numbers": "Spearman"}
    return names.get(data, "accuracy")


def twins(settings):
    """Last k of the paper's 12 layers, and as many here of the same share."""
    shares = {k: k * settings.depth / 12 for k in (4, 3, 2, 1)}
    return {k: int(n) for k, n in shares.items() if n in settings.last}


def pick(records, settings, data, n_last, lr=None, part="main"):
    """Runs of one setting, by seed, at its better rate by default."""
    lr = settings.chosen[data, n_last] if lr is None else lr
    wanted = {"part": part, "data": data, "n_last": n_last, "lr": lr}
    return harness.select(records, **wanted)


def pairs(records, settings, data, n_last):
    """Runs that train all layers, each with that of its seed that trains a few."""
    return zip(
        pick(records, settings, data, None),
        pick(records, settings, data, n_last),
        strict=True,
    )


# Data sets that count.


def learns(records, settings, data):
    """Whether some setting beats the trivial answer by more than a point.

    The interval over seeds of what it has more than that answer begins above it.
    """
    for n_last in (None, *settings.last):
        runs = pick(records, settings, data, n_last)
        test = paired_t([r["score"] for r in runs], [r["trivial"] for r in runs])
        if test.interval[0] > POINT / 100:
            return True
    return False


def counted(records, settings):
    """Data sets of which something was learned."""
    return [
        data
        for data in settings.data
        if settings.all_count or learns(records, settings, data)
    ]


def groups(records, settings):
    """Sort what counts into what is large in the paper and what is small."""
    names = counted(records, settings)
    return {
        "large": [data for data in names if TASKS[data] in LARGE],
        "small": [data for data in names if TASKS[data] in SMALL],
    }


# Scores.


def costs(records, settings, data, n_last):
    """Points that training fewer layers loses, for each seed."""
    both = pairs(records, settings, data, n_last)
    return [100 * (whole["score"] - part["score"]) for whole, part in both]


# Epochs and seconds.


def spent(record, clock):
    """Seconds of one run until it ended: the frozen bottom once, then the epochs."""
    return record["setup"][clock] + sum(record[clock])


def epoch_share(records, settings, data, n_last, kept=False):
    """Seconds of an epoch as parts of those with all layers trained, for each seed.

    With every layer run in every epoch, as in the paper, or the bottom kept.
    """
    part = "main" if kept else "plain"
    own, whole = (pick(records, settings, data, k, part=part) for k in (n_last, None))
    mean = [[np.mean(r[settings.clock]) for r in runs] for runs in (own, whole)]
    return np.divide(*mean)


def savings(records, settings, data, n_last, kept=False):
    """Percent of the time that fewer layers save until training stops, by seed."""
    both = pairs(records, settings, data, n_last)
    if kept:
        times = [[spent(r, settings.clock) for r in pair] for pair in both]
        return [100 * (1 - few / whole) for whole, few in times]
    shares = epoch_share(records, settings, data, n_last)
    return [
        100 * (1 - share * len(few["seconds"]) / len(whole["seconds"]))
        for share, (whole, few) in zip(shares, both, strict=True)
    ]


# Equal time.


def make_run(record, times, setup):
    """Write the epochs of one training as rounds of a run, for the analysis."""
    rounds = [
        {"queried": [i], "scores": {"score": score, "valid": valid}, "fit_seconds": s}
        for i, (score, valid, s) in enumerate(
            zip(record["epoch_scores"], record["valid_scores"], times, strict=True)
        )
    ]
    return Run(
        rounds,
        ledger={"precomputation": setup},
        info={"strategy": name_of(record["n_last"]), "seed": record["seed"]},
    )


def make_runs(records, settings, data, n_last, kept=False):
    """Runs of a setting, with the bottom kept or as if every layer ran.

    The unit of time is the mean epoch of all layers with the same seed, because seeds
    ran on processors of different speed.
    """
    clock, runs = settings.clock, []
    is_measured = kept or n_last is None
    shares = [] if is_measured else epoch_share(records, settings, data, n_last)
    for i, (whole, few) in enumerate(pairs(records, settings, data, n_last)):
        epoch = np.mean(whole[clock])
        if is_measured:
            times, setup = [s / epoch for s in few[clock]], few["setup"][clock] / epoch
        else:
            times, setup = [shares[i]] * len(few[clock]), whole["setup"][clock] / epoch
        runs.append(make_run(few, times, setup))
    return runs


def budgets(records, settings, data):
    """A quarter, half and all of the time that all layers take until they stop.

    In mean epochs of these runs.
    """
    clock = settings.clock
    whole = pick(records, settings, data, None)
    times = [spent(r, clock) / np.mean(r[clock]) for r in whole]
    return np.mean(times) * np.array([0.25, 0.5, 1.0])


def at_equal_time(runs, times):
    """Scores within each budget of the model that was best on the validation part."""
    return equal_time(runs, times, "score", chosen_by="valid", phases=PHASES)
