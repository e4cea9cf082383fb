"""Several questions of each text: a desk for each, whose texts are the same."""

import threading
import zlib
from functools import partial

from .._utils._labels import key_of, list_classes
from ._arguments import checked
from ._desk import MOST_TOP, Desk
from ._journal import describe_event
from ._leases import Leases


def _find_asked(state, label):
    """Return whether the items with an answer have a label, dict of id.

    Skipped ones have not.
    """
    wanted = key_of(state.name_since(label, 0))
    return dict.fromkeys([*state.skipped], False) | {
        id: wanted in map(key_of, list_classes([answer.label]))
        for id, answer in state.answers.copy().items()
    }


class Screens:
    """What the desks of several questions share: who gets which text, and whose turn.

    A text that one question asks for is asked in all, by the journal of each. So it has
    the same annotator everywhere, and it belongs to the audit of all or of none.

    `desks` is a dict by the names of the questions. `lock` is acquired before the lock
    of a session, and never while one is held.
    """

    def __init__(self):
        self.desks = {}
        self.lock, self._asking = threading.RLock(), threading.Lock()
        self.leases = Leases(self, self, self.lock)
        self._places, self._turn, self._shared, self._states = {}, 0, set(), []

    def open_desk(self, name, *args, only_if=None, **options):
        """Return the desk of a question, from the arguments of `Desk`.

        `only_if` is None, or the question and the label that it depends on.
        """
        desk = self.desks[name] = QuestionDesk(self, name, *args, **options)
        desk.only_if = only_if
        if only_if is not None:
            other = self.desks[only_if[0]]._state
            desk._core.queue.find_asked = partial(_find_asked, other, only_if[1])
        desk._core.queue.states = self._states
        self._states.append(desk._state)
        return desk

    def waiting_for(self, annotator):
        """Return the ids that wait in any question, in the order of their choice.

        Those that are not yet asked for in all of them are left out.
        """
        shared = [id for id in self._find_waiting(annotator) if id in self._places]
        return sorted(shared, key=self._places.get)

    def _find_waiting(self, annotator):
        waiting = {}
        for desk in self.desks.values():
            with desk._lock:
                ids = desk._state.waiting_for(annotator)
            waiting |= dict.fromkeys(id for id in ids if desk.asks(id))
        return list(waiting)

    @property
    def random_only(self):
        """Whether a question draws all texts at random."""
        return any(desk._core.queue.random_only for desk in self.desks.values())

    @property
    def audited(self):
        """The ids that the audit of any question has drawn."""
        return {id for x in self.desks.values() for id in list(x._state.audited)}

    def take(self, client, annotator, n):
        """Return ids for a front end, and the number that wait; see `Leases`."""
        if annotator not in self._shared:  # a kill may have come in between
            with self._asking:
                self._share(annotator)
            self._shared.add(annotator)
        return self.leases.take(client, annotator, n)

    def ask(self, annotator):
        """Have the next question choose texts; return whether there were any."""
        desks, only = [*self.desks.values()], self.random_only
        with self._asking:
            for _ in desks:
                desk = desks[self._turn % len(desks)]
                self._turn += 1
                is_right = desk._core.queue.random_only or not only
                if is_right and desk._ask(annotator):
                    self._share(annotator)
                    return True
        return False

    def _share(self, annotator):
        """Record in each session what waits in another one."""
        ids, audited = self._find_waiting(annotator), self.audited
        for desk in self.desks.values():
            desk._core.queue.share(ids, audited, annotator)
        for id in ids:
            self._places.setdefault(id, len(self._places))

    def settle(self, ids, client, annotator):
        """Release texts of which no question waits any more.

        First those are asked for which now have the answer that a question depends on.
        """
        for desk in self.desks.values():
            if desk.only_if is not None:
                desk._core.queue.share(ids, self.audited, annotator)
                for id in ids:
                    self._places.setdefault(id, -1)
        with self.lock:
            self.leases.hear(client)
            for id in {*ids}.difference(self.waiting_for(annotator)):
                self.leases.give(annotator, id, None)

    def give_back(self, id, client, annotator):
        """Lease a text that waits again to a front end."""
        self._places.setdefault(id, -1)
        self.leases.give(annotator, id, client)

    def last_undoable(self, annotator):
        """Return the desk and the last event that `undo` would undo, or None."""
        last = None, None
        for desk in self.desks.values():
            with desk._lock:
                event = desk._state.last_undoable(annotator)
            if event and (last[1] is None or event["t"] >= last[1]["t"]):
                last = desk, event
        return last


class QuestionDesk(Desk):
    """The desk of one of several questions; front ends show a text with all of them.

    `screens` is shared by the desks. `next` and `undo` return items with the entry
    "questions": by name, the item of each question, with "open", whether it waits for
    an answer. The entries "questions", "undo", "done" and "version" of the state are
    those of all questions.
    """

    def __init__(self, screens, name, *args, **options):
        super().__init__(*args, **options)
        self.name, self._screens, self.only_if = name, screens, None

    def asks(self, id):
        """Whether people answer the question about an item."""
        find = self._core.queue.find_asked
        return find is None or find().get(id, False)

    @property
    def desks(self):
        """The desks of all questions, dict by name."""
        return self._screens.desks

    @checked
    def state(self, annotator=None):
        """Return what is shown with an item; see `Desk.state`."""
        desks, who = self.desks.values(), self._who(annotator)
        desk, last = self._screens.last_undoable(who)
        return super().state(annotator) | {
            "question": self.name,
            "questions": [
                {
                    "name": x.name,
                    "n_labeled": len(x.session.labels),
                    "goal": x.n_labels,
                    "only_if": x.only_if,
                }
                for x in desks
            ],
            "undo": last and describe_event(last) | {"question": desk.name},
            "done": not any(x._core.queue.has_more(who) for x in desks),
        }

    def version(self):
        """Return a number that changes whenever the state of a question does."""
        versions = [Desk.version(desk) for desk in self.desks.values()]
        return zlib.crc32(repr(versions).encode())

    @checked
    def next(self, client, annotator=None, n_queries=2):
        """Return the next texts of a front end; the questions choose them in turn."""
        who, first = self._who(annotator), next(iter(self.desks.values()))
        take, ask = self._screens.take, self._screens.ask
        return self._show(first._take(take, ask, client, who, n_queries), who)

    def _show(self, ids, annotator):
        """Return texts with the item of each question."""
        texts = {id: {"id": id, "questions": {}} for id in ids}
        for name, desk in self.desks.items():
            for item in desk._items(ids, annotator, n_top=MOST_TOP):
                is_open = desk._state.waits_for(item["id"], annotator)
                is_open = is_open and desk.asks(item["id"])
                texts[item["id"]]["questions"][name] = item | {"open": is_open}
        return [*texts.values()]

    def _after(self, ids, client, annotator):
        self._screens.settle(ids, client, self._who(annotator))
        return self.state(annotator)

    @checked
    def skip(self, id, client, annotator=None):
        """Set a text aside for all questions that wait for it."""
        who = self._who(annotator)
        asked = [x for x in self.desks.values() if x._state.waits_for(id, who)]
        for desk in asked or [self]:
            Desk.skip(desk, id, client, annotator)
        return self.state(annotator)

    @checked
    def undo(self, seq, client, annotator=None):
        """Undo the last step of an annotator, if it is of this question.

        A text that was skipped comes back for all questions.
        """
        who = self._who(annotator)
        with self._screens.lock:
            desk, last = self._screens.last_undoable(who)
            item = super().undo(seq if desk is self else -1, client, annotator)
            if item is None:
                return None
            for other in self.desks.values():
                event = other._state.last_undoable(who)
                is_same = event and event.get("ids") == last["ids"]
                if is_same and event["event"] == last["event"] == "skip":
                    other.session.undo(annotator=who)
            self._screens.give_back(item["id"], client, who)
        return self._show([item["id"]], who)[0] | {"question": self.name}

    @checked
    def draw(self, random_only, annotator=None):
        """Choose how the texts of all questions are drawn from now on."""
        for desk in self.desks.values():
            Desk.draw(desk, random_only, annotator)
        return self.state(annotator)

    @checked
    def release(self, client):
        """Return the texts of a closed front end to the others."""
        with self._screens.lock:
            self._screens.leases.release(client)
