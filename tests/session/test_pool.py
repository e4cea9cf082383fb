"""Which changes of a pool are seen."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from skactive._storage._fingerprint import hash_items
from skactive.session._pool import Pool, dump_hashes, load_hashes

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


def test_ids_of_other_types_are_other_ids():
    (a, first), (b, second) = (Pool(["x"], [id]).fingerprint() for id in (1, "1"))
    assert a["ids_sha256"] != b["ids_sha256"]
    assert a["items_sha256"] == b["items_sha256"]
    assert first[0, 0] != second[0, 0]
    assert first[0, 1] == second[0, 1]


def test_hashes_survive_the_disk(tmp_path):
    summary, hashes = Pool(ROWS).fingerprint()
    path = tmp_path / "pool.npy"
    path.write_bytes(dump_hashes(hashes))
    np.testing.assert_array_equal(load_hashes(path, summary), hashes)
    for content in (b"", b"x", path.read_bytes()[:-3], dump_hashes(hashes[:, :1])):
        path.write_bytes(content)
        assert load_hashes(path, summary) is None
    assert load_hashes(tmp_path / "none", summary) is None
