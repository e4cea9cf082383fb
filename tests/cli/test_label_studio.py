"""The commands `label-studio`, against a Label Studio in memory."""

import csv
import json
import signal
from dataclasses import asdict

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive.cli import main
from skactive.labeling._label_studio._bridge import Bridge
from skactive.labeling._label_studio._folder import recall_options
from skactive.project import ProjectSettings

from ..labeling._fake_label_studio import FakeLabelStudio
from ._helpers import override

ANN = "ann@example.com"


def make_model(trainer):
    model = LogisticRegression()
    if trainer.target == "multi-label":
        model = OneVsRestClassifier(model)
    return make_pipeline(TfidfVectorizer(), model)


@pytest.fixture
def server(monkeypatch):
    """Return a server and its URL; the classifier is one of words."""
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", f"legacy-{ANN}")
    monkeypatch.setattr("skactive.project._model.Trainer._make_model", make_model)
    server = FakeLabelStudio(ANN)
    with server.serve() as server.url:
        yield server


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "notes.csv"
    tones = ["good"] * 3 + [""] * 9
    rows = [f"{('fine', 'poor')[i % 2]} thing {i},{x}" for i, x in enumerate(tones)]
    path.write_text("text,tone\n" + "\n".join(rows) + "\n")
    return path


def create(server, table, *options):
    url = "--url", server.url
    return main(
        ["label-studio", "create", str(table), "--text", "text", *url, *options]
    )


def call(server, action, folder, *options):
    place = "--url", server.url, "--project", "1", "--folder", str(folder)
    batch = ["--batch-size", "4"] if action in ("push", "run") else []
    return main(override(["label-studio", action, *place, *batch], options))


def test_create_makes_tasks_and_annotations_of_the_labels(server, table, capsys):
    assert create(server, table, "--label", "tone", "--classes", "good,bad") == 0
    assert f"{server.url}/projects/1: 12 tasks" in capsys.readouterr().out
    (project,) = server.projects.values()
    assert project["title"] == "notes"
    ann = server.person(ANN, 1)
    tasks = ann.ask("GET", "/api/tasks/", project=1, fields="all")["tasks"]
    assert tasks[0]["data"] == {"text": "fine thing 0", "row": 0}
    given = [task["annotations"][0]["result"] for task in tasks[:3]]
    assert [result[0]["value"] for result in given] == [{"choices": ["good"]}] * 3
    assert not any(task["annotations"] for task in tasks[3:])


def test_push_pull_and_the_answers(server, table, tmp_path, capsys):
    create(server, table, "--classes", "good,bad")
    folder, ann = tmp_path / "bridge", server.person(ANN, 1)
    assert call(server, "push", folder) == 0
    assert "4 texts in front" in capsys.readouterr().err
    task = ann.next()
    ann.answer(task["id"], "bad")
    assert call(server, "pull", folder) == 0
    out = capsys.readouterr().out
    assert out == f"{folder / 'answers.csv'}: 1 label, 0 skipped\n"
    with open(folder / "answers.csv", encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    assert row["text"] == task["data"]["text"]
    assert (row["label"], row["annotator"]) == ("bad", ANN)


def test_run_saves_a_model(server, table, tmp_path, capsys):
    create(server, table, "--label", "tone", "--classes", "good,bad")
    server.person(ANN, 1).answer(4, "bad")
    folder = tmp_path / "bridge"
    pytest.importorskip("skops")
    assert call(server, "run", folder, "--n-labels", "4", "--no-fine-tuning") == 0
    assert f"the model is in {folder / 'model'}" in capsys.readouterr().err
    assert main(["predict", str(folder / "model"), str(table)]) == 0
    predicted = table.with_name("notes.predicted.csv").read_text()
    assert predicted.startswith("text,tone,prediction,probability\n")


def test_run_says_why_there_is_no_model(server, table, tmp_path, capsys):
    create(server, table, "--classes", "good,bad")
    server.person(ANN, 1).answer(4, "bad")
    folder = tmp_path / "bridge"
    assert call(server, "run", folder, "--n-labels", "1") == 0
    assert "no model yet: it needs labels of two" in capsys.readouterr().err
    assert not (folder / "model").exists()


def test_run_with_several_classes_per_text(server, table, tmp_path, capsys):
    pytest.importorskip("skops")
    create(server, table, "--classes", "good,bad,odd", "--multi-label")
    ann = server.person(ANN, 1)
    for task, labels in ((1, ["good"]), (2, ["bad", "odd"]), (3, ["odd"])):
        ann.answer(task, *labels)
    folder = tmp_path / "bridge"
    assert call(server, "run", folder, "--n-labels", "3", "--no-fine-tuning") == 0
    assert f"the model is in {folder / 'model'}" in capsys.readouterr().err
    assert main(["predict", str(folder / "model"), str(table)]) == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--token-env", "NO_SUCH"], "argument --token-env: the environment variable"),
        (["--batch-size", "0"], "must be a positive integer, got '0'"),
        (["--left", "-1"], "must be a positive integer, got '-1'"),
        (["--question", "tone"], "argument --question: must be a control <Choices>"),
        (["--strategy", "none"], "'none'"),
        (["--url", "ftp://x"], "argument --url: must be"),
        (["--project", "7"], "was not found"),
    ],
)
def test_errors_are_one_line(server, table, tmp_path, capsys, options, message):
    create(server, table, "--classes", "good,bad")
    assert call(server, "push", tmp_path / "bridge", *options) in (1, 2)
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("skactive: error: ")
    assert message in error
    assert not (tmp_path / "bridge").exists()


def test_the_other_columns_join_the_answers_with_the_table(server, tmp_path):
    table = tmp_path / "notes.csv"
    table.write_text("id,tweet,text,label\n8,,,\n7,@ann fine,odd,x\n6,poor,,y\n")
    options = "--text", "tweet", "--classes", "good,bad", "--url", server.url
    assert main(["label-studio", "create", str(table), *options]) == 0
    data = [task["data"] for task in server.tasks.values()]
    assert data[0] == {
        "text": "@ann fine",
        "row": 1,
        "id": "7",
        "column_text": "odd",
        "label": "x",
    }
    assert not any(server.annotations.values())
    server.person(ANN, 1).answer(1, "good")
    folder = tmp_path / "bridge"
    assert call(server, "pull", folder) == 0
    with open(folder / "answers.csv", encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    assert row["text"] == "'@ann fine"
    found = [row[name] for name in ("row", "task_id", "column_text", "task_label")]
    assert found == ["1", "7", "odd", "x"]


def test_pairs_are_named_when_a_project_is_opened(server, tmp_path, capsys):
    table = tmp_path / "notes.csv"
    table.write_text("a,b\none,two\nthree,four\n")
    options = "--text", "a", "b", "--classes", "good,bad", "--url", server.url
    assert main(["label-studio", "create", str(table), *options]) == 0
    assert call(server, "pull", tmp_path / "bridge") == 0
    assert "2 pairs of text_1 and text_2, 0 labels so far" in capsys.readouterr().err


def test_a_wrong_token_reads_no_tasks(server, table, tmp_path, capsys, monkeypatch):
    create(server, table, "--classes", "good,bad")
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "nobody")
    capsys.readouterr()
    assert call(server, "pull", tmp_path / "bridge") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "token was refused" in line


@pytest.mark.long
def test_pull_and_backend_use_the_strategy_of_the_folder(
    server, table, tmp_path, capsys
):
    create(server, table, "--classes", "good,bad")
    folder = tmp_path / "bridge"
    assert call(server, "push", folder, "--strategy", "entropy") == 0
    assert call(server, "pull", folder) == 0
    assert call(server, "push", folder, "--batch-size", "3") == 0
    assert "warning" not in capsys.readouterr().err
    assert call(server, "push", folder, "--strategy", "margin") == 0
    assert "so far: strategy was entropy, is margin" in capsys.readouterr().err


def test_the_encoder_of_the_folder_is_used(tmp_path):
    named = ProjectSettings("", model="m", prompt="query: ", dimensions=9)
    options = asdict(recall_options(named, tmp_path))
    assert options["strategy"] == "uherding"
    (tmp_path / "options.json").write_text(json.dumps(options))
    again = recall_options(ProjectSettings(""), tmp_path)
    assert (again.prompt, again.dimensions) == ("query: ", 9)
    other = recall_options(ProjectSettings("", prompt=""), tmp_path)
    assert (other.prompt, other.model) == ("", "m")


@pytest.mark.parametrize("action", ["pull", "backend"])
def test_help_has_the_options_that_are_used(action, capsys):
    with pytest.raises(SystemExit):
        main(["label-studio", action, "--help"])
    shown = capsys.readouterr().out
    assert not any(x in shown for x in ("--batch-size", "--left", "--strategy"))


def test_an_error_of_run_comes_after_the_answers_and_the_model(
    server, table, tmp_path, capsys, monkeypatch
):
    pytest.importorskip("skops")
    create(server, table, "--label", "tone", "--classes", "good,bad")
    server.person(ANN, 1).answer(4, "bad")
    folder, step = tmp_path / "bridge", Bridge._step

    def fail_later(bridge, *args):
        step(bridge, *args)
        server.tokens.clear()  # revoked
        return False

    monkeypatch.setattr(Bridge, "_step", fail_later)
    assert call(server, "run", folder, "--no-fine-tuning", "--interval", "0.01") == 1
    shown = capsys.readouterr()
    assert shown.out.endswith(f"{folder / 'answers.csv'}: 4 labels, 0 skipped\n")
    assert "stopped by an error; the answers and the model are written" in shown.err
    assert "token was refused" in shown.err.splitlines()[-1]
    assert (folder / "model").is_dir()
    assert (folder / "answers.csv").read_text("utf-8").count(ANN) == 4


def test_sigterm_ends_a_run_as_ctrl_c_does(
    server, table, tmp_path, capsys, monkeypatch
):
    pytest.importorskip("skops")
    create(server, table, "--label", "tone", "--classes", "good,bad")
    server.person(ANN, 1).answer(4, "bad")
    folder, step = tmp_path / "bridge", Bridge._step

    def terminate(bridge, *args):
        step(bridge, *args)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Bridge, "_step", terminate)
    assert call(server, "run", folder, "--no-fine-tuning") == 0
    assert "stopped\n" in capsys.readouterr().err
    assert (folder / "model").is_dir()
    assert (folder / "answers.csv").read_text("utf-8").count(ANN) == 4


def test_classes_are_needed(server, table, capsys):
    assert create(server, table) == 1
    assert "argument --classes: must name at least two" in capsys.readouterr().err
    assert not server.projects


def test_an_import_that_fails_names_the_incomplete_project(server, table, capsys):
    server.fail("POST /api/projects/1/import", status=400)
    assert create(server, table, "--classes", "good,bad") == 1
    assert "project 1 is incomplete: delete it" in capsys.readouterr().err


def test_help_names_the_actions(capsys):
    with pytest.raises(SystemExit):
        main(["label-studio", "--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("create", "pull", "push", "run", "backend"))
