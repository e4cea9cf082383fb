"""The claims of the page of wang.py: what the paper says, what came here, verdicts."""

import numpy as np
from verdicts import above, below, said

from skactive.analysis import equal_time
from skactive.runs import Run

LARGE = ("mnli", "snli", "qnli", "qqp", "sst2", "docstrings_two_pairs")
PAPER = {
    "large": {
        "cost": {4: 0.2125, 3: 0.4925, 2: 1.67, 1: 2.17},
        "saving": {2: 37.3, 1: 49.61},
    },
    "small": {
        "cost": {4: 2.36, 3: 2.52, 2: 2.79, 1: 4.25},
        "saving": {4: 33.48, 3: 53.24, 2: 44.15, 1: 48.15},
    },
}
POINT = 1.0
TENTH = 10.0


def name_of(n_last):
    return "all" if n_last is None else f"last {n_last}"


def spent(record, clock):
    """Seconds of one run until it ended: the frozen bottom once, then the epochs."""
    return record["setup"][clock] + sum(record[clock])


def pick(records, settings, data, n_last, lr=None):
    """Runs of one setting, by seed, at its better rate unless told."""
    lr = settings.chosen[data, n_last] if lr is None else lr
    found = [
        r
        for r in records
        if (r["part"], r["data"], r["n_last"], r["lr"]) == ("main", data, n_last, lr)
    ]
    return sorted(found, key=lambda r: r["seed"])


def groups(settings):
    """Sort the tasks into those that are large in the paper and the others."""
    sorts = {"large": [d for d in settings.data if d in LARGE]}
    return sorts | {"small": [d for d in settings.data if d not in LARGE]}


def gaps(records, settings, data, n_last):
    """Points lost, and part of the time saved, of each seed against all layers."""
    pairs = zip(
        pick(records, settings, data, None),
        pick(records, settings, data, n_last),
        strict=True,
    )
    cost, saving = [], []
    for whole, part in pairs:
        cost.append(100 * (whole["score"] - part["score"]))
        times = spent(part, settings.clock), spent(whole, settings.clock)
        saving.append(100 * (1 - times[0] / times[1]))
    return cost, saving


def make_run(record, clock):
    """Write the epochs of one training as rounds of a run, for the analysis."""
    rounds = [
        {"asked": [i], "scores": {"score": score}, "fit_seconds": seconds}
        for i, (score, seconds) in enumerate(
            zip(record["epoch_scores"], record[clock], strict=True)
        )
    ]
    return Run(
        rounds,
        ledger={"precomputation": record["setup"][clock]},
        info={"strategy": name_of(record["n_last"]), "seed": record["seed"]},
    )


def budgets(records, settings, data):
    """A quarter, half and all of the seconds that all layers take until they stop."""
    whole = pick(records, settings, data, None)
    mean = np.mean([spent(r, settings.clock) for r in whole])
    return mean * np.array([0.25, 0.5, 1.0])


def at_equal_time(records, settings, data):
    """Best score of each setting within each budget, in the mean over seeds."""
    runs = {
        name_of(k): [
            make_run(r, settings.clock) for r in pick(records, settings, data, k)
        ]
        for k in (None, *settings.last)
    }
    return equal_time(
        runs,
        budgets(records, settings, data),
        phases=("precomputation", "retraining"),
    )


def lead(records, settings, data, n_last):
    """Points by which fewer layers lead at equal time, for each seed.

    In the mean over the budgets within which both have a model.
    """
    found = []
    for r, other in zip(
        pick(records, settings, data, n_last),
        pick(records, settings, data, None),
        strict=True,
    ):
        table = equal_time(
            {
                "last": [make_run(r, settings.clock)],
                "all": [make_run(other, settings.clock)],
            },
            budgets(records, settings, data),
            phases=("precomputation", "retraining"),
        )
        gap = table.scores[0] - table.scores[1]
        if not np.isnan(gap).all():
            found.append(100 * np.nanmean(gap))
    return found


def twins(settings):
    """Last k of the paper's 12 layers, and as many here of the same share."""
    shares = {k: k * settings.depth / 12 for k in (4, 3, 2, 1)}
    return {k: int(n) for k, n in shares.items() if n in settings.last}


def make_claims(records, settings):
    """Collect (claim, paper, here, verdict)."""
    claims = []
    for group, data in groups(settings).items():
        for k, here in twins(settings).items():
            both = [gaps(records, settings, d, here) for d in data]
            cost, saving = (np.concatenate(part) for part in zip(*both, strict=True))
            what = (
                f"{group} tasks: the last {k} of 12 (here {here} of {settings.depth})"
            )
            figure = PAPER[group]["cost"][k]
            claims.append(
                (
                    f"{what} cost {figure:.1f} points",
                    f"{figure:.2f}",
                    said(cost, count=True),
                    below(cost, figure + POINT),
                )
            )
            figure = PAPER[group]["saving"].get(k)
            if figure is not None:
                claims.append(
                    (
                        f"{what} save {figure:.0f} % of the time until training stops",
                        f"{figure:.1f} %",
                        said(saving, unit=" %", count=True),
                        above(saving, figure - TENTH),
                    )
                )
    return claims + _on_epochs(records, settings) + _on_time(records, settings)


def epoch_ratios(records, settings, part, n_last):
    """Seconds of an epoch by those of one that trains all layers, for each seed."""
    seconds = {
        (r["n_last"], r["seed"]): r[settings.clock][0]
        for r in records
        if r["part"] == part
    }
    seeds = range(settings.seeds)
    return [seconds[n_last, seed] / seconds[None, seed] for seed in seeds]


def _on_epochs(records, settings):
    k = max(n for n in twins(settings).values())
    ratios = epoch_ratios(records, settings, "plain", k)
    values = [100 * ratio for ratio in ratios]
    near = [below(values, 60 + TENTH), above(values, 60 - TENTH)]
    verdict = False if False in near else None if None in near else True
    return [
        (
            "an epoch of the last layers takes about 60 % of one of all layers "
            f"(every layer run, {name_of(k)})",
            "about 60 %",
            said(values, unit=" %", count=True),
            verdict,
        )
    ]


def _on_time(records, settings):
    k = max(twins(settings).values())
    leads = {
        group: np.concatenate([lead(records, settings, d, k) for d in data])
        for group, data in groups(settings).items()
    }
    high, low = max(settings.rates), min(settings.rates)
    first = range(settings.rate_seeds)

    def effect(n_last):
        scores = [
            [
                r["score"]
                for r in pick(records, settings, data, n_last, lr)
                if r["seed"] in first
            ]
            for data in settings.data
            for lr in (high, low)
        ]
        changes = np.subtract(scores[::2], scores[1::2]) * 100
        return changes.ravel()

    few = np.concatenate([effect(n) for n in settings.last])
    return [
        (
            "small tasks: at equal time training all layers is better",
            "always",
            f"{name_of(k)} leads by {said(leads['small'], count=True)} points",
            below(leads["small"], 0.0),
        ),
        (
            "the largest tasks: at equal time the last 4 of 12 are better",
            "0.2 to 0.7 on MNLI, 0.0 to 0.3 on QQP",
            f"{name_of(k)} leads by {said(leads['large'])} points",
            above(leads["large"], 0.0),
        ),
        (
            "the higher rate spoils the training of all layers",
            "64 % lower",
            f"changes by {said(effect(None), count=True)} points",
            below(effect(None), 0.0),
        ),
        (
            "and is better than the lower one for the last layers",
            "no clear figure",
            f"changes by {said(few, count=True)} points",
            above(few, 0.0),
        ),
    ]
