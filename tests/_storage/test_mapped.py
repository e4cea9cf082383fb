"""Arrays in `.npy` files: damaged headers are one kind of error."""

from contextlib import suppress

import numpy as np
import pytest

from skactive._storage._mapped import open_array


def test_an_array_is_mapped_and_cannot_be_written(tmp_path):
    array = np.arange(12, dtype="float16").reshape(3, 4)
    np.save(tmp_path / "a.npy", array)
    found = open_array(tmp_path / "a.npy")
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, array)
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


@pytest.mark.long
def test_each_flip_in_a_header_opens_or_is_a_value_error(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(12.0))
    whole = path.read_bytes()
    length = len(whole) - 12 * 8
    n_refused = 0
    for bit in range(8 * length):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with suppress(ValueError):
            open_array(path)
            continue
        n_refused += 1
    assert n_refused > 8 * 8  # the magic string and the version at least


def test_objects_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="Python objects"):
        open_array(tmp_path / "a.npy")
