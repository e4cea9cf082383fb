"""Verdicts on the claims of papers, checked against other libraries."""

import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW

PAPERS = Path(__file__).parents[2] / "benchmarks" / "papers"


def load(name):
    """Import a module of the scripts."""
    sys.path.insert(0, str(PAPERS))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(PAPERS))


@pytest.fixture(scope="module")
def verdicts():
    return load("verdicts")


def test_only_what_no_record_has_is_run():
    kept = [
        {"data": "a", "seed": 0, "rate": 0.1, "score": 0.5},
        {"data": "a", "seed": 1, "rate": 0.2, "score": 0.5},
    ]
    cells = [
        {"data": data, "seed": seed, "rate": rate, "size": 7}
        for data in ("a", "b")
        for seed in (0, 1)
        for rate in (0.1, 0.2)
    ]
    found = load("common").harness.missing(cells, kept)
    assert found == [c for i, c in enumerate(cells) if i not in (0, 3)]


@pytest.fixture
def draw():
    rng = np.random.default_rng(0)
    return lambda n, mean=0.3, spread=1.0: rng.normal(mean, spread, size=n)


def test_one_data_set_has_the_t_test_of_scipy(verdicts, draw):
    values = draw(12)
    claim = verdicts.Claim("more", "", {"a": values}, margin=0.8)
    differs, within, _ = claim.p_values()
    assert differs == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    expected = DescrStatsW(values).ttost_mean(-0.8, 0.8)[0]
    assert within == pytest.approx(expected)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert f"[{low:+.1f}, {high:+.1f}] points; n = 12" in verdicts.said(claim)


def test_two_data_sets_have_the_test_of_welch(verdicts, draw):
    a, b = draw(7), draw(15, spread=3.0)
    mean, error, df = verdicts.harness.stratified({"a": a, "b": b})
    expected = stats.ttest_ind(a, -b, equal_var=False)
    assert mean / error == pytest.approx(expected.statistic)
    assert df == pytest.approx(expected.df)


def test_the_power_is_that_of_statsmodels_and_of_simulation(verdicts, draw):
    values = draw(10)
    claim = verdicts.Claim("more", "", {"a": values}, margin=1.0)
    n, alpha, error = 40, 0.05, values.std(ddof=1)
    detected = TTestPower().power(1.0 / error, n, alpha / 2)
    rng = np.random.default_rng(1)
    runs = rng.normal(0, error, size=(4000, n))
    half = stats.t.isf(alpha / 2, n - 1) * runs.std(axis=1, ddof=1) / np.sqrt(n)
    equal = np.mean(np.abs(runs.mean(axis=1)) + half < 1.0)
    alike = verdicts.Claim("alike", "", {"a": values}, kind="alike", margin=1.0)
    assert alike.power(n, alpha) == pytest.approx(equal, abs=0.03)
    assert claim.power(n, alpha) == pytest.approx(min(detected, equal), abs=0.03)
    needed = claim.seeds_needed(alpha)
    assert claim.power(needed, alpha) >= 0.8 > claim.power(needed * 0.8, alpha)


@pytest.mark.parametrize(
    ("mean", "kind", "expected"),
    [
        (2.0, "more", "holds"),
        (-2.0, "more", "does not hold"),
        (-2.0, "less", "holds"),
        (0.0, "more", "no difference above 1 point"),
        (0.5, "more", "holds, by less than 1 point"),
        (0.0, "alike", "holds"),
        (2.0, "alike", "does not hold"),
        (0.5, "same", "does not hold"),
        (0.0, "same", "holds"),
    ],
)
def test_each_verdict(verdicts, mean, kind, expected):
    values = mean + 0.4 * stats.norm.ppf((np.arange(40) + 0.5) / 40)
    claim = verdicts.Claim("a claim", "", {"a": values}, kind=kind)
    _, found, _ = verdicts.judge([claim])
    assert found == [expected]


def find_differences(looks, spread, runs=20_000):
    """Return in how many percent of runs without a difference the rule finds one.

    The seeds of a claim with a margin of 1 end when it is decided.
    """
    values = np.random.default_rng(0).normal(0, spread, (runs, looks[-1]))
    is_open, found = np.ones(runs, dtype=bool), np.zeros(runs, dtype=bool)
    for n in looks:
        mean, error = values[:, :n].mean(1), stats.sem(values[:, :n], axis=1)
        differs = 2 * stats.t.sf(np.abs(mean) / error, n - 1)
        within = stats.t.sf((1 - np.abs(mean)) / error, n - 1)
        decided = is_open & (2 * np.minimum(differs, within) <= 0.05)
        found |= decided & (2 * differs <= 0.05)
        is_open &= ~decided
    return 100 * found.mean()


# docs/results/claims.md has these figures.
@pytest.mark.parametrize(
    ("looks", "said"),
    [
        ([30], 2.5),
        ([10, 30], 4.6),
        ([3, 10], 4.8),
        ([3, 6, 20], 6.8),
        ([6, 17, 111], 7.0),
        ([3, 9, 16, 31], 8.3),
    ],
)
def test_looks_in_between_find_differences_as_often_as_the_page_says(looks, said):
    found = [find_differences(looks, spread) for spread in (1, 3, 10)]
    assert max(found) == pytest.approx(said, abs=0.5)


def test_the_simulated_rule_is_that_of_the_pages(verdicts, draw):
    for _ in range(50):
        values = draw(8, mean=0.5)
        claim = verdicts.Claim("a claim", "", {"a": values})
        _, (found,), level = verdicts.judge([claim])
        test = stats.ttest_1samp(values, 0)
        error = stats.sem(values)
        within = stats.t.sf((1 - abs(values.mean())) / error, 7)
        assert level == 0.05
        assert (found != "cannot tell") == (2 * min(test.pvalue, within) <= 0.05)
        if 2 * test.pvalue <= 0.05:
            assert found.startswith(("holds", "does not hold"))


def test_noise_is_not_decided(verdicts):
    rng = np.random.default_rng(2)
    decided = []
    for _ in range(200):
        claims = [
            verdicts.Claim("noise", "", {"a": rng.normal(0, 9, 5)}) for _ in range(10)
        ]
        _, found, _ = verdicts.judge(claims)
        decided.append(any(verdict != "cannot tell" for verdict in found))
    assert np.mean(decided) < 0.1


def test_an_undecided_claim_says_what_it_would_cost(verdicts, draw):
    values = {"a": draw(5, spread=4.0), "b": draw(5, spread=4.0)}
    claim = verdicts.Claim("more", "paper", values, seconds=7200.0)
    row = verdicts.claims_table([claim])[2].strip("| ").split(" | ")
    found = re.search(r"\*\*cannot tell\*\*, .* (\d+) seeds, ([\d,.]+) hours", row[3])
    assert float(found[2].replace(",", "")) == 2.0 * (int(found[1]) - 5)
    assert verdicts.summary_table([claim])[2] == "| 0 | 0 | 0 | 1 |"
    claim.seconds = 0.0
    with pytest.raises(ValueError, match="how long a seed takes is not known: more"):
        verdicts.claims_table([claim])
