"""The example of docs/targets.md runs as printed."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"


def test_the_python_of_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})
        assert capsys.readouterr().out
