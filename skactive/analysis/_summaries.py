"""Experiments in numbers: tests for a data set and over several, all rounds."""

from dataclasses import asdict
from typing import Any

import numpy as np
from scipy import stats

from .._utils._format import make_frame, plain
from .._utils._sklearn import validate_params
from ..simulation import Run
from ._comparison import holm, paired_t, welch_t, wilcoxon
from ._curves import (
    Groups,
    Runs,
    align_runs,
    as_runs,
    group_runs,
    name_metric,
    pair_runs,
    sort_runs,
    spread,
)
from ._diagnosis import summarize_curves
from ._timing import ledger_table

# Precomputation is shared by all runs, so it is not a cost of a strategy.
_OF_A_RUN = ("fit", "query", "final_training")
_NAMES = ("data", "learner", "strategy", "seed")  # of a run of an experiment
ALPHA = 0.05
_N_PERMUTATIONS = 9999


def runs_to_frame(runs: Runs) -> Any:
    """Return the rounds of several runs as one data frame.

    Parameters
    ----------
    runs : Run or sequence of Run
        Runs of any data sets, learners, strategies and seeds.

    Returns
    -------
    frame : pandas.DataFrame
        One row per run and round: `data`, `learner`, `strategy` and `seed` of the run,
        `round`, `n_labeled`, `cost` (so far), `fit_seconds` and `query_seconds`
        (processor seconds of this round), each metric, `n_refused` (items of this round
        that got no label) and `versions` (the packages that simulated the run, as
        text). What a run does not hold is missing.

    Raises
    ------
    ImportError
        If pandas is not installed.

    Examples
    --------
    >>> from skactive.analysis import runs_to_frame
    >>> from skactive.simulation import Run
    >>> runs = [
    ...     Run(
    ...         [{"queried": range(10), "scores": {"accuracy": score}}],
    ...         info={"data": data, "strategy": "margin", "seed": 0},
    ...     )
    ...     for data, score in [("tweets", 0.5), ("news", 0.75)]
    ... ]
    >>> frame = runs_to_frame(runs)
    >>> print(frame[["data", "strategy", "seed", "n_labeled", "accuracy"]])
         data strategy  seed  n_labeled  accuracy
    0  tweets   margin     0         10      0.50
    1    news   margin     0         10      0.75
    """
    rows = []
    for run in as_runs(runs):
        own = {name: run.info.get(name) for name in _NAMES}
        for i, record in enumerate(run.rounds):
            row = {**own, "round": i, **record, **record["scores"]}
            row["n_refused"] = len(row.pop("refused"))
            row["versions"] = run.info.get("versions")
            rows.append(row)
    return make_frame(rows).drop(columns=["queried", "scores"], errors="ignore")


@validate_params({"scoring": [str, None], "baseline": [str]})
def summarize_runs(
    runs: Groups, *, scoring: str | None = None, baseline: str = "random"
) -> dict[str, Any]:
    """Compare strategies with a baseline, for one learner and one data set.

    Parameters
    ----------
    runs : dict of str to list of Run, or sequence of Run
        A sequence is grouped by the strategy in the `info` of each run.
    scoring : str or None, default=None
        Defaults to the first metric of the first run.
    baseline : str, default="random"
        Name of the strategy to compare with. Without such runs nothing is compared.

    Returns
    -------
    summary : dict
        Plain values, for a JSON file: "scoring", "baseline", "settings" (what is the
        same in the `info` of all runs), "n_labeled" (label counts that all runs cover),
        "precomputation_seconds" (of the slowest run, because an experiment encodes once
        and every run records it), "aliases" (a dict from each strategy that made the
        same queries as another one in all runs to that one) and "strategies", without
        aliases, sorted by their mean over the curve in descending order. Each has
        "n_runs", "mean" and "std" at each count, "area" (the mean over the curve),
        "seconds" of the processor per run in the other phases and, except for the
        baseline, "test". The test compares the areas: by a paired t test if the seeds
        are the same, and by Welch's otherwise. "p_holm" is corrected for the number of
        strategies.

    Raises
    ------
    ValueError
        If the runs hold no scores, or mix data sets or learners.

    See Also
    --------
    summarize_data_sets : The comparison over data sets.
    diagnose : A verdict on one strategy.
    skactive.plotting.write_report : The summary as a table, with pictures.

    Examples
    --------
    >>> from skactive.analysis import summarize_runs
    >>> from skactive.simulation import Run
    >>> runs = {
    ...     name: [Run([{"queried": [0], "scores": {"f1": s}}]) for s in scores]
    ...     for name, scores in {"random": [0.5, 0.6], "margin": [0.7, 0.9]}.items()
    ... }
    >>> summary = summarize_runs(runs)
    >>> list(summary["strategies"]), summary["strategies"]["margin"]["mean"]
    (['margin', 'random'], [0.8])
    """
    groups, aliases = _split_aliases(sort_runs(runs), baseline)
    scoring, grid, scores, areas = _align(groups, scoring)
    ledger = ledger_table(groups, phases=_OF_A_RUN)
    strategies = {}
    for name in sorted(groups, key=lambda name: -areas[name].mean()):
        seconds = ledger.mean[ledger.names.index(name)].tolist()
        entry = strategies[name] = {
            "n_runs": len(groups[name]),
            "mean": scores[name].mean(axis=0).tolist(),
            "std": spread(scores[name]).tolist(),
            "area": float(areas[name].mean()),
            "seconds": dict(zip(ledger.phases, seconds, strict=True)),
        }
        if baseline in groups and name != baseline:
            test = _test(groups, areas, name, baseline)
            entry |= {"test": test} if test else {}
    _correct(strategies)
    members = [run for group in groups.values() for run in group]
    settings = {
        key: value
        for key, value in plain(members[0].info).items()
        if key not in _NAMES and all(run.info.get(key) == value for run in members)
    }
    return {
        "scoring": scoring,
        "baseline": baseline,
        "settings": settings,
        "n_labeled": grid.tolist(),
        "precomputation_seconds": max(run.ledger["precomputation"] for run in members),
        "aliases": aliases,
        "strategies": strategies,
    }


def _align(groups, scoring):
    """Return the metric, the common label counts (r,), scores (n, r) and areas (n,).

    Scores and areas are dicts by the names of the groups.
    """
    members = [run for group in groups.values() for run in group]
    scoring = name_metric(members, scoring)
    grid, _ = align_runs(members, scoring)
    scores = {
        name: align_runs(group, scoring, grid=grid)[1] for name, group in groups.items()
    }
    areas = {name: summarize_curves(rows, grid)[:, 0] for name, rows in scores.items()}
    return scoring, grid, scores, areas


def _split_aliases(groups, first):
    """Return the groups without aliases, and a dict of each alias to its original.

    Aliases made the same queries, with the same scores, in all runs, as two names of
    one strategy do. `first` is never an alias.
    """
    originals, aliases = {}, {}
    for name in sorted(groups, key=lambda name: name != first):
        queries = str(sorted(map(_list_queries, groups[name])))
        original = originals.setdefault(queries, name)
        if original != name:
            aliases[name] = original
    return {name: x for name, x in groups.items() if name not in aliases}, aliases


def _list_queries(run):
    """Return data, seed, queries and scores of a run as text."""
    rounds = [(record["queried"], record["scores"]) for record in run.rounds]
    return repr((run.info.get("data"), run.info.get("seed"), rounds))


def _test(groups, areas, name, baseline):
    """Test areas, in pairs if the seeds are the same; None for one run."""
    ours, theirs = areas[name], areas[baseline]
    if min(len(ours), len(theirs)) < 2:
        return None
    pairs = pair_runs(groups[name], groups[baseline])
    if pairs is None:
        return plain(asdict(welch_t(ours, theirs)))
    first, second = map(list, zip(*pairs, strict=True))
    return plain(asdict(paired_t(ours[first], theirs[second])))


def _correct(strategies):
    """Add the p-values that are corrected by Holm's procedure."""
    tests = [entry["test"] for entry in strategies.values() if "test" in entry]
    for test, p in zip(tests, holm([t["p_value"] for t in tests]), strict=True):
        test["p_holm"] = float(p)


@validate_params({"scoring": [str, None], "baseline": [str]})
def summarize_data_sets(
    runs: Runs, *, scoring: str | None = None, baseline: str = "random"
) -> dict[str, Any]:
    """Compare strategies over several data sets, for one learner.

    The score of a strategy on a data set is its mean over the curve and over the runs.
    Data sets are the units of the tests: more seeds do not make the p-values smaller
    than the number of data sets allows [1]_.

    Parameters
    ----------
    runs : sequence of Run
        Runs of several data sets, with "data" and "strategy" in their `info`.
    scoring : str or None, default=None
        Defaults to the first metric of the first run.
    baseline : str, default="random"
        Name of the strategy to compare with. Without such runs nothing is compared.

    Returns
    -------
    summary : dict
        Plain values, for a JSON file: "scoring", "baseline", "data" (names), "aliases"
        (as of `summarize_runs`, over all data sets), "left_out" (strategies that lack a
        data set), "friedman" (the statistic, chi-squared with ties corrected, and its
        p-value by 9,999 permutations within the data sets), "critical_difference" (of
        two mean ranks, by Nemenyi's test at 5%) and "strategies", sorted by their mean
        rank. Each has "areas" (the score on each data set), "mean_rank" (1 is the best)
        and, except for the baseline, "wins", "ties" and "losses" (the data sets where
        the 95% interval of the test of `summarize_runs` lies above 0, includes 0, or
        lies below 0) and "test": Wilcoxon's signed-rank test of the areas, with
        "p_holm" corrected for the number of strategies.

    Raises
    ------
    ValueError
        If fewer than two strategies have runs of all data sets, there are fewer than
        two data sets, or runs mix learners.

    See Also
    --------
    summarize_runs : The comparison for one data set.

    References
    ----------
    .. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data
       sets", Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from skactive.analysis import summarize_data_sets
    >>> from skactive.simulation import Run
    >>> runs = [
    ...     Run(
    ...         [{"queried": [i], "scores": {"f1": score}}],
    ...         info={"data": data, "strategy": strategy, "seed": 0},
    ...     )
    ...     for i, (strategy, scores) in enumerate(
    ...         {"random": [0.5, 0.8], "margin": [0.6, 0.9]}.items()
    ...     )
    ...     for data, score in zip(["tweets", "news"], scores)
    ... ]
    >>> summary = summarize_data_sets(runs)
    >>> {name: x["mean_rank"] for name, x in summary["strategies"].items()}
    {'margin': 1.0, 'random': 2.0}
    """
    runs = as_runs(runs)
    scoring = name_metric(runs, scoring)
    by_data = {name: sort_runs(part) for name, part in group_runs(runs, "data").items()}
    merged: dict[str, list[Run]] = {}
    for name, group in [pair for groups in by_data.values() for pair in groups.items()]:
        merged.setdefault(name, []).extend(group)
    merged, aliases = _split_aliases(merged, baseline)
    names = [x for x in merged if all(x in groups for groups in by_data.values())]
    n, k = len(by_data), len(names)
    if n < 2 or k < 2:
        raise ValueError(
            "'runs' must hold several data sets and different strategies with runs of "
            f"all of them, got the data {list(by_data)} and the strategies {names}."
        )
    parts = []  # of each data set: groups and areas
    for groups in by_data.values():
        groups = {name: groups[name] for name in names}
        parts.append((groups, _align(groups, scoring)[-1]))
    means = np.array([[areas[name].mean() for name in names] for _, areas in parts])
    ranks = stats.rankdata(-means.round(12), axis=1)
    strategies = {}
    for j in np.argsort(ranks.mean(axis=0), kind="stable"):
        entry = {"areas": means[:, j].tolist(), "mean_rank": float(ranks[:, j].mean())}
        if baseline in names and names[j] != baseline:
            tests = [_test(*part, names[j], baseline) for part in parts]
            # Both limits above 0 make 2, both below it -2.
            signs = [np.sign(test["interval"]).sum() if test else 0 for test in tests]
            wins, losses = signs.count(2), signs.count(-2)
            entry |= {"wins": wins, "ties": n - wins - losses, "losses": losses}
            test = wilcoxon(means[:, j], means[:, names.index(baseline)])
            entry["test"] = plain(asdict(test))
        strategies[names[j]] = entry
    _correct(strategies)
    q = stats.studentized_range.ppf(1 - ALPHA, k, np.inf)
    return {
        "scoring": scoring,
        "baseline": baseline,
        "data": list(by_data),
        "aliases": aliases,
        "left_out": [name for name in merged if name not in names],
        "friedman": friedman(ranks),
        "critical_difference": float(q * np.sqrt(k * (k + 1) / (12 * n))),
        "strategies": strategies,
    }


def friedman(ranks):
    """Test whether ranks (n, k) within n data sets differ more than by chance.

    Returns a dict of Friedman's statistic, with ties corrected, and its p-value by
    permutations of each row, which is valid for few data sets.
    """
    n, k = ranks.shape
    rows = np.broadcast_to(np.sort(ranks, axis=1), (_N_PERMUTATIONS, n, k))
    drawn = np.random.default_rng(0).permuted(rows, axis=2)
    sums = np.concatenate([ranks[None], drawn]).sum(axis=1)
    squares = ((sums - n * (k + 1) / 2) ** 2).sum(axis=1)
    total = ((ranks - (k + 1) / 2) ** 2).sum()
    p_value = (squares > squares[0] - 1e-9).mean()
    statistic = (k - 1) * squares[0] / total if total else 0.0
    return {"statistic": float(statistic), "p_value": float(p_value)}
