"""A table that people label: its session, and the table that comes out."""

import json
import os
from collections import Counter
from functools import cached_property
from pathlib import Path

from .._storage._files import Lock, write_atomic
from .._storage._outputs import find_mode
from .._tables._labels import to_indicator
from .._tables._reader import find_files
from .._tables._writer import find_unwritable
from .._utils._containers import take_rows
from .._utils._format import brief
from .._utils._labels import list_classes, predict_labels
from ..annotators import ColumnAnnotator
from ..persistence import disarm, save
from ..session import Desk, LabelingSession, PoolChangedError, as_class, read_manifest
from ._record import (
    CHOSEN,
    DESCRIPTIONS,
    LABELED,
    check_record,
    find_folder,
    make_folder,
    plain_folder,
    read_record,
    show,
    write_output,
    write_record,
)
from ._result import Rows, flatten, make_stamp, name_given
from ._table import ROWS, LargeTable, Table

_BATCH = 5  # items chosen at a time: few, so that they are of the newest model
AUDIT_EVERY = 10  # of so many items, one is drawn at random to measure the accuracy
_MAX_SIMILARITY = 0.95
_PART = 1024  # texts that are predicted at a time


class Project:
    """A table with a column of texts and a column of labels, some of them blank.

    Rows with a label are training data, and all rows with a text are the pool. The file
    is never changed. `folder` holds the session, the features and the model. For
    several classes per text, `label` names a column for each class, or `separator`
    separates their names in a cell. `show` names columns to show with each text. A
    `large` table is a file or a folder of files
    whose texts stay there; `id` is its column of ids.

    Attributes
    ----------
    table : Table
    texts : sequence of n texts
    target : str
        "single-label", "multi-label" or "regression".
    session, desk : LabelingSession, Desk
        Open between `open` and `close`.
    given : dict of int to label
        Labels of the file, by the position of the text.
    messages : list of str
        What a person should know about the file.
    counts : list of dict
        After `write`, the numbers of texts of each class by the source of their label.
    """

    counts: tuple | list = ()

    def __init__(
        self,
        file,
        text,
        label,
        *,
        folder=None,
        suggest=None,
        separator=None,
        regression=False,
        id=None,
        large=False,
        show=(),
    ):
        self.path, self.label = Path(file).expanduser(), label
        texts = [text] if isinstance(text, str) else list(text)
        options = {"separator": separator, "regression": regression, "show": show}
        # As they are read: rows that come later belong to the next time.
        files = find_files(self.path)[0] if self.path.is_dir() else [self.path]
        files = [file.stat() for file in files if file.exists()]
        self._states = [(file.st_size, file.st_mtime_ns) for file in files]
        if large:
            self.table = LargeTable(self.path, texts, label, id=id, **options)
        else:
            self.table = Table(self.path, texts, label, **options)
        self.target, self.messages = self.table.target, self.table.messages
        self._suffix = self.table.suffix
        self._folder, self.report = folder, lambda share: None
        self._about = {
            "file": self.path.name,
            "text": texts,
            "label": self.table.labels,
            "id": id,
            "separator": separator,
            "target": self.target,
        }
        # All columns of labels share the texts that `skactive encode` read.
        shared = folder is None or not large
        self.table.make_pool(plain_folder(self.path) if shared else self.folder)
        self.texts = self.table.texts
        self.given = self.table.read_given()
        self._suggest = suggest
        self._suggested = self.table.read_suggested(suggest) if suggest else {}

    @cached_property
    def folder(self):
        """The absolute folder, which is new or of a project of these columns."""
        return find_folder(self.path, self._about, self._folder)

    def find_classes(self):
        """Return the classes of the file, list; the most frequent first."""
        if self.target == "regression":
            return []
        cells = self.table.cells
        if cells is not None and cells.several:
            return list(cells.columns)
        counts = Counter(list_classes(self.given.values()))
        return [label for label, _ in counts.most_common()]

    def open(
        self,
        learner,
        *,
        classes=None,
        n_labels=None,
        until=None,
        annotator=None,
        about=None,
    ):
        """Open the session and the desk; `learner` is an ActiveLearner without labels.

        `classes` are the classes to choose from; by default those of the file. A
        session that exists keeps its classes, and those that are new are added.
        """
        if classes is not None and self.target == "regression":
            raise ValueError(
                f"'classes' must be None for numbers, got {brief(classes)}."
            )
        known = self.find_classes()
        classes = self._as_given(classes, known)
        for kind, names in (("class", classes), ("annotator", [annotator])):
            for name in names or ():
                self.check_words(kind, name)
        wanted, about = classes, about or read_record(self.folder).get(DESCRIPTIONS)
        resumed = read_manifest(str(self.folder / "session")) is not None
        new = [x for x in known if x not in (classes or known)]
        if new and not resumed:
            raise ValueError(
                f"'classes' must hold every label of column {self.label!r}, which has "
                f"{new[0]!r}. Add it to the classes."
            )
        classes = self._classes_to_open(known if classes is None else classes)
        self._teach(learner, known, classes, resumed or wanted is not None)
        is_described = classes if wanted is not None else not known
        if is_described and self._can_be_described(classes or ()):
            # An empty dict: classes that are added describe themselves by their names.
            about = about or {}
            classes = {name: _list_texts(about.get(name)) for name in classes or ()}
        self._open_session(learner, annotator, None if resumed else classes)
        if resumed and wanted is not None:
            self._add_classes(wanted)
        if self._suggested:
            labels = map(self._suggested.get, range(len(self.texts)))
            self.session.annotate(
                ColumnAnnotator(self.texts, list(labels), name=self._suggest)
            )
        if about:
            write_record(self.folder, {DESCRIPTIONS: about})
        self.desk = Desk(
            self.session,
            n_labels=n_labels,
            until=until,
            descriptions=about,
            source=self.path.name,
            check_words=self.check_words,
            given=self.given.values(),
            columns=self.find_columns,
        )
        self._compare_classes()
        return self

    def remember(self, **chosen):
        """Record what was chosen on the page, for the next time."""
        write_record(self.folder, {CHOSEN: chosen})

    def find_columns(self, id):
        """Return the columns to show with an item, dict of name to str."""
        (position,) = self.session.state.pool.positions([id]).tolist()
        return self.table.describe(position)

    def make_folder(self):
        """Make the folder, so that the address of the page can be kept there."""
        make_folder(self.folder, self.path)

    def _can_be_described(self, classes):
        """Whether the model of a session learns from the names of classes as well."""
        is_name = all(isinstance(name, str) for name in classes)
        return is_name and self.target == "single-label" and not self.table.is_large

    def check_words(self, kind, text):
        """Raise a ValueError for a "class", "annotator" or "note" that cannot be held.

        Other values than texts are right.
        """
        if not isinstance(text, str):
            return
        suffix = self._suffix.lower()
        if kind == "note" and suffix == ".tsv":
            text = flatten(text)
        if (odd := find_unwritable(text, suffix)) is not None:
            raise ValueError(
                f"the {kind} {text!r:.100} must not hold {odd!r}, which a {suffix} "
                "file cannot hold. Nothing was recorded."
            )
        if kind == "class" and self.table.cells is not None:
            self.table.cells.join([text])

    def _compare_classes(self):
        """Add a message about classes that differ in upper and lower case only."""
        looks = {}
        for name in map(str, self.session.known_classes):
            looks.setdefault(name.casefold(), []).append(name)
        for names in looks.values():
            if len(names) > 1:
                shown = " and ".join(map(repr, names))
                self.messages.append(
                    f"the classes {shown} differ only in upper and lower case"
                )

    def _open_session(self, learner, annotator, classes):
        """Open the session, once the folder is known to be of this project."""
        self.make_folder()
        lock = Lock(self.folder / "lock", f"the project in {show(self.folder)!r}")
        try:
            check_record(self.folder, self._about)
            write_record(self.folder, self._about)
            several = {"multi_label": True} if self.target == "multi-label" else {}
            self.session = LabelingSession(
                learner.set_params(batch_size=_BATCH),
                self.texts,
                self.folder / "session",
                refit="background",
                encode=self.table.encode,
                audit_every=AUDIT_EVERY,
                max_similarity=_MAX_SIMILARITY,
                annotator=annotator,
                classes=classes,
                **several,
            )
        except PoolChangedError as exc:
            raise ValueError(
                f"{str(self.path)!r} must hold the labeled texts of "
                f"{show(self.folder)} as they were: {exc.fault}. Restore these texts, "
                "or use --folder NEW."
            ) from exc
        finally:
            lock.release()
        if self.folder != plain_folder(self.path):
            self.messages.append(
                f"the answers are in {show(self.folder)}; the labeled table will be "
                f"{self.output}"
            )

    def _add_classes(self, wanted):
        """Add the classes that the session does not have; say what was done."""
        session = self.session
        known, renamed = session.known_classes, session.state.renamed
        names = [renamed.get(name, name) for name in self._as_given(wanted, known)]
        for name in dict.fromkeys(names):
            if name not in known:
                session.add_class(name)
                self.messages.append(f"added the class {name}")
        if kept := [str(name) for name in known if name not in names]:
            self.messages.append(
                f"the session keeps the classes that were not named: {', '.join(kept)}"
            )

    def _teach(self, learner, known, classes, is_named):
        """Pass the labels of the file to a learner."""
        labels = list(self.given.values())
        is_open = self.target == "single-label" and not is_named
        if is_open and len(known) > max(100, len(labels) / 2):
            raise ValueError(
                f"column {self.label!r} of {str(self.path)!r} must hold classes, got "
                f"{len(known)} different values in {len(labels)} rows. Name another "
                "column, or all classes with --classes."
            )
        if not labels:
            return
        if self.target == "multi-label":
            if classes is None:
                raise ValueError(
                    f"column {self.label!r} of {str(self.path)!r} must hold at least "
                    f"two classes, got {known}. Name all with --classes."
                )
            if new := [name for name in known if name not in classes]:
                raise ValueError(
                    f"column {self.label!r} of {str(self.path)!r} must hold classes of "
                    f"the session, {', '.join(map(repr, classes))}; got {new[0]!r}. "
                    "Use --folder with another folder."
                )
            labels, _ = to_indicator(labels, classes)
        learner.teach(self.table.take(self.given), labels, refit=False)

    def _as_given(self, classes, known):
        """Return classes of the command line in the type of the labels of the file."""
        if classes is None or not known or isinstance(known[0], str):
            return classes
        found = [as_class(name, known) for name in classes]
        if any(isinstance(label, str) for label in found):
            raise ValueError(
                f"'classes' must be of the kind of the labels of the file, such as "
                f"{known[0]!r}; got {brief(classes)}."
            )
        return found

    def _classes_to_open(self, classes):
        """Return a closed list of at least two classes, or None.

        A session that has one keeps it, with the classes that people added.
        """
        if kept := read_manifest(str(self.folder / "session")):
            classes = kept.get("classes") or classes
        return list(classes) if len(classes) >= 2 else None

    def close(self):
        """Close the desk and the session."""
        self.desk.close()
        self.session.close()

    @property
    def output(self):
        """The file of the labeled table, next to the input."""
        name, stem = self.folder.name.removesuffix(".skactive"), self.path.stem
        places = [self.folder.parent, plain_folder(self.path).parent]
        is_ours = len(set(map(os.path.realpath, places))) == 1
        is_ours &= self.folder.name.startswith(f"{stem}.")
        is_ours &= self.folder.name.endswith(".skactive")
        name = name if is_ours else f"{stem}.{name}"
        return self.path.with_name(f"{name}.labeled{self._suffix}")

    def _write_output(self, write):
        """Write the labeled table by `write(path)`, as JSONL if it cannot be held."""
        mode = find_mode(self.path)
        try:
            message = write_output(self.folder, LABELED, self.output, write, mode)
        except ValueError as exc:
            if self.table.fallback in (None, self._suffix):
                raise
            before, self._suffix = self.output, self.table.fallback
            self.messages.append(f"{before} is not written: {exc}")
            message = write_output(self.folder, LABELED, self.output, write, mode)
        self.messages += [] if message is None else [message]

    def write(self, model=None, classes=None):
        """Write the whole table with labels and, given a model, predictions.

        `classes` names the columns of a model of several classes. Return the numbers of
        labels by their source.
        """
        rows = Rows(self.session, self.given)
        known = self.session.known_classes
        batches = self._describe(rows, model, classes)
        if not self.table.is_large:  # a second format gets the same rows
            batches = list(batches)
        self._write_output(lambda path: self.table.write(path, batches, known))
        self.counts = rows.count_classes(known)
        return rows.count()

    def _describe(self, rows, model, classes):
        """Yield the cells of the texts, a list of dicts for each part of the pool."""
        size = ROWS if self.table.is_large else _PART
        for start in range(0, len(self.texts), size):
            self.report(start / len(self.texts))
            part = self.texts[start : start + size]
            predicted, scores, _ = predict_labels(model, part, classes, self.target)
            yield [
                rows.describe(i, *cells)
                for i, cells in enumerate(zip(predicted, scores, strict=True), start)
            ]

    def labeled(self):
        """Return texts and labels to train on, and the texts without a label."""
        answers = self.session.labels
        positions = self.session.state.pool.positions(list(answers))
        answers = zip(map(int, positions), answers.values(), strict=True)
        labels, rest = {**name_given(self.session, self.given), **dict(answers)}, []
        if not self.table.is_large:  # no training reads all texts of a large one
            unlabeled = [i for i in range(len(self.texts)) if i not in labels]
            rest = take_rows(self.texts, unlabeled)
        return self.table.take(labels), list(labels.values()), rest

    def reason(self):
        """Return whether the newest model uses the descriptions and why, or None."""
        estimator = getattr(self.session.models.newest().learner, "estimator_", None)
        return getattr(estimator, "reason_", None)

    def stamp(self, options):
        """Return a hash of the table, what people said, and options of the model."""
        return make_stamp(self._states, self.session, [self._about, options])

    def is_current(self, stamp):
        """Whether the table and the model were written for a stamp."""
        try:
            about = json.loads((self.folder / "model.json").read_bytes())
        except (OSError, ValueError):
            return False
        written = about.get("stamp") if isinstance(about, dict) else None
        is_there = self.output.exists() and (self.folder / "model").exists()
        return is_there and written == stamp

    def save_model(self, model, classes=None, stamp=None, facts=None):
        """Save a model with its encoder, and return its folder.

        `classes` names the columns of a model of several classes. `facts` are those of
        its model card.
        """
        about = {"text": self._about["text"], "label": self.label, "stamp": stamp}
        if self.target != "single-label":
            about |= {"target": self.target, "classes": classes}
            about["separator"] = self._about["separator"]
        return save_model(model, self.folder, about, facts)


def _list_texts(about):
    """Return the description and the examples of a class, list of str."""
    if isinstance(about, dict):
        examples = about.get("examples") or ()
        about = [about.get("description"), *examples]
    texts = [about] if isinstance(about, str) else about or ()
    return [text for text in texts if text]


def save_model(model, folder, about, facts=None):
    """Save a model with its encoder in `folder`, and what it predicts as a dict.

    `facts` are those of its model card.
    """
    disarm(model)  # texts that are predicted later have no place among the features
    try:
        options = {"overwrite": True, "bundle": True, "facts": facts}
        saved = save(model, folder / "model", **options)
        content = json.dumps(about).encode("utf-8", "surrogatepass")
        write_atomic(Path(folder, "model.json"), content)
    except OSError as exc:
        reason = exc.strerror or exc
        raise OSError(f"the model in {str(folder)!r} was not saved: {reason}") from exc
    return saved
