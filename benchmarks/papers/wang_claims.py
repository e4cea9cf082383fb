"""What is measured for the claims of the paper of wang.py."""

import numpy as np
from verdicts import read_claims
from wang_values import (
    PAPER,
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


def make_claims(records, settings):
    """Measure what the paper claims."""

    def measure(item, *, value, figure=None, room=0, tasks=None):
        """Measure what training the last layers does to each of some tasks."""
        if (tasks and item["task"] not in tasks) or (figure and figure not in item):
            return None
        data, n_last = item["data"], item["n_last"]
        seconds = sum(
            np.mean([spent(r, "cpu_seconds") for r in runs])
            for d in data
            for n in (None, n_last[0])
            if (runs := pick(records, settings, d, n))
        )
        values = {
            title_of(d): np.mean(
                [VALUES[value](records, settings, d, n) for n in n_last], axis=0
            )
            for d in data
        }
        limit = {"limit": item[figure] + room} if figure else {}
        return {"values": values, "seconds": float(seconds)} | limit

    return read_claims("wang", measure, list_loops(records, settings))


def list_loops(records, settings):
    """List the tasks and layers that there are claims on, with the words for them."""
    both, layers = groups(records, settings), twins(settings)
    until = f"until training stops, at the latest after {settings.max_epochs} epochs"
    low, high = min(settings.rates), max(settings.rates)

    def item(data, n_last, k=None, **words):
        return {
            "data": data,
            "n_last": n_last if isinstance(n_last, list) else [n_last],
            "tasks": ", ".join(map(title_of, data)),
            "layers": f"the last {k} of 12 (here {n_last} of {settings.depth})",
            "few": name_of(max(layers.values())),
            **words,
        } | {"until": until, "low": low, "high": high}

    found = {name: [] for name in ("layers", "tasks", "learned", "small")}
    for group, data in both.items():
        for k, here in layers.items() if data else ():
            figures = {
                name: by_layers[str(k)]
                for name, by_layers in PAPER[group].items()
                if str(k) in by_layers
            }
            found["layers"].append(item(data, here, k, group=group, **figures))
            if group == "small":
                found["small"].append(item(data, here, k))
    learned = counted(records, settings)
    if 4 in layers:
        found["tasks"] = [item([d], layers[4], 4, task=TASKS[d]) for d in learned]
    if learned:
        found["learned"].append(item(learned, max(layers.values())))
    for name, n_last in (("all", [None]), ("the last", [*layers.values()])):
        runs = [
            pick(records, settings, d, n_last[0], lr)
            for d in learned
            for lr in settings.rates
        ]
        is_known = learned and min(map(len, runs)) > 1
        found[f"rates of {name}"] = [item(learned, n_last)] if is_known else []
    return found


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


VALUES = {
    "costs": costs,
    "savings": savings,
    "kept savings": lambda *of: savings(*of, kept=True),
    "percent of an epoch": lambda *of: 100 * epoch_share(*of),
    "leads": leads,
    "rate": rate_change,
}
