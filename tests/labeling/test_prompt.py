"""The plain prompt, with the lines that a person types."""

from datetime import timedelta

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.labeling import run_prompt
from skactive.labeling._prompt import (
    _Prompt,
    as_number,
    describe_item,
    show_label,
)
from skactive.project import Project
from skactive.session import Desk, _queue

from .._tables._helpers import read_columns, write_columns

CLASSES = ["joy", "deep love", "anger"]


def _type(desk, *lines):
    """Return what the prompt writes while a person types lines."""
    shown, rest = [], list(lines)

    def read(prompt):
        if not rest:
            raise EOFError
        if isinstance(rest[0], Exception):
            raise rest.pop(0)
        return rest.pop(0)

    _Prompt(desk, "prompt", read, shown.append).run()
    return shown


def test_several_classes(open_desk):
    session = {"classes": CLASSES, "multi_label": True, "refit": False}
    desk = open_desk(session=session)
    lines = ["1 3", "anger,deep love", "deep love", "-", "1, ang", "2 2", "x 1", "e,1"]
    shown = _type(desk, *lines)
    assert "or - if no class applies" in shown[0]
    assert list(desk.session.labels.values()) == [
        ["joy", "anger"],
        *(["deep love", "anger"], ["deep love"], [], ["joy", "anger"], ["deep love"]),
    ]
    assert shown[-2:] == [
        "No class fits 'x'. ? lists the classes. + NAME adds one.",
        "Several classes fit 'e': deep love, anger",
    ]


@pytest.mark.parametrize(
    "gone", [RuntimeError("lost sys.stdin"), OSError(9, "Bad"), ValueError("closed")]
)
def test_an_input_that_is_gone_ends_the_prompt(open_desk, gone):
    desk = open_desk()
    shown = _type(desk, "1", gone, "2")
    assert not any("NOT STORED" in line for line in shown)
    assert len(desk.session.labels) == 1


def test_a_line_that_cannot_be_decoded_is_typed_again(open_desk):
    desk = open_desk()
    bad = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    shown = _type(desk, bad, "2")
    assert any("NOT STORED: 'utf-8' codec" in line for line in shown)
    assert len(desk.session.labels) == 1


def test_a_name_that_begins_with_what_is_typed_comes_first(open_desk):
    desk = open_desk(session={"classes": ["not ironic", "ironic", "iced"]})
    shown = _type(desk, "iron", "i", "onic")
    assert list(desk.session.labels.values()) == ["ironic"]
    assert shown[-1] == "Several classes fit: not ironic, ironic"
    assert "Several classes fit: ironic, iced, not ironic" in shown


@pytest.mark.parametrize("leads", [False, True])
def test_enter_accepts_the_better_source_and_a_star_the_other(open_desk, leads):
    item = {"prediction": "yes", "suggestion": "no", "id": 3, "way": None}
    desk = open_desk(suggestions={0: "no"})
    state, shown = desk.state(), []
    desk.state = lambda annotator=None: (
        state | {"suggestions": state["suggestions"] | {"leads": leads}}
    )
    prompt = _Prompt(desk, "prompt", input, shown.append)
    for line, other in (("", leads), ("*", not leads)):
        prompt._item = item
        prompt._answer(line)
        assert desk.session.labels[3] == ("no" if other else "yes")
    prompt._item = item | {"prediction": None}
    prompt._answer("*")
    assert shown == ["No class fits. ? lists the classes."]


def test_an_answer_to_a_text_that_came_again_is_kept_as_such(open_desk, monkeypatch):
    monkeypatch.setattr(_queue, "_REPEAT_AFTER", timedelta(hours=-1))
    desk = open_desk(session={"repeat": 1.0})
    prompt = _Prompt(desk, "prompt", input, print)
    (item,) = desk.next("prompt", n_queries=1)
    while item["way"] is None:
        desk.answer(item["id"], "yes", "prompt")
        (item,) = desk.next("prompt", n_queries=1)
    prompt._item = item
    prompt._answer("no")
    assert desk.session.labels[item["id"]] == "yes"
    assert "came again: 0 %" in desk.quality()["repeats"]


def test_the_prompt_lists_the_commands_of_the_desk(open_desk):
    desk = open_desk()
    lines = _type(desk)[0].splitlines()
    commands = desk.state()["commands"]
    typed = {key for _, _, key, _ in commands.values()} - {"", "number"}
    assert typed <= {line[:11].strip() for line in lines}
    assert "s            skip" in lines


def test_the_classes_are_shown_at_the_first_prompt(open_desk):
    names = [f"class {i}" for i in range(40)]
    shown = _type(open_desk(session={"classes": names}))
    lines = shown[1].splitlines()
    assert lines[0] == "1  class 0  (0)"
    assert lines[-1] == "and 10 more, which ? lists"
    assert len(lines) == 31


def test_a_session_without_classes_says_how_to_add_them(open_desk):
    desk = open_desk(session={"classes": None})
    shown = _type(desk, "good", "+ good", "good", "1", "+ bad", "bad")
    assert shown[1] == "+ NAME adds a class"
    assert "No class fits. ? lists the classes. + NAME adds one." in shown
    assert "1  good  (0)\n+ NAME adds a class" in shown
    assert "1  good  (2)\n2  bad  (0)" in shown
    assert list(desk.session.labels.values()) == ["good", "good", "bad"]


def test_numbers(open_desk):
    model = make_pipeline(TfidfVectorizer(), Ridge())
    learner = ActiveLearner(model, strategy="random", random_state=0)
    desk = open_desk(learner=learner, session={"classes": None, "refit": False})
    shown = _type(desk, "2.5", "many", "-1", "")
    assert list(desk.session.labels.values()) == [2.5, -1.0]
    assert shown.count("Type a number.") == 1
    assert shown[0].endswith("Type a number to answer.")


@pytest.mark.parametrize(
    ("typed", "number"), [("1e3", 1000.0), ("-.5", -0.5), ("inf", None), ("x", None)]
)
def test_as_number(typed, number):
    assert as_number(typed) == number


def test_labels_in_words():
    labels = [["a", "b"], [], 1.23456789, 3, "x"]
    assert [show_label(x) for x in labels] == ["a + b", "no class", "1.23457", "3", "x"]


def test_a_class_that_is_a_digit_has_its_own_key(open_desk):
    desk = open_desk(session={"classes": ["5", "1", "other", "0"], "refit": False})
    _type(desk, "1", "5", "0", "2")
    assert list(desk.session.labels.values()) == ["1", "5", "0", "other"]


def test_the_end_of_the_input_ends_every_prompt(open_desk):
    desk = open_desk(session={"classes": CLASSES, "refit": False})
    assert _type(desk, "1", "=")[-1].startswith("  1 ")
    assert len(desk.session.labels) == 1


def test_texts_and_classes_hold_no_codes_for_a_terminal(open_desk):
    text = "\x1b]0;pwned\x07 a\nb\tc \u202e\u0646\u200c\u0627"
    desk = open_desk([text] * 3, session={"classes": ["\x1b[2Jx", "y"]})
    shown = "\n".join(_type(desk, "?", "x", "="))
    assert "\ufffd]0;pwned\ufffd a\nb c \ufffd\u0646\u200c\u0627" in shown
    assert "\ufffd[2Jx" in shown
    assert "\x1b" not in shown


def test_columns_are_shown_and_only_the_text_that_is_asked_is_said_to_be_random():
    item = {"label": None, "prediction": None, "suggestion": None, "blind": True}
    item |= {"flag": False, "note": None, "text": "a", "columns": {"day": "Monday"}}
    shown = []
    _Prompt(None, "prompt", input, shown.append)._show(item)
    assert shown == ["a", "day: Monday", "drawn at random: you answer without help"]
    assert describe_item(item) == "a"


def test_a_model_that_fails_does_not_cost_the_table(tmp_path, monkeypatch):
    texts = [f"{'good' if i % 2 else 'bad'} film {i}" for i in range(12)]
    table = tmp_path / "t.csv"
    write_columns(table, {"text": texts, "label": ["yes", "no"] * 2 + [None] * 8})

    def fail(*_, **__):
        raise TypeError("no such luck")

    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    project = Project(table, "text", "label", fine_tuning=False).open(learner)
    monkeypatch.setattr(Desk, "next", fail)
    with pytest.raises(TypeError, match="no such luck"):
        run_prompt(project)
    assert read_columns(project.output)["label"][:4] == ["yes", "no"] * 2
