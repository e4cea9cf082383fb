"""Ask, tell, skip, undo, relabel: what a session does while nothing goes wrong."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession, simulate
from skactive.stopping import SelectedAccuracy


def events(session):
    lines = Path(session.path, "journal.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in lines.splitlines()]


def manifest(session):
    return json.loads(Path(session.path, "manifest.json").read_text(encoding="utf-8"))


def answer(session, batch, y):
    session.tell(batch.ids, y[list(batch.ids)])


def run_loop(learner, X, y, n_rounds):
    """Ask in a plain loop of query and teach, without a session."""
    learner, unlabelled, asked = clone(learner), np.ones(len(X), bool), []
    for _ in range(n_rounds):
        picks = learner.query(X, candidates=unlabelled)
        unlabelled[picks] = False
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


@pytest.mark.parametrize("refit", [True, False])
def test_resumed_at_any_point_a_session_ends_the_same(
    open_session, data, tmp_path, refit
):
    y = data[1]

    def step(session, i):
        if i % 4 == 0 or not session.open_batches:
            session._to_show.clear()  # this script looks after open batches itself
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

    whole = open_session(path=tmp_path / "whole", refit=refit)
    for i in range(24):
        step(whole, i)
    for i in range(24):
        with open_session(path=tmp_path / "parts", refit=refit) as parts:
            if parts.open_batches and i % 4 == 0:
                parts._to_show.clear()  # this script looks after open batches itself
            step(parts, i)
    parts = open_session(path=tmp_path / "parts", refit=refit)
    strip = [{k: v for k, v in e.items() if k != "t"} for e in events(whole)]
    assert strip == [{k: v for k, v in e.items() if k != "t"} for e in events(parts)]
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


def test_open_items_are_not_asked_again(open_session):
    session = open_session()
    batches = [session.ask(10) for _ in range(6)]
    ids = [id for batch in batches for id in batch.ids]
    assert sorted(ids) == list(range(60))
    assert [b.number for b in session.open_batches] == [1, 2, 3, 4, 5, 6]
    assert not session.ask()
    session.release(batches[2].ids)
    again = session.ask(60)
    assert sorted(again.ids) == sorted(batches[2].ids)
    assert again.number == 7


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


def test_partial_answers_leave_the_rest_open(open_session, data):
    session = open_session()
    first, second = session.ask(), session.ask()
    session.tell(second.ids[1], data[1][second.ids[1]])
    session.tell(first.ids[:3], data[1][list(first.ids[:3])])
    left = {batch.number: batch.ids for batch in session.open_batches}
    assert left == {1: first.ids[3:], 2: (second.ids[0], *second.ids[2:])}
    np.testing.assert_array_equal(
        session.open_batches[0].items, data[0][list(first.ids[3:])]
    )


def test_a_resumed_session_shows_the_same_batch(open_session, data):
    with open_session() as session:
        first, second = session.ask(), session.ask()
        session.tell(first.ids[:1], data[1][list(first.ids[:1])])
    session = open_session()
    assert session.ask().ids == first.ids[1:]
    assert session.ask() == second
    assert session.ask().number == 3


def test_a_resumed_session_shows_each_annotator_their_own(open_session):
    with open_session(annotator="ann") as session:
        ann, bob = session.ask(), session.ask(annotator="bob")
    session = open_session(annotator="bob")
    assert session.ask() == bob
    assert session.ask().number == 3
    assert session.ask(annotator="ann") == ann
    assert ann.annotator == "ann"


def test_relabelling_takes_the_place_of_the_old_label(open_session):
    session = open_session(annotator="ann")
    id = session.ask(1).ids[0]
    session.tell(id, "ham")
    session.tell(id, "spam", annotator="bob")
    assert session.labels == {id: "spam"}
    kinds = [(e["event"], e.get("label"), e["annotator"]) for e in session.history(id)]
    assert kinds == [
        ("ask", None, "ann"),
        ("tell", "ham", "ann"),
        ("tell", "spam", "bob"),
    ]


def test_undo_takes_back_one_answer_after_the_other(open_session):
    session = open_session()
    a, b, c = session.ask(3).ids
    session.tell([a, b], ["ham", "eggs"])
    session.tell(a, "spam")
    session.skip(c)
    assert session.undo() == {"event": "skip", "ids": [c]}
    assert session.undo() == {"event": "tell", "ids": [a], "labels": ["spam"]}
    assert session.labels == {a: "ham", b: "eggs"}
    session.undo()
    assert session.labels == {}
    assert session.ask().ids == (a, b, c)  # what was undone comes first
    with pytest.raises(ValueError, match="nothing to undo"):
        session.undo()
    assert [e["undone"] for e in session.history(a)] == [False, True, True]


def test_undo_reaches_back_beyond_a_restart(open_session):
    with open_session() as session:
        a, b = session.ask(2).ids
        session.tell(a, "ham")
        session.tell(b, "spam")
    with open_session() as session:
        session.undo()
        assert session.labels == {a: "ham"}
    with open_session() as session:
        session.undo()
        assert session.labels == {}
        assert session.open_batches[0].ids == (a, b)


def test_an_undone_release_does_not_open_items_twice(open_session):
    session = open_session()
    session.ask(60)
    session.release()
    session.ask(60)
    session.undo()
    assert [batch.number for batch in session.open_batches] == [2]


def test_skipped_items_are_set_aside_until_told(open_session):
    session = open_session()
    batch = session.ask(59)
    session.skip(batch.ids)
    assert session.skipped == list(batch.ids)
    (rest,) = session.ask().ids
    session.tell(rest, "ham")
    assert not session.ask()
    session.tell(batch.ids[0], "ham")
    assert session.skipped == list(batch.ids[1:])
    with pytest.raises(ValueError, match=f"without a label to be skipped, got {rest}"):
        session.skip(rest)


def test_labels_of_items_never_asked_are_journalled_as_such(open_session):
    session = open_session()
    asked = session.ask(1).ids[0]
    other = (asked + 1) % 60
    with pytest.raises(ValueError, match=f"got {other}, which never were"):
        session.tell([asked, other], ["ham", "spam"])
    assert session.labels == {}
    session.tell([asked, other], ["ham", "spam"], unasked=True)
    session.tell([asked], ["ham"], unasked=True)
    assert [e.get("unasked") for e in events(session)] == [None, True, None]


@pytest.mark.parametrize(
    "wrap",
    [list, tuple, np.array, pd.Series, pl.Series, lambda y: np.array(y, object)],
)
@pytest.mark.parametrize(
    "labels", [["a", "b"], [0, 1], [True, False], [0.5, 2.0], [[0, 1], [1, 1]]]
)
def test_labels_come_back_as_they_were_told(open_session, wrap, labels):
    if isinstance(labels[0], list) and wrap not in (list, tuple, np.array):
        pytest.skip("no one-dimensional container of lists")
    session = open_session()
    a, b = session.ask(2).ids
    session.tell(wrap([a, b]), wrap(labels))
    session.close()
    again = open_session().labels
    assert again == {a: labels[0], b: labels[1]}
    assert type(again[a]) is type(labels[0])


def test_ids_are_the_index_of_a_pandas_object(open_session, data):
    frame = pd.DataFrame(data[0], index=[f"row {i}" for i in range(60)])
    session = open_session(frame)
    batch = session.ask(2)
    assert list(batch.items.index) == list(batch.ids)
    session.tell(batch.ids, ["ham", "spam"])
    assert set(session.labels) == set(batch.ids)


def test_labels_a_learner_was_fitted_to_are_trained_on(open_session, learner, data):
    X, y = data
    fitted = clone(learner).fit(X[:10], y[:10], sample_weight=np.arange(1.0, 11.0))
    plain = clone(learner).fit(X[:10], y[:10], sample_weight=np.arange(1.0, 11.0))
    session = open_session(X[10:], learner=fitted)
    for _ in range(2):
        batch = session.ask()
        expected = plain.query(X[10:], candidates=session._free() | _mask(batch.ids))
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


def test_another_learner_goes_on_with_a_warning_and_is_noted(open_session, learner):
    with open_session() as session:
        session.ask()
    other = clone(learner).set_params(strategy="entropy", estimator__C=0.5)
    match = r"differs in estimator__C \(1.0, now 0.5\); strategy \('margin', now 'entr"
    with pytest.warns(UserWarning, match=match), open_session(learner=other) as session:
        assert events(session)[-1]["learner"]["strategy"]["name"] == "entropy"
    open_session(learner=other)  # noted: no second warning


def test_another_seed_is_not_followed(open_session, learner):
    with open_session() as session:
        session.ask()
    other = clone(learner).set_params(random_state=5)
    with pytest.warns(UserWarning, match="begun with 0, by which it goes on"):
        session = open_session(learner=other)
    assert session.learner.random_state == 0


def test_the_manifest_says_what_the_session_was_begun_with(open_session):
    begun = manifest(open_session())
    assert begun["format_version"] == 1
    assert begun["pool"]["n"] == 60
    assert begun["base_seed"] == 0
    assert begun["learner"]["strategy"] == {
        "name": "margin",
        "dist": "skactive",
        "version": begun["versions"]["skactive"],
    }
    assert begun["learner"]["params"]["estimator__C"] == 1.0


def test_what_json_does_not_take_is_described(open_session, learner):
    odd = clone(learner).set_params(
        strategy=lambda view: np.arange(len(view)),
        estimator__class_weight={"ham": np.inf, "spam": np.float32(2.0)},
    )
    with open_session(learner=odd) as session:
        described = manifest(session)["learner"]["strategy"]["repr"]
    assert "<function" in described
    assert " at 0x" not in described
    open_session(learner=odd)  # no warning: it is the same


def test_a_bar_shows_labels_and_the_age_of_the_model(open_session, capsys):
    session = open_session(verbose=1)
    session.ask(2)
    session.tell(session.open_batches[0].ids, ["ham", "spam"])
    session.close()
    shown = capsys.readouterr().err
    assert "2/60" in shown
    assert "model_age=2" in shown


def test_a_closed_session_can_be_read_but_not_written(open_session):
    session = open_session()
    batch = session.ask()
    session.close()
    session.close()
    assert session.labels == {}
    assert session.open_batches == [batch]
    for call in (session.ask, session.undo, lambda: session.tell(batch.ids[0], "ham")):
        with pytest.raises(ValueError, match=r"closed\. Open it again"):
            call()


def test_repr_counts(open_session):
    session = open_session()
    session.tell(3, "ham", unasked=True)
    assert repr(session).endswith("1 of 60 labelled)")


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
    assert [record["asked"] for record in session.run.rounds] == expected
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
    asked = [record["asked"] for record in run.rounds if record["asked"]]
    assert [record["asked"] for record in session.run.rounds] == asked
    assert len(asked) < 15
