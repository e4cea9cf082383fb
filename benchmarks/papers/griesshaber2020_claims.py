"""The claims of the paper of griesshaber2020.py, and their verdicts."""

import numpy as np
from griesshaber2020_cells import freeze_of
from griesshaber2020_figures import loops, name_of
from griesshaber2020_numbers import (
    IMBALANCE,
    SCATTERS,
    accuracies_of_paper,
    compare_scatter,
    differences,
    encoder_changes,
    finals,
    head_change,
    imbalances,
    means,
    pool_share,
    shares,
    width,
    widths_of_paper,
)
from scipy.stats import ttest_1samp
from verdicts import UNCORRECTED, above, below, said, within

from skactive.analysis import holm

ALIKE = 10.0


def label(freeze, settings):
    """Name a freezing, in the paper and here."""
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
        *_on_classes(records, settings),
    ]


def over_data(gains, test, unit="points", digits=1):
    """Say and judge a mean over data sets, the mean over seeds of each one value."""
    values = [np.mean(gain) for gain in gains.values()]
    each = ", ".join(
        f"{name_of(data)} {value:+.{digits}f}"
        for data, value in zip(gains, values, strict=True)
    )
    here = f"{said(values, digits)} {unit}, n = {len(values)} data sets; {each}"
    return here, test(values)


def on_one(gains, test, unit="points", digits=1):
    """Say and judge a mean over the seeds of one data set."""
    return f"{said(gains, digits)} {unit}, n = {len(gains)} seeds", test(gains)


def _on_strategies(records, settings):
    gains = {
        data: differences(records, data, means, ("bald",), ("random",))
        for data in settings.data
    }
    # The first model is the same with both, so its band is left out.
    widths = {
        name_of(data): [
            width(loops(records, data, s), first=1) for s in ("bald", "random")
        ]
        for data in settings.data
    }
    scatter, verdict = compare_scatter(widths)
    return [
        (
            "labels by BALD give better models than random ones, nothing frozen (mean "
            "over the rounds)",
            "on all four (figure 3)",
            *over_data(gains, above),
        ),
        (
            "and accuracy scatters less over runs",
            "on all four (figure 3)",
            f"width of the band {scatter}",
            verdict,
        ),
    ]


def _on_freezing(records, settings):
    claims = []

    def last(data, a, b):
        return differences(records, data, finals, ("bald", a), ("bald", b))

    others = [data for data in settings.data if data != settings.unlike]
    for freeze in (3, -3) if others else ():
        names = ", ".join(map(name_of, others))
        claims.append(
            (
                f"{names}: freezing {label(freeze, settings)} beats freezing none",
                accuracies_of_paper(others, freeze, 0),
                *over_data({data: last(data, freeze, 0) for data in others}, above),
            )
        )
    for freeze in (3, -3) if settings.unlike in settings.data else ():
        claims.append(
            (
                f"{name_of(settings.unlike)}: freezing {label(freeze, settings)} is "
                "worse than freezing none",
                accuracies_of_paper([settings.unlike], freeze, 0),
                *on_one(last(settings.unlike, freeze, 0), below),
            )
        )
    for freeze, fewer in ((6, 3), (-6, -3)):
        gains = {data: last(data, freeze, fewer) for data in settings.data}
        claims.append(
            (
                f"freezing {label(freeze, settings)} is worse than half as many",
                accuracies_of_paper(settings.data, freeze, fewer),
                *over_data(gains, below),
            )
        )
    for freeze in (3, -3):
        widths = {
            name_of(data): [width(loops(records, data, freeze=f)) for f in (freeze, 0)]
            for data in settings.data
        }
        scatter, verdict = compare_scatter(widths)
        paper = widths_of_paper(freeze, 0)
        claims.append(
            (
                f"freezing {label(freeze, settings)} narrows the band of runs",
                ", ".join(
                    "{} {:.1f} against {:.1f}".format(name, *paper[name])
                    for name in widths
                    if name in paper
                )
                or "none",
                f"width of the band {scatter}",
                verdict,
            )
        )
    return claims


def _on_layers(records, settings):
    third = max(1, settings.depth // 3)

    def late(record):
        return encoder_changes(record)[-third:].mean()

    def rise(data):
        found = loops(records, data, "random")
        early = [encoder_changes(r)[:third].mean() for r in found]
        return 100 * (np.array([late(r) for r in found]) / early - 1)

    def ratio(data, function):
        bald, random = (
            np.array([function(r) for r in loops(records, data, strategy)])
            for strategy in ("bald", "random")
        )
        return 100 * (bald / random - 1)

    def alike(values):
        return within(values, ALIKE)

    kinds = (
        (
            f"with random labels the last layers of the encoder change more than the "
            f"first (here {third} and {third})",
            rise,
            above,
        ),
        (
            "with BALD the last layers change less than with random labels",
            lambda data: ratio(data, late),
            below,
        ),
        (
            f"while the layers of the head change alike (± {ALIKE:g} %)",
            lambda data: ratio(data, head_change),
            alike,
        ),
    )
    claims = []
    if settings.layers_of in settings.data:
        name = name_of(settings.layers_of)
        for title, measure, test in kinds:
            here = on_one(measure(settings.layers_of), test, "%")
            claims.append((f"{name}: {title}", f"{name} (figure 4)", *here))
    for title, measure, test in kinds:
        found = {data: measure(data) for data in settings.data}
        here = over_data(found, test, "%")
        claims.append((f"all data sets: {title}", "not shown", *here))
    return claims


def _on_shares(records, settings):
    few, many = min(settings.shares), max(settings.shares)
    found = {
        data: [shares(records, data, share) for share in (many, few)]
        for data in settings.data
    }
    scatter, verdict = compare_scatter(
        {name_of(d): [np.std(s, ddof=1) for s in pair] for d, pair in found.items()}
    )
    return [
        (
            f"models trained on all labels are better than models trained on {few:.0%}",
            "on all four (figure 2)",
            *over_data({d: a - b for d, (a, b) in found.items()}, above),
        ),
        (
            "and scatter less over runs",
            "generally (figure 2)",
            f"standard deviation {scatter}",
            verdict,
        ),
    ]


def _on_classes(records, settings):
    """One claim on each data set, so that p is corrected for their number."""
    claims, gaps = [], []
    for data in settings.data:
        name = name_of(data)
        bald, random = (imbalances(loops(records, data, s)) for s in ("bald", "random"))
        gaps.append(bald - random)
        pair = f"{bald.mean():.0f} against {random.mean():.0f}"
        parts, n = pool_share(records, data), loops(records, data)[0]["n_labeled"][-1]
        own = f"{n * (parts.max() - parts.min()):.0f} by the pool's shares"
        paper = "not in table 3"
        if name in IMBALANCE:
            paper = (
                "{} against {} at 210 labels, {} against {} at 910 (table 3)".format(
                    *(n for pairs in IMBALANCE[name] for n in pairs)
                )
            )
        claims.append(
            (
                f"{name}: labels by BALD are less balanced over the classes than "
                "random ones (largest class less smallest)",
                paper,
                f"{pair} ({own}): {said(gaps[-1])} labels, n = {len(gaps[-1])} seeds",
            )
        )
    corrected = holm([_p_of(gap) for gap in gaps])
    return [
        (
            *claim,
            f"{here}, corrected p = {p:.2f}",
            bool(gap.mean() > 0) if p < 0.05 else None,
        )
        for (*claim, here), gap, p in zip(claims, gaps, corrected, strict=True)
    ]


def _p_of(gap):
    """p of Student's t of paired differences; 1 where there is nothing to test."""
    return ttest_1samp(gap, 0).pvalue if len(gap) > 1 and np.ptp(gap) > 0 else 1.0


def rules():
    """Say how the verdicts are computed."""
    return (
        "The verdicts are computed. Brackets hold Student's 95 % interval of a mean. "
        "Rows on one data set use the differences between runs with the same seed; n "
        "is the number of seeds. Rows on several data sets use the mean over the seeds "
        "of each data set; n is the number of data sets. A "
        "claim holds if the interval is on its side of 0, and does not hold if it "
        "is on the other side. *Alike* holds if the interval is within "
        f"± {ALIKE:g} %, and does not hold if it is outside. Otherwise the verdict is "
        '"cannot tell".'
        "\n\n"
        "Rows on scatter also use one value per data set: the logarithm of "
        "the ratio of the two widths (of the two standard deviations in figure 2). "
        "The table has the geometric mean of these ratios. Student's t test compares "
        f"it with 1, and its p is multiplied by {SCATTERS}, the number of these rows "
        "(Bonferroni). If p < 0.05 the ratio decides; otherwise the verdict is "
        '"cannot tell". In a simulation with four data sets and three seeds, the '
        "test detected a halved scatter in one case of six."
        "\n\n"
        "Rows on the balance of classes test one claim on several data sets. Student's "
        "t test uses the differences between runs with the same seed. Its p is "
        "corrected for the number of data sets by Holm's procedure; if p < 0.05, the "
        "sign decides. " + UNCORRECTED
    )
