"""Answers with several classes each: lists of names."""

import csv
import json

import pandas as pd
import pytest

from skactive.session import read_labels

TOLD = {3: ["ham", "spam"], 4: ["ham"], 5: [], 6: ["eggs", "ham", "spam"]}


@pytest.fixture
def session(open_session):
    session = open_session(refit=False, classes=["ham", "spam", "eggs"])
    session.tell(TOLD, unasked=True, annotator="ann")
    return session


def test_lists_of_names_have_any_length(session, open_session):
    session.tell(7, ["ham"], unasked=True)  # no list of one label any more
    session.tell([8], [("spam", "eggs")], unasked=True)
    expected = {**TOLD, 7: ["ham"], 8: ["spam", "eggs"]}
    assert session.labels == expected
    session.close()
    assert read_labels(session.path) == expected
    assert open_session(refit=False).labels == expected


@pytest.mark.parametrize(
    ("label", "error", "match"),
    [
        (["ham", "tofu"], ValueError, "among the classes .*got 'tofu' for 9"),
        (["ham", "ham"], ValueError, r"each class of an item once, got \['ham', 'ham'"),
        (["ham", ""], ValueError, "a label for 9, got ''"),
        (["ham", None], ValueError, "a label for 9, got None"),
        (["ham", 1], TypeError, r"lists of str or lists of numbers, got \['ham', 1\]"),
        ("ham", TypeError, "of one kind in a session, here names; got 'ham'"),
        ([0, 1], TypeError, "here names; got"),
    ],
)
def test_other_lists_are_refused(session, label, error, match):
    with pytest.raises(error, match=match):
        session.tell(9, label, unasked=True)
    assert session.labels == TOLD


def test_classes_in_lists_are_compared_with_known_ones(open_session):
    session = open_session(refit=False)
    session.tell(3, ["disaster", "no"], unasked=True)
    with pytest.warns(UserWarning, match="'disastre' .did you mean 'disaster'"):
        session.tell(4, ["no", "disastre"], unasked=True)
    assert session.known_classes == ["disaster", "no", "disastre"]


def test_a_class_is_renamed_and_merged_in_lists(session):
    session.rename_class("spam", "ham")
    assert session.labels == {3: ["ham"], 4: ["ham"], 5: [], 6: ["eggs", "ham"]}
    session.undo()
    assert session.labels == TOLD


def test_the_order_of_names_does_not_matter_to_the_majority(session):
    session.tell(3, ["spam", "ham"], annotator="bob")
    session.tell(3, ["eggs"], annotator="eve")
    assert set(session.labels[3]) == {"ham", "spam"}


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_lists_are_exported_and_come_back(session, open_session, tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    session.export(path)
    if suffix == "csv":
        with path.open(newline="") as stream:
            cells = [row["label"] for row in csv.DictReader(stream)]
        assert [json.loads(cell) for cell in cells] == list(TOLD.values())
    elif suffix == "parquet":
        assert list(map(list, pd.read_parquet(path)["label"])) == list(TOLD.values())
    other = open_session(path=tmp_path / "other", refit=False)
    other.import_labels(path)
    assert other.labels == TOLD
    assert other.import_labels(path).unchanged == list(TOLD)


@pytest.mark.parametrize("refit", [True, "background"])
def test_training_on_lists_is_refused_with_words(open_session, refit):
    session = open_session(refit=refit)
    first = session.ask(2)
    session.tell(first.ids, [["ham"], ["ham", "spam"]])
    with pytest.raises(TypeError, match="lists of names cannot be trained on") as info:
        session.ask()
    assert "No label is lost" in info.value.__notes__[0]
    assert len(session.ask(3, refit=False)) == 3
