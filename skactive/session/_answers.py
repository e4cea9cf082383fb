"""What people say, here or elsewhere: compared, checked, then recorded."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from numbers import Real
from pathlib import Path

import numpy as np

from .._utils._containers import as_list
from .._utils._format import brief, reprs
from .._utils._labels import list_classes, name_now, same_label
from .._utils._sklearn import check_bool, check_option
from ._arguments import SHOWN
from ._codebook import EMPTY
from ._formats import SourceAnswer, keep_latest
from ._import_export import ImportedLabels, read_answers
from ._labels import move_class, rename_class, restore_class
from ._pool import is_list


class Answers:
    """Checks and records answers; nothing is recorded if a check fails."""

    def __init__(self, journal, vocabulary):
        self._state = journal.state
        self._record = journal.record
        self._vocabulary = vocabulary

    def tell(
        self,
        ids,
        labels,
        annotator,
        *,
        unasked,
        seconds,
        way=None,
        shown=None,
        example="",
        allows_new=True,
    ):
        """Record labels; see `LabelingSession.tell` and `Vocabulary.read`."""
        check_bool("unasked", unasked)
        for one in shown if is_list(shown) else [shown]:
            check_option("shown", one, (None, *SHOWN))
        if isinstance(ids, Mapping) and labels is None:
            ids, labels = list(ids), list(ids.values())
        elif isinstance(ids, str | int | np.generic):
            ids, labels = [ids], [labels]
        ids = self._state.pool.read_ids(ids)
        labels = self._vocabulary.read(labels, ids, allows_new)
        is_new, seconds = self._find_new(ids, unasked), _read_seconds(seconds, len(ids))
        fields = {"ids": ids, "labels": labels, "by": annotator, "unasked": is_new}
        if not is_list(shown):
            shown = None if shown is None else [shown] * len(ids)
        fields |= {"seconds": seconds, "way": way, "shown": shown}
        self._record("tell", **fields, example=example or None)

    def import_file(self, path, columns, format, annotator, ignore_unknown):
        """Record the labels of a file; see `LabelingSession.import_labels`."""
        kind, state = self._vocabulary.kind_of_file(), self._state
        answers, unknown, left_out = read_answers(
            path, columns, state, kind, format, annotator, ignore_unknown
        )
        policy = "keep labels" if format is None else "keep answers"
        difference = compare(answers, state, policy)
        ids = [id for id, _ in difference.told]
        labels = [answer.label for _, answer in difference.told]
        labels = self._vocabulary.read(labels, ids)
        difference.told = [
            (id, replace(answer, label=label))
            for (id, answer), label in zip(difference.told, labels, strict=True)
        ]
        self._record_difference(difference, Path(path).name)
        return ImportedLabels(
            list(dict.fromkeys(ids)),
            list(dict.fromkeys(difference.unchanged)),
            difference.conflicts,
            unknown,
            left_out,
        )

    def sync(self, answers, source, notes, is_blind):
        """Record what a source says otherwise; see `LabelingSession.sync`.

        Nothing was shown with items of which `is_blind(id)` is true, and for others it
        is unknown.
        """
        if not isinstance(source, str) or not source:
            raise TypeError(f"'source' must be the name of a program, got {source!r}.")
        notes = {} if notes is None else notes
        for name, value in (("answers", answers), ("notes", notes)):
            if not isinstance(value, Mapping):
                raise TypeError(f"{name!r} must be a dict by id, got {brief(value)}.")
        if answers:
            self._state.pool.read_ids(list(answers), name="answers")
        for id, each in answers.items():
            if not is_list(each) or not all(isinstance(x, SourceAnswer) for x in each):
                raise TypeError(
                    f"'answers' must hold a list of SourceAnswer for {id!r}, got "
                    f"{brief(each)}."
                )
        for id, text in notes.items():
            if id not in answers or not isinstance(text, str):
                raise ValueError(
                    "'notes' must hold a str for items of 'answers', got "
                    f"{brief(text)} for {id!r}. Pass [] for an item without answers."
                )
        answers = {id: keep_latest(each) for id, each in answers.items()}
        check = self._check_label
        difference = compare(answers, self._state, "take over", source, notes, check)
        self._record_difference(difference, source, is_blind)
        return difference

    def _record_difference(self, difference, source, is_blind=lambda id: False):
        for event, fields in difference.events():
            if event in ("tell", "skip"):
                fields["unasked"] = self._find_new(fields["ids"], True)
            if event == "tell":
                shown = ["none" if is_blind(id) else None for id in fields["ids"]]
                fields["shown"] = shown if any(shown) else None
            self._record(event, source=source, **fields)

    def _check_label(self, id, label):
        """Return a checked label of one item."""
        return self._vocabulary.read([label], [id])[0]

    def withdraw(self, ids, annotator):
        """Record withdrawn answers; see `LabelingSession.withdraw`."""
        ids = self._state.pool.read_ids(ids)
        others = [id for id in ids if not self._state.has_answered(id, annotator)]
        if others:
            whose = "anybody" if annotator is None else repr(annotator)
            raise ValueError(
                f"'ids' must be items that {whose} answered, got {reprs(others)}."
            )
        self._record("withdraw", ids=ids, by=annotator)

    def skip(self, ids, annotator, unasked):
        """Record skipped items; see `LabelingSession.skip`."""
        check_bool("unasked", unasked)
        ids = self._state.pool.read_ids(ids)
        state = self._state
        labeled = [
            id
            for id in ids
            if id in state.answers and not state.waits_for(id, annotator)
        ]
        if labeled:
            raise ValueError(
                f"'ids' must be items without a label to be skipped, got "
                f"{reprs(labeled)}. Tell another label, or undo."
            )
        is_new = self._find_new(ids, unasked)
        self._record("skip", ids=ids, by=annotator, unasked=is_new)

    def release(self, ids, annotator):
        """Record released items; see `LabelingSession.release`."""
        waiting = {id: None for batch in self._state.open.values() for id in batch}
        ids = list(waiting) if ids is None else self._state.pool.read_ids(ids)
        if others := [id for id in ids if id not in waiting]:
            raise ValueError(
                f"'ids' must be items of open batches, got {reprs(others)}."
            )
        if ids:
            self._record("release", ids=ids, by=annotator)

    def undo(self, annotator):
        """Record that the last event of an annotator is undone, and return it."""
        last = self._state.last_undoable(annotator)
        if last is None:
            whose = "" if annotator is None else f" by {annotator!r}"
            raise ValueError(f"there is nothing to undo: no answer{whose} is left.")
        fields = {"of": last["seq"], "what": last["event"], "by": annotator}
        if "classes" in last:
            name = last.get("new", last.get("added"))
            since = last["seq"] if "new" in last else 0
            keep = name is not None and self._uses(name, since)
            fields["classes"] = restore_class(self._state.classes, last, keep)
        self._record_classes("undo", **fields)
        return last

    def _record_classes(self, event, **fields):
        """Record an event that may change the classes."""
        self._record(event, **fields)
        self._vocabulary.forget()

    def _uses(self, name, since):
        """Whether a label that was given after an event has a name."""
        return any(
            one.seq > since and name in list_classes([one.label])
            for one in [*self._state.list_answers(), *self._state.answers.values()]
        )

    def add_class(self, name, annotator, description="", examples=()):
        """Record a new class; see `LabelingSession.add_class` and `Desk.add_class`."""
        name, was = self._vocabulary.check(name, "name", False), self._state.classes
        classes = None if was is None else [*was, name]
        entry = EMPTY | {"description": description, "examples": [*examples]}
        fields = {"added": name, "entry": None if entry == EMPTY else entry}
        self._record_classes("add", classes=classes, **fields, by=annotator)

    def edit_class(self, name, annotator, new=None, place=None, **changes):
        """Record what is changed of a class; see `Desk.edit_class`."""
        name = self._vocabulary.check(name, "name", True)
        new = new if new is None else self._vocabulary.check(new, "new")
        before, was = self._state.codebook.entries.get(name, EMPTY), self._state.classes
        entry = before | {x: y for x, y in changes.items() if y is not None}
        entry = None if entry == before else entry
        if place is not None and was is None:
            raise ValueError("'place' needs a session that is opened with classes=.")
        if new is not None:
            return self.rename_class(name, new, annotator, entry, place)
        fields = {"entry": entry}
        if (classes := move_class(was, name, place)) != was:
            fields |= {"classes": classes, "was": was}
        if any(fields.values()):
            self._record_classes("describe", name=name, **fields, by=annotator)

    def remove_class(self, name, annotator):
        """Record that a class is removed; see `Desk.remove_class`."""
        name, was = self._vocabulary.check(name, "name", True), self._state.classes
        if self._uses(name, 0) or name in self._vocabulary.before():
            raise ValueError(
                f"'name' must be a class without labels, got {name!r}. Rename it to "
                "merge it with another class."
            )
        if len(left := self._vocabulary.collect()) <= 2:
            raise ValueError(
                f"'name' must leave two classes, got {name!r} of {left}. Add another "
                "class first, or rename this one."
            )
        fields = {"removed": name, "was": was, "by": annotator}
        classes = None if was is None else [other for other in was if other != name]
        self._record_classes("remove", **fields, classes=classes)

    def rename_class(self, old, new, annotator, entry=None, place=None):
        """Record another name of a class; see `LabelingSession.rename_class`."""
        old = self._vocabulary.check(old, "old", True)
        new, was = self._vocabulary.check(new, "new"), self._state.classes
        if new == old:
            raise ValueError(
                f"'new' must be another name than 'old', got {new!r} for both."
            )
        fields = {"old": old, "new": new, "entry": entry, "was": was, "by": annotator}
        classes = None if was is None else rename_class(was, old, new)
        classes = move_class(classes, new, place)
        self._record_classes("rename", **fields, classes=classes)

    def flag(self, ids, flag, annotator):
        """Record a flag; see `LabelingSession.flag`."""
        check_bool("flag", flag)
        self._record(
            "flag", ids=self._state.pool.read_ids(ids), flag=bool(flag), by=annotator
        )

    def note(self, id, text, annotator):
        """Record a note; see `LabelingSession.note`."""
        (id,) = self._state.pool.read_ids([id], name="id")
        if not isinstance(text, str):
            raise TypeError(f"'text' must be a str, got {text!r}.")
        self._record("note", ids=[id], text=text, by=annotator)

    def _find_new(self, ids, unasked):
        """Return True if an id was never asked, else None; refuse it if unwanted."""
        queried, answers = self._state.queried, self._state.answers
        never = [id for id in ids if id not in queried and id not in answers]
        if never and not unasked:
            raise ValueError(
                f"'ids' must be queried items, got {reprs(never)}, which never were "
                "queried. Pass unasked=True to label them anyway."
            )
        return True if never else None


def _read_seconds(seconds, n):
    """Return checked seconds as a list of n floats, or None."""
    if seconds is None:
        return None
    is_one = not is_list(seconds)
    values = [seconds] if is_one else as_list(seconds)
    if wrong := [value for value in values if not is_seconds(value)]:
        raise ValueError(f"'seconds' must be numbers of at least 0, got {wrong[0]!r}.")
    if not is_one and len(values) != n:
        raise ValueError(
            f"'seconds' must be one number, or one for each of the {n} ids, got "
            f"{len(values)}."
        )
    shares = [seconds / n] * n if is_one else values
    return [round(float(share), 3) for share in shares]


@dataclass
class Difference:
    """What a session must record to hold the same answers.

    `told` and `changed` hold pairs of id and SourceAnswer, `withdrawn` and `skipped`
    pairs of id and annotator, `notes` pairs of id and text. `refused` holds triples of
    id, SourceAnswer and error: labels that the session does not allow. `unchanged`
    holds ids, and `conflicts` triples of id, label here and label there, which is not
    taken.
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
        return bool(self.events())

    def events(self):
        """Return the events to record, pairs of their kind and their fields."""
        events = [
            ("withdraw", {"ids": ids, "by": by}) for by, ids in _by(self.withdrawn)
        ]
        labels = self.told + self.changed
        people = list(dict.fromkeys(answer.annotator for _, answer in labels))

        def kind(pair):
            return people.index(pair[1].annotator), pair[1].seconds is None

        labels.sort(key=lambda pair: (pair[1].time, *kind(pair)))
        for (person, untimed), group in groupby(labels, key=kind):
            ids, answers = zip(*group, strict=True)
            fields = {"ids": list(ids), "labels": [a.label for a in answers]}
            if not untimed:
                fields["seconds"] = [a.seconds for a in answers]
            events.append(("tell", {**fields, "by": people[person]}))
        events += [("skip", {"ids": ids, "by": by}) for by, ids in _by(self.skipped)]
        return events + [("note", {"ids": [id], "text": t}) for id, t in self.notes]


def _by(pairs):
    """Return pairs of annotator and ids."""
    grouped = {}
    for id, by in pairs:
        grouped.setdefault(by, []).append(id)
    return grouped.items()


def compare(answers, state, policy, source=None, notes=None, check=None):
    """Return the Difference between a session and `answers`, dict of id to a sequence.

    The policy "keep labels" compares with the labels of the items, and "keep answers"
    with the answers of the same annotators; what differs is a conflict. "take over"
    takes what differs and `notes`, and withdraws answers from `source` that are gone.
    its `check(id, label)` returns a checked label or raises a ValueError or TypeError.
    """
    difference, takes_over = Difference(), policy == "take over"
    for id, each in answers.items():
        answer, old = state.answers.get(id), state.answers_of(id)
        new = _list_labels(id, each, state, check, difference)
        for by, told in new.items():
            before = answer if policy == "keep labels" else old.get(by)
            is_same = before is not None and same_label(before.label, told.label)
            if before is None:
                difference.told.append((id, told))
            elif takes_over:
                if not is_same or told.seconds not in (None, before.seconds):
                    difference.changed.append((id, told))
            elif is_same:
                difference.unchanged.append(id)
            else:
                difference.conflicts.append((id, before.label, told.label))
        gone = []
        if takes_over:
            gone = [by for by in old if old[by].source == source and by not in new]
            difference.withdrawn += [(id, by) for by in gone]
            note = notes.get(id, "")
            owns = note or _note_source(id, state.events) == source
            if owns and note != state.notes.get(id, ""):
                difference.notes.append((id, note))
        if not (new or old.keys() - {*gone}):  # a label ends a skip
            _compare_skips(id, each, state, source, difference)
    return difference


def _list_labels(id, answers, state, check, difference):
    """Return the answers to an item with a label that is allowed, by annotator."""
    labels = {}
    for answer in answers:
        if answer.label is None:
            continue
        label, seconds = answer.label, answer.seconds
        try:
            label = check(id, name_now(label, state.renamed)) if check else label
        except (ValueError, TypeError) as exc:
            difference.refused.append((id, answer, exc))
            continue
        seconds = round(float(seconds), 3) if is_seconds(seconds) else None
        labels[answer.annotator] = replace(answer, label=label, seconds=seconds)
    return labels


def _compare_skips(id, answers, state, source, difference):
    """Compare the skips of an item without a label."""
    wanted = [answer.annotator for answer in answers if answer.label is None]
    present = id in state.skipped
    if present and source is not None:
        event = state.events[state.skipped[id][0] - 1]
        if event.get("source") == source and event.get("by") not in wanted:
            difference.withdrawn.append((id, event.get("by")))
            present = False
    if wanted and not present:
        difference.skipped.append((id, wanted[-1]))


def _note_source(id, events):
    """Return where the last note of an item comes from."""
    notes = (e for e in reversed(events) if e["event"] == "note" and id in e["ids"])
    return next(notes, {}).get("source")


def is_seconds(value):
    """Whether a value is a finite number of at least 0."""
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return is_number and 0 <= value < math.inf
