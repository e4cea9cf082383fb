"""Encoders that learn from the labels of a session, in a process of their own."""

import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skactive import ActiveLearner, LabelingSession, make_text_classifier
from skactive._utils._system import SYSTEM
from skactive.annotators import ColumnAnnotator
from skactive.bert import clear_cache
from skactive.bert._adapted import ContrastiveEncoder
from skactive.session import Desk, _adaptation
from skactive.session._evidence import hold_out

pytestmark = pytest.mark.usefixtures("adapted_soon")
REAL = _adaptation._CODE
WORDS = ["film", "match", "stocks", "team", "game", "minute", "friday", "long", "joy"]
FIRST = ["the joy of a", "a dull slow", "an even", "no naïve", "again in the", "a"]
TEXTS = [f"{first} {word}" for word in WORDS for first in FIRST]
LABELS = dict(enumerate(np.array(["weather", "sport", "money"])[np.arange(54) % 3]))
LABELS[40] = "art"  # a class that the encoder has not learned from


@pytest.mark.skipif(SYSTEM != "linux", reason="only Linux has such priorities")
def test_the_process_has_a_low_priority():
    command, pipe = [sys.executable, "-c", REAL], subprocess.PIPE
    wanted = max(10, os.getpriority(os.PRIO_PROCESS, 0))
    with subprocess.Popen(command, stdin=pipe, stderr=pipe) as process:
        end = time.monotonic() + 120
        while (found := os.getpriority(os.PRIO_PROCESS, process.pid)) < wanted:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        process.communicate()  # without a task it ends
    assert found == wanted


def some(n, start=0):
    return {i: str(LABELS[i]) for i in range(start, n)}


def make(tiny_bert):
    model = make_text_classifier(tiny_bert, adapt=True, device="cpu")
    quick = {"n_steps": 2, "batch_size": 8, "lr": 1e-2, "freeze": 1}
    names = {f"adapted__adaptedfeatures__{k}": v for k, v in quick.items()}
    return ActiveLearner(model.set_params(**names), batch_size=2, random_state=0)


def import_labels(session, ids):
    session.tell(ids, [str(LABELS[id]) for id in ids], unasked=True)


@pytest.fixture
def start(tiny_bert, tmp_path):
    """Open the session of a folder, closed at the end of the test."""
    opened = []

    def start(folder="session", learner=None, **options):
        options = {"refit": "background", **options}
        learner = learner or make(tiny_bert)
        session = LabelingSession(learner, TEXTS, tmp_path / folder, **options)
        opened.append(session)
        return session

    yield start
    for session in opened:
        session.close()


def wait_for(session, n, seconds=300):
    """Wait for a model of all labels whose encoder has learned from n of them."""
    end = time.monotonic() + seconds
    models = session._core.models
    while not (
        models.newest().adapted == n
        and models.newest().seq == session._state.labels_seq
        and not models.training
    ):
        assert time.monotonic() < end, (models.newest(), models.encoder_error)
        time.sleep(0.02)
    return models.newest().learner


def adapted_features(learner):
    return learner.estimator_.parts_["adapted"][0].transform(TEXTS)


def begin_to_adapt(session):
    """Return the adapter of a session, whose process is under way."""
    adapter = session._core.models._adapter
    session.tell(some(30), unasked=True)
    session.ask(1)
    while adapter._process is None:
        time.sleep(0.01)
    return adapter


def events(session, kind):
    return [event for event in session._state.events if event["event"] == kind]


@pytest.mark.slow
def test_encoders_of_several_sessions_learn_one_at_a_time(start, monkeypatch):
    begun, most = [], []

    class Process(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            begun.append(self)
            most.append(sum(process.poll() is None for process in begun))

    monkeypatch.setattr(_adaptation.subprocess, "Popen", Process)
    sessions = [start(name) for name in ("one", "two", "three")]
    for start_at, end, n in ((0, 30, 25), (30, 54, 50)):
        for session in sessions:  # nobody answers while the others wait
            session.tell(some(end, start_at), unasked=True)
            session.ask(1)
        for session in sessions:
            wait_for(session, n)
    assert len(begun) >= 6
    assert {*most} == {1}


@pytest.mark.slow
def test_a_session_that_is_closed_keeps_no_turn(start):
    one, two = start("one"), start("two")
    begin_to_adapt(one)
    two.tell(some(30), unasked=True)
    two.ask(1)
    one.close()  # its process is killed
    assert wait_for(two, 25)


def test_the_model_before_serves_until_the_encoder_has_learned(start):
    session = start()
    session.tell(some(24), unasked=True)
    session.ask(1)
    assert wait_for(session, 0).estimator_.weights_ == {"frozen": 1.0}
    session.tell(some(30, 24), unasked=True)
    session.ask(1)
    learner = wait_for(session, 25)
    assert learner.estimator_.parts_["adapted"][0].n_adapted_ == 25
    assert learner.estimator.parts[1][1][0].refit == "doubling"
    session.tell(some(50, 30), unasked=True)
    session.ask(1)
    models = session._core.models
    while models.newest().seq != session._state.labels_seq:
        time.sleep(0.02)
    assert models.newest().adapted in (25, 50)  # as long as 50 are under way
    session.ask(1)
    assert [event.get("adapted") for event in events(session, "ask")][-1] in (25, 50)
    # The features are those that one `fit` of the same labels gives.
    plain = start("other", refit=True)
    plain.tell(some(24), unasked=True)
    plain.tell(some(30, 24), unasked=True)
    plain.ask(1)
    found, expected = (adapted_features(one) for one in (learner, plain.learner))
    assert_array_equal(found, expected)
    assert plain.newest_model.adapted == 25


@pytest.mark.slow
def test_a_resumed_session_has_the_same_model(start, monkeypatch):
    session = start()
    session.tell(some(30), unasked=True)
    session.ask(1)
    expected = wait_for(session, 25).predict_proba(TEXTS)
    session.ask(1)
    session.close()
    clear_cache()
    monkeypatch.setattr(_adaptation.subprocess, "Popen", None)  # nothing is trained
    session = start()
    session.ask(1)
    assert_array_equal(wait_for(session, 25).predict_proba(TEXTS), expected)


@pytest.mark.slow
def test_after_a_correction_the_model_before_stays_until_the_next(start):
    session = start()
    session.tell(some(30), unasked=True)
    session.ask(1)
    before = wait_for(session, 25)
    session.tell({3: "sport"}, unasked=True)
    session.ask(1)
    models = session._core.models
    while models.newest().learner is before:
        time.sleep(0.02)
    # No model in between, whose heads would be of other labels than its encoder.
    assert models.newest().adapted == 25
    assert models.newest().labels[3] == "sport"
    session.tell({3: str(LABELS[3])}, unasked=True)  # both are still there
    session.ask(1)
    again = wait_for(session, 25)
    found, expected = (adapted_features(learner) for learner in (again, before))
    assert_array_equal(found, expected)


@pytest.mark.slow
def test_a_killed_process_costs_the_adaptation_only(start):
    session = start()
    adapter = begin_to_adapt(session)
    adapter._process.kill()
    learner = wait_for(session, 0)
    while adapter.busy:
        time.sleep(0.01)
    assert learner.estimator_.weights_ == {"frozen": 1.0}
    assert session._core.models.encoder_error
    assert len(session.ask(2).ids) == 2


def test_a_closed_session_ends_its_process(start):
    session = start()
    adapter = begin_to_adapt(session)
    process = adapter._process
    session.close()
    assert process.wait(2) != 0


@pytest.mark.slow
def test_a_process_ends_with_the_one_that_waits_for_it(start, monkeypatch):
    session = start()
    adapter = begin_to_adapt(session)
    process = adapter._process
    process.stdin.close()  # as when this process is killed
    assert process.wait(60) != 0


def test_a_large_pool_is_not_encoded_again(start):
    session = start(max_adapted_pool=50)
    assert not session.adapts
    assert start("other").adapts
    session.tell(some(30), unasked=True)
    session.ask(1)
    assert wait_for(session, 0).estimator_.weights_ == {"frozen": 1.0}
    assert not session._core.models._adapter.busy


def test_the_encoder_learns_from_a_random_order_of_a_table(start, tiny_bert, tmp_path):
    by_class = sorted(range(54), key=lambda i: LABELS[i])
    learner = make(tiny_bert)
    given = [TEXTS[i] for i in by_class[:40]], [LABELS[i] for i in by_class[:40]]
    learner.teach(*given, refit=False)
    session = start(learner=learner)
    models = session._core.models
    first = models.taught()[0].y_labeled_[:25]
    assert len(set(first)) > 2
    assert sorted(models.taught()[0].X_labeled_) == sorted(given[0])


def test_an_import_has_a_random_order_and_answers_that_of_their_first(start):
    session = start()
    session.tell({50: "money", 51: "weather"}, unasked=True)
    session.tell(3, "sport", unasked=True)
    import_labels(session, by_class := sorted(range(10, 40), key=lambda i: LABELS[i]))
    session.tell(4, "sport", unasked=True)

    def order():
        return list(session._core.models.taught()[1].labels)

    found = order()
    assert {*found[:2]} == {50, 51}
    assert found[2] == 3
    assert found[-1] == 4
    assert found[3:-1] != by_class
    assert sorted(found[3:-1]) == sorted(by_class)
    session.tell(3, "money", unasked=True)  # a correction
    session.tell(50, "sport", unasked=True, annotator="bob")
    assert order() == found
    session.undo(annotator="bob")
    assert order() == found
    session.withdraw([50])
    session.tell(50, "sport", unasked=True)
    assert order() == [id for id in found if id != 50] + [50]


@pytest.mark.slow
def test_estimates_use_the_folds_of_the_mixture_and_train_no_encoder(
    start, monkeypatch
):
    session = start(audit_every=2)
    for _ in range(20):
        batch = session.ask(2)
        session.tell({id: str(LABELS[id]) for id in batch.ids})
    wait_for(session, 25)
    monkeypatch.setattr(ContrastiveEncoder, "fit", None)
    monkeypatch.setattr(_adaptation.subprocess, "Popen", None)
    found = hold_out(*session._core.models.taught())
    assert len(found.shares) == 3
    assert not np.isnan(found.proba).any()
    session.suspicious()
    assert session.estimate().n_labels == 40
    assert session.quality().accuracy.n_labels > 10


def test_an_error_of_the_process_is_said_and_the_frozen_part_goes_on(
    start, monkeypatch
):
    describe = _adaptation._list_encoders

    def spoil(*args):
        return [[{**params, "lr": -1}, *rest] for params, *rest in describe(*args)]

    monkeypatch.setattr(_adaptation, "_list_encoders", spoil)
    session = start()
    session.tell(some(30), unasked=True)
    session.ask(1)
    wait_for(session, 0)
    models = session._core.models
    while models._adapter.busy:
        time.sleep(0.02)
    assert re.search("did not learn .*'lr' parameter", models.encoder_error)


def test_a_process_that_ends_before_it_has_read_its_task_is_an_error(
    start, monkeypatch
):
    begin = _adaptation.start_daemon

    def begin_late(follow, process, task, *rest):
        process.wait()
        begin(follow, process, "{}", *rest)

    monkeypatch.setattr(_adaptation, "start_daemon", begin_late)
    monkeypatch.setattr(_adaptation, "_CODE", "pass")
    session = start()
    session.tell(some(30), unasked=True)
    session.ask(1)
    models, end = session._core.models, time.monotonic() + 60
    while models.encoder_error is None and time.monotonic() < end:
        time.sleep(0.02)
    assert "did not learn" in models.encoder_error
    assert not models._adapter.busy


@pytest.mark.slow
def test_python_exits_at_once_while_an_encoder_learns(tiny_bert, tmp_path):
    script = f"""if True:
        import time
        from skactive import LabelingSession
        from tests.session.test_adaptation import TEXTS, make, some

        learner, folder = make({str(tiny_bert)!r}), {str(tmp_path / "own")!r}
        session = LabelingSession(learner, TEXTS, folder, refit="background")
        session.tell(some(30), unasked=True)
        session.ask(1)
        while not session._core.models._adapter.busy:
            time.sleep(0.01)
        print(time.time(), flush=True)
    """
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert time.time() - float(done.stdout) < 20, done.stderr
    assert done.returncode == 0


@pytest.mark.slow
def test_what_a_person_looks_at_with_an_encoder_that_has_learned(start, tmp_path):
    session = start(encode="background", classes=["weather", "sport", "money", "art"])
    truth = [str(LABELS[id]) for id in range(54)]
    session.annotate(ColumnAnnotator(TEXTS, truth, name="machine"))
    with Desk(session) as desk:
        assert len(desk.next("tab")) == 2  # the cold start
        session.tell(some(30), unasked=True)
        session.ask(1)
        learner = wait_for(session, 25)
        assert desk.next("tab")[0]["prediction"]
        assert desk.state()["model"]["adapted"] == 25
        # Alike compares what no label has changed.
        frozen = learner.estimator_.parts_["frozen"][0].transform(TEXTS)
        expected = np.argsort(-(frozen @ frozen[45]), kind="stable")
        alike = [item["id"] for item in desk.similar(45, 3)["items"]]
        assert [id for id in expected if id in alike] == alike
        assert desk.search("stocks")["items"]
        assert desk.more("sport")["items"]
        kept = sorted((tmp_path / "session" / "adapted").rglob("*.npy"))
        assert desk.explain(45)["words"]
        assert sorted((tmp_path / "session" / "adapted").rglob("*.npy")) == kept
        while desk.check()["computing"]:
            time.sleep(0.02)
        assert not desk.state()["model"]["error"]
