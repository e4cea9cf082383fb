"""Texts that come again to the same person, an hour after the answer."""

import threading
from datetime import timedelta

import pytest

from skactive.session import Desk, _queue


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(_queue, "_REPEAT_AFTER", timedelta(hours=-1))


def open_desk(open_session, **options):
    options = {"classes": ["yes", "no"], "refit": False, "repeat": 1.0, **options}
    return Desk(open_session([f"film {i}" for i in range(12)], **options))


def ask(desk, client="tab", n=1, annotator=None):
    return desk.next(client, annotator, n)


def test_a_text_comes_again_and_both_answers_are_kept(open_session, at_once):
    with open_desk(open_session) as desk:
        (item,) = ask(desk)
        while item["way"] is None:
            desk.answer(item["id"], "yes", "tab")
            (item,) = ask(desk)
        id = item["id"]
        assert item["way"] == "repeat"
        assert (item["label"], item["annotator"], item["time"]) == (None,) * 3
        assert (item["prediction"], item["top"], item["blind"]) == (None, [], True)
        listed = {x["id"]: x for x in desk.history()["items"]}[id]
        assert listed["label"] is None  # not in a list either
        said = id, "no", "tab", None, 1.0, "repeat"
        desk.answer(*said)
        desk.answer(*said)  # a lost reply
        assert desk.session.labels[id] == "yes"
        assert desk.item(id)["label"] == "yes"
        events = desk.session.history(id)
        assert [x.get("label") for x in events if x["event"] == "tell"] == ["yes", "no"]
        assert "Texts that came again: 0 %" in desk.quality()["repeats"]
        undone = desk.undo(desk.state()["undo"]["seq"], "tab")
        assert (undone["way"], undone["label"]) == ("repeat", None)
        desk.answer(id, "yes", "tab", way="repeat")
        assert "100 % of the answers agree" in desk.quality()["repeats"]
        # Each comes once more, one after another, also where it is skipped.
        (other,) = ask(desk)
        while other["way"] is None:
            desk.answer(other["id"], "yes", "tab")
            (other,) = ask(desk)
        assert other["id"] != id
        desk.skip(other["id"], "tab")
        while items := ask(desk):
            desk.answer(items[0]["id"], "yes", "tab", way=items[0]["way"])
        assert desk.state()["done"]
        assert [*desk.session.labels.values()] == ["yes"] * 12
        # A person can settle it.
        desk.answer(id, "no", "tab")
        assert desk.session.labels[id] == "no"


def test_what_came_while_texts_were_chosen_is_found(open_session, at_once, monkeypatch):
    session = open_session(
        ["one", "two"], classes=["yes", "no"], refit=False, repeat=1.0
    )
    session.ask(2)
    with Desk(session) as desk:
        ask_session, chosen, go_on = session.ask, threading.Event(), threading.Event()

        def choose(**options):
            batch = ask_session(**options)
            if not chosen.is_set():
                chosen.set()
                assert go_on.wait(60)
            return batch

        monkeypatch.setattr(session, "ask", choose)
        (item,) = ask(desk)  # the batch that waits; a job looks for others
        assert chosen.wait(60)
        for id in range(2):
            desk.answer(id, "yes", "tab")
        threading.Timer(0.2, go_on.set).start()
        (again,) = ask(desk)  # waits for the job, which found nothing
        assert (item["way"], again["way"]) == (None, "repeat")


def test_nothing_comes_again_before_an_hour_or_to_somebody_else(open_session):
    with open_desk(open_session) as desk:
        while items := ask(desk):
            assert items[0]["way"] is None
            desk.answer(items[0]["id"], "yes", "tab")
        assert len(desk.session.labels) == 12
        assert ask(desk, annotator="bob") == []
        assert desk.state()["done"]
        assert desk.quality()["repeats"] == ""


def test_no_text_of_the_audit_comes_again(open_session, at_once):
    with open_desk(open_session, audit_every=2) as desk:
        again = set()
        while items := ask(desk):
            if items[0]["way"] == "repeat":
                again.add(items[0]["id"])
            desk.answer(items[0]["id"], "yes", "tab", way=items[0]["way"])
        assert again
        assert not any(desk.session.is_blind(id) for id in again)
        core = desk.session._core
        assert not again & {*core.state.audited}


def test_the_share_is_checked(open_session):
    with pytest.raises(ValueError, match="'repeat' must be"):
        open_desk(open_session, repeat=2)
