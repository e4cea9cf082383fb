"""Ask, tell, skip, undo, relabel: what a session does while nothing goes wrong."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from skactive.session import Batch

from ._helpers import events, manifest


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


def test_a_new_label_replaces_the_previous_one(open_session):
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


def test_skipped_items_are_set_aside_until_labeled(open_session):
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


def test_labels_of_items_never_asked_are_recorded_as_such(open_session):
    session = open_session()
    asked = session.ask(1).ids[0]
    other = (asked + 1) % 60
    with pytest.raises(ValueError, match=f"got {other}, which never were"):
        session.tell([asked, other], ["ham", "spam"])
    assert session.labels == {}
    session.tell([asked, other], ["ham", "spam"], unasked=True)
    session.tell([asked], ["ham"], unasked=True)
    assert [e.get("unasked") for e in events(session)] == [None, True, None]


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrap", "labels"),
    [
        *((list, y) for y in [["a", "b"], [0, 1], [True, False], [1.0, 2.0]]),
        *((kind, [0, 1]) for kind in [tuple, np.array, pd.Series, pl.Series]),
        *((kind, [[0, 1], [1, 1]]) for kind in [list, np.array]),
        (lambda y: np.array(y, object), ["a", "b"]),
    ],
)
def test_labels_keep_their_types(open_session, wrap, labels):
    if isinstance(labels[0], list) and wrap not in (list, tuple, np.array):
        pytest.skip("no one-dimensional container of lists")
    session = open_session()
    a, b = session.ask(2).ids
    session.tell(wrap([a, b]), wrap(labels))
    session.close()
    again = open_session().labels
    assert again == {a: labels[0], b: labels[1]}
    assert type(again[a]) is type(labels[0])


def test_scalars_of_numpy_are_ids_everywhere(open_session):
    session = open_session()
    session.skip(np.int64(3), unasked=True)
    session.tell(np.int64(4), np.str_("ham"), unasked=True)
    assert session.skipped == [3]
    assert session.labels == {4: "ham"}
    (asked,) = session.ask(1).ids
    session.release(np.int64(asked))
    assert session.open_batches == []


def test_ids_of_numpy_are_plain_ids(open_session, data):
    names = [np.str_(f"i{i}") for i in range(60)]
    session = open_session(ids=names)
    session.tell(pd.Index(names)[:1], ["ham"], unasked=True)
    assert [type(id) for id in session.labels] == [str]


def test_a_data_frame_of_labels_is_read_by_rows(open_session):
    session = open_session()
    session.tell([3, 4], pd.DataFrame({"a": [0, 1], "b": [1, 0]}), unasked=True)
    assert session.labels == {3: [0, 1], 4: [1, 0]}


def test_tell_accepts_a_dict_of_labels(open_session):
    session = open_session()
    session.tell({10: "ham", 11: "spam"}, unasked=True)
    assert session.labels == {10: "ham", 11: "spam"}


def test_a_batch_yields_pairs_and_is_accepted_by_tell(open_session, data):
    session = open_session()
    batch = session.ask(2)
    for (id, item), expected in zip(batch, batch.ids, strict=True):
        assert id == expected
        np.testing.assert_array_equal(item, data[0][id])
    assert repr(batch) == f"Batch(2 items, number=1: {batch.ids[0]}, {batch.ids[1]})"
    session.tell(batch.ids, ["ham", "spam"])
    assert session.labels == dict(zip(batch.ids, ["ham", "spam"], strict=True))


@pytest.mark.parametrize(
    ("wrap", "first"),
    [
        (list, [1.0, 2.0]),
        (pd.DataFrame, {0: 1.0, 1: 2.0}),
        (lambda X: pd.DataFrame(X, index=["b", "a"]), {0: 1.0, 1: 2.0}),
        (lambda X: pl.DataFrame(X, orient="row"), (1.0, 2.0)),
        (lambda X: pd.Series(["one", "two"], index=[7, 0]), "one"),
        (lambda X: pl.Series(["one", "two"]), "one"),
        (lambda X: sparse.csr_array(X), [[1.0, 2.0]]),
    ],
)
def test_a_batch_yields_items_of_every_container(wrap, first):
    ((id, item),) = list(Batch(("a",), wrap([[1.0, 2.0], [3.0, 4.0]])))
    item = item.toarray().tolist() if sparse.issparse(item) else item
    assert id == "a"
    assert (item.to_dict() if isinstance(item, pd.Series) else item) == first


def test_ids_are_the_index_of_a_pandas_object(open_session, data):
    frame = pd.DataFrame(data[0], index=[f"row {i}" for i in range(60)])
    session = open_session(frame)
    batch = session.ask(2)
    assert list(batch.items.index) == list(batch.ids)
    session.tell(batch.ids, ["ham", "spam"])
    assert set(session.labels) == set(batch.ids)


def test_another_learner_goes_on_with_a_warning_and_is_noted(open_session, learner):
    with open_session() as session:
        session.ask()
    other = clone(learner).set_params(strategy="entropy", estimator__C=0.5)
    match = "so far: estimator__C was 1.0, is 0.5; strategy was margin, is entropy"
    with pytest.warns(UserWarning, match=match), open_session(learner=other) as session:
        assert events(session)[-1]["learner"]["strategy"]["name"] == "entropy"
    open_session(learner=other)  # noted: no second warning


def test_another_seed_is_not_followed(open_session, learner):
    with open_session() as session:
        session.ask()
    other = clone(learner).set_params(random_state=5)
    with pytest.warns(UserWarning, match="began with 0, which it continues to use"):
        session = open_session(learner=other)
    assert session.learner.random_state == 0


def test_the_manifest_describes_pool_and_learner(open_session):
    begun = manifest(open_session())
    assert begun["format_version"] == 2
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


def test_a_bar_has_a_target(open_session, capsys):
    session = open_session(verbose=1, n_labels=20)
    session.tell([1, 2], ["ham", "spam"], unasked=True)
    session.close()
    assert "2/20" in capsys.readouterr().err


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
    assert repr(session).endswith("1 of 60 labeled)")
