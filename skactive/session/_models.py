"""The model of a session, and when another one is trained."""

import copy
import threading
from dataclasses import dataclass, field

import numpy as np
import sklearn
from sklearn.base import clone

from .._utils._containers import NothingToAskError, check_picks, take_rows
from .._utils._labels import same_label
from .._utils._pipelines import takes_unlabeled
from .._utils._random import round_seed
from .._utils._texts import drop_known_texts
from .._utils._threads import lower_priority, synchronized
from ._labels import indicate
from ._state import State


class Models:
    """The current model of a session.

    A model is a function of the journal up to an event, so the model of a killed
    process is trained again. `refit` is the one of the session; `lock` is held while
    the state is read, but not while a model is trained.
    """

    def __init__(
        self, base, pool, journal, state, refit, lock, vocabulary, encoder=None
    ):
        self._base = base
        self._pool = pool
        self._journal = journal
        self._state = state
        self._refit = refit
        self._lock = lock
        self._vocabulary = vocabulary
        self._encoder = encoder
        self._told_error = False  # whether the error of the encoder was raised
        self._model = None
        # No reference to `self`: a session that is dropped is freed at once.
        self._trainer = BackgroundTrainer(
            lambda task: train(base, pool, task, _find_ready(encoder))
        )

    @property
    def target(self):
        """The target of the session."""
        return self._vocabulary.target(self._state)

    def get(self, refit=None):
        """Return the model to use now; train it first if `refit` requires it."""
        refit = self._refit if refit is None else check_refit(refit)
        self._raise_encoding_error()
        if refit is True:
            if self._model is None or self._model.seq != self._state.labels_seq:
                self._model = self.train_now()
        elif self._model is None and refit is False:
            with self._lock:
                task = self._task_at(self._state.model_seq)
            self._model = self._train(task)
        elif refit == "background":
            self._adopt()
            if self._is_blank() and self._has_labels() and self._ready() is None:
                self._submit_if_stale()
                self._trainer.wait(self._state.labels_seq)
                self._adopt()
            if self._model is None and self._ready() is not None:
                self._model = Model(self._base)  # nobody waits for features
            elif self._model is None:
                self._model = train(self._base, self._pool, TrainingData(0, 0, {}))
            self._submit_if_stale()
        return self._model

    def prepare(self):
        """Start training in the background if `refit` requires it."""
        if self._refit == "background":
            self._submit_if_stale()

    def train_now(self):
        """Return a model trained on all labels, without using it yet."""
        with self._lock:
            task = self._task()
        return self._train(task)

    def taught(self):
        """Return a learner with all labels, not trained; labels; unlabeled positions.

        The labels are a dict of id to label, in the order of the last labels of the
        learner. The names of its columns, or None, come last. While features are
        computed, only the positions that have them count.
        """
        with self._lock:
            task = self._task()
        learner = _teach(self._base, self._pool, task)
        rest = _find_rest(self._pool, task, self._ready())
        return learner, task.labels, rest, task.classes

    def choose(self, learner, n, free):
        """Return positions chosen by the learner; `free` (n,) masks the candidates.

        While features are computed, the candidates are the items that have them; items
        at random if these are too few, or if the first model is not trained yet.
        """
        ready = self._ready()
        if ready is None:
            return choose(learner, self._pool.X, n, free, self._pool.ids.__getitem__)
        n = learner.batch_size if n is None else n
        rows = np.flatnonzero(free & ready)
        if len(rows) < 2 * n or (self._is_blank() and self._has_labels()):
            return self._encoder.pick(free, n)
        part, every = take_rows(self._pool.X, rows), np.ones(len(rows), dtype=bool)

        def find_id(place):
            return self._pool.ids[int(rows[place])]

        return rows[choose(learner, part, n, every, find_id)]

    def newest(self):
        """Return the newest model that is trained, without waiting, or None."""
        self._adopt(errors=False)
        return None if self._is_blank() else self._model

    def use(self, model):
        """Use a model from now on."""
        self._model = model

    @synchronized
    def age(self):
        """Return the number of items whose current label the model does not know."""
        if self._refit == "background":
            self._adopt(errors=False)
        model = self._model
        if model is None:  # not trained again yet since the session was opened
            model = Model(
                self._base, labels=self._task_at(self._state.model_seq).labels
            )
        return model.age(self._task().labels)

    def follow_pool(self):
        """Compute the features of new items of the pool, if `encode` requires it."""
        if self._encoder is not None:
            self._encoder.grow()

    def stop(self):
        """Start no further training; ignore the model of a running one."""
        self._trainer.drop()
        if self._encoder is not None:
            self._encoder.stop()

    @property
    def training(self):
        """Whether a model is trained in the background now."""
        return self._trainer.busy

    @property
    def encoded(self):
        """Share of the pool that has features, from 0 to 1."""
        return 1.0 if self._encoder is None else self._encoder.share

    @property
    def encoding_error(self):
        """The first error of the features that a thread computes, or None."""
        return None if self._encoder is None else self._encoder.error

    def _raise_encoding_error(self):
        """Raise the error of the features once."""
        error = self.encoding_error
        if error is not None and not self._told_error:
            self._told_error = True
            error.add_note(_NOTE_OF_FEATURES)
            raise error

    def has_features(self, positions):
        """Whether the features of some items need not be waited for."""
        ready = self._ready()
        return ready is None or bool(ready[positions].all())

    def _ready(self):
        return _find_ready(self._encoder)

    def _train(self, task):
        try:
            return train(self._base, self._pool, task, self._ready())
        except BaseException as exc:
            exc.add_note(_NOTE.format(n=len(task.labels)))
            raise

    @synchronized
    def _adopt(self, errors=True):
        """Use the model that the thread has trained; raise its error once."""
        try:
            model = self._trainer.take(errors)
        except BaseException as exc:
            exc.add_note(_NOTE.format(n=len(self._state.answers)))
            raise
        # A model may have been trained on request since.
        if model and (self._model is None or model.seq >= self._model.seq):
            self._model = model

    @synchronized
    def _submit_if_stale(self):
        seq = None if self._is_blank() else self._model.seq
        if self._has_labels() and seq != self._state.labels_seq:
            self._trainer.submit(self._task())

    def _has_labels(self):
        return bool(self._state.answers) or hasattr(self._base, "X_labeled_")

    def _is_blank(self):
        return self._model is None or not hasattr(self._model.learner, "estimator_")

    def _task(self):
        return self._as_task(self._state)

    def _task_at(self, seq):
        """Return the labels as they were after an event."""
        if seq == self._state.labels_seq:
            return self._task()
        past = State(self._pool)
        past.fold(self._journal.events[:seq])
        return self._as_task(past)

    def _as_task(self, state):
        labels = {id: answer.label for id, answer in state.answers.items()}
        allowed = state.classes or self._journal.manifest.get("classes")
        classes = self._vocabulary.name_columns(state, allowed)
        columns = self._vocabulary.columns
        return TrainingData(
            *(state.labels_seq, state.labels_round, labels, state.renamed),
            *(classes, columns),
        )


def _find_ready(encoder):
    """Return a mask (n,) of the items that have features, None if all have."""
    if encoder is None:
        return None
    ready = encoder.ready.copy()
    return None if ready.all() else ready


def check_refit(refit):
    """Return a checked `refit`."""
    if not isinstance(refit, bool | str) or refit not in (True, False, "background"):
        raise ValueError(f"'refit' must be True, False or 'background', got {refit!r}.")
    return refit


_NOTE = (
    "Training on the {n} labels of the session failed. No label is lost, and the "
    "previous model is kept: ask(refit=False) uses it."
)


_NOTE_OF_FEATURES = (
    "The features of some items could not be computed in the background. No label is "
    "lost. This is raised once; further calls ask for items, but a model that needs "
    "these features fails."
)


@dataclass(frozen=True)
class TrainingData:
    """Labels to train on, after event `seq`, when `round` batches had been asked.

    `renamed` are the new names of former classes. If labels are lists of names,
    `classes` names the columns to train on, and `columns` those of the labels that the
    learner had before the session.
    """

    seq: int
    round: int
    labels: dict = field(repr=False)
    renamed: dict = field(default_factory=dict, repr=False)
    classes: list | None = None
    columns: list | None = None


@dataclass(frozen=True)
class Model:
    """A learner, the labels that it was trained on, and the names of its columns."""

    learner: object
    seq: int = 0
    labels: dict = field(default_factory=dict, repr=False)
    classes: list | None = None

    def age(self, labels):
        """Return the number of ids whose label differs from that in `labels`."""
        both = self.labels.keys() & labels.keys()
        changed = sum(not same_label(self.labels[id], labels[id]) for id in both)
        return changed + len(self.labels.keys() ^ labels.keys())


def fresh_learner(learner, seed):
    """Return a copy of a learner without its model but with its labels."""
    fresh = clone(learner).set_params(random_state=seed)
    if hasattr(learner, "X_labeled_"):
        weights = getattr(learner, "_kept_params", {})
        fresh.teach(learner.X_labeled_, learner.y_labeled_, refit=False, **weights)
        fresh.n_rounds_ = 0
    return fresh


def train(base, pool, task, ready=None):
    """Return a Model: a copy of `base` trained on the labels of a task.

    Of the unlabeled items, those of the mask `ready` are used; None stands for all. The
    result depends on the arguments alone, so a model can always be trained again.
    """
    learner = _teach(base, pool, task)
    if hasattr(learner, "X_labeled_"):
        learner.n_rounds_ = task.round
        unlabeled = {}
        if takes_unlabeled(getattr(learner, "estimator", None)):
            rest = _find_rest(pool, task, ready)
            unlabeled["X_unlabeled"] = take_rows(pool.X, rest)
        try:
            learner.refit(**unlabeled)
        except (TypeError, ValueError) as exc:
            if task.classes is not None:
                exc.add_note(_NOTE_OF_NAMES)
            raise
    return Model(learner, task.seq, task.labels, task.classes)


_NOTE_OF_NAMES = (
    "The labels are lists of names, which are trained on as an indicator matrix. The "
    "estimator must predict several labels for each item, such as "
    "OneVsRestClassifier(LogisticRegression())."
)


def _teach(base, pool, task):
    """Return a copy of `base` with the labels of a task, not trained on them."""
    learner = copy.copy(base)  # training replaces attributes and changes none
    before, labels = getattr(learner, "y_labeled_", None), list(task.labels.values())
    if task.classes is not None:
        labels = indicate(labels, task.classes)
        if before is not None:
            learner.y_labeled_ = indicate(_name_before(before, task), task.classes)
    elif task.renamed and before is not None and before.ndim == 1:
        renamed = [task.renamed.get(y, y) for y in before.tolist()]
        learner.y_labeled_ = np.array(renamed)
    if task.labels:
        items = take_rows(pool.X, pool.positions(task.labels))
        learner.teach(items, labels, refit=False)
    return learner


def _name_before(y, task):
    """Return the labels that the learner had before the session as lists of names."""
    if y.ndim == 1:
        rows = [[name] for name in y.tolist()]
    else:
        rows = [[task.columns[j] for j in np.flatnonzero(row)] for row in y]
    return [[task.renamed.get(name, name) for name in row] for row in rows]


def _find_rest(pool, task, ready):
    """Return the positions of the unlabeled items of the mask `ready`."""
    rest = np.ones(len(pool), dtype=bool) if ready is None else ready
    rest[pool.positions(task.labels)] = False
    return np.flatnonzero(rest)


def seeded_for(learner, number):
    """Return the learner with the seed of a batch; `number` counts from 1."""
    if hasattr(learner, "X_labeled_"):
        # As after this number of rounds of teach: a plain loop asks for the same.
        learner.n_rounds_ = number - 1
    elif number > 1:
        seed = round_seed(learner.random_state, number, "batch")
        learner = clone(learner).set_params(random_state=seed)
    return learner


def choose(learner, X, n, free, find_id):
    """Return positions in `X` chosen by the learner, checked, (n_queries,).

    `free` (n,) masks the items that may be queried; `n` defaults to the `batch_size`.
    `find_id` returns the id of a position, for an error.
    """
    n = min(learner.batch_size if n is None else n, int(free.sum()))
    # A learner leaves out texts whose label it knows. That label may have been undone
    # since the learner was trained.
    candidates = np.flatnonzero(free)
    try:
        picks = learner.query(X, n, candidates=free)
    except NothingToAskError:
        return candidates[:n]
    if np.size(picks) < n:
        known = getattr(learner, "X_labeled_", None)
        n = min(n, len(drop_known_texts(X, candidates, known)))
    name = getattr(learner, "strategy", learner)
    name = name if isinstance(name, str) else repr(name)
    picks = check_picks(picks, n, len(free), name)
    if not free[picks].all():
        wrong = find_id(int(picks[~free[picks]][0]))
        raise ValueError(
            f"strategy {name!r} must select among the candidates, got {wrong!r}, "
            "which is labeled, skipped or waiting. Repair it."
        )
    return picks


class BackgroundTrainer:
    """Train in a thread; of several waiting tasks, only the newest is done.

    `function(task)` returns a model.
    """

    def __init__(self, function):
        self._function = function
        self._changed = threading.Condition()
        self._waiting = self._running = None
        self._done = self._error = self._failed = None
        self._thread = None

    def submit(self, task):
        """Train a model, unless its training is under way, done or has failed."""
        with self._changed:
            newest = self._waiting or self._running or self._done
            if task.seq in (newest and newest.seq, self._failed):
                return
            self._waiting = task
            if self._thread is None:
                config = sklearn.get_config()  # each thread has its own
                self._thread = threading.Thread(
                    target=self._work, args=(config,), daemon=True
                )
                self._thread.start()

    def take(self, errors=True):
        """Return the newest model that is ready, or None; raise an error once."""
        with self._changed:
            if errors and self._error is not None:
                error, self._error = self._error, None
                raise error
            done, self._done = self._done, None
            return done

    def wait(self, seq=None):
        """Wait for the task of event `seq` or a later one; by default for all tasks."""
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None or self._has_ended(seq))

    def _has_ended(self, seq):
        ended = self._failed, self._done and self._done.seq
        return seq is not None and any(n is not None and n >= seq for n in ended)

    @property
    def busy(self):
        """Whether a task is under way or waiting."""
        return self._thread is not None

    def drop(self):
        """Remove the waiting task; a running one cannot be stopped."""
        with self._changed:
            self._waiting = None

    def _work(self, config):
        lower_priority()
        with sklearn.config_context(**config):
            while True:
                with self._changed:
                    self._running, self._waiting = self._waiting, None
                    if self._running is None:
                        self._thread = None
                        self._changed.notify_all()
                        return
                try:
                    model, error = self._function(self._running), None
                except BaseException as exc:  # raised by the next call of ask
                    model, error = None, exc
                with self._changed:
                    self._error = error
                    self._failed = self._running.seq if error else None
                    self._done = model or self._done
                    self._changed.notify_all()
