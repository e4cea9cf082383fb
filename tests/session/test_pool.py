"""Fingerprints of a pool."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skactive.session._pool import Pool, dump_hashes, load_hashes

ROWS = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [-0.5, 3.0]])


def test_ids_of_other_types_are_other_ids():
    (a, first), (b, second) = (Pool(["x"], [id]).fingerprint() for id in (1, "1"))
    assert a["ids_sha256"] != b["ids_sha256"]
    assert a["items_sha256"] == b["items_sha256"]
    assert first[0, 0] != second[0, 0]
    assert first[0, 1] == second[0, 1]


def test_positions_of_ids_in_a_range():
    for ids in (range(4), range(10, 18, 2), range(3, -1, -1)):
        pool = Pool(ROWS, ids)
        assert pool.positions([ids[2], ids[0]]).tolist() == [2, 0]
        assert pool.positions({ids[3]: None}).tolist() == [3]
        assert pool.positions([]).dtype == np.intp


def test_hashes_survive_the_disk(tmp_path):
    summary, hashes = Pool(ROWS).fingerprint()
    path = tmp_path / "pool.npy"
    path.write_bytes(dump_hashes(hashes))
    np.testing.assert_array_equal(load_hashes(path, summary), hashes)
    for content in (b"", b"x", path.read_bytes()[:-3], dump_hashes(hashes[:, :1])):
        path.write_bytes(content)
        assert load_hashes(path, summary) is None
    assert load_hashes(tmp_path / "none", summary) is None


@pytest.mark.parametrize("wrap", [list, pl.Series, pd.Series])
def test_a_text_that_is_missing_is_refused(open_session, tmp_path, wrap):
    expected = "every item of {} must be a str.* at 1 of . positions: {} "
    with pytest.raises(TypeError, match=expected.format("'X_pool'", 2)):
        open_session(wrap(["good film", "bad film", None, "good"]))
    assert not (tmp_path / "s").exists()
    session = open_session(["good film", "bad film"])
    with pytest.raises(TypeError, match=expected.format("'items'", 0) + ".*added"):
        session.add(wrap([None, "a film"]))


def test_a_pair_that_lacks_a_text_is_refused(open_session):
    with pytest.raises(TypeError, match=r"a pair of str.* 1 of 3 positions: 1 "):
        open_session([("good", "film"), ("bad", None), ("a", "film")])
    open_session([["cold", None], ["warm", "red"]])  # rows of a table
