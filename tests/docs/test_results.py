"""The pages of results show the tables of the JSON files next to them."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
DIRECTIVE = re.compile(r"^```\{result-table\} (\w+) (.+)\n```$", re.M)
PAGES = sorted(path.stem for path in RESULTS.glob("*.json"))
SCRIPTS = runpy.run_path(str(ROOT / "docs/_ext/result_scripts.py"))["SCRIPTS"]
# What the text of a page says, and where it comes from: the table, the start of the
# row, and the column.
QUOTED = [
    ("hart", "loses 1.9 points", "tests", "unfrozen", 1, "-0.019 "),
    ("hart", "and 1.0 to the one", "tests", "last two layers", 1, "-0.010 "),
    ("wang", "51 to 82 %", "means", "small: STS-B | last 3", 4, "51"),
    ("wang", "51 to 82 %", "means", "small: STS-B | last 1", 4, "82"),
    ("wang", "cost 3.7 and 6.5", "means", "large: SST-2, SNLI | last 2", 2, "3.7"),
    ("wang", "7.0 and 30,", "means", "small: STS-B | last 1", 2, "30.0"),
    ("wang", "takes 49 %", "claims", "an epoch of", 2, "+48.7 "),
    ("wang", "Of 19 claims 11 hold", "summary", "11", 0, "11"),
    ("eindor2020", "takes 1.0 to 2.0 times", "times", "Dropout", 9, "1.0"),
    ("eindor2020", "takes 1.0 to 2.0 times", "times", "EGL", 9, "2.0"),
    ("griesshaber2020", "(+0.1 points", "claims", "labels by BALD", 2, "+0.1 "),
    ("griesshaber2020", "(+0.5 [-0.7", "claims", "QNLI, SST-2, SNLI: f", 2, "+0.5 "),
    ("griesshaber2020", "costs 1.7 points", "claims", "freezing the last 6", 2, "-1.7"),
    ("griesshaber2020", "0.6 % less", "claims", "QNLI: with random", 2, "-0.6 "),
    (
        "griesshaber2020",
        "by 8 labels [2, 15]",
        "claims",
        "SST-2: labels",
        2,
        "-8 [-15, -2]",
    ),
    (
        "griesshaber2020",
        "by 0.8 points of the",
        "claims",
        "and scatter less",
        2,
        "-0.8 ",
    ),
    ("griesshaber2020", "Of 22 claims 8 hold", "summary", "8", 0, "8"),
    ("griesshaber2020", "saves about 36 %", "seconds", "3 | 2", 6, "36 ± "),
    ("griesshaber2020", "44 to 50 %", "seconds", "6 | 3", 4, "50 ± "),
    ("griesshaber2020", "44 to 50 %", "seconds", "6 | 3", 10, "44 ± "),
    ("prepal", "by 0.1 points on SST-2", "claims", "SST-2: PRepAL ends", 2, "+0.1 "),
    ("prepal", "by 1.4 on QNLI", "claims", "QNLI: PRepAL ends", 2, "+1.4 "),
    ("prepal", "better by 0.4 points [", "claims", "SST-2: an encoder", 2, "-0.4 "),
    ("prepal", "ends 1.2 points lower", "claims", "SST-2: one label", 2, "-1.2 "),
    (
        "prepal",
        "and 1.7 after",
        "claims",
        "CoreSet loses to random labels where logistic regression asks (fine",
        2,
        "-1.7 ",
    ),
    ("prepal", "Of 28 claims 20 hold", "summary", "20", 0, "20"),
    ("prepal_labels", "PRepAL takes 208 seconds", "ledger", "SST-2 | PRepAL", 6, "208"),
    ("prepal_labels", "(AL+FT) 4,932", "ledger", "SST-2 | AL+FT", 6, "4,932"),
    ("prepal_labels", "takes 16,931 seconds", "peer", "SST-2", 5, "16,931"),
    ("prepal_labels", "81 times as many", "peer", "SST-2", 6, "81.5"),
    ("prepal_labels", "ends at 85.4 %", "accuracy", "entropy | PRepAL", 2, "85.4 "),
    ("prepal_labels", "AL+FT at 85.8 %", "accuracy", "entropy | AL+FT", 2, "85.8 "),
    ("prepal_labels", "[-0.1, +0.9]", "claims", "SST-2: PRepAL ends", 2, "+0.4 "),
    ("prepal_labels", "to 0.23", "overlap", "SST-2 | PRepAL, entropy", 10, "0.23"),
    ("prepal_labels", "it is 120 seconds", "ledger", "AG News | PRepAL", 6, "120"),
    ("prepal_labels", "instead of 2,657", "ledger", "AG News | AL+FT", 6, "2,657"),
    ("prepal_labels", "ends at 90.0 %", "accuracy", "entropy | PRepAL", 3, "90.0 "),
    ("prepal_labels", "AL+FT at 90.4 %", "accuracy", "entropy | AL+FT", 3, "90.4 "),
    ("prepal_labels", "[+0.0, +0.7]", "claims", "AG News: PRepAL ends", 2, "+0.4 "),
    ("prepal_labels", "a 377th", "claims", "AG News: logistic", 2, "377 "),
    ("prepal_labels", "and 0.44", "overlap", "AG News | PRepAL, entropy", 10, "0.44"),
    ("few_label_fine_tuning", "4.9 points with", "tests", "64 | fine", 2, "+4.9 "),
    ("few_label_fine_tuning", "6.6 to 7.4", "tests", "128 | fine", 2, "+6.6 "),
    ("few_label_fine_tuning", "6.6 to 7.4", "tests", "512 | fine", 2, "+7.4 "),
    ("few_label_fine_tuning", "gains 2.4", "tests", "32 | averaged", 2, "+2.4 "),
    ("few_label_fine_tuning", "5.6 to 6.6", "tests", "64 | averaged", 2, "+5.6 "),
    ("few_label_fine_tuning", "5.6 to 6.6", "tests", "512 | averaged", 2, "+6.6 "),
    (
        "few_label_fine_tuning",
        "steps 3.2 points",
        "changes",
        "64 | about 50",
        2,
        "-3.2 ",
    ),
    ("few_label_fine_tuning", "of two 2.3", "changes", "64 | 4 of 6", 2, "-2.3 "),
    ("few_label_fine_tuning", "at most 1.6", "changes", "64 | half", 2, "-1.6 "),
    ("few_shot", "3.3 and 3.8", "tests", "8 | SetFit less fine", 2, "+3.3 "),
    ("few_shot", "3.3 and 3.8", "tests", "16 | SetFit less fine", 2, "+3.8 "),
    ("few_shot", "3.6 and 4.6", "tests", "8 | SetFit less aver", 2, "+3.6 "),
    ("few_shot", "3.6 and 4.6", "tests", "16 | SetFit less aver", 2, "+4.6 "),
    ("few_shot", "8.2 and 10.3", "tests", "8 | SetFit less loop", 2, "+8.2 "),
    ("few_shot", "8.2 and 10.3", "tests", "16 | SetFit less loop", 2, "+10.3 "),
    ("few_shot", "1.0 and 1.6", "tests", "64 | SetFit less fine", 2, "+1.0 "),
    ("few_shot", "1.0 and 1.6", "tests", "64 | SetFit less aver", 2, "+1.6 "),
    ("peers", "and it was missed", "ratios", "processor seconds", 1, "10.0 "),
    ("labels_needed", "0.39 of the labels", "shares", "strategy", 11, "0.39"),
    ("labels_needed", "0.09 on disaster_tweets", "shares", "strategy", 3, "0.09"),
    ("labels_needed", "0.98 on imdb", "shares", "strategy", 7, "0.98"),
    ("labels_needed", "0.25 in the median", "shares", "descriptions", 11, "0.25"),
    ("labels_needed", "-1.0 with p", "strategy", "tweet_offensive", 5, "-1.0 "),
    ("strategies", "by 1.3 to 1.7 points", "recommended", "switch", 7, "+1.66 "),
    ("strategies", "by 1.3 to 1.7 points", "recommended", "uherding", 7, "+1.30 "),
    ("strategies", "needs 0.88 of", "recommended", "uherding", 9, "0.88"),
    ("strategies", "`switch` 0.78", "recommended", "switch", 9, "0.78"),
    ("strategies", "by 0.2 to 0.4 points", "recommended", "switch", 8, "+0.36 "),
    ("strategies", "by 0.2 to 0.4 points", "recommended", "typiclust", 8, "+0.22 "),
    ("strategies", "1.7 points each", "second", "switch", 7, "+1.74 "),
    ("strategies", "1.7 points each", "second", "uherding", 7, "+1.65 "),
    ("strategies", "1.3 to 1.6", "plain", "prefilter", 7, "+1.58 "),
    ("strategies", "1.3 to 1.6", "plain", "uherding", 7, "+1.32 "),
    ("strategies", "1.6 and 2.0 points", "recommended", "class_bal", 6, "+2.0"),
    ("other_data", "0.23 to 0.65", "shares", "strategy", 3, "0.23"),
    ("other_data", "0.23 to 0.65", "shares", "strategy", 4, "0.65"),
    ("other_data", "median was 0.59", "shares", "strategy", 8, "0.59"),
    ("other_data", "0.3 to 11.4", "strategy", "newsgroups", 1, "+11.4 "),
    ("other_data", "0.3 to 11.4", "strategy", "fortunes", 5, "+0.3 "),
    ("other_data", "-8.6 points", "strategy", "comments", 1, "-8.6 "),
    ("other_data", "loses 0.8 points", "head", "election", 5, "-0.8 "),
    ("labels_needed", "0.14 in the median", "shares", "final", 11, "0.14"),
    ("labels_needed", "the lowest is -3.4", "final", "sst2", 2, "-3.4"),
    ("labels_needed", "from -11.5 to", "fine-tuned", "banking77", 4, "-11.5"),
    ("labels_needed", "63 after 72 %", "trec", "descriptions", 3, "63."),
]


def read_page(name):
    return (RESULTS / f"{name}.md").read_text("utf-8")


def read_numbers(folder, name):
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def test_each_page_has_a_script():
    assert sorted(SCRIPTS) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_each_table_once(name):
    found = DIRECTIVE.findall(read_page(name))
    assert {file for file, _ in found} == {name}
    shown = " ".join(titles for _, titles in found).split()
    numbers = read_numbers(RESULTS, name)
    kept = numbers.keys() & {"provenance"}
    assert sorted(shown) == sorted([*numbers["tables"], *kept])


@pytest.mark.parametrize("quoted", QUOTED, ids=lambda quoted: quoted[1])
def test_the_text_of_a_page_is_that_of_its_tables(quoted):
    name, words, table, start, column, value = quoted
    assert words in read_page(name)
    (row,) = [
        row
        for row in read_numbers(RESULTS, name)["tables"][table]
        if row.startswith(f"| {start}")
    ][:1]
    assert row.strip("| ").split(" | ")[column].startswith(value)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_tables_are_those_of_the_numbers(name, tmp_path):
    script, options = ROOT / "benchmarks" / SCRIPTS[name], ["--rebuild"]
    if name in ("labels_needed", "other_data", "strategies"):
        options = ["--records", RESULTS / f"{name}.json"]
    if name == "prepal_labels":
        options += ["--scale", "labels"]
    subprocess.run(
        [sys.executable, script, *options, "--out", tmp_path],
        env={**os.environ, "MPLBACKEND": "Agg"},
        cwd=tmp_path,
        check=True,
    )
    assert read_numbers(tmp_path, name) == read_numbers(RESULTS, name)
