"""One flipped bit in a file of a session: refused by name, or the same labels."""

import random
import sys
import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession
from skactive.session import _manifest as manifest
from skactive.session import read_labels

X = np.arange(24.0).reshape(12, 2)


def open_session(path, X=X):
    learner = ActiveLearner(LogisticRegression(), batch_size=2, random_state=0)
    return LabelingSession(learner, X, path, refit=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of a session with every kind of event."""
    versions = manifest.collect_versions()
    monkeypatch.setattr(manifest, "collect_versions", lambda: versions)
    path = tmp_path / "s"
    with open_session(path, X[:10]) as session:
        session.tell([0, 5], ["spam", "naïve 東京"], unasked=True)
        session.ask()
    with open_session(path) as session:  # with two items more
        session.tell(session.open_batches[0].ids[0], "J*", annotator="ann")
        session.refit()
        session.tell(0, "ham")
        session.undo()
        session.skip(session.ask().ids[0])
        session.release()
        session.tell(11, "spam", unasked=True)
    return path


def flips(content, which):
    """Yield the content after each flip: of a bit of "each byte" or of "some"."""
    rng = random.Random(0)
    for position in range(0, len(content), 13 if which == "some bytes" else 1):
        flipped = bytearray(content)
        flipped[position] ^= 1 << rng.randrange(8)
        yield bytes(flipped)


def open_labels(folder, X=X):
    with open_session(folder, X) as session:
        return session.labels


def outcome(read, folder):
    """Return the labels, or the error."""
    try:
        return read(folder)
    except (ValueError, FileExistsError) as exc:
        return exc


def flip_all(path, read, which, expected=None):
    """Read the labels after each flip; count what came of it."""
    journal = path.with_name("journal.jsonl")
    content, events = path.read_bytes(), journal.read_bytes()
    expected = expected or read(path.parent)
    counts = Counter()
    for flipped in flips(content, which):
        journal.write_bytes(events)  # opening can have added an event
        path.write_bytes(flipped)
        found = outcome(read, path.parent)
        if isinstance(found, Exception):
            assert path.name in str(found)
            assert not isinstance(found, UnicodeError)
            assert path.read_bytes() == flipped  # nothing guessed, nothing changed
            counts["refused by name"] += 1
        else:
            assert found == expected, flipped
            counts["same labels"] += 1
    journal.write_bytes(events)
    path.write_bytes(content)
    return counts


slow = pytest.mark.slow


@pytest.mark.long
@pytest.mark.parametrize(
    ("read", "which"),
    [
        (read_labels, "some bytes"),
        (open_labels, "some bytes"),
        pytest.param(read_labels, "each byte", marks=slow),
        pytest.param(open_labels, "each byte", marks=slow),
    ],
)
def test_no_flip_in_a_journal_changes_a_label(folder, read, which, capsys):
    path = folder / "journal.jsonl"
    n_flips = sum(1 for _ in flips(path.read_bytes(), which))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no line is taken for a torn one
        counts = flip_all(path, read, which)
    assert counts == {"refused by name": n_flips}
    _report(capsys, which, f"journal of {path.stat().st_size} bytes", counts)


@pytest.mark.long
@pytest.mark.parametrize("which", ["some bytes", pytest.param("each byte", marks=slow)])
def test_no_flip_in_a_manifest_changes_a_label(folder, which, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = flip_all(folder / "manifest.json", open_labels, which)
    assert set(counts) == {"refused by name"}
    _report(capsys, which, "manifest", counts)


@pytest.mark.long
@pytest.mark.parametrize("which", ["some bytes", pytest.param("each byte", marks=slow)])
def test_no_flip_in_the_hashes_of_a_pool_changes_a_label(folder, which):
    (path,) = folder.glob("pool*.npy")
    unchanged = flip_all(path, open_labels, which)
    assert set(unchanged) == {"same labels"}  # the file is not needed then
    more = np.vstack([X, X[:1] + 0.5])
    with open_session(folder) as session:
        expected = session.labels

    def grow(folder):
        labels = open_labels(folder, more)
        (new,) = set(folder.glob("pool*.npy")) - {path}
        new.unlink()
        return labels

    counts = flip_all(path, grow, which, expected)
    assert set(counts) == {"refused by name", "same labels"}  # these in the header
    if which == "each byte":
        assert counts["refused by name"] == 16 * len(X)


@pytest.mark.long
def test_of_a_journal_cut_anywhere_only_the_last_line_is_dropped(folder, tmp_path):
    journal = folder / "journal.jsonl"
    content = journal.read_bytes()
    starts = [0, *(i + 1 for i, byte in enumerate(content) if byte == ord("\n"))]
    at = {}
    for end in starts[1:]:
        journal.write_bytes(content[:end])
        at[end] = read_labels(folder)
    for length in range(starts[1], len(content)):
        journal.write_bytes(content[:length])
        whole = max(end for end in starts if end <= length)
        if length + 1 in at:  # a line that only lacks its newline is whole
            whole = length + 1
        assert read_labels(folder) == at[whole]


def _report(capsys, which, what, counts):
    if which != "some bytes":
        with capsys.disabled():
            found = ", ".join(f"{n} {kind}" for kind, n in counts.items())
            sys.stdout.write(f"\n{what}: {found}\n")
