"""Figures in the text of pages, computed from the records that they quote.

tests/docs/quotes has a file for each page of results with a JSON file, and `pages.txt`
for all other pages, whose lines `[docs/index.md]` name the page. Every other line is a
fragment of the page. What stands in braces is computed from the JSON files, as in an
f-string; `let NAME = ...` names a value. A fragment that begins with "= " has figures
that no record holds: settings, figures of a paper, older measurements.
"""

import functools
import json
import re
from pathlib import Path

import numpy as np

from skactive.analysis import paired_t

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
QUOTES = Path(__file__).parent / "quotes"
FIGURE = re.compile(r"(?<![\w.,-])[-+]?\.?\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w-])")
IN_CELL = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


@functools.cache
def read_numbers(name):
    """Return a JSON file of docs/results."""
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def split_row(line):
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


class Record:
    """What a fragment may call; `name` is the JSON file that is meant by default."""

    def __init__(self, name=None):
        self.name = name

    def at(self, table):
        """Return a table, `name/table` for one of another page."""
        name, _, title = table.rpartition("/")
        return read_numbers(name or self.name)["tables"][title]

    def cell(self, table, row, column):
        """Return a cell: the start of the row, and the column or its number."""
        head, _, *lines = self.at(table)
        lines = [line for line in lines if line.startswith("|")]
        found = [line for line in lines if line.startswith(f"| {row}")]
        same = [line for line in lines if line.startswith(f"| {row} |")]
        (line,) = same or found
        head = split_row(head)
        if isinstance(column, str):
            assert head.count(column) == 1, (table, column)
            column = head.index(column)
        return [part.strip() for part in line[1:-1].split("|")][column]

    def num(self, table, row, column, place=0):
        """Return a number of a cell."""
        found = IN_CELL.findall(self.cell(table, row, column))
        return float(found[place].replace(",", ""))

    def column(self, table, column, place=0, only=()):
        """Return a number of each row, of those that begin with one of `only`."""
        head, _, *lines = self.at(table)
        rows = [line for line in lines if line.startswith("|")]
        rows = [r for r in rows if not only or r[2:].startswith(tuple(only))]
        cells = [[part.strip() for part in r[1:-1].split("|")] for r in rows]
        index = split_row(head).index(column) if isinstance(column, str) else column
        found = [IN_CELL.findall(row[index]) for row in cells]
        return [float(x[place].replace(",", "")) for x in found if len(x) > place]

    def cells(self, table):
        """Return the first number of each cell but the first of a row, an array."""
        lines = [line for line in self.at(table)[2:] if line.startswith("|")]
        found = [IN_CELL.findall(c) for r in lines for c in split_row(r)[1:]]
        return np.array([float(x[0].replace(",", "")) for x in found if x])

    def stars(self, table, mark="**"):
        """Return how many cells of a table end in a mark."""
        return sum(c.endswith(mark) for r in self.at(table) for c in split_row(r))

    def scores(self, name, change, metric="accuracy"):
        """Return means over the seeds in points: data set and number of labels."""
        place = 1 + ("accuracy", "f1", "brier", "ece").index(metric)
        found = {}
        for record in read_numbers(name)["records"]:
            if record["change"] == change:
                for each in record["rounds"]:
                    found.setdefault((record["data"], each[0]), []).append(each[place])
        return {key: 100 * float(np.mean(values)) for key, values in found.items()}

    def less(self, name, change, before, metric="accuracy", least=25, without=()):
        """Return differences of means in points: a row per data set, without some."""
        ours, theirs = (self.scores(name, c, metric) for c in (change, before))
        data = dict.fromkeys(d for d, _ in ours if d not in without)
        counts = sorted({n for _, n in ours if n >= least})
        return np.array([[ours[d, n] - theirs[d, n] for n in counts] for d in data])

    def mean_at(self, name, change, n, metric):
        """Return the mean over the data sets with n labels."""
        found = self.scores(name, change, metric)
        return np.mean([value for (_, count), value in found.items() if count == n])

    def areas(self, model, strategy, against="random"):
        """Return the differences of strategies.json in points: data set, seed."""
        values = {}
        for record in read_numbers("strategies")["records"]:
            if record["model"] == model and record["strategy"] in (strategy, against):
                kept = [i for i, n in enumerate(record["counts"]) if n <= 500]
                counts = [record["counts"][i] for i in kept]
                for seed, accuracy, *_ in record["runs"]:
                    curve = [accuracy[i] / 100 for i in kept]
                    area = np.trapezoid(curve, counts) / (counts[-1] - counts[0])
                    key = record["data"], seed
                    values.setdefault(key, {})[record["strategy"]] = area
        found = {}
        for (data, _), pair in values.items():
            if len(pair) == 2:
                found.setdefault(data, []).append(pair[strategy] - pair[against])
        return found

    def strategy_gains(self, model, strategy, data):
        """Return the gains on a data set in points, by the number of labels."""
        means = {}
        for record in read_numbers("strategies")["records"]:
            key = record["strategy"]
            if (record["model"], record["data"]) == (model, data):
                curves = [run[1] for run in record["runs"]]
                points = np.mean(curves, axis=0) / 100
                means[key] = dict(zip(record["counts"], points, strict=True))
        ours, theirs = means[strategy], means["random"]
        return {n: ours[n] - theirs[n] for n in ours.keys() & theirs.keys()}

    def area(self, model, strategy, against="random", without=()):
        """Return the mean of the differences over the data sets."""
        found = self.areas(model, strategy, against)
        return np.mean([np.mean(v) for d, v in found.items() if d not in without])

    def half(self, values):
        """Return half of the t interval of a mean."""
        low, high = paired_t(values, np.zeros(len(values))).interval
        return (high - low) / 2

    def names(self):
        """Return what a fragment can use."""
        methods = {n: getattr(self, n) for n in dir(self) if not n.startswith("_")}
        plain = {"min": min, "max": max, "abs": abs, "sum": sum, "len": len}
        plain |= {
            "re": re,
            "sorted": sorted,
            "split_row": split_row,
            "read_numbers": read_numbers,
            "np": np,
        }
        plain |= {"next": next, "range": range}
        return {**methods, **plain, "map": map, "word": WORDS.__getitem__}


@functools.cache
def read_quotes(name):
    """Return the fragments of a file by page, with their figures."""
    page, found = f"docs/results/{name}.md", {}
    names = Record(name).names()
    for line in (QUOTES / f"{name}.txt").read_text("utf-8").splitlines():
        if re.fullmatch(r"\[[\w/.]+\]", line):
            page = line.strip("[]")
        elif line.startswith("let "):
            variable, _, value = line[4:].partition(" = ")
            names[variable] = eval(value, names)
        elif line.startswith("= "):
            found.setdefault(page, []).append(line[2:])
        elif line and not line.startswith("#"):
            found.setdefault(page, []).append(eval(f'f""" {line} """', names))
    return found


def read_prose(text):
    """Return the lines of a page without code, tables of results and addresses."""
    text = re.sub(r"^(`{3,}).*?^\1\s*$", "", text, flags=re.M | re.S)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return [" ".join(line.split()) for line in text.splitlines()]


def find_uncovered(lines, quotes):
    """Return the figures that no fragment covers, and the fragments that are missing.

    A figure is returned with what stands around it.
    """
    quotes = [" ".join(quote.split()) for quote in quotes]
    covered = [set() for _ in lines]
    missing = []
    for quote in quotes:
        before = r"(?<![\d.,+-])" if re.match(r"[\d.+-]", quote) else ""
        pattern = re.compile(rf"{before}{re.escape(quote)}(?!\d|[.,]\d)")
        spots = [
            (i, m.start()) for i, x in enumerate(lines) for m in pattern.finditer(x)
        ]
        if not spots:
            missing.append(quote)
        for i, start in spots:
            covered[i] |= set(range(start, start + len(quote)))
    loose = []
    for line, places in zip(lines, covered, strict=True):
        bare = re.sub(r"`[^`]*`", lambda m: "`" * len(m[0]), line)
        for figure in FIGURE.finditer(bare):
            if not places.issuperset(range(*figure.span())):
                loose.append(line[max(0, figure.start() - 40) : figure.end() + 30])
    return loose, missing
