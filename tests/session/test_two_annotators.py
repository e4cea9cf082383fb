"""Sessions of two people: every journal is what its events make of it, in any part."""

import json
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skactive import LabelingSession
from skactive.session import read_labels
from skactive.session._state import read_session

from ._helpers import undoable
from .test_state import oracle
from .test_threads import in_threads

X = [[float(i)] for i in range(12)]
CLASSES = ["a", "b", "c"]
KINDS = ("ask", "tell", "skip", "release", "undo", "rename", "flag", "note", "reopen")
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*KINDS, "ask", "tell", "tell", "tell", "undo"]),
        st.sampled_from(["ann", "bob"]),
        st.integers(0, 11),
        st.sampled_from(CLASSES),
    ),
    max_size=25,
)
OPTIONS = {"refit": False, "overlap": 0.5, "audit_every": 3}


def act(session, kind, who, number, label):
    """Do what a person wishes, if the session allows it."""
    mine = [id for b in session.open_batches if b.annotator == who for id in b.ids]
    id = mine[number % len(mine)] if mine else number
    if kind == "ask":
        session.ask(1 + number % 3, annotator=who)
    elif kind == "tell":
        session.tell(id, label, unasked=True, annotator=who, seconds=number)
    elif kind == "skip" and (id in mine or id not in session.labels):
        session.skip(id, unasked=True, annotator=who)
    elif kind == "release" and mine:
        session.release(id, annotator=who)
    elif kind == "undo" and undoable(session, who):
        session.undo(annotator=who)
    elif kind == "rename" and label != CLASSES[number % 3]:
        if label in session.known_classes:
            session.rename_class(label, CLASSES[number % 3], annotator=who)
    elif kind == "flag":
        session.flag(id, bool(number % 2), annotator=who)
    elif kind == "note":
        session.note(id, label * (number % 3), annotator=who)


def check(session):
    """Compare a session with the oracle of its events."""
    expected = oracle(session._core.journal.events)
    assert session.labels == expected["labels"]
    assert session.answers == expected["given"]
    assert session.skipped == expected["skipped"]
    assert session.flags == expected["flags"]
    assert session.notes == expected["notes"]
    where = {}
    for batch in session.open_batches:
        for id in batch.ids:
            where.setdefault(id, {})[batch.annotator] = batch.number
    assert where == expected["where"]
    for who in ("ann", "bob"):
        own = [e["seq"] for e in expected["undoable"] if e.get("by") == who]
        last = undoable(session, who)
        assert own[-1:] == ([last["seq"]] if last else [])


@pytest.mark.long
@pytest.mark.slow
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(STEPS)
@pytest.mark.filterwarnings("ignore:new classes look like others")
def test_a_session_is_what_its_events_make_of_it(learner, tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("s") / "s"
    session = LabelingSession(learner, X, folder, **OPTIONS)
    for kind, *wish in steps:
        if kind == "reopen":
            session.close()
            session = LabelingSession(learner, X, folder, **OPTIONS)
        else:
            act(session, kind, *wish)
        check(session)
    labels = session.labels
    session.close()
    assert read_labels(folder) == labels


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:new classes look like others")
def test_a_journal_can_end_after_every_line(learner, tmp_path):
    """As a kill leaves it; the session goes on from there."""
    with LabelingSession(learner, X, tmp_path / "s", **OPTIONS) as session:
        for i in range(70):
            kind = (*KINDS[:-1], "tell", "ask", "tell")[i % 11]
            act(session, kind, "ann" if i % 3 else "bob", i % 12, CLASSES[i // 2 % 3])
        kinds = {event["event"] for event in session._core.journal.events}
    assert kinds >= {*KINDS} - {"reopen"}
    lines = (tmp_path / "s" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for n in range(1, len(lines) + 1):
        part = tmp_path / f"{n}"
        shutil.copytree(tmp_path / "s", part)
        torn = b"" if n == len(lines) else lines[n][: len(lines[n]) // 2]
        (part / "journal.jsonl").write_bytes(b"".join(lines[:n]) + torn)
        _, events, state = read_session(part)
        expected = oracle(events)
        assert {id: a.label for id, a in state.answers.items()} == expected["labels"]
        if n % 5:
            continue
        with pytest.warns(UserWarning, match="torn|other options"):
            session = LabelingSession(learner, X, part, **OPTIONS)
        check(session)
        session.tell(0, "a", unasked=True, annotator="eve")
        check(session)
        session.close()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:new classes look like others")
def test_every_kind_of_event_in_threads_leaves_a_sound_journal(learner, tmp_path):
    folder = tmp_path / "s"
    session = LabelingSession(learner, X, folder, **{**OPTIONS, "refit": "background"})
    done = threading.Event()

    def work(who):
        for i in range(60):
            kind = (*KINDS[:-1], "tell", "ask", "tell", "undo")[i % 12]
            with suppress(ValueError):  # the other one was faster
                act(session, kind, who, (7 * i) % 12, CLASSES[i // 2 % 3])
        done.set()

    def look():
        while not done.is_set():
            session.labels, session.audited, session.known_classes, session.history(3)
            for batch in session.open_batches:
                assert len(batch.ids) == len(batch.items)

    in_threads(lambda: work("ann"), lambda: work("bob"), look)
    check(session)
    found = (
        session.labels,
        session.answers,
        session.open_batches,
        session.flags,
    )
    session.close()
    lines = Path(folder, "journal.jsonl").read_text("utf-8").splitlines()
    seqs = [json.loads(line)["seq"] for line in lines]
    assert seqs == list(range(1, len(lines) + 1))
    session = LabelingSession(learner, X, folder, **OPTIONS)
    assert found == (
        *(
            session.labels,
            session.answers,
            session.open_batches,
            session.flags,
        ),
    )
    session.close()
