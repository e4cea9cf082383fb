"""Hashes of items, and descriptions of estimators, that a later process compares."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from skactive._storage._fingerprint import (
    describe,
    describe_json,
    find_changes,
    hash_ids,
    hash_item,
    hash_items,
)

ROWS = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [-0.5, 3.0]])
CONTAINERS = {
    "array": lambda X: X,
    "fortran": np.asfortranarray,
    "memory of another order": lambda X: np.repeat(X, 2, axis=0)[::2],
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: (2 * X).astype(int),
    "lists": lambda X: X.tolist(),
    "list of arrays": list,
    "csr": sparse.csr_matrix,
    "csc array": sparse.csc_array,
    "pandas": pd.DataFrame,
    "mixed frame": lambda X: pd.DataFrame(X).assign(text=["a", "b", "a", None]),
    "polars": lambda X: pl.DataFrame(X),
    "pairs": lambda X: [(str(a), str(b)) for a, b in X],
    "pair array": lambda X: np.array([(str(a), str(b)) for a, b in X], object),
    "texts": lambda X: [str(a) for a, b in X],
    "series": lambda X: pd.Series([str(b) for a, b in X]),
    "dicts": lambda X: [{"a": a, "b": b} for a, b in X.tolist()],
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_each_item_has_its_hash(name):
    hashes = hash_items(CONTAINERS[name](ROWS))
    assert hashes.shape == (4,)
    assert hashes.dtype == np.uint64
    np.testing.assert_array_equal(hashes, hash_items(CONTAINERS[name](ROWS.copy())))
    changed = ROWS + np.outer([0.0, 0.0, 0.0, 1.0], [1.0, 1.0])
    differs = hashes != hash_items(CONTAINERS[name](changed))
    assert differs.tolist() == [False, False, False, True]
    if name != "mixed frame":
        assert hashes[0] == hashes[2]


def test_equal_content_hashes_alike():
    def same(*containers):
        first, *others = (hash_items(X).tolist() for X in containers)
        return all(other == first for other in others)

    arrays = [CONTAINERS[n](ROWS) for n in ("array", "fortran", "list of arrays")]
    assert same(*arrays, CONTAINERS["memory of another order"](ROWS))
    assert same(sparse.csr_matrix(ROWS), sparse.csc_array(ROWS))
    assert same(CONTAINERS["pairs"](ROWS), CONTAINERS["pair array"](ROWS))
    assert not same(["a", "b"], ["a", "c"])
    assert not same([("a", "sb")], [("as", "b")])  # where one ends counts
    assert not same(["1"], [1])
    assert not same([[1, 2]], [[1], [2]])


def test_unsorted_sparse_rows_hash_as_sorted_ones():
    first = sparse.csr_matrix(([1.0, 2.0], [0, 1], [0, 2]), shape=(1, 3))
    second = sparse.csr_matrix(([2.0, 1.0], [1, 0], [0, 2]), shape=(1, 3))
    assert hash_items(first) == hash_items(second)
    assert not second.has_sorted_indices  # and the caller's is left as it was


def test_objects_without_content_do_not_hash_their_address():
    class Picture:
        pass

    assert hash_items([Picture(), [Picture()], "text"]).astype(bool).tolist() == [
        False,
        False,
        True,
    ]


def test_objects_that_are_arrays_hash_their_values():
    class Tensor:
        def __init__(self, value):
            self.value = value

        def __array__(self, dtype=None, copy=None):
            return np.arange(2000) == self.value

    first, second, third = hash_items([Tensor(1000), Tensor(1000), Tensor(1001)])
    assert first == second != third


def test_a_column_of_arrow_hashes_like_a_list():
    texts = ["a", "naïve", ""]
    for X in (pa.array(texts), pa.chunked_array([texts[:1], texts[1:]])):
        np.testing.assert_array_equal(hash_items(X), hash_items(texts))


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (["spam"], 7725057503454337030),
        ([("a", "b")], 15340564951177295712),
        (np.array([[1.0, 2.5]]), 14740149016019043233),
        ([[1, None, True]], 11090863734687007407),
        (sparse.csr_array([[0.0, 2.0]]), 10527924109544898708),
        ([{"a": 1}], 10832932943458147029),
    ],
    ids=["text", "pair", "row", "list", "sparse", "dict"],
)
def test_hashes_are_those_of_release_0_1_0(items, expected):
    assert hash_items(items).tolist() == [expected]


def test_hashes_of_ids_are_those_of_release_0_1_0():
    expected = [1410542633125930404, 7770885532774979479]
    assert hash_ids(["a", 7]).tolist() == expected


def test_descriptions_are_those_of_release_0_1_0():
    # Folders of simulations hold these texts; another text is another simulation.
    assert describe(0.5) == "0.5"
    assert describe(len) == "builtins.len"
    # joblib pickles the data type by the default protocol, another one from 3.14 on.
    sha1 = {
        4: "4618ed598f22e26e751987da40bbe8caa960a8e9",
        5: "e4d48d0c00e2b75a09502b39220e24e45fade245",
    }[pickle.DEFAULT_PROTOCOL]
    assert describe(np.arange(3)) == f"ndarray (3,) {sha1}"
    assert describe(Ridge())["alpha"] == "1.0"
    assert describe(Ridge())["type"] == "sklearn.linear_model._ridge.Ridge"


def test_nested_estimators_are_described_by_their_parameters():
    texts = describe(make_pipeline(LogisticRegression(C=3.0)))
    assert texts["logisticregression__C"] == "3.0"
    assert texts["logisticregression"].endswith("LogisticRegression")


def test_an_object_is_described_without_its_address():
    assert " at 0x" not in describe(object())
    assert " at 0x" not in describe_json(object())["repr"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (np.float64(0.5), 0.5),
        (float("inf"), {"float": "inf"}),
        ((1, "a"), [1, "a"]),
        ({1: True}, {"1": True}),
        (Ridge(), {"class": "sklearn.linear_model._ridge.Ridge"}),
    ],
    ids=repr,
)
def test_values_become_json(value, expected):
    assert describe_json(value) == expected


def test_changes_name_what_differs():
    old = {"seed": "1", "noise": "None", "data": {"X": "a"}}
    assert find_changes(old, dict(old)) == ""
    assert find_changes(old, {**old, "seed": "2"}) == "seed was 1, is 2"
    changed = find_changes(old, {**old, "data": {"X": "b"}, "more": "c"})
    assert changed == "data: X was a, is b; more was None, is c"


def test_a_class_of_the_library_may_move():
    old = {"class": "skactive.bert._features.BertFeatures", "X": "other.a.Bert"}
    moved = "skactive.features._bert.BertFeatures"
    assert find_changes(old, {**old, "class": moved}) == ""
    steps = [{"steps": [["bert", {"class": name}]]} for name in (old["class"], moved)]
    assert find_changes(*steps) == ""
    assert find_changes(old, {**old, "class": "skactive.bert._base.Bert"}) == (
        "class was skactive.BertFeatures, is skactive.Bert"
    )
    assert find_changes(old, {**old, "X": "other.b.Bert"})


def test_hashes_of_ids_do_not_depend_on_the_way_to_them():
    ids = [True, 7, -3, 2**70, "é", "\ud800", np.int64(7), np.str_("a"), *range(70_000)]
    hashes = hash_ids(ids)
    assert hashes.dtype == np.uint64
    assert hashes[:8].tolist() == [hash_item(id) for id in ids[:8]]
    assert hashes[1] == hashes[6] == hashes[8 + 7]
    assert hashes[-1] == hash_item(69_999)
    assert len(hash_ids([])) == 0
