"""The catalog of strategies on the site is what the docstrings of their classes say."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from skactive import get_strategy, strategies
from skactive.registry import available
from skactive.strategies import Strategy

BUILTIN = [entry.name for entry in available() if entry.builtin]


@pytest.fixture(scope="module")
def catalog():
    """Return the extension of the site that writes the catalog."""
    folder = str(Path(__file__).parents[2] / "docs" / "_ext")
    sys.path.insert(0, folder)
    yield importlib.import_module("strategy_catalog")
    sys.path.remove(folder)


def test_every_built_in_strategy_has_a_row_and_a_page(catalog):
    rows = re.findall(
        r"^\| \{py:class\}`(\w+) <skactive\.strategies\.(\w+)>`",
        catalog.write_tables(),
        flags=re.M,
    )
    assert sorted(name for name, _ in rows) == sorted(BUILTIN)
    assert {name for _, name in rows} <= set(strategies.__all__)


def test_the_catalog_is_short(catalog):
    text = re.sub(r"<skactive.*?>", "", catalog.write_tables())
    assert len(re.findall(r"\w[\w'.-]*", text)) <= 1500


@pytest.mark.parametrize("name", BUILTIN)
def test_docstrings_have_one_order(name, catalog):
    docstring = type(get_strategy(name)).__doc__
    assert docstring.index("Notes\n") < docstring.index("References\n")
    assert docstring.index("References\n") < docstring.index("Examples\n")
    assert catalog.describe(get_strategy(name))["when to use"][0].islower()


def test_a_row_is_read_off_the_class(catalog):
    row = catalog.describe(get_strategy("margin"))
    assert row["definition"].endswith("smallest gap between the two best classes.")
    assert row["needs"] == "class_scores"
    assert row["cost"] == "O(n k) plus the prediction."
    assert row["when to use"].startswith("if a query must be fast")
    assert row["source"].startswith("T. Scheffer")


def test_what_a_wrapper_needs_is_said_of_its_parts(catalog):
    needs = catalog.describe(get_strategy("seals"))["needs"]
    assert needs == "features, labeled, those of `strategy`"


def test_what_is_used_if_there_is_in_brackets(catalog):
    assert catalog.describe(get_strategy("coreset"))["needs"] == "features, (labeled)"


def test_a_class_that_says_too_little_is_refused(catalog):
    class Silent(Strategy):
        """Ask nothing."""

        def select(self, view, n_queries):
            return []

    message = "Silent must state its cost and when to use and source"
    with pytest.raises(ValueError, match=message):
        catalog.describe(Silent())


def test_a_family_without_a_place_is_refused(catalog, monkeypatch):
    monkeypatch.setattr(catalog, "FAMILIES", catalog.FAMILIES[1:])
    with pytest.raises(ValueError, match=r"FAMILIES lacks \['_uncertainty'\]"):
        catalog.write_tables()
