"""A session compared with a plain loop of query and teach, and with a simulation."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession, simulate
from skactive.stopping import SelectedAccuracy

from ._helpers import events, manifest


def strip(session):
    """Return the events without what depends on the time."""
    timeless = ("t", "crc")
    return [{k: v for k, v in e.items() if k not in timeless} for e in events(session)]


def answer(session, batch, y):
    session.tell(batch.ids, y[list(batch.ids)])


def run_loop(learner, X, y, n_rounds):
    """Ask in a plain loop of query and teach, without a session."""
    learner, unlabeled, asked = clone(learner), np.ones(len(X), bool), []
    for _ in range(n_rounds):
        picks = learner.query(X, candidates=unlabeled)
        unlabeled[picks] = False
        learner.teach(X[picks], y[picks])
        asked.append(tuple(picks.tolist()))
    return learner, asked


def test_a_session_asks_what_a_plain_loop_asks(open_session, learner, data):
    X, y = data
    session = open_session()
    asked = []
    for _ in range(6):
        batch = session.ask()
        asked.append(batch.ids)
        answer(session, batch, y)
    by_hand, expected = run_loop(learner, X, y, 6)
    assert asked == expected
    np.testing.assert_array_equal(
        session.learner.predict_proba(X), by_hand.predict_proba(X)
    )


@pytest.mark.parametrize("strategy", ["random", "badge", "batchbald"])
def test_seeded_parts_too_are_those_of_a_plain_loop(data, strategy, tmp_path):
    X, y = data
    learner = ActiveLearner(
        LogisticRegression(solver="saga", max_iter=5),
        strategy=strategy,
        batch_size=3,
        random_state=7,
    )
    asked = []
    for _ in range(3):  # opened anew for every round
        with LabelingSession(learner, X, tmp_path / "s") as session:
            batch = session.ask()
            asked.append(batch.ids)
            answer(session, batch, y)
    assert asked == run_loop(learner, X, y, 3)[1]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("refit", [True, False])
def test_resumed_at_any_point_a_session_ends_the_same(
    open_session, data, tmp_path, refit
):
    y = data[1]

    def forget_open(session):  # this script looks after open batches itself
        session._core.queue._to_show.clear()

    def step(session, i):
        if i % 4 == 0 or not session.open_batches:
            forget_open(session)
            session.ask()
        elif i % 4 == 1:
            batch = session.open_batches[0]
            session.tell(batch.ids[:2], y[list(batch.ids[:2])])
        elif i % 4 == 2:
            session.skip(session.open_batches[0].ids[-1])
            if i % 3 == 0:
                session.undo()
        elif refit is False and session.labels:
            session.refit()

    whole = open_session(folder=tmp_path / "whole", refit=refit)
    for i in range(24):
        step(whole, i)
    for i in range(24):
        with open_session(folder=tmp_path / "parts", refit=refit) as parts:
            if parts.open_batches and i % 4 == 0:
                forget_open(parts)
            step(parts, i)
    parts = open_session(folder=tmp_path / "parts", refit=refit)
    assert strip(whole) == strip(parts)
    assert parts.labels == whole.labels
    assert parts.skipped == whole.skipped
    np.testing.assert_array_equal(
        parts.learner.predict_proba(data[0]), whole.learner.predict_proba(data[0])
    )


def test_without_a_seed_one_is_drawn_once_and_kept(open_session, data):
    learner = ActiveLearner(LogisticRegression(), strategy="random", batch_size=30)
    with open_session(learner=learner) as session:
        first = session.ask()
        answer(session, first, data[1])
        seed = manifest(session)["base_seed"]
    with open_session(learner=learner) as session:
        second = session.ask()
    expected = run_loop(
        clone(learner).set_params(random_state=seed), *data, n_rounds=2
    )[1]
    assert [first.ids, second.ids] == expected


@pytest.mark.parametrize("n_labels", [0, 1, 20])
def test_each_batch_has_a_seed_of_its_own(open_session, learner, data, n_labels):
    # Released items asked again: the same candidates and model, yet another draw.
    learner = clone(learner).set_params(strategy="random")
    session = open_session(learner=learner)
    for id in range(n_labels):
        session.tell(id, data[1][id], unasked=True)
    first = session.ask()
    session.release()
    assert session.ask().ids != first.ids


def test_labels_a_learner_was_fitted_to_are_trained_on(open_session, learner, data):
    X, y = data
    fitted = clone(learner).fit(X[:10], y[:10], sample_weight=np.arange(1.0, 11.0))
    plain = clone(learner).fit(X[:10], y[:10], sample_weight=np.arange(1.0, 11.0))
    session = open_session(X[10:], learner=fitted)
    for _ in range(2):
        batch = session.ask()
        expected = plain.query(
            X[10:], candidates=session._core.queue.free() | _mask(batch.ids)
        )
        assert batch.ids == tuple(expected)
        session.tell(batch.ids, y[10:][list(batch.ids)])
        plain.teach(X[10:][expected], y[10:][expected])
    assert len(session.learner.y_labeled_) == 18
    assert len(fitted.y_labeled_) == 10  # the user's own is left alone
    np.testing.assert_array_equal(
        session.learner.estimator_.coef_, plain.estimator_.coef_
    )


def _mask(ids, n=50):
    mask = np.zeros(n, dtype=bool)
    mask[list(ids)] = True
    return mask


def test_the_run_of_a_session_is_what_was_answered(open_session, data):
    X, y = data
    session = open_session(ids=[f"item {i}" for i in range(len(X))])
    first, second = session.ask(3), session.ask(2)
    where = {id: i for i, id in enumerate(f"item {i}" for i in range(len(X)))}

    def tell(*ids, **options):
        session.tell(list(ids), [y[where[id]] for id in ids], **options)

    assert session.run.rounds == []
    tell(first.ids[2], first.ids[0])
    tell(*second.ids)
    tell(first.ids[1])
    other = next(id for id in where if id not in {*first.ids, *second.ids})
    tell(other, unasked=True)
    rounds = [first.ids[2::-2], second.ids, first.ids[1:2], (other,)]
    expected = [[where[id] for id in ids] for ids in rounds]
    assert [record["queried"] for record in session.run.rounds] == expected
    assert session.run.n_labeled.tolist() == [2, 4, 5, 6]
    assert session.run.info["pool_size"] == len(X)
    session.undo()
    assert session.run.n_labeled.tolist() == [2, 4, 5]


def test_rules_stop_a_session_as_they_stop_a_simulation(open_session, learner, data):
    X, y = data
    session = open_session()
    rule = SelectedAccuracy(0.7, n_rounds=2).start()
    for _ in range(15):
        answer(session, session.ask(), y)
        if rule.check(session.run, session.learner, X):
            break
    run = simulate(
        learner,
        X,
        y,
        n_initial=0,
        n_rounds=15,
        stopping=SelectedAccuracy(0.7, n_rounds=2),
    )
    asked = [record["queried"] for record in run.rounds if record["queried"]]
    assert [record["queried"] for record in session.run.rounds] == asked
    assert len(asked) < 15


@pytest.mark.parametrize("overlap", [0, 1])
def test_an_open_item_that_the_learner_learned_elsewhere_is_not_asked(
    open_session, learner, data, overlap
):
    X, y = data
    people, rows = ("Ada", "Bob"), [*range(12)]
    fitted = clone(learner).fit(X[rows], y[rows])
    with open_session(learner=fitted, overlap=overlap) as session:
        batch, _ = (session.ask(5, annotator=person) for person in people)
        assert batch.ids[0] not in rows
    rows += [batch.ids[0]]
    fitted = clone(learner).fit(X[rows], y[rows])
    with pytest.warns(UserWarning, match="is not the one"):
        session = open_session(learner=fitted, overlap=overlap)
    assert session.open_batches[0].ids == batch.ids[1:]
    assert session._core.state.last_undoable(None) is None
    for person in people:
        while asked := session.ask(5, annotator=person):
            assert batch.ids[0] not in asked.ids
            answer(session, asked, y)
