"""Files that are replaced whole."""

import errno
import os

import pytest

from skactive._storage import _files
from skactive._storage._files import make_folder, write_atomic


def test_an_atomic_write_survives_short_writes(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(_files, "_write", lambda handle, data: real(handle, data[:3]))
    write_atomic(tmp_path / "x", b"0123456789")
    assert (tmp_path / "x").read_bytes() == b"0123456789"
    monkeypatch.setattr(_files, "_write", lambda handle, data: 0)
    with pytest.raises(OSError, match="nothing was written"):
        write_atomic(tmp_path / "x", b"other")
    assert (tmp_path / "x").read_bytes() == b"0123456789"


def test_an_atomic_write_goes_through_a_link(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_folders_that_cannot_be_synced_are_no_error(tmp_path, monkeypatch):
    def refuse(handle):
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EINVAL, "not offered here")

    monkeypatch.setattr(_files, "_fsync", refuse)
    make_folder(tmp_path / "a" / "b")
    write_atomic(tmp_path / "a" / "b" / "x", b"new")
    assert (tmp_path / "a" / "b" / "x").read_bytes() == b"new"


@pytest.mark.posix
def test_a_private_file_is_private_from_its_first_byte(tmp_path, monkeypatch):
    modes, real = [], os.write

    def look(handle, data):
        modes.append(os.fstat(handle).st_mode & 0o777)
        return real(handle, data)

    monkeypatch.setattr(_files, "_write", look)
    write_atomic(tmp_path / "x", b"secret", mode=0o600)
    assert modes == [0o600]
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def full(handle, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_files, "_write", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*file'"):
        _files.write_atomic(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []
