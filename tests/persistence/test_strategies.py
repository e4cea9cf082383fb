"""Strategies come back by their names, with distribution and version."""

import json

import numpy as np
import pytest

import skactive
from skactive import load, registry, save
from skactive.strategies import Margin, PointwiseStrategy

from ._helpers import X, Y, _by_first, _learner, _rewrite, _round_trip


class Scaled(PointwiseStrategy):
    """A strategy with parameters, one of them a strategy."""

    requires = frozenset({"proba"})

    def __init__(self, inner=None, weights=(1.0,)):
        self.inner = inner
        self.weights = weights

    def score(self, view):
        return -view.proba.max(axis=1) * self.weights[0]


@pytest.fixture
def registered():
    registry.register("scaled", Scaled)
    registry.register("by_first", _by_first)
    yield
    for name in ("scaled", "by_first"):
        if name in registry.get_strategy_names():
            registry.unregister(name)


def test_a_strategy_comes_back_with_its_parameters(tmp_path, registered):
    strategy = Scaled(inner=Margin(), weights=(2.0, float("inf")))
    learner = _learner(strategy=strategy).fit(X[:20], Y[:20])
    loaded = _round_trip(learner, tmp_path)
    assert type(loaded.strategy) is type(loaded.strategy_) is Scaled
    assert loaded.strategy.weights == (2.0, float("inf"))
    assert type(loaded.strategy.inner) is Margin
    np.testing.assert_array_equal(loaded.query(X), learner.query(X))


def test_a_function_with_a_registered_name_comes_back(tmp_path, registered):
    learner = _learner(strategy="by_first").fit(X[:20], Y[:20])
    loaded = _round_trip(learner, tmp_path)
    np.testing.assert_array_equal(loaded.query(X), learner.query(X))


def test_the_folder_names_distribution_and_version_of_a_strategy(saved):
    node = json.loads((saved / "object.json").read_text())["object"]
    assert node["params"]["strategy"] == {
        "@": "strategy_name",
        "value": "uherding",
        "name": "uherding",
        "dist": "skactive",
        "version": skactive.__version__,
    }


def test_a_plain_function_is_refused(tmp_path):
    learner = _learner(strategy=_by_first).fit(X[:20], Y[:20])
    match = "'strategy' must be a registered strategy .* function '_by_first'"
    with pytest.raises(TypeError, match=match):
        save(learner, tmp_path / "saved")


def test_a_strategy_without_a_name_is_refused(tmp_path):
    match = "'cold_start' must be a registered strategy .* class Scaled"
    with pytest.raises(TypeError, match=match):
        save(_learner(cold_start=Scaled()), tmp_path / "saved")


def test_a_missing_strategy_is_named_with_its_distribution(tmp_path, registered):
    folder = save(_learner(strategy="by_first"), tmp_path / "saved")
    registry.unregister("by_first")
    with pytest.raises(ValueError, match=r"'by_first' of this session .* Register it"):
        load(folder)


def test_a_strategy_of_a_plugin_that_is_not_installed_is_refused(saved):
    def change(content):
        node = content["object"]["params"]["strategy"]
        node |= {"value": "far", "name": "far", "dist": "plug", "version": "2.1"}

    _rewrite(saved, "object.json", change)
    with pytest.raises(ValueError, match=r"'far' of plug 2.1 .* Install plug 2.1"):
        load(saved)


def test_a_name_that_now_belongs_to_another_distribution_is_refused(saved):
    def change(content):
        content["object"]["params"]["strategy"]["dist"] = "plug"

    _rewrite(saved, "object.json", change)
    with pytest.raises(ValueError, match=r"'uherding' of plug .* Install plug"):
        load(saved)


def test_another_major_version_of_a_strategy_warns(saved):
    def change(content):
        content["object"]["params"]["strategy"]["version"] = "7.0"

    _rewrite(saved, "object.json", change)
    with pytest.warns(UserWarning, match="'uherding' was saved with skactive 7.0"):
        load(saved)
