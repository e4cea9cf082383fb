"""No built-in strategy without a test against an oracle that shares no code with it.

Such a test's name holds `oracle` and the strategy's name, each between underscores.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from skactive.registry import available

BUILTIN = sorted({entry.name for entry in available() if entry.builtin})
TESTS = Path(__file__).parents[1]


@cache
def find_test_names(folder):
    """Names of the test functions in all files below a folder."""
    return [
        node.name
        for path in sorted(folder.rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def is_named(strategy, test, strategies):
    """Whether a test's name holds a strategy's, and not as part of a longer one."""
    for longer in sorted(strategies, key=len, reverse=True):
        if longer != strategy and strategy in longer:
            test = re.sub(rf"(?<=_){longer}(?=_|$)", "", test)
    return re.search(rf"_{strategy}(_|$)", test) is not None


def has_oracle(strategy, tests, strategies):
    return any(
        "_oracle" in test and is_named(strategy, test, strategies) for test in tests
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILTIN)
def test_a_built_in_strategy_has_an_oracle(name):
    assert has_oracle(name, find_test_names(TESTS), BUILTIN), (
        f"write a test named test_{name}_... with oracle in its name"
    )


def test_there_are_built_in_strategies():
    assert {"random", "entropy", "margin"} <= set(BUILTIN)


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("test_egl_by_the_oracle", True),
        ("test_oracle_of_egl", True),
        ("test_egl_embedding_oracle", False),
        ("test_legless_oracle", False),
        ("test_egl_is_quick", False),
    ],
)
def test_a_missing_oracle_would_be_noticed(test, found):
    assert has_oracle("egl", [test], ["egl", "egl_embedding", "random"]) is found
