"""The commands `label` and `predict`, as a person types them."""

import csv
import json
import os
import re
import shutil
import signal
import sys
import time
import warnings
from urllib.request import urlopen

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive._tables._codebook import read_classes
from skactive.bert import BertClassifier
from skactive.cli import main
from skactive.labeling._address import remember_address
from skactive.labeling._server import LabelingServer
from skactive.persistence import load, save
from skactive.project import Project
from skactive.session import read_labels
from skactive.session._models import Models

from .._tables._helpers import read_columns, write_columns
from ..annotators._helpers import FakeChat, chat
from ._helpers import override

N_ROWS, N_GIVEN = 40, 6


def _truth(text):
    return "good" if "good" in text else "bad"


@pytest.fixture
def columns():
    words = ["red", "green", "blue", "old", "new"]
    texts = [f"a {words[i % 5]} {['good', 'bad'][i % 2]} {i}" for i in range(N_ROWS)]
    texts[7] = "=1+1 a good one"
    return {
        "note": [f"={i}" for i in range(N_ROWS)],
        "text": texts,
        "label": [_truth(x) if i < N_GIVEN else None for i, x in enumerate(texts)],
    }


@pytest.fixture
def table(columns, tmp_path):
    write_columns(tmp_path / "notes.csv", columns)
    return tmp_path / "notes.csv"


@pytest.fixture
def label(table, tiny_bert, monkeypatch, capsys):
    """Run `label` at the prompt with the lines that a person types.

    A line is a str, or a function of what was written last.
    """

    def label(*lines, options=(), file=table, columns=("text", "label")):
        shown, rest = [], list(lines)

        def read(prompt):
            if not rest:
                raise EOFError
            line = rest.pop(0)
            return line(shown) if callable(line) else line

        monkeypatch.setattr("builtins.input", read)
        monkeypatch.setattr("builtins.print", _Print(shown))
        text, names = columns
        names = [names] if isinstance(names, str) else names
        place = ["label", str(file), "--text", text, "--label", *names]
        status = main([*place, "--model", tiny_bert, "--terminal", *options])
        monkeypatch.undo()
        capsys.readouterr()
        return status, shown

    return label


class _Print:
    """`print` that also keeps what it prints."""

    def __init__(self, shown):
        self._shown, self._print = shown, print

    def __call__(self, *values, **options):
        self._shown.extend(str(value) for value in values)
        self._print(*values, **options)


def _answer(shown):
    """Answer the text that is shown."""
    return _truth(next(x for x in reversed(shown) if x.startswith(("a ", "=1"))))


@pytest.mark.long
def test_from_a_table_to_a_labeled_table(label, table, columns):
    status, shown = label(*[_answer] * 12, "q")
    assert status == 0
    assert f"{N_ROWS} texts, {N_GIVEN} labels given, 0 by people" in shown
    out = read_columns(table.with_name("notes.labeled.csv"))
    assert list(out) == [
        *columns,
        *("label_source", "prediction", "probability", "annotator", "seconds"),
        *("flag", "skactive_note"),
    ]
    # The cells of the file are as they were.
    assert (out["note"], out["text"]) == (columns["note"], columns["text"])
    for text, name, source in zip(
        out["text"], out["label"], out["label_source"], strict=True
    ):
        assert name in ("good", "bad")
        assert source == "model" or name == _truth(text)
    counts = {name: out["label_source"].count(name) for name in ("given", "person")}
    assert counts == {"given": N_GIVEN, "person": 12}
    assert all(0.5 <= float(p) <= 1 for p in out["probability"])
    assert [s is not None for s in out["seconds"]] == [
        source == "person" for source in out["label_source"]
    ]
    # The file itself is never changed.
    assert read_columns(table) == columns


@pytest.mark.long
@pytest.mark.slow
def test_the_same_command_continues(label, table, tmp_path):
    label(*[_answer] * 5, options=["--annotator", "ann"])
    first = read_labels(tmp_path / "notes.skactive" / "session")
    _, shown = label(*[_answer] * 3, options=["--annotator", "ann"])
    assert f"{N_ROWS} texts, {N_GIVEN} labels given, 5 by people" in shown
    labels = read_labels(tmp_path / "notes.skactive" / "session")
    assert len(labels) == 8
    assert first.items() <= labels.items()
    out = read_columns(table.with_name("notes.labeled.csv"))
    assert out["annotator"].count("ann") == 8


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_predicted_formulas_are_escaped(label, columns, tmp_path, suffix):
    names = [x and {"good": "=1+1", "bad": "@SUM(1)"}[x] for x in columns["label"]]
    write_columns(tmp_path / "f.csv", {"text": columns["text"], "label": names})
    label("1", "2", file=tmp_path / "f.csv")
    write_columns(tmp_path / f"new{suffix}", {"text": columns["text"]})
    model = tmp_path / "f.skactive" / "model"
    assert main(["predict", str(model), str(tmp_path / f"new{suffix}")]) == 0
    out = read_columns(tmp_path / f"new.predicted{suffix}")
    mark = "" if suffix == ".jsonl" else "'"
    assert set(out["prediction"]) == {f"{mark}=1+1", f"{mark}@SUM(1)"}
    assert out["text"] == columns["text"]


@pytest.mark.parametrize(
    ("given", "answers", "options", "written"),
    [
        (["+", "-", "0", "+"], ["1", "2"], [], ["'+", "'-"]),
        (["1", "2.50", "007", "-3"], ["3", "2.5"], ["--regression"], ["3.0", "2.5"]),
    ],
)
def test_given_cells_stay_as_they_are(
    label, tmp_path, given, answers, options, written
):
    texts = [f"{word} text" for word in ("one", "two", "three", "four", "five", "six")]
    rows = zip(["text", *texts], ["label", *given, "", ""], strict=True)
    (tmp_path / "f.csv").write_text("\n".join(map(",".join, rows)))
    label(*answers, file=tmp_path / "f.csv", options=options)
    with open(tmp_path / "f.labeled.csv", encoding="utf-8", newline="") as file:
        found = [row["label"] for row in csv.DictReader(file)]
    assert found[:4] == given
    assert set(found[4:]) == set(written)


@pytest.mark.parametrize("is_learner", [False, True])
def test_predict_with_a_saved_model_for_several_classes(tmp_path, is_learner):
    texts, rows = ["cheap tasty", "tasty", "cheap", "slow"] * 5, [[1, 1], [1, 0]]
    rows = np.array([*rows, [0, 1], [0, 0]] * 5)
    several = OneVsRestClassifier(LogisticRegression(C=100))
    model = make_pipeline(TfidfVectorizer(), several)
    model = ActiveLearner(model) if is_learner else model
    save(model.fit(texts, rows), tmp_path / "model")
    write_columns(tmp_path / "new.jsonl", {"text": texts[:4]})
    command = ["predict", tmp_path / "model", tmp_path / "new.jsonl", "--text", "text"]
    assert main(list(map(str, command))) == 0
    out = read_columns(tmp_path / "new.predicted.jsonl")
    assert list(map(str, out["prediction"])) == ["[0, 1]", "[0]", "[1]", "[]"]
    (tmp_path / "pool").mkdir()
    write_columns(tmp_path / "pool" / "new.parquet", {"text": texts[3::-1]})
    command[2:3] = [tmp_path / "pool", "--out", tmp_path / "pool.parquet"]
    assert main(list(map(str, command))) == 0
    out = read_columns(tmp_path / "pool.parquet")
    assert list(map(list, out["prediction"])) == [[], [1], [0], [0, 1]]


def test_a_label_of_the_file_that_an_answer_contradicts_is_said(label, tmp_path):
    cells = {"text": ["a fire", "a flood", "smoke", "water"]}
    given = ["fire", "flood", None, None]
    write_columns(tmp_path / "f.csv", cells | {"label": given})
    label("fire", "fire", file=tmp_path / "f.csv")
    write_columns(tmp_path / "f.csv", cells | {"label": [*given[:2], "fire", "flood"]})
    _, shown = label(file=tmp_path / "f.csv")
    assert "labels of the file differ from the answers, which count: line 5" in shown
    out = read_columns(tmp_path / "f.labeled.csv")
    assert out["label"] == ["fire", "flood", "fire", "fire"]


@pytest.mark.long
@pytest.mark.slow
def test_predict_labels_a_new_file(label, table, tmp_path, capsys):
    label(*[_answer] * 8)
    write_columns(
        tmp_path / "new.jsonl", {"text": ["a good one", "a bad one"], "n": [1, 2]}
    )
    model = str(tmp_path / "notes.skactive" / "model")
    features = tmp_path / "notes.skactive" / "features"
    before = sorted(features.rglob("*"))
    assert main(["predict", model, str(tmp_path / "new.jsonl")]) == 0
    assert sorted(features.rglob("*")) == before
    assert "new.predicted.jsonl: 2 predictions" in capsys.readouterr().out
    out = read_columns(tmp_path / "new.predicted.jsonl")
    assert list(out) == ["text", "n", "prediction", "probability"]
    # The predictions are those of the labeled table.
    write_columns(tmp_path / "old.csv", {"text": read_columns(table)["text"]})
    assert main(["predict", model, str(tmp_path / "old.csv")]) == 0
    again = read_columns(tmp_path / "old.predicted.csv")
    labeled = read_columns(table.with_name("notes.labeled.csv"))
    assert again["prediction"] == labeled["prediction"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".parquet", ".xlsx"])
def test_other_formats(label, columns, tmp_path, suffix):
    path = tmp_path / f"notes{suffix}"
    write_columns(path, columns)
    status, _ = label(*[_answer] * 3, file=path)
    assert status == 0
    out = read_columns(tmp_path / f"notes.labeled{suffix}")
    assert out["text"] == columns["text"]
    assert out["label_source"].count("person") == 3


def test_the_delimiter_is_said_and_kept(label, columns, tmp_path):
    path = tmp_path / "semicolons.csv"
    write_columns(path, columns, delimiter=";", encoding="utf-8-sig")
    _, shown = label(_answer, file=path)
    assert "the cells are separated by ';'" in shown
    with open(tmp_path / "semicolons.labeled.csv", encoding="utf-8", newline="") as f:
        head = next(csv.reader(f, delimiter=";"))
    assert head[:3] == ["\ufeffnote", "text", "label"]  # as Excel needs it


def test_a_column_of_labels_that_is_missing_is_added(label, columns, tmp_path):
    write_columns(tmp_path / "plain.csv", {"text": columns["text"]})
    options = ["--classes", "good, bad"]
    _, shown = label(_answer, file=tmp_path / "plain.csv", options=options)
    assert "a column 'label' is added; the file has none" in shown
    out = read_columns(tmp_path / "plain.labeled.csv")
    assert len([x for x in out["label"] if x]) == 1
    assert shown[-1].endswith("0 given, 1 person, 0 model")


def test_classes_can_be_added_at_the_prompt(label, columns, tmp_path):
    write_columns(tmp_path / "plain.csv", {"text": columns["text"]})
    label("+ good", "+ bad", *[_answer] * 4, file=tmp_path / "plain.csv")
    out = read_columns(tmp_path / "plain.labeled.csv")
    assert out["label_source"].count("person") == 4


@pytest.mark.long
def test_classes_are_added_to_a_session(label, columns, tmp_path):
    write_columns(tmp_path / "plain.csv", {"text": columns["text"]})
    run = {"file": tmp_path / "plain.csv"}
    label(*[_answer] * 3, options=["--classes", "good,bad"], **run)
    _, shown = label("odd", options=["--classes", "good,odd"], **run)
    assert "added the class odd" in shown
    assert "the session keeps the classes that were not named: bad" in shown


def test_a_renamed_class_is_not_added_again(table):
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    for names in (["good", "bad", "odd"], ["good", "bad", "odd"]):
        project = Project(table, "text", "label", classes=names)
        project.open(ActiveLearner(model))
        if "odd" in project.session.known_classes:
            project.session.rename_class("odd", "strange")
        assert project.session.known_classes == ["good", "bad", "strange"]
        assert not project.messages
        project.close()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("n_given", [0, 8])
def test_classes_are_added_to_several_per_text(label, several, tmp_path, n_given):
    table = several("joined", n_given)
    run = {"file": table}
    options = ["--separator", "|", "--classes"]
    label(*[_answer_several] * 4, options=[*options, "good,new,red"], **run)
    for added in (True, False):
        status, shown = label("odd", options=[*options, "good,new,red,odd"], **run)
        assert status == 0
        assert ("added the class odd" in shown) == added
    out = read_columns(tmp_path / "several.labeled.csv")
    assert out["label"].count("odd") >= 2


def test_copies_of_a_text_are_labeled_once(label, columns, tmp_path):
    doubled = {name: [*cells, *cells] for name, cells in columns.items()}
    write_columns(tmp_path / "doubled.csv", doubled)
    label(*[_answer] * 4, file=tmp_path / "doubled.csv")
    out = read_columns(tmp_path / "doubled.labeled.csv")
    assert out["label_source"].count("person") == 8


def test_suggestions_are_shown_and_not_taken(label, columns, tmp_path):
    columns["llm"] = ["bad"] * N_ROWS
    write_columns(tmp_path / "s.csv", columns)
    options = ["--suggest", "llm"]
    # The first ten are blind.
    _, shown = label(*[_answer] * 14, file=tmp_path / "s.csv", options=options)
    assert any("suggestion: bad" in line for line in shown)
    assert any("suggestions right: " in line for line in shown)
    out = read_columns(tmp_path / "s.labeled.csv")
    people = [i for i, x in enumerate(out["label_source"]) if x == "person"]
    assert [out["label"][i] for i in people] == [_truth(out["text"][i]) for i in people]


def test_rows_without_a_text_are_kept(label, columns, tmp_path):
    columns["text"][10] = None
    write_columns(tmp_path / "b.csv", columns)
    _, shown = label(_answer, file=tmp_path / "b.csv")
    assert "rows without a text are left out: line 12" in shown
    out = read_columns(tmp_path / "b.labeled.csv")
    assert (out["text"][10], out["label"][10]) == (None, None)
    assert len(out["text"]) == N_ROWS


def test_columns_with_our_names_are_kept(label, columns, tmp_path):
    columns["annotator"] = ["me"] * N_ROWS
    write_columns(tmp_path / "a.csv", columns)
    label(_answer, file=tmp_path / "a.csv", options=["--annotator", "ann"])
    out = read_columns(tmp_path / "a.labeled.csv")
    assert out["annotator"] == ["me"] * N_ROWS
    assert out["skactive_annotator"].count("ann") == 1


def test_a_class_that_is_a_formula_is_escaped(label, columns, tmp_path):
    write_columns(tmp_path / "f.csv", {"text": columns["text"]})
    options = ["--classes", "=cmd,other"]
    label("1", file=tmp_path / "f.csv", options=options)
    with open(tmp_path / "f.labeled.csv", newline="") as file:
        assert "'=cmd" in {row["label"] for row in csv.DictReader(file)}


def test_numbers_as_classes_keep_their_type(label, columns, tmp_path):
    codes = [None if x is None else float(x == "good") for x in columns["label"]]
    write_columns(tmp_path / "n.jsonl", {"text": columns["text"], "label": codes})
    label("1", "0", file=tmp_path / "n.jsonl", options=["--classes", "0,1"])
    out = read_columns(tmp_path / "n.labeled.jsonl")
    assert {type(x) for x in out["label"]} == {int}


@pytest.fixture
def running(table):
    """A project that is open, and the server of its page, which is started."""
    project = Project(table, "text", "label")
    project.open(ActiveLearner(make_pipeline(TfidfVectorizer(), LogisticRegression())))
    with LabelingServer(project.desk) as server:
        remember_address(project.folder_, server.url)
        yield project, server
    project.close()


@pytest.mark.parametrize("front", ["page", "stale page", "copy", "terminal"])
def test_a_second_command_says_where_the_table_is_open(
    running, table, tiny_bert, capsys, front
):
    project, server = running
    address = project.folder_ / "page.json"
    if front == "stale page":
        server.stop()
    elif front == "copy":
        about = json.loads(address.read_text())
        address.write_text(json.dumps({**about, "folder": ["elsewhere", 1]}))
    elif front == "terminal":
        address.unlink()
    place = ["label", str(table), "--text", "text", "--label", "label", "--terminal"]
    assert main([*place, "--model", tiny_bert]) == 1
    shown = capsys.readouterr().err
    expected = f"{table} is open in process .*, since .*. Finish it there first.$"
    if front == "page":
        expected = (
            f"{table} is open at {server.url}. Use that page, or finish it first."
        )
    assert re.search(expected, shown)
    assert "delete" not in shown


@pytest.mark.parametrize("opens", [True, False])
def test_a_second_command_opens_the_page_that_runs(
    running, table, tiny_bert, capsys, monkeypatch, opens
):
    (_, server), opened = running, []
    monkeypatch.setattr("webbrowser.open", opened.append)
    place = ["label", str(table), "--text", "text", "--label", "label"]
    place += ["--model", tiny_bert] if opens else ["--model", tiny_bert, "--no-browser"]
    assert main(place) == 0
    assert f"{table} is open at {server.url}\n" in capsys.readouterr().err
    assert opened == [server.url] * opens


@pytest.mark.long
@pytest.mark.slow
def test_a_table_without_labels_says_how_to_begin(label, columns, tmp_path):
    write_columns(tmp_path / "plain.csv", {**columns, "label": [None] * N_ROWS})
    _, shown = label("+ good", "+ bad", *[_answer] * 4, file=tmp_path / "plain.csv")
    hint = "the table names fewer than two classes: add them, or pass --classes NAMES"
    assert hint in shown
    assert "+ NAME adds a class" in shown
    out = read_columns(tmp_path / "plain.labeled.csv")
    assert out["label_source"].count("person") == 4
    _, shown = label(file=tmp_path / "plain.csv")
    assert hint not in shown


@pytest.mark.slow
def test_warnings_wait_for_the_end_of_the_prompt(label):
    def warn(shown):
        warnings.warn("some texts have more than 128 tokens", stacklevel=1)
        return _answer(shown)

    _, shown = label(warn, _answer)
    (place,) = [i for i, line in enumerate(shown) if "more than 128 tokens" in line]
    assert place > max(i for i, line in enumerate(shown) if line.startswith("a "))


def test_the_model_of_earlier_labels_is_saved_before_the_thread_has_trained_one(
    label, monkeypatch, tmp_path
):
    monkeypatch.setattr(Models, "_adopt", lambda self, errors=True: None)
    monkeypatch.setattr(Models, "find_ready", lambda self: np.zeros(N_ROWS, dtype=bool))
    status, _ = label()
    assert status == 0
    assert (tmp_path / "notes.skactive" / "model").is_dir()


def test_commands_of_the_prompt(label, tmp_path):
    lines = [
        "maybe",
        "s",
        "u",
        "f",
        "n a note",
        "?",
        _answer,
        "=",
        "1",
        "bad",
        "!",
    ]
    status, shown = label(*lines, "q")
    assert status == 0
    assert any(line.startswith("No class fits") for line in shown)
    assert any("flagged | note: a note" in line for line in shown)
    assert list(read_labels(tmp_path / "notes.skactive" / "session").values()) == [
        "bad"
    ]


@pytest.mark.slow
def test_an_interruption_keeps_the_labels(label, table):
    def interrupt(shown):
        raise KeyboardInterrupt

    status, _ = label(*[_answer] * 4, interrupt)
    assert status == 0
    out = read_columns(table.with_name("notes.labeled.csv"))
    assert out["label_source"].count("person") == 4


def test_sigterm_writes_the_table(label, table):
    def stop(shown):
        signal.raise_signal(signal.SIGTERM)

    status, _ = label(*[_answer] * 4, stop)
    assert status == 0
    out = read_columns(table.with_name("notes.labeled.csv"))
    assert out["label_source"].count("person") == 4
    assert out["label_source"].count("model") == N_ROWS - N_GIVEN - 4


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_sigterm_to_the_page_writes_the_table(table, tiny_bert, monkeypatch, capsys):
    pytest.importorskip("uvicorn")

    def stop(url):
        path = f"{url}api/answer"
        answer = {"id": "10", "label": "good", "client": "tab"}
        urlopen(path, json.dumps(answer).encode(), timeout=30).close()
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("webbrowser.open", stop)  # called in a thread
    place = ["label", str(table), "--text", "text", "--label", "label"]
    assert main([*place, "--model", tiny_bert]) == 0
    out = read_columns(table.with_name("notes.labeled.csv"))
    assert out["label_source"].count("person") == 1
    assert "1 labels by people" in capsys.readouterr().err


def test_each_long_step_is_said(label):
    _, shown = label(*[_answer] * 4)
    steps = [
        f"training the model on {N_GIVEN + 4} labels",
        "predicting the other texts",
        "saving the model",
        "the model is in",
    ]
    found = [[i for i, x in enumerate(shown) if x.startswith(step)] for step in steps]
    assert found == sorted(found)
    assert all(len(places) == 1 for places in found)


@pytest.mark.slow
def test_the_model_is_saved_when_the_table_cannot_be(label, table, monkeypatch):
    def fail(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("skactive.project._table.write_table", fail)
    status, shown = label(*[_answer] * 4)
    assert status == 1
    assert any(line.startswith("the table is not written: ") for line in shown)
    assert "No space left on device" in shown[-1]
    assert load(table.with_suffix(".skactive") / "model").predict(["a good one"])


@pytest.mark.long
@pytest.mark.slow
def test_a_result_that_is_up_to_date_is_not_computed_again(label, table, monkeypatch):
    label(*[_answer] * 4)
    out = table.with_name("notes.labeled.csv")
    before, trained = out.stat().st_mtime_ns, []

    def train(*args):
        trained.append(args)
        return None

    def run(*lines, **options):
        with monkeypatch.context() as patch:
            patch.setattr(Project, "train_final", train)
            _, shown = label(*lines, **options)
            patch.undo()
        return shown

    said = "nothing was answered since the table and the model were written"
    assert said in run()
    assert said in run(_answer, "u")
    assert (out.stat().st_mtime_ns, trained) == (before, [])
    assert said not in run(options=["--no-fine-tuning"])
    assert said not in run("f")
    assert len(trained) == 2
    label(*[_answer])
    out.unlink()
    assert said not in run()
    assert out.exists()
    label()
    shutil.rmtree(table.with_suffix(".skactive") / "model")
    assert said not in run()
    label()
    table.touch()
    assert said not in run()


@pytest.mark.slow
def test_a_fine_tuning_that_was_stopped_runs_the_next_time(label, monkeypatch):
    def interrupt(*args, **options):
        asked.append(args)
        raise KeyboardInterrupt

    asked = []
    for lines in ([_answer] * 4, []):  # nothing is new the second time
        monkeypatch.setattr("skactive.project._model.Trainer._pays", lambda *args: True)
        monkeypatch.setattr("skactive.project._model.make_final_classifier", interrupt)
        _, shown = label(*lines)
        assert "stopped; the model of the session is kept" in shown
    assert len(asked) == 2


def test_an_interruption_of_the_predictions_keeps_the_labels(label, table, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Project, "train_final", interrupt)
    status, shown = label(*[_answer] * 4)
    assert status == 0
    out = read_columns(table.with_name("notes.labeled.csv"))
    assert out["label_source"].count("person") == 4
    assert set(out["prediction"]) == {None}
    assert "stopped; the labels are written" in shown
    assert not any("no model yet" in line for line in shown)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "texts"], r"has no column 'texts'. Did you mean 'text'?"),
        (["--text", "label"], r"argument --label: must be another column than"),
        (["--classes", "good,fine"], r"must hold every label .*'bad'"),
        (["--strategy", "margins"], r"margin"),
        (["--suggest", "nowhere"], r"has no column 'nowhere'"),
        (["--model", "nowhere"], r"nowhere"),
        (["--folder", __file__], r"argument --folder: must be a folder, got"),
    ],
)
def test_unusable_options(table, tiny_bert, tmp_path, capsys, options, message):
    place = ["--text", "text", "--label", "label", "--model", tiny_bert, "--terminal"]
    assert main(override(["label", table, *place], options)) == 1
    assert re.search(message, capsys.readouterr().err)
    assert not table.with_name("notes.labeled.csv").exists()


@pytest.mark.parametrize("given", ["", "a", "a,,b", "a,a"])
def test_unusable_classes(table, capsys, given):
    place = ["--text", "text", "--label", "label", "--classes", given]
    assert main(["label", str(table), *place]) == 2
    assert "at least two different names" in capsys.readouterr().err


def test_labels_that_are_no_classes(label, columns, tmp_path, capsys):
    columns["label"] = [f"value {i}" for i in range(N_ROWS)]
    write_columns(tmp_path / "v.csv", {k: v * 4 for k, v in columns.items()})
    columns["label"] = [f"value {i}" for i in range(4 * N_ROWS)]
    write_columns(
        tmp_path / "v.csv",
        {"text": [f"text {i}" for i in range(4 * N_ROWS)], "label": columns["label"]},
    )
    status, _ = label(file=tmp_path / "v.csv")
    assert status == 1


def test_classes_of_a_file(tmp_path):
    path = tmp_path / "classes.txt"
    path.write_text("good\tworth seeing\ta joy\tsplendid\n\nbad\n", encoding="utf-8")
    assert read_classes(path) == {
        "good": {"description": "worth seeing", "examples": ["a joy", "splendid"]},
        "bad": {"description": "", "examples": []},
    }
    path = tmp_path / "classes.json"
    path.write_text(json.dumps({"good": "worth seeing", "bad": ""}), encoding="utf-8")
    assert read_classes(path) == {"good": "worth seeing", "bad": ""}
    path.write_text(json.dumps(["good", "bad"]), encoding="utf-8")
    assert list(read_classes(path)) == ["good", "bad"]
    with pytest.raises(ValueError, match="'classes_file' must hold"):
        read_classes(tmp_path / "missing.txt")
    for content in ("{", "7", '["one"]'):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match="'classes_file' must hold"):
            read_classes(path)


@pytest.mark.slow
def test_predict_needs_a_column_of_texts(label, table, tmp_path, capsys):
    label(*[_answer] * 4)
    (tmp_path / "notes.skactive" / "model.json").unlink()
    model = str(tmp_path / "notes.skactive" / "model")
    assert main(["predict", model, str(table)]) == 1
    assert "argument --text: name the column of texts" in capsys.readouterr().err


def test_predict_on_other_columns_names_the_option(label, table, tmp_path, capsys):
    _, shown = label(*[_answer] * 4, options=["--n-labels", "3"])
    assert any("3 of 3 labeled: goal reached" in line for line in shown)
    assert not any("2 of 3 labeled: goal reached" in line for line in shown)
    write_columns(tmp_path / "new.csv", {"body": ["a good one", "a bad one"]})
    run = ["predict", str(tmp_path / "notes.skactive" / "model")]
    run.append(str(tmp_path / "new.csv"))
    assert main(run) == 1
    shown = capsys.readouterr().err
    assert "no column 'text'. Its columns: 'body'. Name its column of texts" in shown
    assert main([*run, "--text", "body"]) == 0


def _names(text):
    """Return the classes of a text of the fixture, by its words."""
    return [x for x in ("good", "new", "red") if f" {x} " in text]


def _answer_several(shown):
    """Answer the text that is shown with all of its classes."""
    text = next(x for x in reversed(shown) if x.startswith("a "))
    return ", ".join(_names(text)) or "-"


@pytest.fixture
def several(columns, tmp_path):
    """Write a table with several classes per text in one form; return its columns."""

    def several(form, n=8):
        texts = [x.replace("=1+1 a", "a") for x in columns["text"]]
        rows = [_names(x) if i < n else None for i, x in enumerate(texts)]
        if form == "columns":
            labels = {
                name: [None if row is None else int(name in row) for row in rows]
                for name in ("good", "new", "red")
            }
        elif form == "joined":
            labels = {
                "label": [None if x is None else "|".join(x) or "|" for x in rows]
            }
        else:
            labels = {"label": [None if x is None else json.dumps(x) for x in rows]}
        write_columns(tmp_path / "several.csv", {"text": texts, **labels})
        return tmp_path / "several.csv"

    return several


def _read_names(out, form, row):
    """Return the sorted names of a row of the labeled table."""
    if form == "columns":
        return [name for name in ("good", "new", "red") if out[name][row] == "1"]
    cell = out["label"][row]
    names = json.loads(cell) if form == "json" else cell.split("|")
    return sorted(name for name in names if name)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("form", ["columns", "joined", "json"])
def test_several_classes_per_text(label, several, tmp_path, tiny_bert, form):
    table = several(form)
    options = ["--separator", "|"] if form == "joined" else []
    names = ["good", "new", "red"] if form == "columns" else ["label"]
    lines = [*[_answer_several] * 12, "q"]
    run = {"file": table, "columns": ("text", names)}
    status, shown = label(*lines, options=options, **run)
    assert status == 0
    assert any("or - if no class applies" in line for line in shown)
    before = read_columns(table)
    out = read_columns(tmp_path / "several.labeled.csv")
    assert out["label_source"].count("person") == 12
    assert set(out["label_source"]) == {"given", "person", "model"}
    for row, source in enumerate(out["label_source"]):
        if source == "given":  # the cells of the file are as they were
            assert all(out[name][row] == before[name][row] for name in names)
        if source != "model":
            assert _read_names(out, form, row) == _names(out["text"][row])
        assert 0 < float(out["probability"][row]) <= 1
        assert out["prediction"][row] is not None
    # The same command continues, and the model predicts other tables.
    _, shown = label(_answer_several, options=options, **run)
    assert "40 texts, 8 labels given, 12 by people" in shown
    place = tmp_path / "several.skactive" / "model"
    write_columns(tmp_path / "new.csv", {"text": ["a good one", "a bad one"]})
    assert main(["predict", str(place), str(tmp_path / "new.csv")]) == 0
    new = read_columns(tmp_path / "new.predicted.csv")
    cells = new["prediction"]
    assert all(cell.startswith("[") == (form == "json") for cell in cells)
    assert not set("".join(cells)) & set("0123456789")


@pytest.mark.long
@pytest.mark.slow
def test_several_classes_from_nothing(label, columns, tmp_path):
    table = tmp_path / "plain.csv"
    texts = [x.replace("=1+1 a", "a") for x in columns["text"]]
    write_columns(table, {"text": texts})
    options = ["--classes", "good,new,red", "--separator", ";"]
    _, shown = label(*[_answer_several] * 6, "-", options=options, file=table)
    assert "a column 'label' is added; the file has none" in shown
    out = read_columns(tmp_path / "plain.labeled.csv")
    people = [i for i, x in enumerate(out["label_source"]) if x == "person"]
    assert len(people) == 7
    cells = [out["label"][i] for i in people]
    assert cells.count(";") >= 1
    run = {"file": table, "columns": ("text", ["good", "new"])}
    status, shown = label("1 2", "-", options=["--folder", str(tmp_path / "s")], **run)
    assert status == 0
    out = read_columns(tmp_path / "plain.s.labeled.csv")
    people = [i for i, x in enumerate(out["label_source"]) if x == "person"]
    assert sorted((out["good"][i], out["new"][i]) for i in people) == [
        ("0", "0"),
        ("1", "1"),
    ]


@pytest.fixture
def numbers(columns, tmp_path):
    texts = [f"a text {'good ' * (i % 5)} {i}" for i in range(40)]
    given = [f"{i % 5 + 0.5}" if i < 8 else None for i in range(40)]
    write_columns(tmp_path / "numbers.csv", {"text": texts, "score": given})
    return tmp_path / "numbers.csv"


def test_numbers_to_predict(label, numbers, tmp_path):
    run = {"file": numbers, "columns": ("text", "score")}
    lines = ["x", *["2.5"] * 5, "q"]
    status, shown = label(*lines, options=["--regression"], **run)
    assert status == 0
    assert "Type a number." in shown
    out = read_columns(tmp_path / "numbers.labeled.csv")
    assert [float(x) for x in out["score"]]
    assert out["label_source"].count("person") == 5
    assert set(out["probability"]) == {None}
    place = tmp_path / "numbers.skactive" / "model"
    assert main(["predict", str(place), str(numbers)]) == 0
    new = read_columns(tmp_path / "numbers.predicted.csv")
    assert all(abs(float(x)) < 100 for x in new["prediction"])
    assert "probability" not in new


def test_numbers_with_fractions_are_classes_without_the_flag(
    label, columns, tmp_path, capsys
):
    codes = [f"{101 + i % 26}.{i % 2}" for i in range(40)]
    table = tmp_path / "numbers.csv"
    write_columns(table, {"text": columns["text"], "label": [*codes[:39], None]})
    status, shown = label(codes[0], file=table)
    assert status == 0
    assert any("26 different numbers of column 'label' are names" in x for x in shown)
    out = read_columns(tmp_path / "numbers.labeled.csv")
    assert out["label"] == [*codes[:39], codes[0]]
    write_columns(table, {"text": ["a", "b"], "label": ["1", "x"]})
    place = ["label", str(table), "--text", "text", "--label", "label", "--terminal"]
    assert main([*place, "--regression"]) == 1
    assert "must hold numbers, got 'x' at line 3" in capsys.readouterr().err
    assert main([*place, "--regression", "--separator", "|"]) == 1
    assert "argument --regression: must be False" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.slow
def test_fine_tuning_for_several_classes(label, several, tmp_path, monkeypatch):
    monkeypatch.setattr("skactive.project._model._LEAST_OF_SEVERAL", 10)
    names = ["good", "new", "red"]
    run = {"file": several("columns", 30), "columns": ("text", names)}
    status, _ = label(_answer_several, **run)
    assert status == 0
    model = load(tmp_path / "several.skactive" / "model")
    assert isinstance(model, BertClassifier)
    assert model.thresholds_.shape == (3,)
    out = read_columns(tmp_path / "several.labeled.csv")
    predicted = model.predict(out["text"])
    shown = [set(cell.split("|")) - {""} for cell in out["prediction"]]
    assert shown == [{names[j] for j in np.flatnonzero(row)} for row in predicted]


@pytest.mark.long
@pytest.mark.slow
def test_answers_that_the_model_contradicts(label, several):
    lines = ["!", "q"]
    _, shown = label(
        *[_answer_several] * 20,
        *lines,
        file=several("columns"),
        columns=("text", ["good", "new", "red"]),
    )
    assert not any("NOT STORED" in line for line in shown)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until", "share:3"], "argument --until: must be 'shares:3', 'acc"),
        (
            ["--until", "shares:3", "--regression"],
            "argument --until: must be None with --regression",
        ),
    ],
)
def test_a_goal_that_cannot_be_reached_is_refused(tmp_path, capsys, options, message):
    table = tmp_path / "x.csv"
    table.write_text("text,label\nsome text,1\n", encoding="utf-8")
    assert main(["label", str(table), "--text", "text", "--label", "label", *options])
    assert message in capsys.readouterr().err


@pytest.fixture
def server():
    """A language model that is always right."""

    def reply(text, body):
        return chat(json.dumps({"label": _truth(text)}))

    server = FakeChat(reply)
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_a_language_model_answers_in_the_background(label, columns, tmp_path, server):
    write_columns(tmp_path / "m.csv", columns)
    options = ["--machine", server.url, "--machine-model", "tiny"]

    def wait(shown):
        end = time.monotonic() + 60
        while len(server.requests) < N_ROWS and time.monotonic() < end:
            time.sleep(0.02)
        return _answer(shown)

    _, shown = label(wait, *[_answer] * 5, file=tmp_path / "m.csv", options=options)
    said = f"{N_ROWS} requests to {server.host}, about"
    assert any(line.startswith(said) for line in shown)
    assert sorted(server.texts) == sorted(columns["text"])
    out = read_columns(tmp_path / "m.labeled.csv")
    known = [x for x in out["machine_label"] if x]
    assert known
    assert all(
        x in (None, "", _truth(text))
        for x, text in zip(out["machine_label"], out["text"], strict=True)
    )
    assert out["label_source"].count("person") == 6
    journal = (tmp_path / "m.skactive" / "session" / "journal.jsonl").read_text()
    events = [json.loads(line) for line in journal.splitlines()]
    machine = [event for event in events if event["event"] == "annotate"]
    assert {(event["machine"], event["by"]) for event in machine} == {(True, "tiny")}
    assert machine[0]["settings"]["host"] == server.host
    # The same command sends nothing again.
    label(_answer, file=tmp_path / "m.csv", options=options)
    assert len(server.requests) == N_ROWS


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--machine-model", "tiny"], "argument --machine"),
        (["--machine", "URL"], "argument --machine"),
        (
            ["--machine", "URL", "--machine-model", "m", "--max-requests", "5"],
            "allows 5",
        ),
        (["--machine", "URL", "--machine-model", "m", "--regression"], "--machine"),
    ],
)
def test_options_of_a_language_model(options, match, table, tiny_bert, server, capsys):
    options = [server.url if x == "URL" else x for x in options]
    if "--regression" in options:
        write_columns(table, {"text": ["a", "b", "c"], "label": ["1", "2", None]})
    command = ["label", str(table), "--text", "text", "--label", "label", "--terminal"]
    assert main([*command, "--model", tiny_bert, *options]) != 0
    assert match in capsys.readouterr().err
    assert server.requests == []
