"""The codebook of a project: where it begins, and what is written."""

import json

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, Project
from skactive._tables._codebook import read_classes
from skactive.project._record import DESCRIPTIONS, write_record

from .._tables._helpers import write_columns

TEXTS = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(12)]
ABOUT = {"like: much": {"description": "of joy", "examples": ["joy"]}, "dislike": None}


@pytest.fixture
def open_project(tmp_path):
    opened = []

    def open_project(labels=(), name="t.csv", **options):
        for project in opened:
            project.close()
        if not (tmp_path / name).exists():
            cells = [*labels, *[None] * (len(TEXTS) - len(labels))]
            write_columns(tmp_path / name, {"text": TEXTS, "tone": cells})
        project = Project(tmp_path / name, "text", "tone", **options)
        model = make_pipeline(TfidfVectorizer(), LogisticRegression())
        project.open(ActiveLearner(model, "random", random_state=0))
        opened.append(project)
        return project

    yield open_project
    for project in opened:
        project.close()


def words(project):
    return [
        (name, about["description"], about["examples"] + about["taken"])
        for name, about in project.session.codebook.items()
    ]


def test_a_codebook_is_written_and_begins_another_project(open_project, tmp_path):
    project = open_project(classes=ABOUT)
    desk = project.desk
    desk.edit_class("dislike", new="no fun", description="two\nlines", place=0)
    desk.answer(1, "like: much", "tab", example=TEXTS[1])
    before = words(project)
    assert before == [
        ("no fun", "two\nlines", []),
        ("like: much", "of joy", ["joy", TEXTS[1]]),
    ]
    path = project.write_codebook()
    assert path == tmp_path / "t.codebook.md"
    page = path.read_text(encoding="utf-8")
    assert page.startswith("# Codebook of t.csv\n\n## no fun\n\ntwo\nlines\n\n## like:")
    assert f"> {TEXTS[1]}\n" in page
    classes = read_classes(tmp_path / "t.codebook.json")
    codebook = project.session.codebook
    again = open_project(name="u.csv", classes=classes)
    assert again.session.codebook == codebook  # what was taken is for people there, too
    assert words(again) == before


def test_finish_writes_a_codebook_that_has_words(open_project, tmp_path):
    project = open_project(["good", "bad"])
    project.finish()
    assert list(tmp_path.glob("*codebook*")) == []
    assert project.finish() is None
    project.desk.edit_class("good", description="of joy")
    assert project.finish() is not None  # there is something new
    assert project.progress()["codebook"].endswith("t.codebook.md")
    project.desk.edit_class("good", description="of fun")
    project.finish()
    assert len(list(tmp_path.glob("*codebook*"))) == 2  # ours is replaced
    (tmp_path / "t.codebook.md").write_text("mine", encoding="utf-8")
    project.write_codebook()
    assert "of fun" in (tmp_path / "t.codebook.md").read_text(encoding="utf-8")
    assert (tmp_path / "t.codebook.1.md").read_text(encoding="utf-8") == "mine"


def test_words_for_the_classes_of_a_table_reach_its_model(open_project):
    project = open_project(["good", "bad"])
    project.desk.answer(5, "good", "tab")
    project.session.refit()
    assert not hasattr(project.session.newest_model.learner.estimator, "descriptions")
    project.desk.edit_class("good", description="of joy")
    project.session.refit()
    texts = project.session.newest_model.learner.estimator.descriptions
    assert texts == {"good": ["of joy"], "bad": []}


def test_words_of_a_project_before_there_were_codebooks(open_project):
    project = open_project(classes=["like", "dislike"])
    project.desk.edit_class("like", new="love")
    write_record(project.folder_, {DESCRIPTIONS: {"like": {"description": "of joy"}}})
    project = open_project()
    assert words(project)[0] == ("love", "of joy", [])
    project.desk.edit_class("love", description="of fun")
    assert words(open_project())[0] == ("love", "of fun", [])
    journal = (project.folder_ / "session" / "journal.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["event"] for line in journal]
    assert kinds.count("codebook") == 1
