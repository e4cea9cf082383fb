"""The rows of a labeled table: what people said, and what a model predicts."""

import hashlib
import re
from collections import Counter
from functools import partial

from .._storage._files import write_atomic
from .._storage._outputs import find_mode
from .._tables._card import dump_card
from .._tables._codebook import dump_classes, dump_markdown
from .._utils._labels import is_names, key_of, list_classes, name_now
from ._record import LABELED, write_output

COLUMNS = (
    *("label_source", "prediction", "probability", "annotator", "seconds"),
    *("flag", "note"),
)
MACHINE = ("machine_label", "machine_confidence")  # where a machine answered


class Rows:
    """Describe the rows of a labeled table as dicts of cells, and count their sources.

    `given` are the labels of the file, a dict by position. Items of which
    `is_asked(position)` is False have no prediction. Names in lists are sorted by their
    first occurrence in these labels, then by the classes of the session.
    """

    def __init__(self, session, given, is_asked):
        given = name_given(session, given)
        self._is_asked, self.labels = is_asked, {}
        names = [*list_classes(given.values()), *session.known_classes]
        self._places = {name: i for i, name in enumerate(dict.fromkeys(names))}
        self._said, self._given = _collect(session), given
        self._state = session._core.state
        self._sources, self._classes = Counter(), Counter()

    def describe(self, position, predicted, score):
        """Return the cells of the item at a position; a skipped one has no label."""
        if not self._is_asked(position):
            predicted = score = None
        said = self._said.get(position, {})
        predicted = self._sort(predicted)
        cells = {"prediction": predicted, "probability": score, "flag": False, **said}
        if self._state.machines:
            found = self._state.find_machine(self._state.pool.ids[position])
            cells |= zip(MACHINE, found, strict=True)
        if "label" in said:
            cells["label"] = self._sort(said["label"])
        elif position in self._given:
            cells |= {"label_source": "given", "label": self._given[position]}
        elif "label_source" not in said and predicted is not None:
            cells |= {"label_source": "model", "label": predicted}
        source, label = cells.get("label_source"), cells.get("label")
        self.labels[position] = label
        self._sources[source] += 1
        for name in list_classes([] if label is None else [label]):
            self._classes[source, key_of(name)] += 1
        return cells

    def count_classes(self, names):
        """Return the numbers of texts of each class by source, list of dict."""
        return [
            {"name": name}
            | {x: self._classes[x, key_of(name)] for x in ("given", "person", "model")}
            for name in names
        ]

    def count(self):
        """Return the numbers of rows by the source of their label."""
        names = ["given", "person", "model"]
        if self._sources["skipped"]:
            names.append("skipped")
        return {name: self._sources[name] for name in names}

    def _sort(self, label):
        # A model can know a class by its former name.
        places, last = self._places, len(self._places)
        if not is_names(label):
            return label
        return sorted(label, key=lambda name: places.get(name, last))


def name_given(session, given):
    """Return labels of a file, by position, with the present names of their classes."""
    return {i: name_now(x, session._core.state.renamed) for i, x in given.items()}


def _collect(session):
    """Return what people said about items, dict of position to cells.

    Copies of a text have the same cells, unless something was said about them.
    """
    core, own, copies = session._core, {}, {}
    state, pool = core.state, core.state.pool
    for id in {**state.answers, **state.skipped, **state.flags, **state.notes}:
        cells = {"flag": id in state.flags, "note": core.join_notes(id)}
        if (answer := state.answers.get(id)) is not None:
            cells |= {"label_source": "person", "label": answer.label}
            who = "settled by " * (answer.way == "settled") + (answer.annotator or "")
            cells |= {"annotator": who or None, "time": answer.time}
            cells["seconds"] = answer.seconds
        elif id in state.skipped:
            cells["label_source"] = "skipped"
        own[id] = cells
        copies |= dict.fromkeys(pool.copies_of(id), cells)
    said = copies | own
    return dict(zip(pool.positions(said).tolist(), said.values(), strict=True))


def write_codebook(project):
    """Write the codebook of a project; return the path of the page."""
    codebook = project.session.codebook
    _write_beside(project, ".codebook.json", dump_classes(codebook))
    page = dump_markdown(codebook, f"Codebook of {project.file_.name}")
    return _write_beside(project, ".codebook.md", page)


def write_card(project):
    """Write the card of a project; return its path."""
    page = dump_card(f"Labels of {project.file_.name}", project.describe())
    return _write_beside(project, ".card.md", page)


def _write_beside(project, ending, text):
    """Write a text next to the table of a project; return the path."""
    stem = project.output.name.removesuffix(f".labeled{project.output.suffix}")
    name = re.sub(r"[^\w.+-]+", "_", f".{project.name}" if project.name else "")
    path = project.output.with_name(f"{stem}{name}{ending}")
    mode = find_mode(project.file_)
    write = partial(write_atomic, data=text.encode("utf-8", "replace"))
    message = write_output(project.folder_, LABELED, path, write, mode)
    project.messages.extend([] if message is None else [message])
    return path


def make_stamp(states, session, options):
    """Return a hash of the states of files, what was answered, and options."""
    said = session.answers, session.notes, session.flags, session.skipped
    classes = session.known_classes, session.codebook
    parts = states, said, session.machine_answers, classes, options
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()
