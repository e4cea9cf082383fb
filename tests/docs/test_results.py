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
