"""Several questions of each text: whose turn it is, the audit, undo, and a crash."""

import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.estimation import estimate_prevalence
from skactive.session import Screens, read_labels
from skactive.session import _questions as module

TEXTS = [
    f"{'good' if i % 2 else 'bad'} {['law', 'art', 'war'][i % 3]} number {i}"
    for i in range(90)
]
ASKED = {"topic": ["law", "art", "war"], "tone": ["good", "bad"], "odd": ["yes", "no"]}


def truth(name, text):
    if name == "odd":
        return "yes" if int(text.split()[-1]) % 2 else "no"
    return text.split()[name == "topic"]


@pytest.fixture
def open_desks(tmp_path):
    """Open the desks of three questions, by name; those before are closed."""
    opened = []

    def close():
        for thing in opened:
            thing.close()
        opened.clear()

    def open_desks(taught=None, only_if=(), **options):
        close()
        screens = Screens()
        for name, classes in ASKED.items():
            model = make_pipeline(TfidfVectorizer(), LogisticRegression())
            learner = ActiveLearner(model, "margin", batch_size=5, random_state=0)
            if name in (taught or {}):
                y = [truth(name, text) for text in taught[name]]
                learner.teach(taught[name], y, refit=False)
            given = {"classes": classes, "refit": "background", "audit_every": 10}
            folder = tmp_path / name
            session = LabelingSession(learner, TEXTS, folder, **given | options)
            more = {"n_labels": 40, "only_if": dict(only_if).get(name)}
            opened.extend([session, screens.open_desk(name, session, **more)])
        opened.reverse()
        return screens.desks

    yield open_desks
    close()


def answer(desks, shown, client="tab", who=None):
    """Answer what is open of a text; return the last state."""
    state = None
    for name, item in shown["questions"].items():
        if item["open"]:
            label = truth(name, item["text"])
            state = desks[name].answer(item["id"], label, client, who)
    return state


def label(desks, n, client="tab", who=None):
    ids = []
    for _ in range(n):
        shown = next(iter(desks.values())).next(client, who, 1)
        if not shown:
            break
        ids.append(shown[0]["id"])
        answer(desks, shown[0], client, who)
    return ids


def test_a_text_is_shown_once_with_all_of_its_questions(open_desks):
    desks = open_desks()
    ids = label(desks, 30)
    assert len(set(ids)) == 30
    for name, desk in desks.items():
        assert desk.session.labels == {i: truth(name, TEXTS[i]) for i in ids}
    state = desks["tone"].state()
    assert [(x["name"], x["n_labeled"]) for x in state["questions"]] == [
        ("topic", 30),
        ("tone", 30),
        ("odd", 30),
    ]
    assert state["question"] == "tone"
    assert state["version"] == desks["topic"].version()


def test_the_questions_choose_in_turn(open_desks):
    desks = open_desks()
    label(desks, 40)
    models = [desk.session._core.state.batches for desk in desks.values()]
    assert models[0] == models[1] == models[2]  # the same texts, in the same order
    begun = []
    for desk in desks.values():  # the one that chose names no model of another one
        asks = [e for e in desk.session._core.state.events if e["event"] == "ask"]
        begun.append([e["t"] for e in asks])
    first = [min(range(3), key=lambda i: begun[i][n]) for n in range(len(begun[0]))]
    assert {*first} == {0, 1, 2}


def test_all_questions_have_the_same_audit_and_it_is_blind(open_desks):
    taught = {"tone": TEXTS[:20], "odd": TEXTS[5:9]}
    desks = open_desks(taught)
    blind = {}
    for _ in range(45):
        (shown,) = desks["topic"].next("tab", None, 1)
        blind[shown["id"]] = [x["blind"] for x in shown["questions"].values()]
        answer(desks, shown)
    drawn = {name: {*desk.session._core.state.audited} for name, desk in desks.items()}
    assert len(drawn["topic"]) >= 12
    given = {"topic": set(), "tone": {*range(20)}, "odd": {*range(5, 9)}}
    every = set.union(*drawn.values())
    for name in desks:  # what has a label already is in no sample
        assert drawn[name] == every - given[name]
    assert all(len({*each}) == 1 for each in blind.values())
    assert all(all(blind[i]) for i in every & blind.keys())
    samples = {}
    for name, desk in desks.items():
        labels, left_out = desk.session._core.queue.choose_sample(True)
        assert not left_out
        assert labels == {i: truth(name, TEXTS[i]) for i in labels}
        samples[name] = {*labels}
        assert samples[name] <= drawn[name] | {i for i in labels if blind.get(i)}
    assert len(samples["topic"]) >= 10
    # Up to the first text that one of them has not drawn, the samples are the same.
    assert samples["odd"] - given["tone"] <= samples["topic"] | samples["tone"]


@pytest.mark.slow
def test_a_question_can_depend_on_the_answer_to_another_one(open_desks):
    desks = open_desks(only_if={"tone": ("topic", "law")})
    for _ in range(140):
        if not (shown := desks["topic"].next("tab", None, 1)):
            break
        items = shown[0]["questions"]
        if items["tone"]["open"]:  # after the answer to the other one
            assert truth("topic", items["tone"]["text"]) == "law"
            assert not items["topic"]["open"]
        answer(desks, shown[0])
    topics, tones = (desks[name].session for name in ("topic", "tone"))
    law = [i for i, label in topics.labels.items() if label == "law"]
    assert len(topics.labels) == len(TEXTS)
    assert {*tones.labels} == {*law}
    assert len(law) == 30
    assert desks["tone"].state()["done"]


def test_shares_of_a_question_are_those_among_its_texts(open_desks):
    desks = open_desks(only_if={"tone": ("topic", "law")})
    label(desks, 60)
    topics, tones = (desks[name].session for name in ("topic", "tone"))
    sample, _ = topics._core.queue.choose_sample(True)
    law = [i for i in sample if sample[i] == "law"]
    asked, _ = tones._core.queue.choose_sample(True)
    assert [*asked] == [i for i in law if i in tones.labels][: len(asked)]
    assert len(asked) > 4
    labels = [*asked.values()]
    known = estimate_prevalence(labels, classes=ASKED["tone"])
    assert tones.prevalence().estimates == known.estimates  # no text helps outside
    topics.tell(law[0], "art")
    assert law[0] not in tones._core.queue.choose_sample(True)[0]


@pytest.mark.slow
def test_given_labels_are_not_asked_for(open_desks):
    desks = open_desks({"tone": TEXTS[:45]})
    ids = label(desks, 60)
    assert {*desks["tone"].session.labels} == {i for i in ids if i >= 45}
    assert {*desks["topic"].session.labels} == {*ids}
    assert any(i < 45 for i in ids)


def test_what_one_tab_or_person_has_no_other_gets(open_desks):
    desks = open_desks(annotator="ann")
    first, second = (desks["topic"].next(tab, "ann", 2) for tab in ("a", "b"))
    third = desks["topic"].next("c", "bob", 2)
    ids = [item["id"] for item in (*first, *second, *third)]
    assert len({*ids}) == 6
    desks["topic"].answer(first[0]["id"], "law", "a", "ann")  # two are open still
    again = desks["odd"].next("b", "ann", 4)
    assert not {first[0]["id"], first[1]["id"]} & {item["id"] for item in again}
    assert desks["tone"].next("a", "ann", 2)[0]["id"] == first[0]["id"]
    is_open = desks["tone"].next("a", "ann", 1)[0]["questions"]
    assert [item["open"] for item in is_open.values()] == [False, True, True]
    desks["topic"].release("a")
    assert first[0]["id"] in [x["id"] for x in desks["topic"].next("d", "ann", 9)]


@pytest.mark.slow
def test_tabs_and_people_at_once_get_each_text_once(open_desks):
    desks = open_desks(annotator="ann")

    def work(number):
        return label(desks, 40, f"tab {number}", ["ann", "bob"][number % 2])

    with ThreadPoolExecutor(4) as pool:
        every = [i for ids in pool.map(work, range(4)) for i in ids]
    assert sorted(every) == [*range(90)]
    for name, desk in desks.items():
        assert desk.session.labels == {i: truth(name, TEXTS[i]) for i in range(90)}
        tells = [e for e in desk.session._core.state.events if e["event"] == "tell"]
        assert len(tells) == 90
    assert desks["topic"].state()["done"]


def test_the_texts_of_a_silent_tab_come_back(open_desks, monkeypatch):
    desks = open_desks()
    (lost,) = desks["topic"].next("closed", None, 1)
    monkeypatch.setattr("skactive.session._leases._STALE_SECONDS", -1)
    assert lost["id"] in [x["id"] for x in desks["topic"].next("tab", None, 9)]


def test_undo_takes_back_the_last_step_of_any_question(open_desks):
    desks = open_desks()
    (shown,) = desks["topic"].next("tab", None, 1)
    steps = []
    for name in ("tone", "topic", "odd"):
        steps.append(desks[name].answer(shown["id"], ASKED[name][0], "tab")["undo"])
    assert [step["question"] for step in steps] == ["tone", "topic", "odd"]
    with pytest.raises(ValueError, match="Nothing was changed"):
        desks["tone"].undo(steps[0]["seq"], "tab")
    for name in ("odd", "topic", "tone"):
        last = desks["topic"].state()["undo"]
        assert last["question"] == name
        back = desks[name].undo(last["seq"], "tab")
        assert (back["id"], back["question"]) == (shown["id"], name)
        assert back["questions"][name]["open"]
        assert desks["topic"].next("tab", None, 1)[0]["id"] == shown["id"]
    assert desks["topic"].state()["undo"] is None


def test_what_was_answered_before_a_restart_comes_back_by_undo(open_desks):
    (id,) = label(open_desks(), 1)
    desks = open_desks()
    label_of = desks["odd"].session.labels
    back = desks["odd"].undo(desks["odd"].state()["undo"]["seq"], "tab")
    assert back["id"] == id in label_of
    assert [x["open"] for x in back["questions"].values()] == [False, False, True]
    assert desks["tone"].next("tab", None, 1)[0]["id"] == id


def test_a_text_is_skipped_for_all_questions_that_are_open(open_desks):
    desks = open_desks()
    (shown,) = desks["topic"].next("tab", None, 1)
    desks["tone"].answer(shown["id"], "good", "tab")
    for _ in range(2):  # an answer that is sent again
        desks["topic"].skip(shown["id"], "tab")
    skipped = [shown["id"] in desk.session.skipped for desk in desks.values()]
    assert skipped == [True, False, True]
    assert desks["topic"].next("tab", None, 1)[0]["id"] != shown["id"]
    last = desks["topic"].state()["undo"]
    back = desks[last["question"]].undo(last["seq"], "tab")
    assert [x["open"] for x in back["questions"].values()] == [True, False, True]
    assert desks["topic"].state()["undo"]["question"] == "tone"


def test_an_answer_that_is_sent_again_is_recorded_once(open_desks):
    desks = open_desks()
    (shown,) = desks["topic"].next("tab", None, 1)
    for _ in range(3):
        desks["odd"].answer(shown["id"], "yes", "tab", seconds=1.0)
    tells = [e["event"] for e in desks["odd"].session._core.state.events]
    assert tells.count("tell") == 1


def test_random_texts_only_are_for_all_questions(open_desks):
    desks = open_desks()
    label(desks, 20)
    assert desks["tone"].draw(True)["random_only"]
    assert [x.state()["random_only"] for x in desks.values()] == [True] * 3
    ids = label(desks, 15)
    for desk in desks.values():
        assert {*ids} <= {*desk.session._core.state.audited}


@pytest.mark.slow
def test_two_people_get_the_texts_of_the_overlap(open_desks):
    desks = open_desks(annotator="ann", overlap=0.5)
    for who in ("ann", "bob", "ann", "bob"):
        label(desks, 100, who, who)
    shared = {}
    for name, desk in desks.items():
        answers = desk.session.answers
        shared[name] = {i for i, each in answers.items() if len(each) == 2}
        assert answers.keys() == {*range(90)}
    assert 30 < len(shared["topic"]) < 60
    assert shared["topic"] == shared["tone"] == shared["odd"]


def test_a_crash_between_the_sessions_is_repaired(open_desks, monkeypatch):
    desks = open_desks()

    def crash(self, annotator):
        raise KeyError("as if killed")

    with monkeypatch.context() as patch:
        patch.setattr(module.Screens, "_share", crash)
        with pytest.raises(KeyError):
            desks["topic"].next("tab", None, 1)
        desks["topic"]._screens._shared.add(None)
        with pytest.raises(KeyError):
            desks["topic"].next("tab", None, 1)
    open_now = [[*x.session._core.state.open.values()] for x in desks.values()]
    assert [len(x) for x in open_now] == [1, 0, 0]
    desks = open_desks()
    (shown,) = desks["topic"].next("tab", None, 1)
    assert [x["open"] for x in shown["questions"].values()] == [True] * 3
    audited = [{*x.session._core.state.audited} for x in desks.values()]
    longest = max(audited, key=len)  # the next five may be asked for in the background
    assert all(len(ids) >= 5 and ids <= longest for ids in audited)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.slow
def test_nothing_that_was_answered_is_lost_by_a_kill(open_desks, tmp_path):
    code = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from pathlib import Path
    from tests.session import test_questions as own
    make = own.open_desks.__wrapped__(Path(sys.argv[2]))
    desks = next(make)()
    while True:
        (shown,) = desks["topic"].next("tab", None, 1)
        for name, item in shown["questions"].items():
            if item["open"]:
                desks[name].answer(item["id"], own.truth(name, item["text"]), "tab")
                print(name, item["id"], flush=True)
    """
    root = str(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    told = {name: set() for name in ASKED}
    for n in (4, 11, 14):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), root, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": root},
        )
        for _ in range(n):
            name, id = process.stdout.readline().split()
            told[name].add(int(id))
        process.kill()
        rest = process.stdout.read()
        for line in rest.splitlines():
            if line.count(" ") == 1 and line.split()[1].isdigit():
                told[line.split()[0]].add(int(line.split()[1]))
        process.wait()
        for name, ids in told.items():
            labels = read_labels(tmp_path / name)
            assert ids <= labels.keys()
            assert len(labels) <= len(ids) + 1
            told[name] = {*labels}
    desks = open_desks()
    label(desks, 90)
    for name, desk in desks.items():
        assert desk.session.labels == {i: truth(name, TEXTS[i]) for i in range(90)}
