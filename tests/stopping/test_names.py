"""Rules by their names: built in, of a plugin, and on the page about them."""

import re
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from skactive._utils import _plugins as plugins
from skactive.simulation import Run
from skactive.stopping import (
    ClassificationChange,
    CostRule,
    KappaAverage,
    LabelBudget,
    OverallUncertainty,
    Plateau,
    RoundBudget,
    SelectedAccuracy,
    TimeBudget,
    get_stopping_rule,
    get_stopping_rule_names,
)

from ._helpers import _simulate

PAGE = (Path(__file__).parents[2] / "docs/guides/when_to_stop.md").read_text("utf-8")


# Names and plugins

BUILTIN = {
    "label_budget": (LabelBudget, {"n": 5}),
    "round_budget": (RoundBudget, {"n": 5}),
    "time_budget": (TimeBudget, {"seconds": 5}),
    "classification_change": (ClassificationChange, {}),
    "cost_rule": (CostRule, {"label_cost": 1, "error_cost": 5.0}),
    "kappa_average": (KappaAverage, {"threshold": 0.9}),
    "overall_uncertainty": (OverallUncertainty, {}),
    "selected_accuracy": (SelectedAccuracy, {}),
    "plateau": (Plateau, {}),
}


def test_the_built_in_names_are_those_of_pyproject():
    # After a change there the package has to be installed again.
    path = Path(__file__).parents[2] / "pyproject.toml"
    groups = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["entry-points"]
    assert sorted(groups["skactive.stopping"]) == sorted(BUILTIN)
    assert set(BUILTIN) <= set(get_stopping_rule_names())
    assert get_stopping_rule_names() == sorted(get_stopping_rule_names())


@pytest.mark.parametrize("name", BUILTIN)
def test_a_name_makes_its_rule(name):
    kind, params = BUILTIN[name]
    rule = get_stopping_rule(name, **params)
    assert type(rule) is kind
    assert params.items() <= rule.get_params().items()
    assert type(get_stopping_rule(f"skactive:{name}", **params)) is kind


def test_an_unknown_name_gets_a_suggestion():
    message = r"unknown stopping rule 'plato'\. Did you mean 'plateau'\? .*kappa_aver"
    with pytest.raises(ValueError, match=message):
        get_stopping_rule("plato")
    with pytest.raises(
        TypeError, match="A stopping rule itself needs no name: pass it"
    ):
        get_stopping_rule(Plateau())


def test_a_parameter_without_a_default_must_be_given():
    message = r"'n' must be given: the stopping rule 'label_budget' .* n=\.\.\.\)\."
    with pytest.raises(TypeError, match=message):
        get_stopping_rule("label_budget")


def test_an_unknown_parameter_is_refused():
    message = r"'m' must be a parameter of the stopping rule 'label_budget', .* 'n'"
    with pytest.raises(TypeError, match=message):
        get_stopping_rule("label_budget", m=5)


def test_a_wrong_value_is_refused_at_once():
    with pytest.raises(ValueError, match="The 'n' parameter of LabelBudget must be"):
        get_stopping_rule("label_budget", n=0)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Fake an installed distribution that offers rules."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(dist, source, **entries):
        module = f"fake_stopping_{dist}"
        path = tmp_path / f"{module}.py"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)
        info = tmp_path / f"{dist}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n", encoding="utf-8"
        )
        lines = [f"{name} = {module}:{attr}" for name, attr in entries.items()]
        (info / "entry_points.txt").write_text(
            "\n".join(["[skactive.stopping]", *lines, ""]), encoding="utf-8"
        )
        plugins.Group.refresh()

    yield install
    monkeypatch.undo()
    plugins.Group.refresh()


def test_a_built_in_name_means_the_built_in_whatever_a_plugin_offers(install):
    source = """
    from skactive.stopping import StoppingRule

    class Rival(StoppingRule):
        def decide(self, run, learner, X):
            return True
    """
    install("rival", source, plateau="Rival")
    assert type(get_stopping_rule("plateau")) is Plateau
    assert type(get_stopping_rule("rival:plateau")).__name__ == "Rival"
    assert {"plateau", "rival:plateau"} <= set(get_stopping_rule_names())


def test_a_rule_of_a_plugin_stops_a_simulation(install, data):
    source = """
    from skactive.stopping import StoppingRule

    class Odd(StoppingRule):
        def __init__(self, least=1):
            self.least = least

        def decide(self, run, learner, X):
            return run.n_labeled[-1] % 2 == 1 and run.n_labeled[-1] > self.least
    """
    install("one", source, odd="Odd")
    assert "odd" in get_stopping_rule_names()
    run = _simulate(data, get_stopping_rule("odd", least=20))
    assert run.n_labeled[-1] == 25
    assert run.stopped_by == "Odd(least=20)"


@pytest.mark.parametrize(
    "source", ["class Bad: pass", "def Bad(): pass", "Bad = 5", "Bad = object()"]
)
def test_what_is_no_rule_is_refused(install, source):
    install("two", source, bad="Bad")
    message = r"two 1\.0 offers as the stopping rule 'bad', must be a class with the"
    with pytest.raises(TypeError, match=message):
        get_stopping_rule("bad")


def test_a_plugin_that_cannot_be_loaded_stops_no_other(install):
    install("three", "raise RuntimeError('no luck')", bad="Bad")
    message = r"stopping rule 'bad' of three 1\.0 cannot .*other stopping rules are not"
    with pytest.raises(ImportError, match=message):
        get_stopping_rule("bad")
    assert type(get_stopping_rule("plateau")) is Plateau


# The page


def test_the_page_names_every_rule():
    for kind, _ in BUILTIN.values():
        assert re.search(
            rf"^\| `{kind.__name__}\(|^\| .*, `{kind.__name__}\(", PAGE, re.M
        )


def test_the_rule_of_the_page_counts_the_next_batch():
    (block,) = re.findall(r"```python\n([^`]*class Affordable.*?)\n\n\nrun", PAGE, re.S)
    names = {}
    exec(block, names)
    rule = names["Affordable"](money=70)
    assert not rule.check(Run([{"asked": range(35)}]), None, None)
    assert rule.check(Run([{"asked": range(36)}]), None, None)
