"""Tables and pictures of the result pages, from the JSON files next to the pages.

A page shows tables of docs/results/hart.json, and how they were measured, by

    ```{result-table} hart folds split provenance
    ```

The build draws the pictures that are missing or older than their numbers. By hand:

    python docs/_ext/result_pages.py      # all of them, into docs/results/images
"""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

from result_scripts import SCRIPTS
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
# Pages with pictures.
PICTURED = [
    n for n in SCRIPTS if "](images/" in (RESULTS / f"{n}.md").read_text("utf-8")
]


def read_tables(name):
    """Return the lines of each table of a file of numbers."""
    kept = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return kept["tables"] | {"provenance": [kept.get("provenance")]}


class ResultTable(SphinxDirective):
    """Show tables of a file of numbers, one below the other."""

    required_arguments = 2
    final_argument_whitespace = True

    def run(self):
        name, titles = self.arguments
        self.env.note_dependency(str(RESULTS / f"{name}.json"))
        tables = read_tables(name)
        lines = [line for title in titles.split() for line in (*tables[title], "")]
        return self.parse_text_to_nodes("\n".join(lines))


def find_old():
    """Return the names whose pictures are missing or older than their numbers."""
    old = []
    for name in PICTURED:
        pictures = list((RESULTS / "images").glob(f"{name}*.png"))
        numbers = (RESULTS / f"{name}.json").stat().st_mtime
        if not pictures or min(p.stat().st_mtime for p in pictures) < numbers:
            old.append(name)
    return old


def draw(names):
    """Run the scripts in this process, one after the other."""
    (RESULTS / "images").mkdir(exist_ok=True)
    for name in names:
        script = ROOT / "benchmarks" / SCRIPTS[name]
        options = ["--figures", "--out", str(RESULTS)]
        if name in ("adapted_loop", "labels_needed", "other_data", "strategies"):
            options += ["--records", str(RESULTS / f"{name}.json")]
        if name == "prepal_labels":
            options += ["--scale", "labels"]
        sys.argv = [str(script), *options]
        sys.path.insert(0, str(script.parent))
        runpy.run_path(str(script), run_name="__main__")


def draw_old(app):
    """Draw in another process, so that the build keeps its settings of matplotlib."""
    names = find_old()
    only = os.environ.get("SKACTIVE_DOCS_ONLY", "results/")
    if names and only.startswith("results/"):
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        command = [sys.executable, __file__, *names]
        subprocess.run(command, env=environment, check=True)


def setup(app):
    """Connect the hook and the directive."""
    app.add_directive("result-table", ResultTable)
    app.connect("builder-inited", draw_old)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    draw(sys.argv[1:] or PICTURED)
