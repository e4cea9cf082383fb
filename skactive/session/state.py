"""What the events of a journal amount to."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Answer", "State"]


@dataclass(frozen=True)
class Answer:
    """The label of an item, and where it came from."""

    label: object
    annotator: str | None
    time: str
    seq: int


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
    skipped : dict of id to int
        Items set aside, with the event's number.
    open : dict of int to dict of id to None
        By batch, the ids that wait for an answer.
    batches : dict of int to (tuple of ids, annotator)
        All that was ever asked.
    asked : set of ids
    learner : dict or None
        The last learner that was described after the first.
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
        self.learner = None
        self.labels_seq = self.labels_round = self.model_seq = 0
        self.undoable = []
        self._where = {}  # id -> the open batch it is in
        self._undone = set()  # events that a later one takes back
        self._passed_over = set()  # of these, the ones whose turn came
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
        if self._busy or any(e["event"] == "undo" for e in events[self._folded :]):
            # Begin anew after an interruption, and where the past changes.
            self._reset()
            self._undone = {e["of"] for e in events if e["event"] == "undo"}
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
        kind, seq = event["event"], event["seq"]
        if kind not in _APPLY:
            raise ValueError(f"the kind {kind!r} is not known")
        for id in event.get("ids", ()):
            if self._pool is not None and id not in self._pool:
                raise ValueError(f"no item of the pool has the id {id!r}")
        if kind == "tell" and len(event["labels"]) != len(event["ids"]):
            raise ValueError("there must be one label for each id")
        if kind in _UNDOABLE:
            if seq in self._undone:
                self._passed_over.add(seq)
                return
            self.undoable.append(event)
        _APPLY[kind](self, event)

    def _ask(self, event):
        number, ids = event["batch"], event["ids"]
        if number != len(self.batches) + 1:
            raise ValueError(f"batch {number} follows batch {len(self.batches)}")
        for id in ids:
            self._close(id)  # in the batch that a withdrawn release left open
        self.batches[number] = tuple(ids), event.get("by")
        if ids:  # none are left where all of them went from the pool
            self.open[number] = dict.fromkeys(ids)
        self._where.update(dict.fromkeys(ids, number))
        self.asked.update(ids)
        self.model_seq = event["model"]

    def _tell(self, event):
        by, time, seq = event.get("by"), event["t"], event["seq"]
        for id, label in zip(event["ids"], event["labels"], strict=True):
            self.answers[id] = Answer(label, by, time, seq)
            self.skipped.pop(id, None)
            self._close(id)
        self._note_labels(seq)

    def _skip(self, event):
        for id in event["ids"]:
            self.skipped[id] = event["seq"]
            self._close(id)

    def _release(self, event):
        for id in event["ids"]:
            self._close(id)

    def _undo(self, event):
        if event["of"] not in self._passed_over:
            raise ValueError(f"there is no event {event['of']!r} to take back")
        self._passed_over.remove(event["of"])
        if event["what"] == "tell":
            self._note_labels(event["seq"])

    def _refit(self, event):
        self.model_seq = event["model"]

    def _move(self, event):
        """Do nothing: the ids of all events are already those of the last pool."""

    def _learner(self, event):
        self.learner = event["learner"]

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
    "ask": State._ask,
    "tell": State._tell,
    "skip": State._skip,
    "release": State._release,
    "undo": State._undo,
    "refit": State._refit,
    "learner": State._learner,
    "pool": State._move,
}
