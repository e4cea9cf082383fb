"""Every call that writes, made to fail: nothing acknowledged is lost or half there."""

import csv
import functools
import sys
import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession
from skactive._storage import _files
from skactive._storage import _fingerprint as versions
from skactive._storage._files import LineWriter, read_lines, write_atomic
from skactive.session import _manifest as manifest

from ._helpers import FaultyDisk

MODES = ("short", "full", "EIO", "gone")


@pytest.fixture
def disk(monkeypatch):
    cached = functools.cache(versions.collect_versions)  # slow, and no matter here
    monkeypatch.setattr(versions, "collect_versions", cached)
    monkeypatch.setattr(manifest, "collect_versions", cached)
    return FaultyDisk(monkeypatch)


class Play:
    """A session from its beginning to its end, in steps that can be repeated."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "deep" / "session"
        self.table = folder / "labels.csv"
        self.steps = [
            self.open,
            self.ask,
            lambda: self.tell(slice(0, 2)),
            lambda: self.session.skip(self.ids[3]),
            lambda: self.session.undo(),
            lambda: self.tell(slice(2, 4)),
            lambda: self.session.flag(self.ids[:2]),
            lambda: self.session.note(self.ids[0], "two\nlines"),
            lambda: self.session.rename_class("class 0", "zero"),
            lambda: self.session.undo(),
            lambda: self.session.add_class("class 2"),
            lambda: self.session.refit(),
            self.ask,
            lambda: self.session.release(),
            lambda: self.session.export(self.table),
            lambda: self.session.close(),
            self.tear,
            self.open,
            self.ask,
            lambda: self.tell(slice(0, 4)),
            lambda: self.session.export(self.table),
            self.import_,
            lambda: self.session.close(),
        ]

    def open(self):
        X = np.random.default_rng(0).normal(size=(30, 3))
        learner = ActiveLearner(LogisticRegression(), batch_size=4, random_state=0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the last line")
            self.session = LabelingSession(learner, X, self.path, refit=False)

    def ask(self):
        self.ids = self.session.ask().ids

    def tell(self, part):
        ids = self.ids[part]
        self.session.tell(ids, [f"class {id % 2}" for id in ids])

    def tear(self):
        with open(self.path / "journal.jsonl", "ab") as stream:
            stream.write(b'{"v":2,"seq":')

    def import_(self):
        other = self.folder / "other.csv"
        other.write_text("id,label\n0,class 0\n1,class 1\n2,class 0\n3,class 1\n")
        self.session.import_labels(other)

    def reopen(self, n_events):
        """Give up the session and open it; say if the last step was recorded."""
        if hasattr(self, "session"):
            self.session.close()
        self.open()
        events = self.events()
        if events and events[-1]["event"] == "ask":
            self.ids = events[-1]["ids"]
        return len(events) > n_events

    def events(self):
        """What the journal holds after its first line, without times.

        A session can fail after that line and before it has begun. A torn line is no
        event.
        """
        path = self.path / "journal.jsonl"
        lines = read_lines(path)[0] if path.exists() else []
        timed = {"t", "crc"}
        return [{k: line[k] for k in line.keys() - timed} for line in lines[1:]]

    def rows(self):
        """What the table holds, without times."""
        if not self.table.exists():
            return []
        with self.table.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        return [{k: row[k] for k in row.keys() - {"time"}} for row in rows]

    def names(self):
        return sorted(str(path.relative_to(self.folder)) for path in _walk(self.folder))


def _walk(folder):
    return [path for path in folder.rglob("*") if not path.name.endswith(".tmp")]


def play(folder, disk, at=None, mode=None, recovery="again"):
    """Take all steps, and recover from the one that fails."""
    folder.mkdir()
    play = Play(folder)
    disk.arm(at, mode)
    failures = 0
    for step in play.steps:
        events, rows = play.events(), play.rows()
        try:
            step()
        except OSError:
            failures += 1
            extra = len(play.events()) - len(events)
            assert play.events()[: len(events)] == events
            # Only a disk that lets nothing be taken back may hold one event more.
            assert extra == 0 or (extra == 1 and mode == "gone")
            assert play.rows() == rows or mode in ("EIO", "gone")  # replaced, unsynced
            left = list(folder.rglob("*.tmp"))
            assert not left or mode == "gone"
            disk.repair()
            again = recovery == "again" or step == play.open
            if again or not play.reopen(len(events)):
                step()
    labels = play.session.labels
    with disk.well():
        play.open()
        assert play.session.labels == labels
        play.session.close()
    return play.events(), play.rows(), play.names(), labels, failures


@pytest.mark.slow
def test_every_call_of_a_session_may_fail(tmp_path, disk, capsys):
    *expected, failures = play(tmp_path / "clean", disk)
    sites = list(disk.calls)
    assert failures == 0
    assert len(expected[3]) == 10
    counts, failed = Counter(sites), Counter()
    for at, name in enumerate(sites):
        for mode in MODES:
            if mode in ("short", "full") and name != "write":
                continue
            # Each call fails in two or four ways, half of them with each recovery.
            recovery = ("again", "reopen")[(at + MODES.index(mode)) % 2]
            folder = tmp_path / f"{at} {mode} {recovery}"
            *found, failures = play(folder, disk, at, mode, recovery)
            assert disk.has_failed
            assert failures <= 1
            assert found == expected, (at, name, mode, recovery)
            failed[mode] += 1
    assert {"open", "write", "fsync", "close", "replace", "mkdir"} <= counts.keys()
    with capsys.disabled():
        calls = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
        runs = ", ".join(f"{n} {mode!r}" for mode, n in failed.items())
        sys.stdout.write(f"\n{len(sites)} calls ({calls}); faults: {runs}\n")


@pytest.mark.parametrize("mode", MODES)
def test_every_call_of_a_line_writer_may_fail(tmp_path, disk, mode):
    def append(path, at=None):
        disk.arm(at, mode if at is not None else None)
        acknowledged = []
        for i in range(3):
            try:
                with LineWriter(path) as writer:
                    writer.write({"i": i})
                acknowledged.append({"i": i})
            except OSError:
                disk.repair()
        return acknowledged

    append(tmp_path / "clean")
    sites = list(disk.calls)
    for at in range(len(sites)):
        path = tmp_path / f"{at}.jsonl"
        acknowledged = append(path, at)
        with LineWriter(path):  # whoever comes next clears away what is torn
            pass
        lines, torn = read_lines(path)
        assert torn is None
        # An error after the line was written leaves it: the close, or a dead disk.
        extra = [line for line in lines if line not in acknowledged]
        assert [line for line in lines if line in acknowledged] == acknowledged
        assert not extra or mode == "gone" or sites[at] == "close"


@pytest.mark.parametrize("mode", MODES)
def test_every_call_of_an_atomic_write_may_fail(tmp_path, disk, mode):
    disk.arm(None, None)
    write_atomic(tmp_path / "file", b"old content")
    for at in range(len(disk.calls)):
        with disk.well():
            write_atomic(tmp_path / "file", b"old content")
        disk.arm(at, mode)
        try:
            write_atomic(tmp_path / "file", b"new content")
            acknowledged = True
        except OSError:
            acknowledged = False
        content = (tmp_path / "file").read_bytes()
        assert content in (b"old content", b"new content")
        assert content == b"new content" or not acknowledged
        assert mode == "gone" or len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_in_tell_can_be_repeated(tmp_path, disk):
    play = Play(tmp_path)
    play.open()
    play.ask()
    journal = (play.path / "journal.jsonl").read_bytes()
    disk.arm(0, "full")
    for _ in range(3):  # as long as it is full
        with pytest.raises(OSError, match="No space left") as caught:
            play.tell(slice(0, 2))
        assert "'tell' was not recorded" in caught.value.__notes__[0]
        assert play.session.labels == {}
        assert (play.path / "journal.jsonl").read_bytes() == journal
    disk.repair()
    play.tell(slice(0, 2))
    assert len(play.session.labels) == 2
    play.session.close()


def test_an_interruption_between_disk_and_memory_loses_nothing(tmp_path, monkeypatch):
    # Ctrl-C can come right after the line has reached the disk.
    play = Play(tmp_path)
    play.open()
    play.ask()
    real = _files._fsync

    for when in ("before", "after"):

        def interrupt(handle, when=when):
            monkeypatch.setattr(_files, "_fsync", real)
            if when == "after":
                real(handle)
            raise KeyboardInterrupt

        monkeypatch.setattr(_files, "_fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            play.tell(slice(0, 1))
        assert play.session.labels == {}
    monkeypatch.setattr(LineWriter, "write", _then_interrupt(LineWriter.write))
    with pytest.raises(KeyboardInterrupt):
        play.tell(slice(0, 1))
    monkeypatch.undo()
    play.tell(slice(1, 2))
    assert len(play.session.labels) == 2  # the first was on the disk, and so it counts
    seqs = [event["seq"] for event in play.events()]
    assert seqs == [2, 3, 4]
    play.session.close()


def _then_interrupt(write):
    def interrupted(self, record):
        write(self, record)
        raise KeyboardInterrupt

    return interrupted
