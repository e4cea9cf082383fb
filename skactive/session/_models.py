"""The model of a session, and when another one is trained."""

import copy
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone

from .._utils._containers import NothingToAskError, check_picks, take_rows
from .._utils._labels import same_label
from .._utils._pipelines import takes_unlabeled
from .._utils._repeatable import round_seed, synchronized
from .._utils._texts import drop_known_texts
from ._background import BackgroundTrainer
from ._labels import indicate


class Models:
    """The current model of a session.

    A model is a function of the journal up to an event, so the model of a killed
    process is trained again. `refit` is the one of the session; `lock` is held while
    the state is read, but not while a model is trained.
    """

    def __init__(self, *, base, state, refit, lock, vocabulary, encoder=None):
        self._base = base
        self._state = state
        self._refit = refit
        self._lock = lock
        self._vocabulary = vocabulary
        self._encoder = encoder
        self._told_error = False  # whether the error of the encoder was raised
        self._model = None
        # No reference to `self`: a session that is dropped is freed at once.
        self._trainer = BackgroundTrainer(
            lambda data: train(base, data, encoder and encoder.find_ready())
        )

    @property
    def target(self):
        """The target of the session."""
        return self._vocabulary.target

    def get(self, refit=None):
        """Return the model to use now; train it first if `refit` requires it."""
        refit = self._refit if refit is None else check_refit(refit)
        self._raise_encoding_error()
        if refit == "background":
            self._follow_trainer()
        elif self._model is None or refit:
            self._train_if_stale(refit)
        return self._model

    def _train_if_stale(self, refit):
        """Train on all labels, or without `refit` on those of the last model."""
        if not refit:
            with self._lock:
                data = self._data_at(self._state.model_seq)
            self._model = self._train(data)
        elif self._model is None or self._model.seq != self._state.labels_seq:
            self._model = self.train_now()

    def _follow_trainer(self):
        """Use the newest model that is ready, and train the next one in a thread."""
        self._adopt()
        has_all_features = self._ready() is None
        if self._is_blank() and self._has_labels() and has_all_features:
            self._submit_if_stale()
            self._trainer.wait(self._state.labels_seq)
            self._adopt()
        if self._model is None and has_all_features:
            self._model = train(self._base, TrainingData(self._state.pool))
        elif self._model is None:
            self._model = Model(self._base)  # nobody waits for features
        self._submit_if_stale()

    def prepare(self):
        """Start training in the background if `refit` requires it."""
        if self._refit == "background":
            self._submit_if_stale()

    def train_now(self):
        """Return a model trained on all labels, without using it yet."""
        with self._lock:
            data = self._data()
        return self._train(data)

    def taught(self):
        """Return a learner with all labels, not trained, and the TrainingData.

        The unlabeled positions come last. While features are computed, they are those
        that have them.
        """
        with self._lock:
            data = self._data()
        return _teach(self._base, data), data, _find_rest(data, self._ready())

    def choose(self, learner, n, free):
        """Return positions chosen by the learner; `free` (n,) masks the candidates.

        While features are computed, the candidates are the items that have them; items
        at random if these are too few, or if the first model is not trained yet.
        """
        ready, pool = self._ready(), self._state.pool
        if ready is None:
            return choose(learner, pool.X, n, free, pool.ids.__getitem__)
        rows = np.flatnonzero(free & ready)
        if len(rows) < 2 * n or (self._is_blank() and self._has_labels()):
            return self._encoder.pick(free, n)
        part, every = take_rows(pool.X, rows), np.ones(len(rows), dtype=bool)

        def find_id(place):
            return pool.ids[int(rows[place])]

        return rows[choose(learner, part, n, every, find_id)]

    def newest(self):
        """Return the newest model that is trained, without waiting, or a blank one."""
        self._adopt(errors=False)
        return Model(None) if self._is_blank() else self._model

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
                self._base, labels=self._data_at(self._state.model_seq).labels
            )
        return model.age(self._data().labels)

    def follow_pool(self):
        """Compute the features of new items of the pool, if `encode` requires it."""
        if self._encoder is not None:
            self._encoder.grow(self._state.pool)

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
        """Share of the pool that has features, or whose features failed, 0 to 1."""
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
        return None if self._encoder is None else self._encoder.find_ready()

    def _train(self, data):
        try:
            return train(self._base, data, self._ready())
        except BaseException as exc:
            exc.add_note(_NOTE.format(n=len(data.labels)))
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
            self._trainer.submit(self._data())

    def _has_labels(self):
        return bool(self._state.answers) or hasattr(self._base, "X_labeled_")

    def _is_blank(self):
        return self._model is None or not hasattr(self._model.learner, "estimator_")

    def _data_at(self, seq):
        """Return the labels as they were after an event."""
        is_now = seq == self._state.labels_seq
        return self._data(self._state if is_now else self._state.at(seq))

    def _data(self, state=None):
        """Return the labels of a state, by default of the current one."""
        state = state or self._state
        return TrainingData(
            pool=state.pool,
            seq=state.labels_seq,
            round=state.labels_round,
            labels=state.labels(),
            renamed=state.renamed,
            classes=self._vocabulary.name_columns(state),
            columns=self._vocabulary.columns,
        )


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
    """Labels of items of a pool, after event `seq` and with `round` queried batches.

    `renamed` are the new names of former classes. If labels are lists of names,
    `classes` names the columns to train on, and `columns` those of the labels that the
    learner had before the session.
    """

    pool: object = field(repr=False)
    seq: int = 0
    round: int = 0
    labels: dict = field(default_factory=dict, repr=False)
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


def train(base, data, ready=None):
    """Return a Model: a copy of `base` trained on a TrainingData.

    Of the unlabeled items, those of the mask `ready` are used; None stands for all. The
    result depends on the arguments alone, so a model can always be trained again.
    """
    learner = _teach(base, data)
    if hasattr(learner, "X_labeled_"):
        learner.n_rounds_ = data.round
        unlabeled = {}
        if takes_unlabeled(getattr(learner, "estimator", None)):
            rest = _find_rest(data, ready)
            unlabeled["X_unlabeled"] = take_rows(data.pool.X, rest)
        try:
            learner.refit(**unlabeled)
        except (TypeError, ValueError) as exc:
            if data.classes is not None:
                exc.add_note(_NOTE_OF_NAMES)
            raise
    return Model(learner, data.seq, data.labels, data.classes)


_NOTE_OF_NAMES = (
    "The labels are lists of names, which are trained on as an indicator matrix. The "
    "estimator must predict several labels for each item, such as "
    "OneVsRestClassifier(LogisticRegression())."
)


def _teach(base, data):
    """Return a copy of `base` with the labels of a TrainingData, not trained."""
    learner = copy.copy(base)  # training replaces attributes and changes none
    before, labels = getattr(learner, "y_labeled_", None), list(data.labels.values())
    if data.classes is not None:
        labels = indicate(labels, data.classes)
        if before is not None:
            learner.y_labeled_ = indicate(_name_before(before, data), data.classes)
    elif data.renamed and before is not None and before.ndim == 1:
        renamed = [data.renamed.get(y, y) for y in before.tolist()]
        learner.y_labeled_ = np.array(renamed)
    if data.labels:
        items = take_rows(data.pool.X, data.pool.positions(data.labels))
        learner.teach(items, labels, refit=False)
    return learner


def _name_before(y, data):
    """Return the labels that the learner had before the session as lists of names."""
    if y.ndim == 1:
        rows = [[name] for name in y.tolist()]
    else:
        rows = [[data.columns[j] for j in np.flatnonzero(row)] for row in y]
    return [[data.renamed.get(name, name) for name in row] for row in rows]


def _find_rest(data, ready):
    """Return the positions of the unlabeled items of the mask `ready`."""
    n = len(data.pool)
    rest = np.full(n, ready is None)
    if ready is not None:  # the pool may have grown since, or before
        rest[: len(ready)] = ready[:n]
    rest[data.pool.positions(data.labels)] = False
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
    """Return `n` positions in `X` chosen by the learner, checked, or fewer, (n,).

    `free` (n,) masks the candidates. `find_id` returns the id of a position, for an
    error.
    """
    n = min(n, int(free.sum()))
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
