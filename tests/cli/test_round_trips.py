"""Odd tables through `label`, `predict` and `annotate`, and back."""

import csv
import json
from datetime import UTC, datetime

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skactive
from skactive import ActiveLearner, Project
from skactive._tables._labels import find_sources, read_labels
from skactive._tables._reader import TableFile
from skactive.annotators import ColumnAnnotator
from skactive.cli import _annotate, main

from .._tables._helpers import write_columns

ODD = [
    *(
        "=1+1",
        "'=1+1",
        "'quoted",
        "-1",
        "+49 30",
        "@a",
        '"',
        '"whole"',
        'a "b" c',
        "a,b",
    ),
    *("a;b", "a|b", "a\tb", "two\nlines", "windows\r\nlines", "  spaces  ", "\u00a0"),
    *("007.1", "1.10", "1E2", "None", "nan", "NULL", "true", "\U0001f4a9", "e\u0301"),
    *("\u2028", "\ufeffmark", "_x000D_", "_x005F_x000D_", "#N/A", "[1, 2]", '{"a": 1}'),
]
CLASSES = [
    ["yes", "no"],
    ["1.1", "1.10", "007.1"],
    ["=1+1", "'=2", "-"],
    ["a: b", 'say "hi"', "x\ty"],
    ["None", "nan", "\U0001f4a9"],
    ["1", "2"],
    [f"{101 + i}.{i % 3}" for i in range(26)],
]
FORMATS = ["csv", "semicolon.csv", "bom.csv", "utf16.csv", "tsv", "literal.tsv"]
FORMATS += ["jsonl", "parquet", "xlsx", "repeated.csv"]


def make_table(seed):
    """Return a table of odd cells, with labels of every third row, and its classes."""
    rng = np.random.default_rng(seed)
    classes, n = CLASSES[seed % len(CLASSES)], 60
    odd = rng.permutation([*ODD, *ODD])
    labels = rng.choice(classes, n)
    table = {
        "id": [f"{i:03d}" for i in range(n)],
        "text": [
            f"{x} {y} {i}" for i, (x, y) in enumerate(zip(odd, labels, strict=False))
        ],
        "note": rng.choice([*ODD, ""], n).tolist(),
        "label": [str(x) if i % 3 == 0 else "" for i, x in enumerate(labels)],
        "more ": rng.choice([*ODD, ""], n).tolist(),
        "=h": rng.choice(ODD, n).tolist(),
    }
    if seed % 2:
        table["text"][7] = "\u200b "
    return table, classes


def write(folder, table, format):
    """Write a table in a format, with cells that only this format has."""
    path = folder / f"t.{format.rpartition('.')[2]}"
    if format == "literal.tsv":  # where quotes are text
        table = {
            x: [y.translate({9: 32, 10: 32, 13: 32}) for y in table[x]] for x in table
        }
        table["note"][0] = '5" disk'
        rows = [list(table), *zip(*table.values(), strict=True)]
        path.write_bytes("\n".join("\t".join(row) for row in rows).encode())
    elif format == "tsv" or format.endswith("csv"):
        names, cells = list(table), list(table.values())
        if format == "repeated.csv":
            names, cells = [*names, "", "note", ""], [*cells, *cells[:3]]
        encoding = {"bom.csv": "utf-8-sig", "utf16.csv": "utf-16"}.get(format, "utf-8")
        delimiter = {"semicolon.csv": ";", "tsv": "\t"}.get(format, ",")
        with path.open("w", encoding=encoding, newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerows([names, *zip(*cells, strict=True)])
    elif format == "jsonl":
        more = [None, 1.5, 2**60, True, [1, "a"], {"b": [None]}, 0.1 + 0.2, "x"]
        table = {**table, "json": [more[i % 8] for i in range(60)]}
        rows = zip(*table.values(), strict=True)
        lines = [json.dumps(dict(zip(table, row, strict=True))) for row in rows]
        path.write_text("\n".join(lines))
    elif format == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {name: pa.array(cells) for name, cells in table.items()}
        columns["time"] = pa.array(range(2**60, 2**60 + 60), pa.timestamp("ns", "UTC"))
        columns["kind"] = columns["note"].dictionary_encode()
        columns["n"] = pa.array([None, 5] * 30, pa.int8())
        pq.write_table(pa.table(columns), path)
    else:
        pytest.importorskip("openpyxl")
        more = [None, 1.5, 2, True, datetime(2026, 11, 28, 12, tzinfo=UTC), "x"]
        more[4] = more[4].replace(tzinfo=None)
        write_columns(path, {**table, "cells": [more[i % 6] for i in range(60)]})
    return path


def read(path):
    """Return the columns of a file; Arrow arrays keep their types."""
    return TableFile(path).read().columns


def check_copied(source, path, but=()):
    """Check that all cells of a source are in a file, in the same columns."""
    before, after = read(source), read(path)
    assert list(after)[: len(before)] == list(before)
    for key, cells in before.items():
        if key not in but:
            assert after[key] == cells, key
    return after


def read_given(path):
    """Return the labels of a file, as each command reads them."""
    table = TableFile(path)
    table.read(["label", *find_sources(table.names)])
    return read_labels(table, "label").values


@pytest.mark.long
@pytest.mark.parametrize(
    "seed",
    [*range(10), *(pytest.param(i, marks=pytest.mark.slow) for i in range(10, 35))],
)
def test_odd_tables_come_back_cell_by_cell(tmp_path, monkeypatch, seed):
    table, classes = make_table(seed)
    path = write(tmp_path, table, FORMATS[seed % len(FORMATS)])
    model = make_pipeline(TfidfVectorizer(token_pattern=r"\S+"), LogisticRegression())
    learner = ActiveLearner(model, "random", random_state=0)
    given = read_given(path)
    known = dict.fromkeys(label for label in given if label is not None)
    with Project(path, "text", "label").open(learner) as project:
        project.session.tell({1: next(iter(known)), 2: list(known)[-1]}, unasked=True)
        project.write(project.train_final())
        labels = dict(project.session.labels)
        rows = dict(enumerate(project.table.rows))
    out = check_copied(path, project.output, but=["label"])
    sources = TableFile(project.output).read().cells("label_source")
    assert sources.count("person") == 2
    expected = list(given)
    for id, label in labels.items():
        expected[rows[id]] = label
    assert read_given(project.output) == expected
    # What comes out goes in again, with the same labels.
    with Project(project.output, "text", "label").open(learner) as again:
        assert list(again.given.values()) == [x for x in expected if x is not None]
        again.write(again.train_final())
    check_copied(project.output, again.output, but=["label"])
    assert read_given(again.output) == expected
    assert len(read(again.output)) > len(out)
    monkeypatch.chdir(tmp_path)
    fitted = model.fit([table["text"][0], "b"], classes[:2])
    skactive.save(fitted, tmp_path / "model")
    assert main(["predict", "model", str(path), "--text", "text"]) == 0
    check_copied(path, path.with_stem("t.predicted"))
    machine = ColumnAnnotator(
        project.texts, [classes[0]] * len(project.texts), name="m"
    )
    monkeypatch.setattr(_annotate, "_make_machine", lambda *_, **__: machine)
    monkeypatch.setattr(_annotate, "say_cost", lambda *_: None)
    command = ["annotate", str(path), "--text", "text", "--machine", "http://a"]
    assert main([*command, "--machine-model", "m", "--classes", "x,y"]) == 0
    check_copied(path, path.with_stem("t.annotated"))
