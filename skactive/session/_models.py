"""Which model a session goes by, and when another one is trained."""

import copy
import threading
from dataclasses import dataclass, field

import numpy as np
import sklearn
from sklearn.base import clone

from .._utils._containers import NothingToAskError, check_picks, take_rows
from .._utils._random import round_seed
from .._utils._texts import drop_known_texts
from .._utils._threads import synchronized
from ._state import State


class Models:
    """The present model of a session.

    A model is a function of the journal up to an event, so what a killed process had
    is trained again.

    Parameters
    ----------
    base : ActiveLearner
        From `fresh_learner`.
    pool : Pool
    journal : Journal
    state : State
        What the journal amounts to, kept up to date by the session.
    refit : bool or "background"
        When to train.
    lock : threading.RLock
        Held while the state is read, and never while a model is trained.
    """

    def __init__(self, base, pool, journal, state, refit, lock):
        self._base = base
        self._pool = pool
        self._journal = journal
        self._state = state
        self._refit = refit
        self._lock = lock
        self._model = None
        self._trainer = BackgroundTrainer(lambda task: train(base, pool, task))

    def get(self, refit=None):
        """Give the model to go by now, trained first if `refit` says so.

        Parameters
        ----------
        refit : bool or "background" or None
            None is the session's own.

        Returns
        -------
        model : Model
        """
        refit = self._refit if refit is None else check_refit(refit)
        if refit is True:
            if self._model is None or self._model.seq != self._state.labels_seq:
                self._model = self.train_now()
        elif self._model is None and refit is False:
            with self._lock:
                task = self._task_at(self._state.model_seq)
            self._model = self._train(task)
        elif refit == "background":
            self._adopt()
            if self._is_blank() and self._has_labels():
                self._submit_if_stale()
                self._trainer.wait(self._state.labels_seq)
                self._adopt()
            if self._model is None:
                self._model = train(self._base, self._pool, Task(0, 0, {}))
            self._submit_if_stale()
        return self._model

    def prepare(self):
        """Begin to train in the background, if that is the way and there is reason."""
        if self._refit == "background":
            self._submit_if_stale()

    def train_now(self):
        """Train on all labels, and give the model without going by it yet."""
        with self._lock:
            task = self._task()
        return self._train(task)

    def use(self, model):
        """Go by a model."""
        self._model = model

    @synchronized
    def age(self):
        """Count the labels that the model does not know as they are now."""
        if self._refit == "background":
            self._adopt(errors=False)
        model = self._model
        if model is None:  # not trained again yet since the session was opened
            model = Model(
                self._base, labels=self._task_at(self._state.model_seq).labels
            )
        return model.age(self._task().labels)

    def stop(self):
        """Train nothing more; what is under way ends without use."""
        self._trainer.drop()

    def _train(self, task):
        try:
            return train(self._base, self._pool, task)
        except BaseException as exc:
            exc.add_note(_NOTE.format(n=len(task.labels)))
            raise

    @synchronized
    def _adopt(self, errors=True):
        """Go by what the thread has ready; an error in it comes up here, once."""
        try:
            model = self._trainer.take(errors)
        except BaseException as exc:
            exc.add_note(_NOTE.format(n=len(self._state.answers)))
            raise
        if model is not None:
            self._model = model

    @synchronized
    def _submit_if_stale(self):
        seq = None if self._model is None else self._model.seq
        if self._has_labels() and seq != self._state.labels_seq:
            self._trainer.submit(self._task())

    def _has_labels(self):
        return bool(self._state.answers) or hasattr(self._base, "X_labeled_")

    def _is_blank(self):
        return self._model is None or not hasattr(self._model.learner, "estimator_")

    def _task(self):
        return _as_task(self._state)

    def _task_at(self, seq):
        """Give the labels as they stood after an event."""
        if seq == self._state.labels_seq:
            return self._task()
        past = State(self._pool)
        past.fold(self._journal.events[:seq])
        return _as_task(past)


def check_refit(refit):
    """Check a way of training.

    Parameters
    ----------
    refit : bool or "background"
    """
    if not isinstance(refit, bool | str) or refit not in (True, False, "background"):
        raise ValueError(f"'refit' must be True, False or 'background', got {refit!r}.")
    return refit


def _as_task(state):
    labels = {id: answer.label for id, answer in state.answers.items()}
    return Task(state.labels_seq, state.labels_round, labels)


_NOTE = (
    "Training on the session's {n} labels failed. No label is lost, and the model from "
    "before stays: ask(refit=False) goes by it."
)


@dataclass(frozen=True)
class Task:
    """Labels to train on.

    Attributes
    ----------
    seq : int
        The event after which the labels stood so.
    round : int
        How many batches had been asked then; it seeds the training.
    labels : dict of id to label
    """

    seq: int
    round: int
    labels: dict = field(repr=False)


@dataclass(frozen=True)
class Model:
    """A learner, and what it was trained on."""

    learner: object
    seq: int = 0
    labels: dict = field(default_factory=dict, repr=False)

    def age(self, labels):
        """Count the ids whose label it does not know as it is now."""
        absent = object()
        ids = {**self.labels, **labels}
        return sum(self.labels.get(id, absent) != labels.get(id, absent) for id in ids)


def fresh_learner(learner, seed):
    """Copy a learner without its model; labels it was fitted to are kept.

    Parameters
    ----------
    learner : ActiveLearner
    seed : int

    Returns
    -------
    learner : ActiveLearner
    """
    fresh = clone(learner).set_params(random_state=seed)
    if hasattr(learner, "X_labeled_"):
        weights = getattr(learner, "_kept_params", {})
        fresh.teach(learner.X_labeled_, learner.y_labeled_, refit=False, **weights)
        fresh.n_rounds_ = 0
    return fresh


def train(base, pool, task):
    """Train a copy of a learner on the labels of a session.

    The outcome depends on the arguments alone, so a model can always be made again.

    Parameters
    ----------
    base : ActiveLearner
        From :func:`fresh_learner`; left as it is.
    pool : Pool
    task : Task

    Returns
    -------
    model : Model
    """
    learner = copy.copy(base)  # training replaces attributes and changes none
    if task.labels:
        items = take_rows(pool.X, pool.positions(task.labels))
        learner.teach(items, list(task.labels.values()), refit=False)
    if hasattr(learner, "X_labeled_"):
        learner.n_rounds_ = task.round
        learner.refit()
    return Model(learner, task.seq, task.labels)


def seeded_for(learner, number):
    """Give the learner that chooses a batch, with the seed of that batch.

    Parameters
    ----------
    learner : ActiveLearner
    number : int
        Of the batch, from 1.

    Returns
    -------
    learner : ActiveLearner
    """
    if hasattr(learner, "X_labeled_"):
        # As after as many rounds of teach: sessions ask what a plain loop asks.
        learner.n_rounds_ = number - 1
    elif number > 1:
        seed = round_seed(learner.random_state, number, "batch")
        learner = clone(learner).set_params(random_state=seed)
    return learner


def choose(learner, pool, n, free):
    """Choose items with a learner, and check what goes into the journal.

    Parameters
    ----------
    learner : ActiveLearner
    pool : Pool
    n : int or None
        How many; None means the learner's `batch_size`.
    free : ndarray of bool, shape (n_pool,)
        What may be asked.

    Returns
    -------
    picks : ndarray of int
        Positions in the pool.
    """
    n = min(learner.batch_size if n is None else n, int(free.sum()))
    # A learner leaves out texts whose label it knows. That label may have been taken
    # back since the learner was trained.
    candidates = np.flatnonzero(free)
    try:
        picks = learner.query(pool.X, n, candidates=free)
    except NothingToAskError:
        return candidates[:n]
    if np.size(picks) < n:
        known = getattr(learner, "X_labeled_", None)
        n = min(n, len(drop_known_texts(pool.X, candidates, known)))
    name = getattr(learner, "strategy", learner)
    name = name if isinstance(name, str) else repr(name)
    picks = check_picks(picks, n, len(free), name)
    if not free[picks].all():
        wrong = pool.ids[picks[~free[picks]][0]]
        raise ValueError(
            f"strategy {name!r} must select among the candidates, got {wrong!r}, "
            "which is labeled, skipped or waiting. Repair it."
        )
    return picks


class BackgroundTrainer:
    """Train in a thread; of several tasks that wait, only the newest is done.

    Parameters
    ----------
    function : callable
        `function(task) -> model`.
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
        """Give the newest model that is ready, or None; raise an error once."""
        with self._changed:
            if errors and self._error is not None:
                error, self._error = self._error, None
                raise error
            done, self._done = self._done, None
            return done

    def wait(self, seq=None):
        """Wait until the task of an event or a later one has ended, or all tasks have.

        Parameters
        ----------
        seq : int, default=None
            The event. None waits for all tasks.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None or self._has_ended(seq))

    def _has_ended(self, seq):
        ended = self._failed, self._done and self._done.seq
        return seq is not None and any(n is not None and n >= seq for n in ended)

    def drop(self):
        """Forget the task that waits; the one that runs cannot be stopped."""
        with self._changed:
            self._waiting = None

    def _work(self, config):
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
                except BaseException as exc:  # for whoever asks next
                    model, error = None, exc
                with self._changed:
                    self._error = error
                    self._failed = self._running.seq if error else None
                    self._done = model or self._done
                    self._changed.notify_all()
