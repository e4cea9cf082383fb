"""When models are trained, and what happens when that fails or takes long."""

import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive.session._background import BackgroundTrainer
from skactive.session._models import Model, TrainingData

WAIT = 120.0


class Slow(LogisticRegression):
    """Trains when the test says so, and fails when the test says so."""

    started = threading.Semaphore(0)
    go = threading.Semaphore(0)
    sizes: list = []
    error = None

    def fit(self, X, y):
        type(self).sizes.append(len(y))
        type(self).started.release()
        assert type(self).go.acquire(timeout=WAIT)
        if type(self).error is not None:
            raise type(self).error
        return super().fit(X, y)


@pytest.fixture
def slow():
    Slow.started, Slow.go = threading.Semaphore(0), threading.Semaphore(0)
    Slow.sizes, Slow.error = [], None
    before = threading.enumerate()
    yield ActiveLearner(Slow(), strategy="margin", batch_size=4, random_state=0)
    Slow.go.release(100)
    # A training left over would take what the next test lets go.
    for thread in set(threading.enumerate()).difference(before):
        thread.join(WAIT)


def tell(session, data, *ids):
    session.tell(list(ids), data[1][list(ids)], unasked=True)


def two_classes(data):
    return [int(np.flatnonzero(data[1] == label)[0]) for label in ("ham", "spam")]


def test_refit_true_trains_once_before_it_is_needed(open_session, slow, data):
    Slow.go.release(100)
    session = open_session(learner=slow)
    for id in (*two_classes(data), 50, 51):
        tell(session, data, id)
    assert Slow.sizes == []
    assert session.model_age == 4
    session.ask()
    session.ask()
    assert Slow.sizes == [4]
    assert session.model_age == 0
    session.tell(51, "ham", unasked=True)  # a changed label makes it older too
    session.undo()
    assert session.model_age == 0
    session.undo()
    assert session.model_age == 1
    assert session.learner is session.learner
    assert Slow.sizes == [4, 3]


def test_refit_false_trains_on_request(open_session, slow, data):
    Slow.go.release(100)
    session = open_session(learner=slow, refit=False)
    tell(session, data, *two_classes(data))
    session.ask()
    assert Slow.sizes == []
    session.refit()
    tell(session, data, 50)
    assert session.model_age == 1
    proba = session.learner.predict_proba(data[0])
    session.close()
    again = open_session(learner=slow, refit=False)
    assert again.model_age == 1
    np.testing.assert_array_equal(again.learner.predict_proba(data[0]), proba)
    assert Slow.sizes == [2, 2]  # the previous model is trained again, not a newer one


def test_refit_without_labels_says_so(open_session):
    with pytest.raises(ValueError, match="no label to train on"):
        open_session(refit=False).refit()


def test_one_ask_can_use_the_old_model(open_session, slow, data):
    Slow.go.release(100)
    session = open_session(learner=slow)
    tell(session, data, *two_classes(data))
    session.ask()
    tell(session, data, 50)
    session.ask(refit=False)
    assert Slow.sizes == [2]
    with pytest.raises(ValueError, match="'refit' must be True, False or"):
        session.ask(refit="no")


def test_in_the_background_the_next_batch_does_not_wait(open_session, slow, data):
    session = open_session(learner=slow, refit="background")
    assert session.ask()  # by the cold start: nothing is known
    tell(session, data, *two_classes(data))
    assert session.ask()  # nobody waits for the first model either
    assert session.model_age == 2
    assert Slow.started.acquire(timeout=WAIT)
    Slow.go.release()
    session._core.models._trainer.wait()
    assert session.ask()
    assert session.model_age == 0

    tell(session, data, 50)
    assert Slow.started.acquire(timeout=WAIT)  # under way
    tell(session, data, 51)
    tell(session, data, 52)
    assert session.ask()  # by the old one
    assert session.model_age == 3
    Slow.go.release(2)
    session._core.models._trainer.wait()
    assert session.model_age == 0
    assert Slow.sizes == [2, 3, 5]  # of those that waited only the newest
    assert len(session.learner.y_labeled_) == 5


def test_a_batch_records_the_labels_of_its_model(open_session, slow, data):
    session = open_session(learner=slow, refit="background")
    Slow.go.release()
    tell(session, data, *two_classes(data))
    session.ask()
    session._core.models._trainer.wait()
    session.ask()
    tell(session, data, 50)
    session.ask()
    models = [e["model"] for e in session._core.journal.events if e["event"] == "ask"]
    assert models[-2:] == [2, 2]


def test_an_error_in_the_background_is_raised_once_and_the_old_model_stays(
    open_session, slow, data
):
    session = open_session(learner=slow, refit="background")
    Slow.go.release()
    tell(session, data, *two_classes(data))
    session.ask()
    old = session.learner
    Slow.error = MemoryError("no room")
    tell(session, data, 50)
    Slow.go.release()
    session._core.models._trainer.wait()
    with pytest.raises(MemoryError, match="no room") as caught:
        session.ask()
    assert "No label is lost" in caught.value.__notes__[0]
    assert session.ask()
    assert session.learner is old
    assert session.model_age == 1
    Slow.error = None
    Slow.go.release()
    tell(session, data, 51)
    session._core.models._trainer.wait()
    assert session.model_age == 0


def test_a_first_training_that_fails_leaves_the_cold_start(open_session, slow, data):
    session = open_session(learner=slow, refit="background")
    Slow.error = ValueError("no way")
    Slow.go.release(5)
    tell(session, data, *two_classes(data))
    session._core.models._trainer.wait()
    with pytest.raises(ValueError, match="no way"):
        session.ask()
    assert session.ask()


def test_training_that_fails_loses_no_label(open_session, slow, data):
    session = open_session(learner=slow)
    Slow.go.release(100)
    tell(session, data, *two_classes(data))
    first = session.ask()
    tell(session, data, 50)
    Slow.error = ValueError("no way")
    for _ in range(2):
        with pytest.raises(ValueError, match="no way") as caught:
            session.ask()
        assert "ask(refit=False) uses it" in "".join(caught.value.__notes__)
    assert len(session.labels) == 3
    assert [batch.number for batch in session.open_batches] == [first.number]
    assert session.ask(refit=False)


def test_the_next_refit_replaces_an_interrupted_one(open_session, slow, data):
    session = open_session(learner=slow)
    Slow.go.release(100)
    tell(session, data, *two_classes(data))
    Slow.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        session.ask()
    Slow.error = None
    batch = session.ask()
    whole = open_session(learner=slow, folder=session.folder + "2")
    tell(whole, data, *two_classes(data))
    assert whole.ask() == batch


def test_a_resumed_session_in_the_background_uses_all_labels(open_session, slow, data):
    Slow.go.release(100)
    with open_session(learner=slow, refit="background") as session:
        tell(session, data, *two_classes(data))
        tell(session, data, 50)
    session = open_session(learner=slow, refit="background")
    session.ask()
    assert len(session.learner.y_labeled_) == 3


def test_closing_does_not_wait_for_a_training(open_session, slow, data):
    session = open_session(learner=slow, refit="background")
    tell(session, data, *two_classes(data))
    assert Slow.started.acquire(timeout=WAIT)
    tell(session, data, 50)
    session.close()
    Slow.go.release()
    session._core.models._trainer.wait()
    assert Slow.sizes == [2]


def test_a_model_that_is_ready_is_not_trained_again():
    trained = []

    def train(task):
        trained.append(task.seq)
        return Model(None, task.seq)

    trainer = BackgroundTrainer(train)
    task = TrainingData(None, 3)
    trainer.submit(task)
    trainer.wait()
    trainer.submit(task)  # ended, and nobody has taken it yet
    trainer.wait()
    assert trained == [3]
    assert trainer.take().seq == 3


def test_a_thread_trains_under_the_callers_configuration(open_session, data):
    from sklearn import config_context, get_config

    seen, trained = [], threading.Event()

    class Curious(LogisticRegression):
        def fit(self, X, y):
            seen.append((get_config()["working_memory"], threading.current_thread()))
            trained.set()
            return super().fit(X, y)

    learner = ActiveLearner(Curious(), random_state=0)
    with config_context(working_memory=17):
        session = open_session(learner=learner, refit="background")
        tell(session, data, *two_classes(data))
        session.ask()  # does not wait for the first model
        assert trained.wait(60)
    (memory, thread), *_ = seen
    assert memory == 17
    assert thread is not threading.main_thread()


def test_the_learner_of_the_user_is_not_changed(open_session, learner, data):
    before = dict(vars(clone(learner)))
    session = open_session(learner=learner)
    tell(session, data, *two_classes(data))
    session.ask()
    assert vars(learner).keys() == before.keys()
    assert session.learner is not learner
