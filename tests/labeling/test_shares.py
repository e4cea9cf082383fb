"""How many texts are of a class, while people label: shares, goals and the reasons."""

import time
from functools import partial

import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.estimation import plan_labels
from skactive.labeling._calls import METHODS, call
from skactive.labeling._prompt import _Prompt
from skactive.session import _quality

TEXTS = [f"{'good' if i % 3 else 'bad'} film number {i}" for i in range(300)]
FRONT = TfidfVectorizer()


@pytest.fixture
def open_random(open_desk):
    """Open a desk over many texts, one in ten of which is drawn at random."""

    def open_random(model=None, learner=None, **options):
        model = make_pipeline(clone(FRONT), model or LogisticRegression())
        if learner is None:
            learner = ActiveLearner(model, "margin", batch_size=5, random_state=0)
        session = {"audit_every": 10, **options.pop("session", {})}
        return open_desk(TEXTS, learner, session, **options)

    return open_random


def label(desk, n, say=lambda item: "yes" if "good" in item["text"] else "no"):
    """Answer n texts; return their ids, and the last state."""
    ids = []
    for _ in range(n):
        (item,) = desk.next("tab", n_queries=1)
        state = desk.answer(item["id"], say(item), "tab", seconds=1.0)
        while desk.session._core.models.training:
            time.sleep(0.01)
        ids.append(item["id"])
    return ids, state


def wait_for_estimate(desk, n):
    """Wait for an estimate of n labels; return the quality."""
    end = time.monotonic() + 120
    while (quality := desk.quality())["n_labels"] < n:
        assert time.monotonic() < end, quality
        time.sleep(0.01)
    return quality


def test_the_first_ten_texts_are_random_whatever_the_model_knows(open_random):
    desk = open_random()
    session = desk.session
    for id in range(6):  # of an import: there is a model
        session.tell(id, "yes" if id % 3 else "no", unasked=True, shown=None)
    session.refit()
    ids, _ = label(desk, 20)
    order = [id for id in session._core.queue.draws.order.tolist() if id > 5]
    assert ids[:10] == order[:10]
    assert ids[10:19] != [id for id in order if id not in ids[:10]][:9]
    drawn = [id for id in ids if id in session._core.state.audited]
    assert len(drawn) in (11, 12)
    assert all(map(session.is_blind, drawn))


def test_a_skipped_text_is_not_one_of_the_first_ten(open_random):
    desk = open_random()
    (first,) = desk.next("tab", n_queries=1)
    desk.skip(first["id"], "tab")
    ids, _ = label(desk, 12)
    drawn = [id for id in ids if id in desk.session._core.state.audited]
    assert len(drawn) >= 10


def test_people_who_wait_for_models_get_one_in_ten_from_the_start(open_random):
    desk = open_random(session={"refit": True})
    assert len(label(desk, 19)[0]) == 19
    assert len(desk.session._core.state.audited) <= 2


def test_random_texts_only_is_a_state_of_the_session(open_random):
    desk = open_random()
    assert desk.state()["random_only"] is False
    label(desk, 25)
    waiting = {*desk.session._core.state.waiting_for(None)}
    drawn = desk.session._core.state.audited
    assert waiting - drawn.keys()  # chosen by the model
    assert desk.draw(True)["random_only"]
    ids, _ = label(desk, 12)
    assert {*ids} <= drawn.keys()
    assert all(map(desk.session.is_blind, ids))
    items = desk.next("tab", n_queries=4)
    assert items
    assert {item["id"] for item in items} <= drawn.keys()
    again = open_random()  # as after a kill: the journal has it
    assert again.state()["random_only"]
    assert {*label(again, 6)[0]} <= again.session._core.state.audited.keys()
    assert again.draw(False)["random_only"] is False
    ids, _ = label(again, 12)
    assert {*ids} - again.session._core.state.audited.keys()
    assert waiting & {*ids}  # those that waited come again


@pytest.mark.slow
def test_when_all_random_texts_are_answered_the_others_come(open_random):
    desk = open_random()
    label(desk, 20)
    desk.draw(True)
    ids, state = label(desk, 280)
    assert len({*ids}) == 280
    assert state["done"]
    assert desk.next("tab") == []


def test_the_switch_is_checked(open_random, open_desk):
    assert "draw" in METHODS
    with pytest.raises(TypeError, match="'random_only' must be True or False"):
        open_random().draw("no")
    desk = open_desk()
    assert desk.state()["random_only"] is None
    status, content = call(desk, "draw", {"random_only": True})
    assert (status, desk.quality()["goal"]) == (400, "")
    assert content["error"].startswith("the session has no audit")
    # A session that had an audit, and is opened without one.
    desk = open_random(session={"audit_every": 5})
    desk.draw(True)
    desk = open_random(session={"audit_every": None})
    assert desk.state()["random_only"] is None
    assert len(label(desk, 8)[0]) == 8


def test_a_second_annotator_gets_random_texts_only(open_random):
    desk = open_random(session={"overlap": 0.5})
    label(desk, 20)
    desk.draw(True)
    for _ in range(12):
        (item,) = desk.next("other tab", "bob", 1)
        assert item["id"] in desk.session._core.state.audited
        desk.answer(item["id"], "yes", "other tab", "bob")


def test_a_goal_of_shares_draws_at_random_and_counts_answers(open_random):
    desk = open_random(until="shares:9")
    n = plan_labels(0.09, n_pool=300)
    goal = "more answers: each share within 9 points"
    assert desk.state()["estimate"].endswith(f"at most about {n} {goal}")
    assert desk.state()["random_only"]
    ids, state = label(desk, 9)
    assert {*ids} <= desk.session._core.state.audited.keys()
    assert f"; at most about {n - 9} {goal}" in state["estimate"]
    assert state["estimate"].startswith("estimate after 1 more random text; ")
    label(desk, 11)
    quality = wait_for_estimate(desk, 20)
    assert quality["goal"] in desk.state()["estimate"]
    shares = desk.session.prevalence().estimates
    for entry in quality["classes"]:
        share = shares[None, entry["name"]]
        assert entry["share"] == pytest.approx([share.value, *share.interval])
    assert [x["share"] for x in desk.state()["classes"]] == [
        x["share"] for x in quality["classes"]
    ]
    before = quality["goal"]
    if "more answers" in before:  # an answer less with each answer
        left = int(before.split()[1])
        assert f"about {left - 1} {goal}" in label(desk, 1)[1]["estimate"]
    desk.draw(False)  # what a person chose counts more than the goal
    assert not open_random(until="shares:9").state()["random_only"]


def test_other_goals_and_no_goal_leave_the_choice(open_random):
    assert not open_random(until="accuracy:9").state()["random_only"]
    desk = open_random()
    assert not desk.state()["random_only"]
    label(desk, 20)
    quality = wait_for_estimate(desk, 20)
    assert "more answers, one in 10 drawn at random: each share" in quality["goal"]
    assert "answers" not in desk.state()["estimate"]


def test_several_classes_of_a_text_have_shares(open_random):
    model = OneVsRestClassifier(LogisticRegression())
    session = {"classes": ["good", "film"], "multi_label": True}
    desk = open_random(model, session=session)
    say = partial(lambda item: [x for x in ("good", "film") if x in item["text"]])
    label(desk, 20, say)
    assert "one class per text only" in desk.quality()["sentence"]
    quality = wait_for_estimate(desk, 20)
    good, film = (entry["share"] for entry in quality["classes"])
    assert 0.4 < good[0] < 0.95
    assert good[1] < 2 / 3 < good[2]
    assert film[0] > 0.8
    assert quality["why"] == ""


def test_the_true_reason_is_said_where_nothing_can_be_told(open_random, monkeypatch):
    desk = open_random()
    quality, models = desk._quality, desk.session._core.models
    monkeypatch.setattr(quality, "is_due", lambda n_labels: False)

    def reason(n_more=0, **options):
        state = label(desk, n_more, **options)[1] if n_more else desk.state()
        line, sentence = state["estimate"], desk.quality()["sentence"]
        assert sentence == f"Too early to tell: {line}."
        return line

    assert reason() == "estimate after 10 more random texts"
    assert reason(9, say=lambda _: "no") == "estimate after 1 more random text"
    assert reason(1, say=lambda _: "no") == "estimate after 10 more labels"
    one_class = "estimate after labels of a second class"
    assert reason(10, say=lambda _: "no") == one_class
    with monkeypatch.context() as patch:
        patch.setattr(type(models), "encoded", 0.17)
        expected = "estimate after all texts are read, 17 % so far"
        assert reason() == expected
    assert reason(1, say=lambda _: "yes") == "the estimate is being computed"

    def fail(*args):
        raise ValueError("no such luck")

    with monkeypatch.context() as patch:
        patch.setattr(_quality, "assess", fail)
        quality.compute(21)
    assert reason() == "no such luck"
    quality.compute(21)
    assert desk.quality()["sentence"].startswith("About ")


def test_answers_with_help_do_not_count(open_random):
    desk = open_random()
    ids, _ = label(desk, 10)
    desk.session.withdraw(ids)
    desk.session.tell(ids, ["yes"] * 10, shown="suggestion", unasked=True)
    assert desk.state()["estimate"] == "estimate after 10 more random texts"


def test_random_texts_that_another_page_holds_are_the_reason(open_random):
    desk = open_random()
    held = desk.next("other tab")
    label(desk, 8)
    said = "estimate after 2 more random texts, with those that wait in another window"
    assert desk.state()["estimate"] == said
    for item in held:
        desk.answer(item["id"], "yes", "other tab")
    assert "another window" not in desk.state()["estimate"]


def test_a_random_text_with_a_label_from_elsewhere_holds_nothing_up(open_random):
    desk, model = open_random(), make_pipeline(clone(FRONT), LogisticRegression())
    ids, _ = label(desk, 3)
    (waits,) = desk.next("tab", n_queries=1)
    labeled = [TEXTS[id] for id in (ids[0], waits["id"])]
    learner = desk.session.learner.set_params(estimator=model)
    learner.fit(labeled, ["yes", "no"])
    with pytest.warns(UserWarning, match="is not the one"):
        again = open_random(learner=learner)
    assert again.state()["estimate"] == "estimate after 8 more random texts"
    assert waits["id"] not in label(again, 8)[0]
    assert "random" not in again.state()["estimate"]


def test_the_prompt_shows_shares_and_has_the_switch(open_random):
    desk = open_random(until="shares:9")
    label(desk, 20)
    wait_for_estimate(desk, 20)
    written, typed = [], iter(["?", "%", "q"])
    _Prompt(desk, "prompt", lambda _: next(typed), written.append).run()
    assert any("% of all texts (" in text for text in written)
    assert "the model chooses texts" in written
    assert desk.state()["random_only"] is False
