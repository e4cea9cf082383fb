"""A session shared by threads: no acknowledged answer is lost, and nobody waits."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner

from ._helpers import events

WAIT = 60.0


def in_threads(*calls):
    """Start all calls at the same moment; what they return, or the first error."""
    barrier = threading.Barrier(len(calls))

    def start(call):
        barrier.wait(WAIT)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(start, calls))


@pytest.fixture
def wide(data):
    """A pool with enough items for every tell of a test."""
    return np.tile(data[0], (7, 1))


@pytest.mark.parametrize("n_pairs", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_no_label_of_two_simultaneous_tells_is_lost(open_session, wide, n_pairs):
    session = open_session(wide, refit=False)

    def tell(id):
        session.tell(id, f"label {id}", unasked=True)

    for i in range(0, 2 * n_pairs, 2):
        in_threads(lambda i=i: tell(i), lambda i=i: tell(i + 1))
    expected = {id: f"label {id}" for id in range(2 * n_pairs)}
    assert session.labels == expected
    session.close()
    assert open_session(wide, refit=False).labels == expected


@pytest.mark.parametrize("n_tells", [25, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("refit", [False, "background"])
def test_no_label_of_four_threads_is_lost(open_session, wide, refit, n_tells):
    session = open_session(wide, refit=refit)

    def tell(first):
        for id in range(first, 4 * n_tells, 4):
            session.tell(id, f"label {id % 3}", unasked=True, annotator=f"{first}")

    in_threads(*(lambda first=first: tell(first) for first in range(4)))
    expected = {id: f"label {id % 3}" for id in range(4 * n_tells)}
    assert session.labels == expected
    seqs = [event["seq"] for event in events(session)]
    assert seqs == list(range(2, len(seqs) + 2))
    session.close()
    again = open_session(wide, refit=refit)
    assert again.labels == expected
    assert again.history(9)[0]["annotator"] == "1"


@pytest.mark.long
@pytest.mark.parametrize("refit", [True, False, "background"])
def test_annotators_in_threads_share_out_the_pool(open_session, data, refit):
    session = open_session(refit=refit)

    def label(annotator):
        mine = []
        while batch := session.ask(annotator=annotator):
            for id in batch.ids:
                session.tell(id, data[1][id], annotator=annotator)
            mine += batch.ids
            assert all(batch.ids for batch in session.open_batches)
        return mine

    shares = in_threads(*(lambda name=name: label(name) for name in "abcd"))
    assert sorted(id for share in shares for id in share) == list(range(60))
    labels = session.labels
    assert labels == dict(enumerate(data[1]))
    session.close()
    assert open_session(refit=refit).labels == labels


def test_every_kind_of_answer_in_threads_leaves_a_sound_journal(open_session, data):
    session = open_session(refit="background")

    def answer(annotator):
        for _ in range(5):
            # Another annotator's undo can bring back a part of a batch.
            first, *others = session.ask(3, annotator=annotator).ids
            session.skip(first, annotator=annotator)
            session.tell(first, data[1][first], annotator=annotator)
            for id in others[:1]:
                session.release(id, annotator=annotator)
            session.undo(annotator=annotator)
            assert session.history(first)
            assert session.model_age >= 0

    in_threads(*(lambda name=name: answer(name) for name in "abcd"))
    found = session.labels, session.skipped, session.open_batches
    session.close()
    again = open_session(refit="background")
    assert (again.labels, again.skipped, again.open_batches) == found


class Gated(LogisticRegression):
    """Trains when the test says so."""

    def fit(self, X, y):
        type(self).started.set()
        assert type(self).go.wait(WAIT)
        return super().fit(X, y)


@pytest.fixture
def gated():
    Gated.started, Gated.go = threading.Event(), threading.Event()
    yield ActiveLearner(Gated(), strategy="margin", batch_size=4, random_state=0)
    Gated.go.set()


@pytest.mark.parametrize("call", ["ask", "refit", "learner"])
@pytest.mark.parametrize("refit", [True, "background"])
def test_no_answer_waits_for_a_training(open_session, gated, data, call, refit):
    session = open_session(learner=gated, refit=refit)
    session.tell([0, 1, 2, 3], data[1][:4], unasked=True)
    calls = {
        "ask": session.ask,
        "refit": session.refit,
        "learner": lambda: session.learner,
    }
    with ThreadPoolExecutor(1) as pool:
        training = pool.submit(calls[call])
        assert Gated.started.wait(WAIT)
        for id in (4, 5, 6):
            session.tell(id, data[1][id], unasked=True)
        session.skip(7, unasked=True)
        session.undo()
        assert len(session.labels) == 7
        assert session._core.models.training or not training.done()
        Gated.go.set()
        training.result(WAIT)


def test_what_is_answered_while_a_batch_is_chosen_is_not_in_it(open_session, data):
    def last_first(view):
        if not session.labels:  # another thread is quicker than the choice
            with ThreadPoolExecutor(1) as pool:
                pool.submit(session.tell, 59, "ham", unasked=True).result(WAIT)
        return np.arange(len(view))

    learner = ActiveLearner(
        LogisticRegression(), last_first, cold_start=last_first, random_state=0
    )
    session = open_session(learner=learner)
    assert session.ask(1).ids == (58,)
    assert session.labels == {59: "ham"}


def test_a_session_closed_in_the_middle_of_a_choice_records_nothing(
    open_session, gated, data
):
    session = open_session(learner=gated)
    session.tell([0, 1, 2, 3], data[1][:4], unasked=True)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(session.ask)
        assert Gated.started.wait(WAIT)
        session.close()
        Gated.go.set()
        with pytest.raises(ValueError, match="is closed"):
            asked.result(WAIT)
    assert not open_session(learner=gated).open_batches
