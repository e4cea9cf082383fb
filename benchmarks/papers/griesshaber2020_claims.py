"""What is measured for the claims of the paper of griesshaber2020.py."""

import numpy as np
from griesshaber2020_figures import PAPER, loops, name_of, shares
from verdicts import deviations, differ, read_claims


def make_claims(records, settings):
    """Measure what the paper claims."""
    every = settings.data
    parts = {"all": settings.shares[-1], "a tenth": settings.shares[0]}

    def runs_of(data, which):
        if which in parts:
            return shares(records, data, parts[which])
        strategy, freeze = which.split()
        return loops(records, data, strategy, int(freeze))

    def measure(item, *, runs, what, only=None, without=None):
        data = [d for d in every if d != without]
        if only or item:
            data = [d for d in every if d in (only, item.get("key"))] or every[:1]
        groups = {name_of(d): [runs_of(d, which) for which in runs] for d in data}
        return differ(groups, DIFFERENCES[what])

    loop = []
    for d in every:
        printed = PAPER["imbalance"].get(name_of(d), "not in table 3")
        loop.append({"key": d, "data": name_of(d), "imbalance": printed})
    return read_claims("griesshaber2020", measure, {"data": loop})


def curves(found):
    """Percent after each round but the first, runs x rounds."""
    return 100 * np.array([r["scores"][1:] for r in found])


def share_scores(found):
    return 100 * np.array([r["score"] for r in found])


def encoder_changes(record):
    """Mean changes of the encoder's layers, the embeddings left out."""
    changes = record["changes"]
    pairs = zip(changes["part"], changes["layer"], changes["mean"], strict=True)
    return np.array([m for p, name, m in pairs if p == "encoder" and name.isdigit()])


def head_change(record):
    """Mean change of the head's layers."""
    changes = record["changes"]
    pairs = zip(changes["part"], changes["mean"], strict=True)
    return np.mean([mean for part, mean in pairs if part == "head"])


def _layers(found):
    """Change of the first third of the layers, and of the last."""
    changes = np.array([encoder_changes(r) for r in found])
    n = max(1, changes.shape[1] // 3)
    return changes[:, :n].mean(axis=1), changes[:, -n:].mean(axis=1)


def _percent(a, b):
    return 100 * (np.divide(a, b) - 1)


# What is compared of two groups of runs; bands are deviations from the median of the
# runs, and their mean over the rounds.
DIFFERENCES = {
    "curve": lambda a, b: (curves(a) - curves(b)).mean(axis=1),
    "end": lambda a, b: (curves(a) - curves(b))[:, -1],
    "band": lambda a, b: (deviations(curves(a)) - deviations(curves(b))).mean(axis=1),
    "share": lambda a, b: share_scores(a) - share_scores(b),
    "share band": lambda a, b: (
        deviations(share_scores(a)) - deviations(share_scores(b))
    ),
    "imbalance": lambda a, b: np.subtract(
        *([r["imbalance"][-1] for r in runs] for runs in (a, b))
    ),
    "heads": lambda a, b: _percent(*(list(map(head_change, runs)) for runs in (a, b))),
    "last layers": lambda a, b: _percent(_layers(a)[1], _layers(b)[1]),
    "last against first": lambda a, b: _percent(*_layers(a)[::-1]),
}
