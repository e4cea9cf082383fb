"""What a session, its desk and their parts share."""

import threading
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from .._utils._plugins import read_declared
from ..registry import resolve
from ..view import PoolView
from ._answers import Answers
from ._journal import Journal
from ._labels import (
    Vocabulary,
    check_annotator,
    check_classes,
    describe_classes,
    find_declared,
)
from ._manifest import begin_or_resume
from ._models import Models
from ._queue import Queue


@dataclass(frozen=True)
class Core:
    """The parts of an open session.

    The lock of the journal guards the state. Training and choosing hold only
    `choosing`, so that answers need not wait for them; `choosing` is always acquired
    first. `stops` are events that end requests of machines.
    """

    journal: Journal
    vocabulary: Vocabulary
    models: Models
    queue: Queue
    answers: Answers
    choosing: threading.RLock
    annotator: str | None = None
    stops: weakref.WeakSet = field(default_factory=weakref.WeakSet)

    @property
    def state(self):
        """The state after the last event."""
        return self.journal.state

    @property
    def lock(self):
        """The lock that guards the state."""
        return self.journal.lock

    @property
    def target(self):
        """The target of the session."""
        with self.lock:
            return self.vocabulary.target

    def known_classes(self):
        """Return the classes of the session, list; see `Vocabulary.collect`."""
        with self.lock:
            return list(self.vocabulary.collect())

    def who(self, annotator):
        """Return the checked name of an annotator; None stands for the session's."""
        return self.annotator if annotator is None else check_annotator(annotator)

    def join_notes(self, id):
        """Return the note of an item; where two answer, what each of them wrote."""
        notes = self.state.own_notes.get(id, {})
        if len(notes) < 2 or not self.queue.find_shared([id]):
            return self.state.notes.get(id)
        return "\n".join(f"{by or 'somebody'}: {text}" for by, text in notes.items())

    @contextmanager
    def recording(self, nothing="Nothing was recorded."):
        """Hold the lock while something is recorded; an error says that it was not."""
        with self.lock:
            self.journal.sync()
            try:
                yield self.answers
            except (ValueError, TypeError) as exc:
                if not str(exc).endswith(nothing):
                    exc.args = (f"{exc} {nothing}",)
                raise
            self.models.prepare()

    def close(self):
        """End requests and training, and release the folder; harmless if repeated."""
        with self.lock:
            for stop in self.stops:
                stop.set()
            self.models.stop()
            self.journal.close()


def open_core(
    learner,
    pool,
    folder,
    options,
    *,
    refit,
    encode,
    max_pool,
    annotator,
    classes,
    multi_label,
):
    """Return the Core of a new session, or of that in a folder.

    `options` are those of the queue; for the others, see `LabelingSession`.
    """
    descriptions, classes = check_classes(classes)
    target = find_declared(learner, multi_label, classes)
    annotator = check_annotator(annotator)
    journal, models = Journal(folder), None
    try:
        learner, descriptions = describe_classes(
            learner, descriptions, journal.manifest, target
        )
        declared = target or (journal.manifest or {}).get("target")
        check_strategy(learner, pool.X, declared)
        begin_or_resume(journal, pool, learner, classes, options, target, descriptions)
        options = replace(options, overlap=journal.state.overlap)
        vocabulary, choosing = Vocabulary(journal, learner, target), threading.RLock()
        models = Models(journal, learner, vocabulary, refit, encode, max_pool)
        queue = Queue(journal, learner, models, choosing, options)
        models.prepare()
        answers = Answers(journal, vocabulary)
        return Core(journal, vocabulary, models, queue, answers, choosing, annotator)
    except BaseException:
        if models is not None:
            models.stop()
        journal.close()
        raise


def check_strategy(learner, X, target):
    """Raise a TypeError for a strategy for other targets, before anybody answers.

    Labels that come first may be of one or several classes unless a `target` says so.
    """
    y, strategy = getattr(learner, "y_labeled_", None), learner.strategy
    targets = read_declared(resolve(strategy), "targets", None)
    if y is None:
        is_open = target is None and targets == {"multi-label"}
        y = np.zeros((1, 2) if is_open or target == "multi-label" else 1, dtype=int)
    name = strategy if isinstance(strategy, str) else repr(strategy)
    options = {"unfitted": learner.estimator, "y_labeled": y}
    PoolView(X, targets=targets, name=name, **options)
