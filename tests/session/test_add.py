"""Items that are added to the pool of an open session."""

import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.session import read_labels

from ._helpers import events, get_item
from .test_threads import in_threads

OLD, NEW = [f"text {i}" for i in range(8)], ["new one", "a longer new text", "text 0"]


@pytest.fixture
def text_learner():
    model = make_pipeline(HashingVectorizer(n_features=32), LogisticRegression())
    return ActiveLearner(model, "margin", batch_size=3, random_state=0)


@pytest.fixture
def open_texts(tmp_path, text_learner):
    opened = []

    def open_texts(X=OLD, ids=None, folder=tmp_path / "s", **options):
        options = {"learner": text_learner, **options}
        learner = options.pop("learner")
        opened.append(LabelingSession(learner, X, folder, ids, **options))
        return opened[-1]

    yield open_texts
    for session in opened:
        session.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        np.array,
        lambda X: np.array(X, dtype=object),
        pd.Series,
        lambda X: pd.Series(X, dtype=object, name=X[0]),
        pl.Series,
    ],
)
def test_new_texts_can_be_asked_and_labeled(open_texts, wrap):
    with open_texts(wrap(OLD)) as session:
        session.tell([0, 1, 2], ["a", "b", "a"], unasked=True)
        session.ask(2)
        assert session.add(wrap(NEW)) == [8, 9, 10]
        assert session.pool_ids == list(range(11))
        assert [get_item(session, id) for id in (0, 8, 9)] == [OLD[0], *NEW[:2]]
        assert session._core.state.pool.copies_of(10) == [0, 10]
        asked = [id for _ in range(9) for id in session.ask(1).ids]
        assert {8, 9} <= {*asked}
        assert 10 not in asked  # a copy of it has a label
        session.tell({8: "b", 9: "a"})
        assert len(session.learner.X_labeled_) == 5
        found = session.labels, [batch.ids for batch in session.open_batches]
        kinds = [event["event"] for event in events(session)]
        assert kinds.count("pool") == 1
    with open_texts(wrap([*OLD, *NEW])) as session:
        assert (session.labels, [b.ids for b in session.open_batches]) == found
        assert [event["event"] for event in events(session)] == kinds
    assert read_labels(session.folder) == found[0]


@pytest.mark.long
@pytest.mark.parametrize(
    "wrap",
    [
        lambda X: X,
        lambda X: X.tolist(),
        sparse.csr_array,
        sparse.coo_matrix,
        pd.DataFrame,
        lambda X: pl.DataFrame(X, orient="row"),
    ],
)
def test_new_rows_can_be_asked_and_labeled(open_session, data, wrap):
    X, y = data
    with open_session(wrap(X[:40])) as session:
        session.tell(range(20), y[:20], unasked=True)
        assert session.add(wrap(X[40:])) == list(range(40, 60))
        asked = session.ask(40)
        assert sorted(asked.ids) == list(range(20, 60))
        session.tell(asked.ids, y[list(asked.ids)])
        proba = session.learner.predict_proba(wrap(X))
    with open_session(wrap(X)) as session:
        assert session.labels == dict(enumerate(y))
        np.testing.assert_allclose(session.learner.predict_proba(wrap(X)), proba)


def test_new_items_have_ids_where_the_pool_has_some(open_texts):
    ids = list("abcdefgh")
    with open_texts(ids=ids) as session:
        assert session.add(NEW, ["x", "y", 7]) == ["x", "y", 7]
        session.tell("y", "spam", unasked=True)
    session = open_texts([*NEW, *OLD], ["x", "y", 7, *ids])
    assert session.labels == {"y": "spam"}
    frame = pd.Series(["p", "q"], index=["i", "j"])
    assert session.add(frame) == ["i", "j"]
    assert get_item(session, "j") == "q"


@pytest.mark.parametrize(
    ("items", "ids", "error", "match"),
    [
        (NEW, None, ValueError, "'ids' must name each of the new items, got None, and"),
        (NEW, ["x", "y"], ValueError, "each of the 3 items of 'items', got 2 ids"),
        (NEW, ["x", "y", "a"], ValueError, "'ids' must be unique, got 'a' more than"),
        (NEW, ["x", "y", 0.5], TypeError, "must hold str or int, got 0.5"),
        ([], [], ValueError, "'items' holds no items"),
        ("text", ["x"], TypeError, "'items' must be a sequence of items, got a sing"),
        ([1.0, 2.0], ["x", "y"], TypeError, "'items' must be texts, as the pool holds"),
        ({"a", "b"}, ["x", "y"], TypeError, "'items' must be a sequence"),
    ],
)
def test_bad_items_are_refused(open_texts, items, ids, error, match):
    session = open_texts(ids=list("abcdefgh"))
    with pytest.raises(error, match=match):
        session.add(items, ids)
    assert len(session.pool_ids) == 8
    assert session._core.state.seq == 1
    session.ask(8)


def test_items_known_by_position_have_no_ids(open_session, open_texts, data, tmp_path):
    with pytest.raises(ValueError, match="'ids' must be None for a pool that is known"):
        open_texts().add(NEW, ["x", "y", "z"])
    session = open_session(folder=tmp_path / "rows")
    with pytest.raises(ValueError, match="another number of columns"):
        session.add(data[0][:, :3])
    assert session._core.state.seq == 1


@pytest.mark.parametrize("when", ["write_atomic", "append"])
def test_a_disk_that_fails_adds_nothing(open_texts, monkeypatch, when, tmp_path):
    session = open_texts()
    session.tell(3, "a", unasked=True)

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    target = {
        "write_atomic": "skactive.session._manifest.write_atomic",
        "append": "skactive.session._journal.LineWriter.write",
    }
    with monkeypatch.context() as patch:
        patch.setattr(target[when], fail)
        with pytest.raises(OSError, match="No space"):
            session.add(NEW)
    assert len(session.pool_ids) == 8
    assert session.add(NEW) == [8, 9, 10]
    session.close()
    assert open_texts([*OLD, *NEW]).labels == {3: "a"}
    assert len(list((tmp_path / "s").glob("pool*"))) == 1


def test_a_pool_that_grew_may_shrink_again(open_texts):
    with open_texts() as session:
        session.add(NEW)
        session.tell(3, "a", unasked=True)
        session.flag(9)
    with open_texts() as session:  # as after a crash before the items were saved
        assert session.labels == {3: "a"}
        assert session.flags == []


def test_the_audit_of_a_pool_that_grew_is_that_of_the_whole(open_texts):
    texts = [f"text {i}" for i in range(60)]
    session = open_texts(texts[:30], audit_every=1, refit=False)
    while len(session.labels) < 10:
        session.tell(session.ask(1).ids, ["a"])
    before = session.audited
    assert len(before) == 10
    session.add(texts[30:])
    after = session.audited
    assert after == before[: len(after)]
    while batch := session.ask(1):
        session.tell(batch.ids, ["a"])
    fresh = open_texts(texts, folder=session.folder + "2", audit_every=1, refit=False)
    assert session.audited == fresh._core.queue.draws.order.tolist()


def test_what_the_learner_was_taught_is_not_asked_when_it_comes_later(
    open_texts, text_learner
):
    fitted = clone(text_learner).fit(NEW[:2], ["a", "b"])
    session = open_texts(learner=fitted)
    session.add(NEW)
    assert sorted(session.ask(20).ids) == list(range(8))


@pytest.mark.long
@pytest.mark.slow
def test_annotators_go_on_while_the_pool_grows(open_session, data):
    X, y = np.tile(data[0], (4, 1)), np.tile(data[1], 4)
    X[60:] += np.random.default_rng(0).normal(size=(180, 5))
    session = open_session(X[:40], refit="background")
    grown = threading.Event()

    def label(annotator):
        mine = []
        while not grown.is_set() or session._core.queue.has_more(annotator):
            batch = session.ask(3, annotator=annotator)
            for id in batch.ids:
                session.tell(id, y[id], annotator=annotator)
            mine += batch.ids
        return mine

    def grow():
        for start in range(40, 240, 20):
            session.add(X[start : start + 20])
        grown.set()
        return []

    shares = in_threads(grow, lambda: label("ann"), lambda: label("bob"))
    assert sorted(id for share in shares for id in share) == list(range(240))
    session.close()
    assert open_session(X, refit=False).labels == dict(enumerate(y))
