"""The first screen of the page: the classes, what is asked about a text, and a goal."""

import threading
import zlib

from .._utils._sklearn import check_count, check_option
from ..project import Questions
from ..session import Desk
from ._calls import METHODS

_KINDS = ["single-label", "multi-label", "regression"]
_N_SAMPLES = 3


class StartDesk:
    """Asks for the classes of a project, and is its Desk from then on.

    `project` is not open yet.
    """

    methods = (*METHODS, "begin")
    wait = Desk.wait

    def __init__(self, project):
        self.project, self._desk, self._lock = project, None, threading.Lock()
        self.coders = tuple(project.coders)

    @property
    def has_begun(self):
        """Whether the project is open."""
        return self._desk is not None

    def state(self, annotator=None):
        """Return the state of the desk, or what there is to choose."""
        if self.has_begun:
            return self._desk.state(annotator)
        project = self.project
        kinds = _KINDS if project.target == "single-label" else [project.target]
        samples = project.texts[:_N_SAMPLES]
        is_alone = project.is_large or project.suggest or project.separator
        return {
            "source": project.file_.name,
            "annotator": annotator,
            "coders": self.coders,
            "version": self.version(),
            "seq": -1,
            "target": project.target,
            "classes": [],
            "n_pool": len(project.texts),
            "start": {
                "kinds": kinds,
                "names": [str(name) for name in project.find_classes()],
                "texts": [x if isinstance(x, str) else " | ".join(x) for x in samples],
                "n_labels": project.n_labels,
                "name": None if is_alone else project.label,
            },
        }

    def begin(self, kind, classes, n_labels=None, annotator=None, name=None, more=()):
        """Open the project with what was chosen; return the state of its desk.

        `more` are further questions, dicts with "name", "kind" and "classes". The first
        one needs a `name` only if there are any.
        """
        asked = [{"name": name, "kind": kind, "classes": classes}, *more]
        for entry in asked:
            _check_question(**entry)
        names = [str(entry["name"]).strip() for entry in asked if more]
        is_odd = any(not name or ":" in name for name in names)
        if is_odd or len({name.casefold() for name in names}) < len(names):
            raise ValueError(
                "'name' must be another one for each question, without a colon, got "
                f"{names!r:.100}. It is the column of the answers."
            )
        if n_labels is not None:
            check_count("n_labels", n_labels)
        with self._lock:
            if not self.has_begun:
                if more:
                    begun = Questions.begin(self.project, asked, n_labels)
                else:
                    begun = self.project.begin(kind, classes, n_labels)
                self.project.begun, self._desk = begun, begun.desk
        return self._desk.state(annotator)

    def next(self, client, annotator=None, n_queries=2):
        """Return the next items of the desk; none before `begin`."""
        return self._desk.next(client, annotator, n_queries) if self.has_begun else []

    def version(self):
        """Return a number that changes whenever `state` does."""
        return self._desk.version() if self.has_begun else zlib.crc32(b"start")

    def __getattr__(self, name):
        desk = self.__dict__.get("_desk")
        if desk is None and name in METHODS:
            raise ValueError(f"{name!r} needs classes. Choose them on the page first.")
        return getattr(desk, name)


def _check_question(name, kind, classes):
    """Raise a ValueError unless a question has a kind and classes."""
    check_option("kind", kind, _KINDS)
    is_named = isinstance(classes, dict) and all(
        isinstance(about, str | dict) and word.strip()
        for word, about in classes.items()
    )
    if not is_named or (len(classes) < 2) != (kind == "regression"):
        suffix = "" if name is None else f" for {name!r:.100}"
        raise ValueError(
            "'classes' must be an object of at least two names to descriptions, "
            f"and empty for numbers, got {classes!r:.100}{suffix}."
        )
