"""Several questions of each text: one table, a folder and a model for each."""

import json
import subprocess
import sys
import time

import pytest

from skactive.cli import main
from skactive.features import _encoding as encoding
from skactive.persistence import load
from skactive.project import Project, Questions

from .._tables._helpers import read_columns, write_columns
from ..bert.conftest import Counter

WORDS = ["law", "art", "war"]
ROWS = range(40)
TEXTS = [f"{'good' if i % 2 else 'bad'} {WORDS[i % 3]} number {i}" for i in ROWS]
ASKED = {"topic": None, "tone": ["good", "bad"], "urgency": "number"}


def truth(name, text):
    if name == "urgency":
        return float(len(text) % 3)
    return text.split()[name == "topic"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    topics = [*map(truth, ["topic"] * 3, TEXTS[:3]), *[None] * 37]
    columns = {"id": [f"0{i}" for i in ROWS], "text": TEXTS, "topic": topics}
    write_columns(tmp_path / "t.csv", columns | {"note": ["=1+1"] * 40})
    return tmp_path / "t.csv"


@pytest.fixture
def open_questions(table, tiny_bert):
    opened = []

    def open_questions(asked=ASKED, **options):
        options = {"model": tiny_bert, "max_length": 16, "adapt": False} | options
        opened.append(Questions(table, "text", asked, **options).open())
        return opened[-1]

    yield open_questions
    for questions in opened:
        questions.close()


def label(questions, n):
    for _ in range(n):
        for shown in questions.desk.next("tab", n_queries=1):
            for name, item in shown["questions"].items():
                if item["open"]:
                    desk = questions.desk.desks[name]
                    desk.answer(shown["id"], truth(name, item["text"]), "tab")


def test_one_table_has_the_labels_of_all(open_questions, table):
    before = table.read_bytes()
    with open_questions(annotator="ann", n_labels=20) as questions:
        label(questions, 20)
        id = next(iter(questions.desk.session.labels))
        questions.desk.desks["tone"].note(id, "how odd")
        questions.finish()
    out = read_columns(table.with_name("t.labeled.csv"))
    assert [out[name] for name in ("id", "text", "note")] == [
        read_columns(table)[name] for name in ("id", "text", "note")
    ]
    assert list(out)[:6] == ["id", "text", "topic", "note", "tone", "urgency"]
    for name in ASKED:
        people = [i for i in ROWS if out[f"{name}_source"][i] == "person"]
        assert len(people) == 20 - (name == "topic") * (20 - len(people))
        for i in people:
            given = out[name][i]
            wanted = truth(name, TEXTS[i])
            assert (float(given) if name == "urgency" else given) == wanted
            assert out[f"{name}_annotator"][i] == "ann"
        assert all(out[f"{name}_prediction"])
        assert out[f"{name}_source"].count("model") > 10
    assert out["topic_source"][:3] == ["given"] * 3
    assert out["tone_note"][id] == "how odd"
    assert not any(out["topic_note"])
    assert table.read_bytes() == before
    folders = sorted(x.name for x in table.parent.glob("*.skactive"))
    assert folders == ["t.skactive", "t.tone.skactive", "t.urgency.skactive"]
    for name, folder in zip(ASKED, ("t", "t.tone", "t.urgency"), strict=True):
        model = load(table.with_name(f"{folder}.skactive") / "model")
        assert len(model.predict(TEXTS[:2])) == 2
        about = table.with_name(f"{folder}.skactive") / "model.json"
        assert json.loads(about.read_bytes())["label"] == name
    assert questions.sources["tone"] == {"given": 0, "person": 20, "model": 20}
    shown = questions.progress()
    assert shown["done"]
    assert shown["error"] is None
    assert {*shown["questions"]} == {*ASKED}


def test_the_features_are_computed_once(table, tiny_bert, monkeypatch):
    counter = Counter(encoding.encode)
    monkeypatch.setattr(encoding, "encode", counter)
    options = {"model": tiny_bert, "max_length": 16, "adapt": False}
    with Questions(table, "text", ASKED, **options) as questions:
        sessions = [project.session for project in questions.projects.values()]
        while min(session.encoded for session in sessions) < 1:
            time.sleep(0.01)
    # A model that needs some of them at once may come before the thread.
    assert len(TEXTS) <= counter.take() < 1.5 * len(TEXTS)
    folders = [table.with_name(f"t{x}.skactive") for x in ("", ".tone", ".urgency")]
    assert [(x / "features").exists() for x in folders] == [True, False, False]


@pytest.mark.slow
def test_a_second_end_leaves_all_as_it_is(open_questions, table):
    with open_questions() as questions:
        label(questions, 12)
        questions.finish()
    out = table.with_name("t.labeled.csv")
    was = out.stat().st_mtime_ns, out.read_bytes()
    with open_questions() as questions:
        assert questions.finish() == dict.fromkeys(ASKED)
    assert (out.stat().st_mtime_ns, out.read_bytes()) == was
    with open_questions() as questions:
        label(questions, 1)
        assert all(questions.finish().values())
    again = read_columns(out)
    assert all(all(again[f"{name}_prediction"]) for name in ASKED)


def test_a_question_continues_alone(open_questions, table, tiny_bert):
    with open_questions() as questions:
        label(questions, 8)
    tone = Project(table, "text", "tone", model=tiny_bert, max_length=16)
    with tone.open() as project:
        assert len(project.session.labels) == 8
        project.session.tell(39, "bad", unasked=True)
    with open_questions() as questions:
        assert len(questions.projects["tone"].session.labels) == 9
        assert len(questions.projects["topic"].session.labels) <= 8


def test_a_named_folder_holds_one_for_each(open_questions, table, tmp_path):
    with open_questions(folder=tmp_path / "mine") as questions:
        label(questions, 4)
        questions.write()
    assert {x.name for x in (tmp_path / "mine").iterdir()} == {*ASKED}
    names = [x.name for x in tmp_path.glob("*labeled*")]
    assert len(names) == 1


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"tone": None}, "name the classes of 'tone'"),
        ({"tone": "numbers"}, "None or 'number' for 'tone', got 'numbers'"),
        ({}, "must be a dict of columns"),
    ],
)
def test_questions_without_classes_are_refused(open_questions, table, asked, message):
    with pytest.raises(ValueError, match=message):
        open_questions(asked)
    assert not [*table.parent.glob("*.skactive")]


@pytest.mark.slow
def test_a_question_that_depends_has_labels_of_its_texts_only(open_questions, table):
    asked = {"topic": WORDS, "tone": ["good", "bad"]}
    with open_questions(asked, only_if={"tone": ("topic", "law")}) as questions:
        label(questions, 30)
        questions.finish()
    out = read_columns(table.with_name("t.labeled.csv"))
    for i in ROWS:
        is_law = out["topic"][i] == "law"
        assert bool(out["tone"][i]) == bool(out["tone_prediction"][i]) == is_law
    people = out["tone_source"].count("person")
    assert people > 5
    assert questions.sources["tone"]["person"] == people
    assert sum(questions.sources["tone"].values()) == out["topic"].count("law")
    card = table.with_name("t.tone.card.md").read_text("utf-8")
    assert "PPI++" not in card
    assert "| Asked about | texts with the label law of topic; the shares are" in card
    with pytest.raises(ValueError, match="the label 'law' of 'topic' only"):
        Project(table, "text", "tone").open()


@pytest.mark.parametrize(
    ("only_if", "message"),
    [
        ({"tone": ("urgency", 1)}, "must name a question and one before it"),
        ({"topic": ("topic", "law")}, "must name a question and one before it"),
        ({"mood": ("topic", "law")}, "must name a question and one before it"),
        ({"tone": ("topic", "tax")}, "a class of 'topic' for 'tone', one of .*'tax'"),
    ],
)
def test_conditions_that_no_text_can_meet_are_refused(open_questions, only_if, message):
    with pytest.raises(ValueError, match=message):
        open_questions(only_if=only_if)


@pytest.mark.slow
def test_commands_read_the_labels_of_one_question(open_questions, table, capsys):
    with open_questions() as questions:
        label(questions, 12)
        questions.finish()
    out = str(table.with_name("t.labeled.csv"))
    common = ["estimate", out, "--text", "text", "--label"]
    assert main([*common, "tone"]) == 1  # chosen labels are no sample
    assert "were given in a session" in capsys.readouterr().err
    assert main([*common, "tone_prediction"]) == 1
    assert "'tone_probability' is next to it" in capsys.readouterr().err
    assert (
        main(
            [
                "estimate",
                str(table),
                "--text",
                "text",
                "--label",
                "tone",
                "--model",
                str(questions.projects["tone"].model),
            ]
        )
        == 0
    )
    assert "good" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("encodes", [False, True])
def test_python_may_exit_at_once_after_a_close(table, tiny_bert, encodes):
    script = f"""if True:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.pipeline import make_pipeline
        from skactive import ActiveLearner
        from skactive.project import Questions

        model = make_pipeline(CountVectorizer(), MultinomialNB())
        learner = ActiveLearner(model, "margin", random_state=0)
        asked = dict(topic={WORDS!r}, tone=["good", "bad"])
        options = dict(model={str(tiny_bert)!r}, max_length=64, adapt=False)
        questions = Questions({str(table)!r}, "text", asked, **options)
        questions.open(None if {encodes} else learner)
        questions.close()
    """
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
