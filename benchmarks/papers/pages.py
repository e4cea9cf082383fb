"""Pages of results: tables, where the numbers come from, and the files they fill."""

import datetime
import json
import os
import platform
import shlex
import sys
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np

DOCS = Path(__file__).resolve().parents[2] / "docs" / "results"
BUSY = (
    "Other work ran on the two cores, so seconds are processor seconds of one thread. "
    "The load increases them, but has little influence on their ratios."
)


def mean_std(values, digits=3):
    """Write a mean and its standard deviation (n - 1)."""
    values = np.asarray(values, dtype=float)
    spread = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def table(head, rows):
    """Write a Markdown table.

    Raises
    ------
    ValueError
        If a row has another length than the head, or none came.
    """
    rows = [[str(cell) for cell in row] for row in rows]
    if not rows or any(len(row) != len(head) for row in rows):
        raise ValueError(f"a table of {len(head)} columns got {rows[:3]}")
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def claims_table(claims):
    """Write the claims of a paper next to the measurements.

    Parameters
    ----------
    claims : list of (str, str, str, bool or None)
        What the paper claims, its figures, ours, and whether it holds here; None
        where our runs cannot tell.
    """
    verdicts = {True: "holds", False: "does not hold", None: "cannot tell"}
    rows = [[*claim[:3], verdicts[claim[3]]] for claim in claims]
    return table(["claim", "paper", "here", "verdict"], rows)


def provenance(settings):
    """Name command, versions, processor, seeds and date, as a paragraph."""
    packages = ("skactive", "torch", "transformers", "scikit-learn")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    script, root = Path(sys.argv[0]).resolve(), DOCS.parents[1]
    inside = script.is_relative_to(root)
    name = script.relative_to(root).as_posix() if inside else script.name
    command = shlex.join(["python", name, *_options(sys.argv[1:])])
    return (
        f"Command: `{command}`. {versions}; Python {platform.python_version()}; "
        f"{processor()}; {settings.n_jobs} run(s) at a time; seeds 0 to "
        f"{settings.seeds - 1}; {datetime.date.today().isoformat()}."
    )


def _options(given):
    """Leave out the folder of what is finished; other folders go without their path."""
    options = []
    for before, option in pairwise(["", *given]):
        if before == "--out" or option.partition("=")[0] == "--out":
            continue
        folder = before.startswith("--") and os.path.isabs(option)
        options.append(Path(option).name if folder else option)
    return options


def processor():
    """Name the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    found = [line.split(":")[1].strip() for line in lines if "model name" in line]
    if not found:
        return platform.processor() or platform.machine()
    return f"{found[0]}, {os.cpu_count()} cores"


def write_page(settings, name, text):
    """Print a page; with `--page`, write it among the documents."""
    if settings.page:
        DOCS.mkdir(parents=True, exist_ok=True)
        (DOCS / f"{name}.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    else:
        (settings.out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def write_records(settings, name, records):
    """Write what a page was made from, a record a line, and how it came about.

    Next to the page with `--page`, otherwise in the folder of the results.
    """
    folder = DOCS if settings.page else settings.out
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(record) for record in records)
    came = json.dumps(settings.provenance)
    under = json.dumps({name: getattr(settings, name) for name in settings.of_scale})
    text = (
        f'{{"provenance": {came},\n"settings": {under},\n"records": [\n{lines}\n]}}\n'
    )
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def read_records(settings, name):
    """Read back what :func:`write_records` wrote next to the page, settings too."""
    kept = json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))
    settings.provenance = kept["provenance"]
    vars(settings).update(kept["settings"])
    return kept["records"]


def publish(settings, name, run, draw, page, check):
    """Run, or read what is kept, and write the page with its numbers and pictures.

    Parameters
    ----------
    settings : argparse.Namespace
    name : str
        Of the page.
    run : callable
        `run(settings)` gives the records.
    draw, page : callable
        `draw(records, settings)`, then `page(records, settings)`, which gives the text.
    check : callable
        `check(records, settings, text)` stops where the smoke is not as it should be.
    """
    if settings.figures:
        draw(read_records(settings, name), settings)
        return
    settings.provenance = provenance(settings)
    records = read_records(settings, name) if settings.rebuild else run(settings)
    draw(records, settings)
    text = page(records, settings)
    write_records(settings, name, records)
    write_page(settings, name, text)
    if settings.scale == "smoke":
        check(records, settings, text)
        print("smoke: passed", file=sys.stderr)


def figure_path(settings, name):
    """Where a picture goes: next to the page, where git ignores it."""
    folder = (DOCS if settings.page else settings.out) / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name
