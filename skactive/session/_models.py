"""The model of a session, when another one is trained, and what threads do for it."""

import copy
import weakref
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from sklearn.base import clone

from .._storage._fingerprint import hash_items
from .._utils._containers import NothingToAskError, drop_known_texts, take_rows
from .._utils._labels import name_now, same_label
from .._utils._pipelines import (
    computes_features,
    count_adapted,
    has_descriptions,
    takes_unlabeled,
    with_adapted,
)
from .._utils._positions import check_picks
from .._utils._repeatable import synchronized
from ._adaptation import Adapter
from ._background import BackgroundTrainer, make_encoder
from ._codebook import list_texts
from ._labels import describe_now, indicate


class Models:
    """The current model of a session.

    A model is a function of the journal up to an event, so the model of a killed
    process is trained again. `refit`, `encode` and `max_pool` (`max_adapted_pool`) are
    those of the session. `in_background` is whether nobody waits for a model. The lock
    is held while the state is read, but not while a model is trained.
    """

    def __init__(self, journal, learner, vocabulary, refit, encode, max_pool):
        self._state, self._lock = journal.state, journal.lock
        self._seed = seed = journal.manifest["base_seed"]
        self._base = base = fresh_learner(learner, seed)
        self._adapter = make_adapter(journal, base, max_pool)
        self._refit, self.in_background = refit, refit == "background"
        self._vocabulary = vocabulary
        pool, estimator = self._state.pool, learner.estimator
        self._encoder = encoder = make_encoder(encode, estimator, pool, seed)
        self._told_error = False  # whether the error of the encoder was raised
        self._model = None
        # No reference to `self`: a session that is dropped is freed at once.
        self._trainer = BackgroundTrainer(
            partial(train_in_background, base, encoder, self._adapter)
        )
        if self._adapter is not None:
            self._adapter.changed = _when_there(self.train_again)

    @property
    def estimator(self):
        """The estimator of the learner, not fitted; None if it has none."""
        return getattr(self._base, "estimator", None)

    def get(self, refit=None, wait=True):
        """Return the model to use now; train it first if `refit` requires it.

        In the background, only the first one is waited for, and only with `wait`.
        """
        refit = self._refit if refit is None else check_refit(refit)
        if refit == "background" and self._model is None:
            self._model = Model(self._base)  # an error below must not cost a training
        self._raise_encoding_error()
        if refit == "background":
            self._follow_trainer(wait)
        elif self._model is None and not refit:
            self._model = self.train_now(self._state.model_seq, self._state.adapted)
        elif self._model is None or (
            refit and self._model.seq != self._state.labels_seq
        ):
            self._model = self.train_now()
        return self._model

    def _follow_trainer(self, wait):
        """Use the newest model that is ready, and train the next one in a thread."""
        self._adopt()
        self._submit_if_stale()
        if wait and self._is_blank() and self._learns():
            self._trainer.wait(self._state.labels_seq)
            self._adopt()

    def prepare(self):
        """Start training in the background if `refit` requires it."""
        if self._refit == "background":
            self._submit_if_stale()

    @synchronized
    def train_again(self):
        """Train in the background although no label has changed."""
        self._trainer.submit(self._data(), again=True)

    def train_now(self, seq=None, adapted=None):
        """Return a model trained on all labels, or on those after an event.

        Its encoder learns from the first `adapted` rows, if not None.
        """
        with self._lock:
            data = replace(self._data(seq), adapted=adapted)
        try:
            return train(self._base, data, self.find_ready())
        except BaseException as exc:
            exc.add_note(_NOTE.format(n=len(data.labels)))
            raise

    def taught(self):
        """Return a learner with all labels, not trained, and the TrainingData.

        The unlabeled positions come last. While features are computed, they are those
        that have them.
        """
        with self._lock:
            data = self._data()
        ready = self.find_ready()
        learner = _teach(self._base, data, ready)
        if self._adapter is not None:
            adapted = self._adapter.choose(learner, data.pool) or 0
            learner.estimator = with_adapted(learner.estimator, adapted)
        return learner, data, _find_rest(data, ready)

    def get_for_estimates(self):
        """Return a model of all labels, whose encoder learns nothing for that."""
        model = self._model
        if self._adapter is None or (model and model.seq == self._state.labels_seq):
            return self.get(refit=True)
        learner, data, _ = self.taught()
        return self.train_now(adapted=self._adapter.choose(learner, data.pool) or 0)

    def choose(self, learner, n, free, order):
        """Return positions chosen by the learner; `free` (n,) masks the candidates.

        While features are computed, the candidates are the items that have them. The
        first of the random `order` are chosen if these are too few, or before a model.
        """
        ready, pool = self.find_ready(), self._state.pool
        is_early = self.is_early(learner)
        if ready is None and not is_early:
            return choose(learner, pool.X, n, free, pool.ids.__getitem__)
        is_early = is_early or (self._is_blank() and self._learns())
        if is_early or (free & ready).sum() < 2 * n:
            return order[free[order]][:n]
        rows = np.flatnonzero(free & ready)
        part, every = take_rows(pool.X, rows), np.ones(len(rows), dtype=bool)

        def find_id(place):
            return pool.ids[int(rows[place])]

        return rows[choose(learner, part, n, every, find_id)]

    def is_early(self, learner):
        """Whether the learner has no model yet, and a cold start could take long."""
        waits = self._refit == "background" and computes_features(self.estimator)
        return waits and learner._is_cold()

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
        labels = self._data().labels
        if self._model is not None:
            return self._model.age(labels)
        # It was not trained again yet since the session was opened.
        return Model(None, labels=self._data(self._state.model_seq).labels).age(labels)

    def follow_pool(self):
        """Compute the features of new items of the pool, if `encode` requires it."""
        if self._encoder is not None:
            self._encoder.grow(self._state.pool)

    def stop(self):
        """Start no further training; ignore the model of a running one."""
        self._trainer.drop()
        if self._adapter is not None:
            self._adapter.stop()
        if self._encoder is not None:
            self._encoder.stop()

    @property
    def training(self):
        """Whether a model is trained in the background now."""
        return self._trainer.busy

    @property
    def pace(self):
        """Seconds for each label in which an encoder learned, None if unknown."""
        return self._adapter and self._adapter.pace

    @property
    def adapts(self):
        """Whether the encoder learns from labels."""
        adapter = self._adapter
        return adapter is not None and not adapter.is_too_large(self._state.pool)

    @property
    def encoder_error(self):
        """Why texts lack features, or the encoder did not learn; str or None."""
        if (exc := self.encoding_error) is not None:
            return f"no features of some texts: {type(exc).__name__}: {exc}"
        why = self._adapter and self._adapter.error
        return why and f"the encoder did not learn from the labels: {why}"

    @property
    def encoded(self):
        """Share of the pool that has features, or whose features failed, 0 to 1."""
        return 1.0 if self._encoder is None else self._encoder.share

    def encode_more(self):
        """Compute features that are missing in this thread; whether there were any."""
        return self._encoder is not None and self._encoder.hurry()

    @property
    def encoding_error(self):
        """The first error of the features that a thread computes, or None."""
        return None if self._encoder is None else self._encoder.error

    def describe(self):
        """Return what front ends show of the newest model, dict."""
        newest = self.newest()
        return {
            "n_labels": len(getattr(newest.learner, "y_labeled_", ())),
            "training": self.training,
            "adapted": newest.adapted or 0,
            "encoded": self.encoded,
        }

    def _raise_encoding_error(self):
        """Raise the error of the features once."""
        error = self.encoding_error
        if error is not None and not self._told_error:
            self._told_error = True
            error.add_note(_NOTE_OF_FEATURES)
            raise error

    def find_ready(self):
        """Return a mask (n,) of the items that have features, None if all have."""
        return None if self._encoder is None else self._encoder.find_ready()

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
        if self._learns() and seq != self._state.labels_seq:
            self._trainer.submit(self._data())

    def _learns(self):
        """Whether there is something to train on."""
        has_labels = bool(self._state.answers) or hasattr(self._base, "X_labeled_")
        return has_labels or has_descriptions(self.estimator)

    def _is_blank(self):
        return self._model is None or not hasattr(self._model.learner, "estimator_")

    def _data(self, seq=None):
        """Return the labels as they were after an event, by default the last one."""
        state = self._state
        if seq not in (None, state.labels_seq):
            state = state.at(seq)
        return TrainingData(
            pool=state.pool,
            seq=state.labels_seq,
            round=state.labels_round,
            labels=self._order(state),
            renamed=state.renamed,
            classes=self._vocabulary.name_columns(state),
            columns=self._vocabulary.columns,
            allowed=state.classes,
            added=state.added,
            described=_describe(state),
            machines=[state.machine_labels(name) for name in state.machines],
        )

    def _order(self, state):
        """Return the labels; if the first ones train an encoder, in a random order."""
        if self._adapter is None:
            return state.labels()
        return state.labels_by_keys(state.pool.draw_keys(self._seed, "audit"))


def _describe(state):
    """Return the texts that describe the classes of a state, dict of list."""
    entries, allowed = state.codebook.entries, state.classes
    names = [name for name in entries if allowed is None or name in allowed]
    return {name: list_texts(entries[name]) for name in names}


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
    "lost. This is raised once; a model that needs these features fails."
)


@dataclass(frozen=True)
class TrainingData:
    """Labels of items of a pool, after event `seq` and with `round` queried batches.

    `renamed` are the new names of former classes, `allowed` the classes of the session,
    None for any, and `added` those that were added then. `described` are the texts that
    describe a class, dict of name to list. `machines` are the labels by each machine,
    dicts of id to label. If labels are lists of names,
    `classes` names the columns to train on, and `columns` those of the labels that the
    learner had before the session. An encoder that learns from labels does so from the
    first `adapted`; None leaves that to its parameters.
    """

    pool: object = field(repr=False)
    seq: int = 0
    round: int = 0
    labels: dict = field(default_factory=dict, repr=False)
    renamed: dict = field(default_factory=dict, repr=False)
    classes: list | None = None
    columns: list | None = None
    allowed: list | None = None
    added: list = field(default_factory=list)
    described: dict = field(default_factory=dict, repr=False)
    machines: list = field(default_factory=list, repr=False)
    adapted: int | None = None


@dataclass(frozen=True)
class Model:
    """A learner, the labels that it was trained on, and the names of its columns.

    Its encoder has learned from the first `adapted` of them, see `TrainingData`.
    """

    learner: object
    seq: int = 0
    labels: dict = field(default_factory=dict, repr=False)
    classes: list | None = None
    adapted: int | None = None

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
    learner = _teach(base, data, ready)
    has_labels, unlabeled = hasattr(learner, "X_labeled_"), {}
    estimator = getattr(learner, "estimator", None)
    if data.adapted is not None:
        learner.estimator = with_adapted(estimator, data.adapted) or estimator
    describes = has_descriptions(getattr(learner, "estimator", None))
    if takes_unlabeled(getattr(learner, "estimator", None)):
        unlabeled_rows = _find_rest(data, ready)
        if len(unlabeled_rows):
            unlabeled["X_unlabeled"] = take_rows(data.pool.X, unlabeled_rows)
    if describes and not has_labels:
        learner.fit([], [], **unlabeled)
    elif has_labels:
        learner.n_rounds_ = data.round
        try:
            learner.refit(**unlabeled)
        except (TypeError, ValueError) as exc:
            if data.classes is not None:
                exc.add_note(_NOTE_OF_NAMES)
            raise
    if estimator is not None:
        learner.estimator = estimator
    adapted = data.adapted
    if adapted is None:
        adapted = count_adapted(getattr(learner, "estimator_", None))
    return Model(learner, data.seq, data.labels, data.classes, adapted)


def train_in_background(base, encoder, adapter, data):
    """Return a Model as `train` does, or None to keep the one before.

    What its encoder has to learn from the labels is left to a process.
    """
    ready = encoder and encoder.find_ready()
    if adapter is not None:
        adapted = adapter.choose(_teach(base, data, ready), data.pool)
        if adapted is None:
            return None
        data = replace(data, adapted=adapted)
    return train(base, data, ready)


def make_adapter(journal, base, max_pool):
    """Return an Adapter if the encoder of a learner learns from labels, else None.

    The learner then keeps what the encoder has learned in the folder of the session,
    unless it has a folder for that. Its labels get a random order, as those of a table
    can be sorted by class.
    """
    estimator = getattr(base, "estimator", None)
    params = {} if estimator is None else estimator.get_params(deep=True)
    steps = [k for k, v in params.items() if hasattr(v, "__skactive_adaptations__")]
    steps = [name for name in steps if hasattr(params[name], "cache")]
    if not steps or with_adapted(estimator, 0) is None:
        return None
    if not all(isinstance(params[name].random_state, int) for name in steps):
        return None  # each fit would draw for itself
    caches = {f"{name}__cache": journal.file("adapted") for name in steps}
    caches = {k: v for k, v in caches.items() if params[k] in ("memory", None)}
    base.estimator = clone(estimator).set_params(**caches)
    if hasattr(base, "X_labeled_"):
        order = np.argsort(hash_items(base.X_labeled_), kind="stable")
        base.X_labeled_ = take_rows(base.X_labeled_, order)
        base.y_labeled_ = base.y_labeled_[order]
        base._kept_params = {
            k: take_rows(v, order) for k, v in base._kept_params.items()
        }
    return Adapter(journal.state.adapted, max_pool)


def _when_there(method):
    """Return a function that calls a method unless its object is gone."""
    reference = weakref.WeakMethod(method)

    def call():
        if (method := reference()) is not None:
            method()

    return call


_NOTE_OF_NAMES = (
    "The labels are lists of names: the estimator must predict several labels for each "
    "item, such as OneVsRestClassifier(LogisticRegression())."
)


def _teach(base, data, ready=None):
    """Return a copy of `base` with the labels of a TrainingData, not trained."""
    learner = copy.copy(base)  # training replaces attributes and changes none
    if has_descriptions(getattr(base, "estimator", None)):
        learner.estimator = describe_now(base.estimator, data, ready)
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
        joined = learner._join(items, len(labels), labels, {})
        learner._store(joined, forget=True)
    return learner


def _name_before(y, data):
    """Return the labels that the learner had before the session as lists of names."""
    if y.ndim == 1:
        rows = [[name] for name in y.tolist()]
    else:
        rows = [[data.columns[j] for j in np.flatnonzero(row)] for row in y]
    return [name_now(row, data.renamed) for row in rows]


def _find_rest(data, ready):
    """Return the positions of the unlabeled items of the mask `ready`."""
    n = len(data.pool)
    is_unlabeled = np.full(n, ready is None)
    if ready is not None:  # the pool may have grown since, or before
        is_unlabeled[: len(ready)] = ready[:n]
    is_unlabeled[data.pool.positions(data.labels)] = False
    return np.flatnonzero(is_unlabeled)


def choose(learner, X, n, free, find_id):
    """Return `n` positions in `X` chosen by the learner, checked, or fewer, (n,).

    `free` (n,) masks the candidates. `find_id` returns the id of a position, for an
    error.
    """
    n = min(n, int(free.sum()))
    try:
        picks = learner.query(X, n, candidates=free)
    except NothingToAskError:
        # A learner leaves out texts whose label it knows. That label may have been
        # undone since the learner was trained.
        return np.flatnonzero(free)[:n]
    if np.size(picks) < n:
        taught = getattr(learner, "X_labeled_", None)
        n = min(n, len(drop_known_texts(X, np.flatnonzero(free), taught)))
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
