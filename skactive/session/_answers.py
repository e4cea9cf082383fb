"""What people say: checked, then recorded."""

import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path

import numpy as np

from .._utils._containers import as_list
from .._utils._format import reprs
from .._utils._labels import list_classes
from .._utils._sklearn import check_bool
from ._compare import compare
from ._import_export import ImportedLabels, read_answers
from ._labels import rename_class, restore_class


class Answers:
    """Checks and records answers; nothing is recorded if a check fails."""

    def __init__(self, state, record, vocabulary):
        self._state = state
        self._record = record
        self._vocabulary = vocabulary

    def tell(self, ids, labels, *, annotator, unasked, seconds, allows_new=True):
        """Record labels; see `LabelingSession.tell` and `Vocabulary.read`."""
        check_bool("unasked", unasked)
        if isinstance(ids, Mapping) and labels is None:
            ids, labels = list(ids), list(ids.values())
        elif isinstance(ids, str | int | np.generic):
            ids, labels = [ids], [labels]
        ids = self._state.pool.read_ids(ids)
        labels = self._vocabulary.read(labels, ids, allows_new)
        self._record(
            "tell",
            ids=ids,
            labels=labels,
            by=annotator,
            unasked=self._check_queried(ids, unasked),
            seconds=_read_seconds(seconds, len(ids)),
        )

    def import_file(self, path, columns, format, annotator, ignore_unknown):
        """Record the labels of a file; see `LabelingSession.import_labels`."""
        kind, state = self._vocabulary.kind_of_file(), self._state
        found, unknown = read_answers(
            path, columns, state.pool, state, kind, format, annotator, ignore_unknown
        )
        policy = "keep labels" if format is None else "keep answers"
        difference = compare(found, state, policy)
        ids = [id for id, _ in difference.told]
        labels = [answer.label for _, answer in difference.told]
        difference.told = [
            (id, replace(answer, label=label))
            for (id, answer), label in zip(
                difference.told, self._vocabulary.read(labels, ids), strict=True
            )
        ]
        self._record_difference(difference, Path(path).name)
        return ImportedLabels(
            list(dict.fromkeys(ids)),
            list(dict.fromkeys(difference.unchanged)),
            difference.conflicts,
            unknown,
        )

    def mirror(self, found, source):
        """Record what a source says otherwise than the session; return a Difference.

        `found` is a dict of id to Mirrored. Answers from elsewhere stay.
        """
        difference = compare(found, self._state, "take over", source, self._check_label)
        self._record_difference(difference, source)
        return difference

    def _record_difference(self, difference, source):
        for event, fields in difference.events():
            if event in ("tell", "skip"):
                fields["unasked"] = self._check_queried(fields["ids"], True)
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
        is_new = self._check_queried(ids, unasked)
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
        classes = None
        if "classes" in last:
            name = last.get("new", last.get("added"))
            since = last["seq"] if "new" in last else 0
            keep = name is not None and self._uses(name, since)
            classes = restore_class(self._state.classes, last, keep)
        self._record(
            "undo", of=last["seq"], what=last["event"], by=annotator, classes=classes
        )
        self._vocabulary.forget()
        return last

    def _uses(self, name, since):
        """Whether a label that was given after an event has a name."""
        return any(
            given.seq > since and name in list_classes([given.label])
            for answer in self._state.answers.values()
            for given in answer.given
        )

    def add_class(self, name, annotator):
        """Record a new class; see `LabelingSession.add_class`."""
        classes, known = self._state.classes, self._vocabulary.collect()
        name = self._vocabulary.check(name, "name", known)
        if name in known:
            raise ValueError(
                f"'name' must be a new class, got {name!r}, which is one of the "
                "session."
            )
        if classes is not None:
            classes = [*classes, name]
        self._record("add", classes=classes, added=name, by=annotator)
        self._vocabulary.forget()

    def remove_class(self, name, annotator):
        """Record that a class is removed; see `LabelingSession.remove_class`."""
        was, known = self._state.classes, self._vocabulary.collect()
        name = self._vocabulary.check(name, "name", known)
        if name not in known:
            raise ValueError(
                f"'name' must be a class of the session, {reprs(known)}, got {name!r}."
            )
        if self._uses(name, 0) or name in self._vocabulary.before():
            raise ValueError(
                f"'name' must be a class without labels, got {name!r}. Rename it to "
                "merge it with another class."
            )
        if len(known) <= 2:
            raise ValueError(
                f"'name' must leave two classes, got {name!r} of {known}. Add another "
                "class first, or rename this one."
            )
        classes = None if was is None else [other for other in was if other != name]
        self._record("remove", removed=name, was=was, classes=classes, by=annotator)
        self._vocabulary.forget()

    def rename_class(self, old, new, annotator):
        """Record another name of a class; see `LabelingSession.rename_class`."""
        was, known = self._state.classes, self._vocabulary.collect()
        old = self._vocabulary.check(old, "old", known)
        new = self._vocabulary.check(new, "new", known)
        if old not in known:
            raise ValueError(
                f"'old' must be a class of the session, {reprs(known)}, got {old!r}."
            )
        if new == old:
            raise ValueError(
                f"'new' must be another name than 'old', got {new!r} for both."
            )
        classes = None if was is None else rename_class(was, old, new)
        self._record("rename", old=old, new=new, was=was, classes=classes, by=annotator)
        self._vocabulary.forget()

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

    def _check_queried(self, ids, unasked):
        """Return True if an id was never asked, else None; refuse it if unwanted."""
        known = self._state.queried, self._state.answers
        never = [id for id in ids if not any(id in where for where in known)]
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
    several = hasattr(seconds, "__len__") and not isinstance(seconds, str | Mapping)
    given = as_list(seconds) if several else [seconds]
    for value in given:
        is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        if not is_number or not 0 <= value < math.inf:
            raise ValueError(f"'seconds' must be numbers of at least 0, got {value!r}.")
    if several and len(given) != n:
        raise ValueError(
            f"'seconds' must be one number, or one for each of the {n} ids, got "
            f"{len(given)}."
        )
    if not several:
        given = [seconds / n] * n
    return [round(float(value), 3) for value in given]
