"""A session opened with another pool: every label stays with its text."""

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.session._pool import Pool, find_moves

from ._helpers import events

TEXTS = [f"text {i}" for i in range(12)]
IDS = [f"i{i}" for i in range(12)]


@pytest.fixture
def open_texts(learner, tmp_path):
    opened = []

    def open_texts(X=TEXTS, ids=None, name="s", **options):
        options = {"refit": False, "learner": learner, **options}
        learner_ = options.pop("learner")
        opened.append(LabelingSession(learner_, X, tmp_path / name, ids, **options))
        return opened[-1]

    yield open_texts
    for session in opened:
        session.close()


def by_text(session, X):
    return {X[id]: label for id, label in session.labels.items()}


def tell_some(open_texts, X=TEXTS, **options):
    """Label positions 1, 4 and 9 and skip 2; each label names its text."""
    with open_texts(X, **options) as session:
        session.tell({i: f"of {X[i]}" for i in (4, 1, 9)}, unasked=True)
        session.skip(2, unasked=True)
        return by_text(session, X)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X[::-1],
        lambda X: ["new", *X, "newer"],
        lambda X: X[1:2] + X[3:5] + X[8:],
        lambda X: [*X[6:], "new", *X[:6]],
        lambda X: [x for x in X if x != "text 2"],
    ],
)
def test_labels_stay_with_their_texts(open_texts, change):
    told = tell_some(open_texts)
    X = change(TEXTS)
    with open_texts(X) as session:
        assert by_text(session, X) == told
        assert [X[id] for id in session.skipped] == ["text 2"] * ("text 2" in X)
        session.tell(X.index("text 10"), "of text 10", unasked=True)
        told = by_text(session, X)
    with open_texts(X) as session:  # the same again: nothing to note
        assert [e["event"] for e in events(session)].count("pool") == 1
        assert by_text(session, X) == told
    with open_texts(TEXTS) as session:  # and back
        assert by_text(session, TEXTS) == told
        assert list(session.labels) == [4, 1, 9, 10]


def test_sixty_of_sixty_labels_are_right_in_another_order(open_texts, tmp_path):
    texts = [f"tweet number {i} of the day" for i in range(500)]
    order = np.random.default_rng(0).permutation(500)
    other = [texts[i] for i in order]
    with open_texts(texts, name="one") as session:
        told = {i: texts[i][-12:] + str(i % 3) for i in range(0, 480, 8)}
        session.tell(told, unasked=True)
        session.export(tmp_path / "one.csv")
    truth = {order.tolist().index(i): label for i, label in told.items()}
    for source in ("one", "one.csv"):
        with open_texts(other, name=f"new {source}") as session:
            imported = session.import_labels(tmp_path / source)
            assert len(imported.added) == 60
            assert session.labels == truth
    with open_texts(other, name="one") as session:
        assert session.labels == truth


def test_history_undo_and_open_batches_follow_their_items(open_texts):
    with open_texts() as session:
        batch = session.ask(3)
        session.tell(batch.ids[0], "first")
        session.tell(batch.ids[0], "second")
    first, *waiting = [TEXTS[id] for id in batch.ids]
    X = [*TEXTS[::-1], "new"]
    session = open_texts(X)
    assert [X[id] for id in session.open_batches[0].ids] == waiting
    assert list(session.ask().items) == waiting
    kinds = [event["event"] for event in session.history(X.index(first))]
    assert kinds == ["ask", "tell", "tell"]
    assert session.undo()["ids"] == [X.index(first)]
    assert by_text(session, X) == {first: "first"}


def test_open_items_that_are_gone_are_closed(open_texts):
    with open_texts() as session:
        batch = session.ask(2)
        session.skip(11, unasked=True)
    X = [x for i, x in enumerate(TEXTS) if i not in (*batch.ids, 11)]
    session = open_texts(X)
    assert session.open_batches == []
    assert session.skipped == []
    assert session.ask(1).number == 2


def test_the_model_is_trained_on_the_items_that_were_labeled(open_session, data):
    X, y = data
    with open_session() as session:
        session.tell(list(range(0, 60, 5)), y[::5], unasked=True)
        session.refit()
        before = session.learner.predict_proba(X)
    for refit in (True, False, "background"):
        with open_session(X[::-1], refit=refit) as session:
            np.testing.assert_allclose(session.learner.predict_proba(X), before)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X: X[2:], "1 labeled items are missing or changed: 1[.]"),
        (lambda X: [*X[:4], "edited", *X[5:]], "1 labeled .* or changed: 4[.]"),
        (lambda X: ["other"] * 12, "none of its 12 items was in that pool"),
    ],
)
def test_a_labeled_text_that_is_gone_is_named(open_texts, change, match):
    tell_some(open_texts)
    with pytest.raises(ValueError, match=match):
        open_texts(change(TEXTS))
    open_texts()  # nothing was changed


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X, ids: (X[2:], ids[2:]), "1 labeled items are missing: 'i1'[.] Res"),
        (lambda X, ids: (["edited", *X[1:]], ids), "1 items changed: 'i0'[.] Res"),
        (lambda X, ids: (X[::-1], ids), "12 items changed: 'i0', 'i1'"),
        (
            lambda X, ids: (X, None),
            "none of its 12 ids was in that pool. Pass the ids of",
        ),
        (lambda X, ids: (X, ["x", "y", *ids[2:]]), "1 .* are missing: 'i1'[.] Res"),
    ],
)
def test_a_changed_item_is_named_by_its_id(open_texts, change, match):
    with open_texts(ids=IDS) as session:
        session.tell({"i1": "a", "i5": "b"}, unasked=True)
    X, ids = change(TEXTS, IDS)
    with pytest.raises(ValueError, match=match):
        open_texts(X, ids)
    assert open_texts(ids=IDS).labels == {"i1": "a", "i5": "b"}


def test_items_with_ids_may_move_come_and_go(open_texts):
    with open_texts(ids=IDS) as session:
        session.tell({"i1": "a", "i5": "b"}, unasked=True)
        session.skip(["i0", "i7"], unasked=True)
    X, ids = [*TEXTS[:0:-1], "new"], [*IDS[:0:-1], "new"]
    with open_texts(X, ids) as session:
        assert session.labels == {"i1": "a", "i5": "b"}
        assert session.skipped == ["i7"]
        session.tell("new", "c", unasked=True)
    assert open_texts(X, ids).labels == {"i1": "a", "i5": "b", "new": "c"}


def test_a_frame_that_was_filtered_keeps_its_labels(open_texts):
    frame = pd.DataFrame({"text": TEXTS})["text"]
    with open_texts(frame) as session:
        session.tell({1: "a", 5: "b"}, unasked=True)
    with open_texts(frame.drop([0, 3])) as session:
        assert session.labels == {1: "a", 5: "b"}
    shuffled = frame.sample(frac=1.0, random_state=0)
    with open_texts(shuffled) as session:
        assert session.labels == {1: "a", 5: "b"}


def test_copies_of_a_labeled_text_keep_as_many_labels(open_texts):
    X = ["a", "b", "a", "c", "a", "d"]
    with open_texts(X) as session:
        session.tell({2: "first", 4: "second"}, unasked=True)
    with open_texts([*X, "a"]) as session:
        assert session.labels == {2: "first", 4: "second"}  # they stay in their place
    with open_texts(["a", "d", "a"]) as session:
        assert session.labels == {2: "first", 0: "second"}
    with pytest.raises(ValueError, match="1 labeled items are missing or changed: "):
        open_texts(["a", "d"])


def test_a_label_counts_before_a_copy_that_was_only_asked(open_texts):
    X = ["a", "b", "a"]
    with open_texts(X) as session:
        session.skip(0, unasked=True)
        session.tell(2, "label", unasked=True)
    with open_texts(["a", "b"]) as session:
        assert session.labels == {0: "label"}
        assert session.skipped == []


def test_a_crash_while_a_change_is_recorded_loses_nothing(open_texts, monkeypatch):
    told = tell_some(open_texts)
    X = TEXTS[::-1]
    with monkeypatch.context() as patch:
        patch.setattr("skactive.session._journal.Journal.append", _crash)
        with pytest.raises(KeyboardInterrupt):
            open_texts(X)
    for pool in (TEXTS, X):
        with open_texts(pool) as session:
            assert by_text(session, pool) == told


def _crash(*args, **kwargs):
    raise KeyboardInterrupt


def test_only_the_last_hashes_are_kept(open_texts, tmp_path):
    tell_some(open_texts)
    open_texts(TEXTS[::-1]).close()
    open_texts([*TEXTS, "new"]).close()
    (kept,) = (tmp_path / "s").glob("pool*")
    assert kept.name != "pool.npy"


def test_a_pool_whose_hashes_are_lost_is_refused(open_texts, tmp_path):
    tell_some(open_texts)
    (tmp_path / "s" / "pool.npy").unlink()
    with pytest.raises(ValueError, match=r"held 12 items and holds 11 now.*'pool\.npy"):
        open_texts(TEXTS[:11])
    open_texts()


def test_renamed_columns_are_named(open_session, data):
    frame = pd.DataFrame(data[0], columns=list("abcde"))
    open_session(frame).close()
    with pytest.raises(ValueError, match=r"its columns were \['a', .* and are \['x'"):
        open_session(frame.rename(columns={"a": "x"}))
    open_session(frame)


class Picture:
    """An object that shows nothing of its content."""


def test_objects_without_content_need_ids(open_texts):
    pictures = [Picture() for _ in range(3)]
    with pytest.raises(TypeError, match=r"can be compared, got Picture\. Pass ids="):
        open_texts(pictures)
    with open_texts(pictures, ["a", "b", "c"]) as session:
        session.tell("b", "cat", unasked=True)
    assert open_texts(pictures[::-1], ["c", "b", "a"]).labels == {"b": "cat"}


def test_columns_of_arrow_are_lists(open_texts):
    told = tell_some(open_texts)
    arrow = pa.chunked_array([TEXTS[:5], TEXTS[5:]])
    for X in (arrow, pa.array(TEXTS), pl.Series(TEXTS)):
        with open_texts(X) as session:
            assert by_text(session, TEXTS) == told
            assert next(item for _, item in session.ask(1)) in TEXTS
            session.release()


def test_copies_of_a_text_are_asked_once(open_texts):
    session = open_texts(TEXTS * 3)
    asked = [id for _ in range(3) for id in session.ask(3).ids]
    assert len({id % 12 for id in asked}) == 9
    session.tell(asked[0], "a")
    session.skip(asked[1])
    session.release()
    rest = session.ask(36).ids
    assert sorted(id % 12 for id in rest) == sorted(
        set(range(12)) - {asked[0] % 12, asked[1] % 12}
    )


def test_equal_rows_of_numbers_are_items_of_their_own(open_session, data):
    session = open_session(np.repeat(data[0][:5], 2, axis=0))
    assert len(session.ask(10)) == 10


def test_what_the_learner_was_taught_is_not_asked(open_session, learner, data):
    X, y = data
    taught = clone(learner).fit(X[:20], y[:20])
    with open_session(learner=taught) as session:
        asked = session.ask(60)
        assert sorted(asked.ids) == list(range(20, 60))
        assert session.labels == {}
    session = open_session(np.r_[X[:1], X], folder=session.folder + "2", learner=taught)
    assert sorted(session.ask(60).ids) == [1, *range(21, 61)]


def test_texts_whose_label_was_taken_back_are_asked_with_the_old_model(open_texts):
    vectorizer = TfidfVectorizer(token_pattern=r"\w+")
    model = make_pipeline(vectorizer, LogisticRegression())
    learner = ActiveLearner(model, batch_size=4, random_state=0)
    session = open_texts(learner=learner)
    session.tell({0: "a", 1: "b"}, unasked=True)
    session.refit()
    session.undo()
    first = session.ask(12)
    assert sorted(first.ids) == list(range(2, 12))  # the old model knows the others
    assert session.ask(12).ids == (0, 1)


LETTERS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=8)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(LETTERS, LETTERS, st.data())
def test_moves_keep_every_label_at_its_content(before, now, data):
    positions = st.lists(st.sampled_from(range(len(before))), unique=True)
    labeled = data.draw(positions)
    others = [i for i in data.draw(positions) if i not in labeled]
    hashes = Pool(before).fingerprint()[1]
    enough = not Counter(before[i] for i in labeled) - Counter(now)
    if not enough or not set(before) & set(now):
        with pytest.raises(ValueError, match=r"missing or changed|none of its"):
            find_moves(hashes, Pool(now), labeled, others)
        return
    moves = find_moves(hashes, Pool(now), labeled, others)
    found = {id: moves.get(id, id) for id in [*labeled, *others]}
    kept = {id: place for id, place in found.items() if place is not None}
    assert all(now[place] == before[id] for id, place in kept.items())
    assert len(set(kept.values())) == len(kept)
    assert kept.keys() >= set(labeled)
