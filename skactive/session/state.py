"""What the events of a journal amount to."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace

from skactive._params import check_path
from skactive.session.journal import MANIFEST, read_events, read_manifest

__all__ = ["Answer", "State", "read_labels", "read_session"]


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
