"""Several people label the table of a project."""

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.project import Project

from .._tables._helpers import read_columns, write_columns

TEXTS = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(40)]


@pytest.fixture
def open_project(tmp_path):
    """Open the project of one table, again and again."""
    opened = []
    labels = ["yes", "no", *[None] * 38]
    write_columns(tmp_path / "t.csv", {"text": TEXTS, "label": labels})

    def open_project(**options):
        for project in opened:
            project.close()
        project = Project(tmp_path / "t.csv", "text", "label", **options)
        model = make_pipeline(TfidfVectorizer(), LogisticRegression())
        opened[:] = [project.open(ActiveLearner(model, "random", random_state=0))]
        return project

    yield open_project
    opened[0].close()


def test_decisions_and_both_notes_are_in_the_table(open_project, tmp_path):
    project = open_project(coders=("ann", "bob"), overlap=1.0)
    desk = project.desk
    assert desk.state("ann")["coders"] == ("ann", "bob")
    ids = [item["id"] for item in desk.next("tab", "ann", 2)]
    for id in ids:
        desk.answer(id, "yes", "tab", "ann")
        desk.answer(id, "no", "tab", "bob")
    desk.note(ids[0], "clear", "ann")
    desk.note(ids[0], "hard", "bob")
    desk.answer(ids[0], "yes", "tab", "ann", way="settled")
    project.write()
    table = read_columns(tmp_path / "t.labeled.csv")
    rows = [table["text"].index(TEXTS[id]) for id in ids]
    assert [table["label"][row] for row in rows] == ["yes", "no"]
    assert [table["annotator"][row] for row in rows] == ["settled by ann", "bob"]
    assert table["note"][rows[0]].splitlines() == ["ann: clear", "bob: hard"]


def test_the_folder_keeps_the_overlap_for_the_next_person(open_project):
    first = open_project(annotator="ann", overlap=0.5)
    ids = [first.desk.next(f"tab {i}", n_queries=1)[0]["id"] for i in range(4)]
    for id in ids:
        first.desk.answer(id, "yes", "tab")
    second = open_project(annotator="bob")
    shared = {*second.session._core.queue.find_shared(ids)}
    assert shared
    assert {x["id"] for x in second.desk.next("tab", n_queries=9)} >= shared
    assert second.session._core.state.overlap == 0.5


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"coders": ("ann",)}, "'coders' must be at least two different names"),
        ({"coders": "ann"}, "'coders' must be at least two different names"),
        ({"coders": ("ann", "ann")}, "'coders' must be at least two different"),
        ({"coders": ("ann", " ")}, "'coders' must be at least two different names"),
        ({"coders": ("ann", 3)}, "'coders' must be at least two different names"),
        ({"coders": ("ann", "b" * 101)}, "'coders' must be at least two different"),
        (
            {"coders": ("ann", "bob"), "annotator": "eve"},
            "'annotator' must be left out",
        ),
        ({"overlap": 1.5}, "'overlap' must be from 0 to 1, got 1.5"),
        ({"overlap": float("nan")}, "'overlap' must be from 0 to 1, got nan"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        Project("t.csv", "text", "label", **options).check()
