"""The claims of the paper of eindor2020.py."""

import numpy as np
from eindor2020_scores import (
    ALL,
    METRICS,
    STRATEGIES,
    judged,
    metric_of,
    pairs,
    pick,
    seconds,
)
from scipy.stats import binomtest, friedmanchisquare, spearmanr
from verdicts import Claim, compare

POINTS = {"margin": 2}
RANKS = {"unit": "of rank correlation", "margin": 0.2, "digits": 2}


def make_claims(records, settings):
    """List the claims with what was measured."""
    chosen = judged(records)
    groups = {pair: [pick(records, pair, s) for s in ALL] for pair in chosen}

    def over(title, scenarios, difference, paper, **options):
        """Make a claim on the pairs of some scenarios, each of the same weight."""
        own = {
            data if len(scenarios) == 1 else f"{data}, {scenario}": runs
            for (data, scenario), runs in groups.items()
            if scenario in scenarios
        }
        return compare(title, paper, own, difference, **options) if own else None

    balanced, rare, practical = (
        ("balanced",),
        ("imbalanced",),
        ("imbalanced-practical",),
    )
    every = (*balanced, *rare, *practical)
    lead = "active learning (mean of the six strategies) is better than random choice"
    claims = [
        over(
            f"{lead}: {which[0]}, {METRICS[metric]}",
            which,
            mean_lead(metric),
            "yes",
            **POINTS,
        )
        for which, metric in ((balanced, "accuracy"), (rare, "f1"), (practical, "f1"))
    ]
    claims += [
        over(f"{lead}: all scenarios, F1", every, mean_lead("f1"), "yes", **POINTS),
        practical_claim(groups),
        share_claim(groups),
    ]
    claims += [
        over(
            f"{s} is better than random choice (all scenarios, F1)",
            every,
            lead_of(s, "f1"),
            "in most data sets",
            **POINTS,
        )
        for s in STRATEGIES
    ]
    claims += [scores_differ(groups), times_differ(records, settings)]
    claims += [
        over(
            f"{s} picks outliers: batches less representative than random",
            every,
            relative(s, "representativeness"),
            "a known issue",
            kind="less",
            unit="%",
            margin=2,
        )
        for s in ("LC", "Dropout")
    ]
    claims.append(
        over(
            "Core-Set and DAL, made for it, take more diverse batches than LC and "
            "Dropout",
            every,
            diverse,
            "their purpose",
            unit="%",
            margin=5,
        )
    )
    claims += [
        over(
            f"{key} of the batches pays: strategies that have more score higher (rank "
            "correlation over the seven, F1)",
            every,
            pays(key),
            paper,
            **RANKS,
        )
        for key, paper in (
            ("diversity", "often"),
            ("representativeness", "examined"),
        )
    ]
    return [claim for claim in claims if claim is not None]


def means(runs, key):
    """Percent of a score, or a measure, as the mean over the rounds that asked."""
    skip = 1 if key in ("accuracy", "f1") else 0
    return 100 * np.array([np.mean(r[key][skip:]) for r in runs])


def mean_lead(metric):
    return lambda random, *others: (
        np.mean([means(runs, metric) for runs in others], axis=0)
        - means(random, metric)
    )


def lead_of(strategy, metric):
    i = ALL.index(strategy)
    return lambda *groups: means(groups[i], metric) - means(groups[0], metric)


def relative(strategy, key):
    """Percent by which batches have more of a measure than random ones."""
    i = ALL.index(strategy)

    def difference(*groups):
        return 100 * (means(groups[i], key) / means(groups[0], key) - 1)

    return difference


def diverse(*groups):
    own, other = (
        np.mean([means(groups[ALL.index(s)], "diversity") for s in names], axis=0)
        for names in (("Core-Set", "DAL"), ("LC", "Dropout"))
    )
    return 100 * (own - other) / means(groups[0], "diversity")


def pays(key):
    """Rank correlation over the strategies, for each seed."""

    def difference(*groups):
        measure, score = (
            np.array([means(runs, name) for runs in groups]) for name in (key, "f1")
        )
        both = zip(measure.T, score.T, strict=True)
        found = [spearmanr(a, b).statistic for a, b in both]
        return np.nan_to_num(found)  # where all have the same

    return difference


def practical_claim(groups):
    """Gain in the practical scenario against the mean of the others, same data."""
    gain, own = mean_lead("f1"), {}
    for data in dict.fromkeys(data for data, _ in groups):
        found = {s: runs for (d, s), runs in groups.items() if d == data}
        if "imbalanced-practical" in found and len(found) > 1:
            last = found.pop("imbalanced-practical")
            own[data] = [*last, *(runs for each in found.values() for runs in each)]

    def difference(*flat):
        leads = [gain(*flat[i : i + 7]) for i in range(0, len(flat), 7)]
        return leads[0] - np.mean(leads[1:], axis=0)

    if not own:
        return None
    title = "most of all in the imbalanced-practical scenario (gain in F1 there less "
    title += "the mean of the other scenarios)"
    return compare(title, "especially there", own, difference, **POINTS)


def share_claim(groups):
    """Data sets on which all six are better than random choice."""
    ahead = {}
    for (data, scenario), runs in groups.items():
        scores = [means(each, metric_of(scenario)).mean() for each in runs]
        ahead.setdefault(data, []).append(min(scores[1:]) > scores[0])
    won = sum(np.mean(each) > 0.5 for each in ahead.values())
    n_pairs = sum(sum(each) for each in ahead.values())
    shown = f"in {won} of {len(ahead)} data sets; in {n_pairs} of {len(groups)} pairs "
    return Claim(
        "in most data sets all six are better than random choice",
        "most",
        {},
        shown=shown + "with a scenario (exact test against one half)",
        p_value=binomtest(won, len(ahead)).pvalue,
        holds=won > len(ahead) / 2,
    )


def scores_differ(groups):
    """Friedman's test of the six strategies over pairs."""
    scores = np.array(
        [[means(runs, "f1").mean() for runs in each[1:]] for each in groups.values()]
    )
    best = [STRATEGIES[i] for i in scores.argmax(axis=1)]
    counts = {s: best.count(s) for s in STRATEGIES if s in best}
    test = friedmanchisquare(*scores.T) if len(scores) > 2 else None
    return Claim(
        "the strategies differ in their scores",
        "they do",
        {},
        shown=f"F1 over {len(scores)} pairs, Friedman's test; best on: "
        + ", ".join(f"{s} {n}" for s, n in counts.items()),
        p_value=1.0 if test is None else float(np.nan_to_num(test.pvalue, nan=1.0)),
        holds=True,
    )


def times_differ(records, settings):
    """Friedman's test of the seconds of a query over data sets."""
    data = list(dict.fromkeys(data for data, _ in pairs(records)))
    found = np.array([[seconds(records, d, s) for s in STRATEGIES] for d in data])
    found = found[np.isfinite(found).all(axis=1)]
    ratios = (found / found[:, :1]).mean(axis=0) if len(found) else []
    parts = [f"{s} {x:.1f}" for s, x in zip(STRATEGIES[1:], ratios[1:], strict=False)]
    enough = len(found) > 2
    return Claim(
        "and in the run time of a query",
        "they do (the summary names none)",
        {},
        shown=f"seconds over {len(found)} data sets, Friedman's test; by LC's: "
        + ", ".join(parts),
        p_value=friedmanchisquare(*found.T).pvalue if enough else 1.0,
        holds=True,
    )
