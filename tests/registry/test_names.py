"""Strategies by name: the built-in ones, those of this process, and wrong names."""

import pickle
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import skactive
from skactive import ActiveLearner, get_strategy, get_strategy_names, registry
from skactive._utils import _plugins
from skactive.strategies import Entropy, Margin, PointwiseStrategy, Random, Strategy
from skactive.view import PoolView

PYPROJECT = tomllib.loads(
    Path(__file__).parents[2].joinpath("pyproject.toml").read_text(encoding="utf-8")
)
BUILTIN = sorted(PYPROJECT["project"]["entry-points"]["skactive.strategies"])


class Longest(PointwiseStrategy):
    """Take one parameter."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def score(self, view):
        return self.weight * view.X[:, 0]


def first(view):
    return -np.arange(len(view))


@pytest.fixture(autouse=True)
def _forget():
    """Leave no name behind."""
    yield
    for entry in registry.available():
        if entry.dist == "this session":
            registry.unregister(entry.name)


# What is offered


def test_the_built_in_names_are_those_of_pyproject():
    # After a change there the package has to be installed again.
    assert [e.name for e in registry.available() if e.builtin] == BUILTIN


def test_names_are_listed_in_alphabetical_order():
    names = get_strategy_names()
    assert names == sorted(names)
    assert set(BUILTIN) <= set(names)


@pytest.mark.parametrize("name", BUILTIN)
def test_every_name_makes_a_fresh_strategy(name):
    strategy = get_strategy(name)
    assert isinstance(strategy, Strategy)
    assert get_strategy(name) is not strategy


def test_an_entry_says_where_a_strategy_comes_from():
    entry = _plugins.find("margin")
    assert entry.value == "skactive.strategies:Margin"
    assert (entry.dist, entry.version) == ("skactive", skactive.__version__)
    assert entry.builtin
    assert entry.full_name == "skactive:margin"
    assert _plugins.load(entry) is Margin


def test_the_full_name_is_understood():
    assert isinstance(get_strategy("skactive:margin"), Margin)


def test_listing_imports_no_module(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("skactive.strat")]:
        monkeypatch.delitem(sys.modules, name)
    _plugins._installed.cache_clear()
    assert len(registry.available()) >= 5
    assert "margin" in registry.get_strategy_names()
    _plugins.find("margin")
    assert [name for name in sys.modules if name.startswith("skactive.strat")] == []


# Names that fail


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("margn", "'margin'"),
        ("Margin", "'margin'"),
        ("ENTROPY", "'entropy'"),
        ("least-confidence", "'least_confidence'"),
        ("skactive:margn", "'skactive:margin'"),
        ("elsewhere:margin", "'skactive:margin'"),
        ("elsewhere:cal", "'skactive:cal'"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(name, close):
    message = rf"unknown strategy '{name}'\. Did you mean {close}\?"
    with pytest.raises(ValueError, match=message):
        get_strategy(name)


@pytest.mark.parametrize("name", ["", "qqq", "skactive:", "elsewhere:qqq"])
def test_a_name_like_no_other_gets_the_list(name):
    message = rf"unknown strategy '{name}'\. Installed are: .*'skactive.strat"
    with pytest.raises(ValueError, match=message):
        get_strategy(name)


@pytest.mark.parametrize("name", [5, None, Margin(), Margin, b"margin"])
def test_a_name_must_be_a_str(name):
    with pytest.raises(TypeError, match=r"'name' must be a str, got .*strategy="):
        get_strategy(name)


def test_the_learner_passes_the_error_on():
    learner = ActiveLearner(LogisticRegression(), "margn")
    with pytest.raises(ValueError, match="Did you mean 'margin'"):
        learner.fit([[0.0], [1.0]], [0, 1])


# Parameters


def test_parameters_reach_the_strategy():
    registry.register("longest", Longest)
    assert get_strategy("longest", weight=3.0).weight == 3.0
    assert get_strategy("longest").weight == 1.0


def test_an_unknown_parameter_is_refused():
    registry.register("longest", Longest)
    message = (
        "'wait' must be a parameter of the strategy 'longest', which takes 'weight'. "
        "Did you mean 'weight'"
    )
    with pytest.raises(TypeError, match=message):
        get_strategy("longest", wait=1)


def test_a_strategy_without_parameters_takes_none():
    message = r"'gamma' must be a parameter of the strategy 'random', .* no parameters"
    with pytest.raises(TypeError, match=message):
        get_strategy("random", gamma=2)


def test_a_parameter_without_a_default_must_be_given():
    class Needy(Random):
        def __init__(self, power):
            self.power = power

    registry.register("needy", Needy)
    message = (
        r"'power' must be given: the strategy 'needy' has no default for it\. Pass an "
        r"instance, such as Needy\(power=\.\.\.\)"
    )
    with pytest.raises(TypeError, match=message):
        ActiveLearner(LogisticRegression(), "needy").fit([[0.0], [1.0]], [0, 1])
    assert get_strategy("needy", power=2).power == 2


def test_a_function_takes_no_parameters():
    registry.register("first", first)
    with pytest.raises(TypeError, match=r"'first' is a plain function .*\['b', 'w'\]"):
        get_strategy("first", w=1, b=2)


# Names for this process


def test_a_registered_class_is_found_by_name():
    registry.register("longest", Longest)
    entry = _plugins.find("longest")
    assert isinstance(get_strategy("longest"), Longest)
    assert "longest" in get_strategy_names()
    assert (entry.dist, entry.version, entry.builtin) == ("this session", "", False)
    assert entry.value == f"{__name__}:Longest"


def test_a_registered_lambda_serves_a_learner():
    registry.register("last", lambda view: np.arange(len(view)))
    learner = ActiveLearner(LogisticRegression(), "last").fit([[0.0], [1.0]], [0, 1])
    assert learner.query(np.zeros((4, 1)), 2).tolist() == [3, 2]


def test_an_unregistered_name_is_gone():
    registry.register("longest", Longest)
    registry.unregister("longest")
    with pytest.raises(ValueError, match="unknown strategy 'longest'"):
        get_strategy("longest")
    with pytest.raises(ValueError, match="'longest' was not registered here"):
        registry.unregister("longest")


def test_a_built_in_name_cannot_be_unregistered():
    with pytest.raises(ValueError, match="'margin' was not registered here"):
        registry.unregister("margin")


def test_a_taken_name_is_refused_unless_replaced():
    with pytest.raises(ValueError, match=r"'margin' is taken by skactive .*replace=T"):
        registry.register("margin", Longest)
    registry.register("margin", Longest, replace=True)
    assert isinstance(get_strategy("margin"), Longest)
    assert isinstance(get_strategy("skactive:margin"), Margin)
    assert get_strategy_names().count("margin") == 1
    registry.unregister("margin")
    assert isinstance(get_strategy("margin"), Margin)


def test_a_registered_name_is_taken_as_well():
    registry.register("longest", Longest)
    with pytest.raises(ValueError, match="'longest' is taken by this session"):
        registry.register("longest", first)


@pytest.mark.parametrize("name", ["", "a:b", None, 3])
def test_a_bad_name_is_refused(name):
    with pytest.raises(ValueError, match="'name' must be a str without a colon, got"):
        registry.register(name, Longest)


@pytest.mark.parametrize("strategy", [Longest(), "margin", None, 3])
def test_only_classes_and_functions_get_a_name(strategy):
    message = "must be a Strategy class or a function .*An instance needs no name"
    with pytest.raises(TypeError, match=message):
        registry.register("longest", strategy)


def test_entries_can_be_pickled_and_compared():
    entry = _plugins.find("margin")
    assert pickle.loads(pickle.dumps(entry)) == entry
    assert len({entry, _plugins.find("skactive:margin")}) == 1


# resolve: whatever a user passes as strategy=


def test_a_name_is_resolved():
    assert isinstance(registry.resolve("entropy"), Entropy)


def test_an_instance_is_cloned():
    strategy = Longest(weight=2.0)
    resolved = registry.resolve(strategy)
    assert resolved is not strategy
    assert resolved.weight == 2.0


def test_what_only_has_select_is_enough():
    class Plain:
        def select(self, view, n_queries):
            return range(n_queries)

    strategy = registry.resolve(Plain())
    assert list(strategy.select(PoolView([[0.0]]), 1)) == [0]


def test_a_function_is_wrapped():
    assert registry.resolve(first).function is first


@pytest.mark.parametrize("argument", ["strategy", "cold_start"])
def test_a_class_is_refused_with_the_remedy(argument):
    message = rf"{argument!r} must be .* got the class Random\. Pass an instance: Rand"
    with pytest.raises(TypeError, match=message):
        registry.resolve(Random, argument=argument)


@pytest.mark.parametrize("strategy", [5, None, ["margin"], object()])
def test_what_is_no_strategy_is_refused(strategy):
    message = r"'strategy' must be a name, a strategy with a method select.*got "
    with pytest.raises(TypeError, match=message):
        registry.resolve(strategy)


def test_replace_must_be_a_bool():
    with pytest.raises(TypeError, match="'replace' must be True or False, got 'no'"):
        registry.register("margin", len, replace="no")
