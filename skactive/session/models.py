"""Which model a session goes by, and when another one is trained."""

from __future__ import annotations

from skactive._threads import synchronized
from skactive.session.state import State
from skactive.session.training import BackgroundTrainer, Model, Task, train

__all__ = ["Models", "check_refit"]


class Models:
    """The present model of a session.

    A model is a function of the journal up to an event, so what a killed process had
    is trained again.

    Parameters
    ----------
    base : ActiveLearner
        From :func:`~skactive.session.training.fresh_learner`.
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
