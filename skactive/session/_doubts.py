"""Answers that models without them contradict."""

from itertools import compress

import numpy as np
from sklearn.pipeline import Pipeline

from .._utils._labels import key_of, list_classes
from .._utils._pipelines import has_descriptions
from ..estimation import (
    find_suspicious,
    find_suspicious_numbers,
    find_suspicious_rows,
    predict_held_out,
    temper,
)
from ..semi_supervised import SelfTraining
from ._evidence import hold_out
from ._lists import find_added

_MOST_DOUBTS = 100
_QUICK, _CERTAIN = 0.5, 0.9  # seconds of an answer, probability of a prediction
_N_GROUPS = 5  # of classes whose older answers are left out at a time


def find_doubtful(core):
    """Return all rows of `LabelingSession.suspicious`, and predictions of all answers.

    These are by models without the answer, dict of id to the label and its probability,
    which is None unless there is one class per item. Items that the audit can draw have
    none.
    """
    learner, data, unlabeled = core.models.taught()
    seen = ~np.array(core.queue.find_blind(data.labels), dtype=bool)
    if core.target != "single-label":
        return _find_doubts(learner, data, seen)
    supervised = find_supervised(learner.estimator)
    folds = hold_out(learner, data, unlabeled, supervised, n_rest=0)
    if folds is None:
        return [], {}
    ids, first = list(data.labels), len(folds.codes) - len(data.labels)
    folds.proba[first:][~seen] = np.nan
    proba = folds.proba if supervised is None else temper(folds.proba, folds.codes)
    classes, predicted = folds.classes.tolist(), _find_best(ids, folds.classes, proba)
    doubts = [
        (ids[row - first], classes[folds.codes[row]], *predicted[ids[row - first]])
        for row in find_suspicious(proba, folds.codes).tolist()
    ]
    return doubts, predicted


def _find_best(ids, classes, proba):
    """Return the best class and its probability, dict of the ids of the last rows."""
    rows = zip(ids, proba[-len(ids) :], strict=True)
    said = {id: (row.argmax(), row.max()) for id, row in rows if not np.isnan(row[0])}
    return {id: (classes.tolist()[best], float(p)) for id, (best, p) in said.items()}


def find_fitting(core):
    """Return answers from before a class was added that it may fit, as predictions.

    The older answers of a class may be wrong in the same way, and models with some of
    them say the same. So the models lack all of them; the newer ones of the class tell
    it from the new class.
    """
    with core.lock:
        added, answers = find_added(core.state), dict(core.state.answers)
    if core.target != "single-label" or not added:
        return {}
    learner, data, unlabeled = core.models.taught()
    ids, since = list(data.labels), max(added.values())
    _, codes = np.unique(learner.y_labeled_, return_inverse=True)
    is_old = np.zeros(len(codes), dtype=bool)
    is_old[-len(ids) :] = [id in answers and answers[id].seq < since for id in ids]
    has_new = np.bincount(codes, ~is_old)[codes] > 0
    is_old[-len(ids) :] &= ~np.array(core.queue.find_blind(ids), dtype=bool)
    is_old &= has_new
    folds = np.full(len(codes), -1)
    folds[is_old] = np.unique(codes[is_old], return_inverse=True)[1] % _N_GROUPS
    supervised = find_supervised(learner.estimator)
    folds = hold_out(learner, data, unlabeled, supervised, folds, n_rest=0)
    best = {} if folds is None else _find_best(ids, folds.classes, folds.proba)
    return {id: said for id, said in best.items() if said[0] in added}


def _find_doubts(learner, data, seen):
    """Return the same for lists of names, rows or numbers.

    Only items of the mask `seen` are compared.
    """
    n, names = len(data.labels), data.classes
    if seen.sum() < 2:
        return [], {}
    predicted = predict_held_out(learner, n)[seen]
    y = learner.y_labeled_[-n:][seen]
    if y.ndim == 1:
        rows, sizes = find_suspicious_numbers(predicted, y)
        best = predicted.tolist()
    else:
        rows, columns = find_suspicious_rows(predicted, y)
        p = predicted[rows, columns]
        sizes, best = np.maximum(p, 1 - p), (predicted > 0.5).astype(int).tolist()
        if names is not None:
            best = [[names[j] for j in np.flatnonzero(row)] for row in best]
    answers = list(compress(data.labels.items(), seen))
    doubts = [
        (*answers[row], best[row], size)
        for row, size in zip(rows.tolist(), sizes.tolist(), strict=True)
    ]
    return doubts, {id: (x, None) for (id, _), x in zip(answers, best, strict=True)}


def find_supervised(estimator):
    """Return what a SelfTraining trains on the labels, or None for other estimators.

    With 77 classes of Banking77 and 500 labels, 25 of them wrong, it finds as many of
    them as the SelfTraining does, in a fifteenth of the time.
    """
    if has_descriptions(estimator):
        return find_supervised(estimator.estimator)
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        last = find_supervised(last)
        return last and Pipeline([*estimator.steps[:-1], (name, last)])
    return estimator.estimator if isinstance(estimator, SelfTraining) else None


class Doubts:
    """The answers that models without them contradict, of the last model.

    `n_labels` is the number of labels that they were found among, None before the first
    list.
    """

    def __init__(self, core):
        self._core = core
        self.n_labels = self.model = None
        self._quick, self._rows, self._error = {}, [], ""
        self._predicted, self._known = {}, set()

    @property
    def is_behind(self):
        """Whether there is a model whose doubtful answers are not listed."""
        model = self._core.models.newest().learner
        return model is not None and model is not self.model

    def find(self):
        """Find the doubtful answers for the newest model; takes seconds."""
        model = self._core.models.newest().learner
        with self._core.lock:
            labels = self._core.state.labels()
        rows, predicted, error = [], {}, ""
        try:
            rows, predicted = find_doubtful(self._core)
            predicted |= find_fitting(self._core)
        except Exception as exc:  # shown to who asks for the list
            error = f"No answers can be checked: {exc}"
        self._known = {*map(key_of, list_classes(labels.values()))}
        self._predicted = predicted
        self._rows, self._error, self.n_labels = rows[:_MOST_DOUBTS], error, len(labels)
        self.model = model

    def predict(self, id):
        """Return what models without the answer predict, as `show` does, or None."""
        return (one := self._predicted.get(id)) and self.show(*one)

    def show(self, label, size):
        """Return label, probability and best classes, as `predict_labels` does."""
        top = [[label, size]] if self._core.target == "single-label" else []
        return label, None if self._core.target == "regression" else size, top

    def find_likely(self, ids, name):
        """Return two lists of answered ids, or None if no model can tell.

        The first are taken for a class that they do not have, the most likely first.
        The others have the labels of these, and nothing is predicted for them.
        """
        said = self._predicted
        blind = dict(zip(ids, self._core.queue.find_blind(ids), strict=True))
        labels = {id: self._core.state.answers[id].label for id in ids}
        told = [id for id in ids if id in said and not blind[id]]
        if key_of(name) not in self._known or not told:
            return None
        likely = [id for id in told if name in list_classes([said[id][0]])]
        likely = [id for id in likely if name not in list_classes([labels[id]])]
        likely.sort(key=lambda id: -(said[id][1] or 0))
        old = {key_of(labels[id]) for id in likely}
        return likely, [id for id in ids if blind[id] and key_of(labels[id]) in old]

    def add_quick(self, id, label, seconds, name, probability):
        """List an answer that was too quick, if a certain prediction was shown."""
        is_quick = seconds is not None and seconds < _QUICK
        if is_quick and (probability or 0) >= _CERTAIN:
            self._quick[id] = id, label, name, probability

    def list_rows(self):
        """Return rows of `LabelingSession.suspicious` that are still doubtful.

        Answers that were too quick come first. Nothing is predicted for what the audit
        can draw.
        """
        if self._error:
            raise TypeError(self._error)
        answers, queue = self._core.state.answers, self._core.queue
        rows = {row[0]: row for row in [*self._rows, *self._quick.values()]}
        return [
            row
            for row in sorted(rows.values(), key=lambda row: row[0] not in self._quick)
            if _is_doubtful(row, answers.get(row[0])) and not queue.is_blind(row[0])
        ]

    def count(self):
        """Return the number of these rows; 0 if answers cannot be checked."""
        return 0 if self._error else len(self.list_rows())

    def lists(self, id):
        """Whether an item is among the rows."""
        return id in self._quick or any(id == row[0] for row in self._rows)


def _is_doubtful(row, answer):
    """Whether an answer is still the doubtful one, and was not given in a review."""
    _, label, predicted, _ = row
    if answer is None or key_of(answer.label) != key_of(label):
        return False
    seen = [one.label for one in answer.given if one.way == "review"]
    return key_of(label) not in map(key_of, [predicted, *seen])
