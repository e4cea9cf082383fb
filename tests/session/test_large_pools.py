"""Sessions over large pools: what is kept of an item, and texts that stay in a file."""

import gc
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.datasets import open_pool
from skactive.session import _pool
from skactive.session._lookup import find_texts
from skactive.session._pool import Ids, Pool


class Lookup(TransformerMixin, BaseEstimator):
    """Features of texts that end with a number, without any training."""

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def transform(self, X):
        numbers = np.array([int(text.rsplit(" ", 1)[1]) for text in X], dtype=np.int64)
        return np.stack([np.sin(numbers), np.cos(numbers)], axis=1)


@pytest.fixture
def text_learner():
    model = make_pipeline(Lookup(), LogisticRegression())
    return ActiveLearner(model, "random", batch_size=20, random_state=0)


def write_texts(path, n, ids=False):
    columns = {"text": [f"text number {i}" for i in range(n)]}
    if ids:
        columns["id"] = [f"id-{i * 7919 % n:07d}" for i in range(n)]
    pq.write_table(pa.table(columns), path)
    return open_pool(path, "text", id="id" if ids else None)


def label(session, n_batches=2):
    for _ in range(n_batches):
        batch = session.ask()
        session.tell(batch.ids, ["odd" if i % 2 else "even" for i in range(len(batch))])


def kept_bytes(learner, X, ids, path):
    gc.collect()
    tracemalloc.start()
    session = LabelingSession(learner, X, path, ids, audit_every=5, overlap=0.1)
    with session:
        label(session)
        assert (
            session._core.state.pool.copies_of(session.audited[0])
            == session.audited[:1]
        )
        assert session.learner.classes_.tolist() == ["even", "odd"]
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "column",
        pytest.param("positions", marks=pytest.mark.slow),
        pytest.param("list", marks=pytest.mark.slow),
    ],
)
def test_at_most_32_bytes_of_an_item_are_kept(
    text_learner, tmp_path, monkeypatch, kind
):
    monkeypatch.setattr(_pool, "FEW", 10_000)
    sizes = 20_000, 40_000
    kept = []
    for n in sizes:
        X = write_texts(tmp_path / f"{n}.parquet", n, ids=kind == "column")
        ids = [f"{i:09d}" for i in range(n)] if kind == "list" else None
        assert len(X.ids) == len(X.hashes) == n  # opened before
        kept.append(kept_bytes(text_learner, X, ids, tmp_path / f"s{n}"))
    per_item = (kept[1] - kept[0]) / (sizes[1] - sizes[0])
    assert per_item <= (8 if kind == "positions" else 32)


def test_a_pool_in_a_file_is_labeled_as_a_list_is(text_learner, tmp_path):
    pool = write_texts(tmp_path / "texts.parquet", 300, ids=True)
    asked = []
    for X, name in ((pool, "file"), (list(pool), "list")):
        with LabelingSession(
            text_learner, X, tmp_path / name, list(pool.ids), audit_every=3
        ) as session:
            label(session)
            asked.append((list(session.labels), session.audited, session.ask().ids))
    assert asked[0] == asked[1]
    with LabelingSession(text_learner, pool, tmp_path / "file") as session:
        assert session.pool_ids == list(pool.ids)
        assert find_texts(session._core, "NUMBER 29", "words")[:2] == [
            pool.ids[29],
            pool.ids[290],
        ]
        assert list(session.labels) == asked[0][0]


def test_the_texts_of_a_file_grow(text_learner, tmp_path):
    pool = write_texts(tmp_path / "texts.parquet", 300, ids=True)
    session = LabelingSession(text_learner, pool[:200], tmp_path / "s")
    with session:
        label(session)
        assert session.add(pool[200:]) == list(pool[200:].ids)
        label(session)
        labels = session.labels
        assert {*labels} & {*pool[200:].ids}
    with LabelingSession(text_learner, pool, tmp_path / "s") as session:
        assert session.labels == labels
    rest = np.flatnonzero([id in labels for id in pool.ids])
    with LabelingSession(text_learner, pool[rest], tmp_path / "s") as session:
        assert session.labels == labels


def test_exports_and_imports_of_a_file(text_learner, tmp_path):
    pool = write_texts(tmp_path / "texts.parquet", 300, ids=True)
    with LabelingSession(text_learner, pool, tmp_path / "one") as session:
        label(session)
        labels = session.labels
        session.export(tmp_path / "labels.csv")
        session.export(tmp_path / "pool.jsonl", what="pool")
    for source in ("one", "labels.csv"):
        path = tmp_path / f"from {source}"
        with LabelingSession(text_learner, pool, path) as session:
            assert session.import_labels(tmp_path / source).added == list(labels)
            assert session.labels == labels


IDS = st.lists(
    st.one_of(st.integers(-3, 30), st.text("ab1", max_size=2)), min_size=1, unique=True
)


@pytest.mark.long
@settings(deadline=None)
@given(IDS, IDS)
def test_ids_are_found_by_their_hashes(ids, others):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pool, "FEW", 0)
        found = Ids(ids)
        assert found._index is not None
        for id in [*others, True, None, 1.0]:
            # A set takes True and 1.0 for 1; neither can be an id.
            assert (id in found) == (_pool.is_id(id) and id in set(ids))
        known = [id for id in others if id in ids]
        assert found.positions(known).tolist() == [ids.index(id) for id in known]
        assert found.hash().tolist() == Pool(range(len(ids)), ids).hash_ids().tolist()
        with pytest.raises(KeyError):
            found.positions(["never an id"])
        with pytest.raises(ValueError, match=r"unique, got .* more than once"):
            Ids([*ids, ids[0]])


def test_large_and_small_pools_agree(text_learner, tmp_path, monkeypatch):
    texts = [f"text {i % 40}" for i in range(60)]
    ids = [f"i{i}" for i in range(60)]
    seen = []
    for few in (0, 2**16):
        monkeypatch.setattr(_pool, "FEW", few)
        place = text_learner, texts, tmp_path / str(few), ids
        with LabelingSession(*place, audit_every=2) as session:
            label(session)
            session.export(tmp_path / "labels.csv")
            seen.append(
                (
                    session.labels,
                    session.audited,
                    session._core.state.pool.copies_of("i1"),
                )
            )
        place = text_learner, texts[::-1], tmp_path / f"new {few}", ids[::-1]
        with LabelingSession(*place) as session:
            session.import_labels(tmp_path / "labels.csv")
            seen[-1] += (session.labels,)
    assert seen[0] == seen[1]
    assert seen[0][2] == ["i1", "i41"]
