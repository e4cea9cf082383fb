"""The template for plugin authors: its size, its page, and that it works installed."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TEMPLATE = DOCS / "plugin_template"
SOURCE = TEMPLATE / "src" / "skactive_template" / "__init__.py"


def read_classes():
    """Return the source of each class of the template by its name."""
    text = SOURCE.read_text("utf-8")
    return {
        node.name: ast.get_source_segment(text, node)
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef)
    }


def test_a_strategy_takes_at_most_40_lines():
    classes = read_classes()
    assert list(classes) == ["Novelty", "Explore", "KeywordAnnotator"]
    assert len(classes["Novelty"].splitlines()) <= 40


@pytest.mark.parametrize("name", read_classes())
def test_the_page_shows_the_code_of_the_template(name):
    page = (DOCS / "guides" / "write_a_plugin.md").read_text("utf-8")
    assert f"\n{read_classes()[name]}\n```" in page


# Installed


def run(folder, *command, path=()):
    """Run Python on a command in a folder, which must succeed; return its output."""
    paths = [*map(str, path), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    result = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the folder of a copy of the template, and where it is installed."""
    folder = tmp_path_factory.mktemp("template")
    ignored = shutil.ignore_patterns("__pycache__")
    copy = shutil.copytree(TEMPLATE, folder / "copy", ignore=ignored)
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--target"]
    run(folder, "-m", "pip", "install", "-q", *options, folder / "site", copy)
    return copy, folder / "site"


@pytest.mark.slow
def test_the_names_of_an_installed_template_work(installed):
    code = """
import numpy as np
from sklearn.linear_model import LogisticRegression
from skactive import ActiveLearner
from skactive.annotators import get_annotator
from skactive.registry import available
from skactive.testing import check_annotator, check_strategy

offered = {entry.name: entry.full_name for entry in available()}
assert offered["novelty"] == "skactive-template:novelty", offered
assert offered["explore"] == "skactive-template:explore", offered
for name in ("novelty", "explore"):
    assert len(check_strategy(name)) > 30
keywords = get_annotator("keywords", keywords={"fire": ["smoke"]})
print(check_annotator(keywords, ["Smoke again", "rain"]))

X = np.random.default_rng(0).normal(size=(60, 3))
y = np.where(X[:, 0] > 0, "yes", "no")
learner = ActiveLearner(LogisticRegression(), strategy="novelty", random_state=0)
print(len(set(learner.fit(X[:10], y[:10]).query(X, 4))), type(learner.strategy_))
"""
    copy, site = installed
    output = run(copy, "-c", code, path=[site]).splitlines()
    assert output == [
        "[('fire', None), (None, None)]",
        "4 <class 'skactive_template.Novelty'>",
    ]


@pytest.mark.slow
def test_the_command_lists_an_installed_template(installed):
    copy, site = installed
    output = run(copy, "-m", "skactive", "strategies", path=[site])
    assert "novelty" in output
    assert "skactive-template" in output


@pytest.mark.slow
def test_the_tests_of_the_template_pass(installed):
    copy, site = installed
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", copy, "tests"]
    output = run(copy, "-m", "pytest", *options, path=[site])
    assert " passed" in output
