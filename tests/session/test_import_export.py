"""Labels out of a session and into another, as tables."""

import csv
import json
import os

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession

SUFFIXES = ["csv", "jsonl", "parquet"]
ASIDE = ["seconds", "note", "flag"]
TEXTS = ['a "fine", film', "naïve\ncafé", "", "=1+1", "no", "the end"]
IDS = ["a", "b", "c", "d", "e", "7"]


@pytest.fixture
def open_texts(learner, tmp_path):
    """Open a session over texts; nothing is trained in these tests."""
    opened = []

    def open_texts(X=TEXTS, ids=IDS, name="texts", **options):
        options = {"refit": False, "annotator": "ann", **options}
        opened.append(LabelingSession(learner, X, tmp_path / name, ids, **options))
        return opened[-1]

    yield open_texts
    for session in opened:
        session.close()


def read(path):
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return pd.read_parquet(path).to_dict("records")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_export_holds_ids_texts_labels_annotators_and_times(
    open_texts, tmp_path, suffix
):
    session = open_texts()
    session.tell(["b", "a"], ["pos", "neg"], unasked=True)
    session.tell(["b"], ["neg"], annotator="bob")
    path = tmp_path / f"labels.{suffix}"
    session.export(path)
    rows = read(path)
    assert [list(row) for row in rows] == [
        ["id", "text", "label", "annotator", "time", *ASIDE]
    ] * 2
    assert [list(row.values())[:4] for row in rows] == [
        ["b", TEXTS[1], "neg", "bob"],
        ["a", TEXTS[0], "neg", "ann"],
    ]
    assert rows[0]["time"] == session.history("b")[1]["time"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "labels", [["pos", "neg"], [0, 1], ["0", "1"], [True, False], [3.0, 1.0]]
)
def test_labels_survive_export_and_import(open_texts, tmp_path, suffix, labels):
    path = tmp_path / f"labels.{suffix}"
    first = open_texts()
    first.tell(["a", "7", "b"], [labels[0], labels[1], labels[1]], unasked=True)
    first.export(path)
    second = open_texts(name="second")
    if suffix == "csv":  # which knows texts only: one label of the kind says which
        second.tell("a", labels[0], unasked=True)
    imported = second.import_labels(path, annotator="file")
    assert second.labels == first.labels
    assert [type(x) for x in second.labels.values()] == [type(labels[0])] * 3
    assert imported.conflicts == imported.unknown == []
    assert second.history("7")[-1]["annotator"] == "file"
    assert imported.added == (["7", "b"] if suffix == "csv" else ["a", "7", "b"])
    assert second.import_labels(path).unchanged == ["a", "7", "b"]  # again: nothing
    assert len(second.history("7")) == 1


def test_conflicting_labels_are_listed_and_not_taken_over(open_texts, tmp_path):
    session = open_texts()
    session.tell(["a", "b"], ["pos", "neg"], unasked=True)
    path = tmp_path / "other.csv"
    path.write_text("id,label\na,neg\nb,neg\nc,pos\nd,\n")
    imported = session.import_labels(path)
    assert imported.conflicts == [("a", "pos", "neg")]
    assert imported.added == ["c"]
    assert imported.unchanged == ["b"]
    assert session.labels == {"a": "pos", "b": "neg", "c": "pos"}
    session.undo()  # an import is one answer
    assert session.labels == {"a": "pos", "b": "neg"}


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("id,label\na,pos\nx,neg\n", "labels of 1 items that are not in the pool: 'x'"),
        (
            "id,label\na,pos\na,neg\n",
            "give each item one label, got several for 1: 'a'",
        ),
        ("name,label\na,pos\n", "has no column 'id'"),
        ("id,label\n", "holds no rows"),
        ("", "is empty"),
    ],
)
def test_a_file_that_is_not_clear_is_refused_whole(
    open_texts, tmp_path, content, match
):
    session = open_texts()
    path = tmp_path / "other.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=match):
        session.import_labels(path)
    assert session.labels == {}


def test_labels_of_another_kind_are_refused(open_texts, tmp_path):
    session = open_texts()
    session.tell("a", 1, unasked=True)
    (tmp_path / "other.csv").write_text("id,label\nb,pos\n")
    with pytest.raises(
        ValueError, match=r"label 'pos', and the .* of the kind 'integer'"
    ):
        session.import_labels(tmp_path / "other.csv")
    (tmp_path / "other.jsonl").write_text('{"id": "b", "label": "pos"}\n')
    with pytest.raises(TypeError, match="here number; got 'pos' for 'b'"):
        session.import_labels(tmp_path / "other.jsonl")
    assert session.labels == {"a": 1}


def test_other_columns_and_unknown_ids_on_request(open_texts, tmp_path):
    session = open_texts()
    (tmp_path / "other.tsv").write_text("key\tclass\na\tpos\nz\tneg\n")
    imported = session.import_labels(
        tmp_path / "other.tsv", id="key", label="class", ignore_unknown=True
    )
    assert imported.unknown == ["z"]
    assert session.labels == {"a": "pos"}


def test_ids_that_are_numbers_are_found_in_a_csv(open_texts, tmp_path):
    session = open_texts(ids=None)
    (tmp_path / "other.csv").write_text("id,label\n3,1\n5,0\n")
    session.import_labels(tmp_path / "other.csv")
    assert session.labels == {3: 1, 5: 0}


def test_open_items_are_exported_and_imported_with_labels(open_texts, tmp_path):
    session = open_texts()
    batch = session.ask(3)
    path = tmp_path / "todo.csv"
    session.export(path, what="open")
    rows = read(path)
    assert [row["id"] for row in rows] == list(batch.ids)
    assert [row["label"] for row in rows] == ["", "", ""]
    rows[0]["label"] = rows[2]["label"] = "pos"
    pd.DataFrame(rows).to_csv(path, index=False)
    session.import_labels(path)
    assert session.labels == {batch.ids[0]: "pos", batch.ids[2]: "pos"}
    assert session.open_batches[0].ids == (batch.ids[1],)


def test_labels_move_to_a_pool_that_grew(open_texts):
    old = open_texts()
    old.tell(["a", "b"], ["pos", "neg"], unasked=True)
    old.undo()
    old.tell(["a", "e"], ["neg", "pos"], unasked=True)
    new = open_texts([*TEXTS[1:], "more"], [*IDS[1:], "f"], name="new")
    with pytest.raises(ValueError, match="1 items that are not in the pool: 'a'"):
        new.import_labels(old.folder)
    imported = new.import_labels(old.folder, ignore_unknown=True)
    assert new.labels == {"e": "pos"}
    assert imported.unknown == ["a"]
    with pytest.raises(FileNotFoundError, match="must be the folder of a session, got"):
        new.import_labels(os.path.dirname(old.folder))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("wrap", [list, pd.DataFrame, lambda X: np.array(X, object)])
def test_pairs_are_two_columns(open_texts, tmp_path, suffix, wrap):
    pairs = [("who?", "me"), ("when?", "now")]
    session = open_texts(wrap(pairs), ["a", "b"])
    session.tell(["b"], ["pos"], unasked=True)
    session.export(tmp_path / f"x.{suffix}")
    (row,) = read(tmp_path / f"x.{suffix}")
    assert [row["text_1"], row["text_2"]] == ["when?", "now"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_further_columns_come_last_and_get_another_name_if_theirs_is_taken(
    open_texts, tmp_path, suffix
):
    session, path = open_texts(), tmp_path / f"x.{suffix}"
    session.tell(["b", "a"], ["pos", "neg"], unasked=True)
    cells = {"a": {"color": "red"}, "b": {"label": "old"}}
    session.export(path, columns=cells.get)
    rows = read(path)
    assert [list(row)[-2:] for row in rows] == [["task_label", "color"]] * 2
    assert (rows[0]["task_label"], rows[1]["color"]) == ("old", "red")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_texts_and_without_labels_there_are_still_columns(
    open_session, tmp_path, suffix
):
    session = open_session(refit=False)
    path = tmp_path / f"x.{suffix}"
    session.export(path)
    assert read(path) == []
    session.tell([3], ["ham"], unasked=True)
    session.close()
    session.export(path)  # what is known can be written after closing too
    assert [list(row) for row in read(path)] == [
        ["id", "content_hash", "label", "annotator", "time", *ASIDE]
    ]


def test_what_cannot_be_written_is_refused(open_session, tmp_path):
    session = open_session()
    with pytest.raises(ValueError, match=r"must end in one of \.csv, \.jsonl, \.parq"):
        session.export(tmp_path / "x.xlsx")
    with pytest.raises(ValueError, match="'what' must be one of 'labels', 'ans"):
        session.export(tmp_path / "x.csv", what="all")
    with pytest.raises(FileNotFoundError, match="in a folder that exists"):
        session.export(tmp_path / "none" / "x.csv")


def test_a_table_without_ids_is_matched_by_its_texts(open_texts, tmp_path):
    session = open_texts(ids=None)
    path = tmp_path / "tweets.csv"
    rows = {"tweet": TEXTS[::-1], "class": ["pos", "", "neg", None, "", "pos"]}
    pd.DataFrame(rows).to_csv(path, index=False)
    imported = session.import_labels(path, text="tweet", label="class")
    assert session.labels == {5: "pos", 3: "neg", 0: "pos"}
    assert imported.added == [5, 3, 0]
    with pytest.raises(ValueError, match=r"no column 'id'.*or that of the texts with"):
        session.import_labels(path, label="class")
    with pytest.raises(ValueError, match=r"no column 'tweets'[.] Did you mean 'tweet'"):
        session.import_labels(path, label="class", text="tweets")
    with pytest.raises(ValueError, match="what the pool holds, which is texts, got"):
        session.import_labels(path, label="class", text=["tweet", "class"])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_ids_of_another_order_do_not_move_labels(open_texts, tmp_path, suffix):
    first = open_texts(ids=None)
    first.tell({0: "of 0", 3: "of 3", 4: "of 4"}, unasked=True)
    path = tmp_path / f"labels.{suffix}"
    first.export(path)
    second = open_texts(TEXTS[::-1], ids=None, name="second")
    for source in (path, first.folder):
        second.import_labels(source)
        assert second.labels == {5: "of 0", 2: "of 3", 1: "of 4"}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_items_that_are_no_texts_are_matched_by_their_hashes(
    open_session, data, tmp_path, suffix
):
    X = data[0]
    first = open_session()
    first.tell({0: "of 0", 3: "of 3"}, unasked=True)
    path = tmp_path / f"labels.{suffix}"
    first.export(path)
    second = open_session(X[::-1], folder=tmp_path / "second")
    second.import_labels(path)
    assert second.labels == {59: "of 0", 56: "of 3"}
    third = open_session(X[1:], folder=tmp_path / "third")
    with pytest.raises(
        ValueError, match=r"1 items .* not in the pool: 0\. The content"
    ):
        third.import_labels(path)


def test_a_text_that_changed_under_its_id_is_named(open_texts, tmp_path):
    session = open_texts()
    path = tmp_path / "labels.csv"
    path.write_text("id,text,label\na,edited,pos\ne,no,neg\n")
    match = r"1 items .* not in the pool: 'a'. The content of 'a' differs"
    with pytest.raises(ValueError, match=match):
        session.import_labels(path)
    session.import_labels(path, ignore_unknown=True)
    assert session.labels == {"e": "neg"}


def test_labels_of_copies_go_to_copies(open_texts, tmp_path):
    first = open_texts(["x", "a", "x", "x"], ids=None)
    first.tell({2: "spam", 3: "ham"}, unasked=True)
    first.export(tmp_path / "labels.csv")
    same = open_texts(["x", "a", "x", "x"], ids=None, name="same")
    same.import_labels(tmp_path / "labels.csv")
    assert same.labels == {2: "spam", 3: "ham"}
    other = open_texts(["a", "x", "x"], ids=None, name="other")
    other.import_labels(first.folder)
    assert other.labels == {2: "spam", 1: "ham"}
    assert other.import_labels(first.folder).unchanged == [2, 1]
    one = open_texts(["a", "x"], ids=None, name="one")
    with pytest.raises(ValueError, match="got several for 1: 1"):
        one.import_labels(first.folder)


def test_ids_that_look_alike_in_a_csv_are_refused(open_texts, tmp_path):
    ids = [7, "7", "a", "b", "c", "d"]
    first = open_texts(ids=ids)
    first.tell([7], ["int seven"], unasked=True)
    second = open_texts(ids=ids, name="second")
    first.export(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="names the item 7, and the ids 7, '7' of"):
        second.import_labels(tmp_path / "t.csv")
    first.export(tmp_path / "t.jsonl")
    second.import_labels(tmp_path / "t.jsonl")
    assert second.labels == {7: "int seven"}


FORMULAS = [
    "=1+1",
    "+1+1",
    "-1-1",
    "-a",
    "@x",
    "-1",
    "+.5",
    "\t=1",
    "\r=1",
    "'=1",
    "''=1",
    "'a'",
    "'",
    "",
]


@pytest.mark.filterwarnings("ignore:new classes look like others")
def test_a_csv_holds_no_formulas_and_comes_back(open_texts, tmp_path):
    ids = [f"{text}id" for text in FORMULAS]
    labels = [text or "none" for text in FORMULAS]
    first = open_texts(FORMULAS, ids, annotator="=me()")
    first.tell(ids, labels, unasked=True)
    path = tmp_path / "labels.csv"
    first.export(path)
    cells = [cell for row in read(path) for cell in row.values()]
    assert {cell for cell in cells if cell[:1] in tuple("=+-@\t\r")} == {"-1", "+.5"}
    second = open_texts(FORMULAS, ids, name="second")
    second.tell(ids[0], labels[0], unasked=True)
    second.import_labels(path)
    assert second.labels == first.labels


def test_a_text_that_begins_with_an_apostrophe_is_found(open_texts, tmp_path):
    session = open_texts(["'=quoted", "a"], ids=None)
    (tmp_path / "x.csv").write_text("text,label\n'=quoted,pos\n")
    session.import_labels(tmp_path / "x.csv")
    assert session.labels == {0: "pos"}


@pytest.mark.parametrize(
    "labels",
    [
        ["1.1", "1.10", "007.1"],
        [1, -2, 30],
        [True, False, True],
        [[0, 1], [1, 0], [1, 1]],
    ],
)
def test_labels_of_a_csv_get_their_types_back_by_their_looks(
    open_texts, tmp_path, labels
):
    first = open_texts()
    first.tell(["a", "b", "7"], labels, unasked=True)
    first.export(tmp_path / "labels.csv")
    second = open_texts(name="second")
    second.import_labels(tmp_path / "labels.csv")
    assert second.labels == first.labels
    assert [type(x) for x in second.labels.values()] == [type(labels[0])] * 3


def test_labels_of_a_csv_are_of_the_kind_that_the_learner_knows(
    open_texts, tmp_path, learner
):
    (tmp_path / "x.csv").write_text("id,label\na,0\nb,1\n")
    fitted = clone(learner).fit([[0.0], [1.0]], ["0", "1"])
    session = LabelingSession(fitted, TEXTS, tmp_path / "s", IDS, refit=False)
    session.import_labels(tmp_path / "x.csv")
    assert session.labels == {"a": "0", "b": "1"}
    session.close()


def test_lone_surrogates_go_into_jsonl_only(open_texts, tmp_path):
    texts = ["\ud800 lone", "b"]
    first = open_texts(texts, ids=None)
    first.tell({0: "x\udc80"}, unasked=True)
    first.export(tmp_path / "x.jsonl")
    second = open_texts(texts, ids=None, name="second")
    second.import_labels(tmp_path / "x.jsonl")
    assert second.labels == first.labels
    for suffix in ("csv", "parquet"):
        with pytest.raises(ValueError, match=r"half of a character.*Name a \.jsonl"):
            first.export(tmp_path / f"x.{suffix}")


def test_large_ids_do_not_go_into_parquet(open_texts, tmp_path):
    session = open_texts(["a", "b"], [10**25, 3])
    session.tell(10**25, "x", unasked=True)
    with pytest.raises(
        ValueError, match=r"int of at most 64 bits[.] Name a [.]jsonl file"
    ):
        session.export(tmp_path / "x.parquet")


def test_a_session_whose_hashes_are_lost_cannot_be_matched(open_texts, tmp_path):
    first = open_texts()
    first.tell("a", "x", unasked=True)
    (tmp_path / "texts" / "pool.npy").write_bytes(b"")
    second = open_texts(name="second")
    with pytest.raises(ValueError, match=r"'pool\.npy' of the session .* is missing"):
        second.import_labels(first.folder)


def test_the_whole_pool_with_predictions(open_session, data, tmp_path):
    X, y = data
    session = open_session()
    session.export(tmp_path / "before.jsonl", what="pool")
    before = pd.read_json(tmp_path / "before.jsonl", lines=True)
    assert len(before) == len(X)
    assert before[["label", "label_source", "prediction"]].isna().all(axis=None)
    session.tell({i: y[i] for i in range(20)}, unasked=True)
    session.refit()
    session.export(tmp_path / "after.jsonl", what="pool")
    after = pd.read_json(tmp_path / "after.jsonl", lines=True)
    assert after.id.tolist() == list(range(len(X)))
    assert after.label_source.tolist() == ["person"] * 20 + ["model"] * 40
    assert after.label[:20].tolist() == y[:20].tolist()
    proba = session.learner.predict_proba(X)
    assert after.prediction.tolist() == session.learner.predict(X).tolist()
    assert after.label[20:].tolist() == after.prediction[20:].tolist()
    np.testing.assert_allclose(after.probability, proba.max(axis=1), atol=5e-5)


def test_copies_have_the_label_in_the_whole_pool(open_session, tmp_path):
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    texts = ["a b", "c d", "a b", "e f"]
    session = open_session(texts, learner=ActiveLearner(model))
    session.tell(0, "ham", unasked=True)
    session.export(tmp_path / "pool.jsonl", what="pool")
    table = pd.read_json(tmp_path / "pool.jsonl", lines=True)
    assert table.label.fillna("").tolist() == ["ham", "", "ham", ""]
    assert session.labels == {0: "ham"}
