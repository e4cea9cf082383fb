"""What describes the classes: kept, joined, undone, resumed, and learned from."""

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.session import Desk

from ._helpers import events

ABOUT = {"ham": "pigs", "spam": {"description": "letters", "examples": ["buy", "now"]}}
TEXTS = [f"{'dog' if i % 2 else 'cat'} number {i}" for i in range(40)]
WORDS = ActiveLearner(
    make_pipeline(TfidfVectorizer(), LogisticRegression(C=100)),
    "random",
    batch_size=4,
    random_state=0,
)


@pytest.fixture
def open_desk(open_session):
    opened = []

    def open_desk(descriptions=ABOUT, classes=("ham", "spam", "eggs"), **options):
        for desk in opened:
            desk.close()
            desk.session.close()
        session = open_session(classes=classes and list(classes), **options)
        opened.append(Desk(session, descriptions=descriptions))
        return opened[-1]

    yield open_desk
    for desk in opened:
        desk.close()


def said(desk):
    """Return what the state shows of each class, without counts."""
    return [{k: v for k, v in x.items() if k != "count"} for x in classes(desk)]


def classes(desk):
    return desk.state()["classes"]


def entry(desk, name):
    found = next(x for x in classes(desk) if x["name"] == name)
    return found["description"], found["examples"], found["taken"]


def undo(desk):
    return desk.undo(desk.state()["undo"]["seq"], "tab")


STEPS = [
    lambda desk: desk.edit_class("ham", description="pigs, and pig meat"),
    lambda desk: desk.answer(3, "eggs", "tab", example="of a hen"),
    lambda desk: desk.edit_class("ham", new="bacon"),
    lambda desk: desk.edit_class("bacon", new=" meat ", examples=["fried"], place=2),
    lambda desk: desk.add_class("toast", description="bread", examples=["dry"]),
    lambda desk: desk.edit_class("toast", taken=["a slice"], place=0),
    lambda desk: desk.edit_class("eggs", new="spam"),
    lambda desk: desk.remove_class("toast"),
]


def test_every_change_is_resumed_and_undone(open_desk):
    desk, shown = open_desk(), []
    for step in STEPS:
        shown.append(said(desk))
        step(desk)
        now = said(desk)
        desk = open_desk(None, None)  # as after a kill
        assert said(desk) == now
    assert entry(desk, "meat") == ("pigs, and pig meat", ["fried"], [])
    assert entry(desk, "spam") == ("letters", ["buy", "now"], ["of a hen"])
    assert [x["name"] for x in now] == ["spam", "meat"]
    for before in reversed(shown):
        undo(desk)
        assert said(desk) == before
    assert desk.session.labels == {}
    assert said(open_desk(None, None)) == shown[0]


def test_a_change_names_what_undo_takes_back(open_desk):
    desk = open_desk()
    desk.edit_class("ham", description="pork")
    assert desk.state()["undo"]["event"] == "describe"
    desk.edit_class("ham", place=1)
    last = desk.state()["undo"]
    assert (last["event"], last["name"]) == ("describe", "ham")
    assert [x["key"] for x in said(desk)] == ["1", "2", "3"]
    assert [x["name"] for x in said(desk)] == ["spam", "ham", "eggs"]
    seq = desk.state()["seq"]
    desk.edit_class("ham", description="pork", place=1)  # nothing new
    assert desk.state()["seq"] == seq


def test_the_order_of_others_stays_if_one_is_undone(open_desk):
    desk = open_desk()
    desk.edit_class("ham", "ann", place=2)
    desk.add_class("toast", "bob")
    desk.undo(desk.state("ann")["undo"]["seq"], "tab", "ann")
    assert [x["name"] for x in said(desk)] == ["ham", "spam", "eggs", "toast"]


def test_merged_classes_join_what_describes_them(open_desk):
    desk = open_desk()
    desk.edit_class("ham", new="spam", examples=["now", "pink"])
    assert entry(desk, "spam") == ("letters\npigs", ["buy", "now", "pink"], [])
    undo(desk)
    assert entry(desk, "spam") == ("letters", ["buy", "now"], [])
    assert entry(desk, "ham") == ("pigs", [], [])


def test_an_added_class_that_stays_keeps_its_words(open_desk):
    desk = open_desk()
    desk.add_class("toast", "ann", description="bread")
    desk.answer(3, "toast", "tab", "bob")
    desk.undo(desk.state("ann")["undo"]["seq"], "tab", "ann")
    assert entry(desk, "toast") == ("bread", [], [])


def test_what_a_file_says_replaces_only_where_it_is_new(open_desk):
    desk = open_desk()
    desk.edit_class("ham", description="pork")
    desk.edit_class("spam", new="letters")
    seq = desk.state()["seq"]
    desk = open_desk()  # the same file
    assert desk.state()["seq"] == seq
    assert entry(desk, "ham")[0] == "pork"
    desk = open_desk(ABOUT | {"spam": "unwanted"})
    assert entry(desk, "ham")[0] == "pork"
    assert entry(desk, "letters") == ("unwanted", [], [])
    assert desk.state()["undo"]["event"] == "rename"  # an opening is not undone


def test_the_model_learns_from_new_words_without_labels(open_session):
    about = {"animal": "cat", "thing": ["dog"]}
    with open_session(TEXTS, learner=WORDS, classes=about) as session:
        desk = Desk(session)
        assert entry(desk, "animal") == ("cat", [], [])
        session.ask()
        before = session.learner.predict(["a cat", "a dog"]).tolist()
        assert before == ["animal", "thing"]
        desk.edit_class("animal", description="dog")
        desk.edit_class("thing", description="cat", taken=["a dog"])
        session.ask()
        assert session.learner.predict(["a cat", "a dog"]).tolist() == before[::-1]
        texts = session.learner.estimator.descriptions
        assert texts == {"animal": ["dog"], "thing": ["cat"]}  # not what is taken
        undo(desk)
        undo(desk)
        session.ask()
        assert session.learner.predict(["a cat", "a dog"]).tolist() == before
    session = open_session(TEXTS, learner=WORDS)
    session.ask()
    assert session.learner.predict(["a cat", "a dog"]).tolist() == before


def test_words_reach_a_model_in_the_background(open_session):
    about = {"animal": "cat", "thing": "dog"}
    session = open_session(TEXTS, learner=WORDS, classes=about, refit="background")
    desk = Desk(session)
    version = desk.state()["version"]
    desk.edit_class("animal", description="dog")
    desk.edit_class("thing", description="cat")
    session.ask()
    while desk.state()["model"]["training"]:
        desk.wait(version, 0.1)
    assert session.newest_model.learner.predict(["a cat"]).tolist() == ["thing"]
    desk.close()


def test_classes_that_nobody_described_are_only_names(open_session):
    blank = dict.fromkeys(["animal", "thing"])
    session = open_session(TEXTS, learner=WORDS, classes=blank)
    desk = Desk(session)
    session.tell([0, 1], ["animal", "thing"], unasked=True)
    session.refit()
    assert not hasattr(session.learner.estimator, "descriptions")
    desk.edit_class("animal", description="cat")
    session.refit()
    texts = {"animal": ["cat"], "thing": []}
    assert session.learner.estimator.descriptions == texts
    desk.edit_class("animal", new="pet")
    desk.close()
    session.close()
    session = open_session(TEXTS, learner=WORDS)
    session.refit()
    texts = {"pet": ["cat"], "thing": []}
    assert session.learner.estimator.descriptions == texts


def test_a_prediction_has_the_new_name_before_the_next_model(open_session):
    names = ["animal", "thing", "pet"]
    session = open_session(TEXTS, learner=WORDS, classes=names, refit=False)
    desk = Desk(session)
    ids = list(range(12))
    session.tell(ids, [names[i % 2] for i in ids], unasked=True)
    session.refit()
    (item,) = desk.next("tab", n_queries=1)
    old = item["prediction"]
    desk.edit_class(old, new="new")
    again = desk.item(item["id"])
    assert again["prediction"] == "new"
    assert dict(map(tuple, again["top"])).keys() == {"new", *names[:2]} - {old}
    desk.answer(item["id"], "pet", "tab")
    assert desk.state()["recent"][0]["predicted"] == "new"
    desk.close()


def test_an_opening_without_words_records_nothing(open_session):
    session = open_session(classes=["ham", "spam"])
    Desk(session, descriptions={"ham": "", "spam": {"examples": []}}).close()
    assert events(session) == []


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"name": "eggs"}, ValueError, "'name' must be a class of the session"),
        ({"description": 3}, TypeError, "'description' must be a str, got 3"),
        ({"examples": "abc"}, TypeError, "'examples' must be a list of str, got 'abc'"),
        ({"taken": [1]}, TypeError, "'taken' must be a list of str"),
        ({"place": -1}, ValueError, "'place' must be an int of at least 0, got -1"),
        ({"new": " "}, ValueError, "'new' must be the name of a class"),
    ],
)
def test_bad_changes_are_refused(open_desk, arguments, error, match):
    desk = open_desk(None, ("ham", "spam"))
    with pytest.raises(error, match=match):
        desk.edit_class(**{"name": "ham", **arguments})
    assert events(desk.session) == []


def test_classes_have_no_order_while_any_label_is_allowed(open_desk):
    desk = open_desk(None, None)
    desk.answer(3, desk.add_class("ham")["classes"][0]["name"], "tab")
    desk.edit_class("ham", description="pigs")
    assert entry(desk, "ham")[0] == "pigs"
    with pytest.raises(ValueError, match="'place' needs a session"):
        desk.edit_class("ham", place=0)
