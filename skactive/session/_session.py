"""What a session asks about at once."""

import json
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .._storage._fingerprint import hash_items
from .._storage._versions import warn_of_versions
from .._utils._containers import take_rows
from .._utils._sklearn import check_bool, check_count, check_path
from .._utils._threads import synchronized
from ._journal import Journal
from ._manifest import (
    choose_seed,
    describe_learner,
    find_changes,
    follow_pool,
    new_manifest,
)
from ._models import Models, check_refit, choose, fresh_learner, seeded_for
from ._pool import Batch, Pool, find_taught, shorten
from ._state import (
    State,
    check_annotator,
    check_classes,
    check_n,
    kind_of,
    normalize_labels,
    warn_of_new_classes,
)
from ._tables import ReadingMixin, import_table


class AnsweringMixin:
    """The part of a session that takes answers."""

    @synchronized
    def tell(self, ids, labels=None, *, unasked=False, annotator=None):
        """Give labels; they are on the disk when this returns.

        A batch can be answered in parts and in any order. A new label by the same
        annotator replaces the one before; both stay in the item's history. Labels by
        several annotators are kept side by side, see `answers`; the majority of the
        annotators settles the label of the item, and of a tie the last answer.

        Parameters
        ----------
        ids : sequence of ids, Batch, one id, or dict of id to label
        labels : sequence of labels, or one label
            `str`, `int` or `bool`; numbers for a regressor. Left out where `ids` is a
            dict.
        unasked : bool, default=False
            Whether items that were never asked may be among them.
        annotator : str, default=None
            Who says so; None means the session's.

        Raises
        ------
        ValueError
            If an id is unknown, occurs twice or was never asked, or a label is missing
            or none of `classes`; an empty string is a missing label. Nothing was then
            recorded.
        TypeError
            If labels are of several kinds, or ids or labels are in no order, as in a
            set.
        OSError
            If the disk is full or fails. Nothing was then recorded; repeat the call.
        RuntimeError
            If the folder was deleted, replaced or changed by another program. The
            label is then not acknowledged.

        Warns
        -----
        UserWarning
            If a label is a new class that looks like another one.
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
        labels = self._read_labels(labels, ids)
        is_new = self._check_asked(ids, unasked)
        self._record(
            "tell",
            ids=ids,
            labels=labels,
            by=self._who(annotator),
            unasked=True if is_new else None,
        )
        self._models.prepare()

    @synchronized
    def skip(self, ids, *, unasked=False, annotator=None):
        """Set items aside; they are not asked again. A label can still be told.

        Parameters
        ----------
        ids : sequence of ids, or one id
            Items without a label.
        unasked : bool, default=False
            Whether items that were never asked may be among them.
        annotator : str, default=None
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
        self._record(
            "skip", ids=ids, by=self._who(annotator), unasked=True if is_new else None
        )

    @synchronized
    def release(self, ids=None, *, annotator=None):
        """Give open items back to the pool, to be asked again when it is their turn.

        Parameters
        ----------
        ids : sequence of ids, or one id, default=None
            None means all open items.
        annotator : str, default=None
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
    def undo(self, *, annotator=None):
        """Take back the last `tell`, `skip` or `release` that still holds.

        Its items wait for an answer again if they were asked, and come first at the
        next `ask`. Called again, it takes back the one before. Nothing is erased: the
        journal keeps both.

        Returns
        -------
        undone : dict
            The event that was taken back: `event`, `ids`, `labels` if it had any.

        Raises
        ------
        ValueError
            If there is nothing to take back.
        """
        self._sync()
        if not self._state.undoable:
            raise ValueError("there is nothing to undo: no answer holds.")
        last = self._state.undoable[-1]
        self._record(
            "undo", of=last["seq"], what=last["event"], by=self._who(annotator)
        )
        for number, ids in self._state.open.items():
            if number not in self._to_show and not ids.keys().isdisjoint(last["ids"]):
                self._to_show.append(number)
        self._known_classes = None
        self._models.prepare()
        return {key: last[key] for key in ("event", "ids", "labels") if key in last}

    @synchronized
    def import_labels(
        self,
        path,
        *,
        id="id",
        label="label",
        text=None,
        annotator=None,
        ignore_unknown=False,
    ):
        """Import labels from a table, or from the folder of another session.

        An item is found by its content: the texts of the table, or the hashes that a
        session and an export of it keep. Ids tell copies of one text apart. They count
        alone where a table has no column of texts. Rows without a label are left out.
        A label that differs from the session's own is listed and not imported.

        Parameters
        ----------
        path : str or path-like
            CSV, TSV, JSONL or Parquet file, by the suffix; or the folder of a session,
            whose pool may be another one.
        id, label : str
            Names of the columns. The column of ids may be missing if there are texts.
            The cells of CSV and TSV have no types: an id is found by its `str`, and
            labels become what the session's other labels are. Without others they
            become numbers, `bool` or lists where all look like it, and otherwise
            `str`.
        text : str or pair of str, default=None
            Column of the texts, or columns of the pairs of texts. None means "text",
            or "text_1" and "text_2", if the table has them.
        annotator : str, default=None
            Who is noted for them; None means the session's.
        ignore_unknown : bool, default=False
            Whether to leave out items that the pool does not have.

        Returns
        -------
        imported : ImportedLabels
            `added`, `unchanged` and `unknown` ids, and `conflicts`: (id, the
            session's label, the file's label).

        Raises
        ------
        ValueError
            If an item is unknown or its text is another one, has two labels in the
            file, or its id in a CSV file looks like another id of the pool. Nothing
            was then recorded.
        """
        self._sync()
        check_bool("ignore_unknown", ignore_unknown)
        who = self._who(annotator)
        texts = [
            ("text", name)
            for name in (
                ()
                if text is None
                else text
                if isinstance(text, list | tuple)
                else [text]
            )
        ]
        for name, column in (("id", id), ("label", label), *texts):
            if not isinstance(column, str):
                raise TypeError(
                    f"{name!r} must be the name of a column, as str; got {column!r}."
                )
        imported, labels = import_table(
            path,
            id,
            label,
            text,
            self._pool,
            self._state.answers,
            self._kind() or (self.classes and kind_of(self.classes[0])),
            ignore_unknown,
        )
        if labels:
            ids = list(labels)
            labels = self._read_labels(list(labels.values()), ids)
            self._record(
                "tell",
                ids=ids,
                labels=labels,
                by=who,
                unasked=True if self._check_asked(ids, True) else None,
                source=Path(path).name,
            )
            self._models.prepare()
        return imported

    def _check_asked(self, ids, unasked):
        """Refuse what was never asked unless that is wanted; say if there is any."""
        known = self._state.asked, self._state.answers
        never = [id for id in ids if not any(id in where for where in known)]
        if never and not unasked:
            raise ValueError(
                f"'ids' must be items that were asked, got {shorten(never)}, which "
                "never were. Pass unasked=True if that is meant. Nothing was recorded."
            )
        return bool(never)

    def _read_labels(self, labels, ids):
        labels = normalize_labels(labels, ids, self._kind(), self.classes)
        told = {label for label in labels if isinstance(label, str)}
        if self.classes is None and not told <= (self._known_classes or set()):
            given = self._state.answers.values()
            known = self._classes_before | {str(answer.label) for answer in given}
            warn_of_new_classes(labels, known, stacklevel=4)
            self._known_classes = known | told
        return labels

    def _kind(self):
        """Name the kind of the labels so far, or None."""
        for answer in self._state.answers.values():
            return kind_of(answer.label)
        return self._kind_before


class LabelingSession(AnsweringMixin, ReadingMixin):
    """Label a pool with the help of a learner; every answer is on the disk at once.

    `ask` gives the next items, `tell` takes their labels. Both are written to a
    journal before they count. A process can be killed at any instant; the same call
    opens the session again. Threads may share a session.

    Parameters
    ----------
    learner : ActiveLearner
        Says what to ask; it is copied. Labels it was fitted to are trained on as
        well. With the same `random_state`, a session asks what a loop of `query` and
        `teach` asks.
    X_pool : container of n items
        What `learner` takes.
    path : str or path-like
        A folder: a new one, or that of a session to go on with.
    ids : sequence of str or int, default=None
        Names of the items. None takes the index of a pandas object, and otherwise
        positions. When the session is opened again, items with ids are found by id,
        and their content must be the same; items known by position are found by
        content.
    refit : bool or "background", default=True
        When to train. True: on all labels before each `ask` that follows new ones.
        False: only when `refit` is called. "background": in a thread while the next
        batch is labeled; `ask` uses the newest model that is ready, and waits only for
        the first.
    annotator : str, default=None
        Who answers; noted with every event.
    classes : sequence of labels, default=None
        The labels that are allowed. They are kept in the folder; None takes those.
        Without any, a new class that looks like another one brings a warning.
    n_labels : int, default=None
        Number of labels that is the target of the bar; None means the whole pool.
    verbose : int, default=0
        Whether to show a bar of the labels, with the model's age.

    Attributes
    ----------
    labels : dict of id to label
        The present labels, in the order in which the items got their first one.
    answers : dict of id to dict of annotator to label
        The last label by each annotator.
    classes : list or None
        The labels that are allowed.
    skipped : list of ids
    open_batches : list of Batch
        Items asked and not yet answered, by batch.
    learner : ActiveLearner
        The present model; with `refit=True` trained on all labels.
    model_age : int
        How many labels the model does not know as they are now.
    path : str
        The folder.

    Raises
    ------
    LockedError
        If the session is open elsewhere, a `RuntimeError` that says where.
    ValueError
        If a labeled item is missing from the pool or an item changed, ids are not
        unique, or a file is damaged or missing, naming it.
    FileExistsError
        If the folder holds something else.
    OSError
        If the folder cannot be written; `skactive.session.read_labels` reads it.

    Warns
    -----
    UserWarning
        If the last line of the journal was torn, or `learner` is not the one that the
        session went by so far.

    See Also
    --------
    skactive.simulate : The same with labels that are known.
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
        learner,
        X_pool,
        path,
        ids=None,
        *,
        refit=True,
        annotator=None,
        classes=None,
        n_labels=None,
        verbose=0,
    ):
        if not (hasattr(learner, "query") and hasattr(learner, "teach")):
            raise TypeError(
                f"'learner' must be an ActiveLearner, got {learner!r}. Wrap an "
                "estimator: ActiveLearner(estimator)."
            )
        check_refit(refit)
        check_path("path", path)
        if n_labels is not None:
            check_count("'n_labels'", n_labels)
        classes = check_classes(classes)
        self._annotator = check_annotator(annotator)
        # `_lock` guards the state. Training and choosing hold only `_choosing`, so that
        # no answer waits for them. Whoever needs both takes `_choosing` first.
        self._lock, self._choosing = threading.RLock(), threading.RLock()
        self._pool = Pool(X_pool, ids)
        self._state = State(self._pool)
        self._bar = None
        self._journal = Journal(path)
        try:
            self._begin_or_resume(learner, classes)
            seed = self._journal.manifest["base_seed"]
            base = fresh_learner(learner, seed)
            taught = getattr(learner, "X_labeled_", ())
            self._taught = find_taught(pool=self._pool, contents=hash_items(taught))
            known = getattr(learner, "y_labeled_", None)
            self._kind_before = None if known is None else kind_of(known[0])
            self._classes_before = set() if known is None else set(map(str, known))
            self._known_classes = None
            self._models = Models(
                base, self._pool, self._journal, self._state, refit, self._lock
            )
            # What was open is shown again, as if nothing had happened since.
            self._to_show = list(self._state.open)
            self._models.prepare()
            if isinstance(verbose, bool):  # as scikit-learn takes it
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
                f"'learner' is not the one that this session went by so far; it "
                f"differs in {'; '.join(changes)}. It is noted in the journal, and "
                "the next batches follow it.",
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

    def ask(self, n=None, *, annotator=None, refit=None):
        """Choose the next items; they are in the journal before they are shown.

        Items that wait for an answer are not asked again. A text that occurs several
        times in the pool is asked once. Items that the learner was taught before the
        session are not asked. After a session was opened again, the batches that were
        open are given out once more before any new one, with the items that are left
        of them.

        Parameters
        ----------
        n : int, default=None
            How many items; None means the learner's `batch_size`.
        annotator : str, default=None
            Whom to ask; None means the session's.
        refit : bool or "background", default=None
            In place of the session's `refit`, this once.

        Returns
        -------
        batch : Batch
            Empty, and so false, when nothing is left to ask.

        Raises
        ------
        ValueError
            If `n` is below 1, or the strategy returns invalid positions.
        OSError
            If the disk fails. Nothing was then asked; asked again, it will be the same.
        """
        annotator = self._who(annotator)
        n = check_n(n)
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
                picks = choose(learner, self._pool, n, free)
                with self._lock:
                    self._sync()
                    # Another thread may have answered some by now.
                    if seq == self._state.seq or self._free()[picks].all():
                        return self._record_batch(picks, annotator, model)

    @synchronized
    def _show_again(self, annotator):
        """Give a batch that was open when the session was opened, or None."""
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

    def refit(self):
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

    @synchronized
    def close(self):
        """Let go of the folder; harmless if repeated. `labels` can still be read."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if hasattr(self, "_models"):
            self._models.stop()
        self._journal.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def _sync(self):
        """Take in what an interruption kept from being taken in."""
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

    def _free(self):
        """Mask what may be asked: one copy of each text, unless one was dealt with.

        Dealt with are items that are labeled, skipped or waiting, and those that the
        learner was taught before.
        """
        state, copies = self._state, self._pool.copies
        taken = np.zeros(len(self._pool), dtype=bool)
        taken[copies[self._taught]] = True
        for ids in (state.answers, state.skipped, *state.open.values()):
            taken[copies[self._pool.positions(ids)]] = True
        return (copies == np.arange(len(copies))) & ~taken

    def _open_bar(self, total):
        from tqdm import tqdm

        n = len(self._state.answers)
        self._bar = tqdm(desc="labels", total=total, initial=n, unit="label")
