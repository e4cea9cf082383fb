"""The three plugins next to this file, found by their metadata in this process.

`test_installed_plugins.py` builds and installs them.
"""

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, get_strategy, get_strategy_names
from skactive._utils import _plugins
from skactive.cli import main
from skactive.testing import check_strategy

HERE = Path(__file__).parents[1]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that writes what an installer writes, and extends the path."""

    def install(plugin):
        source = HERE / f"plugin_{plugin}"
        project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
        name, version = project["name"], project["version"]
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        entries = project["entry-points"]["skactive.strategies"].items()
        lines = [f"{key} = {value}" for key, value in entries]
        (info / "entry_points.txt").write_text(
            "\n".join(["[skactive.strategies]", *lines, ""])
        )
        monkeypatch.syspath_prepend(source / "src")
        _plugins._installed.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield install
    for module in set(sys.modules) - before:
        if module.startswith(("skactive_example", "skactive_rival")):
            del sys.modules[module]
    monkeypatch.undo()
    _plugins._installed.cache_clear()


def test_a_plugin_is_found_and_passes_the_checks(install):
    install("example")
    entry = _plugins.find("gini")
    assert (entry.dist, entry.version) == ("skactive-example", "1.2.0")
    assert not entry.builtin
    assert "skactive_example" not in sys.modules
    for name in ("gini", "ratio"):
        assert len(check_strategy(name)) > 20


def test_a_plugin_serves_a_learner(install):
    install("example")
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    learner = ActiveLearner(LogisticRegression(), "gini", random_state=0)
    learner.fit(X[:10], y[:10])
    # For two classes, the Gini impurity orders as the distance from one half.
    doubt = np.abs(learner.predict_proba(X)[:, 0] - 0.5)
    assert set(learner.query(X, 4)) == set(np.argsort(doubt)[:4])


def test_a_broken_plugin_breaks_only_its_own_name(install):
    install("broken")
    assert "cracked" in get_strategy_names()
    with pytest.raises(ImportError, match=r"'cracked' of skactive-broken 0\.0\.3 cann"):
        get_strategy("cracked")
    get_strategy("margin")


def test_a_collision_is_resolved_by_the_full_name(install):
    install("example")
    install("colliding")
    with pytest.raises(ValueError, match="'skactive-example:gini' or 'skactive-rival:"):
        get_strategy("gini")
    strategy = get_strategy("skactive-rival:gini")
    assert strategy.function.__module__ == "skactive_rival"
    module = type(get_strategy("margin")).__module__
    assert module.startswith("skactive.strategies")


def test_the_command_lists_plugins_and_their_state(install, capsys):
    for plugin in ("example", "broken", "colliding"):
        install(plugin)
    assert main(["strategies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (broken,) = [line for line in lines if line.startswith("cracked")]
    assert "broken: the strategy 'cracked' of skactive-broken 0.0.3" in broken
    rows = [line for line in lines if line.startswith("gini")]
    assert all("collides with" in row for row in rows)
    assert len(rows) == 2
