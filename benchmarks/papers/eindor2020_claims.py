"""The claims of the paper of eindor2020.py, and their verdicts."""

from collections import Counter

import numpy as np
from eindor2020_scores import (
    ALL,
    METRICS,
    STRATEGIES,
    by_data,
    curve_means,
    gains,
    judged,
    mean_over,
    metric_of,
    pairs,
    pick,
    relative,
    seconds,
)
from scipy.stats import binomtest, friedmanchisquare, spearmanr
from verdicts import UNCORRECTED, above, below, said

from skactive.analysis import wilcoxon

UNSURE = ("LC", "Dropout")
SPREAD = ("Core-Set", "DAL")
PRACTICAL = "imbalanced-practical"
LEVEL = 0.05
RULES = (
    "The verdicts are computed. A score is the mean over the rounds after the first "
    "labels. *Units*: each data set is one value, the mean over its seeds and, if the "
    "row names no scenario, over its scenarios. The interval in brackets (95 %, "
    "Student's t) is over data sets, and n is their number. A claim holds if the "
    "interval is on its side of 0, and does not hold if it is on the other side. If "
    'the interval contains 0, the verdict is "cannot tell"; this is likely with three '
    "data sets. Rows over several scenarios use F1 of the wanted class; accuracy and "
    "F1 are never averaged. *Better than random in most data sets*: Wilcoxon's signed-"
    "rank test over pairs of data set and scenario, with Bonferroni's correction for "
    "six strategies. The sign decides if p < 0.05. *Differ*: Friedman's test at p < "
    "0.05, of scores over pairs and of seconds over data sets. The scenarios of one "
    "data set share texts, so p-values over pairs tend to be too small. *In most data "
    "sets*: the exact interval of the share of data sets, compared with one half; at "
    f"least six data sets are needed for a decision. {UNCORRECTED}"
)


def compare(records):
    """Test each strategy against random over pairs: Wilcoxon, with Bonferroni.

    Return the tests and the corrected p-values, by strategy.
    """
    scores = {
        s: [curve_means(records, pair, s, "f1").mean() for pair in judged(records)]
        for s in ALL
    }
    tests = {s: wilcoxon(scores[s], scores["random"]) for s in STRATEGIES}
    return tests, {s: min(len(tests) * t.p_value, 1.0) for s, t in tests.items()}


def judge(test, p):
    """Whether a strategy is better than random: by the sign if p is below 0.05."""
    return bool(test.difference > 0) if p < LEVEL else None


def claims(records):
    """Collect (claim, paper, here, verdict)."""
    (tests, corrected), n = compare(records), len(judged(records))
    return [
        *_claims_of_gains(records),
        _claim_of_the_practical(records),
        _claim_of_most(records),
        *(_claim_of_one(s, tests[s], corrected[s], n) for s in STRATEGIES),
        _claim_of_differences(records),
        _claim_of_time(records),
        *_claims_of_batches(records),
    ]


def _say_p(p):
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def _row(claim, paper, values, unit, side=above, digits=1):
    """A row whose verdict is by the interval of values, one a data set."""
    if not len(values):
        return claim, paper, "nothing was learned", None
    here = said(values, digits, count=True).replace("], n", f"]{unit}, n")
    return claim, paper, here, side(values)


def _claims_of_gains(records):
    """Gains of the mean strategy: in each scenario by its score, in all by F1."""
    rows = []
    for scenario in dict.fromkeys(s for _, s in pairs(records)):
        chosen = [pair for pair in judged(records) if pair[1] == scenario]
        metric = metric_of(scenario)
        values = by_data(chosen, mean_over(records, gains, STRATEGIES, metric))
        rows.append((f"{scenario}, {METRICS[metric]}", values))
    everywhere = by_data(judged(records), mean_over(records, gains, STRATEGIES))
    rows.append(("all scenarios, F1", everywhere))
    begin = "active learning (mean of the six strategies) is better than random choice"
    return [
        _row(f"{begin}: {where}", "yes", values, " points") for where, values in rows
    ]


def _claim_of_the_practical(records):
    """Gains where the first labels come from keywords, less the others', F1 in all."""
    gain = mean_over(records, gains, STRATEGIES)
    values = []
    for data in dict.fromkeys(d for d, s in judged(records) if s == PRACTICAL):
        others = [
            gain(p) for p in judged(records) if p[0] == data and p[1] != PRACTICAL
        ]
        if others:
            values.append(gain((data, PRACTICAL)) - np.mean(others))
    return _row(
        "most of all in the imbalanced-practical scenario (gain in F1 there less the "
        "mean of the other scenarios)",
        "especially there",
        values,
        " points",
    )


def _claim_of_most(records):
    """In how many data sets each strategy leads, its scenarios taken together."""
    chosen = judged(records)
    leads = [by_data(chosen, mean_over(records, gains, [s])) for s in STRATEGIES]
    wins = (np.array(leads) > 0).all(axis=0)
    in_pairs = [
        all(gains(records, pair, s).mean() > 0 for s in STRATEGIES) for pair in chosen
    ]
    low, high = binomtest(int(wins.sum()), len(wins)).proportion_ci()
    return (
        "in most data sets all six are better than random choice",
        "most",
        f"in {wins.sum()} of {len(wins)} data sets, [{low:.0%}, {high:.0%}]; in "
        f"{sum(in_pairs)} of {len(chosen)} pairs with a scenario",
        True if low > 0.5 else False if high < 0.5 else None,
    )


def _claim_of_one(strategy, found, p, n):
    return (
        f"{strategy} is better than random choice",
        "in most data sets",
        f"median {found.difference:+.1f} points of F1 over {n} pairs, W = "
        f"{found.statistic:.0f}, corrected {_say_p(p)}",
        judge(found, p),
    )


def _friedman(blocks):
    """Friedman's test of the six strategies, a block a row; None of fewer than two."""
    if len(blocks) < 2:
        return "too few to test", None
    found = friedmanchisquare(*np.transpose(blocks))
    text = f"Friedman's chi² = {found.statistic:.1f}, {_say_p(found.pvalue)}"
    return text, True if found.pvalue < LEVEL else None


def _claim_of_differences(records):
    blocks = [
        [gains(records, pair, s).mean() for s in STRATEGIES] for pair in judged(records)
    ]
    best = Counter(STRATEGIES[i] for i in np.argmax(blocks, axis=1))
    counts = ", ".join(f"{name} {count}" for name, count in best.most_common())
    text, verdict = _friedman(blocks)
    return (
        "the strategies differ in their scores",
        "they do",
        f"F1 over {len(blocks)} pairs: {text}; best on: {counts}",
        verdict,
    )


def _claim_of_time(records):
    """The summary says that the speed differs and names no pair; so none is picked."""
    data = dict.fromkeys(r["data"] for r in records)
    blocks = np.array([[seconds(records, d, s) for s in STRATEGIES] for d in data])
    blocks = blocks[np.isfinite(blocks).all(axis=1)]
    text, verdict = _friedman(blocks)
    if len(blocks):
        ratios = np.mean(blocks / blocks[:, [STRATEGIES.index("LC")]], axis=0)
        times = zip(STRATEGIES, ratios, strict=True)
        text += "; by LC's: " + ", ".join(f"{s} {r:.1f}" for s, r in times if s != "LC")
    return (
        "and in the run time of a query",
        "they do (the summary names none)",
        f"seconds over {len(blocks)} data sets: {text}",
        verdict,
    )


def _claims_of_batches(records):
    chosen, rows = judged(records), []
    for strategy in UNSURE:
        less = mean_over(records, relative, [strategy], "representativeness")
        rows.append(
            _row(
                f"{strategy} picks outliers: batches less representative than random",
                "a known issue",
                by_data(chosen, less),
                " %",
                below,
            )
        )
    spread, unsure = (
        by_data(chosen, mean_over(records, relative, names, "diversity"))
        for names in (SPREAD, UNSURE)
    )
    rows.append(
        _row(
            "Core-Set and DAL, made for it, take more diverse batches than LC and "
            "Dropout",
            "their purpose",
            spread - unsure,
            " points",
        )
    )
    for key in ("diversity", "representativeness"):
        known = [p for p in chosen if np.isfinite(_correlation(records, p, key))]
        values = by_data(known, lambda pair, key=key: _correlation(records, pair, key))
        rows.append(
            _row(
                f"{key} of the batches pays: strategies that have more score higher "
                "(rank correlation over the seven, F1)",
                "often" if key == "diversity" else "examined",
                values,
                "",
                digits=2,
            )
        )
    return rows


def _correlation(records, pair, key):
    """Rank correlation, over strategies, of what batches are like and of scores."""
    likes = [np.mean([r[key] for r in pick(records, pair, s)]) for s in ALL]
    scores = [curve_means(records, pair, s, "f1").mean() for s in ALL]
    return spearmanr(likes, scores).statistic
