"""Take answers: labels, and what a person does instead of labelling."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from skactive._params import check_bool
from skactive._threads import synchronized
from skactive.session.answers import kind_of, read_labels, warn_of_new_classes
from skactive.session.pool import shorten
from skactive.session.tables import import_table

__all__ = ["AnsweringMixin"]


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
        labels = read_labels(labels, ids, self._kind(), self.classes)
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
