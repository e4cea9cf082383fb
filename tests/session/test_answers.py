"""Seconds, flags and notes of answers; undo by annotator."""

import json

import numpy as np
import pandas as pd
import pytest

from ._helpers import events, get_item, undoable


def test_seconds_are_kept_with_each_answer(open_session, tmp_path):
    session = open_session(annotator="ann")
    session.tell(3, "ham", unasked=True, seconds=2)
    session.tell([4, 5], ["ham", "spam"], unasked=True, seconds=np.array([0.5, 1.25]))
    session.tell([4, 6], ["spam", "ham"], unasked=True, annotator="bob", seconds=3.0)
    session.tell(7, "ham", unasked=True)
    seconds = [event.get("seconds") for event in events(session)]
    assert seconds == [[2.0], [0.5, 1.25], [1.5, 1.5], None]
    assert session.history(4)[-1]["seconds"] == 1.5
    session.close()
    session = open_session()
    for what, expected in (
        ("labels", [2.0, 1.5, 1.25, 1.5, None]),
        ("answers", [2.0, 0.5, 1.5, 1.25, 1.5, None]),
    ):
        session.export(tmp_path / "x.jsonl", what=what)
        lines = (tmp_path / "x.jsonl").read_text().splitlines()
        assert [json.loads(line)["seconds"] for line in lines] == expected


@pytest.mark.parametrize(
    ("seconds", "match"),
    [
        (-1, "numbers of at least 0, got -1"),
        (float("inf"), "numbers of at least 0, got inf"),
        (float("nan"), "numbers of at least 0, got nan"),
        (True, "numbers of at least 0, got True"),
        ("2", "numbers of at least 0, got '2'"),
        ([1, None], "numbers of at least 0, got None"),
        ([1, 2, 3], "one for each of the 2 ids, got 3"),
        ([], "one for each of the 2 ids, got 0"),
    ],
)
def test_seconds_that_are_none_are_refused(open_session, seconds, match):
    session = open_session()
    with pytest.raises(ValueError, match=f"'seconds' must be .*{match}"):
        session.tell([3, 4], ["ham", "spam"], unasked=True, seconds=seconds)
    assert session.labels == {}


def test_flags_and_notes_survive_and_are_exported(open_session, tmp_path):
    with open_session(annotator="ann") as session:
        session.tell([3, 4], ["ham", "spam"], unasked=True)
        session.flag([4, 9])
        session.flag(3, annotator="bob")
        session.flag(9, False)
        session.note(3, "two meanings,\nsee 4")
        session.note(4, "=x")
        session.note(5, "later", annotator="bob")
        session.note(4, "")
        session.undo()  # flags and notes are no answers
        session.tell([3, 4], ["ham", "spam"], unasked=True)
    session = open_session()
    assert session.flags == [4, 3]
    assert session.notes == {3: "two meanings,\nsee 4", 5: "later"}
    kinds = [(entry["event"], entry["annotator"]) for entry in session.history(3)]
    assert kinds[1:3] == [("flag", "bob"), ("note", "ann")]
    assert session.history(3)[1]["flag"] is True
    assert session.history(3)[2]["text"] == "two meanings,\nsee 4"
    session.export(tmp_path / "x.csv")
    table = pd.read_csv(tmp_path / "x.csv", keep_default_na=False, dtype=str)
    assert table["note"].tolist() == ["two meanings,\nsee 4", ""]
    assert table["flag"].tolist() == ["True", "True"]


def test_flags_and_notes_follow_their_items(open_session, data):
    X = data[0]
    with open_session() as session:
        session.flag([3, 7])
        session.note(7, "odd")
        session.tell([7, 8], ["ham", "spam"], unasked=True, seconds=[1.0, 2.0])
    session = open_session(np.delete(X, 3, axis=0)[::-1])
    assert session.flags == [52]
    assert session.notes == {52: "odd"}
    assert session.history(51)[-1]["seconds"] == 2.0


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda s: s.flag(99), ValueError, "'ids' must be ids of the pool, got 99"),
        (lambda s: s.flag([]), ValueError, "at least one"),
        (lambda s: s.flag(3, "yes"), TypeError, "'flag' must be True or False"),
        (lambda s: s.note(99, "x"), ValueError, "'id' must be ids of the pool, got 99"),
        (lambda s: s.note(3, None), TypeError, "'text' must be a str, got None"),
        (lambda s: s.note(3, "x", annotator=3), TypeError, "'annotator' must be a str"),
        (lambda s: get_item(s, 99), ValueError, "got 99"),
    ],
)
def test_bad_flags_notes_and_ids_are_refused(open_session, call, error, match):
    session = open_session()
    with pytest.raises(error, match=match):
        call(session)
    assert session._core.state.seq == 1


def test_items_and_copies_are_found_by_id(open_session, learner, data):
    texts = ["a", "b", "a", "c", "a"]
    session = open_session(texts, ids=list("vwxyz"), refit=False)
    assert session.pool_ids == list("vwxyz")
    assert get_item(session, "x") == "a"
    assert session._core.state.pool.copies_of("x") == ["v", "x", "z"]
    assert session._core.state.pool.copies_of("y") == ["y"]
    rows = open_session(np.repeat(data[0][:2], 2, axis=0), folder=session.folder + "2")
    np.testing.assert_array_equal(get_item(rows, np.int64(3)), data[0][1])
    assert rows._core.state.pool.copies_of(3) == [3]  # only texts have copies


def test_the_number_of_the_last_event_and_what_undo_would_undo(open_session):
    session = open_session(annotator="ann")
    assert session._core.state.seq == 1
    assert undoable(session) is None
    session.tell(3, "ham", unasked=True)
    session.skip(4, unasked=True, annotator="bob")
    session.flag(3)
    assert session._core.state.seq == 4
    ann = {"seq": 2, "event": "tell", "ids": [3], "labels": ["ham"]}
    bob = {"seq": 3, "event": "skip", "ids": [4]}
    assert undoable(session) == ann
    assert undoable(session, "bob") == bob
    assert undoable(session, "eve") is None
    session.close()
    session = open_session()
    assert undoable(session) == bob  # of anybody
    assert session.undo() == {"event": "skip", "ids": [4]}
    assert undoable(session) == ann


def test_undo_leaves_the_answers_of_others(open_session):
    session = open_session()
    first = session.ask(2, annotator="ann")
    a, b = first.ids
    session.tell(first.ids, ["ham", "ham"], annotator="ann")
    session.tell(a, "spam", annotator="bob")
    session.skip(9, annotator="bob", unasked=True)
    undone = session.undo(annotator="ann")
    assert undone == {"event": "tell", "ids": [a, b], "labels": ["ham", "ham"]}
    assert session.answers == {a: {"bob": "spam"}}
    assert session.skipped == [9]
    assert session.open_batches[0].ids == (b,)  # the other answer is enough for a
    assert session.ask(annotator="bob").number == 2
    assert session.ask(annotator="ann").ids == (b,)
    with pytest.raises(ValueError, match="nothing to undo: no answer by 'ann' is left"):
        session.undo(annotator="ann")
    session.undo(annotator="bob")
    session.undo(annotator="bob")
    assert session.labels == {}
    assert session.open_batches[0].ids == (a, b)
    found = session.open_batches
    session.close()
    assert open_session().open_batches == found


def test_undo_gives_back_the_earlier_answer_of_the_same_person(open_session):
    session = open_session()
    session.tell([3, 4], ["ham", "ham"], unasked=True, annotator="ann")
    session.tell(3, "spam", annotator="ann")
    session.tell([5, 3], ["eggs", "eggs"], unasked=True, annotator="bob")
    session.undo(annotator="ann")
    assert session.answers[3] == {"ann": "ham", "bob": "eggs"}
    session.undo(annotator="ann")
    assert session.labels == {5: "eggs", 3: "eggs"}
    assert list(session.labels) == [5, 3]  # as if ann had said nothing
