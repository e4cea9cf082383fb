"""A labeling session with Label Studio as its front end."""

import json
import logging
import re
import threading
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from ..._storage._files import write_atomic
from ..._storage._fingerprint import hash_item
from ..._storage._outputs import write_listed
from ..._utils._labels import predict_labels
from ..._utils._system import Closing
from ...project import AUDIT_EVERY, Trainer
from ...registry import get_strategy
from ...session import LabelingSession, read_labels
from ._client import RefusedError, UnavailableError
from ._config import read_question
from ._folder import claim, keep_options, read_json, recall_options

LOG = logging.getLogger("skactive.project")
SOURCE = "label-studio"
# An answer can become visible after another one that has a later time.
_OVERLAP = timedelta(seconds=60)
_FULL_SHARE = 10  # all tasks are read in a tenth of the time at most
_MAX_FAILURES = 5  # in a row, each after the retries of the client
_LEAST_PAUSE = 1.0  # seconds between two pulls, however often somebody wakes the bridge
# A pushed batch of any folder; the versions of backends end with a letter and a number.
_PUSHED = re.compile("skactive-[0-9a-f]{8}-[0-9]+")


@dataclass(frozen=True)
class Pulled:
    """Numbers of what a pull recorded, and what it could not record in words."""

    labels: int = 0
    withdrawn: int = 0
    skips: int = 0
    notes: int = 0
    messages: tuple = ()

    def __str__(self):
        numbers = ((getattr(self, name), name) for name in _PULLED)
        return ", ".join(count(n, name) for n, name in numbers if n) or "nothing new"

    def __bool__(self):
        return any(getattr(self, name) for name in _PULLED)


_COUNTS = (
    *("task_number", "total_annotations_number"),
    "skipped_annotations_number",
)
_PULLED = ("labels", "withdrawn", "skips", "notes")


class Bridge(Closing):
    """Answers of a project become events of a session, whose batches come first there.

    The pool is the tasks of the project. Label Studio gives the number of a deleted
    task to a new one, so the session knows a task by its number and a hash of its text.
    Each pull compares the answers there with those here; a killed bridge therefore goes
    on where it was. `settings` are ProjectSettings: the folder and the model; those of
    the folder hold where others are not named. `question` names one of several
    questions. At most `left` texts of the last batch may wait for an answer when the
    next one is chosen; None stands for a quarter.

    Attributes
    ----------
    session : LabelingSession
    question : Question
    tasks : dict of session id to text
        The tasks that the project has.
    version : str
        The model whose predictions are returned; it changes with each training.
    wake, train_soon : threading.Event
        Set them to look for answers, and to train, at once.
    """

    def __init__(
        self,
        client,
        project,
        settings,
        *,
        batch=50,
        left=None,
        question=None,
    ):
        self.client, self.project, self.batch = client, project, batch
        self.left = batch // 4 if left is None else left
        self.folder = Path(settings.folder).expanduser().absolute()
        self.wake, self.train_soon = threading.Event(), threading.Event()
        self._lock = threading.RLock()
        self._settings, self._name = settings, question
        if settings.strategy:
            get_strategy(settings.strategy)  # checked before anything is made
        self._about = client.get_project(project)
        self.question = read_question(self._about["label_config"], question)
        self._key = claim(self.folder, client.url, self._about)
        LOG.info("reading the tasks")
        self.version = ""
        self._users, self._told = {}, set()
        self._texts = read_json(self.folder / "tasks.json", {})
        self._rest = {}  # the other cells of the tasks
        self._open()

    def close(self):
        """Close the session."""
        self.session.close()

    # The pool -------------------------------------------------------------------------

    def _open(self):
        """Read all tasks, and open the session with them."""
        self._seen, self._unfinished, self._newest = {}, {}, ""
        self._doubts, self._full_after = 0, 0.0
        self._unrecorded = found, _ = self._list()
        self.tasks = {id: self._texts[id] for id in found}
        if not found:
            raise ValueError(
                f"project {self.project} must have tasks with a text under "
                f"{' and '.join(map(repr, self.question.keys))}, got none. Import "
                "texts, or make a project: skactive label-studio create."
            )
        path = self.folder / "session"
        has_labels = (path / "manifest.json").exists()
        gone = {*(read_labels(path) if has_labels else ())} - self.tasks.keys()
        self._open_session(gone)
        if gone:
            self._forget(gone)

    def _open_session(self, gone=()):
        classes = self.question.classes
        lost = {id: self._texts[id] for id in gone if id in self._texts}
        items = {**self.tasks, **lost}
        several = {"multi_label": True} if self.question.multiple else {}
        self._trainer = self._make_trainer()
        self.session = LabelingSession(
            self._trainer.make_learner(),
            list(items.values()),
            self.folder / "session",
            ids=list(items),
            classes=classes if len(classes) > 1 else None,
            audit_every=AUDIT_EVERY,
            **several,
        )

    def _make_trainer(self):
        """Return the Trainer, whose options are kept for the next time."""
        settings = recall_options(self._settings, self.folder)
        target = "multi-label" if self.question.multiple else "single-label"
        trainer = Trainer(settings, target, self.folder)
        keep_options(replace(settings, strategy=trainer.find_strategy()), self.folder)
        return trainer

    def train_final(self):
        """Train on all labels and save the model, if there are two different ones."""
        question, labels = self.question, self.session.labels
        rest = [text for id, text in self.tasks.items() if id not in labels]
        data = [self.tasks[id] for id in labels], [*labels.values()], rest
        try:
            model = self._trainer.train(self.session, data)
            if model is not None:
                about = {"text": list(question.keys), "label": question.name}
                if question.multiple:
                    about |= {"target": "multi-label"}
                    about |= {"classes": self._trainer.classes, "separator": "|"}
                self._trainer.save(model, about)
        except KeyboardInterrupt:
            LOG.info("stopped; the labels are written")

    def _forget(self, gone):
        """Withdraw the answers to tasks that are gone, and leave these out."""
        self.session.sync(dict.fromkeys(gone, ()), SOURCE)
        for id in gone:
            self.tasks.pop(id, None)
            self._unfinished.pop(id, None)
        kept = [id for id in gone if id in self.session.labels]  # answered elsewhere
        self.session.close()
        self._open_session(kept)

    def _list(self, since=None):
        """Return tasks by session id, and problems in words."""
        started, found, problems = time.monotonic(), {}, []
        n_before, newest = len(self._texts), self._newest
        if since is None:
            self._seen = {}
        for task in self.client.list_tasks(self.project, since=since):
            newest = max(newest, task["updated_at"])
            skips = [bool(a["was_cancelled"]) for a in task["annotations"]]
            self._seen[task["id"]] = skips.count(False), skips.count(True)
            try:
                text = self.question.read_text(task)
            except ValueError as exc:
                problems.append(str(exc))
                continue
            id = _name_task(task, text)
            self._texts[id], self._rest[id] = text, self.question.read_rest(task)
            found[id] = task
            self._unfinished.pop(id, None)
            if not all(skips) and not task["is_labeled"]:
                self._unfinished[id] = None
        if len(self._texts) > n_before:
            content = json.dumps(self._texts, ensure_ascii=False)
            path = self.folder / "tasks.json"
            write_atomic(path, content.encode("utf-8", "surrogatepass"))
        self._newest = newest  # not before: a page that fails is read again
        if since is None:
            now = time.monotonic()
            self._full_after = now + _FULL_SHARE * (now - started)
        return found, problems

    def number(self, id):
        """Return the number of a task in Label Studio."""
        return int(id.partition("-")[0])

    # Answers --------------------------------------------------------------------------

    def pull(self):
        """Record the answers that are new, changed or gone; return them as Pulled."""
        with self._lock:
            self._about = about = self.client.get_project(self.project)
            self._follow_config(about)
            full = self._doubts > 1 and time.monotonic() > self._full_after
            since = None if full or not self._newest else self._overlapped()
            found, problems = self._list(since)
            # Kept until it is recorded: what was read is not listed again.
            earlier, old = ({}, []) if full else self._unrecorded
            found, problems = {**earlier, **found}, old + problems
            self._unrecorded = found, problems
            numbers = {self.number(id) for id in found}
            others = self.tasks.keys() - found.keys()
            gone = {id for id in others if full or self.number(id) in numbers}
            new = {id: self._texts[id] for id in found if id not in self.tasks}
            if new:
                known = {*self.session.pool_ids}
                added = {id: text for id, text in new.items() if id not in known}
                self.session.add(list(added.values()), list(added))
                self.tasks |= new
            pulled = self._record(found, problems)
            self._unrecorded = {}, []
            if gone:
                self._forget(gone)
            self._check_counts(about)
            return pulled

    def export(self):
        """Write the answers, with the other data of their tasks; return the file."""
        path = self.folder / "answers.csv"
        blank = dict.fromkeys(name for cells in self._rest.values() for name in cells)

        def find_columns(id):
            return {**blank, **self._rest.get(id, {})}

        def write(path):
            self.session.export(path, what="answers", columns=find_columns)

        with self._lock:
            write_listed(path, write)
        return path

    def _overlapped(self):
        newest = datetime.fromisoformat(self._newest)
        return (newest - _OVERLAP).isoformat()

    def _record(self, found, problems):
        """Record what people say about tasks."""
        people = {
            annotation["completed_by"]
            for task in found.values()
            for annotation in task["annotations"]
        }
        if not people <= self._users.keys():
            self._users = self.client.list_users()
        answers, notes = {}, {}
        for id, task in found.items():
            answers[id], notes[id] = self.question.read_answers(task, self._users)
        difference = self.session.sync(answers, SOURCE, notes=notes)
        for id, answer, error in difference.refused:
            problems.append(
                f"the label {answer.label!r} of task {self.number(id)} by "
                f"{answer.annotator} is not recorded: {error}"
            )
        new = [x for x in dict.fromkeys(problems) if x not in self._told]
        self._told.update(new)
        return Pulled(
            len(difference.told) + len(difference.changed),
            len(difference.withdrawn),
            len(difference.skipped),
            len(difference.notes),
            tuple(new),
        )

    def _follow_config(self, about):
        """Add new classes of the labeling configuration to the session."""
        now = read_question(about["label_config"], self._name)
        before = self.question
        if (now.keys, now.multiple) != (before.keys, before.multiple):
            raise ValueError(
                f"the labeling configuration of project {self.project} must label the "
                f"texts {before.keys} with multiple={before.multiple}, got "
                f"{now.keys} and multiple={now.multiple}. Start a new folder: "
                "folder=."
            )
        known = self.session.classes
        for name in now.classes:
            if known and name not in known:
                self.session.add_class(name)
        self.question = now

    def _check_counts(self, about):
        """Read all tasks soon if the project has other numbers than were seen."""
        totals = [sum(column) for column in zip(*self._seen.values(), strict=True)]
        agrees = [len(self._seen), *totals] == [about[name] for name in _COUNTS]
        self._doubts = 0 if agrees else self._doubts + 1

    # Questions ------------------------------------------------------------------------

    def push(self):
        """Put the waiting texts first in Label Studio, and return their number.

        If at most `left` texts wait, a batch is chosen before. The texts are in the
        journal as a batch before Label Studio hears of them, and a push that was
        interrupted is repeated.
        """
        with self._lock:
            waiting, number = self._waiting()
            if len(waiting) <= self.left:
                waiting, number = self._ask(waiting)
            if not waiting:
                return 0
            ids = [id for id in self._unfinished if id not in waiting] + waiting
            version = f"skactive-{self._key}-{number}"
            done = self.folder / "pushed.json"
            if read_json(done, None) == version == self._about["model_version"]:
                return len(waiting)
            self.client.use_uncertainty_sampling(self.project)
            self._show(ids, version)
            self._about["model_version"] = version
            write_atomic(done, json.dumps(version).encode())
            return len(waiting)

    def _waiting(self):
        """Return the ids that wait for an answer, in order, and the last batch."""
        batches = self.session.open_batches
        ids = [id for batch in batches for id in batch.ids]
        return ids, max((batch.number for batch in batches), default=0)

    def _ask(self, waiting):
        """Choose a batch; open ones that the session shows again do not count."""
        known = {*waiting}
        while batch := self.session.ask(self.batch):
            if not known.issuperset(batch.ids):
                break
        return self._waiting()

    def _show(self, ids, version):
        """Make the predictions of a version, and let the project ask by them."""
        self.client.delete_version(self.project, version)  # a part may be there
        found = self.predict([self.tasks[id] for id in ids], self.session.learner)
        predictions = [
            {
                "task": self.number(id),
                "model_version": version,
                "score": rank / len(ids),
                "result": [] if self.session.is_blind(id) else result,
            }
            for rank, (id, (result, _)) in enumerate(zip(ids, found, strict=True))
        ]
        try:
            self.client.add_predictions(self.project, predictions)
        except RefusedError:
            self._doubts, self._full_after = 2, 0.0  # tasks may have been deleted
            raise
        self.client.switch_version(self.project, version)
        for old in self.client.list_versions(self.project):
            own = old.startswith(f"skactive-{self._key}-")
            if old != version and (own or _PUSHED.fullmatch(old)):
                self.client.delete_version(self.project, old)

    def is_blind(self, task, text):
        """Whether nothing is predicted for a task, because the audit can draw it.

        This is so for a task that the session does not know yet, too.
        """
        id = _name_task(task, text)
        return id not in self.tasks or self.session.is_blind(id)

    def predict(self, texts, learner=None):
        """Return a predicted `result` for each text, and how sure it is, in [0, 1].

        This is the margin between the two largest probabilities, or with several
        classes per text the smallest probability of all decisions. Without a model, the
        results are empty. `learner` defaults to the newest model.
        """
        newest = self.session.newest_model
        learner = newest.learner if learner is None else learner
        if not hasattr(learner, "estimator_") or not texts:
            return [([], 0.0) for _ in texts]
        if self.question.multiple:
            labels, scores, _ = predict_labels(
                learner, texts, newest.classes, "multi-label"
            )
            margins = [score or 0.0 for score in scores]
        else:
            proba = learner.predict_proba(texts)
            labels = np.asarray(learner.classes_)[proba.argmax(axis=1)].tolist()
            top = np.sort(proba, axis=1)[:, -2:]
            margins = (top[:, -1] - top[:, 0]).tolist()
        return [
            (self.question.write_result(label), margin)
            for label, margin in zip(labels, margins, strict=True)
        ]

    def refit(self):
        """Train on all labels; the version changes."""
        with self._lock:
            self.session.refit()
            self.version = f"skactive-{self._key}-m{self.session.newest_model.seq}"

    def run(self, n=None, *, every=None, interval=5.0, stop=None):
        """Pull and push until there are `n` labels, no text is left, or `stop` is set.

        With `every`, nothing is pushed, but a model is trained for so many new labels,
        or fewer if `train_soon` is set. A server that is not available for some minutes
        is waited for.
        """
        stop, n_failures = stop or threading.Event(), 0
        while not stop.is_set():
            self.wake.clear()
            try:
                if self._step(n, every):
                    return
                n_failures = 0
            except UnavailableError as exc:
                n_failures += 1
                if n_failures > _MAX_FAILURES:
                    raise
                LOG.info(str(exc))
            pause = min(interval, _LEAST_PAUSE)
            if not stop.wait(pause):
                self.wake.wait(interval - pause)

    def _step(self, n, every):
        """Pull, then push or train; return whether there is nothing left to do."""
        report(self.pull())
        n_labels = len(self.session.labels)
        labels = count(n_labels, "labels")
        if n is not None and n_labels >= n:
            LOG.info(labels)
            return True
        if every is not None:
            least = 1 if self.train_soon.is_set() else every
            self.train_soon.clear()
            if self.session.model_age >= least or (n_labels and not self.version):
                self.refit()
                LOG.info(f"{labels}; the model is {self.version}")
            return False
        shown = read_json(self.folder / "pushed.json", "")
        try:
            n_waiting = self.push()
        except RefusedError:  # tasks may have been deleted meanwhile
            report(self.pull())
            n_waiting = self.push()
        if not n_waiting:
            LOG.info(f"{labels}; no text is left")
        elif read_json(self.folder / "pushed.json", "") != shown:
            LOG.info(f"{labels}; {count(n_waiting, 'texts')} in front")
        return not n_waiting


def count(n, name):
    """Return a number with the name of what is counted, which is a plural."""
    return f"{n:,} {name.removesuffix('s') if n == 1 else name}"


def report(pulled):
    """Log what a pull recorded."""
    if pulled:
        LOG.info(f"recorded {pulled}")
    for message in pulled.messages:
        LOG.info(message)


def _name_task(task, text):
    """Return the id of a task in the session."""
    return f"{task.get('id')}-{hash_item(text) % 16**8:08x}"
