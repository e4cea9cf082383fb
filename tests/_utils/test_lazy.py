"""Names of a package that are imported when they are first used."""

import sys

import pytest

from skactive._utils._lazy import import_when_used


def test_a_name_is_imported_when_it_is_used(monkeypatch):
    monkeypatch.delitem(sys.modules, "skactive._utils._exchange", raising=False)
    homes = {"Exchanges": "_exchange"}
    get, names = import_when_used("skactive._utils", homes, ["b", "a"])
    assert "skactive._utils._exchange" not in sys.modules
    assert get("Exchanges").__module__ == "skactive._utils._exchange"
    assert names() == ["a", "b"]
    with pytest.raises(
        AttributeError, match=r"'skactive\._utils' has no attribute 'c'"
    ):
        get("c")
