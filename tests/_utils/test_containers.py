"""Texts and text pairs: which containers pass, and which errors the rest gets."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner
from skactive._utils._containers import as_texts, count_items
from skactive._utils._labels import as_labels

TEXTS = ["first", "", "third ü"]
PAIRS = [("a", "b"), ("c", ""), ("e", "f")]


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        np.array,
        lambda t: np.array(t, dtype=object),
        lambda t: np.array(t, dtype=np.dtypes.StringDType()),
        pd.Series,
        lambda t: pd.Series(t, dtype=object),
        lambda t: pd.Series(t, dtype="string[pyarrow]"),
        pl.Series,
        pd.Index,
        pa.array,
        lambda t: pa.chunked_array([t[:1], t[1:]]),
        lambda t: [np.str_(text) for text in t],
    ],
)
def test_texts_in_every_container(wrap):
    texts = as_texts(wrap(TEXTS))
    assert texts == TEXTS
    assert {type(text) for text in texts} == {str}


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        lambda pairs: [list(pair) for pair in pairs],
        lambda pairs: [np.array(pair) for pair in pairs],
        np.array,
        lambda pairs: np.array(pairs, dtype=object),
        lambda pairs: np.array(pairs, dtype=np.dtypes.StringDType()),
        lambda pairs: pd.DataFrame(pairs, columns=["premise", "hypothesis"]),
        lambda pairs: pl.DataFrame(pairs, schema=["x", "y"], orient="row"),
        pd.Series,
    ],
)
def test_pairs_in_every_container(wrap):
    assert as_texts(wrap(PAIRS)) == PAIRS


def test_the_list_of_the_caller_is_not_changed():
    texts = list(TEXTS)
    as_texts(texts).append("more")
    assert texts == TEXTS


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("one text", TypeError, r"got a single str. Wrap it in a list: \[X\]"),
        (b"bytes", TypeError, "got a single bytes"),
        (7, TypeError, "must be a sequence of texts, got int"),
        ({"a": 1}, TypeError, "must be a sequence of texts, got dict"),
        ([], ValueError, "holds no texts: found 0 sample"),
        (pd.Series([], dtype=object), ValueError, "holds no texts"),
        (["a", None, "b", None], TypeError, r"2 of 4 positions: 1 \(NoneType\), 3"),
        (["a", float("nan")], TypeError, r"1 \(float\)"),
        (pd.Series(["a", pd.NA]), TypeError, r"1 \((float|NAType)\)"),
        (pd.Series(["a", pd.NA], dtype=object), TypeError, r"1 \(NAType\)"),
        ([b"a", "b"], TypeError, r"0 \(bytes\)"),
        ([1, 2], TypeError, r"0 \(int\), 1 \(int\)"),
        (["a", ("b", "c")], TypeError, r"1 \(tuple\)"),
        ([("a", "b"), ("c",)], TypeError, "must be a pair of str"),
        ([("a", "b"), ("c", None)], TypeError, "at 1 of 2 positions"),
        (np.array([["a"], ["b"]], dtype=object), ValueError, r"shape \(2, 1\)"),
        (np.array([["a", "b", "c"]]), ValueError, r"such as X\[:, 0\]"),
        (np.zeros((2, 2, 2)), ValueError, r"shape \(2, 2, 2\)"),
        (pd.DataFrame({"text": ["a"]}), ValueError, r"such as X\['text'\]"),
        (pl.DataFrame({"text": ["a"]}), ValueError, r"such as X\['text'\]"),
        (np.zeros(3), TypeError, r"0 \(float\)"),
        (
            [("a", "b")] * 3 + ["c"] + [("d", "e")] * 3,
            TypeError,
            r"must be a pair of str, or every item a str; .* 1 of 7 .*: 3 \(str\)",
        ),
        (["a"] * 3 + [("b", "c")], TypeError, r"a str, or .* 1 of 4 .*: 3 \(tuple\)"),
        ([("a", "b"), ("c", "d"), "e", None], TypeError, r"2 of 4 .*: 2 \(str\), 3"),
        (pa.table({"text": ["a"] * 999}), ValueError, r"such as X\['text'\]\.$"),
    ],
)
def test_bad_texts(X, error, message):
    with pytest.raises(error, match=message):
        as_texts(X)


def test_the_error_names_the_argument_and_counts():
    with pytest.raises(TypeError, match=r"'pool' .* at 9 of 9 positions.* and 4 more"):
        as_texts([None] * 9, name="pool")


def test_columns_of_one_name_are_named():
    frame = pd.DataFrame([["a", "b"], ["c", "d"]], columns=["text", "text"])
    with pytest.raises(ValueError, match=r"'X' must have columns of different names"):
        count_items(frame)
    with pytest.raises(ValueError, match=r"got \['text', 'text'\]\. Rename them"):
        ActiveLearner(LogisticRegression(), "margin").fit(frame, ["x", "y"])


@pytest.mark.parametrize("labels", [["a\0", "a"], ["a", "b\0\0"]])
def test_labels_that_numpy_would_change_are_refused(labels):
    with pytest.raises(ValueError, match="'y' must hold labels that do not end in a n"):
        as_labels(labels, 2)
    with pytest.raises(ValueError, match="'y' must hold labels that do not end in a n"):
        as_labels(pd.Series(labels, dtype=object), 2)


def test_a_null_character_inside_of_a_label_is_kept():
    assert as_labels(["a\0b", "c"], 2).tolist() == ["a\0b", "c"]
