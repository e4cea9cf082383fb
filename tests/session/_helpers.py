"""What a session has written into its folder, and what its front ends see."""

import json
from pathlib import Path

from skactive._storage._files import read_lines


def events(session):
    """Return the events after the first, which every session begins with."""
    begin, *others = read_lines(Path(session.folder, "journal.jsonl"))[0]
    assert begin["event"] == "begin"
    return others


def manifest(session):
    return json.loads(Path(session.folder, "manifest.json").read_text(encoding="utf-8"))


def undoable(session, annotator=None):
    """Return the event that `undo` would undo, without its time and annotator."""
    last = session._core.state.last_undoable(annotator or session._core.annotator)
    hidden = {"v", "t", "by", "unasked", "seconds", "was", "classes", "source", "shown"}
    return last and {key: last[key] for key in last if key not in hidden}


def remove_class(session, name, annotator=None):
    """Remove a class as a desk does."""
    with session._core.recording() as answers:
        answers.remove_class(name, annotator)


def get_item(session, id):
    pool = session._core.state.pool
    return pool.X[int(pool.positions(pool.read_ids([id], name="id"))[0])]
