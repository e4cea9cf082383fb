"""The claims of the paper of wang.py."""

import numpy as np
from verdicts import Claim
from wang_values import (
    POINT,
    TASKS,
    at_equal_time,
    budgets,
    costs,
    counted,
    epoch_share,
    groups,
    make_runs,
    name_of,
    pick,
    savings,
    spent,
    title_of,
    twins,
)

# Percent, by how many of the 12 layers are trained.
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
# Of the large tasks: "does not necessarily save much time". Printed are those of QQP.
LITTLE = {4: 6.43}
SLOWER = ("SST-2", "QNLI")
LEAD = "0.66, 0.39, 0.19 % after 50,000, 100,000, 150,000 s (QQP: 0.29, 0.20, 0.04 %)"
TENTH = 10.0


def make_claims(records, settings):
    """List the claims with what was measured."""
    until = f"until training stops, at the latest after {settings.max_epochs} epochs"

    def claim(text, paper, names, n_last, value, **options):
        """Make a claim on what training the last layers does to each of some tasks."""
        seconds = sum(
            np.mean([spent(r, "cpu_seconds") for r in runs])
            for d in names
            for n in (None, n_last)
            if (runs := pick(records, settings, d, n))
        )
        values = {title_of(d): value(records, settings, d, n_last) for d in names}
        return Claim(text, paper, values, seconds=float(seconds), **options)

    def of_group(group, names, k, here):
        which = f"{group} tasks, here {', '.join(map(title_of, names))}: "
        which += f"{_which(k, here, settings)} "
        paper = PAPER[group]
        rows = [
            claim(
                f"{which}cost {paper['cost'][k]:.1f} points (+ 1)",
                f"{paper['cost'][k]:.2f} %",
                *(names, here, costs),
                kind="less",
                limit=paper["cost"][k] + POINT,
            )
        ]
        if k in paper["saving"]:
            figure = paper["saving"][k]
            options = {"limit": figure - TENTH, "unit": "%", "margin": TENTH}
            rows += [
                claim(
                    f"{which}save {figure:.0f} % of the time (- 10) {until}",
                    f"{figure:.1f} %",
                    *(names, here, savings),
                    **options,
                ),
                claim(
                    f"{which}save as much with the bottom kept",
                    f"not done; {figure:.1f} % without",
                    *(names, here, kept_savings),
                    **options,
                ),
            ]
        if group == "large" and k in LITTLE:
            rows.append(
                claim(
                    f"{which}do not save much time {until} (at most 6 %, + 10)",
                    f"{LITTLE[k]:.2f} % on QQP (the last 3: 3.19 %)",
                    *(names, here, savings),
                    kind="less",
                    limit=LITTLE[k] + TENTH,
                    unit="%",
                    margin=TENTH,
                )
            )
        return rows

    found, both = [], groups(records, settings)
    for group, names in both.items():
        for k, here in twins(settings).items() if names else ():
            found += of_group(group, names, k, here)
    here, learned = twins(settings).get(4), counted(records, settings)
    for d in learned if here else ():
        if TASKS[d] in SLOWER:
            found += [
                claim(
                    f"{TASKS[d]}: {_which(4, here, settings)} take longer than all "
                    f"{until}",
                    "longer, no figure",
                    *([d], here, savings),
                    kind="less",
                    unit="% saved",
                    margin=TENTH,
                ),
                claim(
                    f"{TASKS[d]}: at equal time {_which(4, here, settings)} gain next "
                    "to nothing (at most a point)",
                    "an extremely limited lead, for a short period at first",
                    *([d], here, leads),
                    kind="less",
                    limit=POINT,
                    unit="points of lead",
                ),
            ]
        elif TASKS[d] == "MNLI":
            found.append(
                claim(
                    f"MNLI (here {title_of(d)}): at equal time "
                    f"{_which(4, here, settings)} are better",
                    LEAD,
                    *([d], here, leads),
                    unit="points of lead",
                )
            )
    few = max(twins(settings).values())
    if learned:
        found.append(
            claim(
                "an epoch of the last layers takes about 60 % (± 10) of the seconds of "
                f"one of all layers (every layer run, {name_of(few)})",
                "about 60 %",
                *(learned, few, percent_of_epoch),
                kind="alike",
                limit=60,
                margin=TENTH,
                unit="%",
            )
        )
    found += [
        claim(
            f"small tasks, here {', '.join(map(title_of, both['small']))}: at equal "
            f"time training all layers is better than {_which(k, here, settings)}",
            "always",
            *(both["small"], here, leads),
            kind="less",
            unit="points of lead",
        )
        for k, here in twins(settings).items()
        if both["small"]
    ]
    low, high = min(settings.rates), max(settings.rates)
    layers = list(twins(settings).values())
    for which, text, paper, kind in (
        (
            [None],
            f"the rate {high:g} spoils the training of all layers",
            "average score 64 % lower than at 2e-5",
            "less",
        ),
        (
            layers,
            f"the rate {high:g} is better than {low:g} for the last layers",
            'prints "lower, at around 34%" and not at which rate',
            "more",
        ),
    ):

        def change(records, settings, data, n_last, which=which):
            return np.mean([rate_change(records, settings, data, n) for n in which], 0)

        both_rates = [
            pick(records, settings, d, which[0], lr)
            for d in learned
            for lr in settings.rates
        ]
        if learned and min(map(len, both_rates)) > 1:
            found.append(
                claim(text, paper, learned, which[0], change, kind=kind, unit="points")
            )
    return found


def _which(k, here, settings):
    return f"the last {k} of 12 (here {here} of {settings.depth})"


def kept_savings(records, settings, data, n_last):
    return savings(records, settings, data, n_last, kept=True)


def percent_of_epoch(records, settings, data, n_last):
    return 100 * epoch_share(records, settings, data, n_last)


def leads(records, settings, data, n_last):
    """Points by which the last layers lead all at equal time, mean over the budgets.

    A budget counts in which both have a model.
    """
    times = budgets(records, settings, data)
    runs = [make_runs(records, settings, data, n) for n in (n_last, None)]
    found = []
    for few, whole in zip(*runs, strict=True):
        scores = at_equal_time({"few": [few], "all": [whole]}, times).scores
        found.append(100 * np.nanmean(scores[0] - scores[1]))
    return np.nan_to_num(found)


def rate_change(records, settings, data, n_last):
    """Points that the higher rate gains, by seed."""
    low, high = (
        [r["score"] for r in pick(records, settings, data, n_last, lr)]
        for lr in (min(settings.rates), max(settings.rates))
    )
    n = min(len(low), len(high))
    return 100 * np.subtract(high[:n], low[:n])
