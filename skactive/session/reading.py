"""What can be read from a session."""

from __future__ import annotations

from itertools import groupby

from skactive._containers import take_rows
from skactive._params import check_path
from skactive._threads import synchronized
from skactive.runs import Run
from skactive.session.batch import Batch
from skactive.session.tables import export_table

__all__ = ["ReadingMixin"]


class ReadingMixin:
    """The part of a session that changes nothing."""

    @property
    @synchronized
    def labels(self):
        """The present labels, dict of id to label."""
        return {id: answer.label for id, answer in self._state.answers.items()}

    @property
    @synchronized
    def answers(self):
        """The last label by each annotator, dict of id to dict of annotator to label.

        As a table, one column for each annotator: ``pandas.DataFrame(answers).T``.
        """
        return {
            id: {given.annotator: given.label for given in answer.given}
            for id, answer in self._state.answers.items()
        }

    @property
    def classes(self):
        """The labels that are allowed, list; None allows any."""
        return self._state.classes or self._journal.manifest.get("classes")

    @property
    @synchronized
    def skipped(self):
        """Items set aside, list of ids."""
        return list(self._state.skipped)

    @property
    @synchronized
    def open_batches(self):
        """What was asked and not answered, list of Batch."""
        return [self._batch(number) for number in sorted(self._state.open)]

    @property
    def learner(self):
        """The present model; with `refit=True` trained on all labels."""
        with self._choosing:
            return self._models.get().learner

    @property
    @synchronized
    def model_age(self):
        """How many labels the model does not know as they are now."""
        return self._models.age()

    @property
    @synchronized
    def run(self):
        """The labels so far as a :class:`skactive.runs.Run`, without scores.

        A round is what was answered of one batch, in the order of the answers; labels
        of items never asked for are rounds of their own. Stopping rules look at it.
        """
        batch_of = {}
        for number, (ids, _) in self._state.batches.items():
            batch_of.update(dict.fromkeys(ids, number))
        answered = list(self._state.answers)
        positions = self._pool.positions(answered)
        groups = groupby(range(len(answered)), lambda i: batch_of.get(answered[i]))
        rounds = [{"asked": [int(positions[i]) for i in group]} for _, group in groups]
        return Run(rounds, info={"pool_size": len(self._pool)})

    @property
    def path(self):
        """The folder."""
        return self._journal.folder

    @synchronized
    def history(self, id):
        """List what happened to an item.

        Parameters
        ----------
        id : str or int

        Returns
        -------
        events : list of dict
            In order: `seq`, `time`, `event` ("ask", "tell", "skip", "release"),
            `label` and `batch` where there is one, `annotator`, and `undone`, whether
            it was taken back.
        """
        (id,) = self._pool.read_ids([id], name="id")
        events = self._journal.events
        undone = {event["of"] for event in events if event["event"] == "undo"}
        found = []
        for event in events:
            if id not in event.get("ids", ()):
                continue
            entry = {"seq": event["seq"], "time": event["t"], "event": event["event"]}
            if "labels" in event:
                entry["label"] = event["labels"][event["ids"].index(id)]
            if "batch" in event:
                entry["batch"] = event["batch"]
            entry["annotator"] = event.get("by")
            entry["undone"] = event["seq"] in undone
            found.append(entry)
        return found

    @synchronized
    def export(self, path, *, what="labels"):
        """Write a table: CSV, JSONL or Parquet, by the suffix of its name.

        The file appears whole or not at all. Columns are `id`, the text (`text`, or
        `text_1` and `text_2`) or else `content_hash`, `label`, `annotator` and `time`.
        In CSV, a text that a spreadsheet would run as a formula gets an apostrophe in
        front, which `import_labels` takes away again.

        Parameters
        ----------
        path : str or path-like
            A file that may exist; Parquet needs pyarrow.
        what : {"labels", "answers", "open"}, default="labels"
            The label of each labeled item; or the answer of each annotator, in rows of
            their own; or the items that wait for an answer, with an empty `label` for
            someone to fill in and `import_labels` to read.
        """
        if not self._journal.closed:
            self._sync()
        check_path("path", path)
        export_table(path, what, self._pool, self._state)

    def _batch(self, number):
        """Give what is left of a batch."""
        ids = tuple(self._state.open[number])
        items = take_rows(self._pool.X, self._pool.positions(ids))
        return Batch(ids, items, number, self._whom(number))

    def _whom(self, number):
        _, annotator = self._state.batches[number]
        return annotator

    def __repr__(self):
        return (
            f"LabelingSession({self.path!r}: {len(self._state.answers)} of "
            f"{len(self._pool)} labeled)"
        )
