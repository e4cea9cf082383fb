"""Answers of machines in a session: apart from labels, and what they are used for."""

import json
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import cohen_kappa_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, load, save
from skactive._utils._repeatable import start_daemon
from skactive.annotators import ChatAnnotator, ColumnAnnotator
from skactive.estimation import alternative_annotator_test, estimate_quality
from skactive.semi_supervised import MixtureClassifier
from skactive.session import Desk
from tests._utils._hostile import KINDS, count_work, drip, serve_badly

PATIENCE = 30  # seconds; a busy machine may be slow

N = 300
RNG = np.random.default_rng(1)
CODES = RNG.choice(3, N, p=[0.2, 0.3, 0.5])
NAMES = np.array(["bug", "praise", "question"])
TRUTH = NAMES[CODES].tolist()
TEXTS = [
    " ".join([*(f"{TRUTH[i]}{word}" for word in RNG.choice(25, 2)), str(i)])
    for i in range(N)
]
# The machine is wrong on every fifth text.
SAID = [str(NAMES[(code + (i % 5 == 0)) % 3]) for i, code in enumerate(CODES)]


class Machine:
    """An annotator that counts the texts that it is asked about."""

    def __init__(self, answer, name="machine", settings=None):
        self.answer, self.name, self.settings = answer, name, settings or {"v": 1}
        self.asked = []

    def annotate(self, texts):
        self.asked += texts
        return [self.answer(text) for text in texts]

    def describe(self):
        return self.settings


def column(labels=SAID, **options):
    return ColumnAnnotator(TEXTS, labels, **options)


def make_learner(model=None, front=TfidfVectorizer):
    model = make_pipeline(front(), model or LogisticRegression(C=10))
    return ActiveLearner(model, "margin", batch_size=10, random_state=0)


DESCRIBED = {
    "learner": make_learner(front=partial(HashingVectorizer, n_features=2**12)),
    "classes": {name: f"{name}1 {name}2" for name in NAMES.tolist()},
}


def label(session, n=100, y=TRUTH, **options):
    while len(session.labels) < n:
        ids = session.ask().ids
        session.tell(ids, [y[id] for id in ids], **options)


@pytest.fixture
def session(open_session):
    return open_session(TEXTS, learner=make_learner(), audit_every=2)


def events_of(session):
    lines = Path(session.folder, "journal.jsonl").read_text().splitlines()
    return [e for e in map(json.loads, lines) if e["event"] == "annotate"]


def test_answers_of_a_machine_are_no_labels(session, open_session):
    scores = [0.5 + i / 1000 for i in range(N)]
    assert session.annotate(column(confidences=scores, name="llm")) == N
    assert session.labels == session.answers == {}
    assert session.audited == []
    label(session, 20)
    assert len(session.labels) == 20
    assert all(one.keys() == {None} for one in session.answers.values())
    assert session.machine_answers == {"llm": dict(enumerate(SAID))}
    events = events_of(session)
    assert all(e["machine"] is True and e["by"] == "llm" for e in events)
    assert [x for e in events for x in e["confidences"]] == scores
    assert events[0]["settings"]["annotator"] == "ColumnAnnotator"
    assert not any("settings" in e for e in events[1:])
    assert session._core.state.find_machine(3) == (SAID[3], scores[3])
    before = session.labels
    session.close()
    again = open_session(TEXTS, learner=make_learner(), audit_every=2)
    assert again.machine_answers == {"llm": dict(enumerate(SAID))}
    assert again.labels == before


def test_only_what_is_missing_is_asked(session):
    machine = Machine(lambda text: ("bug", None))
    assert session.annotate(machine, [5, 7]) == 2
    assert session.annotate(machine) == N - 2
    assert session.annotate(machine) == 0
    assert sorted(machine.asked) == sorted(TEXTS)
    assert "confidences" not in events_of(session)[0]
    # Answers to another question replace the earlier ones.
    other = Machine(lambda text: ("praise", 0.5), settings={"v": 2})
    assert session.annotate(other, [9]) == 1
    assert session.machine_answers == {"machine": {9: "praise"}}
    assert session.annotate(machine, [9]) == 1
    assert session.machine_answers == {"machine": {9: "bug"}}


def test_what_a_server_accepts_is_no_other_question(session):
    machine = Machine(lambda text: ("bug", None), settings={"v": 1, "sent": None})
    session.annotate(machine, [5])
    machine.settings = {"v": 1, "sent": ["temperature"]}
    assert session.annotate(machine, [5, 7]) == 1
    assert session.machine_answers == {"machine": {5: "bug", 7: "bug"}}
    assert [e["settings"]["sent"] for e in events_of(session)] == [
        None,
        ["temperature"],
    ]
    session.annotate(machine, [8])
    assert "settings" not in events_of(session)[-1]


def test_a_failure_keeps_what_was_answered(session):
    def answer(text):
        if text == TEXTS[40]:
            raise ConnectionError("gone")
        return "bug", None

    with pytest.raises(ConnectionError):
        session.annotate(Machine(answer))
    done = session.machine_answers["machine"]
    assert list(done) == list(range(len(done)))
    assert 0 < len(done) <= 40
    machine = Machine(lambda text: ("bug", None))
    session.annotate(machine)
    assert machine.asked == TEXTS[len(done) :]


def test_what_failed_is_asked_again(session):
    broken = {TEXTS[3], TEXTS[20]}

    def answer(text):
        return (None, None) if text in broken else ("bug", None)

    session.annotate(Machine(answer))
    assert len(session.machine_answers["machine"]) == N - 2
    broken.discard(TEXTS[3])
    machine = Machine(answer)
    assert session.annotate(machine) == 2
    assert machine.asked == [TEXTS[3], TEXTS[20]]
    assert events_of(session)[-1]["ids"] == [3]
    assert len(session.machine_answers["machine"]) == N - 1


def test_a_renamed_class_has_its_new_name(open_session):
    session = open_session(TEXTS, learner=make_learner(), classes=NAMES.tolist())
    session.annotate(column())
    session.rename_class("bug", "error")
    assert {*session.machine_answers["column"].values()} == {
        "error",
        "praise",
        "question",
    }
    session.undo()
    assert session.machine_answers["column"] == dict(enumerate(SAID))


def test_answers_that_are_not_allowed_count_as_none(open_session):
    session = open_session(TEXTS, learner=make_learner(), classes=NAMES.tolist())
    said = ["spam", None, "", *SAID[3:]]
    with pytest.warns(
        UserWarning, match=f"^1 of {N} answers of 'column' are no labels"
    ):
        session.annotate(column(said))
    assert session.machine_answers["column"] == dict(enumerate(SAID[3:], 3))
    n_events = len(events_of(session))
    with pytest.warns(UserWarning, match="^1 of 3 answers of 'column'"):
        assert session.annotate(column(said)) == 3
    assert len(events_of(session)) == n_events  # nothing new was said


@pytest.mark.parametrize(
    ("machine", "error", "match"),
    [
        (None, TypeError, "'annotator' must have a 'name' and a method 'annotate'"),
        (Machine(lambda t: ("bug", 2.0)), ValueError, "confidences from 0 to 1"),
        (Machine(lambda t: ("bug", True)), ValueError, "confidences from 0 to 1"),
        (Machine(None, name="ann"), ValueError, "no person has, got 'ann'"),
    ],
)
def test_bad_annotators(session, machine, error, match):
    session.tell(0, "bug", unasked=True, annotator="ann")
    with pytest.raises(error, match=match):
        session.annotate(machine, [1])
    short = Machine(lambda text: ("bug", None))
    short.annotate = lambda texts: []
    with pytest.raises(ValueError, match="an answer for each of 2 texts, got 0"):
        session.annotate(short, [1, 2])
    with pytest.raises(ValueError, match="'items' must"):
        session.annotate(column(), [N])
    assert session.machine_answers == {}


def test_items_that_leave_the_pool_take_their_answers(open_session):
    texts = TEXTS[:30]
    session = open_session(texts, learner=make_learner())
    scores = [i / 100 for i in range(30)]
    session.annotate(ColumnAnnotator(texts, SAID[:30], scores))
    session.tell([3, 20], ["bug", "bug"], unasked=True, shown="none")
    session.close()
    kept = [i for i in range(30) if i != 5]
    again = open_session([texts[i] for i in kept], learner=make_learner())
    expected = {new: SAID[old] for new, old in enumerate(kept)}
    assert again.machine_answers["column"] == expected
    assert again._core.state.find_machine(10) == (SAID[11], 0.11)


def test_agreement_has_a_pair_for_the_machine_only(session):
    label(session, 60)
    alone = session.agreement()
    session.annotate(column(name="llm"))
    found = session.agreement()
    assert (found.n_items, found.alpha) == (alone.n_items, alone.alpha) == (0, None)
    kappa, (low, high), n_items = found.pairs[None, "llm"]
    assert n_items == 60
    same = np.mean([SAID[id] == TRUTH[id] for id in session.labels])
    shares = [
        [list(x).count(name) / 60 for name in NAMES]
        for x in ([SAID[id] for id in session.labels], session.labels.values())
    ]
    chance = np.dot(*shares)
    assert kappa == pytest.approx((same - chance) / (1 - chance))
    assert low < kappa < high


@pytest.mark.slow
def test_the_machine_is_a_proxy_of_shares(session):
    label(session, 120)
    plain = session.prevalence().estimates
    session.annotate(column(TRUTH), list(range(N - 1)))
    partly = session.prevalence().estimates  # it was not asked about all items
    assert [x.interval for x in partly.values()] == [x.interval for x in plain.values()]
    session.annotate(column(TRUTH))
    found = session.prevalence().estimates
    for (_, name), estimate in found.items():
        assert estimate.half_width < plain[None, name].half_width
        low, high = estimate.interval
        assert low <= TRUTH.count(name) / N <= high


@pytest.mark.slow
def test_the_machine_is_a_proxy_of_several_classes_and_of_numbers(
    open_session, tmp_path
):
    names = [[name] for name in TRUTH]
    model = OneVsRestClassifier(LogisticRegression(C=10))
    session = open_session(
        TEXTS, tmp_path / "m", make_learner(model), multi_label=True, audit_every=2
    )
    label(session, 60, names)
    plain = session.prevalence().estimates
    session.annotate(column(names))
    found = session.prevalence().estimates
    assert all(found[key].half_width < plain[key].half_width for key in found)
    assert session.compare("column").quality.accuracy.value == 1

    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), Ridge()), "random")
    session = open_session(TEXTS, tmp_path / "r", learner, audit_every=2)
    y = (CODES + RNG.normal(size=N)).tolist()
    label(session, 60, y)
    plain = session.prevalence()
    session.annotate(column([*y[:-1], None]))
    assert session.prevalence().half_width < 0.5 * plain.half_width
    with pytest.raises(TypeError, match="compare is for classes"):
        session.compare("column")


def test_a_machine_is_compared_with_blind_answers(session):
    with pytest.raises(ValueError, match=r"'annotator' must be .* none; got 'column'"):
        session.compare("column")
    session.annotate(column([None if i % 7 == 0 else x for i, x in enumerate(SAID)]))
    with pytest.raises(ValueError, match="no blind answers"):
        session.compare("column")
    label(session, 100, shown="none", annotator="ann")
    for person in ("bob", "eve"):
        ids = list(session.labels)
        session.tell(ids, [TRUTH[i] for i in ids], annotator=person, shown="none")
    # What bob says after a suggestion does not replace his first answer.
    helped = next(id for id in session.audited if id % 7 and TRUTH[id] != "bug")
    session.tell(helped, "bug", annotator="bob", shown="suggestion")
    found = session.compare("column")
    sample = [id for id in session._core.queue.choose_sample(True)[0] if id % 7]
    assert len(sample) > 20
    assert helped in sample
    expected = estimate_quality(
        [TRUTH[id] for id in sample],
        [SAID[id] for id in sample],
        classes=session.known_classes,
        n_pool=N,
        cross_fitted=False,
    )
    assert found.quality.accuracy == expected.accuracy
    assert found.n_silent == len(session._core.queue.choose_sample(True)[0]) - len(
        sample
    )
    answers = {
        id: dict.fromkeys(("ann", "bob", "eve"), TRUTH[id]) for id in session.labels
    }
    machine = {id: SAID[id] for id in range(N) if id % 7}
    assert found.replaces == alternative_annotator_test(answers, machine)
    assert "may it replace people?" in str(found)
    assert list(found.agreement) == ["ann", "bob", "eve"]
    common = [id for id, given in answers.items() if "bob" in given and id in machine]
    kappa, (low, high), n_items = found.agreement["bob"]
    assert n_items == len(common)
    codes = [[x[id] for id in common] for x in (TRUTH, SAID)]
    assert kappa == pytest.approx(cohen_kappa_score(*codes))
    assert low < kappa < high
    assert session.compare(column()).agreement == found.agreement


@pytest.fixture
def described(open_session):
    return open_session(TEXTS, **DESCRIBED)


def test_the_model_learns_from_a_machine_that_people_agree_with(
    described, open_session
):
    label(described, 20)
    alone = described.learner.score(TEXTS, TRUTH)
    assert described.learner.estimator_.machine_weight_ == 0
    described.annotate(column(TRUTH, name="llm"))
    model = described.learner.estimator_
    assert model.machine_weight_ > 0
    assert described.learner.score(TEXTS, TRUTH) > alone + 0.05
    proba = described.learner.predict_proba(TEXTS)
    described.close()
    again = open_session(TEXTS, **DESCRIBED)
    np.testing.assert_allclose(again.learner.predict_proba(TEXTS), proba, atol=1e-9)
    # Other answers by a machine of this name do not count any more.
    again.annotate(column([NAMES[(code + 1) % 3] for code in CODES], name="llm"))
    assert again.learner.estimator_.machine_weight_ == 0


def test_a_saved_model_holds_no_texts_of_a_machine(described, tmp_path):
    label(described, 20)
    described.annotate(column(TRUTH))
    learner = described.learner
    # The model of the session, and one that is trained by its parameters again.
    parts = [("session", learner.estimator), ("any", DummyClassifier())]
    again = MixtureClassifier(parts)
    again.fit(TEXTS[:20], TRUTH[:20])
    for number, model in enumerate([learner.estimator_, again]):
        folder = save(model, tmp_path / f"model {number}")
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        assert files
        assert not any(TEXTS[30].encode() in path.read_bytes() for path in files)
        np.testing.assert_array_equal(load(folder).predict(TEXTS), model.predict(TEXTS))
    assert any(TEXTS[30] in some for some in learner.estimator.machine_texts.values())


def test_without_labels_a_machine_is_not_trained_on(described):
    described.annotate(column())
    assert described.learner.estimator_.machine_weight_ == 0


# The end of a session ends the requests of its machine


@pytest.fixture
def silent():
    """The address of a server that accepts connections and says nothing."""
    with serve_badly(KINDS["says nothing"]) as (host, connections):
        yield f"http://{host}", connections


def ask_later(session, url):
    """Have a language model answer in a thread; return its Future."""
    chat = ChatAnnotator(url, "m", NAMES.tolist(), timeout=600, verbose=0)
    return start_daemon(session.annotate, chat)


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_closing_a_session_ends_the_requests_of_its_machine(session, silent):
    url, connections = silent
    asked = ask_later(session, url)
    wait_for(lambda: connections)
    session.close()
    with pytest.raises(ConnectionAbortedError, match="were stopped"):
        asked.result(PATIENCE)


def test_closing_a_session_ends_the_wait_between_two_requests(session):
    write = drip(
        b"HTTP/1.1 503 Busy\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n", b""
    )
    with serve_badly(write) as (host, connections):
        asked = ask_later(session, f"http://{host}")
        wait_for(lambda: connections)
        time.sleep(0.5)
        session.close()
        with pytest.raises(ConnectionAbortedError, match="were stopped"):
            asked.result(PATIENCE)
        assert len(connections) == 1


def test_closing_a_desk_ends_the_requests_of_its_machine(session, silent):
    url, connections = silent
    chat = ChatAnnotator(url, "m", NAMES.tolist(), timeout=600, verbose=0)
    before = count_work()
    with Desk(session) as desk:
        desk.annotate(chat)
        wait_for(lambda: connections)
    wait_for(lambda: count_work() == before)
    assert desk.state()["model"]["error"] is None
    assert session.labels == {}  # the session stays open
    label(session, 10)


def test_another_session_with_the_same_machine_goes_on(
    session, open_session, silent, tmp_path
):
    url, connections = silent
    chat = ChatAnnotator(url, "m", NAMES.tolist(), timeout=600, verbose=0)
    other = open_session(TEXTS, learner=make_learner(), folder=tmp_path / "other")
    asked = [start_daemon(one.annotate, chat) for one in (session, other)]
    wait_for(lambda: len(connections) == 2)
    session.close()
    with pytest.raises(ConnectionAbortedError):
        asked[0].result(PATIENCE)
    time.sleep(0.5)
    assert not asked[1].done()


def test_a_machine_of_a_closed_session_is_sent_nothing(session):
    machine = Machine(lambda text: (None, None))
    session.close()
    with pytest.raises(ValueError, match="is closed"):
        session.annotate(machine)
    assert machine.asked == []


def test_a_machine_of_a_closed_desk_gets_no_more_texts(session):
    desk, machine = Desk(session), Machine(None)

    def answer(text):
        desk.close()
        return "bug", None

    machine.answer = answer
    desk.annotate(machine)
    wait_for(lambda: len(machine.asked) >= 16)
    time.sleep(0.5)
    assert len(machine.asked) == 16
