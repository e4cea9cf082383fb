"""Styles of lines: one for each name, whatever else is in the picture."""

import itertools

from skactive import registry
from skactive.plotting._names import _STRATEGIES, BASELINE, assign_styles


def test_every_built_in_strategy_has_its_place():
    names = [entry.name for entry in registry.available() if entry.builtin]
    assert sorted(_STRATEGIES) == sorted(names)


def test_a_built_in_strategy_looks_the_same_in_every_picture():
    alone = {name: assign_styles([name])[name] for name in _STRATEGIES}
    together = assign_styles(["mine", "theirs", *reversed(_STRATEGIES), "another"])
    assert {name: together[name] for name in _STRATEGIES} == alone
    assert assign_styles(["skactive:margin"])["skactive:margin"] == alone["margin"]


def test_other_names_look_the_same_in_every_picture():
    alone = assign_styles(["my_strategy"])["my_strategy"]
    for others in itertools.permutations(["random", "margin", "my_strategy"]):
        assert assign_styles(others, baseline="random")["my_strategy"] == alone


def test_up_to_36_names_differ_and_more_are_drawn():
    names = [f"strategy {i}" for i in range(40)]
    styles = assign_styles(names)
    assert len({tuple(styles[name].items()) for name in names[:36]}) == 36
    assert len(styles) == 40


def test_the_baseline_is_dashed_gray():
    assert assign_styles(["margin", "badge"], baseline="badge")["badge"] == BASELINE
