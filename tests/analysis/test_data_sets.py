"""Comparisons over data sets, against published ranks, scipy and brute force."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skactive.analysis import (
    diagnose,
    equal_time,
    group_runs,
    holm,
    labels_needed,
    ledger_table,
    paired_t,
    runs_to_frame,
    summarize_data_sets,
    summarize_runs,
    wilcoxon,
)
from skactive.analysis._report import format_report
from skactive.analysis._summaries import friedman
from skactive.plotting import ActiveLearningCurveDisplay
from skactive.simulation import Run

# Table 6 of Demšar (2006): the AUC of four classifiers on 14 data sets. The third and
# the fourth are 0.975 on "voting" in print, where their ranks are 2 and 3.
NAMES = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def make(data, strategy, seed, *scores, place=0, **info):
    """A run whose queries depend on the strategy, so that no two are the same."""
    start = 1000 * sum(map(ord, strategy)) + 10 * place
    rounds = [
        {"queried": [start + i], "n_labeled": 10 * (i + 1), "scores": {"auc": score}}
        for i, score in enumerate(scores)
    ]
    names = {"data": data, "strategy": strategy, "seed": seed}
    return Run(rounds, info={**names, **info})


def tabulate(scores, names):
    """Runs of one seed and one round with `scores` (data sets, strategies)."""
    return [
        make(f"set {i}", name, 0, scores[i, j])
        for i in range(len(scores))
        for j, name in enumerate(names)
    ]


RISE = np.array([0.5, 0.6, 0.7])


def draw(gains, n_data=4, n_seeds=6, noise=0.01):
    """Runs of three rounds; a strategy has a gain over what all share."""
    rng = np.random.default_rng(0)
    return [
        make(
            f"set {i}",
            name,
            s,
            *(0.5 + gain + RISE + noise * rng.normal()),
            place=i + s,
        )
        for i in range(n_data)
        for name, gain in gains.items()
        for s in range(n_seeds)
    ]


GAINS = {"random": 0.0, "margin": 0.05, "badge": 0.0, "worse": -0.05}


# Ranks


def test_the_example_of_demsar():
    summary = summarize_data_sets(tabulate(AUC, NAMES), baseline="C4.5")
    found = {name: entry["mean_rank"] for name, entry in summary["strategies"].items()}
    published = [3.143, 2.000, 2.893, 1.964]
    assert {n: round(x, 3) for n, x in found.items()} == dict(
        zip(NAMES, published, strict=True)
    )
    assert list(found) == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]
    assert round(summary["critical_difference"], 2) == 1.25


def test_friedman_is_that_of_scipy():
    expected = stats.friedmanchisquare(*AUC.T)
    test = summarize_data_sets(tabulate(AUC, NAMES))["friedman"]
    assert_allclose(test["statistic"], expected.statistic)
    # scipy's p-value holds for many data sets.
    assert abs(test["p_value"] - expected.pvalue) < 0.01
    rng = np.random.default_rng(0)
    shifts = np.array([0, 0, 0.1, 0.3])
    many = stats.rankdata(shifts + rng.normal(size=(60, 4)), axis=1)
    test, expected = friedman(many), stats.friedmanchisquare(*many.T)
    assert_allclose(test["statistic"], expected.statistic)
    assert abs(test["p_value"] - expected.pvalue) < 0.015


@pytest.mark.parametrize(
    "ranks", [[[1, 2, 3], [1, 3, 2], [1, 2, 3]], [[1, 2, 3], [1.5, 1.5, 3]]]
)
def test_friedman_by_all_permutations(ranks):
    ranks = np.array(ranks)

    def spread(rows):
        return ((np.sum(rows, axis=0) - len(ranks) * 2) ** 2).sum()

    rows = [list(itertools.permutations(row)) for row in ranks]
    spreads = np.array([spread(choice) for choice in itertools.product(*rows)])
    expected = (spreads >= spread(ranks) - 1e-9).mean()
    assert abs(friedman(ranks)["p_value"] - expected) < 0.02


def test_ranks_that_are_all_tied_do_not_differ():
    assert friedman(np.full((3, 2), 1.5)) == {"statistic": 0, "p_value": 1}


def test_scores_that_differ_in_their_last_bits_are_tied():
    runs = tabulate(np.array([[0.1 + 0.2, 0.3], [0.5, 0.4]]), ["random", "margin"])
    strategies = summarize_data_sets(runs)["strategies"]
    assert strategies["random"]["mean_rank"] == 1.25


# Tests


def test_the_tests_are_those_of_the_means_of_the_data_sets():
    runs = draw(GAINS, n_data=7)
    strategies = summarize_data_sets(runs)["strategies"]
    # Evenly spaced scores: the mean over the curve is the one in the middle.
    means = {
        name: [
            np.mean([r.scores[1] for r in runs if r.info["data"] == f"set {i}"
                     and r.info["strategy"] == name]) for i in range(7)
        ]
        for name in GAINS
    }  # fmt: skip
    others = [name for name in GAINS if name != "random"]
    tests = [wilcoxon(means[name], means["random"]) for name in others]
    corrected = holm([test.p_value for test in tests])
    for name, test, p in zip(others, tests, corrected, strict=True):
        entry = strategies[name]
        assert_allclose(entry["areas"], means[name])
        assert_allclose(entry["test"]["p_value"], test.p_value)
        assert_allclose(entry["test"]["p_holm"], p)
        assert_allclose(entry["test"]["difference"], test.difference)
    assert "test" not in strategies["random"]
    assert "wins" not in strategies["random"]


def test_a_tie_is_an_interval_over_seeds_with_0():
    runs = draw(GAINS, noise=0.03)
    strategies = summarize_data_sets(runs)["strategies"]
    for name in ("margin", "badge", "worse"):
        signs = []
        for i in range(4):
            ours, theirs = (
                [r.scores[1] for r in runs
                 if (r.info["data"], r.info["strategy"]) == (f"set {i}", one)]
                for one in (name, "random")
            )  # fmt: skip
            low, high = paired_t(ours, theirs).interval
            signs.append(0 if low <= 0 <= high else np.sign(low))
        entry = strategies[name]
        counts = [signs.count(sign) for sign in (1, 0, -1)]
        assert [entry["wins"], entry["ties"], entry["losses"]] == counts
    assert strategies["margin"]["wins"] > 0
    assert strategies["worse"]["losses"] > 0


@pytest.mark.parametrize(
    ("n_data", "n_strategies", "needed"), [(5, 3, 7), (6, 3, 7), (5, 1, 6), (4, 4, 8)]
)
def test_too_few_data_sets_are_named(n_data, n_strategies, needed):
    # As different as can be: each is worse than the previous one on all data sets.
    names = ["random", *"abcd"[:n_strategies]]
    scores = np.tile(np.arange(n_strategies + 1) / 10, (n_data, 1))
    scores += np.arange(n_data)[:, None] / 1000 * np.arange(n_strategies + 1)

    def find(scores):
        summary = summarize_data_sets(tabulate(scores, names))
        tests = [x["test"]["p_holm"] for x in summary["strategies"].values()
                 if "test" in x]  # fmt: skip
        return format_report({"over": summary}), min(tests)

    text, p = find(scores)
    assert p >= 0.05
    sentence = f"With {n_data} data sets it cannot be below 0.05: that takes {needed}"
    assert sentence in text
    enough = np.tile(np.arange(n_strategies + 1) / 10, (needed, 1))
    enough += np.arange(needed)[:, None] / 1000 * np.arange(n_strategies + 1)
    text, p = find(enough)
    assert p < 0.05
    assert "cannot be below" not in text


def test_one_run_for_each_data_set_makes_ties():
    entry = summarize_data_sets(tabulate(AUC, NAMES), baseline="C4.5")
    assert entry["strategies"]["C4.5+m"]["ties"] == 14


# Aliases


def copy_as(runs, name, strategy="margin"):
    return [
        Run(run.rounds, info={**run.info, "strategy": name})
        for run in runs
        if run.info["strategy"] == strategy
    ]


def test_strategies_with_the_same_queries_count_once():
    runs = draw(GAINS)
    plain = summarize_data_sets(runs)
    summary = summarize_data_sets([*copy_as(runs, "another"), *runs])
    assert summary["aliases"] == {"margin": "another"}
    margin = plain["strategies"].pop("margin")
    assert summary["strategies"].pop("another") == margin
    assert summary["strategies"] == plain["strategies"]
    assert summary["friedman"] == plain["friedman"]
    assert summary["critical_difference"] == plain["critical_difference"]


def test_a_strategy_that_equals_the_baseline_on_one_data_set_ties_there():
    runs = draw({"random": 0.0, "margin": 0.05}, n_data=3)
    first = [run for run in runs if run.info["data"] == "set 0"]
    others = [run for run in runs if run.info["data"] != "set 0"]
    copies = copy_as(first, "new", "random") + copy_as(others, "new")
    entry = summarize_data_sets(runs + copies)["strategies"]["new"]
    assert [entry["wins"], entry["ties"], entry["losses"]] == [2, 1, 0]


def test_the_baseline_is_never_left_out():
    runs = draw(GAINS)
    summary = summarize_data_sets([*copy_as(runs, "chance", "random"), *runs])
    assert summary["aliases"] == {"chance": "random"}
    text = format_report({"over": summary})
    assert "as they made the same queries in all runs: chance = random." in text


def test_one_other_query_makes_another_strategy():
    runs = draw(GAINS)
    others = copy_as(runs, "another")
    last = others[-1]
    rounds = [*last.rounds[:-1], {**last.rounds[-1], "queried": [7]}]
    others[-1] = Run(rounds, info=last.info)
    assert summarize_data_sets([*runs, *others])["aliases"] == {}


def test_aliases_count_once_in_the_table_of_a_data_set():
    runs = [run for run in draw(GAINS) if run.info["data"] == "set 0"]
    plain = summarize_runs(runs)
    summary = summarize_runs([*runs, *copy_as(runs, "another")])
    assert summary["aliases"] == {"another": "margin"}
    assert summary["strategies"] == plain["strategies"]
    assert "in all runs: another = margin." in format_report({"one": summary})


def test_a_strategy_that_lacks_a_data_set_is_left_out():
    runs = [*draw(GAINS), make("set 0", "new", 0, 0.9, 0.9, 0.9)]
    summary = summarize_data_sets(runs)
    assert summary["left_out"] == ["new"]
    assert "new" not in summary["strategies"]
    text = format_report({"over": summary})
    assert "Left out, as they lack runs of a data set: new." in text


def test_without_a_baseline_there_are_only_ranks():
    summary = summarize_data_sets(draw({"margin": 0.1, "badge": 0.0}))
    assert all("test" not in entry for entry in summary["strategies"].values())
    assert "Wilcoxon" not in format_report({"over": summary})


def test_the_page_names_the_critical_difference_only_after_friedman():
    clear = format_report({"over": summarize_data_sets(draw(GAINS, n_data=6))})
    assert "apart or more differ significantly (Nemenyi" in clear
    assert "| margin | 1.00 |" in clear
    same = summarize_data_sets(draw(dict.fromkeys(GAINS, 0.0), n_data=2))
    text = format_report({"over": same})
    assert "Chance can explain the differences of the mean ranks." in text
    assert "Nemenyi" not in text


@pytest.mark.parametrize(
    "runs",
    [
        draw(GAINS, n_data=1),
        draw({"margin": 0.0}),
        [make("a", "margin", 0, 0.5), make("b", "badge", 0, 0.5)],
    ],
)
def test_what_cannot_be_compared_is_named(runs):
    with pytest.raises(ValueError, match="'runs' must hold several data sets and"):
        summarize_data_sets(runs)


def test_two_learners_are_not_mixed():
    runs = draw(GAINS)
    other = [Run(run.rounds, info={**run.info, "learner": "nb"}) for run in runs]
    with pytest.raises(ValueError, match="'runs' under 'random' differ in 'learner'"):
        summarize_data_sets([*runs, *other])


# One mean of several data sets


def _by_strategy(runs, name):
    return [run for run in runs if run.info["strategy"] == name]


@pytest.mark.parametrize(
    ("function", "subject"),
    [
        (group_runs, "under 'random'"),
        (ledger_table, "under 'random'"),
        (equal_time, "under 'random'"),
        (summarize_runs, "under 'random'"),
        (ActiveLearningCurveDisplay.from_runs, "under 'random'"),
        (lambda runs: labels_needed(runs, "random", at=20), "under 'random'"),
        (
            lambda runs: diagnose(
                _by_strategy(runs, "margin"), _by_strategy(runs, "random")
            ),
            "and 'baseline_runs'",
        ),
        (
            lambda runs: labels_needed(
                {"margin": _by_strategy(runs, "margin")},
                _by_strategy(runs, "random"),
                at=20,
            ),
            "and 'baseline'",
        ),
    ],
)
def test_runs_of_several_data_sets_have_no_mean(function, subject):
    message = (
        f"'runs' {subject} differ in 'data': \"set 0\", \"set 1\". Their mean would "
        "mix these. Pass the runs of one"
    )
    with pytest.raises(ValueError, match=message):
        function(draw(GAINS, n_data=2))


def test_groups_of_each_data_set_are_none():
    groups = group_runs(draw(GAINS, n_data=2), ("data", "strategy"))
    assert len(groups) == 8
    assert len(ledger_table(groups).names) == 8


# The frame


def test_the_frame_has_a_row_for_each_run_and_round():
    runs = draw({"random": 0.0, "margin": 0.1}, n_data=2, n_seeds=2)
    runs[0].info["versions"] = "numpy 2.4.6, skactive 0.2.0"
    frame = runs_to_frame(runs)
    assert len(frame) == 2 * 2 * 2 * 3
    keys = ["data", "strategy", "seed", "round"]
    assert not frame.duplicated(keys).any()
    table = frame.set_index(keys).sort_index()
    for run in runs:
        own = tuple(run.info[key] for key in keys[:3])
        assert_allclose(table.loc[own, "auc"], run.scores)
        assert table.loc[own, "n_labeled"].tolist() == [10, 20, 30]
        assert table.loc[own, "cost"].tolist() == run.cost.tolist()
    assert frame["versions"].dropna().unique().tolist() == [runs[0].info["versions"]]
    assert "queried" not in frame


def test_what_a_run_lacks_is_missing_in_the_frame():
    runs = [
        Run([{"queried": [0, 1], "refused": [1], "scores": {"f1": None}}]),
        Run([{"queried": [0], "scores": {"auc": 0.5}, "fit_seconds": 2.0}]),
    ]
    frame = runs_to_frame(runs)
    assert frame["n_refused"].tolist() == [1, 0]
    assert frame["fit_seconds"].tolist() == [0, 2]
    assert frame["f1"].isna().all()
    assert frame["auc"].isna().tolist() == [True, False]
    assert frame["data"].isna().all()
    assert len(runs_to_frame(Run())) == 0
