"""The commands `label-studio`, against a Label Studio in memory."""

import csv

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive.cli import main

from ..labeling._fake_label_studio import FakeLabelStudio

ANN = "ann@example.com"


def make_model(args, folder, target):
    model = LogisticRegression()
    if target == "multi-label":
        model = OneVsRestClassifier(model)
    return make_pipeline(TfidfVectorizer(), model)


@pytest.fixture
def server(monkeypatch):
    """Return a server and its URL; the classifier is one of words."""
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", f"legacy-{ANN}")
    monkeypatch.setattr("skactive.cli._label_studio.make_model", make_model)
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
    place = "--url", server.url, "--project", "1", "--session", str(folder)
    return main(["label-studio", action, *place, "--batch", "4", *options])


def test_create_makes_tasks_and_annotations_of_the_labels(server, table, capsys):
    assert create(server, table, "--label", "tone", "--classes", "good,bad") == 0
    assert f"{server.url}/projects/1: 12 tasks" in capsys.readouterr().out
    (project,) = server.projects.values()
    assert project["title"] == "notes"
    ann = server.person(ANN, 1)
    tasks = ann.ask("GET", "/api/tasks/", project=1, fields="all")["tasks"]
    assert tasks[0]["data"] == {"text": "fine thing 0"}
    given = [task["annotations"][0]["result"] for task in tasks[:3]]
    assert [result[0]["value"] for result in given] == [{"choices": ["good"]}] * 3
    assert not any(task["annotations"] for task in tasks[3:])


def test_push_pull_and_the_answers(server, table, tmp_path, capsys):
    create(server, table, "--classes", "good,bad")
    folder, ann = tmp_path / "bridge", server.person(ANN, 1)
    assert call(server, "push", folder) == 0
    assert "4 texts are asked first" in capsys.readouterr().err
    task = ann.next()
    ann.answer(task["id"], "bad")
    assert call(server, "pull", folder) == 0
    out = capsys.readouterr().out
    assert out == f"{folder / 'answers.csv'}: 1 labels, 0 skipped\n"
    with open(folder / "answers.csv", encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    assert row["text"] == task["data"]["text"]
    assert (row["label"], row["annotator"]) == ("bad", ANN)


def test_run_saves_a_model(server, table, tmp_path, capsys):
    create(server, table, "--label", "tone", "--classes", "good,bad")
    server.person(ANN, 1).answer(4, "bad")
    folder = tmp_path / "bridge"
    pytest.importorskip("skops")
    assert call(server, "run", folder, "--n", "4", "--no-fine-tuning") == 0
    assert f"the model is in {folder / 'model'}" in capsys.readouterr().err
    assert main(["predict", str(folder / "model"), str(table)]) == 0
    predicted = table.with_name("notes.predicted.csv").read_text()
    assert predicted.startswith("text,tone,prediction,probability\n")


def test_run_with_several_classes_per_text(server, table, tmp_path, capsys):
    pytest.importorskip("skops")
    create(server, table, "--classes", "good,bad,odd", "--multiple")
    ann = server.person(ANN, 1)
    for task, labels in ((1, ["good"]), (2, ["bad", "odd"]), (3, ["odd"])):
        ann.answer(task, *labels)
    folder = tmp_path / "bridge"
    assert call(server, "run", folder, "--n", "3", "--no-fine-tuning") == 0
    assert f"the model is in {folder / 'model'}" in capsys.readouterr().err
    assert main(["predict", str(folder / "model"), str(table)]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--token-env", "NO_SUCH"], "argument --token-env: the environment variable"),
        (["--batch", "0"], "must be a positive integer, got '0'"),
        (["--left", "-1"], "must be a positive integer, got '-1'"),
        (["--question", "tone"], "'question' must be a control <Choices>"),
        (["--url", "ftp://x"], "'url' must be"),
        (["--project", "7"], "was not found"),
    ],
)
def test_errors_are_one_line(server, table, tmp_path, capsys, options, message):
    create(server, table, "--classes", "good,bad")
    assert call(server, "pull", tmp_path / "bridge", *options) in (1, 2)
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("skactive: error: ")
    assert message in error


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
