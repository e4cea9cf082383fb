"""The claims of the page of wang.py: what the paper says, what came here, verdicts."""

from functools import partial

import numpy as np
from verdicts import above, below, interval, said
from wang_values import (
    POINT,
    TASKS,
    costs,
    counted,
    cut_off,
    epoch_share,
    groups,
    leads,
    name_of,
    pick,
    rate_scores,
    sample,
    savings,
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
LITTLE = {4: 6.43, 3: 3.19}
SLOWER = ("SST-2", "QNLI")
LEAD = {
    "MNLI": "0.66, 0.39, 0.19 % after 50,000, 100,000, 150,000 s (QQP: 0.29, 0.20, "
    "0.04 % after 40,000, 80,000, 120,000 s)",
}
TENTH = 10.0


def make_claims(records, settings):
    """Collect (claim, paper, here, verdict)."""
    rows = []
    for group, names in groups(records, settings).items():
        for k, here in twins(settings).items():
            rows += _on_group(records, settings, group, names, k, here)
    rows += _on_slower_tasks(records, settings)
    rows.append(_on_epochs(records, settings))
    rows += _on_equal_time(records, settings)
    return [*rows, *_on_rates(records, settings)]


def _row(claim, paper, values, judge, unit="", note=""):
    """Write a row from the values by seed of each data set that the claim is over."""
    if not values:
        return claim, paper, "nothing was learned on these tasks", None
    found = sample(values)
    here = f"{said(found, unit=unit)}, {_over(values)}{note}"
    return claim, paper, here, judge(found)


def _over(values, digits=1):
    """Say what the values of an interval are, and name the data sets."""
    if len(values) == 1:
        ((data, value),) = values.items()
        plural = "s" if len(value) > 1 else ""
        return f"{len(value)} seed{plural} of {title_of(data)}"
    means = (f"{title_of(d)} {np.mean(v):.{digits}f}" for d, v in values.items())
    return f"{len(values)} data sets ({', '.join(means)})"


def _which(k, here, settings):
    return f"the last {k} of 12 (here {here} of {settings.depth})"


def _tasks(group, names):
    only = f", here only {title_of(names[0])}" if len(names) == 1 else ""
    return f"{group} tasks{only}"


def _on_group(records, settings, group, names, k, here):
    """Points lost and time saved on a group of tasks."""
    what = f"{_tasks(group, names)}: {_which(k, here, settings)}"
    until = (
        f"until training stops, at the latest after {settings.max_epochs} epochs here"
    )
    cost = {d: costs(records, settings, d, here) for d in names}
    saving, kept = (
        {d: savings(records, settings, d, here, kept=way) for d in names}
        for way in (False, True)
    )
    note = _on_cut_runs(records, settings, names, here)
    figure = PAPER[group]["cost"][k]
    basis = f"; one data set, {here} of {settings.depth} layers"
    rows = [
        _row(
            f"{what} cost {figure:.1f} points",
            f"{figure:.2f} %",
            cost,
            partial(below, size=figure + POINT),
            note=basis if len(names) == 1 else "",
        )
    ]
    figure = PAPER[group]["saving"].get(k)
    if figure is not None:
        judge = partial(above, size=figure - TENTH)
        rows += [
            _row(
                f"{what} save {figure:.0f} % of the time {until}",
                f"{figure:.1f} %",
                saving,
                judge,
                " %",
                note,
            ),
            _row(
                f"{what} save as much with the bottom kept",
                f"not done; {figure:.1f} % without",
                kept,
                judge,
                " %",
                note,
            ),
        ]
    if group == "large" and k in LITTLE:
        judge = partial(below, size=LITTLE[k] + TENTH)
        claim = f"{what} do not save much time {until}"
        others = (f"the last {n}: {LITTLE[n]:.2f} %" for n in LITTLE if n != k)
        paper = f"{LITTLE[k]:.2f} % on QQP ({', '.join(others)})"
        rows.append(_row(claim, paper, saving, judge, " %", note))
    return rows


def _on_cut_runs(records, settings, names, here):
    """Say how many runs behind a saving were cut off before they met the rule."""
    runs = [
        r
        for data in names
        for n_last in (None, here)
        for r in pick(records, settings, data, n_last)
    ]
    return f"; {cut_off(runs, settings)[1]} of {len(runs)} runs cut off"


def _on_slower_tasks(records, settings):
    """On these tasks the last 4 layers took longer than all in the paper."""
    here, rows = twins(settings).get(4), []
    for data in counted(records, settings) if here else []:
        if TASKS[data] in SLOWER:
            rows.append(
                _row(
                    f"{TASKS[data]}: {_which(4, here, settings)} take longer than all "
                    "until training stops, at the latest after "
                    f"{settings.max_epochs} epochs here",
                    "longer, no figure",
                    {data: savings(records, settings, data, here)},
                    below,
                    " % saved",
                    _on_cut_runs(records, settings, [data], here),
                )
            )
    return rows


def _on_epochs(records, settings):
    """What an epoch takes, of what one with all layers trained takes."""
    k = max(twins(settings).values())
    claim = (
        "an epoch of the last layers takes about 60 % of the seconds of one of all "
        f"layers (every layer run, {name_of(k)})"
    )
    values = {
        data: 100 * epoch_share(records, settings, data, k)
        for data in counted(records, settings)
    }
    if not values:
        return _row(claim, "about 60 %", values, None)
    found = sample(values)
    low, high = interval(found)
    near = [below(found, 60 + TENTH), above(found, 60 - TENTH)]
    here = f"{np.mean(found):.1f} % [{low:.1f}, {high:.1f}], {_over(values)}"
    return (
        claim,
        "about 60 %",
        here,
        False if False in near else None if None in near else True,
    )


def _on_equal_time(records, settings):
    """Who is ahead after the same seconds, every layer run."""
    rows = []
    small = groups(records, settings)["small"]
    for k, here in twins(settings).items():
        values = {d: leads(records, settings, d, here) for d in small}
        rows.append(
            _row(
                f"{_tasks('small', small)}: at equal time training all layers is "
                f"better than {_which(k, here, settings)}",
                "always",
                values,
                below,
                " points of lead",
            )
        )
    here = twins(settings).get(4)
    for data in counted(records, settings) if here else []:
        task, which = TASKS[data], _which(4, here, settings)
        stand_in = "" if title_of(data) == task else f" (here {title_of(data)})"
        values = {data: leads(records, settings, data, here)}
        if task in LEAD:
            claim = f"{task}{stand_in}: at equal time {which} are better"
            paper, judge = LEAD[task], above
        elif task in SLOWER:
            claim = (
                f"{task}{stand_in}: at equal time {which} gain next to nothing, so "
                "that it is no good idea to train only them"
            )
            paper = "an extremely limited lead, for a short period at first"
            judge = partial(below, size=POINT)
        else:
            continue
        rows.append(_row(claim, paper, values, judge, " points of lead"))
    return rows


def _on_rates(records, settings):
    """What the higher rate does to the scores, in parts of those at the lower one."""
    layers = {
        "all": [None],
        "few": list(twins(settings).values()),
    }
    low, high = min(settings.rates), max(settings.rates)
    rows = []
    for which, claim, paper, judge in (
        (
            "all",
            f"the rate {high:g} spoils the training of all layers",
            "average score 64 % lower than at 2e-5",
            below,
        ),
        (
            "few",
            f"the rate {high:g} is better than {low:g} for the last layers",
            'prints "lower, at around 34%" and not at which rate',
            above,
        ),
    ):
        scores = {
            data: np.mean(
                [rate_scores(records, settings, data, n) for n in layers[which]], axis=0
            )
            for data in counted(records, settings)
        }
        changes = {d: [100 * (b / a - 1)] for d, (a, b) in scores.items() if a > 0}
        note = ""
        if scores:
            a, b = np.mean(list(scores.values()), axis=0)
            note = f"; average {a:.3f} to {b:.3f}: {100 * (b / a - 1):+.0f} %"
        rows.append(_row(claim, paper, changes, judge, " %", note))
    return rows
