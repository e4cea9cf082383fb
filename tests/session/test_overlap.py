"""Which of several answers counts, and items that two people are asked."""

import warnings

import numpy as np
import pytest

from skactive.session import read_labels

from ._helpers import events

ANSWERS = [("ann", "ham"), ("bob", "spam"), ("eve", "ham"), ("ann", "spam")]


def tell_all(session):
    """Answer item 3 by three people; return the label after each answer."""
    found = []
    for annotator, label in ANSWERS:
        session.tell(3, label, annotator=annotator, unasked=True)
        found.append(session.labels[3])
    return found


@pytest.mark.parametrize(
    ("settle", "expected"),
    [
        ("majority", ["ham", "spam", "ham", "spam"]),
        ("latest", ["ham", "spam", "ham", "spam"]),
        ("bob", ["ham", "spam", "spam", "spam"]),
        ("eve", ["ham", "spam", "ham", "ham"]),
        ("nobody", ["ham", "spam", "ham", "spam"]),
    ],
)
def test_one_of_several_answers_counts(open_session, settle, expected, tmp_path):
    with open_session(settle=settle) as session:
        assert tell_all(session) == expected
        assert read_labels(tmp_path / "s")[3] == expected[-1]
        session.export(tmp_path / "x.csv")
        assert f",{expected[-1]}," in (tmp_path / "x.csv").read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_session(settle=settle).labels[3] == expected[-1]


def test_the_last_answer_counts_against_a_majority(open_session):
    session = open_session(settle="latest")
    for annotator, label in (("ann", "ham"), ("bob", "ham"), ("eve", "spam")):
        session.tell(3, label, annotator=annotator, unasked=True)
    assert session.labels == {3: "spam"}
    session.undo(annotator="eve")
    assert session.labels == {3: "ham"}


def test_another_rule_is_noted_and_the_model_follows(open_session, tmp_path):
    with open_session() as session:
        session.tell([3, 4], ["ham", "spam"], unasked=True, annotator="ann")
        session.tell(3, "spam", annotator="bob")
        session.tell(3, "spam", annotator="eve")
        assert set(session.learner.y_labeled_) == {"spam"}
    match = "overlap was 0.0, is 0.5; settle was majority, is ann"
    with pytest.warns(UserWarning, match=match) as caught:
        session = open_session(settle="ann", overlap=0.5)
    assert caught[0].filename.endswith("conftest.py")  # where it was opened
    assert events(session)[-1]["settle"] == "ann"
    assert session.labels == {3: "ham", 4: "spam"}
    assert set(session.learner.y_labeled_) == {"ham", "spam"}
    session.close()
    assert read_labels(tmp_path / "s") == {3: "ham", 4: "spam"}
    with pytest.warns(UserWarning, match="settle was ann, is majority"):
        assert open_session().labels == {3: "spam", 4: "spam"}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"settle": ""}, "'settle' must be 'latest', 'majority' or the name"),
        ({"settle": None}, "'settle' must be .* got None"),
        ({"overlap": -0.1}, "'overlap' must be from 0 to 1, got -0.1"),
        ({"overlap": 1.5}, "'overlap' must be from 0 to 1, got 1.5"),
        ({"overlap": True}, "'overlap' must be from 0 to 1, got True"),
        ({"overlap": "all"}, "'overlap' must be from 0 to 1, got 'all'"),
        ({"overlap": float("nan")}, "'overlap' must be from 0 to 1, got nan"),
        ({"max_similarity": 2}, "'max_similarity' must be from 0 to 1, got 2"),
        ({"audit_every": 0}, "'audit_every' must be an int of at least 1, got 0"),
        ({"audit_every": 2.5}, "'audit_every' must be an int of at least 1, got 2.5"),
    ],
)
def test_bad_options_are_refused(open_session, tmp_path, options, match):
    with pytest.raises(ValueError, match=match):
        open_session(**options)
    assert not (tmp_path / "s").exists()


def test_items_of_one_person_are_asked_of_a_second_one_first(open_session, data):
    session = open_session(overlap=1.0)
    first = session.ask(4, annotator="ann")
    session.tell(first.ids[:2], ["ham", "spam"], annotator="ann")
    second = session.ask(3, annotator="bob")
    assert second.ids == first.ids[:3]
    np.testing.assert_array_equal(second.items, data[0][list(second.ids)])
    assert events(session)[-1]["second"] == list(second.ids)
    both = [batch.ids for batch in session.open_batches]
    assert both == [first.ids[2:], second.ids]  # one item waits for two people
    third = session.ask(3, annotator="bob")
    assert third.ids[0] == first.ids[3]
    assert {*third.ids}.isdisjoint(first.ids[:3])
    assert session.ask(2, annotator="eve").ids != first.ids[:2]  # two are enough
    session.tell(second.ids[2], "eggs", annotator="bob")
    assert session.open_batches[0].ids == first.ids[2:]  # ann is still asked
    session.tell(first.ids[2], "ham", annotator="ann")
    assert session.answers[first.ids[2]] == {"bob": "eggs", "ann": "ham"}


def test_a_share_of_the_items_is_asked_twice_and_stays_the_same(open_session, tmp_path):
    shared = {}
    for overlap in (0.0, 0.3, 0.6):
        session = open_session(overlap=overlap, folder=tmp_path / f"{overlap}")
        session.ask(60, annotator="ann")
        shared[overlap] = set(session.ask(60, annotator="bob").ids)
        session.close()
    assert shared[0.0] == set()
    assert 5 < len(shared[0.3]) < 30
    assert shared[0.3] < shared[0.6]


def test_a_second_opinion_can_be_skipped_undone_and_released(open_session):
    session = open_session(overlap=1.0)
    ids = session.ask(2, annotator="ann").ids
    session.tell(ids, ["ham", "spam"], annotator="ann")
    assert session.ask(2, annotator="bob").ids == ids
    with pytest.raises(ValueError, match="without a label to be skipped"):
        session.skip(ids[0], annotator="eve")
    session.skip(ids[0], annotator="bob")
    assert session.skipped == []
    assert session.labels == {ids[0]: "ham", ids[1]: "spam"}
    assert session.open_batches[0].ids == ids[1:]
    session.undo(annotator="ann")
    assert session.skipped == [ids[0]]  # now nobody's answer is left
    assert [batch.ids for batch in session.open_batches] == [ids, ids[1:]]
    session.release(ids[1], annotator="bob")
    assert [batch.ids for batch in session.open_batches] == [ids]
    session.undo(annotator="bob")
    assert [batch.ids for batch in session.open_batches] == [ids, ids[1:]]


def test_a_resumed_session_shows_second_opinions_to_their_people(open_session):
    with open_session(overlap=1.0) as session:
        ids = session.ask(2, annotator="ann").ids
        session.ask(2, annotator="bob")
    session = open_session(overlap=1.0)
    assert session.ask(2, annotator="bob").ids == ids
    assert session.ask(2, annotator="ann").ids == ids
    assert session.ask(2, annotator="ann").number == 3


def test_items_follow_the_pool(open_session, data):
    with open_session(overlap=1.0) as session:
        ids = session.ask(3, annotator="ann").ids
        session.ask(3, annotator="bob")
    session = open_session(data[0][::-1], overlap=1.0)
    assert session.ask(annotator="bob").ids == tuple(59 - id for id in ids)
    (asked,) = (e for e in session._core.journal.events if "second" in e)
    assert asked["second"] == [59 - id for id in ids]


def test_without_an_overlap_nobody_is_asked_twice(open_session, tmp_path):
    plain, other = (open_session(folder=tmp_path / name) for name in "ab")
    for session in (plain, other):
        session.ask(annotator="ann")
    assert plain.ask(annotator="ann").ids == other.ask(annotator="bob").ids


def test_two_people_with_an_overlap_label_the_whole_pool(open_session, data):
    session = open_session(overlap=0.5, refit="background")
    asked = {"ann": [], "bob": []}
    while True:
        batches = [session.ask(7, annotator=who) for who in asked]
        if not any(batches):
            break
        for who, batch in zip(asked, batches, strict=True):
            if not batch:
                continue
            session.tell(batch.ids, data[1][list(batch.ids)], annotator=who)
            asked[who] += batch.ids
    assert {*asked["ann"], *asked["bob"]} == set(range(60))
    twice = {*asked["ann"]} & {*asked["bob"]}
    assert all(len(set(ids)) == len(ids) for ids in asked.values())
    shared = {id for id in range(60) if session._core.queue.find_shared([id])}
    assert twice == shared
    assert {id for id, given in session.answers.items() if len(given) == 2} == shared
