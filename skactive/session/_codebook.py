"""The codebook of a session: what describes its classes, for people and the model."""

from collections import Counter
from collections.abc import Mapping

from .._utils._labels import key_of, list_classes, predict_labels
from ._commands import assign_keys

_KINDS = ("codebook", "describe", "add", "rename", "remove")


class Codebook:
    """What describes each class, by the events that were not undone.

    `first` describes the classes of a new session, dict or None; `given` is what the
    last openings described. An entry is a dict: "description", a str; "examples", texts
    that describe the class; and "taken", examples of the pool. The model does not learn
    from these: it has their labels, which could not be held out.
    """

    def __init__(self, first=None):
        self._first = {name: read_entry(entry) for name, entry in (first or {}).items()}
        self.given, self._events = dict(self._first), []

    def keep(self, event):
        """Apply an event; return whether the model has to learn from it."""
        if event["event"] in _KINDS or "example" in event:
            self._events.append(event)
        self.given |= {was: entry for was, _, entry in event.get("given", ())}
        return "entry" in event or "given" in event

    def drop(self, event):
        """Undo an event; return whether the model has to learn from it."""
        self._events = [other for other in self._events if other is not event]
        return "entry" in event

    @property
    def entries(self):
        """The entries by the present names of the classes."""
        entries = dict(self._first)
        for event in self._events:
            name = event.get("name", event.get("added", event.get("old")))
            if "entry" in event:
                entries[name] = event["entry"]
            if event["event"] == "rename":
                _join(entries, event["new"], entries.pop(name, EMPTY))
            elif event["event"] == "remove":
                entries.pop(event["removed"], None)
            elif "example" in event:
                for name in list_classes(event["labels"]):
                    _join(entries, name, EMPTY | {"taken": [event["example"]]})
            entries |= {now: entry for _, now, entry in event.get("given", ())}
        return entries


EMPTY: dict = {"description": "", "examples": [], "taken": []}


def read_entry(entry):
    """Return what describes a class, a str, a sequence or a dict, as an entry."""
    if not isinstance(entry, Mapping):
        text, *examples = [entry] if isinstance(entry, str) else entry or [""]
        entry = {"description": text, "examples": examples}
    lists = {x: list(map(str, entry.get(x) or ())) for x in ("examples", "taken")}
    return {"description": str(entry.get("description") or ""), **lists}


def list_texts(entry):
    """Return what the model reads of an entry."""
    return [text for text in (entry["description"], *entry["examples"]) if text]


def _join(entries, name, other):
    """Add to the entry of a class that of another one."""
    own = entries.get(name, EMPTY)
    words = filter(None, dict.fromkeys([own["description"], other["description"]]))
    joined = {x: list(dict.fromkeys(own[x] + other[x])) for x in ("examples", "taken")}
    entries[name] = {"description": "\n".join(words), **joined}


def describe_classes(core, labels, given, shares):
    """Return the classes with keys, counts and entries, as `Desk.state` shows them.

    `labels` are those of the session, and `given` those from before; `shares` are those
    of all texts by class.
    """
    names, state = core.known_classes(), core.state
    before = [state.renamed.get(name, name) for name in given]
    counts = Counter(map(key_of, [*list_classes(labels), *before]))
    entries = state.codebook.entries
    return [
        {
            "name": name,
            "key": key,
            "count": counts[key_of(name)],
            "share": shares.get(key_of(name)),
            **entries.get(name, EMPTY),
        }
        for name, key in zip(names, assign_keys(names), strict=True)
    ]


def record_given(core, descriptions):
    """Record what describes the classes when a desk is opened, where that is new."""
    before, now = core.state.codebook.given, core.state.renamed
    now |= {str(name): name for name in core.known_classes()}
    pairs = [(name, read_entry(entry)) for name, entry in descriptions.items()]
    new = [(x, now.get(x, x), y) for x, y in pairs if before.get(x, EMPTY) != y]
    if new:
        with core.recording():
            core.journal.record("codebook", given=new)


def predict_shown(core, texts, n_top):
    """Return what `predict_labels` does, with the present names of the classes.

    Classes that were merged since the model was trained are added up.
    """
    state, model = core.state, core.models.newest()
    learner, names = model.learner, model.classes
    if core.target != "regression":
        seen = getattr(learner, "classes_", None) if names is None else names
        if len(core.known_classes()) < 2 or (seen is not None and len(seen) < 2):
            learner = None  # a prediction would choose among one class
    labels, scores, best = predict_labels(learner, texts, names, core.target, n_top)
    labels = [state.name_since(label, model.seq) for label in labels]
    for row, pairs in enumerate(best):
        shares = Counter()
        for name, p in pairs:
            shares[state.name_since(name, model.seq)] += p or 0
        best[row] = [[name, p] for name, p in shares.items()]
        if scores[row] and labels[row] in [*shares]:  # one class
            scores[row] = shares[labels[row]]
    return labels, scores, best
