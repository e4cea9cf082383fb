"""The rows of a labeled table: what people said, and what a model predicts."""

import hashlib
import os
from collections import Counter

from ..session._labels import is_names, list_classes

COLUMNS = (
    *("label_source", "prediction", "probability", "annotator", "seconds"),
    *("flag", "note"),
)


class Rows:
    """Describe the rows of a labeled table as dicts of cells, and count their sources.

    `given` are the labels of the file; the names in lists get the order in which these
    name them.
    """

    def __init__(self, session, given):
        names = [*list_classes(given), *session.known_classes]
        self._places = {name: i for i, name in enumerate(dict.fromkeys(names))}
        self._said = _collect(session)
        self._sources = Counter()

    def describe(self, position, given, predicted, score):
        """Return the cells of the item at a position of the pool.

        `given` is the label of the file or None. A skipped item has no label.
        """
        said = self._said.get(position, {})
        predicted = self._sort(predicted)
        cells = {"prediction": predicted, "probability": score, "flag": False, **said}
        if "label" in said:
            cells["label"] = self._sort(said["label"])
        elif given is not None:
            cells |= {"label_source": "given", "label": given}
        elif "label_source" not in said and predicted is not None:
            cells |= {"label_source": "model", "label": predicted}
        self._sources[cells.get("label_source")] += 1
        return cells

    def count(self):
        """Return the numbers of rows by the source of their label."""
        names = ["given", "person", "model"]
        if self._sources["skipped"]:
            names.append("skipped")
        return {name: self._sources[name] for name in names}

    def _sort(self, label):
        return sorted(label, key=self._places.get) if is_names(label) else label


def _collect(session):
    """Return what people said about items, dict of position to cells.

    Copies of a text have the same cells, unless something was said about them.
    """
    labels, skipped, notes = session.labels, session.skipped, session.notes
    flags, is_skipped, own, copies = set(session.flags), set(skipped), {}, {}
    for id in dict.fromkeys([*labels, *skipped, *flags, *notes]):
        cells = {"flag": id in flags, "note": notes.get(id) or None}
        if id in labels:
            cells |= {"label_source": "person", **session.answer(id)}
        elif id in is_skipped:
            cells["label_source"] = "skipped"
        own[id] = cells
        copies |= dict.fromkeys(session.copies(id), cells)
    said = copies | own
    return dict(zip(session.positions(list(said)), said.values(), strict=True))


def make_stamp(files, session, options):
    """Return a hash of the states of files, what people said, and options."""
    states = [(x.st_size, x.st_mtime_ns) for x in map(os.stat, files)]
    said = session.answers, session.notes, session.flags, session.skipped
    parts = states, said, session.known_classes, options
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()
