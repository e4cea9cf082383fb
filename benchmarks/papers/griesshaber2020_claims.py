"""The claims of the paper of griesshaber2020.py."""

import numpy as np
from griesshaber2020_figures import loops, name_of, select
from verdicts import compare, deviations

BAND = {"unit": "points of the mean deviation", "margin": 1, "kind": "less"}
LABELS = {"unit": "labels", "digits": 0, "margin": 10}
POINTS = {"margin": 2}
PERCENT = {"unit": "%", "margin": 10}


def make_claims(records, settings):
    """List the claims with what was measured."""
    every = settings.data
    three = [name for name in every if name != "mnli"]

    def claim(text, paper, names, first, second, difference, **options):
        """Compare two loops, each given by strategy and what is frozen of 12."""
        groups = {
            name_of(d): [loops(records, d, *which) for which in (first, second)]
            for d in names
        }
        return compare(text, paper, groups, difference, **options)

    bald, chance = ("bald", 0), ("random", 0)
    first_3, last_3 = ("bald", 3), ("bald", -3)
    claims = [
        claim(
            "labels by BALD give better models than random ones, nothing frozen "
            "(mean over the rounds)",
            "on all four (figure 3)",
            *(every, bald, chance, curve_difference),
            **POINTS,
        ),
        claim(
            "and accuracy scatters less over runs",
            "on all four (figure 3)",
            *(every, bald, chance, band_difference),
            **BAND,
        ),
    ]
    for which, name in ((first_3, "first"), (last_3, "last")):
        gains = "+2, SST-2 +2, SNLI +2" if name == "first" else "+2, SST-2 +6, SNLI +2"
        claims += [
            claim(
                f"QNLI, SST-2, SNLI: freezing the {name} 3 of 12 (here 2 of 6) beats "
                "freezing none",
                f"QNLI {gains}",
                *(three, which, bald, end_difference),
                **POINTS,
            ),
            claim(
                f"MNLI: freezing the {name} 3 of 12 (here 2 of 6) is worse than "
                "freezing none",
                f"MNLI {-2 if name == 'first' else -1}",
                *(["mnli"] if "mnli" in every else every[:1], which, bald),
                end_difference,
                **POINTS,
                kind="less",
            ),
            claim(
                f"freezing the {name} 3 of 12 (here 2 of 6) narrows the band of runs",
                "on all four (table 2)",
                *(every, which, bald, band_difference),
                **BAND,
            ),
        ]
    for six, three_of_12, name, paper in (
        (("bald", 6), first_3, "first", "MNLI +0, QNLI -3, SST-2 +1, SNLI -6"),
        (("bald", -6), last_3, "last", "MNLI -5, QNLI -1, SST-2 -20, SNLI -5"),
    ):
        claims.append(
            claim(
                f"freezing the {name} 6 of 12 (here 3 of 6) is worse than half as many",
                paper,
                *(every, six, three_of_12, end_difference),
                **POINTS,
                kind="less",
            )
        )
    for names, title, paper in (
        ([d for d in every if d == "qnli"] or every[:1], "QNLI", "QNLI (figure 4)"),
        (every, "all data sets", "not shown"),
    ):
        claims += [
            claim(
                f"{title}: with random labels the last layers of the encoder change "
                "more than the first (here 2 and 2)",
                paper,
                *(names, chance, chance, last_against_first),
                **PERCENT | {"margin": 1},
            ),
            claim(
                f"{title}: with BALD the last layers change less than with random "
                "labels",
                paper,
                *(names, bald, chance, last_layers),
                **PERCENT | {"margin": 1, "kind": "less"},
            ),
            claim(
                f"{title}: while the layers of the head change alike",
                paper,
                *(names, bald, chance, heads),
                **PERCENT | {"kind": "alike"},
            ),
        ]
    small, whole = settings.shares[0], settings.shares[-1]
    parts = {
        name_of(d): [
            select(records, part="share", data=d, share=s) for s in (whole, small)
        ]
        for d in every
    }
    claims += [
        compare(
            "models trained on all labels are better than models trained on 10 %",
            "on all four (figure 2)",
            *(parts, lambda a, b: share_scores(a) - share_scores(b)),
        ),
        compare(
            "and scatter less over runs",
            "generally (figure 2)",
            parts,
            lambda a, b: deviations(share_scores(a)) - deviations(share_scores(b)),
            **BAND,
        ),
    ]
    printed = {
        "mnli": "19 against 3 at 210 labels, 25 against 9 at 910 (table 3)",
        "qnli": "24 against 2 at 210 labels, 36 against 4 at 910 (table 3)",
    }
    claims += [
        claim(
            f"{name_of(d)}: labels by BALD are less balanced over the classes than "
            "random ones (largest class less smallest)",
            printed.get(d, "not in table 3"),
            *([d], bald, chance, imbalance),
            **LABELS,
        )
        for d in every
    ]
    return claims


def curves(found):
    """Percent after each round but the first, runs x rounds."""
    return 100 * np.array([r["scores"][1:] for r in found])


def curve_difference(a, b):
    return (curves(a) - curves(b)).mean(axis=1)


def end_difference(a, b):
    return (curves(a) - curves(b))[:, -1]


def band_difference(a, b):
    """Deviation from the median of the runs, mean over the rounds."""
    return (deviations(curves(a)) - deviations(curves(b))).mean(axis=1)


def imbalance(a, b):
    return np.subtract(*([r["imbalance"][-1] for r in runs] for runs in (a, b)))


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


def heads(a, b):
    return _percent(*([head_change(r) for r in runs] for runs in (a, b)))


def last_layers(a, b):
    """Change of the last third of the layers with the first runs and the second."""
    return _percent(*(_layers(runs)[1] for runs in (a, b)))


def last_against_first(a, b):
    """Change of the last third of the layers against that of the first third."""
    first, last = _layers(a)
    return _percent(last, first)


def _layers(found):
    changes = np.array([encoder_changes(r) for r in found])
    n = max(1, changes.shape[1] // 3)
    return changes[:, :n].mean(axis=1), changes[:, -n:].mean(axis=1)


def _percent(a, b):
    return 100 * (np.divide(a, b) - 1)
