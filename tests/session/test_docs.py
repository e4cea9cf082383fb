"""The page on sessions runs."""

import re
from pathlib import Path

import numpy as np

from skactive import datasets

TWEETS = "text,category\nfire in town,disaster\nnice day,no\nflood,\nlunch,\nrain,\n"
PAGE = Path(__file__).parent.parent.parent / "docs" / "sessions.md"


def load_few(**options):
    """Replace the docstrings of installed libraries, which take long to read."""
    words = np.random.default_rng(0).choice(["sort", "plot", "solve", "the"], (80, 6))
    return [" ".join(row) for row in words], words[:, 0]


def test_the_python_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "load_docstrings", load_few)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 9
    (tmp_path / "tweets.csv").write_text(TWEETS)
    names = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert len(names["session"].labels) == 40
    assert names["rule"].reason() == "LabelBudget(n=40)"
    labeled = (tmp_path / "tweets_labeled.csv").read_text("utf-8").splitlines()
    assert labeled[1].startswith("0,fire in town,disaster,")
    assert len(labeled) == 6
    assert (tmp_path / "labels.csv").read_text("utf-8").count("\n") >= 41
    assert "tasks.json" in {path.name for path in tmp_path.iterdir()}
    assert names["imported"].unchanged
    out = capsys.readouterr().out
    assert "the next 100 labels: cannot tell" in out
    assert "% of the answers agree; alpha 0." in out
    assert "[] []\n" in out
