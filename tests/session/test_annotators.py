"""Answers by several annotators side by side, and which labels are allowed."""

import csv
import warnings

import pandas as pd
import pytest
from sklearn.base import clone

from ._helpers import events, manifest


def test_answers_are_kept_by_annotator_and_the_majority_settles(open_session):
    session = open_session(annotator="ann")
    session.tell([3, 4], ["ham", "ham"], unasked=True)
    session.tell([3, 4], ["spam", "ham"], annotator="bob")
    assert session.labels == {3: "spam", 4: "ham"}  # of a tie the last answer
    session.tell([4], ["spam"], annotator="eve")
    assert session.labels[4] == "ham"
    session.tell(3, "ham", annotator="eve")
    assert session.labels[3] == "ham"
    assert session.answers == {
        3: {"ann": "ham", "bob": "spam", "eve": "ham"},
        4: {"ann": "ham", "bob": "ham", "eve": "spam"},
    }
    session.close()
    again = open_session()
    assert again.labels == {3: "ham", 4: "ham"}
    assert pd.DataFrame(again.answers).T.loc[3, "bob"] == "spam"


def test_the_same_annotator_replaces_their_own_answer(open_session):
    session = open_session(annotator="ann")
    session.tell(3, "ham", unasked=True)
    session.tell(3, "ham", annotator="bob")
    session.tell(3, "spam")
    assert session.answers == {3: {"bob": "ham", "ann": "spam"}}
    assert session.labels == {3: "spam"}
    session.undo()
    assert session.answers == {3: {"ann": "ham", "bob": "ham"}}
    assert session.labels == {3: "ham"}


def test_lists_are_settled_too(open_session):
    session = open_session(refit=False)
    for annotator, label in (("ann", [0, 1]), ("bob", [0, 1]), ("eve", [1, 1])):
        session.tell([3], [label], annotator=annotator, unasked=True)
    assert session.labels == {3: [0, 1]}


def test_answers_are_exported_in_rows_of_their_own(open_session, tmp_path):
    session = open_session(annotator="ann")
    session.tell([3, 4], ["ham", "spam"], unasked=True)
    session.tell(3, "spam", annotator="bob")
    session.export(tmp_path / "x.csv", what="answers")
    with (tmp_path / "x.csv").open(encoding="utf-8", newline="") as stream:
        rows = [
            (row["id"], row["label"], row["annotator"])
            for row in csv.DictReader(stream)
        ]
    assert rows == [("3", "ham", "ann"), ("3", "spam", "bob"), ("4", "spam", "ann")]


def test_other_labels_than_the_classes_are_refused(open_session):
    session = open_session(classes=["no", "disaster"])
    assert session.classes == ["no", "disaster"]
    match = r"among the classes .* 'no', 'disaster'; got 'disastre' for 4. Did you mean"
    with pytest.raises(ValueError, match=f"{match} 'disaster'"):
        session.tell([3, 4], ["no", "disastre"], unasked=True)
    with pytest.raises(ValueError, match=r"got 1 for 3\. To add a class"):
        session.tell(3, 1, unasked=True)
    assert session.labels == {}
    session.tell([3, 4], ["no", "disaster"], unasked=True)


@pytest.mark.parametrize("label", ["0", True, 2, 0.5])
def test_classes_are_of_one_kind(open_session, label):
    session = open_session(classes=[0, 1])
    with pytest.raises(
        ValueError, match=r"among the classes of the session, 0, 1; got"
    ):
        session.tell(3, label, unasked=True)


def test_imports_are_held_to_the_classes(open_session, tmp_path):
    session = open_session(classes=["0", "1"])
    (tmp_path / "x.csv").write_text("id,label\n3,0\n4,1\n")
    session.import_labels(tmp_path / "x.csv")
    assert session.labels == {3: "0", 4: "1"}
    (tmp_path / "x.csv").write_text("id,label\n5,2\n")
    with pytest.raises(ValueError, match="among the classes of the session, '0', '1'"):
        session.import_labels(tmp_path / "x.csv")


def test_classes_are_kept_and_can_be_added(open_session):
    with open_session(classes=["ham", "spam"]) as session:
        assert manifest(session)["classes"] == ["ham", "spam"]
        session.tell(3, "ham", unasked=True)
    with open_session() as session:
        assert session.classes == ["ham", "spam"]
        with pytest.raises(ValueError, match="among the classes"):
            session.tell(4, "eggs", unasked=True)
    with pytest.raises(ValueError, match="'eggs', 'spam'; got 'ham' for 3"):
        open_session(classes=["eggs", "spam"])
    with open_session(classes=["ham", "spam", "eggs"]) as session:
        session.tell(4, "eggs", unasked=True)
        assert events(session)[-2]["event"] == "classes"
    with open_session(classes=["ham", "spam", "eggs"]) as session:
        assert session.classes == ["ham", "spam", "eggs"]
        assert events(session)[-1]["event"] == "tell"  # nothing new to note


@pytest.mark.parametrize(
    ("classes", "match"),
    [
        ("ab", "a sequence of at least two labels, none missing, got 'ab'"),
        (["a"], "at least two labels"),
        ({"a", "b"}, "a sequence of at least two labels"),
        (["a", "a"], "must be different single labels"),
        ([[0, 1], [1, 0]], "must be different single labels"),
        (["a", ""], r"two labels, none missing, got \['a', ''\]"),
    ],
)
def test_classes_that_are_none_are_refused(open_session, classes, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        open_session(classes=classes)
    assert not (tmp_path / "s").exists()


def test_a_new_class_similar_to_another_raises_a_warning(open_session):
    session = open_session()
    session.tell([1, 2], ["no", "disaster"], unasked=True)
    match = r"look like others: 'disastre' \(did you mean 'disaster'\?\)"
    with pytest.warns(UserWarning, match=match) as caught:
        session.tell(3, "disastre", unasked=True)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.tell([4, 5], ["disastre", "no"], unasked=True)  # said once
    session.undo()
    session.undo()
    with pytest.warns(UserWarning, match=match):
        session.tell(3, "disastre", unasked=True)


def test_labels_of_one_import_are_compared_with_each_other(open_session, tmp_path):
    session = open_session()
    (tmp_path / "x.csv").write_text("id,label\n1,Spam\n2,spam\n3,spam\n4,ham\n")
    with pytest.warns(UserWarning, match=r"'Spam' \(did you mean 'spam'\?\)"):
        session.import_labels(tmp_path / "x.csv")


def test_classes_the_learner_knows_are_known(open_session, learner, data):
    fitted = clone(learner).fit(data[0][:9], data[1][:9])
    session = open_session(learner=fitted, refit=False)
    with pytest.warns(UserWarning, match="did you mean 'eggs'"):
        session.tell(30, "egs", unasked=True)


@pytest.mark.parametrize(
    "labels", [["ham", "spam", "eggs"], ["topic 1", "topic 12"], [1, 2], ["pos", "neg"]]
)
def test_classes_that_differ_raise_no_warning(open_session, labels):
    session = open_session(refit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for id, label in enumerate(labels):
            session.tell(id, label, unasked=True)
    assert list(session.labels.values()) == labels
