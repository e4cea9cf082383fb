"""The claims of the paper of griesshaber2020.py, and their verdicts."""

import numpy as np
from griesshaber2020_cells import freeze_of
from griesshaber2020_figures import as_runs, loops, name_of, select
from verdicts import above, below, interval, said

from skactive.analysis import band_width, welch_t

ORDER = ("MNLI", "QNLI", "SST-2", "SNLI")
# Tables 1 and 2, in percent: accuracy and its spread after 910 labels, width of the
# band over the rounds.
ACCURACY = {
    0: ((53, 2.1), (76, 1.0), (78, 5.9), (67, 1.5)),
    3: ((51, 2.1), (78, 0.3), (80, 4.5), (69, 0.2)),
    -3: ((52, 1.0), (78, 0.2), (84, 1.3), (69, 0.8)),
    6: ((51, 2.4), (75, 1.4), (81, 0.6), (63, 1.4)),
    -6: ((47, 2.0), (77, 1.0), (64, 9.4), (64, 6.7)),
}
WIDTH = {
    0: (5.4, 4.9, 10.8, 6.1),
    3: (4.3, 3.2, 7.8, 3.2),
    -3: (3.8, 2.4, 4.7, 2.8),
    6: (5.0, 3.3, 7.1, 8.2),
    -6: (5.0, 5.0, 11.3, 16.1),
}
# Table 3, at 910 labels: BALD, random.
IMBALANCE = {"MNLI": (25, 9), "QNLI": (36, 4)}
ALIKE = 10.0


def of_paper(figures, data):
    """Look up the paper's figure; None if it has none of this data set."""
    name = name_of(data)
    return figures[ORDER.index(name)] if name in ORDER else None


def finals(found):
    """Accuracies after the last round, in percent, by seed."""
    return np.array([100 * r["scores"][-1] for r in found])


def means(found):
    """Mean accuracies over the rounds after the initial labels, in percent."""
    return np.array([100 * np.mean(r["scores"][1:]) for r in found])


def width(found):
    """Mean width of the band over the rounds, in percent; NaN for one seed."""
    return 100 * band_width(as_runs(found)) if len(found) > 1 else np.nan


def deviations(found):
    """Distances of each run from the mean of its setting, over rounds, in percent."""
    scores = 100 * np.array([r["scores"] for r in found])
    return np.abs(scores - scores.mean(axis=0)).mean(axis=1)


def pooled(records, settings, function, a, b):
    """Differences between two settings, over data sets and seeds."""
    parts = [
        function(loops(records, data, *a)) - function(loops(records, data, *b))
        for data in settings.data
    ]
    return np.concatenate(parts)


def compare_spread(groups_a, groups_b):
    """Say by how much runs deviate less, and judge (Levene's idea, Welch's test).

    Returns
    -------
    said : str
    verdict : bool or None
        Whether the first deviate less; None where p is not below 0.05.
    """
    a, b = (np.concatenate([deviations(g) for g in gs]) for gs in (groups_a, groups_b))
    test = welch_t(a, b)
    decided = test.p_value < 0.05
    verdict = bool(test.difference < 0) if decided else None
    return f"{a.mean():.2f} against {b.mean():.2f}, p = {test.p_value:.2f}", verdict


def paper_differences(settings, a, b):
    """Write the paper's differences between two freezings, in points."""
    found = []
    for data in settings.data:
        pair = of_paper(ACCURACY[a], data), of_paper(ACCURACY[b], data)
        if None not in pair:
            found.append(f"{name_of(data)} {pair[0][0] - pair[1][0]:+d}")
    return ", ".join(found) or "none"


def paper_widths(settings, a, b):
    """Write the paper's widths with two freezings, in points."""
    found = []
    for data in settings.data:
        pair = of_paper(WIDTH[a], data), of_paper(WIDTH[b], data)
        if None not in pair:
            found.append(f"{name_of(data)} {pair[0]:g} against {pair[1]:g}")
    return ", ".join(found) or "none"


def label(freeze, settings):
    """Name a freezing, in the paper and here."""
    if not freeze:
        return "none"
    n = abs(freeze_of(freeze, settings.depth))
    side = "first" if freeze > 0 else "last"
    return f"the {side} {abs(freeze)} of 12 (here {n} of {settings.depth})"


def make_claims(records, settings):
    """Collect (claim, paper, here, verdict)."""
    return [
        *_on_strategies(records, settings),
        *_on_freezing(records, settings),
        *_on_layers(records, settings),
        *_on_shares(records, settings),
        _on_classes(records, settings),
    ]


def _on_strategies(records, settings):
    gains = pooled(records, settings, means, ("bald",), ("random",))
    spread, verdict = compare_spread(
        *[[loops(records, d, s) for d in settings.data] for s in ("bald", "random")]
    )
    return [
        (
            "labels by BALD give better models than random ones, nothing frozen",
            "on all four (figure 3)",
            f"{said(gains)} points, in the mean over the rounds",
            above(gains),
        ),
        (
            "and accuracy scatters less over runs",
            "on all four (figure 3)",
            f"deviations of {spread}",
            verdict,
        ),
    ]


def _on_freezing(records, settings):
    claims = []

    def last(a, b):
        return pooled(records, settings, finals, ("bald", a), ("bald", b))

    for freeze in (3, -3):
        values = last(freeze, 0)
        claims.append(
            (
                f"freezing {label(freeze, settings)} beats freezing none",
                paper_differences(settings, freeze, 0),
                f"{said(values)} points",
                above(values),
            )
        )
    for freeze, fewer in ((6, 3), (-6, -3)):
        values = last(freeze, fewer)
        claims.append(
            (
                f"freezing {label(freeze, settings)} is worse than half as many",
                paper_differences(settings, freeze, fewer),
                f"{said(values)} points",
                below(values),
            )
        )
    for freeze in (3, -3):
        groups = [
            [loops(records, data, freeze=f) for data in settings.data]
            for f in (freeze, 0)
        ]
        spread, verdict = compare_spread(*groups)
        widths = ", ".join(
            f"{name_of(d)} {width(a):.1f} against {width(b):.1f}"
            for d, a, b in zip(settings.data, *groups, strict=True)
        )
        claims.append(
            (
                f"freezing {label(freeze, settings)} narrows the band of runs",
                paper_widths(settings, freeze, 0),
                f"{widths}; deviations of {spread}",
                verdict,
            )
        )
    return claims


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


def _on_layers(records, settings):
    third = max(1, settings.depth // 3)

    def ends(record):
        moved = encoder_changes(record)
        return moved[-third:].mean() / moved[:third].mean()

    def ratio(function):
        parts = [
            (function(a) / function(b) - 1) * 100
            for data in settings.data
            for a, b in zip(
                loops(records, data), loops(records, data, "random"), strict=True
            )
        ]
        return np.array(parts)

    random = [r for data in settings.data for r in loops(records, data, "random")]
    rise = np.array([100 * (ends(r) - 1) for r in random])
    late = ratio(lambda r: encoder_changes(r)[-third:].mean())
    head = ratio(head_change)
    low, high = interval(head)
    near = low > -ALIKE and high < ALIKE
    return [
        (
            "with random labels the last layers of the encoder change more than the "
            "first",
            "figure 4",
            f"{said(rise, 0)} %, last {third} against first {third}",
            above(rise),
        ),
        (
            "with BALD the last layers change less than with random labels",
            "figure 4",
            f"{said(late)} %, last {third}",
            below(late),
        ),
        (
            "while the layers of the head change alike",
            "figure 4",
            f"{said(head)} %",
            near or (False if low > ALIKE or high < -ALIKE else None),
        ),
    ]


def _on_shares(records, settings):
    few, many = min(settings.shares), max(settings.shares)

    def scores(share):
        found = [select(records, part="share", data=d, share=share) for d in data]
        return [np.array([100 * r["score"] for r in runs]) for runs in found]

    data = (*settings.data, *settings.more)
    gains = np.concatenate(
        [a - b for a, b in zip(scores(many), scores(few), strict=True)]
    )
    spreads = [
        np.concatenate([np.abs(s - s.mean()) for s in scores(share)])
        for share in (many, few)
    ]
    test = welch_t(*spreads)
    decided = test.p_value < 0.05
    return [
        (
            f"models trained on all labels are better than models trained on {few:.0%}",
            "on all four (figure 2)",
            f"{said(gains)} points",
            above(gains),
        ),
        (
            "and scatter less over runs",
            "generally (figure 2)",
            f"deviations of {spreads[0].mean():.2f} against {spreads[1].mean():.2f}, "
            f"p = {test.p_value:.2f}",
            bool(test.difference < 0) if decided else None,
        ),
    ]


def _on_classes(records, settings):
    def last(found):
        return np.array([r["imbalance"][-1] for r in found], dtype=float)

    values = pooled(records, settings, last, ("bald",), ("random",))
    paper = "; ".join(f"{k} {a} against {b}" for k, (a, b) in IMBALANCE.items())
    return (
        "labels by BALD are less balanced over the classes than random ones",
        f"{paper} (table 3)",
        f"{said(values)} labels more between the largest and the smallest class",
        above(values),
    )
