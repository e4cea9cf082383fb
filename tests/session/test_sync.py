"""Answers of another program: after each look, the session holds exactly those."""

import random

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession
from skactive.session import SourceAnswer

TEXTS = [f"text {i}" for i in range(6)]
PEOPLE = ("ann", "bob", "cy")


@pytest.fixture
def session(tmp_path):
    learner = ActiveLearner(LogisticRegression(), random_state=0)
    options = {"refit": False, "classes": [*"xyz"]}
    with LabelingSession(learner, TEXTS, tmp_path / "session", **options) as session:
        yield session


def at(time, label, by="ann", seconds=None):
    return SourceAnswer(label, by, f"2026-01-01T00:{time:02d}Z", seconds)


def look(session, server, notes=None):
    """Pass the answers of a server, a dict of id; return whether anything was new."""
    answers = {id: server.get(id, ()) for id in session.pool_ids}
    return session.sync(answers, "server", notes=notes)


def given(session):
    return {id: dict(answers) for id, answers in session.answers.items()}


def test_labels_times_and_people_arrive(session):
    look(session, {0: [at(1, "x", "ann", 2.5), at(2, "y", "bob")], 1: [at(3, "z")]})
    assert given(session) == {0: {"ann": "x", "bob": "y"}, 1: {"ann": "z"}}
    assert [e["seconds"] for e in session.history(0) if e["annotator"] == "ann"] == [
        2.5
    ]


def test_only_what_every_session_of_the_pool_keeps_blind_is_blind(session):
    # Another program may show predictions of another folder, which does not know what
    # this one drew behind the reserved items.
    reserved = np.arange(6) == 2
    session._core.queue.draws.__dict__["reserved"] = reserved
    session._core.state.audited[4] = None
    assert session.is_blind(4)
    look(session, {id: [at(id, "x")] for id in (0, 2, 4)})
    shown = {id: session._core.state.answers[id].given[0].shown for id in (0, 2, 4)}
    assert shown == {0: None, 2: "none", 4: None}


def test_a_second_look_records_nothing(session):
    server = {0: [at(1, "x", "ann", 2.5)], 1: [at(2, None)]}, {2: "why"}
    assert look(session, *server)
    before = session._core.state.seq
    assert not look(session, *server)
    assert session._core.state.seq == before


def test_a_changed_label_or_time_is_recorded_again(session):
    look(session, {0: [at(1, "x", seconds=2.0)]})
    assert look(session, {0: [at(2, "y", seconds=2.0)]}).changed
    assert look(session, {0: [at(3, "y", seconds=5.0)]}).changed
    assert given(session) == {0: {"ann": "y"}}
    assert session._core.state.answers[0].seconds == 5.0


def test_a_label_that_is_gone_is_withdrawn(session):
    look(session, {0: [at(1, "x")], 1: [at(2, "y")]})
    look(session, {1: [at(2, "y")]})
    assert given(session) == {1: {"ann": "y"}}
    assert [event["event"] for event in session.history(0)] == ["tell", "withdraw"]


def test_a_skip_counts_without_labels_only(session):
    look(session, {0: [at(1, None, "ann")]})
    assert session.skipped == [0]
    look(session, {0: [at(1, None, "ann"), at(2, "x", "bob")]})
    assert (session.skipped, given(session)) == ([], {0: {"bob": "x"}})
    look(session, {0: [at(1, None, "ann")]})
    assert (session.skipped, given(session)) == ([0], {})
    look(session, {})
    assert session.skipped == []


def test_answers_from_elsewhere_stay(session):
    session.tell({0: "x"}, unasked=True, annotator="local")
    session.skip([1], unasked=True)
    session.note(2, "mine")
    look(session, {0: [at(1, "y")], 2: [at(2, None)]})
    look(session, {})
    assert given(session) == {0: {"local": "x"}}
    assert session.skipped == [1]
    assert session.notes == {2: "mine"}


def test_notes_come_and_go(session):
    look(session, {0: [at(1, "x")]}, {0: "doubtful"})
    assert session.notes == {0: "doubtful"}
    look(session, {0: [at(1, "x")]})
    assert session.notes == {}


def test_a_label_that_is_not_allowed_is_returned_and_the_others_arrive(session):
    difference = look(session, {0: [at(1, "new")], 1: [at(2, "x")]})
    ((id, answer, error),) = difference.refused
    assert (id, answer.label) == (0, "new")
    assert "classes of the session" in str(error)
    assert given(session) == {1: {"ann": "x"}}
    session.add_class("new")
    look(session, {0: [at(1, "new")], 1: [at(2, "x")]})
    assert given(session) == {0: {"ann": "new"}, 1: {"ann": "x"}}


def test_names_that_were_renamed_here_are_understood(session):
    session.rename_class("x", "w")
    look(session, {0: [at(1, "x")]})
    assert given(session) == {0: {"ann": "w"}}
    assert not look(session, {0: [at(1, "x")]})


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_after_each_look_the_session_holds_what_the_server_holds(session, seed):
    rng, server = random.Random(seed), {}
    for time in range(30):
        for _ in range(rng.randint(1, 3)):
            id, by = rng.choice(session.pool_ids), rng.choice(PEOPLE)
            kind = rng.choice([None, *"xyz", "gone", "gone"])
            rest = [a for a in server.get(id, []) if a.annotator != by]
            new = [] if kind == "gone" else [at(time, kind, by, rng.choice([None, 1]))]
            server[id] = rest + new
        look(session, server)
        labels = {
            id: {a.annotator: a.label for a in answers if a.label is not None}
            for id, answers in server.items()
        }
        assert given(session) == {id: told for id, told in labels.items() if told}
        skips = {id for id, answers in server.items() if answers and not labels.get(id)}
        assert {*session.skipped} == skips
        assert not look(session, server)


def test_withdraw_by_hand(session):
    session.tell({0: "x", 1: "y"}, unasked=True, annotator="ann")
    session.tell({0: "y"}, unasked=True, annotator="bob")
    session.withdraw([0, 1], annotator="ann")
    assert given(session) == {0: {"bob": "y"}}
    assert session.undo(annotator="ann")["event"] == "withdraw"
    assert given(session) == {0: {"bob": "y", "ann": "x"}, 1: {"ann": "y"}}


def test_withdrawn_items_are_asked_again(session):
    session.tell(dict.fromkeys(session.pool_ids, "x"), unasked=True)
    assert not session.ask()
    session.withdraw(3)
    assert session.ask().ids == (3,)


@pytest.mark.parametrize("ids", [0, [1, 0], 9])
def test_only_what_was_answered_can_be_withdrawn(session, ids):
    session.tell({1: "x"}, unasked=True, annotator="ann")
    before = session._core.state.seq
    with pytest.raises(ValueError, match="'ids' must be "):
        session.withdraw(ids, annotator="ann")
    assert session._core.state.seq == before


def test_the_last_answer_of_a_person_counts_and_a_label_more_than_a_skip(session):
    look(session, {0: [at(2, "y"), at(1, "x"), at(3, None)]})
    assert given(session) == {0: {"ann": "y"}}


def test_other_items_stay_as_they_are(session):
    look(session, {0: [at(1, "x")], 1: [at(1, "y")]})
    assert session.sync({1: []}, "server").withdrawn == [(1, "ann")]
    assert not session.sync({}, "server")
    assert given(session) == {0: {"ann": "x"}}


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (({9: []}, "server"), ValueError, "'answers' must be ids of the pool, got 9"),
        (([at(1, "x")], "server"), TypeError, "'answers' must be a dict by id"),
        (({}, ""), TypeError, "'source' must be the name of a program, got ''"),
        (({0: ["x"]}, "server"), TypeError, "must hold a list of SourceAnswer for 0"),
        (({0: 7}, "server"), TypeError, "must hold a list of SourceAnswer for 0"),
        (({}, "server", {0: "a"}), ValueError, "'notes' must hold a str for items of"),
        (({0: []}, "server", {0: 7}), ValueError, "'notes' must hold a str for items"),
        (({}, "server", [1]), TypeError, "'notes' must be a dict by id"),
    ],
)
def test_wrong_arguments_are_refused(session, call, error, match):
    answers, source, notes = (*call, None)[:3]
    with pytest.raises(error, match=match):
        session.sync(answers, source, notes=notes)
