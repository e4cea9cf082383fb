"""What every front end may do, tested once."""

import errno
import json
import re
import shutil
import threading
import time
from concurrent.futures import wait
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC
from tokenizers import Tokenizer

from skactive import ActiveLearner
from skactive.bert import BertFeatures
from skactive.estimation import plan_labels
from skactive.session import _doubts

from .conftest import TEXTS


def _truth(item):
    return "yes" if "good" in item["text"] else "no"


def _label(desk, n, client="tab"):
    """Answer n items as the text says."""
    for _ in range(n):
        item = desk.next(client, n_queries=1)[0]
        state = desk.answer(item["id"], _truth(item), client, seconds=1.0)
    return state


def _free(desk, n):
    """Return the last n ids without a label, whatever the model has asked for."""
    labels, is_blind = desk.session.labels, desk.session.is_blind
    ids = [id for id in reversed(range(len(TEXTS))) if id not in labels]
    return [id for id in ids if not is_blind(id)][:n]


def _events(desk):
    journal = Path(desk.session.folder, "journal.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["event"] for line in journal.splitlines()]


def test_the_same_items_are_shown_until_they_are_answered(desk):
    first = desk.next("tab")
    assert [item["id"] for item in desk.next("tab")] == [item["id"] for item in first]
    state = desk.answer(first[0]["id"], "yes", "tab", seconds=2.5)
    assert desk.next("tab")[0]["id"] == first[1]["id"]
    assert (state["n_labeled"], state["classes"][0]["count"]) == (1, 1)
    assert desk.session._core.state.answers[first[0]["id"]].seconds == 2.5


@pytest.mark.parametrize("several", [False, True])
def test_nothing_is_predicted_with_fewer_than_two_classes(open_desk, several):
    model = OneVsRestClassifier(DummyClassifier()) if several else DummyClassifier()
    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), model), random_state=0)
    desk = open_desk(learner=learner, session={"classes": None, "multi_label": several})

    def answer(id, name):
        desk.answer(id, [name] if several else name, "tab")
        desk.session.refit()
        return desk.item(9)

    desk.add_class("yes")
    shown = answer(0, "yes")
    assert (shown["prediction"], shown["probability"], shown["top"]) == (None, None, [])
    desk.add_class("no")
    assert answer(1, "no")["prediction"] is not None


def test_an_item_is_given_to_one_front_end_at_a_time(desk):
    shown = [item["id"] for c in "abcde" for item in desk.next(c, n_queries=3)]
    assert len(shown) == len(set(shown)) >= 5


def test_items_of_a_closed_or_silent_front_end_are_given_to_others(desk, monkeypatch):
    first = [item["id"] for item in desk.next("a")]
    desk.release("a")
    assert [item["id"] for item in desk.next("b")] == first
    monkeypatch.setattr("skactive.session._leases._STALE_SECONDS", 0.0)
    assert [item["id"] for item in desk.next("c")] == first


def test_several_people_get_different_items(desk):
    ids = {
        name: {x["id"] for x in desk.next(name, annotator=name, n_queries=5)}
        for name in "ab"
    }
    assert not ids["a"] & ids["b"]
    assert desk.state("a")["annotator"] == "a"


def test_second_opinions_are_asked_of_two_people(open_desk):
    desk = open_desk(session={"overlap": 1.0, "refit": False}, texts=TEXTS[:12])
    first = [item["id"] for item in desk.next("a", annotator="ann", n_queries=3)]
    second = [item["id"] for item in desk.next("b", annotator="bob", n_queries=3)]
    assert second[:3] == first
    assert [
        item["id"] for item in desk.next("a", annotator="ann", n_queries=3)
    ] == first
    others = [item["id"] for item in desk.next("b2", annotator="bob", n_queries=3)]
    assert not {*others} & {*second}  # the two front ends of bob
    desk.skip(first[0], "b", annotator="bob")
    for who, client in [("ann", "a"), ("bob", "b")] * 3:
        while items := desk.next(client, annotator=who):
            for item in items:
                desk.answer(item["id"], _truth(item), client, annotator=who)
        desk.release("b2")
    assert desk.state("ann")["done"]
    assert desk.state("bob")["done"]
    given = desk.session.answers
    assert {len(by) for id, by in given.items() if id != first[0]} == {2}
    assert given[first[0]].keys() == {"ann"}


def test_every_item_is_asked_once_and_then_none_is_left(open_desk):
    desk = open_desk([f"text {i}" for i in range(9)])
    seen = []
    while items := desk.next("tab", n_queries=1):
        seen.append(items[0]["id"])
        state = desk.answer(items[0]["id"], "yes", "tab")
    assert sorted(seen) == list(range(9))
    assert state["done"]
    assert state["n_labeled"] == 9


def test_an_answer_that_is_sent_twice_is_recorded_once(desk):
    item = desk.next("tab")[0]
    for _ in range(2):
        desk.answer(item["id"], "yes", "tab")
        desk.skip(desk.next("tab")[1]["id"], "tab")
    assert _events(desk).count("tell") == 1
    again = desk.next("tab")[0]
    for _ in range(2):
        desk.skip(again["id"], "tab")
    assert _events(desk).count("skip") == len(desk.session.skipped)


def test_a_later_state_has_a_larger_number(desk):
    before = desk.state()["seq"]
    assert _label(desk, 1)["seq"] > before


def test_a_correction_replaces_the_answer(desk):
    item = desk.next("tab")[0]
    desk.answer(item["id"], "yes", "tab")
    state = desk.answer(item["id"], "no", "tab")
    assert desk.session.labels == {item["id"]: "no"}
    assert [entry["count"] for entry in state["classes"]] == [0, 1]


def test_undo_brings_the_item_back(desk):
    item = desk.next("tab")[0]
    undo = desk.answer(item["id"], "yes", "tab")["undo"]
    assert (undo["event"], undo["id"], undo["label"]) == ("tell", item["id"], "yes")
    assert desk.undo(undo["seq"], "tab")["id"] == item["id"]
    assert desk.session.labels == {}
    assert desk.next("tab")[0]["id"] == item["id"]
    assert desk.state()["undo"] is None


def test_undo_of_something_else_is_refused(desk):
    undo = _label(desk, 1)["undo"]
    _label(desk, 1)
    with pytest.raises(ValueError, match="'seq' must be the number of the last event"):
        desk.undo(undo["seq"], "tab")
    assert len(desk.session.labels) == 2


def test_a_label_must_be_a_class(desk):
    item = desk.next("tab")[0]
    with pytest.raises(
        ValueError, match=r"'labels' must be among the classes.*To add a class"
    ):
        desk.answer(item["id"], "maybe", "tab")
    state = desk.add_class("maybe")
    assert [entry["key"] for entry in state["classes"]] == ["1", "2", "3"]
    desk.answer(item["id"], "maybe", "tab")
    for name in ("maybe", " ", ""):
        with pytest.raises(ValueError, match=r"'name' must be (a new|the name of a) c"):
            desk.add_class(name)


def test_classes_of_an_open_session(open_desk):
    desk = open_desk(session={"classes": None})
    desk.add_class("first")
    state = desk.add_class("  second ")
    assert [entry["name"] for entry in state["classes"]] == ["first", "second"]
    assert not state["closed"]
    desk.answer(desk.next("tab")[0]["id"], "second", "tab")
    assert [entry["count"] for entry in desk.state()["classes"]] == [0, 1]


@pytest.mark.parametrize(
    "name", ["__proto__", "constructor", "<b>", "שלום", "a\u202eb"]
)
def test_names_of_classes_are_only_names(open_desk, name):
    desk = open_desk(session={"classes": [name, "other"]})
    item = desk.next("tab")[0]
    state = desk.answer(item["id"], name, "tab")
    assert json.loads(json.dumps(state))["classes"][0] == {
        "name": name,
        "key": "1",
        "count": 1,
        "description": "",
        "examples": [],
        "taken": [],
        "share": None,
    }


def test_classes_that_are_equal_in_python_are_distinguished(open_desk):
    desk = open_desk(session={"classes": [1, 2]})
    item = desk.next("tab")[0]
    with pytest.raises(
        ValueError, match=r"'labels' must be among the classes .* got True"
    ):
        desk.answer(item["id"], True, "tab")


@pytest.mark.long
def test_the_model_predicts_once_it_is_trained(desk):
    assert desk.next("tab")[0]["prediction"] is None
    _label(desk, 12)
    desk.session.refit()
    item = desk.next("tab")[0]
    assert item["prediction"] == desk.session.learner.predict([item["text"]])[0]
    assert item["probability"] == item["top"][0][1] >= 0.5
    assert sum(p for _, p in item["top"]) == pytest.approx(1)
    assert desk.state()["model"]["n_labels"] == 12


def test_predictions_without_probabilities(open_desk):
    model = ActiveLearner(LinearSVC(), strategy="random", random_state=0)
    model.set_params(estimator__random_state=0)
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    model.set_params(estimator=make_pipeline(TfidfVectorizer(), LinearSVC()))
    desk = open_desk(learner=model)
    _label(desk, 12)
    desk.session.refit()
    item = desk.next("tab")[0]
    predicted = desk.session.learner.predict([item["text"]])[0]
    assert (item["prediction"], item["probability"]) == (predicted, None)


def test_training_that_fails_is_shown_and_labeling_goes_on(open_desk, monkeypatch):
    desk = open_desk()
    _label(desk, 4)

    def fail(self, X, y, sample_weight=None):
        raise RuntimeError("no training today")

    monkeypatch.setattr(LogisticRegression, "fit", fail)
    # A training that was under way succeeds; a later one fails, and the next question
    # after that finds it out.
    n, error = 4, None
    while error is None and n < 50:
        n, error = n + 1, _label(desk, 1)["model"]["error"]
    assert "no training today" in error
    assert len(desk.session.labels) == n


@pytest.mark.long
def test_suggestions_are_shown_and_compared(open_desk):
    desk = open_desk(suggestions=dict.fromkeys(range(60), "yes"))
    assert desk.next("tab")[0]["suggestion"] == "yes"
    assert desk.state()["suggestions"]["compared"] == 0
    about = _label(desk, 20)["suggestions"]
    agreed = sum(label == "yes" for label in desk.session.labels.values())
    assert (about["compared"], about["agreed"]) == (20, agreed)
    # The interval holds the share, and is near that of Clopper and Pearson.
    exact = beta.ppf([0.025, 0.975], [agreed, agreed + 1], [21 - agreed, 20 - agreed])
    np.testing.assert_allclose([about["low"], about["high"]], exact, atol=0.05)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_what_was_right_more_often_leads(open_desk, share):
    wrong = {"yes": "no", "no": "yes"}
    truth = {id: _truth({"text": text}) for id, text in enumerate(TEXTS)}
    said = {id: name if share else wrong[name] for id, name in truth.items()}
    desk = open_desk(suggestions=said)
    assert desk.state()["suggestions"]["leads"]  # before anything was compared
    assert _label(desk, 3)["suggestions"]["leads"] == (share == 1)
    desk.session.refit()
    for id in _free(desk, 12):
        assert desk.item(id)["prediction"]
        desk.answer(id, wrong[desk.item(id)["prediction"]], "tab")
    compared = desk.state()["suggestions"]
    assert compared["agreed"] < compared["compared"]
    rate = (compared["agreed"] + 1) / (compared["compared"] + 2)
    predicted = desk._predicted
    n_right = sum(desk.session.labels.get(x) == y for x, y in predicted.items())
    n = sum(id in desk.session.labels for id in predicted)
    assert n >= 12 > n_right
    assert compared["leads"] == (rate >= (n_right + 1) / (n + 2))


def test_a_class_that_was_renamed_has_its_new_name_in_the_last_answers(desk):
    _label(desk, 6)
    desk.session.refit()
    (id,) = _free(desk, 1)
    predicted = desk.item(id)["prediction"]
    desk.answer(id, {"yes": "no", "no": "yes"}[predicted], "tab")
    desk.edit_class(predicted, new="perhaps")
    assert desk.state()["recent"][0]["predicted"] == "perhaps"
    assert {name for name, _ in desk.item(_free(desk, 1)[0])["top"]} >= {"perhaps"}


def test_flags_and_notes(desk):
    id = desk.next("tab")[0]["id"]
    assert desk.flag(id)["flag"]
    assert desk.note(id, "unclear")["note"] == "unclear"
    assert desk.state()["n_flagged"] == 1
    assert not desk.flag(id, False)["flag"]


def test_history_has_the_newest_first_and_can_be_searched(desk):
    _label(desk, 6)
    skipped = desk.next("tab", n_queries=1)[0]["id"]
    desk.skip(skipped, "tab")
    page = desk.history(n_items=3)
    assert (page["total"], len(page["items"])) == (7, 3)
    assert page["items"][0]["id"] == skipped
    found = desk.history("YES")
    assert {item["label"] for item in found["items"]} == {"yes"}
    text = page["items"][1]["text"]
    assert desk.history(text.upper())["items"][0]["text"] == text
    assert desk.history(start=5)["items"][0]["id"] == desk.history()["items"][5]["id"]


def _check(desk, n=20):
    """Return the list of doubtful answers of the newest model."""
    desk.session.refit()
    desk.version()
    end = time.monotonic() + 60
    while (page := desk.check(n))["computing"] and time.monotonic() < end:
        time.sleep(0.01)
    return page


@pytest.fixture
def doubtful(desk):
    """A desk with 40 answers, of which that of item 12 is wrong."""
    for id in range(40):
        item = desk.item(id)
        desk.answer(id, "yes" if id == 12 else _truth(item), "tab")
    return desk


@pytest.mark.long
def test_answers_that_models_without_them_contradict_are_found(doubtful):
    page = _check(doubtful)
    assert (page["n_labels"], page["total"]) == (40, len(page["items"]))
    first = page["items"][0]
    expected = doubtful.session.suspicious(1)[0]
    assert (first["id"], first["label"], first["prediction"], first["probability"]) == (
        expected
    )
    assert first["id"] == 12
    assert first["held_out"]
    assert not doubtful.item(12)["held_out"]
    for item in page["items"]:
        assert item["prediction"] != item["label"]


@pytest.mark.long
@pytest.mark.slow
def test_doubtful_answers_are_computed_once_for_each_model(doubtful, monkeypatch):
    find, calls, inside = _doubts.find_doubtful, [], threading.Lock()

    def count(core):
        assert inside.acquire(blocking=False)  # never two at once
        calls.append(core)
        time.sleep(0.05)
        inside.release()
        return find(core)

    _check(doubtful)
    monkeypatch.setattr(_doubts, "find_doubtful", count)
    for _ in range(5):
        doubtful.state()
        doubtful.check()
    assert calls == []
    doubtful.answer(41, "yes", "tab")
    assert _check(doubtful)["n_labels"] == 41
    assert len(calls) in (1, 2)  # the background may train the same labels, too


@pytest.mark.long
@pytest.mark.slow
def test_a_list_is_returned_at_once_while_a_newer_one_is_computed(
    doubtful, monkeypatch
):
    _check(doubtful)
    go_on = threading.Event()
    nothing = [], {}, {}
    monkeypatch.setattr(
        _doubts, "find_doubtful", lambda core: go_on.wait(60) and nothing
    )
    doubtful.answer(41, "yes", "tab")
    doubtful.session.refit()
    page = doubtful.check()
    assert page["computing"]
    assert page["n_labels"] == 40
    assert page["items"][0]["id"] == 12
    go_on.set()
    assert _check(doubtful)["items"] == []


@pytest.mark.long
@pytest.mark.slow
def test_what_was_corrected_or_confirmed_is_not_listed_again(doubtful):
    before = [item["id"] for item in _check(doubtful)["items"]]
    doubtful.answer(12, "no", "tab")
    assert [item["id"] for item in doubtful.check()["items"]] == before[1:]
    doubtful.undo(doubtful.state()["undo"]["seq"], "tab")
    assert [item["id"] for item in doubtful.check()["items"]] == before
    doubtful.answer(12, "yes", "tab")  # as before: it is right
    assert 12 not in [item["id"] for item in doubtful.check()["items"]]
    doubtful.answer(41, "yes", "tab")
    assert 12 not in [item["id"] for item in _check(doubtful)["items"]]


def test_a_model_that_cannot_be_checked_is_said(open_desk):
    model = make_pipeline(TfidfVectorizer(), Perceptron())
    desk = open_desk(learner=ActiveLearner(model, random_state=0))
    assert desk.check()["n_labels"] is None
    _label(desk, 10)
    with pytest.raises(TypeError, match=r"No answers can be checked: .*predict_proba"):
        _check(desk)


@pytest.mark.long
@pytest.mark.slow
def test_the_estimate_comes_in_the_background(open_desk):
    desk = open_desk(n_labels=50, session={"audit_every": 2})
    assert "about the pool" not in _label(desk, 19)["estimate"]
    assert desk.quality()["sentence"].startswith("Too early to tell: ")
    _label(desk, 1)
    line = _wait_for_estimate(desk)
    assert re.fullmatch(
        r"About \d+ % of the pool is predicted right \(\d+-\d+ %\), from "
        r"1\d drawn at random; less than 1 min left at your pace",
        line,
    )
    _label(desk, 1)
    assert " at 20 labels; " in desk.state()["estimate"]


def _wait_for_estimate(desk, n=20):
    """Wait for an estimate from at least n labels, and return its line."""
    end = time.monotonic() + 60
    while desk.quality()["n_labels"] < n and time.monotonic() < end:
        time.sleep(0.01)
    return desk.state()["estimate"]


def test_the_minutes_are_those_of_each_persons_own_pace(open_desk):
    desk = open_desk(n_labels=44)
    for id in range(20):
        who, seconds = ("ann", 60.0) if id < 10 else ("bob", 5.0)
        label = "yes" if id % 2 else "no"
        desk.answer(id, label, "tab", annotator=who, seconds=seconds)
    _wait_for_estimate(desk)
    for who, minutes in (("ann", 24), ("bob", 2), ("eve", 13)):
        assert desk.state(who)["estimate"] == f"{minutes} min left at your pace"


def test_nothing_is_said_about_the_pool_without_an_audit(open_desk):
    desk = open_desk(n_labels=50)
    _label(desk, 20)
    assert _wait_for_estimate(desk) == "less than 1 min left at your pace"
    quality = desk.quality()
    assert quality["sentence"].endswith("no text of this session is drawn at random.")
    assert (quality["accuracy"], quality["interval"], quality["curve"]) == (
        None,
    ) * 2 + ([],)


@pytest.mark.slow
def test_quality_is_that_of_held_out_predictions_of_the_audit(open_desk):
    desk = open_desk(session={"audit_every": 2})
    for n in (20, 10, 10):
        n_labeled = _label(desk, n)["n_labeled"]
        _wait_for_estimate(desk, n_labeled)
    quality = desk.quality()
    estimate = desk.session.estimate()
    assert quality["n_labels"] == quality["curve"][-1][0] == 40
    assert (quality["accuracy"], quality["interval"]) == (
        estimate.accuracy,
        estimate.accuracy_interval,
    )
    assert [n for n, *_ in quality["curve"]] == sorted(
        {n for n, *_ in quality["curve"]}
    )
    for entry in quality["classes"]:
        assert entry["count"] + entry["missing"] >= 10
        for share in (entry["recall"], entry["precision"]):
            assert share is None or share[1] <= share[0] <= share[2]


def test_quality_of_other_targets(open_desk):
    classes = ["joy", "love"]
    desk = open_desk(session={"classes": classes, "multi_label": True})
    assert desk.quality()["sentence"] == (
        "The accuracy is estimated for one class per text only."
    )


@pytest.fixture
def taught(open_desk):
    """A desk with 20 right answers, a model, and an audit."""
    desk = open_desk(session={"audit_every": 4})
    _label(desk, 20)
    desk.session.refit()
    while desk.session._core.models.training:  # a model that is older than this one
        time.sleep(0.01)
    return desk


def test_what_the_audit_can_draw_is_shown_without_help(open_desk):
    guesses = dict.fromkeys(range(60), "yes")
    desk = open_desk(session={"audit_every": 4}, suggestions=guesses)
    _label(desk, 20)
    desk.session.refit()
    desk.next("tab", n_queries=5)
    wait(desk._jobs.values())  # what is asked for meanwhile can draw more
    queue, answers = desk.session._core.queue, desk.session._core.state.answers
    reserved = {*np.flatnonzero(queue.draws.reserved).tolist()}
    assert 5 < len(reserved) < 30
    hidden = reserved | desk.session._core.state.audited.keys()  # drawn behind these
    pages = desk.search("film", n_items=60), desk.history(n_items=60)
    lists = [desk.item(id) for id in range(60)], *(page["items"] for page in pages)
    for items in (*lists, desk.next("tab", n_queries=5)):
        for item in items:
            assert item["blind"] == (item["id"] in hidden)
            said = item["prediction"], item["probability"], item["suggestion"]
            assert (said == (None, None, None)) == item["blind"]
            assert (item["top"] == []) == item["blind"]
    blind = next(id for id in reserved if id not in answers)
    for ask in (desk.explain, desk.similar):
        with pytest.raises(ValueError, match="drawn at random, which are answered wit"):
            ask(blind)
    seen = _free(desk, 1)[0]
    desk.answer(blind, "yes", "tab")
    desk.answer(seen, "yes", "tab")
    assert (answers[blind].shown, len(answers[blind].blind)) == ("none", 1)
    assert (answers[seen].shown, len(answers[seen].blind)) == ("suggestion", 0)
    assert all(answers[id].blind for id in desk.session.audited)
    assert len(desk.session.audited) >= 5
    assert desk.session.history(blind)[-1]["shown"] == "none"


@pytest.mark.slow
def test_what_was_shown_is_the_most_that_was_shown(open_desk):
    desk = open_desk()
    first, second = 59, 58
    desk.item(first)  # before there is a model
    for id in range(20):
        desk.answer(id, "yes" if id % 2 else "no", "tab")
    desk.session.refit()
    desk.item(second)
    for id in (first, second):
        desk.answer(id, "yes", "tab")
    answers = desk.session._core.state.answers
    assert [answers[id].shown for id in (first, second)] == ["none", "prediction"]
    again = open_desk()
    assert again.session._core.state.answers[second].shown == "prediction"
    again.answer(_free(again, 1)[0], "no", "tab")  # of a page from before the restart
    assert [*again.session._core.state.answers.values()][-1].shown is None


def test_quality_says_how_many_random_texts_make_the_shares_exact(open_desk):
    desk = open_desk(session={"audit_every": 1})
    _label(desk, 9)
    n = plan_labels(0.05, n_pool=60) - 9
    goal = "more answers: each share within 5 points"
    assert desk.quality()["goal"] == f"at most about {n} {goal}"
    _label(desk, 11)
    _wait_for_estimate(desk, 20)
    assert re.fullmatch(rf"about \d+ {goal}|goal reached: .*", desk.quality()["goal"])


def test_doubtful_answers_of_the_audit_are_not_listed(open_desk):
    desk = open_desk(session={"audit_every": 2})
    for id in range(40):
        wrong = id in (3, 12, 21, 30, 33, 35)
        right = "yes" if id % 2 else "no"
        desk.answer(id, {"yes": "no", "no": "yes"}[right] if wrong else right, "tab")
    desk.session.refit()
    listed = {item["id"] for item in _check(desk)["items"]}
    wrong = {3, 12, 21, 30, 33, 35}
    blind = {id for id in wrong if desk.session.is_blind(id)}
    assert blind
    assert wrong - blind <= listed
    assert listed == {id for id, *_ in desk.session.suspicious(100)}
    assert not any(map(desk.session.is_blind, listed))


@pytest.mark.parametrize(
    ("seconds", "certain", "is_listed"),
    [(0.4, 0.5, True), (0.6, 0.5, False), (None, 0.5, False), (0.4, 0.99, False)],
)
def test_an_answer_too_quick_to_be_meant_is_asked_again_later(
    taught, monkeypatch, seconds, certain, is_listed
):
    monkeypatch.setattr(_doubts, "_CERTAIN", certain)
    (id,) = _free(taught, 1)
    item = taught.item(id)
    wrong = "no" if item["prediction"] == "yes" else "yes"
    before = taught.state()["n_doubtful"]
    state = taught.answer(id, wrong, "tab", seconds=seconds)
    assert state["n_doubtful"] - before == is_listed
    if not is_listed:
        return
    first = taught.check()["items"][0]
    assert (first["id"], first["label"]) == (id, wrong)
    assert first["prediction"] == item["prediction"]
    assert first["probability"] == item["probability"]
    taught.answer(id, wrong, "tab", seconds=0.1)  # it is meant
    assert taught.state()["n_doubtful"] == before


def test_a_quick_answer_to_a_blind_text_is_not_asked_again(open_desk, monkeypatch):
    monkeypatch.setattr(_doubts, "_CERTAIN", 0.0)
    desk = open_desk(session={"audit_every": 2})
    _label(desk, 12)
    desk.session.refit()
    free = [id for id in range(60) if id not in desk.session.labels]
    blind = []
    for id in free:
        item = desk.item(id)
        other = "no" if item["prediction"] == "yes" else "yes"
        desk.answer(id, other, "tab", seconds=0.1)
        blind += [id] if item["blind"] else []
        listed = {row[0] for row in desk._doubts.list_rows()}
        assert (id in listed) == (not item["blind"])
    assert 0 < len(blind) < len(free)


def test_similar_items_are_unlabeled_of_the_same_class_and_not_of_the_audit(taught):
    state = taught.session._core.state
    reserved = np.flatnonzero(taught.session._core.queue.draws.reserved)
    audit = {state.pool.ids[row] for row in reserved}
    (id,) = _free(taught, 1)
    page = taught.similar(id, 50)
    found = [item["id"] for item in page["items"]]
    assert page["label"] == taught.item(id)["prediction"]
    assert {item["prediction"] for item in page["items"]} == {page["label"]}
    assert found
    assert not {*found} & (audit | {*state.answers} | {*state.audited})
    front = taught.session.newest_model.learner.estimator_[:-1]
    near = cosine_similarity(front.transform(TEXTS))[id, found]
    assert (np.diff(near) <= 1e-12).all()
    assert [item["id"] for item in taught.similar(id, 2)["items"]] == found[:2]


def test_items_similar_to_an_answer_are_of_its_class(taught):
    id = next(iter(taught.session.labels))
    other = "no" if taught.session.labels[id] == "yes" else "yes"
    taught.answer(id, other, "tab")
    page = taught.similar(id)
    assert page["label"] == other
    assert all(_truth(item) == other for item in page["items"])


def test_more_of_a_class_likely_or_doubtful(taught):
    learner = taught.session.newest_model.learner
    proba = learner.predict_proba(TEXTS)[:, learner.classes_.tolist().index("no")]
    rest = taught.session._core.queue.find_unaudited()
    for doubtful in (False, True):
        found = [item["id"] for item in taught.more("no", doubtful, 3)["items"]]
        value = -np.abs(2 * proba - 1) if doubtful else proba
        best = np.sort(value[rest])[::-1][:3]
        np.testing.assert_allclose(value[found], best)
    taught.edit_class("no", new="never")
    assert [item["id"] for item in taught.more("never", True, 3)["items"]] == found
    rest = next(id for id, x in taught.session.labels.items() if x == "never")
    assert taught.similar(rest)["label"] == "never"
    assert taught.similar(rest)["items"]
    with pytest.raises(ValueError, match="'label' must be a class that the model has"):
        taught.more("maybe")


def test_an_explanation_leaves_out_each_word(taught):
    (id,) = _free(taught, 1)
    about, model = taught.explain(id), taught.session.newest_model.learner
    text, column = TEXTS[id], model.predict_proba(TEXTS)[id].argmax()
    assert [text[a:b] for _, a, b, _ in about["words"]] == text.split()
    for _, start, end, fall in about["words"]:
        rest = (text[:start] + text[end:]).strip()
        p = model.predict_proba([text, rest])[:, column]
        assert fall == pytest.approx(p[0] - p[1])
    assert max(about["words"], key=lambda word: word[3])[1] == 0  # good or bad
    near = [(item["similarity"], item["label"]) for item in about["items"]]
    assert len(near) == 3
    assert near == sorted(near, key=lambda pair: -pair[0])
    assert {label for _, label in near} == {about["prediction"]}


def test_nothing_can_be_found_or_explained_before_a_model(open_desk):
    desk = open_desk()
    for call in (desk.similar, desk.explain):
        with pytest.raises(ValueError, match=r"no prediction yet\. Label some more"):
            call(0)
    with pytest.raises(ValueError, match="no prediction yet"):
        desk.more("yes")


def test_words_of_pairs_and_what_cannot_be_left_out(open_desk, monkeypatch):
    pairs = [(f"{'good' if i % 2 else 'bad'} start", f"end {i}") for i in range(20)]
    model = make_pipeline(
        FunctionTransformer(lambda X: [" ".join(pair) for pair in X]),
        TfidfVectorizer(),
        LogisticRegression(),
    )
    desk = open_desk(pairs, ActiveLearner(model, random_state=0))
    for id in range(8):
        desk.answer(id, "yes" if id % 2 else "no", "tab")
    desk.session.refit()
    words = desk.explain(9)["words"]
    assert [pairs[9][n][a:b] for n, a, b, _ in words] == ["good", "start", "end", "9"]
    newest = desk.session.newest_model

    def refuse(X):
        raise ValueError("no features of these texts")

    # A training in the background can end at any time.
    monkeypatch.setattr(desk.session._core.models, "newest", lambda: newest)
    monkeypatch.setattr(newest.learner, "predict_proba", refuse)
    about = desk.explain(9)
    assert (about["words"], about["error"]) == (
        [],
        "Words cannot be left out: no features of these texts",
    )


def test_the_texts_of_an_explanation_are_not_kept(open_desk, tiny_bert, tmp_path):
    features = BertFeatures(tiny_bert, cache=str(tmp_path / "features"))
    model = make_pipeline(features, LogisticRegression())
    desk = open_desk(learner=ActiveLearner(model, random_state=0))
    _label(desk, 10)
    desk.session.refit()
    (id,) = _free(desk, 1)
    desk.item(id)
    wait(desk._jobs.values())  # which can compute features as well

    def stored():
        return {x: x.stat().st_size for x in (tmp_path / "features").rglob("*")}

    before = stored()
    about = desk.explain(id)
    assert stored() == before
    assert len(about["words"]) == len(TEXTS[id].split())
    learner = desk.session.newest_model.learner
    text, best = TEXTS[id], learner.predict_proba(TEXTS)[id].argmax()
    _, start, _, fall = about["words"][-1]
    p = learner.predict_proba([text, text[: start - 1]])[:, best]
    assert fall == pytest.approx(p[0] - p[1], abs=1e-5)


def test_the_way_of_an_answer_is_kept(taught, tmp_path):
    item = taught.similar(_free(taught, 1)[0], 1)["items"][0]
    taught.answer(item["id"], "yes", "tab", way="bulk")
    assert taught.history()["items"][0]["way"] == "bulk"
    assert taught.session.history(item["id"])[-1]["way"] == "bulk"
    taught.session.export(tmp_path / "answers.jsonl", what="answers")
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    ways = {row["id"]: row["way"] for row in map(json.loads, lines)}
    assert ways[item["id"]] == "bulk"
    assert [*ways.values()].count(None) == 20
    with pytest.raises(ValueError, match="'way' must be one of None, 'bulk'"):
        taught.answer(item["id"], "no", "tab", way="fast")


@pytest.mark.slow
def test_a_confirmed_answer_is_not_asked_again_after_a_restart(doubtful, open_desk):
    _check(doubtful)
    n = doubtful.state()["n_doubtful"]
    seq = doubtful.answer(12, "yes", "tab", way="review")["seq"]
    assert doubtful.state()["n_doubtful"] == n - 1
    assert doubtful.answer(12, "yes", "tab", way="review")["seq"] == seq
    again = open_desk()
    assert 12 not in [item["id"] for item in _check(again)["items"]]
    assert again.session.labels[12] == "yes"
    again.undo(again.state()["undo"]["seq"], "tab")
    assert 12 in [item["id"] for item in _check(again)["items"]]


def test_history_and_search_have_filters(open_desk):
    desk = open_desk()
    _label(desk, 6)  # any items
    answered, odd, skipped = _free(desk, 3)
    desk.answer(answered, "yes", "tab", "ann")
    desk.flag(answered)
    desk.note(odd, "odd")
    desk.skip(skipped, "tab")

    def find(method, *args, **where):
        return [item["id"] for item in method(*args, where=where)["items"]]

    assert find(desk.history, by="ann") == find(desk.history, only="flag") == [answered]
    assert find(desk.history, only="skipped") == [skipped]
    assert find(desk.search, "", only="note") == [odd]
    assert {item["label"] for item in desk.history(where={"label": "no"})["items"]} == {
        "no"
    }
    assert desk.search("", where={"only": "unlabeled"})["total"] == 60 - 7
    assert find(desk.search, TEXTS[answered], label="yes") == [answered]
    assert find(desk.search, TEXTS[answered], label="no") == []
    assert desk.history()["annotators"] == [None, "ann"]
    for where in ({"only": "new"}, {"kind": 1}, "flag"):
        with pytest.raises(ValueError, match=r"'(only|where)' must be"):
            desk.history(where=where)


def test_search_in_the_pool(desk):
    page = desk.search("NUMBER 5")
    assert [item["id"] for item in page["items"]][:3] == [5, 50, 51]
    page = desk.search("film", start=55, n_items=7)
    assert (page["total"], [item["id"] for item in page["items"]]) == (
        60,
        [*range(55, 60)],
    )
    assert desk.search("") == desk.search("nowhere") == {"total": 0, "items": []}


def test_an_item_that_was_found_can_be_labeled(desk):
    desk.answer(57, "yes", "tab")
    assert desk.session.labels == {57: "yes"}


def test_descriptions(open_desk):
    desk = open_desk(
        descriptions={"yes": "a good film", "no": {"examples": ["the worst"]}}
    )
    yes, no = desk.state()["classes"]
    assert (yes["description"], no["examples"]) == ("a good film", ["the worst"])


def test_labels_from_before_the_session_are_counted(open_desk):
    desk = open_desk(given=["yes", "yes", "no"])
    desk.answer(3, "yes", "tab")
    desk.edit_class("no", new="never")
    counts = {entry["name"]: entry["count"] for entry in desk.state()["classes"]}
    assert counts == {"yes": 3, "never": 1}
    assert desk.state()["n_labeled"] == 1


def test_pairs_of_texts(open_desk):
    pairs = [(f"question {i}", f"answer {i}") for i in range(9)]
    model = ActiveLearner(LogisticRegression(), random_state=0)
    desk = open_desk(pairs, learner=model)
    assert desk.item(3)["text"] == ["question 3", "answer 3"]
    assert desk.search("ANSWER 4")["items"][0]["id"] == 4


@pytest.mark.long
def test_everything_is_resumed(open_desk):
    first = open_desk()
    _label(first, 7)
    shown = [item["id"] for item in first.next("tab", n_queries=1)]
    labels = first.session.labels
    again = open_desk()
    assert again.session.labels == labels
    assert [item["id"] for item in again.next("other", n_queries=1)] == shown


def test_wait_returns_when_something_changes(desk):
    version = desk.state()["version"]
    assert desk.wait(version, 0.01) == version
    thread = threading.Thread(target=_label, args=(desk, 1))
    thread.start()
    assert desk.wait(version, 120) != version
    thread.join()


def test_a_full_disk_refuses_the_answer(desk, monkeypatch):
    item = desk.next("tab")[0]
    desk.next("tab", n_queries=4)

    def fail(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("skactive._storage._files._fsync", fail)
        with pytest.raises(OSError, match="No space left"):
            desk.answer(item["id"], "yes", "tab")
    assert desk.session.labels == {}
    assert desk.answer(item["id"], "yes", "tab")["n_labeled"] == 1


@pytest.mark.long
@pytest.mark.slow
def test_two_people_at_once_lose_nothing(open_desk):
    desk = open_desk([f"text {i}" for i in range(200)])
    given = {"ann": {}, "bob": {}}

    def work(name):
        for i in range(50):
            item = desk.next(name, annotator=name, n_queries=2)[0]
            given[name][item["id"]] = ["yes", "no"][i % 2]
            desk.answer(item["id"], ["yes", "no"][i % 2], name, annotator=name)

    threads = [threading.Thread(target=work, args=(name,)) for name in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert desk.session.labels == given["ann"] | given["bob"]
    assert len(desk.session.labels) == 100


def test_unusable_arguments(open_desk, desk):
    with pytest.raises(ValueError, match="'n_labels' must be an int of at least 1"):
        open_desk(n_labels=0)
    desk = open_desk()
    with pytest.raises(ValueError, match="must be ids of the pool, got 'nowhere'"):
        desk.answer("nowhere", "yes", "tab")


@pytest.mark.parametrize("client", [["tab"], 5, None, "", "x" * 101])
def test_a_refused_call_records_nothing(desk, client):
    with pytest.raises(ValueError, match="'client' must be a str of at most 100"):
        desk.answer(3, "yes", client)
    with pytest.raises(ValueError, match="'client' must be a str of at most 100"):
        desk.skip(3, client)
    assert desk.session._core.state.seq == 1


@pytest.mark.slow
def test_what_front_ends_leave_behind_is_bounded(desk):
    for i in range(1500):
        desk.release(f"tab {i}")
        desk.next(f"tab {i}", n_queries=1)
    assert len(desk._leases._seen) <= 1000


def test_invented_annotators_do_not_open_batches_without_limit(desk, monkeypatch):
    monkeypatch.setattr("skactive.session._leases._MOST_ANNOTATORS", 3)
    for i in range(3):
        assert desk.next("tab", annotator=f"name {i}", n_queries=1)
    with pytest.raises(ValueError, match="texts wait for 3 annotators"):
        desk.next("tab", annotator="name 3", n_queries=1)
    waiting = {batch.annotator for batch in desk.session.open_batches}
    assert waiting == {"name 0", "name 1", "name 2"}
    assert desk.next("tab", annotator="name 1", n_queries=1)


SEVERAL = {"classes": ["joy", "love", "anger"], "multi_label": True, "refit": False}


def test_several_classes_are_counted_one_by_one(open_desk):
    desk = open_desk(session=SEVERAL, suggestions={0: ["love", "joy"], 1: ["joy"]})
    assert desk.state()["target"] == "multi-label"
    for id, names in enumerate([["joy", "love"], [], ["love"], ["love"]]):
        state = desk.answer(id, names, "tab")
    with pytest.raises(ValueError, match="each class of an item once"):
        desk.answer(4, ["love", "love"], "tab")
    assert [entry["count"] for entry in state["classes"]] == [1, 3, 0]
    assert desk.session.labels[3] == ["love"]
    # Sets of names are compared, in any order.
    compared = state["suggestions"]
    assert (compared["compared"], compared["agreed"]) == (2, 1)
    assert desk.item(1)["label"] == []
    assert desk.item(4)["prediction"] is None


def test_each_of_several_classes_must_be_known(open_desk):
    desk = open_desk(session=SEVERAL)
    with pytest.raises(ValueError, match=r"must be among the classes .* got 'hate'"):
        desk.answer(0, ["joy", "hate"], "tab")
    desk.add_class("hate")
    desk.answer(0, ["joy", "hate"], "tab")
    desk.answer(0, ["hate", "joy"], "tab")  # the same answer again
    assert _events(desk).count("tell") == 1
    desk.answer(1, "joy", "tab")  # one name is a list of one
    assert desk.session.labels[1] == ["joy"]


def test_predictions_of_several_classes_are_lists(open_desk):
    model = OneVsRestClassifier(LogisticRegression(C=100))
    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), model), random_state=0)
    desk = open_desk(session={**SEVERAL, "refit": True}, learner=learner)
    for id, text in enumerate(TEXTS[:20]):
        desk.answer(id, ["joy", "love"] if "good" in text else [], "tab")
    desk.session.refit()
    good, bad = desk.item(21), desk.item(20)
    assert (good["prediction"], bad["prediction"]) == (["joy", "love"], [])
    assert {name for name, _ in good["top"][:2]} == {"joy", "love"}
    # No single number fits a set; `top` has the probability of each class.
    assert good["probability"] is bad["probability"] is None
    assert desk.state()["model"]["error"] is None


def test_check_answers_with_several_classes(open_desk):
    model = OneVsRestClassifier(LogisticRegression(C=100))
    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), model), random_state=0)
    desk = open_desk(session={**SEVERAL, "refit": True}, learner=learner)
    for id, text in enumerate(TEXTS[:30]):
        is_good = ("good" in text) != (id == 12)  # one answer is wrong
        desk.answer(id, ["joy", "love"] if is_good else ["anger"], "tab")
    found = _check(desk, 3)["items"]
    assert found[0]["id"] == 12
    assert found[0]["label"] == ["joy", "love"]
    assert found[0]["probability"] is None


@pytest.mark.parametrize("threshold", [0.0, 1.0], ids=["all", "none"])
def test_an_explanation_of_a_set_is_about_the_predicted_classes(open_desk, threshold):
    class Thresholded(OneVsRestClassifier):
        def predict(self, X):
            return (self.predict_proba(X) > threshold).astype(int)

    model = Thresholded(LogisticRegression(C=100))
    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), model), random_state=0)
    desk = open_desk(session={**SEVERAL, "refit": True}, learner=learner)
    for id, text in enumerate(TEXTS[:20]):
        more = ["love"] * (id % 3 == 0)
        desk.answer(id, ["joy", *more] if "good" in text else ["anger", *more], "tab")
    desk.session.refit()
    about = desk.explain(21)
    p = dict(about["top"])
    assert sorted(about["prediction"]) == sorted(x for x in p if p[x] > threshold)
    expected = np.mean([*p.values()]) if threshold == 0 else 1 - max(p.values())
    assert about["probability"] == pytest.approx(expected)


def test_numbers(open_desk):
    model = make_pipeline(TfidfVectorizer(), Ridge())
    learner = ActiveLearner(model, strategy="random", random_state=0)
    desk = open_desk(learner=learner, session={"classes": None, "refit": True})
    for id in range(20):
        state = desk.answer(id, id / 10, "tab")
    assert (state["target"], state["classes"]) == ("regression", [])
    assert desk.item(0)["label"] == 0.0
    for label in ("1", True):
        with pytest.raises(TypeError, match=r"'labels' must .* got .*for 30"):
            desk.answer(30, label, "tab")
    desk.session.refit()
    item = desk.item(30)
    assert isinstance(item["prediction"], float)
    assert (item["probability"], item["top"]) == (None, [])
    assert desk.state()["estimate"] == ""


def test_the_last_answers_and_what_the_model_said_before(desk):
    _label(desk, 4)
    recent = desk.state()["recent"]
    assert len(recent) == 4
    assert recent[-1]["predicted"] is None  # there was no model
    others = _free(desk, 12)
    for id in others:
        desk.answer(id, _truth(desk.item(id)), "other")
    desk.session.refit()
    item = next(item for item in desk.next("tab", n_queries=9) if item["prediction"])
    other = {"yes": "no", "no": "yes"}[item["prediction"]]
    recent = desk.answer(item["id"], other, "tab")["recent"]
    assert len(recent) == 10
    assert recent[0] == {
        "id": item["id"],
        "label": other,
        "predicted": item["prediction"],
        "text": item["text"],
    }
    assert [entry["id"] for entry in recent[1:]] == others[:-10:-1]
    # Later predictions know the answer; what was shown before it stays.
    desk.session.refit()
    desk.item(item["id"])
    assert desk.state()["recent"][0]["predicted"] == item["prediction"]
    wrong = "no" if desk.session.labels[others[-2]] == "yes" else "yes"
    desk.answer(others[-2], wrong, "tab")  # a correction is the last answer
    last = [entry["id"] for entry in desk.state()["recent"]]
    assert last[:2] == [others[-2], item["id"]]
    assert desk.state("ann")["recent"] == []
    desk.undo(desk.state()["undo"]["seq"], "tab")
    assert desk.state()["recent"][0]["id"] == item["id"]
    (new,) = desk.next("tab", n_queries=1)
    assert desk.skip(new["id"], "tab")["recent"][0]["label"] is None


def test_other_columns_of_an_item(open_desk):
    desk = open_desk(columns=lambda id: {"author": f"author {id}"})
    for item in [*desk.next("tab"), desk.item(7)]:
        assert item["read"] is None  # no encoder cuts anything
        assert item["columns"] == {"author": f"author {item['id']}"}


@pytest.mark.parametrize("pads", [False, True])  # as the tokenizer of MiniLM does
def test_where_the_encoder_stops_reading(open_desk, tiny_bert, tmp_path, pads):
    if pads:
        tokenizer = Tokenizer.from_file(str(Path(tiny_bert, "tokenizer.json")))
        tokenizer.enable_padding(length=32)
        tiny_bert = shutil.copytree(tiny_bert, tmp_path / "padded")
        tokenizer.save(str(tiny_bert / "tokenizer.json"))
        tiny_bert = str(tiny_bert)
    model = make_pipeline(BertFeatures(tiny_bert, max_length=8), LogisticRegression())
    learner = ActiveLearner(model, random_state=0)
    texts = ["a good film", "a good film and a bad film " * 9, ("é" * 40)]
    desk = open_desk(texts, learner=learner, session={"refit": False})
    desk.item(0)  # the tokenizer is opened in a thread
    desk._reader._thread.join(60)
    short, long, _ = (desk.item(id) for id in range(3))
    assert short["read"] is None
    assert 0 < long["read"] < len(long["text"])
    features = BertFeatures(tiny_bert, max_length=8)
    whole, part = features.transform([long["text"], long["text"][: long["read"]]])
    assert np.array_equal(whole, part)
    (less,) = features.transform([long["text"][: long["read"]].rsplit(" ", 1)[0]])
    assert not np.array_equal(whole, less)


@pytest.mark.slow
def test_a_goal_is_said_in_the_line_and_on_the_page(open_desk):
    desk = open_desk(session={"audit_every": 1}, until="shares:20")
    _label(desk, 19)
    assert "more answers: each share within 20" in desk.state()["estimate"]
    _label(desk, 11)
    expected = "goal reached: each share within 20 points"
    _wait_for_estimate(desk, 20)
    assert desk.state()["estimate"].count(expected) == 1
    assert desk.quality()["goal"] == expected
    with pytest.raises(ValueError, match="'until' must be 'shares:3'"):
        open_desk(until="shares:0")
