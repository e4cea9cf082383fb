"""The documentation's table of strategies is what their classes say."""

from pathlib import Path

import pytest

from skactive import get_strategy
from skactive.cli import main
from skactive.cli._strategies import FAMILIES, describe, strategy_tables
from skactive.registry import available
from skactive.strategies import Strategy

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"
BUILTIN = [entry.name for entry in available() if entry.builtin]


def test_the_page_holds_the_tables_of_the_classes():
    start = "<!-- skactive strategies --markdown -->\n"
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(start) == 1
    written = page.split(start)[1].split("<!-- end -->")[0]
    assert written.strip() == strategy_tables().strip(), (
        "run `skactive strategies --markdown` and paste what it prints into the page"
    )


def test_every_built_in_strategy_has_a_row():
    tables = strategy_tables()
    for name in BUILTIN:
        assert tables.count(f"| `{name}` |") == 1


@pytest.mark.parametrize("name", BUILTIN)
def test_docstrings_have_one_order(name):
    docstring = type(get_strategy(name)).__doc__
    assert docstring.index("Notes\n") < docstring.index("References\n")
    assert docstring.index("References\n") < docstring.index("Examples\n")
    assert describe(get_strategy(name))["when to use"][0].islower()


def test_the_command_prints_the_tables(capsys):
    assert main(["strategies", "--markdown"]) == 0
    assert capsys.readouterr().out == strategy_tables()


def test_a_row_is_read_off_the_class():
    row = describe(get_strategy("margin"))
    assert row["definition"].endswith("smallest gap between the two best classes.")
    assert row["needs"] == "class_scores"
    assert row["cost"] == "O(n k) plus the prediction."
    assert row["when to use"].startswith("by default")
    assert row["source"].startswith("T. Scheffer")


def test_what_a_wrapper_needs_is_said_of_its_parts():
    assert describe(get_strategy("subsample"))["needs"] == "what `strategy` needs"
    needs = describe(get_strategy("seals"))["needs"]
    assert needs == "features, labeled, what `strategy` needs"


def test_a_class_that_says_too_little_is_refused():
    class Silent(Strategy):
        """Ask nothing."""

        def select(self, view, n):
            return []

    message = "Silent must state its cost and when to use and source"
    with pytest.raises(ValueError, match=message):
        describe(Silent())


def test_a_family_without_a_place_is_refused(monkeypatch):
    monkeypatch.setattr("skactive.cli._strategies.FAMILIES", FAMILIES[1:])
    with pytest.raises(ValueError, match=r"FAMILIES lacks \['_uncertainty'\]"):
        strategy_tables()
