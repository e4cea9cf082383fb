"""Files that are replaced whole or grow by whole lines, and the lock of a folder."""

import errno
import json
import os
import socket
import subprocess
import sys

import pytest

from skactive._storage import _files, _lock
from skactive._storage._files import make_folder, write_atomic
from skactive._storage._lines import LineWriter, read_lines
from skactive._storage._lock import Lock, LockedError


def append_line(path, record):
    with LineWriter(path) as writer:
        writer.write(record)


def test_lines_come_back_as_they_went_in(tmp_path):
    path = tmp_path / "x.jsonl"
    records = [{"a": "naïve\n\u2028\ud800"}, [1, None, True, 0.1], "x" * 200_000, {}]
    for record in records:
        append_line(path, record)
    assert read_lines(path) == (records, None)
    assert path.read_bytes().count(b"\n") == 4


@pytest.mark.parametrize("length", [1, 70_000, 200_000])
def test_a_torn_tail_is_told_apart_and_cut_off(tmp_path, length):
    path = tmp_path / "x.jsonl"
    append_line(path, 1)
    with path.open("ab") as stream:
        stream.write(b"2" * length)
    assert read_lines(path) == ([1], b"2" * length)
    append_line(path, 3)
    assert read_lines(path) == ([1, 3], None)


def test_a_file_that_is_all_torn_begins_anew(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a"')
    assert read_lines(path) == ([], b'{"a"')
    with LineWriter(path) as writer:
        assert writer.size == 0
    assert path.read_bytes() == b""


def test_what_json_does_not_take_leaves_the_file_as_it_was(tmp_path):
    with LineWriter(tmp_path / "x") as writer:
        writer.write(1)
        with pytest.raises(ValueError, match="JSON compliant"):
            writer.write(float("nan"))
        with pytest.raises(TypeError, match="not JSON serializable"):
            writer.write({1, 2})
        writer.write(2)
    assert read_lines(tmp_path / "x") == ([1, 2], None)
    with pytest.raises(ValueError, match="this file is closed"):
        writer.write(3)
    writer.close()


def test_damage_names_the_line(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"1\n{]\n3\n")
    with pytest.raises(ValueError, match=r"line 2 of '.*x\.jsonl' is damaged.*b'{\]'"):
        read_lines(path)
    path.write_bytes(b"1\n\xff\n")
    with pytest.raises(ValueError, match="line 2 of"):
        read_lines(path)


def test_a_line_is_on_the_disk_before_write_returns(tmp_path, monkeypatch):
    calls = []
    for name in ("write", "fsync"):
        real = getattr(_files, f"_{name}")

        def spy(*args, name=name, real=real):
            calls.append(name)
            return real(*args)

        monkeypatch.setattr(_files, f"_{name}", spy)
    with LineWriter(tmp_path / "x") as writer:
        calls.clear()
        writer.write({"a": 1})
        assert calls == ["write", "fsync"]  # one write of the whole line
    calls.clear()
    write_atomic(tmp_path / "y", b"content")
    assert calls == ["write", "fsync", "fsync"]  # the file, then its folder


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


@pytest.fixture(params=["flock", "file"])
def way(request, monkeypatch):
    """The two ways to lock: the system's, and the portable one."""
    if request.param == "file":
        monkeypatch.setattr(_lock, "fcntl", None)
    elif _lock.fcntl is None:
        pytest.skip("no flock here")
    return request.param


def test_the_second_is_told_who_is_first(way, tmp_path):
    lock = Lock(tmp_path / "lock", "the thing")
    match = f"the thing is open for writing in process {os.getpid()} on {_host()}, si"
    for _ in range(2):
        with pytest.raises(LockedError, match=match):
            Lock(tmp_path / "lock", "the thing")
    lock.release()
    lock.release()
    Lock(tmp_path / "lock", "the thing").release()
    assert (tmp_path / "lock").exists() == (way == "flock")


def test_a_lock_of_a_process_that_is_gone_is_free(way, tmp_path):
    code = (
        "import os, sys; from skactive import _lock\n"
        f"if {way!r} == 'file': _lock.fcntl = None\n"
        f"lock = _lock.Lock({str(tmp_path / 'lock')!r}, 'the thing')\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert (tmp_path / "lock").exists()
    lock = Lock(tmp_path / "lock", "the thing")
    with pytest.raises(LockedError, match=f"process {os.getpid()} on"):
        Lock(tmp_path / "lock", "the thing")
    lock.release()
    assert not (tmp_path / "lock.takeover").exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "host": "elsewhere"}']
)
def test_a_lock_file_is_not_taken_over_on_suspicion(tmp_path, monkeypatch, content):
    monkeypatch.setattr(_lock, "fcntl", None)
    (tmp_path / "lock").write_text(content)
    with pytest.raises(LockedError, match=r"or delete .* if that process is gone"):
        Lock(tmp_path / "lock", "the thing")
    assert (tmp_path / "lock").read_text() == content


def test_a_takeover_that_another_began_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(_lock, "fcntl", None)
    monkeypatch.setattr(os, "kill", _no_such_process)
    holder = {"pid": 999999, "host": _host(), "since": "2026"}
    (tmp_path / "lock").write_text(json.dumps(holder))
    (tmp_path / "lock.takeover").touch()
    with pytest.raises(LockedError, match="process 999999"):
        Lock(tmp_path / "lock", "the thing")


def test_without_flock_on_that_disk_the_file_is_the_lock(tmp_path, monkeypatch):
    if _lock.fcntl is None:
        pytest.skip("no flock here")

    def refuse(handle, how):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(_lock.fcntl, "flock", refuse)
    lock = Lock(tmp_path / "lock", "the thing")
    with pytest.raises(LockedError, match=f"process {os.getpid()}"):
        Lock(tmp_path / "lock", "the thing")
    lock.release()
    assert not (tmp_path / "lock").exists()


def test_a_full_disk_keeps_nobody_from_the_lock(way, tmp_path, monkeypatch):
    def full(handle, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_files, "_write", full)
    lock = Lock(tmp_path / "lock", "the thing")
    with pytest.raises(LockedError, match="open for writing in another process"):
        Lock(tmp_path / "lock", "the thing")
    lock.release()


def _no_such_process(pid, signal):
    raise ProcessLookupError


def _host():
    return socket.gethostname()
