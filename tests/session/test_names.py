"""Answers with several classes each: lists of names."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier

from skactive import ActiveLearner
from skactive.session import read_labels

from ._helpers import get_item

TOLD = {3: ["ham", "spam"], 4: ["ham"], 5: [], 6: ["ham", "spam", "eggs"]}


@pytest.fixture
def session(open_session):
    session = open_session(refit=False, classes=["ham", "spam", "eggs"])
    session.tell(TOLD, unasked=True, annotator="ann")
    return session


def test_lists_of_names_have_any_length(session, open_session):
    session.tell(7, ["ham"], unasked=True)  # no list of one label any more
    session.tell([8], [("eggs", "spam")], unasked=True)  # in the order of the classes
    expected = {**TOLD, 7: ["ham"], 8: ["spam", "eggs"]}
    assert session.labels == expected
    session.close()
    assert read_labels(session.folder) == expected
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
    assert session.labels == {3: ["ham"], 4: ["ham"], 5: [], 6: ["ham", "eggs"]}
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
    other = open_session(
        folder=tmp_path / "other", refit=False, classes=["eggs", "spam", "ham"]
    )
    other.import_labels(path)
    assert other.labels == {**TOLD, 3: ["spam", "ham"], 6: ["eggs", "spam", "ham"]}
    assert other.import_labels(path).unchanged == list(TOLD)


def test_names_without_a_list_of_classes_are_in_alphabetical_order(open_session):
    session = open_session(refit=False)
    session.tell(3, ["spam", "eggs"], unasked=True)
    assert session.labels == {3: ["eggs", "spam"]}
    assert session.known_classes == ["eggs", "spam"]


@pytest.mark.parametrize("refit", [True, "background"])
def test_an_estimator_of_one_label_is_refused_with_a_remedy(open_session, refit):
    session = open_session(refit=refit)
    first = session.ask(2)
    session.tell(first.ids, [["ham"], ["ham", "spam"]])
    session._core.models._trainer.wait()
    with pytest.raises(ValueError, match="1d array") as info:
        session.ask()
    notes = " ".join(info.value.__notes__)
    assert "OneVsRestClassifier" in notes
    assert "No label is lost" in notes
    assert len(session.ask(3, refit=False)) == 3


# Training


@pytest.fixture
def several():
    """Return a learner of several labels per item."""
    estimator = OneVsRestClassifier(LogisticRegression())
    return ActiveLearner(estimator, "coreset", batch_size=4, random_state=0)


@pytest.fixture
def names(data):
    """Return the true names of each item: none, one or both."""
    X, _ = data
    return [
        [name for name, x in zip(["ham", "spam"], row, strict=False) if x > 0.5]
        for row in X
    ]


def matrix(labels, classes):
    return np.array([[name in label for name in classes] for label in labels]) * 1


def assert_trained_on(model, X, labels, classes):
    """Check that a model is one that was trained on labels, dict of position to it."""
    rows = list(labels)
    y = matrix(labels.values(), classes)
    plain = OneVsRestClassifier(LogisticRegression()).fit(X[rows], y)
    np.testing.assert_array_equal(model.y_labeled_, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("classes", [["spam", "eggs", "ham"], None])
def test_a_model_is_trained_on_names(open_session, several, data, names, classes):
    X, _ = data
    session = open_session(learner=several, classes=classes)
    for _ in range(5):
        batch = session.ask()
        session.tell(batch.ids, [names[id] for id in batch.ids])
    order = classes or session.known_classes
    assert_trained_on(session.learner, X, session.labels, order)
    assert session.newest_model.classes == order
    assert session.target == "multi-label"


def test_it_asks_as_a_loop_of_query_and_teach(open_session, several, data, names):
    X, _ = data
    session = open_session(learner=several, classes=["ham", "spam"])
    learner, free = clone(several), np.ones(len(X), dtype=bool)
    for _ in range(3):
        batch = session.ask()
        expected = learner.query(X, candidates=free)
        assert list(batch.ids) == expected.tolist()
        labels = [names[id] for id in batch.ids]
        session.tell(batch.ids, labels)
        learner.teach(X[expected], matrix(labels, ["ham", "spam"]))
        free[expected] = False


def test_columns_grow_with_a_new_class(open_session, several, data):
    session = open_session(learner=several, classes=["ham", "spam"])
    session.tell({0: ["ham"], 1: ["spam"], 2: [], 3: ["ham"]}, unasked=True)
    assert session.learner.y_labeled_.shape == (4, 2)
    session.add_class("eggs")
    session.tell(4, ["eggs", "ham"], unasked=True)
    assert session.labels[4] == ["ham", "eggs"]
    assert_trained_on(session.learner, data[0], session.labels, session.classes)
    assert session.classes == session.newest_model.classes == ["ham", "spam", "eggs"]


def test_renaming_and_merging_reach_the_model(open_session, several, data):
    session = open_session(learner=several, classes=["ham", "spam", "eggs"])
    session.tell({**TOLD, 7: ["spam"]}, unasked=True)
    assert_trained_on(session.learner, data[0], session.labels, session.classes)
    session.rename_class("spam", "junk")
    assert_trained_on(session.learner, data[0], session.labels, ["ham", "junk", "eggs"])
    session.rename_class("junk", "ham")
    assert session.labels[7] == ["ham"]
    assert_trained_on(session.learner, data[0], session.labels, ["ham", "eggs"])
    session.undo()
    session.undo()
    assert session.labels == {**TOLD, 7: ["spam"]}
    assert_trained_on(session.learner, data[0], session.labels, session.classes)


def test_undo_and_resume(open_session, several, data):
    session = open_session(learner=several, multi_label=True)
    session.tell({0: ["ham", "spam"], 1: "spam", 2: []}, unasked=True)
    session.tell(3, "eggs", unasked=True)
    assert session.labels == {0: ["ham", "spam"], 1: ["spam"], 2: [], 3: ["eggs"]}
    assert session.known_classes == ["ham", "spam", "eggs"]
    session.undo()
    assert_trained_on(session.learner, data[0], session.labels, ["ham", "spam"])
    asked = session.ask().ids
    session.close()
    again = open_session(learner=several)  # the folder knows the target
    assert again.ask().ids == asked
    again.tell(4, "spam", unasked=True)
    assert again.labels[4] == ["spam"]
    assert_trained_on(again.learner, data[0], again.labels, ["ham", "spam"])


@pytest.mark.parametrize("told", [{}, {1: []}, {1: [], 2: ["ham"], 3: []}])
def test_with_less_than_two_classes(open_session, several, told):
    session = open_session(learner=several, multi_label=True)
    session.tell({0: [], **told}, unasked=True)
    assert len(session.ask()) == 4
    assert session.learner.y_labeled_.shape[1] == 2
    assert session.newest_model.classes == session.known_classes
    session.export(session.folder + ".csv", what="pool")
    predicted = pd.read_csv(session.folder + ".csv")["prediction"].map(json.loads)
    assert {name for label in predicted for name in label} <= {"ham"}


@pytest.mark.parametrize("merged", [False, True])
def test_labels_from_before_the_session(open_session, several, data, merged):
    X, _ = data
    before = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
    several.fit(X[:4] + 1.0, before)
    session = open_session(learner=several, classes=["ham", "spam", "eggs"])
    session.tell({7: ["spam"], 8: ["ham", "eggs"]}, unasked=True)
    session.add_class("tofu")
    if merged:
        session.rename_class("spam", "ham")
        expected = [[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]]
    else:
        expected = np.vstack([before, [[0, 1, 0], [1, 0, 1]]])
        expected = np.hstack([expected, np.zeros((6, 1))])
    session.refit()
    np.testing.assert_array_equal(session.learner.y_labeled_, expected)
    assert session.learner.X_labeled_.shape == (6, 5)


def test_single_labels_from_before_the_session(open_session, several, data):
    several.estimator = OneVsRestClassifier(LogisticRegression())
    several.teach(data[0][:3], ["ham", "spam", "ham"], refit=False)
    session = open_session(learner=several, multi_label=True)
    session.tell(5, ["eggs", "spam"], unasked=True)
    expected = [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 1]]
    np.testing.assert_array_equal(session.learner.y_labeled_, expected)
    assert session.newest_model.classes == ["ham", "spam", "eggs"]


def test_columns_from_before_the_session_need_names(open_session, several, data):
    several.fit(data[0][:2], np.array([[1, 0, 1], [0, 1, 1]]))
    with pytest.raises(ValueError, match="'classes' must name the 3 columns"):
        open_session(learner=several, multi_label=True)
    with pytest.raises(ValueError, match=r"name the 3 columns .*got \['ham', 'spam'\]"):
        open_session(learner=several, classes=["ham", "spam"])
    session = open_session(learner=several)
    session.tell([5], [[0, 0, 1]], unasked=True)  # rows of the matrix are labels, too
    assert (session.target, session.newest_model.classes) == ("multi-label", None)
    assert session.learner.y_labeled_.shape == (3, 3)


@pytest.mark.parametrize("settle", ["majority", "latest", "eve"])
def test_several_annotators(open_session, several, data, settle):
    session = open_session(learner=several, settle=settle, classes=["ham", "spam"])
    session.tell({1: ["ham"], 2: ["spam"], 0: []}, unasked=True, annotator="ann")
    session.tell({1: ["spam", "ham"]}, unasked=True, annotator="bob")
    session.tell({1: ["ham", "spam"]}, unasked=True, annotator="eve")
    session.tell({1: ["ham"]}, unasked=True, annotator="ann")
    expected = ["ham"] if settle == "latest" else ["ham", "spam"]
    assert session.labels[1] == expected
    assert_trained_on(session.learner, data[0], session.labels, ["ham", "spam"])


def test_the_same_names_in_another_order_are_no_news(open_session, several, tmp_path):
    session = open_session(learner=several)
    session.tell({0: ["ham", "spam"], 1: [], 2: ["ham"]}, unasked=True)
    session.refit()
    session.tell(0, ["spam", "ham"])
    assert session.model_age == 0
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": 0, "label": ["spam", "ham"]}\n')
    found = session.import_labels(path)
    assert (found.unchanged, found.conflicts) == ([0], [])


def test_the_pool_is_exported_with_predicted_names(open_session, several, names):
    session = open_session(learner=several, classes=["ham", "spam"])
    session.tell({i: names[i] for i in range(20)}, unasked=True)
    session.refit()
    session.export(session.folder + ".jsonl", what="pool")
    lines = Path(session.folder + ".jsonl").read_text(encoding="utf-8").splitlines()
    rows = list(map(json.loads, lines))
    model = session.learner
    for i, row in enumerate(rows):
        found = model.predict(get_item(session, i)[None])[0]
        expected = [name for name, x in zip(["ham", "spam"], found, strict=True) if x]
        p = model.predict_proba(get_item(session, i)[None])[0]
        assert row["prediction"] == expected
        assert row["probability"] == pytest.approx(
            min(max(q, 1 - q) for q in p), abs=1e-4
        )
        assert row["label"] == (names[i] if i < 20 else expected)


@pytest.mark.parametrize(
    ("multi_label", "label", "match"),
    [
        (True, 3, "all be of one kind in a session, here names"),
        (False, ["ham"], "single labels with multi_label=False"),
    ],
)
def test_labels_must_fit_the_target(open_session, multi_label, label, match):
    session = open_session(multi_label=multi_label, refit=False)
    with pytest.raises(TypeError, match=match):
        session.tell([1], [label], unasked=True)
    session.close()
    with pytest.raises(ValueError, match="'multi_label' must be that of the session"):
        open_session(multi_label=not multi_label)


# Numbers


@pytest.fixture
def regressor():
    return ActiveLearner(Ridge(), "coreset", batch_size=4, random_state=0)


def test_numbers_are_asked_trained_and_exported(open_session, regressor, data):
    X, _ = data
    session = open_session(learner=regressor)
    batch = session.ask()
    session.tell(batch.ids, X[list(batch.ids), 0])
    session.ask()
    assert (session.target, session.known_classes) == ("regression", [])
    assert isinstance(session.learner.estimator_, Ridge)
    session.export(session.folder + ".csv", what="pool")
    found = pd.read_csv(session.folder + ".csv")
    np.testing.assert_allclose(found["prediction"], session.learner.predict(X))
    assert found["probability"].isna().all()


def test_labels_of_a_regressor_are_numbers(open_session, regressor):
    session = open_session(learner=regressor)
    for label in ("ham", True, ["ham"]):
        with pytest.raises(TypeError, match="must be numbers for a regressor, got"):
            session.tell([1], [label], unasked=True)
    session.tell([1], [[0.5, 2.0]], unasked=True)
    assert (session.target, session.labels) == ("multi-output", {1: [0.5, 2.0]})


@pytest.mark.parametrize(
    "options", [{"classes": ["ham", "spam"]}, {"multi_label": True}]
)
def test_a_regressor_has_no_classes(open_session, regressor, options):
    with pytest.raises(ValueError, match=r"must be left out if .* has a regressor"):
        open_session(learner=regressor, **options)
