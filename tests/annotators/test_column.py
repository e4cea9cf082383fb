"""A column of answers, and annotators by name."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from skactive import registry
from skactive._utils import _plugins
from skactive._utils._plugins import Plugin
from skactive.annotators import (
    Annotator,
    ChatAnnotator,
    ColumnAnnotator,
    _base,
    describe_annotator,
    get_annotator,
)
from skactive.testing import check_annotator

TEXTS = ["wet", "hot", "dry", "hot"]


def test_a_text_gets_its_answer():
    column = ColumnAnnotator(TEXTS, ["flood", "fire", None, "storm"], [0.9, 0.6, 1, 1])
    assert column.annotate(["hot", "dry", "cold", "Wet", "wet"]) == [
        ("fire", 0.6),
        (None, None),
        (None, None),
        (None, None),
        ("flood", 0.9),
    ]
    assert column.annotate([]) == []
    assert column.name == "column"


@pytest.mark.parametrize("blank", [None, math.nan, "", pd.NA, np.float64("nan")])
def test_a_blank_is_no_answer(blank):
    column = ColumnAnnotator(["a", "b", "a"], [blank, "x", "y"], [0.5, blank, 0.1])
    assert column.annotate(["a", "b"]) == [("y", 0.1), ("x", None)]


def test_columns_of_a_table():
    table = pd.DataFrame({"text": ["a", "b"], "label": [1, 2], "p": [0.25, math.nan]})
    column = ColumnAnnotator(table["text"], table["label"], table["p"], name="gpt")
    answers = column.annotate(table["text"])
    assert answers == [(1, 0.25), (2, None)]
    assert all(type(label) is int for label, _ in answers)
    assert check_annotator(column, ["a", "b", "c"]) == [*answers, (None, None)]
    about = column.describe()
    assert json.loads(json.dumps(about)) == about
    digest = about.pop("sha256")
    assert about == {"annotator": "ColumnAnnotator", "name": "gpt", "n_answers": 2}
    same = ColumnAnnotator(["a", "b"], [1, 2], [0.25, None])
    other = ColumnAnnotator(["a", "b"], [1, 3], [0.25, None])
    assert same.describe()["sha256"] == digest
    assert other.describe()["sha256"] != digest


def test_labels_may_be_lists_and_texts_pairs():
    column = ColumnAnnotator([("a", "b"), ("b", "a")], [["x", "y"], []])
    assert column.annotate([["b", "a"], ("a", "b"), ("a", "a")]) == [
        ([], None),
        (["x", "y"], None),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["a"], ["x", "y"]), ValueError, "'labels' must hold one value .* 1 texts"),
        ((["a"], "x"), ValueError, "'labels' must hold one value .* got 0"),
        ((["a"], {"a": "x"}), TypeError, "'labels'"),
        ((["a"], ["x"], []), ValueError, "'confidences' must hold one value"),
        ((["a"], ["x"], [80]), ValueError, "'confidences' .* got 80.0. Divide"),
        ((["a"], ["x"], [-0.1]), ValueError, "'confidences' must be from 0 to 1"),
        ((["a"], ["x"], ["high"]), ValueError, "'confidences' .*got 'high'"),
        ((["a"], ["x"], [[0.5]]), ValueError, "'confidences' must be from 0 to 1"),
        (("a", ["x"]), TypeError, "'texts'"),
        (([5], ["x"]), TypeError, "every item of 'texts' must be a str"),
    ],
)
def test_a_wrong_column_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        ColumnAnnotator(*arguments)


@pytest.mark.parametrize("name", ["", " ", None, 5])
def test_a_name_must_name(name):
    with pytest.raises(ValueError, match="'name' must be a str"):
        ColumnAnnotator(["a"], ["x"], name=name)


# Names


class _Nameless:
    def annotate(self, texts):
        return [(None, None) for _ in texts]


def test_the_built_in_names():
    entries = _plugins.find("column", _plugins.ANNOTATORS)
    assert (entries.dist, entries.group) == ("skactive", "skactive.annotators")
    column = get_annotator("column", texts=["a"], labels=["x"], name="gpt")
    assert isinstance(column, ColumnAnnotator)
    assert column.annotate(["a"]) == [("x", None)]
    chat = get_annotator("chat", url="http://h", model="m", classes=["a", "b"])
    assert isinstance(chat, ChatAnnotator)
    assert isinstance(get_annotator("skactive:chat", **vars_of(chat)), Annotator)


def vars_of(chat):
    return {"url": chat.url, "model": chat.model, "classes": chat.classes}


def test_names_of_strategies_and_annotators_are_apart():
    with pytest.raises(ValueError, match=r"unknown annotator 'margin'.*: chat, column"):
        get_annotator("margin")
    with pytest.raises(ValueError, match="unknown strategy 'column'"):
        registry.get_strategy("column")
    assert {e.group for e in registry.available()} == {"skactive.strategies"}
    with pytest.raises(
        ValueError, match=r"unknown annotator 'colum'\. Did you mean 'col"
    ):
        get_annotator("colum")
    with pytest.raises(TypeError, match="The annotator itself needs no name"):
        get_annotator(ColumnAnnotator)


def test_an_annotator_of_a_plugin(monkeypatch):
    group = _plugins.ANNOTATORS
    entries = [
        Plugin("good", f"{__name__}:make_good", "other", "1.0", group),
        Plugin("bad", f"{__name__}:_Nameless", "other", "1.0", group),
        Plugin("worse", f"{__name__}:TEXTS", "other", "1.0", group),
        Plugin("gone", "no_such_module:A", "other", "1.0", group),
    ]
    monkeypatch.setattr(_plugins, "_installed", lambda: tuple(entries))
    monkeypatch.setattr(_base, "load", find_here)
    assert get_annotator("other:good").annotate(["a"]) == [("x", None)]
    for name in ("bad", "worse"):
        with pytest.raises(TypeError, match=f"'other:{name}' stands for, must be a cl"):
            get_annotator(name)
    monkeypatch.undo()
    monkeypatch.setattr(_plugins, "_installed", lambda: tuple(entries))
    message = "the annotator 'gone' of other 1.0 cannot be .*other annotators are not"
    with pytest.raises(ImportError, match=message):
        get_annotator("gone")


def make_good():
    return ColumnAnnotator(["a"], ["x"])


def find_here(entry):
    return globals()[entry.value.partition(":")[2]]


def test_any_annotator_has_a_description():
    assert describe_annotator(_Nameless()) == {"annotator": "_Nameless"}
    assert describe_annotator(make_good())["n_answers"] == 1
    assert not isinstance(_Nameless(), Annotator)
