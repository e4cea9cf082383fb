"""The claims of the paper of eindor2020.py, and their verdicts."""

from collections import Counter

import numpy as np
from scipy.stats import binomtest, friedmanchisquare, spearmanr
from verdicts import above, below, said

from skactive.analysis import compare_over_datasets

STRATEGIES = ("LC", "Dropout", "PE", "EGL", "Core-Set", "DAL")
ALL = ("random", *STRATEGIES)
UNSURE = ("LC", "Dropout")
SPREAD = ("Core-Set", "DAL")
PRACTICAL = "imbalanced-practical"
LEVEL = 0.05


def metric_of(scenario):
    """The score that a scenario is judged by."""
    return "accuracy" if scenario == "balanced" else "f1"


def pairs(records):
    """Pairs of data set and scenario, in order."""
    return list(dict.fromkeys((r["data"], r["scenario"]) for r in records))


def pick(records, pair, strategy):
    """Runs of one strategy on a pair of data set and scenario, by seed."""
    wanted = (*pair, strategy)
    found = [r for r in records if (r["data"], r["scenario"], r["strategy"]) == wanted]
    return sorted(found, key=lambda r: r["seed"])


def curve_means(records, pair, strategy, metric=None):
    """Mean score over the rounds in which the strategy has asked, in percent, by seed.

    The model before its first batch is the same for all.
    """
    metric = metric or metric_of(pair[1])
    return np.array(
        [100 * np.mean(r[metric][1:]) for r in pick(records, pair, strategy)]
    )


def gains(records, pair, strategy, metric=None):
    """Points by which a strategy leads random choice, by seed."""
    found = [curve_means(records, pair, s, metric) for s in (strategy, "random")]
    return found[0] - found[1]


def relative(records, pair, strategy, key):
    """Percent by which a strategy's batches have more of something than random ones."""
    means = [
        np.array([np.mean(r[key]) for r in pick(records, pair, s)])
        for s in (strategy, "random")
    ]
    return 100 * (means[0] / means[1] - 1)


def seconds(records, pair, strategy):
    """Median seconds of a query."""
    found = [r["query_seconds"] for r in pick(records, pair, strategy)]
    return float(np.median(found))


def over_pairs(records, function, strategies, *args):
    """A value for each pair: the mean over strategies and seeds."""
    return np.array(
        [
            np.mean([function(records, pair, s, *args) for s in strategies])
            for pair in pairs(records)
        ]
    )


def compare(records):
    """Test each strategy against random over pairs: Wilcoxon, with Bonferroni."""
    scores = {
        s: [curve_means(records, pair, s).mean() for pair in pairs(records)]
        for s in ALL
    }
    return compare_over_datasets(scores, correction="bonferroni")


def judge(comparison, strategy):
    """Whether a strategy is better than random: by the sign if p is below 0.05."""
    if comparison.adjusted[strategy] >= LEVEL:
        return None
    return bool(comparison.results[strategy].difference > 0)


def claims(records):
    """Collect (claim, paper, here, verdict)."""
    gain = over_pairs(records, gains, STRATEGIES)
    rows = [
        (
            "active learning (mean of the six strategies) is better than random choice",
            "yes",
            f"{said(gain)} points, n = {len(gain)}",
            above(gain),
        ),
        _claim_of_the_practical(records),
        _claim_of_most(records),
    ]
    comparison = compare(records)
    for strategy in STRATEGIES:
        found = comparison.results[strategy]
        rows.append(
            (
                f"{strategy} is better than random choice",
                "in most data sets",
                f"median {found.difference:+.1f} points, W = {found.statistic:.0f}, "
                f"corrected {_say_p(comparison.adjusted[strategy])}",
                judge(comparison, strategy),
            )
        )
    return [
        *rows,
        _claim_of_differences(records),
        _claim_of_time(records),
        *_claims_of_batches(records),
    ]


def _say_p(p):
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _claim_of_the_practical(records):
    """Gains where the first labels come from keywords, less the others', F1 in all."""
    values = []
    for data in dict.fromkeys(d for d, s in pairs(records) if s == PRACTICAL):
        by_scenario = {
            scenario: np.mean(
                [gains(records, (data, scenario), s, "f1") for s in STRATEGIES], axis=0
            )
            for d, scenario in pairs(records)
            if d == data
        }
        most = by_scenario.pop(PRACTICAL)
        values.extend(most - np.mean(list(by_scenario.values()), axis=0))
    return (
        "most of all in the imbalanced-practical scenario",
        "especially there",
        f"gain in F1 there less the mean of the others: {said(values)} points, "
        f"n = {len(values)} (data sets and seeds)",
        above(values),
    )


def _claim_of_most(records):
    wins = [
        all(gains(records, pair, s).mean() > 0 for s in STRATEGIES)
        for pair in pairs(records)
    ]
    low, high = binomtest(sum(wins), len(wins)).proportion_ci()
    return (
        "in most data sets all six are better than random choice",
        "most",
        f"in {sum(wins)} of {len(wins)}, [{low:.0%}, {high:.0%}]",
        True if low > 0.5 else False if high < 0.5 else None,
    )


def _claim_of_differences(records):
    scores = [
        [gains(records, pair, s).mean() for pair in pairs(records)] for s in STRATEGIES
    ]
    found = friedmanchisquare(*scores)
    best = Counter(STRATEGIES[i] for i in np.argmax(scores, axis=0))
    counts = ", ".join(f"{name} {count}" for name, count in best.most_common())
    return (
        "the strategies differ in their scores",
        "they do",
        f"Friedman's chi² = {found.statistic:.1f}, {_say_p(found.pvalue)}; best on: "
        f"{counts}",
        True if found.pvalue < LEVEL else None,
    )


def _claim_of_time(records):
    medians = {
        s: np.median([seconds(records, pair, s) for pair in pairs(records)])
        for s in STRATEGIES
    }
    order = sorted(STRATEGIES, key=medians.get)
    ratios = [
        seconds(records, pair, order[-1]) / seconds(records, pair, order[0])
        for pair in pairs(records)
    ]
    return (
        "and in run time (the slowest takes at least twice the time of the fastest)",
        "they do",
        f"{order[-1]} {said(ratios).replace('+', '')} times {order[0]}",
        above(ratios, 2.0),
    )


def _claims_of_batches(records):
    rows = []
    for strategy in UNSURE:
        less = over_pairs(records, relative, [strategy], "representativeness")
        rows.append(
            (
                f"{strategy} picks outliers: batches less representative than random",
                "a known issue",
                f"{said(less)} %",
                below(less),
            )
        )
    more = [
        over_pairs(records, relative, names, "diversity") for names in (SPREAD, UNSURE)
    ]
    rows.append(
        (
            "Core-Set and DAL, made for it, take more diverse batches than LC and "
            "Dropout",
            "their purpose",
            f"{said(more[0] - more[1])} points of percent",
            above(more[0] - more[1]),
        )
    )
    for key in ("diversity", "representativeness"):
        values = [_correlation(records, pair, key) for pair in pairs(records)]
        values = [value for value in values if np.isfinite(value)]
        rows.append(
            (
                f"{key} of the batches pays: strategies that have more score higher",
                "often" if key == "diversity" else "examined",
                f"rank correlation over the seven {said(values, 2)}",
                above(values) if len(values) > 1 else None,
            )
        )
    return rows


def _correlation(records, pair, key):
    """Rank correlation, over strategies, of what batches are like and of scores."""
    likes = [np.mean([r[key] for r in pick(records, pair, s)]) for s in ALL]
    scores = [curve_means(records, pair, s).mean() for s in ALL]
    return spearmanr(likes, scores).statistic
