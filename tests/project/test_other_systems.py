"""Folders of projects that come from another system."""

import json
import os

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.project import Project

from .._tables._helpers import write_columns

TEXTS = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(8)]
COLUMNS = {"text": TEXTS, "category": [None] * 8, "topic": [None] * 8}


@pytest.fixture
def label(tmp_path, monkeypatch):
    """Answer for a row of a table that may be new; return the closed project."""
    monkeypatch.chdir(tmp_path)

    def label(name, row, column="category"):
        if not (tmp_path / name).exists():
            write_columns(tmp_path / name, COLUMNS)
        model = make_pipeline(TfidfVectorizer(), LogisticRegression())
        project = Project(tmp_path / name, "text", column, classes=["good", "bad"])
        with project.open(ActiveLearner(model)):
            project.session.tell(row, "good" if row % 2 else "bad", unasked=True)
            project.write()
        return project

    return label


NAMES = [
    ("Reviews.csv", "reviews.csv"),
    ("Caf\u00e9.csv", "Cafe\u0301.csv"),
    ("CAFE\u0301.csv", "caf\u00e9.csv"),
]


@pytest.mark.parametrize("is_whole", [True, False], ids=["all", "the table"])
@pytest.mark.parametrize(("before", "after"), NAMES)
def test_a_project_goes_on_under_names_of_another_form(
    label, tmp_path, before, after, is_whole
):
    for row, column in enumerate(("category", "topic")):
        label(before, row, column)
    old, new = before.removesuffix(".csv"), after.removesuffix(".csv")
    for name in os.listdir(tmp_path) if is_whole else [before]:
        (tmp_path / name).rename(tmp_path / name.replace(old, new))
    written = sorted(os.listdir(tmp_path))
    for row, column in enumerate(("category", "topic"), 2):
        project = label(after, row, column)
        assert project.session.labels.keys() == {row - 2, row}
        assert not [x for x in project.messages if "kept as" in x]
    assert sorted(os.listdir(tmp_path)) == written


def test_a_folder_as_windows_leaves_it(label, tmp_path):
    label("t.csv", 0)
    for path in (tmp_path / "t.skactive").rglob("*"):
        if path.suffix in (".json", ".jsonl"):
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    record = tmp_path / "t.skactive" / "project.json"
    content = json.loads(record.read_bytes())
    # What an unpublished version wrote there: its table is kept, not replaced.
    content["labeled"] = {r"..\t.labeled.csv": "0" * 64, r"D:\t.labeled.csv": "1" * 64}
    record.write_text(json.dumps(content, indent=1), newline="\r\n")
    project = label("t.csv", 1)
    assert project.session.labels == {0: "bad", 1: "good"}
    assert [message.partition(",")[0] for message in project.messages] == [
        f"{tmp_path / 't.labeled.csv'} was changed"
    ]
    assert (tmp_path / "t.labeled.1.csv").exists()
    assert label("t.csv", 2).messages == []


def test_tables_whose_names_differ_in_case_are_two_projects(label, tmp_path):
    assert label("a.csv", 0).folder_.name == "a.skactive"
    if (tmp_path / "A.csv").exists():
        pytest.skip("one file on this system")
    assert label("A.csv", 1).folder_.name == "A.skactive"
    assert label("a.csv", 2).session.labels.keys() == {0, 2}
    assert label("A.csv", 3).session.labels.keys() == {1, 3}
    assert (tmp_path / "A.labeled.csv").exists()


def test_a_project_from_its_beginning_to_its_end(like_windows, label, tmp_path):
    for row in range(3):
        project = label("t.csv", row)
    assert project.session.labels.keys() == {0, 1, 2}
    assert sorted(os.listdir(tmp_path)) == ["t.csv", "t.labeled.csv", "t.skactive"]
