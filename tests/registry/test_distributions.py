"""Strategies of other distributions, faked by folders that hold their metadata.

`test_plugins.py` builds and installs real ones.
"""

import re
import sys
import textwrap

import pytest

from skactive import get_strategy, get_strategy_names, registry
from skactive._utils import _plugins
from skactive.registry import FunctionStrategy
from skactive.strategies import Margin


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Fake an installed distribution: `install("dist", name="module:object")`."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(dist, version="1.0", source="", metadata=True, **entries):
        module = f"fake_{re.sub('[^a-z]', '_', dist.lower())}"
        path = tmp_path / f"{module}.py"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)
        info = tmp_path / f"{dist}-{version}.dist-info"
        info.mkdir()
        if metadata:
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n",
                encoding="utf-8",
            )
        lines = [f"{name} = {value or module}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text(
            "\n".join(["[skactive.strategies]", *lines, ""]), encoding="utf-8"
        )
        _plugins._installed.cache_clear()
        return module

    yield install
    monkeypatch.undo()
    _plugins._installed.cache_clear()


# What is found


def test_listing_does_not_import_a_plugin(install):
    module = install("other", "2.5", "raise RuntimeError('imported')", newest=None)
    assert "newest" in get_strategy_names()
    assert _plugins.find("newest").version == "2.5"
    assert module not in sys.modules


@pytest.mark.parametrize("written", ["My.Dist", "my_dist", "MY-DIST"])
def test_names_of_distributions_are_compared_as_pip_does(install, written):
    install("My_Dist", newest="fake_my_dist:f", source="def f(view): ...")
    assert _plugins.find("newest").dist == "my-dist"
    assert _plugins.find(f"{written}:newest").name == "newest"


def test_a_new_installation_is_seen_after_refresh(install):
    registry.available()
    install("other", newest="fake_other:f", source="def f(view): ...")
    assert "newest" in get_strategy_names()


# What a plugin may offer


def test_a_function_of_a_plugin_is_wrapped(install):
    source = "def longest(view):\n    return view.X[:, 0]\n"
    module = install("other", source=source, longest="fake_other:longest")
    strategy = get_strategy("longest")
    assert isinstance(strategy, FunctionStrategy)
    assert strategy.function.__module__ == module


def test_a_class_without_select_is_refused(install):
    install("other", "1.2", "class Bad: ...", bad="fake_other:Bad")
    message = r"'fake_other:Bad', which other 1\.2 offers .* 'bad', has no method sel"
    with pytest.raises(TypeError, match=message):
        get_strategy("bad")


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("bad = 5", "int"),
        ("bad = 'margin'", "str"),
        ("from skactive.strategies import Margin\nbad = Margin()", "Margin"),
        (None, "module"),
    ],
)
def test_what_is_neither_class_nor_function_is_refused(install, source, kind):
    value = "fake_other" if source is None else "fake_other:bad"
    install("other", "1.2", source or "", bad=value)
    message = rf"other 1\.2 offers .* must be a class or a function .*, got {kind}"
    with pytest.raises(TypeError, match=message):
        get_strategy("bad")


def test_an_abstract_class_is_refused(install):
    source = "from skactive.strategies import Strategy\nclass Bad(Strategy): ..."
    install("other", source=source, bad="fake_other:Bad")
    with pytest.raises(TypeError, match="the abstract class Bad"):
        get_strategy("bad")


@pytest.mark.long
@pytest.mark.parametrize(
    ("value", "source", "cause"),
    [
        ("fake_other:f", "raise RuntimeError('no luck')", RuntimeError),
        ("fake_other:f", "import no_such_module", ModuleNotFoundError),
        ("fake_other:f", "def f(:", SyntaxError),
        ("fake_other:missing", "", AttributeError),
        ("nowhere_to_be_found:f", "", ModuleNotFoundError),
        ("not a module!", "", Exception),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_named(install, value, source, cause):
    install("Other", "1.2", source, bad=value)
    message = (
        rf"the strategy 'bad' of other 1\.2 cannot be loaded from {value!r}: "
        r"\w+: .*Repair or uninstall other; other strategies are not affected"
    )
    with pytest.raises(ImportError, match=message) as caught:
        get_strategy("bad")
    assert isinstance(caught.value.__cause__, cause)
    assert isinstance(get_strategy("margin"), Margin)


def test_damaged_metadata_does_not_stop_the_others(install):
    install("ghost", newest="fake_ghost:f", metadata=False)
    entry = _plugins.find("newest")
    assert (entry.dist, entry.version) == ("unknown", "")
    assert isinstance(get_strategy("margin"), Margin)


# Collisions


@pytest.fixture
def _two_offers(install):
    source = "from skactive.strategies import Random\nclass {}(Random): ..."
    install("one", "1.0", source.format("One"), both="fake_one:One")
    install("two", "2.0", source.format("Two"), both="fake_two:Two")


@pytest.mark.usefixtures("_two_offers")
def test_a_name_that_two_offer_is_ambiguous():
    message = (
        r"'both' is offered by one 1\.0 \(fake_one:One\) and "
        r"two 2\.0 \(fake_two:Two\)\. Say which: 'one:both' or 'two:both'\."
    )
    with pytest.raises(ValueError, match=message):
        get_strategy("both")


@pytest.mark.usefixtures("_two_offers")
def test_the_full_name_chooses_between_two():
    assert type(get_strategy("one:both")).__name__ == "One"
    assert type(get_strategy("two:both")).__name__ == "Two"


@pytest.mark.usefixtures("_two_offers")
def test_names_that_two_offer_are_listed_in_full():
    names = get_strategy_names()
    assert {"one:both", "two:both", "margin"} <= set(names)
    assert "both" not in names
    assert names == sorted(names)


@pytest.fixture
def _rival(install):
    source = "from skactive.strategies import Random\nclass Rival(Random): ..."
    install("rival", "2.0", source, margin="fake_rival:Rival")


@pytest.mark.usefixtures("_rival")
def test_a_built_in_name_means_the_built_in_whatever_a_plugin_offers():
    assert type(get_strategy("margin")) is Margin
    assert _plugins.find("margin").dist == "skactive"


@pytest.mark.usefixtures("_rival")
def test_a_plugin_of_a_built_in_name_is_reached_by_its_full_name():
    assert type(get_strategy("rival:margin")).__name__ == "Rival"
    names = get_strategy_names()
    assert {"margin", "rival:margin"} <= set(names)
    assert "skactive:margin" not in names
