"""Intervals of `skactive estimate` on tables that are spoiled at random."""

import csv
import json
import re

import numpy as np
import pytest

from skactive.cli import main

from .._tables._helpers import read_columns, write_columns

CLASSES = [
    ["yes", "no"],
    ["law", "sport", "arts"],
    ["1.1", "1.10", "007.1", "7.1"],
    ["01", "1", "10"],
    ["1", "2", "3"],
    ["Yes", "yes", "no"],
    ["None", "NA", "a: b", "=1+1"],
    [f"{101 + i}.{i % 3}" for i in range(26)],
]
BLANKS = [" ", "\u00a0", "\u200b", "\t", "\ufeff"]
# Each spoils a table in its own way; the second ones must be refused, with the reason.
SPOILS = [
    *("plain", "spaces", "header", "blank texts", "own output", "sampled", "groups"),
    *("no prediction", "gaps", "chosen", "windows-1252"),
]
REFUSED = {
    "gaps": r"'llm' .* must hold a prediction of every text, and .*(lines|rows) .*\d",
    "chosen": r"must hold the labels of a random sample, and \d+ of them were given",
    "windows-1252": r"is not UTF-8 text \(byte \d+\).*iconv -f windows-1252",
}
FORMATS = ["csv", "semicolon.csv", "sep.csv", "bom.csv", "utf16.csv", "tsv"]
FORMATS += ["jsonl", "parquet", "xlsx"]


def make_table(seed):
    """Return a table, the shares of its classes, how it is spoiled, and its options."""
    rng = np.random.default_rng(seed)
    classes = CLASSES[rng.integers(len(CLASSES))]
    spoil = SPOILS[rng.choice(len(SPOILS), p=[*[0.12] * 7, 0.06, *[0.1 / 3] * 3])]
    n, k = int(rng.integers(300, 1500)), len(classes)
    share = rng.dirichlet(np.full(k, 2.0))
    truth = rng.choice(k, n, p=share)
    is_wrong = rng.random(n) < rng.choice([0.02, 0.1, 0.4])
    guess = np.where(is_wrong, rng.choice(k, n), truth)
    sample = np.zeros(n, dtype=bool)
    sample[rng.choice(n, int(rng.integers(60, 250)), replace=False)] = True
    label = [classes[y] if use else "" for y, use in zip(truth, sample, strict=True)]
    table = {
        "text": [f"text {i}" for i in range(n)],
        "label": label,
        "llm": [classes[y] for y in guess],
    }
    options = ["--label", "label", "--text", "text"]
    if spoil != "no prediction":
        options += ["--prediction", "llm"]
    kept = np.ones(n, dtype=bool)
    if spoil == "spaces":
        for name in ("label", "llm"):
            ends = rng.choice(["", "", *BLANKS], (n, 2))
            pairs = zip(table[name], ends, strict=True)
            table[name] = [f"{a}{x}{b}" for x, (a, b) in pairs]
    elif spoil == "header":
        table = {f" {name.title()}\u200b": cells for name, cells in table.items()}
    elif spoil == "blank texts":
        kept = rng.random(n) < 0.9
        texts = zip(table["text"], kept, strict=True)
        table["text"] = [x if keep else rng.choice(["", *BLANKS]) for x, keep in texts]
    elif spoil in ("own output", "chosen"):
        # The labels of the others are predictions; sources are beside.
        source = "person" if spoil == "chosen" else "given"
        table["label"] = [x or y for x, y in zip(label, table["llm"], strict=True)]
        table["label_source"] = [source if x else "model" for x in label]
        table["prediction"], table["probability"] = table["llm"], [0.9] * n
    elif spoil == "sampled":
        table["label"] = [classes[y] for y in truth]  # of which only some are random
        table["use"] = [str(rng.choice(["1", "true"])) if x else "" for x in sample]
        options += ["--sample", "use"]
    elif spoil == "groups":
        table["year"] = rng.choice(["2024", " 2024", "2025"], n).tolist()
        options += ["--group", "year"]
    elif spoil == "gaps":
        gap = rng.random(n) < 0.01 if seed % 2 else np.arange(n) > 0.6 * n
        gap[rng.integers(n)] = True
        cells = zip(table["llm"], gap, strict=True)
        table["llm"] = [rng.choice(["", *BLANKS]) if no else x for x, no in cells]
    groups = [x.strip() for x in table["year"]] if spoil == "groups" else [""] * n
    shares = {}
    for name in set(groups):
        rows = kept & (np.array(groups) == name)
        counts = np.bincount(truth[rows], minlength=k) / rows.sum()
        shares |= {(name, x): y for x, y in zip(classes, counts, strict=True)}
    return table, shares, spoil, options


def write(folder, table, format, spoil):
    """Write a table in a format, or in Windows-1252; return its path."""
    path = folder / f"t.{format.rpartition('.')[2]}"
    if spoil == "windows-1252":
        path = folder / "t.csv"
        table = {**table, "more": ["\u201cfine\u201d \u20ac"] * len(table["text"])}
        rows = [list(table), *zip(*table.values(), strict=True)]
        with path.open("w", encoding="cp1252", newline="") as file:
            csv.writer(file).writerows(rows)
    elif format.endswith("csv"):
        encoding = {"bom.csv": "utf-8-sig", "utf16.csv": "utf-16"}.get(format, "utf-8")
        delimiter = ";" if format in ("semicolon.csv", "sep.csv") else ","
        with path.open("w", encoding=encoding, newline="") as file:
            file.write("sep=;\r\n" * (format == "sep.csv"))
            rows = [list(table), *zip(*table.values(), strict=True)]
            csv.writer(file, delimiter=delimiter).writerows(rows)
    elif format == "jsonl":
        rows = zip(*table.values(), strict=True)
        lines = [json.dumps(dict(zip(table, row, strict=True))) for row in rows]
        path.write_text("\n".join(lines))
    else:
        write_columns(path, table)
    return path


@pytest.mark.long
@pytest.mark.parametrize(
    ("n_tables", "least"), [(50, 0.92), pytest.param(120, 0.93, marks=pytest.mark.slow)]
)
def test_intervals_cover_or_the_table_is_refused_with_the_reason(
    tmp_path, monkeypatch, capsys, n_tables, least
):
    monkeypatch.chdir(tmp_path)
    covered, n_refused = [], dict.fromkeys(REFUSED, 0)
    for seed in range(n_tables):
        table, shares, spoil, options = make_table(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = write(folder, table, FORMATS[seed % len(FORMATS)], spoil)
        out = folder / "shares.csv"
        status = main(["estimate", str(path), *options, "--out", str(out)])
        said = capsys.readouterr().err
        if spoil in REFUSED:
            assert status == 1, (seed, spoil)
            assert re.search(REFUSED[spoil], said), (seed, said)
            assert not out.exists()
            n_refused[spoil] += 1
            continue
        assert status == 0, (seed, spoil, said)
        found = read_columns(out)
        groups = found.get("group", [""] * len(found["class"]))
        bounds = found["low"], found["high"]
        for group, name, low, high in zip(groups, found["class"], *bounds, strict=True):
            key = group, name.removeprefix("'")
            if low is not None:
                covered.append(float(low) <= shares[key] <= float(high))
    assert min(n_refused.values()) >= n_tables // 50
    n_estimated = n_tables - sum(n_refused.values())
    assert n_estimated >= 0.75 * n_tables
    assert len(covered) > 2.5 * n_tables
    assert np.mean(covered) >= least, (np.mean(covered), len(covered), n_refused)
