"""The state of a session: what follows from the events of its journal."""

import os
from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from .._utils._labels import key_of, name_now
from .._utils._sklearn import check_path
from ._codebook import Codebook
from ._coders import SETTLED, decide
from ._journal import MANIFEST, read_events, read_manifest


@dataclass(frozen=True)
class Answer:
    """The label of an item, its annotator, and the time and number of its event.

    `source` is the file or program that it comes from, or None; `way` is that of
    `Desk.answer`, and `shown` that of `LabelingSession.tell`. `given` holds the last
    answer of each annotator, in order, `firsts` the first ones, and `repeats` those to
    the item when it came again, which never count. A decision between these has the way
    "settled", and is not among them.
    """

    label: object
    annotator: str | None
    time: str
    seq: int
    seconds: float | None = None
    source: str | None = None
    way: str | None = None
    shown: str | None = None
    given: tuple = ()
    firsts: tuple = ()
    repeats: tuple = ()

    @property
    def blind(self):
        """First answers before which nothing of a machine was shown, list.

        A later answer never counts here: it may be a correction after a prediction.
        """
        return [one for one in self.firsts if one.shown == "none"]


def settle(given, rule, firsts=(), repeats=()):
    """Return the answer that counts of the last ones of the annotators, in order.

    `rule` is "latest", "majority" (in a tie the last answer), or the name of an
    adjudicator, whose answer counts if there is one, and otherwise the majority.
    """
    best = given[-1]
    if rule != "latest":
        votes = Counter(key_of(answer.label) for answer in given)
        best = max(reversed(given), key=lambda answer: votes[key_of(answer.label)])
    own = [answer for answer in given if answer.annotator == rule]
    if own and rule not in SETTLE:
        best = own[0]
    firsts, repeats = tuple(firsts), tuple(repeats)
    return replace(best, given=tuple(given), firsts=firsts, repeats=repeats)


SETTLE = ("latest", "majority")


class State:
    """Labels, skipped items and open batches after a number of events.

    A function of the events alone: it does not matter how many are folded at a time. An
    item is what its events that were not undone make of it. `pool` limits the ids; None
    allows any. `classes` are the allowed labels of a new session, or None, and
    `descriptions` what describes them, or None.

    Attributes
    ----------
    pool : Pool or None
    events : list of dict
        All events, also those that were not folded yet.
    answers : dict of id to Answer
        In the order in which the items were first labeled.
    skipped : dict of id to (int, int)
        Number of the event, and the position of the item in it.
    open : dict of int to dict of id to None
        By batch, the ids that wait for an answer.
    batches : dict of int to (tuple of ids, annotator)
    queried : dict of id to dict of annotator to int
        Who was asked how often, also where the batch was released.
    settle, overlap, random_only : str, float, bool or None
        The last ones in the journal; None if nobody chose.
    audited : dict of id to bool
        Items that were drawn at random for the audit, and whether all were then.
    machines : dict of str to dict of id to (label, confidence, event)
        The answers of each machine, None for no label; see `machine_labels`.
    machine_settings : dict of str to dict
        What the journal says about each machine.
    flags : dict of id to None
    notes : dict of id to str
    own_notes : dict of id to dict of annotator to str
    learner : dict or None
        The last one in the journal.
    classes : list or None
        The allowed labels; None allows any.
    opened_with : list or None
        The last classes that came from an opening of the session.
    added : list
        Classes that were added while any label was allowed.
    renamed : dict of label to label
        Classes that have another name now.
    codebook : Codebook
        What describes the classes.
    labels_seq, labels_round : int
        The last event that changed a label, and the number of batches before it.
    model_seq : int
        The event up to which the last model that was used was trained.
    adapted : int or None
        The number of labels that its encoder has learned from, if that was chosen.
    undoable : list of dict
        Events that were not undone, of the kinds that `undo` can undo, in order.
    """

    def __init__(self, pool=None, classes=None, descriptions=None):
        self.pool = pool
        self.events = ()
        self._first_classes, self._first_words = classes, descriptions
        self._reset()

    def _reset(self):
        self.answers = {}
        self.skipped = {}
        self.open = {}
        self.batches = {}
        self.queried = {}
        self.flags, self.notes, self.own_notes = {}, {}, {}
        self.learner = None
        self.classes = self.opened_with = self._first_classes
        self.added = []
        self._renames = []  # those that were not undone
        self.codebook = Codebook(self._first_words)
        self.settle, self.overlap, self.random_only = "majority", 0.0, None
        self.audited = {}
        self.machines, self.machine_settings = {}, {}
        self.labels_seq = self.labels_round = self.model_seq = 0
        self.adapted = None
        self.undoable = []
        self._events = {}  # id -> its events that were not undone, and its place there
        self._waits = {}  # id -> dict of annotator to the open batch it is in
        self._batch_of = {}  # id -> the last batch that asked for its first answer
        self._first = {}  # id -> its first label since it had none
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
        self.events = events
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

    def at(self, seq):
        """Return the state after an event."""
        past = State(self.pool, self._first_classes, self._first_words)
        past.fold(self.events[:seq])
        return past

    def labels(self):
        """Return the current labels, dict of id to label; others may answer."""
        return {id: answer.label for id, answer in self.answers.copy().items()}

    def labels_by_keys(self, keys):
        """Return the current labels, where an import is ordered by keys (n,) of items.

        A file can have one class after the other.
        """
        labels = self.labels()
        key_of = dict(zip(labels, keys[self.pool.positions(labels)], strict=True))

        def find_place(id):
            seq, position = self._first[id]
            is_import = self.events[seq - 1].get("unasked")
            return seq, key_of[id] if is_import else 0, position

        return {id: labels[id] for id in sorted(labels, key=find_place)}

    def answers_of(self, id):
        """Return the last answers to an item, dict of annotator to Answer."""
        answer = self.answers.get(id)
        return {one.annotator: one for one in answer.given} if answer else {}

    def list_answers(self):
        """Return the last answers of all to all items, list; others may answer."""
        return [one for answer in self.answers.copy().values() for one in answer.given]

    def answered_by_batch(self):
        """Return a list of lists of labeled ids; successive ids of a batch together."""
        return [list(group) for _, group in groupby(self.answers, self._batch_of.get)]

    def latest(self, answers):
        """Return the ids of items with answers and of skipped ones, latest first."""
        when = {id: (answer.seq, 0) for id, answer in answers.items()}
        when |= {id: skip for id, skip in self.skipped.items() if id not in when}
        return sorted(when, key=when.get, reverse=True)

    def last_undoable(self, annotator=None):
        """Return the last event that can be undone, by anybody for None; or None."""
        for event in reversed(self.undoable):
            if annotator is None or event.get("by") == annotator:
                return event
        return None

    def waits_for(self, id, annotator):
        """Whether an item waits for the answer of an annotator."""
        return annotator in self._waits.get(id, ())

    def comes_again(self, id):
        """Whether an item waits for somebody who has answered it."""
        return not self._waits.get(id, {}).keys().isdisjoint(self.answers_of(id))

    def waiting_for(self, annotator):
        """Return the ids of the open items of an annotator, list."""
        return [
            id
            for number in sorted(self.open)
            if self.batches[number][1] == annotator
            for id in self.open[number]
        ]

    def has_answered(self, id, annotator):
        """Whether an annotator labeled or skipped an item."""
        last = None
        for event, _ in self._events.get(id, ()):
            is_own = event.get("by") == annotator and event.get("way") != SETTLED
            if is_own and event["event"] in _ANSWERS:
                last = event["event"]
        return last in ("tell", "skip")

    @property
    def renamed(self):
        names = {}
        for rename in self._renames:
            old, new = rename["old"], rename["new"]
            names = {was: new if now == old else now for was, now in names.items()}
            names[old] = new
            names.pop(new, None)
        return names

    def _apply(self, event):
        kind, ids = event["event"], event.get("ids", ())
        for id in ids:
            if self.pool is not None and id not in self.pool:
                raise ValueError(f"no item of the pool has the id {id!r}")
        for name in ("labels", "seconds", "shown", "confidences"):
            if name in event and len(event[name]) != len(ids):
                raise ValueError(f"there must be one of {name!r} for each id")
        if kind in _UNDOABLE and "taught" not in event:
            self.undoable.append(event)
        if self.codebook.keep(event):
            self._note_labels(event)
        match kind:
            case "begin":
                if event["seq"] != 1:
                    raise ValueError("a session begins with its first event")
            case "ask":
                self._ask(event)
            case "tell" | "skip" | "release" | "withdraw":
                self._add(event)
                if kind == "withdraw":
                    self._sort(ids)  # an earlier skip can count again
                if kind in ("tell", "withdraw"):
                    self._note_labels(event)
            case "annotate":
                self._annotate(event)
            case "undo":
                self._undo(event)
            case "flag":
                for id in ids:
                    _put(self.flags, id, True if event["flag"] else None)
            case "note":
                for id in ids:
                    _put(self.notes, id, event["text"] or None)
                    own = self.own_notes.setdefault(id, {})
                    _put(own, event.get("by"), event["text"] or None)
            case "options":
                self.overlap = event.get("overlap", self.overlap)
                self.random_only = event.get("random_only", self.random_only)
                if "settle" in event:
                    self.settle = event["settle"]
                    self._refresh_labels(event)
            case "refit":
                self._use_model(event)
            case "learner":
                self.learner = event["learner"]
            case "classes" | "add" | "remove" | "rename":
                self._change_classes(event)
            case "describe":
                self.classes = event.get("classes", self.classes)
            case "pool" | "codebook":
                pass  # all events already have the ids of the last pool
            case _:
                raise ValueError(f"the kind {kind!r} is not known")

    def _annotate(self, event):
        name, scores = event["by"], event.get("confidences")
        if "settings" in event:
            now = event["settings"]
            self.machines[name] = self.find_machine_answers(name, now)
            self.machine_settings[name] = now
        answers = self.machines.setdefault(name, {})
        for position, id in enumerate(event["ids"]):
            score = scores and scores[position]
            answers[id] = event["labels"][position], score, event["seq"]
        self._note_labels(event)

    def find_machine_answers(self, name, settings):
        """Return the answers of a machine that count, dict of id.

        There are none if it was asked another question before. What a server accepted,
        "sent", is known after its first answer only, and does not count here.
        """
        before = self.machine_settings.get(name, {})
        both = before.keys() | settings.keys() if before else ()
        is_same = all(before.get(x) == settings.get(x) for x in both if x != "sent")
        return self.machines.get(name, {}) if is_same else {}

    def machine_labels(self, name):
        """Return the labels by a machine with their present names, dict of id."""
        return {
            id: self.name_since(label, seq)
            for id, (label, _, seq) in self.machines[name].items()
            if label is not None
        }

    def find_machine(self, id):
        """Return the last label of an item by a machine and its confidence, or None."""
        last = None, None
        for answers in list(self.machines.values()):
            label, score, seq = answers.get(id, (None, None, 0))
            if label is not None:
                last = self.name_since(label, seq), score
        return last

    def name_since(self, label, seq):
        """Return a label of an event with the present names of its classes."""
        for rename in self._renames:
            if rename["seq"] > seq:
                label = name_now(label, {rename["old"]: rename["new"]})
        return label

    def _change_classes(self, event):
        names, self.classes = self.renamed, event.get("classes")
        if event["event"] == "rename":
            self._renames.append(event)
            self._refresh_labels(event)
        elif event["event"] == "remove":
            gone = event["removed"]
            self.added = [name for name in self.added if names.get(name, name) != gone]
        elif "added" not in event:  # an added class of 0.2.0 cannot be taken back
            self.opened_with = self.classes
        elif self.classes is None:
            self.added.append(event["added"])

    def _ask(self, event):
        number, ids, by = event["batch"], event["ids"], event.get("by")
        if number != len(self.batches) + 1:
            raise ValueError(f"batch {number} follows batch {len(self.batches)}")
        again = event.get("second", ())
        for id in ids:
            waits = self._waits.get(id, ())
            if by in waits or (waits and id not in again):
                raise ValueError(f"the item {id!r} waits for an answer already")
        self.batches[number] = tuple(ids), by
        for id in ids:
            self.queried.setdefault(id, Counter())[by] += 1
            if id not in again:
                self._batch_of[id] = number
        self.audited |= dict.fromkeys(event.get("audit", ()), bool(self.random_only))
        self._add(event)
        self._use_model(event)

    def _use_model(self, event):
        self.model_seq, self.adapted = event["model"], event.get("adapted")

    def _add(self, event):
        """Apply an event to its items."""
        for position, id in enumerate(event["ids"]):
            self._events.setdefault(id, []).append((event, position))
            self._refresh(id)

    def _refresh(self, id):
        """Work out an item from its events."""
        lasts, firsts, repeats, skips, waits = {}, {}, {}, {}, {}  # by annotator
        decision, between = None, ()
        for event, position in self._events[id]:
            kind, by = event["event"], event.get("by")
            if event.get("way") == SETTLED:
                decision = self._read(event, position)
                between = [one.label for one in lasts.values()]
                continue
            if kind == "withdraw":
                for told in (lasts, firsts, repeats, skips):
                    told.pop(by, None)
                continue
            if kind == "ask":
                others = waits if id in event.get("second", ()) else {}
                waits = {**others, by: event["batch"]}
                continue
            if by in waits and "taught" not in event:
                del waits[by]
            else:  # somebody else's answer, or a label of the learner, will do
                waits.clear()
            if kind == "tell" and event.get("way") == "repeat" and by in lasts:
                repeats[by] = self._read(event, position)
            elif kind == "tell":
                if not lasts:
                    self._first[id] = event["seq"], position
                lasts.pop(by, None)
                lasts[by] = self._read(event, position)
                firsts.setdefault(by, lasts[by])
                skips.clear()
            elif kind == "skip" and not lasts:
                skips[by] = event["seq"], position
        skipped = max(skips.values(), default=None)
        answer = None
        if lasts:
            others = firsts.values(), repeats.values()
            answer = settle([*lasts.values()], self.settle, *others)
            answer = decide(answer, decision, between)
        _put(self.answers, id, answer)
        if skipped != self.skipped.get(id):  # the last one is at the end
            self.skipped.pop(id, None)
            _put(self.skipped, id, skipped)
        before, now = set(self._waits.get(id, {}).values()), set(waits.values())
        for number in before - now:
            del self.open[number][id]
            if not self.open[number]:
                del self.open[number]
        for number in now - before:
            self.open.setdefault(number, {})[id] = None
        _put(self._waits, id, waits or None)

    def _read(self, event, place):
        """Return the answer to one item of an event, with the present names."""
        seconds, shown = event.get("seconds"), event.get("shown")
        return Answer(
            self.name_since(event["labels"][place], event["seq"]),
            event.get("by"),
            event["t"],
            event["seq"],
            seconds and seconds[place],
            event.get("source"),
            event.get("way"),
            shown and shown[place],
        )

    def _undo(self, event):
        last = next((e for e in self.undoable if e["seq"] == event["of"]), {})
        by = last.get("by")
        if last.get("event") != event["what"] or last is not self.last_undoable(by):
            raise ValueError(f"there is no event {event['of']!r} to take back")
        self.undoable.remove(last)
        if last["event"] in ("rename", "describe"):
            self.classes = event.get("classes", self.classes)
            if last["event"] == "rename":
                self._renames.remove(last)
                self._refresh_labels(event)
            if self.codebook.drop(last):
                self._note_labels(event)
            return
        if last["event"] in ("add", "remove"):
            self.classes = event.get("classes")
            if last["event"] == "remove":
                self.added += [last["removed"]] * (self.classes is None)
            elif last["added"] in self.added:
                self.added.remove(last["added"])
            # A class that was added stays if it has labels, and so do its words.
            if last.get("added") not in (self.classes or ()) and self.codebook.drop(
                last
            ):
                self._note_labels(event)
            return
        self.codebook.drop(last)
        for id in last["ids"]:
            events = self._events[id]
            self._events[id] = [entry for entry in events if entry[0] is not last]
            self._refresh(id)
        self._sort(last["ids"])
        if last["event"] in ("tell", "withdraw"):
            self._note_labels(event)

    def _refresh_labels(self, event):
        for id in self.answers:
            self._refresh(id)
        self._note_labels(event)

    def _sort(self, ids):
        """Restore the orders of answers, skipped items and open batches."""
        if any(id in self.answers for id in ids):
            order = sorted(self.answers, key=self._first.get)
            self.answers = {id: self.answers[id] for id in order}
        self.skipped = dict(sorted(self.skipped.items(), key=lambda item: item[1]))
        for number in {n for id in ids for n in self._waits.get(id, {}).values()}:
            asked, _ = self.batches[number]
            waiting = self.open[number]
            self.open[number] = {id: None for id in asked if id in waiting}
        self.open = dict(sorted(self.open.items()))

    def _note_labels(self, event):
        self.labels_seq, self.labels_round = event["seq"], len(self.batches)


def _put(entries, id, entry):
    """Set the entry of an item; None removes it."""
    if entry is None:
        entries.pop(id, None)
    else:
        entries[id] = entry


_ANSWERS = ("tell", "skip", "withdraw")
_OF_CLASSES = ("rename", "add", "remove", "describe")
_UNDOABLE = ("tell", "skip", "release", "withdraw", *_OF_CLASSES)


def read_labels(folder: str | os.PathLike[str]) -> dict[str | int, Any]:
    """Read the labels of a session without opening it.

    Nothing is written or locked, so this works in a read-only folder, and while the
    session is open elsewhere. It needs neither the pool nor the learner.

    Parameters
    ----------
    folder : str or path-like
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
    check_path("folder", folder)
    _, _, state = read_session(os.path.expanduser(folder))
    return state.labels()


def read_session(folder):
    """Return manifest, events and state of the session in a folder."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise FileNotFoundError(
            f"'folder' must be the folder of a session, got {os.fspath(folder)!r}, "
            f"which has no {MANIFEST!r}."
        )
    events, _ = read_events(folder)  # a torn last line was never acknowledged
    state = State(classes=manifest.get("classes"))
    state.fold(events)
    return manifest, events, state
