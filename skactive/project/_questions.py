"""Several questions of each text: a project for each, and one labeled table."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .._tables._labels import JOIN
from .._utils._format import brief
from .._utils._labels import key_of, list_classes
from .._utils._system import Closing
from ..session import Screens
from ._classes import as_entries
from ._project import Project
from ._record import CHOSEN, QUESTIONS, recall_begun, write_record
from ._settings import ProjectSettings

LOG = logging.getLogger("skactive.project")
_NOT_FOR_NUMBERS = ("until", "adapt", "strategy", "suggest")
_SHARED = {"file", "file_", "folder_", "output", "features", "desk", "coders"}
_SHARED |= {"tell", "make_folder"}
_OF_ONE = {"file", "text", "label", "separator", "regression", "classes", "suggest"}


class _Question(Project):
    """The project of one question, whose labels go into the table of all."""

    name = ""
    whole: Any = None  # the Questions

    @cached_property
    def _trainer(self):
        trainer = super()._trainer
        trainer.cache = self.whole.first.folder_ / "features"
        return trainer

    @cached_property
    def table(self):
        """The rows that have a text, and the columns of labels."""
        table = super().table
        table.name_column = lambda x: f"{self.name}_{x.removeprefix('label_')}"
        return table

    @property
    def output(self):
        """The file of the labeled table, which all questions share."""
        return Project.output.fget(self.whole.first)

    def _is_asked(self, position):
        """Whether a text has the label that the question depends on, if any."""
        if self.only_if is None:
            return True
        labels = self.whole.projects[self.only_if[0]]._rows.labels
        label = labels.get(position)
        given = [] if label is None else list_classes([label])
        return key_of(self.only_if[1]) in map(key_of, given)

    def _write_output(self, write):
        """Write the table as soon as the columns of all questions are there."""
        projects = [*self.whole.projects.values()]
        for project in projects:
            if project.table.added is None:
                project.write()  # which writes all
                return
        tables = [project.table for project in projects]
        first = self.whole.first
        Project._write_output(first, partial(first.table.write, tables=tables))

    def _make_stamp(self):
        projects = self.whole.projects.values()
        return "".join(Project._make_stamp(project) for project in projects)

    def _is_current(self, stamp):
        projects = self.whole.projects.values()
        return all(Project._is_current(project, stamp) for project in projects)


class Questions(Closing):
    r"""A table of texts about each of which people answer several questions.

    Each question is a :class:`Project` with a session, a codebook and a model of its
    own. They share the texts, the features, the audit and the labeled table. The page
    shows a text with all of its questions, and the questions choose the texts in turn.

    Parameters
    ----------
    file : path-like
        A .csv, .tsv, .jsonl, .parquet or .xlsx file.
    text : str or sequence of str
        Column of texts, or two columns for pairs.
    questions : dict of str or tuple of str to None, classes or "number"
        By the column of labels, which may be missing: the classes, as in
        :class:`Project`; None for those of the column; or "number" for a number. A
        tuple names a column of 0 and 1 for each class of one question.
    separator : dict of str to str, default=None
        By question of several classes per text, what separates the names in a cell.
    only_if : dict of str to (str, label), default=None
        By question, one before it, and the label that a text must have there to be
        asked. Its shares are those among these texts, from the sample alone.
    folder : path-like, default=None
        Where a folder for each question is. Defaults to that of the file; see
        :class:`Project`.
    **settings : dict
        Parameters of each :class:`Project`, such as `n_labels`. Numbers have neither
        `until`, `adapt`, `strategy` nor `suggest`.

    Attributes
    ----------
    projects : dict of str to Project
        The project of each question.
    sources : dict of str to dict
        After `finish`, the numbers of rows by the source of their label, or None, by
        question.

    Raises
    ------
    ValueError
        If a question has fewer than two classes, or the table does not hold the
        columns.

    See Also
    --------
    skactive.labeling.serve : Shows the page.

    Examples
    --------
    >>> import csv, tempfile
    >>> from pathlib import Path
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive import ActiveLearner
    >>> from skactive.project import Questions
    >>> model = make_pipeline(CountVectorizer(), MultinomialNB())
    >>> learner = ActiveLearner(model, "margin", random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "films.csv")
    ...     _ = file.write_text("text\ngood film\nbad film\ngood book\n")
    ...     asked = {"tone": ["like", "dislike"], "kind": ["film", "book"]}
    ...     with Questions(file, "text", asked).open(learner) as questions:
    ...         (shown,) = questions.desk.next("tab 1", n_queries=1)
    ...         for name, label in ("tone", "like"), ("kind", "film"):
    ...             desk = questions.desk.desks[name]
    ...             state = desk.answer(shown["id"], label, "tab 1")
    ...         questions.write()
    ...     rows = list(csv.DictReader(questions.output.open()))
    >>> [entry["n_labeled"] for entry in state["questions"]]
    [1, 1]
    >>> [name for name in rows[0] if name.startswith("tone")][:3]
    ['tone', 'tone_source', 'tone_prediction']
    """

    command = begun = None  # that continues, for the page
    needs_classes = False
    sources: dict | None = None
    counts: Any = None
    projects: dict[str, Any]

    def __init__(
        self,
        file: str | PathLike,
        text: str | Sequence[str],
        questions: Mapping[Any, Any],
        *,
        separator: Mapping[str, str] | None = None,
        only_if: Mapping[str, tuple[str, Any]] | None = None,
        folder: str | PathLike | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(questions, Mapping) or not questions:
            raise ValueError(
                "'questions' must be a dict of columns to classes, None or 'number', "
                f"got {brief(questions)}."
            )
        self.folder, self.projects = folder, {}
        kinds = [[x, y if isinstance(y, str) else None] for x, y in questions.items()]
        self._asked = {"kinds": kinds, "only_if": only_if}
        for label, asked in questions.items():
            name = label if isinstance(label, str) else "+".join(label)
            options: dict = {**settings, "separator": (separator or {}).get(name)}
            if isinstance(asked, str) and asked == "number":
                options |= dict.fromkeys(_NOT_FOR_NUMBERS) | {"regression": True}
            elif isinstance(asked, str):
                raise ValueError(
                    f"'questions' must hold classes, None or 'number' for {name!r}, "
                    f"got {asked!r}."
                )
            else:
                options["classes"] = asked
            if folder is not None:
                own = re.sub(r"[^\w.+-]+", "_", name).strip("._") or "label"
                options["folder"] = Path(folder) / own
            label = label if isinstance(label, str) else list(label)
            project: Any = _Question(file, text, label, **options).recall()
            project.name, project.whole = name, self
            self.projects[name] = project
            project.only_if = (only_if or {}).get(name)
        names = [*self.projects]
        for name, (other, _) in (only_if or {}).items():
            if name not in names or other not in names[: names.index(name)]:
                raise ValueError(
                    f"'only_if' must name a question and one before it, of {names}, "
                    f"got {name!r} and {other!r}."
                )

    @classmethod
    def begin(cls, project: Project, questions: Sequence, n_labels: int | None) -> Self:
        """Return open questions, which a person chose on the first screen of a project.

        Parameters
        ----------
        project : Project
            Its settings are those of all questions.
        questions : list of dict
            Each has "name", and "kind" and "classes" as in :meth:`Project.begin`.
        n_labels : int or None
            Number of labels to reach.

        Returns
        -------
        questions : Questions
            Open ones; what was chosen is recorded for the next time.

        Raises
        ------
        ValueError
            If a question or its classes do not fit the table. Nothing has begun then.
        """
        asked = {
            x["name"]: {name: words or None for name, words in x["classes"].items()}
            for x in questions
        }
        asks = {name: classes or "number" for name, classes in asked.items()}
        several = {x["name"]: JOIN for x in questions if x["kind"] == "multi-label"}
        self = cls._like(project, asks, separator=several, n_labels=n_labels)
        self.command = project.command
        # Before a session begins: what is refused here can be chosen again.
        for each, entry in zip(self.projects.values(), questions, strict=True):
            each._read_classes()
            each._make_machine(as_entries(entry["classes"]))
        self.open()
        for each in self.projects.values():
            chosen = {"separator": each.separator, "regression": each.regression}
            chosen |= {"n_labels": n_labels, "label": project.label}
            write_record(each.folder_, {CHOSEN: chosen})
        return self

    @classmethod
    def recall(cls, project: Project) -> Any:
        """Return the questions that were begun on the page of a project, if any.

        Parameters
        ----------
        project : Project
            What the page was opened for. Without a label, what its folder was begun
            for, by the page or not.

        Returns
        -------
        project : Questions or Project
            Those that were found, or the project with what was chosen before; see
            :meth:`Project.recall`.

        Raises
        ------
        ValueError
            If the table lacks a column that was recorded.
        """
        record = recall_begun(project.file_, project.label, project.folder)
        if QUESTIONS not in record:
            return project.recall()
        asked, project = record[QUESTIONS], project._replace(text=record["text"])
        kinds = {x if isinstance(x, str) else tuple(x): y for x, y in asked["kinds"]}
        return cls._like(project, kinds, only_if=asked["only_if"])

    @classmethod
    def _like(cls, project, questions, **options):
        """Return questions with the settings of a project, and options."""
        names = {field.name for field in fields(ProjectSettings)} - _OF_ONE
        settings = {name: getattr(project, name) for name in names} | options
        return cls(project.file, project.text, questions, **settings)

    @property
    def first(self) -> _Question:
        """The project of the first question, whose folder has the features."""
        return next(iter(self.projects.values()))

    if TYPE_CHECKING:
        file_: Any
        file = folder_ = output = features = desk = coders = tell = make_folder = file_  # noqa: F821
    else:

        def __getattr__(self, name: str) -> Any:
            if name not in _SHARED:
                raise AttributeError(f"'Questions' object has no attribute {name!r}")
            return getattr(self.first, name)

    def open(self, learner: Any = None) -> Self:
        """Open the sessions and the desks.

        Parameters
        ----------
        learner : ActiveLearner, default=None
            A learner without labels for each question; see `Project.open`.

        Returns
        -------
        questions : Questions
            The object itself, which is also a context manager.
        """
        for name, project in self.projects.items():
            if project.is_large:
                raise ValueError("'features' must be left out with several questions.")
            if project.needs_classes:
                raise ValueError(
                    f"'questions' must name the classes of {name!r}, got None, and "
                    f"the table has fewer than two. Pass {name}:A,B, or a list."
                )
        screens = Screens()
        try:
            for name, project in self.projects.items():
                # The folder of the first one is the plain one, once it is there.
                vars(project).pop("folder_", None)
                self._check_condition(name, project.only_if)
                options = {"only_if": project.only_if}
                project._make_desk = partial(screens.open_desk, name, **options)
                project.open(learner)
            write_record(self.first.folder_, {QUESTIONS: self._asked})
        except BaseException:
            self.close()
            raise
        return self

    def _check_condition(self, name, only_if):
        """Raise a ValueError if no text can have the label of a condition."""
        if only_if is None:
            return
        classes = self.projects[only_if[0]].session.known_classes
        if key_of(only_if[1]) not in map(key_of, classes):
            raise ValueError(
                f"'only_if' must name a class of {only_if[0]!r} for {name!r}, one of "
                f"{brief(classes)}, got {only_if[1]!r}."
            )

    def close(self) -> None:
        """Close the desks and the sessions; the models that were trained stay."""
        for project in self.projects.values():
            if "desk" in vars(project):
                project.close()

    def __enter__(self) -> Self:
        return self if "desk" in vars(self.first) else self.open()

    def write(self) -> None:
        """Write the whole table with the labels of all questions."""
        for project in self.projects.values():
            project.table.added = None
        self.first.write()

    def finish(self) -> dict[str, Any]:
        """Finish each question, as `Project.finish` does.

        Returns
        -------
        sources : dict of str to dict or None
            What `Project.finish` returned, by question.
        """
        self.sources = {}
        for name, project in self.projects.items():
            project.command = self.command
            LOG.info(f"question {name!r}:")
            self.sources[name] = project.finish()
        return self.sources

    def progress(self) -> dict[str, Any] | None:
        """Return what `finish` has done so far, for the page; None before it."""
        states = {name: x.progress() for name, x in self.projects.items()}
        begun = {name: state for name, state in states.items() if state}
        if not begun:
            return None
        steps = [
            step | {"name": f"{name}: {step['name']}"}
            for name, state in begun.items()
            for step in state["steps"]
        ]
        every = begun.values()
        errors = [state["error"] for state in every if state.get("error")]
        ending = {"error": errors[0]} if errors else {}
        if len(begun) == len(states) and all("done" in state for state in every):
            ending = {"done": not errors, "error": None} | ending
        return {
            "source": self.file_.name,
            "n_labeled": sum(state["n_labeled"] for state in every),
            "steps": steps,
            "questions": begun,
            **ending,
        }
