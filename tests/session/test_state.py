"""The fold of events: at once, one by one, and by an oracle that keeps no state."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skactive.session._state import State

POOL = range(8)
LABELS = ("x", "y")
KINDS = (
    *("ask", "tell", "skip", "release", "withdraw", "undo", "rename"),
    *("flag", "note", "refit"),
)
STEP = st.tuples(
    st.sampled_from(["ask", "tell", "tell", "undo", "undo", "rename", *KINDS]),
    # Few items and people, so that the events of one item meet.
    st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=3, unique=True),
    st.sampled_from(LABELS),
    st.sampled_from(["ann", "bob", None]),
)


def make_events(steps):
    """Turn random wishes into events that a session could have recorded."""
    events = []
    for kind, ids, label, *by in steps:
        event = {"v": 1, "seq": len(events) + 1, "t": "", "event": kind, "ids": ids}
        by = by[0] if by else None
        event |= {} if by is None else {"by": by}
        state = oracle(events)
        if kind == "ask":
            asked = {(id, e.get("by")) for e in events for id in e.get("ids", ())}
            again = [id for id in ids if id in state["labels"] or id in state["where"]]
            again = [id for id in again if (id, by) not in asked]
            taken = {*state["labels"], *state["skipped"], *state["where"]} - {*again}
            event["ids"] = [id for id in ids if id not in taken]
            event["batch"] = 1 + sum(e["event"] == "ask" for e in events)
            event["model"] = 0
            event["second"] = again
        elif kind == "tell":
            event["labels"] = [label] * len(ids)
        elif kind == "skip":
            waits = {id for id in ids if by in state["where"].get(id, ())}
            event["ids"] = [id for id in ids if id not in {*state["labels"]} - waits]
        elif kind == "withdraw":
            own = {id for id in ids if by in state["given"].get(id, ())}
            event["ids"] = [id for id in ids if id in own | {*state["skipped"]}]
        elif kind == "release":
            event["ids"] = [id for id in ids if id in state["where"]]
        elif kind == "undo":
            own = [e for e in state["undoable"] if by in (None, e.get("by"))]
            if not own:
                continue
            event |= {"of": own[-1]["seq"], "what": own[-1]["event"]}
            del event["ids"]
        elif kind == "rename":
            event |= {"old": label, "new": LABELS[label == "x"]}
            del event["ids"]
        elif kind == "flag":
            event["flag"] = label == "x"
        elif kind == "note":
            event["text"] = label if ids[0] else ""
        else:
            event["model"] = 0
            del event["ids"]
        if event.get("ids") != []:
            events.append(event)
    return events


def oracle(events):
    """Work out every question from the whole list of events, from the first."""
    undone = {e["of"] for e in events if e["event"] == "undo"}
    held = [e for e in events if e["seq"] not in undone]
    given, skips, where, flags, notes = {}, [], {}, {}, {}
    for e in held:
        by = e.get("by")
        if e["event"] == "rename":
            for answers in given.values():
                for who, label in answers.items():
                    answers[who] = e["new"] if label == e["old"] else label
        for place, id in enumerate(e.get("ids", ())):
            if e["event"] == "withdraw":
                given.get(id, {}).pop(by, None)
                given = {i: answers for i, answers in given.items() if answers}
                skips = [skip for skip in skips if skip[2:] != (id, by)]
            elif e["event"] == "flag":
                flags = {i: 1 for i in [*flags, id] if e["flag"] or i != id}
            elif e["event"] == "note":
                notes = {**notes, id: e["text"]}
            elif e["event"] == "ask":
                others = where.get(id, {}) if id in e.get("second", ()) else {}
                where[id] = {**others, by: e["batch"]}
            elif e["event"] in ("tell", "skip", "release"):
                waits = where.pop(id, {})
                left = {who: n for who, n in waits.items() if who != by}
                if left and by in waits:
                    where[id] = left
            if e["event"] == "tell":
                answers = given.setdefault(id, {})
                answers.pop(by, None)
                answers[by] = e["labels"][place]
                skips = [skip for skip in skips if skip[2] != id]
            elif e["event"] == "skip" and id not in given:
                skips.append((e["seq"], place, id, by))
    skipped = {
        id: (seq, place)
        for seq, place, id, _ in sorted(skips, key=lambda skip: skip[:2])
    }
    kinds = ("tell", "withdraw", "rename")
    changing = [e for e in events if e.get("what", e["event"]) in kinds]
    kinds = ("tell", "skip", "release", "withdraw", "rename")
    return {
        "given": given,
        "labels": {id: count_votes(answers) for id, answers in given.items()},
        "skipped": sorted(skipped, key=skipped.get),
        "where": where,
        "flags": list(flags),
        "notes": {id: text for id, text in notes.items() if text},
        "undoable": [e for e in held if e["event"] in kinds],
        "labels_seq": max((e["seq"] for e in changing), default=0),
    }


def count_votes(answers):
    """Return the most frequent label; of several, the one that was given last."""
    labels = list(answers.values())
    return max(reversed(labels), key=labels.count)


@pytest.mark.long
@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.lists(STEP, min_size=5, max_size=25))
@example(  # the skip by bob counts again, before that of the other item
    [
        ("skip", [0], "x", "bob"),
        ("skip", [0, 1], "x", "ann"),
        ("withdraw", [0], "x", "ann"),
    ]
)
def test_folding_events_one_by_one_or_at_once_is_the_same(steps):
    events = make_events(steps)
    whole, gradual = State(POOL), State(POOL)
    whole.fold(events)
    for n in range(len(events) + 1):
        gradual.fold(events[:n])
    expected = oracle(events)
    for state in (whole, gradual):
        labels = {id: answer.label for id, answer in state.answers.items()}
        assert labels == expected["labels"]
        assert list(labels) == list(expected["labels"])
        for id, answer in state.answers.items():
            given = {a.annotator: a.label for a in answer.given}
            assert list(given.items()) == list(expected["given"][id].items())
        assert list(state.skipped) == expected["skipped"]
        where = {}
        for number, ids in state.open.items():
            asked, by = state.batches[number]
            assert list(ids) == [id for id in asked if id in ids]
            for id in ids:
                assert state.waits_for(id, by)
                where.setdefault(id, {})[by] = number
        assert where == expected["where"]
        assert list(state.open) == sorted(state.open)
        assert list(state.flags) == expected["flags"]
        assert state.notes == expected["notes"]
        assert state.undoable == expected["undoable"]
        assert state.labels_seq == expected["labels_seq"]
        assert state.seq == len(events)


def test_an_interrupted_fold_starts_again():
    events = make_events([("ask", [0, 1], "x"), ("tell", [0, 2], "x")])
    state = State(POOL)
    state.fold(events[:1])
    state._busy = True  # as left by an interruption in the middle of an event
    state.answers[7] = "half"
    state.fold(events)
    assert set(state.answers) == {0, 2}


def test_an_undo_looks_at_no_event_but_its_own(monkeypatch):
    steps = [("ask", [0, 1], "x"), *[("tell", [id], "x") for id in range(8)]]
    events = make_events([*steps, ("undo", [0], "x"), ("undo", [0], "x")])
    state, applied = State(POOL), []
    real = State._apply

    def apply(self, event):
        applied.append(event["seq"])
        real(self, event)

    monkeypatch.setattr(State, "_apply", apply)
    for n in range(len(events) + 1):
        state.fold(events[:n])
    assert applied == list(range(1, 12))
    assert list(state.answers) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("of", [1, 2, 9])
def test_only_the_last_answer_can_be_undone(of):
    events = make_events([("ask", [0, 1], "x"), *[("tell", [i], "x") for i in (0, 1)]])
    undo = {"v": 1, "seq": 4, "t": "", "event": "undo", "of": of, "what": "tell"}
    with pytest.raises(ValueError, match=f"line 4 .*no event {of} to take back"):
        State(POOL).fold([*events, undo])


def test_an_item_that_waits_cannot_be_asked_again():
    events = make_events([("ask", [0, 1], "x"), ("ask", [2], "x")])
    events[1]["ids"] = [1]
    with pytest.raises(ValueError, match=r"line 2 .*the item 1 waits for an"):
        State(POOL).fold(events)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_batches_are_numbered_one_by_one(number):
    events = make_events([("ask", [0, 1], "x"), ("ask", [2], "x")])
    events[1]["batch"] = number
    with pytest.raises(ValueError, match=f"line 2 .*batch {number} follows batch 1"):
        State(POOL).fold(events)
