"""The state of a session: what follows from the events of its journal."""

import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import groupby
from typing import Any

import numpy as np

from .._utils._containers import as_list
from .._utils._sklearn import check_path
from ._journal import MANIFEST, read_events, read_manifest


@dataclass(frozen=True)
class Answer:
    """The label of an item, its annotator, and the time and number of its event.

    `given` holds the last answer of each annotator, in order.
    """

    label: object
    annotator: str | None
    time: str
    seq: int
    given: tuple = ()


def _settle(before, new):
    """Return the answer of the majority of the annotators; in a tie the last one."""
    if before is None:
        return replace(new, given=(new,))
    given = (*(a for a in before.given if a.annotator != new.annotator), new)
    votes = Counter(repr(answer.label) for answer in given)
    last_first = reversed(given)
    best = max(last_first, key=lambda answer: votes[repr(answer.label)])
    return replace(best, given=given)


class State:
    """Labels, skipped items and open batches after a number of events.

    A function of the events alone: it does not matter how many are folded at a time.
    `pool` limits the ids; None allows any.

    Attributes
    ----------
    answers : dict of id to Answer
        In the order in which the items were first labeled.
    skipped : dict of id to (int, int)
        Number of the event, and the position of the item in it.
    open : dict of int to dict of id to None
        By batch, the ids that wait for an answer.
    batches : dict of int to (tuple of ids, annotator)
    asked : set of ids
    learner, classes : dict or None, list or None
        The last ones in the journal.
    labels_seq, labels_round : int
        The last event that changed a label, and the number of batches before it.
    model_seq : int
        The event up to which the last model that was used was trained.
    undoable : list of dict
        Events that `undo` can undo, the last one first.
    """

    def __init__(self, pool=None):
        self._pool = pool
        self._reset()

    def _reset(self):
        self.answers = {}
        self.skipped = {}
        self.open = {}
        self.batches = {}
        self.asked = set()
        self.learner = self.classes = None
        self.labels_seq = self.labels_round = self.model_seq = 0
        self.undoable = []
        self._before = []  # for each of these, what its items were before it
        self._where = {}  # id -> the open batch it is in
        self._folded = 0
        self._busy = False

    @property
    def seq(self):
        """Number of the last folded event."""
        return self._folded

    def fold(self, events):
        """Apply the events that were not applied yet; `events` begins with the first.

        Raise a ValueError with the number of an event that contradicts earlier ones.
        """
        if self._busy:  # an interruption can leave an event half applied
            self._reset()
        self._busy = True
        for event in events[self._folded :]:
            try:
                self._apply(event)
            except (LookupError, TypeError, ValueError) as exc:
                raise ValueError(
                    f"line {event['seq']} of 'journal.jsonl' contradicts "
                    f"earlier lines ({type(exc).__name__}: {exc}). Nothing was "
                    "guessed or changed. Restore the file from a copy."
                ) from exc
            self._folded = event["seq"]
        self._busy = False

    def answered_by_batch(self):
        """Return a list of lists of labeled ids; successive ids of a batch together."""
        batch_of = {}
        for number, (ids, _) in self.batches.items():
            batch_of.update(dict.fromkeys(ids, number))
        return [list(group) for _, group in groupby(self.answers, batch_of.get)]

    def _apply(self, event):
        kind = event["event"]
        if kind not in _APPLY:
            raise ValueError(f"the kind {kind!r} is not known")
        for id in event.get("ids", ()):
            if self._pool is not None and id not in self._pool:
                raise ValueError(f"no item of the pool has the id {id!r}")
        if kind == "tell" and len(event["labels"]) != len(event["ids"]):
            raise ValueError("there must be one label for each id")
        if kind in _UNDOABLE:
            self._before.append([self._look_up(id) for id in event["ids"]])
            self.undoable.append(event)
        _APPLY[kind](self, event)

    def _look_up(self, id):
        return self.answers.get(id), self.skipped.get(id), self._where.get(id)

    def _begin(self, event):
        if event["seq"] != 1:
            raise ValueError("a session begins with its first event")

    def _ask(self, event):
        number, ids = event["batch"], event["ids"]
        if number != len(self.batches) + 1:
            raise ValueError(f"batch {number} follows batch {len(self.batches)}")
        if waiting := [id for id in ids if id in self._where]:
            raise ValueError(f"the item {waiting[0]!r} waits for an answer already")
        self.batches[number] = tuple(ids), event.get("by")
        if ids:  # none are left where all of them went from the pool
            self.open[number] = dict.fromkeys(ids)
        self._where.update(dict.fromkeys(ids, number))
        self.asked.update(ids)
        self.model_seq = event["model"]

    def _tell(self, event):
        by, time, seq = event.get("by"), event["t"], event["seq"]
        for id, label in zip(event["ids"], event["labels"], strict=True):
            answer = Answer(label, by, time, seq)
            self.answers[id] = _settle(self.answers.get(id), answer)
            self.skipped.pop(id, None)
            self._close(id)
        self._note_labels(seq)

    def _skip(self, event):
        for place, id in enumerate(event["ids"]):
            self.skipped.pop(id, None)
            self.skipped[id] = event["seq"], place
            self._close(id)

    def _release(self, event):
        for id in event["ids"]:
            self._close(id)

    def _undo(self, event):
        last = self.undoable[-1] if self.undoable else {"seq": None}
        if (event["of"], event["what"]) != (last["seq"], last.get("event")):
            raise ValueError(f"there is no event {event['of']!r} to take back")
        items = zip(last["ids"], self._before.pop(), strict=True)
        self.undoable.pop()
        reopened = set()
        for id, (answer, skipped, number) in items:
            for entries, entry in ((self.answers, answer), (self.skipped, skipped)):
                if entry is None:
                    entries.pop(id, None)
                else:
                    entries[id] = entry
            # An item that was released can be in a later batch by now.
            if number is not None and self._where.setdefault(id, number) == number:
                reopened.add(number)
        self.skipped = dict(sorted(self.skipped.items(), key=lambda item: item[1]))
        for number in reopened:
            ids, _ = self.batches[number]
            waiting = [id for id in ids if self._where.get(id) == number]
            self.open[number] = dict.fromkeys(waiting)
        self.open = dict(sorted(self.open.items()))
        if last["event"] == "tell":
            self._note_labels(event["seq"])

    def _refit(self, event):
        self.model_seq = event["model"]

    def _move(self, event):
        """Do nothing: all events already have the ids of the last pool."""

    def _learner(self, event):
        self.learner = event["learner"]

    def _set_classes(self, event):
        self.classes = event["classes"]

    def _note_labels(self, seq):
        self.labels_seq, self.labels_round = seq, len(self.batches)

    def _close(self, id):
        number = self._where.pop(id, None)
        if number is not None:
            del self.open[number][id]
            if not self.open[number]:
                del self.open[number]


_UNDOABLE = ("tell", "skip", "release")
_APPLY = {
    "begin": State._begin,
    "ask": State._ask,
    "tell": State._tell,
    "skip": State._skip,
    "release": State._release,
    "undo": State._undo,
    "refit": State._refit,
    "learner": State._learner,
    "pool": State._move,
    "classes": State._set_classes,
}


def list_history(events, id):
    """Return the events of an item as dicts; see `LabelingSession.history`."""
    undone = {event["of"] for event in events if event["event"] == "undo"}
    found = []
    for event in events:
        if id not in event.get("ids", ()):
            continue
        entry = {"seq": event["seq"], "time": event["t"], "event": event["event"]}
        if "labels" in event:
            entry["label"] = event["labels"][event["ids"].index(id)]
        if "batch" in event:
            entry["batch"] = event["batch"]
        entry["annotator"] = event.get("by")
        entry["undone"] = event["seq"] in undone
        found.append(entry)
    return found


class Vocabulary:
    """The kind and the classes of the labels of a session.

    `before` are the labels that the learner was fitted to, or None.
    """

    def __init__(self, before):
        self._kind = None if before is None else kind_of(before[0])
        self._before = set() if before is None else set(map(str, before))
        self._known = None  # the classes so far, or None if not collected yet

    def kind(self, state, classes):
        """Return the kind of the labels so far, or None."""
        for answer in state.answers.values():
            return kind_of(answer.label)
        return self._kind or (kind_of(classes[0]) if classes else None)

    def read(self, labels, ids, state, classes):
        """Return checked labels as JSON accepts them; warn of doubtful new classes."""
        kind = self.kind(state, None)
        labels = normalize_labels(labels, ids, kind, classes)
        new = {label for label in labels if isinstance(label, str)}
        if classes is None and not new <= (self._known or set()):
            given = {str(answer.label) for answer in state.answers.values()}
            known = self._before | given
            warn_of_new_classes(labels, known, stacklevel=4)
            self._known = known | new
        return labels

    def forget(self):
        """Collect the classes again when they are next needed."""
        self._known = None


def read_labels(path: str | os.PathLike[str]) -> dict[str | int, Any]:
    """Read the labels of a session without opening it.

    Nothing is written or locked, so this works in a read-only folder, and while the
    session is open elsewhere. It needs neither the pool nor the learner.

    Parameters
    ----------
    path : str or path-like
        Folder of a session.

    Returns
    -------
    labels : dict of id to label
        The same as :attr:`LabelingSession.labels`.

    Raises
    ------
    FileNotFoundError
        If there is no session in the folder.
    ValueError
        If the journal or the manifest is damaged or missing, naming the file.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skactive import ActiveLearner, LabelingSession
    >>> from skactive.session import read_labels
    >>> learner = ActiveLearner(LogisticRegression())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LabelingSession(learner, [[0.0], [1.0]], folder) as session:
    ...         session.tell(1, "warm", unasked=True)
    ...     read_labels(folder)
    {1: 'warm'}
    """
    check_path("path", path)
    _, _, state = read_session(os.path.expanduser(path))
    return {id: answer.label for id, answer in state.answers.items()}


def read_session(folder):
    """Return manifest, events and state of the session in a folder."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise FileNotFoundError(
            f"'path' must be the folder of a session, got {os.fspath(folder)!r}, which "
            f"has no {MANIFEST!r}."
        )
    events, _ = read_events(folder)  # a torn last line was never acknowledged
    state = State()
    state.fold(events)
    return manifest, events, state


def check_annotator(annotator):
    """Return a checked name of an annotator, or None."""
    if annotator is not None and not isinstance(annotator, str):
        raise TypeError(f"'annotator' must be a str or None, got {annotator!r}.")
    return annotator


def check_classes(classes):
    """Return checked classes as a list, or None."""
    if classes is None:
        return None
    ordered = hasattr(classes, "__len__") and not isinstance(classes, Mapping | Set)
    if isinstance(classes, str) or not ordered or len(classes) < 2:
        raise ValueError(
            f"'classes' must be a sequence of at least two labels, got {classes!r}."
        )
    places = [f"classes[{i}]" for i in range(len(classes))]
    classes = normalize_labels(classes, places, None)
    if isinstance(classes[0], list) or len(set(classes)) < len(classes):
        raise ValueError(f"'classes' must be different single labels, got {classes!r}.")
    return classes


def normalize_labels(labels, ids, kind, classes=None):
    """Return checked labels as JSON accepts them, one for each of `ids`.

    `kind` is the kind of earlier labels, and `classes` the allowed labels, or None.
    Raise a ValueError if a label is missing, not allowed or longer than 64 bits, and a
    TypeError for labels of other or several kinds.
    """
    unordered = isinstance(labels, Mapping | Set)
    if unordered or isinstance(labels, str) or not hasattr(labels, "__len__"):
        raise TypeError(
            f"'labels' must be a sequence with one label for each of the {len(ids)} "
            f"ids, got {labels!r}. Pass a list, or tell({{id: label, ...}}). Nothing "
            "was recorded."
        )
    labels = as_list(labels)
    if len(labels) != len(ids):
        raise ValueError(
            f"'labels' must hold one label for each of the {len(ids)} ids, got "
            f"{len(labels)}. Nothing was recorded."
        )
    read = []
    for id, label in zip(ids, labels, strict=True):
        read.append(_read(label, id))
        kind = kind or kind_of(read[-1])
        if kind_of(read[-1]) != kind:
            raise TypeError(
                f"'labels' must all be of one kind in a session, here {kind}; got "
                f"{label!r} for {id!r}. Nothing was recorded."
            )
        if classes is not None:
            _check_class(read[-1], id, classes)
    return read


def _check_class(label, id, classes):
    for part in label if isinstance(label, list) else [label]:
        if kind_of(part) == kind_of(classes[0]) and part in classes:
            continue
        close = _find_close(part, classes) if isinstance(part, str) else None
        hint = "" if close is None else f" Did you mean {close!r}?"
        shown = ", ".join(map(repr, classes[:20])) + ", ..." * (len(classes) > 20)
        raise ValueError(
            f"'labels' must be among the classes of the session, {shown}; got "
            f"{part!r} for {id!r}.{hint} To add a class, include it in "
            "classes= when you open the session. Nothing was recorded."
        )


def warn_of_new_classes(labels, known, stacklevel):
    """Warn of new classes that resemble known ones, as a typing error does.

    `stacklevel` counts like that of :func:`warnings.warn`.
    """
    known = {label for label in known if isinstance(label, str)}
    counts = Counter(label for label in labels if isinstance(label, str))
    hints = []
    for label, _ in counts.most_common():
        if label not in known and (close := _find_close(label, known)) is not None:
            hints.append(f"{label!r} (did you mean {close!r}?)")
        known.add(label)
    if hints:
        shown = ", ".join(hints[:5]) + ", ..." * (len(hints) > 5)
        warnings.warn(
            f"new classes look like others: {shown}. If that was a mistake, tell "
            "the items again, or undo(). Open the session with classes=[...] to "
            "refuse such labels.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def _find_close(label, known):
    """Return a class that a label resembles, or None; numbers in names do not count."""
    names = sorted(name for name in known if isinstance(name, str))
    looks = {name.strip().casefold(): name for name in names}
    own = label.strip().casefold()
    stem = re.sub(r"[0-9]+", "", own)
    near = get_close_matches(own, looks, n=1, cutoff=0.8)
    if not near or (near[0] != own and re.sub(r"[0-9]+", "", near[0]) == stem):
        return None
    return looks[near[0]]


def kind_of(label):
    """Return the kind of a label: "str", "bool", "number" or "list of <length>"."""
    if isinstance(label, str):
        return "str"
    if isinstance(label, list | np.ndarray):
        return f"list of {len(label)}"
    return "bool" if isinstance(label, bool | np.bool_) else "number"


def _read(label, id):
    if hasattr(label, "tolist"):
        label = label.tolist()
    if isinstance(label, list | tuple):
        return [_read(part, id) for part in label]
    if is_missing(label) or (isinstance(label, float) and math.isinf(label)):
        raise ValueError(
            f"'labels' must hold a label for {id!r}, got {label!r}. Tell only items "
            "that have one, or skip the item. Nothing was recorded."
        )
    if not isinstance(label, str | bool | int | float):
        raise TypeError(
            f"'labels' must hold str, int, bool or float, got {label!r} for {id!r}. "
            "Nothing was recorded."
        )
    if isinstance(label, int) and label.bit_length() > 63:
        raise ValueError(
            f"'labels' must hold int of at most 64 bits, got {label!r} for {id!r}. "
            "Pass it as a str. Nothing was recorded."
        )
    return label


def is_missing(label):
    """Whether a value stands for no label: None, NaN, NA, NaT or an empty string."""
    if label is None or isinstance(label, str):
        return not label
    is_na = type(label).__name__ in ("NAType", "NaTType")
    return is_na or (isinstance(label, float) and math.isnan(label))
