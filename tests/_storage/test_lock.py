"""One writer at a time."""

import pytest

from skactive._storage._lock import Lock, LockedError


def test_a_lock_that_is_held_is_refused(tmp_path):
    lock = Lock(tmp_path / "lock", "the folder")
    with pytest.raises(LockedError, match="the folder is open for writing in process"):
        Lock(tmp_path / "lock", "the folder")
    lock.release()
    Lock(tmp_path / "lock", "the folder").release()


def test_a_lock_that_was_dropped_is_free(tmp_path):
    lock = Lock(tmp_path / "lock", "the folder")
    del lock
    Lock(tmp_path / "lock", "the folder").release()
