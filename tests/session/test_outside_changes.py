"""What others do to the folder of an open session is noticed before a label counts."""

import errno
import gc
import os
import shutil
import time
import warnings
import weakref
from contextlib import suppress
from glob import glob
from importlib.metadata import version

import pytest

from skactive._storage import _files
from skactive._storage._files import LineWriter, LockedError, read_lines
from skactive.session import read_labels


@pytest.fixture
def session(open_session):
    """A session with one acknowledged label."""
    session = open_session(refit=False)
    session.tell(0, "ham", unasked=True)
    return session


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "s"


def delete_folder(folder):
    shutil.rmtree(folder)


def replace_folder(folder):
    os.rename(folder, folder.with_name("moved"))
    shutil.copytree(folder.with_name("moved"), folder)


def delete_journal(folder):
    (folder / "journal.jsonl").unlink()


def replace_journal(folder):
    shutil.copy(folder / "journal.jsonl", folder / "copy")
    os.replace(folder / "copy", folder / "journal.jsonl")


def append(folder):
    with open(folder / "journal.jsonl", "ab") as stream:
        stream.write(b"{}\n")


def truncate(folder):
    os.truncate(folder / "journal.jsonl", 10)


def delete_lock(folder):
    (folder / "lock").unlink()


def replace_lock(folder):
    (folder / "other").touch()
    os.replace(folder / "other", folder / "lock")


CHANGES = [
    (append, r"journal\.jsonl' was changed by another program"),
    (truncate, r"journal\.jsonl' was changed by another program"),
]
CHANGES_OF_OPEN_FILES = [
    (delete_folder, r"lock', the lock of the session in .*, was deleted or replaced"),
    (replace_folder, r"lock', the lock of the session in .*, was deleted or replaced"),
    (delete_journal, r"journal\.jsonl' was deleted or replaced"),
    (replace_journal, r"journal\.jsonl' was deleted or replaced"),
    (delete_lock, r"lock' was deleted or replaced|lock', the lock of the session in"),
    (replace_lock, r"lock', the lock of the session in .*, was deleted or replaced"),
]
posix = pytest.mark.posix
CHANGES += [pytest.param(*change, marks=posix) for change in CHANGES_OF_OPEN_FILES]


@pytest.mark.parametrize(("change", "match"), CHANGES)
def test_no_answer_is_acknowledged_after_a_change_of_the_folder(
    session, folder, change, match
):
    change(folder)
    left = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    for call in (
        lambda: session.tell(1, "spam", unasked=True),
        lambda: session.skip(1, unasked=True),
        session.undo,
        session.ask,
    ):
        with pytest.raises(RuntimeError, match=match):
            call()
    assert session.labels == {0: "ham"}
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == left


@pytest.mark.parametrize(
    "change",
    [
        *(
            pytest.param(change, marks=posix)
            for change in (delete_journal, replace_journal)
        ),
        append,
        truncate,
    ],
)
def test_a_change_while_a_label_is_written_is_noticed(
    session, folder, monkeypatch, change
):
    real = _files._fsync

    def change_and_sync(handle):
        monkeypatch.setattr(_files, "_fsync", real)
        change(folder)
        real(handle)

    monkeypatch.setattr(_files, "_fsync", change_and_sync)
    with pytest.raises(RuntimeError, match=r"journal\.jsonl' was") as caught:
        session.tell(1, "spam", unasked=True)
    assert "'tell' was not acknowledged" in caught.value.__notes__[0]
    assert session.labels == {0: "ham"}


@pytest.mark.parametrize("change", [append, truncate])
def test_bytes_of_other_writers_are_not_cut_off(session, folder, monkeypatch, change):
    session.tell(1, "spam", unasked=True)
    real = _files._write

    def change_and_fail(handle, data):
        monkeypatch.setattr(_files, "_write", real)
        change(folder)
        raise OSError(errno.EIO, "the disk failed")

    monkeypatch.setattr(_files, "_write", change_and_fail)
    journal = folder / "journal.jsonl"
    with pytest.raises(OSError, match="the disk failed"):
        session.tell(2, "spam", unasked=True)
    left = journal.read_bytes()
    assert left.endswith(b"{}\n") or len(left) == 10
    with pytest.raises(RuntimeError, match="was changed by another program"):
        session.tell(2, "spam", unasked=True)
    assert journal.read_bytes() == left


@posix
@pytest.mark.skipif(
    int(version("filelock").split(".")[0]) < 4,
    reason="the release of the first one removes the lock of the second one",
)
def test_a_second_writer_let_in_by_a_deleted_lock_loses_nothing(
    session, folder, open_session
):
    delete_lock(folder)
    second = open_session(refit=False)
    second.tell(1, "spam", unasked=True)
    with pytest.raises(RuntimeError, match="was deleted or replaced"):
        session.tell(2, "eggs", unasked=True)
    session.close()
    second.tell(3, "eggs", unasked=True)
    assert read_labels(folder) == {0: "ham", 1: "spam", 3: "eggs"}


@posix
def test_after_a_deleted_lock_the_session_can_be_opened_again(
    session, folder, open_session
):
    delete_lock(folder)
    session.close()
    again = open_session(refit=False)
    again.tell(1, "spam", unasked=True)
    assert again.labels == {0: "ham", 1: "spam"}


def list_open_files(folder):
    """Return the files in a folder that this process has open, where Linux tells."""
    found = []
    for handle in glob("/proc/self/fd/*"):
        with suppress(OSError):  # of another thread, closed meanwhile
            found.append(os.readlink(handle))
    return [file for file in found if file.startswith(f"{os.path.realpath(folder)}/")]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("refit", [True, "background"])
def test_a_session_that_was_dropped_can_be_opened_again(open_session, data, refit):
    from skactive import LabelingSession

    first = open_session(refit=refit)
    learner, path = first.learner, first.folder
    assert list_open_files(path) or not os.path.exists("/proc/self/fd")
    first.close()
    for id in range(5):
        session = LabelingSession(learner, data[0], path, refit=refit)
        session.tell(id, data[1][id], unasked=True)
        dropped = weakref.ref(session)
        del session
        assert dropped() is None  # without waiting for the garbage collector
    gc.collect()
    assert list_open_files(path) == []
    assert len(read_labels(path)) == 5


def test_a_session_that_is_referred_to_keeps_its_lock(session, open_session):
    with pytest.raises(LockedError, match="is open for writing in process"):
        open_session()
    assert session.labels == {0: "ham"}


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_the_error_of_a_read_only_folder_names_read_labels(
    session, folder, open_session, monkeypatch, code
):
    session.close()
    real = _files._open

    def read_only(path, flags, *mode):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(code, os.strerror(code), path)
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr(_files, "_open", read_only)
    monkeypatch.setattr(_files, "_mkdir", read_only)
    before = sorted(folder.iterdir())
    with pytest.raises(OSError, match=r"skactive\.session\.read_labels") as caught:
        open_session(refit=False)
    assert caught.value.errno == code
    assert read_labels(folder) == read_labels(str(folder)) == {0: "ham"}
    assert sorted(folder.iterdir()) == before


def test_labels_can_be_read_while_the_session_is_open(session, folder):
    with open(folder / "journal.jsonl", "ab") as stream:
        stream.write(b'{"v":2,"seq":')  # in the middle of a write
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_labels(folder) == session.labels == {0: "ham"}


def test_labels_of_no_session_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="'folder' must be the folder of a se"):
        read_labels(tmp_path)
    with pytest.raises(TypeError, match="'folder' must be a str or path-like, got 5"):
        read_labels(5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("seconds", "year"), [(1e15, "9999"), (float("inf"), "9999"), (-1e15, "0001")]
)
def test_a_clock_beyond_the_calendar_is_no_error(
    open_session, monkeypatch, seconds, year
):
    monkeypatch.setattr(time, "time", lambda: seconds)
    with open_session(refit=False) as session:
        session.tell(0, "ham", unasked=True)
        assert session.history(0)[0]["time"].startswith(year)
    assert open_session(refit=False).labels == {0: "ham"}


def test_a_writer_that_was_dropped_closes_its_file(tmp_path):
    closed = []
    real = _files._close
    writer = LineWriter(tmp_path / "x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_files, "_close", lambda handle: closed.append(real(handle)))
        writer.write({"a": 1})
        del writer
        gc.collect()
    assert closed == [None]
    assert read_lines(tmp_path / "x") == ([{"a": 1}], None)
