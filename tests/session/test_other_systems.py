"""Sessions on Windows, and folders that come from there."""

import os
import threading

import pytest

from skactive._storage._files import LockedError, read_lines
from skactive.session import read_labels

TEXTS = ("journal.jsonl", "manifest.json", "lock.holder")


def as_windows_ends_lines(folder):
    for path in folder.iterdir():
        if path.name in TEXTS:
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def test_a_session_from_its_beginning_to_its_end(like_windows, open_session, tmp_path):
    with open_session() as session:
        ids = session.ask().ids
        session.tell(ids, ["ham", "spam", "eggs", "ham"])
        session.skip(session.ask().ids[0])
        session.undo()
        with pytest.raises(LockedError, match=f"process {os.getpid()} on"):
            open_session()
        session.export(tmp_path / "labels.csv")
        labels = session.labels
    with open(tmp_path / "s" / "journal.jsonl", "ab") as stream:
        stream.write(b'{"v":2,"seq":')
    with pytest.warns(UserWarning, match="was torn, as by a kill"):
        session = open_session()
    assert session.labels == labels == read_labels(tmp_path / "s")
    session.tell(ids[0], "eggs")
    session.close()
    assert open_session().labels == {**labels, ids[0]: "eggs"}


def test_threads_tell_labels(like_windows, open_session, tmp_path):
    session = open_session(refit=False)

    def tell(first):
        for id in range(first, 60, 3):
            session.tell(id, "ham" if id % 2 else "spam", unasked=True)

    threads = [threading.Thread(target=tell, args=[first]) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_labels(tmp_path / "s") == session.labels
    assert len(session.labels) == 60


def test_a_folder_with_other_line_ends_goes_on(open_session, tmp_path):
    with open_session() as session:
        session.tell(session.ask().ids, ["ham", "spam", "eggs", "ham"])
        session.note(0, "two\nlines\r\nand a third")
        labels, history = session.labels, session.history(0)
    folder = tmp_path / "s"
    as_windows_ends_lines(folder)
    assert b"}\r\n" in (folder / "journal.jsonl").read_bytes()
    assert read_labels(folder) == labels
    with open_session() as session:
        assert session.labels == labels
        assert session.history(0) == history
        session.tell(7, "eggs", unasked=True)
    with open_session() as session:
        assert session.labels == {**labels, 7: "eggs"}
    _, torn = read_lines(folder / "journal.jsonl")
    assert torn is None


@pytest.mark.parametrize("rest", [b"\r", b"\r\n"])
def test_a_last_line_keeps_its_record(open_session, tmp_path, rest):
    with open_session(refit=False) as session:
        session.tell(0, "ham", unasked=True)
    path = tmp_path / "s" / "journal.jsonl"
    path.write_bytes(path.read_bytes().rstrip() + rest)
    with open_session(refit=False) as session:
        session.tell(1, "spam", unasked=True)
    assert read_labels(tmp_path / "s") == {0: "ham", 1: "spam"}


def test_a_changed_character_is_noticed_with_other_line_ends(open_session, tmp_path):
    with open_session(refit=False) as session:
        session.tell([0, 1], ["ham", "spam"], unasked=True)
    as_windows_ends_lines(tmp_path / "s")
    path = tmp_path / "s" / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b"ham", b"jam"))
    with pytest.raises(ValueError, match="is damaged"):
        open_session(refit=False)


def test_a_folder_whose_name_has_another_form_goes_on(open_session, tmp_path):
    with open_session(folder=tmp_path / "Caf\u00e9", refit=False) as session:
        session.tell(0, "ham", unasked=True)
    (tmp_path / "Caf\u00e9").rename(tmp_path / "cafe\u0301")
    with open_session(folder=tmp_path / "cafe\u0301", refit=False) as session:
        assert session.labels == {0: "ham"}
