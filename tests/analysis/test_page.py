"""The guide on statistics names every function of `skactive.analysis`."""

import re
from pathlib import Path

from skactive import analysis

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "statistics.md"


def test_the_page_names_every_function_that_there_is():
    text = PAGE.read_text(encoding="utf-8")
    names = {name for name in analysis.__all__ if name[0].islower()}
    named = set(re.findall(r"`~?(?:skactive\.analysis\.)?(\w+)`", text))
    assert names - named <= {"group_runs"}
