"""A labeling session: ask people for labels, and keep every answer."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Self

from .._utils._labels import predict_labels
from .._utils._positions import check_n_queries
from .._utils._repeatable import synchronized
from .._utils._sklearn import check_bool, check_count, check_option, check_path
from .._utils._system import Closing
from ..estimation import (
    Agreement,
    MeanEstimate,
    Prevalence,
    QualityEstimate,
    measure_agreement,
)
from ..learner import ActiveLearner
from ..simulation import Run
from ._adaptation import MAX_POOL
from ._answers import Difference
from ._codebook import EMPTY
from ._coders import list_first
from ._core import open_core
from ._doubts import find_doubtful
from ._evidence import Estimate, assess, find_prevalence, find_quality
from ._formats import SourceAnswer, export_format
from ._import_export import ImportedLabels, export_table
from ._journal import list_history
from ._machine import MachineComparison, annotate, compare
from ._manifest import record_pool
from ._models import Model, check_refit
from ._pool import Batch, Pool
from ._queue import Options

_UNDONE = ("event", "ids", "labels", "old", "new", "added", "removed")
_Format = Literal["label-studio", "prodigy", "argilla", "doccano"]


class LabelingSession(Closing):
    """Label a pool with the help of a learner; every answer is on the disk at once.

    `ask` returns the next items and `tell` records their labels. Both are written to a
    journal before they count. A process can be killed at any time; the same call opens
    the session again. Several threads may share a session.

    Parameters
    ----------
    learner : ActiveLearner
        Chooses the items. It is copied. Labels it was fitted to are used for training,
        too. With the same `random_state`, a session asks for the same items as a loop
        of `query` and `teach`.
    X_pool : container of n items
        The items, in a container that `learner` accepts.
    folder : str or path-like
        A new folder, or the folder of a session to continue.
    ids : sequence of str or int, default=None
        Ids of the items. Defaults to the index of a pandas object, to the ids of a
        pool of :func:`skactive.datasets.open_pool`, and otherwise to positions. When
        the session is opened again, items with ids are found by id, and their content
        must be unchanged; items known by position are found by content.
    refit : bool or "background", default=True
        When to train. True: on all labels before each `ask` that follows new ones.
        False: only when `refit` is called. "background": in a thread while the next
        batch is labeled; `ask` uses the newest model that is ready, and never waits for
        one. Before a model has learned two classes, items are chosen at random if the
        front steps of the pipeline need no training, such as `BertFeatures`. The first
        ten items of an audit come before all others.
    encode : "background", default=None
        Whether to compute the features of the pool in a thread, so that the first `ask`
        need not wait for them. Until all are there, items are chosen among those that
        have features, and the first ones at random. It has an effect if the front steps
        of the learner's pipeline need no training, such as `BertFeatures`.
    max_adapted_pool : int, default=20000
        Largest number of items of a pool for which an encoder learns from the labels,
        as in :class:`skactive.bert.AdaptedFeatures`: it computes the features of all
        items again after 25, 50, 100, ... labels. None allows any.
    annotator : str, default=None
        Name of the person who answers. It is recorded with every event.
    classes : sequence of labels, or dict of name to str or list of str, default=None
        The allowed labels. A dict also describes them, as in
        :class:`skactive.ClassDescriptions`: the model learns from the names and
        descriptions, and predicts before there are labels. An empty dict allows any
        label, and the names of added classes describe them. They are stored in the
        folder. When the session is reopened, None uses the stored classes, including
        those added or renamed since. If any label is allowed, a new class that
        resembles a known one causes a warning. The classes name the columns of
        `learner` if it was fitted to an indicator matrix.
    multi_label : bool, default=None
        Whether each item has several classes: its label is a list of their names, in
        any number, and a single name counts as a list of one. It is kept in the folder.
        None decides by the labels. The estimator is trained on an indicator matrix,
        and must allow that, such as `OneVsRestClassifier`.
    settle : "latest", "majority" or str, default="majority"
        Which of several answers to an item counts: the last one; that of the majority,
        and in a tie the last one; or that of the annotator with this name, and the
        majority where there is none.
    overlap : float or None, default=0.0
        Share of the items that a second annotator labels, too. `ask` returns first the
        items that exactly one other person got. The items are chosen by a hash of
        their content and the seed; with an audit, among its items. None keeps the share
        that the session in the folder had last.
    repeat : float, default=0.0
        Share of the items that `ask` returns once more to the same annotator, an hour
        after the answer, to see how far people agree with themselves: at most one in
        each batch, and none that the audit can draw. The first answer counts; the
        others are in the journal, and the way of these is "repeat".
    audit_every : int, default=None
        Every how many items one is drawn at random; see `audited`. None draws none.
        With `overlap`, they are at least as many as two annotators get.
    max_similarity : float, default=None
        The largest cosine of the features of two items in one batch. It has an effect
        if the front steps of the learner's pipeline need no training, such as
        `BertFeatures`. None allows any.
    n_labels : int, default=None
        Number of labels that are wanted: the progress bar ends there, and `estimate`
        counts the minutes to it. Defaults to the whole pool for the bar.
    verbose : int, default=0
        Whether to show a progress bar of the labels, with the age of the model.

    Attributes
    ----------
    labels : dict of id to label
        The current labels, in the order in which the items were first labeled.
    answers : dict of id to dict of annotator to label
        The last label by each annotator.
    machine_answers : dict of str to dict of id to label
        The labels by each machine that `annotate` asked.
    target : str
        "single-label", "multi-label", or for a regressor "regression" or
        "multi-output".
    classes : list or None
        The allowed labels.
    known_classes : list
        The classes; without `classes`, those of the labels that the learner was fitted
        to, those that were added, and those of the labels so far. Empty for a
        regressor.
    codebook : dict of label to dict
        "description", "examples" and "taken", examples of the pool, for each class of
        `known_classes`; see `Desk.edit_class`.
    audited : list of ids
        The answered part of the audit, a simple random sample of the pool.
    has_audit : bool
        Whether there is an audit, so that shares can be estimated; see `audit_every`.
    open_batches : list of Batch
        The batches of `ask` that wait for answers, with their remaining items.
    skipped : list of ids
        Items that were skipped.
    flags : list of ids
        Items that were flagged.
    notes : dict of id to str
        Notes on items.
    pool_ids : list of ids
        All items, in the order of the pool.
    learner : ActiveLearner
        The current model. With `refit=True` it is trained on all labels.
    newest_model : Model
        The newest model that is trained, without training one or waiting: its
        `learner`, None before the first; `classes`, the names of its columns if labels
        are lists of names; and `seq`, the event up to which it knows the labels.
    encoded : float
        Share of the pool whose features were computed or failed, from 0 to 1; below 1
        only with `encode`.
    adapts : bool
        Whether the encoder of the learner learns from the labels.
    model_age : int
        Number of items whose current label the newest model was not trained on.
    run : Run
        The answers so far as rounds, for stopping rules.
    folder : str
        The folder.

    Raises
    ------
    LockedError
        If the session is open elsewhere: a `RuntimeError` that names the process.
    PoolChangedError
        If a labeled item is missing from the pool or an item changed: a `ValueError`.
    ValueError
        If ids are not unique, or a file is damaged or missing. The error names it.
    FileExistsError
        If the folder holds something else.
    OSError
        If the folder cannot be written; `skactive.session.read_labels` reads it.

    Warns
    -----
    UserWarning
        If the last line of the journal was torn, or `learner` differs from the one
        that the session used so far.

    See Also
    --------
    skactive.simulate : The same with known labels.
    skactive.session.read_labels : Read the labels without opening the session.

    Notes
    -----
    The folder holds these files. Nothing is rewritten: a correction is a new event, and
    the order is that of ``seq``, not of the clock.

    - ``journal.jsonl``: all events, a line of JSON for each, which ends with a
      checksum, the CRC-32 of the line without it (``"crc"``). The events are "begin",
      "ask", "tell", "skip", "release", "withdraw", "undo", "rename", "add", "remove",
      and "describe" (of classes), "flag", "note", "annotate" (by a machine),
      "refit", "learner" (opened with other parameters), "pool" (with another pool),
      "classes" and "codebook" (with other classes or descriptions) and "options" (with
      another `settle` or `overlap`, or items drawn at random only).
      ``journal.jsonl.torn`` has last lines that a kill tore, if any.
    - ``manifest.json``: format version, hash of the pool, parameters of the learner,
      strategy with distribution and version, base seed, versions.
    - ``pool.npy``: 16 bytes for each item, a hash of its id and one of its content.
      After a change of the pool the name has the number of the event.
    - ``lock``, ``lock.holder``: the lock of the folder, and its process, machine and
      time. If the disk does not support ``flock``, a process that was killed on another
      machine leaves ``lock``; delete it then.

    Neither items nor models are in the folder. A model is a function of the base seed
    and of the journal up to a line, and an "ask" records the last line that its model
    was trained on, and in the background how many labels its encoder has learned from.
    ``adapted`` is a cache of such encoders, which a process trains. So a resumed
    session asks for the same batch as one that was not interrupted, if the learner and
    the versions are the same. In the background, timing decides which model is ready.

    Items whose ``repr`` contains only an address have no comparable content, and need
    `ids`. Copies of one text keep as many labels as they had. If the columns of a data
    frame were renamed, an error shows both. If the folder, the journal or ``lock`` is
    deleted or replaced while the session is open, the next `tell` raises a
    `RuntimeError` and is not acknowledged.

    For labels that are lists of names, the columns of the model are `classes`, or
    without them the names in the order of their first use, at least two. `add_class`
    adds a column with the next training, and `rename_class` merges two.

    Examples
    --------
    Two texts have labels. The session asks for the text that the model knows least
    about, and remembers the answers when it is opened again:

    >>> import tempfile
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive import ActiveLearner, LabelingSession
    >>> model = make_pipeline(CountVectorizer(), MultinomialNB())
    >>> learner = ActiveLearner(model, batch_size=1, random_state=0)
    >>> texts = ["good film", "bad film", "good", "a bad idea", "good and bad"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LabelingSession(learner, texts, folder) as session:
    ...         session.tell([0, 1], ["like", "dislike"], unasked=True)
    ...         for id, text in session.ask():
    ...             print(f"{id}: {text}")
    ...             session.tell(id, "like")
    ...     with LabelingSession(learner, texts, folder) as session:
    ...         print(session.labels)
    4: good and bad
    {0: 'like', 1: 'dislike', 4: 'like'}
    """

    def __init__(
        self,
        learner: ActiveLearner,
        X_pool: Any,
        folder: str | PathLike[str],
        ids: Sequence[str | int] | None = None,
        *,
        refit: bool | Literal["background"] = True,
        encode: Literal["background"] | None = None,
        max_adapted_pool: int | None = MAX_POOL,
        annotator: str | None = None,
        classes: Sequence[Any] | dict[str, Any] | None = None,
        multi_label: bool | None = None,
        settle: str = "majority",
        overlap: float | None = 0.0,
        repeat: float = 0.0,
        audit_every: int | None = None,
        max_similarity: float | None = None,
        n_labels: int | None = None,
        verbose: int = 0,
    ) -> None:
        if not (hasattr(learner, "query") and hasattr(learner, "teach")):
            raise TypeError(
                f"'learner' must be an ActiveLearner, got {learner!r}. Wrap an "
                "estimator: ActiveLearner(estimator)."
            )
        check_refit(refit)
        if max_adapted_pool is not None:
            check_count("max_adapted_pool", max_adapted_pool, least=0)
        check_path("folder", folder)
        if n_labels is not None:
            check_count("n_labels", n_labels)
        verbose = int(verbose) if isinstance(verbose, bool) else verbose
        check_count("verbose", verbose, least=0)
        self._core = open_core(
            learner,
            Pool(X_pool, ids),
            folder,
            Options(settle, overlap, audit_every, max_similarity, repeat),
            refit=refit,
            encode=encode,
            max_pool=max_adapted_pool,
            annotator=annotator,
            classes=classes,
            multi_label=multi_label,
        )
        self._lock, self._state = self._core.lock, self._core.state
        self._n_labels, self._bar = n_labels, None
        if verbose:
            self._show_bar(n_labels or len(self._state.pool))

    def _show_bar(self, total):
        """Show a progress bar of the labels, with the age of the model."""
        from tqdm import tqdm

        n_labels = len(self._state.answers)
        self._bar = tqdm(desc="labels", total=total, initial=n_labels, unit="label")

        def update():
            self._bar.n = len(self._state.answers)
            self._bar.set_postfix(model_age=self._core.models.age())

        self._core.journal.then = update

    # Queries --------------------------------------------------------------------------

    def ask(
        self,
        n_queries: int | None = None,
        *,
        annotator: str | None = None,
        refit: bool | Literal["background"] | None = None,
    ) -> Batch:
        """Choose the next items; they are in the journal before they are returned.

        Items that wait for an answer are not chosen again, and neither are items that
        the learner was fitted to before the session. Of several copies of a text, one
        is chosen. After a session was opened again, the batches that were open are
        returned once more before any new one, with their remaining items. With
        `overlap`, items that somebody else got come first.

        Parameters
        ----------
        n_queries : int, default=None
            Number of items. Defaults to the `batch_size` of the learner.
        annotator : str, default=None
            Name of the person who is asked. Defaults to the annotator of the session.
        refit : bool or "background", default=None
            Overrides the `refit` of the session for this call.

        Returns
        -------
        batch : Batch
            Items to label, the most useful first. Iterating over it yields pairs of an
            id and its item. Empty, and so false, when no item is left. The attributes
            are `ids` (tuple), `items` (in the container of the pool), `number` (of the
            batch in the session, from 1; None for an empty one) and `annotator`.

        Raises
        ------
        ValueError
            If `n_queries` is below 1, or the strategy returns invalid positions.
        OSError
            If the disk fails. Nothing was then asked; the next call asks for the same.
        """
        n_queries = check_n_queries(n_queries, None)
        return self._core.queue.ask(n_queries, self._core.who(annotator), refit)

    def add(self, items: Any, ids: Sequence[str | int] | None = None) -> list[Any]:
        """Add items to the pool; they can be asked from now on.

        The session is opened again with the grown pool: the items in this order, or in
        any order with their ids.

        Parameters
        ----------
        items : container of m items
            Of the kind of the pool.
        ids : sequence of str or int, default=None
            Ids of the items, if the pool has ids. Defaults to the index of a pandas
            object. Items of a pool without ids are known by position.

        Returns
        -------
        ids : list of ids
            Ids of the items.

        Raises
        ------
        ValueError
            If an id is missing, or exists already. Nothing was then added.
        TypeError
            If the items are of another kind than those of the pool.
        OSError
            If the disk is full or fails. Nothing was then added; repeat the call.
        """
        core, state = self._core, self._state
        with core.choosing, core.recording("Nothing was added."):
            n, grown = len(state.pool), state.pool.extended(items, ids)
            record_pool(core.journal, grown)
            state.pool = grown
            core.journal.sync()
            core.queue.follow_pool()
            core.models.follow_pool()
            return list(grown.ids[n:])

    def refit(self) -> Self:
        """Train on all labels now.

        Returns
        -------
        self : LabelingSession
        """
        core = self._core
        with core.choosing:
            with core.lock:
                core.journal.sync()
                if not core.state.answers:
                    raise ValueError("there is no label to train on. Tell one first.")
            model = core.models.train_now()
            with core.lock:
                core.journal.sync()
                core.journal.record("refit", model=model.seq)
                core.models.use(model)
        return self

    # Answers --------------------------------------------------------------------------

    def tell(
        self,
        ids: Any,
        labels: Any = None,
        *,
        unasked: bool = False,
        annotator: str | None = None,
        seconds: Any = None,
        shown: Literal["none", "prediction", "suggestion"] | None = "none",
    ) -> None:
        """Record labels; they are on the disk when this returns.

        A batch can be answered in parts and in any order. A new label by the same
        annotator replaces the previous one; both stay in the history of the item.
        Labels by several annotators are kept side by side, see `answers`; which of them
        is the label of the item depends on `settle`.

        Parameters
        ----------
        ids : sequence of ids, dict of id to label, or one id
            The labeled items.
        labels : sequence of labels, default=None
            One `str`, `int` or `bool` for each id; numbers for a regressor; or a list
            of names of classes for each, which may be empty. The label itself for one
            id. Omitted if `ids` is a dict.
        unasked : bool, default=False
            Whether to accept items that were never asked.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.
        seconds : float or sequence of float, default=None
            Time that the answers took: one number for each id, or one for all together,
            which is divided equally.
        shown : {"none", "prediction", "suggestion"}, default="none"
            What the annotator saw of a machine before the answers: nothing, the
            prediction of a model, or a suggestion from elsewhere. None if this is
            unknown. The first answer of an annotator counts in the estimates.

        Raises
        ------
        ValueError
            If an id is unknown, occurs twice or was never asked, or a label is missing
            or not one of `classes`. An empty string is a missing label. Nothing was
            then recorded.
        TypeError
            If labels are of several kinds, or ids or labels have no order, as in a
            set.
        OSError
            If the disk is full or fails. Nothing was then recorded; repeat the call.
        RuntimeError
            If the folder was deleted, replaced or changed by another program. The
            label is then not acknowledged.

        Warns
        -----
        UserWarning
            If a label is a new class that resembles a known one.
        """
        with self._core.recording() as answers:
            options = {"unasked": unasked, "seconds": seconds, "shown": shown}
            answers.tell(ids, labels, self._core.who(annotator), **options)

    def skip(
        self, ids: Any, *, unasked: bool = False, annotator: str | None = None
    ) -> None:
        """Set items aside; they are not asked again, but can still be labeled.

        Parameters
        ----------
        ids : sequence of ids, or one id
            Items without a label, or that wait for the annotator.
        unasked : bool, default=False
            Whether to accept items that were never asked.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.
        """
        with self._core.recording() as answers:
            answers.skip(ids, self._core.who(annotator), unasked)

    def release(self, ids: Any = None, *, annotator: str | None = None) -> None:
        """Return open items to the pool; they may be asked again.

        An item that waits for two people is released for the annotator alone, if this
        is one of them.

        Parameters
        ----------
        ids : sequence of ids, or one id, default=None
            Items to release. Defaults to all open items.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.
        """
        with self._core.recording() as answers:
            answers.release(ids, self._core.who(annotator))

    def withdraw(self, ids: Any, *, annotator: str | None = None) -> None:
        """Remove the answers of an annotator to items, as if they were never given.

        Items without another answer can be asked again. The journal keeps the answers.

        Parameters
        ----------
        ids : sequence of ids, or one id
            Items that the annotator labeled or skipped.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.

        Raises
        ------
        ValueError
            If the annotator neither labeled nor skipped an item. Nothing was then
            recorded.
        """
        with self._core.recording() as answers:
            answers.withdraw(ids, self._core.who(annotator))

    def undo(self, *, annotator: str | None = None) -> dict[str, Any]:
        """Undo the last event by which an annotator changed answers.

        These are `tell`, `skip`, `release`, `withdraw` and changes of the classes.

        Its items wait for an answer again if they were asked, and the next `ask`
        returns them first. A second call undoes the event before. What others
        answered stays, also their later answers to the same items. Nothing is erased:
        the journal keeps both.

        Parameters
        ----------
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session; without
            either, the last event of anybody is undone.

        Returns
        -------
        undone : dict
            The event that was undone: `event`, `ids`, and `labels` if it had any; for a
            renaming `event`, `old` and `new`.

        Raises
        ------
        ValueError
            If there is nothing to undo.
        """
        with self._core.recording() as answers:
            last = answers.undo(self._core.who(annotator))
            self._core.queue.show_again(last.get("ids", ()))
        return {key: last[key] for key in _UNDONE if key in last}

    def add_class(self, name: Any, *, annotator: str | None = None) -> None:
        """Add a class; `undo` reverses it, unless the class has labels.

        With `classes`, its labels are accepted from now on. Otherwise any label is
        accepted anyway, and the class is only listed in `known_classes`.

        Parameters
        ----------
        name : str, int or bool
            The new class, of the kind of the others.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.

        Raises
        ------
        ValueError
            If the class exists, or is a missing label. Nothing was then recorded.
        TypeError
            If the class is of another kind than the others.
        """
        with self._core.recording() as answers:
            answers.add_class(name, self._core.who(annotator))

    def rename_class(self, old: Any, new: Any, *, annotator: str | None = None) -> None:
        """Rename a class, or merge it with another one if that has the new name.

        All answers of all annotators have the new name from now on, and so have the
        labels that the learner was fitted to before the session. `undo` restores the
        labels exactly.

        Parameters
        ----------
        old, new : str, int or bool
            A class of the session, and its new name.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.

        Raises
        ------
        ValueError
            If `old` is not a class of the session, or `new` is the same or a missing
            label. Nothing was then recorded.
        TypeError
            If `new` is of another kind than the other classes.
        """
        with self._core.recording() as answers:
            answers.rename_class(old, new, self._core.who(annotator))

    def flag(
        self, ids: Any, flag: bool = True, *, annotator: str | None = None
    ) -> None:
        """Mark items, for example to discuss them; see `flags`.

        Parameters
        ----------
        ids : sequence of ids, or one id
            Items of the pool, with or without a label.
        flag : bool, default=True
            Whether to set or to remove the flag.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.

        Raises
        ------
        ValueError
            If an id is unknown or occurs twice. Nothing was then recorded.
        TypeError
            If `flag` is neither True nor False.
        """
        with self._core.recording() as answers:
            answers.flag(ids, flag, self._core.who(annotator))

    def note(self, id: str | int, text: str, *, annotator: str | None = None) -> None:
        """Write a note on an item; it replaces the previous one, see `notes`.

        Parameters
        ----------
        id : str or int
            An item of the pool, with or without a label.
        text : str
            The note; an empty one removes it.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.

        Raises
        ------
        ValueError
            If the id is unknown. Nothing was then recorded.
        TypeError
            If `text` is not a str.
        """
        with self._core.recording() as answers:
            answers.note(id, text, self._core.who(annotator))

    def annotate(self, annotator: Any, items: Sequence[str | int] | None = None) -> int:
        """Record the answers of a machine, apart from the labels.

        They are never labels: `labels`, `audited` and `settle` ignore them. They are
        suggestions for people where the audit does not draw, a proxy in `prevalence`,
        and pairs in `agreement`. If `classes` was a dict, they are also training data,
        with a weight that people's labels choose; see
        :class:`skactive.ClassDescriptions`.

        Parameters
        ----------
        annotator : annotator
            See :class:`skactive.annotators.Annotator`. Its `name` is that of the
            machine, and what its `describe` returns is recorded.
        items : sequence of ids, default=None
            The items to ask about. Defaults to the pool. Items with a label by the same
            machine are left out. It is asked again about others, as a reply may have
            failed. If its settings changed, its earlier answers do not count any more.

        Returns
        -------
        n_items : int
            Number of items that it was asked about.

        Raises
        ------
        TypeError
            If `annotator` has no name or no method `annotate`.
        ValueError
            If an id is unknown, a person has the same name, or the annotator returns
            something else than an answer for each text. Earlier answers are recorded.

        Warns
        -----
        UserWarning
            If answers are no labels that the session allows. They count as no answer.

        Notes
        -----
        Answers are recorded in parts, the first of 16 and none above 1,024. Other
        threads can record labels meanwhile.
        """
        return annotate(self._core, annotator, items)

    def import_labels(
        self,
        path: str | PathLike[str],
        *,
        id: str = "id",
        label: str = "label",
        text: str | Sequence[str] | None = None,
        annotator: str | None = None,
        ignore_unknown: bool = False,
        format: _Format | None = None,
    ) -> ImportedLabels:
        """Import labels from a table, another session or another program.

        Items are matched by content: by the texts of the table, or by the hashes in
        the folder or the export of a session. Ids only distinguish copies of one text.
        In a table without a column of texts, items are matched by id. Rows without a
        label are ignored. A label that differs from the label in the session is listed
        and not imported.

        With `format`, the file is one of another program. Its annotators are kept, and
        an answer is compared with the answer of the same annotator. Items that a person
        skipped there are skipped here. `left_out` lists what is no answer, such as
        drafts; predictions are ignored.

        Parameters
        ----------
        path : str or path-like
            CSV, TSV, JSONL or Parquet file, by its suffix; or the folder of a session,
            whose pool may be another one.
        id, label : str
            Names of the columns. The column of ids may be missing if there are texts.
            With `format`, `label` is the name of the question, if there are several.
            The cells of CSV and TSV have no types: an id is found by its `str`, and
            labels get the type of the other labels of the session. Without others they
            become numbers, `bool` or lists if all cells look like it, and otherwise
            `str`.
        text : str or pair of str, default=None
            Column of the texts, or columns of the pairs of texts. Defaults to "text",
            or "text_1" and "text_2", if the table has them.
        annotator : str, default=None
            Name to record with labels whose annotator the file does not name. Defaults
            to the annotator of the session.
        ignore_unknown : bool, default=False
            Whether to ignore items that are not in the pool.
        format : {"label-studio", "prodigy", "argilla", "doccano"}, default=None
            The program whose file it is. Defaults to a table or session. Label Studio:
            JSON; its CSV is a table. Prodigy: JSONL of `db-out`. Argilla: JSON or JSONL
            of records, feedback or version 1. doccano: JSONL, JSON or CSV.

        Returns
        -------
        imported : ImportedLabels
            `added`, `unchanged` and `unknown` ids, `conflicts`: (id, label in the
            session, label in the file), and `left_out`: dict of reason to places.

        Raises
        ------
        ValueError
            If an item is unknown or its text differs, an item has two labels in the
            file, its id in a CSV file matches two ids of the pool, or the file is
            malformed: the error names the line or record. If the file is of a program
            that `format` does not name, or has no answers with classes. Nothing was
            then recorded.

        Warns
        -----
        UserWarning
            If the file has drafts, rejected tasks or answers without a class.

        Notes
        -----
        A table without a column of texts or hashes, and a cell without a text in JSONL
        and Parquet, is matched by id alone; omit the column of texts to import labels
        of texts that were edited on purpose.

        Several answers by the same person to one task of Label Studio count as the last
        one. Predictions, suggestions, drafts and rejected tasks are no answers. These
        programs name classes by `str`; where the labels of the session are numbers,
        `bool` or lists, they are converted. Several choices are an answer of several
        classes, and none means that no class applies: open the session with
        ``multi_label=True`` to import such files.

        The label of an option of Prodigy is its id, unless only its text is a class of
        the session. Its accepted and rejected labels, as of `textcat.teach`, are no
        answers. Ratings, numbers and the last name of a taxonomy are labels.
        """
        check_bool("ignore_unknown", ignore_unknown)
        with self._core.recording() as answers:
            who, columns = self._core.who(annotator), (id, label, text)
            return answers.import_file(path, columns, format, who, ignore_unknown)

    def sync(
        self,
        answers: Mapping[str | int, Sequence[SourceAnswer]],
        source: str,
        *,
        notes: Mapping[str | int, str] | None = None,
    ) -> Difference:
        """Make the answers from another program those that it has now.

        For a bridge to a program where people label. It reads the answers there from
        time to time and passes all those to an item at once. What is new or changed is
        recorded, and what is gone is withdrawn. Other answers of the session stay.

        Parameters
        ----------
        answers : dict of id to sequence of SourceAnswer
            All answers to some items; an empty sequence if there are none any more. Of
            several by a person, the last one counts, and a label more than a skip. A
            skip counts if the item has no label. Former names of classes are
            understood.
        source : str
            Name of the program. It is recorded with its answers.
        notes : dict of id to str, default=None
            Notes on these items. An item that is not in it loses a note of the program.

        Returns
        -------
        difference : Difference
            What was recorded: `told`, `changed` (pairs of id and answer), `withdrawn`,
            `skipped` (pairs of id and annotator) and `notes` (pairs of id and text);
            and `refused`, triples of id, answer and error, for labels that the session
            does not allow. It is false if nothing was recorded.

        Raises
        ------
        ValueError
            If an id is unknown, or there is a note on an item that is not in `answers`.
            Nothing was then recorded.
        TypeError
            If `answers` is no dict of lists of SourceAnswer, `notes` no dict, or
            `source` no str.

        Notes
        -----
        What people saw there before they answered is unknown, unless an item is
        reserved for the audit; see `is_blind`. Other answers do not count in estimates
        unless these are called with ``blind=False``.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.linear_model import LogisticRegression
        >>> from skactive import ActiveLearner, LabelingSession
        >>> from skactive.session import SourceAnswer
        >>> learner = ActiveLearner(LogisticRegression())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with LabelingSession(learner, [[0.0], [1.0]], folder) as session:
        ...         there = {0: [SourceAnswer("cold", "ann")], 1: []}
        ...         first = session.sync(there, "another program")
        ...         there = {0: [], 1: [SourceAnswer("warm", "ann")]}
        ...         second = session.sync(there, "another program")
        ...         print(session.labels, second.withdrawn)
        {1: 'warm'} [(0, 'ann')]
        """
        core = self._core
        with core.recording() as recorder:
            return recorder.sync(answers, source, notes, core.queue.is_reserved)

    # What is known --------------------------------------------------------------------

    @property
    @synchronized
    def labels(self) -> dict[str | int, Any]:
        """The current labels, dict of id to label."""
        return self._state.labels()

    @property
    @synchronized
    def answers(self) -> dict[str | int, dict[str | None, Any]]:
        """The last label by each annotator, dict of id to dict of annotator to label.

        ``pandas.DataFrame(answers).T`` is a table with a column for each annotator.
        """
        answers_of = self._state.answers_of
        return {
            id: {annotator: one.label for annotator, one in answers_of(id).items()}
            for id in self._state.answers
        }

    @property
    @synchronized
    def machine_answers(self) -> dict[str, dict[str | int, Any]]:
        """The labels by each machine, dict of name to dict of id to label."""
        return {name: self._state.machine_labels(name) for name in self._state.machines}

    @property
    def classes(self) -> list[Any] | None:
        """The allowed labels, list; None allows any."""
        return self._state.classes

    @property
    def target(self) -> str:
        """The target: "single-label", "multi-label", "regression" or "multi-output"."""
        return self._core.target

    @property
    def known_classes(self) -> list[Any]:
        """The classes, list; without `classes`, those of the learner and the labels."""
        return self._core.known_classes()

    @property
    @synchronized
    def codebook(self) -> dict[Any, dict[str, Any]]:
        """What describes each class."""
        entries = self._state.codebook.entries
        return {name: entries.get(name, EMPTY) for name in self.known_classes}

    @property
    @synchronized
    def audited(self) -> list[str | int]:
        """The answered part of the audit, list of ids.

        The texts of the pool have a fixed random order, in which the audit draws them.
        A text that is labeled already counts, and a skipped one is passed over. The
        sample ends before the first text without an answer, so it is a simple random
        sample of the texts that can be labeled. New texts of a grown pool have random
        places in the order. Empty until the audit has drawn an item.
        """
        return self._core.queue.audited()

    @property
    def has_audit(self) -> bool:
        """Whether there is an audit: texts of the pool that it can draw."""
        return bool(self._core.queue.draws.reserved.any())

    @property
    @synchronized
    def flags(self) -> list[str | int]:
        """The flagged items, list of ids."""
        return list(self._state.flags)

    @property
    @synchronized
    def notes(self) -> dict[str | int, str]:
        """The notes, dict of id to text."""
        return dict(self._state.notes)

    @property
    def open_batches(self) -> list[Batch]:
        """The batches that wait for answers, with their remaining items; list."""
        return self._core.queue.open_batches()

    @property
    @synchronized
    def skipped(self) -> list[str | int]:
        """The skipped items, list of ids."""
        return list(self._state.skipped)

    @property
    def learner(self) -> ActiveLearner:
        """The current model; with `refit=True` trained on all labels."""
        with self._core.choosing:
            return self._core.models.get().learner

    @property
    def newest_model(self) -> Model:
        """The newest trained model, without waiting; see the attributes above."""
        return self._core.models.newest()

    @property
    def adapts(self) -> bool:
        """Whether the encoder of the learner learns from the labels."""
        return self._core.models.adapts

    @property
    def encoded(self) -> float:
        """Share of the pool whose features were computed or failed, from 0 to 1."""
        return self._core.models.encoded

    @property
    @synchronized
    def model_age(self) -> int:
        """Number of items whose current label the model was not trained on."""
        return self._core.models.age()

    @property
    @synchronized
    def run(self) -> Run:
        """The labels so far as a :class:`skactive.simulation.Run`, without scores.

        A round holds the answers to one batch, in the order of the answers. Labels of
        items that were never asked are rounds of their own.
        """
        rounds = [
            {"queried": self._state.pool.positions(ids).tolist()}
            for ids in self._state.answered_by_batch()
        ]
        run = Run(rounds, info={"pool_size": len(self._state.pool)})
        run.session = self
        return run

    @property
    @synchronized
    def pool_ids(self) -> list[str | int]:
        """The ids of the pool, in its order."""
        return list(self._state.pool.ids)

    @property
    def folder(self) -> str:
        """The folder."""
        return self._core.journal.folder

    def is_blind(self, id: str | int) -> bool:
        """Return whether nothing of a machine may be shown with an item.

        The audit has drawn it or can draw it, or a text that differs from it in blanks
        and capitals only. A front end that shows predictions must ask.

        Parameters
        ----------
        id : str or int
            Id of the item.

        Returns
        -------
        is_blind : bool

        Raises
        ------
        ValueError
            If the id is unknown.
        """
        (id,) = self._state.pool.read_ids([id], name="id")
        return self._core.queue.is_blind(id)

    @synchronized
    def history(self, id: str | int) -> list[dict[str, Any]]:
        """Return the events of an item.

        Parameters
        ----------
        id : str or int
            Id of the item.

        Returns
        -------
        events : list of dict
            In order: `seq`, `time`, `event` ("ask", "tell", "skip", "release",
            "withdraw", "flag", "note"), `label`, `seconds`, `batch`, `flag` and `text`
            if there is one, `annotator`, and `undone`, whether the event was undone.
        """
        (id,) = self._state.pool.read_ids([id], name="id")
        return list_history(self._state.events, id)

    def export(
        self,
        path: str | PathLike[str],
        *,
        what: Literal["labels", "answers", "open", "pool"] = "labels",
        format: _Format | None = None,
        columns: Callable[[Any], dict[str, Any]] | None = None,
    ) -> None:
        """Write a table, or a file for another annotation program.

        The file appears whole or not at all. Its columns are `id`, the text (`text`,
        or `text_1` and `text_2`) or else `content_hash`, `label`, `annotator` and
        `time`; and, except for open items, `seconds`, `note` and `flag`. In CSV, a text
        that a spreadsheet would run as a formula gets an apostrophe in front, which
        `import_labels` removes.

        With `format`, the file holds texts with the answers of all annotators, and
        skipped items where the program knows them. The ids of the pool are in
        `skactive_id`, because the programs use ids of their own.

        Parameters
        ----------
        path : str or path-like
            The file: a table in CSV, JSONL or Parquet, by the suffix of its name. It
            may exist.
        what : {"labels", "answers", "open", "pool"}, default="labels"
            "labels" writes the label of each labeled item, "answers" the answer of
            each annotator in a row of its own, and "open" the items that wait for an
            answer, with an empty `label` to fill in for `import_labels`. "pool" writes
            all items: labeled ones and their copies with their label, the others with
            that of the newest model. It has the columns `label_source` ("person" or
            "model"), `prediction` and `probability`, too.
        format : {"label-studio", "prodigy", "argilla", "doccano"}, default=None
            The program: Label Studio (JSON), Prodigy (JSONL), Argilla (JSON records) or
            doccano (JSONL). Defaults to a table. "labels" and "answers" are then the
            same.
        columns : callable, default=None
            Called with the id of an item; returns a dict of name to cell. These become
            the last columns of the table. A name that it has already gets ``task_`` in
            front.

        Notes
        -----
        Argilla identifies people by UUID, so one is made of each name, and the names
        are in ``metadata``, as are those of people who skipped an item: a discarded
        response without a value does not load there. doccano has no skips. Label Studio
        identifies people by the email addresses of its users, and refuses a file with
        an unknown one.

        Only JSONL can hold half of a surrogate pair, and Parquet holds `int` of at most
        64 bits. An export that is impossible raises an error. JSONL and Parquet keep
        types, and the cells of a CSV file have none.

        The predictions of "pool" are blank until a model was trained since the session
        was opened; `refit` trains one.
        """
        check_path("path", path)
        check_option("what", what, ("labels", "answers", "open", "pool"))
        predictions = None
        if what == "pool" and format is None:  # answers need not wait for this
            model, X = self._core.models.newest(), self._state.pool.X
            predicted = predict_labels(model.learner, X, model.classes, self.target)
            predictions = predicted[:2]
        with self._lock:
            if not self._core.journal.closed:
                self._core.journal.sync()
            if format is None:
                export_table(path, what, self._state, predictions, columns)
            else:
                export_format(path, what, format, self._state)

    # Insights -------------------------------------------------------------------------

    def suspicious(self, n_items: int = 10) -> list[tuple[str | int, Any, Any, float]]:
        """Return answers that the other answers contradict, most doubtful first.

        Each answer is compared with the probabilities of a model that was trained
        without it, as confident learning does: an answer is doubtful if another class
        reaches the mean probability that its own items have. The order is that of the
        difference between the probabilities of the answer and of the best class. An
        answer of several classes is as doubtful as its most doubtful class. The number
        of a regressor is doubtful if its residual is above 3 median ones. Texts that
        the audit can draw are left out, as nothing is predicted for them.

        Parameters
        ----------
        n_items : int, default=10
            Largest number of answers.

        Returns
        -------
        found : list of (id, label, predicted, probability)
            The predicted class, with its probability; of several classes that of the
            most doubtful one, and for a regressor the residual in median ones. Empty if
            there are too few labels, or no answer is doubtful.

        Raises
        ------
        TypeError
            If the estimator of the learner is a classifier without `predict_proba`.

        Notes
        -----
        Five models are trained, on four fifths of the labels each. Features that need
        no training are computed once. A `SelfTraining` trains its `estimator` on the
        labels alone, with a temperature that fits them: this finds as many wrong labels
        in a fraction of the time. Other threads can record answers meanwhile.

        References
        ----------
        C. G. Northcutt, L. Jiang, I. L. Chuang (2021). Confident learning: estimating
        uncertainty in dataset labels. Journal of Artificial Intelligence Research.

        A. Thyagarajan, E. Snorrason, C. Northcutt, J. Mueller (2022). Identifying
        incorrect annotations in multi-label classification data. arXiv:2211.13895.
        """
        check_count("n_items", n_items)
        return find_doubtful(self._core)[0][:n_items]

    def estimate(
        self, n_labels: int | None = None, *, horizon: int = 100, blind: bool = True
    ) -> Estimate:
        """Return how accurate the model is now, and what more labels would add.

        Parameters
        ----------
        n_labels : int, default=None
            Number of labels that are wanted, for the minutes that are left. Defaults to
            the `n_labels` of the session.
        horizon : int, default=100
            Number of further labels whose gain is estimated.
        blind : bool, default=True
            Whether the audit has only answers before which nothing of a machine was
            shown; see `prevalence`.

        Returns
        -------
        estimate : Estimate
            Its `str` is one line. Intervals are of 95 %, and None stands for what the
            labels do not show yet. The attributes are:

            - `n_labels`: number of labels.
            - `accuracy`, `accuracy_interval`: those of `quality`, for all items of the
              pool, each predicted by a model without its label.
            - `n_audited`: number of items of the audit, a random sample, that the
              accuracy is from. With 0, the accuracy is that of cross-validation on all
              labeled items. It is too low for the pool if these were chosen because
              they are hard.
            - `horizon`: number of labels that the gain is for.
            - `gain`, `gain_interval`: gain in accuracy by the next `horizon` labels.
            - `gain_from`: with fewer labels than this, there is no gain yet.
            - `minutes`: time for the labels that are still wanted, at the median time
              per answer.

        Raises
        ------
        TypeError
            If the estimator of the learner is no classifier with `predict_proba`, or
            the target is not "single-label".

        Notes
        -----
        Models are trained without one fifth of the labels each. Without ten items of
        the audit, the accuracy is that of their predictions for all labeled items. In a
        small pool, a strategy leaves easy items, and the model is more accurate on
        these than on the pool. The gain is estimated from how much the
        calibrated predictions for unlabeled items change when a fifth of the labels is
        left out. Accuracy is taken to be a - b / n for n labels. A gain is not
        estimated with fewer than 40 labels, 10 per class or 1.5 for each label of the
        horizon, or if the model does not beat the most frequent class.
        """
        n_labels = self._n_labels if n_labels is None else n_labels
        if n_labels is not None:
            check_count("n_labels", n_labels)
        check_count("horizon", horizon)
        if self.target != "single-label":
            raise TypeError(
                "estimate needs labels of one class for each item, got "
                f"{self.target} labels. Score the model on a labeled test set."
            )
        return assess(self._core, n_labels, horizon, blind)[0]

    def prevalence(
        self,
        groups: Any = None,
        confidence_level: float = 0.95,
        *,
        blind: bool = True,
    ) -> Prevalence | MeanEstimate:
        """Estimate the share of each class in the pool, or the mean of its numbers.

        The sample is the audit, and the predictions of the model are the proxy: those
        of labeled items are by models that lack their label.

        Parameters
        ----------
        groups : sequence of length n_pool, default=None
            The group of each item of the pool, in its order. Shares are estimated for
            each group on its own.
        confidence_level : float, default=0.95
            Confidence level of each interval.
        blind : bool, default=True
            Whether to use only answers before which nothing of a machine was shown. If
            the audit has others, the estimates are then about the texts that were not
            answered with help.

        Returns
        -------
        prevalence : Prevalence or MeanEstimate
            A MeanEstimate for regression. See :mod:`skactive.estimation`. Texts that
            were skipped, and copies of texts, are not of the pool. Values are None with
            fewer than ten labels.

        Raises
        ------
        ValueError
            If the groups are not one for each item, or there is no sample.

        Warns
        -----
        UserWarning
            If answers of the audit are left out.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.feature_extraction.text import TfidfVectorizer
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from skactive import ActiveLearner, LabelingSession
        >>> model = make_pipeline(TfidfVectorizer(), LogisticRegression())
        >>> learner = ActiveLearner(model, random_state=0)
        >>> texts = [f"{'good' if i % 3 else 'bad'} film {i}" for i in range(300)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with LabelingSession(learner, texts, folder, audit_every=2) as session:
        ...         for _ in range(6):
        ...             ids = session.ask(10).ids
        ...             session.tell(ids, ["no" if i % 3 == 0 else "yes" for i in ids])
        ...         shares = session.prevalence()
        >>> list(shares.estimates)
        [(None, 'no'), (None, 'yes')]
        """
        return find_prevalence(self._core, groups, confidence_level, blind)

    def quality(
        self, confidence_level: float = 0.95, *, blind: bool = True
    ) -> QualityEstimate:
        """Estimate how good the model is on the pool, in all and for each class.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of each interval.
        blind : bool, default=True
            Whether to use only answers before which nothing of a machine was shown; see
            `prevalence`.

        Returns
        -------
        quality : QualityEstimate
            Accuracy, F1 scores, overconfidence, precision and recall from the audit.

        Raises
        ------
        ValueError
            If there is no model yet.
        TypeError
            For regression.
        """
        return find_quality(self._core, confidence_level, blind)

    @synchronized
    def agreement(self) -> Agreement:
        """Return how much the annotators agree on items that several answered.

        With an audit and `overlap`, these are items that the audit drew for two people,
        and the first answers, which were given without knowledge of each other.

        Returns
        -------
        agreement : Agreement
            Its `str` is one line. The second of a pair may be a machine; the other
            values are of people only.

        See Also
        --------
        skactive.estimation.measure_agreement : The same from answers in a dict.
        """
        answers, machines = list_first(self._core), self.machine_answers
        target: Any = self.target
        return measure_agreement(answers, target=target, machines=machines)

    def compare(self, annotator: Any) -> MachineComparison:
        """Compare a machine with the people of the session, on blind answers only.

        Parameters
        ----------
        annotator : annotator or str
            A machine that `annotate` asked, or its name.

        Returns
        -------
        comparison : MachineComparison
            `quality`, how good its answers are for the pool, in all and for each class,
            from the audit; `agreement` with each person, from all items; and
            `replaces`, whether it may replace people, from all items that several
            people answered.

        Raises
        ------
        ValueError
            If there is no such machine, or the audit has no answers to compare with.
        TypeError
            For regression.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.feature_extraction.text import TfidfVectorizer
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from skactive import ActiveLearner, LabelingSession
        >>> from skactive.annotators import ColumnAnnotator
        >>> model = make_pipeline(TfidfVectorizer(), LogisticRegression())
        >>> learner = ActiveLearner(model, random_state=0)
        >>> texts = [f"{'good' if i % 3 else 'bad'} film {i}" for i in range(60)]
        >>> machine = ColumnAnnotator(texts, ["yes", "no", "yes"] * 20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with LabelingSession(learner, texts, folder, audit_every=1) as session:
        ...         n = session.annotate(machine)
        ...         ids = session.ask(30).ids
        ...         session.tell(ids, ["no" if i % 3 == 0 else "yes" for i in ids])
        ...         comparison = session.compare(machine)
        >>> comparison.quality.accuracy.n_labels
        30
        """
        return compare(self._core, annotator)

    @synchronized
    def close(self) -> None:
        """Release the folder; harmless if repeated. `labels` can still be read.

        A machine that answers in another thread is sent no more texts, and the requests
        of a `ChatAnnotator` end at once.
        """
        self._core.close()
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __repr__(self):
        return (
            f"LabelingSession({self.folder!r}: {len(self._state.answers)} of "
            f"{len(self._state.pool)} labeled)"
        )
