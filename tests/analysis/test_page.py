"""The page on analysis is true: its example runs, its functions exist."""

import doctest
import re
from pathlib import Path

import pytest

from skactive import analysis

PAGE = Path(__file__).parents[2] / "docs" / "analysis.md"


@pytest.mark.slow
def test_the_example_of_the_page_runs():
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert found.attempted >= 9
    assert found.failed == 0


def test_the_page_names_every_function_that_there_is():
    text = PAGE.read_text(encoding="utf-8")
    names = {name for name in analysis.__all__ if name[0].islower()}
    helpers = {"align_runs", "chance_jaccard", "group_runs"}
    assert names - set(re.findall(r"`(\w+)`", text)) <= helpers
