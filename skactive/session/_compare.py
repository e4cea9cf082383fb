"""The answers in a file or another program, compared with those of a session."""

import math
from dataclasses import dataclass, field, replace
from itertools import groupby
from numbers import Real

from .._utils._labels import is_names, same_label


@dataclass(frozen=True)
class Mirrored:
    """The answers to one item in another program, and its note.

    `answers` holds a FileAnswer for each annotator; the label of a skip is None.
    """

    answers: tuple = ()
    note: str = ""


@dataclass
class Difference:
    """What a session must record to hold the same answers.

    `told` and `changed` hold pairs of id and FileAnswer, `withdrawn` and `skipped`
    pairs of id and annotator, `notes` pairs of id and text. `refused` holds triples of
    id, FileAnswer and error: labels that the session does not allow. `unchanged` holds
    ids, and `conflicts` triples of id, label here and label there, which is not taken.
    """

    told: list = field(default_factory=list)
    changed: list = field(default_factory=list)
    withdrawn: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    refused: list = field(default_factory=list)
    unchanged: list = field(default_factory=list)
    conflicts: list = field(default_factory=list)

    def __bool__(self):
        parts = self.told, self.changed, self.withdrawn, self.skipped, self.notes
        return any(parts)

    def events(self):
        """Return the events to record, pairs of their kind and their fields."""
        found = [
            ("withdraw", {"ids": ids, "by": by}) for by, ids in _by(self.withdrawn)
        ]
        labels = self.told + self.changed
        people = list(dict.fromkeys(answer.annotator for _, answer in labels))

        def rank(pair):
            answer = pair[1]
            return answer.time, people.index(answer.annotator), answer.seconds is None

        labels.sort(key=rank)
        for (by, timed), group in groupby(labels, key=_kind):
            ids, answers = zip(*group, strict=True)
            fields = {"ids": list(ids), "labels": [a.label for a in answers], "by": by}
            if timed:
                fields["seconds"] = [a.seconds for a in answers]
            found.append(("tell", fields))
        found += [("skip", {"ids": ids, "by": by}) for by, ids in _by(self.skipped)]
        return found + [("note", {"ids": [id], "text": t}) for id, t in self.notes]


def _kind(pair):
    return pair[1].annotator, pair[1].seconds is not None


def _by(pairs):
    """Return pairs of annotator and ids."""
    grouped = {}
    for id, by in pairs:
        grouped.setdefault(by, []).append(id)
    return grouped.items()


def compare(found, state, policy, source=None, check=None):
    """Return the Difference between a session and `found`, dict of id to Mirrored.

    The policy "keep labels" compares with the labels of the items, and "keep answers"
    with the answers of the same annotators; what differs is a conflict. "take over"
    takes what differs, withdraws answers from `source` that are gone, and takes notes;
    its `check(id, label)` returns a checked label or raises a ValueError or TypeError.
    """
    difference = Difference()
    for id, item in found.items():
        answer = state.answers.get(id)
        given = {old.annotator: old for old in answer.given} if answer else {}
        new = _list_labels(id, item, state, check, difference)
        for by, found_answer in new.items():
            before = answer if policy == "keep labels" else given.get(by)
            _compare_answers(id, before, found_answer, policy, difference)
        gone = []
        if policy == "take over":
            gone = [x for x in given if given[x].source == source and x not in new]
            difference.withdrawn += [(id, by) for by in gone]
            note = state.notes.get(id, "")
            owns = item.note or _note_source(id, state.events) == source
            if note != item.note and owns:
                difference.notes.append((id, item.note))
        labeled = bool(new or given.keys() - {*gone})
        taken = source if policy == "take over" else None
        _compare_skips(id, item, state, taken, labeled, difference)
    return difference


def _list_labels(id, item, state, check, difference):
    """Return the answers to an item with a label that is allowed, by annotator."""
    labels = {}
    for answer in item.answers:
        if answer.label is None:
            continue
        if check is not None:
            try:
                label = check(id, _rename(answer.label, state.renamed))
            except (ValueError, TypeError) as exc:
                difference.refused.append((id, answer, exc))
                continue
            answer = replace(answer, label=label)
        seconds = _read_seconds(answer.seconds)
        labels[answer.annotator] = replace(answer, seconds=seconds)
    return labels


def _compare_answers(id, before, answer, policy, difference):
    if before is None:
        difference.told.append((id, answer))
        return
    is_same = same_label(before.label, answer.label)
    if policy == "take over":
        if not is_same or answer.seconds not in (None, before.seconds):
            difference.changed.append((id, answer))
    elif is_same:
        difference.unchanged.append(id)
    else:
        difference.conflicts.append((id, before.label, answer.label))


def _rename(label, renamed):
    """Return a label with the present names of its classes."""
    if is_names(label):
        return list(dict.fromkeys(renamed.get(name, name) for name in label))
    return renamed.get(label, label)


def _compare_skips(id, item, state, source, labeled, difference):
    """Compare the skips of an item, which count if it has no label."""
    wanted = [a.annotator for a in item.answers if a.label is None and not labeled]
    present = id in state.skipped
    if present:
        event = state.events[state.skipped[id][0] - 1]
        is_own = source is not None and event.get("source") == source
        gone = is_own and event.get("by") not in wanted
        if gone and not labeled:  # a label ends a skip anyway
            difference.withdrawn.append((id, event.get("by")))
            present = False
    if wanted and not present:
        difference.skipped.append((id, wanted[-1]))


def _note_source(id, events):
    """Return where the last note of an item comes from."""
    notes = (e for e in reversed(events) if e["event"] == "note" and id in e["ids"])
    return next(notes, {}).get("source")


def _read_seconds(seconds):
    """Return seconds as a session records them; None if there are none."""
    is_number = isinstance(seconds, Real) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds < math.inf:
        return None
    return round(float(seconds), 3)
