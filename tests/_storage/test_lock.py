"""One process at a time holds a lock, and the others learn which one."""

import errno
import gc
import os
import socket
import subprocess
import sys

import pytest

from skactive._storage import _files
from skactive._storage._files import Lock, LockedError


@pytest.fixture(params=["flock", "soft"])
def kind(request, monkeypatch):
    """The two kinds of lock: by flock, and by the existence of the file."""
    if request.param == "soft":
        monkeypatch.setattr(_files, "FileLock", _files.SoftFileLock)
    return request.param


def test_a_refusal_names_the_holder(kind, tmp_path):
    lock = Lock(tmp_path / "lock", "the thing")
    host = socket.gethostname()
    match = f"the thing is open for writing in process {os.getpid()} on {host}, si"
    for _ in range(2):
        with pytest.raises(LockedError, match=match):
            Lock(tmp_path / "lock", "the thing")
    lock.release()
    lock.release()
    Lock(tmp_path / "lock", "the thing").release()
    assert set(os.listdir(tmp_path)) <= {"lock"}


def test_a_lock_that_was_dropped_is_free(kind, tmp_path):
    lock = Lock(tmp_path / "lock", "the folder")
    del lock
    Lock(tmp_path / "lock", "the folder").release()


def test_the_lock_of_a_dead_process_is_free(kind, tmp_path):
    code = f"""
import os
from skactive._storage import _files
if {kind!r} == "soft":
    _files.FileLock = _files.SoftFileLock
lock = _files.Lock({str(tmp_path / "lock")!r}, "the thing")
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert sorted(os.listdir(tmp_path)) == ["lock", "lock.holder"]
    lock = Lock(tmp_path / "lock", "the thing")
    with pytest.raises(LockedError, match=f"process {os.getpid()} on"):
        Lock(tmp_path / "lock", "the thing")
    lock.release()
    assert set(os.listdir(tmp_path)) <= {"lock"}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_does_not_release_the_lock_of_its_parent(kind, tmp_path):
    lock = Lock(tmp_path / "lock", "the thing")
    pid = os.fork()
    if pid == 0:
        lock.release()
        del lock
        gc.collect()
        os._exit(0)
    os.waitpid(pid, 0)
    with pytest.raises(LockedError):
        Lock(tmp_path / "lock", "the thing")
    lock.release()


def test_the_lock_file_of_another_machine_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "FileLock", _files.SoftFileLock)
    (tmp_path / "lock").write_text("1\nelsewhere\n")
    with pytest.raises(LockedError, match=r"or delete .* if that process is gone"):
        Lock(tmp_path / "lock", "the thing")
    assert (tmp_path / "lock").read_text() == "1\nelsewhere\n"


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_without_flock_on_that_disk_the_file_is_the_lock(tmp_path, monkeypatch, code):
    fcntl = pytest.importorskip("fcntl")

    def refuse(handle, how):
        raise OSError(code, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    lock = Lock(tmp_path / "lock", "the thing")
    with pytest.raises(LockedError, match=f"process {os.getpid()}"):
        Lock(tmp_path / "lock", "the thing")
    lock.release()
    assert not (tmp_path / "lock").exists()


def test_a_full_disk_does_not_prevent_locking(kind, tmp_path, monkeypatch):
    def full(handle, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_files, "_write", full)
    lock = Lock(tmp_path / "lock", "the thing")
    with pytest.raises(LockedError, match="open for writing in another process"):
        Lock(tmp_path / "lock", "the thing")
    lock.release()


@pytest.mark.posix
def test_a_replaced_lock_file_is_noticed(tmp_path):
    lock = Lock(tmp_path / "lock", "the thing")
    lock.check()
    os.unlink(tmp_path / "lock")
    (tmp_path / "lock").touch()
    with pytest.raises(RuntimeError, match="was deleted or replaced while it was held"):
        lock.check()
    lock.release()
