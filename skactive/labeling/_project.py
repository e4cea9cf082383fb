"""A table that people label: its rows, its session, and the table that comes out."""

import json
from collections import Counter
from itertools import compress
from pathlib import Path

from .._utils._containers import take_rows
from ..datasets._reader import find_delimiter, read_cells
from ..datasets._writer import write_table
from ..persistence import save
from ..session import LabelingSession
from ..session._import_export import escape, predict_items
from ..session._labels import is_missing
from ._desk import Desk

_BATCH = 5  # items chosen at a time: few, so that they are of the newest model
_AUDIT_EVERY = 10  # of so many items, one is drawn at random to measure the accuracy
_MAX_SIMILARITY = 0.95
_COLUMNS = ("label_source", "prediction", "probability", "annotator", "seconds")


class Project:
    """A table with a column of texts and a column of labels, some of them blank.

    Rows with a label are training data, and all rows with a text are the pool. The file
    is never changed. `folder` holds the session, the features and the model.

    Attributes
    ----------
    session, desk : LabelingSession, Desk
        Open between `open` and `close`.
    given : dict of int to label
        Labels of the file, by the row.
    messages : list of str
        What a person should know about the file.
    """

    def __init__(self, file, text, label, *, folder=None, suggest=None):
        self.path = Path(file).expanduser()
        folder = Path(folder or self.path.with_suffix(".skactive"))
        self.folder = folder.expanduser().absolute()  # from anywhere the same session
        self.label, self._texts = label, [text] if isinstance(text, str) else list(text)
        self.messages = []
        names = [*self._texts, *([suggest] if suggest else [])]
        self._read(names, label)
        self.given = self._read_labels(label, self.columns[label])
        self.suggestions = {}
        if suggest:
            cells = self._read_labels(suggest, self.columns[suggest])
            place = {row: i for i, row in enumerate(self.rows)}
            self.suggestions = {place[row]: x for row, x in cells.items()}

    def _read(self, names, label):
        """Read all columns; find the rows that have a text."""
        columns, places, _ = read_cells(self.path)
        if label not in columns and self._texts[0] in columns:
            columns[label] = [None] * len(places)
            self.messages.append(f"a column {label!r} is added; the file has none")
        read_cells(self.path, [name for name in names if name != label])
        if label in names:
            raise ValueError(
                f"'label' must be another column than the texts, got {label!r}."
            )
        self.columns, self.delimiter = columns, ","
        if self.path.suffix.lower() == ".csv":
            self.delimiter = find_delimiter(self.path)
        if self.delimiter != ",":
            self.messages.append(f"the cells are separated by {self.delimiter!r}")
        for name in self._texts:
            odd = [x for x in columns[name] if not isinstance(x, str) and x is not None]
            if odd:
                raise ValueError(
                    f"column {name!r} of {str(self.path)!r} must hold text, got "
                    f"{odd[0]!r}. Name a column of texts."
                )
        texts = list(zip(*(columns[name] for name in self._texts), strict=True))
        has_text = [all(parts) for parts in texts]
        self.rows = list(compress(range(len(texts)), has_text))
        if not self.rows:
            raise ValueError(f"column {names[0]!r} of {str(self.path)!r} has no text.")
        if n_blank := len(texts) - len(self.rows):
            self.messages.append(f"{n_blank:,} rows have no text and are left out")
        single = len(self._texts) == 1
        self.texts = [texts[row][0] if single else texts[row] for row in self.rows]

    def _read_labels(self, column, cells):
        """Return the labels of the rows that have one and a text, dict of row to label.

        Floats that stand for integers, as pandas writes them, become integers.
        """
        known = {row: cells[row] for row in self.rows if not is_missing(cells[row])}
        kinds = {type(value) for value in known.values()}
        if kinds == {float} and all(value.is_integer() for value in known.values()):
            return {row: int(value) for row, value in known.items()}
        if len(kinds) > 1 or not kinds <= {str, int, bool, float}:
            shown = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(
                f"column {column!r} of {str(self.path)!r} must hold labels of one "
                f"type, str, int or bool; got {shown}. Use one type."
            )
        return known

    def open(self, learner, *, classes=None, goal=None, annotator=None, about=None):
        """Open the session and the desk; `learner` is an ActiveLearner without labels.

        `classes` are the classes to choose from; by default those of the file.
        """
        known = [label for label, _ in Counter(self.given.values()).most_common()]
        classes = self._as_given(classes, known)
        if classes is not None and (new := [x for x in known if x not in classes]):
            raise ValueError(
                f"'classes' must hold every label of column {self.label!r}, which has "
                f"{new[0]!r}. Add it to the classes."
            )
        classes = known if classes is None else classes
        if len(set(self.given.values())) > max(100, len(self.given) / 2):
            raise ValueError(
                f"column {self.label!r} of {str(self.path)!r} must hold classes, got "
                f"{len(known)} different values in {len(self.given)} rows. Name "
                "another column."
            )
        if self.given:
            place = {row: i for i, row in enumerate(self.rows)}
            known_texts = [self.texts[place[row]] for row in self.given]
            learner.teach(known_texts, list(self.given.values()), refit=False)
        _make_folder(self.folder)
        self.session = LabelingSession(
            learner.set_params(batch_size=_BATCH),
            self.texts,
            self.folder / "session",
            refit="background",
            encode="background",
            audit_every=_AUDIT_EVERY,
            max_similarity=_MAX_SIMILARITY,
            annotator=annotator,
            classes=self._classes_to_open(classes),
        )
        self.desk = Desk(
            self.session,
            goal=goal,
            suggestions=self.suggestions,
            descriptions=about,
            source=self.path.name,
        )
        return self

    def _as_given(self, classes, known):
        """Return classes of the command line in the type of the labels of the file."""
        if classes is None or not known or isinstance(known[0], str):
            return classes
        looks = {str(label): label for label in known}
        try:
            return [looks.get(name) or type(known[0])(name) for name in classes]
        except ValueError as exc:
            raise ValueError(
                f"'classes' must be of the kind of the labels of the file, such as "
                f"{known[0]!r}; got {classes!r}."
            ) from exc

    def _classes_to_open(self, classes):
        """Return a closed list of at least two classes, or None.

        A session that has one keeps it, with the classes that people added.
        """
        manifest = self.folder / "session" / "manifest.json"
        if len(classes) < 2 or manifest.exists():
            return None
        return list(classes)

    def close(self):
        """Close the desk and the session."""
        self.desk.close()
        self.session.close()

    @property
    def output(self):
        """The file of the labeled table, next to the input."""
        return self.path.with_name(f"{self.path.stem}.labeled{self.path.suffix}")

    def write(self, model=None):
        """Write the whole table with labels and, given a model, predictions.

        Return the numbers of labels by their source.
        """
        answers, place = {}, {row: i for i, row in enumerate(self.rows)}
        for id in self.session.labels:
            answer = self.session.answer(id)
            for copy in self.session.copies(id):
                answers[copy] = answer
        answers |= {id: self.session.answer(id) for id in self.session.labels}
        predicted, proba = predict_items(model, self.texts)
        n = len(self.columns[self.label])
        added = {name: [None] * n for name in (self.label, *_COLUMNS)}
        for row in self.rows:
            id = place[row]
            cells = {"prediction": predicted[id], "probability": proba[id]}
            if id in answers:
                cells |= {"label_source": "person", **answers[id]}
            elif row in self.given:
                cells |= {"label_source": "given", "label": self.given[row]}
            elif predicted[id] is not None:
                cells |= {"label_source": "model", "label": predicted[id]}
            added[self.label][row] = cells.get("label")
            for name in _COLUMNS:
                added[name][row] = cells.get(name)
        columns = {**self.columns, self.label: added[self.label]}
        for name in _COLUMNS:
            columns[self._free_name(name)] = added[name]
        if self.path.suffix.lower() in (".csv", ".tsv"):
            # The cells of the file stay as they were; only ours could be formulas.
            ours = {self.label, *columns} - self.columns.keys() | {self.label}
            columns = {
                name: list(map(escape, cells)) if name in ours else cells
                for name, cells in columns.items()
            }
        write_table(self.output, columns, delimiter=self.delimiter)
        sources = Counter(added["label_source"])
        return {name: sources[name] for name in ("given", "person", "model")}

    def _free_name(self, name):
        """Return the name of a column that is added, other than those of the file."""
        while name in self.columns:
            name = f"skactive_{name}"
        return name

    def labeled(self):
        """Return texts and labels to train on, and the texts without a label."""
        labels = dict(self.session.labels)
        place = {row: i for i, row in enumerate(self.rows)}
        labels = {place[row]: label for row, label in self.given.items()} | labels
        rest = [i for i in range(len(self.texts)) if i not in labels]
        X = take_rows(self.texts, list(labels))
        return X, list(labels.values()), take_rows(self.texts, rest)

    def save_model(self, model):
        """Save a model with its encoder, and return its folder."""
        about = {"text": self._texts, "label": self.label}
        return save_model(model, self.folder, about)


def save_model(model, folder, about):
    """Save a model with its encoder in `folder`, and what it predicts as a dict."""
    # Texts that are predicted later have no place among the features here.
    own = str(folder / "features")
    found = model.get_params().items()
    caches = [name for name, x in found if isinstance(x, str) and x == own]
    model.set_params(**dict.fromkeys(caches, "memory"))
    saved = save(model, folder / "model", overwrite=True, bundle=True)
    Path(folder, "model.json").write_text(json.dumps(about), encoding="utf-8")
    return saved


def _make_folder(folder):
    """Create the folder of a project, or raise an OSError that names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise OSError(
            f"'folder' must be a folder to write into, got {str(folder)!r} "
            f"({exc.strerror}). Name another one."
        ) from exc
