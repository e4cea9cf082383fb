import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skactive._storage._hash_index import HashIndex, find_repeated

VALUES = st.lists(st.integers(0, 5), min_size=1)


@settings(deadline=None)
@given(VALUES, st.lists(st.integers(0, 9)))
def test_keys_are_found(values, keys):
    index = HashIndex(np.array(values, dtype=np.uint64))
    positions = [[i for i, value in enumerate(values) if value == key] for key in keys]
    found = np.array(keys, dtype=np.uint64)
    assert index.find(found).tolist() == [[*same, -1][0] for same in positions]
    assert index.find_all(found) == positions
    assert [index.get(key) for key in keys] == positions


@settings(deadline=None)
@given(VALUES)
def test_equal_hashes_are_found(values):
    hashes = np.array(values, dtype=np.uint64)
    index = HashIndex(hashes)
    first, expected = index.find_first(), [values.index(value) for value in values]
    if len({*values}) == len(values):
        assert first is None
    else:
        assert first.tolist() == expected
    earlier = [values[:i].count(value) for i, value in enumerate(values)]
    assert index.count_earlier().tolist() == earlier
    repeated = [i for i, value in enumerate(values) if values.count(value) > 1]
    assert index.find_repeated().tolist() == repeated
    assert index.hashes().tolist() == values


@pytest.mark.parametrize("limit", [10**9, 100])
def test_repeated_hashes_are_found_part_by_part(monkeypatch, limit):
    hashes = np.random.default_rng(0).integers(2**63, 2**63 + 900, 1000, np.uint64)
    values, counts = np.unique(hashes, return_counts=True)
    expected = np.flatnonzero(np.isin(hashes, values[counts > 1], kind="sort"))
    monkeypatch.setattr("skactive._storage._hash_index._PART_BYTES", limit)
    assert np.array_equal(find_repeated(hashes), expected)
