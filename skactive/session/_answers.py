"""What people say: checked, then recorded."""

import math
from collections.abc import Mapping
from numbers import Real
from pathlib import Path

import numpy as np

from .._utils._containers import as_list
from .._utils._labels import list_classes
from .._utils._sklearn import check_bool
from ._format_import import import_format
from ._ids import shorten
from ._import_export import import_table
from ._labels import rename_class, restore_class
from ._mirror import compare


class Answers:
    """Checks and records answers; nothing is recorded if a check fails."""

    def __init__(self, log, pool, vocabulary):
        self._log = log
        self._pool = pool
        self._vocabulary = vocabulary

    @property
    def _state(self):
        return self._log.state

    def tell(self, ids, labels, by, unasked, seconds):
        """Record labels; see `LabelingSession.tell`."""
        check_bool("unasked", unasked)
        if isinstance(labels, np.ndarray) and labels.ndim == 0:
            labels = labels.item()
        if isinstance(ids, Mapping) and labels is None:
            ids, labels = list(ids), list(ids.values())
        elif isinstance(ids, str | int | np.generic):
            holds_one = (
                isinstance(labels, list | tuple | np.ndarray) and len(labels) == 1
            )
            if holds_one and self._vocabulary.kind(self._state, None) != "names":
                raise TypeError(
                    f"'labels' must be one label for the one id {ids!r}, got "
                    f"{labels!r}. Pass the label itself, or a list of ids too. Nothing "
                    "was recorded."
                )
            ids, labels = [ids], [labels]
        ids = self._pool.read_ids(ids)
        labels = self._vocabulary.read(labels, ids, self._state, self._log.classes)
        self._log.record(
            "tell",
            ids=ids,
            labels=labels,
            by=by,
            unasked=self._check_asked(ids, unasked),
            seconds=_read_seconds(seconds, len(ids)),
        )

    def import_file(self, path, columns, format, by, ignore_unknown):
        """Record the labels of a file; see `LabelingSession.import_labels`."""
        kind = self._vocabulary.kind_of_file(self._state, self._log.classes)
        place, state = (path, columns, self._pool), self._state
        if format is None:
            rest = state.answers, kind, ignore_unknown
            imported, labels = import_table(*place, *rest)
            if labels:
                self._tell_imported(labels, by, Path(path).name)
            return imported
        rest = state, kind, format, by, ignore_unknown
        imported, answers, skips = import_format(*place, *rest)
        self._record_imported(answers, skips, Path(path).name)
        return imported

    def _tell_imported(self, labels, by, source):
        """Record labels of a file, a dict of id to label."""
        ids, values = list(labels), list(labels.values())
        values = self._vocabulary.read(values, ids, self._state, self._log.classes)
        unasked = self._check_asked(ids, True)
        self._log.record(
            "tell", ids=ids, labels=values, by=by, unasked=unasked, source=source
        )

    def _record_imported(self, answers, skipped, source):
        """Record answers by annotator and id, and skips by annotator, of a file."""
        checked = {}  # all before any is recorded
        for by, labels in answers.items():
            given = [answer.label for answer in labels.values()], list(labels)
            checked[by] = self._vocabulary.read(*given, self._state, self._log.classes)
        for by, labels in answers.items():
            seconds = [answer.seconds for answer in labels.values()]
            self._log.record(
                "tell",
                ids=list(labels),
                labels=checked[by],
                by=by,
                unasked=self._check_asked(list(labels), True),
                seconds=None if None in seconds else seconds,
                source=source,
            )
        for by, ids in skipped.items():
            is_new = self._check_asked(ids, True)
            self._log.record("skip", ids=ids, by=by, unasked=is_new, source=source)

    def mirror(self, found, source):
        """Record what a source says otherwise than the session; return a Difference.

        `found` is a dict of id to Mirrored. Answers from elsewhere stay.
        """
        events = self._log.journal.events
        difference = compare(found, self._state, events, source, self._check_label)
        for event, fields in difference.events():
            if event in ("tell", "skip"):
                fields["unasked"] = self._check_asked(fields["ids"], True)
            self._log.record(event, source=source, **fields)
        return difference

    def _check_label(self, id, label):
        """Return a checked label of one item."""
        classes = self._log.classes
        (label,) = self._vocabulary.read([label], [id], self._state, classes)
        return label

    def withdraw(self, ids, by):
        """Record withdrawn answers; see `LabelingSession.withdraw`."""
        ids = self._pool.read_ids(ids)
        others = [id for id in ids if not self._state.has_answered(id, by)]
        if others:
            whose = "anybody" if by is None else repr(by)
            raise ValueError(
                f"'ids' must be items that {whose} answered, got {shorten(others)}. "
                "Nothing was recorded."
            )
        self._log.record("withdraw", ids=ids, by=by)

    def skip(self, ids, by, unasked):
        """Record skipped items; see `LabelingSession.skip`."""
        check_bool("unasked", unasked)
        ids = self._pool.read_ids(ids)
        state = self._state
        labeled = [
            id for id in ids if id in state.answers and not state.waits_for(id, by)
        ]
        if labeled:
            raise ValueError(
                f"'ids' must be items without a label to be skipped, got "
                f"{shorten(labeled)}. Tell another label, or undo. Nothing was "
                "recorded."
            )
        is_new = self._check_asked(ids, unasked)
        self._log.record("skip", ids=ids, by=by, unasked=is_new)

    def release(self, ids, by):
        """Record released items; see `LabelingSession.release`."""
        waiting = {id: None for batch in self._state.open.values() for id in batch}
        ids = list(waiting) if ids is None else self._pool.read_ids(ids)
        if others := [id for id in ids if id not in waiting]:
            raise ValueError(
                f"'ids' must be items of open batches, got {shorten(others)}. Nothing "
                "was recorded."
            )
        if ids:
            self._log.record("release", ids=ids, by=by)

    def undo(self, by):
        """Record that the last event of an annotator is undone, and return it."""
        last = self._state.last_undoable(by)
        if last is None:
            whose = "" if by is None else f" by {by!r}"
            raise ValueError(f"there is nothing to undo: no answer{whose} is left.")
        classes = None
        if "classes" in last:
            name = last.get("new", last.get("added"))
            since = last["seq"] if "new" in last else 0
            keep = name is not None and self._uses(name, since)
            classes = restore_class(self._log.classes, last, keep)
        self._log.record(
            "undo", of=last["seq"], what=last["event"], by=by, classes=classes
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

    def add_class(self, name, by):
        """Record a new class; see `LabelingSession.add_class`."""
        classes, known = self._log.classes, self.known_classes()
        name = self._vocabulary.check(name, "name", known)
        if name in known:
            raise ValueError(
                f"'name' must be a new class, got {name!r}, which is one of the "
                "session. Nothing was recorded."
            )
        if classes is not None:
            classes = [*classes, name]
        self._log.record("add", classes=classes, added=name, by=by)
        self._vocabulary.forget()

    def remove_class(self, name, by):
        """Record that a class is removed; see `LabelingSession.remove_class`."""
        was, known = self._log.classes, self.known_classes()
        name = self._vocabulary.check(name, "name", known)
        if name not in known:
            raise ValueError(
                f"'name' must be a class of the session, {shorten(known)}, got "
                f"{name!r}. Nothing was recorded."
            )
        if self._uses(name, 0) or name in self._vocabulary.before(self._state):
            raise ValueError(
                f"'name' must be a class without labels, got {name!r}. Rename it to "
                "merge it with another class. Nothing was recorded."
            )
        if len(known) <= 2:
            raise ValueError(
                f"'name' must leave two classes, got {name!r} of {known}. Add another "
                "class first, or rename this one. Nothing was recorded."
            )
        classes = None if was is None else [other for other in was if other != name]
        self._log.record("remove", removed=name, was=was, classes=classes, by=by)
        self._vocabulary.forget()

    def rename_class(self, old, new, by):
        """Record another name of a class; see `LabelingSession.rename_class`."""
        was, known = self._log.classes, self.known_classes()
        old = self._vocabulary.check(old, "old", known)
        new = self._vocabulary.check(new, "new", known)
        if old not in known:
            raise ValueError(
                f"'old' must be a class of the session, {shorten(known)}, got {old!r}. "
                "Nothing was recorded."
            )
        if new == old:
            raise ValueError(
                f"'new' must be another name than 'old', got {new!r} for both. Nothing "
                "was recorded."
            )
        classes = None if was is None else rename_class(was, old, new)
        self._log.record("rename", old=old, new=new, was=was, classes=classes, by=by)
        self._vocabulary.forget()

    def known_classes(self):
        """Return the classes, also if any label is allowed."""
        return self._log.classes or self._vocabulary.collect(self._state)

    def flag(self, ids, flag, by):
        """Record a flag; see `LabelingSession.flag`."""
        check_bool("flag", flag)
        self._log.record("flag", ids=self._pool.read_ids(ids), flag=bool(flag), by=by)

    def note(self, id, text, by):
        """Record a note; see `LabelingSession.note`."""
        (id,) = self._pool.read_ids([id], name="id")
        if not isinstance(text, str):
            raise TypeError(
                f"'text' must be a str, got {text!r}. Nothing was recorded."
            )
        self._log.record("note", ids=[id], text=text, by=by)

    def _check_asked(self, ids, unasked):
        """Return True if an id was never asked, else None; refuse it if unwanted."""
        known = self._state.queried, self._state.answers
        never = [id for id in ids if not any(id in where for where in known)]
        if never and not unasked:
            raise ValueError(
                f"'ids' must be queried items, got {shorten(never)}, which "
                "never were queried. Pass unasked=True to label them anyway. Nothing "
                "was recorded."
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
            raise ValueError(
                f"'seconds' must be numbers of at least 0, got {value!r}. Nothing was "
                "recorded."
            )
    if several and len(given) != n:
        raise ValueError(
            f"'seconds' must be one number, or one for each of the {n} ids, got "
            f"{len(given)}. Nothing was recorded."
        )
    if not several:
        given = [seconds / n] * n
    return [round(float(value), 3) for value in given]
