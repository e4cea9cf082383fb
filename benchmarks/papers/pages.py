"""Results for docs/results: tables, numbers and pictures. Pages are written by hand."""

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

from skactive.analysis import paired_t

DOCS = Path(__file__).resolve().parents[2] / "docs" / "results"


def mean_std(values, digits=3):
    """Write a mean and its standard deviation (n - 1)."""
    values = np.asarray(values, dtype=float)
    spread = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def said(values, digits=1, unit=""):
    """Write a mean difference, with its 95 % t interval if there are several values."""
    if len(values) < 2:
        return f"{np.mean(values):+.{digits}f}{unit}"
    test = paired_t(values, np.zeros(len(values)))
    return f"{test.difference:+.{digits}f}{unit} {said_interval(test, digits)}"


def said_interval(test, digits=1):
    """Write the interval of a t test."""
    low, high = test.interval
    return f"[{low:+.{digits}f}, {high:+.{digits}f}]"


def stratified(values):
    """Return the mean over data sets, its standard error, and degrees of freedom."""
    groups = [np.asarray(v, dtype=float) for v in values.values()]
    parts = np.array([v.var(ddof=1) / len(v) for v in groups])
    mean = float(np.mean([v.mean() for v in groups]))
    error = float(np.sqrt(parts.sum())) / len(groups)
    freedom = np.array([len(v) - 1 for v in groups])
    df = parts.sum() ** 2 / (parts**2 / freedom).sum() if error else freedom.sum()
    return mean, error, float(df)


def table(head, rows):
    """Return the lines of a Markdown table.

    Raises
    ------
    ValueError
        If a row has another length than the head, or none came.
    """
    rows = [[str(cell) for cell in row] for row in rows]
    if not rows or any(len(row) != len(head) for row in rows):
        raise ValueError(f"a table of {len(head)} columns got {rows[:3]}")
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


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


def write_results(settings, name, records, tables):
    """Write tables and records as JSON, and print the tables.

    The file is docs/results/<name>.json with `--page`, otherwise in `--out`.

    Parameters
    ----------
    settings : argparse.Namespace
    name : str
    records : list of dict
        One line of the file each.
    tables : dict of str to list of str
        Lines of Markdown; a page shows them with the directive `result-table`.
    """
    folder = DOCS if settings.page else settings.out
    folder.mkdir(parents=True, exist_ok=True)
    write_json(
        folder / f"{name}.json",
        provenance=settings.provenance,
        settings={name: getattr(settings, name) for name in settings.of_scale},
        tables=tables,
        records=records,
    )
    print_tables(tables)
    print(settings.provenance)


def write_json(path, *, tables, records, **entries):
    """Write a file with one line for each entry, row of a table, and record."""
    lines = [f'"{key}": {json.dumps(value)}' for key, value in entries.items()]
    lines.append(f'"tables": {json.dumps(tables, ensure_ascii=False, indent=0)}')
    records = ",\n".join(map(json.dumps, records))
    lines.append(f'"records": [\n{records}\n]')
    text = ",\n".join(lines)
    path.write_text(f"{{{text}}}\n", encoding="utf-8")


def print_tables(tables):
    for title, lines in tables.items():
        print(f"## {title}\n", *lines, "", sep="\n")


def read_records(settings, name):
    """Read back what :func:`write_results` wrote next to the page, settings too."""
    kept = json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))
    settings.provenance = kept["provenance"]
    vars(settings).update(kept["settings"])
    return kept["records"]


def publish(settings, name, run, draw, make_tables, check):
    """Run, or read what is kept, and write tables, numbers and pictures.

    Parameters
    ----------
    settings : argparse.Namespace
    name : str
        Of the page.
    run : callable
        `run(settings)` gives the records.
    draw, make_tables : callable
        `draw(records, settings)`; `make_tables(records, settings)` gives tables by
        name.
    check : callable
        `check(records, settings, tables)` stops where the smoke is not as it should be.
    """
    if settings.figures:
        draw(read_records(settings, name), settings)
        return
    settings.provenance, settings.kept = provenance(settings), []
    if settings.add:
        before = json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))
        settings.kept = before["records"]
        settings.provenance = f"{before['provenance']} Then: {settings.provenance}"
    records = read_records(settings, name) if settings.rebuild else run(settings)
    tables = make_tables(records, settings)
    draw(records, settings)
    write_results(settings, name, records, tables)
    if settings.scale == "smoke":
        check(records, settings, tables)
        print("smoke: passed", file=sys.stderr)


def figure_path(settings, name):
    """Where a picture goes: next to the page, where git ignores it."""
    folder = (DOCS if settings.page else settings.out) / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name
