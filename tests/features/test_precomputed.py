"""PrecomputedFeatures looks rows up in folders, `.npy` files and datasets."""

import os
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive._storage._mapped import in_memory
from skactive._utils._pipelines import computes_features
from skactive.features import PrecomputedFeatures, _precomputed, _vectors

from ._helpers import WIDTH, rows_of, write

TEXTS = [f"text {i}" for i in range(50)]
ROWS = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
IDS = [f"id {i}" for i in np.random.default_rng(1).permutation(50)]


@pytest.fixture
def folder(tmp_path):
    write(TEXTS, tmp_path / "f")
    return tmp_path / "f"


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    return tmp_path / "rows.npy"


# Folders of transform_to ---------------------------------------------------------


def is_map(features, folder):
    """Whether an array is a part of the file that is mapped."""
    opened = _vectors.open_vectors(folder, None, "vector")
    return np.shares_memory(features, opened.features.mapped)


@pytest.mark.parametrize("is_large", [False, True])
def test_only_large_consecutive_rows_are_not_copied(folder, monkeypatch, is_large):
    monkeypatch.setattr(_precomputed, "LARGE", 2 * WIDTH - 1 if is_large else 10**6)
    stored = PrecomputedFeatures(folder)
    for part in (slice(None), slice(10, 30), slice(49, 50)):
        found = stored.transform(TEXTS[part])
        assert is_map(found, folder) == is_large
        assert_array_equal(found, rows_of(TEXTS[part]))
        assert found.dtype == np.float16
        assert not found.flags.writeable


@pytest.mark.parametrize("n", [1, 20])
def test_rows_are_found_where_they_are(folder, n):
    array, rows = PrecomputedFeatures(folder).find_rows(TEXTS[13 : 13 + n])
    found = array if rows is None else array[rows]
    assert_array_equal(np.asarray(found), rows_of(TEXTS[13 : 13 + n]))


def test_other_rows_are_copied(folder):
    stored = PrecomputedFeatures(folder)
    for texts in (TEXTS[::-1], [*TEXTS[:9], TEXTS[0]], TEXTS[40:] + TEXTS[:5]):
        found = stored.transform(texts)
        assert not is_map(found, folder)
        assert not found.flags.writeable
        assert_array_equal(found, rows_of(texts))


def test_repeated_texts(tmp_path):
    texts = ["a", "b", "a", "c", "b", "d"]
    stored, _ = write(texts, tmp_path / "f")
    assert stored.find_rows(texts)[1] is None
    for some in (["a", "c"], ["b", "a", "c"], ["c", "b", "d"], ["d", "d"]):
        assert_array_equal(stored.transform(some), rows_of(some))


@pytest.mark.long
def test_all_containers_of_texts(folder, texts):
    write(list(texts), folder.parent / "g")
    stored = PrecomputedFeatures(folder.parent / "g")
    assert_array_equal(stored.transform(texts), rows_of(list(map(str, texts))))


def test_a_pool_is_looked_up_without_its_texts(folder, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    from skactive.datasets import TextPool, open_pool

    (tmp_path / "p.jsonl").write_text(
        "".join(f'{{"t": "{text}"}}\n' for text in TEXTS), encoding="utf-8"
    )
    pool = open_pool(tmp_path / "p.jsonl", "t")
    assert write(pool, folder)[1] == []
    monkeypatch.setattr(TextPool, "batches", None)
    monkeypatch.setattr(TextPool, "__iter__", None)
    stored = PrecomputedFeatures(folder)
    assert stored.find_rows(pool)[1] is None
    assert_array_equal(stored.transform(pool), rows_of(TEXTS))
    assert_array_equal(stored.transform(pool[[5, 3]]), rows_of([TEXTS[5], TEXTS[3]]))


def test_a_pool_is_written(tmp_path):
    pytest.importorskip("pyarrow")
    from skactive.datasets import open_pool

    texts = [*TEXTS, *TEXTS[:20]]
    lines = "".join(f'{{"a": "{text}", "b": "{text} b"}}\n' for text in texts)
    (tmp_path / "p.jsonl").write_text(lines, encoding="utf-8")
    for columns in ("a", ("a", "b")):
        pool = open_pool(tmp_path / "p.jsonl", columns)
        stored, encoded = write(pool, tmp_path / str(columns))
        assert sorted(encoded) == sorted(set(pool))
        assert_array_equal(stored.transform(list(pool)), rows_of(list(pool)))


def test_a_column_of_a_data_frame(folder):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"n": 1, "text": TEXTS[3:7]})
    found = PrecomputedFeatures(folder, id="text").transform(frame)
    assert_array_equal(found, rows_of(TEXTS[3:7]))


def test_large_copies_are_in_a_temporary_file(folder, monkeypatch):
    monkeypatch.setattr(_precomputed, "LARGE", 10)
    found = PrecomputedFeatures(folder).transform(TEXTS[::-1])
    assert_array_equal(found, rows_of(TEXTS[::-1]))
    assert not in_memory(found)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.disk_usage", full)
    with pytest.warns(UserWarning, match="kept in memory"):
        found = PrecomputedFeatures(folder).transform(TEXTS[::-1])
    assert_array_equal(found, rows_of(TEXTS[::-1]))


def test_unknown_texts_are_named(folder):
    match = r"got 2 others, at positions: 1, 3\. Pass 'encoder'"
    with pytest.raises(ValueError, match=match):
        PrecomputedFeatures(folder).transform(["text 1", "x", "text 2", "y"])
    with pytest.raises(ValueError, match=r"got 7 others.*0, 1, 2, 3, 4 and 2 more"):
        PrecomputedFeatures(folder).transform(list("abcdefg"))
    with pytest.raises(TypeError, match="every item of 'X' must be a str"):
        PrecomputedFeatures(folder).transform([1, 2])


class Encoder:
    """Compute rows; count what is asked."""

    def __init__(self, width=WIDTH):
        self.width, self.asked = width, []

    def transform(self, X):
        self.asked += list(X)
        return rows_of(X, self.width)


def test_unknown_texts_are_encoded(folder):
    texts = ["x", *TEXTS[5:9], "y", TEXTS[0], "x"]
    encoder = Encoder()
    stored = PrecomputedFeatures(folder, encoder=encoder)
    assert_array_equal(stored.transform(texts), rows_of(texts))
    assert encoder.asked == ["x", "y", "x"]
    stored.transform(TEXTS[::-1])
    assert encoder.asked == ["x", "y", "x"]
    with pytest.raises(ValueError, match=r"features of 5 columns, as in .*\(1, 4\)"):
        PrecomputedFeatures(folder, encoder=Encoder(4)).transform(["z"])


def test_copies_share_what_is_open(folder, monkeypatch):
    opened = []
    monkeypatch.setattr(
        _vectors,
        "open_folder",
        lambda path, open=_vectors.open_folder: opened.append(path) or open(path),
    )
    stored = PrecomputedFeatures(folder)
    for each in (stored, clone(stored), pickle.loads(pickle.dumps(stored))):
        each.fit(TEXTS).transform(TEXTS[5:3:-1])
    assert len(opened) == 1


def test_a_folder_that_changes_is_opened_again(tmp_path):
    stored, _ = write(TEXTS, tmp_path / "f")
    stored.transform(TEXTS)
    write(TEXTS[::-1], tmp_path / "g", width=3)
    os.rename(tmp_path / "f", tmp_path / "old")
    os.rename(tmp_path / "g", tmp_path / "f")
    assert_array_equal(stored.transform(TEXTS), rows_of(TEXTS, 3))


def test_a_home_folder(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    stored = PrecomputedFeatures("~/f")
    assert_array_equal(stored.transform(TEXTS[:2]), rows_of(TEXTS[:2]))


def test_sources_that_do_not_exist(tmp_path):
    with pytest.raises(ValueError, match=r"'source' must be a folder.*not exist"):
        PrecomputedFeatures(tmp_path / "none").fit(TEXTS)
    with pytest.raises(ValueError, match="'source' parameter of PrecomputedFeatures"):
        PrecomputedFeatures(3).fit(TEXTS)


# Numbers of rows -------------------------------------------------------------------


def test_row_numbers(file):
    stored = PrecomputedFeatures(str(file))
    assert stored.find_rows(range(50))[1] is None
    for X in ([3, 1], np.arange(7)[:, None], np.array([], int), [49]):
        expected = ROWS[np.asarray(X, int).reshape(-1)]
        assert_array_equal(stored.transform(X), expected)


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        ([0, 50], ValueError, r"in \[0, 50\), got 50 at position 1"),
        ([-1], ValueError, r"in \[0, 50\), got -1 at position 0"),
        ([0.5], TypeError, "must hold row numbers.*float64"),
        (["a"], TypeError, "Pass integers, or 'id'"),
        ([[1, 2]], TypeError, r"shape \(1, 2\)"),
    ],
)
def test_other_row_numbers(file, X, error, match):
    with pytest.raises(error, match=match):
        PrecomputedFeatures(file).transform(X)


def test_files_that_hold_no_vectors(tmp_path, file):
    np.save(tmp_path / "numbers.npy", np.arange(3))
    with pytest.raises(ValueError, match=r"got int64 of shape \(3,\)"):
        PrecomputedFeatures(tmp_path / "numbers.npy").fit([0])
    with pytest.raises(ValueError, match=r"'id' must be None for a \.npy file"):
        PrecomputedFeatures(file, id="id").fit([0])


# Parquet, Arrow, Lance -------------------------------------------------------------


def make_table(kind, dtype="float32"):
    pa = pytest.importorskip("pyarrow")
    rows = ROWS.astype(dtype)
    type_ = pa.from_numpy_dtype(rows.dtype)
    if kind == "fixed":
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel(), type_), 6)
    else:
        vectors = pa.array(list(rows), pa.list_(type_))
    return pa.table({"id": IDS, "n": range(50), "vector": vectors})


def save(tmp_path, source, table):
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    if source == "parquet":
        pq.write_table(table, tmp_path / "v.parquet", row_group_size=7)
        return tmp_path / "v.parquet"
    if source == "feather":
        feather.write_feather(table, tmp_path / "v.feather", chunksize=7)
        return tmp_path / "v.feather"
    if source == "folder":
        (tmp_path / "v").mkdir()
        for i in range(3):
            part = table.slice(20 * i, 20)
            pq.write_table(part, tmp_path / "v" / f"part-{i}.parquet")
        return tmp_path / "v"
    if source == "table":
        return ds.dataset(pa.Table.from_batches(table.to_batches(9)))
    if source == "lance":
        lance = pytest.importorskip("lance")
        lance.write_dataset(table, tmp_path / "v.lance")
        return lance.dataset(str(tmp_path / "v.lance"))
    return ds.dataset(save(tmp_path, "folder", table))


SOURCES = ["parquet", "feather", "folder", "dataset", "table", "lance"]


@pytest.mark.parametrize("source", SOURCES)
def test_vectors_of_other_systems(tmp_path, source):
    stored = PrecomputedFeatures(save(tmp_path, source, make_table("fixed")), id="id")
    assert_array_equal(stored.transform(IDS), ROWS)
    assert_array_equal(stored.transform([IDS[7], IDS[2]]), ROWS[[7, 2]])
    copy = stored if source == "table" else clone(stored)  # pyarrow copies no tables
    assert_array_equal(copy.transform(np.array(IDS[3:5])), ROWS[3:5])
    with pytest.raises(ValueError, match=r"at positions: 1\. Pass ids that are there"):
        stored.transform([IDS[0], "id x"])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["fixed", "list"])
def test_types_of_vectors(tmp_path, kind, dtype):
    path = save(tmp_path, "parquet", make_table(kind, dtype))
    found = PrecomputedFeatures(path).transform(np.arange(50))
    assert found.dtype == dtype
    assert_array_equal(found, ROWS.astype(dtype))


def test_ids_are_numbers_or_a_column(tmp_path):
    pd = pytest.importorskip("pandas")
    path = save(tmp_path, "parquet", make_table("fixed"))
    stored = PrecomputedFeatures(path, id="n")
    assert_array_equal(stored.transform(np.array([9, 4])), ROWS[[9, 4]])
    frame = pd.DataFrame({"n": [9, 4], "text": ["a", "b"]})
    assert_array_equal(stored.transform(frame), ROWS[[9, 4]])
    with pytest.raises(ValueError, match="positions: 0, 1"):  # another type
        stored.transform(["9", "4"])


def test_the_ids_of_a_pool(tmp_path):
    path = save(tmp_path, "parquet", make_table("fixed"))
    from skactive.datasets import open_pool

    lines = "".join(f'{{"key": "{id}", "t": "text"}}\n' for id in IDS[::-1])
    (tmp_path / "p.jsonl").write_text(lines, encoding="utf-8")
    pool = open_pool(tmp_path / "p.jsonl", "t", id="key")
    stored = PrecomputedFeatures(path, id="id")
    assert_array_equal(stored.transform(pool), ROWS[::-1])
    assert_array_equal(stored.transform(pool[[3, 1]]), ROWS[[46, 48]])


def test_tables_that_do_not_fit(tmp_path):
    pa = pytest.importorskip("pyarrow")

    def refuse(error, match, **columns):
        import pyarrow.dataset as ds

        source = ds.dataset(pa.table(columns))
        with pytest.raises(error, match=match):
            PrecomputedFeatures(source, id="id").fit(IDS)

    refuse(ValueError, "'vectors' must be a column.*The columns are 'id'", id=[1])
    refuse(ValueError, "'id' must be a column.*got 'id'", vector=[[1.0]])
    refuse(TypeError, "lists of floating-point numbers, got string", **two("a", "b"))
    refuse(TypeError, "floating-point numbers, got list", **two([1], [2]))
    refuse(ValueError, "must not be null, got 1 null", **two([1.0], None))
    refuse(ValueError, "one length and no nulls", **two([1.0], [1.0, 2.0]))
    refuse(ValueError, "one length and no nulls", **two([1.0], [None]))
    same = {"id": ["a", "a"], "vector": [[1.0], [2.0]]}
    refuse(ValueError, "the ids.*must differ.*in row 1", **same)
    refuse(ValueError, "must hold vectors, got no rows", id=[], vector=empty(pa))


def two(first, second):
    return {"id": ["a", "b"], "vector": [first, second]}


def empty(pa):
    return pa.array([], pa.list_(pa.float32(), 3))


# An estimator of scikit-learn ------------------------------------------------------


def test_a_loop_over_texts(folder):
    y = np.arange(50) % 3
    model = make_pipeline(PrecomputedFeatures(folder), LogisticRegression(C=0.01))
    learner = ActiveLearner(model, "margin", random_state=0).fit(TEXTS[:9], y[:9])
    plain = ActiveLearner(LogisticRegression(C=0.01), "margin", random_state=0)
    rows = rows_of(TEXTS).astype(np.float16)
    plain.fit(rows[:9], y[:9])
    asked = learner.query(TEXTS, 5, candidates=np.arange(9, 50))
    expected = plain.query(rows, 5, candidates=np.arange(9, 50))
    assert_array_equal(asked, expected)
    assert computes_features(model)


def test_names_output_and_fit(folder):
    pd = pytest.importorskip("pandas")
    stored = PrecomputedFeatures(folder).set_output(transform="pandas")
    frame = stored.fit_transform(TEXTS)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame) == list(stored.get_feature_names_out())
    assert_array_equal(frame.to_numpy(), rows_of(TEXTS))


@pytest.mark.long
def test_it_is_saved_with_a_pipeline(folder, tmp_path):
    from skactive import load
    from skactive import save as save_model

    model = make_pipeline(PrecomputedFeatures(str(folder)), LogisticRegression())
    model.fit(TEXTS, np.arange(50) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_model(model, tmp_path / "model")
        loaded = load(tmp_path / "model")
    assert_array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))
