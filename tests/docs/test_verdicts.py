"""Verdicts on the claims of papers, checked against other libraries."""

import json
import re
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW

from ._helpers import read_numbers, split_row

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
        ([5, 17, 111], 6.9),
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


def read_claims_of(name):
    """Return the cells of the claims of a page, without the head."""
    return [split_row(line) for line in read_numbers(name)["tables"]["claims"][2:]]


def make_claims_of_first(verdicts):
    """Return a function that measures claims, of records with a seed and a value."""

    def make_claims(records, settings):
        values = {}
        for r in records:
            values.setdefault(r["claim"], []).append(r["value"])
        return [verdicts.Claim(text, "", {"a": v}) for text, v in values.items()]

    return make_claims


def test_the_first_seeds_are_judged_again(verdicts):
    clear = [{"claim": "clear", "seed": i, "value": 5 + i % 2} for i in range(9)]
    late = [{"claim": "late", "seed": i, "value": 9 * (-1) ** i + i} for i in range(90)]
    single = [{"claim": "single", "seed": i, "value": 5 + i % 2} for i in range(3, 12)]
    none = [{"claim": "none", "seed": i, "value": 5 + i % 2} for i in range(4, 12)]
    make_claims = make_claims_of_first(verdicts)
    tables = verdicts.claim_tables(
        make_claims, clear + late + single + none, Namespace(first_seeds=4)
    )
    head, _, *rows = map(split_row, tables["claims"])
    assert head[3:] == ["verdict", "first 4 seeds"]
    assert [row[3].split(",")[0] for row in rows] == ["**holds**"] * 4
    _, then, level = verdicts.judge(make_claims(clear[:4] + late[:4], None))
    assert (then, level) == (["holds", "cannot tell"], 0.025)
    assert rows[0][4].startswith("holds, p = 0.00")
    assert rows[1][4].startswith("**cannot tell**, p = ")
    assert [row[4] for row in rows[2:]] == [
        "**cannot tell**, one value",
        "**cannot tell**, not run",
    ]


def test_without_first_seeds_there_is_no_column(verdicts):
    records = [{"claim": "a", "seed": i, "value": 5 + i % 2} for i in range(9)]
    make_claims = make_claims_of_first(verdicts)
    tables = verdicts.claim_tables(make_claims, records, Namespace())
    assert len(split_row(tables["claims"][2])) == 4


def test_the_first_seeds_have_no_claim_of_their_own(verdicts):
    def make_claims(records, settings):
        return [verdicts.Claim(f"{len(records)} records", "", {"a": [1.0, 2.0]})]

    records = [{"seed": i} for i in range(9)]
    with pytest.raises(ValueError, match=r"that all records do not have.*2 rec"):
        verdicts.claim_tables(make_claims, records, Namespace(first_seeds=2))


def test_the_first_initializations_of_hart_are_tested_as_by_hand():
    records = read_numbers("hart")["records"]
    found = {}
    for key in ("accuracy", "f1"):
        for r in records:
            if r["part"] == "split" and r["index"] < 10:
                found.setdefault((r["model"], key), []).append(100 * r[key])
    own = {k: np.array(v) for (k, key), v in found.items() if key == "accuracy"}
    far = {k: np.abs(v - np.median(v)) for k, v in own.items()}

    def p_claim(values, margin):
        within = DescrStatsW(values).ttost_mean(-margin, margin)[0]
        return 2 * min(stats.ttest_1samp(values, 0).pvalue, within)

    f1 = np.array(found["frozen", "f1"]) - found["TF-IDF", "f1"][0]
    p_values = [
        2 * stats.ttest_1samp(f1, 6.5).pvalue,
        p_claim(own["unfrozen"] - own["frozen"], 1),
        p_claim(own["last two layers"] - own["frozen"], 1),
        p_claim(far["unfrozen"] - far["frozen"], 0.2),
        p_claim(far["last two layers"] - far["unfrozen"], 0.2),
    ]
    assert len(f1) == 10
    corrected = multipletests(np.minimum(p_values, 1), method="fdr_bh")[1]
    cells = [row[4] for row in read_claims_of("hart")]
    shown = [f"p = {p:.3f}" if p >= 0.001 else "p < 0.001" for p in corrected]
    assert [cell.split(", ")[1] for cell in cells[2:7]] == shown
    assert {cells[i] for i in (0, 1, 7)} == {"**cannot tell**, one value"}


def cut_by_hand(name, records):
    """Return the records of what was planned first on a page."""
    if name == "eindor2020":
        added = ("trec", "tweet_emotion", "tweet_offensive")
        return [r for r in records if r["data"] not in added]
    kept = [r for r in records if r.get("seed", 0) < 3]
    for r in kept:
        if "similarity" in r:
            r["similarity"] = r["similarity"][:3]
    return kept


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("griesshaber2020", "griesshaber2020_claims"),
        ("eindor2020", "eindor2020_claims"),
        ("prepal_labels", "prepal_claims"),
    ],
)
def test_the_column_is_the_verdict_of_records_cut_by_hand(verdicts, name, module):
    numbers = json.loads(json.dumps(read_numbers(name)))
    settings = Namespace(**numbers["settings"])
    first = cut_by_hand(name, numbers["records"])
    claims = load(module).make_claims(first, settings)
    by_hand = [split_row(line) for line in verdicts.claims_table(claims)[2:]]
    shown = read_claims_of(name)
    assert [row[0] for row in shown] == [row[0] for row in by_hand]
    for row, own in zip(shown, by_hand, strict=True):
        assert row[4].replace("**", "") == own[3].partition(";")[0].replace("**", "")
        verdict, now = (verdicts.kind_of(c.replace("**", "")) for c in (row[4], row[3]))
        assert row[4].startswith("**") == (verdict != now)
