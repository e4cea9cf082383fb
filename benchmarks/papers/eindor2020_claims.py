"""What is measured for the claims of the paper of eindor2020.py."""

import numpy as np
from eindor2020_scores import (
    ALL,
    STRATEGIES,
    judged,
    means,
    metric_of,
    pairs,
    pick,
    relative,
    seconds,
)
from scipy.stats import binomtest, friedmanchisquare, spearmanr
from verdicts import differ, read_claims


def make_claims(records, settings):
    """Measure what the paper claims on the pairs of data set and scenario."""
    groups = {pair: [pick(records, pair, s) for s in ALL] for pair in judged(records)}
    tests = {
        "most data sets": lambda: test_share(groups),
        "scores differ": lambda: test_scores(groups),
        "times differ": lambda: test_times(records),
        "practical": lambda: measure_practical(groups),
    }

    def measure(item, *, what, scenarios=None, **of):
        if what in tests:
            return tests[what]()
        own = {
            data if scenarios else f"{data}, {scenario}": runs
            for (data, scenario), runs in groups.items()
            if scenarios is None or scenario in scenarios
        }
        function = DIFFERENCES[what]
        return differ(own, lambda *runs: function(*runs, **of, **item)) if own else None

    loops = {
        "strategies": [{"strategy": s} for s in STRATEGIES],
        "uncertainty": [{"strategy": s} for s in ("LC", "Dropout")],
    }
    return read_claims("eindor2020", measure, loops)


def measure_lead(*groups, metric="f1", strategy=None):
    """Points by which a strategy, or the mean of all, leads random choice."""
    random, *others = (means(runs, metric) for runs in groups)
    own = others if strategy is None else [others[STRATEGIES.index(strategy)]]
    return np.mean(own, axis=0) - random


def measure_relative(*groups, key, strategy):
    """Percent by which batches have more of a measure than random ones."""
    return relative(groups[ALL.index(strategy)], groups[0], key)


def measure_diverse(*groups):
    own, other = (
        np.mean([means(groups[ALL.index(s)], "diversity") for s in names], axis=0)
        for names in (("Core-Set", "DAL"), ("LC", "Dropout"))
    )
    return 100 * (own - other) / means(groups[0], "diversity")


def measure_pays(*groups, key):
    """Rank correlation over the strategies, for each seed."""
    measure, score = (
        np.array([means(runs, name) for runs in groups]) for name in (key, "f1")
    )
    both = zip(measure.T, score.T, strict=True)
    found = [spearmanr(a, b).statistic for a, b in both]
    return np.nan_to_num(found)  # where all have the same


DIFFERENCES = {
    "lead": measure_lead,
    "relative": measure_relative,
    "diverse": measure_diverse,
    "pays": measure_pays,
}


def measure_practical(groups):
    """Gain in the practical scenario against the mean of the others, same data."""
    own = {}
    for data in dict.fromkeys(data for data, _ in groups):
        found = {s: runs for (d, s), runs in groups.items() if d == data}
        if "imbalanced-practical" in found and len(found) > 1:
            last = found.pop("imbalanced-practical")
            own[data] = [*last, *(runs for each in found.values() for runs in each)]

    def difference(*flat):
        leads = [measure_lead(*flat[i : i + 7]) for i in range(0, len(flat), 7)]
        return leads[0] - np.mean(leads[1:], axis=0)

    return differ(own, difference) if own else None


def test_share(groups):
    """Data sets on which all six are better than random choice."""
    ahead = {}
    for (data, scenario), runs in groups.items():
        scores = [means(each, metric_of(scenario)).mean() for each in runs]
        ahead.setdefault(data, []).append(min(scores[1:]) > scores[0])
    won = sum(np.mean(each) > 0.5 for each in ahead.values())
    n_pairs = sum(sum(each) for each in ahead.values())
    shown = f"in {won} of {len(ahead)} data sets; in {n_pairs} of {len(groups)} pairs "
    return {
        "values": {},
        "shown": f"{shown}with a scenario (exact test against one half)",
        "p_value": binomtest(won, len(ahead)).pvalue,
        "holds": won > len(ahead) / 2,
    }


def test_scores(groups):
    """Friedman's test of the six strategies over pairs."""
    scores = np.array(
        [[means(runs, "f1").mean() for runs in each[1:]] for each in groups.values()]
    )
    best = [STRATEGIES[i] for i in scores.argmax(axis=1)]
    counts = [f"{s} {best.count(s)}" for s in STRATEGIES if s in best]
    shown = f"F1 over {len(scores)} pairs, Friedman's test; best on: "
    return _friedman(scores, shown + ", ".join(counts))


def test_times(records):
    """Friedman's test of the seconds of a query over data sets."""
    data = list(dict.fromkeys(data for data, _ in pairs(records)))
    found = np.array([[seconds(records, d, s) for s in STRATEGIES] for d in data])
    found = found[np.isfinite(found).all(axis=1)]
    ratios = (found / found[:, :1]).mean(axis=0) if len(found) else []
    parts = [f"{s} {x:.1f}" for s, x in zip(STRATEGIES[1:], ratios[1:], strict=False)]
    shown = f"seconds over {len(found)} data sets, Friedman's test; by LC's: "
    return _friedman(found, shown + ", ".join(parts))


def _friedman(rows, shown):
    """Test whether columns differ; without enough rows p is 1."""
    p = friedmanchisquare(*rows.T).pvalue if len(rows) > 2 else 1.0
    p = float(np.nan_to_num(p, nan=1.0))
    return {"values": {}, "shown": shown, "p_value": p, "holds": True}
