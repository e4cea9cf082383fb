"""A desk that follows a script: what arrives while a person answers, and when."""

import time

from skactive.labeling._calls import METHODS
from skactive.session._commands import COMMANDS

LINES = (
    "good",
    "The flood in the valley reached the bridge, and the road is closed.",
    "The train was late again, and nobody at the station knew why. After an hour of "
    "waiting, a bus came, but it was full, so that most of the people had to walk.",
    "I have tried to activate the new card three times, and each time the page said "
    "that the service was not available. The telephone line plays music for twenty "
    "minutes and then ends the call. What else can I do? My old card expires tomorrow.",
)
LONG = "A long report about the water in the houses by the river. " * 60


class ScriptedDesk:
    """Deals the texts of a list; what `events` holds at a number of answers arrives.

    Parameters
    ----------
    names : list of str
        The classes.
    events : dict of int to dict
        Entries that the state has from that number of answers on.
    options : dict
        More entries of the first state; "columns" and "read" belong to each item.
    """

    methods = METHODS
    coders = ()

    def __init__(self, names, texts=LINES, events=(), target="single-label", **options):
        self.names, self.texts = list(names), list(texts)
        self.events, self.target = dict(events), target
        self.about = {name: options.pop(name, None) for name in ("columns", "read")}
        self.suggestion = options.pop("suggestion", None)
        self.more, self.answers, self.notes, self.flags = options, [], {}, set()
        self.changes, self.seq = 0, 0

    def set(self, **entries):
        """Change entries of the state at once."""
        self.more |= entries
        self.changes += 1

    @property
    def n_labels(self):
        return self.state()["model"]["n_labels"]

    def version(self):
        return 1000 * self.changes + self.seq

    def wait(self, version, timeout):
        end = time.monotonic() + timeout
        while self.version() == version and time.monotonic() < end:
            time.sleep(0.02)
        return self.version()

    def state(self, annotator=None):
        many = len(self.names) > 9
        said = [label for _, label in self.answers]
        state = {
            "source": "messages.csv",
            "annotator": annotator,
            "version": self.version(),
            "seq": self.seq,
            "target": self.target,
            "classes": [
                {
                    "name": name,
                    "key": "" if many else str(i + 1),
                    "count": said.count(name),
                    "description": f"what is about {name}",
                    "examples": [],
                    "taken": [],
                    "share": None,
                }
                for i, name in enumerate(self.names)
                if self.target != "regression"
            ],
            "closed": True,
            "n_labeled": len(self.answers),
            "n_labels": 200,
            "n_pool": 1500,
            "n_skipped": 0,
            "n_flagged": len(self.flags),
            "n_checked": None,
            "n_doubtful": 0,
            "n_disputed": 0,
            "coders": (),
            "model": {
                "n_labels": 0,
                "training": False,
                "adapted": 0,
                "encoded": 1,
                "error": None,
            },
            "suggestions": None,
            "random_only": None,
            "added": [],
            "older": None,
            "estimate": "",
            "recent": [self._describe(i) for i in range(len(self.answers))][:-11:-1],
            "undo": {"seq": self.seq, "event": "tell", "label": said[-1]}
            if said
            else None,
            "done": False,
        }
        for n, entries in sorted(self.events.items()):
            if n <= len(self.answers):
                state |= entries
        return state | {"commands": COMMANDS} | self.more

    def _describe(self, i):
        text, label = self.answers[i]
        return {"id": i, "label": label, "predicted": None, "text": text[:200]}

    def _item(self, i, label=None):
        state, names = self.state(), self.names
        knows = state["model"]["n_labels"] > 0 and i % 5 != 4
        top = [[name, 0.6 / (k + 1) ** 1.5] for k, name in enumerate(names)]
        top = [[names[(k + i) % len(names)], p] for k, (_, p) in enumerate(top)]
        number, single = self.target == "regression", self.target == "single-label"
        predicted = top[0][0] if single else 3.5 if number else [x for x, _ in top[:2]]
        return {
            "id": i,
            "text": self.texts[i % len(self.texts)],
            "prediction": predicted if knows else None,
            "probability": top[0][1] if knows and single else None,
            "top": top if knows and not number else [],
            "blind": i % 5 == 4,
            "held_out": False,
            "columns": self.about["columns"] or {},
            "read": self.about["read"],
            "suggestion": self.suggestion if i % 5 != 4 else None,
            **dict.fromkeys(("label", "annotator", "time", "way")),
            "label": label,
            "said": [],
            "flag": i in self.flags,
            "note": self.notes.get(i, ""),
        }

    def next(self, client, annotator=None, n_queries=2):
        return [self._item(len(self.answers) + k) for k in range(n_queries)]

    def item(self, id, held_out=False, annotator=None):
        known = self.answers[id][1] if id < len(self.answers) else None
        return self._item(id, known)

    def answer(self, id, label, client, annotator=None, seconds=None, way=None):
        text = self.texts[id % len(self.texts)]
        if id < len(self.answers):
            self.answers[id] = text, label
        else:
            self.answers.append((text, label))
        self.seq += 1
        return self.state()

    def undo(self, seq, client, annotator=None):
        self.answers.pop()
        self.seq += 1
        return self._item(len(self.answers))

    def note(self, id, text, annotator=None):
        self.notes[id] = text
        return self.item(id)

    def flag(self, id, on=True, annotator=None):
        (self.flags.add if on else self.flags.discard)(id)
        return self.item(id)

    def explain(self, id, annotator=None):
        item, words = self.item(id), []
        if item["prediction"] is None:
            raise ValueError("there is no prediction yet. Label some more texts.")
        item["top"] = [[name, p / 2] for name, p in item["top"]]
        return item | {"probability": 0.3, "words": words, "error": "", "items": []}

    def history(self, query="", start=0, n_items=50, where=None, annotator=None):
        items = [self.item(i) for i in range(len(self.answers))]
        return {"total": len(items), "items": items[start:][:n_items], "annotators": []}

    def check(self, n_items=20, annotator=None):
        return {"items": [], "total": 0, "n_labels": 20, "computing": False}

    def add_class(self, name, annotator=None):
        self.names.append(name)
        self.seq += 1
        return self.state()

    def edit_class(self, name, annotator=None, *, new):
        self.names = [new if old == name else old for old in self.names]
        self.seq += 1
        return self.state()

    def release(self, client):
        pass
