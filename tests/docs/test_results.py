"""The pages of results show the tables of the JSON files next to them."""

import json
import re
import runpy
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


@pytest.fixture
def run_script(monkeypatch, tmp_path):
    """Return a function that runs a script of benchmarks/ in this process.

    Fourteen processes would import torch and scikit-learn for minutes.
    """
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    # The smoke of each script renders its pictures.
    monkeypatch.setattr(plt.Figure, "savefig", lambda *args, **options: None)
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)

    def run(script, *options):
        monkeypatch.setattr(sys, "argv", [str(script), *map(str, options)])
        sys.path.insert(0, str(script.parent))
        with plt.rc_context():
            runpy.run_path(str(script), run_name="__main__")

    yield run
    plt.close("all")
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(ROOT / "benchmarks"):
            del sys.modules[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_tables_are_those_of_the_numbers(name, tmp_path, run_script):
    options = ["--rebuild"]
    if name in (
        "adapted_loop",
        "labels_needed",
        "more_data",
        "other_data",
        "strategies",
    ):
        options = ["--records", RESULTS / f"{name}.json"]
    if name == "prepal_labels":
        options += ["--scale", "labels"]
    run_script(ROOT / "benchmarks" / SCRIPTS[name], *options, "--out", tmp_path)
    assert read_numbers(tmp_path, name) == read_numbers(RESULTS, name)
