"""Files that a command writes between those of a person: none is lost."""

import errno
import hashlib
import os
import stat

import pytest

from skactive._storage import _files
from skactive._storage._outputs import find_mode, write_listed, write_own


def _write(content):
    return lambda path: path.write_bytes(content)


def _hash(content):
    return hashlib.sha256(content).hexdigest()


def test_a_new_file_needs_no_other_name(tmp_path):
    assert write_own(tmp_path / "t.csv", _write(b"a")) == (_hash(b"a"), None)
    assert os.listdir(tmp_path) == ["t.csv"]


def test_what_was_written_last_is_replaced(tmp_path):
    digest, _ = write_own(tmp_path / "t.csv", _write(b"a"))
    assert write_own(tmp_path / "t.csv", _write(b"b"), digest)[1] is None
    assert (tmp_path / "t.csv").read_bytes() == b"b"
    assert os.listdir(tmp_path) == ["t.csv"]


def test_another_file_is_kept_under_a_free_name(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"mine")
    (tmp_path / "t.1.csv").write_bytes(b"older")
    _, kept = write_own(tmp_path / "t.csv", _write(b"a"), _hash(b"before"))
    assert kept == tmp_path / "t.2.csv"
    assert kept.read_bytes() == b"mine"
    assert (tmp_path / "t.1.csv").read_bytes() == b"older"


def test_a_file_of_the_same_content_is_not_kept(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a")
    assert write_own(tmp_path / "t.csv", _write(b"a"))[1] is None


@pytest.mark.parametrize("target", ["other.csv", "missing.csv"])
def test_a_link_is_kept_and_not_followed(tmp_path, target):
    (tmp_path / "other.csv").write_bytes(b"a")
    (tmp_path / "t.csv").symlink_to(tmp_path / target)
    _, kept = write_own(tmp_path / "t.csv", _write(b"b"), _hash(b"a"))
    assert kept.is_symlink()
    assert (tmp_path / "other.csv").read_bytes() == b"a"
    assert not (tmp_path / "t.csv").is_symlink()
    assert not (tmp_path / "missing.csv").exists()


def test_a_full_disk_leaves_everything_and_names_the_file(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(b"mine")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_files, "_fsync", full)
    with pytest.raises(OSError, match=r"t\.csv' could not be written: No space left"):
        write_own(tmp_path / "t.csv", _write(b"a"))
    assert os.listdir(tmp_path) == ["t.csv"]
    assert (tmp_path / "t.csv").read_bytes() == b"mine"


def test_what_a_killed_process_left_is_removed(tmp_path):
    left = tmp_path / ".t.csv.0123abcd.tmp"
    left.mkdir()
    (left / "t.csv").write_bytes(b"half")
    write_own(tmp_path / "t.csv", _write(b"a"))
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_the_permissions_are_at_most_those_of_another_file(tmp_path, mode):
    (tmp_path / "t.csv").write_bytes(b"a")
    (tmp_path / "t.csv").chmod(mode)
    write_own(tmp_path / "new.csv", _write(b"b"), mode=find_mode(tmp_path / "t.csv"))
    assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) & ~mode == 0
    folder = tmp_path / "tables"
    folder.mkdir()
    os.rename(tmp_path / "t.csv", folder / "t.csv")
    (folder / "link.csv").symlink_to("missing.csv")
    assert find_mode(folder) & ~mode == 0


def test_a_disk_without_permissions_is_written_to(tmp_path, monkeypatch):
    def refuse(path, mode):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    assert write_own(tmp_path / "t.csv", _write(b"a"), mode=0o600)[1] is None


def test_a_listed_file_that_was_changed_is_kept(tmp_path):
    path = tmp_path / "report.md"
    write_listed(path, lambda path: path.write_text("first"))
    write_listed(path, lambda path: path.write_text("second"))
    assert sorted(os.listdir(tmp_path)) == ["outputs.json", "report.md"]
    path.write_text("corrected by a person")
    with pytest.warns(UserWarning, match=r"is kept as .*report\.1\.md"):
        write_listed(path, lambda path: path.write_text("third"))
    assert path.read_text() == "third"
    assert (tmp_path / "report.1.md").read_text() == "corrected by a person"
