"""Old answers after a class was added, lists as queues, and many answers at once."""

import time

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.session import Desk, _lists

WORDS = {
    "business": "market money shares",
    "sports": "team match goal",
    "tech": "computer space software",
}
NAMES = [*WORDS]
TEXTS = [f"{WORDS[NAMES[i % 3]]} number {i}" for i in range(90)]
MODEL = make_pipeline(TfidfVectorizer(), LogisticRegression(class_weight="balanced"))
LEARNER = ActiveLearner(MODEL, random_state=0)


@pytest.fixture
def open_desk(open_session):
    desks = []

    def open_desk(**options):
        session = open_session(
            TEXTS, learner=LEARNER, classes=NAMES[:2], refit=False, **options
        )
        desks.append(Desk(session))
        return desks[-1]

    yield open_desk
    for desk in desks:
        desk.close()


def answer(desk, ids):
    """Answer items rightly, but for classes that do not exist yet."""
    for id in ids:
        name = NAMES[id % 3]
        known = name in desk.session.known_classes
        desk.answer(id, name if known else "business", "tab")


def check(desk):
    """Train a model, and wait for what follows from it."""
    desk.session.refit()
    wait(desk)


def wait(desk):
    """Wait for the lists of the newest model."""
    end = time.monotonic() + 60
    while desk.check()["computing"] and time.monotonic() < end:
        time.sleep(0.01)


@pytest.fixture
def grown(open_desk):
    """A desk with 30 answers, the class tech, and 9 answers."""
    desk = open_desk()
    answer(desk, range(30))
    desk.add_class("tech")
    answer(desk, range(30, 39))
    return desk


def find(desk, method="history", **where):
    found = getattr(desk, method)(query="", where=where, only_ids=True)
    return [item["id"] for item in found["items"]]


def test_all_older_answers_are_offered_before_a_model_knows_the_class(open_desk):
    desk = open_desk()
    answer(desk, range(30))
    assert desk.state()["older"] is None
    check(desk)
    state = desk.add_class("tech")
    assert state["added"] == ["tech"]
    assert state["older"] == {
        "name": "tech",
        "label": None,
        "described": False,
        "n_items": 30,
        "n_likely": 0,
        "n_blind": 0,
    }
    assert find(desk, likely="tech") == [*range(30)][::-1]
    undone = desk.undo(state["undo"]["seq"], "tab")
    assert undone is None
    assert desk.state()["older"] is None


def test_likely_ones_are_those_that_models_without_them_take_for_the_class(grown):
    check(grown)
    wrong = {*range(2, 30, 3)}
    older = grown.state()["older"]
    assert (older["label"], older["n_items"]) == ("business", 20)
    assert older["n_likely"] == len(wrong)
    assert {*find(grown, likely="tech")} == wrong
    everything = find(grown, before="tech")
    assert {*everything[: len(wrong)]} == wrong  # the most likely first
    assert {*everything} == {*range(30)}
    assert {*find(grown, before="tech", label="sports")} == {*range(1, 30, 3)}
    assert {*find(grown, "search", before="tech")} == {*range(30)}
    item = grown.item(2, held_out=True)
    assert (item["held_out"], item["prediction"]) == (True, "tech")
    assert not grown.item(2)["held_out"]
    # What was kept or corrected is not offered again.
    grown.answer(2, "business", "tab", way="review")
    grown.answer(5, "tech", "tab", way="review")
    assert {*find(grown, likely="tech")} == wrong - {2, 5}
    assert grown.state()["older"]["n_items"] == 18


def test_a_changed_description_counts_what_the_model_would_change(open_desk):
    desk = open_desk()
    answer(desk, range(30))
    for id in (0, 3):  # about business
        desk.answer(id, "sports", "tab")
    check(desk)
    assert desk.state()["older"] is None
    desk.edit_class("business", description="all about money")
    check(desk)
    assert desk.state()["older"] == {
        "name": "business",
        "label": "sports",
        "described": True,
        "n_items": 12,
        "n_likely": 2,
        "n_blind": 0,
    }
    assert {*find(desk, likely="business")} == {0, 3}
    assert len(find(desk, before="business")) == 30
    assert {*find(desk, before="business")[:2]} == {0, 3}
    assert desk.state()["added"] == []
    desk.answer_all([0, 3], "business", "tab")
    assert desk.state()["older"] is None
    seq = desk.state()["undo"]["seq"]
    desk.undo(seq, "tab")
    desk.undo(desk.state()["undo"]["seq"], "tab")  # the description
    assert desk.state()["older"] is None


def test_several_classes_per_text_have_older_answers_too(open_session):
    learner = ActiveLearner(
        make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LogisticRegression())),
        random_state=0,
    )
    options = {"classes": NAMES[:2], "multi_label": True, "refit": False}
    with Desk(open_session(TEXTS, learner=learner, **options)) as desk:
        for id in range(60):
            if id == 12:
                desk.add_class("tech")
            known = NAMES[id % 3] in desk.session.known_classes
            desk.answer(id, [NAMES[id % 3]] if known else [], "tab")
        check(desk)
        n_likely = desk.state()["older"]["n_likely"]
        assert n_likely == 4
        assert {*find(desk, likely="tech")} == {2, 5, 8, 11}


def test_the_line_follows_new_names_and_ends_with_the_class(grown):
    check(grown)
    grown.edit_class("tech", new="science")
    check(grown)
    assert grown.state()["older"]["name"] == "science"
    assert grown.state()["added"] == ["science"]
    grown.edit_class("science", new="sports")  # merged
    assert grown.state()["older"] is None
    assert grown.state()["added"] == []


def test_a_new_name_keeps_the_lists_whether_they_are_found_before_or_after(grown):
    check(grown)
    older = {*find(grown, likely="tech")}
    assert older
    assert find(grown, only="doubtful")
    for new, old in (("engineering", "tech"), ("economy", "business")):
        grown.edit_class(old, new=new)
        wait(grown)
    assert {*find(grown, likely="engineering")} == older
    said = {item["prediction"] for item in grown.check()["items"]}
    assert said == {"engineering"}  # of the doubtful answers
    for _ in range(2):
        grown.undo(grown.state()["undo"]["seq"], "tab")
        wait(grown)
    assert {*find(grown, likely="tech")} == older


def test_audited_answers_are_behind_all_others_and_never_chosen_by_a_model(open_desk):
    desk = open_desk(audit_every=3)
    answer(desk, range(30))
    desk.add_class("tech")
    answer(desk, range(30, 39))
    check(desk)
    blind = {id for id in range(30) if desk.session.is_blind(id)}
    older, ids = desk.state()["older"], find(desk, likely="tech")
    hidden = [id for id in range(29, -1, -1) if id in blind and id % 3 != 1]
    assert older["n_likely"] >= 1
    assert ids[older["n_likely"] :] == hidden  # right and wrong, the latest first
    assert older["n_blind"] == len(hidden) >= 2
    assert not blind & {*ids[: older["n_likely"]]}
    for id in hidden:
        item = desk.item(id, held_out=True)
        assert (item["prediction"], item["top"], item["held_out"]) == (None, [], False)


def test_doubtful_is_a_filter_in_the_order_of_check(grown):
    check(grown)
    grown.answer(40, "business", "tab")  # it is about sports
    check(grown)
    expected = [item["id"] for item in grown.check(100)["items"]]
    assert 40 in expected
    assert find(grown, only="doubtful") == expected
    assert find(grown, only="doubtful", label="sports") == [
        id for id in expected if id % 3 == 1 and id != 40
    ]


def test_many_answers_are_one_event_and_one_undo(open_desk, open_session):
    desk = open_desk()
    answer(desk, range(6))
    before, seq = dict(desk.session.labels), desk.state()["seq"]
    ids = [0, 1, 2, 50]
    desk.item(50)
    state = desk.answer_all(ids, "sports", "tab", seconds=6.0, way="bulk")
    after = {**before, **dict.fromkeys(ids, "sports")}
    assert state["seq"] == seq + 1
    assert desk.session.labels == after
    assert state["undo"]["n_items"] == 3  # 1 had the label
    assert desk.session.history(50)[-1]["seconds"] == 2.0
    assert desk.session.history(0)[-1]["way"] == "bulk"
    assert [entry["event"] for entry in desk.session.history(1)] == ["tell"]
    # The same again, as after a lost reply, changes nothing.
    assert desk.answer_all(ids, "sports", "tab", way="bulk")["seq"] == seq + 1
    desk.close()
    desk.session.close()
    again = Desk(open_session(TEXTS, learner=LEARNER, refit=False))
    assert again.session.labels == after
    assert again.undo(again.state()["undo"]["seq"], "tab") is None
    assert again.session.labels == before
    again.close()


def test_many_answers_are_all_or_none(open_desk):
    desk = open_desk()
    seq = desk.state()["seq"]
    for ids, label in (([1, 2], "odd"), ([1, 999], "sports"), ([], "sports")):
        with pytest.raises(ValueError, match=r"must be|must name"):
            desk.answer_all(ids, label, "tab")
    assert desk.state()["seq"] == seq
    with pytest.raises(ValueError, match="'where' must be a dict with keys of"):
        desk.history(where={"after": "sports"})


def test_old_answers_are_counted_while_nobody_answers(grown, monkeypatch):
    held = []
    monkeypatch.setattr(
        _lists, "_describe_older", lambda core, *_: held.append(core.lock._is_owned())
    )
    grown.state()
    assert held == [True]
