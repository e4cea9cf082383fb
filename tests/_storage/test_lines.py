"""Files of JSON lines."""

import errno
import os

import pytest

from skactive._storage import _files
from skactive._storage._files import LineWriter, read_lines, write_atomic
from skactive._utils._system import can_open_folders


def append_line(path, record):
    with LineWriter(path) as writer:
        writer.write(record)


def test_lines_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "x.jsonl"
    records = [{"a": "naïve\n\u2028\ud800"}, [1, None, True, 0.1], "x" * 200_000, {}]
    for record in records:
        append_line(path, record)
    assert read_lines(path) == (records, None)
    assert path.read_bytes().count(b"\n") == 4


@pytest.mark.parametrize("length", [1, 70_000, 200_000])
def test_a_torn_tail_is_returned_and_cut_off(tmp_path, length):
    path = tmp_path / "x.jsonl"
    append_line(path, 1)
    with path.open("ab") as stream:
        stream.write(b"2" * length)
    assert read_lines(path) == ([1], b"2" * length)
    append_line(path, 3)
    assert read_lines(path) == ([1, 3], None)


def test_a_file_with_only_a_torn_line_is_emptied(tmp_path):
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
    n_synced = 1 + can_open_folders()  # the file, then its folder
    assert calls == ["write", *["fsync"] * n_synced]


def test_a_file_that_others_shortened_is_not_filled_up(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError(errno.EIO, "the disk fails")

    path = tmp_path / "x.jsonl"
    with LineWriter(path) as writer:
        writer.write({"a": 1})
        with monkeypatch.context() as patch:
            for name in ("_fsync", "_ftruncate"):  # the new line stays for now
                patch.setattr(_files, name, fail)
            with pytest.raises(OSError, match="the disk fails"):
                writer.write({"b": 2})
        os.truncate(path, writer.size - 1)  # without the last newline
        with pytest.raises(RuntimeError, match="changed by another program"):
            writer.write({"b": 2})
    assert path.read_bytes() == b'{"a":1}'
