"""What the events of a journal amount to."""

import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from numbers import Integral

import numpy as np

from .._utils._containers import as_list
from .._utils._sklearn import check_path
from ._journal import MANIFEST, read_events, read_manifest


@dataclass(frozen=True)
class Answer:
    """The label of an item, and where it came from.

    Attributes
    ----------
    label : str, int, float, bool or list
    annotator : str or None
    time : str
    seq : int
        Number of the event.
    given : tuple of Answer
        Of the answer that settles an item: the last one of each annotator, in order.
    """

    label: object
    annotator: str | None
    time: str
    seq: int
    given: tuple = ()


def _settle(before, new):
    """Settle an item by the majority of its annotators; of a tie by the last answer."""
    if before is None:
        return replace(new, given=(new,))
    given = (*(a for a in before.given if a.annotator != new.annotator), new)
    votes = Counter(repr(answer.label) for answer in given)
    last_first = reversed(given)
    best = max(last_first, key=lambda answer: votes[repr(answer.label)])
    return replace(best, given=given)


class State:
    """Labels, skipped items and open batches after a number of events.

    A function of the events alone: folded at once or one after the other, they come
    to the same.

    Parameters
    ----------
    pool : Pool or container of ids, default=None
        Which ids there are; None means any.

    Attributes
    ----------
    answers : dict of id to Answer
        In the order in which the items got their first label.
    skipped : dict of id to (int, int)
        Items set aside, with the number of the event and the item's place in it.
    open : dict of int to dict of id to None
        By batch, the ids that wait for an answer.
    batches : dict of int to (tuple of ids, annotator)
        All that was ever asked.
    asked : set of ids
    learner : dict or None
        The last learner that was described after the first.
    classes : list or None
        The last classes that were given after the first.
    labels_seq : int
        The last event that changed a label; 0 without labels.
    labels_round : int
        How many batches had been asked then.
    model_seq : int
        The event up to which the last model known to have been used was trained.
    undoable : list of dict
        Events that `undo` takes back, the last first to go.
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
        """Number of the last event that was folded."""
        return self._folded

    def fold(self, events):
        """Take in the events that are not yet in.

        Parameters
        ----------
        events : list of dict
            All events of a journal from the first.

        Raises
        ------
        ValueError
            If one makes no sense after those before it, with its number.
        """
        if self._busy:  # an interruption can leave an event half taken in
            self._reset()
        self._busy = True
        for event in events[self._folded :]:
            try:
                self._apply(event)
            except (LookupError, TypeError, ValueError) as exc:
                raise ValueError(
                    f"line {event['seq']} of 'journal.jsonl' makes no sense after "
                    f"those before it ({type(exc).__name__}: {exc}). Nothing was "
                    "guessed or changed. Restore the file from a copy."
                ) from exc
            self._folded = event["seq"]
        self._busy = False

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
        """Do nothing: the ids of all events are already those of the last pool."""

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


def read_labels(path):
    """Read the labels of a session without opening it.

    Nothing is written and nothing is locked. So it works in a folder that cannot be
    written, and while the session is open elsewhere. Neither the pool nor the learner
    is needed.

    Parameters
    ----------
    path : str or path-like
        Folder of a session.

    Returns
    -------
    labels : dict of id to label
        As :attr:`LabelingSession.labels`.

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
    """Read manifest, events and state of a session from its folder."""
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


def check_n(n):
    """Check a number of items; None stays None."""
    if n is None:
        return None
    if not isinstance(n, Integral) or isinstance(n, bool):
        raise TypeError(f"'n' must be an int or None, got {n!r}.")
    if n < 1:
        raise ValueError(f"'n' must be at least 1, got {n}.")
    return int(n)


def check_annotator(annotator):
    """Check the name of an annotator."""
    if annotator is not None and not isinstance(annotator, str):
        raise TypeError(f"'annotator' must be a str or None, got {annotator!r}.")
    return annotator


def check_classes(classes):
    """Read the classes of a session, list or None."""
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
    """Read the labels that a caller gives.

    Parameters
    ----------
    labels : sequence
        One `str`, `int`, `bool` or finite float for each id, or for several outputs a
        list of these.
    ids : list
        The ids they belong to.
    kind : str or None
        The kind of the labels given before.
    classes : list, default=None
        The labels that are allowed; None allows any.

    Returns
    -------
    labels : list
        As JSON takes them.

    Raises
    ------
    ValueError
        If their number is not that of the ids, or one is missing, not allowed or an
        int of more than 64 bits.
    TypeError
        If one is nothing of the above, or of another kind than the others.
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
            f"{part!r} for {id!r}.{hint} To add a class, open the session with "
            "classes= that name it too. Nothing was recorded."
        )


def warn_of_new_classes(labels, known, stacklevel):
    """Warn of new classes that look like others, as those of a slip of the keyboard.

    Parameters
    ----------
    labels : list
        What is going to be recorded.
    known : container of labels
        The classes so far.
    stacklevel : int
        Of the caller to name in the warning, as :func:`warnings.warn` counts.
    """
    known = {label for label in known if isinstance(label, str)}
    told = Counter(label for label in labels if isinstance(label, str))
    hints = []
    for label, _ in told.most_common():
        if label not in known and (close := _find_close(label, known)) is not None:
            hints.append(f"{label!r} (did you mean {close!r}?)")
        known.add(label)
    if hints:
        shown = ", ".join(hints[:5]) + ", ..." * (len(hints) > 5)
        warnings.warn(
            f"new classes look like others: {shown}. If that was a slip, tell the "
            "items again, or undo(). Open the session with classes=[...] to have such "
            "labels refused.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def _find_close(label, known):
    """Find the class that a label looks like, unless they differ by a number."""
    names = sorted(name for name in known if isinstance(name, str))
    looks = {name.strip().casefold(): name for name in names}
    own = label.strip().casefold()
    stem = re.sub(r"[0-9]+", "", own)
    near = get_close_matches(own, looks, n=1, cutoff=0.8)
    if not near or (near[0] != own and re.sub(r"[0-9]+", "", near[0]) == stem):
        return None
    return looks[near[0]]


def kind_of(label):
    """Name the kind of a label.

    Parameters
    ----------
    label : str, bool, int, float or list

    Returns
    -------
    kind : str

    Examples
    --------
    >>> from skactive.session._state import kind_of
    >>> kind_of("spam"), kind_of(3), kind_of([0, 1])
    ('str', 'number', 'list of 2')
    """
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
            f"'labels' has no label for {id!r}, but {label!r}. Tell only what has "
            "one, or skip the item. Nothing was recorded."
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
