"""A labeling session: ask people for labels, and keep every answer."""

import json
import threading
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from .._storage._fingerprint import hash_items, warn_of_versions
from .._utils._containers import check_n_queries, take_rows
from .._utils._sklearn import check_bool, check_count, check_path
from .._utils._threads import synchronized
from ..simulation._run import Run
from ._encoding import make_encoder
from ._import_export import ImportedLabels, export_table, import_table
from ._journal import Journal
from ._manifest import (
    choose_seed,
    describe_learner,
    find_changes,
    follow_pool,
    new_manifest,
)
from ._models import Models, check_refit, fresh_learner, seeded_for
from ._pool import Batch, Pool, find_taught, shorten
from ._state import (
    State,
    Vocabulary,
    check_annotator,
    check_classes,
    list_history,
    normalize_labels,
)


class LabelingSession:
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
    path : str or path-like
        A new folder, or the folder of a session to continue.
    ids : sequence of str or int, default=None
        Ids of the items. Defaults to the index of a pandas object, and otherwise to
        positions. When the session is opened again, items with ids are found by id,
        and their content must be unchanged; items known by position are found by
        content.
    refit : bool or "background", default=True
        When to train. True: on all labels before each `ask` that follows new ones.
        False: only when `refit` is called. "background": in a thread while the next
        batch is labeled; `ask` uses the newest model that is ready, and waits only for
        the first one.
    encode : "background", default=None
        Whether to compute the features of the pool in a thread, so that the first `ask`
        need not wait for them. Until all are there, items are chosen among those that
        have features, and the first ones at random. It has an effect if the front steps
        of the learner's pipeline need no training, such as `BertFeatures`.
    annotator : str, default=None
        Name of the person who answers. It is recorded with every event.
    classes : sequence of labels, default=None
        The allowed labels. They are kept in the folder, and None uses those. Without
        any, a new class that resembles a known one causes a warning.
    n_labels : int, default=None
        Number of labels at which the progress bar ends. Defaults to the whole pool.
    verbose : int, default=0
        Whether to show a progress bar of the labels, with the age of the model.

    Attributes
    ----------
    labels : dict of id to label
        The current labels, in the order in which the items were first labeled.
    answers : dict of id to dict of annotator to label
        The last label by each annotator.
    classes : list or None
        The allowed labels.
    skipped : list of ids
        Items that were skipped.
    open_batches : list of Batch
        Items that were asked and not yet answered, by batch.
    learner : ActiveLearner
        The current model. With `refit=True` it is trained on all labels.
    model_age : int
        Number of items whose current label the model was not trained on.
    newest_learner : ActiveLearner or None
        The newest model that is trained, without waiting for another.
    encoded : float
        Share of the pool that has features, from 0 to 1; see `encode`.
    run : Run
        The answers so far as rounds, for stopping rules.
    path : str
        The folder.

    Raises
    ------
    LockedError
        If the session is open elsewhere: a `RuntimeError` that names the process.
    ValueError
        If a labeled item is missing from the pool or an item changed, ids are not
        unique, or a file is damaged or missing. The error names it.
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

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skactive import ActiveLearner, LabelingSession
    >>> X_pool = [[-3.0], [-2.0], [-0.5], [0.5], [2.0], [3.0]]
    >>> learner = ActiveLearner(LogisticRegression(), batch_size=2, random_state=0)
    >>> ids = ["a", "b", "c", "d", "e", "f"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LabelingSession(learner, X_pool, folder, ids) as session:
    ...         session.tell(["a", "f"], ["cold", "warm"], unasked=True)
    ...         asked = session.ask().ids
    ...     with LabelingSession(learner, X_pool, folder, ids) as session:
    ...         again = session.ask().ids
    ...         labels = session.labels
    >>> asked == again
    True
    >>> sorted(asked), labels
    (['c', 'd'], {'a': 'cold', 'f': 'warm'})
    """

    def __init__(
        self,
        learner: Any,
        X_pool: Any,
        path: str | PathLike[str],
        ids: Sequence[str | int] | None = None,
        *,
        refit: bool | Literal["background"] = True,
        encode: Literal["background"] | None = None,
        annotator: str | None = None,
        classes: Sequence[Any] | None = None,
        n_labels: int | None = None,
        verbose: int = 0,
    ) -> None:
        if not (hasattr(learner, "query") and hasattr(learner, "teach")):
            raise TypeError(
                f"'learner' must be an ActiveLearner, got {learner!r}. Wrap an "
                "estimator: ActiveLearner(estimator)."
            )
        check_refit(refit)
        check_path("path", path)
        if n_labels is not None:
            check_count("n_labels", n_labels)
        classes = check_classes(classes)
        self._annotator = check_annotator(annotator)
        # `_lock` guards the state. Training and choosing hold only `_choosing`, so that
        # answers need not wait for them. `_choosing` is always acquired first.
        self._lock, self._choosing = threading.RLock(), threading.RLock()
        self._pool = Pool(X_pool, ids)
        self._state = State(self._pool)
        self._bar: Any = None
        self._models: Any = None
        self._journal = Journal(path)
        try:
            self._begin_or_resume(learner, classes)
            seed = self._journal.manifest["base_seed"]
            base = fresh_learner(learner, seed)
            taught = getattr(learner, "X_labeled_", ())
            self._taught = find_taught(self._pool, hash_items(taught))
            self._vocabulary = Vocabulary(getattr(learner, "y_labeled_", None))
            encoder = make_encoder(encode, learner.estimator, self._pool, seed)
            self._models = Models(
                *(base, self._pool, self._journal, self._state, refit, self._lock),
                encoder,
            )
            # Batches that were open are shown once more before any new one.
            self._to_show = list(self._state.open)
            self._models.prepare()
            if isinstance(verbose, bool):  # scikit-learn accepts it, too
                verbose = int(verbose)
            if check_count("verbose", verbose, least=0):
                self._open_bar(n_labels or len(self._pool))
        except BaseException:
            self.close()
            raise

    def _begin_or_resume(self, learner, classes):
        journal, pool = self._journal, self._pool
        if journal.manifest is None:
            journal.begin(*new_manifest(learner, pool, classes))
            return
        warn_of_versions(journal.manifest.get("versions", {}))
        follow_pool(journal, pool)
        choose_seed(learner, journal.manifest["base_seed"])
        self._state.fold(journal.events)
        description = json.loads(json.dumps(describe_learner(learner)))
        before = self._state.learner or journal.manifest["learner"]
        if changes := find_changes(before, description):
            warnings.warn(
                "'learner' is not the one that this session used so far; it differs in "
                f"{'; '.join(changes)}. This is noted in the journal, and the next "
                "batches use the new one.",
                UserWarning,
                stacklevel=3,
            )
            self._record("learner", learner=description)
        if classes is not None and classes != self.classes:
            labels = self._state.answers
            normalize_labels(
                [a.label for a in labels.values()], list(labels), None, classes
            )
            self._record("classes", classes=classes)

    # Questions ------------------------------------------------------------------------

    def ask(
        self,
        n: int | None = None,
        *,
        annotator: str | None = None,
        refit: bool | Literal["background"] | None = None,
    ) -> Batch:
        """Choose the next items; they are in the journal before they are returned.

        Items that wait for an answer are not asked again. A text that occurs several
        times in the pool is asked once. Items that the learner was fitted to before
        the session are not asked. After a session was opened again, the batches that
        were open are returned once more before any new one, with their remaining
        items.

        Parameters
        ----------
        n : int, default=None
            Number of items. Defaults to the `batch_size` of the learner.
        annotator : str, default=None
            Name of the person who is asked. Defaults to the annotator of the session.
        refit : bool or "background", default=None
            Overrides the `refit` of the session for this call.

        Returns
        -------
        batch : Batch
            Empty, and so false, when no item is left.

        Raises
        ------
        ValueError
            If `n` is below 1, or the strategy returns invalid positions.
        OSError
            If the disk fails. Nothing was then asked; the next call asks for the same.
        """
        annotator = self._who(annotator)
        n = check_n_queries(n, None, name="n")
        with self._choosing:
            if (batch := self._show_again(annotator)) is not None:
                return batch
            model = self._models.get(refit)
            while True:
                with self._lock:
                    seq, free = self._state.seq, self._free()
                if not free.any():
                    items = take_rows(self._pool.X, np.empty(0, dtype=np.intp))
                    return Batch((), items, None, annotator)
                learner = seeded_for(model.learner, len(self._state.batches) + 1)
                picks = self._models.choose(learner, n, free)
                with self._lock:
                    self._sync()
                    # Another thread may have answered some in the meantime.
                    if seq == self._state.seq or self._free()[picks].all():
                        return self._record_batch(picks, annotator, model)

    @synchronized
    def _show_again(self, annotator):
        """Return a batch that was open when the session was opened, or None."""
        self._sync()
        for number in self._to_show:
            if number in self._state.open and annotator == self._whom(number):
                self._to_show.remove(number)
                return self._batch(number)
        return None

    def _record_batch(self, picks, annotator, model):
        number = len(self._state.batches) + 1
        self._record(
            "ask",
            batch=number,
            ids=[self._pool.ids[pick] for pick in picks],
            by=annotator,
            n_labeled=len(self._state.answers),
            model=model.seq,
        )
        return self._batch(number)

    def _free(self):
        """Return a mask (n,) of the items that may be asked.

        Of several copies of a text, only the first may be, and only if no copy is
        labeled, skipped, waiting, or known to the learner from before the session.
        """
        state, copies = self._state, self._pool.copies
        taken = np.zeros(len(self._pool), dtype=bool)
        taken[copies[self._taught]] = True
        for ids in (state.answers, state.skipped, *state.open.values()):
            taken[copies[self._pool.positions(ids)]] = True
        return (copies == np.arange(len(copies))) & ~taken

    def refit(self) -> Self:
        """Train on all labels now.

        Returns
        -------
        self : LabelingSession
        """
        with self._choosing:
            with self._lock:
                self._sync()
                if not self._state.answers:
                    raise ValueError("there is no label to train on. Tell one first.")
            model = self._models.train_now()
            with self._lock:
                self._sync()
                self._record("refit", model=model.seq)
                self._models.use(model)
        return self

    # Answers --------------------------------------------------------------------------

    @synchronized
    def tell(
        self,
        ids: Any,
        labels: Any = None,
        *,
        unasked: bool = False,
        annotator: str | None = None,
    ) -> None:
        """Record labels; they are on the disk when this returns.

        A batch can be answered in parts and in any order. A new label by the same
        annotator replaces the previous one; both stay in the history of the item.
        Labels by several annotators are kept side by side, see `answers`. The label of
        the item is that of the majority, and in a tie the last one.

        Parameters
        ----------
        ids : sequence of ids, Batch, one id, or dict of id to label
            The labeled items.
        labels : sequence of labels, or one label
            One `str`, `int` or `bool` for each id; numbers for a regressor. Omitted if
            `ids` is a dict.
        unasked : bool, default=False
            Whether to accept items that were never asked.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.

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
        self._sync()
        check_bool("unasked", unasked)
        if isinstance(ids, Mapping) and labels is None:
            ids, labels = list(ids), list(ids.values())
        elif isinstance(ids, str | int | np.generic):
            if isinstance(labels, list | tuple | np.ndarray) and len(labels) == 1:
                raise TypeError(
                    f"'labels' must be one label for the one id {ids!r}, got "
                    f"{labels!r}. Pass the label itself, or a list of ids too. Nothing "
                    "was recorded."
                )
            ids, labels = [ids], [labels]
        ids = self._pool.read_ids(ids)
        labels = self._vocabulary.read(labels, ids, self._state, self.classes)
        self._record(
            "tell",
            ids=ids,
            labels=labels,
            by=self._who(annotator),
            unasked=self._check_asked(ids, unasked),
        )
        self._models.prepare()

    @synchronized
    def skip(
        self, ids: Any, *, unasked: bool = False, annotator: str | None = None
    ) -> None:
        """Set items aside; they are not asked again, but can still be labeled.

        Parameters
        ----------
        ids : sequence of ids, or one id
            Items without a label.
        unasked : bool, default=False
            Whether to accept items that were never asked.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.
        """
        self._sync()
        check_bool("unasked", unasked)
        ids = self._pool.read_ids(ids)
        labeled = [id for id in ids if id in self._state.answers]
        if labeled:
            raise ValueError(
                f"'ids' must be items without a label to be skipped, got "
                f"{shorten(labeled)}. Tell another label, or undo. Nothing was "
                "recorded."
            )
        is_new = self._check_asked(ids, unasked)
        self._record("skip", ids=ids, by=self._who(annotator), unasked=is_new)

    @synchronized
    def release(self, ids: Any = None, *, annotator: str | None = None) -> None:
        """Return open items to the pool; they may be asked again.

        Parameters
        ----------
        ids : sequence of ids, or one id, default=None
            Items to release. Defaults to all open items.
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.
        """
        self._sync()
        waiting = {id: None for batch in self._state.open.values() for id in batch}
        ids = list(waiting) if ids is None else self._pool.read_ids(ids)
        if others := [id for id in ids if id not in waiting]:
            raise ValueError(
                f"'ids' must be items of open batches, got {shorten(others)}. Nothing "
                "was recorded."
            )
        if ids:
            self._record("release", ids=ids, by=self._who(annotator))

    @synchronized
    def undo(self, *, annotator: str | None = None) -> dict[str, Any]:
        """Undo the last `tell`, `skip` or `release` that was not undone.

        Its items wait for an answer again if they were asked, and the next `ask`
        returns them first. A second call undoes the event before. Nothing is erased:
        the journal keeps both.

        Parameters
        ----------
        annotator : str, default=None
            Name of the annotator. Defaults to the annotator of the session.

        Returns
        -------
        undone : dict
            The event that was undone: `event`, `ids`, and `labels` if it had any.

        Raises
        ------
        ValueError
            If there is nothing to undo.
        """
        self._sync()
        if not self._state.undoable:
            raise ValueError("there is nothing to undo: no answer is left.")
        last = self._state.undoable[-1]
        self._record(
            "undo", of=last["seq"], what=last["event"], by=self._who(annotator)
        )
        for number, ids in self._state.open.items():
            if number not in self._to_show and not ids.keys().isdisjoint(last["ids"]):
                self._to_show.append(number)
        self._vocabulary.forget()
        self._models.prepare()
        return {key: last[key] for key in ("event", "ids", "labels") if key in last}

    @synchronized
    def import_labels(
        self,
        path: str | PathLike[str],
        *,
        id: str = "id",
        label: str = "label",
        text: str | Sequence[str] | None = None,
        annotator: str | None = None,
        ignore_unknown: bool = False,
    ) -> ImportedLabels:
        """Import labels from a table, or from the folder of another session.

        Items are matched by content: by the texts of the table, or by the hashes in
        the folder or the export of a session. Ids only distinguish copies of one text.
        In a table without a column of texts, items are matched by id. Rows without a
        label are ignored. A label that differs from the label in the session is listed
        and not imported.

        Parameters
        ----------
        path : str or path-like
            CSV, TSV, JSONL or Parquet file, by its suffix; or the folder of a session,
            whose pool may be another one.
        id, label : str
            Names of the columns. The column of ids may be missing if there are texts.
            The cells of CSV and TSV have no types: an id is found by its `str`, and
            labels get the type of the other labels of the session. Without others they
            become numbers, `bool` or lists if all cells look like it, and otherwise
            `str`.
        text : str or pair of str, default=None
            Column of the texts, or columns of the pairs of texts. Defaults to "text",
            or "text_1" and "text_2", if the table has them.
        annotator : str, default=None
            Name to record with the labels. Defaults to the annotator of the session.
        ignore_unknown : bool, default=False
            Whether to ignore items that are not in the pool.

        Returns
        -------
        imported : ImportedLabels
            `added`, `unchanged` and `unknown` ids, and `conflicts`: (id, label in the
            session, label in the file).

        Raises
        ------
        ValueError
            If an item is unknown or its text differs, an item has two labels in the
            file, or its id in a CSV file matches two ids of the pool. Nothing was then
            recorded.
        """
        self._sync()
        check_bool("ignore_unknown", ignore_unknown)
        who = self._who(annotator)
        kind = self._vocabulary.kind(self._state, self.classes)
        imported, labels = import_table(
            path,
            (id, label, text),
            self._pool,
            self._state.answers,
            kind,
            ignore_unknown,
        )
        if labels:
            ids, values = list(labels), list(labels.values())
            values = self._vocabulary.read(values, ids, self._state, self.classes)
            self._record(
                "tell",
                ids=ids,
                labels=values,
                by=who,
                unasked=self._check_asked(ids, True),
                source=Path(path).name,
            )
            self._models.prepare()
        return imported

    def _check_asked(self, ids, unasked):
        """Return True if an id was never asked, else None; refuse it if unwanted."""
        known = self._state.asked, self._state.answers
        never = [id for id in ids if not any(id in where for where in known)]
        if never and not unasked:
            raise ValueError(
                f"'ids' must be items that were asked, got {shorten(never)}, which "
                "never were. Pass unasked=True to label them anyway. Nothing was "
                "recorded."
            )
        return True if never else None

    # What is known --------------------------------------------------------------------

    @property
    @synchronized
    def labels(self) -> dict[str | int, Any]:
        """The current labels, dict of id to label."""
        return {id: answer.label for id, answer in self._state.answers.items()}

    @property
    @synchronized
    def answers(self) -> dict[str | int, dict[str | None, Any]]:
        """The last label by each annotator, dict of id to dict of annotator to label.

        ``pandas.DataFrame(answers).T`` is a table with a column for each annotator.
        """
        return {
            id: {given.annotator: given.label for given in answer.given}
            for id, answer in self._state.answers.items()
        }

    @property
    def classes(self) -> list[Any] | None:
        """The allowed labels, list; None allows any."""
        return self._state.classes or self._journal.manifest.get("classes")

    @property
    @synchronized
    def skipped(self) -> list[str | int]:
        """The skipped items, list of ids."""
        return list(self._state.skipped)

    @property
    @synchronized
    def open_batches(self) -> list[Batch]:
        """The batches that were asked and not fully answered, list of Batch."""
        return [self._batch(number) for number in sorted(self._state.open)]

    @property
    def learner(self) -> Any:
        """The current model; with `refit=True` trained on all labels."""
        with self._choosing:
            return self._models.get().learner

    @property
    def newest_learner(self) -> Any:
        """The newest model that is trained, without waiting for another; or None."""
        model = self._models.newest()
        return None if model is None else model.learner

    @property
    def encoded(self) -> float:
        """Share of the pool that has features, from 0 to 1; see `encode`."""
        return self._models.encoded

    @property
    @synchronized
    def model_age(self) -> int:
        """Number of items whose current label the model was not trained on."""
        return self._models.age()

    @property
    @synchronized
    def run(self) -> Run:
        """The labels so far as a :class:`skactive.simulation.Run`, without scores.

        A round holds the answers to one batch, in the order of the answers. Labels of
        items that were never asked are rounds of their own.
        """
        rounds = [
            {"asked": self._pool.positions(ids).tolist()}
            for ids in self._state.answered_by_batch()
        ]
        return Run(rounds, info={"pool_size": len(self._pool)})

    @property
    def path(self) -> str:
        """The folder."""
        return self._journal.folder

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
            In order: `seq`, `time`, `event` ("ask", "tell", "skip", "release"),
            `label` and `batch` if there is one, `annotator`, and `undone`, whether
            the event was undone.
        """
        (id,) = self._pool.read_ids([id], name="id")
        return list_history(self._journal.events, id)

    @synchronized
    def export(
        self,
        path: str | PathLike[str],
        *,
        what: Literal["labels", "answers", "open"] = "labels",
    ) -> None:
        """Write a table: CSV, JSONL or Parquet, by the suffix of its name.

        The file appears whole or not at all. Its columns are `id`, the text (`text`,
        or `text_1` and `text_2`) or else `content_hash`, `label`, `annotator` and
        `time`. In CSV, a text that a spreadsheet would run as a formula gets an
        apostrophe in front, which `import_labels` removes.

        Parameters
        ----------
        path : str or path-like
            The file. It may exist. Parquet needs pyarrow.
        what : {"labels", "answers", "open"}, default="labels"
            "labels" writes the label of each labeled item, "answers" the answer of
            each annotator in a row of its own, and "open" the items that wait for an
            answer, with an empty `label` to fill in for `import_labels`.
        """
        if not self._journal.closed:
            self._sync()
        check_path("path", path)
        export_table(path, what, self._pool, self._state)

    @synchronized
    def close(self) -> None:
        """Release the folder; harmless if repeated. `labels` can still be read."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._models is not None:
            self._models.stop()
        self._journal.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def __repr__(self):
        return (
            f"LabelingSession({self.path!r}: {len(self._state.answers)} of "
            f"{len(self._pool)} labeled)"
        )

    def _sync(self):
        """Apply events that an interruption kept from being applied."""
        self._journal.catch_up()
        self._state.fold(self._journal.events)

    def _record(self, event, **fields):
        self._journal.append(event, **fields)
        self._state.fold(self._journal.events)
        if self._bar is not None:
            self._bar.n = len(self._state.answers)
            self._bar.set_postfix(model_age=self.model_age)

    def _who(self, annotator):
        return self._annotator if annotator is None else check_annotator(annotator)

    def _batch(self, number):
        """Return the open items of a batch."""
        ids = tuple(self._state.open[number])
        items = take_rows(self._pool.X, self._pool.positions(ids))
        return Batch(ids, items, number, self._whom(number))

    def _whom(self, number):
        _, annotator = self._state.batches[number]
        return annotator

    def _open_bar(self, total):
        from tqdm import tqdm

        n = len(self._state.answers)
        self._bar = tqdm(desc="labels", total=total, initial=n, unit="label")
