"""Nobody waits for a model: an encoder that needs a minute is blocked by the test."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.annotators import ColumnAnnotator
from skactive.labeling._prompt import _Prompt
from skactive.session import Desk

TEXTS = [f"{'good' if i % 2 else 'bad'} film {i}" for i in range(60)]
NAMED = {"yes": "a good film", "no": ""}
WAIT = 60


class Blocked(TransformerMixin, BaseEstimator):
    """Features that need no training, and wait until the test lets them go on."""

    gate = threading.Event()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self):
        return True

    def __skactive_reader__(self):
        assert self.gate.wait(WAIT)
        return len

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        assert self.gate.wait(WAIT)
        return np.array([["good" in x, "bad" in x, len(x)] for x in X], dtype=float)


@pytest.fixture(autouse=True)
def gate():
    Blocked.gate = threading.Event()
    yield Blocked.gate
    Blocked.gate.set()


@pytest.fixture
def soon():
    """Call a function that must return while the encoder is blocked."""
    threads = ThreadPoolExecutor(1)

    def soon(function, *args, **options):
        result = threads.submit(function, *args, **options).result(WAIT / 2)
        assert not Blocked.gate.is_set()
        return result

    yield soon
    Blocked.gate.set()
    threads.shutdown()


KINDS = {
    "names": (LogisticRegression(), {"classes": NAMED}, "yes"),
    "classes": (LogisticRegression(), {"classes": [*NAMED]}, "yes"),
    "open": (LogisticRegression(), {}, "yes"),
    "several": (
        OneVsRestClassifier(LogisticRegression()),
        {"classes": [*NAMED], "multi_label": True},
        ["yes"],
    ),
    "numbers": (Ridge(), {}, 1.5),
}
ENCODE = pytest.mark.parametrize("encode", [None, "background"])


def open_one(open_session, kind="names", encode="background", given=None, **options):
    model, known, _ = KINDS[kind]
    learner = ActiveLearner(
        make_pipeline(Blocked(), model),
        "random" if kind == "numbers" else "uherding",
        batch_size=2,
        random_state=0,
    )
    if given:
        learner.teach(TEXTS[-4:], given, refit=False)
    options = {"audit_every": 5, "max_similarity": 0.9, **known, **options}
    return open_session(
        TEXTS, learner=learner, refit="background", encode=encode, **options
    )


@pytest.mark.slow
@ENCODE
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_text_and_the_next_ones_wait_for_no_model(
    open_session, soon, kind, encode
):
    session = soon(open_one, open_session, kind, encode)
    assert session.newest_model.learner is None
    asked = list(soon(session.ask).ids)
    with Desk(session) as desk:
        for name in NAMED if kind == "open" else ():
            soon(desk.add_class, name)
        for i in range(8):
            (item, *_) = soon(desk.next, "tab")
            assert (item["prediction"], item["read"]) == (None, None)
            label = ["yes", "no"][i % 2] if KINDS[kind][2] == "yes" else KINDS[kind][2]
            state = soon(desk.answer, item["id"], label, "tab")
            asked.append(item["id"])
        assert state["n_labeled"] == 8
        # All of them are of the audit: its random order.
        order = session._core.queue.draws.order.tolist()
        assert {*asked} <= {*order[:16]}
        Blocked.gate.set()
        session._core.models._trainer.wait()
        items = desk.search("", where={}, n_items=60)["items"]
        assert all(item["blind"] or item["prediction"] is not None for item in items)


@ENCODE
def test_labels_of_one_class_make_no_model_to_choose_by(open_session, soon, encode):
    session = soon(open_one, open_session, "classes", encode)
    (id, _) = soon(session.ask).ids
    soon(session.tell, [id], ["yes"])
    session._core.models._trainer.wait()  # one class is learned without the encoder
    assert session.newest_model.learner is not None
    assert soon(session.ask)


@ENCODE
def test_a_session_that_is_opened_again_waits_for_no_model(open_session, soon, encode):
    session = soon(open_one, open_session, encode=encode)
    ids = soon(session.ask, 4).ids
    soon(session.tell, ids, ["yes", "no", "yes", "no"])
    Blocked.gate.set()
    session.close()
    Blocked.gate = threading.Event()
    session = soon(open_one, open_session, encode=encode)
    assert soon(session.ask)
    with Desk(session) as desk:
        assert soon(desk.next, "tab")
        Blocked.gate.set()


@ENCODE
def test_labels_from_before_the_session_need_no_waiting(open_session, soon, encode):
    given = ["yes", "no"] * 2
    session = soon(open_one, open_session, "classes", encode, given)
    assert {*soon(session.ask).ids}.isdisjoint(range(56, 60))
    Blocked.gate.set()
    assert session.learner.predict(TEXTS[:2]).tolist() != []


@pytest.mark.parametrize("kind", ["names", "classes"])
def test_a_changed_class_and_a_machine_are_waited_for_by_nobody(
    open_session, soon, kind
):
    session = soon(open_one, open_session, kind)
    with Desk(session) as desk:
        soon(desk.next, "tab")
        soon(desk.add_class, "maybe")
        soon(session.annotate, ColumnAnnotator(TEXTS, ["maybe"] * 60))
        for label in ("maybe", "maybe", "yes", "maybe", "no"):
            (item, *_) = soon(desk.next, "tab")
            soon(desk.answer, item["id"], label, "tab")
        soon(desk.edit_class, "maybe", new="perhaps")
        assert soon(desk.next, "tab")
        Blocked.gate.set()
        session._core.models._trainer.wait()
        assert {*session.learner.classes_} == {"yes", "no", "perhaps"}


def test_the_prompt_shows_texts_at_once(open_session, soon):
    session, written = soon(open_one, open_session), []
    typed = iter(["yes", "no", "s", "u", "no", "q"])
    with Desk(session) as desk:
        soon(_Prompt(desk, "prompt", lambda _: next(typed), written.append).run)
        assert len(session.labels) == 3
        assert sum(line in TEXTS for line in written) >= 4
        Blocked.gate.set()


@ENCODE
def test_the_model_without_labels_comes_in_the_background(open_session, soon, encode):
    session = soon(open_one, open_session, encode=encode)
    soon(session.ask)
    assert session._core.models.training
    Blocked.gate.set()
    session._core.models._trainer.wait()
    session.ask()
    predicted = session.newest_model.learner.predict(["a good film"])
    assert predicted.tolist() == ["yes"]
    assert session._core.models._trainer.busy is False  # once is enough
    ask = session._core.journal.events[-1]
    assert (ask["event"], ask["model"]) == ("ask", 0)


def test_the_learner_of_a_session_waits_for_the_first_model(open_session, gate):
    session = open_one(open_session)
    threading.Timer(0.1, gate.set).start()
    assert session.learner.predict(["a good film"]).tolist() == ["yes"]


def test_texts_before_the_first_model_are_the_same_every_time(
    open_session, soon, tmp_path
):
    found = []
    for name in "ab":
        session = soon(open_one, open_session, folder=tmp_path / name)
        found.append([soon(session.ask).ids for _ in range(3)])
    assert found[0] == found[1]


def test_an_encoder_that_fails_costs_no_training_in_the_foreground(
    open_session, soon, monkeypatch
):
    def fail(self, X):
        if threading.current_thread().name.startswith("ThreadPool"):
            assert self.gate.wait(WAIT)
        raise OSError("no weights")

    monkeypatch.setattr(Blocked, "transform", fail)
    session = soon(open_one, open_session)
    session._core.models._encoder._thread.join(WAIT)
    session._core.models._trainer.wait()
    with Desk(session) as desk:
        for _ in range(4):
            (item, *_) = soon(desk.next, "tab")
            soon(desk.answer, item["id"], "yes", "tab")
        assert "no weights" in desk.state()["model"]["error"]
        Blocked.gate.set()
