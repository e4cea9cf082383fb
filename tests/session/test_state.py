"""The fold of events: at once, one by one, and by an oracle that keeps no state."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skactive.session._state import State

POOL = range(8)
STEP = st.tuples(
    st.sampled_from(["ask", "tell", "tell", "skip", "release", "undo", "refit"]),
    st.lists(st.sampled_from(list(POOL)), min_size=1, max_size=4, unique=True),
    st.sampled_from("xyz"),
)


def make_events(steps):
    """Turn random wishes into events that a session could have recorded."""
    events = []
    for kind, ids, label in steps:
        event = {"v": 1, "seq": len(events) + 1, "t": "", "event": kind}
        state = oracle(events)
        if kind == "ask":
            taken = {*state["labels"], *state["skipped"], *state["where"]}
            event["ids"] = [id for id in ids if id not in taken]
            event["batch"] = 1 + sum(e["event"] == "ask" for e in events)
            event["model"] = 0
        elif kind == "tell":
            event |= {"ids": ids, "labels": [label] * len(ids)}
        elif kind == "skip":
            event["ids"] = [id for id in ids if id not in state["labels"]]
        elif kind == "release":
            event["ids"] = [id for id in ids if id in state["where"]]
        elif kind == "undo":
            if not state["undoable"]:
                continue
            last = state["undoable"][-1]
            event |= {"of": last["seq"], "what": last["event"]}
        else:
            event["model"] = 0
        if event.get("ids") != []:
            events.append(event)
    return events


def oracle(events):
    """Work out every question from the whole list of events, one by one."""
    undone = {e["of"] for e in events if e["event"] == "undo"}
    held = [e for e in events if e["seq"] not in undone]
    told = [
        (id, label)
        for e in held
        if e["event"] == "tell"
        for id, label in zip(e["ids"], e["labels"], strict=True)
    ]
    last = {}  # what was last done with each item
    for e in held:
        last.update(dict.fromkeys(e.get("ids", ()), e))
    return {
        "labels": dict(told),
        "order": list(dict.fromkeys(id for id, _ in told)),
        "skipped": sorted(
            (id for id, e in last.items() if e["event"] == "skip"),
            key=lambda id: (last[id]["seq"], last[id]["ids"].index(id)),
        ),
        "where": {id: e["batch"] for id, e in last.items() if e["event"] == "ask"},
        "undoable": [e for e in held if e["event"] in ("tell", "skip", "release")],
        "labels_seq": max(
            (e["seq"] for e in events if e.get("what", e["event"]) == "tell"), default=0
        ),
    }


@settings(max_examples=100, deadline=None)
@given(st.lists(STEP, max_size=25))
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
        assert list(labels) == expected["order"]
        assert list(state.skipped) == expected["skipped"]
        where = {id: number for number, ids in state.open.items() for id in ids}
        assert where == expected["where"]
        assert list(state.open) == sorted(set(where.values()))
        for number, ids in state.open.items():
            asked, _ = state.batches[number]
            assert list(ids) == [id for id in asked if id in ids]
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
